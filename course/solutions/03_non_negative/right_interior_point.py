"""An interior-point method on all rows at once; rows with the same support then share one eigendecomposition."""

import numpy as np

from amptutorial import Denoiser

PREDICTION = 0.385


class NonNegativeRows(Denoiser):
    """Ridge on non-negative rows, by Newton's method on the central path."""

    def __init__(self, strength):
        self.strength = strength

    def _supports(self, P, r, F):
        """Return which entries are positive at the minimum, where of an entry x and its slope s one vanishes."""
        N, d = P.shape
        shift = self.strength / r[:, None]
        unit = np.abs(F).max() + shift
        size = np.linalg.norm(P, axis=1, keepdims=True)
        p = np.divide(P, size, out=np.zeros_like(P), where=size > 0)
        H = (F + shift[:, :, None] * np.eye(d)) / unit[:, :, None]  # rows of length one, curvatures of order one
        x, s = np.ones((N, d)), np.ones((N, d))
        for _ in range(30):
            target = 0.1 * (x * s).mean(axis=1, keepdims=True)  # the product of x and s at which to aim
            gradient = np.einsum("ik,ikl->il", x, H) - p
            system = H + np.eye(d) * (s / x)[:, :, None]
            dx = np.linalg.solve(system, (target / x - gradient)[:, :, None])[:, :, 0]
            ds = (target - s * dx) / x - s
            worst = np.maximum(-dx / x, -ds / s).max(axis=1, keepdims=True)
            step = np.minimum(1, 0.95 / np.maximum(worst, 1e-9))
            x, s = x + step * dx, s + step * ds
        return x > s

    def denoise(self, P, r, F):
        """Return the estimate and its mean Jacobian, a support at a time."""
        N, d = P.shape
        X, J = np.zeros((N, d)), np.zeros((d, d))
        distinct, which = np.unique(self._supports(P, r, F), axis=0, return_inverse=True)
        for number, support in enumerate(distinct):
            rows = np.flatnonzero(which.ravel() == number)
            w, V = np.linalg.eigh(F[np.ix_(support, support)])
            gains = 1 / (w + self.strength / r[rows, None])
            X[np.ix_(rows, support)] = ((P[np.ix_(rows, support)] @ V) * gains) @ V.T
            J[np.ix_(support, support)] += (V * gains.sum(axis=0)) @ V.T
        return X, J / N

    def estimate(self, P, r, F):
        """Return the rows."""
        return self.denoise(P, r, F)[0]

    def mean_jacobian(self, P, r, F):
        """Return the mean Jacobian."""
        return self.denoise(P, r, F)[1]

    def penalty(self, X, r):
        """Return the penalty."""
        U = X / np.sqrt(r)[:, None]
        return self.strength / 2 * float((U**2).sum()) if (U >= 0).all() else float("inf")

    def convexity(self, r):
        """Return the smallest curvature."""
        return self.strength / max(r)
