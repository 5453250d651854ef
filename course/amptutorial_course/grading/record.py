"""The record of a graded submission, which judge, classroom and feedback hand on."""

import json
from dataclasses import asdict, dataclass, field, replace

NOT_RUN = "not run"


@dataclass(frozen=True)
class Mark:
    """One check of a submission.

    Attributes
    ----------
    name : str
    points, most : float
        How many points it earns, of how many.
    passed : bool
        A check that passed may earn nothing: see `Assignment.essential`.
    message, contract, read : str
        As in `amptutorial.checks.CheckResult`.
    """

    name: str
    points: float
    most: float
    passed: bool
    message: str
    contract: str
    read: str


@dataclass(frozen=True)
class Record:
    """What was found about a submission.

    Attributes
    ----------
    status : str
        "graded", or why nothing could be checked.
    marks : tuple of Mark
        One for each check of the rules.
    printed, traceback : str
        The end of what the submission printed, and the error that ended it.
    student : str
    key : str
        What the record depends on, as a hash (`rules.Rules.key`); empty if the grading
        has to be repeated.
    log : dict
        When it was graded, in how many seconds, with which versions and which seed; the
        seed as a fingerprint.
    """

    status: str
    marks: tuple[Mark, ...]
    printed: str = ""
    traceback: str = ""
    student: str = ""
    key: str = ""
    log: dict = field(default_factory=dict)

    @property
    def total(self):
        """The sum of the points."""
        return round(sum(mark.points for mark in self.marks), 2)

    def to_json(self):
        """Return the record as a text that `from_json` reads."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text):
        """Return the record that `to_json` has written.

        Raises
        ------
        ValueError
            If the text is anything else.

        Examples
        --------
        >>> record = Record("graded", (Mark("shapes", 4.0, 4.0, True, "", "", ""),))
        >>> Record.from_json(record.to_json()) == record, record.total
        (True, 4.0)
        """
        try:
            fields = json.loads(text)
            marks = tuple(Mark(**mark) for mark in fields.pop("marks"))
            return cls(marks=marks, **fields)
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"not a record of a submission: {error}") from None


def make_record(task, status, results=(), printed="", traceback=""):
    """Return the record of a submission, from the results of its checks.

    Parameters
    ----------
    task : Assignment
    status : str
    results : iterable of CheckResult or Mark
        A check of the assignment without a result has not been run.
    printed, traceback : str
    """
    found = {result.name: result for result in results}
    earning = {name for name, result in found.items() if result.passed}
    if found and task.essential and not earning.intersection(task.essential):
        names = " or ".join(task.essential)
        status, earning = f"graded; without {names} nothing else earns points", set()
    marks = tuple(
        _mark(name, most if name in earning else 0, most, found.get(name)) for name, most in task.points.items()
    )
    return Record(status, marks, printed, traceback)


def settle(record, task):
    """Return the record with the points of today, from what its checks have found."""
    graded = record.status.startswith("graded")
    run = [mark for mark in record.marks if graded and mark.message != NOT_RUN]
    new = make_record(task, "graded" if graded else record.status, run)
    return replace(record, status=new.status, marks=new.marks)


def _mark(name, points, most, result):
    if result is None:
        return Mark(name, points, most, False, NOT_RUN, "", "")
    return Mark(
        name=name,
        points=points,
        most=most,
        passed=result.passed,
        message=result.message[:4000],
        contract=result.contract,
        read=result.read,
    )
