"""The conformance kit: `check_denoiser` asks whether a denoiser keeps the contract of its base class.

The checks are small and named. Each raises `AssertionError` with an example, says which
promise is broken and where the book explains it, and none knows the denoiser's formula:
where a `Penalty` or a `Prior` is given, the answer is compared with that, and otherwise
the denoiser with itself. The same checks serve by hand (`check_denoiser`), in pytest
(`parametrize_with_denoiser_checks`) and in the grader (`run_checks`).
"""

import html
import sysconfig
import traceback
from dataclasses import dataclass
from pathlib import Path

from ._contract_checks import CONTRACT_CHECKS, Check, trial_of
from ._theory_checks import THEORY_CHECKS
from ._trials import Limit, Problem, Trial, count_lines, draw_problem
from ._validation import check_integer, check_rng
from .denoisers import check_is_denoiser

__all__ = [
    "CHECKS",
    "Check",
    "CheckReport",
    "CheckResult",
    "Limit",
    "Problem",
    "Trial",
    "check_denoiser",
    "count_lines",
    "draw_problem",
    "parametrize_with_denoiser_checks",
    "run_checks",
]

# on a page of the book tables in outputs have no padding of their own
CELL = "text-align:left;vertical-align:top;padding:0.2em 0.8em 0.2em 0"

LIBRARIES = (
    str(Path(__file__).parent),
    *map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib")),
)

CHECKS = {check.name: check for check in (*CONTRACT_CHECKS, *THEORY_CHECKS)}


@dataclass(frozen=True)
class CheckResult:
    """One check: its name, whether it passed, what was found, the promise in a sentence, and where to read about it."""

    name: str
    passed: bool
    message: str = ""
    contract: str = ""
    read: str = ""


@dataclass(frozen=True)
class CheckReport:
    """All results of `check_denoiser`: a text to print, and as the value of a notebook cell a table with links."""

    denoiser: str
    results: tuple

    passed = property(
        lambda self: all(result.passed for result in self.results),
        doc="Whether every check passed.",
    )
    failures = property(
        lambda self: tuple(r for r in self.results if not r.passed),
        doc="The results that did not pass.",
    )

    def require(self, name, gate=()):
        """Raise unless the check `name` passed, and one of the checks named in `gate` at least.

        Raises
        ------
        AssertionError
            With what was found, what was promised, and what to read.

        Examples
        --------
        >>> from amptutorial.denoisers import Ridge
        >>> check_denoiser(Ridge(1.0)).require("shapes", gate=["optimality", "limits"])
        """
        results = {result.name: result for result in self.results}
        result = results[name]
        assert result.passed, (
            f"{result.message}\nThe promise: {result.contract}\nRead: {result.read}"
        )
        opens = [each for each in gate if each in results]
        assert not opens or any(results[each].passed for each in opens), (
            f"{name} passes, and counts as soon as one of these does: {', '.join(opens)}"
        )

    def _title(self):
        return f"{self.denoiser}: {len(self.results) - len(self.failures)} of {len(self.results)} checks passed"

    def __str__(self):
        lines = [self._title()]
        for r in self.results:
            lines.append(
                f"{'pass' if r.passed else 'FAIL'}  {r.name}{': ' + r.message if r.message else ''}"
            )
            if not r.passed:
                lines += [f"      the promise: {r.contract}", f"      read: {r.read}"]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self):
        head = "".join(
            f'<th scope="col" style="{CELL}">{name}</th>'
            for name in ("check", "", "found", "read")
        )
        caption = f"<caption>{html.escape(self._title())}</caption>"
        rows = "".join(map(_table_row, self.results))
        return f'<table class="amp-report">{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'


def _table_row(result):
    chapter = result.read.rsplit("/", 1)[-1].partition(".html")[0]
    found = html.escape(result.message)
    if not result.passed:
        found = f"<em>{html.escape(result.contract)}</em><br>{found}"
    link = (
        f'<a href="{html.escape(result.read)}">{chapter[:2].lstrip("0")}</a>'
        if chapter[:2].isdigit()
        else ""
    )
    cells = (
        result.name,
        "pass" if result.passed else "<strong>FAIL</strong>",
        found,
        link and f"chapter {link}",
    )
    return (
        "<tr>" + "".join(f'<td style="{CELL}">{cell}</td>' for cell in cells) + "</tr>"
    )


