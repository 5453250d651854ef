"""What a check is given: a denoiser, rows to try it on, and its belief."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from ..denoisers import Denoiser
from .beliefs import Belief, Penalty, Prior
from .lines import count_lines, loop_over_rows
from .problems import Problem, draw_problem
from .verdict import require_number, require_pair

METHODS = "estimate", "mean_jacobian", "denoise"
# so many random problems a student is asked, and so many a class
SHORT, LONG = 48, 120


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
    title: str = ""  # which setting this is, where there are several
    count_lines: Callable[..., int] = field(default=count_lines)
    relatives: tuple["Trial", ...] = ()  # of other parameters, for `right_answers`
    seed: int | None = 0  # of that check; None where it asks on behalf of a relative
    n_problems: int = SHORT  # of that check

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

    @property
    def has_prior(self):
        """Whether the belief is a prior."""
        return isinstance(self.belief, Prior)

    @property
    def has_penalty(self):
        """Whether there is a penalty to be minimised: the belief's, or a method."""
        return isinstance(self.belief, Penalty) or (
            self.belief is None
            and self.denoiser.precision == "argmin"
            and is_own(self.denoiser, "penalty")
        )

    @cached_property
    def takes_complex_rows(self):
        """Whether a complex step finds the derivative of the log partition function."""
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

    def ask(self, method, arrays):
        """Return the arrays that a method returns, in a list."""
        answer = getattr(self.denoiser, method)(*arrays)
        return list(require_pair(answer)) if method == "denoise" else [answer]

    @cached_property
    def loop(self):
        """What shows that the denoiser takes one row at a time, or an empty text."""
        return loop_over_rows(self)

    def estimate(self, problem=None):
        """Return the estimate for `problem`, or for the trial's own."""
        return np.asarray(self.denoiser.estimate(*(problem or self.problem).copies()))

    def mean_jacobian(self, problem=None):
        """Return the mean Jacobian for `problem`, or for the trial's own."""
        rows = (problem or self.problem).copies()
        return np.asarray(self.denoiser.mean_jacobian(*rows))

    def penalties(self, X, r):
        """Return g(x_i / sqrt(r_i)) of each row of `X`, shape (N,).

        The belief knows g; where there is none, the denoiser is asked.
        """
        if isinstance(self.belief, Penalty):
            return np.asarray(self.belief.value(X / np.sqrt(r)[:, None]))
        ask = self.denoiser.penalty
        rows = zip(X[:, None].copy(), r[:, None].copy(), strict=True)
        return np.array([require_number(ask(x, s), "penalty") for x, s in rows])

    def convexity(self, r):
        """Return the denoiser's convexity at the rates `r`, a number."""
        return require_number(self.denoiser.convexity(r.copy()), "convexity")


def trial_of(denoiser, *, belief=None, d=3, n_rows=40, rng=None):
    """Return a `Trial` of a denoiser that has been made, on random rows."""
    rng = np.random.default_rng(0) if rng is None else rng
    problem = draw_problem(n_rows, d, rng=rng, rows=belief and belief.rows)
    return Trial(lambda: denoiser, problem, belief, seed=int(rng.integers(2**31)))
