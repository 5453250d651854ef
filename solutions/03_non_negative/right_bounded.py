"""One bounded least-squares problem of N d variables for SciPy; rows with the same support share an eigenbasis."""

import numpy as np
from scipy.optimize import minimize

from amptutorial import Denoiser

PREDICTION = 0.385


class NonNegativeRows(Denoiser):
    """Ridge on non-negative rows, by a reflected Newton method on all rows at once."""

    def __init__(self, strength):
        self.strength = strength

    def _supports(self, P, r, F):
        """Return which entries are positive at the minimum."""
        N, d = P.shape
        shift = self.strength / r[:, None]
        units = 1 / np.sqrt(np.diag(F) + shift)  # in these units every entry has curvature one
        size = np.linalg.norm(P * units, axis=1, keepdims=True)
        field = np.divide(P * units, size, out=np.zeros_like(P), where=size > 0)  # and every row has length one

        def slopes(Y):
            X = units * Y
            return units * (X @ F + shift * X) - field

        def objective(flat):
            Z = flat.reshape(N, d)
            slope = slopes(Z**2)
            return np.vdot(Z**2, slope - field) / 2, (2 * Z * slope).ravel()

        options = {"maxcor": 20, "ftol": 0.0, "gtol": 1e-10, "maxiter": 5000, "maxfun": 10_000}
        Y = minimize(objective, np.ones(N * d), jac=True, method="L-BFGS-B", options=options).x.reshape(N, d) ** 2
        return Y > slopes(Y)  # of an entry and its slope, one vanishes at the minimum

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
