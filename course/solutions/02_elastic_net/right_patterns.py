"""Every pattern of signs has a closed form: try them all, and keep for each row the one that fits."""

from itertools import product

import numpy as np

from amptutorial import Denoiser

PREDICTION = 0.459


class ElasticNet(Denoiser):
    """The elastic net for a few dimensions, exact up to round-off."""

    def __init__(self, l1, l2):
        self.l1, self.l2 = l1, l2

    def _fit(self, P, r, F, signs):
        """Return the answers if these are the signs, the gains of the modes of F on the support, and the modes."""
        support = np.flatnonzero(signs)
        w, V = np.linalg.eigh(F[np.ix_(support, support)])
        modes = np.zeros((len(support), len(F)))
        modes[:, support] = V.T
        gains = 1 / (w + self.l2 / r[:, None])
        return ((P - self.l1 / np.sqrt(r)[:, None] * signs) @ modes.T * gains) @ modes, gains, modes

    def _misfit(self, X, P, r, F, signs):
        """Return how far each row is from being optimal: in the signs of X, and in the pull on its zeros."""
        threshold = self.l1 / np.sqrt(r)[:, None]
        wrong_sign = np.maximum(-signs * X, 0) * (np.diag(F) + self.l2 / r[:, None])
        too_strong = np.where(signs == 0, np.maximum(np.abs(P - X @ F) - threshold, 0), 0)
        return np.maximum(wrong_sign, too_strong).max(axis=1)

    def denoise(self, P, r, F):
        """Return the estimate and its mean Jacobian."""
        N, d = P.shape
        best, least = np.zeros((N, d)), np.full(N, np.inf)
        J = np.zeros((N, d, d))
        for signs in product((0.0, 1.0, -1.0), repeat=d):
            X, gains, modes = self._fit(P, r, F, np.array(signs))
            misfit = self._misfit(X, P, r, F, np.array(signs))
            better = misfit < least
            best[better], least[better] = X[better], misfit[better]
            J[better] = np.einsum("ik,ka,kb->iab", gains[better], modes, modes)
        return best, J.mean(axis=0)

    def estimate(self, P, r, F):
        """Return the rows."""
        return self.denoise(P, r, F)[0]

    def mean_jacobian(self, P, r, F):
        """Return the mean Jacobian."""
        return self.denoise(P, r, F)[1]

    def penalty(self, X, r):
        """Return the penalty."""
        root = np.sqrt(r)
        return float(self.l1 * (np.abs(X).sum(axis=1) / root).sum() + self.l2 / 2 * ((X.T / root) ** 2).sum())

    def convexity(self, r):
        """Return the smallest curvature."""
        return float((self.l2 / r).min())
