"""State evolution: Algorithm 2 of the paper (`alg:se`), corrected.

It has two forms, on random rows and in closed form, which run the same loop, `_evolve`.
They differ in how one side takes its expectations: over sampled rows, through the very
`amptutorial.amp.half_step` that AMP uses (`_SampledSide`), or exactly, for Gaussian
rows and linear denoisers (`_ClosedFormSide`). The evolution is *two-time*: it also
follows E(B_k^T B_(k+1)), which the training loss needs.
"""

from dataclasses import dataclass

import numpy as np

from . import _validation as door
from ._validation import check_finite, quiet
from .amp import form_precision, half_step, naming
from .denoisers import LinearDenoiser, as_pair, mode_gains, symmetric_root
from .laws import GaussianRows, ScaledRowLaw, ScaledRows


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
    divergence : float
        Limit of N KL(P | P_k) / m, in nats: P is the joint distribution of a pair
        (`eq:Pij`), P_k that of A_k, B_(k+1) and the true biases, N the expected number
        of counts, for rows of weighted mean zero. With refitted biases add
        (m + n - 2) / (2 m). Divided by `nmse` it is the limit of N / m times the
        mutual information.
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
    divergence: float
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


def start_overlap(B, B0, m: int) -> dict[str, np.ndarray]:
    """Return what state evolution has to know of a start: `M0` and `Q0`, as keywords.

    Parameters
    ----------
    B : array (n, d)
        The true scaled rows.
    B0 : array (n, d_hat)
        The start.
    m : int
        The number of rows of A.

    Returns
    -------
    dict
        ``M0`` = B^T B_0 / m, shape (d, d_hat), and ``Q0`` = B_0^T B_0 / m.

    Examples
    --------
    >>> start_overlap(np.ones((4, 1)), 2 * np.ones((4, 1)), 2)
    {'M0': array([[4.]]), 'Q0': array([[8.]])}
    """
    B = door.check_matrix(B, "B")
    B0 = door.check_matrix(B0, "B0", shape=(len(B), None))
    m = door.check_integer(m, "m", minimum=1)
    return {"M0": B.T @ B0 / m, "Q0": B0.T @ B0 / m}


@dataclass(frozen=True)
class _Moments:
    """Expectations over the rows of one side after a half-step."""

    F: np.ndarray
    floored: bool
    jacobian: np.ndarray
    M: np.ndarray  # E(X^T X_hat)
    Q: np.ndarray  # E(X_hat^T X_hat)
    C: np.ndarray | None  # E(old X_hat^T X_hat); None in the first step
    fit: float  # tr E(X_hat^T P)
    penalty: float  # E g(X_hat / sqrt(r))


class _SampledSide:
    """Random rows: expectations are averages over `n_samples` of them."""

    def __init__(self, law: ScaledRowLaw, denoiser, n_samples, rng):
        self.r, self.X = law.draw(n_samples, rng=rng)
        self.X = door.check_matrix(self.X, "rows", shape=(n_samples, None))
        self.r = door.check_rates(self.r, n_samples, "r")
        self.S = self.X.T @ self.X / n_samples
        self.denoiser, self.rng = denoiser, rng
        # before the first draw the noise has no columns
        self.noise, self.noise_covariance = self.X[:, :0], np.zeros((0, 0))
        self.estimate: np.ndarray | None = None

    def step(self, M, Q, C, Gamma):
        """Draw P = X M + noise of covariance `Q`, and denoise it."""
        P = self.X @ M + self._draw_noise(Q, C)
        with naming(self.denoiser, self.estimate is None):
            half = half_step(P, self.r, Q, Gamma, self.denoiser)
        old, self.estimate, self.denoiser = self.estimate, half.estimate, half.denoiser
        N = len(P)
        return _Moments(
            F=half.F,
            floored=half.floored,
            jacobian=half.jacobian,
            M=self.X.T @ self.estimate / N,
            Q=self.estimate.T @ self.estimate / N,
            C=None if old is None else old.T @ self.estimate / N,
            fit=np.vdot(self.estimate, P) / N,
            penalty=self.denoiser.penalty(self.estimate, self.r) / N,
        )

    def _draw_noise(self, Q, C):
        """Return rows of N(0, Q) with E(old^T new) = C, `old` the rows drawn before.

        The fresh noise is made exactly uncorrelated, in the sample, with the true rows
        and the old noise, and white: the excess loss is a small difference of large
        moments, and sampling errors in them would drown it.
        """
        known = np.hstack([self.X, self.noise])
        fresh = _whiten(self.rng.standard_normal((len(self.X), len(Q))), known)
        C = np.zeros((0, len(Q))) if C is None else C
        gain = np.linalg.pinv(self.noise_covariance, hermitian=True) @ C
        rest = Q - C.T @ gain
        self.noise = self.noise @ gain + fresh @ symmetric_root((rest + rest.T) / 2)
        self.noise_covariance = Q
        return self.noise

    def rows(self):
        """Return the rows (r, X, X_hat)."""
        return self.r, self.X, self.estimate


