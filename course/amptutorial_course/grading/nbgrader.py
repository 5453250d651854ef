"""The assignments as a course for nbgrader, a notebook each.

The graded cells are the checks. What runs them is `nbgrader_run`, with hidden settings
and in a process apart from the submission.
"""

import argparse
import re
import shutil
import sys
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell

from ..assignments import ASSIGNMENTS
from . import config

CONFIGURATION = """# How nbgrader treats this course; see the README beside it.
from amptutorial_course.grading.nbgrader_run import PREPROCESSORS, Sandboxed

c = get_config()
c.CourseDirectory.course_id = "amptutorial"
c.ClearSolutions.code_stub = {{"python": "# complete the class above"}}
# No cell of a student runs in a kernel: the grader reads the denoiser out of the cells.
c.Autograde.autograde_preprocessors = PREPROCESSORS
Sandboxed.rules = {rules!r}
"""

README = """# A course for nbgrader

The notebooks in `source` hold the solutions: keep this folder to yourself. The seed of
the hidden settings stays in the file that `nbgrader_config.py` names.

    nbgrader generate_assignment {example}
    nbgrader autograde {example} --create
    nbgrader generate_feedback {example}

The first command writes what students get, `release/{example}`. The second grades
`submitted/<student>/{example}`, and the third writes a page for each student,
`feedback/<student>/{example}`.

The checks make 100 points. What `by_hand` in grading.yml names has a cell of its own
and is graded by `nbgrader formgrade`.
"""

# of an assignment's folder; others, such as data, are copied
OWN_FILES = ("brief.ipynb", "denoiser.py", "test_public.py")

BY_HAND = """## Your {part}

Write here what the brief asks for, or hand it in on paper."""


def export_course(course, path):
    """Write the folder `course` for nbgrader.

    It gets a configuration, a README, and ``source/NN_name/brief.ipynb`` for each
    assignment.

    Parameters
    ----------
    course : Path
        A new or empty folder.
    path : Path
        ``course/assignments/grading.yml``; the briefs lie beside it, the solutions in
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
        raise FileExistsError(
            f"{course} is not empty: name a new folder for the course"
        )
    for task in ASSIGNMENTS.values():
        rules = config.load_rules(path, task.number)
        _write_assignment(task, course / "source" / task.folder, briefs, rules)
    names = [task.folder for task in ASSIGNMENTS.values()]
    readme = README.format(example=names[0])
    configuration = CONFIGURATION.format(rules=str(Path(path).resolve()))
    (course / "nbgrader_config.py").write_text(configuration, encoding="utf-8")
    (course / "README.md").write_text(readme, encoding="utf-8")
    return names


def _write_assignment(task, target, briefs, rules):
    folder = briefs / task.folder
    starter = (folder / "denoiser.py").read_text(encoding="utf-8")
    solution = briefs.parent / "solutions" / task.folder / "denoiser.py"
    reference = solution.read_text(encoding="utf-8") if solution.is_file() else ""
    notebook = nbformat.read(folder / "brief.ipynb", as_version=4)
    target.mkdir(parents=True)
    for extra in folder.iterdir():
        if extra.is_file() and extra.name not in OWN_FILES:
            shutil.copy(extra, target)
    cells = []
    for cell in notebook.cells:
        is_check = cell.cell_type == "code" and "check_assignment(" in cell.source
        if is_check:
            cells.append(_solution_cell(starter, reference))
        cells.append(_public_check(task.number) if is_check else _plain(cell))
    notebook.cells = [*cells, *_cells_by_hand(rules), *_graded_cells(rules)]
    nbformat.write(notebook, target / "brief.ipynb")


def _plain(cell):
    if cell.cell_type == "code":
        cell.outputs, cell.execution_count = [], None
    return cell


def _cell(kind, name, source, points=0, *, grade=False, solution=False, locked=False):
    metadata = {
        "grade": grade,
        "grade_id": name,
        "locked": locked,
        "schema_version": 3,
        "solution": solution,
        "task": False,
    }
    if grade:
        metadata["points"] = points
    make = new_code_cell if kind == "code" else new_markdown_cell
    return make(source, metadata={"nbgrader": metadata}, id=name)


def _solution_cell(starter, reference):
    """Return the cell in which students write, and which stores denoiser.py."""
    text = (
        f"%%writefile denoiser.py\n{starter}\n"
        f"### BEGIN SOLUTION\n{reference}\n### END SOLUTION"
    )
    return _cell("code", "denoiser", text, solution=True)


def _public_check(number):
    text = (
        "from amptutorial_course.assignments import check_assignment\n\n"
        f'report = check_assignment({number}, "denoiser.py")\nreport'
    )
    return _cell("code", "public-checks", text, locked=True)


def _cells_by_hand(rules):
    """Return a cell for each part that is marked by hand."""
    return [
        _cell(
            "markdown",
            re.sub(r"\W+", "-", part),
            BY_HAND.format(part=part),
            most,
            grade=True,
            solution=True,
        )
        for part, most in rules.by_hand.items()
    ]


def _graded_cells(rules):
    """Return a cell for each check; at the desk the public report answers."""
    gate = list(rules.essential)
    return [
        _cell(
            "code",
            f"check-{name}",
            f"report.require({name!r}, gate={gate})",
            points,
            grade=True,
            locked=True,
        )
        for name, points in rules.weights.items()
    ]


def main(arguments):
    """Run ``export-nbgrader`` and return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m amptutorial_course.grading export-nbgrader", description=main.__doc__
    )
    parser.add_argument("course", type=Path, help="a new folder for the course")
    parser.add_argument(
        "--config", type=Path, help="points and seed (default: course/assignments/grading.yml)"
    )
    options = parser.parse_args(arguments)
    try:
        path = options.config or config.default_path()
        names = export_course(options.course, path)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{len(names)} assignments in {options.course / 'source'}")
    print(f"how to go on: {options.course / 'README.md'}")
    return 0
