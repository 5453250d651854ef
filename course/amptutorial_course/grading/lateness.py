"""Deadlines, extensions, and what a late submission costs."""

import math
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta

from amptutorial._validation import check_positive

DAY = timedelta(days=1)
NAMES = ("deadlines", "grace_minutes", "points_a_day", "most_points", "extensions")


@dataclass(frozen=True)
class Lateness:
    """The rule for one assignment.

    Attributes
    ----------
    deadline : datetime, optional
        Nothing is late without one. A day without an hour lasts to its end.
    grace : timedelta
        So much later costs nothing.
    points_a_day : float
        For every day that has begun, counted from the deadline.
    most_points : float
        The most that is subtracted.
    extensions : dict
        Later deadlines, by student.
    """

    deadline: datetime | None = None
    grace: timedelta = timedelta(0)
    points_a_day: float = 0.0
    most_points: float = 100.0
    extensions: dict = field(default_factory=dict)

    def points(self, student, handed_in):
        """Return the points that a student loses; none where no time is known.

        Examples
        --------
        >>> rule = Lateness(datetime(2026, 10, 15), points_a_day=10, most_points=25)
        >>> for hours in (-1, 1, 25, 1000):
        ...     print(rule.points("ada", rule.deadline + timedelta(hours=hours)))
        0.0
        10.0
        20.0
        25.0
        """
        deadline = self.extensions.get(student, self.deadline)
        if deadline is None or handed_in is None or handed_in <= deadline + self.grace:
            return 0.0
        days = math.ceil((handed_in - deadline) / DAY)
        return float(min(days * self.points_a_day, self.most_points))


def read_moment(text, where):
    """Return the time that a text says; without a zone, by the clock of this computer.

    A day without an hour is its first moment.

    Raises
    ------
    ValueError
        If it is not ISO 8601, nor as Moodle writes it.
    """
    for read in (datetime.fromisoformat, _read_moodle):
        try:
            return read(str(text).strip()).astimezone()
        except ValueError:
            continue
    raise ValueError(f"{where} is {text!r}: write a time as 2026-10-15 23:59")


def read_deadline(text, where):
    """Return what `read_moment` does, or of a day without an hour the last moment.

    Examples
    --------
    >>> print(read_deadline("2026-10-15", "the deadline").time())
    23:59:59.999999
    """
    moment = read_moment(text, where)
    try:
        day = date.fromisoformat(str(text).strip())
    except ValueError:
        return moment
    return datetime.combine(day, time.max).astimezone()


def _read_moodle(text):
    return datetime.strptime(text, "%A, %d %B %Y, %I:%M %p")


def as_names(value, where):
    """Return what a name in ``grading.yml`` holds as a dict, empty for nothing.

    Raises
    ------
    ValueError
        If it does not hold names.

    Examples
    --------
    >>> as_names(3, "weights")
    Traceback (most recent call last):
        ...
    ValueError: weights: expected names, each with a value, and found 3
    """
    if value is not None and not isinstance(value, dict):
        raise ValueError(
            f"{where}: expected names, each with a value, and found {value!r}"
        )
    return value or {}


def read_lateness(data, number, path):
    """Return the `Lateness` of an assignment, from ``lateness`` in ``grading.yml``.

    Raises
    ------
    ValueError
        If a name is unknown, a number negative or a time not readable.
    """
    data = as_names(data, f"lateness in {path}")
    unknown = set(data) - set(NAMES)
    if unknown:
        found, expected = ", ".join(map(str, unknown)), ", ".join(NAMES)
        raise ValueError(f"lateness in {path} has {found}; expected are {expected}")

    def number_of(name, default):
        where = f"{name} in {path}"
        return check_positive(data.get(name, default), where, zero=True)

    deadlines, every = (
        as_names(data.get(name), f"{name} in {path}")
        for name in ("deadlines", "extensions")
    )
    deadline = deadlines.get(number)
    extensions = as_names(
        every.get(number), f"the extensions of assignment {number} in {path}"
    )
    where = f"the deadline of assignment {number} in {path}"
    return Lateness(
        None if deadline is None else read_deadline(deadline, where),
        timedelta(minutes=number_of("grace_minutes", 0.0)),
        number_of("points_a_day", 0.0),
        number_of("most_points", 100.0),
        {
            str(name): read_deadline(moment, f"the extension of {name} in {path}")
            for name, moment in extensions.items()
        },
    )
