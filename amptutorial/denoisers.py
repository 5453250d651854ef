"""Denoisers turn noisy rows P = X M + noise into estimates of X (`eq:Gadef-row`).

A denoiser sees rows `P` (N, d), their bias factors `r` (N,) and one precision matrix
`F` (d, d) for all of them. It cannot tell whether the rows belong to A or to B, nor
whether AMP or state evolution asks. To add one, subclass `Denoiser` and write
`estimate`; everything else has a default.
"""

from abc import ABC, abstractmethod

import numpy as np
from numpy import ndarray as Array

from . import _validation as door
from ._validation import check_matrix, check_positive
from .lasso_rows import lasso_mean_jacobian, solve_lasso_rows
from .score import blocks


class Denoiser(ABC):
    """Base class: a row-wise Lipschitz map (p, r, F) -> estimate of x.

    Attributes
    ----------
    precision : "argmin" or "posterior"
        Which F the denoiser expects: Q - Gamma for the minimiser of a penalised
        quadratic (Algorithm 1 of the paper), or Q for a posterior mean given p = x Q +
        N(0, Q).

    Examples
    --------
    A denoiser that keeps the positive part of the plain least-squares estimate:

    >>> class PositivePart(Denoiser):
    ...     def estimate(self, P, r, F):
    ...         return np.maximum(np.linalg.solve(F, P.T).T, 0)
    >>> P, r, F = np.array([[1.0, -1.0]]), np.ones(1), 2 * np.eye(2)
    >>> PositivePart().estimate(P, r, F)
    array([[0.5, 0. ]])
    >>> PositivePart().mean_jacobian(P, r, F).round(6)
    array([[0.5, 0. ],
           [0. , 0. ]])
    """

    precision = "argmin"

    def __repr__(self):
        given = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({given})"

    @abstractmethod
    def estimate(self, P: Array, r: Array, F: Array) -> Array:
        """Return the estimated rows, shape (N, d)."""

    def mean_jacobian(self, P: Array, r: Array, F: Array) -> Array:
        """Return the mean over the rows of d estimate_l / d P_k at [k, l], (d, d).

        Times the number of rows and divided by m it is Gamma (`eq:Gamma_abdef`). The
        default differentiates `estimate` by central differences, one column of `P` at a
        time.
        """
        P = check_matrix(P, "P").astype(np.float64)
        # balances truncation and round-off
        step = np.cbrt(np.finfo(float).eps) * max(np.abs(P).max(initial=0.0), 1e-8)
        return self.difference_jacobian(P, r, F, step)

    def difference_jacobian(self, P, r, F, step):
        """Return `mean_jacobian` by central differences of `estimate`.

        The step is the same in every entry of `P`.
        """
        P, step = check_matrix(P, "P"), check_positive(step, "step")

        def change(h):
            change = self.estimate(P + h, r, F) - self.estimate(P - h, r, F)
            return change.sum(axis=0) / max(len(P), 1)

        return np.array([change(h) for h in step * np.eye(P.shape[1])]) / (2 * step)

    def denoise(self, P: Array, r: Array, F: Array) -> tuple[Array, Array]:
        """Return `(estimate, mean_jacobian)`.

        Override it where one computation gives both.
        """
        X = self.estimate(P, r, F)
        if np.shape(X) != np.shape(P):
            raise ValueError(
                f"{self!r} returned an estimate of shape {np.shape(X)}, expected "
                f"{np.shape(P)}"
            )
        return X, self.mean_jacobian(P, r, F)

    def penalty(self, X: Array, r: Array) -> float:
        """Return the sum over the rows of g(x_i / sqrt(r_i)), the penalty in `eq:LAB`.

        It is 0 for a denoiser that has none.
        """
        return 0.0

    def penalty_gradient(self, X: Array, r: Array) -> Array:
        """Return the derivative of `penalty` by the rows, (N, d), if it has one.

        Raises
        ------
        NotImplementedError
            Unless a class with a smooth penalty overrides this method.
        """
        raise NotImplementedError(
            f"{self!r} has no derivative of its penalty, which may not be smooth: take "
            "Ridge, or write penalty_gradient(X, r) where the penalty has one"
        )

    def convexity(self, r: Array) -> float:
        """Return c >= 0: in every row g(x / sqrt(r_i)) - c |x|^2 / 2 is convex.

        The minimum in `eq:Gadef-row` exists as long as the eigenvalues of F exceed -c.
        """
        return 0.0

    def refit(self, P: Array, r: Array, F: Array) -> "Denoiser":
        """Return the denoiser for these rows: itself, or a copy that has learned."""
        return self

    def frozen(self) -> "Denoiser":
        """Return the denoiser as it is now, no longer learning.

        A class that overrides `refit` overrides this method too.
        """
        return self


