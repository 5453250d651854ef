"""Biased low-rank AMP: Algorithm 1 of the paper (`alg:low-ramp`), with its two normalisations corrected.

`form_precision` is the one place where F is formed, `half_step` the one where a
denoiser is called. The loop below uses them for both sides, and
`amptutorial.state_evolution` on random rows and in closed form.
"""

import warnings
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh, get_blas_funcs
from scipy.sparse.linalg import LinearOperator

from ._validation import AMPWarning, check_integer, check_matrix, check_rates, check_rng
from .denoisers import Denoiser, check_is_denoiser

# smallest eigenvalue of F plus the penalty's convexity, relative to Q plus that
# convexity
FLOOR = 0.1


class IndefinitePrecisionWarning(AMPWarning):
    """F = Q - Gamma was indefinite, or nearly, so that `eq:Gadef-row` has no minimum; its eigenvalues were raised."""


@dataclass(frozen=True)
class HalfStep:
    """What one side of an iteration computes; see `half_step`."""

    F: np.ndarray
    estimate: np.ndarray
    jacobian: np.ndarray
    denoiser: Denoiser
    floored: bool


@dataclass(frozen=True)
class AMPIterate:
    """Iteration k of Algorithm 1, in its indices.

    Attributes
    ----------
    k : int
    A, B : arrays (m, d), (n, d)
        The estimates A_k and B_(k+1).
    F_a, F_b, Gamma_a, Gamma_b : arrays (d, d)
        F_k^a, F_k^b (as the denoisers saw them) and Gamma_k^a, Gamma_k^b.
    floored_a, floored_b : bool
        Whether F_k^a, F_k^b was not safely positive definite and had its eigenvalues
        raised.
    """

    k: int
    A: np.ndarray
    B: np.ndarray
    F_a: np.ndarray
    F_b: np.ndarray
    Gamma_a: np.ndarray
    Gamma_b: np.ndarray
    floored_a: bool
    floored_b: bool


@dataclass(frozen=True)
class AMPRun:
    """Result of `biased_low_rank_amp`: last estimates `A`, `B`, all `iterates`, and the denoisers as last refitted."""

    iterates: list
    denoiser_u: Denoiser
    denoiser_v: Denoiser

    A = property(lambda self: self.iterates[-1].A, doc="The last A_k, shape (m, d).")
    B = property(
        lambda self: self.iterates[-1].B, doc="The last B_(k+1), shape (n, d)."
    )


def floor_precision(F, Q, convexity=0.0):
    """Return `(F, False)` if F + c I >= `FLOOR` (Q + c I), c the convexity, else F raised to that, and True.

    Eigenvalues are those relative to Q + c I: the floor turns with the coordinates and
    scales with each direction by itself, so that a weak direction is not lifted because
    another is strong; and where the other side's estimate has all but vanished (Q near
    zero) a share of the penalty is left.

    Examples
    --------
    >>> F, floored = floor_precision(np.diag([-1.0, 2.0]), np.diag([1.0, 4.0]))
    >>> F.round(3), floored
    (array([[0.1, 0. ],
           [0. , 2. ]]), True)
    """
    eye = np.eye(len(Q))
    R = Q + convexity * eye
    scale = np.trace(R) / len(R)
    # positive definite also where the estimate has lost a dimension
    R += (1e-3 * scale if scale > 0 else 1.0) * eye
    if np.linalg.eigvalsh(F + convexity * eye - FLOOR * R)[0] >= 0:
        return F, False
    w, V = eigh(F + convexity * eye, R)
    RV = R @ V  # the inverse of V^T
    return (RV * np.maximum(w, FLOOR)) @ RV.T - convexity * eye, True


def form_precision(Q, Gamma, r, denoiser):
    """Return `(F, floored)`: Q - Gamma, floored, for an "argmin" denoiser; Q for a "posterior" one.

    Examples
    --------
    >>> from amptutorial.denoisers import GaussianPosterior, Ridge
    >>> Q, Gamma, r = np.diag([4.0]), np.diag([1.0]), np.ones(1)
    >>> form_precision(Q, Gamma, r, Ridge(1.0)), form_precision(Q, Gamma, r, GaussianPosterior(1.0))
    ((array([[3.]]), False), (array([[4.]]), False))
    """
    F = Q - Gamma if denoiser.precision == "argmin" else Q
    F = (F + F.T) / 2  # a quadratic form sees the symmetric part only
    return (
        floor_precision(F, Q, denoiser.convexity(r))
        if denoiser.precision == "argmin"
        else (F, False)
    )


