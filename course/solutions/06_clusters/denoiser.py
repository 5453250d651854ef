"""Assignment 6: clusters."""

import numpy as np

from amptutorial import Denoiser

PREDICTION = 0.850


class Clusters(Denoiser):
    """The posterior mean of x = sqrt(r) u given p = x F + N(0, F), where u is one of K centroids.

    Parameters
    ----------
    centroids : array (K, d)
        The possible rows u.
    probabilities : array (K,)
        How probable each is: positive, with sum 1.
    """

    precision = "posterior"  # AMP is to pass F = Q

    def __init__(self, centroids, probabilities):
        self.centroids = np.asarray(centroids, dtype=float)
        self.probabilities = np.asarray(probabilities, dtype=float)

    def _weights(self, P, r, F):
        """Return the probability of each centroid given p, shape (N, K)."""
        C = self.centroids
        half_squares = np.einsum("ka,ab,kb->k", C, F, C) / 2
        logs = np.log(self.probabilities) + np.sqrt(r)[:, None] * (P @ C.T) - np.outer(r, half_squares)
        logs -= logs.max(axis=1, keepdims=True)  # the weights stay as they are, and no exponential overflows
        weights = np.exp(logs)
        return weights / weights.sum(axis=1, keepdims=True)

    def estimate(self, P, r, F):
        """Return sqrt(r) times the mean centroid of each row, shape (N, d)."""
        return np.sqrt(r)[:, None] * (self._weights(P, r, F) @ self.centroids)

    def mean_jacobian(self, P, r, F):
        """Return the mean of the posterior covariances of x, shape (d, d)."""
        weights = self._weights(P, r, F)
        deviations = self.centroids - (weights @ self.centroids)[:, None, :]
        return np.einsum("i,ik,ika,ikb->ab", r, weights, deviations, deviations) / len(r)
