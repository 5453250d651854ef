"""Biases refitted to an embedding: the likelihood itself, not its quadratic form.

Given U and V, the rates r_u_i r_v_j exp(M_ij) have the row and column sums of the
counts at the maximum of the Poisson likelihood (`eq:loss_poisson`). Iterative
proportional fitting finds the biases: each side in turn takes those that give it its
sums (`amptutorial.sums`).

`refit_biases` checks its arguments. The other functions are called in every iteration,
and take arrays as they are.
"""

import warnings

import numpy as np
import scipy.sparse as sp

from ._validation import (
    AMPWarning,
    check_counts,
    check_embedding,
    check_integer,
    check_positive,
    quiet,
)
from .bias import margins, without_gaps
from .sums import (
    AllColumns,
    Tilted,
    as_means,
    each_block,
    exact,
    log_partition,
    products_of_pairs,
)

MEMORY = 6  # sweeps from which the next one is extrapolated
SAMPLED_TOL = 0.01  # sampled sums differ by about as much


def margin_biases(totals, U, sample):
    """Return the biases of the rows with which the rates of row i add up to a total.

    Parameters
    ----------
    totals : array (m,)
        What the rates r_u_i r_v_j exp(M_ij) of each row add up to.
    U : array (m, d)
    sample : AllColumns or amptutorial.sampling.ColumnSample
        The w_j and the r_v_j.

    Returns
    -------
    array (m,)
        The r_u.

    Raises
    ------
    FloatingPointError
        If one of them is too large for double precision.

    Examples
    --------
    >>> columns = AllColumns(np.zeros((2, 1)), np.array([1.0, 2.0]))
    >>> margin_biases(np.array([6.0]), np.zeros((1, 1)), columns).round(9)
    array([2.])
    """
    with np.errstate(over="ignore", invalid="ignore"):
        log_sums = sample.for_rows(U, totals).log_partition(U)
    return _of_sums(totals, log_sums)


def _of_sums(totals, log_sums):
    """Return the biases that make rates of these log sums add up to totals."""
    with np.errstate(over="ignore", invalid="ignore"):
        return _finite(totals * np.exp(-log_sums))


def _normalised(r_u, r_v):
    """Return biases with the same products and mean(r_u) = 1."""
    scale = r_u.mean()
    with np.errstate(over="ignore", invalid="ignore"):
        return _finite(r_u / scale), _finite(r_v * scale)


def _finite(biases):
    if not np.isfinite(biases).all():
        raise FloatingPointError(
            "biases overflow, because entries of M are far from zero: scale U or V down"
        )
    return biases


def fit_margins(rows, columns, U, W, r_v, sampler=exact):
    """Return biases of rows, then of columns, with which the rates have these margins.

    One sweep of iterative proportional fitting: `r_u` gives the rows their sums beside
    the `r_v` before, the new `r_v` gives the columns theirs beside this `r_u`.

    Parameters
    ----------
    rows, columns : arrays (m,), (n,)
        The sums wanted.
    U, W, r_v
        As for `tilted_means`.
    sampler : Exact or amptutorial.sampling.Sampler

    Returns
    -------
    r_u, r_v : arrays (m,), (n,)

    Raises
    ------
    FloatingPointError
        As `margin_biases`.
    """
    if not sampler.samples(len(U), len(W)):
        tilted = Tilted(U, W, r_v)
        if tilted.small:
            return _fit_at_once(rows, columns, tilted)[:2]
    r_u = margin_biases(rows, U, sampler(U, rows, W, r_v))
    return r_u, margin_biases(columns, W, sampler(W, columns, U, r_u))


def _fit_at_once(rows, columns, tilted, *more):
    """Return what `fit_margins` does, from one pass over all exponentials.

    The third array holds, for each row, the sums of the exponentials times `more`.
    """
    factors, total, found = np.column_stack([tilted.shares, *more]), 0.0, []

    def block(some):
        weights, _, log_unit = tilted.factors(some)
        sums = weights @ factors
        r_u = rows[some] * np.exp(-log_unit) / sums[:, 0]
        return r_u, sums[:, 1:], r_u.astype(sums.dtype) @ weights

    for r_u, sums, part in each_block(block, len(rows), len(columns)):
        found.append((r_u, sums))
        total = total + part.astype(np.float64)
    r_u, sums = map(np.concatenate, zip(*found, strict=True))
    return _finite(r_u), _finite(columns / total), sums


