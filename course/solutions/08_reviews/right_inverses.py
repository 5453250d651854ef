"""Two kinds of rows with a covariance each, one inverse matrix for every row and kind."""

import numpy as np

from amptutorial import Denoiser

PREDICTION = 0.493


class ReviewDenoiser(Denoiser):
    """u ~ (1 - share) N(0, C_0) + share N(0, C_1), learned by EM."""

    precision = "posterior"

    def __init__(self, share=0.5, covariances=None):
        self.share, self.covariances = share, covariances

    def _kinds(self, P, r, F):
        """Return the chance of the second kind (N,), and for each kind means (N, d) and covariances (N, d, d)."""
        eye = np.eye(len(F))
        kinds = []
        for C in self._covariances(len(F)):
            inverse = np.linalg.inv(np.linalg.inv(C) / r[:, None, None] + F)
            mean = np.einsum("nkl,nl->nk", inverse, P)
            determinant = np.linalg.slogdet(eye + r[:, None, None] * (C @ F))[1]
            kinds.append(((P * mean).sum(axis=1) / 2 - determinant / 2, mean, inverse))
        (log_0, *first), (log_1, *second) = kinds
        odds = log_1 - log_0 + np.log(self.share / (1 - self.share))
        return 1 / (1 + np.exp(np.clip(-odds, -700, 700))), first, second

    def _covariances(self, d):
        return (15 * np.eye(d), 60 * np.eye(d)) if self.covariances is None else self.covariances

    def estimate(self, P, r, F):
        """Return the rows."""
        chance, (first, _), (second, _) = self._kinds(P, r, F)
        return first + chance[:, None] * (second - first)

    def mean_jacobian(self, P, r, F):
        """Return the mean covariance, within the kinds and between them."""
        chance, (first, within_first), (second, within_second) = self._kinds(P, r, F)
        apart = np.sqrt(chance * (1 - chance))[:, None] * (second - first)
        within = np.einsum("n,nkl->kl", 1 - chance, within_first) + np.einsum("n,nkl->kl", chance, within_second)
        return (within + apart.T @ apart) / len(P)

    def refit(self, P, r, F):
        """Return a copy after one step of EM."""
        chance, *kinds = self._kinds(P, r, F)
        covariances = []
        for weight, (mean, covariance), old in zip((1 - chance, chance), kinds, self._covariances(len(F)), strict=True):
            weight = weight / r
            second_moments = np.einsum("n,nk,nl->kl", weight, mean, mean) + np.einsum("n,nkl->kl", weight, covariance)
            covariances.append((second_moments + old) / ((weight * r).sum() + 1))
        share = np.clip(chance.mean(), 1e-3, 1 - 1e-3)
        return ReviewDenoiser(share, tuple((C + C.T) / 2 for C in covariances))

    def frozen(self):
        """Return a denoiser with this prior for good."""
        return _Fixed(self.share, self.covariances)


class _Fixed(ReviewDenoiser):
    """The same belief; it learns no more."""

    def refit(self, P, r, F):
        """Return itself."""
        return self
