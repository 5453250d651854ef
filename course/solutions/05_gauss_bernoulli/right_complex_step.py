"""The gradient of the log partition function by complex steps, exact to round-off; the Jacobian of the base class."""

from itertools import chain, combinations

import numpy as np

from amptutorial import Denoiser

PREDICTION = 0.071


class GaussBernoulli(Denoiser):
    """Posterior mean of rows whose entries are zero or Gaussian, by Tweedie's formula."""

    precision = "posterior"

    def __init__(self, density, variance):
        self.density, self.variance = density, variance

    def _log_partition(self, P, r, F):
        """Return log E exp(p x^T - x F x^T / 2) of each row of a complex P."""
        d, scale = len(F), self.variance * r[:, None]
        terms = []
        for S in map(list, chain.from_iterable(combinations(range(d), size) for size in range(d + 1))):
            w, E = np.linalg.eigh(F[np.ix_(S, S)])
            p, grown = P[:, S] @ E, 1 + scale * w
            chance = self.density ** len(S) * (1 - self.density) ** (d - len(S))
            terms.append(np.log(chance) + (scale / grown * p**2 - np.log(grown)).sum(axis=1) / 2)
        top = np.real(terms).max(axis=0)
        return top + np.log(np.exp(terms - top).sum(axis=0))

    def estimate(self, P, r, F):
        """Return the rows."""
        step = 1e-30
        return np.transpose([self._log_partition(P + 1j * step * e, r, F).imag / step for e in np.eye(len(F))])
