"""Assignment 3: non-negative rows, for topics that cannot be subtracted."""

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import nnls

from amptutorial.checks.beliefs import Penalty
from amptutorial.laws import DiscreteBias, RowLaw

from ._core import Assignment, Experiment, Family, log_uniform
from ._limits import Limit, zero
from ._points import MINIMISER
from .elastic_net import zeros_found
from .gauss_bernoulli import SparseEntries
from .ridge import SquaredNorm


@dataclass(frozen=True)
class TopicRows:
    """Rows of topics, of which few are present.

    An entry is the modulus of a N(0, variance) with probability `density`, else zero.

    Examples
    --------
    >>> TopicRows(1.0, density=0.5).draw((3, 3), rng=np.random.default_rng(0)).round(2)
    array([[0.  , 0.  , 0.64],
           [0.  , 0.54, 0.  ],
           [1.3 , 0.  , 0.  ]])
    """

    variance: float
    density: float

    def draw(self, size, rng):
        """Return rows of shape `size` = (N, d)."""
        return np.abs(SparseEntries(self.density, self.variance).draw(size, rng))


@dataclass(frozen=True)
class SquaresOfTopics(SquaredNorm):
    """g(u) = strength |u|^2 / 2 where no entry of u is negative, infinite elsewhere."""

    rows: RowLaw = field(default=TopicRows(4.0, density=0.5))

    tolerance = Penalty.tolerance  # it is not linear in p

    def value(self, U):
        """Return g of each row."""
        return np.where((U >= 0).all(axis=1), super().value(U), np.inf)

    def prox(self, U, steps):
        """Return what is left of the positive entries of `U`."""
        return super().prox(self.project(U), steps)

    def project(self, U):
        """Return the nearest rows without negative entries."""
        return np.maximum(U, 0)


def least_squares(P, r, F):
    """Return the non-negative minimiser of x F x^T / 2 - p x^T for each row.

    This is what the belief leaves without strength.

    Examples
    --------
    >>> F = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> least_squares(np.array([[1.0, -1.0]]), np.ones(1), F)
    array([[0.5, 0. ]])
    """
    root = np.linalg.cholesky(F).T  # x F x^T = |root x^T|^2
    return np.array([nnls(root, q)[0] for q in np.linalg.solve(root.T, P.T).T])


def limits(d, strength):
    """Yield what becomes of the estimate with hardly a penalty, and with nothing else."""
    text = "Without strength the estimate is that of non-negative least squares"
    yield Limit(text, {"strength": 1e-7}, least_squares)
    yield Limit("With an infinite strength the estimate is zero", {"strength": 1e9}, zero)


STRENGTHS = (-0.7, 1.0), (-3, 4), (-9, 9)  # their logarithms

ASSIGNMENT = Assignment(
    3,
    "non_negative",
    "non-negative rows",
    (Family("NonNegativeRows", log_uniform(strength=STRENGTHS), SquaresOfTopics, limits, (2, 4)),),
    Experiment(
        "NonNegativeRows",
        {"strength": 8.0},
        TopicRows(1.0, density=0.5),
        d=3,
        bias=DiscreteBias([1.0, 2.0]),
        statistic=zeros_found,
        tolerance=0.03,
    ),
    points=MINIMISER,
)
