"""Losses and errors: what AMP minimises, and what state evolution predicts.

No m x n array of errors is formed.
"""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from ._validation import check_matrix, check_rates, pairs_once
from .amp import as_operator
from .denoisers import as_pair


def squared_norm(Y):
    """Return the squared Frobenius norm of a `FisherScore`, an array or a sparse array.

    Raises
    ------
    TypeError
        For another `LinearOperator`.

    Examples
    --------
    >>> squared_norm(np.array([[3.0, 4.0]]))
    25.0
    """
    if hasattr(Y, "squared_norm"):
        return Y.squared_norm()
    if isinstance(Y, LinearOperator):
        raise TypeError(
            f"the norm of Y, a {type(Y).__name__}, is not known: pass a FisherScore, "
            "an array or a sparse array"
        )
    Y = as_operator(Y)
    if sp.issparse(Y):
        Y = pairs_once(Y, "Y").data.astype(np.float64)  # squares of integers may wrap
    return float(np.vdot(Y, Y))


class QuadraticLoss:
    """L(A, B) = |Y~ - A B^T / sqrt(m)|^2 / 2 + phi_u + phi_v (`eq:LAB`).

    Parameters
    ----------
    Y : FisherScore, array or sparse array (m, n)
    r_u, r_v : arrays (m,), (n,)
    denoiser : Denoiser, or a pair of them
        Their `penalty` methods are phi_u and phi_v.

    Examples
    --------
    >>> from amptutorial.denoisers import Ridge
    >>> one = np.ones((1, 1))
    >>> loss = QuadraticLoss(3 * one, np.ones(1), np.ones(1), (Ridge(2.0), Ridge(1.0)))
    >>> loss(one, one), loss.gradient(one, one)[1]
    (3.5, array([[-1.]]))
    """

    def __init__(self, Y, r_u, r_v, denoiser):
        self.Y = as_operator(Y)
        self.m, self.n = self.Y.shape
        self.r_u = check_rates(r_u, self.m, "r_u")
        self.r_v = check_rates(r_v, self.n, "r_v")
        self.denoiser_u, self.denoiser_v = as_pair(denoiser)
        self.norm = squared_norm(Y)

    def __call__(self, A, B):
        """Return L(A, B), without forming an m x n residual."""
        A = check_matrix(A, "A", shape=(self.m, None))
        B = check_matrix(B, "B", shape=(self.n, A.shape[1]))
        # with X = A B^T / sqrt(m), |Y - X|^2 = |Y|^2 - 2 <Y, X> + |X|^2
        product = np.vdot(self.Y @ B, A) / np.sqrt(self.m)
        fit = self.norm - 2 * product + np.vdot(A.T @ A, B.T @ B) / self.m
        phi_u = self.denoiser_u.penalty(A, self.r_u)
        phi_v = self.denoiser_v.penalty(B, self.r_v)
        return float(fit / 2 + phi_u + phi_v)

    def gradient(self, A, B):
        """Return the derivatives by A (m, d) and by B (n, d).

        Raises
        ------
        NotImplementedError
            If a denoiser has no `penalty_gradient`: the `Lasso` is not smooth.
        """
        A = check_matrix(A, "A", shape=(self.m, None))
        B = check_matrix(B, "B", shape=(self.n, A.shape[1]))
        root = np.sqrt(self.m)
        by_A = A @ (B.T @ B) / self.m - self.Y @ B / root
        by_B = B @ (A.T @ A) / self.m - self.Y.T @ A / root
        by_A += self.denoiser_u.penalty_gradient(A, self.r_u)
        by_B += self.denoiser_v.penalty_gradient(B, self.r_v)
        return by_A, by_B


def normalised_mse(A, B, A_hat, B_hat) -> float:
    """Return |A_hat B_hat^T - A B^T|^2 / |A B^T|^2, the paper's MSE (after `eq:mmhat`).

    It does not depend on the rotation that A and B leave open. For the error of M = U
    V^T / sqrt(m), pass U and V.

    Parameters
    ----------
    A, B : arrays (m, d), (n, d)
        The truth.
    A_hat, B_hat : arrays (m, d_hat), (n, d_hat)
        The estimates; d_hat may differ from d.

    Returns
    -------
    float

    Examples
    --------
    >>> A, B = np.ones((3, 1)), np.ones((4, 1))
    >>> round(normalised_mse(A, B, A, 0 * B), 9), round(normalised_mse(A, B, -A, -B), 9)
    (1.0, 0.0)
    """
    A, B = check_matrix(A, "A"), check_matrix(B, "B")
    A_hat = check_matrix(A_hat, "A_hat", shape=(len(A), None))
    B_hat = check_matrix(B_hat, "B_hat", shape=(len(B), None))
    if A.shape[1] != B.shape[1] or A_hat.shape[1] != B_hat.shape[1]:
        raise ValueError("A and B, A_hat and B_hat must have equally many columns")
    signal = np.vdot(A.T @ A, B.T @ B)
    if signal == 0:
        raise ValueError("A B^T is zero: the error cannot be normalised by it")
    # factors of the difference, orthogonalised first: no cancellation where the
    # error is small
    left = np.linalg.qr(np.hstack([A, -A_hat]))[1]
    right = np.linalg.qr(np.hstack([B, B_hat]))[1]
    return float(((left @ right.T) ** 2).sum() / signal)


def overlap(X, X_hat):
    """Return the mean over the rows of |x_i . x_hat_i| (the overlap of Section 4.4).

    Unlike `normalised_mse` it depends on the rotation of `X_hat`: align it first, see
    `align`.

    Examples
    --------
    >>> overlap(np.eye(2), -np.eye(2))
    1.0
    """
    X = check_matrix(X, "X", empty=False)
    X_hat = check_matrix(X_hat, "X_hat", shape=X.shape)
    return float(np.abs((X * X_hat).sum(axis=1)).mean())


def align(X_hat, X):
    """Return `X_hat` times the orthogonal matrix that brings it closest to `X`.

    This is the Procrustes problem.

    Examples
    --------
    >>> X = np.arange(6.0).reshape(3, 2)
    >>> bool(np.allclose(align(X[:, ::-1], X), X))
    True
    """
    X = check_matrix(X, "X")
    X_hat = check_matrix(X_hat, "X_hat", shape=X.shape)
    left, _, right = np.linalg.svd(X_hat.T @ X)
    return X_hat @ (left @ right)


def row_errors(X, X_hat):
    """Return |x_i - x_hat_i|^2 for every row, shape (N,).

    Its average over rows with similar r estimates E(|A - A_k|^2 | R^u = r).

    Examples
    --------
    >>> row_errors(np.eye(2), np.zeros((2, 2)))
    array([1., 1.])
    """
    X = check_matrix(X, "X")
    X_hat = check_matrix(X_hat, "X_hat", shape=X.shape)
    return ((X - X_hat) ** 2).sum(axis=1)