class _ClosedFormSide:
    """Gaussian rows, X_hat = P (F + C^-1 / r)^-1: exact averages over the biases."""

    def __init__(self, law, denoiser):
        self.r, self.weights = law.atoms()
        self.covariance = law.rows.second_moment(law.d)
        self.S = (self.weights @ self.r) * self.covariance
        self.denoiser = denoiser
        self.old = None

    def step(self, M, Q, C, Gamma):
        """Return the moments of X_hat = P G(r), where P = sqrt(r) u M + N(0, Q).

        G(r) = V diag(g(r)) V^T. Given r, P has covariance r * signal + Q.
        """
        check_finite(M=M, Q=Q)
        F, floored = form_precision(Q, Gamma, self.r, self.denoiser)
        V, w = self.denoiser.modes(F)
        g = mode_gains(self.r, w)
        mean_G = (V * (g @ self.weights)) @ V.T
        mean_rG = (V * (g @ (self.weights * self.r))) @ V.T
        signal = M.T @ self.covariance @ M
        old, new = self.old, (M, V, g)
        self.old = new
        return _Moments(
            F=F,
            floored=floored,
            jacobian=mean_G,
            M=self.covariance @ M @ mean_rG,
            Q=self._second_moment(new, new, Q),
            C=None if old is None else self._second_moment(old, new, C),
            fit=np.trace(mean_rG @ signal + mean_G @ Q),
            penalty=self._penalty(V, g, signal, Q),
        )

    def _second_moment(self, left, right, noise):
        """Return E( G_left(r) (r signal + noise) G_right(r) ) = E(X_left^T X_right).

        The signal is M_left^T E(u u^T) M_right.
        """
        (M, V, g), (N, U, h) = left, right
        signal = M.T @ self.covariance @ N
        weighted = g * self.weights
        inner = (V.T @ signal @ U) * ((weighted * self.r) @ h.T)
        inner += (V.T @ noise @ U) * (weighted @ h.T)
        return V @ inner @ U.T

    def _penalty(self, V, g, signal, Q):
        """Return E(u^T C^-1 u) / 2, u = X_hat / sqrt(r): a trace, as V^T C^-1 V = I."""
        squares = g**2 * self.weights
        of_signal = np.diag(V.T @ signal @ V) @ squares.sum(axis=1)
        of_noise = np.diag(V.T @ Q @ V) @ (squares @ (1 / self.r))
        return (of_signal + of_noise) / 2

    def rows(self):
        """Return None: there are no sampled rows."""


def _whiten(noise, known):
    """Return `noise` orthogonal to the columns of `known`, with sample covariance I."""
    rest = noise - known @ np.linalg.lstsq(known, noise, rcond=None)[0]
    return np.linalg.solve(np.linalg.cholesky(rest.T @ rest / len(rest)), rest.T).T


