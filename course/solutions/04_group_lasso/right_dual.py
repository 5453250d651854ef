"""The residual first: p - x F is a point of a ball, whose multiplier SciPy finds for all rows at once."""

import numpy as np
from scipy.optimize.elementwise import find_root

from amptutorial import Denoiser

PREDICTION = 0.607


class GroupLasso(Denoiser):
    """The group lasso by its dual problem: minimise (p - y) F^-1 (p - y)^T over rows y no longer than t.

    The solution is y = p (I + mu F)^-1 with a multiplier mu >= 0, and x = mu y.
    """

    def __init__(self, strength):
        self.strength = strength

    def multipliers(self, P, r, F):
        """Return mu, and the rows p / t in the eigenvectors of F."""
        w, V = np.linalg.eigh(F)
        C = P @ V * np.sqrt(r)[:, None] / self.strength
        mu = np.zeros(len(P))
        outside = np.flatnonzero(np.linalg.norm(C, axis=1) > 1)

        def excess(mu, row):
            return np.linalg.norm(C[row] / (1 + mu[..., None] * w), axis=-1) - 1

        high = 2 * np.linalg.norm(C[outside], axis=1) / w[0]
        mu[outside] = find_root(excess, (0 * high, high), args=(outside,)).x
        return mu[:, None], C, w, V

    def estimate(self, P, r, F):
        """Return the rows."""
        mu, C, w, V = self.multipliers(P, r, F)
        return self.strength / np.sqrt(r)[:, None] * (mu * C / (1 + mu * w)) @ V.T

    def mean_jacobian(self, P, r, F):
        """Return the mean Jacobian, from y (I + mu F) = p and y y^T = t^2 differentiated together."""
        mu, C, w, V = self.multipliers(P, r, F)
        outside, d = mu[:, 0] > 0, len(F)
        mu, Y = mu[outside], (C / (1 + mu * w))[outside]
        system = np.zeros((len(Y), d + 1, d + 1))
        system[:, :d, :d] = np.eye(d) + mu[:, :, None] * np.diag(w)
        system[:, :d, d], system[:, d, :d] = Y * w, Y
        dY = np.linalg.solve(system, np.eye(d + 1, d))[:, :d]
        return V @ ((np.eye(d) - dY).sum(axis=0) / w[:, None]) @ V.T / len(P)

    def penalty(self, X, r):
        """Return the penalty."""
        return float(self.strength * np.linalg.norm(X / np.sqrt(r)[:, None], axis=1).sum())
