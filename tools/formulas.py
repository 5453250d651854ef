r"""Sphinx extension: formulas stand in the pages, set by MathJax when the site is built.

No reader waits for a script that sets them again, and no other host is asked for it. Where the build lacks Node.js or
MathJax, which `make` fetches with npm into .offline, pages load MathJax from another host, as Sphinx has them do.
"""

import json
import os
import re
import shutil
import subprocess
from html import escape, unescape
from pathlib import Path

from light_pages import pages_of
from sphinx.errors import ExtensionError

TOOLS = Path(__file__).parent
PACKAGES = TOOLS.parent / ".offline/node_modules"
FONTS = PACKAGES / "mathjax/es5/output/chtml/fonts/woff-v2"

FORMULA = re.compile(
    r'<(?P<tag>span|div) class="math notranslate nohighlight"(?P<rest>[^>]*>(?:\s|<span class="eqno">.*?</span>)*)'
    r"(?:\\\((?P<inline>.*?)\\\)|\\\[(?P<display>.*?)\\\])\s*</(?P=tag)>",
    re.DOTALL,
)
SCRIPTS = re.compile(r"\s*<script\b[^>]*>(?:window\.MathJax = .*?)?</script>")
STYLE = '\n<link rel="stylesheet" href="{}_static/formulas.css" />'
# MathJax gives its letters the height of those around them: of its own, an x is 0.43 em high.
HEIGHT = "\nmjx-container.MathJax { font-size: calc(1ex / 0.43) }\n"


def formulas_of(page):
    r"""Return the formulas of a page, each as its TeX and whether it is displayed.

    Examples
    --------
    >>> formulas_of(r'<p>If <span class="math notranslate nohighlight">\(x &lt; 1\)</span></p>')
    [('x < 1', False)]
    """
    return [formula_in(found) for found in FORMULA.finditer(page)]


def formula_in(found):
    """Return the TeX of a formula that was found, and whether it is displayed."""
    return unescape(found["inline"] or found["display"]), found["tag"] == "div"


def typeset(formulas):
    """Return the HTML of each formula, and the style sheet of all.

    Parameters
    ----------
    formulas : list of (str, bool)
        TeX, and whether it is displayed.

    Returns
    -------
    dict of (str, bool) to str, str

    Raises
    ------
    ExtensionError
        With the first formula that MathJax cannot read.
    """
    answer = subprocess.run(
        ["node", TOOLS / "typeset.cjs"],
        input=json.dumps(formulas),
        env={**os.environ, "NODE_PATH": str(PACKAGES)},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if answer.returncode:
        raise ExtensionError(f"MathJax cannot set a formula: {answer.stderr.strip()}")
    found = json.loads(answer.stdout)
    return dict(zip(formulas, found["formulas"], strict=True)), found["style"] + HEIGHT


def fill_in(page, html):
    """Return a page with its formulas set; their TeX is kept in an attribute.

    Parameters
    ----------
    page : str
    html : dict of (str, bool) to str
    """

    def fill(found):
        source = escape(formula_in(found)[0].strip())
        rest = f' class="math notranslate nohighlight" data-tex="{source}"{found["rest"]}'
        return f"<{found['tag']}{rest}{html[formula_in(found)]}</{found['tag']}>"

    return FORMULA.sub(fill, page)


def without_mathjax(page, root):
    """Return a page whose formulas are set: it loads their style sheet in place of MathJax, or nothing if it has none.

    Parameters
    ----------
    page : str
    root : str
        The way from the page to the top of the site: empty or with a slash at its end.
    """
    style = STYLE.format(root) if "<mjx-container" in page else ""
    page = SCRIPTS.sub(lambda tag: "" if "mathjax" in tag[0].lower() else tag[0], page)
    return page.replace("</head>", f"{style}\n</head>", 1)


def set_formulas(app, exception):
    """Rewrite the pages of a site."""
    if exception or app.builder.name != "html" or not (FONTS.is_dir() and shutil.which("node")):
        return
    folder = Path(app.outdir)
    pages = {path: path.read_text(encoding="utf-8") for path in pages_of(folder)}
    html, style = typeset(list(dict.fromkeys(one for page in pages.values() for one in formulas_of(page))))
    (folder / "_static/formulas.css").write_text(style, encoding="utf-8")
    shutil.copytree(FONTS, folder / "_static/mathjax", dirs_exist_ok=True)
    for path, page in pages.items():
        root = "../" * (len(path.relative_to(folder).parts) - 1)
        path.write_text(without_mathjax(fill_in(page, html), root), encoding="utf-8")


def setup(app):
    """Work on the finished pages, before `light_pages` puts style sheets together."""
    app.connect("build-finished", set_formulas, priority=800)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
