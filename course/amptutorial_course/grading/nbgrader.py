"""The assignments as a course for nbgrader, and what grades them there.

Each assignment is a notebook whose graded cells are the checks. No cell of a student
runs: the grader takes the denoiser out of the notebook, judges it in a process apart,
on hidden settings, and writes the verdicts into the cells. Rosters, downloads of
platforms, lateness, marks by hand and the release of feedback are nbgrader's.
"""

import json
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
from nbgrader.converters import Autograde
from nbgrader.preprocessors import Execute, NbGraderPreprocessor

from ..assignments import ASSIGNMENTS
from . import isolation, judge
from .notebooks import notebook_source
from .rules import load_rules

TEMPLATES = Path(__file__).with_name("templates")
BY_HAND = "## Your {part}\n\nWrite here what the brief asks for, or hand it in on paper."
CHECK = "check-"  # the names of the graded cells begin so


def export_course(course, path):
    """Write the folder `course` for nbgrader.

    It gets a configuration, a README, and ``source/NN_name/brief.ipynb`` for each
    assignment.

    Parameters
    ----------
    course : Path
        A new or empty folder.
    path : Path
        ``assignments/grading.yml``; the briefs lie beside it, the solutions in
        ``../solutions`` if they are there.

    Returns
    -------
    list of str
        The names of the assignments.

    Raises
    ------
    FileExistsError
        If `course` is a folder that holds something.
    FileNotFoundError
        If a brief or a starter is missing.
    """
    course, briefs = Path(course), Path(path).parent
    if course.exists() and any(course.iterdir()):
        raise FileExistsError(f"{course} is not empty: name a new folder for the course")
    names = [task.folder for task in ASSIGNMENTS.values()]
    for task in ASSIGNMENTS.values():
        target = course / "source" / task.folder
        target.mkdir(parents=True)
        nbformat.write(course_notebook(task, briefs), target / "brief.ipynb")
    values = {"rules": str(Path(path).resolve()), "example": names[0]}
    for source, target in (("nbgrader_config.txt", "nbgrader_config.py"), ("nbgrader_readme.md", "README.md")):
        text = (TEMPLATES / source).read_text(encoding="utf-8").format(**values)
        (course / target).write_text(text, encoding="utf-8")
    return names


def course_notebook(task, briefs):
    """Return the brief of an assignment with cells for the answer and for each check.

    Parameters
    ----------
    task : Assignment
    briefs : Path
        With ``NN_name/brief.ipynb`` and ``NN_name/denoiser.py``.
    """
    starter = (briefs / task.folder / "denoiser.py").read_text(encoding="utf-8")
    solution = briefs.parent / "solutions" / task.folder / "denoiser.py"
    reference = solution.read_text(encoding="utf-8") if solution.is_file() else ""
    notebook = nbformat.read(briefs / task.folder / "brief.ipynb", as_version=4)
    cells = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        if cell.cell_type == "code" and "check_assignment(" in cell.source:
            cells.append(_solution_cell(starter, reference))
            cell = _public_cell(task)
        cells.append(cell)
    written = (
        _cell("markdown", part, BY_HAND.format(part=part), points, solution=True)
        for part, points in task.written.items()
    )
    checks = (_check_cell(task, *each) for each in task.points.items())
    notebook.cells = [*cells, *written, *checks]
    return notebook


def _cell(kind, name, source, points=None, *, solution=False, locked=False):
    metadata = {
        "grade": points is not None,
        "grade_id": name,
        "locked": locked,
        "schema_version": 3,
        "solution": solution,
        "task": False,
    }
    if points is not None:
        metadata["points"] = points
    make = new_code_cell if kind == "code" else new_markdown_cell
    return make(source, metadata={"nbgrader": metadata}, id=name)


def _solution_cell(starter, reference):
    """Return the cell in which students write, and which stores denoiser.py."""
    text = f"%%writefile denoiser.py\n{starter}\n### BEGIN SOLUTION\n{reference}\n### END SOLUTION"
    return _cell("code", "denoiser", text, solution=True)


def _public_cell(task):
    text = (
        "from amptutorial_course.assignments import check_assignment\n\n"
        f'report = check_assignment({task.number}, "denoiser.py")\nreport'
    )
    return _cell("code", "public-checks", text, locked=True)


def _check_cell(task, name, points):
    """Return the graded cell of a check; at the desk the public report answers."""
    text = f"report.require({name!r}, gate={list(task.essential)})"
    return _cell("code", f"{CHECK}{name}", text, points, locked=True)


class Judged(NbGraderPreprocessor):
    """Takes the denoiser out of a notebook and writes the verdicts into its cells."""

    rules_path = ""  # of grading.yml: nbgrader_config.py says where it is

    def preprocess(self, nb, resources):
        """Return the notebook with the error of every check that earns nothing."""
        known = resources["nbgrader"]
        numbers = {task.folder: task.number for task in ASSIGNMENTS.values()}
        rules = load_rules(self.rules_path, numbers[known["assignment"]])
        isolate, warning = isolation.choose()
        if warning:
            self.log.warning(warning)
        source = notebook_source(json.dumps(nb).encode())
        own = rules.for_student(known["student"])
        record = judge.grade_submission(source, own, isolate)
        marks = {f"{CHECK}{mark.name}": mark for mark in record.marks}
        for cell in nb.cells:
            mark = marks.get(cell.metadata.get("nbgrader", {}).get("grade_id"))
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
            if mark is not None and mark.points < mark.most:
                cell.outputs = [_error(mark, record)]
        return nb, resources


def _error(mark, record):
    """Return an output that says why a check earns nothing."""
    if mark.passed or not record.status.startswith("graded"):
        lines = [record.status, record.traceback]
    else:
        lines = [mark.message, f"The promise: {mark.contract}", f"Read: {mark.read}"]
    text = "\n".join(filter(None, lines))
    return new_output("error", ename="AssertionError", evalue=lines[0], traceback=[text])


PREPROCESSORS = [
    Judged if each is Execute else each for each in Autograde.class_traits()["autograde_preprocessors"].default()
]