def check_is_denoiser(denoiser, name):
    """Return `denoiser` if it is a `Denoiser` whose `precision` is known.

    Raises
    ------
    TypeError, ValueError
        For a class, a name, or another `precision`.
    """
    if not isinstance(denoiser, Denoiser):
        raise TypeError(
            f"{name} must be an instance of Denoiser, got {denoiser!r}: derive its "
            "class from amptutorial.Denoiser, and pass an instance, such as Ridge(1.0)"
        )
    if denoiser.precision not in ("argmin", "posterior"):
        raise ValueError(
            f'{name}.precision must be "argmin" or "posterior", got '
            f"{denoiser.precision!r}"
        )
    return denoiser


def as_pair(denoiser, check=check_is_denoiser):
    """Return `(denoiser of the rows, denoiser of the columns)`.

    Parameters
    ----------
    denoiser : Denoiser, or a pair of them
        One serves both sides.
    check : callable
        Returns what one of them stands for, given it and a name for messages.

    Raises
    ------
    TypeError, ValueError
        For anything else, or a `precision` that is not known.

    Examples
    --------
    >>> as_pair(Ridge(1.0)), as_pair((Ridge(1.0), Lasso(2.0)))
    ((Ridge(1), Ridge(1)), (Ridge(1), Lasso(2)))
    """
    if isinstance(denoiser, (tuple, list)) and len(denoiser) == 2:
        return tuple(check(one, f"denoiser[{k}]") for k, one in enumerate(denoiser))
    return (check(denoiser, "denoiser"),) * 2


# temporary arrays of at most 120 kB stay in the cache, and no memory is mapped anew
BLOCK_ENTRIES = 15_000


def mode_gains(r, w):
    """Return 1 / (w_k + 1 / r_i), (len(w), len(r)): the gain of mode k in row i.

    Examples
    --------
    >>> mode_gains(np.array([1.0, 0.5]), np.array([0.0, 3.0]))
    array([[1.  , 0.5 ],
           [0.25, 0.2 ]])
    """
    gains = np.add.outer(w, 1 / r)
    return np.reciprocal(gains, out=gains)


def symmetric_root(C):
    """Return the symmetric root of a semidefinite matrix; round-off below 0 is 0.

    Examples
    --------
    >>> symmetric_root(np.array([[5.0, 4.0], [4.0, 5.0]])).round(9)
    array([[2., 1.],
           [1., 2.]])
    """
    w, E = np.linalg.eigh(C)
    return (E * np.sqrt(np.maximum(w, 0))) @ E.T


def _check_rows(P, r, F):
    """Return the arguments of a denoiser, with F in double precision."""
    P = check_matrix(P, "P")
    d = P.shape[1]
    if d == 0:
        raise ValueError("P must have at least one column")
    return P, door.check_rates(r, len(P), "r"), door.check_symmetric(F, d)


def _unscaled(X, r):
    """Return the rows u_i = x_i / sqrt(r_i), which the penalties are functions of."""
    X = check_matrix(X, "X")
    return X / np.sqrt(door.check_rates(r, len(X), "r"))[:, None]


