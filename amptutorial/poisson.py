"""The Poisson likelihood itself, not its quadratic approximation (`eq:loss_poisson`).

On real text M_ij = u_i . v_j / sqrt(m) is of order one, and the rates r_u_i r_v_j
exp(M_ij) (`eq:Pij`) must be taken as they are. All functions here write M = U W^T, with
W = V / sqrt(m), and form its exponential for a block of rows at a time, on all cores,
never as an m x n array. They serve the rows as they stand, and the columns with the
roles of U and W exchanged.

`AllColumns` says over which columns the sums of rows run: over all of them. Those of
`amptutorial.sampling.ColumnSample` run over samples.

`refit_biases` checks its arguments. The other functions are called in every iteration,
and take arrays as they are.
"""

import math
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import scipy.sparse as sp
from joblib import cpu_count

from ._validation import (
    AMPWarning,
    check_counts,
    check_embedding,
    check_integer,
    check_positive,
    quiet,
)
from .bias import margins, without_gaps
from .score import blocks, one_thread

BLOCK_ENTRIES = 2**19  # of the m x n matrix in memory at once, per thread
MEMORY = 6  # sweeps from which the next one is extrapolated
SAMPLED_TOL = 0.01  # sampled sums differ by about as much
PAIRS_AT_ONCE = 2**14  # whose embeddings stay near the processor


def _map_blocks(function, m, n):
    """Return the arrays that `function` returns for each block of rows, stacked."""
    results = zip(*_each_block(function, m, n), strict=True)
    return tuple(np.concatenate(parts) for parts in results)


