"""Which embeddings point the same way: the words nearest to a word."""

import numpy as np
from scipy.linalg import polar
from scipy.special import softmax

from ._validation import (
    check_embedding,
    check_integer,
    check_matrix,
    check_rates,
    quiet,
)


def nearest_words(X, vocabulary, word, k=5):
    """Return the `k` words that are nearest to `word`, nearest first.

    Near are words whose embeddings have a large cosine with the embedding of `word`.

    Parameters
    ----------
    X : array (n, d)
        One embedding a word: the rows of V, or `rate_coordinates`, whose cosines do not
        depend on the coordinates of the fit.
    vocabulary : array of str (n,)
    word : str
    k : int

    Returns
    -------
    list of str

    Raises
    ------
    KeyError
        If `word` is not in the vocabulary.

    Examples
    --------
    >>> X = np.array([[1.0, 0.1], [0.0, 1.0], [1.0, 0.0]])
    >>> nearest_words(X, ["film", "tree", "movie"], "film", 1)
    ['movie']
    """
    X = normalise_rows(check_matrix(X, "X", shape=(len(vocabulary), None)))
    (positions,) = np.nonzero(np.asarray(vocabulary) == word)
    if not positions.size:
        raise KeyError(f"{word!r} is not in the vocabulary of {len(vocabulary)} words")
    cosines = X @ X[positions[0]]
    cosines[positions[0]] = -np.inf
    order = np.argsort(-cosines, kind="stable")[: check_integer(k, "k", minimum=1)]
    return [str(vocabulary[j]) for j in order]


def rate_coordinates(U, V, r_u, r_v):
    """Return coordinates of the columns that follow from the rates alone.

    The rates r_u_i r_v_j exp(M_ij), M = U V^T / sqrt(m), do not determine V. They stay
    the same if U becomes U T and V becomes V T^-T; a vector added to all rows of one
    side is absorbed by the biases of the other. The cosines of the rows of V change.
    Those of the rows of X do not: they are correlations of the log-rates of two columns
    over the rows, where weighted means of rows and columns are taken out.

    Parameters
    ----------
    U, V : arrays (m, d), (n, d)
    r_u, r_v : arrays (m,), (n,)
        Bias factors, zero or more.

    Returns
    -------
    array (n, d)
        The rows of X, one for each column. Columns with r_v_j = 0 have no log-rates:
        their rows are zero.

    Raises
    ------
    ValueError
        For arrays that have the wrong shape or are not finite; for bias factors that
        are negative, or all zero.

    Notes
    -----
    Let p_i and q_j be the shares of row i and column j in the sum of all rates, ubar =
    sum_i p_i u_i and vbar = sum_j q_j v_j, and

        C_ij = (u_i - ubar) . (v_j - vbar) / sqrt(m).

    C is what remains of the log-rates when weighted means of rows and columns are
    subtracted, since these remove everything that depends on i or on j alone: the
    biases, and what they absorb. So C, as p and q, follows from the rates. X is (V -
    vbar) S^(1/2) / sqrt(m), where S = sum_i p_i (u_i - ubar) (u_i - ubar)^T. Its inner
    products are

        x_j . x_k = sum_i p_i C_ij C_ik,

    covariances of columns of C over the rows, since the columns have the mean zero.

    The weights are the expected counts and not r_u, r_v, which change with what they
    absorb.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> U, V = rng.standard_normal((5, 2)), rng.standard_normal((3, 2))
    >>> T = np.array([[1.0, 2.0], [0.0, 3.0]])
    >>> X = rate_coordinates(U, V, np.ones(5), np.ones(3))
    >>> Y = rate_coordinates(U @ T, V @ np.linalg.inv(T).T, np.ones(5), np.ones(3))
    >>> bool(np.allclose(X @ X.T, Y @ Y.T))
    True
    """
    U, V = (X.astype(np.float64) for X in check_embedding(U, V, None, None))
    r_u, r_v = _checked_bias(r_u, len(U), "r_u"), _checked_bias(r_v, len(V), "r_v")
    p, q = _shares(U, V, r_u, r_v)
    _, root = polar(np.sqrt(p)[:, None] * (U - p @ U))
    X = (V - q @ V) @ (root / np.sqrt(len(U)))
    X[r_v == 0] = 0
    return X


def _checked_bias(r, size, name):
    r = check_rates(r, size, name, zero=True).astype(np.float64)
    if not r.any():
        raise ValueError(f"{name} is zero everywhere: there are no rates")
    return r


def _shares(U, V, r_u, r_v):
    """Return the shares of rows (m,) and of columns (n,) in the sum of the rates."""
    # loads joblib, which nearest words can do without
    from .poisson import log_partition

    W = V / np.sqrt(len(U))
    with quiet():  # the logarithm of a factor of zero is minus infinity, as it must be
        log_u, log_v = np.log(r_u), np.log(r_v)
    rows = log_u + log_partition(U, W, r_v)
    columns = log_v + log_partition(W, U, r_u)
    return softmax(rows), softmax(columns)


def normalise_rows(X):
    """Return the rows divided by their lengths; a zero row stays zero.

    Examples
    --------
    >>> normalise_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(lengths > 0, lengths, 1)


def principal_coordinates(U, V, r_u, r_v):
    """Return the principal coordinates of rows and columns of M, and their shares.

    Parameters
    ----------
    U, V, r_u, r_v
        As for `rate_coordinates`.

    Returns
    -------
    rows, columns : arrays (m, d), (n, d)
    shares : array (d,)
        Of each coordinate in the variance of M, largest first.

    Notes
    -----
    With C, p and q of `rate_coordinates`, and D_p^(1/2) C D_q^(1/2) = L S R^T, rows are
    D_p^(-1/2) L S and columns D_q^(-1/2) R S. Correspondence analysis does the same to
    Z_ij / (r_u_i r_v_j) - 1, which is about C_ij where M is small: the sum of S^2 is
    its inertia, chi-squared divided by the total count.

    Examples
    --------
    >>> U, V = np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([[1.0, 0.0], [-1.0, 0.0]])
    >>> rows, columns, shares = principal_coordinates(U, V, np.ones(2), np.ones(2))
    >>> np.abs(rows[:, 0].round(3)), shares.round(3)
    (array([0.707, 0.707]), array([1., 0.]))
    """
    U, V = (X.astype(np.float64) for X in check_embedding(U, V, None, None))
    r_u, r_v = _checked_bias(r_u, len(U), "r_u"), _checked_bias(r_v, len(V), "r_v")
    p, q = _shares(U, V, r_u, r_v)
    U, V, root = U - p @ U, V - q @ V, np.sqrt(len(U))
    R_u, R_v = (np.linalg.qr(np.sqrt(w)[:, None] * X)[1] for w, X in ((p, U), (q, V)))
    left, strengths, right = np.linalg.svd(R_u @ R_v.T / root)
    rows, columns = U @ (R_v.T @ right.T) / root, V @ (R_u.T @ left) / root
    rows[r_u == 0], columns[r_v == 0] = 0, 0
    total = (strengths**2).sum() or 1
    return rows, columns, strengths**2 / total
