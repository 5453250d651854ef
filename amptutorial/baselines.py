"""What AMP is compared with: the SVD of Y~, and minimisers of a loss.

All of them return A (m, d) and B (n, d) with A B^T / sqrt(m) in place of Y~. The
critical points of `amptutorial.metrics.QuadraticLoss` are the fixed points of AMP.
"""

import warnings
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator, svds
from scipy.special import gammaln

from ._validation import (
    AMPWarning,
    check_choice,
    check_counts,
    check_finite,
    check_integer,
    check_matrix,
    check_methods,
    check_positive,
    check_rates,
    check_rng,
    quiet,
)
from .amp import as_operator, check_start
from .metrics import QuadraticLoss
from .score import blocks
from .spectrum import bulk_edge, detection_weights
from .spectrum import shrink as shrink_singular_values


class BelowThresholdWarning(AMPWarning):
    """No singular value exceeds the edge of the noise: the spectrum shows no signal."""


class NotConvergedWarning(AMPWarning):
    """A minimiser used up its iterations before its loss settled."""


LOSS_ROWS = 512  # of the m x n rates of the Poisson loss


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
        If d does not fit, or if Y~ is zero or its squares are not finite.

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


def spectral_start(Y, d: int, r_u=None, r_v=None, *, rng) -> np.ndarray:
    """Return a start B_0 (n, d) for AMP: right singular vectors, scaled.

    With the bias factors they are those of the weighted score
    (`amptutorial.spectrum.detection_weights`), which show an embedding that unequal
    frequencies hide from the plain ones. Their scale is that of the shrunken singular
    values. A direction inside the noise is noise as far as the spectrum can tell; a
    little of it is kept for AMP to work on.

    Parameters
    ----------
    Y, d, rng
        As for `svd`.
    r_u, r_v : arrays (m,), (n,), optional
        The bias factors of Y~; without them all rows and all columns weigh the same.

    Returns
    -------
    array (n, d)

    Raises
    ------
    ValueError
        As for `svd`, and for bias factors that do not fit.

    Warns
    -----
    BelowThresholdWarning
        If none of the d singular values exceeds the edge of the noise.

    Examples
    --------
    >>> spectral_start(np.diag([30.0, 2.0, 1.0]), 1, rng=np.random.default_rng(0)).shape
    (3, 1)
    """
    Y = as_operator(Y)
    m, n = Y.shape
    weights = np.ones(n)
    if r_u is not None or r_v is not None:
        r_u, r_v = check_rates(r_u, m, "r_u"), check_rates(r_v, n, "r_v")
        w_u, weights = detection_weights(r_u, r_v)
        Y = _scaled(Y, np.sqrt(w_u), np.sqrt(weights))
    _, sigma, right = _leading(Y, d, "d", rng)
    shrunken = shrink_singular_values(sigma, m, n)
    if not shrunken.any():
        warnings.warn(
            f"the largest singular value, {sigma[0]:.4g}, is inside the noise, which "
            f"ends at {bulk_edge(m, n):.4g}: this start is uninformed, and below the "
            "threshold no spectral estimate does better than zero",
            BelowThresholdWarning,
            stacklevel=2,
        )
    B = right * np.sqrt(weights)[:, None]
    lengths = m**0.25 * np.sqrt(np.maximum(shrunken, 0.1 * sigma[0]))
    return B * (lengths / np.linalg.norm(B, axis=0))


def _scaled(Y, left, right):
    """Return the operator diag(left) Y diag(right)."""
    dtype = np.result_type(Y.dtype, np.float32)
    left, right = (sp.diags_array(side.astype(dtype)) for side in (left, right))
    return aslinearoperator(left) @ aslinearoperator(Y) @ aslinearoperator(right)


def _leading(Y, d, name, rng):
    """Return the `d` leading left vectors, singular values and right vectors of Y~."""
    left, sigma, right = _lanczos(Y, d, name, rng)
    order = np.argsort(sigma)[::-1]
    return left[:, order], sigma[order], right[order].T


