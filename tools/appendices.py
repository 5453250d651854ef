"""Sphinx extension: an appendix has a letter where a chapter has its number, in all that is counted in it."""

from string import ascii_uppercase

from docutils import nodes
from sphinx import addnodes

CAPTION = "Appendices"  # of their part in the table of contents


def put_letters(app, env):
    """Replace the first number of the sections, formulas, theorems and figures of each appendix; return the pages."""
    parts = env.get_doctree(env.config.root_doc).findall(addnodes.toctree)
    pages = [page for part in parts if part.get("caption") == CAPTION for _, page in part["entries"]]
    for letter, page in zip(ascii_uppercase, pages, strict=False):
        for numbers in (env.toc_secnumbers[page], *env.toc_fignumbers.get(page, {}).values()):
            numbers.update({name: (letter, *number[1:]) for name, number in numbers.items()})
        for title in (env.titles[page], *env.tocs[page].findall(nodes.reference)):
            title["secnumber"] = (letter, *title["secnumber"][1:])
    return pages


def setup(app):
    """Do so once Sphinx has counted."""
    app.connect("env-get-updated", put_letters, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
