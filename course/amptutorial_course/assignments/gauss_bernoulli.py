"""Assignment 5: sparse rows, by their posterior mean.

Each entry is zero or Gaussian, independently of the others.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.special import logsumexp

from amptutorial.checks import Limit
from amptutorial.checks.beliefs import Prior
from amptutorial.denoisers import GaussianPosterior
from amptutorial.laws import DiscreteBias

from ._core import Assignment, DenoiserSetting, Experiment
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

        It is the log of a sum over the sets of non-zero entries. Each term is a density
        of p = x F + N(0, F), divided by the density at x = 0.
        """
        present = np.array(list(product((0.0, 1.0), repeat=len(F))))
        chances = np.where(present, self.rows.density, 1 - self.rows.density)
        scales = self.rows.variance * r[:, None, None]
        densities = [_log_normal(P, F + scales * (F * some) @ F) for some in present]
        weights = chances.prod(axis=1)[:, None]
        return logsumexp(densities, axis=0, b=weights) - _log_normal(P, F)


def _log_normal(P, C):
    """Return the log density of N(0, C) at each row, without the power of 2 pi.

    `C` is one matrix, or one for each row.
    """
    squares = (P * np.linalg.solve(C, P[..., None])[..., 0]).sum(axis=-1)
    return -(squares + np.linalg.slogdet(C)[1]) / 2


def draw_settings(rng):
    """Return settings in one, two and three dimensions."""
    return [_setting(*_draw_params(rng), d) for d in (1, 2, 3)]


def _draw_params(rng):
    """Return a density and a variance."""
    return float(rng.uniform(0.25, 0.6)), float(np.exp(rng.uniform(1.5, 2.5)))


def _setting(density, variance, d):
    gaussian = GaussianPosterior(variance).estimate
    limits = [
        Limit("If no entry is zero, u is Gaussian", {"density": 1 - 1e-9}, gaussian),
        Limit(
            "If u has next to no variance, the estimate is zero",
            {"variance": 1e-12},
            lambda P, r, F: 0 * P,
        ),
    ]
    # in more dimensions the rows tried are so clear that they refute even this density
    if d == 1:
        limits.append(
            Limit(
                "If all entries are zero, the estimate is zero",
                {"density": 1e-300},
                lambda P, r, F: 0 * P,
            )
        )
    params = {"density": density, "variance": variance}
    belief = SparsePrior(SparseEntries(**params))
    return DenoiserSetting("GaussBernoulli", params, belief, d, tuple(limits))


@dataclass(frozen=True)
class ShareOnZeros:
    """The share of the squared length of the estimates where the truth is zero."""

    def __call__(self, X, X_hat):
        """Return the share for rows `X` and their estimates `X_hat`, both (N, d)."""
        return (X_hat[X == 0] ** 2).sum() / (X_hat**2).sum()


ASSIGNMENT = Assignment(
    5,
    "gauss_bernoulli",
    "sparse rows by their posterior mean",
    draw_settings,
    Experiment(
        "GaussBernoulli",
        {"density": 0.2, "variance": 1.5},
        SparseEntries(0.2, 1.5),
        d=3,
        n_iter=6,
        bias=DiscreteBias([1.0, 2.0]),
        statistic=ShareOnZeros(),
    ),
    points=POSTERIOR_MEAN,
)
