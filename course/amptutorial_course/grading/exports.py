"""The grades as Canvas, Moodle and Gradescope import them."""

import io
import json
import re
import zipfile

from .gradebook import write_csv

FORMATS = ("csv", "canvas", "moodle", "gradescope")
CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
# Moodle refuses a worksheet that lacks one of these.
MOODLE = ("Identifier", "Grade", "Last modified (grade)")


def canvas_column(people, name=None):
    """Return the heading of the assignment in Canvas, such as ``Ridge (1234)``.

    Raises
    ------
    ValueError
        If the gradebook has no such column, or several and none was named.
    """
    columns = list(people[0].line) if people else []
    if "Student" not in columns or "ID" not in columns:
        raise ValueError(
            "--format canvas needs --roster with the gradebook that Canvas exports: it "
            "has the columns Student and ID"
        )
    found = [column for column in columns if re.search(r"\(\d+\)\s*$", column or "")]
    chosen = [column for column in found if name in (None, column)]
    if len(chosen) != 1:
        raise ValueError(
            "name the column of the assignment with --column, one of: "
            + (", ".join(found) or "none, as Canvas has no assignment yet")
        )
    return chosen[0]


def canvas_table(rows, people, column):
    """Return the CSV that Canvas imports: all lines of the roster, with the totals."""
    totals = {row.student: row.total for row in rows}
    columns = [name for name in CANVAS if name in people[0].line]
    lines = [
        [*(person.line[name] for name in columns), totals[person.student]]
        for person in people
    ]
    return write_csv([[*columns, column], *lines])


def check_moodle(people):
    """Raise unless the roster is the grading worksheet of Moodle.

    Raises
    ------
    ValueError
        With what is needed.
    """
    columns = people[0].line if people else ()
    missing = [name for name in MOODLE if name not in columns]
    if missing:
        raise ValueError(
            "--format moodle needs --roster with the grading worksheet of Moodle, in "
            f"English: it has the columns {', '.join(MOODLE)}; missing here: "
            + ", ".join(missing)
        )


def moodle_table(rows, people):
    """Return the grading worksheet as Moodle gave it, with grades and feedback."""
    by_student = {row.student: row for row in rows}
    # what a line has beyond the columns is under None
    columns = [name for name in people[0].line if name]
    columns += [] if "Feedback comments" in columns else ["Feedback comments"]
    lines = [columns]
    for person in people:
        row = by_student[person.student]
        given = {"Grade": row.total, "Feedback comments": row.status}
        lines.append([{**person.line, **given}[name] for name in columns])
    return write_csv(lines)


def moodle_feedback(pages, people):
    """Return the archive of feedback files that Moodle gives to its students.

    Parameters
    ----------
    pages : dict
        Texts by student.
    people : list of Person
    """
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for person in people:
            number = re.sub(r"\D", "", person.line["Identifier"])
            # Moodle finds the number behind the first underscore
            name = person.line.get("Full name") or "Participant"
            name = name.replace("/", " ").replace("_", " ")
            folder = f"{name}_{number}_assignsubmission_file_"
            archive.writestr(
                f"{folder}/feedback.html",
                pages[person.student].encode("utf-8", "replace"),
            )
    return data.getvalue()


def gradescope_results(row):
    """Return ``results.json`` of one student: every check with its points.

    Students see it when the grades are published.
    """
    tests = [
        {
            "name": mark.name,
            "score": mark.points,
            "max_score": mark.most,
            "status": "passed" if mark.passed else "failed",
            "output": "\n".join(filter(None, (mark.message, mark.contract, mark.read))),
            "visibility": "after_published",
        }
        for mark in row.record.marks
    ]
    return json.dumps(
        {
            "score": row.total,
            "output": row.status,
            "visibility": "after_published",
            "execution_time": row.record.log.get("seconds", 0.0),
            "tests": tests,
        },
        indent=1,
    )
