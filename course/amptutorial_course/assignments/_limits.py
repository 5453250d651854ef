"""The promise of an assignment about the ends of a parameter's range."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from amptutorial.checks import Check
from amptutorial.checks.verdict import require_rows

from ._parts import TrialInParts


@dataclass(frozen=True)
class Limit:
    """What becomes of an estimate when a parameter goes to an end of its range.

    `expected` returns an array (N, d) from P, r and F. The `tolerance` is relative to
    its largest entry (or to that of p F^-1, where zero is expected).
    """

    text: str  # such as "without a penalty the estimate is p F^-1"
    changes: dict  # constructor parameters that are near the end
    expected: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    tolerance: float = 1e-4


def zero(P, r, F):
    """Return rows that are zero."""
    return 0 * P


def unpenalised(P, r, F):
    """Return p F^-1."""
    return np.linalg.solve(F, P.T).T


@dataclass(frozen=True)
class SettingTrial(TrialInParts):
    """A `Trial` in a setting of an assignment, which knows limits."""

    limits: tuple[Limit, ...] = ()


def limits(trial: SettingTrial) -> None:
    """The estimate becomes what it must as a parameter goes to an end of its range."""
    P, r, F = trial.problem.copies()
    for limit in trial.limits:
        X = trial.make(**limit.changes).estimate(*trial.problem.copies())
        right = limit.expected(*trial.problem.copies())
        scale = np.abs(right).max() or np.abs(np.linalg.solve(F, P.T)).max()
        allowed = np.full(len(r), limit.tolerance * scale)
        name = f"with {limit.changes}, estimate"
        require_rows(name, X, trial.problem, right, allowed, advice=f". {limit.text}")


LIMITS = Check(limits, "05_denoisers.html#denoisers-rows", lambda trial: bool(trial.limits))
