"""Assignment 7: rows in a ball, and rows on a circle with unknown phases."""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from amptutorial.checks.beliefs import Penalty, Prior

from ._core import Assignment, Experiment, Family, log_uniform
from ._limits import Limit, unpenalised
from ._points import MINIMISER


@dataclass(frozen=True)
class BallRows:
    """Rows uniform in the ball of this radius.

    Examples
    --------
    >>> U = BallRows(2.0).draw((1000, 3), rng=np.random.default_rng(0))
    >>> bool(1.9 < np.linalg.norm(U, axis=1).max() <= 2)
    True
    """

    radius: float

    def draw(self, size, rng):
        """Return rows of shape `size` = (N, d)."""
        N, d = size
        lengths = self.radius * rng.random((N, 1)) ** (1 / d)
        return lengths * _directions(rng.standard_normal(size))


@dataclass(frozen=True)
class CircleRows:
    """Rows uniform on the circle of this radius: a phase is all there is to know.

    Examples
    --------
    >>> U = CircleRows(2.0).draw((3, 2), rng=np.random.default_rng(0))
    >>> np.linalg.norm(U, axis=1)
    array([2., 2., 2.])
    """

    radius: float

    def draw(self, size, rng):
        """Return rows of shape `size` = (N, 2)."""
        return self.radius * _directions(rng.standard_normal(size))


def _directions(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


@dataclass(frozen=True)
class NotBeyond(Penalty):
    """g(u) = 0 for |u| <= the radius of `rows`, infinite beyond, but for round-off."""

    rows: BallRows

    convexity = 0.0

    def value(self, U):
        """Return g of each row."""
        inside = np.linalg.norm(U, axis=1) <= (1 + 1e-9) * self.rows.radius
        return np.where(inside, 0.0, np.inf)

    def prox(self, U, steps):
        """Return the nearest rows of the ball."""
        return self.project(U)

    def project(self, U):
        """Return the nearest rows of the ball."""
        lengths = np.maximum(np.linalg.norm(U, axis=1, keepdims=True), 1e-300)
        return U * np.minimum(1, self.rows.radius / lengths)


@dataclass(frozen=True)
class UniformPhase(Prior):
    """u is uniform on the circle."""

    rows: CircleRows

    decades = (-4, 5)  # sharper peaks than the mean over phases resolves are asked at p = 0
    sharpest = 300.0
    tolerance = 1e-5

    def log_partition(self, P, r, F):
        """Return log E exp(p x^T - x F x^T / 2), the mean over 1024 phases."""
        phases = np.linspace(0, 2 * np.pi, 1024, endpoint=False)
        circle = np.column_stack([np.cos(phases), np.sin(phases)])
        X = self.rows.radius * np.sqrt(r)[:, None, None] * circle
        exponents = np.einsum("nk,njk->nj", P, X) - ((X @ F) * X).sum(axis=2) / 2
        return logsumexp(exponents, axis=1) - np.log(1024)


def ball_limits(d, radius):
    """Yield what becomes of the estimate in a wide ball and in a tiny one."""
    yield Limit("In a wide ball the estimate is p F^-1", {"radius": 1e5}, unpenalised)
    yield Limit(
        "In a tiny ball the estimate is p, cut to the length radius sqrt(r)",
        {"radius": 1e-7},
        lambda P, r, F: 1e-7 * np.sqrt(r)[:, None] * _directions(P),
    )


def circle_limits(d, radius):
    """Yield what becomes of the estimate on a tiny circle."""
    yield Limit(
        "On a tiny circle the estimate is p times the prior variance radius^2 r / 2 of an entry",
        {"radius": 1e-5},
        lambda P, r, F: 1e-10 / 2 * r[:, None] * P,
    )


def mean_cosine(X, X_hat):
    """Return the mean cosine of the angle between a row of X and its estimate.

    It is 1 if all phases are right.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [0.0, 2.0]])
    >>> X_hat = np.array([[3.0, 0.0], [1.0, 0.0]])
    >>> float(mean_cosine(X, X_hat))
    0.5
    """
    return (_directions(X) * _directions(X_hat)).sum(axis=1).mean()


BALLS = log_uniform(radius=((1.1, 1.5), (-1, 3), (-6, 8)))
CIRCLES = log_uniform(radius=((0.5, 1.2), (-1, 1.5), (-6, 4)))

ASSIGNMENT = Assignment(
    7,
    "ball",
    "rows in a ball and on a circle",
    (
        Family("Ball", BALLS, lambda radius: NotBeyond(BallRows(radius)), ball_limits),
        Family("Circle", CIRCLES, lambda radius: UniformPhase(CircleRows(radius)), circle_limits, (2, 2), (2, 2, 2)),
    ),
    Experiment(
        "Circle",
        {"radius": 1.8},
        CircleRows(1.8),
        d=2,
        n_iter=6,
        start_noise=2.0,
        statistic=mean_cosine,
        tolerance=0.015,
    ),
    # the estimates of both classes
    points=MINIMISER | {"optimality": 13, "tweedie": 16, "penalty": 3},
)
