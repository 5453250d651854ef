"""State evolution: Algorithm 2 of the paper (`alg:se`), corrected, on random rows or in closed form.

Both forms run the same loop, `_evolve`. They differ in how one half-step takes its
expectations: over sampled rows, through the very `amptutorial.amp.half_step` that AMP
uses (`_SampledRows`), or exactly for Gaussian rows and linear denoisers
(`_GaussianRows`). The evolution is *two-time*: it also follows E(B_k^T B_(k+1)), which
the training loss needs.
"""

from dataclasses import dataclass

import numpy as np

from ._validation import (
    check_integer,
    check_matrix,
    check_positive,
    check_rates,
    check_rng,
    check_symmetric,
)
from .amp import form_precision, half_step
from .denoisers import _GaussianDenoiser, check_is_denoiser, mode_gains
from .laws import GaussianRows, ScaledRows


@dataclass(frozen=True)
class SEIterate:
    """Iteration k of Algorithm 2, in its indices.

    Attributes
    ----------
    k : int
    M_b, Q_b : arrays (d, d_hat), (d_hat, d_hat)
        Limits of B^T B_k / m and B_k^T B_k / m, from which this iteration starts.
    M_a, Q_a : arrays (d, d_hat), (d_hat, d_hat)
        Limits of A^T A_k / m and A_k^T A_k / m.
    F_a, F_b, Gamma_a, Gamma_b : arrays (d_hat, d_hat)
        As in `amptutorial.amp.AMPIterate`.
    M_b_next, Q_b_next : arrays (d, d_hat), (d_hat, d_hat)
        M_b and Q_b of iteration k + 1: those of the B_(k+1) that the iterate of AMP
        holds.
    nmse : float
        Limit of |A_k B_(k+1)^T - A B^T|^2 / |A B^T|^2.
    excess_loss : float
        Limit of (L(A_k, B_(k+1)) - |W|^2 / 2) / n, where L is `eq:LAB`.
    floored_a, floored_b : bool
        Whether F had its eigenvalues raised.
    """

    k: int
    M_a: np.ndarray
    Q_a: np.ndarray
    M_b: np.ndarray
    Q_b: np.ndarray
    F_a: np.ndarray
    F_b: np.ndarray
    Gamma_a: np.ndarray
    Gamma_b: np.ndarray
    M_b_next: np.ndarray
    Q_b_next: np.ndarray
    nmse: float
    excess_loss: float
    floored_a: bool
    floored_b: bool


@dataclass(frozen=True)
class SERun:
    """Result of a state evolution.

    Attributes
    ----------
    iterates : list of SEIterate
    rows_a, rows_b : tuples (r, X, X_hat) or None
        Sampled bias factors, true rows and their estimates in the last iteration: any
        metric of the joint law, such as E(|A - A_k|^2 | R^u = r), is an average over
        them. None in the closed form, which samples nothing.
    """

    iterates: list
    rows_a: tuple | None
    rows_b: tuple | None


@dataclass(frozen=True)
class _Moments:
    """Expectations over the rows of one side after a half-step; X_hat is the new estimate, `old` the previous one."""

    F: np.ndarray
    floored: bool
    jacobian: np.ndarray
    M: np.ndarray  # E(X^T X_hat)
    Q: np.ndarray  # E(X_hat^T X_hat)
    C: np.ndarray | None  # E(old^T X_hat); None in the first step
    fit: float  # tr E(X_hat^T P)
    penalty: float  # E g(X_hat / sqrt(r))


