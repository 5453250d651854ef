"""What a check is given: a denoiser, rows to try it on, and its belief."""

import itertools
import sys
import sysconfig
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ..denoisers import Denoiser
from .beliefs import Belief, Penalty, Prior
from .verdict import require_number, require_pair

LIBRARIES = tuple(
    map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib"))
)

ILL = "an F with the eigenvalue 1e-4"


@dataclass(frozen=True)
class Problem:
    """Rows on which a denoiser is tried.

    F is symmetric and positive definite.
    """

    P: np.ndarray  # (N, d)
    r: np.ndarray  # (N,)
    F: np.ndarray  # (d, d)

    def copies(self):
        """Return fresh copies `(P, r, F)`, for a denoiser that may write into them."""
        return self.P.copy(), self.r.copy(), self.F.copy()

    def rows(self, index):
        """Return the problem with the rows `index` alone."""
        return Problem(self.P[index], self.r[index], self.F)

    def with_F(self, F):
        """Return the problem with another F."""
        return Problem(self.P, self.r, F)

    def in_units(self, unit):
        """Return the same problem with other units of x: r is `unit` times as large."""
        return Problem(self.P / np.sqrt(unit), self.r * unit, self.F / unit)

    def at_one(self):
        """Return what a single row asks about u = x / sqrt(r), at r = 1."""
        return Problem(np.sqrt(self.r) * self.P, np.ones(1), self.r[0] * self.F)

    def hard(self):
        """Return extreme problems made from this one, by what is extreme in each."""
        P, r, F = self.copies()
        d = len(F)
        V = np.linalg.eigh(F)[1]
        # not worse: coordinate descent, a right solution, needs as many steps as the
        # condition number
        ill = (V * np.geomspace(1e-4, 1, d)) @ V.T if d > 1 else 1e-4 * F
        tiny, huge = np.array([1e-10]), np.array([1e10])
        larger = np.vstack([1e6 * P[:1], P[1:]])
        number = np.add.outer(np.arange(len(P)), np.arange(d))
        # some entries of even rows, all but one of odd ones. The others are positive:
        # where a minimiser is zero, an entry of p that is zero too may lie on a kink
        absent = np.where(number[:, :1] % 2, number % d > 0, number % 3 == 0)
        return {
            "a tiny r = 1e-10": Problem(P[:1], tiny, F),
            "a huge r = 1e10, and p 1e5 times as large": Problem(1e5 * P[:1], huge, F),
            ILL: Problem(P, r, (ill + ill.T) / 2),
            "P = 0": Problem(0 * P, r, F),
            "zeros in P": Problem(np.where(absent, 0, np.abs(P)), r, F),
            "a row of P that is 1e6 times as large as others": Problem(larger, r, F),
            "a single row": self.rows([0]),
        }

    def indefinite(self, convexity):
        """Return the problem with an F whose least eigenvalue is half of -convexity."""
        w, V = np.linalg.eigh(self.F)
        F = (V * [-convexity / 2, *w[1:]]) @ V.T
        return self.with_F((F + F.T) / 2)


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


def count_lines(denoiser, method, P, r, F):
    """Count the lines of Python that a call of `method` executes, in all its threads.

    A call into an installed library counts as a line, and what it executes does not:
    how it goes about a sum is its own. The seconds that the call took are returned too.

    Examples
    --------
    >>> from amptutorial.denoisers import Ridge
    >>> def lines(N):
    ...     rows = np.ones((N, 2)), np.ones(N), np.eye(2)
    ...     return count_lines(Ridge(1.0), "estimate", *rows)[0]
    >>> lines(1) == lines(50)
    True
    """
    counter, start = itertools.count(), time.perf_counter()  # threads share it
    with _threads_that_count(counter):
        traced(counter, getattr(denoiser, method), P, r, F)
    return next(counter), time.perf_counter() - start


def traced(counter, function, *arguments):
    """Call a function in this thread, and advance the counter by a step for each line.

    Nothing else in the package sets a trace function.
    """

    def trace(frame, event, argument):
        if frame.f_code.co_filename.startswith(LIBRARIES):
            if not frame.f_back.f_code.co_filename.startswith(LIBRARIES):
                next(counter)  # `map` calls it without a line
            return None
        if event == "line":
            next(counter)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return function(*arguments)
    finally:
        sys.settrace(before)


@contextmanager
def _threads_that_count(counter):
    """Let threads that are started meanwhile advance the counter too."""
    run = threading.Thread.run
    threading.Thread.run = lambda thread: traced(counter, run, thread)
    try:
        yield
    finally:
        threading.Thread.run = run


def ready_made(cls):
    """Return the names of the package's denoisers in a class's ancestry and file.

    Examples
    --------
    >>> from amptutorial.denoisers import Ridge
    >>> ready_made(type("RidgeByHand", (Ridge,), {}))
    ['LinearDenoiser', 'Ridge']
    """
    file = sys.modules.get(cls.__module__)
    names = {} if file is None else vars(file)
    classes = {x for x in (*cls.__mro__, *names.values()) if isinstance(x, type)}
    return sorted(
        x.__name__
        for x in classes - {Denoiser}
        if issubclass(x, Denoiser) and x.__module__ == Denoiser.__module__
    )


def is_own(denoiser, method):
    """Say whether a method is other than that of the base class.

    It may hang on the denoiser itself, as a function made in its constructor does.

    Examples
    --------
    >>> from amptutorial.denoisers import Ridge
    >>> is_own(Ridge(1.0), "penalty"), is_own(Ridge(1.0), "refit")
    (True, False)
    """
    bound = getattr(denoiser, method)
    return getattr(bound, "__func__", bound) is not getattr(Denoiser, method)


