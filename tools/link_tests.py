"""Sphinx extension: the role `test`, which links a test to its line in the repository.

`bias::margins_and_normalisation` is the function `test_margins_and_normalisation` in `tests/test_bias.py`. Where the
ledger names it, it breaks between its words.
"""

import re
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxRole

TESTS = Path(__file__).parents[1] / "tests"


def line_of(test):
    """Return the file below `tests` and the line where a test begins.

    Raises
    ------
    ValueError
        If there is no such test.

    Examples
    --------
    >>> file, line = line_of("bias::margins_and_normalisation")
    >>> file, (TESTS / file).read_text().splitlines()[line - 1].split("(")[0]
    ('test_bias.py', 'def test_margins_and_normalisation')
    """
    stem, name = test.split("::")
    file = f"test_{stem}.py"
    lines = (TESTS / file).read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        if re.match(rf"\s*def test_{name}\(", line):
            return file, number
    raise ValueError(f"{file} has no function test_{name}")


class LinkedTest(SphinxRole):
    """The name of a test as code, which leads to its source."""

    def run(self):
        """Return the link."""
        options = self.config.html_theme_options
        file, line = line_of(self.text)
        address = f"{options['repository_url']}/blob/{options['repository_branch']}/tests/{file}#L{line}"
        return [nodes.reference("", "", nodes.literal("", self.text), refuri=address)], []


def break_names(app, name, template, context, page):
    """Let the long names of code in the ledger break."""
    if name == "book/ledger":
        names = re.compile(r'(?<=<span class="pre">)[\w.:]+(?=</span>)')
        context["body"] = names.sub(lambda name: re.sub(r"(_|::)(?=\w)", r"\1<wbr>", name[0]), context["body"])


def setup(app):
    """Register both."""
    app.add_role("test", LinkedTest())
    app.connect("html-page-context", break_names)
    return {"parallel_read_safe": True}
