"""Assignment 6: clusters. Replace every `raise NotImplementedError` and hand in this file."""

import numpy as np

from amptutorial import Denoiser

PREDICTION = None  # the outcome of the experiment at the end of the brief, a number, from state evolution


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

    def estimate(self, P, r, F):
        """Return the estimated rows.

        Parameters
        ----------
        P : array (N, d)
            The noisy rows.
        r : array (N,)
            Their bias factors, in words their frequencies.
        F : array (d, d)
            The precision matrix, one for all rows.

        Returns
        -------
        array (N, d)
        """
        raise NotImplementedError("write the estimate")

    def mean_jacobian(self, P, r, F):
        """Return the mean over the rows of d estimate_l / d P_k at [k, l], shape (d, d)."""
        raise NotImplementedError("write the Jacobian")
