"""The singular values of Y~ = X + W, by random-matrix theory.

The entries of the noise W are independent and have variance 1. X = A B^T / sqrt(m) has
few singular values theta; those of Y~ that stand out of the noise are shifted versions
of them (Baik, Ben Arous and Peche; Benaych-Georges and Nadakuditi 2012). All formulas
are at finite m and n.
"""

import numpy as np

from . import _validation as door


def bulk_edge(m, n):
    """Return sqrt(m) + sqrt(n), the largest singular value of W (Marchenko-Pastur).

    Examples
    --------
    >>> bulk_edge(1600, 2500)
    90.0
    """
    m, n = _check_size(m, n)
    return float(np.sqrt(m) + np.sqrt(n))


def signal_singular_values(A, B):
    """Return the min(d, m, n) singular values of A B^T / sqrt(m), largest first.

    Examples
    --------
    >>> signal_singular_values(np.eye(4)[:, :1] * 6, np.eye(3)[:, :1])
    array([3.])
    """
    A = door.check_matrix(A, "A", empty=False)
    B = door.check_matrix(B, "B", shape=(None, A.shape[1]), empty=False)
    product = np.linalg.qr(A)[1] @ np.linalg.qr(B)[1].T
    return np.linalg.svd(product, compute_uv=False) / np.sqrt(len(A))


def _check_size(m, n):
    """Return `m` and `n` as floats: products of NumPy integers may overflow."""
    m, n = door.check_integer(m, "m", minimum=1), door.check_integer(n, "n", minimum=1)
    return float(m), float(n)


def _check_spectrum(values, name, m, n):
    """Return singular values, and `m` and `n`, if they are such."""
    values = door.check_values(values, name)
    if not (values >= 0).all():
        raise ValueError(f"{name} must be singular values, zero or more")
    return values, *_check_size(m, n)


def outlier(theta, m, n):
    """Return where a signal singular value `theta` appears in the spectrum of Y~.

    Parameters
    ----------
    theta : array
        Singular values of X.
    m, n : int

    Returns
    -------
    array
        sqrt((theta^2 + m)(theta^2 + n)) / theta for theta > (m n)^(1/4); the edge of
        the bulk otherwise.

    Examples
    --------
    >>> outlier([0.0, 10.0], 100, 100)
    array([20., 20.])
    >>> outlier(np.sqrt(300.0), 100, 100).round(3)
    np.float64(23.094)
    """
    theta, m, n = _check_spectrum(theta, "theta", m, n)
    seen = theta > (m * n) ** 0.25
    t = np.where(seen, theta, 1.0)
    position = np.sqrt((t**2 + m) * (t**2 + n)) / t
    return np.where(seen, position, np.sqrt(m) + np.sqrt(n))[()]


def overlaps(theta, m, n):
    """Return the squared cosines between singular vectors of outlier and signal.

    Parameters
    ----------
    theta : array
    m, n : int

    Returns
    -------
    left, right : arrays
        For the vectors of length m and n; 0 for theta <= (m n)^(1/4).

    Examples
    --------
    >>> overlaps(20.0, 100, 100)
    (np.float64(0.75), np.float64(0.75))
    """
    theta, m, n = _check_spectrum(theta, "theta", m, n)
    seen = theta > (m * n) ** 0.25
    t2 = np.where(seen, theta, 1.0) ** 2
    left = 1 - m * (t2 + n) / (t2 * (t2 + m))
    right = 1 - n * (t2 + m) / (t2 * (t2 + n))
    return np.where(seen, left, 0.0)[()], np.where(seen, right, 0.0)[()]


