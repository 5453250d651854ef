"""What AMP is compared with: the SVD of Y~, least squares, gradient descent, L-BFGS.

All of them return A (m, d) and B (n, d) with A B^T / sqrt(m) in place of Y~. The last
three minimise `eq:LAB` with the squared norm as regulariser, the loss whose critical
points are the fixed points of AMP with `amptutorial.denoisers.Ridge`.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.sparse.linalg import svds

from ._validation import (
    AMPWarning,
    check_integer,
    check_matrix,
    check_positive,
    check_result,
    check_rng,
    quiet,
)
from .amp import as_operator, check_start
from .denoisers import Ridge
from .metrics import QuadraticLoss, poisson_objective
from .spectrum import bulk_edge
from .spectrum import shrink as shrink_singular_values


class BelowThresholdWarning(AMPWarning):
    """No singular value exceeds the edge of the noise: the spectrum shows no signal."""


class NotConvergedWarning(AMPWarning):
    """An iterative baseline used up its iterations before its loss settled."""


def svd(Y, d, *, rng, shrink=False):
    """Return the best rank-d factors of Y~ by its leading singular vectors.

    Parameters
    ----------
    Y : FisherScore, LinearOperator, array or sparse array (m, n)
    d : int
        Between 1 and min(m, n) - 1.
    rng : numpy.random.Generator
        For the starting vector of the Lanczos iteration; the result does not depend on
        it, up to signs and round-off.
    shrink : bool
        Shrink the singular values optimally for noise of variance 1
        (`amptutorial.spectrum.shrink`).

    Returns
    -------
    A : array (m, d)
    B : array (n, d)
        Balanced: A^T A / m and B^T B / m are the same diagonal matrix.

    Raises
    ------
    ValueError
        If d does not fit, or if Y~ is zero or not finite.

    Examples
    --------
    >>> A, B = svd(np.diag([3.0, 2.0, 1.0]), 1, rng=np.random.default_rng(0))
    >>> bool(np.allclose(A @ B.T / np.sqrt(3), np.diag([3.0, 0.0, 0.0])))
    True
    """
    left, sigma, right = _leading(Y, d, "d", rng)
    m, n = len(left), len(right)
    sigma = shrink_singular_values(sigma, m, n) if shrink else sigma
    scale = m**0.25 * np.sqrt(sigma)
    return left * scale, right * scale


def singular_values(Y, k, *, rng):
    """Return the `k` leading singular values of Y~, largest first, without vectors.

    Parameters
    ----------
    Y : FisherScore, LinearOperator, array or sparse array (m, n)
    k : int
        Between 1 and min(m, n) - 1.
    rng : numpy.random.Generator
        As for `svd`.

    Returns
    -------
    array (k,)

    Raises
    ------
    ValueError
        As for `svd`.

    Examples
    --------
    >>> Y, rng = np.diag([3.0, 2.0, 1.0]), np.random.default_rng(0)
    >>> singular_values(Y, 2, rng=rng).round(6)
    array([3., 2.])
    """
    return np.sort(_lanczos(Y, k, "k", rng, return_singular_vectors=False))[::-1]


def spectral_start(Y, d, *, rng):
    """Return a start B_0 (n, d) for AMP: right singular vectors, scaled.

    Their scale is that of the shrunken singular values. A direction inside the noise is
    noise as far as the spectrum can tell; a little of it is kept for AMP to work on.

    Parameters
    ----------
    Y, d, rng
        As for `svd`.

    Returns
    -------
    array (n, d)

    Raises
    ------
    ValueError
        As for `svd`.

    Warns
    -----
    BelowThresholdWarning
        If none of the d singular values exceeds the edge of the noise.

    Examples
    --------
    >>> spectral_start(np.diag([30.0, 2.0, 1.0]), 1, rng=np.random.default_rng(0)).shape
    (3, 1)
    """
    left, sigma, right = _leading(Y, d, "d", rng)
    m, n = len(left), len(right)
    shrunken = shrink_singular_values(sigma, m, n)
    if not shrunken.any():
        warnings.warn(
            f"the largest singular value, {sigma[0]:.4g}, is inside the noise, which "
            f"ends at {bulk_edge(m, n):.4g}: this start is uninformed, and below the "
            "threshold no spectral estimate does better than zero",
            BelowThresholdWarning,
            stacklevel=2,
        )
    return right * (m**0.25 * np.sqrt(np.maximum(shrunken, 0.1 * sigma[0])))


def _leading(Y, d, name, rng):
    """Return the `d` leading left vectors, singular values and right vectors of Y~."""
    left, sigma, right = _lanczos(Y, d, name, rng)
    order = np.argsort(sigma)[::-1]
    return left[:, order], sigma[order], right[order].T


@quiet
def _lanczos(Y, k, name, rng, **options):
    """Return what SciPy's Lanczos iteration finds of `k` singular values of Y~."""
    Y, _ = as_operator(Y)
    k = check_integer(k, name, minimum=1)
    if k >= min(Y.shape):
        raise ValueError(f"{name} must be below min(m, n) = {min(Y.shape)}, got {k}")
    start = check_rng(rng).standard_normal(min(Y.shape))
    tall = Y if Y.shape[0] >= Y.shape[1] else Y.T
    trial = start.astype(np.result_type(Y.dtype, np.float32))
    stretch = np.linalg.norm(tall.T @ (tall @ trial)) / np.linalg.norm(trial)
    if not 0 < stretch < 1e140:
        raise ValueError(
            "the singular vectors of Y cannot be computed: Y is zero, not finite, or "
            "so small or large that squares of its singular values are not"
        )
    return svds(Y, k=k, v0=start, **options)


