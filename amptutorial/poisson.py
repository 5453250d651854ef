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

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from joblib import cpu_count
from threadpoolctl import ThreadpoolController

from ._validation import check_embedding, check_integer, check_positive
from .bias import margins
from .score import blocks

BLAS = ThreadpoolController().select(user_api="blas")
BLOCK_ENTRIES = 2**19  # of the m x n matrix in memory at once, per thread
SAMPLED_TOL = 0.01  # sampled sums differ by about as much
PAIRS_AT_ONCE = 2**14  # whose embeddings stay near the processor


def _map_blocks(function, m, n):
    """Return the arrays that `function` returns for each block of rows, stacked."""
    rows = list(blocks(m, BLOCK_ENTRIES // n)) or [slice(0, 0)]
    # NumPy releases the interpreter lock, so that threads keep every core busy; BLAS
    # must not add its own
    with BLAS.limit(limits=1):
        results = _map_in_threads(function, rows)
    return tuple(np.concatenate(parts) for parts in zip(*results, strict=True))


def _map_in_threads(function, items):
    """Return `function` of each item, on all cores.

    One after the other where no thread can be started, as in WebAssembly.
    """
    with ThreadPoolExecutor(cpu_count()) as pool:
        try:
            results = pool.map(function, items)  # errors of `function` come later
        except RuntimeError:
            results = map(function, items)
        return list(results)


def _tilted(U, W, r_v):
    """Return r_v_j exp(M_ij) in units of the largest of each row, and their logarithms.

    Divided by the largest entry of its row, no exponential can overflow.
    """
    weights = U @ W.T
    # the next line must not meet -inf - -inf
    weights += np.log(np.maximum(r_v, np.finfo(r_v.dtype).tiny))
    largest = weights.max(axis=1)
    weights -= largest[:, None]
    return np.exp(weights, out=weights), largest


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
    W, r_v = W.astype(U.dtype), r_v.astype(U.dtype)
    W1 = np.column_stack([np.ones_like(r_v), W])

    def block(rows):
        weights, largest = _tilted(U[rows], W, r_v)
        sums = weights @ W1
        return np.log(sums[:, 0]) + largest, sums[:, 1:] / sums[:, :1]

    return _map_blocks(block, len(U), len(W))


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
    features = np.column_stack([np.ones_like(r_v), W, W[:, one] * W[:, two]])

    def block(rows):
        weights, largest = _tilted(U[rows], W, r_v)
        sums = weights @ features
        means = sums[:, 1:] / sums[:, :1]
        upper = means[:, d:] - means[:, one] * means[:, two]
        return sums[:, 0] * np.exp(largest), upper

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
    with np.errstate(over="ignore"):  # an infinite bound is far, and not kept
        bound = np.linalg.norm(step, axis=1) * np.linalg.norm(W, axis=1).max()
    far, W = bound > beyond, W.astype(step.dtype)
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
    W, r_v = W.astype(U.dtype), r_v.astype(U.dtype)

    def block(rows):
        weights, largest = _tilted(U[rows], W, r_v)
        return (np.log(weights.sum(axis=1)) + largest,)

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

    def reach(self, step, beyond=0.0):
        """Return the `largest_changes` by steps of rows."""
        return largest_changes(step, self.W, beyond)


def exact(U, weights, W, r_v):
    """Return what sums of rows `U` run over where nothing is sampled: `AllColumns`."""
    return AllColumns(W, r_v)


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
        biases = totals * np.exp(-log_sums)
    return _finite(biases)


def _finite(biases):
    if not np.isfinite(biases).all():
        raise FloatingPointError(
            "biases overflow, because entries of M are far from zero: scale U or V down"
        )
    return biases


def fit_margins(rows, columns, U, W, r_v, sampler=exact):
    """Return biases of rows, then of columns, with which the rates have these margins.

    One sweep of iterative proportional fitting. The column sums of the rates are exact,
    and the row sums as near as `r_v` was before.

    Parameters
    ----------
    rows, columns : arrays (m,), (n,)
        The sums wanted.
    U, W, r_v
        As for `tilted_means`.
    sampler : exact or amptutorial.sampling.Sampler

    Returns
    -------
    r_u, r_v : arrays (m,), (n,)

    Raises
    ------
    FloatingPointError
        As `margin_biases`.
    """
    r_u = margin_biases(rows, U, sampler(U, rows, W, r_v))
    return r_u, margin_biases(columns, W, sampler(W, columns, U, r_u))


def refit_biases(Z, U, V, *, n_sweeps=20, tol=1e-6, sampler=exact):
    """Refit the biases given the embedding, by iterative proportional fitting.

    r_u_i = row_i / sum_j r_v_j exp(M_ij), then the same for the columns, in turn: each
    is the exact maximum of the likelihood given the other. For M = 0 the result is that
    of `amptutorial.bias.estimate_bias`. Where M is of order one, row and column sums no
    longer estimate the biases (`eq:rest`), but the biases times a mean of exp(M_ij).

    Parameters
    ----------
    Z : array or sparse array (m, n)
        Counts. A row or column without counts gets the bias 0.
    U, V : arrays (m, d), (n, d)
        M = U V^T / sqrt(m).
    n_sweeps : int
        The largest number of sweeps over rows and columns.
    tol : float
        Stop when a sweep changes the r_v by no more than this fraction of their sum.
    sampler : exact or amptutorial.sampling.Sampler
        Where it samples sums over many rows or columns, `tol` is at least 0.01.

    Returns
    -------
    r_u : array (m,)
    r_v : array (n,)
        With mean(r_u) = 1. The row sums of the rates are those of `Z`, the column sums
        to about `tol`.

    Raises
    ------
    ValueError
        For invalid counts, or embeddings that have the wrong shape or are not finite.
    FloatingPointError
        If entries of M are so far from zero that the biases overflow.

    Examples
    --------
    >>> refit_biases(np.array([[1, 2], [3, 6]]), np.zeros((2, 1)), np.zeros((2, 1)))
    (array([0.5, 1.5]), array([2., 4.]))
    """
    rows, columns = margins(Z)
    U, V = check_embedding(U, V, len(rows), len(columns))
    n_sweeps = check_integer(n_sweeps, "n_sweeps", minimum=1)
    tol = check_positive(tol, "tol", zero=True)
    return biases_of_margins(rows, columns, U, V, n_sweeps, tol, sampler)


def biases_of_margins(rows, columns, U, V, n_sweeps=20, tol=1e-6, sampler=exact):
    """Return the biases of `refit_biases`, from the sums of the rows and columns."""
    W, r_v = V / np.sqrt(len(U)), columns
    if sampler is not exact and sampler.samples(max(len(U), len(V))):
        tol = max(tol, SAMPLED_TOL)
    for _ in range(n_sweeps):
        before, (_, r_v) = r_v, fit_margins(rows, columns, U, W, r_v, sampler)
        if np.abs(r_v - before).sum() <= tol * r_v.sum():
            break
    r_u = margin_biases(rows, U, sampler(U, rows, W, r_v))
    with np.errstate(over="ignore", invalid="ignore"):
        return _finite(r_u / r_u.mean()), _finite(r_v * r_u.mean())