def _evolve(side_a, side_b, *, beta, M0, Q0, n_iter):
    """The loop of Algorithm 2.

    Averages over the n rows of B become sums divided by m: hence every 1 / beta.
    """
    M_b, Q_b, C_b = M0, Q0, None
    Gamma_a = np.zeros_like(Q0)
    signal = np.vdot(side_a.S, side_b.S) / beta  # |A B^T|^2 / m^2
    iterates = []
    for k in range(n_iter):
        a = side_a.step(M_b, Q_b, C_b, Gamma_a)
        Gamma_b = a.jacobian
        b = side_b.step(a.M, a.Q, a.C, Gamma_b)
        # B_0 is no output of a step: it shares with B_1 what the true rows B explain
        S = side_b.S
        C = (beta * M0).T @ np.linalg.pinv(S, hermitian=True) @ b.M if k == 0 else b.C
        M_next, Q_next = b.M / beta, b.Q / beta
        error = signal - 2 * np.vdot(a.M, M_next) + np.vdot(a.Q, Q_next)
        # The loss is |Y - X_hat|^2 / 2 + phi, X_hat = A_k B_(k+1)^T / sqrt(m). And
        # Y^T A_k / sqrt(m) is the last denoiser's input P_b plus its Onsager term
        # B_k Gamma_b: the limit of <Y, X_hat> / n is b.fit + tr(C Gamma_b), with
        # C = E(B_k^T B_(k+1)): appendix More on state evolution.
        squares = beta * signal / 2 + np.vdot(a.Q, b.Q) / 2
        product = b.fit + np.vdot(C, Gamma_b)
        excess_loss = squares - product + beta * a.penalty + b.penalty
        iterates.append(
            SEIterate(
                k=k, M_a=a.M, Q_a=a.Q, M_b=M_b, Q_b=Q_b,
                M_b_next=M_next, Q_b_next=Q_next,
                F_a=a.F, F_b=b.F, Gamma_a=Gamma_a, Gamma_b=Gamma_b,
                floored_a=a.floored, floored_b=b.floored,
                nmse=float(error / signal), divergence=float(error / 2),
                excess_loss=float(excess_loss),
            )
        )  # fmt: skip
        M_b, Q_b, C_b, Gamma_a = M_next, Q_next, C / beta, b.jacobian / beta
    check_finite(excess_loss=[it.excess_loss for it in iterates])
    return SERun(iterates, side_a.rows(), side_b.rows())


@quiet()
def state_evolution(
    law_u, law_v, denoiser, *, beta, M0, Q0, n_iter, n_samples, rng
) -> SERun:
    """State evolution on random rows (`alg:se`, corrected).

    It serves any denoiser and any law of the rows.

    Parameters
    ----------
    law_u, law_v : ScaledRowLaw
        Laws of the bias factor and the *scaled* row sqrt(r) u, with
        ``draw(N, rng=rng) -> (r, X)``: `amptutorial.laws.ScaledRows`, `EmpiricalRows`.
    denoiser : Denoiser, or a pair of them
        As for AMP.
    beta : float
        m / n.
    M0, Q0 : arrays (d, d_hat), (d_hat, d_hat)
        B^T B_0 / m and B_0^T B_0 / m of the start, see `start_overlap`. With M0 = 0,
        the limit for a start that is independent of B, the prediction stays at zero
        overlap for ever: start from the overlap of the instance at hand. The rows have
        d entries, the estimates d_hat: the ranks of the truth and of the fit.
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
    >>> rows, bias = GaussianRows(1.0), ConstantBias(0.5)
    >>> laws = scaled_rows(1, rows_u=rows, rows_v=rows, bias_u=bias, bias_v=bias)
    >>> run = state_evolution(*laws, GaussianPosterior(1.0), beta=1.0, M0=[[0.5]],
    ...                       Q0=[[0.5]], n_iter=20, n_samples=20_000,
    ...                       rng=np.random.default_rng(0))
    >>> bool(run.iterates[-1].nmse < run.iterates[0].nmse < 1)
    True
    """
    door.check_rng(rng)
    n_samples = door.check_integer(n_samples, "n_samples", minimum=1)
    fewest = 10 * max(door.check_matrix(M0, "M0").shape)
    if n_samples < fewest:
        raise ValueError(f"n_samples must be at least 10 d = {fewest}, got {n_samples}")
    door.check_methods("draw", law_u=law_u, law_v=law_v)
    each = zip((law_u, law_v), as_pair(denoiser), strict=True)
    sides = [_SampledSide(law, own, n_samples, rng) for law, own in each]
    return _evolve(*sides, **_check_start(*sides, beta, M0, Q0, n_iter))