class Fitting(AllColumns):
    """A sampler of all columns, whose pass over the exponentials fits margins too.

    It serves one half-step, in one process.

    Parameters
    ----------
    rows, columns, biases : arrays (m,), (n,), (n,)
        As `rows`, `columns` and `r_v` for `fit_margins`.

    Attributes
    ----------
    fitted : pair of arrays, or None
        What `fit_margins` returns; None before `tilted_means` have been asked for.
    """

    sample = property(lambda self: AllColumns(self.W, self.r_v))

    def __init__(self, rows, columns, biases):
        self.rows, self.columns, self.biases = rows, columns, biases
        self.fitted = None

    def __call__(self, U, weights, W, r_v):
        """Return itself: what sums of rows `U` run over."""
        super().__init__(W, r_v)
        return self

    def tilted_means(self, U, own=None):
        """Return the `tilted_means` of rows `U`."""
        tilted, own = (Tilted(U, self.W, r) for r in (self.r_v, self.biases))
        if not (tilted.small and own.small):
            return super().tilted_means(U)
        more = tilted.shares, tilted.shares[:, None] * tilted.W
        *self.fitted, sums = _fit_at_once(self.rows, self.columns, own, *more)
        return as_means(sums, tilted.log_unit)


def observed_biases(Z, U, W, r_v):
    """Return biases of rows with which the rates add up to the counts observed.

    Parameters
    ----------
    Z : csr_array (m, n)
        Counts; NaN where a pair was not observed.
    U, W, r_v
        As for `tilted_means`.

    Returns
    -------
    array (m,)

    Raises
    ------
    FloatingPointError
        If one of them is too large for double precision.

    Examples
    --------
    >>> Z = sp.csr_array([[np.nan, 6.0]])
    >>> observed_biases(Z, np.zeros((1, 1)), np.zeros((2, 1)), np.array([1.0, 2.0]))
    array([3.])
    """
    Z, gaps = without_gaps(Z)
    log_sums, totals = log_partition(U, W, r_v), Z.sum(axis=1)
    if gaps is not None:
        i, j = gaps.nonzero()
        log_sums = _less(log_sums, i, r_v[j], products_of_pairs(U, W, i, j))
    return _of_sums(totals, log_sums)


def _less(log_sums, i, r_v, M):
    """Return log sums over what was observed, given the r_v_j and M_ij of gaps."""
    hidden = np.bincount(i, r_v * np.exp(M - log_sums[i]), len(log_sums))
    return log_sums + np.log(np.maximum(1 - hidden, 1e-12))


def biases_with_gaps(Z, U, W, n_sweeps=1000, tol=1e-6):
    """Return the biases of `refit_biases` for counts with gaps, and what is off.

    Parameters
    ----------
    Z : csr_array (m, n)
        Counts; NaN where a pair was not observed.
    U, W : arrays (m, d), (n, d)
    n_sweeps, tol
        As for `refit_biases`.
    """
    _, r_v = margins(Z)
    Z, gaps = without_gaps(Z)
    (rows, columns), (i, j) = margins(Z), gaps.nonzero()
    M = products_of_pairs(U, W, i, j)
    for _ in range(n_sweeps):
        r_u = _of_sums(rows, _less(log_partition(U, W, r_v), i, r_v[j], M))
        before = r_v
        r_v = _of_sums(columns, _less(log_partition(W, U, r_u), j, r_u[i], M))
        off = columns @ np.abs(before / np.where(r_v > 0, r_v, 1) - 1) / columns.sum()
        if off <= tol:
            break
    return *_normalised(r_u, r_v), float(off) if off > tol else 0.0


