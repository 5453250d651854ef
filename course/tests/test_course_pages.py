"""What the pages for lecturers name exists, and what is marked by hand has an answer and a rubric for each question."""

import re
import shlex
from pathlib import Path

import nbformat
import pytest
from grading_samples import SOLUTIONS

from amptutorial_course.assignments import ASSIGNMENTS
from amptutorial_course.grading.__main__ import _parser

COURSE = Path(__file__).parents[1]
ROOT = COURSE.parent
PAGES = "book/instructors.md", "book/assignments.md", "book/lecturers.md", "book/assignment_notes.md"


def text_of(page):
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [*PAGES, "course/README.md"])
def test_every_command_of_the_grader_has_known_options(page):
    text = text_of(page).replace("\\\n", " ")
    for command in re.findall(r"python -m amptutorial_course\.grading (.*)", text):
        _parser().parse_args(shlex.split(command.split("`")[0], comments=True))


@pytest.mark.parametrize("page", PAGES)
def test_every_file_of_the_course_that_is_named_exists(page):
    # what follows ../ is the name of a page, and Sphinx looks for that
    for path in set(re.findall(r"(?<![/\w])course/[\w./*]*\w", text_of(page))):
        for task in ASSIGNMENTS.values():
            assert list(ROOT.glob(path.replace("NN_name", task.folder))), path


def test_every_question_has_a_model_answer_and_the_rubric_has_all_points(task):
    brief = nbformat.read(COURSE / "assignments" / task.folder / "brief.ipynb", as_version=4)
    (questions,) = (
        re.split("^## ", part, maxsplit=1, flags=re.MULTILINE)[0]
        for cell in brief.cells
        for part in cell.source.split("## To derive, on paper")[1:]
    )
    answers = (SOLUTIONS / task.folder / "derivation.md").read_text(encoding="utf-8")
    numbers = re.findall(r"^(\d+)\. ", questions, re.MULTILINE)
    assert len(numbers) >= 5
    assert re.findall(r"^\*\*(\d+)\.", answers, re.MULTILINE) == numbers
    tables = re.findall(r"^\| part \| points \|.*\n\|[-|]+\n((?:\|.*\n)+)", answers, re.MULTILINE)
    points = [int(line.split("|")[2]) for table in tables for line in table.splitlines()]
    assert sum(points) == sum(task.written.values())


def titles_of_sections():
    """Return the titles of the book's sections by their labels."""
    pages = [nbformat.read(path, as_version=4).cells for path in (ROOT / "book").rglob("*.ipynb")]
    cells = [cell.source for page in pages for cell in page if cell.cell_type == "markdown"]
    cells += [path.read_text(encoding="utf-8") for path in (ROOT / "book").rglob("*.md")]
    return dict(re.findall(r"^\(([\w-]+)\)=\n#+ (.*)$", "\n".join(cells), re.MULTILINE))


def test_a_link_to_a_section_has_its_title(task):
    brief = nbformat.read(COURSE / "assignments" / task.folder / "brief.ipynb", as_version=4)
    links = re.findall(r"\[([A-Z][^\]]*)\]\([^)#]*#([\w-]+)\)", "\n".join(cell.source for cell in brief.cells))
    titles = titles_of_sections()
    assert links and [text for text, label in links if titles.get(label, text) != text] == []
