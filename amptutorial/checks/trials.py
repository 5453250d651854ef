"""What a check is given: a denoiser, rows to try it on, and its belief."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ..beliefs import Belief
from ..denoisers import Denoiser
from .verdict import require


@dataclass(frozen=True)
class Problem:
    """Rows on which a denoiser is tried.

    Attributes
    ----------
    P : array (N, d)
    r : array (N,)
    F : array (d, d)
        Symmetric and positive definite.
    """

    P: np.ndarray
    r: np.ndarray
    F: np.ndarray

    def copies(self):
        """Return fresh copies `(P, r, F)`, for a denoiser that may write into them."""
        return self.P.copy(), self.r.copy(), self.F.copy()

    def rows(self, index):
        """Return the problem with the rows `index` alone."""
        return Problem(self.P[index], self.r[index], self.F)


@dataclass(frozen=True)
class Limit:
    """What becomes of an estimate when a parameter goes to an end of its range.

    Attributes
    ----------
    text : str
        In words, such as ``"without a penalty the estimate is p F^-1"``.
    changes : dict
        Constructor parameters that are near the end.
    expected : callable (P, r, F) -> array (N, d)
    tolerance : float
        Relative to the largest entry of what is expected (or of p F^-1, where zero is
        expected).
    """

    text: str
    changes: dict
    expected: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    tolerance: float = 1e-4


def count_lines(denoiser, method, P, r, F):
    """Count the lines of Python that a call of `method` executes.

    Returns
    -------
    lines : int
    seconds : float
        How long the call took.

    Examples
    --------
    >>> from amptutorial.denoisers import Ridge
    >>> def lines(N):
    ...     return count_lines(
    ...         Ridge(1.0), "estimate", np.ones((N, 2)), np.ones(N), np.eye(2)
    ...     )[0]
    >>> lines(1) == lines(50)
    True
    """
    lines = 0

    def trace(frame, event, argument):
        nonlocal lines
        lines += event == "line"
        return trace

    before, start = sys.gettrace(), time.perf_counter()
    sys.settrace(trace)
    try:
        getattr(denoiser, method)(P, r, F)
    finally:
        sys.settrace(before)
    return lines, time.perf_counter() - start


@dataclass(frozen=True)
class Trial:
    """A denoiser, rows to try it on, and the belief that it should hold.

    Attributes
    ----------
    make : callable
        ``make(**changes)`` returns the denoiser, with some constructor parameters
        changed.
    problem : Problem
    belief : Belief, optional
    limits : tuple of Limit
    title : str
        Which setting this is, where there are several.
    count_lines : callable
        As `count_lines`; another one where the denoiser runs in another process.
    """

    make: Callable[..., Denoiser]
    problem: Problem
    belief: Belief | None = None
    limits: tuple[Limit, ...] = ()
    title: str = ""
    count_lines: Callable[..., tuple[int, float]] = field(default=count_lines)

    @cached_property
    def denoiser(self):
        """The denoiser, made on first use.

        A denoiser that cannot be made fails the checks, and not the collection of them.
        """
        return self.make()

    def estimate(self, problem=None):
        """Return the estimate for `problem`, or for the trial's own."""
        return np.asarray(self.denoiser.estimate(*(problem or self.problem).copies()))

    def mean_jacobian(self, problem=None):
        """Return the mean Jacobian for `problem`, or for the trial's own."""
        rows = (problem or self.problem).copies()
        return np.asarray(self.denoiser.mean_jacobian(*rows))

    def denoise(self, problem=None):
        """Return the estimate and the mean Jacobian that AMP is given.

        They are those of `problem`, or of the trial's own.
        """
        pair = self.denoiser.denoise(*(problem or self.problem).copies())
        require(
            isinstance(pair, tuple | list) and len(pair) == 2,
            "denoise must return (estimate, mean_jacobian), a pair",
        )
        return tuple(map(np.asarray, pair))

    def penalty(self, X, r):
        """Return the denoiser's penalty of the rows `X`, a number."""
        return _number(self.denoiser.penalty(X.copy(), r.copy()), "penalty")

    def convexity(self, r):
        """Return the denoiser's convexity at the rates `r`, a number."""
        return _number(self.denoiser.convexity(r.copy()), "convexity")


def _number(value, method):
    size = np.size(value)
    require(size == 1, f"{method} returns {size} values; expected one number")
    return np.asarray(value).item()


def trial_of(denoiser, *, belief=None, d=3, n_rows=40, rng=None):
    """Return a `Trial` of a denoiser that has been made, on random rows."""
    rng = np.random.default_rng(0) if rng is None else rng
    problem = draw_problem(n_rows, d, rng, belief and belief.rows)
    return Trial(lambda: denoiser, problem, belief)


def draw_problem(n_rows, d, rng, rows=None):
    """Return a `Problem` with rows of the size that AMP would meet.

    F has the condition number 30, and the rates r spread over two decades.

    Parameters
    ----------
    n_rows, d : int
    rng : numpy.random.Generator
    rows : RowLaw, optional
        Of u; standard normal if left out.

    Examples
    --------
    >>> draw_problem(5, 2, np.random.default_rng(0)).P.shape
    (5, 2)
    """
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
    F = (basis * np.geomspace(0.3, 9.0, d)) @ basis.T
    r = np.exp(rng.uniform(-2.3, 2.3, n_rows))
    size = (n_rows, d)
    U = rng.standard_normal(size) if rows is None else rows.draw(size, rng)
    noise = rng.standard_normal(size) @ np.linalg.cholesky(F).T
    return Problem(np.sqrt(r)[:, None] * U @ F + noise, r, (F + F.T) / 2)
