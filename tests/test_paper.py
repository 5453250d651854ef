"""The book on paper: a small book through the whole build, and the PDF of the true one where it was made."""

import os
import posixpath
import re
import shutil
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urldefrag
from xml.etree import ElementTree
from zipfile import ZipFile

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from paper import first_frame, plainer
from render_pages import title_of
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

ROOT = Path(__file__).parents[1]
PDF, EPUB = os.environ.get("AMPTUTORIAL_PDF"), os.environ.get("AMPTUTORIAL_EPUB")
# one grey point
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGOoBwAAgQCB3vXRxgAAAABJRU5ErkJggg=="
PICTURE = f"data:image/png;base64,{PNG}"
DRAWING = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><circle r="9"/></svg>'

EXPERIMENT = f"""<div class="amp-explore"><input type="range">
<figure hidden><img src="data:image/png;base64,AAAA" alt="A dot."><figcaption>At 1 &lt; 2.</figcaption></figure>
<figure><img src="{PICTURE}" alt="A dot."><figcaption>At 2 &lt; 3.</figcaption></figure></div>"""

REPORT = "<p>above<br>below</p><script>1 < 2</script>"

PYTHON = {"language_info": {"name": "python", "pygments_lexer": "ipython3"}}

CONFIG = """
project, author, copyright, language = "Small", "Nobody", "2026", "en"
extensions = ["myst_nb", "sphinx_design", "sphinx_exercise", "sphinx_proof", "quiz", "paper", "link_targets"]
extensions += ["sphinx_book_theme"]
nb_execution_mode = "off"
myst_enable_extensions = ["colon_fence", "dollarmath"]
latex_engine = "xelatex"
latex_documents = [("index", "book.tex", "Small", "Nobody", "manual")]
latex_elements = {}
html_theme_options = {"extra_footer": "Free.", "launch_buttons": {"binderhub_url": "https://mybinder.org"}}
html_extra_path = ["404.html"]
numfig = True
"""

INDEX = """# Small

## What for

For tests.

```{toctree}
:caption: The part
:numbered:
one
two
```
"""

# As the briefs of assignments write them, for Jupyter.
LINKS = "# Links\n\n[Formula](one.ipynb#equation-eq-one), [exercise](one.ipynb#ex-one), [chapter](one.ipynb).\n"

CHAPTER = """(ch-one)=
# Nobody's one

{ref}`ex-one`, {ref}`an exercise <ex-one>`, and {prf:ref}`lem-one`.

```{prf:lemma}
:label: lem-one
One is one.
```

```{math}
:label: eq-one
1 = \\sin 1
```

:::{dropdown} Proof
Because *so*.
:::

```{exercise} Add
:label: ex-one
One and one?
```

````{solution-start} ex-one
:class: dropdown
````

Two it is.

````{solution-end}
````

## Test yourself

::::{admonition} Question
:class: quiz
What is one?

:::{dropdown} Two.
Not so. Two is more.
:::
:::{dropdown} One.
Right. One is one.
:::
::::

| wide | table |
|---|---|
| above<br>below | right |
"""


def code(source, tag=None, data=None):
    """Return a code cell that was run."""
    outputs = [new_output("display_data", data=data or {"text/plain": f"output of {source}"})]
    return new_code_cell(source, metadata={"tags": [tag] if tag else []}, outputs=outputs, execution_count=1)


def needs(program, package):
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is missing: Debian's {package} has it")


@pytest.fixture(scope="module", params=[pytest.param("latex", marks=needs("rsvg-convert", "librsvg2-bin")), "epub"])
def written(request, tmp_path_factory):
    """Return the text of the small book as LaTeX, or the page of its chapter in the ePub."""
    source = tmp_path_factory.mktemp(request.param)
    (source / "conf.py").write_text(CONFIG)
    (source / "index.md").write_text(INDEX)
    (source / "404.html").write_text("Not found.")
    cells = [
        code("shown = 1"),
        code("drawing = 1", "hide-input"),
        code(
            "report = 1", "hide-input", {"text/html": "<p>above<br>below</p><script>1 < 2</script>", "text/plain": ""}
        ),
        code("check = 1", "hide-cell"),
        code("explore", data={"text/html": EXPERIMENT, "text/plain": "At 1.\nAt 2."}),
        code("plot", data={"image/svg+xml": DRAWING, "text/plain": "<Figure size 9x9>"}),
    ]
    (source / "two.md").write_text(LINKS)
    nbformat.write(new_notebook(cells=[new_markdown_cell(CHAPTER), *cells], metadata=PYTHON), source / "one.ipynb")
    out = source / "out"
    with patch_docutils(), docutils_namespace():
        Sphinx(source, source, out, source / "trees", request.param, status=None, warningiserror=True).build()
    for page in out.glob("*.xhtml"):
        styles = ElementTree.parse(page).iterfind(".//{*}link[@rel='stylesheet']")
        assert {Path(style.get("href")).name for style in styles} <= {"epub.css", "pygments.css"}, page
    name = "book.tex" if request.param == "latex" else "one.xhtml"
    return request.param, re.sub(r"\s+", " ", (out / name).read_text())


