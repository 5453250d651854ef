"""The densities of p given each centroid, by SciPy; the covariance from the differences of pairs of centroids."""

import numpy as np
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from amptutorial import Denoiser

PREDICTION = 0.850


class Clusters(Denoiser):
    """The posterior mean, by Bayes' rule as it is written."""

    precision = "posterior"

    def __init__(self, centroids, probabilities):
        self.centroids = np.asarray(centroids, dtype=float)
        self.log_prior = np.log(probabilities)

    def _log_posterior(self, P, r, F):
        noise = multivariate_normal(np.zeros(len(F)), F)
        means = np.multiply.outer(self.centroids @ F, np.sqrt(r)).transpose(0, 2, 1)  # one plane for each centroid
        joint = self.log_prior[:, None] + noise.logpdf(P - means).reshape(len(means), len(P))
        return joint - logsumexp(joint, axis=0)

    def estimate(self, P, r, F):
        """Return the rows."""
        return np.tensordot(np.exp(self._log_posterior(P, r, F)), self.centroids, (0, 0)) * np.sqrt(r)[:, None]

    def mean_jacobian(self, P, r, F):
        """Return the mean Jacobian: a covariance is half the mean square of the difference of two draws."""
        weights = np.exp(self._log_posterior(P, r, F))
        together = (weights * r) @ weights.T / len(r)  # how often each pair of centroids is in doubt
        gaps = self.centroids[:, None] - self.centroids
        return np.einsum("kl,kla,klb->ab", together, gaps, gaps) / 2