class LinearDenoiser(Denoiser):
    """The estimate (F + C^-1 / r)^-1 p, linear in p, for a matrix C = L L^T.

    It is the minimiser for g(u) = u^T C^-1 u / 2, and a posterior mean. With L^T F L =
    E diag(w) E^T and V = L E, the inverse is V diag(1 / (w + 1 / r)) V^T: one
    eigendecomposition serves all rows, and C may be singular.
    """

    @abstractmethod
    def _root(self, d):
        """Return L, shape (d, d)."""

    def modes(self, F):
        """Return `(V, w)` with V diag(1 / (w + 1 / r)) V^T = (F + C^-1 / r)^-1."""
        F = door.check_symmetric(F, len(F))
        L = self._root(len(F))
        size = np.linalg.norm(L) ** 2 * np.linalg.norm(F)
        w, E = np.linalg.eigh(L.T @ F @ L)
        round_off = 10 * len(w) * np.finfo(float).eps * size
        # the zero of a semidefinite F is zero
        return L @ E, np.where((w < 0) & (w > -round_off), 0.0, w)

    def _prepare(self, P, r, F):
        """Check the arguments and return `(P, r, V, w)`."""
        P, r, F = _check_rows(P, r, F)
        V, w = self.modes(F)
        if len(r) and 1 + r.max() * w[0] <= 0:
            raise ValueError(
                f"F + C^-1 / r is not positive definite for row {r.argmax()}: the "
                "minimum does not exist; raise the eigenvalues of F first, with "
                "amptutorial.amp.floor_precision"
            )
        return P, r, V, w

    def estimate(self, P, r, F):
        """Return the rows (F + C^-1 / r_i)^-1 p_i, shape (N, d)."""
        return self.denoise(P, r, F)[0]

    def mean_jacobian(self, P, r, F):
        """Return the mean of (F + C^-1 / r_i)^-1, shape (d, d)."""
        return self.denoise(P, r, F)[1]

    def denoise(self, P, r, F):
        """Return `(estimate, mean_jacobian)`.

        A block of rows at a time is three times as fast as all at once.
        """
        P, r, V, w = self._prepare(P, r, F)
        X, total = np.empty_like(P), np.zeros_like(w)
        to_modes = np.ascontiguousarray(V.T, dtype=P.dtype)
        for rows in blocks(len(P), BLOCK_ENTRIES // len(w)):
            gains = mode_gains(r[rows], w)
            total += gains.sum(axis=1)
            coordinates = to_modes @ P[rows].T
            coordinates *= gains
            np.matmul(coordinates.T, to_modes, out=X[rows])
        return X, (V * (total / max(len(P), 1))) @ V.T

    def penalty(self, X, r):
        """Return half the sum of u_i^T C^-1 u_i, where u_i = x_i / sqrt(r_i)."""
        U = _unscaled(X, r)
        coordinates = np.linalg.lstsq(self._root(U.shape[1]), U.T, rcond=None)[0]
        return float((coordinates**2).sum() / 2)

    def penalty_gradient(self, X, r):
        """Return the derivative of `penalty` by the rows, C^-1 x_i / r_i, (N, d)."""
        X = check_matrix(X, "X")
        L = self._root(X.shape[1])
        inverse = np.linalg.pinv(L @ L.T, hermitian=True)
        return X @ inverse / door.check_rates(r, len(X), "r")[:, None]


class Ridge(LinearDenoiser):
    """Minimiser p (F + strength / r I)^-1 for g(u) = strength / 2 |u|^2 (`eq:regl2`).

    Parameters
    ----------
    strength : float
        lambda > 0.

    Raises
    ------
    ValueError
        If the strength is not positive, or F + strength / r not positive definite.

    Examples
    --------
    >>> Ridge(1.0).estimate(np.array([[3.0, 4.0]]), np.ones(1), np.diag([2.0, 3.0]))
    array([[1., 1.]])

    The formula in two lines, for rows of two frequencies, and the mean Jacobian:

    >>> P, r = np.array([[3.0, 4.0], [1.0, -2.0]]), np.array([1.0, 0.2])
    >>> F, strength = np.array([[2.0, 1.0], [1.0, 3.0]]), 1.5
    >>> inverses = np.linalg.inv(F + strength / r[:, None, None] * np.eye(2))
    >>> rows = np.einsum("ik,ikl->il", P, inverses)
    >>> X, jacobian = Ridge(strength).denoise(P, r, F)
    >>> bool(np.allclose(X, rows)), bool(np.allclose(jacobian, inverses.mean(axis=0)))
    (True, True)
    """

    def __init__(self, strength):
        self.strength = check_positive(strength, "strength")

    def __repr__(self):
        return f"{type(self).__name__}({self.strength:g})"

    def _root(self, d):
        return np.eye(d) / np.sqrt(self.strength)

    def convexity(self, r):
        """Return strength / max(r)."""
        return self.strength / np.max(r)


class GaussianPosterior(LinearDenoiser):
    """Posterior mean of x = sqrt(r) u given p = x F + N(0, F), u ~ N(0, covariance).

    With it AMP is Bayes-optimal for Gaussian rows. The formula is that of `Ridge` with
    covariance^-1 for the strength; the difference is `precision`: F = Q, without the
    Onsager correction.

    Parameters
    ----------
    covariance : float or array (d, d)
        A number stands for that multiple of the identity.
    learn : bool
        Whether `refit` replaces the covariance by one step of expectation-maximisation.

    Raises
    ------
    ValueError
        If the covariance is not symmetric positive definite.

    Examples
    --------
    >>> posterior = GaussianPosterior(1.0)
    >>> posterior.estimate(np.array([[3.0, 4.0]]), np.ones(1), np.diag([2.0, 3.0]))
    array([[1., 1.]])

    The formula in two lines, p (F + covariance^-1 / r)^-1, and the mean Jacobian:

    >>> P, r = np.array([[3.0, 4.0], [1.0, -2.0]]), np.array([1.0, 0.2])
    >>> F, C = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([[2.0, 0.5], [0.5, 1.0]])
    >>> inverses = np.linalg.inv(F + np.linalg.inv(C) / r[:, None, None])
    >>> rows = np.einsum("ik,ikl->il", P, inverses)
    >>> X, jacobian = GaussianPosterior(C).denoise(P, r, F)
    >>> bool(np.allclose(X, rows)), bool(np.allclose(jacobian, inverses.mean(axis=0)))
    (True, True)
    """

    precision = "posterior"

    def __init__(self, covariance, *, learn=False):
        self.covariance = door.check_variance(covariance, "covariance", definite=True)
        self.learn = bool(learn)

    def __repr__(self):
        C = self.covariance
        shown = f"<{len(C)} x {len(C)}>" if np.ndim(C) else f"{C:g}"
        learn = ", learn=True" if self.learn else ""
        return f"{type(self).__name__}({shown}{learn})"

    def _root(self, d):
        return symmetric_root(door.covariance_matrix(self.covariance, d))

    def refit(self, P, r, F):
        """Return a copy after one step of expectation-maximisation, if `learn`.

        Its covariance is the posterior mean of u u^T, averaged over the rows.
        """
        if not self.learn or not len(P):
            return self
        P, r, V, w = self._prepare(P, r, F)
        gains = mode_gains(r, w)
        coordinates = (V.T @ P.T) * gains / np.sqrt(r)
        second_moments = coordinates @ coordinates.T
        second_moments += np.diag((gains / r).sum(axis=1))  # posterior variances
        total = V @ second_moments @ V.T
        values, axes = np.linalg.eigh((total + total.T) / (2 * len(P)))
        # positive definite also after round-off
        values = np.maximum(values, 1e-12 * values[-1])
        return GaussianPosterior((axes * values) @ axes.T, learn=True)

    def frozen(self):
        """Return a copy with this covariance for good."""
        return GaussianPosterior(self.covariance)


class Lasso(Denoiser):
    """Minimiser for g(u) = strength |u|_1 (`eq:regsparse`, `eq:l1-denoiserA`).

    Solved for all rows at once, in the form with F itself: the square root F^(1/2) of
    `eq:l1-denoiserA` is not needed.

    Parameters
    ----------
    strength : float
        lambda > 0.

    Raises
    ------
    ValueError
        If the strength is not positive, or F not positive definite.

    Examples
    --------
    >>> Lasso(1.0).estimate(np.array([[3.0, 0.5]]), np.ones(1), np.eye(2))
    array([[2., 0.]])

    Where F is diagonal the formula has two lines, the soft threshold of each entry:

    >>> P, r = np.array([[3.0, -4.0], [1.0, 2.0]]), np.array([1.0, 0.2])
    >>> F, strength = np.diag([2.0, 3.0]), 0.7
    >>> t = strength / np.sqrt(r)[:, None]
    >>> rows = np.sign(P) * np.maximum(np.abs(P) - t, 0) / F.diagonal()
    >>> bool(np.allclose(Lasso(strength).estimate(P, r, F), rows))
    True

    For any F the minimum is where what is left of p is t sign(a) in the entries of a
    that are not zero, and no larger than t in the others:

    >>> F = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> X = Lasso(strength).estimate(P, r, F)
    >>> left = np.where(X == 0, np.clip(P - X @ F, -t, t), t * np.sign(X))
    >>> bool(np.allclose(P - X @ F, left))
    True
    """

    def __init__(self, strength):
        self.strength = check_positive(strength, "strength")

    def __repr__(self):
        return f"{type(self).__name__}({self.strength:g})"

    def estimate(self, P, r, F):
        """Return the rows a_i that minimise the penalised quadratic, shape (N, d).

        It is a^T F a / 2 - p_i^T a + strength / sqrt(r_i) |a|_1.
        """
        P, r, F = _check_rows(P, r, F)
        least = np.linalg.eigvalsh(F)[0]
        if least <= 0:
            raise ValueError(
                f"F must be positive definite, its smallest eigenvalue is {least:.3g}: "
                "raise the eigenvalues first, with amptutorial.amp.floor_precision"
            )
        return solve_lasso_rows(P, self.strength / np.sqrt(r), F)

    def mean_jacobian(self, P, r, F):
        """Return the mean of (F_SS)^-1 on each row's support S, zero elsewhere."""
        return self.denoise(P, r, F)[1]

    def denoise(self, P, r, F):
        """Return `(estimate, mean_jacobian)` from one solution."""
        X = self.estimate(P, r, F)
        F = np.asarray(F, dtype=np.float64)
        return X, lasso_mean_jacobian(X != 0, F)

    def penalty(self, X, r):
        """Return strength times the sum of |x_i|_1 / sqrt(r_i)."""
        return float(self.strength * np.abs(_unscaled(X, r)).sum())