@dataclass(frozen=True)
class Fit:
    """Result of an iterative baseline.

    Attributes
    ----------
    A, B : arrays (m, d), (n, d)
    losses : list of float
        `eq:LAB` after each iteration; that of the start, if no iteration lowers it.
    converged : bool
    """

    A: np.ndarray
    B: np.ndarray
    losses: list[float]
    converged: bool


def _finish(A, B, losses, converged):
    for name, value in (("A", A), ("B", B), ("the loss", losses)):
        check_result(value, name, "start nearer to zero, or raise the strength")
    if not converged:
        warnings.warn(
            f"not converged after {len(losses)} iterations: raise n_iter or tol",
            NotConvergedWarning,
            stacklevel=3,
        )
    return Fit(A, B, losses, bool(converged))


def _check_factors(m, n, A0, B0):
    B0 = check_start(B0, m, n)
    return check_matrix(A0, "A0", shape=(m, B0.shape[1])), B0


def _check_stopping(n_iter, tol):
    n_iter = check_integer(n_iter, "n_iter", minimum=1)
    if check_positive(tol, "tol", zero=True) > 1:
        raise ValueError(f"tol must be at most 1, a fraction of the loss, got {tol}")
    return n_iter, tol


def alternating_least_squares(Y, r_u, r_v, *, strength, B0, n_iter=100, tol=1e-10):
    """Minimise `eq:LAB` over A, then over B, in turn: AMP without its Onsager terms.

    Parameters
    ----------
    Y : FisherScore, array or sparse array (m, n)
    r_u, r_v : arrays (m,), (n,)
    strength : float
        lambda of both regularisers.
    B0 : array (n, d)
    n_iter : int
    tol : float
        Stop when an iteration lowers the loss by less than `tol` times the loss.

    Returns
    -------
    Fit

    Raises
    ------
    ValueError, TypeError
        For arguments that do not fit.
    FloatingPointError
        If the loss is too large for a float.

    Warns
    -----
    NotConvergedWarning
        If `n_iter` iterations were not enough.

    Examples
    --------
    >>> Y, r, start = np.diag([3.0, 2.0]), np.ones(2), np.ones((2, 1))
    >>> alternating_least_squares(Y, r, r, strength=0.1, B0=start).converged
    True
    """
    ridge = Ridge(strength)
    loss = QuadraticLoss(Y, r_u, r_v, ridge)
    m, B = loss.m, check_start(B0, loss.m, loss.n)
    n_iter, tol = _check_stopping(n_iter, tol)
    losses, converged = [], False
    while len(losses) < n_iter and not converged:
        A = ridge.estimate(*_normal_equations(loss.Y, B, loss.r_u, m))
        B = ridge.estimate(*_normal_equations(loss.Yt, A, loss.r_v, m))
        losses.append(loss(A, B))
        converged = len(losses) > 1 and losses[-2] - losses[-1] <= tol * abs(losses[-1])
    return _finish(A, B, losses, converged)


@quiet
def _normal_equations(Y, X, r, m):
    """Return P, r and F, such that the rows of P (F + strength / r)^-1 are the best."""
    P, F = Y @ X / np.sqrt(m), X.T @ X / m
    for name, value in (("Y B", P), ("B^T B", F)):
        check_result(value, name, "scale down Y or B0")
    return P, r, F


def gradient_descent(Y, r_u, r_v, *, strength, A0, B0, n_iter=5000, tol=1e-10):
    """Minimise `eq:LAB` by gradient descent with a backtracking step.

    The paper's reference.

    Parameters
    ----------
    Y, r_u, r_v, strength, B0, n_iter, tol
        As for `alternating_least_squares`.
    A0 : array (m, d)

    Returns
    -------
    Fit

    Raises
    ------
    ValueError, TypeError, FloatingPointError
        As for `alternating_least_squares`.

    Warns
    -----
    NotConvergedWarning
        If `n_iter` iterations were not enough.

    Examples
    --------
    >>> Y, r, start = np.diag([3.0, 2.0]), np.ones(2), np.ones((2, 1))
    >>> gradient_descent(Y, r, r, strength=0.1, A0=start, B0=start).converged
    True
    """
    loss = QuadraticLoss(Y, r_u, r_v, Ridge(strength))
    A, B = _check_factors(loss.m, loss.n, A0, B0)
    n_iter, tol = _check_stopping(n_iter, tol)
    step, value, losses, converged = 1.0, loss(A, B), [], False
    while len(losses) < n_iter and not converged:
        by_A, by_B = loss.gradient(A, B)
        slope = np.vdot(by_A, by_A) + np.vdot(by_B, by_B)
        step *= 2
        while (
            new := loss(A - step * by_A, B - step * by_B)
        ) > value - step * slope / 2:
            step /= 2
            if step * slope <= 1e-15 * abs(value):  # no descent left above round-off
                return _finish(A, B, losses or [value], True)
        A, B = A - step * by_A, B - step * by_B
        converged = value - new <= tol * abs(new)
        value = new
        losses.append(value)
    return _finish(A, B, losses, converged)


