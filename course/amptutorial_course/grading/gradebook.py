"""The table of a class, and one column of points in a table that a platform exports."""

import csv
import io
from collections import Counter

DELIMITERS = ",;\t"


def class_table(records, task):
    """Return the CSV of a class: the points of each check, the total, the status."""
    lines = [["student", *task.points, "total", "status"]]
    for record in sorted(records, key=lambda record: record.student):
        points = [f"{mark.points:.2f}" for mark in record.marks]
        total = f"{record.total:.2f}"
        lines.append([record.student, *points, total, record.status])
    table = io.StringIO()
    csv.writer(table).writerows([list(map(csv_cell, line)) for line in lines])
    return table.getvalue()


def csv_cell(text):
    """Return a text as one line that no spreadsheet takes for a formula.

    Examples
    --------
    >>> csv_cell("=1+1")
    "'=1+1"
    """
    line = " ".join(text.split())[:300]
    return f"'{line}" if line.startswith(("=", "+", "-", "@")) else line


def fill_in(text, column, totals):
    r"""Return the table of a platform with points in one of its columns.

    All else stays as it is. The line of headings is the first that has `column`.
    Students are found in whichever column has most of their names. Of a name with
    underscores one part is enough, as in the downloads of Canvas
    (``lovelaceada_12_345_denoiser``) and Moodle.

    Parameters
    ----------
    text : str
        Of a CSV, with commas, semicolons or tabs between its cells.
    column : str
        The heading of the column that is filled in.
    totals : dict
        Points by the name of a submission.

    Returns
    -------
    text : str
    left_out : list of str
        The names that no line has, or more than one, or whose line another has, too.

    Raises
    ------
    ValueError
        If there is no such column.

    Examples
    --------
    >>> text, left_out = fill_in(
    ...     "sep=;\nid;grade\nada;\n", "grade", {"ada": 87.5, "bob": 3.0}
    ... )
    >>> text.splitlines(), left_out
    (['sep=;', 'id;grade', 'ada;87.5'], ['bob'])
    """
    delimiter, lines = _cells(text, column)
    (head, *_) = (number for number, line in enumerate(lines) if column in line)
    target, people = lines[head].index(column), lines[head + 1 :]
    places = max(
        (_places(totals, people, k) for k in range(len(lines[head])) if k != target),
        key=lambda places: sum(len(found) == 1 for found in places.values()),
        default={},
    )
    taken = Counter(place for found in places.values() for place in found)
    sure = {n: p[0] for n, p in places.items() if len(p) == 1 and taken[p[0]] == 1}
    for name, place in sure.items():
        people[place] += [""] * (target + 1 - len(people[place]))
        people[place][target] = f"{totals[name]:g}"
    table = io.StringIO()
    end = "\r\n" if "\r\n" in text else "\n"
    csv.writer(table, delimiter=delimiter, lineterminator=end).writerows(lines)
    return table.getvalue(), sorted(set(totals) - set(sure))


def _cells(text, column):
    """Return the delimiter by which a line has the cell `column`, and all lines."""
    for delimiter in DELIMITERS:
        lines = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
        if any(column in line for line in lines):
            return delimiter, lines
    first = next((line for line in text.splitlines() if line.strip()), "nothing")
    raise ValueError(f"no column is called {column!r}: the table begins with {first!r}")


def _places(names, people, k):
    """Return the lines in which each name stands in column `k`."""
    lines = {}
    for number, line in enumerate(people):
        if len(line) > k and line[k].strip():
            lines.setdefault(line[k].strip(), []).append(number)
    return {
        name: lines.get(name) or sorted({n for part in name.split("_") for n in lines.get(part, ())}) for name in names
    }
