"""Assignment 7: rows in a ball and on a circle."""

import numpy as np

from amptutorial import Denoiser

PREDICTION = 0.809


class Ball(Denoiser):
    """The minimiser of x F x^T / 2 - p x^T over |x| <= radius sqrt(r), row by row.

    Parameters
    ----------
    radius : float
        Of the ball that holds every u = x / sqrt(r).
    """

    def __init__(self, radius):
        self.radius = radius

    def _modes(self, P, r, F):
        """Return the estimates and the gains 1 / (w + mu) in the basis V of eigenvectors, V, and mu, zero inside."""
        w, V = np.linalg.eigh(F)
        q, length = P @ V, self.radius * np.sqrt(r)
        # |x| >= |p| / (w_max + mu), so that mu is no smaller than this. 1 / |x| is a concave function of mu: from here,
        # Newton's method for 1 / |x| = 1 / length climbs to the root and never passes it.
        mu = np.maximum(np.linalg.norm(q, axis=1) / length - w[-1], 0)
        for _ in range(20):
            gains = 1 / (w + mu[:, None])
            square, slope = (q**2 * gains**2).sum(axis=1), (q**2 * gains**3).sum(axis=1)
            newton = square / np.maximum(slope, 1e-300) * (np.sqrt(square) / length - 1)
            mu = np.maximum(mu + newton, 0)
        gains = 1 / (w + mu[:, None])
        return q * gains, gains, V, mu

    def estimate(self, P, r, F):
        """Return the estimated rows, shape (N, d)."""
        X, _, V, _ = self._modes(P, r, F)
        return X @ V.T

    def mean_jacobian(self, P, r, F):
        """Return the mean of G, and on the sphere of G - G x x^T G / (x^T G x), where G = (F + mu I)^-1."""
        X, gains, V, mu = self._modes(P, r, F)
        outward = X * gains
        lost = (mu > 0) / np.maximum((X * outward).sum(axis=1), 1e-300)
        J = np.diag(gains.mean(axis=0)) - (outward.T * lost) @ outward / len(P)
        return V @ J @ V.T

    def penalty(self, X, r):
        """Return 0, or infinity if a row is outside its ball by more than round-off."""
        lengths = np.linalg.norm(X, axis=1) / np.sqrt(r)
        return 0.0 if (lengths <= self.radius * (1 + 1e-9)).all() else np.inf


class Circle(Denoiser):
    """The posterior mean of x = sqrt(r) u given p = x F + N(0, F), for u uniform on a circle, d = 2.

    Parameters
    ----------
    radius : float
        Of the circle.
    """

    precision = "posterior"

    def __init__(self, radius):
        self.radius = radius

    def _posterior(self, P, r, F):
        """Return points of the unit circle (n, 2), their weights in each row (N, n), and the lengths of the rows."""
        length = self.radius * np.sqrt(r)
        w = np.linalg.eigvalsh(F)
        sharpness = np.max(length * np.linalg.norm(P, axis=1) + length**2 * (w[-1] - w[0]))
        # The log posterior bends by at most `sharpness`: no peak is narrower than a Gaussian of standard deviation
        # sharpness^-1/2. For phases 0.7 of that apart the trapezoid rule errs by exp(-2 pi^2 / 0.7^2), that is, by
        # round-off. Beyond the 4096 phases that memory allows, the answer is the best of these.
        phases = np.linspace(0, 2 * np.pi, min(16 + int(9 * np.sqrt(sharpness)), 4096), endpoint=False)
        points = np.column_stack([np.cos(phases), np.sin(phases)])
        log_weights = length[:, None] * (P @ points.T)
        log_weights -= np.outer(length**2 / 2, ((points @ F) * points).sum(axis=1))
        weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
        return points, weights / weights.sum(axis=1, keepdims=True), length

    def estimate(self, P, r, F):
        """Return the posterior means, shape (N, 2)."""
        points, weights, length = self._posterior(P, r, F)
        return length[:, None] * (weights @ points)

    def mean_jacobian(self, P, r, F):
        """Return the mean of the posterior covariances, shape (2, 2)."""
        points, weights, length = self._posterior(P, r, F)
        X = length[:, None] * (weights @ points)
        second_moments = (points.T * (length**2 @ weights)) @ points
        return (second_moments - X.T @ X) / len(P)