class _SampledRows:
    """Random rows: expectations are averages over `n_samples` of them."""

    def __init__(self, law, denoiser, n_samples, rng):
        self.r, self.X = law.draw(n_samples, rng)
        self.X = check_matrix(self.X, "rows", shape=(n_samples, None))
        self.r = check_rates(self.r, n_samples, "r")
        self.S = self.X.T @ self.X / n_samples
        self.denoiser, self.rng = denoiser, rng
        self.noise = self.noise_covariance = self.estimate = None

    def step(self, M, Q, C, Gamma):
        """Draw P = X M + N(0, Q), with the noise of covariance `C` to that of the step before, and denoise."""
        P = self.X @ M + self._draw_noise(Q, C)
        _require_finite(P)
        step = half_step(P, self.r, Q, Gamma, self.denoiser)
        old, self.estimate, self.denoiser = self.estimate, step.estimate, step.denoiser
        _require_finite(self.estimate)
        _require_finite(step.jacobian)
        N = len(P)
        return _Moments(
            step.F,
            step.floored,
            step.jacobian,
            M=self.X.T @ self.estimate / N,
            Q=self.estimate.T @ self.estimate / N,
            C=None if old is None else old.T @ self.estimate / N,
            fit=np.vdot(self.estimate, P) / N,
            penalty=self.denoiser.penalty(self.estimate, self.r) / N,
        )

    def _draw_noise(self, Q, C):
        """Return rows of N(0, Q) that have cross-covariance C = E(old^T new) with the rows of the noise before.

        The fresh noise is made exactly uncorrelated, in the sample, with the true rows
        and the old noise, and white: the excess loss is a small difference of large
        moments, and sampling errors in them would drown it.
        """
        known = self.X if self.noise is None else np.hstack([self.X, self.noise])
        fresh = _whiten(self.rng.standard_normal((len(self.X), len(Q))), known)
        if self.noise is None:
            noise = fresh @ _square_root(Q)
        else:
            gain = np.linalg.pinv(self.noise_covariance, hermitian=True) @ C
            noise = self.noise @ gain + fresh @ _square_root(Q - C.T @ gain)
        self.noise, self.noise_covariance = noise, Q
        return noise

    def rows(self):
        """Return the rows (r, X, X_hat)."""
        return self.r, self.X, self.estimate


class _GaussianRows:
    """Gaussian rows and a denoiser X_hat = P (F + C^-1 / r)^-1: an exact average over the biases alone."""

    def __init__(self, law, denoiser):
        self.r, self.weights = law.atoms()
        self.covariance = law.rows.second_moment(law.d)
        self.S = (self.weights @ self.r) * self.covariance
        self.denoiser = denoiser
        self.old = None

    def step(self, M, Q, C, Gamma):
        """Return the moments of X_hat = P G(r), G(r) = V diag(g(r)) V^T, with P = sqrt(r) u M + N(0, Q)."""
        F, floored = form_precision(Q, Gamma, self.r, self.denoiser)
        V, w = self.denoiser.modes(F)
        g = mode_gains(self.r, w)
        signal = M.T @ self.covariance @ M  # P has covariance r * signal + Q given r
        mean_g, mean_rg = g @ self.weights, g @ (self.weights * self.r)
        moments = _Moments(
            F,
            floored,
            jacobian=(V * mean_g) @ V.T,
            M=self.covariance @ M @ (V * mean_rg) @ V.T,
            Q=self._second_moment((V, g), (V, g), signal, Q),
            C=None
            if self.old is None
            else self._second_moment(
                self.old[:2], (V, g), self.old[2].T @ self.covariance @ M, C
            ),
            fit=np.trace((V * mean_rg) @ V.T @ signal + (V * mean_g) @ V.T @ Q),
            penalty=self._penalty(V, g, signal, Q),
        )
        self.old = (V, g, M)
        return moments

    def _second_moment(self, left, right, signal, noise):
        """Return E( G_left(r) (r signal + noise) G_right(r) ): E(X_left^T X_right)."""
        (V, g), (U, h) = left, right
        weighted = g * self.weights
        inner = (V.T @ signal @ U) * ((weighted * self.r) @ h.T) + (V.T @ noise @ U) * (
            weighted @ h.T
        )
        return V @ inner @ U.T

    def _penalty(self, V, g, signal, Q):
        """Return E(u^T C^-1 u) / 2 for u = X_hat / sqrt(r); V^T C^-1 V = I makes it a trace."""
        squares = g**2 * self.weights
        total = np.diag(V.T @ signal @ V) @ squares.sum(axis=1) + np.diag(
            V.T @ Q @ V
        ) @ (squares @ (1 / self.r))
        return total / 2

    def rows(self):
        """Return None: there are no sampled rows."""


def _whiten(noise, known):
    """Return `noise` made orthogonal to the columns of `known`, with sample covariance I."""
    rest = noise - known @ np.linalg.lstsq(known, noise, rcond=None)[0]
    return np.linalg.solve(np.linalg.cholesky(rest.T @ rest / len(rest)), rest.T).T


