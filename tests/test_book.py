"""The book: notebooks are stored as they ran, figures can be read without seeing them, the ledger keeps its word."""

import json
import os
import pkgutil
import re
import subprocess
import sys
from copy import deepcopy
from functools import cache
from pathlib import Path

import nbformat
import numpy as np
import pytest
import yaml
from chapters import chapters, map_of, parts
from execute_book import KERNEL_ENVIRONMENT, NOTEBOOKS, SECONDS, changed, name_of, run_of, with_outputs
from execute_book import main as execute_book
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from normalise import WIDGET, normalise
from questions import ask
from quiz import split_answers
from render_pages import STATUSES

from amptutorial.paper.reproduce import load_results
from studies.numbers import QUIZ, sources
from studies.readability import HIDDEN

ROOT = Path(__file__).parents[1]
BOOK = ROOT / "book"
CHAPTERS = sorted(BOOK.glob("[0-9]*.ipynb"))
SECTIONS = ["Where it breaks", "Try it", "Exercises", "What to remember", "Test yourself"]
LEDGER = yaml.safe_load((BOOK / "ledger.yml").read_text())


@cache
def read(path):
    return nbformat.read(path, as_version=4)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]


def outputs(notebook):
    return [output for cell in code_cells(notebook) for output in cell.outputs]


def prose_of(path):
    return "\n\n".join(cell.source for cell in read(path).cells if cell.cell_type == "markdown")


def toc_files():
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    listed = [chapter for part in toc["parts"] for chapter in part["chapters"]]
    entries = [entry for chapter in listed for entry in (chapter, *chapter.get("sections", ()))]
    return [toc["root"]] + [entry["file"] for entry in entries if "file" in entry]


def every_cell_ran_in_order_from_a_fresh_kernel(path):
    counts = [cell.execution_count for cell in code_cells(read(path))]
    assert counts == list(range(1, len(counts) + 1))


def no_cell_failed_or_complained(path):
    for output in outputs(read(path)):
        assert output.output_type != "error", output.evalue
        assert output.get("name") != "stderr", output.text


def notebooks_are_stored_in_normal_form(path):
    assert normalise(deepcopy(read(path))) == read(path), f"run: make store NAME={path.relative_to(ROOT)}"


def notebooks_are_small(path):
    assert path.stat().st_size < 1_500_000


def outputs_hold_no_address_and_no_path_of_a_machine(path):
    shown = json.dumps(outputs(read(path)))
    assert not re.search(r"\bat 0x[0-9a-f]{6,}|(?<![\w.:/])/(home|root|tmp|Users|usr|opt|private)/\w|[A-Z]:\\\\", shown)


def every_figure_has_alternative_text_and_a_caption(path):
    for number, cell in enumerate(read(path).cells, 1):
        kinds = [kind for output in cell.get("outputs", ()) for kind in output.get("data", ())]
        if any(kind.startswith("image/") for kind in kinds):
            mystnb = cell.metadata.get("mystnb", {})
            alt = mystnb.get("image", {}).get("alt", "")
            figure = mystnb.get("figure", {})
            assert alt.strip(), f"cell {number}: no alternative text"
            assert figure.get("caption", "").strip() and figure.get("name"), f"cell {number}: no caption or no name"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_notebook_is_stored_as_all_are(path):
    questions = (
        every_cell_ran_in_order_from_a_fresh_kernel, no_cell_failed_or_complained, notebooks_are_stored_in_normal_form,
        notebooks_are_small, outputs_hold_no_address_and_no_path_of_a_machine, images_in_prose_have_alternative_text,
        every_figure_has_alternative_text_and_a_caption, a_drawing_with_very_many_parts_is_rasterized,
        numbers_in_prose_are_computed_or_set_in_the_chapter,
    )  # fmt: skip
    ask(questions, path)


def a_drawing_with_very_many_parts_is_rasterized(path):
    drawings = ["".join(output.get("data", {}).get("image/svg+xml", "")) for output in outputs(read(path))]
    assert max(map(len, drawings), default=0) < 250_000, "draw the many parts with rasterized=True"


