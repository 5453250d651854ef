"""Softmax of SciPy on augmented rows, and the Jacobian from second moments of the centroids."""

import numpy as np
from scipy.special import softmax

from amptutorial import Denoiser

PREDICTION = 0.850


class Clusters(Denoiser):
    """The posterior mean under a prior on finitely many rows."""

    precision = "posterior"

    def __init__(self, centroids, probabilities):
        self.centroids = np.array(centroids, dtype=float)
        self.probabilities = np.array(probabilities, dtype=float)

    def denoise(self, P, r, F):
        """Return the estimate and its mean Jacobian."""
        C, root = self.centroids, np.sqrt(r)[:, None]
        energies = ((C @ F) * C).sum(axis=1)
        scores = np.hstack([root * P, r[:, None], np.ones_like(root)])
        W = softmax(scores @ np.vstack([C.T, -energies / 2, np.log(self.probabilities)]), axis=1)
        X = root * (W @ C)
        second = C.T @ (C * (r @ W)[:, None])
        return X, (second - X.T @ X) / len(P)

    def estimate(self, P, r, F):
        """Return the rows."""
        return self.denoise(P, r, F)[0]

    def mean_jacobian(self, P, r, F):
        """Return the mean Jacobian."""
        return self.denoise(P, r, F)[1]
