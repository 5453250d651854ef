"""Biases refitted to an embedding: the likelihood itself, not its quadratic form.

Given U and V, the rates r_u_i r_v_j exp(M_ij) have the row and column sums of the
counts at the maximum of the Poisson likelihood (`eq:loss_poisson`). Iterative
proportional fitting finds the biases: each side in turn takes those that give it its
sums (`amptutorial.sums`).

`refit_biases` checks its arguments. The other functions are called in every iteration,
and take arrays as they are.
"""

import warnings
from typing import NamedTuple

import numpy as np

from . import _validation as door
from .bias import margins, without_gaps
from .sampling import exact
from .sums import AllColumns, products_of_pairs

MEMORY = 6  # sweeps from which the next one is extrapolated
SAMPLED_TOL = 0.01  # sampled sums differ by about as much
LEAST_SEEN = 1e-6  # of the rates of a row: what single precision tells from nothing


class Gaps(NamedTuple):
    """Pairs that were not observed: their rates belong to no sum.

    Attributes
    ----------
    i, j : arrays of int (number of gaps,)
    M : array (number of gaps,)
        What the embedding says there.
    """

    i: np.ndarray
    j: np.ndarray
    M: np.ndarray

    @classmethod
    def of(cls, gaps, U, W):
        """Return those of a sparse array that has ones in gaps; None stays None.

        Examples
        --------
        >>> import scipy.sparse as sp
        >>> Gaps.of(sp.csr_array([[0, 1]]), np.ones((1, 1)), np.full((2, 1), 0.5)).M
        array([0.5])
        """
        if gaps is None:
            return None
        i, j = gaps.nonzero()
        return cls(i, j, products_of_pairs(U, W, i, j))

    @property
    def T(self):
        """Those of the transpose."""
        return Gaps(self.j, self.i, self.M)

    def sums(self, r_v, number):
        """Return the sums of r_v_j exp(M_ij) over the gaps of each of the rows."""
        with np.errstate(over="ignore"):
            return np.bincount(self.i, r_v[self.j] * np.exp(self.M), number)

    def left_out(self, log_sums, r_v):
        """Return log sums over all but the gaps, given those over all pairs."""
        relative = self._replace(M=self.M - log_sums[self.i])
        hidden = relative.sums(r_v, len(log_sums))
        return log_sums + np.log(np.maximum(1 - hidden, LEAST_SEEN))


def margin_biases(totals, U, sample, gaps=None):
    """Return the biases of the rows with which the rates of row i add up to a total.

    Parameters
    ----------
    totals : array (m,)
        What the rates r_u_i r_v_j exp(M_ij) of each row add up to.
    U : array (m, d)
    sample : AllColumns or amptutorial.sampling.ColumnSample
        The w_j and the r_v_j.
    gaps : Gaps, optional
        Of the rows: the rates of the other pairs add up.

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
        if gaps is not None:
            log_sums = gaps.left_out(log_sums, sample.r_v)
        return _finite(totals * np.exp(-log_sums))


def _finite(biases):
    if not np.isfinite(biases).all():
        raise FloatingPointError("biases overflow: scale U or V down")
    return biases


def fit_margins(rows, columns, U, W, r_v, sampler=exact, gaps=None):
    """Return biases of rows, then of columns, with which the rates have these margins.

    One sweep of iterative proportional fitting: `r_u` gives the rows their sums beside
    the `r_v` before, the new `r_v` gives the columns theirs beside this `r_u`.

    Parameters
    ----------
    rows, columns : arrays (m,), (n,)
        The sums wanted.
    U, W, r_v
        As for `tilted_means`.
    sampler : amptutorial.sampling.Sampler
    gaps : Gaps, optional
        The sums are those over all other pairs.

    Returns
    -------
    r_u, r_v : arrays (m,), (n,)

    Raises
    ------
    FloatingPointError
        As `margin_biases`.
    """
    r_u = margin_biases(rows, U, sampler(U, rows, W, r_v), gaps)
    return r_u, margin_biases(columns, W, sampler(W, columns, U, r_u), gaps and gaps.T)


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
    >>> import scipy.sparse as sp
    >>> Z = sp.csr_array([[np.nan, 6.0]])
    >>> observed_biases(Z, np.zeros((1, 1)), np.zeros((2, 1)), np.array([1.0, 2.0]))
    array([3.])
    """
    Z, gaps = without_gaps(Z)
    given = Z.sum(axis=1), U, AllColumns(W, r_v)
    return margin_biases(*given, Gaps.of(gaps, U, W))


def refit_biases(Z, U, V, *, n_sweeps=100, tol=1e-6):
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
    Z = door.check_counts(Z, gaps=True)
    _, r_v = margins(Z)
    Z, gaps = without_gaps(Z)
    rows, columns = margins(Z)
    U, V = door.check_embedding(U, V, len(rows), len(columns))
    n_sweeps = door.check_integer(n_sweeps, "n_sweeps", minimum=1)
    tol = door.check_positive(tol, "tol", zero=True)
    W = V / np.sqrt(len(U))
    given = rows, columns, U, W, r_v, n_sweeps, tol
    r_u, r_v, off = biases_of_margins(*given, gaps=Gaps.of(gaps, U, W))
    if off:
        remedy = f"allow more sweeps than n_sweeps={n_sweeps}"
        why = f"column sums are off by {off:.1e} of all counts: {remedy}"
        warnings.warn(why, door.AMPWarning, stacklevel=2)
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


def biases_of_margins(
    rows, columns, U, W, r_v, n_sweeps=100, tol=1e-6, sampler=exact, gaps=None
):
    """Return the biases of `refit_biases`, and how far the column sums are off.

    Parameters
    ----------
    rows, columns, U, W, r_v, sampler, gaps
        As for `fit_margins`; r_v is positive where `columns` are.
    n_sweeps, tol
        As for `refit_biases`; where `sampler` samples sums, `tol` is at least 0.01.

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
        r_u, fitted = fit_margins(rows, columns, U, W, r_v, sampler, gaps)
        with door.quiet():
            factors = np.where(columns > 0, r_v / fitted, 1)  # of the column sums
        off = columns @ np.abs(factors - 1) / columns.sum()
        if off <= tol or sweep == n_sweeps:
            break
        if off > 2 * least:  # led astray
            sweeps.clear()
        least = min(least, off)
        sweeps = [*sweeps, (r_v, fitted)][-memory:]
        r_v = _extrapolated(sweeps, columns)
    scale = r_u.mean()
    with np.errstate(over="ignore", invalid="ignore"):
        both = _finite(r_u / scale), _finite(r_v * scale)
    return *both, float(off) if off > tol else 0.0