def test_hidden_code_is_left_out(written):
    builder, text = written
    plain = re.sub(r"\\PYG\{\w+(\+\w+)*\}|<[^>]*>|[{}]", "", text)
    assert "shown = 1" in plain and "output of shown" in plain and "output of drawing" in plain
    assert "check" not in plain and plain.count("drawing = 1") == plain.count("output of drawing = 1") == 1


def test_an_experiment_is_its_first_picture(written):
    builder, text = written
    pictures = re.findall(r"sphinxincludegraphics\S*\{+([\w.}]+)" if builder == "latex" else r"<img[^>]*>", text)
    assert len(pictures) == 2 and "At 2 < 3." in text.replace("\\textless{}", "<").replace("&lt;", "<")
    assert "At 1" not in text


def test_a_drawing_is_a_picture(written):
    builder, text = written
    drawing = r"includegraphics\[width=0.650\\linewidth\]\{+\w+\}\.pdf" if builder == "latex" else r'<img [^>]*\.svg"'
    assert len(re.findall(drawing, text)) == 1 and "Figure size" not in text


def test_every_link_leads_to_a_label(written):
    builder, text = written
    if builder == "latex":
        text = re.sub(r"\\detokenize\{([^}]*)\}", r"\1", text)
        links = set(re.findall(r"\\(?:hyperref\[|eqref\{|ref\{|pageref\{)([^]}]*)", text))
        assert {"equation:one:eq-one", "exercise:ex-one", "one::doc", "one:lem-one"} <= links
        assert links <= set(re.findall(r"\\label\{([^}]*)\}", text))


def test_folds_are_open(written):
    builder, text = written
    assert "<details" not in text
    assert re.search(r"(\\sphinxstylestrong\{Proof\.\}|<strong>Proof\.</strong>) Because", text)


def test_solutions_and_answers_end_the_chapter(written):
    builder, text = written
    body, end = text.split("Solutions and answers")[-2:]
    assert "Two it is" in end and "Two it is" not in body
    assert "Two is more" in end and "Question 1: (b)" in end and "Two is more" not in body
    assert body.index("Question 1.") < body.index("Two.") < body.index("One.", body.index("Two."))


def test_a_solution_is_no_box_on_paper(written):
    builder, text = written
    if builder == "latex":
        assert r"\subsubsection*{Solution to Exercise 1.1 (Add)}" in text and "}{Solution to" not in text


def test_an_exercise_is_named_by_its_number(written):
    builder, text = written
    if builder == "latex":
        assert r"\hyperref[exercise:ex-one]{Exercise 1.1}" in text and r"\label{exercise:ex-one}" in text
        assert r"\hyperref[exercise:ex-one]{an exercise}" in text
    else:
        assert text.count('href="#ex-one"') >= 2


def test_a_lemma_is_found_on_a_page_with_an_apostrophe_in_its_title(written):
    builder, text = written
    if builder == "latex":
        assert r"\label{one:lem-one}" in text and "Lemma 1.1" in text and "None:" not in text


def test_a_formula_keeps_its_number_in_an_epub(written):
    builder, text = written
    if builder == "epub":
        assert re.search(r'<div class="math[^>]* id="equation-eq-one"> ?<span class="eqno">\(1\.1\)</span><math', text)
        assert "<mo>\u2061</mo>" in text  # after sin


def test_parts_and_lines_of_a_table_reach_latex(written):
    builder, text = written
    if builder == "latex":
        assert r"\bookpart{The part}" in text and text.index(r"\bookpart") < text.index(r"\chapter{Nobody’s one}")
        assert r"\chapter{What for}" not in text and r"above\newline below" in text
    else:
        assert "above<br/>below" in text and "<br>" not in text


def test_a_page_of_another_kind_has_no_first_frame():
    assert first_frame("<figure><img src='a.png'></figure>") is None
    assert first_frame('<div class="amp-explore"></div>') is None