def _square_root(Q):
    """Return the symmetric root of a positive semidefinite matrix, clearing negative round-off."""
    w, V = np.linalg.eigh((Q + Q.T) / 2)
    return (V * np.sqrt(np.maximum(w, 0))) @ V.T


def _require_finite(value):
    if not np.isfinite(value).all():
        raise FloatingPointError(
            "the state evolution diverges: a moment of the rows or estimates is not finite. Try a larger strength, "
            "or a bias law with a finite second moment"
        )


def _evolve(rows_u, rows_v, *, beta, M0, Q0, n_iter):
    """The loop of Algorithm 2. Averages over the n rows of B become sums divided by m: hence every 1 / beta."""
    M_b, Q_b, C_b = M0, Q0, None
    Gamma_a = np.zeros_like(Q0)
    iterates = []
    for k in range(n_iter):
        a = rows_u.step(M_b, Q_b, C_b, Gamma_a)
        Gamma_b = a.jacobian
        b = rows_v.step(a.M, a.Q, a.C, Gamma_b)
        # B_0 is no output of a step: what it shares with B_1 goes through the true rows
        # B
        C = (
            (beta * M0).T @ np.linalg.pinv(rows_v.S, hermitian=True) @ b.M
            if b.C is None
            else b.C
        )
        M_next, Q_next = b.M / beta, b.Q / beta
        signal = np.vdot(rows_u.S, rows_v.S) / beta
        excess_loss = (
            beta * signal / 2
            - b.fit
            - np.vdot(C, Gamma_b)
            + np.vdot(a.Q, b.Q) / 2
            + beta * a.penalty
            + b.penalty
        )
        nmse = (signal - 2 * np.vdot(a.M, M_next) + np.vdot(a.Q, Q_next)) / signal
        iterates.append(
            SEIterate(
                k, a.M, a.Q, M_b, Q_b, a.F, b.F, Gamma_a, Gamma_b, M_next, Q_next, float(nmse), float(excess_loss),
                a.floored, b.floored,
            )
        )  # fmt: skip
        M_b, Q_b, C_b, Gamma_a = M_next, Q_next, C / beta, b.jacobian / beta
    return SERun(iterates, rows_u.rows(), rows_v.rows())


def state_evolution(
    rows_u, rows_v, *, denoiser_u, denoiser_v, beta, M0, Q0, n_iter, n_samples, rng
):
    """State evolution on random rows (`alg:se`, corrected), for any denoiser and any law of the rows.

    Parameters
    ----------
    rows_u, rows_v : objects with ``draw(N, rng) -> (r, X)``
        Laws of the bias factor and the *scaled* row sqrt(r) u:
        `amptutorial.laws.ScaledRows` or `EmpiricalRows`.
    denoiser_u, denoiser_v : Denoiser
        The same objects as for AMP.
    beta : float
        m / n.
    M0, Q0 : arrays (d, d_hat), (d_hat, d_hat)
        B^T B_0 / m and B_0^T B_0 / m of the start. With M0 = 0, the limit for a start
        that is independent of B, the prediction stays at zero overlap for ever: start
        from the overlap of the instance at hand. The rows have d entries, the estimates
        d_hat: the ranks of the truth and of the fit.
    n_iter, n_samples : int
    rng : numpy.random.Generator

    Returns
    -------
    SERun

    Raises
    ------
    ValueError
        For matrices of the wrong shape, or M0 and Q0 that no start can have.
    FloatingPointError
        If a moment is no longer finite.

    Examples
    --------
    >>> from amptutorial.denoisers import GaussianPosterior
    >>> from amptutorial.laws import ConstantBias, scaled_rows
    >>> rows, bias, posterior = GaussianRows(1.0), ConstantBias(0.5), GaussianPosterior(1.0)
    >>> law_u, law_v = scaled_rows(1, rows_u=rows, rows_v=rows, bias_u=bias, bias_v=bias)
    >>> run = state_evolution(law_u, law_v, denoiser_u=posterior, denoiser_v=posterior, beta=1.0, M0=[[0.5]],
    ...                       Q0=[[0.5]], n_iter=20, n_samples=20_000, rng=np.random.default_rng(0))
    >>> bool(run.iterates[-1].nmse < run.iterates[0].nmse < 1)
    True
    """
    check_rng(rng)
    n_samples = check_integer(n_samples, "n_samples", minimum=1)
    fewest = 10 * max(np.shape(np.atleast_2d(M0)))
    if n_samples < fewest:
        raise ValueError(f"n_samples must be at least 10 d = {fewest}, got {n_samples}")
    sides = [
        _SampledRows(law, g, n_samples, rng)
        for law, g in ((rows_u, denoiser_u), (rows_v, denoiser_v))
    ]
    return _evolve(*sides, **_check_start(sides, beta, M0, Q0, n_iter))


