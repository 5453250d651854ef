"""The paper's synthetic instances (Section 6.2), their observation, their threshold."""

from dataclasses import dataclass

import numpy as np

from .._validation import check_covariance, check_matrix, check_positive
from ..bias import estimate_bias
from ..laws import BiasLaw, GaussianRows, RowLaw, ShiftedExponential, scaled_rows
from ..model import draw_embedding
from ..score import FisherScore

# counts with counted biases, counts with the true ones, Gaussian noise
OBSERVATIONS = ("counted", "true", "gaussian")


@dataclass(frozen=True)
class Setting:
    """The laws and sizes of a synthetic instance; the defaults are the paper's first.

    Attributes
    ----------
    rows : RowLaw
        Of U and V.
    bias : BiasLaw
        Of both sides; the paper's "exponential with parameter 0.25", shifted by 5, is
        read as one of mean 0.25 (Section 6.2).
    m, n, d : int

    Examples
    --------
    >>> Setting(m=20, n=30, d=2).draw(rng=np.random.default_rng(0))
    PoissonEmbedding(m=20, n=30, d=2)
    """

    rows: RowLaw = GaussianRows(0.1)
    bias: BiasLaw = ShiftedExponential(0.25, 5.0)
    m: int = 2000
    n: int = 3000
    d: int = 10

    def draw(self, *, rng):
        """Return a `PoissonEmbedding` of this setting."""
        return draw_embedding(self.m, self.n, self.d, **self._laws(), rng=rng)

    def scaled_rows(self):
        """Return the laws of the rows of A and of B."""
        return scaled_rows(self.d, **self._laws())

    def _laws(self):
        rows, bias = self.rows, self.bias
        return {"rows_u": rows, "rows_v": rows, "bias_u": bias, "bias_v": bias}


def observe_score(embedding, channel, *, rng):
    """Return `(Y, r_u, r_v)`: the score through one of the `OBSERVATIONS`.

    Parameters
    ----------
    embedding : PoissonEmbedding
    channel : {"counted", "true", "gaussian"}
        The score of counts with the biases counted, or with the true ones; or A B^T /
        sqrt(m) and independent N(0, 1) noise, in place of counts.
    rng : numpy.random.Generator

    Returns
    -------
    Y : FisherScore, or array (m, n)
    r_u, r_v : arrays (m,), (n,)

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> e = Setting(m=20, n=30, d=2).draw(rng=rng)
    >>> Y, r_u, r_v = observe_score(e, "gaussian", rng=rng)
    >>> Y.shape, r_u.shape
    ((20, 30), (20,))
    """
    e = embedding
    if channel == "gaussian":
        W = rng.standard_normal((e.m, e.n))
        return e.A @ e.B.T / np.sqrt(e.m) + W, e.r_u, e.r_v
    Z = e.sample(rng)
    r_u, r_v = estimate_bias(Z) if channel == "counted" else (e.r_u, e.r_v)
    return FisherScore(Z, r_u, r_v), r_u, r_v


def critical_delta(covariance_u, covariance_v, beta):
    """Return the Delta above which nothing is seen (`eq:delta-critical`, corrected).

    No direction leaves an outlier there. For equal biases 1 / Delta = r_u r_v, and the
    signal singular values are sqrt(n chi / Delta), chi the eigenvalues of Sigma_u
    Sigma_v. They exceed (m n)^(1/4) as long as Delta < chi / sqrt(beta).

    Parameters
    ----------
    covariance_u, covariance_v : arrays (d, d)
    beta : float
        m / n.

    Returns
    -------
    float
        chi_max / sqrt(beta): below it the strongest direction is visible. All d
        directions are visible below chi_min / sqrt(beta).

    Raises
    ------
    ValueError
        If a covariance is not positive semidefinite, or beta not positive.

    Examples
    --------
    >>> C = 0.1 * np.eye(10)
    >>> round(critical_delta(C, C, 0.5), 5)
    0.01414
    """
    C_u = check_covariance(covariance_u, "covariance_u")
    check_matrix(covariance_v, "covariance_v", shape=C_u.shape)
    C_v = check_covariance(covariance_v, "covariance_v")
    largest = np.linalg.eigvals(C_u @ C_v).real.max()
    return float(largest / np.sqrt(check_positive(beta, "beta")))