def has_closed_form(law_u, law_v, denoiser):
    """Return whether `gaussian_state_evolution` serves these laws and this denoiser.

    Examples
    --------
    >>> from amptutorial.denoisers import Lasso, Ridge
    >>> from amptutorial.laws import ConstantBias
    >>> law = ScaledRows(GaussianRows(1.0), ConstantBias(0.0), 2)
    >>> has_closed_form(law, law, Ridge(1.0)), has_closed_form(law, law, Lasso(1.0))
    (True, False)
    """
    return all(
        isinstance(law, ScaledRows)
        and isinstance(law.rows, GaussianRows)
        and isinstance(own, LinearDenoiser)
        and not getattr(own, "learn", False)
        for law, own in zip((law_u, law_v), as_pair(denoiser), strict=True)
    )


@quiet()
def gaussian_state_evolution(law_u, law_v, denoiser, *, beta, M0, Q0, n_iter) -> SERun:
    """State evolution in closed form: Gaussian rows, linear denoiser (`alg:se`).

    Given r, estimate and truth are jointly Gaussian, so that only the expectation over
    the bias is left: a quadrature of a few hundred points, exact for discrete biases.
    The cost does not depend on m and n.

    Parameters
    ----------
    law_u, law_v : amptutorial.laws.ScaledRows
        With `GaussianRows`.
    denoiser : Ridge or GaussianPosterior, or a pair of them
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
    >>> rows, bias = GaussianRows(1.0), ConstantBias(0.5)
    >>> laws = scaled_rows(1, rows_u=rows, rows_v=rows, bias_u=bias, bias_v=bias)
    >>> run = gaussian_state_evolution(*laws, GaussianPosterior(1.0), beta=1.0,
    ...                                M0=[[0.5]], Q0=[[0.5]], n_iter=50)
    >>> round(run.iterates[-1].nmse, 3)
    0.6
    """
    if not has_closed_form(law_u, law_v, denoiser):
        raise TypeError(
            "the closed form needs law_u and law_v to be ScaledRows of GaussianRows, "
            "and the denoiser to be Ridge or a fixed GaussianPosterior; got "
            f"{law_u!r}, {law_v!r} and {denoiser!r}: use state_evolution"
        )
    laws, pair = (law_u, law_v), as_pair(denoiser)
    sides = [_ClosedFormSide(*side) for side in zip(laws, pair, strict=True)]
    return _evolve(*sides, **_check_start(*sides, beta, M0, Q0, n_iter))


def _check_start(side_a, side_b, beta, M0, Q0, n_iter):
    """Return the arguments of `_evolve`, checked against both sides."""
    d, d_v, d_hat = len(side_a.S), len(side_b.S), len(door.check_matrix(Q0, "Q0"))
    if d != d_v:
        raise ValueError(f"law_u has dimension {d}, law_v has {d_v}: make them equal")
    if not np.vdot(side_a.S, side_b.S) > 0:
        raise ValueError(
            "zero or orthogonal rows: there is no A B^T whose error could be predicted"
        )
    beta = door.check_positive(beta, "beta")
    M0 = door.check_matrix(M0, "M0", shape=(d, d_hat)).astype(float)
    Q0 = door.check_symmetric(Q0, d_hat, "Q0")
    # B_0 = B S^-1 (beta M0) + a rest of second moment >= 0; 10 % for the difference
    # between the law and one instance
    explained = beta * M0.T @ np.linalg.pinv(side_b.S, hermitian=True) @ M0
    if np.linalg.eigvalsh(1.1 * Q0 - explained)[0] < -1e-9 * max(1.0, np.trace(Q0)):
        raise ValueError(
            "no start has these M0 and Q0: beta M0^T E(B^T B)^-1 M0 must not exceed Q0"
        )
    n_iter = door.check_integer(n_iter, "n_iter", minimum=1)
    return {"beta": beta, "M0": M0, "Q0": Q0, "n_iter": n_iter}
