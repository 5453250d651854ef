"""What a check is given: rows to try a denoiser on, and what is known of the belief it should hold."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from .beliefs import Belief
from .denoisers import Denoiser


@dataclass(frozen=True)
class Problem:
    """Rows on which a denoiser is tried: `P` (N, d), `r` (N,), a symmetric positive definite `F` (d, d)."""

    P: np.ndarray
    r: np.ndarray
    F: np.ndarray

    def copies(self):
        """Return fresh copies `(P, r, F)`: a denoiser that writes into them spoils nothing but its own answer."""
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
    expected: Callable
    tolerance: float = 1e-4


def count_lines(denoiser, method, P, r, F):
    """Return `(lines, seconds)`: how many lines of Python a call of `method` executes, and how long it takes.

    Examples
    --------
    >>> from amptutorial.denoisers import Ridge
    >>> one, many = (count_lines(Ridge(1.0), "estimate", np.ones((N, 2)), np.ones(N), np.eye(2))[0] for N in (1, 50))
    >>> one == many
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
    limits: tuple = ()
    title: str = ""
    count_lines: Callable = field(default=count_lines)

    @cached_property
    def denoiser(self):
        """The denoiser, made at the first look: one that cannot be made fails the checks, not their collection."""
        return self.make()

    def estimate(self, problem=None):
        """Return the estimate for `problem`, or for the trial's own."""
        return np.asarray(self.denoiser.estimate(*(problem or self.problem).copies()))

    def mean_jacobian(self, problem=None):
        """Return the mean Jacobian for `problem`, or for the trial's own."""
        return np.asarray(
            self.denoiser.mean_jacobian(*(problem or self.problem).copies())
        )

    def denoise(self, problem=None):
        """Return the estimate and the mean Jacobian that AMP is given, for `problem`, or for the trial's own."""
        pair = self.denoiser.denoise(*(problem or self.problem).copies())
        assert isinstance(pair, tuple | list) and len(pair) == 2, (
            "denoise must return (estimate, mean_jacobian), a pair"
        )
        return tuple(map(np.asarray, pair))


def draw_problem(n_rows, d, rng, rows=None):
    """Return a `Problem`: an F with condition number 30, rates over two decades, rows of the size AMP would meet.

    Parameters
    ----------
    n_rows, d : int
    rng : numpy.random.Generator
    rows : row law, optional
        Of u; standard normal if left out.

    Examples
    --------
    >>> draw_problem(5, 2, np.random.default_rng(0)).P.shape
    (5, 2)
    """
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
    F = (basis * np.geomspace(0.3, 9.0, d)) @ basis.T
    r = np.exp(rng.uniform(-2.3, 2.3, n_rows))
    U = (
        rng.standard_normal((n_rows, d))
        if rows is None
        else rows.draw((n_rows, d), rng)
    )
    noise = rng.standard_normal((n_rows, d)) @ np.linalg.cholesky(F).T
    return Problem(np.sqrt(r)[:, None] * U @ F + noise, r, (F + F.T) / 2)
