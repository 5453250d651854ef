"""Assignment 5: sparse rows, by their posterior mean."""

from itertools import product

import numpy as np
from scipy.special import softmax

from amptutorial import Denoiser

PREDICTION = 0.071


class GaussBernoulli(Denoiser):
    """Posterior mean of x = sqrt(r) u, where each entry of u is N(0, variance) with probability `density`, else zero.

    Parameters
    ----------
    density : float
        Between 0 and 1, exclusive.
    variance : float
        Positive.
    """

    precision = "posterior"

    def __init__(self, density, variance):
        self.density = density
        self.variance = variance

    def _given(self, support, P, r, F):
        """Return log weights (N,), means (N, d), axes (d, s) and variances along them (N, s), if x has this support.

        There x is Gaussian with the precision F_SS + I / (r variance). One eigendecomposition serves all rows.
        """
        w, E = np.linalg.eigh(F[np.ix_(support, support)])
        axes = np.eye(len(F))[:, support] @ E
        scale = self.variance * r[:, None]
        variances = 1 / (w + 1 / scale)
        coordinates = P @ axes
        log_prior = np.where(np.isin(range(len(F)), support), np.log(self.density), np.log1p(-self.density)).sum()
        evidence = (coordinates**2 * variances - np.log1p(scale * w)).sum(axis=1) / 2
        return log_prior + evidence, (coordinates * variances) @ axes.T, axes, variances

    def denoise(self, P, r, F):
        """Return the posterior means (N, d) and the mean posterior covariance (d, d): sums over the supports."""
        supports = [np.flatnonzero(present) for present in product((0, 1), repeat=len(F))]
        given = [self._given(support, P, r, F) for support in supports]
        weights = softmax([log_weights for log_weights, *_ in given], axis=0)
        X = sum(pi[:, None] * means for pi, (_, means, *_) in zip(weights, given, strict=True))
        J = np.zeros(F.shape)
        for pi, (_, means, axes, variances) in zip(weights, given, strict=True):
            apart = means - X
            J += (axes * (pi @ variances)) @ axes.T + (pi[:, None] * apart).T @ apart
        return X, J / len(P)

    def estimate(self, P, r, F):
        """Return the posterior means, shape (N, d)."""
        return self.denoise(P, r, F)[0]

    def mean_jacobian(self, P, r, F):
        """Return the mean over the rows of the posterior covariance, shape (d, d)."""
        return self.denoise(P, r, F)[1]