def test_the_words_of_a_drawing_are_legible_on_a_phone():
    """A phone leaves every drawing 358 pixels. Its smallest letters then have at least 11."""
    for path in [*BOOK.glob("assets/[0-9]*.svg"), BOOK / "assets/shards.svg"]:
        drawing = path.read_text(encoding="utf-8")
        width = float(re.search(r'viewBox="([^"]+)"', drawing)[1].split()[2])
        smallest = min(map(float, re.findall(r'font-size="([^"]+)"', drawing)))
        assert smallest * min(1, 358 / width) >= 11, path.name


def images_in_prose_have_alternative_text(path):
    prose = prose_of(path)
    assert not re.search(r"!\[\s*\]\(", prose)
    for directive, options in re.findall(r"\{(image|figure)\}[^\n]*\n((?:\s*:[^\n]*\n)*)", prose):
        assert ":alt:" in options, directive


def quizzes_of(text):
    """Return the quizzes: the whole of each, and its lines."""
    return [(quiz[0], quiz[2].strip("\n").splitlines()) for quiz in QUIZ.finditer(text)]


def a_chapter_keeps_the_order_of_its_parts(path):
    cells, prose = read(path).cells, prose_of(path)
    assert prose.startswith("(ch-") and cells[1].cell_type == "code"  # a hook, code first
    headings = re.findall(r"^## (.*)$", prose, flags=re.MULTILINE)
    assert [heading for heading in headings if heading in SECTIONS] == SECTIONS
    goals = prose[: prose.index("\n## ")]
    for part in ("After this chapter you can", "*You need:*"):
        assert part in goals
    assert re.search(r"\*Time:\* about \d+ minutes", goals)
    assert "**Read on:**" in prose.split("## Test yourself")[1]
    assert any(cell.metadata.get("mystnb") for cell in cells)  # a static figure


def a_chapter_states_proves_includes_and_asserts(path):
    prose = prose_of(path)
    assert re.search(r"\{prf:(definition|proposition|lemma|theorem|algorithm)\}.*\n:label: ", prose)
    assert re.search(r"\{dropdown\} Proof", prose)
    for proposition in prose.split("{prf:proposition}")[1:]:  # theorems and lemmas may be known ones
        until_the_next = re.split(r"^`{3,}\{prf:|^## ", proposition, flags=re.MULTILINE)[0]
        assert re.search(r"\{dropdown\} (Proof|Derivation)", until_the_next), proposition.splitlines()[0]
    assert re.search(r"\{literalinclude\} \.\./amptutorial/[\w/]+\.py\n:pyobject: ", prose)
    cells = read(path).cells
    end = next(k for k, cell in enumerate(cells) if re.search("^## Exercises", cell.source, re.MULTILINE))
    code = [cell.source for cell in cells[:end] if cell.cell_type == "code"]
    assert sum(bool(re.search(r"^ *assert ", source, re.MULTILINE)) for source in code) >= 3


def the_paper_is_spoken_of_in_its_own_chapter(path):
    labels = [entry["label"] for entry in LEDGER]
    assert path.stem.startswith("18_") or not [label for label in labels if f"`{label}`" in prose_of(path)]
    assert path.stem.startswith("18_") or "{ref}`erratum" not in prose_of(path).lower()


FOLDS = "Proof|Derivation|Hint|Answer|Details"


def folds_have_few_names_and_do_not_stand_in_a_row(path):
    prose = prose_of(path)
    for quiz, _ in quizzes_of(prose):
        prose = prose.replace(quiz, "")
    for title in re.findall(r"\{dropdown\} (.*)", prose):
        assert re.match(FOLDS, title), title
    before = False
    for number, cell in enumerate(read(path).cells, 1):
        assert "code_prompt_show" not in cell.metadata.get("mystnb", {}), number
        folded = cell.cell_type == "code" and bool(HIDDEN & set(cell.metadata.get("tags", ())) - {"remove-cell"})
        assert not (folded and before), f"cells {number - 1} and {number} are both folded"
        before = folded


