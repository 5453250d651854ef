"""Every set of entries is tried as the support, and the best answer without negative entries kept."""

import itertools

import numpy as np

from amptutorial import Denoiser

PREDICTION = 0.385


class NonNegativeRows(Denoiser):
    """Ridge on non-negative rows, by trying all 2^d supports."""

    def __init__(self, strength):
        self.strength = strength

    def denoise(self, P, r, F):
        """Return the estimate and its mean Jacobian."""
        N, d = P.shape
        X, J, best = np.zeros((N, d)), np.zeros((N, d, d)), np.zeros(N)  # the empty support: zero
        for size in range(1, d + 1):
            for support in map(list, itertools.combinations(range(d), size)):
                H = F[np.ix_(support, support)] + self.strength / r[:, None, None] * np.eye(size)
                inverse = np.linalg.inv(H)
                candidate = (P[:, None, support] @ inverse)[:, 0]
                gain = (P[:, support] * candidate).sum(axis=1)  # minus twice the objective of a stationary point
                better = np.flatnonzero((candidate > 0).all(axis=1) & (gain > best))
                best[better], X[better], J[better] = gain[better], 0, 0
                X[np.ix_(better, support)] = candidate[better]
                J[np.ix_(better, support, support)] = inverse[better]
        return X, J.mean(axis=0)

    def estimate(self, P, r, F):
        """Return the rows."""
        return self.denoise(P, r, F)[0]

    def mean_jacobian(self, P, r, F):
        """Return the mean Jacobian."""
        return self.denoise(P, r, F)[1]

    def penalty(self, X, r):
        """Return the penalty."""
        return float(np.where(X >= 0, self.strength / 2 * X**2 / r[:, None], np.inf).sum())

    def convexity(self, r):
        """Return the smallest curvature."""
        return self.strength / r.max()
