"""The table of a class: checks, marks by hand, lateness, and which attempt counts."""

import csv
import io
from dataclasses import dataclass, field

from .record import Record, make_record
from .roster import read_table

UNGRADED = "not graded yet: run the same command again"


@dataclass(frozen=True)
class Row:
    """A line of the table.

    Attributes
    ----------
    student : str
        The name on the roster, or on what was handed in.
    shown : str
        The name in tables and on pages: a pseudonym, if so wanted.
    record : Record
        Of the attempt that counts.
    late : float
        Points subtracted.
    marks : dict
        Points given by hand, by part.
    note : str
    """

    student: str
    shown: str
    record: Record
    late: float = 0.0
    marks: dict = field(default_factory=dict)
    note: str = ""

    @property
    def total(self):
        """What the checks earn less lateness, and what was given by hand."""
        earned = max(0.0, self.record.total - self.late)
        return round(earned + sum(self.marks.values()), 2)

    @property
    def status(self):
        """The status of the record, with what else the lecturer should know."""
        return "; ".join(filter(None, (self.record.status, self.note)))


def make_rows(submissions, records, rules, shown, marks=None):
    """Return a `Row` for every student, by name.

    Parameters
    ----------
    submissions : list of Submission
        All attempts.
    records : list of Record
        Of those that are graded; the others are not graded yet.
    rules : Rules
        Its `attempts` says whether the last attempt or the best one counts.
    shown : callable (str) -> str
        The name in the tables.
    marks : dict, optional
        Points given by hand, by student.
    """
    graded = {(record.student, record.attempt): record for record in records}
    waiting = make_record(rules, UNGRADED)
    rows = {}
    for each in sorted(submissions, key=lambda submission: submission.attempt):
        record = graded.get((each.student, each.attempt), waiting)
        for student in each.students or (each.student,):
            name = shown(student)
            late = rules.lateness.points(student, each.handed_in)
            given = _given(marks or {}, rules, student, name)
            row = Row(student, name, record, late, given, each.note)
            before = rows.get(student)
            if before is None or rules.attempts == "last" or row.total > before.total:
                rows[student] = row
    return [rows[student] for student in sorted(rows)]


def _given(marks, rules, *names):
    """Return the marks of a student by part, 0 where there is none."""
    own = next((marks[name] for name in names if name in marks), {})
    return {part: own.get(part, 0.0) for part in rules.by_hand} if marks else {}


def counting(submissions, rules):
    """Return the submissions that have to be graded: only the last ones, or all.

    Examples
    --------
    >>> from .config import Rules
    >>> from .submissions import Submission
    >>> both = [Submission("ada", b"", attempt=1), Submission("ada", b"", attempt=2)]
    >>> [each.attempt for each in counting(both, Rules(1, 0, {}, (), {}))]
    [2]
    """
    if rules.attempts == "best":
        return submissions
    last = {}
    for each in submissions:
        last[each.student] = max(each, last.get(each.student, each), key=_attempt)
    return list(last.values())


def _attempt(submission):
    return submission.attempt


def read_marks(path, by_hand, students):
    """Return the points given by hand, a dict by student and part.

    Parameters
    ----------
    path : Path
        A CSV with the column ``student`` and one for each part.
    by_hand : dict
        The most points by part, from ``grading.yml``.
    students : collection of str
        Who may be named.

    Raises
    ------
    ValueError
        If a column or a student is unknown, or points are not a number in range.
    """
    lines, columns = read_table(path)
    parts = [name for name in columns if name != "student"]
    unknown = set(parts) - set(by_hand)
    if "student" not in columns or unknown or not parts:
        expected = ", ".join(["student", *by_hand])
        raise ValueError(
            f"{path} has the columns {', '.join(columns)}, expected {expected}: the "
            "parts are those of by_hand in grading.yml"
        )
    marks = {}
    for number, line in enumerate(lines, 2):
        where = f"{path}, line {number}"
        if line["student"] not in students:
            raise ValueError(
                f"{where}: {line['student']!r} is not in this class: use the names of "
                "the table of grades"
            )
        marks[line["student"]] = {
            part: _read_points(line[part], by_hand[part], f"{where}, {part}")
            for part in parts
        }
    return marks


def _read_points(text, most, where):
    try:
        value = float(text or 0)
    except ValueError:
        value = -1.0
    if not 0 <= value <= most:
        raise ValueError(f"{where} is {text!r}, expected points from 0 to {most:g}")
    return value


def class_table(rows, rules):
    """Return the CSV of a class: points of checks and parts, lateness, the total."""
    parts = [name for name in rules.by_hand if any(name in row.marks for row in rows)]
    lines = [["student", "attempt", *rules.weights, *parts, "late", "total", "status"]]
    for row in rows:
        points = {mark.name: mark.points for mark in row.record.marks}
        numbers = [
            *(points[name] for name in rules.weights),
            *(row.marks[name] for name in parts),
            row.late,
            row.total,
        ]
        shown = [f"{value:.2f}" for value in numbers]
        lines.append([row.shown, row.record.attempt, *shown, row.status])
    return write_csv(lines)


def class_log(records):
    """Return the CSV of what was graded when, in how many seconds and with what."""
    names = list(dict.fromkeys(name for record in records for name in record.log))
    lines = [["student", "attempt", *names]]
    for each in sorted(records, key=lambda record: (record.student, record.attempt)):
        found = (each.log.get(name, "") for name in names)
        lines.append([each.student, each.attempt, *found])
    return write_csv(lines)


def write_csv(lines):
    """Return lines as CSV in which no text is a formula."""
    table = io.StringIO()
    csv.writer(table).writerows(
        [csv_cell(cell) if isinstance(cell, str) else cell for cell in line]
        for line in lines
    )
    return table.getvalue()


def csv_cell(text):
    """Return a text as one line that no spreadsheet takes for a formula.

    Examples
    --------
    >>> csv_cell("=1+1")
    "'=1+1"
    """
    line = " ".join(text.split())[:300]
    # a dash alone is what Moodle writes for "never"
    formula = line.startswith(("=", "+", "-", "@")) and line != "-"
    return f"'{line}" if formula else line
