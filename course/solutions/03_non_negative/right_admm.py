"""Alternating directions: a ridge in the eigenvectors of F and a projection take turns until they agree."""

import numpy as np

from amptutorial import Denoiser

PREDICTION = 0.385


class NonNegativeRows(Denoiser):
    """Ridge on non-negative rows, by ADMM; a pseudo-inverse on the support gives the rows to full precision."""

    def __init__(self, strength):
        self.strength = strength

    def _consensus(self, P, r, F):
        """Return the rows to ten digits, by alternating directions."""
        w, V = np.linalg.eigh(F)
        modes = w + self.strength / r[:, None]
        weight = np.sqrt(modes[:, :1] * modes[:, -1:])  # the geometric mean of the extreme curvatures: the best rate
        Z, dual = np.zeros_like(P), np.zeros_like(P)
        active = np.arange(len(P))
        for _ in range(20_000):
            p, z, u, c = P[active], Z[active], dual[active], weight[active]
            x = ((p + c * (z - u)) @ V / (modes[active] + c)) @ V.T
            mixed = u + 1.6 * x - 0.6 * z  # over-relaxed
            new = np.maximum(mixed, 0)
            Z[active], dual[active] = new, mixed - new
            moved = np.maximum(np.abs(new - z), np.abs(x - new)).max(axis=1)
            active = active[moved > 1e-10 * np.abs(p / c).max(axis=1)]
            if not len(active):
                break
        return Z

    def denoise(self, P, r, F):
        """Return the estimate and its mean Jacobian."""
        D = (self._consensus(P, r, F) > 0).astype(float)
        H = F + np.einsum("i,kl->ikl", self.strength / r, np.eye(len(F)))
        J = np.linalg.pinv(D[:, :, None] * H * D[:, None, :], rcond=1e-12, hermitian=True)  # zero off the support
        return (P[:, None] @ J)[:, 0] * D, J.mean(axis=0)

    def estimate(self, P, r, F):
        """Return the rows."""
        return self.denoise(P, r, F)[0]

    def mean_jacobian(self, P, r, F):
        """Return the mean Jacobian."""
        return self.denoise(P, r, F)[1]

    def penalty(self, X, r):
        """Return the penalty."""
        return np.inf if np.min(X) < 0 else self.strength / 2 * float(((X.T / np.sqrt(r)) ** 2).sum())

    def convexity(self, r):
        """Return the smallest curvature."""
        return float(np.min(self.strength / r))
