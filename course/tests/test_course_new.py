"""A folder to teach from, written by one command: it grades a class, and keeps its secret."""

import csv
import re
import shlex
import zipfile
from pathlib import Path

import nbformat
import pytest
from grading_samples import RIGHT

from amptutorial_course import new
from amptutorial_course.__main__ import main
from amptutorial_course.assignments import ASSIGNMENTS, assignment
from amptutorial_course.grading.__main__ import main as grade
from amptutorial_course.grading.rules import LIMITS, SEED_VARIABLE, derive_seed, load_rules
from amptutorial_course.new import ASSIGNED, CHAPTERS

BOOK = Path(__file__).parents[2] / "book"


def test_the_chapters_are_those_of_the_book_in_an_order_in_which_they_can_be_read():
    cells = [nbformat.read(path, as_version=4).cells for path in BOOK.glob("*.ipynb")]
    titles = {re.search(r"^# (.*)$", "\n".join(each.source for each in page), re.MULTILINE)[1] for page in cells}
    assert {title for week in CHAPTERS for title in week} <= {title.replace("’", "'") for title in titles}
    week_of = {title: week for week, found in enumerate(CHAPTERS, 1) for title in found}
    for number, (begun, ended) in ASSIGNED.items():
        assert week_of["Denoisers"] <= begun < ended and week_of["State evolution"] <= ended
        if number in (5, 7):  # as the table of assignments says
            assert week_of["The best possible error"] <= begun
        if number == 8:
            assert week_of["Real text"] <= begun


@pytest.mark.parametrize(("weeks", "numbers"), [(7, [1]), (10, [1, 2, 5]), (15, [1, 2, 5, 8])])
def test_a_course_has_as_many_weeks_as_asked_and_the_assignments_that_fit(weeks, numbers, tmp_path, capsys):
    assert main(["new", str(tmp_path / "course"), "--weeks", str(weeks)]) == 0
    assert f"{len(numbers)} assignments in {weeks} weeks" in capsys.readouterr().out
    syllabus = (tmp_path / "course/syllabus.md").read_text()
    assert re.findall(r"^\| (\d+) \| ____", syllabus, re.MULTILINE) == [str(week + 1) for week in range(weeks)]
    readme = (tmp_path / "course/README.md").read_text()
    named = {place for place in re.findall(r"`((?:students|gradescope|submissions)/[\w.]+)`", readme)}
    assert len(named) == 3 * len(numbers) and all((tmp_path / "course" / place).exists() for place in named)
    for number in numbers:
        folder = assignment(number).folder
        with zipfile.ZipFile(tmp_path / f"course/students/{folder}.zip") as archive:
            assert set(archive.namelist()) == {f"{folder}/brief.ipynb", f"{folder}/denoiser.py"}


def test_every_course_has_a_secret_of_its_own_that_students_do_not_get(tmp_path, monkeypatch):
    monkeypatch.delenv(SEED_VARIABLE, raising=False)
    for name in ("one", "two"):
        assert main(["new", str(tmp_path / name), "--weeks", "7"]) == 0
    one, two = (load_rules(tmp_path / name / "grading.yml", 1) for name in ("one", "two"))
    secret = (tmp_path / "one/seed.txt").read_text().strip()
    assert one.seed == derive_seed(secret, 1) != two.seed
    assert one.limits == LIMITS
    with zipfile.ZipFile(tmp_path / "one/gradescope/01_ridge.zip") as archive:
        assert str(one.seed) in archive.read("rules.json").decode()
    for path in [*(tmp_path / "one/students").iterdir(), tmp_path / "one/syllabus.md"]:
        assert secret.encode() not in path.read_bytes() and str(one.seed).encode() not in path.read_bytes()


@pytest.mark.parametrize(
    "line", ["# seed_file: ../../../teaching/seed.txt\n", "seed_file: /mine\n", "#seed_file: a\n", ""]
)
def test_a_course_is_made_whatever_the_lecturer_has_named_as_secret(line, tmp_path, monkeypatch):
    monkeypatch.delenv(SEED_VARIABLE, raising=False)
    text = (new.HANDOUTS / "grading.yml").read_text()
    (tmp_path / "grading.yml").write_text(re.sub(r"^# seed_file:.*\n", line, text, flags=re.MULTILINE))
    for task in ASSIGNMENTS.values():
        (tmp_path / task.folder).symlink_to(new.HANDOUTS / task.folder)
    monkeypatch.setattr(new, "HANDOUTS", tmp_path)
    assert main(["new", str(tmp_path / "course"), "--weeks", "7"]) == 0
    secret = (tmp_path / "course/seed.txt").read_text().strip()
    rules = load_rules(tmp_path / "course/grading.yml", 1)
    assert rules.seed == derive_seed(secret, 1) and rules.limits == LIMITS


def test_every_link_of_a_handout_leads_to_a_page_of_the_published_book(task, tmp_path):
    new.write_handout(tmp_path / "handout.zip", task)
    with zipfile.ZipFile(tmp_path / "handout.zip") as archive:
        notebook = nbformat.reads(archive.read(f"{task.folder}/brief.ipynb").decode(), as_version=4)
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    pages = {link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", prose)}
    for page in pages:
        named = re.fullmatch(r"https://amptutorial\.github\.io/amptutorial/(.*)\.html", page)
        assert named and any((BOOK.parent / f"{named[1]}.{suffix}").is_file() for suffix in ("ipynb", "md")), page
    assert len(pages) > 2


def test_what_cannot_be_a_course_is_refused(tmp_path, capsys):
    (tmp_path / "full").mkdir()
    (tmp_path / "full/notes.txt").touch()
    (tmp_path / "file").touch()
    for arguments, told in (
        ([str(tmp_path / "full")], "is not empty"),
        ([str(tmp_path / "file")], "is not empty"),
        ([str(tmp_path / "new"), "--weeks", "3"], "7 to 15 weeks"),
        ([str(tmp_path / "new"), "--weeks", "16"], "7 to 15 weeks"),
    ):
        assert main(["new", *arguments]) == 1
        assert told in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_the_command_of_the_readme_grades_what_came_back(tmp_path, monkeypatch):
    assert main(["new", str(tmp_path / "course")]) == 0
    monkeypatch.chdir(tmp_path / "course")
    Path("submissions/01_ridge/ada.py").write_text(RIGHT, encoding="utf-8")
    command = re.search(
        r"^    python -m amptutorial_course.grading (submissions.*\\\n.*)$", Path("README.md").read_text(), re.M
    )
    assert grade(shlex.split(command[1].replace("\\\n", " "))) == 0
    (row,) = csv.DictReader(Path("grades/01_ridge.csv").read_text().splitlines())
    assert row["student"] == "ada" and float(row["total"]) == sum(ASSIGNMENTS[1].points.values())
