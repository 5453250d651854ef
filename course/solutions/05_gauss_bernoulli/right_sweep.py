"""One entry after the other: is it present? Each yes is a sweep of a tableau, and the answers merge on the way back."""

import numpy as np
from scipy.special import expit, logit

from amptutorial import Denoiser

PREDICTION = 0.071


def sweep(T, k):
    """Return the symmetric tableaux T (N, d + 1, d + 1) after their variable k has been integrated out."""
    column = T[:, :, k]
    swept = T - column[:, :, None] * column[:, None, :] / T[:, k, k, None, None]
    swept[:, :, k] = swept[:, k, :] = column / T[:, k, k, None]
    swept[:, k, k] = -1 / T[:, k, k]
    return swept


def merge(absent, present, log_odds):
    """Return the evidence, mean and covariance of a mixture of two; `log_odds` are those of the second before p."""
    pi = expit(log_odds + present[0] - absent[0])
    apart = present[1] - absent[1]
    mean = absent[1] + pi[:, None] * apart
    weights = pi[:, None, None], (pi * (1 - pi))[:, None, None]
    covariance = absent[2] + weights[0] * (present[2] - absent[2])
    evidence = np.logaddexp(absent[0], log_odds + present[0]) - np.logaddexp(0, log_odds)
    return evidence, mean, covariance + weights[1] * apart[:, :, None] * apart[:, None, :]


class GaussBernoulli(Denoiser):
    """Posterior mean of rows whose entries are zero or Gaussian, by a recursion over the entries."""

    precision = "posterior"

    def __init__(self, density, variance):
        self.density, self.variance = density, variance

    def _decide(self, T, volume, present, r):
        """Return log evidence, mean and covariance, given which of the first entries are present."""
        k, d = len(present), T.shape[1] - 1
        if k == d:
            on = np.array(present)
            return -(T[:, d, d] + volume) / 2, on * T[:, :d, d], -np.outer(on, on) * T[:, :d, :d]
        absent = self._decide(T, volume, (*present, 0.0), r)
        T = T.copy()
        T[:, k, k] += 1 / (self.variance * r)
        volume = volume + np.log(self.variance * r * T[:, k, k])
        return merge(absent, self._decide(sweep(T, k), volume, (*present, 1.0), r), logit(self.density))

    def denoise(self, P, r, F):
        """Return the estimate and its mean Jacobian."""
        N, d = P.shape
        T = np.zeros((N, d + 1, d + 1))
        T[:, :d, :d] = F
        T[:, :d, d] = T[:, d, :d] = P
        _, mean, covariance = self._decide(T, np.zeros(N), (), r)
        return mean, covariance.mean(axis=0)

    def estimate(self, P, r, F):
        """Return the rows."""
        return self.denoise(P, r, F)[0]

    def mean_jacobian(self, P, r, F):
        """Return the mean Jacobian."""
        return self.denoise(P, r, F)[1]