def what_is_printed_fits_a_phone(path):
    for number, cell in enumerate(read(path).cells, 1):
        if cell.cell_type == "code" and not HIDDEN & set(cell.metadata.get("tags", ())):
            said = "".join(output.get("text", "") for output in cell.outputs)
            assert max(map(len, said.splitlines()), default=0) <= 38, f"cell {number}: {said}"


def every_exercise_has_stars_and_a_solution(path):
    prose = prose_of(path)
    exercises = re.findall(r"\{exercise\} (★{1,3}) .*\n:label: (\S+)", prose)
    solved = re.findall(r"\{solution-start\} (\S+)\n:class: dropdown", prose)
    assert 3 <= len(exercises) <= 5 and [label for _, label in exercises] == solved
    between = r"\{solution-start\}.*?^`{3,}$(.*?)^`{3,}\{solution-end\}"
    solutions = re.findall(between, text_of(path), re.DOTALL | re.MULTILINE)
    assert len(solutions) == len(solved) and all(solution.strip() for solution in solutions)
    assert len({stars for stars, _ in exercises}) > 1


def quizzes_are_few_and_vary(path):
    """Without one right answer and reasons the site would not build: see `Quiz`."""
    answers = [split_answers(lines)[1] for _, lines in quizzes_of(prose_of(path))]
    assert 3 <= len(answers) <= 5
    assert len({[right for right, _, _ in each].index(True) for each in answers}) > 1  # not always the same place


def every_chapter_stores_an_experiment_with_its_pictures(path):
    pages = [output.get("data", {}).get("text/html", "") for output in outputs(read(path))]
    pictures = [figure for page in pages for figure in re.findall(r"<figure.*?</figure>", page, re.DOTALL)]
    assert len(pictures) >= 6
    for picture in pictures:
        alt = re.search(r'alt="([^"]*)"', picture)[1]
        assert len(alt) > 20 and re.search(r"<figcaption>.*\d.*</figcaption>", picture)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_has_what_every_chapter_has(path):
    questions = (
        a_chapter_keeps_the_order_of_its_parts, a_chapter_states_proves_includes_and_asserts, quizzes_are_few_and_vary,
        every_exercise_has_stars_and_a_solution, every_chapter_stores_an_experiment_with_its_pictures,
        the_paper_is_spoken_of_in_its_own_chapter,
        folds_have_few_names_and_do_not_stand_in_a_row, what_is_printed_fits_a_phone,
    )  # fmt: skip
    ask(questions, path)


def numbers_in_prose_are_computed_or_set_in_the_chapter(path):
    """No proof that a cell computes the number in that sense, but none stands there that no cell knows."""
    assert [stated for stated, source in sources(path) if source is None] == []


def test_the_table_of_contents_and_binder_know_every_notebook_and_the_first_page_links_every_chapter():
    assert set(NOTEBOOKS) <= {ROOT / f"{file}.ipynb" for file in toc_files()}
    patterns = (ROOT / "postBuild").read_text().split("jupyter trust ")[1].split()
    assert {path for pattern in patterns for path in ROOT.glob(pattern)} == set(NOTEBOOKS)
    assert re.findall(r'href="(\w+)\.html"', map_of(parts())) == [path.stem for path in CHAPTERS]


def test_a_chapter_needs_only_those_before_it_and_all_that_its_text_asks_for():
    """Through others too, or the row would be long. The last part is read each for itself."""
    behind, last = {}, list(parts().values())[-1]
    for chapter, path in zip(chapters(), CHAPTERS, strict=True):
        needed = set(re.findall(r"\{(.*?)\}", chapter["needs"]))
        assert needed <= set(behind) - {each["label"] for each in last}, path.stem
        behind[chapter["label"]] = needed.union(*map(behind.get, needed))
        asked = re.search(r"\*You need:\*.*?\*Time:\*", prose_of(path), re.DOTALL)[0]
        assert set(re.findall(r"\{ref\}`(ch-[\w-]+)`", asked)) <= behind[chapter["label"]], path.stem


