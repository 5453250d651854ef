"""Pages made light: one style sheet and one script, which hold what their parts held, in their order.

And formulas set when the site is built: as MathJax sets them, with their TeX, and never in red.
"""

import re
import shutil
from types import SimpleNamespace

import formulas
import pytest
from fontTools.fontBuilder import FontBuilder
from fontTools.ttLib import TTFont
from fontTools.ttLib.tables._g_l_y_f import Glyph
from formulas import FONTS, fill_in, formulas_of, typeset, without_mathjax
from light_pages import Bundles
from sphinx.errors import ExtensionError

PAGE = """<head>
<link href="../_static/styles/theme.css?digest=1" rel="stylesheet" />
<link rel="preload" as="script" href="../_static/late.js" />
<link rel="icon" href="../_static/favicon.svg"/>
<link rel="stylesheet" type="text/css" href="../_static/book.css?v=2" />
<script src="../_static/documentation_options.js"></script>
<script src="../_static/first.js?v=3"></script>
<script>const THEBE_JS_URL = "a"</script>
<script>let own = 1;</script>
<script defer src="../_static/first.js"></script>
<script type="module" src="../_static/cells.js"></script>
<script defer="defer" src="https://cdn.example/mathjax@3/tex.js"></script>
</head><body><i class="fa-used"></i>{}<script defer src="../_static/late.js"></script></body>"""
THEME = """@import "../basic.css";
@font-face{font-family:F;src:url(../fonts/f.woff2) format("woff2"),url(../fonts/f.ttf) format("truetype")}
.fa-other:before,.fa-used:before{content:"\\f001"}.fa-unused:before{content:"\\f002"}"""


def write_font(path):
    names = [".notdef", "used", "unused"]
    font = FontBuilder(1000)
    font.setupGlyphOrder(names)
    font.setupCharacterMap({0xF001: "used", 0xF002: "unused"})
    font.setupGlyf(dict.fromkeys(names, Glyph()))
    font.setupHorizontalMetrics(dict.fromkeys(names, (500, 0)))
    font.setupHorizontalHeader()
    font.setupNameTable({"familyName": "F", "styleName": "Regular"})
    font.setupPost()
    font.save(path)


@pytest.fixture
def static(tmp_path):
    for folder in ("styles", "fonts"):
        (tmp_path / folder).mkdir()
    texts = {"styles/theme.css": THEME, "basic.css": ".b{background:url(b.png)}", "book.css": ".a{}"}
    texts |= {"documentation_options.js": "const OPTIONS = 1", "first.js": "let first = 1", "late.js": "first += 1"}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    write_font(tmp_path / "fonts/f.ttf")
    return tmp_path


def read(static, page, kind):
    """Return the text of the one bundle of a kind that a page loads."""
    (name,) = re.findall(rf'="\.\./_static/(bundle\.\w+\.{kind})"', page)
    return (static / name).read_text()


def test_a_page_loads_one_file_of_each_kind_with_all_parts_in_order(static):
    page = Bundles(static, {"fa-used"}).lighten(PAGE)
    assert read(static, page, "js").split() == ";let first = 1; ;first += 1;".split()
    style = read(static, page, "css")
    assert style.startswith(".b{background:url(b.png)}") and style.endswith(".a{}")
    for kept in ("favicon.svg", "let own = 1;", "const OPTIONS = 1", "cells.js"):
        assert kept in page
    for dropped in ("THEBE", "preload", "theme.css", "late.js"):
        assert dropped not in page


@pytest.mark.parametrize(("body", "times"), [("<p>Words.</p>", 0), ('<span class="math">x</span>', 1)])
def test_mathjax_is_loaded_where_there_are_formulas(static, body, times):
    assert Bundles(static, set()).lighten(PAGE.format(body)).count("mathjax") == times


def test_of_the_icons_only_those_of_the_pages_are_left(static):
    style = read(static, Bundles(static, {"fa-used"}).lighten(PAGE), "css")
    assert r"\f001" in style and r"\f002" not in style
    (place,) = re.findall(r"url\(([^)]*)\) format", style)
    font = TTFont(static / place)
    assert font.flavor == "woff" and set(font.getBestCmap()) == {0xF001}


needs_mathjax = pytest.mark.skipif(not (FONTS.is_dir() and shutil.which("node")), reason="needs what npm fetches")
INLINE = r'<p>(<span class="math notranslate nohighlight">\(x &lt; 1\)</span>), </p>'
NUMBERED = (
    '<div class="math notranslate nohighlight" id="eq">\n<span class="eqno">(1)<a href="#eq">#</a></span>'
    "\\[\\begin{split}\ny\n\\end{split}\\]</div>"
)
TYPESET = f"""<head><script>window.MathJax = {{"options": {{}}}}</script><script>let own = "MathJax";</script>
<script defer="defer" src="https://cdn.example/mathjax@3/tex.js"></script></head><body>{INLINE}{NUMBERED}</body>"""


def test_a_formula_stands_where_its_source_stood():
    assert formulas_of(TYPESET) == [("x < 1", False), ("\\begin{split}\ny\n\\end{split}", True)]
    page = fill_in(INLINE + NUMBERED, dict.fromkeys(formulas_of(TYPESET), "<mjx-container></mjx-container>"))
    assert page.startswith('<p>(<span class="math notranslate nohighlight" data-tex="x &lt; 1"><mjx-container>')
    assert page.count("<mjx-container></mjx-container></") == 2 and r"\[" not in page
    assert 'id="eq">\n<span class="eqno">(1)<a href="#eq">#</a></span><mjx-container>' in page


def test_a_page_loads_the_style_of_its_formulas_and_no_script_for_them():
    page = without_mathjax(fill_in(TYPESET, dict.fromkeys(formulas_of(TYPESET), "<mjx-container>")), "../")
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
def test_a_formula_that_mathjax_cannot_read_stops_the_build():
    with pytest.raises(ExtensionError, match=r"Undefined control sequence \\wrong: \\wrong x"):
        typeset([("x", False), (r"\wrong x", False)])


def test_without_mathjax_a_site_is_left_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(formulas, "FONTS", tmp_path / "none")
    page = tmp_path / "page.html"
    page.write_text(TYPESET)
    formulas.set_formulas(SimpleNamespace(outdir=tmp_path, builder=SimpleNamespace(name="html")), None)
    assert page.read_text() == TYPESET
