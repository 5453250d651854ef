"""The ball by accelerated projected gradients, with the Jacobian of the base class; the circle phase by phase."""

import numpy as np

from amptutorial import Denoiser

PREDICTION = 0.807


class Ball(Denoiser):
    """The minimiser in a ball."""

    def __init__(self, radius):
        self.radius = radius

    def estimate(self, P, r, F):
        """Return the rows."""
        w = np.linalg.eigvalsh(F)
        bound = self.radius * np.sqrt(r)[:, None]
        root = np.sqrt(max(w[0], 1e-4 * w[-1]) / w[-1])
        momentum = (1 - root) / (1 + root)
        X = ahead = np.zeros(P.shape)
        for _ in range(int(30 / root)):
            step = ahead - (ahead @ F - P) / w[-1]
            new = step * np.minimum(1, bound / np.maximum(np.linalg.norm(step, axis=1, keepdims=True), 1e-200))
            X, ahead = new, new + momentum * (new - X)
        return X

    def penalty(self, X, r):
        """Return 0 inside, infinity outside."""
        U = X / np.sqrt(r)[:, None]
        return float(np.where(np.linalg.norm(U, axis=1) > self.radius + 1e-8 * self.radius, np.inf, 0).sum())


class Circle(Denoiser):
    """The posterior mean on a circle."""

    precision = "posterior"

    def __init__(self, radius):
        self.radius = radius

    def denoise(self, P, r, F):
        """Return the posterior means and the mean of the covariances: moments summed over 360 phases."""
        length = self.radius * np.sqrt(r)
        phases = np.arange(360) * (2 * np.pi / 360)
        directions = np.column_stack([np.cos(phases), np.sin(phases)])
        px, py = (length[:, None] * P).T
        square = length**2 / 2

        def score(e):
            return px * e[0] + py * e[1] - square * (e @ F @ e)

        best = np.max([score(e) for e in directions], axis=0)
        moments = np.zeros((5, len(P)))
        for e in directions:
            moments += np.outer([1, *e, e[0] ** 2, e[0] * e[1]], np.exp(score(e) - best))
        x, y, xx, xy = moments[1:] / moments[0]
        covariance = np.array([[xx - x * x, xy - x * y], [xy - x * y, 1 - xx - y * y]])
        return length[:, None] * np.stack([x, y], axis=1), (2 * square * covariance).mean(axis=2)

    def estimate(self, P, r, F):
        """Return the rows."""
        return self.denoise(P, r, F)[0]

    def mean_jacobian(self, P, r, F):
        """Return the mean of the covariances."""
        return self.denoise(P, r, F)[1]