def gaussian_state_evolution(
    rows_u, rows_v, *, denoiser_u, denoiser_v, beta, M0, Q0, n_iter
):
    """State evolution in closed form: Gaussian rows with `Ridge` or `GaussianPosterior` (`alg:se`, corrected).

    Given r, estimate and truth are jointly Gaussian, so that only the expectation over
    the bias is left: a quadrature of a few hundred points, exact for discrete biases.
    The cost does not depend on m and n.

    Parameters
    ----------
    rows_u, rows_v : amptutorial.laws.ScaledRows
        With `GaussianRows`.
    denoiser_u, denoiser_v : Ridge or GaussianPosterior
        Without ``learn=True``.
    beta, M0, Q0, n_iter
        As for `state_evolution`.

    Returns
    -------
    SERun

    Raises
    ------
    TypeError
        For other rows or denoisers: use `state_evolution`.

    Examples
    --------
    >>> from amptutorial.denoisers import GaussianPosterior
    >>> from amptutorial.laws import ConstantBias, scaled_rows
    >>> rows, bias, posterior = GaussianRows(1.0), ConstantBias(0.5), GaussianPosterior(1.0)
    >>> law_u, law_v = scaled_rows(1, rows_u=rows, rows_v=rows, bias_u=bias, bias_v=bias)
    >>> run = gaussian_state_evolution(law_u, law_v, denoiser_u=posterior, denoiser_v=posterior, beta=1.0,
    ...                                M0=[[0.5]], Q0=[[0.5]], n_iter=50)
    >>> round(run.iterates[-1].nmse, 3)
    0.6
    """
    for law in (rows_u, rows_v):
        if not isinstance(law, ScaledRows) or not isinstance(law.rows, GaussianRows):
            raise TypeError(
                f"the closed form needs ScaledRows of GaussianRows, got {law!r}: use state_evolution"
            )
    for g in (denoiser_u, denoiser_v):
        if not isinstance(g, _GaussianDenoiser) or getattr(g, "learn", False):
            raise TypeError(
                f"the closed form needs Ridge or a fixed GaussianPosterior, got {g!r}: use state_evolution"
            )
    sides = [_GaussianRows(rows_u, denoiser_u), _GaussianRows(rows_v, denoiser_v)]
    return _evolve(*sides, **_check_start(sides, beta, M0, Q0, n_iter))


def _check_start(sides, beta, M0, Q0, n_iter):
    d = len(sides[0].S)
    d_hat = len(np.atleast_2d(Q0))
    if sides[1].S.shape != (d, d):
        raise ValueError(
            f"rows_u has dimension {d}, rows_v has {len(sides[1].S)}: both sides share the embedding dimension"
        )
    for name, side in (("denoiser_u", sides[0]), ("denoiser_v", sides[1])):
        check_is_denoiser(side.denoiser, name)
    if not np.vdot(sides[0].S, sides[1].S) > 0:
        raise ValueError(
            "the rows are zero, or orthogonal: there is no A B^T whose error could be predicted"
        )
    beta = check_positive(beta, "beta")
    M0, Q0 = (
        check_matrix(M0, "M0", shape=(d, d_hat)).astype(float),
        check_symmetric(Q0, d_hat, "Q0"),
    )
    # B_0 = B S^-1 (beta M0) + a rest of second moment >= 0; 10 % for the difference
    # between the law and one instance
    explained = beta * M0.T @ np.linalg.pinv(sides[1].S, hermitian=True) @ M0
    if np.linalg.eigvalsh(1.1 * Q0 - explained)[0] < -1e-9 * max(1.0, np.trace(Q0)):
        raise ValueError(
            "no start has these M0 and Q0: Q0 - beta M0^T S^-1 M0, with S = E(B^T B), must be positive semidefinite"
        )
    return {
        "beta": beta,
        "M0": M0,
        "Q0": Q0,
        "n_iter": check_integer(n_iter, "n_iter", minimum=1),
    }