def _lanczos(Y, k, name, rng, **options):
    """Return what SciPy's Lanczos iteration finds of `k` singular values of Y~."""
    Y = as_operator(Y)
    k = check_integer(k, name, minimum=1)
    if k >= min(Y.shape):
        raise ValueError(f"{name} must be below min(m, n) = {min(Y.shape)}, got {k}")
    start = check_rng(rng).standard_normal(min(Y.shape))
    tall = Y if Y.shape[0] >= Y.shape[1] else Y.T
    trial = start.astype(np.result_type(Y.dtype, np.float32))
    stretch = np.linalg.norm(tall.T @ (tall @ trial)) / np.linalg.norm(trial)
    if not 0 < stretch < np.inf:
        raise ValueError(
            "the singular vectors of Y cannot be computed: Y is zero, or squares of "
            "its singular values are not finite"
        )
    return svds(Y, k=k, v0=start, **options)


class PoissonLoss:
    """The Poisson loss `eq:loss_poisson` itself, not its approximation `eq:LAB`.

    It is - sum_ij log Poisson(Z_ij | r_i r_j exp(u_i . v_j / sqrt(m))) in nats, with
    log Z_ij!, plus strength (|U|^2 + |V|^2) / 2.

    Parameters
    ----------
    Z : array or sparse array (m, n)
    r_u, r_v : arrays (m,), (n,)
        Bias factors, held fixed.
    strength : float
        lambda of both squared-norm regularisers.

    Raises
    ------
    ValueError, TypeError
        For arguments that do not fit.

    Examples
    --------
    >>> U, V = np.ones((1, 1)), np.zeros((1, 1))
    >>> loss = PoissonLoss([[1]], np.ones(1), np.ones(1))
    >>> loss(U, V), loss.gradient(U, V)[1]
    (1.0, array([[0.]]))
    """

    def __init__(self, Z, r_u, r_v, strength=0.0):
        self.Z = sp.csr_array(check_counts(Z), dtype=np.float64)
        self.m, self.n = self.Z.shape
        self.r_u = check_rates(r_u, self.m, "r_u")
        self.r_v = check_rates(r_v, self.n, "r_v")
        self.strength = check_positive(strength, "strength", zero=True)
        constant = gammaln(self.Z.data + 1).sum()
        constant -= self.Z.sum(axis=1) @ np.log(self.r_u)
        self.constant = constant - self.Z.sum(axis=0) @ np.log(self.r_v)

    def __call__(self, U, V):
        """Return the loss of the embeddings U (m, d) and V (n, d), without biases."""
        return self.value_and_gradient(U, V)[0]

    def gradient(self, U, V):
        """Return the derivatives by U (m, d) and by V (n, d)."""
        return self.value_and_gradient(U, V)[1:]

    def value_and_gradient(self, U, V):
        """Return the loss, and its derivatives by U and by V."""
        U = check_matrix(U, "U", shape=(self.m, None))
        V = check_matrix(V, "V", shape=(self.n, U.shape[1]))
        loss, by_U, by_V = self.constant, np.zeros_like(U), np.zeros_like(V)
        for rows in blocks(self.m, LOSS_ROWS):
            counts = self.Z[rows].toarray()
            M = U[rows] @ V.T / np.sqrt(self.m)
            residual = self.r_u[rows, None] * np.exp(M) * self.r_v
            loss += residual.sum() - np.vdot(counts, M)
            residual -= counts
            by_U[rows] = residual @ V / np.sqrt(self.m)
            by_V += residual.T @ U[rows] / np.sqrt(self.m)
        loss += self.strength / 2 * (np.vdot(U, U) + np.vdot(V, V))
        by_U, by_V = by_U + self.strength * U, by_V + self.strength * V
        return float(loss), by_U, by_V


@dataclass(frozen=True)
class Fit:
    """Result of `minimise`.

    Attributes
    ----------
    A, B : arrays (m, d), (n, d)
        For a `PoissonLoss`, the embeddings U and V, not scaled by the biases.
    losses : list of float
        The loss after each iteration; that of the start, if no iteration lowers it.
    converged : bool
    """

    A: np.ndarray
    B: np.ndarray
    losses: list[float]
    converged: bool


