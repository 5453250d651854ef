"""The Lasso for many rows that share one matrix (``eq:l1-denoiserA``).

The numerical core of the `Lasso` denoiser. Row i minimises a'F a / 2 - p_i'a + t_i
|a|_1. Given its pattern theta (the sign of each coordinate, 0 off the support S), the
answer is one linear solve, a_S = F_SS^-1 (p - t theta)_S. The work is to find the
pattern, in all rows at once:

1. A few sweeps of coordinate descent guess it, and are right for most rows.
2. The guess is optimal for another vector, the start. On the segment from the start to
   p the optimal pattern changes one coordinate at a time; a round makes the next change
   in every row that is not yet optimal. The vectors for which one pattern is optimal
   form a convex set, so no pattern comes twice: the walk ends, at the solution.

Rows with the same support share one inverse. The last solve uses p alone, so no error
accumulates on the way.
"""

import numpy as np

from .score import blocks

_SWEEPS = 20  # of coordinate descent: cheap beside one round of solves
# a walk takes a few; this many means that round-off leads it in circles
_ROUNDS_PER_COORDINATE = 100
_TOLERANCE = 1e-9  # on the relative KKT violation
# numbers in one batch of d x d matrices: bounds the memory and stays near the cache
_BLOCK = 2**20


def solve_lasso_rows(P, t, F):
    """Minimise a'F a / 2 - p_i'a + t_i |a|_1 for every row p_i of `P`.

    Parameters
    ----------
    P : array, shape (N, d)
    t : array, shape (N,)
        Positive thresholds.
    F : array, shape (d, d)
        Symmetric positive definite.

    Returns
    -------
    array, shape (N, d)
        In the dtype of `P`, computed in float64; entries off the support are exactly
        zero.

    Raises
    ------
    numpy.linalg.LinAlgError
        If `F` is so ill-conditioned that round-off hides the solution of some row.

    Examples
    --------
    >>> P, t, F = np.array([[3.0, -0.5]]), np.array([1.0]), np.diag([2.0, 4.0])
    >>> solve_lasso_rows(P, t, F)
    array([[1., 0.]])

    Where F is diagonal, that is a soft threshold:

    >>> rows = np.sign(P) * np.maximum(np.abs(P) - t[:, None], 0) / F.diagonal()
    >>> bool(np.allclose(solve_lasso_rows(P, t, F), rows))
    True
    """
    A = np.empty_like(P)
    F = np.asarray(F, dtype=np.float64)
    unit = F.diagonal().max()
    for rows in _batches(*P.shape):
        scale = np.maximum(np.abs(P[rows]).max(1), t[rows]).astype(np.float64)
        a = _solve_block(P[rows] / scale[:, None], t[rows] / scale, F / unit)
        A[rows] = a * (scale / unit)[:, None]
    return A


def _lasso_kkt(A, P, t, F):
    """Return how far each row is from optimal: its largest violation of the conditions.

    The Karush-Kuhn-Tucker conditions: the residual r = p - F a must be t sign(a) on the
    support and within [-t, t] off it. The violation is divided by the largest of
    |p|_inf, t and (|F| |a|)_inf; with the last of them, 1e-16 is what rounding `A` to
    float64 costs.

    Returns
    -------
    array, shape (N,)
    """
    residual, t = P - A @ F, np.asarray(t)[:, None]
    off, on = np.maximum(np.abs(residual) - t, 0), np.abs(residual - t * np.sign(A))
    violation = np.where(A == 0, off, on)
    terms = np.maximum(np.maximum(np.abs(P), np.abs(A) @ np.abs(F)), t)
    return violation.max(1) / terms.max(1)


def lasso_mean_jacobian(support, F):
    """Return the mean over the rows of the Jacobian [k, l] = d a_l / d p_k.

    That of a row is F_SS^-1 on its support S, and zero elsewhere.

    Parameters
    ----------
    support : bool array, shape (N, d)
    F : array, shape (d, d)

    Returns
    -------
    array, shape (d, d)

    Examples
    --------
    >>> lasso_mean_jacobian(np.array([[True, False], [True, True]]), 2 * np.eye(2))
    array([[0.5 , 0.  ],
           [0.  , 0.25]])

    The formula in two lines, for the first of these rows alone, with S = {0}:

    >>> S, F, jacobian = [0], np.array([[2.0, 1.0], [1.0, 3.0]]), np.zeros((2, 2))
    >>> jacobian[np.ix_(S, S)] = np.linalg.inv(F[np.ix_(S, S)])
    >>> bool(np.allclose(lasso_mean_jacobian(np.array([[True, False]]), F), jacobian))
    True
    """
    distinct, _, counts = _distinct_rows(support)
    total = np.zeros_like(F, dtype=np.float64)
    for some in _batches(*distinct.shape):
        inverses = _embedded_inverses(distinct[some], F)
        total += np.tensordot(counts[some], inverses, axes=1)
    return total / max(len(support), 1)


