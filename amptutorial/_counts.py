"""What is done with counts that have been checked, for the functions that check them.

`Z` is what `amptutorial._validation.check_counts` returns. The functions of
`amptutorial.bias` and `amptutorial.heldout` check their arguments and call these. A fit
checks its counts once, and calls these too.
"""

import numpy as np
import scipy.sparse as sp


def sums(Z):
    """Return the sums of the rows (m,) and of the columns (n,), in double precision.

    Raises
    ------
    ValueError
        If they are too large for it.
    """
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


def without_empty(Z):
    """Return `Z` without its empty rows and columns, and the indices of the others.

    Raises
    ------
    ValueError
        If nothing is left.
    """
    rows, columns = (np.flatnonzero(margin > 0) for margin in sums(Z))
    if not rows.size:
        raise ValueError("Z has no counts at all")
    return Z[rows][:, columns], rows, columns


def split(Z, fraction, rng):
    """Return two csr_arrays that add up to `Z`: see `amptutorial.heldout.split_counts`.

    Raises
    ------
    ValueError
        If a count is too large to be drawn from.
    """
    Z = sp.csr_array(Z, dtype=np.float64)
    whole = np.floor(Z.data)
    if whole.max(initial=0) >= 2**63:
        raise ValueError(
            f"Z holds counts of up to {whole.max():.1e}: only counts below 2^63 can be "
            "split at random; divide Z by a constant"
        )
    taken = rng.binomial(whole.astype(np.int64), fraction)
    rest = (Z.data - whole) * (rng.random(len(whole)) < fraction)
    taken = taken + rest
    return tuple(with_values(Z, counts) for counts in (Z.data - taken, taken))


def split_pairs(Z, fraction, rng):
    """Return two csr_arrays that add up to `Z`, no pair in both.

    See `amptutorial.heldout.split_pairs`.
    """
    Z = sp.csr_array(Z, dtype=np.float64)
    hidden = rng.random(Z.nnz) < fraction
    return tuple(with_values(Z, Z.data * some) for some in (~hidden, hidden))


def with_values(Z, values):
    """Return a csr_array with the pairs of `Z` and these values; zeros are left out."""
    X = sp.csr_array((values, Z.indices.copy(), Z.indptr.copy()), shape=Z.shape)
    X.eliminate_zeros()
    return X
