"""What AMP is compared with, and started from: the SVD of Y~.

It returns A (m, d) and B (n, d) with A B^T / sqrt(m) in place of Y~.
"""

import warnings

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator, svds

from . import _validation as door
from .amp import as_operator
from .spectrum import bulk_edge, detection_weights
from .spectrum import shrink as shrink_singular_values


class BelowThresholdWarning(door.AMPWarning):
    """No singular value exceeds the edge of the noise: the spectrum shows no signal."""


def svd(Y, d, *, rng, shrink=False):
    """Return the best rank-d factors of Y~ by its leading singular vectors.

    Parameters
    ----------
    Y : FisherScore, LinearOperator, array or sparse array (m, n)
    d : int
        Between 1 and min(m, n) - 1.
    rng : numpy.random.Generator
        For the starting vector of the Lanczos iteration; the result does not depend on
        it, up to signs and round-off.
    shrink : bool
        Shrink the singular values optimally for noise of variance 1
        (`amptutorial.spectrum.shrink`).

    Returns
    -------
    A : array (m, d)
    B : array (n, d)
        Balanced: A^T A / m and B^T B / m are the same diagonal matrix.

    Raises
    ------
    ValueError
        If d does not fit, or if Y~ is zero or its squares are not finite.

    Examples
    --------
    >>> A, B = svd(np.diag([3.0, 2.0, 1.0]), 1, rng=np.random.default_rng(0))
    >>> bool(np.allclose(A @ B.T / np.sqrt(3), np.diag([3.0, 0.0, 0.0])))
    True
    """
    left, sigma, right = _leading(Y, d, rng)
    m, n = len(left), len(right)
    sigma = shrink_singular_values(sigma, m, n) if shrink else sigma
    scale = m**0.25 * np.sqrt(sigma)
    return left * scale, right * scale


def singular_values(Y, k, *, rng):
    """Return the `k` leading singular values of Y~, largest first, without vectors.

    Parameters
    ----------
    Y : FisherScore, LinearOperator, array or sparse array (m, n)
    k : int
        Between 1 and min(m, n) - 1.
    rng : numpy.random.Generator
        As for `svd`.

    Returns
    -------
    array (k,)

    Raises
    ------
    ValueError
        As for `svd`.

    Examples
    --------
    >>> Y, rng = np.diag([3.0, 2.0, 1.0]), np.random.default_rng(0)
    >>> singular_values(Y, 2, rng=rng).round(6)
    array([3., 2.])
    """
    return np.sort(_lanczos(Y, k, "k", rng, return_singular_vectors=False))[::-1]


def spectral_start(Y, d: int, r_u=None, r_v=None, *, rng) -> np.ndarray:
    """Return a start B_0 (n, d) for AMP: right singular vectors, scaled.

    With the bias factors they are those of the weighted score
    (`amptutorial.spectrum.detection_weights`), which show an embedding that unequal
    frequencies hide from the plain ones. Their scale is that of the shrunken singular
    values. A direction inside the noise is noise as far as the spectrum can tell; a
    little of it is kept for AMP to work on.

    Parameters
    ----------
    Y, d, rng
        As for `svd`.
    r_u, r_v : arrays (m,), (n,), optional
        The bias factors of Y~; without them all rows and all columns weigh the same.

    Returns
    -------
    array (n, d)

    Raises
    ------
    ValueError
        As for `svd`, and for bias factors that do not fit.

    Warns
    -----
    BelowThresholdWarning
        If none of the d singular values exceeds the edge of the noise.

    Examples
    --------
    >>> spectral_start(np.diag([30.0, 2.0, 1.0]), 1, rng=np.random.default_rng(0)).shape
    (3, 1)
    """
    Y = as_operator(Y)
    m, n = Y.shape
    weights = np.ones(n)
    if r_u is not None or r_v is not None:
        r_u, r_v = door.check_rates(r_u, m, "r_u"), door.check_rates(r_v, n, "r_v")
        w_u, weights = detection_weights(r_u, r_v)
        dtype = np.result_type(Y.dtype, np.float32)
        roots = (sp.diags_array(np.sqrt(w).astype(dtype)) for w in (w_u, weights))
        left, right = map(aslinearoperator, roots)
        Y = left @ aslinearoperator(Y) @ right
    _, sigma, right = _leading(Y, d, rng)
    shrunken = shrink_singular_values(sigma, m, n)
    if not shrunken.any():
        warnings.warn(
            f"the largest singular value, {sigma[0]:.4g}, is inside the noise, which "
            f"ends at {bulk_edge(m, n):.4g}: this start is uninformed, and below the "
            "threshold no spectral estimate does better than zero",
            BelowThresholdWarning,
            stacklevel=2,
        )
    B = right * np.sqrt(weights)[:, None]
    lengths = m**0.25 * np.sqrt(np.maximum(shrunken, 0.1 * sigma[0]))
    return B * (lengths / np.linalg.norm(B, axis=0))


def _leading(Y, d, rng):
    """Return the `d` leading left vectors, singular values and right vectors of Y~."""
    left, sigma, right = _lanczos(Y, d, "d", rng)
    order = np.argsort(sigma)[::-1]
    return left[:, order], sigma[order], right[order].T


def _lanczos(Y, k, name, rng, **options):
    """Return what SciPy's Lanczos iteration finds of `k` singular values of Y~."""
    Y = as_operator(Y)
    k = door.check_integer(k, name, minimum=1)
    if k >= min(Y.shape):
        raise ValueError(f"{name} must be below min(m, n) = {min(Y.shape)}, got {k}")
    start = door.check_rng(rng).standard_normal(min(Y.shape))
    tall = Y if Y.shape[0] >= Y.shape[1] else Y.T
    trial = start.astype(np.result_type(Y.dtype, np.float32))
    stretch = np.linalg.norm(tall.T @ (tall @ trial)) / np.linalg.norm(trial)
    if not 0 < stretch < np.inf:
        raise ValueError(
            "singular vectors of Y cannot be computed: Y is zero, or Y^T Y infinite"
        )
    return svds(Y, k=k, v0=start, **options)
