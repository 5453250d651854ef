"""Many questions of one thing, asked in one visit: a page is opened once, and all that is wrong with it is said."""

import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

PAGES_JS = Path(__file__).with_name("pages.js").read_text()
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="there is no Node.js")


class Tags(HTMLParser):
    """The tags of a page, each with its attributes, and its text."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data


def js(name):
    """Return a function of `pages.js`, as a page can call it."""
    return f"(...given) => {{\n{PAGES_JS}\nreturn {name}(...given); }}"


def ask(questions, *subject):
    """Ask every question about the subject; one that fails does not hide what the next ones find."""
    failed = []
    for question in questions:
        try:
            question(*subject)
        except Exception as error:
            failed.append(f"{question.__name__.replace('_', ' ')}: {error}")
    if failed:
        pytest.fail("\n\n".join(failed), pytrace=False)
