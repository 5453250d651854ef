"""Formulas set when the site is built: as MathJax sets them, with their TeX, and never in red."""

import re
import shutil
from types import SimpleNamespace

import formulas
import pytest
from formulas import FONTS, fill_in, formulas_of, typeset, without_mathjax
from sphinx.errors import ExtensionError

needs_mathjax = pytest.mark.skipif(not (FONTS.is_dir() and shutil.which("node")), reason="needs what npm fetches")

INLINE = r'<p>(<span class="math notranslate nohighlight">\(x &lt; 1\)</span>), </p>'
NUMBERED = (
    '<div class="math notranslate nohighlight" id="eq">\n<span class="eqno">(1)<a href="#eq">#</a></span>'
    "\\[\\begin{split}\ny\n\\end{split}\\]</div>"
)
PAGE = f"""<head><script>window.MathJax = {{"options": {{}}}}</script><script>let own = "MathJax";</script>
<script defer="defer" src="https://cdn.example/mathjax@3/tex.js"></script></head><body>{INLINE}{NUMBERED}</body>"""


def test_a_formula_stands_where_its_source_stood():
    assert formulas_of(PAGE) == [("x < 1", False), ("\\begin{split}\ny\n\\end{split}", True)]
    page = fill_in(INLINE + NUMBERED, dict.fromkeys(formulas_of(PAGE), "<mjx-container></mjx-container>"))
    assert page.startswith('<p>(<span class="math notranslate nohighlight" data-tex="x &lt; 1"><mjx-container>')
    assert page.count("<mjx-container></mjx-container></") == 2 and r"\[" not in page
    assert 'id="eq">\n<span class="eqno">(1)<a href="#eq">#</a></span><mjx-container>' in page


def test_a_page_loads_the_style_of_its_formulas_and_no_script_for_them():
    page = without_mathjax(fill_in(PAGE, dict.fromkeys(formulas_of(PAGE), "<mjx-container>")), "../")
    assert re.findall(r"<script.*?</script>", page) == ['<script>let own = "MathJax";</script>']
    assert '<link rel="stylesheet" href="../_static/formulas.css" />\n</head>' in page
    assert "formulas.css" not in without_mathjax("<head></head><p>Words.</p>", "")


@needs_mathjax
def test_mathjax_sets_each_formula_once_and_brings_its_fonts():
    html, style = typeset([("x", False), (r"\frac12", True)])
    assert "<mi>x</mi>" in html["x", False] and 'display="true"' in html[r"\frac12", True]
    fonts = re.findall(r'url\("mathjax/([^"]+)"\)', style)
    assert len(fonts) > 10 and all((FONTS / font).is_file() for font in fonts)


@needs_mathjax
@pytest.mark.parametrize(
    ("wrong", "reason"), [(r"\wrong x", r"Undefined control sequence \\wrong: \\wrong x"), ("{x", "brace: {x")]
)
def test_a_formula_that_mathjax_cannot_read_stops_the_build(wrong, reason):
    with pytest.raises(ExtensionError, match=reason):
        typeset([("x", False), (wrong, False)])


def test_without_mathjax_a_site_is_left_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(formulas, "FONTS", tmp_path / "none")
    page = tmp_path / "page.html"
    page.write_text(PAGE)
    formulas.set_formulas(SimpleNamespace(outdir=tmp_path, builder=SimpleNamespace(name="html")), None)
    assert page.read_text() == PAGE