def _batches(n_rows, d):
    """Return slices of rows whose d x d matrices fit in memory together."""
    return blocks(n_rows, _BLOCK // d**2)


def _solve_block(P, t, F):
    """Solve rows in units where |p|_inf, t and the diagonal of F are at most one."""
    A = _walk_to_optimum(_coordinate_descent(P, t, F), P, t[:, None], F)
    worst = _lasso_kkt(A, P, t, F).max()
    if not worst <= _TOLERANCE:
        missed = f"a row misses its optimality conditions by {worst:.0e}"
        raise _ill_conditioned(F, missed)
    return A


def _coordinate_descent(P, t, F):
    """Minimise over one coordinate after another, in all rows at once, in sweeps."""
    A, P = np.zeros(P.T.shape), np.ascontiguousarray(P.T)
    for _ in range(_SWEEPS):
        for a, p, f, f_kk in zip(A, P, F, F.diagonal(), strict=True):
            pull = p - f @ A + f_kk * a
            a[:] = (pull - np.clip(pull, -t, t)) / f_kk
    return A.T


def _walk_to_optimum(guess, P, t, F):
    """Walk from the start of each row to p; a round changes one sign where it must."""
    A, left, theta = np.zeros_like(P), np.arange(len(P)), np.sign(guess)
    start = _solved_by(guess, P, t, F)
    # the most that a unit of each coordinate can move a residual
    reach = np.sqrt(F.diagonal())
    for _ in range(_ROUNDS_PER_COORDINATE * len(F)):
        distinct, which, _ = _distinct_rows(theta != 0)
        inverse = _embedded_inverses(distinct, F)[which]
        a = _solve(inverse, P - t * theta, F)
        residual = P - a @ F
        side = np.where(theta == 0, np.sign(residual), 0)
        A[left] = np.where(theta * a > 0, a, 0)
        # beyond the bounds of the pattern, at p
        excess = np.where(theta == 0, side * residual - t, -theta * a * reach)
        beyond = excess > 16 * np.finfo(float).eps * (1 + np.abs(a) @ np.abs(F))
        wrong = beyond.any(1)
        if not wrong.any():
            return A
        left, P, t, theta, start, inverse, side, excess, beyond = (
            x[wrong] for x in (left, P, t, theta, start, inverse, side, excess, beyond)
        )
        a = _solve(inverse, start - t * theta, F)
        # inside them, at the start
        slack = np.where(theta == 0, t - side * (start - a @ F), theta * a * reach)
        # from slack inside to excess beyond is a straight line: the largest ratio is
        # the bound that is met first
        ratio = np.where(beyond, excess / np.maximum(slack, 1e-100), -1)
        first = np.arange(len(left)), ratio.argmax(1)
        theta[first] = side[first]
    raise _ill_conditioned(F, f"{len(left)} rows did not settle")


def _solved_by(guess, P, t, F):
    """Return vectors near `P` whose solutions are `guess`.

    Where the guess is zero but should not be, the residual is brought to a fraction of
    t inside its bound, another fraction for each coordinate: two bounds are then not
    met at the same moment, even in symmetric problems.
    """
    fraction = 0.5 + 0.4 * (np.arange(1, len(F) + 1) * (5**0.5 - 1) / 2 % 1)
    fitted = guess @ F
    residual, theta = P - fitted, np.sign(guess)
    inside = np.where(np.abs(residual) > t, fraction * t * np.sign(residual), residual)
    return fitted + np.where(theta == 0, inside, t * theta)


def _solve(inverse, B, F):
    """Apply to each row of `B` its inverse, and refine the result once.

    The residual is then small even if F is ill-conditioned.
    """
    X = (inverse @ B[:, :, None])[:, :, 0]
    return X + (inverse @ (B - X @ F)[:, :, None])[:, :, 0]


def _embedded_inverses(support, F):
    """F_SS^-1 embedded in a d x d matrix of zeros, for each row S of `support`."""
    pairs = support[:, :, None] & support[:, None, :]
    return np.where(pairs, np.linalg.inv(np.where(pairs, F, np.eye(len(F)))), 0)


def _distinct_rows(support):
    """Return the distinct rows of a bool matrix, which one each row is, and the counts.

    Much faster than ``numpy.unique(support, axis=0)``: the bits of a row are one key.
    """
    packed = np.ascontiguousarray(np.packbits(support, axis=1))
    keys = packed.view(f"S{packed.shape[1]}")[:, 0]
    _, first, which, counts = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    return support[first], which, counts


def _ill_conditioned(F, what):
    """The error when round-off wins."""
    return np.linalg.LinAlgError(
        f"Lasso: {what}: F has condition number {np.linalg.cond(F):.0e}; raise its "
        "smallest eigenvalues"
    )