def half_step(P, r, Q, Gamma, denoiser):
    """Form F from the other side's second moment `Q` and the Onsager term `Gamma`, and denoise the rows `P`.

    Parameters
    ----------
    P : array (N, d)
    r : array (N,)
    Q, Gamma : arrays (d, d)
    denoiser : Denoiser

    Returns
    -------
    HalfStep
        With the F that was used, the estimate (N, d), its mean Jacobian (d, d), the
        denoiser as refitted, and whether F was floored.

    Notes
    -----
    From a random start, Q - Gamma is nearly singular and often indefinite: the minimum
    that `eq:Gadef-row` asks for does not exist, and `floor_precision` steps in. The
    floor is a Lipschitz function of (Q, Gamma), so state evolution, which applies the
    same one, stays valid. At a fixed point above the spectral threshold it is not
    active for beta between 1/81 and 81 (without penalty, F >= Q / (1 + sqrt(beta)) or
    more there), and the fixed points are those of the paper. A weak ridge may instead
    end in a cycle through floored steps: look at all iterates.
    """
    F, floored = form_precision(Q, Gamma, r, denoiser)
    denoiser = denoiser.refit(P, r, F)
    estimate, jacobian = denoiser.denoise(P, r, F)
    return HalfStep(F, estimate, jacobian, denoiser, floored)


def as_operator(Y):
    """Return `(Y, Y^T)`, ready for products with tall matrices.

    Raises
    ------
    TypeError
        If `Y` is no `FisherScore`, other `LinearOperator`, array or sparse array.
    """
    if isinstance(Y, LinearOperator):
        return Y, Y.T
    Y = sp.csr_array(Y) if sp.issparse(Y) else check_matrix(Y, "Y")
    return Y, Y.T


def random_start(n, d, rng):
    """Return B_0 with independent N(0, 1) entries, shape (n, d): the start of the paper's experiments.

    Examples
    --------
    >>> random_start(3, 2, np.random.default_rng(0)).shape
    (3, 2)
    """
    return check_rng(rng).standard_normal((n, d))


def biased_low_rank_amp(
    Y,
    r_u,
    r_v,
    *,
    denoiser_u,
    denoiser_v,
    B0,
    n_iter=10,
    damping=0.0,
    on_iteration=None,
):
    """Biased low-rank AMP (`alg:low-ramp`, corrected: both Onsager terms are sums divided by m).

    Parameters
    ----------
    Y : FisherScore, LinearOperator, array or sparse array (m, n)
        The score Y~.
    r_u, r_v : arrays (m,), (n,)
        Bias factors, estimated or true.
    denoiser_u, denoiser_v : Denoiser
        G_a and G_b.
    B0 : array (n, d)
        The start; see `random_start` and `amptutorial.baselines.svd`.
    n_iter : int
        Number of iterations, each one update of A and one of B.
    damping : float
        In [0, 1): every update is (1 - damping) new + damping old. State evolution
        holds for damping 0.
    on_iteration : callable, optional
        Called with each `AMPIterate`; if it returns a true value, the run ends there.

    Returns
    -------
    AMPRun

    Raises
    ------
    ValueError
        For shapes that do not fit, d > min(m, n), or values that are not finite.
    FloatingPointError
        If an iterate is no longer finite.

    Warns
    -----
    IndefinitePrecisionWarning
        Once, if F had to be floored (see `half_step`); each iterate records it.

    Notes
    -----
    With counted biases, near the threshold, and few counts in an average row or column
    (m far from n, or frequencies that are very unequal), the weighted mean row of the
    estimates changes sign and grows with every iteration until it is all that is left.
    A denoiser that centres its estimates, by taking away sqrt(r) sqrt(r)^T X / sum(r),
    cures it; strong damping stops it (erratum 30 of the book).

    Examples
    --------
    >>> from amptutorial.denoisers import Ridge
    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.standard_normal((200, 1)), rng.standard_normal((300, 1))
    >>> Y = 3 * a @ b.T / np.sqrt(200) + rng.standard_normal((200, 300))
    >>> run = biased_low_rank_amp(Y, np.ones(200), np.ones(300), denoiser_u=Ridge(0.1), denoiser_v=Ridge(0.1),
    ...                           B0=b + rng.standard_normal((300, 1)))
    >>> bool(abs(np.corrcoef(run.A.ravel(), a.ravel())[0, 1]) > 0.9)
    True
    """
    Y, Yt = as_operator(Y)
    m, n = Y.shape
    r_u, r_v = check_rates(r_u, m, "r_u"), check_rates(r_v, n, "r_v")
    B = check_start(B0, m, n)
    n_iter = check_integer(n_iter, "n_iter", minimum=1)
    for name, denoiser in (("denoiser_u", denoiser_u), ("denoiser_v", denoiser_v)):
        check_is_denoiser(denoiser, name)
    if on_iteration is not None and not callable(on_iteration):
        raise TypeError(f"on_iteration must be callable, got {on_iteration!r}")
    if not 0 <= damping < 1:
        raise ValueError(f"damping must be at least 0 and below 1, got {damping}")

    d = B.shape[1]
    A, Gamma_a, Gamma_b = (
        np.zeros((m, d), dtype=B.dtype),
        np.zeros((d, d)),
        np.zeros((d, d)),
    )
    iterates = []
    for k in range(n_iter):
        P_a = denoiser_input(Y, B, A, Gamma_a, m)
        step_a = _checked_half_step(
            P_a, r_u, _second_moment(B, m), Gamma_a, denoiser_u, "A", k
        )
        A = _mix(step_a.estimate, A, damping if k else 0.0)
        Gamma_b = _mix(step_a.jacobian, Gamma_b, damping if k else 0.0)

        P_b = denoiser_input(Yt, A, B, Gamma_b, m)
        step_b = _checked_half_step(
            P_b, r_v, _second_moment(A, m), Gamma_b, denoiser_v, "B", k
        )
        B = _mix(step_b.estimate, B, damping)
        iterates.append(
            AMPIterate(
                k,
                A,
                B,
                step_a.F,
                step_b.F,
                Gamma_a,
                Gamma_b,
                step_a.floored,
                step_b.floored,
            )
        )
        # the sum over the n rows of B, divided by m
        Gamma_a = _mix(step_b.jacobian * (n / m), Gamma_a, damping)
        denoiser_u, denoiser_v = step_a.denoiser, step_b.denoiser
        if on_iteration is not None and on_iteration(iterates[-1]):
            break
    _warn_if_floored(iterates)
    return AMPRun(iterates, denoiser_u, denoiser_v)


