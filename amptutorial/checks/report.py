"""The kit at work: run the checks that apply, and report what was found."""

import html
import re
import traceback
from dataclasses import dataclass, replace
from pathlib import Path

from .._validation import check_integer, check_rng
from ..denoisers import check_is_denoiser
from .contract import CONTRACT_CHECKS
from .everywhere import promise_everywhere
from .minimisers import MINIMISER_CHECKS
from .prediction import promise_state_evolution
from .priors import PRIOR_CHECKS
from .trials import LIBRARIES, trial_of
from .verdict import Malformed, require, setting_of

# on a page of the book tables in outputs have no padding of their own
CELL = "text-align:left;vertical-align:top;padding:0.2em 0.8em 0.2em 0"

_ALL = (
    *CONTRACT_CHECKS,
    *MINIMISER_CHECKS,
    *PRIOR_CHECKS,
    promise_everywhere,
    promise_state_evolution,
)
UNASKED = r"raised (NotImplementedError|NotRun): (.*)"
CHECKS = {check.name: check for check in _ALL}


@dataclass(frozen=True)
class CheckResult:
    """What came of one check; `name`, `contract` and `read` are those of `Check`."""

    name: str
    passed: bool
    message: str = ""  # what was found
    contract: str = ""
    read: str = ""
    inherited: bool = False  # whether the method that was tried is the base class's


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

    def require(self, name, gate=()):
        """Raise unless the check `name` and at least one of those in `gate` passed.

        Raises
        ------
        AssertionError
            With what was found, what was promised, and what to read.

        Examples
        --------
        >>> from amptutorial.denoisers import Ridge
        >>> report = check_denoiser(Ridge(1.0))
        >>> report.require("shapes", gate=["optimality", "limits"])
        """
        results = {result.name: result for result in self.results}
        # a check that was not run waits for the one that failed
        result = results[name] if name in results or self.passed else self.failures[0]
        require(
            result.passed,
            f"{result.message}\nThe promise: {result.contract}\nRead: {result.read}",
        )
        opens = [key for key in gate if key in results]
        require(
            not opens or any(results[key].passed for key in opens),
            f"{name} passes, and counts as soon as one of these does: "
            f"{', '.join(opens)}",
        )

    def _title(self):
        n, n_passed = len(self.results), len(self.results) - len(self.failures)
        return f"{self.denoiser}: {n_passed} of {n} checks passed"

    def __str__(self):
        waiting, others = _waiting(self.results)
        lines = [f"wait  {_waits(*item)}" for item in waiting.items()]
        return "\n".join([self._title(), *lines, *map(_text_lines, others)])

    __repr__ = __str__

    def _repr_html_(self):
        columns = ("check", "", "found", "read")
        cells = (f'<th scope="col" style="{CELL}">{name}</th>' for name in columns)
        waiting, others = _waiting(self.results)
        texts = (html.escape(_waits(*item)) for item in waiting.items())
        rows = [_row("", "wait", text, "") for text in texts]
        rows += map(_table_row, others)
        return (
            f'<table class="amp-report"><caption>{html.escape(self._title())}</caption>'
            f"<thead><tr>{''.join(cells)}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
        )


def _waiting(results):
    """Return the names of checks that wait, by what for; and the other results.

    A starter raises NotImplementedError with what is to be written, and a grader NotRun
    when time is up. Where several checks have found the same, they share a result.
    """
    waiting, others = {}, {}
    for result in results:
        unasked = re.search(UNASKED, result.message)
        if unasked and not result.passed:
            why = "not run" if unasked[1] == "NotRun" else "not written yet"
            waiting.setdefault(f"{why}: {unasked[2]}", []).append(result.name)
        else:
            found = result.name if result.passed else result.message
            others.setdefault(found, []).append(result)
    together = (
        replace(alike[0], name=", ".join(result.name for result in alike))
        for alike in others.values()
    )
    return waiting, list(together)


def _waits(why, names):
    checks = "1 check waits" if len(names) == 1 else f"{len(names)} checks wait"
    return f"{why}; {checks}: {', '.join(names)}"


def _text_lines(result):
    message = f": {result.message}" if result.message else ""
    if result.passed:
        return f"pass  {result.name}{message}"
    return (
        f"FAIL  {result.name}{message}\n"
        f"      the promise: {result.contract}\n      read: {result.read}"
    )


def _table_row(result):
    message = html.escape(result.message)
    if not result.passed:
        message = f"<em>{html.escape(result.contract)}</em><br>{message}"
    verdict = "pass" if result.passed else "<strong>FAIL</strong>"
    return _row(result.name, verdict, message, _chapter_link(result.read))


def _row(*cells):
    cells = (f'<td style="{CELL}">{cell}</td>' for cell in cells)
    return f"<tr>{''.join(cells)}</tr>"


def _chapter_link(url):
    """Return "chapter N" with a link, or nothing where `url` is not a chapter."""
    page = url.rsplit("/", 1)[-1]
    if not page[:2].isdigit():
        return ""
    return f'chapter <a href="{html.escape(url)}">{page[:2].lstrip("0")}</a>'


def check_denoiser(denoiser, *, belief=None, d=3, n_rows=40, rng=None):
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
    ['jacobian', 'everywhere', 'state_evolution']
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
        shape, the check that says so is the last one, after those that failed before.

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
    listed, by_name = list(checks), {}
    for check in sorted(listed, key=lambda check: check.last):
        try:
            by_name[check.name] = _run_check(check, trials)
        except Malformed as failure:
            failed = (one for one in by_name.values() if one and not one.passed)
            told = _result(check, False, str(failure))
            return CheckReport(title, (*failed, told))
    results = (by_name[check.name] for check in listed)
    return CheckReport(title, tuple(result for result in results if result is not None))


def _run_check(check, trials):
    """Return the `CheckResult`, or None if the check applies to no trial."""
    notes, applied = [], False
    for trial in trials:
        try:
            if not check.applies(trial):
                continue
            applied = True
            notes.append(check.measure(trial))
        except Malformed:
            raise
        # the report must survive any student's code
        except Exception as error:  # noqa: BLE001
            return _result(check, False, describe_error(error, trial.title))
    if not applied:
        return None
    inherited = bool(check.method) and any(t.inherits(check.method) for t in trials)
    notes += [f"{check.method} is inherited"] * inherited
    return _result(check, True, "; ".join(filter(None, notes)), inherited)


def _result(check, passed, message, *inherited):
    told = check.contract, check.read
    return CheckResult(check.name, passed, message, *told, *inherited)


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
