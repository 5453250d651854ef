"""A class of five by the commands of nbgrader: from the archive of a platform to feedback and a table of grades."""

import contextlib
import csv
import logging
import os
import re
import sqlite3
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest
from grading_samples import GRADING
from platform_exports import JOIN, NBGRADER, OWN

from amptutorial_course.assignments import ASSIGNMENTS
from amptutorial_course.grading import nbgrader
from amptutorial_course.grading.__main__ import main
from amptutorial_course.grading.rules import load_rules

TASK = ASSIGNMENTS[1]
RIGHT, STARTER, TAMPERS, LOOPS = "right", "starter", "tampers", "loops"
# by their numbers at Canvas, where two may have one name
CLASS = {"101": RIGHT, "102": RIGHT, "103": STARTER, "104": TAMPERS, "105": LOOPS}
# This once earned all points: the checks ran in the kernel of the student.
TAMPERING = """%%writefile denoiser.py
import pathlib
import amptutorial_course.assignments
from amptutorial import checks
pathlib.Path({mark!r}).touch()
checks.CheckReport.require = lambda *args, **kwargs: None
amptutorial_course.assignments.check_assignment = lambda *args, **kwargs: checks.CheckReport("", ())
"""
LOOPING = "%%writefile denoiser.py\nwhile True:\n    pass\n"


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    course = tmp_path_factory.mktemp("nbgrader") / "course"
    rules = course.parent / "grading.yml"
    rules.write_text("seed: 20240\nlimits: {seconds_per_call: 5}\n")
    assert main(["--nbgrader", str(course), "--config", str(rules)]) == 0
    run(course, "generate_assignment", TASK.folder)
    released = (course / "release" / TASK.folder / "brief.ipynb").read_text()
    texts = {RIGHT: (course / "source" / TASK.folder / "brief.ipynb").read_text(), STARTER: released}
    texts[TAMPERS] = with_cell(released, TAMPERING.format(mark=str(course / "ran")))
    texts[LOOPS] = with_cell(released, LOOPING)
    archive = course / "downloaded" / TASK.folder / "archive"
    archive.mkdir(parents=True)
    with zipfile.ZipFile(archive / "submissions.zip", "w") as packed:  # as Canvas hands it out
        for student, kind in CLASS.items():
            late, again = "LATE_" * (student == "101"), "-1" * (student == "102")
            packed.writestr(f"leejane_{late}{student}_9{student}_brief{again}.ipynb", texts[kind])
    for command in ("zip_collect", "autograde", "generate_feedback"):
        run(course, command, TASK.folder, *["--create"] * (command == "autograde"))
    run(course, "export", "--to", "grades.csv")
    return course