def denoiser_input(Y, X, X_hat, Gamma, m):
    """Return P = Y X / sqrt(m) - X_hat Gamma: the product with the other side, minus the Onsager term."""
    product = Y @ X
    (gemm,) = get_blas_funcs(("gemm",), (product, X_hat))
    fresh = not np.may_share_memory(product, X)  # an operator may return its argument
    # product / sqrt(m) - X_hat Gamma in one pass, without a temporary array
    return gemm(
        -1, Gamma.T, X_hat.T, beta=1 / np.sqrt(m), c=product.T, overwrite_c=fresh
    ).T


def check_start(B0, m, n):
    """Return `B0` if it is a valid start of shape (n, d) with 1 <= d <= min(m, n)."""
    B0 = check_matrix(B0, "B0", shape=(n, None))
    if not 1 <= B0.shape[1] <= min(m, n):
        raise ValueError(
            f"B0 has d = {B0.shape[1]} columns; the embedding dimension must be between 1 and min(m, n) = {min(m, n)}"
        )
    return B0


def _second_moment(X, m):
    """Return X^T X / m."""
    return (X.T @ X).astype(np.float64) / m


def _mix(new, old, damping):
    return new if damping == 0 else (1 - damping) * new + damping * old


def _checked_half_step(P, r, Q, Gamma, denoiser, side, k):
    """Return `half_step`, and refuse to go on with anything that is not finite."""
    other = "B" if side == "A" else "A"
    for name, value in (
        (f"the second moment Q of the estimate {other}", Q),
        (f"the input P of the denoiser of {side}", P),
    ):
        _require_finite(value, name, k)
    step = half_step(P, r, Q, Gamma, denoiser)
    _require_finite(step.estimate, f"the estimate {side}", k)
    _require_finite(step.jacobian, f"the mean Jacobian of the denoiser of {side}", k)
    return step


def _require_finite(value, name, k):
    if not np.isfinite(value).all():
        raise FloatingPointError(
            f"{name} is not finite at iteration {k}: the iteration diverges. Try a start nearer to the signal "
            "(amptutorial.baselines.spectral_start), a larger strength or a smaller prior covariance"
        )


def _warn_if_floored(iterates):
    floored = [it.k for it in iterates if it.floored_a or it.floored_b]
    if floored:
        still = (
            " and still in the last, where the result is no fixed point of the paper's algorithm"
            * (floored[-1] == iterates[-1].k)
        )
        warnings.warn(
            f"F was not safely positive definite in {len(floored)} of {len(iterates)} iterations "
            f"(first: {floored[0]}, last: {floored[-1]}){still}; its eigenvalues were raised",
            IndefinitePrecisionWarning,
            stacklevel=3,
        )
