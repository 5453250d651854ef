"""Sphinx extension: decks of slides, pages in book/slides whose sections are the slides.

The directive `figure-of` shows a figure of a chapter, by its name, as the chapter stores it:

    ```{figure-of} fig-se-forecast
    ```
"""

import json
from base64 import b64decode
from functools import cache
from pathlib import Path

from docutils import nodes
from page_action import PRIORITY, add_action
from sphinx.util.docutils import SphinxDirective

DECKS = "book/slides/"
FORMATS = {"image/svg+xml": (".svg", str.encode), "image/png": (".png", b64decode)}


@cache
def figures(book):
    """Return the chapter's file, the outputs and the metadata of each cell that draws a named figure."""
    found = {}
    for path in sorted(Path(book).glob("[0-9]*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            metadata = cell["metadata"].get("mystnb", {})
            if name := metadata.get("figure", {}).get("name"):
                found[name] = path, cell["outputs"], metadata
    return found


def picture(outputs):
    """Return the ending and the bytes of the first picture among the `outputs` of a cell.

    Examples
    --------
    >>> picture([{"text": "no picture"}, {"data": {"image/svg+xml": ["<svg", "/>"]}}])
    ('.svg', b'<svg/>')
    """
    for output in outputs:
        for kind, (ending, decode) in FORMATS.items():
            if kind in output.get("data", {}):
                return ending, decode("".join(output["data"][kind]))
    raise LookupError


class FigureOf(SphinxDirective):
    """A figure of a chapter, with its own alternative text."""

    required_arguments = 1

    def run(self):
        """Return the picture, a file beside the pages' sources that Sphinx copies."""
        name = self.arguments[0]
        try:
            path, outputs, metadata = figures(str(Path(self.env.srcdir, "book")))[name]
            ending, content = picture(outputs)
        except LookupError:
            raise self.error(f"no chapter has a cell that draws the figure {name}") from None
        self.env.note_dependency(str(path))
        target = Path(self.env.doctreedir, "figures", name + ending)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        uri = "/" + target.relative_to(self.env.srcdir).as_posix()  # from the root of the sources
        return [nodes.image("", uri=uri, alt=metadata["image"]["alt"], loading="lazy")]


def add_files(app, page, template, context, doctree):
    """Give the decks what shows them one slide at a time, and a button that begins."""
    if page.startswith(DECKS):
        app.add_css_file("slides.css")
        app.add_js_file("slides.js", type="module")
        add_action(context, "present", "Present", "Arrow keys turn the slides, Escape leaves")


def setup(app):
    """Register the directive."""
    app.add_directive("figure-of", FigureOf)
    app.connect("html-page-context", add_files, priority=PRIORITY)
    return {"parallel_read_safe": True}
