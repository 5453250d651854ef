"""The button with which the head of a page begins: what can be done with the page."""

PRIORITY = 900  # of who adds it: after the theme, which makes the other buttons


def add_action(context, name, text, tooltip):
    """Put a button before the others of a page; the script that finds it by the class `name` listens."""
    button = {
        "type": "javascript",
        "javascript": "",
        "tooltip": tooltip,
        "icon": "fas fa-play",
        "text": text,
        "classes": f"page-action {name}",
    }
    context["header_buttons"].insert(0, button)
