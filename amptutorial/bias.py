"""Step one of the two-step estimate: the biases, by counting (`eq:rest`, corrected)."""

import numpy as np
import scipy.sparse as sp

from . import _validation as door

FILLING = 1000  # sweeps, at most, in which gaps are filled


def margins(Z):
    """Return the sums of the rows (m,) and of the columns (n,) of the counts.

    Parameters
    ----------
    Z : array or sparse array (m, n)
        Counts. NaN is a pair that was not observed: it counts what independence expects
        there, given the counts that were.

    Returns
    -------
    rows : array (m,)
    columns : array (n,)
        In double precision.

    Raises
    ------
    ValueError
        For invalid counts, or sums that are too large for double precision.

    Examples
    --------
    >>> margins(np.array([[1, 2], [3, 6]]))
    (array([3., 9.]), array([4., 8.]))
    >>> [sums.round(6) for sums in margins(np.array([[1, 2], [3, np.nan]]))]
    [array([3., 9.]), array([4., 8.])]
    """
    Z, gaps = without_gaps(door.check_counts(Z, gaps=True))
    if sp.issparse(Z):
        Z = Z.astype(np.float64, copy=False)
    with np.errstate(over="ignore"):
        rows, columns = (Z.sum(axis=k, dtype=np.float64) for k in (1, 0))
        total = rows.sum()
    if not np.isfinite(total):
        raise ValueError(
            "the counts add up to more than a float64 can hold: divide them all by the "
            "same number"
        )
    return fill_margins(rows, columns, gaps)


def without_gaps(Z):
    """Return the counts with zeros where they are NaN, and where that is.

    Parameters
    ----------
    Z : array or csr_array (m, n)

    Returns
    -------
    Z : array or csr_array (m, n)
    gaps : csr_array (m, n), or None
        One where a pair was not observed; None if all of them were.

    Examples
    --------
    >>> Z, gaps = without_gaps(np.array([[1.0, np.nan]]))
    >>> Z, gaps.toarray(), without_gaps(Z)[1]
    (array([[1., 0.]]), array([[0., 1.]]), None)
    """
    hidden = np.isnan(Z.data if sp.issparse(Z) else Z)
    if not hidden.any():
        return Z, None
    if not sp.issparse(Z):
        return np.where(hidden, 0, Z), sp.csr_array(hidden, dtype=np.float64)
    parts = np.where(hidden, 0, Z.data), hidden.astype(np.float64)
    return tuple(with_values(Z, values) for values in parts)


def with_values(Z, values):
    """Return a csr_array with the pairs of `Z` and these values; zeros are left out.

    Examples
    --------
    >>> with_values(sp.csr_array([[1.0, 2.0]]), np.array([0.0, 3.0])).toarray()
    array([[0., 3.]])
    """
    X = same_pairs(Z, values).copy()
    X.eliminate_zeros()
    return X


def same_pairs(Z, values):
    """Return a csr_array that stores values, or one value, for the pairs of `Z`."""
    values = np.broadcast_to(values, Z.data.shape)
    return sp.csr_array((values, Z.indices, Z.indptr), shape=Z.shape)


def fill_margins(rows, columns, gaps):
    """Return sums with r_u_i r_v_j in the gaps, given those over what was observed.

    By iterative proportional fitting of r_u and r_v over the pairs that were observed.

    Examples
    --------
    >>> gaps = sp.csr_array([[0.0, 0.0], [0.0, 1.0]])
    >>> both = fill_margins(np.array([3.0, 3.0]), np.array([4.0, 2.0]), gaps)
    >>> [sums.round(6) for sums in both]
    [array([3., 9.]), array([4., 8.])]
    """
    if gaps is None:
        return rows, columns
    r_u, r_v = rows, columns
    for _ in range(FILLING):
        before = r_u
        with np.errstate(divide="ignore", invalid="ignore"):
            r_u = np.where(rows > 0, rows / _observed(r_v, gaps), 0)
            r_v = np.where(columns > 0, columns / _observed(r_u, gaps.T), 0)
        if np.abs(r_u - before).max() <= 1e-12 * r_u.max():
            break
    return r_u * r_v.sum(), r_v * r_u.sum()


