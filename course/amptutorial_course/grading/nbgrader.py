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

from amptutorial._extras import extra

from ..assignments import ASSIGNMENTS
from ..new import brief
from . import isolation, judge
from .notebooks import read_notebook
from .rules import HANDOUTS, load_rules
from .submissions import Submission

with extra("nbgrader", "amptutorial-course"):
    from nbgrader.converters import Autograde
    from nbgrader.preprocessors import Execute, NbGraderPreprocessor

TEMPLATES = Path(__file__).with_name("templates")
BY_HAND = "## Your {part}\n\nWrite into the next cell what the brief asks for, or hand it in on paper."
PUBLIC = """from amptutorial_course.assignments import check_assignment, require_check

report = check_assignment({number}, "denoiser.py")
report"""
# What the brief and the file say of a file, and what is true of a notebook whose cell writes that file.
WORDS = {
    "Open `denoiser.py` beside this notebook, change it, save it, "
    "and run the next cell again: it reads the file anew": (
        "Complete the class in the next cell, run that cell, which writes `denoiser.py`, and then the cell after it. "
        "Do not change the file elsewhere: the next cell writes over it"
    ),
    "The file `denoiser.py`": "This notebook, under its name `brief.ipynb`",
    "hand in this file": "hand in this notebook",
}
CHECK = "check-"  # the names of the graded cells begin so


def export_course(course, rules):
    """Write the folder `course` for nbgrader.

    It gets a configuration, a README, and ``source/NN_name/brief.ipynb`` for each
    assignment.

    Parameters
    ----------
    course : Path
        A new or empty folder.
    rules : Path
        ``grading.yml``, which the configuration names.

    Raises
    ------
    FileExistsError
        If `course` is a folder that holds something.
    """
    course = Path(course)
    if course.exists() and any(course.iterdir()):
        raise FileExistsError(f"{course} is not empty: name a new folder for the course")
    for task in ASSIGNMENTS.values():
        target = course / "source" / task.folder
        target.mkdir(parents=True)
        nbformat.write(course_notebook(task), target / "brief.ipynb")
    values = {"rules": str(Path(rules).resolve()), "example": ASSIGNMENTS[1].folder}
    for source, target in (("nbgrader_config.txt", "nbgrader_config.py"), ("nbgrader_readme.md", "README.md")):
        text = (TEMPLATES / source).read_text(encoding="utf-8").format(**values)
        (course / target).write_text(text, encoding="utf-8")


def course_notebook(task):
    """Return the brief of an assignment with cells for the answer and for each check.

    The reference solution is in it where it lies beside what students get.
    """
    starter = (HANDOUTS / task.folder / "denoiser.py").read_text(encoding="utf-8")
    solution = HANDOUTS.parent / "solutions" / task.folder / "denoiser.py"
    reference = solution.read_text(encoding="utf-8") if solution.is_file() else ""
    notebook = nbformat.reads(brief(task), as_version=4)
    answer = f"%%writefile denoiser.py\n{starter}\n### BEGIN SOLUTION\n{reference}\n### END SOLUTION"
    cells = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        if cell.cell_type == "code" and "check_assignment(" in cell.source:
            cells.append(_cell("code", "denoiser", answer, solution=True))
            cell = _cell("code", "public-checks", PUBLIC.format(number=task.number), locked=True)
        cells.append(cell)
    for part, points in task.written.items():
        cells.append(new_markdown_cell(BY_HAND.format(part=part), id=f"{part}-title"))
        cells.append(_cell("markdown", part, "", points, solution=True))
    for name, points in task.points.items():
        # at the desk the public report answers
        source = f"require_check(report, {name!r}, gate={list(task.essential)})"
        cells.append(_cell("code", f"{CHECK}{name}", source, points, locked=True))
    for cell in cells:
        for words, ours in WORDS.items():
            cell.source = cell.source.replace(words, ours)
    notebook.cells = cells
    return notebook


def _cell(kind, name, source, points=None, *, solution=False, locked=False):
    kinds = {"grade": points is not None, "solution": solution, "locked": locked, "task": False}
    metadata = kinds | {"grade_id": name, "schema_version": 3} | ({} if points is None else {"points": points})
    make = new_code_cell if kind == "code" else new_markdown_cell
    return make(source, metadata={"nbgrader": metadata}, id=name)


class Judged(NbGraderPreprocessor):
    """Takes the denoiser out of a notebook and writes the verdicts into its cells."""

    rules_path = ""  # of grading.yml: nbgrader_config.py says where it is

    def preprocess(self, nb, resources):
        """Return the notebook with the error of every check that earns nothing."""
        (task,) = (task for task in ASSIGNMENTS.values() if task.folder == resources["nbgrader"]["assignment"])
        submission = Submission(*read_notebook(json.dumps(nb).encode(), task.class_names))
        rules = load_rules(self.rules_path, task.number, warn=self.log.warning)
        record = judge.grade_submission(submission, rules, isolation.choose(rules.isolate, self.log.warning))
        marks = {f"{CHECK}{mark.result.name}": mark for mark in record.marks(task)}
        for cell in nb.cells:
            mark = marks.get(cell.metadata.get("nbgrader", {}).get("grade_id"))
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
            if mark is not None and mark.points < mark.most:
                lines = _reasons(mark.result, record, task)
                error = {"ename": "AssertionError", "evalue": lines[0], "traceback": ["\n".join(lines)]}
                cell.outputs = [new_output("error", **error)]
        return nb, resources


def _reasons(result, record, task):
    """Return lines that say why a check earns nothing."""
    if result.passed or not record.results:
        return [record.told(task), record.traceback]
    return [result.message, f"The promise: {result.contract}", f"Read: {result.read}"]


PREPROCESSORS = [
    Judged if each is Execute else each for each in Autograde.class_traits()["autograde_preprocessors"].default()
]
