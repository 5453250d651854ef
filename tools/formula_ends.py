r"""Sphinx extension: a formula among words keeps the signs that touch it.

A browser takes a formula for a picture, and may begin a line with the full stop behind one.
"""

import re

TOUCHED = re.compile(r'([(\[“‘]*)(<span class="math notranslate nohighlight">[^<]*</span>)([.,:;?!)\]”’]*)')


def keep_signs(page):
    r"""Return the HTML of a page with a box around each formula and the signs before and behind it.

    Examples
    --------
    >>> formula = r'<span class="math notranslate nohighlight">\(x\)</span>'
    >>> keep_signs(f"Is {formula}?") == f'Is <span class="formula">{formula}?</span>'
    True
    >>> keep_signs(f"Where {formula} is") == f"Where {formula} is"
    True
    """

    def keep(found):
        return f'<span class="formula">{found[0]}</span>' if found[1] or found[3] else found[0]

    return TOUCHED.sub(keep, page)


def work_on_page(app, pagename, templatename, context, doctree):
    """Rewrite the text of a page."""
    if doctree is not None and app.builder.name == "html":
        context["body"] = keep_signs(context["body"])


def setup(app):
    """Work on each page."""
    app.connect("html-page-context", work_on_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