def check_denoiser(denoiser, *, belief=None, d=3, n_rows=40, rng=None):
    """Try every check that applies on random rows.

    Parameters
    ----------
    denoiser : Denoiser
    belief : amptutorial.beliefs.Penalty or Prior, optional
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
        If `denoiser` is no `Denoiser`: derive the class from it.

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
    ['jacobian', 'state_evolution']
    """
    check_is_denoiser(denoiser, "denoiser")
    trial = trial_of(
        denoiser, belief=belief, d=check_integer(d, "d", minimum=1),
        n_rows=check_integer(n_rows, "n_rows", minimum=2), rng=None if rng is None else check_rng(rng),
    )  # fmt: skip
    return run_checks(repr(denoiser), [trial], CHECKS.values())


def run_checks(title, trials, checks):
    """Run `checks` on all `trials`; a check passes if it passes in every trial to which it applies.

    Parameters
    ----------
    title : str
        The first words of the report.
    trials : list of Trial
        The `title` of a trial goes before what was found there.
    checks : iterable of Check
        The values of `CHECKS`, or some of them, or others.

    Returns
    -------
    CheckReport
        Without the checks that apply to no trial.

    Examples
    --------
    >>> import numpy as np
    >>> from amptutorial.denoisers import Ridge
    >>> problem = draw_problem(40, 2, np.random.default_rng(0))
    >>> print(run_checks("ridge", [Trial(lambda: Ridge(1.0), problem)], [CHECKS["shapes"], CHECKS["deterministic"]]))
    ridge: 2 of 2 checks passed
    pass  shapes
    pass  deterministic
    """
    return CheckReport(
        title, tuple(filter(None, (_run(check, trials) for check in checks)))
    )


def _run(check, trials):
    """Return the `CheckResult`, or None if the check applies to no trial."""
    notes, applied = [], False
    for trial in trials:
        try:
            if not check.applies(trial):
                continue
            applied = True
            notes.append(check.measure(trial))
        except Exception as error:  # noqa: BLE001 - the report must survive any student's code
            return _result(
                check,
                False,
                f"{trial.title}: " * bool(trial.title) + describe_error(error),
            )
    return _result(check, True, "; ".join(filter(None, notes))) if applied else None


def _result(check, passed, message):
    return CheckResult(check.name, passed, message, check.contract, check.read)


def describe_error(error):
    """Return what went wrong in a check: its message, or the error of the denoiser with its line."""
    return (
        str(error)
        if isinstance(error, AssertionError)
        else f"raised {type(error).__name__}: {error}{_line(error)}"
    )


def _line(error):
    """Return the last line of a file outside this package and the installed ones that the error came from, if any."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if path.is_file() and not any(
            str(path).startswith(folder) for folder in LIBRARIES
        ):
            return f" ({path.name}, line {frame.lineno})"
    return ""


def parametrize_with_denoiser_checks(denoisers):
    """Return a pytest decorator that gives a test every pair of a denoiser and a check that applies to it.

    Parameters
    ----------
    denoisers : list of Denoiser or Trial
        A `Trial` adds a belief, limits, or rows of one's own.

    Examples
    --------
    >>> from amptutorial.denoisers import Lasso, Ridge
    >>> @parametrize_with_denoiser_checks([Ridge(1.0), Lasso(0.5)])
    ... def test_contract(denoiser, check):
    ...     check(denoiser)
    """
    import pytest

    trials = [each if isinstance(each, Trial) else trial_of(each) for each in denoisers]
    return pytest.mark.parametrize(
        ("denoiser", "check"),
        [
            pytest.param(trial, check, id=f"{number}-{check.name}")
            for number, trial in enumerate(trials, 1)
            for check in CHECKS.values()
            if _may_apply(check, trial)
        ],
    )


def _may_apply(check, trial):
    """Say whether the check applies; a denoiser that cannot even be made is left for the test to report."""
    try:
        return check.applies(trial)
    except Exception:  # noqa: BLE001
        return True