def text_of(path):
    if path.suffix == ".ipynb":
        return "\n".join(cell.source for cell in read(path).cells)
    return path.read_text()


def test_the_ledger_says_by_how_much_the_figures_miss():
    """The final error of AMP over its prediction, minus one, per cent: from the stored instances."""
    notes = {entry["label"]: entry["note"] for entry in LEDGER}

    def excess(name, biases):
        stored = load_results(name)["instances"]
        ending = "_weighted" if biases.endswith("_weighted") else ""
        return 100 * (stored[f"AMP_mse_{biases}"][:, -1] / stored[f"SE_mse{ending}"][:, -1] - 1)

    for label, name in (("fig:mse", "l2"), ("fig:sparse20runs-mse", "l1")):
        counted, true = excess(name, "counted"), excess(name, "true")
        assert f"{counted.mean():.0f} % above" in notes[label] and f"{-true.mean():.0f} % below" in notes[label]
    for label, name in (("fig:20runs-loss", "l2"), ("fig:sparse20runs-loss", "l1")):
        stored = load_results(name)["instances"]
        fallen, predicted = 1 - stored["AMP_loss_counted"][:, -1], -2 * stored["SE_excess"][:, -1] / 2000
        further = 100 * (np.median(fallen) / np.median(predicted) - 1)
        assert f"{further:.0f} % further below the loss of the truth" in notes[label]
    l2 = excess("l2", "counted")
    assert f"between {l2.min():.0f} % and {l2.max():.0f} %" in notes["fig:mse"]
    known = np.concatenate([excess("real", x + ending) for x in ("gaussian", "true") for ending in ("", "_weighted")])
    assert np.abs(known).max() < 2 and "within 2 %" in notes["fig:real-mse"]
    least, most = (round(f(1 + excess("real", "counted") / 100)) for f in (np.min, np.max))
    assert f"{least} to {most} times" in notes["fig:real-mse"]
    weighted = excess("real", "counted_weighted")
    assert f"{weighted.min():.0f} % to {weighted.max():.0f} % above" in notes["fig:real-mse"]
    reviews = load_results("reviews")["instances"]
    assert f"{reviews['n'][0]} words" in notes["tab:nlp"] and f"{reviews['n_inflected'][0]} without" in notes["tab:nlp"]


def test_the_verdicts_of_the_chapter_are_those_of_the_ledger():
    """In its text or its table, and in the ledger: one verdict for each panel."""
    prose = prose_of(BOOK / "18_the_papers_figures.ipynb")
    panels = re.compile(r"\b\d[ab]\b|Table 1")
    said = re.findall(r"\*\*Verdict on ([^*]+):\*\* ([a-z ]+)", prose)
    listed = re.findall(r"^\| ([^|]+) \| ([a-z ]+) \|", prose, flags=re.MULTILINE)
    ledger = {
        entry["number"].removeprefix("Figure "): entry["status"]
        for entry in LEDGER
        if re.fullmatch(r"Figure \d[ab]|Table 1", entry["number"])
    }
    given = [(panel, verdict) for names, verdict in said + listed for panel in panels.findall(names)]
    assert sorted(given) == sorted(ledger.items())


def what_an_entry_names_exists(entry):
    file, anchor = entry["chapter"].split("#")
    assert f"({anchor})=" in text_of(BOOK / file)
    for name in entry["code"]:
        assert pkgutil.resolve_name(name)
    for test in entry["tests"]:
        file, name = test.split("::")
        assert f"def {name}(" in (ROOT / file).read_text()


def a_status_is_earned(entry):
    """Tests verify every statement; what is not proved or not right is explained."""
    assert entry["tests"] and entry["title"].strip() and entry["status"] in STATUSES
    assert entry["note"] or entry["status"] in ("as printed", "corrected")
    assert (entry["erratum"] is not None) == (entry["status"] in ("corrected", "not decided"))
    if entry["erratum"]:
        assert f"(erratum-{entry['erratum']})=" in text_of(BOOK / "errata.md")


