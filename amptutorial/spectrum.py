"""What random-matrix theory says of the singular values of Y~ = X + W, W with independent entries of variance 1.

X = A B^T / sqrt(m) has few singular values theta; those of Y~ that stand out of the
noise are shifted versions of them (Baik, Ben Arous and Peche; Benaych-Georges and
Nadakuditi 2012). All formulas are at finite m and n.
"""

import numpy as np

from ._validation import check_integer, check_matrix, check_positive, check_symmetric


def bulk_edge(m, n):
    """Return sqrt(m) + sqrt(n), the largest singular value of W (Marchenko-Pastur edge).

    Examples
    --------
    >>> bulk_edge(1600, 2500)
    90.0
    """
    return float(
        np.sqrt(check_integer(m, "m", minimum=1))
        + np.sqrt(check_integer(n, "n", minimum=1))
    )


def signal_singular_values(A, B):
    """Return the min(d, m, n) singular values of A B^T / sqrt(m), largest first.

    Examples
    --------
    >>> signal_singular_values(np.eye(4)[:, :1] * 6, np.eye(3)[:, :1])
    array([3.])
    """
    A, B = check_matrix(A, "A"), check_matrix(B, "B", shape=(None, np.shape(A)[1]))
    return np.linalg.svd(
        np.linalg.qr(A)[1] @ np.linalg.qr(B)[1].T, compute_uv=False
    ) / np.sqrt(len(A))


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
    theta = np.asarray(theta, dtype=float)
    edge = bulk_edge(m, n)
    seen = theta > (m * n) ** 0.25
    t = np.where(seen, theta, 1.0)
    return np.where(seen, np.sqrt((t**2 + m) * (t**2 + n)) / t, edge)[()]


def overlaps(theta, m, n):
    """Return the squared cosines between the outlier's singular vectors and those of the signal.

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
    theta = np.asarray(theta, dtype=float)
    bulk_edge(m, n)  # checks m and n
    seen = theta > (m * n) ** 0.25
    t2 = np.where(seen, theta, 1.0) ** 2
    left = 1 - m * (t2 + n) / (t2 * (t2 + m))
    right = 1 - n * (t2 + m) / (t2 * (t2 + n))
    return np.where(seen, left, 0.0)[()], np.where(seen, right, 0.0)[()]


def shrink(sigma, m, n):
    """Return the optimally shrunken singular values (Gavish and Donoho 2017, Frobenius loss, noise of variance 1).

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
    sigma = np.asarray(sigma, dtype=float)
    seen = sigma > bulk_edge(m, n)
    s = np.where(seen, sigma, 1.0)
    return np.where(
        seen, np.sqrt(np.maximum((s**2 - m - n) ** 2 - 4.0 * m * n, 0)) / s, 0.0
    )[()]


def critical_delta(covariance_u, covariance_v, beta, *, printed=False):
    """Return the Delta above which the strongest direction leaves no outlier (`eq:delta-critical`, corrected).

    For equal biases 1 / Delta = r_u r_v, and the signal singular values are sqrt(n
    lambda / Delta), lambda the eigenvalues of Sigma_u Sigma_v. They exceed (m n)^(1/4)
    as long as Delta < lambda / sqrt(beta).

    Parameters
    ----------
    covariance_u, covariance_v : arrays (d, d)
    beta : float
        m / n.
    printed : bool
        Return the paper's lambda_max / (1 + sqrt(beta))^2 instead: there the signal's
        own singular value meets the edge of the noise, but its outlier is still clear
        of it.

    Returns
    -------
    float
        For lambda_max. All d directions are visible only below the same formula with
        the smallest eigenvalue.

    Examples
    --------
    >>> C = 0.1 * np.eye(10)
    >>> round(critical_delta(C, C, 0.5), 5), round(critical_delta(C, C, 0.5, printed=True), 5)
    (0.01414, 0.00343)
    """
    d = len(np.atleast_2d(covariance_u))
    C_u, C_v = (
        check_symmetric(covariance_u, d, "covariance_u"),
        check_symmetric(covariance_v, d, "covariance_v"),
    )
    largest = np.linalg.eigvals(C_u @ C_v).real.max()
    root = np.sqrt(check_positive(beta, "beta"))
    return float(largest / (1 + root) ** 2 if printed else largest / root)


def detection_ratio(rates_u, rates_v, variance_u, variance_v, beta):
    """Return kappa = var_u^2 var_v^2 E(R_u^2) E(R_v^2) / beta: a direction can be found (in the limit) if it exceeds 1.

    Unequal frequencies raise it at equal means: they make an embedding *easier* to
    detect. For constant rates it is rho^2, with rho = var_u var_v r_u r_v / sqrt(beta)
    the strength of the signal in units of the spectral threshold.

    Parameters
    ----------
    rates_u, rates_v : arrays
        Bias factors r, or a sample of them.
    variance_u, variance_v : float
        Variances of the embedding entries in that direction.
    beta : float

    Returns
    -------
    float

    Examples
    --------
    >>> detection_ratio([1.0, 1.0], [1.0], 1.0, 1.0, beta=1.0), detection_ratio([0.5, 1.5], [1.0], 1.0, 1.0, beta=1.0)
    (1.0, 1.25)
    """
    second_u, second_v = (
        np.mean(np.square(rates_u, dtype=float)),
        np.mean(np.square(rates_v, dtype=float)),
    )
    return float(
        (variance_u * variance_v) ** 2
        * second_u
        * second_v
        / check_positive(beta, "beta")
    )
