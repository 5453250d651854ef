"""The Poisson likelihood itself, not its quadratic approximation (`eq:loss_poisson`).

On real text M_ij = u_i . v_j / sqrt(m) is of order one, and the rates r_u_i r_v_j
exp(M_ij) (`eq:Pij`) must be taken as they are. All functions here write M = U W^T, with
W = V / sqrt(m), and form its exponential for a block of rows at a time, on all cores,
never as an m x n array. They serve the rows as they stand, and the columns with the
roles of U and W exchanged.

`refit_biases` checks its arguments. The other functions are called in every iteration,
and take arrays as they are.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from joblib import cpu_count
from threadpoolctl import ThreadpoolController

from ._blocks import blocks
from ._validation import check_embedding, check_integer, check_positive, check_rng
from .bias import margins
from .sampling import ALL_UP_TO, apply, columns_for

BLAS = ThreadpoolController().select(user_api="blas")
BLOCK_ENTRIES = 2**19  # of the m x n matrix in memory at once, per thread
SAMPLED_TOL = 0.01  # sampled sums differ by about as much
ROWS_AT_ONCE = 2**12  # bounds the memory for their own columns
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


def largest_changes(step, W):
    """Return max_j |step_i . w_j| for every i: how far a step of row i changes M.

    Parameters
    ----------
    step, W : arrays (m, d), (n, d)
        The steps of the rows of U, and W.

    Returns
    -------
    array (m,)

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


def own_sums(N, U, W, parts):
    """Return what sampled sums of each row miss at the columns where it has counts.

    With them added, the terms of these columns are exact where M_ij > 0, but for the
    lowest powers of M_ij, whose sums over all columns are calibrated. As the sample
    does not know the counts, the expectation of the sums stays the same.

    Parameters
    ----------
    N : csr_array (m, n)
        Whose stored pairs say where the rows have counts.
    U, W : arrays (m, d), (n, d)
        M = U W^T.
    parts : list of Part
        The samples of the rows, as from `amptutorial.sampling.Columns.parts`.

    Returns
    -------
    sums : array (m,)
        Of missed_j (exp(x) - 1 - x - x^2 / 2) over the j with a stored N_ij, where x =
        max(M_ij, 0).
    moments : array (m, d)
        Of missed_j (exp(x) - 1 - x) w_j.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from amptutorial.sampling import Part
    >>> N, W = sp.csr_array([[0, 3]]), np.array([[1.0], [2.0]])
    >>> part = Part(slice(None), W[:1], np.array([5.0]), missed=np.array([-4.0, 1.0]))
    >>> sums, moments = own_sums(N, np.ones((1, 1)), W, [part])
    >>> sums.round(2), moments.round(2)  # of e^2 - 5, and of e^2 - 3, where w is 2
    (array([2.39]), array([[8.78]]))
    """
    sums, moments = np.zeros(len(U)), np.zeros(U.shape)
    for part in parts:
        if part.missed is None:
            continue
        rows = np.arange(len(U))[part.rows]
        for some in blocks(len(rows), ROWS_AT_ONCE):
            index = rows[some]
            own = N[index]
            i = np.repeat(index, np.diff(own.indptr))
            x = np.maximum(products_of_pairs(U, W, i, own.indices), 0)
            missed = part.missed[own.indices]
            own.data = missed * (np.expm1(x) - x)
            moments[index] = own @ W
            own.data -= missed * (x**2 / 2)
            sums[index] = own.sum(axis=1)
    return sums, moments


def with_own_sums(log_sums, means, own):
    """Return the results of `tilted_means` with `own_sums` added to the sums.

    Parameters
    ----------
    log_sums, means : arrays (m,), (m, d)
    own : tuple
        As from `own_sums`.

    Examples
    --------
    >>> own = np.array([1.0]), np.array([[2.0]])  # beside a sum of 5, with the mean 1
    >>> log_sums, means = with_own_sums(np.log([5.0]), np.ones((1, 1)), own)
    >>> np.exp(log_sums).round(9), means.round(9)
    (array([6.]), array([[1.16666667]]))
    """
    sums, moments = own
    scale = np.exp(-log_sums.astype(np.float64))
    grown = 1 + sums * scale
    means = (means + moments * scale[:, None]) / grown[:, None]
    return log_sums + np.log(grown), means


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


def margin_biases(totals, U, columns):
    """Return the biases of the rows with which the rates of row i add up to a total.

    Parameters
    ----------
    totals : array (m,)
        What the rates r_u_i r_v_j exp(M_ij) of each row add up to.
    U : array (m, d)
    columns : Columns
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
    >>> from amptutorial.sampling import Columns
    >>> columns = Columns(np.zeros((2, 1)), np.array([1.0, 2.0]))
    >>> margin_biases(np.array([6.0]), np.zeros((1, 1)), columns).round(9)
    array([2.])
    """
    with np.errstate(over="ignore", invalid="ignore"):
        log_sums = apply(log_partition, columns.parts(U, totals), U)
        biases = totals * np.exp(-log_sums)
    return _finite(biases)


def _finite(biases):
    if not np.isfinite(biases).all():
        raise FloatingPointError(
            "biases overflow, because entries of M are far from zero: scale U or V down"
        )
    return biases


def fit_margins(rows, columns, U, W, r_v, rng=None):
    """Return biases of rows, then of columns, with which the rates have these margins.

    One sweep of iterative proportional fitting. The column sums of the rates are exact,
    and the row sums as near as `r_v` was before.

    Parameters
    ----------
    rows, columns : arrays (m,), (n,)
        The sums wanted.
    U, W, r_v
        As for `tilted_means`.
    rng : numpy.random.Generator, optional
        As for `amptutorial.sampling.Columns`.

    Returns
    -------
    r_u, r_v : arrays (m,), (n,)

    Raises
    ------
    FloatingPointError
        As `margin_biases`.
    """
    r_u = margin_biases(rows, U, columns_for(U, rows, W, r_v, rng))
    return r_u, margin_biases(columns, W, columns_for(W, columns, U, r_u, rng))


def refit_biases(Z, U, V, *, n_sweeps=20, tol=1e-6, rng=None):
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
    rng : numpy.random.Generator, optional
        With it, sums over more than `amptutorial.sampling.ALL_UP_TO` rows or columns
        are estimated from samples, and `tol` is at least 0.01.

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
    rng = None if rng is None else check_rng(rng)
    return biases_of_margins(rows, columns, U, V, n_sweeps, tol, rng)


def biases_of_margins(rows, columns, U, V, n_sweeps=20, tol=1e-6, rng=None):
    """Return the biases of `refit_biases`, from the sums of the rows and columns."""
    W, r_v = V / np.sqrt(len(U)), columns
    if rng is not None and max(len(U), len(V)) > ALL_UP_TO:
        tol = max(tol, SAMPLED_TOL)
    for _ in range(n_sweeps):
        before, (_, r_v) = r_v, fit_margins(rows, columns, U, W, r_v, rng)
        if np.abs(r_v - before).sum() <= tol * r_v.sum():
            break
    r_u = margin_biases(rows, U, columns_for(U, rows, W, r_v, rng))
    with np.errstate(over="ignore", invalid="ignore"):
        return _finite(r_u / r_u.mean()), _finite(r_v * r_u.mean())
