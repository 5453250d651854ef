"""Assignment 4: the group lasso, for words that mean nothing."""

from dataclasses import dataclass, field

import numpy as np

from amptutorial.checks.beliefs import Penalty
from amptutorial.denoisers import Lasso
from amptutorial.laws import DiscreteBias, RowLaw

from ._core import NEAR, Assignment, Experiment, Family
from ._limits import Limit, unpenalised, zero
from ._points import MINIMISER


@dataclass(frozen=True)
class SilentRows:
    """Gaussian rows, of which a share `silent` is zero as a whole."""

    variance: float
    silent: float

    def draw(self, size, rng):
        """Return rows of shape `size` = (N, d)."""
        speaks = rng.permutation(size[0]) >= self.silent * size[0]
        return speaks[:, None] * np.sqrt(self.variance) * rng.standard_normal(size)


@dataclass(frozen=True)
class Norm(Penalty):
    """g(u) = strength |u|, the norm and not its square."""

    strength: float
    # of 4, little survives the largest strengths
    rows: RowLaw = field(default=SilentRows(9.0, silent=0.4))

    convexity = 0.0

    def value(self, U):
        """Return g of each row."""
        return self.strength * np.linalg.norm(U, axis=1)

    def prox(self, U, steps):
        """Return rows of `U` that are shorter by the same length, or zero."""
        lengths = np.maximum(np.linalg.norm(U, axis=1, keepdims=True), 1e-300)
        return U * np.maximum(1 - steps * self.strength / lengths, 0)


STRENGTHS = (-0.7, 0.5), (-3, 3), (-7, 7)  # their logarithms, in one dimension


def draw_params(rng, d, reach=NEAR):
    """Return a strength."""
    return {"strength": float(np.sqrt(d) * np.exp(rng.uniform(*STRENGTHS[reach])))}


def limits(d, strength):
    """Yield what becomes of the estimate at the ends; in one dimension the group lasso is the lasso."""
    yield Limit("Without a penalty the estimate is p F^-1", {"strength": 1e-7}, unpenalised)
    yield Limit("With a large strength every row is exactly zero", {"strength": 1e6}, zero, 0.0)
    if d == 1:
        yield Limit("In one dimension it is the lasso", {"strength": strength}, Lasso(strength).estimate)


def silence_found(X, X_hat):
    """Return the share of the zero rows whose estimates are exactly zero, for rows `X` and `X_hat`, both (N, d)."""
    return (X_hat[~X.any(axis=1)] == 0).all(axis=1).mean()


ASSIGNMENT = Assignment(
    4,
    "group_lasso",
    "the group lasso",
    (Family("GroupLasso", draw_params, Norm, limits, (1, 4)),),
    Experiment(
        "GroupLasso",
        {"strength": 8.0},
        SilentRows(2.0, silent=0.5),
        d=3,
        m=2000,
        n=1500,
        n_iter=15,
        bias=DiscreteBias([1.0, 2.0]),
        statistic=silence_found,
        tolerance=0.04,
    ),
    points=MINIMISER,
)
