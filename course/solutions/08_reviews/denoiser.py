"""Assignment 8: words come in kinds. A mixture of Gaussians as the prior, learned by expectation-maximisation."""

import numpy as np

from amptutorial import Denoiser

PREDICTION = 0.500

KINDS = 3
VARIANCE = 30.0  # where learning starts: EM leaves a prior that is too wide in a few steps, one too narrow in hundreds


class ReviewDenoiser(Denoiser):
    """Posterior mean of x = sqrt(r) u given p = x F + N(0, F), where u ~ sum_k weights_k N(means_k, covariances_k).

    Parameters
    ----------
    prior : tuple (weights, means, covariances), optional
        Arrays (K,), (K, d), (K, d, d); left out, a vague prior in as many dimensions as the rows have.
    learn : bool
        Whether `refit` takes a step of EM.
    """

    precision = "posterior"

    def __init__(self, prior=None, learn=True):
        self.prior, self.learn = prior, learn

    def _prior(self, d):
        if self.prior is not None:
            return self.prior
        directions = np.random.default_rng(0).standard_normal((KINDS, d))  # equal means would stay equal for ever
        covariances = np.tile(VARIANCE * np.eye(d), (KINDS, 1, 1))
        return np.full(KINDS, 1 / KINDS), np.sqrt(VARIANCE) / 3 * directions, covariances

    def _posterior(self, P, r, F):
        """Return, kind by kind, shares (K, N), means (K, N, d), and the covariances as gains (K, N, d) and V (K, d, d).

        If row i is of kind k, its posterior has the mean means_ki and the covariance V_k diag(gains_ki) V_k^T.
        """
        weights, means, covariances = self._prior(P.shape[1])
        L = np.linalg.cholesky(covariances)
        w, E = np.linalg.eigh(L.mT @ F @ L)
        w, V = np.maximum(w, 0)[:, None, :], L @ E
        gains = 1 / (w + 1 / r[:, None])
        centres = np.sqrt(r)[:, None] * means[:, None, :]
        Y = (P - centres @ F) @ V
        evidence = (centres * (P - centres @ F / 2)).sum(axis=2)
        evidence += (Y**2 * gains - np.log1p(r[:, None] * w)).sum(axis=2) / 2
        shares = _normalised(np.log(weights)[:, None] + evidence)
        return shares, centres + (Y * gains) @ V.mT, gains, V

    def denoise(self, P, r, F):
        """Return the posterior mean and its mean Jacobian, which is the mean posterior covariance (Tweedie)."""
        shares, means, gains, V = self._posterior(P, r, F)
        estimate = (shares[:, :, None] * means).sum(axis=0)
        covariances = _within(shares, gains, V) + _between(shares, means - estimate)
        return estimate, covariances.sum(axis=0) / len(P)

    def estimate(self, P, r, F):
        """Return the posterior means, shape (N, d)."""
        return self.denoise(P, r, F)[0]

    def mean_jacobian(self, P, r, F):
        """Return the mean posterior covariance, shape (d, d)."""
        return self.denoise(P, r, F)[1]

    def refit(self, P, r, F):
        """Return a copy after one step of EM, for which the old prior counts as one more row of each kind."""
        if not self.learn:
            return self
        _, old_means, old_covariances = self._prior(P.shape[1])
        shares, means, gains, V = self._posterior(P, r, F)
        U = means / np.sqrt(r)[:, None]
        sizes = shares.sum(axis=1) + 1
        new_means = ((shares[:, :, None] * U).sum(axis=1) + old_means) / sizes[:, None]
        scatter = _within(shares, gains / r[:, None], V) + _between(shares, U - new_means[:, None, :])
        new_covariances = (scatter + old_covariances) / sizes[:, None, None]
        return ReviewDenoiser((sizes / sizes.sum(), new_means, new_covariances))

    def frozen(self):
        """Return a copy that no longer learns."""
        return ReviewDenoiser(self.prior, learn=False)


def _normalised(logs):
    """Return exp(logs), each column divided by its sum."""
    shares = np.exp(logs - logs.max(axis=0))
    return shares / shares.sum(axis=0)


def _within(shares, gains, V):
    """Return for each kind the sum of the covariances of its rows, shape (K, d, d)."""
    return (V * (shares[:, :, None] * gains).sum(axis=1)[:, None, :]) @ V.mT


def _between(shares, deviations):
    """Return for each kind the sum of the outer squares of the deviations, shape (K, d, d)."""
    return (shares[:, :, None] * deviations).mT @ deviations
