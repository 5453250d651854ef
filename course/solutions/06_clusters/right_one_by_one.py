"""One centroid after another: a mixture of two at a time, whose odds are logistic."""

import numpy as np
from scipy.special import expit

from amptutorial import Denoiser

PREDICTION = 0.850


class Clusters(Denoiser):
    """The posterior mean, updated with each centroid."""

    precision = "posterior"

    def __init__(self, centroids, probabilities):
        self.atoms = [(np.asarray(c, dtype=float), float(w)) for c, w in zip(centroids, probabilities, strict=True)]

    def denoise(self, P, r, F):
        """Return the estimate and its mean Jacobian."""
        N, d = P.shape
        mean, covariance, evidence = np.zeros((N, d)), np.zeros((N, d, d)), np.full(N, -np.inf)
        for c, probability in self.atoms:
            X = np.sqrt(r)[:, None] * c
            log_weight = np.log(probability) + np.einsum("il,il->i", P - X @ F / 2, X)
            share = expit(log_weight - evidence)[:, None]
            step = X - mean
            between = (share * (1 - share) * step)[:, :, None] * step[:, None, :]
            covariance = (1 - share)[:, :, None] * covariance + between
            mean = mean + share * step
            evidence = np.logaddexp(evidence, log_weight)
        return mean, covariance.mean(axis=0)

    def estimate(self, P, r, F):
        """Return the rows."""
        return self.denoise(P, r, F)[0]

    def mean_jacobian(self, P, r, F):
        """Return the mean Jacobian."""
        return self.denoise(P, r, F)[1]
