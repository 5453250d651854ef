"""Proximal gradient steps with momentum, for u and not for x; the Jacobian is that of the base class."""

import numpy as np

from amptutorial import Denoiser

PREDICTION = 0.459


def shrink(X, by):
    """Move every entry towards zero."""
    return X - np.clip(X, -by, by)


class ElasticNet(Denoiser):
    """The elastic net as a problem in u = x / sqrt(r), whose quadratic is r F + l2 I."""

    def __init__(self, l1, l2):
        self.l1, self.l2 = l1, l2

    def estimate(self, P, r, F):
        """Return the rows."""
        w = np.linalg.eigvalsh(F)
        r = r[:, None]
        pull, steep, flat = np.sqrt(r) * P, r * w[-1] + self.l2, np.maximum(r * w[0] + self.l2, 0)
        momentum = (np.sqrt(steep) - np.sqrt(flat)) / (np.sqrt(steep) + np.sqrt(flat))
        bound, small = self.l1 / steep, 1e-12 * np.abs(pull).max(axis=1, keepdims=True) / steep
        U = previous = np.zeros(P.shape)
        for _ in range(20_000):
            ahead = U + momentum * (U - previous)
            step = (pull - r * (ahead @ F) - self.l2 * ahead) / steep
            previous, U = U, shrink(ahead + step, bound)
            if (np.abs(U - ahead) <= small).all():  # a fixed point of the step is the minimum
                break
        return np.sqrt(r) * U

    def penalty(self, X, r):
        """Return the penalty."""
        return float(sum(self.l1 * np.abs(u).sum() + self.l2 / 2 * u @ u for u in (X / np.sqrt(r)[:, None]).T))

    def convexity(self, r):
        """Return the smallest curvature."""
        return self.l2 / max(r)