def with_cell(released, text):
    """Return what was released, with another cell for the denoiser and the same code at the end."""
    notebook = nbformat.reads(released, as_version=4)
    (cell,) = (cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade_id") == "denoiser")
    cell.source = text
    notebook.cells.insert(-18, nbformat.v4.new_code_cell(text.partition("\n")[2]))
    return nbformat.writes(notebook)


def run(course, *command):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # nbgrader calls alembic by name
    environment = {**os.environ, "PATH": path, "JUPYTER_CONFIG_DIR": str(course / "jupyter"), "JUPYTER_NO_CONFIG": "1"}
    command = [sys.executable, "-m", "nbgrader", *command]
    done = subprocess.run(command, cwd=course, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def points(course, student):
    """Return the points of each graded cell, from nbgrader's own database."""
    query = """
        select base_cell.name, grade.auto_score from grade join base_cell on grade.cell_id = base_cell.id
        join submitted_notebook on grade.notebook_id = submitted_notebook.id
        join submitted_assignment on submitted_notebook.assignment_id = submitted_assignment.id
        where submitted_assignment.student_id = ?"""
    with sqlite3.connect(course / "gradebook.db") as database:
        return dict(database.execute(query, [student]).fetchall())


def test_what_students_get_has_no_solution(course):
    source, released = ((course / part / TASK.folder / "brief.ipynb").read_text() for part in ("source", "release"))
    body = "np.linalg.inv(shifted)"
    assert body in source and body not in released
    assert "raise NotImplementedError" in released and "class RidgeByHand" in released


def test_all_five_come_out_of_the_archive_with_their_points(course):
    rows = csv.DictReader((course / "grades.csv").read_text().splitlines())
    grades = {row["student_id"]: float(row["score"]) for row in rows}
    assert grades == {student: 100.0 * (kind == RIGHT) for student, kind in CLASS.items()}
    right = points(course, "101")
    assert {name[6:]: score for name, score in right.items() if name.startswith("check-")} == TASK.points
    pages = {path.parts[-3]: path.read_text() for path in course.glob(f"feedback/*/{TASK.folder}/brief.html")}
    assert set(pages) == set(CLASS)
    assert "write the estimate" in pages["103"] and "The promise:" in pages["103"]


def test_the_lines_of_the_page_join_what_nbgrader_exports(course):
    (course / "export.csv").write_text('Student,ID,Ridge\n"Lee, Jane",101,\n"Lee, Jane",103,7\nEve,200,9\n')
    lines = JOIN.partition("\n")[2].replace(OWN, NBGRADER)
    with contextlib.chdir(course):
        exec(f"export, key, ours, column = 'export.csv', 'ID', 'student', 'Ridge'\n{lines}", {})
    rows = list(csv.DictReader((course / "upload.csv").read_text().splitlines()))
    assert [(row["ID"], float(row["Ridge"])) for row in rows] == [("101", 100), ("103", 0)]


def test_no_notebook_and_no_page_has_the_seed(course):
    rules = load_rules(course.parent / "grading.yml", 1)
    secrets = {"20240", str(rules.seed)}
    files = [path for path in course.rglob("*") if path.suffix in {".ipynb", ".html", ".py", ".md"}]
    assert len(files) > 20
    for path in files:
        sign = "" if path.match("feedback/*/*/brief.html") else "seed="
        assert not any(f"{sign}{secret}" in path.read_text() for secret in secrets)


def test_code_in_a_notebook_neither_runs_nor_pays_nor_holds_the_class_up(course):
    assert not (course / "ran").exists()
    for student in ("104", "105"):
        scores = points(course, student)
        assert len(scores) == 17 and not any(scores.values())
    page = (course / "feedback/105" / TASK.folder / "brief.html").read_text()
    # one limit for one call, and not one for each of the checks
    assert "the import gave no answer within 5 s of the processor: an endless loop?" in page


def test_moodle_s_names_are_found_by_the_pattern_that_the_configuration_offers():
    text = (nbgrader.TEMPLATES / "nbgrader_config.txt").read_text()
    moodle, canvas = re.findall(r'r"(\.\*.*?)"', text)
    for pattern, path in (
        (canvas, "submissions/lovelaceada_LATE_12_345_brief-1.ipynb"),
        (canvas, "submissions/leejane_12_345_brief.ipynb"),
        (canvas, "sub_missions_7/müllerzoë_12_345_brief.ipynb"),
        (moodle, "download/Ada Lovelace_12_assignsubmission_file/brief.ipynb"),
        (moodle, "download/Ada Lovelace_12_assignsubmission_file_/brief.ipynb"),
        (moodle, "C1-Ridge_01-55/Ada_Maria Lovelace_12_assignsubmission_file_/brief.ipynb"),
    ):
        match = re.match(pattern, f"/course_2027/downloaded/01_ridge/extracted/{path}")
        assert match.groupdict() == {"student_id": "12", "file_id": "brief"}
    # whose a file is that a student has named with numbers is not guessed
    for name in ("adalovelace_12_345_9_brief.ipynb", "brief.ipynb", "adalovelace_12_345_denoiser.py"):
        assert not re.match(canvas, f"/course/extracted/{name}")


def test_every_assignment_is_a_notebook_with_all_its_points(task):
    notebook = nbgrader.course_notebook(task)
    nbformat.validate(notebook)
    graded = [cell.metadata.nbgrader for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade")]
    assert {cell.grade_id.removeprefix("check-"): cell.points for cell in graded} == task.points | task.written
    assert len({cell.grade_id for cell in graded}) == len(graded)
    assert sum("BEGIN SOLUTION" in cell.source for cell in notebook.cells) == 1


def test_no_word_asks_for_a_file_that_a_cell_writes_over(task):
    cells = nbgrader.course_notebook(task).cells
    text = "\n".join(cell.source for cell in cells)
    assert [text.count(words) for words in nbgrader.WORDS.values()] == [1] * 3
    assert not re.findall("`denoiser.py` beside|The file `denoiser.py`|this file|reads the file anew", text)
    assert text.count("`denoiser.py`") == 1  # elsewhere the file is an argument
    (place,) = (k for k, cell in enumerate(cells) if "%%writefile" in cell.source)
    assert "Complete the class in the next cell" in cells[place - 1].source
    assert "check_assignment(" in cells[place + 1].source


def test_nbgrader_grades_nothing_that_is_not_isolated_unless_its_settings_say_so(monkeypatch, caplog, tmp_path):
    for kind in ("bwrap", "user", "landlock"):
        monkeypatch.setattr(nbgrader.isolation, f"{kind}_problem", lambda: "not here")
    resources = {"nbgrader": {"assignment": TASK.folder, "student": "ada"}}
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("x = 1")])
    (tmp_path / "grading.yml").write_text("seed: 20240\n")
    monkeypatch.setattr(nbgrader.Judged, "rules_path", str(tmp_path / "grading.yml"))
    judged = nbgrader.Judged(log=logging.getLogger("course"))
    with pytest.raises(ValueError, match='"isolate: none" in grading.yml'):
        judged.preprocess(book, resources)
    (tmp_path / "grading.yml").write_text("seed: 20240\nisolate: none\n")
    judged.preprocess(book, resources)
    assert "without the isolation that is promised, as asked for" in caplog.text
    assert caplog.text.count("seed in") == 2 == caplog.text.count("is public, and students can try")


def test_a_folder_that_holds_something_is_left_alone(tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("mine")
    assert main(["--nbgrader", str(tmp_path), "--config", str(GRADING)]) == 1
    assert "is not empty: name a new folder" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
