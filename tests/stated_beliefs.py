"""The beliefs of denoisers of the package, as a lecturer would state them, and denoisers to be refused."""

import numpy as np

from amptutorial.checks.beliefs import Penalty, Prior
from amptutorial.denoisers import Denoiser
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


class AbsoluteValue(Penalty):
    """The belief of Lasso(1.0), with rows that AMP finds at large r only."""

    rows = GaussianRows(1.0)

    def value(self, U):
        return np.abs(U).sum(axis=1)


class StandardNormal(Prior):
    """The belief of GaussianPosterior(1.0)."""

    rows = GaussianRows(1.0)

    def log_partition(self, P, r, F):
        precisions = F + np.eye(len(F)) / r[:, None, None]
        solved = np.linalg.solve(precisions, P[:, :, None])[:, :, 0]
        return ((P * solved).sum(axis=1) - np.linalg.slogdet(precisions)[1] - len(F) * np.log(r)) / 2


class HardThreshold(Denoiser):
    """Keeps an entry of u or drops it: a jump."""

    precision = "posterior"

    def estimate(self, P, r, F):
        return P * (np.abs(P) > 1 / np.sqrt(r)[:, None]) / r[:, None] / F[0, 0]


class Rotated(Denoiser):
    """Linear with a non-symmetric matrix and the transposed Jacobian."""

    precision = "posterior"
    G = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.2], [0.3, 0.0, 1.0]])

    def estimate(self, P, r, F):
        return P @ self.G

    def mean_jacobian(self, P, r, F):
        return self.G.T


class Right(Denoiser):
    """Ridge(1.0), each method by itself."""

    def inverses(self, r, F):
        return np.linalg.inv(F + np.eye(len(F)) / r[:, None, None])

    def estimate(self, P, r, F):
        return np.einsum("ik,ikl->il", P, self.inverses(r, F))

    def mean_jacobian(self, P, r, F):
        return self.inverses(r, F).mean(axis=0)

    def penalty(self, X, r):
        return float((X**2 / r[:, None]).sum() / 2)

    def convexity(self, r):
        return 1 / r.max()


estimate, jacobian = Right().estimate, Right().mean_jacobian


def variant(**methods):
    """Return a `Right` with some methods replaced."""
    return type("Wrong", (Right,), methods)()


def estimating(formula):
    """Return a `Right` whose estimate is a function of P, r and F."""
    return variant(estimate=lambda self, P, r, F: formula(P, r, F))


def differentiating(formula):
    """Return a `Right` whose Jacobian is a function of P, r and F."""
    return variant(mean_jacobian=lambda self, P, r, F: formula(P, r, F))