@dataclass(frozen=True)
class Trial:
    """A denoiser, rows to try it on, and the belief that it should hold.

    ``make(**changes)`` returns the denoiser, with some constructor parameters changed.
    `count_lines` is another one where the denoiser runs in another process.
    """

    make: Callable[..., Denoiser]
    problem: Problem
    belief: Belief | None = None
    limits: tuple[Limit, ...] = ()
    title: str = ""  # which setting this is, where there are several
    count_lines: Callable[..., tuple[int, float]] = field(default=count_lines)
    relatives: tuple["Trial", ...] = ()  # for `promise_everywhere`, of other parameters
    seed: int | None = 0  # of that check; None where it asks on behalf of a relative

    @property
    def d(self):
        """The length of a row."""
        return self.problem.P.shape[1]

    @cached_property
    def denoiser(self):
        """The denoiser, made on first use.

        A denoiser that cannot be made fails the checks, and not the collection of them.
        """
        return self.make()

    def own(self, *methods):
        """Return those of the methods that are other than the base class's.

        Those of the base class ask `estimate`, often: they keep what that promises.
        """
        return [name for name in methods if is_own(self.denoiser, name)]

    def inherits(self, method):
        """Say whether `method`, of the denoiser that AMP asks, is the base class's."""
        return not self.own("denoise", method)

    @cached_property
    def has_answer(self):
        """Whether the belief says what estimates are, without a search.

        It does if a penalty has its proximal map, and if the log partition function of
        a prior has the derivative that a complex step finds.
        """
        if isinstance(self.belief, Penalty):
            return type(self.belief).prox is not Penalty.prox
        if not isinstance(self.belief, Prior):
            return False
        P, r, F = self.problem.rows([0]).copies()
        log_partition = self.belief.log_partition
        try:
            slope = log_partition(P + 1e-20j, r, F).imag / 1e-20
        except (TypeError, ValueError):
            return False
        steps = [log_partition(P + h, r, F) for h in (1e-5, -1e-5)]
        return np.allclose(slope, np.subtract(*steps) / 2e-5, rtol=1e-3, atol=1e-6)

    @cached_property
    def entry_size(self):
        """The root mean square of an entry of u, by the law of the belief."""
        u = self.belief.rows.draw((30_000, self.d), rng=np.random.default_rng(0))
        return np.sqrt(np.mean(u**2))

    @cached_property
    def first(self):
        """Copies of the estimate and of the mean Jacobian, as they are given first."""
        return self.estimate().copy(), self.mean_jacobian().copy()

    def estimate(self, problem=None):
        """Return the estimate for `problem`, or for the trial's own."""
        return np.asarray(self.denoiser.estimate(*(problem or self.problem).copies()))

    def mean_jacobian(self, problem=None):
        """Return the mean Jacobian for `problem`, or for the trial's own."""
        rows = (problem or self.problem).copies()
        return np.asarray(self.denoiser.mean_jacobian(*rows))

    def denoise(self, problem=None):
        """Return the estimate and the mean Jacobian that AMP is given."""
        pair = self.denoiser.denoise(*(problem or self.problem).copies())
        return tuple(map(np.asarray, require_pair(pair)))

    def penalty(self, X, r):
        """Return the denoiser's penalty of the rows `X`, a number."""
        return require_number(self.denoiser.penalty(X.copy(), r.copy()), "penalty")

    def penalties(self, X, r):
        """Return g(x_i / sqrt(r_i)) of each row of `X`, shape (N,).

        The belief knows g; where there is none, the denoiser is asked.
        """
        if isinstance(self.belief, Penalty):
            return np.asarray(self.belief.value(X / np.sqrt(r)[:, None]))
        rows = zip(X[:, None], r[:, None], strict=True)
        return np.array([self.penalty(x, s) for x, s in rows])

    def convexity(self, r):
        """Return the denoiser's convexity at the rates `r`, a number."""
        return require_number(self.denoiser.convexity(r.copy()), "convexity")


def trial_of(denoiser, *, belief=None, d=3, n_rows=40, rng=None):
    """Return a `Trial` of a denoiser that has been made, on random rows."""
    rng = np.random.default_rng(0) if rng is None else rng
    problem = draw_problem(n_rows, d, rng=rng, rows=belief and belief.rows)
    return Trial(lambda: denoiser, problem, belief, seed=int(rng.integers(2**31)))


def draw_problem(n_rows, d, *, rng, rows=None):
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
    >>> draw_problem(5, 2, rng=np.random.default_rng(0)).P.shape
    (5, 2)
    """
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
    F = (basis * np.geomspace(0.3, 9.0, d)) @ basis.T
    r = np.exp(rng.uniform(-2.3, 2.3, n_rows))
    size = (n_rows, d)
    U = rng.standard_normal(size) if rows is None else rows.draw(size, rng=rng)
    return Problem(observe(U, r, F, rng=rng)[1], r, (F + F.T) / 2)


def observe(U, r, F, *, rng):
    """Return the rows x = sqrt(r) u, and a p = x F + N(0, F) for each.

    Parameters
    ----------
    U : array (N, d)
    r : array (N,)
    F : array (d, d)
    rng : numpy.random.Generator

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> U, r = np.ones((10_000, 1)), np.full(10_000, 4.0)
    >>> X, P = observe(U, r, 9 * np.eye(1), rng=rng)
    >>> X.mean(), P.mean().round(), P.var().round()
    (np.float64(2.0), np.float64(18.0), np.float64(9.0))
    """
    X = np.sqrt(r)[:, None] * U
    return X, X @ F + rng.standard_normal(X.shape) @ np.linalg.cholesky(F).T
