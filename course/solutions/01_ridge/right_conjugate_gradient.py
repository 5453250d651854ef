"""Conjugate gradients on all rows at once: exact after d steps, repeated to polish."""

import numpy as np

from amptutorial import Denoiser

PREDICTION = 0.216


class RidgeByHand(Denoiser):
    """Ridge, by an iteration that never forms an inverse."""

    def __init__(self, strength):
        self.strength = strength

    def _solve(self, P, r, F):
        shift = self.strength / r[:, None]
        scale = 1 / (np.diag(F) + shift)  # a diagonal preconditioner
        X, residual = np.zeros_like(P), P.copy()
        direction = scale * residual
        old = (residual * direction).sum(axis=1, keepdims=True)
        for _ in range(6 * P.shape[1] + 20):
            image = direction @ F + shift * direction
            curvature = (direction * image).sum(axis=1, keepdims=True)
            step = np.divide(old, curvature, out=np.zeros_like(old), where=curvature > 0)
            X, residual = X + step * direction, residual - step * image
            new = (residual * scale * residual).sum(axis=1, keepdims=True)
            direction = scale * residual + np.divide(new, old, out=np.zeros_like(old), where=old > 0) * direction
            old = new
        return X

    def estimate(self, P, r, F):
        """Return the rows."""
        return self._solve(np.asarray(P, dtype=float), r, F)

    def mean_jacobian(self, P, r, F):
        """Return the mean Jacobian: the estimate is linear in P, so its rows are the answers to unit rows."""
        N, d = P.shape
        units = [self._solve(np.tile(unit, (N, 1)), r, F).mean(axis=0) for unit in np.eye(d)]
        return np.array(units)

    def penalty(self, X, r):
        """Return the penalty."""
        return float(self.strength / 2 * ((X.T / np.sqrt(r)) ** 2).sum())

    def convexity(self, r):
        """Return the smallest curvature."""
        return self.strength / r.max()