@pytest.mark.parametrize(
    ("formula", "read"),
    [
        (r"\tfrac1m \bigl( x \bigr)", r"\tfrac{1}{m} ( x )"),
        (r"\frac{12}{3} \dotsb", r"\frac{12}{3} \dotsb"),
        (r"a \iff b", r"a \Leftrightarrow b"),
    ],
)
def test_formulas_are_made_plainer(formula, read):
    assert plainer(formula) == read


# The true book, as `make pdf` has made it.
typeset = pytest.mark.skipif(PDF is None, reason="AMPTUTORIAL_PDF names no PDF of the book")


@cache
def pages():
    """Return the words of each page."""
    text = subprocess.run(["pdftotext", PDF, "-"], capture_output=True, check=True, encoding="utf-8").stdout
    return [re.sub(r"\s+", " ", page) for page in text.split("\f")[:-1]]


@typeset
def test_the_book_has_all_chapters_and_no_open_reference():
    assert 400 < len(pages()) < 900
    assert not [number for number, page in enumerate(pages(), 1) if "??" in page or "<Figure size" in page]
    assert not [number for number, page in enumerate(pages(), 1) if page.startswith("Proof Index")]
    for chapter in sorted((ROOT / "book").glob("[0-9]*.ipynb")):
        title = title_of(chapter).replace("'", "’")
        assert any(re.match(rf"Chapter \d+ {re.escape(title)}", page) for page in pages()), title


@typeset
def test_the_book_shows_each_solution_once_and_no_hidden_code():
    text = " ".join(pages())
    solutions = re.findall(r"Solution to Exercise (\d+\.\d+) ", text)
    exercises = sum(path.read_text().count("{exercise}") for path in (ROOT / "book").rglob("*.ipynb"))
    assert len(solutions) == len(set(solutions)) == exercises
    assert "assert predicted[0] > 1 and predicted.argmin() == 1" not in text


# The true ePub, as `make epub` has made it.
packed = pytest.mark.skipif(EPUB is None, reason="AMPTUTORIAL_EPUB names no ePub of the book")


@cache
def files():
    """Return the files of the ePub by name, what is XML as a tree."""
    with ZipFile(EPUB) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    xml = (".xhtml", ".opf", ".ncx", ".svg")
    return {name: ElementTree.fromstring(text) if name.endswith(xml) else text for name, text in contents.items()}


def elements():
    """Yield the page, the name without its space, and the attributes of every element of a page."""
    for name, tree in files().items():
        if name.endswith(".xhtml"):
            for element in tree.iter():
                yield name, element.tag.split("}")[-1], element.attrib


@packed
def test_the_epub_lists_its_files_and_its_chapters():
    listed = {item.get("href") for item in files()["content.opf"].iter("{http://www.idpf.org/2007/opf}item")}
    rest = {name for name in files() if name not in listed}
    assert rest == {"mimetype", "META-INF/container.xml", "content.opf"} and listed <= set(files())
    chapters = "".join(files()["nav.xhtml"].itertext())
    for chapter in sorted((ROOT / "book").glob("[0-9]*.ipynb")):
        assert title_of(chapter).replace("'", "’") in chapters


@packed
def test_the_epub_asks_no_other_host_and_breaks_no_link():
    targets = {(name, attributes["id"]) for name, _, attributes in elements() if "id" in attributes}
    for name, tag, attributes in elements():
        address = attributes.get("src") or attributes.get("href")
        assert tag != "script" and (tag != "img" or attributes["alt"])
        if address and not re.match(r"https?:|mailto:", address):
            path, target = map(unquote, urldefrag(address))
            page = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
            assert page in files() and (not target or (page, target) in targets), (name, address)
        elif address:
            assert tag == "a", (name, address)


@packed
def test_the_epub_shows_formulas_and_drawings():
    kinds = [tag for _, tag, _ in elements()]
    drawings = sum(path.read_text().count('"image/svg+xml"') for path in (ROOT / "book").rglob("*.ipynb"))
    assert kinds.count("math") > 10_000 and kinds.count("img") > drawings > 50
    for name, tree in files().items():
        assert not name.endswith(".xhtml") or "<Figure size" not in "".join(tree.itertext()), name


@packed
def test_the_epub_says_which_pages_have_formulas_and_names_no_place_twice():
    places, with_formulas = Counter(), set()
    for name, tag, attributes in elements():
        places.update([(name, attributes["id"])] if "id" in attributes else [])
        with_formulas |= {name} if tag == "math" else set()
    assert max(places.values()) == 1
    items = files()["content.opf"].iter("{http://www.idpf.org/2007/opf}item")
    assert with_formulas == {item.get("href") for item in items if "mathml" in item.get("properties", "")}
