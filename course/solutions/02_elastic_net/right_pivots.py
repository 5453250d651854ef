"""Guess the signs, solve, and correct one sign a round in every row that is not optimal (Murty's rule)."""

import numpy as np

from amptutorial import Denoiser

PREDICTION = 0.459


class ElasticNet(Denoiser):
    """The elastic net by principal pivots: finitely many rounds, then exact."""

    def __init__(self, l1, l2):
        self.l1, self.l2 = l1, l2

    def _inverses(self, signs, r, F):
        """Return the inverse of F + l2 / r I on the support of each row, zero elsewhere."""
        on = np.einsum("ik,il->ikl", np.abs(signs), np.abs(signs))
        eye = np.eye(len(F))
        return on * np.linalg.inv(on * F + (1 - on) * eye + self.l2 * np.multiply.outer(1 / r, eye))

    def _signs(self, P, r, F):
        t = self.l1 / np.sqrt(r)[:, None]
        signs, slack = np.where(np.abs(P) > t, np.sign(P), 0.0), 1e-12 * (t + np.abs(P))
        todo = np.arange(len(P))
        for _ in range(10 * 3 ** len(F)):
            s = signs[todo]
            X = np.einsum("ik,ikl->il", P[todo] - t[todo] * s, self._inverses(s, r[todo], F))
            residual = P[todo] - X @ F
            drop = (s != 0) & (s * X < 0)
            enter = (s == 0) & (np.abs(residual) > t[todo] + slack[todo])
            wrong = drop | enter
            todo, s, residual, drop, wrong = (a[wrong.any(axis=1)] for a in (todo, s, residual, drop, wrong))
            if not len(todo):
                break
            first = np.arange(len(todo)), wrong.argmax(axis=1)  # the first one: any other rule may go in circles
            s[first] = np.where(drop[first], 0.0, np.sign(residual[first]))
            signs[todo] = s
        return signs

    def denoise(self, P, r, F):
        """Return the estimate and its mean Jacobian."""
        signs = self._signs(P, r, F)
        inverses = self._inverses(signs, r, F)
        return np.einsum("ik,ikl->il", P - self.l1 / np.sqrt(r)[:, None] * signs, inverses), inverses.mean(axis=0)

    def estimate(self, P, r, F):
        """Return the rows."""
        return self.denoise(P, r, F)[0]

    def mean_jacobian(self, P, r, F):
        """Return the mean Jacobian."""
        return self.denoise(P, r, F)[1]

    def penalty(self, X, r):
        """Return the penalty."""
        U = np.abs(X) / np.sqrt(r)[:, None]
        return float((U * (self.l1 + self.l2 / 2 * U)).sum())

    def convexity(self, r):
        """Return the smallest curvature."""
        return self.l2 * np.min(1 / r)