def minimise(loss, *, B0, A0=None, method="gradient_descent", n_iter=1000, tol=1e-10):
    """Minimise a loss over A and B.

    Parameters
    ----------
    loss : amptutorial.metrics.QuadraticLoss or PoissonLoss
    B0 : array (n, d)
    A0 : array (m, d)
        Least squares begin with the best A for B0, and do without.
    method : {"gradient_descent", "least_squares"}
        Gradient descent with a backtracking step, the paper's reference; or the
        minimiser over A, then over B, in turn: for a `QuadraticLoss`, AMP without its
        Onsager terms.
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
        If the iteration diverges.

    Warns
    -----
    NotConvergedWarning
        If `n_iter` iterations were not enough.

    Examples
    --------
    >>> from amptutorial import Ridge
    >>> from amptutorial.metrics import QuadraticLoss
    >>> loss = QuadraticLoss(np.diag([3.0, 2.0]), np.ones(2), np.ones(2), Ridge(0.1))
    >>> start = {"A0": np.ones((2, 1)), "B0": np.ones((2, 1))}
    >>> fit = minimise(loss, **start, method="gradient_descent")
    >>> fit.converged, fit.losses[-1] == loss(fit.A, fit.B)
    (True, True)
    """
    check_methods(loss, "loss", "gradient")
    iterate = _ITERATIONS[check_choice(method, "method", _ITERATIONS)]
    B0 = check_start(B0, loss.m, loss.n)
    if method != "least_squares":
        A0 = check_matrix(A0, "A0", shape=(loss.m, B0.shape[1]))
    elif not isinstance(loss, QuadraticLoss):
        raise TypeError(f"least squares need a QuadraticLoss, got {loss!r}")
    n_iter = check_integer(n_iter, "n_iter", minimum=1)
    if check_positive(tol, "tol", zero=True) > 1:
        raise ValueError(f"tol must be at most 1, a fraction of the loss, got {tol}")
    with quiet():  # a step that overflows is taken back, or named below
        A, B, losses, converged = iterate(loss, A0, B0, n_iter, tol)
    check_finite(A=A, B=B, loss=losses)
    if not converged:
        warnings.warn(
            f"not converged after {len(losses)} iterations: raise n_iter or tol",
            NotConvergedWarning,
            stacklevel=2,
        )
    return Fit(A, B, losses, bool(converged))


def _least_squares(loss, A0, B, n_iter, tol):
    """Return `(A, B, losses, converged)` by the minimiser of one factor at a time."""
    losses, converged = [], False
    while len(losses) < n_iter and not converged:
        P, F = _normal_equations(loss.Y, B, loss.m)
        A = loss.denoiser_u.estimate(P, loss.r_u, F)
        P, F = _normal_equations(loss.Y.T, A, loss.m)
        B = loss.denoiser_v.estimate(P, loss.r_v, F)
        losses.append(loss(A, B))
        converged = len(losses) > 1 and losses[-2] - losses[-1] <= tol * abs(losses[-1])
    return A, B, losses, converged


def _normal_equations(Y, X, m):
    """Return P and F, of which a denoiser makes the best other factor (`eq:LAB`)."""
    P, F = Y @ X / np.sqrt(m), X.T @ X / m
    check_finite(P=P, F=F)
    return P, F


def _gradient_descent(loss, A, B, n_iter, tol):
    """Return `(A, B, losses, converged)`; each step is twice the last, then halved."""
    step, value, losses, converged = 1.0, loss(A, B), [], False
    while len(losses) < n_iter and not converged:
        by_A, by_B = loss.gradient(A, B)
        slope = np.vdot(by_A, by_A) + np.vdot(by_B, by_B)
        check_finite(loss=value, slope=slope)
        step *= 2
        while not (
            (new := loss(A - step * by_A, B - step * by_B)) <= value - step * slope / 2
        ):
            step /= 2
            if step * slope <= 1e-15 * abs(value):  # no descent left above round-off
                return A, B, losses or [value], True
        A, B = A - step * by_A, B - step * by_B
        converged = value - new <= tol * abs(new)
        value = new
        losses.append(value)
    return A, B, losses, converged


_ITERATIONS = {
    "gradient_descent": _gradient_descent,
    "least_squares": _least_squares,
}
