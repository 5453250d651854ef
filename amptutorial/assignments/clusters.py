"""Assignment 6: rows from clusters, the communities of a co-occurrence graph."""

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from ..beliefs import Prior
from ..checks import Limit
from ._core import Assignment, Experiment, Setting


@dataclass(frozen=True)
class CentroidRows:
    """Embedding rows u that are one of K centroids.

    Parameters
    ----------
    centroids : array (K, d)
    probabilities : array (K,)

    Examples
    --------
    >>> CentroidRows([[0.0, 1.0], [2.0, 0.0]], [0.9, 0.1]).draw((2, 2), np.random.default_rng(0))
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
    """The prior whose rows are these."""

    rows: CentroidRows

    def log_partition(self, P, r, F):
        """Return the logarithm of the mean of exp(p x^T - x F x^T / 2) over the centroids, row by row."""
        X = np.sqrt(r)[:, None, None] * np.asarray(self.rows.centroids)
        exponents = (
            np.einsum("il,ikl->ik", P, X) - np.einsum("ika,ab,ikb->ik", X, F, X) / 2
        )
        return logsumexp(exponents, axis=1, b=self.rows.probabilities)


@dataclass(frozen=True)
class ShareOfRightRows:
    """The share of the rows whose estimate is nearest, in direction, to the centroid of the row.

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
        directions = np.asarray(self.centroids).T / np.linalg.norm(
            self.centroids, axis=1
        )
        return float(
            np.mean(
                (X @ directions).argmax(axis=1) == (X_hat @ directions).argmax(axis=1)
            )
        )


def draw_settings(rng):
    """Return settings in one and in three dimensions."""
    return [_setting(*_draw_clusters(K, d, rng)) for K, d in ((3, 1), (5, 3))]


def _draw_clusters(K, d, rng, scale=1.5):
    """Return centroids and probabilities such that E(u^T u) = scale^2 I: no direction is lost in the noise."""
    odds = rng.uniform(1.0, 4.0, K)
    C = rng.standard_normal((K, d))
    root = np.linalg.cholesky(C.T @ (odds[:, None] * C) / odds.sum())
    return scale * np.linalg.solve(root, C.T).T, odds / odds.sum()


def _setting(centroids, probabilities):
    K, d = centroids.shape
    one, tiny = centroids[0], 1e-8 * centroids
    limits = (
        Limit(
            "With equal centroids the row is known: sqrt(r) times the centroid",
            {"centroids": np.tile(one, (K, 1)).tolist()},
            lambda P, r, F: np.outer(np.sqrt(r), one),
        ),
        Limit(
            "With tiny centroids p says nothing, and the mean before p was seen is left",
            {"centroids": tiny.tolist()},
            lambda P, r, F: np.outer(np.sqrt(r), probabilities @ tiny),
        ),
        Limit(
            "Between u = c and u = -c, equally probable, F drops out, and tanh(sqrt(r) p c^T) decides",
            {"centroids": [one.tolist(), (-one).tolist()], "probabilities": [0.5, 0.5]},
            lambda P, r, F: np.outer(np.sqrt(r) * np.tanh(np.sqrt(r) * (P @ one)), one),
        ),
    )
    params = {"centroids": centroids.tolist(), "probabilities": probabilities.tolist()}
    return Setting(
        "Clusters", params, OneOfTheCentroids(CentroidRows(**params)), d, limits
    )


TRIANGLE: dict[str, list] = {
    "centroids": [[1.4, 0.0], [-0.7, 1.2124], [-0.7, -1.2124]],
    "probabilities": [0.5, 0.3, 0.2],
}

CLUSTERS = Assignment(
    6,
    "clusters",
    "clusters",
    draw_settings,
    Experiment(
        "Clusters",
        TRIANGLE,
        CentroidRows(**TRIANGLE),
        d=2,
        m=1800,
        n=2400,
        statistic=ShareOfRightRows(TRIANGLE["centroids"]),
    ),
)
