"""The nbgrader course, generated, graded and given feedback on by nbgrader's own commands."""

import logging
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import yaml

from amptutorial_course.assignments import ASSIGNMENTS
from amptutorial_course.grading import config, nbgrader

pytest.importorskip("nbgrader")
ROOT = Path(__file__).parents[1]
GRADING = ROOT / "assignments" / "grading.yml"
if not ((ROOT / "solutions").is_dir() and GRADING.is_file()):
    pytest.skip("the solutions and the rules of the grader are elsewhere", allow_module_level=True)
TASK = ASSIGNMENTS[1]


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course after the whole way: one hands in the solution, one what was released, one tampers, one loops."""
    course = tmp_path_factory.mktemp("nbgrader") / "course"
    nbgrader.export_course(course, GRADING)
    run(course, "generate_assignment", TASK.folder)
    shutil.copytree(course / "source" / TASK.folder, course / "submitted" / "student_01" / TASK.folder)
    shutil.copytree(course / "release" / TASK.folder, course / "submitted" / "student_02" / TASK.folder)
    for student, cell in {"student_03": TAMPERS, "student_04": LOOPS}.items():
        hand_in(course, student, cell)
    run(course, "autograde", TASK.folder, "--create")
    run(course, "generate_feedback", TASK.folder)
    return course


def hand_in(course, student, text):
    """Hand in what was released, with another cell for the denoiser and the same code at the end."""
    folder = course / "submitted" / student / TASK.folder
    shutil.copytree(course / "release" / TASK.folder, folder)
    notebook = nbformat.read(folder / "brief.ipynb", as_version=4)
    (cell,) = (cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade_id") == "denoiser")
    cell.source = text.format(mark=course / "ran")
    notebook.cells.insert(-16, nbformat.v4.new_code_cell(cell.source.partition("\n")[2]))
    nbformat.write(notebook, folder / "brief.ipynb")


def run(course, *command):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # nbgrader calls alembic by name
    environment = {**os.environ, "PATH": path, "JUPYTER_CONFIG_DIR": str(course / "jupyter"), "JUPYTER_NO_CONFIG": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", *command], cwd=course, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


# This once earned all points: the checks ran in the kernel of the student.
TAMPERS = """%%writefile denoiser.py
import pathlib
import amptutorial_course.assignments
from amptutorial import checks

pathlib.Path({mark!r}).touch()
checks.CheckReport.require = lambda *args, **kwargs: None
amptutorial_course.assignments.check_assignment = lambda *args, **kwargs: checks.CheckReport("", ())
"""
LOOPS = """%%writefile denoiser.py
while True:
    pass
"""


def points(course, student):
    """Return the points of each graded cell, from nbgrader's own database."""
    query = """
        select base_cell.name, grade.auto_score from grade join base_cell on grade.cell_id = base_cell.id
        join submitted_notebook on grade.notebook_id = submitted_notebook.id
        join submitted_assignment on submitted_notebook.assignment_id = submitted_assignment.id
        where submitted_assignment.student_id = ?"""
    with sqlite3.connect(course / "gradebook.db") as database:
        return dict(database.execute(query, [student]).fetchall())


@pytest.mark.slow
def test_what_students_get_has_no_solution(course):
    released = (course / "release" / TASK.folder / "brief.ipynb").read_text()
    source = (course / "source" / TASK.folder / "brief.ipynb").read_text()
    body = "np.linalg.inv(shifted)"
    assert body in source and body not in released
    assert "raise NotImplementedError" in released and "class RidgeByHand" in released


@pytest.mark.slow
def test_no_notebook_and_no_page_has_the_seed(course):
    rules = config.load_rules(GRADING, 1)
    secrets = {str(yaml.safe_load(GRADING.read_text())["seed"]), str(rules.seed)}
    secrets |= {str(rules.for_student(f"student_0{k}").seed) for k in range(1, 5)}
    files = [path for path in course.rglob("*") if path.suffix in {".ipynb", ".html", ".py", ".md"}]
    assert len(files) > 20
    assert not [path for path in files if any(f"seed={each}" in path.read_text() for each in secrets)]
    for student in range(1, 5):
        page = (course / f"feedback/student_0{student}" / TASK.folder / "brief.html").read_text()
        assert not any(secret in page for secret in secrets)


