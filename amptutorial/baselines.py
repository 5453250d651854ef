"""What AMP is compared with: the SVD of Y~, alternating least squares, gradient descent and L-BFGS.

All of them return A (m, d) and B (n, d) with A B^T / sqrt(m) in place of Y~. The last
three minimise `eq:LAB` with the squared norm as regulariser, the loss whose critical
points are the fixed points of AMP with `amptutorial.denoisers.Ridge`.
"""

import warnings
from dataclasses import dataclass

import numpy as np
import scipy.sparse.linalg
from scipy.optimize import minimize

from ._validation import (
    AMPWarning,
    check_integer,
    check_matrix,
    check_positive,
    check_rng,
)
from .amp import as_operator, check_start
from .denoisers import Ridge
from .metrics import QuadraticLoss, poisson_loss_and_gradient
from .spectrum import bulk_edge
from .spectrum import shrink as shrink_singular_values


class BelowThresholdWarning(AMPWarning):
    """No leading singular value exceeds the edge of the noise: the spectrum shows no signal."""


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

    Examples
    --------
    >>> A, B = svd(np.diag([3.0, 2.0, 1.0]), 1, rng=np.random.default_rng(0))
    >>> bool(np.allclose(A @ B.T / np.sqrt(3), np.diag([3.0, 0.0, 0.0])))
    True
    """
    Y, _ = as_operator(Y)
    m, n = Y.shape
    d = check_integer(d, "d", minimum=1)
    if d >= min(m, n):
        raise ValueError(f"d must be below min(m, n) = {min(m, n)}, got {d}")
    start = check_rng(rng).standard_normal(min(m, n))
    left, sigma, right = scipy.sparse.linalg.svds(Y, k=d, v0=start)
    order = np.argsort(sigma)[::-1]
    sigma = shrink_singular_values(sigma[order], m, n) if shrink else sigma[order]
    scale = m**0.25 * np.sqrt(sigma)
    return left[:, order] * scale, right[order].T * scale


def singular_values(Y, k, *, rng):
    """Return the `k` leading singular values of Y~, largest first, without their vectors.

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

    Examples
    --------
    >>> singular_values(np.diag([3.0, 2.0, 1.0]), 2, rng=np.random.default_rng(0)).round(6)
    array([3., 2.])
    """
    start = check_rng(rng).standard_normal(min(Y.shape))
    return np.sort(
        scipy.sparse.linalg.svds(Y, k=k, v0=start, return_singular_vectors=False)
    )[::-1]


def spectral_start(Y, d, *, rng):
    """Return a start B_0 (n, d) for AMP: the right singular vectors, scaled by the shrunken singular values.

    Warns
    -----
    BelowThresholdWarning
        If none of the d singular values exceeds the edge of the noise.

    Examples
    --------
    >>> spectral_start(np.diag([30.0, 2.0, 1.0]), 1, rng=np.random.default_rng(0)).shape
    (3, 1)
    """
    B = svd(Y, d, rng=rng)[1]
    sigma = (B**2).sum(axis=0) / np.sqrt(Y.shape[0])
    shrunken = shrink_singular_values(sigma, *Y.shape)
    if not shrunken.any():
        warnings.warn(
            f"the largest singular value, {sigma[0]:.4g}, is inside the noise, "
            f"which ends at {bulk_edge(*Y.shape):.4g}: "
            "this start is uninformed, and below the threshold no spectral estimate does better than zero",
            BelowThresholdWarning,
            stacklevel=2,
        )
    # a direction inside the bulk is noise as far as the spectrum can tell; a little of
    # it is kept for AMP to work on
    return B * np.sqrt(np.maximum(shrunken, 0.1 * sigma[0]) / sigma)


@dataclass(frozen=True)
class Fit:
    """Result of an iterative baseline: the factors, `eq:LAB` after each iteration, and whether it converged."""

    A: np.ndarray
    B: np.ndarray
    losses: list
    converged: bool


def _finish(A, B, losses, converged):
    if not converged:
        warnings.warn(
            f"not converged after {len(losses)} iterations: raise n_iter or tol",
            NotConvergedWarning,
            stacklevel=3,
        )
    return Fit(A, B, losses, bool(converged))


def _ridge_loss(Y, r_u, r_v, strength):
    ridge = Ridge(strength)
    return QuadraticLoss(Y, r_u, r_v, ridge)


def _check_factors(m, n, A0, B0):
    B0 = check_start(B0, m, n)
    return check_matrix(A0, "A0", shape=(m, B0.shape[1])), B0


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

    Examples
    --------
    >>> fit = alternating_least_squares(np.diag([3.0, 2.0]), np.ones(2), np.ones(2), strength=0.1, B0=np.ones((2, 1)))
    >>> fit.converged
    True
    """
    loss = _ridge_loss(Y, r_u, r_v, strength)
    m, ridge, B = loss.m, loss.denoiser_u, check_start(B0, loss.m, loss.n)
    losses, converged = [], False
    while len(losses) < n_iter and not converged:
        A = ridge.estimate(loss.Y @ B / np.sqrt(m), loss.r_u, B.T @ B / m)
        B = ridge.estimate(loss.Yt @ A / np.sqrt(m), loss.r_v, A.T @ A / m)
        losses.append(loss(A, B))
        converged = len(losses) > 1 and losses[-2] - losses[-1] <= tol * abs(losses[-1])
    return _finish(A, B, losses, converged)


