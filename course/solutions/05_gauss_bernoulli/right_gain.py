"""All supports and all rows in one array, with the gain (I + C F)^-1 C of a possibly singular prior covariance C."""

import numpy as np
from scipy.special import logsumexp

from amptutorial import Denoiser

PREDICTION = 0.071


class GaussBernoulli(Denoiser):
    """Posterior mean of rows whose entries are zero or Gaussian: one linear system for each row and support."""

    precision = "posterior"

    def __init__(self, density, variance):
        self.density, self.variance = density, variance

    def _mixture(self, P, r, F):
        d = len(F)
        present = np.indices((2,) * d).reshape(d, -1).T  # (2^d, d), zeros and ones
        prior = self.variance * np.multiply.outer(present, r).swapaxes(1, 2)  # variances of x, (2^d, N, d)
        system = np.eye(d) + prior[..., None] * F
        means = np.linalg.solve(system, (prior * P)[..., None])[..., 0]
        covariances = np.linalg.solve(system, prior[..., None] * np.eye(d))
        size = present.sum(axis=1, keepdims=True)
        logits = size * np.log(self.density) + (d - size) * np.log(1 - self.density)
        logits = logits + np.einsum("sik,ik->si", means, P) / 2 - np.linalg.slogdet(system)[1] / 2
        return np.exp(logits - logsumexp(logits, axis=0)), means, covariances

    def denoise(self, P, r, F):
        """Return the estimate and its mean Jacobian."""
        weights, means, covariances = self._mixture(P, r, F)
        X = (weights[..., None] * means).sum(axis=0)
        apart = means - X
        spread = covariances + apart[..., :, None] * apart[..., None, :]
        return X, (weights[..., None, None] * spread).sum(axis=0).mean(axis=0)

    def estimate(self, P, r, F):
        """Return the rows."""
        return self.denoise(P, r, F)[0]

    def mean_jacobian(self, P, r, F):
        """Return the mean Jacobian."""
        return self.denoise(P, r, F)[1]