@pytest.mark.parametrize("entry", LEDGER, ids=lambda entry: entry["label"])
def test_an_entry_of_the_ledger_keeps_its_word(entry):
    ask([what_an_entry_names_exists, a_status_is_earned], entry)


@pytest.fixture
def notebook(tmp_path):
    path = tmp_path / "widget.ipynb"
    source = """import matplotlib.pyplot as plt
from amptutorial.book.figures import use_style
from amptutorial.book.widgets import explore
use_style()
plt.plot([1, 2])
plt.show()
def draw(figure, power=1):
    "Draw a power."
    return str(power)
explore(draw, stored={"power": [1, 2]})"""
    cells = [new_markdown_cell("# A", id="a"), new_code_cell(source, id="b"), new_code_cell("print(2)", id="c")]
    nbformat.write(new_notebook(cells=cells), path)
    return path


@pytest.mark.slow
def test_a_run_is_stored_only_when_asked_and_another_stores_the_same(notebook, tmp_path):
    folder, before = tmp_path / "run", notebook.read_text()
    assert execute_book([notebook], folder=folder) == 0
    assert notebook.read_text() == before
    assert execute_book([notebook], folder=folder, keep=True) == 0
    first = notebook.read_text()
    assert "<figcaption>2</figcaption>" in first and "image/svg+xml" in first and WIDGET not in first
    assert execute_book([notebook], folder=tmp_path / "another", keep=True) == 0
    assert notebook.read_text() == first


@pytest.mark.slow
def test_a_comparison_sees_what_a_cell_prints_and_no_picture(notebook, tmp_path):
    assert execute_book([notebook], folder=tmp_path / "run", keep=True) == 0
    text = notebook.read_text()
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-c", ROOT / "pyproject.toml", "--nbval", notebook]
    for stored, other, outcome in (
        ("<figcaption>2</figcaption>", "<figcaption>3</figcaption>", "2 passed"),
        ('width=\\"', 'width=\\"1', "2 passed"),
        ('"2\\n"', '"3\\n"', "Cell 1: Cell outputs differ"),
    ):
        assert stored in text
        notebook.write_text(text.replace(stored, other))
        answer = subprocess.run(command, cwd=ROOT, env=os.environ | KERNEL_ENVIRONMENT, capture_output=True, text=True)
        assert outcome in answer.stdout and answer.returncode == ("passed" not in outcome), answer.stdout


@pytest.mark.slow
def test_a_notebook_runs_again_only_where_its_code_has_changed(notebook, tmp_path):
    folder = tmp_path / "run"
    assert execute_book([notebook], folder=folder) == 0
    edited = deepcopy(read(notebook))
    edited.cells[0].source = "# Another title"
    nbformat.write(edited, notebook)
    assert not changed([notebook], folder)
    shown = with_outputs(edited, nbformat.read(run_of(notebook, folder), as_version=4))
    assert shown.cells[0].source == "# Another title" and shown.cells[2].outputs[0].text == "2\n"
    edited.cells[2].source = "print(3)"
    nbformat.write(edited, notebook)
    assert set(changed([notebook], folder)) == {notebook}


@pytest.mark.slow
def test_a_failing_cell_is_named_and_nothing_is_stored(tmp_path, capsys):
    path = tmp_path / "broken.ipynb"
    nbformat.write(new_notebook(cells=[new_code_cell("1", id="a"), new_code_cell("1 / 0", id="b")]), path)
    before = path.read_text()
    assert execute_book([path], folder=tmp_path / "run", keep=True) == 1
    report = capsys.readouterr().err
    assert f"{path}, cell 2" in report and "ZeroDivisionError" in report
    assert path.read_text() == before


def test_running_the_book_takes_little():
    """All notebooks in the bounds that CONTRIBUTING.md states, as they were stored last."""
    seconds = json.loads(SECONDS.read_text())
    assert set(seconds) == set(map(name_of, NOTEBOOKS))
    assert sum(seconds.values()) < 480
    assert {name for name, value in seconds.items() if value > (15 if "/more/" in name else 25)} == set()
