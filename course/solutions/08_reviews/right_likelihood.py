"""Short and long rows in no particular direction: three numbers, found by maximising the likelihood of the rows."""

import numpy as np
from scipy.optimize import minimize

from amptutorial import Denoiser

PREDICTION = 0.481
START = np.log([10.0, 100.0, 1.0])  # the two variances and the odds of the second


class ReviewDenoiser(Denoiser):
    """The posterior mean as the derivative of the log-likelihood by p (Tweedie), taken by a complex step."""

    precision = "posterior"

    def __init__(self, logs=START, learn=True):
        self.logs, self.learn = logs, learn

    def _log_likelihood(self, P, r, F, logs):
        """Return log E exp(p x^T - x F x^T / 2), by rows of each table in a stack `P`; an analytic function of `P`."""
        w, V = np.linalg.eigh(F)
        variances = (np.exp(logs[:2])[:, None] * r)[:, :, None]
        quadratic = np.einsum("snk,cnk->csn", (P @ V) ** 2, 1 / (w + 1 / variances))
        each = (quadratic - np.log1p(variances * w).sum(axis=2)[:, None]) / 2 + np.array([0.0, logs[2]])[:, None, None]
        largest = each.real.max(axis=0)
        return np.log(np.exp(each - largest).sum(axis=0)) + largest - np.logaddexp(0, logs[2])

    def estimate(self, P, r, F):
        """Return the derivative by each entry of P."""
        step = 1e-30 * (1 + np.abs(P).max())
        shifted = P + 1j * step * np.eye(P.shape[1])[:, None]
        return self._log_likelihood(shifted, r, F, self.logs).imag.T / step

    def refit(self, P, r, F):
        """Return a copy with the three numbers that a few steps of L-BFGS find."""
        if not self.learn:
            return self

        def loss(logs):
            return -self._log_likelihood(P[None], r, F, logs).mean()

        bounds = [(-9, 9), (-9, 9), (-7, 7)]
        return ReviewDenoiser(minimize(loss, self.logs, method="L-BFGS-B", bounds=bounds, options={"maxiter": 3}).x)

    def frozen(self):
        """Return a copy that no longer learns."""
        return ReviewDenoiser(self.logs, learn=False)
