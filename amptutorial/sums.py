"""Sums over columns of rates r_u_i r_v_j exp(M_ij), and means under these weights.

On real text M_ij = u_i . v_j / sqrt(m) is of order one, and the rates (`eq:Pij`) must
be taken as they are, not to second order. All functions here write M = U W^T, with W =
V / sqrt(m), and form its exponential for a block of rows at a time, on all cores, never
as an m x n array. They serve the rows as they stand, and the columns with the roles of
U and W exchanged. Called in every iteration, they take arrays as they are.

`AllColumns` says over which columns the sums of rows run: over all of them. Those of
`amptutorial.sampling.ColumnSample` run over samples.
"""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from joblib import cpu_count

from .score import blocks, one_thread

BLOCK_ENTRIES = 2**19  # of the m x n matrix in memory at once, per thread
PAIRS_AT_ONCE = 2**14  # whose embeddings stay near the processor


def map_blocks(function, m, n):
    """Return the arrays that `function` returns for each block of rows, stacked.

    On all cores; one block after the other where no thread can be started, as in
    WebAssembly.
    """
    rows = list(blocks(m, BLOCK_ENTRIES // n)) or [slice(0, 0)]
    # NumPy releases the interpreter lock, so that threads keep every core busy; BLAS
    # must not add its own
    with one_thread(), ThreadPoolExecutor(cpu_count()) as pool:
        try:
            results = pool.map(function, rows)  # errors of `function` come later
        except RuntimeError:
            results = map(function, rows)
        return tuple(map(np.concatenate, zip(*results, strict=True)))


def _tilted(function, U, W, r_v):
    """Return what a function makes of the r_v_j exp(M_ij), a block of rows at a time.

    They are formed in the precision of U, as products of three factors that no
    precision overflows or loses. The function is given these: arrays (rows, n), (n,),
    and the logarithm of (rows,), or of a number.
    """
    unit = r_v.max(initial=0) or 1.0
    W, log_unit = W.astype(U.dtype, copy=False), np.log(unit)
    shares = (r_v / unit).astype(U.dtype)
    with np.errstate(over="ignore", invalid="ignore"):  # not small, that is
        lengths = (np.linalg.norm(X, axis=1) for X in (U, W))
        bound = math.prod(each.max(initial=0) for each in lengths)
    # all |M_ij| are so small that exp(M_ij), and sums of them, need no scaling
    small = bound < 0.4 * np.log(np.finfo(U.dtype).max) and shares.any()

    def block(rows):
        weights = U[rows] @ W.T
        if small:
            return function(np.exp(weights, out=weights), shares, log_unit)
        # the next line must not meet -inf - -inf
        weights += np.log(np.maximum(shares, np.finfo(weights.dtype).tiny))
        largest = weights.max(axis=1)  # of each row, by which all are divided
        weights -= largest[:, None]
        ones = np.ones_like(shares)
        return function(np.exp(weights, out=weights), ones, largest + log_unit)

    return map_blocks(block, len(U), len(W))


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
    W1 = np.column_stack([np.ones(len(W)), W]).astype(U.dtype)

    def means(weights, shares, log_scale):
        sums = weights @ (shares[:, None] * W1)
        return np.log(sums[:, 0]) + log_scale, sums[:, 1:] / sums[:, :1]

    return _tilted(means, U, W, r_v)


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
        bound[far] = map_blocks(block, len(some), len(W))[0]
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

    def log_sums(weights, shares, log_scale):
        return (np.log(weights @ shares) + log_scale,)

    return _tilted(log_sums, U, W, r_v)[0].astype(np.float64)


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
