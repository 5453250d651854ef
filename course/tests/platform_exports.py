"""Tables that platforms export, odd as they are, and the lines of the page for lecturers that join points to them."""

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from amptutorial.checks import CheckResult
from amptutorial_course.assignments import ASSIGNMENTS
from amptutorial_course.grading.gradebook import class_table
from amptutorial_course.grading.record import Record

TASK = ASSIGNMENTS[1]
PAGE = (Path(__file__).parents[2] / "book/instructors.md").read_text(encoding="utf-8")
JOIN = re.search(r"```python\n(export, key, ours, column = .*?)```", PAGE, re.DOTALL)[1]
# the line of these that reads the grades, and those that take its place after nbgrader
OWN = re.search(r"^grades = .*\n", JOIN, re.MULTILINE)[0]
NBGRADER = re.search(r"```python\n(grades = .*?)```", PAGE, re.DOTALL)[1]
BANK = yaml.safe_load(Path(__file__).with_suffix(".yml").read_text(encoding="utf-8"))
EXPORTS = BANK["cases"]


def joined(folder, export, students, *values):
    """Run the lines of the page in a folder: return the export, the table that they write, and what they print.

    The first student has 100 points, and each of the others fewer than the one before.
    """
    names = list(TASK.points)
    results = [tuple(CheckResult(name, name not in names[:k]) for name in names) for k in range(len(students))]
    records = [Record("graded", found, student=student) for found, student in zip(results, students, strict=True)]
    (folder / "export.csv").write_text(export, encoding="utf-8-sig")
    (folder / "grades.csv").write_text(class_table(records, TASK), encoding="utf-8")
    _, _, rest = JOIN.partition("\n")
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(f"export, key, ours, column = {('export.csv', *values)}\n{rest}", {})
    form = {"dtype": str, "keep_default_na": False, "encoding": "utf-8-sig", "sep": None, "engine": "python"}
    before, table = (pd.read_csv(folder / name, **form) for name in ("export.csv", "upload.csv"))
    return before, table, printed.getvalue()


def misplaced(folder, case):
    """Return what is wrong with the table of one of the `EXPORTS`, or an empty text."""
    students, (key, _, column) = case["students"], case["line"]
    before, table, printed = joined(folder, BANK["tables"][case["table"]], students, *case["line"])
    totals = dict(zip(students.values(), 100.0 - np.cumsum([0, *TASK.points.values()]), strict=False))
    expected = before[before[key].isin(totals)].assign(**{column: lambda rows: rows[key].map(totals)})
    if sorted(expected.values.tolist()) != sorted(table.astype({column: float}).values.tolist()):
        return f"other cells than {expected.to_string()}: {table.to_string()}"
    lost = [word for word in case["printed"] if word not in printed]
    return f"not printed: {lost}" if lost or [*table] != [*before] else ""
