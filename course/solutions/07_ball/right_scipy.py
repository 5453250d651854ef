"""The multiplier of the ball as an eigenvalue; the circle by Gauss-Legendre quadrature and SciPy's softmax."""

import numpy as np
from scipy.special import roots_legendre, softmax

from amptutorial import Denoiser

PREDICTION = 0.8089


class Ball(Denoiser):
    """The minimiser in a ball."""

    def __init__(self, radius):
        self.radius = radius

    def _multipliers(self, P, r, F):
        """Return mu for each row: the largest real eigenvalue of a matrix of twice the size, or 0 inside.

        With z = (F + mu I)^-2 p and |x|^2 = p . z = R^2, the vectors z and y = (F + mu I) z satisfy
        (F + mu I) y = p p^T z / R^2.
        """
        N, d = P.shape
        direction = P / (self.radius * np.sqrt(r)[:, None])
        blocks = np.zeros((N, 2 * d, 2 * d))
        blocks[:, :d, :d] = blocks[:, d:, d:] = -F
        blocks[:, :d, d:] = np.eye(d)
        blocks[:, d:, :d] = direction[:, :, None] * direction[:, None, :]
        values = np.linalg.eigvals(blocks)
        size = np.abs(values).max(axis=1, keepdims=True)
        real = np.where(np.abs(values.imag) <= 1e-6 * size, values.real, -np.inf)
        return np.maximum(real.max(axis=1), 0)

    def denoise(self, P, r, F):
        """Return the rows, with the length that they must have, and the mean of G, projected where mu > 0."""
        mu = self._multipliers(P, r, F)
        outside = mu > 0
        G = np.linalg.inv(F + mu[:, None, None] * np.eye(len(F)))
        X = np.einsum("nkl,nl->nk", G, P)
        lengths = np.linalg.norm(X, axis=1)
        wanted = np.where(outside, self.radius * np.sqrt(r), lengths)
        X *= np.divide(wanted, lengths, out=np.ones_like(lengths), where=lengths > 0)[:, None]
        GX = np.einsum("nkl,nl->nk", G, X)
        curvature = np.where(outside, np.einsum("nk,nk->n", X, GX), np.inf)
        return X, (G - GX[:, :, None] * GX[:, None, :] / curvature[:, None, None]).mean(axis=0)

    def estimate(self, P, r, F):
        """Return the rows."""
        return self.denoise(P, r, F)[0]

    def mean_jacobian(self, P, r, F):
        """Return the mean Jacobian."""
        return self.denoise(P, r, F)[1]

    def penalty(self, X, r):
        """Return 0 inside, infinity outside."""
        return 0.0 if np.all((X**2).sum(axis=1) <= self.radius**2 * r * (1 + 1e-8)) else np.inf


class Circle(Denoiser):
    """The posterior mean on a circle."""

    precision = "posterior"

    def __init__(self, radius):
        self.radius = radius

    def denoise(self, P, r, F):
        """Return the posterior means and the mean of the covariances."""
        nodes, node_weights = roots_legendre(12)
        panels = np.linspace(-np.pi, np.pi, 32, endpoint=False)[:, None]
        phases = (panels + np.pi / 32 * (1 + nodes)).ravel()
        points = np.stack([np.cos(phases), np.sin(phases)])
        log_weights = np.tile(np.log(node_weights), 32)
        length = self.radius * np.sqrt(r)[:, None]
        energy = length**2 * np.einsum("kj,kl,lj->j", points, F, points) / 2
        share = softmax(log_weights + length * (P @ points) - energy, axis=1)
        U = share @ points.T
        second = np.einsum("j,kj,lj->kl", (length**2 * share).mean(axis=0), points, points)
        X = length * U
        return X, second - X.T @ X / len(X)

    def estimate(self, P, r, F):
        """Return the posterior means."""
        return self.denoise(P, r, F)[0]

    def mean_jacobian(self, P, r, F):
        """Return the mean of the covariances."""
        return self.denoise(P, r, F)[1]
