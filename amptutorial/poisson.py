"""The Poisson likelihood itself, beyond its quadratic approximation (`eq:Pij`, `eq:loss_poisson`).

On real text M_ij = u_i . v_j / sqrt(m) is of order one, and the rates r_u_i r_v_j
exp(M_ij) must be taken as they are. All functions here write M = U W^T, with W = V /
sqrt(m), and form its exponential for a block of rows at a time, on all cores, never as
an m x n array. They serve the rows as they stand, and the columns with the roles of U
and W exchanged.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from joblib import cpu_count
from threadpoolctl import ThreadpoolController

from ._validation import check_counts, check_integer

BLAS = ThreadpoolController().select(user_api="blas")
BLOCK_ENTRIES = 2**19  # of the m x n matrix in memory at once, per thread


def _map_blocks(function, m, n):
    """Return what `function` returns for each block of rows, stacked: a tuple of arrays."""
    size = max(1, BLOCK_ENTRIES // n)
    blocks = [slice(k, k + size) for k in range(0, m, size)]
    # NumPy releases the interpreter lock, so that threads keep every core busy; BLAS
    # must not add its own
    with BLAS.limit(limits=1), ThreadPoolExecutor(cpu_count()) as pool:
        results = list(pool.map(function, blocks))
    return tuple(np.concatenate(parts) for parts in zip(*results, strict=True))


def _tilted(U, W, r_v):
    """Return r_v_j exp(M_ij), each row divided by its largest entry, and the logarithms of these entries."""
    weights = U @ W.T
    # the next line must not meet -inf - -inf
    weights += np.log(np.maximum(r_v, np.finfo(r_v.dtype).tiny))
    largest = weights.max(axis=1)
    weights -= largest[:, None]  # exp cannot overflow
    return np.exp(weights, out=weights), largest


def tilted_means(U, W, r_v):
    """Return log sum_j r_v_j exp(M_ij), and the mean of the rows of W under these weights, for every i.

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
    >>> log_sums, means = tilted_means(np.zeros((1, 1)), np.array([[1.0], [4.0]]), np.array([2.0, 1.0]))
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


def largest_changes(step, W):
    """Return max_j |step_i . w_j| for every i: how far moving row i along `step` changes M.

    Examples
    --------
    >>> largest_changes(np.array([[3.0]]), np.array([[1.0], [-2.0]]))
    array([6.])
    """
    W = W.astype(step.dtype)

    def block(rows):
        change = step[rows] @ W.T
        return (np.maximum(change.max(axis=1), -change.min(axis=1)),)

    return _map_blocks(block, len(step), len(W))[0]


def log_partition(U, W, r_v):
    """Return log sum_j r_v_j exp(M_ij) for every i, as `tilted_means` does, in less time.

    Examples
    --------
    >>> np.exp(log_partition(np.zeros((1, 1)), np.array([[1.0], [4.0]]), np.array([2.0, 1.0]))).round(9)
    array([3.])
    """
    W, r_v = W.astype(U.dtype), r_v.astype(U.dtype)

    def block(rows):
        weights, largest = _tilted(U[rows], W, r_v)
        return (np.log(weights.sum(axis=1)) + largest,)

    return _map_blocks(block, len(U), len(W))[0].astype(np.float64)


def margin_biases(totals, U, W, r_v):
    """Return the biases of the rows, such that the rates r_u_i r_v_j exp(M_ij) of row i add up to ``totals[i]``.

    Examples
    --------
    >>> margin_biases(np.array([6.0]), np.zeros((1, 1)), np.zeros((2, 1)), np.array([1.0, 2.0])).round(9)
    array([2.])
    """
    return totals * np.exp(-log_partition(U, W, r_v))


def refit_biases(Z, U, V, *, n_sweeps=20, tol=1e-6):
    """Refit the biases given the embedding, by iterative proportional fitting of the margins.

    r_u_i = row_i / sum_j r_v_j exp(M_ij), then the same for the columns, in turn: each
    is the exact maximum of the likelihood given the other. For M = 0 the result is that
    of `amptutorial.bias.estimate_bias`; where M is of order one, row and column sums no
    longer estimate the biases (`eq:rest`), but the biases times a mean of exp(M_ij).

    Parameters
    ----------
    Z : array or sparse array (m, n)
        Counts. A row or column without counts gets the bias 0.
    U, V : arrays (m, d), (n, d)
        M = U V^T / sqrt(m).
    n_sweeps : int
        The largest number of turns.
    tol : float
        Stop when a turn changes the r_v by no more than this fraction of their sum.

    Returns
    -------
    r_u : array (m,)
    r_v : array (n,)
        With mean(r_u) = 1. The row sums of the rates are those of `Z`, the column sums
        to about `tol`.

    Examples
    --------
    >>> refit_biases(np.array([[1, 2], [3, 6]]), np.zeros((2, 1)), np.zeros((2, 1)))
    (array([0.5, 1.5]), array([2., 4.]))
    """
    Z = check_counts(Z)
    rows, columns = (np.asarray(Z.sum(axis=k), dtype=np.float64) for k in (1, 0))
    W = V / np.sqrt(len(U))
    r_v = columns
    for _ in range(check_integer(n_sweeps, "n_sweeps", minimum=1)):
        before, r_v = r_v, margin_biases(columns, W, U, margin_biases(rows, U, W, r_v))
        if np.abs(r_v - before).sum() <= tol * r_v.sum():
            break
    r_u = margin_biases(rows, U, W, r_v)
    return r_u / r_u.mean(), r_v * r_u.mean()