def gradient_descent(Y, r_u, r_v, *, strength, A0, B0, n_iter=5000, tol=1e-10):
    """Minimise `eq:LAB` by gradient descent, the paper's reference, with a backtracking step.

    Parameters
    ----------
    Y, r_u, r_v, strength, B0, n_iter, tol
        As for `alternating_least_squares`.
    A0 : array (m, d)

    Returns
    -------
    Fit

    Examples
    --------
    >>> start = np.ones((2, 1))
    >>> fit = gradient_descent(np.diag([3.0, 2.0]), np.ones(2), np.ones(2), strength=0.1, A0=start, B0=start)
    >>> fit.converged
    True
    """
    loss = _ridge_loss(Y, r_u, r_v, strength)
    A, B = _check_factors(loss.m, loss.n, A0, B0)
    step, value, losses, converged = 1.0, loss(A, B), [], False
    while len(losses) < n_iter and not converged:
        gradient_A, gradient_B = loss.gradient(A, B)
        slope = np.vdot(gradient_A, gradient_A) + np.vdot(gradient_B, gradient_B)
        step *= 2
        while (
            new := loss(A - step * gradient_A, B - step * gradient_B)
        ) > value - step * slope / 2:
            step /= 2
            if step * slope <= 1e-15 * abs(value):  # no descent left above round-off
                return Fit(A, B, losses, True)
        A, B = A - step * gradient_A, B - step * gradient_B
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

    Examples
    --------
    >>> fit = lbfgs(np.diag([3.0, 2.0]), np.ones(2), np.ones(2), strength=0.1, A0=np.ones((2, 1)), B0=np.ones((2, 1)))
    >>> fit.converged
    True
    """
    loss = _ridge_loss(Y, r_u, r_v, strength)
    A, B = _check_factors(loss.m, loss.n, A0, B0)
    return _minimise(lambda A, B: (loss(A, B), *loss.gradient(A, B)), A, B, n_iter, tol)


def poisson_lbfgs(Z, r_u, r_v, *, strength, U0, V0, n_iter=100, tol=1e-7):
    """Minimise the Poisson loss `eq:loss_poisson` itself, without the quadratic approximation, by SciPy's L-BFGS.

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

    Examples
    --------
    >>> Z = np.array([[8, 1], [1, 8]])
    >>> U0 = np.array([[1.0], [-1.0]])
    >>> fit = poisson_lbfgs(Z, np.ones(2), 4.5 * np.ones(2), strength=0.1, U0=U0, V0=U0)
    >>> bool(fit.A[0, 0] * fit.B[0, 0] > 0.5), fit.converged
    (True, True)
    """
    U, V = _check_factors(*Z.shape, U0, V0)
    check_positive(strength, "strength")

    def penalised(U, V):
        loss, by_U, by_V = poisson_loss_and_gradient(Z, U, V, r_u, r_v)
        return (
            loss + strength / 2 * (np.vdot(U, U) + np.vdot(V, V)),
            by_U + strength * U,
            by_V + strength * V,
        )

    return _minimise(penalised, U, V, n_iter, tol)


def _minimise(loss_and_gradient, A, B, n_iter, tol):
    split = A.size
    losses = []

    def flat(x):
        loss, by_A, by_B = loss_and_gradient(
            x[:split].reshape(A.shape), x[split:].reshape(B.shape)
        )
        return loss, np.concatenate([by_A.ravel(), by_B.ravel()])

    result = minimize(
        flat,
        np.concatenate([A.ravel(), B.ravel()]),
        jac=True,
        method="L-BFGS-B",
        callback=lambda intermediate_result: losses.append(
            float(intermediate_result.fun)
        ),
        options={
            "maxiter": check_integer(n_iter, "n_iter", minimum=1),
            "ftol": tol,
            "gtol": 1e-12,
            "maxfun": 10 * n_iter,
        },
    )
    return _finish(
        result.x[:split].reshape(A.shape),
        result.x[split:].reshape(B.shape),
        losses,
        result.success,
    )
