"""The kit at work: run the checks that apply, and report what was found."""

import html
import re
import traceback
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .._validation import check_integer, check_rng
from ..denoisers import Denoiser, check_is_denoiser
from .beliefs import Belief
from .lines import LIBRARIES
from .promises import CHECKS
from .trials import trial_of
from .verdict import Malformed, setting_of

# on a page of the book tables in outputs have no padding of their own
CELL = "text-align:left;vertical-align:top;padding:0.2em 0.8em 0.2em 0"

UNASKED = r"raised (NotImplementedError|NotRun): (.*)"


@dataclass(frozen=True)
class CheckResult:
    """What came of one check; `name`, `contract` and `read` are those of `Check`."""

    name: str
    passed: bool
    message: str = ""  # what was found
    contract: str = ""
    read: str = ""

    def _told(self):
        """Return a verdict, and what was found.

        A starter raises NotImplementedError with what is to be written, and a grader
        NotRun when time is up: such checks wait.
        """
        waits = re.search(UNASKED, self.message)
        if self.passed or not waits:
            return "pass" if self.passed else "FAIL", self.message
        why = "not run" if waits[1] == "NotRun" else "not written yet"
        return "wait", f"{why}: {waits[2]}"


@dataclass(frozen=True)
class CheckReport:
    """All results of `check_denoiser`.

    It prints as a text, and is a table with links where a notebook shows it. Checks
    that wait for the same, or have found the same, share a line.
    """

    denoiser: str
    results: tuple[CheckResult, ...]

    @property
    def passed(self):
        """Whether every check passed."""
        return not self.failures

    @property
    def failures(self):
        """The results that did not pass."""
        return tuple(result for result in self.results if not result.passed)

    def _title(self):
        n, n_passed = len(self.results), len(self.results) - len(self.failures)
        return f"{self.denoiser}: {n_passed} of {n} checks passed"

    def _rows(self):
        """Return a verdict, names of checks, what was found, and one of the results."""
        rows: dict[tuple, list] = {}
        for one in self.results:
            # who passes has a line alone
            rows.setdefault((*one._told(), one.passed and one.name), []).append(one)
        every = [
            (verdict, ", ".join(one.name for one in row), found, row[0])
            for (verdict, found, _), row in rows.items()
        ]
        return sorted(every, key=lambda row: row[0] != "wait")

    def __str__(self):
        lines = [self._title()]
        for verdict, names, found, one in self._rows():
            lines.append(f"{verdict}  {names}{': ' * bool(found)}{found}")
            if verdict == "FAIL":
                lines += [
                    f"      the promise: {one.contract}",
                    f"      read: {one.read}",
                ]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self):
        columns = ("check", "", "found", "read")
        head = (f'<th scope="col" style="{CELL}">{name}</th>' for name in columns)
        rows = []
        for verdict, names, found, one in self._rows():
            found, link = html.escape(found), ""
            if verdict == "FAIL":
                found = f"<em>{html.escape(one.contract)}</em><br>{found}"
                verdict = "<strong>FAIL</strong>"
            chapter = re.search(r"/0?(\d+)_\w+\.html", one.read)
            if chapter and "wait" not in verdict:
                link = f'chapter <a href="{html.escape(one.read)}">{chapter[1]}</a>'
            cells = (
                f'<td style="{CELL}">{x}</td>' for x in (names, verdict, found, link)
            )
            rows.append(f"<tr>{''.join(cells)}</tr>")
        return (
            f'<table class="amp-report"><caption>{html.escape(self._title())}</caption>'
            f"<thead><tr>{''.join(head)}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        )


def check_denoiser(
    denoiser: Denoiser,
    *,
    belief: Belief | None = None,
    d: int = 3,
    n_rows: int = 40,
    rng: np.random.Generator | None = None,
) -> CheckReport:
    """Try every check that applies on random rows.

    Parameters
    ----------
    denoiser : Denoiser
    belief : amptutorial.checks.beliefs.Penalty or Prior, optional
        What the denoiser should believe. Without it a minimiser is checked against its
        own `penalty`, and a posterior mean only for what all of them have in common.
    d, n_rows : int
        Size of the rows tried; pass the d of a denoiser that works for one dimension
        only.
    rng : numpy.random.Generator, optional
        For the rows tried; the same rows on every call if left out.

    Returns
    -------
    CheckReport
        ``.passed``, ``.failures``, and a text to print.

    Raises
    ------
    TypeError
        If `denoiser` is not a `Denoiser`: derive the class from it.

    Examples
    --------
    >>> import numpy as np
    >>> from amptutorial.denoisers import Ridge
    >>> class Forgetful(Ridge):
    ...     def denoise(self, P, r, F):
    ...         return self.estimate(P, r, F), np.eye(P.shape[1])
    ...     def estimate(self, P, r, F):
    ...         return Ridge.denoise(self, P, r, F)[0]
    >>> [result.name for result in check_denoiser(Forgetful(1.0)).failures]
    ['jacobian', 'right_answers', 'state_evolution']
    """
    check_is_denoiser(denoiser, "denoiser")
    d = check_integer(d, "d", minimum=1)
    n_rows = check_integer(n_rows, "n_rows", minimum=2)
    rng = None if rng is None else check_rng(rng)
    trial = trial_of(denoiser, belief=belief, d=d, n_rows=n_rows, rng=rng)
    return run_checks(repr(denoiser), [trial], CHECKS.values())


def run_checks(title, trials, checks):
    """Run `checks` on all `trials`.

    A check passes if it passes in every trial to which it applies.

    Parameters
    ----------
    title : str
        The first words of the report.
    trials : list of Trial
    checks : iterable of Check

    Returns
    -------
    CheckReport
        Without the checks that apply to no trial. Where an answer has a wrong type or
        shape, the check that says so is the last one.

    Examples
    --------
    >>> import numpy as np
    >>> from amptutorial.checks import Trial, draw_problem
    >>> from amptutorial.denoisers import Ridge
    >>> problem = draw_problem(40, 2, rng=np.random.default_rng(0))
    >>> trial = Trial(lambda: Ridge(1.0), problem)
    >>> print(run_checks("ridge", [trial], [CHECKS["shapes"], CHECKS["deterministic"]]))
    ridge: 2 of 2 checks passed
    pass  shapes
    pass  deterministic
    """
    results = []
    for check in checks:
        result, error = _run_check(check, trials)
        results += [] if result is None else [result]
        if isinstance(error, Malformed):
            break
    return CheckReport(title, tuple(results))


def _run_check(check, trials):
    """Return the `CheckResult`, or None if the check applies to no trial; its error."""
    notes = []
    for trial in trials:
        try:
            if check.applies(trial):
                notes.append(check.measure(trial))
        # the report must survive any student's code
        except Exception as error:  # noqa: BLE001
            return _result(check, False, describe_error(error, trial.title)), error
    if not notes:
        return None, None
    told = dict.fromkeys(filter(None, notes))  # once
    return _result(check, True, "; ".join(told)), None


def _result(check, passed, message):
    return CheckResult(check.name, passed, message, check.contract, check.read)


def describe_error(error, title=""):
    """Return what went wrong in a check, in words for the author of the denoiser.

    That is the message of the check, or the error of the denoiser with its line. The
    `title` of the trial, if there is one, comes first.

    Examples
    --------
    >>> describe_error(AssertionError("row 3 is wrong")), describe_error(KeyError("u"))
    ('row 3 is wrong', "raised KeyError: 'u'")
    """
    where = setting_of(error, title)
    if isinstance(error, AssertionError):
        return f"{where}{error}"
    return f"{where}raised {type(error).__name__}: {error}{_line(error)}"


def _line(error):
    """Return the file and line that an error came from, or an empty text.

    It is the last line that belongs neither to an installed package nor to the book's.
    """
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        path, module = Path(frame.f_code.co_filename), frame.f_globals.get("__name__")
        ours = str(module).startswith("amptutorial") or str(path).startswith(LIBRARIES)
        if path.is_file() and not ours:
            return f" ({path.name}, line {line})"
    return ""