def _each_block(function, m, n):
    """Yield what `function` returns for each block of rows, in order; on all cores.

    One block after the other where no thread can be started, as in WebAssembly.
    """
    rows = list(blocks(m, BLOCK_ENTRIES // n)) or [slice(0, 0)]
    # NumPy releases the interpreter lock, so that threads keep every core busy; BLAS
    # must not add its own
    with one_thread(), ThreadPoolExecutor(cpu_count()) as pool:
        try:
            results = pool.map(function, rows)  # errors of `function` come later
        except RuntimeError:
            results = map(function, rows)
        yield from results


class _Tilted:
    """The r_v_j exp(M_ij) for blocks of rows, in the precision of U.

    They are products of three factors that no precision overflows or loses. If `small`,
    all |M_ij| are so small that exp(M_ij) needs no scaling.
    """

    def __init__(self, U, W, r_v):
        unit = r_v.max(initial=0) or 1.0
        self.U, self.W = U, W.astype(U.dtype, copy=False)
        self.shares, self.log_unit = (r_v / unit).astype(U.dtype), np.log(unit)
        with np.errstate(over="ignore", invalid="ignore"):  # not small, that is
            lengths = (np.linalg.norm(X, axis=1) for X in (U, self.W))
            bound = math.prod(each.max(initial=0) for each in lengths)
        # products of two exponentials and a total are far from the largest number
        largest = 0.4 * np.log(np.finfo(U.dtype).max)
        self.small = bool(bound < largest and self.shares.any())

    def factors(self, rows):
        """Return arrays (rows, n), (n,) and the logarithm of (rows,), or of a number.

        Where entries of M are large, they are divided by the largest of each row.
        """
        weights = self.U[rows] @ self.W.T
        if self.small:
            return np.exp(weights, out=weights), self.shares, self.log_unit
        # the next line must not meet -inf - -inf
        weights += np.log(np.maximum(self.shares, np.finfo(weights.dtype).tiny))
        largest = weights.max(axis=1)
        weights -= largest[:, None]
        ones = np.ones_like(self.shares)
        return np.exp(weights, out=weights), ones, largest + self.log_unit


def tilted_means(U, W, r_v):
    """Return log sum_j r_v_j exp(M_ij) and the mean w_j under these weights, for all i.

    Parameters
    ----------
    U, W : arrays (m, d), (n, d)
        M = U W^T, computed in the precision of U: float32 is twice as fast, and enough
        while an iteration still moves.
    r_v : array (n,)
        Bias factors of the columns, zero or more.

    Returns
    -------
    log_sums : array (m,)
    means : array (m, d)

    Examples
    --------
    >>> W, r_v = np.array([[1.0], [4.0]]), np.array([2.0, 1.0])
    >>> log_sums, means = tilted_means(np.zeros((1, 1)), W, r_v)
    >>> np.exp(log_sums).round(9), means
    (array([3.]), array([[2.]]))
    """
    if len(U) > 1 and not U.any():  # before the first step: all rows are the same
        return tuple(np.repeat(each, len(U), 0) for each in tilted_means(U[:1], W, r_v))
    tilted = _Tilted(U, W, r_v)
    W1 = np.column_stack([np.ones_like(tilted.shares), tilted.W])

    def block(rows):
        weights, shares, log_scale = tilted.factors(rows)
        return _as_means(weights @ (shares[:, None] * W1), log_scale)

    return _map_blocks(block, len(U), len(W))


def _as_means(sums, log_scale):
    """Return log sums and means from sums of the weights, and of weights times w_j."""
    return np.log(sums[:, 0]) + log_scale, sums[:, 1:] / sums[:, :1]


def tilted_covariances(U, W, r_v):
    """Return sum_j r_v_j exp(M_ij) and the covariance of the w_j under these weights.

    Times a factor r_u_i, their product is the Fisher information of a row of Poisson
    counts on u_i / sqrt(m), where the factor r_u_i is unknown.

    Parameters
    ----------
    U, W : arrays (m, d), (n, d)
        M = U W^T.
    r_v : array (n,)
        Bias factors of the columns, zero or more.

    Returns
    -------
    sums : array (m,)
    covariances : array (m, d, d)

    Examples
    --------
    >>> W, r_v = np.array([[1.0], [4.0]]), np.array([2.0, 1.0])
    >>> sums, covariances = tilted_covariances(np.zeros((1, 1)), W, r_v)
    >>> sums, covariances
    (array([3.]), array([[[2.]]]))
    """
    d = W.shape[1]
    one, two = np.triu_indices(d)  # the covariances are symmetric
    tilted = _Tilted(U, W, r_v)
    features = np.column_stack([np.ones_like(r_v), W, W[:, one] * W[:, two]])

    def block(rows):
        weights, shares, log_scale = tilted.factors(rows)
        sums = weights @ (shares[:, None] * features)
        means = sums[:, 1:] / sums[:, :1]
        upper = means[:, d:] - means[:, one] * means[:, two]
        return sums[:, 0] * np.exp(log_scale), upper

    sums, upper = _map_blocks(block, len(U), len(W))
    covariances = np.empty((len(U), d, d))
    covariances[:, one, two] = covariances[:, two, one] = upper
    return sums, covariances


def largest_changes(step, W, beyond=0.0):
    """Return max_j |step_i . w_j| for every i: how far a step of row i changes M.

    Parameters
    ----------
    step, W : arrays (m, d), (n, d)
        The steps of the rows of U, and W.
    beyond : float
        Where an upper bound is within it, the bound is returned: it costs less.

    Returns
    -------
    array (m,)

    Examples
    --------
    >>> step, W = np.array([[0.5, 0.0], [3.0, 0.0]]), np.array([[0.0, 1.0], [0.1, 0.0]])
    >>> largest_changes(step, W), largest_changes(step, W, beyond=1.0)
    (array([0.05, 0.3 ]), array([0.5, 0.3]))
    """
    W = W.astype(step.dtype, copy=False)
    with np.errstate(over="ignore"):  # an infinite bound is far, and not kept
        bound = np.linalg.norm(step, axis=1) * np.linalg.norm(W, axis=1).max()
    far = bound > beyond
    some = step[far]

    def block(rows):
        change = some[rows] @ W.T
        return (np.maximum(change.max(axis=1), -change.min(axis=1)),)

    if far.any():
        bound[far] = _map_blocks(block, len(some), len(W))[0]
    return bound


def products_of_pairs(U, W, i, j):
    """Return u_i . w_j for pairs (i, j), without the products of all others.

    Parameters
    ----------
    U, W : arrays (m, d), (n, d)
    i, j : arrays of int (number of pairs,)

    Returns
    -------
    array (number of pairs,)

    Examples
    --------
    >>> U, W = np.array([[1.0], [2.0]]), np.array([[3.0], [5.0]])
    >>> products_of_pairs(U, W, np.array([0, 1]), np.array([1, 1]))
    array([ 5., 10.])
    """
    products = np.empty(len(i))
    for some in blocks(len(i), PAIRS_AT_ONCE):
        # `take` copies short rows twice as fast as an index does
        pairs = U.take(i[some], axis=0), W.take(j[some], axis=0)
        products[some] = np.einsum("kd,kd->k", *pairs)
    return products


def log_partition(U, W, r_v):
    """Return log sum_j r_v_j exp(M_ij) for every i, as `tilted_means` does, but faster.

    Parameters
    ----------
    U, W, r_v
        As for `tilted_means`.

    Returns
    -------
    array (m,)
        In double precision.

    Examples
    --------
    >>> W, r_v = np.array([[1.0], [4.0]]), np.array([2.0, 1.0])
    >>> np.exp(log_partition(np.zeros((1, 1)), W, r_v)).round(9)
    array([3.])
    """
    tilted = _Tilted(U, W, r_v)

    def block(rows):
        weights, shares, log_scale = tilted.factors(rows)
        return (np.log(weights @ shares) + log_scale,)

    return _map_blocks(block, len(U), len(W))[0].astype(np.float64)


class AllColumns:
    """The sums of rows over all columns: `W` (n, d) and the bias factors `r_v` (n,).

    Examples
    --------
    >>> AllColumns(np.ones((3, 1)), np.ones(3)).log_partition(np.zeros((2, 1))).round(2)
    array([1.1, 1.1])
    """

    sampled, sizes = False, None
    sample = property(lambda self: self)
    parts = property(lambda self: [(slice(None), self)])  # one for all rows

    def __init__(self, W, r_v):
        self.W, self.r_v = W, r_v

    def for_rows(self, *rows):
        """Return itself: the sums are the same for all rows."""
        return self

    of_sizes = copy = for_rows

    def own_sums(self, *rows):
        """Return None: the sums miss nothing where rows have counts."""

    def tilted_means(self, U, own=None):
        """Return the `tilted_means` of rows `U`."""
        return tilted_means(U, self.W, self.r_v)

    def log_partition(self, U):
        """Return the `log_partition` of rows `U`."""
        return log_partition(U, self.W, self.r_v)

    def reach(self, step, beyond):
        """Return the `largest_changes` by steps of rows."""
        return largest_changes(step, self.W, beyond)


class Exact:
    """Says, in the place of a `Sampler`, that sums run over all columns."""

    def samples(self, m, n):
        """Return False: whatever the number of rows and columns."""
        return False

    def __call__(self, U, weights, W, r_v):
        """Return what sums of rows `U` run over: `AllColumns`."""
        return AllColumns(W, r_v)


exact = Exact()


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
        tilted = _Tilted(U, W, r_v)
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

    for r_u, sums, part in _each_block(block, len(rows), len(columns)):
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
        tilted, own = (_Tilted(U, self.W, r) for r in (self.r_v, self.biases))
        if not (tilted.small and own.small):
            return super().tilted_means(U)
        more = tilted.shares, tilted.shares[:, None] * tilted.W
        *self.fitted, sums = _fit_at_once(self.rows, self.columns, own, *more)
        return _as_means(sums, tilted.log_unit)


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
