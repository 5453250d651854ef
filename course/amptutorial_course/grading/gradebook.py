"""The table of a class."""

import csv
import io
import re

# As Moodle and Canvas name what they let a lecturer download.
DOWNLOADS = re.compile(r"(.+)_(\d+)_assignsubmission_|(.+?)(?:_LATE)?_(\d+)_\d+_")


def class_table(records, task):
    """Return the CSV of a class: who, the points of each check, the total, the status."""
    lines = [["student", "name", "id", *task.points, "total", "status"]]
    for record in sorted(records, key=lambda record: record.student):
        points = [mark.points for mark in record.marks(task)]
        shown = [f"{value:.2f}" for value in (*points, sum(points))]
        lines.append([record.student, *name_and_id(record.student), *shown, record.told(task)])
    table = io.StringIO()
    csv.writer(table).writerows(map(csv_cell, line) for line in lines)
    return table.getvalue()


def name_and_id(submission):
    """Return the student's name and number in the name of a submission, or the whole of it twice.

    Examples
    --------
    >>> name_and_id("lovelaceada_LATE_12_345_denoiser")
    ('lovelaceada', '12')
    >>> name_and_id("Ada Lovelace_678_assignsubmission_file_")
    ('Ada Lovelace', '678')
    >>> name_and_id("ada@example.org")
    ('ada@example.org', 'ada@example.org')
    """
    found = DOWNLOADS.match(submission)
    return tuple(filter(None, found.groups())) if found else (submission, submission)


def csv_cell(text):
    """Return a text as one line that no spreadsheet takes for a formula.

    Examples
    --------
    >>> csv_cell("=1+1")
    "'=1+1"
    """
    line = " ".join(text.split())[:300]
    return f"'{line}" if line.startswith(("=", "+", "-", "@")) else line
