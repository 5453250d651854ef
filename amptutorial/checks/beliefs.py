"""What a denoiser is asked to believe about a row u.

The checks of `amptutorial.checks` compare a denoiser's answers with a belief, which
states the problem and never its solution: a `Penalty` gives the value of g, a `Prior`
the logarithm of the partition function. A subclass is a few lines; those of the
assignments are in `amptutorial_course.assignments`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from ..denoisers import Denoiser
from ..laws import GaussianRows, RowLaw
from .verdict import require_number


class Belief:
    """What every belief has: rows on which to try a denoiser, and a precision.

    Attributes
    ----------
    rows : RowLaw
        With ``draw((N, d), rng=rng)``: rows for which the belief is meant.
    precision : str
        ``"argmin"`` or ``"posterior"``, as in `Denoiser`.
    decades : pair of numbers
        The logarithms, to the base ten, of the smallest and of the largest r to try.
    tolerance : float
        The relative error that a solver is allowed.
    """

    rows: RowLaw
    precision: str
    decades: tuple[int, int] = (-4, 4)
    tolerance: float = 1e-6


class Penalty(Belief, ABC):
    """A regulariser g of one row (`eq:LAB`).

    The denoiser is asked for the minimiser `eq:Gadef-row`. Where a subclass has a
    method ``prox(U, steps)`` too, estimates at any F are compared with what it says: it
    returns the minimiser of |v - u|^2 / 2 + step g(v) for each row u of `U` (N, d), and
    `steps` is an array (N, 1).

    Attributes
    ----------
    rows, decades, tolerance
        As those of a `Belief`.
    convexity : float or None
        The largest c for which g(u) - c |u|^2 / 2 is convex, if that is known. The
        denoiser's `convexity(r)` is c / max(r).

    Examples
    --------
    >>> import numpy as np
    >>> from amptutorial.laws import GaussianRows
    >>> class SquaredNorm(Penalty):
    ...     rows = GaussianRows(1.0)
    ...     def value(self, U):
    ...         return (U**2).sum(axis=1) / 2
    >>> SquaredNorm().value(np.array([[1.0, 2.0]]))
    array([2.5])
    """

    precision = "argmin"

    @property
    def convexity(self) -> float | None:
        """The c of the belief; None where it does not say."""
        return None

    @abstractmethod
    def value(self, U):
        """Return g of each row of `U` (N, d), shape (N,).

        It is infinite where a row is not allowed.
        """

    def project(self, U):
        """Return rows near `U` at which g is finite.

        The check of optimality compares the estimate with such rows.
        """
        return U

    def nearest(self, X, r):
        """Return rows x near those of `X` at which g(x / sqrt(r)) is finite."""
        root = np.sqrt(r)[:, None]
        return self.project(X / root) * root


@dataclass(frozen=True)
class OwnPenalty(Penalty):
    """The penalty that a denoiser itself states.

    Parameters
    ----------
    denoiser : Denoiser
        Its `penalty` is asked for a row u at a time, at r = 1.

    Examples
    --------
    >>> from amptutorial.denoisers import Ridge
    >>> OwnPenalty(Ridge(2.0)).value(np.array([[1.0, 2.0], [0.0, 1.0]]))
    array([5., 1.])
    """

    denoiser: Denoiser

    rows = GaussianRows(1.0)
    decades = (-2, 2)

    def value(self, U):
        """Return g of each row."""
        values = (self.denoiser.penalty(row.copy(), np.ones(1)) for row in U[:, None])
        return np.array([require_number(value, "penalty") for value in values])


@dataclass(frozen=True)
class Unstated(Belief):
    """A belief that is the denoiser's own: all that is stated is rows to try it on.

    `right_answers` compares what many rows get with what each gets alone.

    Attributes
    ----------
    rows, precision, decades, tolerance
        As those of a `Belief`.
    """

    rows: RowLaw = GaussianRows(1.0)
    precision: str = "posterior"

    decades = (-2, 2)


class Prior(Belief, ABC):
    """A law of one row u.

    The denoiser is asked for the posterior mean of x = sqrt(r) u given
    p = x F + N(0, F).

    Attributes
    ----------
    rows : RowLaw
        The prior itself.
    decades, tolerance
        As those of a `Belief`.
    sharpest : float
        The exponent p x^T from which on an integral over the prior may be coarse.

    Examples
    --------
    >>> import numpy as np
    >>> from amptutorial.laws import GaussianRows
    >>> class StandardNormal(Prior):
    ...     rows = GaussianRows(1.0)
    ...     def log_partition(self, P, r, F):
    ...         precision = F[0, 0] + 1 / r  # in one dimension
    ...         return (P[:, 0] ** 2 / precision - np.log(r * precision)) / 2
    >>> StandardNormal().log_partition(np.zeros((1, 1)), np.ones(1), np.eye(1)).round(3)
    array([-0.347])
    """

    precision = "posterior"
    sharpest: float = np.inf

    @abstractmethod
    def log_partition(self, P, r, F):
        """Return log E exp(p x^T - x F x^T / 2) for each row p of `P`, shape (N,).

        E is the mean over the prior. The gradient by p is the posterior mean, and the
        Hessian is the posterior covariance (Tweedie's formula).

        Parameters
        ----------
        P : array (N, d)
            Its entries may be complex: `right_answers` takes derivatives by complex
            steps.
        r : array (N,)
        F : array (d, d)
        """
