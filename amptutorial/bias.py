"""Step one of the two-step estimate: the biases, by counting (`eq:rest`, corrected)."""

import numpy as np
import scipy.sparse as sp

from ._validation import check_counts


def margins(Z):
    """Return the sums of the rows (m,) and of the columns (n,) of the counts.

    Parameters
    ----------
    Z : array or sparse array (m, n)
        Counts.

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
    """
    Z = check_counts(Z)
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
    return rows, columns


def estimate_bias(Z):
    """Estimate the bias factors r = exp(s) by counting (`eq:rest`, corrected).

    r_u_i = m / Z_tot * sum_j Z_ij and r_v_j = 1 / m * sum_i Z_ij, so that mean(r_u) = 1
    and r_u_i r_v_j = row_i * col_j / Z_tot. The paper prints n / Z_tot in place of 1 /
    m for r_v: the scale of the rates, which the normalisation `eq:bias_norm` leaves to
    r_v, would then be lost.

    Parameters
    ----------
    Z : array or sparse array (m, n)
        Counts.

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
    return rows / rows.mean(), columns / len(rows)


def _refuse_empty(sums, word):
    empty = np.flatnonzero(sums == 0)
    if empty.size:
        others = f" (and {empty.size - 1} more)" if empty.size > 1 else ""
        raise ValueError(
            f"{word} {empty[0]}{others} has no counts: its bias cannot be estimated; "
            "drop it with drop_empty(Z)"
        )


def drop_empty(Z):
    """Leave out the rows and columns without counts.

    Parameters
    ----------
    Z : array or sparse array (m, n)

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
    Z = check_counts(Z)
    rows, columns = (np.flatnonzero(margin > 0) for margin in margins(Z))
    if not rows.size:
        raise ValueError("Z has no counts at all")
    return Z[rows][:, columns], rows, columns
