"""The ball by bisection, its Jacobian from the equations of the sphere; the circle by zooming in on the posterior."""

import numpy as np

from amptutorial import Denoiser

PREDICTION = 0.81


class Ball(Denoiser):
    """The minimiser in a ball."""

    def __init__(self, radius):
        self.radius = radius

    def _solve(self, P, r, F):
        """Return the rows and their multipliers: the length of p (F + mu I)^-1 falls as mu grows."""
        w, V = np.linalg.eigh(F)
        bound = self.radius * np.sqrt(r)

        def coordinates(mu):
            return (P @ V) / (w + mu[:, None])

        low, high = np.zeros(len(P)), np.linalg.norm(P, axis=1) / bound
        for _ in range(100):
            middle = (low + high) / 2
            too_long = np.linalg.norm(coordinates(middle), axis=1) > bound
            low, high = np.where(too_long, middle, low), np.where(too_long, high, middle)
        inside = np.linalg.norm(coordinates(np.zeros(len(P))), axis=1) <= bound
        mu = np.where(inside, 0.0, high)
        return coordinates(mu) @ V.T, mu

    def estimate(self, P, r, F):
        """Return the rows."""
        return self._solve(P, r, F)[0]

    def mean_jacobian(self, P, r, F):
        """Return the mean Jacobian: (F + mu I) dx + x dmu = dp and, where mu > 0, x . dx = 0."""
        X, mu = self._solve(P, r, F)
        N, d = P.shape
        scale = self.radius * np.sqrt(r)[:, None]
        outside = mu[:, None] > 0
        system = np.zeros((N, d + 1, d + 1))
        system[:, :d, :d] = F + mu[:, None, None] * np.eye(d)
        system[:, :d, d] = system[:, d, :d] = np.where(outside, X / scale, 0.0)
        system[:, d, d] = ~outside[:, 0]
        units = np.broadcast_to(np.eye(d + 1, d), (N, d + 1, d))
        return np.linalg.solve(system, units)[:, :d].mean(axis=0).T

    def penalty(self, X, r):
        """Return 0 inside, infinity outside."""
        squares = (X**2).sum(axis=1) / (self.radius**2 * r)
        return np.inf if squares.max() > 1 + 1e-9 else 0.0


class Circle(Denoiser):
    """The posterior mean on a circle."""

    precision = "posterior"

    def __init__(self, radius):
        self.radius = radius

    def denoise(self, P, r, F):
        """Return the posterior means and the mean of the covariances, from 160 phases where the posterior is."""
        length = self.radius * np.sqrt(r)[:, None]
        a, b = np.hsplit(length * P, 2)
        c, s = length**2 / 4 * (F[0, 0] - F[1, 1]), length**2 / 2 * F[0, 1]
        steps = np.linspace(-1, 1, 160, endpoint=False)
        centre, width = np.zeros_like(length), np.full_like(length, np.pi)
        for _ in range(8):
            phases = centre + width * steps
            x, y = np.cos(phases), np.sin(phases)
            score = a * x + b * y - c * (x**2 - y**2) - 2 * s * x * y
            score -= score.max(axis=1, keepdims=True)
            if (width < 50 / np.sqrt(np.hypot(a, b) + 4 * np.hypot(c, s))).all():
                break  # fine enough for the sharpest peak that there can be
            matters = score > -45  # the rest of the circle has less than 1e-19 of the mass
            low = np.where(matters, phases, np.inf).min(axis=1, keepdims=True) - width / 80
            high = np.where(matters, phases, -np.inf).max(axis=1, keepdims=True) + width / 80
            wide = high - low > width  # two peaks, or one across the end of the window: turn to the highest first
            best = np.take_along_axis(phases, score.argmax(axis=1, keepdims=True), axis=1)
            turned = np.where(width < np.pi, centre, best)
            centre, width = np.where(wide, turned, (low + high) / 2), np.where(wide, width, (high - low) / 2)
        weights = np.exp(score)
        weights /= weights.sum(axis=1, keepdims=True)
        X = np.stack([(weights * x).sum(axis=1), (weights * y).sum(axis=1)], axis=1)
        x, y, weights = x - X[:, :1], y - X[:, 1:], weights * length**2  # centred: no cancellation
        xx, xy, yy = ((weights * product).sum() / len(P) for product in (x * x, x * y, y * y))
        return length * X, np.array([[xx, xy], [xy, yy]])

    def estimate(self, P, r, F):
        """Return the posterior means."""
        return self.denoise(P, r, F)[0]

    def mean_jacobian(self, P, r, F):
        """Return the mean of the covariances."""
        return self.denoise(P, r, F)[1]
