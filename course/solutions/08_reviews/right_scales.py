"""Heavy tails: u ~ N(0, s C), with a scale s of the row's own among five, whose weights are learned together with C."""

import numpy as np

from amptutorial import Denoiser

PREDICTION = 0.561
SCALES = np.array([0.03, 0.1, 0.3, 1.0, 3.0])


class ReviewDenoiser(Denoiser):
    """A scale mixture of Gaussians: in the coordinates P V every kind of row is shrunk by its own factors."""

    precision = "posterior"

    def __init__(self, weights=None, covariance=None, learn=True):
        self.weights = np.full(5, 0.2) if weights is None else weights
        self.covariance, self.learn = covariance, learn

    def _shrink(self, P, r, F):
        """Return V (d, d), P V (N, d), the factors (5, N, d) and the probability of each scale (5, N, 1)."""
        d = P.shape[1]
        L = np.linalg.cholesky(30 * np.eye(d) if self.covariance is None else self.covariance)
        w, E = np.linalg.eigh(L.T @ F @ L)
        w, V = np.maximum(w, 0), L @ E
        variances = np.multiply.outer(SCALES, r)[:, :, None]
        factors = variances / (1 + variances * w)
        coordinates = P @ V
        logs = (coordinates**2 * factors - np.log(1 + variances * w)).sum(axis=2, keepdims=True) / 2
        logs += np.log(self.weights)[:, None, None]
        chances = np.exp(logs - logs.max(axis=0))
        return V, coordinates, factors, chances / chances.sum(axis=0)

    def estimate(self, P, r, F):
        """Return the rows."""
        V, coordinates, factors, chances = self._shrink(P, r, F)
        return (coordinates * (chances * factors).sum(axis=0)) @ V.T

    def mean_jacobian(self, P, r, F):
        """Return the mean covariance: that of each scale, and that between the scales."""
        V, coordinates, factors, chances = self._shrink(P, r, F)
        mean = (chances * factors).sum(axis=0)
        deviations = np.sqrt(chances) * (factors - mean) * coordinates
        inner = np.diag(mean.sum(axis=0)) + np.tensordot(deviations, deviations, axes=([0, 1], [0, 1]))
        return V @ inner @ V.T / len(P)

    def refit(self, P, r, F):
        """Return a copy after one step of EM for the weights and the covariance."""
        if not self.learn:
            return self
        V, coordinates, factors, chances = self._shrink(P, r, F)
        parts = chances / np.multiply.outer(SCALES, r)[:, :, None]
        means = np.sqrt(parts) * factors * coordinates
        inner = np.tensordot(means, means, axes=([0, 1], [0, 1])) + np.diag((parts * factors).sum(axis=(0, 1)))
        weights = chances.mean(axis=(1, 2)) + 1e-6
        return ReviewDenoiser(weights / weights.sum(), V @ inner @ V.T / len(P))

    def frozen(self):
        """Return a copy that no longer learns."""
        return ReviewDenoiser(self.weights, self.covariance, learn=False)