def lbfgs(Y, r_u, r_v, *, strength, A0, B0, n_iter=500, tol=1e-10):
    """Minimise `eq:LAB` by SciPy's L-BFGS.

    Parameters
    ----------
    Y, r_u, r_v, strength, A0, B0, n_iter, tol
        As for `gradient_descent`.

    Returns
    -------
    Fit

    Raises
    ------
    ValueError, TypeError, FloatingPointError
        As for `alternating_least_squares`.

    Warns
    -----
    NotConvergedWarning
        If `n_iter` iterations were not enough.

    Examples
    --------
    >>> Y, r, start = np.diag([3.0, 2.0]), np.ones(2), np.ones((2, 1))
    >>> lbfgs(Y, r, r, strength=0.1, A0=start, B0=start).converged
    True
    """
    loss = QuadraticLoss(Y, r_u, r_v, Ridge(strength))
    A, B = _check_factors(loss.m, loss.n, A0, B0)

    def objective(A, B):
        return loss(A, B), *loss.gradient(A, B)

    return _finish(*_minimise(objective, A, B, *_check_stopping(n_iter, tol)))


def poisson_lbfgs(Z, r_u, r_v, *, strength, U0, V0, n_iter=100, tol=1e-7):
    """Minimise the Poisson loss `eq:loss_poisson` itself, by SciPy's L-BFGS.

    Without the quadratic approximation of `eq:LAB`.

    Parameters
    ----------
    Z : array or sparse array (m, n)
    r_u, r_v : arrays (m,), (n,)
        Bias factors, held fixed.
    strength : float
        lambda of both squared-norm regularisers.
    U0, V0 : arrays (m, d), (n, d)
    n_iter : int
    tol : float

    Returns
    -------
    Fit
        Its `A` and `B` are the embeddings U and V, not scaled by the biases.

    Raises
    ------
    ValueError, TypeError, FloatingPointError
        As for `alternating_least_squares`.

    Warns
    -----
    NotConvergedWarning
        If `n_iter` iterations were not enough.

    Examples
    --------
    >>> Z, U0 = np.array([[8, 1], [1, 8]]), np.array([[1.0], [-1.0]])
    >>> r_u, r_v = np.ones(2), np.full(2, 4.5)
    >>> fit = poisson_lbfgs(Z, r_u, r_v, strength=0.1, U0=U0, V0=U0)
    >>> bool(fit.A[0, 0] * fit.B[0, 0] > 0.5), fit.converged
    (True, True)
    """
    poisson, (m, n) = poisson_objective(Z, r_u, r_v), np.shape(Z)
    U0 = check_matrix(U0, "U0", shape=(m, None))
    V0 = check_matrix(V0, "V0", shape=(n, U0.shape[1]))
    check_integer(U0.shape[1], "the number of columns of U0", minimum=1)
    strength = check_positive(strength, "strength")

    def objective(U, V):
        loss, by_U, by_V = poisson(U, V)
        penalty = strength / 2 * (np.vdot(U, U) + np.vdot(V, V))
        return loss + penalty, by_U + strength * U, by_V + strength * V

    return _finish(*_minimise(objective, U0, V0, *_check_stopping(n_iter, tol)))


def _minimise(loss_and_gradient, A, B, n_iter, tol):
    """Return `(A, B, losses, converged)` by L-BFGS; `A` and `B` are where it starts."""
    from scipy.optimize import minimize  # a sixth of what the package would load

    losses = []

    def record(intermediate_result):
        losses.append(float(intermediate_result.fun))

    def unflatten(x):
        return x[: A.size].reshape(A.shape), x[A.size :].reshape(B.shape)

    @quiet
    def objective(x):
        check_result(x, "a step of L-BFGS", "scale down Y or the start")
        loss, by_A, by_B = loss_and_gradient(*unflatten(x))
        return loss, np.concatenate([by_A.ravel(), by_B.ravel()])

    result = minimize(
        objective,
        np.concatenate([A.ravel(), B.ravel()]),
        jac=True,
        method="L-BFGS-B",
        callback=record,
        options={"maxiter": n_iter, "ftol": tol, "gtol": 1e-12, "maxfun": 10 * n_iter},
    )
    return *unflatten(result.x), losses or [float(result.fun)], result.success
