"""Minimisers of a loss: the paper's gradient descent, and AMP without Onsager terms.

They return A (m, d) and B (n, d) with A B^T / sqrt(m) in place of Y~. The critical
points of `amptutorial.metrics.QuadraticLoss` are the fixed points of AMP.
"""

import warnings
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.special import gammaln

from .. import _validation as door
from .._validation import AMPWarning, check_finite, quiet
from ..amp import check_start
from ..metrics import QuadraticLoss
from ..score import blocks

LOSS_ROWS = 512  # of the m x n rates of the Poisson loss


class NotConvergedWarning(AMPWarning):
    """A minimiser used up its iterations before its loss settled."""


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
        self.Z = sp.csr_array(door.check_counts(Z), dtype=np.float64)
        self.m, self.n = self.Z.shape
        self.r_u = door.check_rates(r_u, self.m, "r_u")
        self.r_v = door.check_rates(r_v, self.n, "r_v")
        self.strength = door.check_positive(strength, "strength", zero=True)
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
        U = door.check_matrix(U, "U", shape=(self.m, None))
        V = door.check_matrix(V, "V", shape=(self.n, U.shape[1]))
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
    door.check_methods("gradient", loss=loss)
    iterate = _ITERATIONS[door.check_choice(method, "method", _ITERATIONS)]
    B0 = check_start(B0, loss.m, loss.n)
    if method != "least_squares":
        A0 = door.check_matrix(A0, "A0", shape=(loss.m, B0.shape[1]))
    elif not isinstance(loss, QuadraticLoss):
        raise TypeError(f"least squares need a QuadraticLoss, got {loss!r}")
    n_iter = door.check_integer(n_iter, "n_iter", minimum=1)
    if door.check_positive(tol, "tol", zero=True) > 1:
        raise ValueError(f"tol must be at most 1, a fraction of the loss, got {tol}")
    with quiet():  # a step that overflows is taken back, or named below
        A, B, losses, converged = iterate(loss, A0, B0, n_iter, tol)
    check_finite(A=A, B=B, loss=losses)
    if not converged:
        why = f"not converged after {len(losses)} iterations: raise n_iter or tol"
        warnings.warn(why, NotConvergedWarning, stacklevel=2)
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


_ITERATIONS = {"gradient_descent": _gradient_descent, "least_squares": _least_squares}