@pytest.mark.slow
def test_code_in_a_notebook_neither_runs_nor_pays_nor_holds_the_class_up(course):
    assert not (course / "ran").exists()
    for student in ("student_03", "student_04"):
        scores = points(course, student)
        assert len(scores) == 16 and all(not score for score in scores.values())
    page = (course / "feedback/student_04" / TASK.folder / "brief.html").read_text()
    # one limit for one call, and not one for each of the checks
    limit = config.load_rules(GRADING, 1).limits["seconds_per_call"]
    assert f"the import gave no answer within {limit:g} s: an endless loop?" in page


@pytest.mark.slow
def test_the_solution_gets_all_points_and_the_starter_none(course):
    right, starter = points(course, "student_01"), points(course, "student_02")
    weights = config.load_rules(GRADING, 1).weights
    assert {name.removeprefix("check-"): score for name, score in right.items() if name.startswith("check-")} == weights
    assert all(not score for score in starter.values())


@pytest.mark.slow
def test_the_feedback_says_what_was_promised(course):
    page = (course / "feedback" / "student_02" / TASK.folder / "brief.html").read_text()
    assert "write the estimate" in page
    assert "The promise:" in page


@pytest.mark.parametrize("task", ASSIGNMENTS.values(), ids=lambda task: task.folder)
def test_every_assignment_is_exported(tmp_path, task):
    nbgrader.export_course(tmp_path / "course", GRADING)
    folder = tmp_path / "course" / "source" / task.folder
    notebook = nbformat.read(folder / "brief.ipynb", as_version=4)
    nbformat.validate(notebook)
    graded = [cell.metadata.nbgrader for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade")]
    assert sum(cell.points for cell in graded) == 120
    assert len({cell.grade_id for cell in graded}) == len(graded)
    assert sum("BEGIN SOLUTION" in cell.source for cell in notebook.cells) == 1


def test_each_part_that_is_marked_by_hand_has_a_cell(tmp_path):
    data = yaml.safe_load(GRADING.read_text()) | {"by_hand": {"derivations": 15, "short report": 5}}
    briefs = tmp_path / "assignments"
    shutil.copytree(ROOT / "assignments", briefs)
    (briefs / "grading.yml").write_text(yaml.safe_dump(data, sort_keys=False))
    nbgrader.export_course(tmp_path / "course", briefs / "grading.yml")
    notebook = nbformat.read(tmp_path / "course/source" / TASK.folder / "brief.ipynb", as_version=4)
    marked = [cell for cell in notebook.cells if cell.cell_type == "markdown" and "nbgrader" in cell.metadata]
    assert [(cell.metadata.nbgrader.grade_id, cell.metadata.nbgrader.points) for cell in marked] == [
        ("derivations", 15),
        ("short-report", 5),
    ]
    assert "short report" in marked[1].source


def test_nbgrader_too_says_that_nothing_isolates(monkeypatch, caplog):
    from amptutorial_course.grading import nbgrader_run

    monkeypatch.setattr(nbgrader_run.isolation, "bwrap_problem", lambda: "no bubblewrap here")
    resources = {"nbgrader": {"assignment": TASK.folder, "student": "ada"}}
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("x = 1")])
    monkeypatch.setattr(nbgrader_run.Sandboxed, "rules", str(GRADING))
    nbgrader_run.Sandboxed(log=logging.getLogger("course")).preprocess(book, resources)
    assert "submissions run without isolation (no bubblewrap here)" in caplog.text


def test_a_folder_that_holds_something_is_left_alone(tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("mine")
    assert nbgrader.main([str(tmp_path), "--config", str(GRADING)]) == 1
    assert re.search("is not empty: name a new folder", capsys.readouterr().err)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