def _observed(r, gaps):
    """Return the sums of r over the pairs of each row that are no gaps."""
    return np.maximum(r.sum() - gaps @ r, 1e-12 * r.sum())


def fill_gaps(Z, biases=None):
    """Return the counts with what independence expects where they are NaN.

    For methods that know no gaps: what is filled in tells them nothing but the biases.

    Parameters
    ----------
    Z : array or sparse array (m, n)
    biases : pair of arrays (m,), (n,), optional
        Factors whose products are what is expected, if not those that the counts tell.

    Returns
    -------
    array or csr_array (m, n)

    Raises
    ------
    ValueError
        As `margins`.

    Examples
    --------
    >>> fill_gaps(np.array([[1, 2], [3, np.nan]])).round(6)
    array([[1., 2.],
           [3., 6.]])
    """
    Z = door.check_counts(Z, gaps=True)
    observed, gaps = without_gaps(Z)
    if gaps is None:
        return Z
    r_u, r_v = biases or _biases(*margins(Z))
    i, j = gaps.nonzero()
    filled = sp.csr_array((r_u[i] * r_v[j], (i, j)), shape=Z.shape)
    return observed + (filled if sp.issparse(Z) else filled.toarray())


def estimate_bias(Z) -> tuple[np.ndarray, np.ndarray]:
    """Estimate the bias factors r = exp(s) by counting (`eq:rest`, corrected).

    r_u_i = m / Z_tot * sum_j Z_ij and r_v_j = 1 / m * sum_i Z_ij, so that mean(r_u) = 1
    and r_u_i r_v_j = row_i * col_j / Z_tot. The paper prints n / Z_tot in place of 1 /
    m for r_v: the scale of the rates, which the normalisation `eq:bias_norm` leaves to
    r_v, would then be lost.

    Parameters
    ----------
    Z : array or sparse array (m, n)
        Counts; NaN where a pair was not observed.

    Returns
    -------
    r_u : array (m,)
    r_v : array (n,)
        Estimates of exp(s_u), exp(s_v); `np.log` of them is `eq:sest`.

    Raises
    ------
    ValueError
        For invalid counts, or a row or column without counts.

    Examples
    --------
    >>> estimate_bias(np.array([[1, 2], [3, 6]]))
    (array([0.5, 1.5]), array([2., 4.]))
    """
    return bias_of_margins(*margins(Z))


def bias_of_margins(rows, columns):
    """Return the bias factors of `estimate_bias` from the sums that it counts.

    Examples
    --------
    >>> bias_of_margins(np.array([3.0, 9.0]), np.array([4.0, 8.0]))
    (array([0.5, 1.5]), array([2., 4.]))
    """
    _refuse_empty(rows, "row")
    _refuse_empty(columns, "column")
    return _biases(rows, columns)


def _biases(rows, columns):
    return rows / (rows.mean() or 1), columns / len(rows)


def _refuse_empty(sums, word):
    empty = np.flatnonzero(sums == 0)
    if empty.size:
        others = f" (and {empty.size - 1} more)" if empty.size > 1 else ""
        raise ValueError(
            f"{word} {empty[0]}{others} has no counts: its bias cannot be estimated; "
            "drop it with drop_empty(Z)"
        )


def drop_empty(Z) -> tuple:
    """Leave out the rows and columns without counts.

    Parameters
    ----------
    Z : array or sparse array (m, n)
        NaN is a pair that was not observed.

    Returns
    -------
    Z_kept : array or csr_array
    rows : array of int
        Row k of `Z_kept` is row ``rows[k]`` of `Z`.
    columns : array of int
        The same for the columns.

    Raises
    ------
    ValueError
        For invalid counts, or if nothing is left.

    Examples
    --------
    >>> drop_empty(np.array([[0, 0, 0], [1, 0, 2]]))
    (array([[1, 2]]), array([1]), array([0, 2]))
    """
    Z = door.check_counts(Z, gaps=True)
    sums = margins(without_gaps(Z)[0])
    rows, columns = (np.flatnonzero(margin > 0) for margin in sums)
    if not rows.size:
        raise ValueError("Z has no counts at all")
    return Z[rows][:, columns], rows, columns
