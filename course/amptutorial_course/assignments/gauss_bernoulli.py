"""Assignment 5: sparse rows, by their posterior mean.

Each entry is zero or Gaussian, independently of the others.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.special import expit, logsumexp

from amptutorial.checks.beliefs import Prior
from amptutorial.denoisers import GaussianPosterior
from amptutorial.laws import DiscreteBias

from ._core import FAR, NEAR, Assignment, Experiment, Family
from ._limits import Limit, zero
from ._points import POSTERIOR_MEAN


@dataclass(frozen=True)
class SparseEntries:
    """Rows of independent entries, N(0, variance) or zero.

    An entry is not zero with probability `density`.

    `SparseGaussianRows` differs: there, each row has the same number of entries that
    are not zero.
    """

    density: float
    variance: float

    def draw(self, size, rng):
        """Return rows of shape `size` = (N, d)."""
        entries = np.sqrt(self.variance) * rng.standard_normal(size)
        return entries * (rng.random(size) < self.density)


@dataclass(frozen=True)
class SparsePrior(Prior):
    """The belief that rows are drawn from `SparseEntries`."""

    rows: SparseEntries

    def log_partition(self, P, r, F):
        """Return log E exp(p x^T - x F x^T / 2), shape (N,).

        It is the log of a sum over the sets of non-zero entries, in which each term is a
        Gaussian integral.
        """
        present = np.array(list(product((0.0, 1.0), repeat=len(F))))
        chances = np.where(present, self.rows.density, 1 - self.rows.density)
        variances = self.rows.variance * r
        logs = [_log_integral(P * some, F * np.outer(some, some), variances) for some in present]
        return logsumexp(logs, axis=0, b=chances.prod(axis=1)[:, None])


def _log_integral(P, F, variances):
    """Return log E exp(p x^T - x F x^T / 2) for x from N(0, variance), row by row."""
    scaled = np.eye(len(F)) + variances[:, None, None] * F
    squares = variances * (P * np.linalg.solve(scaled, P[..., None])[..., 0]).sum(axis=-1)
    return (squares - np.linalg.slogdet(scaled)[1]) / 2


DENSITIES = (0.25, 0.6), (0.02, 0.98)
VARIANCES = (1.5, 2.5), (-1.5, 4.5), (-7, 7)  # their logarithms


def draw_params(rng, d, reach=NEAR):
    """Return a density and a variance."""
    density = expit(rng.uniform(-7, 7)) if reach == FAR else rng.uniform(*DENSITIES[reach])
    return {"density": float(density), "variance": float(np.exp(rng.uniform(*VARIANCES[reach])))}


def limits(d, density, variance):
    """Yield what becomes of the estimate if all entries are Gaussian, or zero."""
    yield Limit("If no entry is zero, u is Gaussian", {"density": 1 - 1e-9}, GaussianPosterior(variance).estimate)
    yield Limit("If u has next to no variance, the estimate is zero", {"variance": 1e-12}, zero)
    # in more dimensions the rows tried are so clear that they refute even this density
    if d == 1:
        yield Limit("If all entries are zero, the estimate is zero", {"density": 1e-300}, zero)


def share_on_zeros(X, X_hat):
    """Return the share of the squared length of the estimates where the truth is zero.

    Rows `X` and their estimates `X_hat` are both (N, d).
    """
    return (X_hat[X == 0] ** 2).sum() / (X_hat**2).sum()


ASSIGNMENT = Assignment(
    5,
    "gauss_bernoulli",
    "sparse rows by their posterior mean",
    (Family("GaussBernoulli", draw_params, lambda **params: SparsePrior(SparseEntries(**params)), limits, (1, 2, 3)),),
    Experiment(
        "GaussBernoulli",
        {"density": 0.2, "variance": 1.5},
        SparseEntries(0.2, 1.5),
        d=3,
        n_iter=6,
        bias=DiscreteBias([1.0, 2.0]),
        statistic=share_on_zeros,
    ),
    points=POSTERIOR_MEAN,
)