def refit_biases(Z, U, V, *, n_sweeps=100, tol=1e-6, sampler=exact):
    """Refit the biases given the embedding, by iterative proportional fitting.

    In a sweep r_u_i = row_i / sum_j r_v_j exp(M_ij), and then the same for the columns:
    each is the exact maximum of the likelihood given the other. For M = 0 the result is
    that of `amptutorial.bias.estimate_bias`. Where M is of order one, row and column
    sums no longer estimate the biases (`eq:rest`), but the biases times a mean of
    exp(M_ij). Sweeps are extrapolated by Anderson's method: where entries of M are
    large, they converge slowly by themselves.

    Parameters
    ----------
    Z : array or sparse array (m, n)
        Counts. A row or column without counts gets the bias 0. Sums run over the pairs
        that were observed, those that are not NaN.
    U, V : arrays (m, d), (n, d)
        M = U V^T / sqrt(m).
    n_sweeps : int
        The largest number of sweeps over rows and columns.
    tol : float
        Stop when the columns of the rates miss the sums of those of `Z` by no more than
        this fraction of all counts, added up over the columns.
    sampler : Exact or amptutorial.sampling.Sampler
        Where it samples sums over many rows or columns, `tol` is at least 0.01.

    Returns
    -------
    r_u : array (m,)
    r_v : array (n,)
        With mean(r_u) = 1. The row sums of the rates are those of `Z`, and so are the
        column sums, within `tol`.

    Raises
    ------
    ValueError
        For invalid counts, or embeddings that have the wrong shape or are not finite.
    FloatingPointError
        If entries of M are so far from zero that the biases overflow.

    Warns
    -----
    AMPWarning
        If the column sums are still off by more than `tol` after `n_sweeps`.

    Examples
    --------
    >>> refit_biases(np.array([[1, 2], [3, 6]]), np.zeros((2, 1)), np.zeros((2, 1)))
    (array([0.5, 1.5]), array([2., 4.]))
    """
    Z = check_counts(Z, gaps=True)
    rows, columns = margins(Z)
    U, V = check_embedding(U, V, len(rows), len(columns))
    n_sweeps = check_integer(n_sweeps, "n_sweeps", minimum=1)
    tol = check_positive(tol, "tol", zero=True)
    W = V / np.sqrt(len(U))
    if without_gaps(Z)[1] is not None:
        r_u, r_v, off = biases_with_gaps(sp.csr_array(Z), U, W, n_sweeps, tol)
    else:
        given = rows, columns, U, W, columns
        r_u, r_v, off = biases_of_margins(*given, n_sweeps, tol, sampler)
    if off:
        warnings.warn(
            f"column sums are off by {off:.1e} of all counts: allow more sweeps than "
            f"n_sweeps={n_sweeps}",
            AMPWarning,
            stacklevel=2,
        )
    return r_u, r_v


def _extrapolated(sweeps, columns):
    """Return biases of columns from pairs, before and after each of the last sweeps.

    Anderson's method: of all combinations of the logarithms after the sweeps, that of
    which a sweep would change least, by what it changed them. It goes beyond the last
    sweep by no more than a factor of e.
    """
    last = sweeps[-1][1]
    if len(sweeps) == 1:
        return last
    some = np.flatnonzero(columns)
    sweeps = np.array(sweeps)[:, :, some]
    if not (np.isfinite(sweeps).all() and sweeps.all()):  # far from any solution
        return last
    before, after = np.log(sweeps).swapaxes(0, 1)
    root, changes = np.sqrt(columns[some]), after - before
    gaps = np.diff(changes, axis=0) * root
    mixture = np.linalg.lstsq(gaps.T, changes[-1] * root, rcond=1e-8)[0]
    r_v = last.copy()
    r_v[some] *= np.exp(np.clip(-mixture @ np.diff(after, axis=0), -1, 1))
    return r_v


def biases_of_margins(rows, columns, U, W, r_v, n_sweeps=100, tol=1e-6, sampler=exact):
    """Return the biases of `refit_biases`, and how far the column sums are off.

    Parameters
    ----------
    rows, columns, U, W, r_v, sampler
        As for `fit_margins`; r_v is positive where `columns` are.
    n_sweeps, tol
        As for `refit_biases`.

    Returns
    -------
    r_u, r_v : arrays (m,), (n,)
    off : float
        As a fraction of all counts; zero where that is within `tol`.
    """
    sampled = sampler.samples(len(U), len(W))
    tol, memory = (max(tol, SAMPLED_TOL), 1) if sampled else (tol, MEMORY)
    sweeps, least = [], np.inf
    for sweep in range(n_sweeps + 1):
        r_u, fitted = fit_margins(rows, columns, U, W, r_v, sampler)
        with quiet():
            factors = np.where(columns > 0, r_v / fitted, 1)  # of the column sums
        off = columns @ np.abs(factors - 1) / columns.sum()
        if off <= tol or sweep == n_sweeps:
            break
        if off > 2 * least:  # led astray
            sweeps.clear()
        least = min(least, off)
        sweeps = [*sweeps, (r_v, fitted)][-memory:]
        r_v = _extrapolated(sweeps, columns)
    return *_normalised(r_u, r_v), float(off) if off > tol else 0.0
