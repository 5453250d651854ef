"""The book on paper: a small book through the whole build, and the PDF of the true one where it was made."""

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from render_pages import title_of
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

ROOT = Path(__file__).parents[1]
PDF = os.environ.get("AMPTUTORIAL_PDF")
# one grey point
PICTURE = "data:image/png;base64,"
PICTURE += "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGOoBwAAgQCB3vXRxgAAAABJRU5ErkJggg=="
DRAWING = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><circle r="9"/></svg>'
EXPERIMENT = f"""<div class="amp-explore"><input type="range">
<figure hidden><img src="data:image/png;base64,AAAA" alt="A dot."><figcaption>At 1 &lt; 2.</figcaption></figure>
<figure><img src="{PICTURE}" alt="A dot."><figcaption>At 2 &lt; 3.</figcaption></figure></div>"""
REPORT = "<p>above<br>below</p><script>1 < 2</script>"
PYTHON = {"language_info": {"name": "python", "pygments_lexer": "ipython3"}}
BOOK = Path(__file__).with_name("small_book")


def code(source, tag=None, data=None):
    outputs = [new_output("display_data", data=data or {"text/plain": f"output of {source}"})]
    return new_code_cell(source, metadata={"tags": [tag] if tag else []}, outputs=outputs, execution_count=1)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    if shutil.which("rsvg-convert") is None:
        pytest.skip("rsvg-convert is missing: Debian's librsvg2-bin has it")
    source = shutil.copytree(BOOK, tmp_path_factory.mktemp("latex") / "source")
    cells = [
        code("shown = 1"),
        code("drawing = 1", "hide-input"),
        code("report = 1", "hide-input", {"text/html": REPORT, "text/plain": ""}),
        code("check = 1", "hide-cell"),
        code("explore", data={"text/html": EXPERIMENT, "text/plain": "At 1.\nAt 2."}),
        code("plot", data={"image/svg+xml": DRAWING, "text/plain": "<Figure size 9x9>"}),
    ]
    chapter = source / "one.md"
    notebook = new_notebook(cells=[new_markdown_cell(chapter.read_text()), *cells], metadata=PYTHON)
    nbformat.write(notebook, chapter.with_suffix(".ipynb"))
    chapter.unlink()
    with patch_docutils(), docutils_namespace():
        Sphinx(source, source, source / "out", source / "trees", "latex", status=None, warningiserror=True).build()
    return re.sub(r"\s+", " ", (source / "out/book.tex").read_text())


def test_hidden_code_is_left_out(text):
    plain = re.sub(r"\\PYG\{\w+(\+\w+)*\}|[{}]", "", text)
    assert "shown = 1" in plain and "output of shown" in plain and "output of drawing" in plain
    assert "check" not in plain and plain.count("drawing = 1") == plain.count("output of drawing = 1") == 1


def test_an_experiment_is_its_first_picture_and_a_drawing_one(text):
    pictures = re.findall(r"sphinxincludegraphics\S*\{+([\w.}]+)", text)
    assert len(pictures) == 2 and "At 2 < 3." in text.replace("\\textless{}", "<")
    assert "At 1" not in text
    drawing = r"includegraphics\[width=0.650\\linewidth\]\{+\w+\}\.pdf"
    assert len(re.findall(drawing, text)) == 1 and "Figure size" not in text


def test_every_link_leads_to_a_label(text):
    text = re.sub(r"\\detokenize\{([^}]*)\}", r"\1", text)
    links = set(re.findall(r"\\(?:hyperref\[|eqref\{|ref\{|pageref\{)([^]}]*)", text))
    assert {"equation:one:eq-one", "exercise:ex-one", "one::doc", "one:lem-one"} <= links
    assert links <= set(re.findall(r"\\label\{([^}]*)\}", text))


def test_solutions_and_answers_end_the_chapter(text):
    body, end = text.split("Solutions and answers")[-2:]
    assert "Two it is" in end and "Two it is" not in body
    assert "Two is more" in end and "Question 1: (b)" in end and "Two is more" not in body
    assert body.index("Question 1.") < body.index("Two.") < body.index("One.", body.index("Two."))
    assert r"\subsubsection*{Solution to Exercise 1.1 (Add)}" in text and "}{Solution to" not in text  # no box
    assert re.search(r"\\sphinxstylestrong\{Proof\.\} Because", text)  # a fold is open


def test_an_exercise_and_a_lemma_are_named_by_their_numbers(text):
    assert r"\hyperref[exercise:ex-one]{Exercise 1.1}" in text and r"\label{exercise:ex-one}" in text
    assert r"\hyperref[exercise:ex-one]{an exercise}" in text
    assert r"\label{one:lem-one}" in text and "Lemma 1.1" in text and "None:" not in text


def test_parts_are_latex_an_appendix_has_a_letter_and_a_guide_no_number(text):
    assert r"\bookpart{The part}" in text and text.index(r"\bookpart") < text.index(r"\chapter{Nobody’s one}")
    assert r"\chapter{What for}" not in text and r"above\newline below" in text
    part, appendices, guides = text.split(r"\bookpart{")[-3:]
    assert r"\appendix" in appendices and r"\appendix" not in part + guides
    assert len(re.findall(r"Lemma A\.\d|\{Exercise A\.\d\}|Exercise A\.\d \(Compare", appendices)) == 4  # with links
    assert guides.index(r"\unnumbered") < guides.index(r"\chapter") and r"\unnumbered" not in part + appendices
    assert part.index(r"\numbered") < part.index(r"\chapter")


# The true book, as `make pdf` has made it.
typeset = pytest.mark.skipif(PDF is None, reason="AMPTUTORIAL_PDF names no PDF of the book")


@cache
def pages():
    text = subprocess.run(["pdftotext", PDF, "-"], capture_output=True, check=True, encoding="utf-8").stdout
    return [re.sub(r"\s+", " ", page) for page in text.split("\f")[:-1]]


@typeset
def test_the_book_has_all_chapters_and_no_open_reference():
    assert 200 < len(pages()) <= 400
    assert not [number for number, page in enumerate(pages(), 1) if "??" in page or "<Figure size" in page]
    assert not [number for number, page in enumerate(pages(), 1) if page.startswith("Proof Index")]
    for chapter in sorted((ROOT / "book").glob("[0-9]*.ipynb")):
        title = title_of(chapter).replace("'", "’")
        assert any(re.match(rf"Chapter \d+ {re.escape(title)}", page) for page in pages()), title


@typeset
def test_the_book_shows_each_solution_once_and_no_hidden_code():
    text = " ".join(pages())
    solutions = re.findall(r"Solution to Exercise (\w+\.\d+) ", text)
    exercises = sum(path.read_text().count("{exercise}") for path in (ROOT / "book").rglob("*.ipynb"))
    assert len(solutions) == len(set(solutions)) == exercises
    assert "assert predicted[0] > 1 and predicted.argmin() == 1" not in text
