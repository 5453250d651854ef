"""The beliefs of two denoisers of the package, as a lecturer would state them."""

import numpy as np

from amptutorial.checks.beliefs import Penalty, Prior
from amptutorial.laws import GaussianRows


class SquaredNorm(Penalty):
    """The belief of Ridge(1.0)."""

    rows = GaussianRows(1.0)

    def value(self, U):
        return (U**2).sum(axis=1) / 2


class Squares(SquaredNorm):
    """The same, with its answer."""

    convexity = 1.0

    def prox(self, U, steps):
        return U / (1 + steps)


class StandardNormal(Prior):
    """The belief of GaussianPosterior(1.0)."""

    rows = GaussianRows(1.0)

    def log_partition(self, P, r, F):
        precisions = F + np.eye(len(F)) / r[:, None, None]
        solved = np.linalg.solve(precisions, P[:, :, None])[:, :, 0]
        return ((P * solved).sum(axis=1) - np.linalg.slogdet(precisions)[1] - len(F) * np.log(r)) / 2
