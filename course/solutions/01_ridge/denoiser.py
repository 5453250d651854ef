"""Assignment 1: ridge by hand."""

import numpy as np

from amptutorial import Denoiser

PREDICTION = 0.216


class RidgeByHand(Denoiser):
    """The minimiser of x F x^T / 2 - p x^T + strength / 2 |x / sqrt(r)|^2, row by row.

    Parameters
    ----------
    strength : float
        lambda > 0.
    """

    def __init__(self, strength):
        self.strength = strength

    def _inverses(self, r, F):
        """Return the inverse of F + strength / r_i I for every row, shape (N, d, d)."""
        shifted = F + self.strength / r[:, None, None] * np.eye(len(F))
        return np.linalg.inv(shifted)

    def estimate(self, P, r, F):
        """Return the estimated rows, shape (N, d)."""
        return np.einsum("ik,ikl->il", P, self._inverses(r, F))

    def mean_jacobian(self, P, r, F):
        """Return the mean over the rows of d estimate_l / d P_k, shape (d, d)."""
        return self._inverses(r, F).mean(axis=0)

    def penalty(self, X, r):
        """Return the sum over the rows of strength / 2 |x_i / sqrt(r_i)|^2."""
        U = X / np.sqrt(r)[:, None]
        return float(self.strength / 2 * (U**2).sum())

    def convexity(self, r):
        """Return the curvature of the flattest of the row penalties, strength / max(r)."""
        return self.strength / r.max()
