"""The record of a graded submission: what was found, and what that earns."""

import json
from dataclasses import asdict, dataclass, field

from amptutorial.checks import CheckResult


@dataclass(frozen=True)
class Mark:
    """A check with its points.

    Attributes
    ----------
    points, most : float
        How many it earns, of how many. A check that passed may earn nothing: see
        `Assignment.essential`.
    result : CheckResult
    """

    points: float
    most: float
    result: CheckResult


@dataclass(frozen=True)
class Record:
    """What was found about a submission; points are those of the assignment today.

    Attributes
    ----------
    status : str
        "graded", or why nothing could be checked.
    results : tuple of CheckResult
        None where nothing could be checked.
    seconds : dict
        Of the processor, that the submission took for each check.
    printed, traceback : str
        The end of what the submission printed, and the error that ended it.
    timed_out : bool
        Whether time ran out: on a quieter machine more could be found.
    fault : str
        What failed in the grader, for whoever runs it.
    note : str
        Which file was taken, where there were several.
    student : str
    key : str
        What the record depends on, as a hash (`rules.Rules.key`); empty if the grading
        has to be repeated.
    """

    status: str
    results: tuple[CheckResult, ...] = ()
    seconds: dict = field(default_factory=dict)
    printed: str = ""
    traceback: str = ""
    timed_out: bool = False
    fault: str = ""
    note: str = ""
    student: str = ""
    key: str = ""

    def marks(self, task):
        """Return a `Mark` for each check of an assignment."""
        found = {result.name: result for result in self.results}
        earning = {name for name, result in found.items() if result.passed}
        if not earning.intersection(task.essential):
            earning = set()
        return [
            Mark(most if name in earning else 0, most, found.get(name) or CheckResult(name, False, "not run"))
            for name, most in task.points.items()
        ]

    def total(self, task):
        """Return the sum of the points."""
        return sum(mark.points for mark in self.marks(task))

    def told(self, task):
        """Return the status, with what its student should know beside the checks."""
        worthless = self.results and not self.total(task)
        known = {
            self.status: True,
            f"without {' or '.join(task.essential)} nothing else earns points": worthless,
            "time ran out; if the file ends when you run it, ask for another run": self.timed_out,
            self.note: self.note,
        }
        return "; ".join(text for text, applies in known.items() if applies)

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
        >>> record = Record("graded", (CheckResult("shapes", True),))
        >>> Record.from_json(record.to_json()) == record
        True
        """
        try:
            fields = json.loads(text)
            return cls(results=tuple(CheckResult(**each) for each in fields.pop("results")), **fields)
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"not a record of a submission: {error}") from None
