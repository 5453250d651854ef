"""Assignment 2: the elastic net, of which ridge and the lasso are the ends."""

from dataclasses import dataclass, field

import numpy as np

from amptutorial.checks.beliefs import Penalty
from amptutorial.denoisers import Lasso, Ridge
from amptutorial.laws import DiscreteBias, RowLaw, SparseGaussianRows

from ._core import Assignment, Experiment, Family, log_uniform
from ._limits import Limit, zero
from ._points import MINIMISER


@dataclass(frozen=True)
class BothNorms(Penalty):
    """g(u) = l1 |u|_1 + l2 |u|^2 / 2: the sum of `eq:regsparse` and `eq:regl2`."""

    l1: float
    l2: float
    # of 9, little survives the larger l1 and l2
    rows: RowLaw = field(default=SparseGaussianRows(18.0, density=1 / 3))

    @property
    def convexity(self):
        """The curvature of the square."""
        return self.l2

    def value(self, U):
        """Return g of each row."""
        return self.l1 * np.abs(U).sum(axis=1) + self.l2 / 2 * (U**2).sum(axis=1)

    def prox(self, U, steps):
        """Return what is left of `U` beyond a threshold."""
        return np.sign(U) * np.maximum(np.abs(U) - steps * self.l1, 0) / (1 + steps * self.l2)


SIZES = (-0.7, 0.7), (-3, 3), (-7, 7)  # of the logarithms of strengths


def limits(d, l1, l2):
    """Yield what becomes of the estimate with one of the norms."""
    yield Limit("Without l1 the elastic net is ridge", {"l1": 1e-8}, Ridge(l2).estimate)
    yield Limit("Without l2 the elastic net is the lasso", {"l2": 1e-8}, Lasso(l1).estimate)
    yield Limit("With a large l1 every row is zero", {"l1": 1e6}, zero)


def zeros_found(X, X_hat):
    """Return the share of the zeros of X that are zeros of X_hat too.

    Examples
    --------
    >>> X = np.array([[0.0, 2.0], [0.0, 1.0]])
    >>> X_hat = np.array([[0.0, 1.5], [0.3, 0.0]])
    >>> float(zeros_found(X, X_hat))
    0.5
    """
    return (X_hat[X == 0] == 0).mean()


ASSIGNMENT = Assignment(
    2,
    "elastic_net",
    "the elastic net",
    (Family("ElasticNet", log_uniform(l1=SIZES, l2=SIZES), BothNorms, limits),),
    # l2 alone makes no zero, and yet the share is 0.46 with it and 0.35 without
    Experiment(
        "ElasticNet",
        {"l1": 2.0, "l2": 2.0},
        SparseGaussianRows(2.0, density=1 / 3),
        d=3,
        bias=DiscreteBias([1.0, 2.0]),
        statistic=zeros_found,
        tolerance=0.03,
    ),
    points=MINIMISER,
)
