"""Sphinx extension: every fold of a page is one element with one look, and says what it holds.

Solutions become folds as hints and proofs are, instead of boxes that a script folds. A hidden cell that asserts
something is a check, and its fold says so.
"""

from docutils import nodes
from paper import is_solution
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx_design.shared import create_component

CHECKED = "Checked"


class Folds(SphinxPostTransform):
    """Prepare the folds of a page for those who write them."""

    default_priority = 198  # they have 199
    formats = ("html",)

    def run(self, **kwargs):
        """Make folds of solutions, and name those of checks."""
        for solution in list(self.document.findall(is_solution)):
            title, *text = solution.children
            solution.replace_self(fold("Solution", text, ["solution"]))
        for cell in self.document.findall(is_cell):
            if cell.get("hide_mode") == "all" and "assert " in cell.children[0].astext():
                cell["prompt_show"] = cell["prompt_hide"] = CHECKED


def is_cell(node):
    """Say whether `node` is a cell of code."""
    return isinstance(node, nodes.container) and node.get("nb_element") == "cell_code"


def fold(title, text, classes):
    """Return a fold as the directive `dropdown` makes it."""
    options = {"opened": False, "type": "dropdown", "has_title": True, "icon": None, "chevron": None}
    box = create_component("dropdown", container_classes=classes, title_classes=[], body_classes=[], **options)
    box += [nodes.rubric(title, title), *text]
    return box


def setup(app):
    """Connect it."""
    app.add_post_transform(Folds)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
