"""Assignment 6: rows from clusters, the communities of a co-occurrence graph."""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from amptutorial.checks.beliefs import Prior

from ._core import FAR, NEAR, Assignment, Experiment, Family
from ._limits import Limit
from ._points import POSTERIOR_MEAN


@dataclass(frozen=True)
class CentroidRows:
    """Embedding rows u that are one of K centroids.

    Parameters
    ----------
    centroids : array (K, d)
    probabilities : array (K,)

    Examples
    --------
    >>> law = CentroidRows([[0.0, 1.0], [2.0, 0.0]], [0.9, 0.1])
    >>> law.draw((2, 2), rng=np.random.default_rng(0))
    array([[0., 1.],
           [0., 1.]])
    """

    centroids: list
    probabilities: list

    def draw(self, size, rng):
        """Return rows of shape `size` = (N, d)."""
        N, d = size
        centroids = np.asarray(self.centroids).reshape(-1, d)
        return centroids[rng.choice(len(centroids), N, p=self.probabilities)]


@dataclass(frozen=True)
class OneOfTheCentroids(Prior):
    """The belief that rows are drawn from `CentroidRows`."""

    rows: CentroidRows

    def log_partition(self, P, r, F):
        """Return log E exp(p x^T - x F x^T / 2), the mean over the centroids."""
        X = np.sqrt(r)[:, None, None] * np.asarray(self.rows.centroids)
        quadratic = np.einsum("ika,ab,ikb->ik", X, F, X) / 2
        exponents = np.einsum("il,ikl->ik", P, X) - quadratic
        return logsumexp(exponents, axis=1, b=self.rows.probabilities)


@dataclass(frozen=True)
class ShareOfRightRows:
    """The share of the rows whose estimate points to the centroid of the row.

    It points to the centroid to which its direction is nearest.

    Parameters
    ----------
    centroids : array (K, d)
        With K different directions.

    Examples
    --------
    >>> share = ShareOfRightRows([[1.0, 0.0], [0.0, 1.0]])
    >>> share(np.array([[3.0, 0.0], [0.0, 2.0]]), np.array([[0.2, 0.1], [0.5, 0.4]]))
    0.5
    """

    centroids: list

    def __call__(self, X, X_hat):
        """Return the share."""
        centroids = np.asarray(self.centroids)
        directions = centroids.T / np.linalg.norm(centroids, axis=1)
        true, found = ((rows @ directions).argmax(axis=1) for rows in (X, X_hat))
        return float(np.mean(true == found))


def draw_params(rng, d, reach=NEAR):
    """Return centroids and their probabilities, such that E(u^T u) = scale^2 I.

    So no direction is lost in the noise. Where d is even, two of them are equal, and in
    five dimensions all are equally long instead. Those that reach far are not so tidy.
    """
    if reach == FAR:
        K = int(51 ** rng.random())
        odds, C = rng.uniform(1.0, 4.0, K) ** 4, rng.standard_normal((K, d))
        C *= np.exp(rng.uniform(-2, 2, d))
        if rng.integers(2):  # all equally long
            C /= np.linalg.norm(C, axis=1, keepdims=True)
        C[1:][-1:] *= rng.integers(2)  # or one of several is zero
        return _as_params(C, odds)
    K, scale = (d + 2, 1.5) if reach == NEAR else (12, np.exp(rng.uniform(-1, 1)))
    odds = rng.uniform(1.0, 4.0, K)
    C = rng.standard_normal((K, d))
    C[-1] = C[-1 if d % 2 else 0]
    root = np.linalg.cholesky(C.T @ (odds[:, None] * C) / odds.sum())
    centroids = scale * np.linalg.solve(root, C.T).T
    if d == 5:
        centroids *= scale * np.sqrt(d) / np.linalg.norm(centroids, axis=1, keepdims=True)
    return _as_params(centroids, odds)


def _as_params(centroids, odds):
    return {"centroids": centroids.tolist(), "probabilities": (odds / odds.sum()).tolist()}


RARE = [0.001, 0.999]


def _between(along, r):
    """Return the mean of 1 and -1, given p c^T, before that as probable as `RARE`."""
    return np.tanh(np.sqrt(r) * along + np.log(RARE[0] / RARE[1]) / 2)


def limits(d, centroids, probabilities):
    """Yield what becomes of the estimate with equal, tiny and opposite centroids."""
    one, tiny = np.array(centroids[0]), 1e-8 * np.array(centroids)
    yield Limit(
        "With equal centroids the row is known: sqrt(r) times the centroid",
        {"centroids": [one.tolist()] * len(tiny)},
        lambda P, r, F: np.outer(np.sqrt(r), one),
    )
    yield Limit(
        "With tiny centroids p says nothing, and the mean before p was seen is left",
        {"centroids": tiny.tolist()},
        lambda P, r, F: np.outer(np.sqrt(r), np.array(probabilities) @ tiny),
    )
    yield Limit(
        "Between u = c and u = -c F drops out. If c is q times as probable as -c, "
        "tanh(sqrt(r) p c^T + log(q) / 2) decides",
        {"centroids": [one.tolist(), (-one).tolist()], "probabilities": RARE},
        lambda P, r, F: np.outer(np.sqrt(r) * _between(P @ one, r), one),
    )


TRIANGLE: dict[str, list] = {
    "centroids": [[1.4, 0.0], [-0.7, 1.2124], [-0.7, -1.2124]],
    "probabilities": [0.5, 0.3, 0.2],
}

ASSIGNMENT = Assignment(
    6,
    "clusters",
    "clusters",
    (Family("Clusters", draw_params, lambda **params: OneOfTheCentroids(CentroidRows(**params)), limits),),
    Experiment(
        "Clusters",
        TRIANGLE,
        CentroidRows(**TRIANGLE),
        d=2,
        m=1800,
        n=2400,
        statistic=ShareOfRightRows(TRIANGLE["centroids"]),
    ),
    points=POSTERIOR_MEAN,
)