def shrink(sigma, m, n):
    """Return the optimally shrunken singular values, for noise of variance 1.

    Optimal in the Frobenius norm (Gavish and Donoho 2017).

    Parameters
    ----------
    sigma : array
        Singular values of Y~.
    m, n : int

    Returns
    -------
    array
        sqrt((sigma^2 - m - n)^2 - 4 m n) / sigma above the edge of the bulk, 0 below:
        theta times the cosines of both sides.

    Examples
    --------
    >>> shrink([20.0, outlier(20.0, 100, 100)], 100, 100)
    array([ 0., 15.])
    """
    sigma, m, n = _check_spectrum(sigma, "sigma", m, n)
    seen = sigma > np.sqrt(m) + np.sqrt(n)
    s = np.where(seen, sigma, 1.0)
    shrunken = np.sqrt(np.maximum((s**2 - m - n) ** 2 - 4 * m * n, 0)) / s
    return np.where(seen, shrunken, 0.0)[()]


def detection_ratio(rates_u, rates_v, variance_u, variance_v, beta):
    """Return kappa; in the limit, a direction can be found if it exceeds 1.

    kappa = var_u^2 var_v^2 E(R_u^2) E(R_v^2) / beta. Unequal frequencies raise it at
    equal means: they make an embedding *easier* to detect. For constant rates it is
    rho^2, where rho = var_u var_v r_u r_v / sqrt(beta) is the strength of the signal in
    units of the spectral threshold.

    Parameters
    ----------
    rates_u, rates_v : arrays
        Bias factors r, or a sample of them.
    variance_u, variance_v : float
        Variances of the embedding entries in that direction.
    beta : float
        m / n.

    Returns
    -------
    float

    Examples
    --------
    >>> detection_ratio([1.0, 1.0], [1.0], 1.0, 1.0, beta=1.0)
    1.0
    >>> detection_ratio([0.5, 1.5], [1.0], 1.0, 1.0, beta=1.0)
    1.25
    """
    second_u = _second_moment(rates_u, "rates_u")
    second_v = _second_moment(rates_v, "rates_v")
    variance_u = door.check_positive(variance_u, "variance_u", zero=True)
    variance_v = door.check_positive(variance_v, "variance_v", zero=True)
    beta = door.check_positive(beta, "beta")
    return float(np.square(variance_u * variance_v) * second_u * second_v / beta)


def detection_weights(r_u, r_v):
    """Return weights of rows and columns with which the faintest signals are seen.

    Row i of Y~ is to be multiplied by the root of its weight, column j too. The best
    weights of a row of frequency r are proportional to r / (1 + c r), where c grows
    with the signal. Here the signal is taken for as faint as can be found, kappa = 1
    (`detection_ratio`). For these weights, scaled as they are here, the noise ends at
    `bulk_edge` whatever the frequencies, and beyond it is what has kappa > 1.

    Parameters
    ----------
    r_u, r_v : arrays (m,), (n,)
        Bias factors.

    Returns
    -------
    w_u, w_v : arrays (m,), (n,)
        All 1 for equal frequencies.

    Raises
    ------
    ValueError
        For bias factors that are zero, negative or not finite.

    Examples
    --------
    >>> detection_weights(np.full(3, 0.5), np.full(4, 2.0))
    (array([1., 1., 1.]), array([1., 1., 1., 1.]))
    """
    second_moments = _second_moment(r_u, "r_u") * _second_moment(r_v, "r_v")
    x, y = (np.asarray(r, dtype=np.float64) for r in (r_u, r_v))
    unequal = np.sqrt(second_moments) / (x.mean() * y.mean())  # sqrt(kappa) / rho
    x, y = x / x.mean(), y / y.mean()
    roots = np.sqrt(x.size), np.sqrt(y.size)

    def weights(ratio, own, other):
        scale = np.sqrt(unequal) * (own + other)
        return scale * ratio / (unequal * own + other * ratio)

    return weights(x, *roots), weights(y, *roots[::-1])


def _second_moment(rates, name):
    """Return E(R^2)."""
    rates = door.check_values(rates, name, empty=False)
    door.check_rates(rates, rates.size, name)
    return np.mean(rates**2)
