"""The list of the students: a CSV of one's own, of Canvas, Moodle or Gradescope."""

import csv
import io
import re
import unicodedata
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

from .submissions import Submission

# Columns that name a student, the first one found in the tables. "student" is a name in
# Canvas's gradebook, which has an "id" too.
IDENTITIES = (
    "username",
    "sis login id",
    "email address",
    "email",
    "sid",
    "sis user id",
    "identifier",
    "id number",
    "id",
)
NAMES = ("name", "full name", "student")
MISSING = "nothing was handed in"


@dataclass(frozen=True)
class Person:
    """A line of the roster.

    Attributes
    ----------
    student : str
        The name in the tables.
    keys : frozenset of str
        All that a file may call them by, normalised.
    group : str
        Who shares it shares what any of them hands in.
    handed_in : str
        A time that the roster gives, or "".
    line : dict
        The line, text by column.
    """

    student: str
    keys: frozenset
    group: str = ""
    handed_in: str = ""
    line: dict = field(default_factory=dict)


def normalised(text):
    r"""Return a name as names are compared.

    Examples
    --------
    >>> normalised(" Zoe\u0308 ") == normalised("ZO\u00cb")
    True
    """
    return unicodedata.normalize("NFC", str(text)).strip().casefold()


def read_table(path):
    """Return the lines of a CSV as dicts, and its columns.

    Raises
    ------
    ValueError
        If the file is no table in UTF-8.
    """
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
        reader = csv.DictReader(io.StringIO(text, newline=""), restval="")
        lines = list(reader)
    except OSError as error:
        raise ValueError(
            f"{path} cannot be read ({error.strerror}): name a CSV that is there"
        ) from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(
            f"{path} is not a CSV in UTF-8 ({error}): save it so"
        ) from None
    if not reader.fieldnames:
        raise ValueError(f"{path} is empty: its first line must name the columns")
    return lines, [name or "" for name in reader.fieldnames]


def read_roster(path):
    """Return the `Person` of every line of a roster.

    Parameters
    ----------
    path : Path
        A CSV with a column ``student`` and, if you like, ``name``, ``email``, ``group``
        and ``handed_in``; or the gradebook of Canvas, the grading worksheet or the
        participants of Moodle, the roster of Gradescope.

    Raises
    ------
    ValueError
        If no column names the students, a line names none, or two name the same one.
    """
    lines, columns = read_table(path)
    lower = {name.strip().casefold() for name in columns}
    own = ("student",) if "student" in lower and "id" not in lower else ()
    identities = (*own, *IDENTITIES)
    if not lower.intersection(identities):
        raise ValueError(
            f"{path} has no column that names the students: call one 'student', or "
            "take the gradebook of Canvas, the grading worksheet of Moodle or the "
            "roster of Gradescope"
        )
    people = {}
    for number, line in enumerate(lines, 2):
        cells = {(name or "").strip().casefold(): _text(v) for name, v in line.items()}
        if _is_no_student(cells):
            continue
        named = [cells[name] for name in identities if cells.get(name)]
        if not named:
            raise ValueError(f"{path}, line {number} names no student: complete it")
        if named[0] in people:
            raise ValueError(
                f"{path}, line {number}: {named[0]} has a line already: remove one"
            )
        people[named[0]] = Person(
            named[0],
            frozenset(_keys(named, cells)),
            cells.get("group", ""),
            cells.get("handed_in") or cells.get("last modified (submission)", ""),
            line,
        )
    if not people:
        raise ValueError(f"{path} names no student: add a line for each")
    return list(people.values())


def _text(value):
    return value.strip() if isinstance(value, str) else ""


def _is_no_student(cells):
    """Say whether it is an empty line, or one of Canvas about points."""
    first = cells.get("student", "").casefold()
    about = first == "points possible" or first.startswith("student, test")
    return about or not any(cells.values())


def _keys(named, cells):
    """Yield what files may call a student by."""
    for value in named:
        yield normalised(value)
        yield normalised(value.split("@")[0])
        participant = re.fullmatch(r"Participant (\d+)", value)
        if participant:
            yield participant[1]
    parts = cells.get("first name", ""), cells.get("last name", "")
    names = [cells.get(name, "") for name in NAMES] + [" ".join(filter(None, parts))]
    for name in filter(None, names):
        words = re.split(r"[\s,]+", normalised(name))
        last, comma, first = normalised(name).partition(",")
        turned = f"{first} {last}" if comma else f"{words[-1]} {' '.join(words[:-1])}"
        for each in (normalised(name), turned.strip()):
            yield each
            # Canvas writes the last name, then the first, and letters only
            yield "".join(filter(str.isalnum, each))


def enrol(submissions, people):
    """Return the submissions under the names of the roster, and those of nobody on it.

    A group's submission has the name of the group.

    Parameters
    ----------
    submissions : list of Submission
    people : list of Person

    Returns
    -------
    tuple (list of Submission, list of str)

    Raises
    ------
    ValueError
        If nobody on the roster has handed in anything.
    """
    counts = Counter(key for person in people for key in person.keys)
    index = {key: p for p in people for key in p.keys if counts[key] == 1}
    groups = {}
    for person in people:
        groups.setdefault(_unit(person), []).append(person)
    found, strangers = [], []
    for submission in submissions:
        members, name = [], ""
        for owner in submission.owners:
            keys = map(normalised, owner.keys)
            person = next((index[key] for key in keys if key in index), None)
            if person is None:
                strangers.append(owner.student)
                members.append(owner.student)
                continue
            members += [each.student for each in groups[_unit(person)]]
            name = name or person.group
        students = tuple(dict.fromkeys(members))
        name = name or " and ".join(students)
        found.append(replace(submission, student=name, students=students))
    if len(strangers) == sum(len(each.owners) for each in submissions):
        handed_in = ", ".join(sorted(set(strangers))[:3])
        listed = ", ".join(person.student for person in people[:3])
        raise ValueError(
            f"the roster does not match: submissions are of {handed_in}, and the "
            f"roster names {listed}: give it a column 'student' with the names of the "
            "submissions"
        )
    return found, sorted(set(strangers))


def _unit(person):
    """Return what a person hands in with others, or alone."""
    return (person.group,) if person.group else ("", person.student)


def missing_submissions(submissions, people):
    """Return a `Submission` for everybody on the roster who has none."""
    present = {student for each in submissions for student in each.students}
    return [
        Submission(person.student, MISSING, students=(person.student,))
        for person in people
        if person.student not in present
    ]


def number_attempts(submissions):
    """Return the submissions with the attempts of each student counted from 1.

    Their order is that of time where all of them have one, and otherwise that in which
    they are given.

    Examples
    --------
    >>> both = [Submission("ada", b"1"), Submission("ada", b"2")]
    >>> [each.attempt for each in number_attempts(both)]
    [1, 2]
    """
    by_student = {}
    for each in submissions:
        by_student.setdefault(each.student, []).append(each)
    numbered = []
    for student in sorted(by_student):
        attempts = by_student[student]
        if all(each.handed_in for each in attempts):
            attempts = sorted(attempts, key=lambda each: each.handed_in)
        numbered += [replace(s, attempt=k) for k, s in enumerate(attempts, 1)]
    return numbered
