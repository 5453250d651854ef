"""Which embeddings point the same way: the words nearest to a word."""

import warnings
from collections.abc import Hashable
from contextlib import suppress

import numpy as np
from scipy.linalg import polar
from scipy.special import softmax

from . import _validation as door
from .names import check_in_order, coordinates, is_index


def nearest_words(X, vocabulary, word, k=5, *, counts=None, min_count=5) -> list[str]:
    """Return the `k` words that are nearest to `word`, nearest first.

    Near are words whose embeddings have a large cosine with the embedding of `word`.
    Rows of a table, by their names, are looked up in the same way.

    Parameters
    ----------
    X : array (n, d), or DataFrame
        One embedding a word: the rows of V, or `rate_coordinates`, whose cosines do not
        depend on the coordinates of the fit. Of a frame of `AMPEmbedding.frames`, its
        coordinates alone.
    vocabulary : sequence of str (n,), or pandas.Index
        The word of each row of `X`, by position. An index, such as that of a frame, may
        hold names of any type.
    word : str, or what the index holds
    k : int
    counts : array (n,), optional
        How often each word occurs.
    min_count : float
        With `counts`: rarer words are left out. The embedding of a word that hardly
        occurs is the prior's, and its cosines mean nothing.

    Returns
    -------
    list of str
        Fewer than `k` where no more are left. Neither `word` itself is among them nor
        a word without an embedding, whose row is zero.

    Warns
    -----
    AMPWarning
        If `word` has no embedding or is too rare; the list is empty then.

    Raises
    ------
    KeyError
        If `word` is not in the vocabulary.
    TypeError, ValueError
        If the vocabulary is no sequence of different words, one for each row.

    Examples
    --------
    >>> X = np.array([[1.0, 0.1], [0.0, 1.0], [1.0, 0.0]])
    >>> nearest_words(X, ["film", "tree", "movie"], "film", 1)
    ['movie']
    >>> counts = np.array([9, 8, 1])
    >>> nearest_words(X, ["film", "tree", "movie"], "film", 1, counts=counts)
    ['tree']
    """
    places = _places(vocabulary)
    words, n = list(places), len(places)
    X = normalise_rows(door.check_matrix(coordinates(X), "X", shape=(n, None)))
    if not isinstance(word, Hashable if is_index(vocabulary) else str):
        raise TypeError(f"word must be a str, got {word!r}: ask for one at a time")
    if word not in places and is_index(vocabulary):
        with suppress(KeyError, ValueError, TypeError):
            place = vocabulary.get_loc(word)  # a date, written as text; a slice of many
            word = vocabulary[place] if isinstance(place, int) else word
    if word not in places:
        raise KeyError(f"{word!r} is not in the vocabulary of {n} words")
    known = X.any(axis=1)
    if counts is not None:
        least = door.check_positive(min_count, "min_count", zero=True)
        counts = door.check_values(counts, "counts", shape=(n,))
        known &= counts >= least
    j, k = places[word], door.check_integer(k, "k", minimum=1)
    if not known[j]:
        why = "has no embedding: its row is zero"
        if X[j].any():
            why = f"occurs {counts[j]:g} times, less than min_count={least:g}"
        message = f"{word!r} {why}; no word is near it"
        warnings.warn(message, door.AMPWarning, stacklevel=2)
        return []
    known[j] = False
    cosines = np.where(known, X @ X[j], -np.inf)
    order = np.argsort(-cosines, kind="stable")[: min(k, known.sum())]
    return [words[i] for i in order]


def _places(vocabulary):
    """Return the position of each word, a dict in their order."""
    places, any_type = {}, is_index(vocabulary)
    for j, word in enumerate(check_in_order(vocabulary, "vocabulary")):
        if not (any_type or isinstance(word, str)):
            raise TypeError(f"vocabulary[{j}] is {word!r}; expected a str")
        if places.setdefault(str(word) if isinstance(word, str) else word, j) != j:
            where = f"at {places[word]} and {j}: which row of X is meant?"
            raise ValueError(f"{word!r} stands in the vocabulary twice, {where}")
    return places


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
    U, V, p, q = _centred(U, V, r_u, r_v)
    _, root = polar(np.sqrt(p)[:, None] * U)
    X = V @ (root / np.sqrt(len(U)))
    X[np.asarray(r_v) == 0] = 0
    return X


def _centred(U, V, r_u, r_v):
    """Return both sides without their weighted means, and the weights p and q.

    These are the shares of rows (m,) and of columns (n,) in the sum of the rates.
    """
    # loads joblib, which nearest words can do without
    from .sums import log_partition

    U, V = (X.astype(np.float64) for X in door.check_embedding(U, V, None, None))
    r_u, r_v = _checked_bias(r_u, len(U), "r_u"), _checked_bias(r_v, len(V), "r_v")
    W = V / np.sqrt(len(U))
    # the logarithm of a factor of zero is minus infinity, as it must be
    with door.quiet():
        p = softmax(np.log(r_u) + log_partition(U, W, r_v))
        q = softmax(np.log(r_v) + log_partition(W, U, r_u))
    return U - p @ U, V - q @ V, p, q


def _checked_bias(r, size, name):
    r = door.check_rates(r, size, name, zero=True).astype(np.float64)
    if not r.any():
        raise ValueError(f"{name} is zero everywhere: there are no rates")
    return r


def normalise_rows(X):
    """Return the rows divided by their lengths; a zero row stays zero.

    Examples
    --------
    >>> normalise_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    largest = np.abs(X).max(axis=1, keepdims=True, initial=0)
    X = X / np.where(largest > 0, largest, 1)  # squares of tiny entries would vanish
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
    (U, V, p, q), root = _centred(U, V, r_u, r_v), np.sqrt(len(U))
    R_u, R_v = (np.linalg.qr(np.sqrt(w)[:, None] * X)[1] for w, X in ((p, U), (q, V)))
    left, strengths, right = np.linalg.svd(R_u @ R_v.T / root)
    rows, columns = U @ (R_v.T @ right.T) / root, V @ (R_u.T @ left) / root
    rows[np.asarray(r_u) == 0], columns[np.asarray(r_v) == 0] = 0, 0
    total = (strengths**2).sum() or 1
    return rows, columns, strengths**2 / total
