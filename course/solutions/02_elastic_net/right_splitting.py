"""Alternating directions: a ridge with one eigendecomposition of F for all rows, and a soft threshold, in turn."""

import numpy as np

from amptutorial import Denoiser

PREDICTION = 0.459


class ElasticNet(Denoiser):
    """The elastic net, split into its smooth part and its corners."""

    def __init__(self, l1, l2):
        self.l1, self.l2 = l1, l2

    def estimate(self, P, r, F):
        """Return the rows."""
        w, V = np.linalg.eigh(F)
        curvatures = w + self.l2 / r[:, None]
        rho = np.sqrt(curvatures[:, :1] * curvatures[:, -1:])
        gains, bound = 1 / (curvatures + rho), self.l1 / (np.sqrt(r)[:, None] * rho)
        settled = 1e-12 * np.abs(P).max(axis=1, keepdims=True) / rho
        Z, pull = np.zeros(P.shape), np.zeros(P.shape)
        for _ in range(5000):
            dual = np.clip(pull, -bound, bound)
            old, Z = Z, pull - dual  # what is clipped is exactly zero
            X = ((P + rho * (Z - dual)) @ V * gains) @ V.T
            pull = X + dual
            if (np.abs(X - Z) <= settled).all() and (np.abs(Z - old) <= settled).all():
                break
        return Z

    def mean_jacobian(self, P, r, F):
        """Return the mean Jacobian, as a sum over the supports that occur."""
        N, d = P.shape
        kept, total = self.estimate(P, r, F) != 0, np.zeros((d, d))
        for support in np.unique(kept, axis=0):
            rows = (kept == support).all(axis=1)
            S = np.flatnonzero(support)
            w, V = np.linalg.eigh(F[np.ix_(S, S)])
            total[np.ix_(S, S)] += V @ np.diag((1 / (w + self.l2 / r[rows, None])).sum(axis=0)) @ V.T
        return total / N

    def penalty(self, X, r):
        """Return the penalty."""
        U = X.T / np.sqrt(r)
        return float(self.l1 * np.linalg.norm(U.ravel(), 1) + self.l2 / 2 * np.linalg.norm(U) ** 2)

    def convexity(self, r):
        """Return the smallest curvature."""
        return self.l2 / r.max()
