"""Biased low-rank AMP: Algorithm 1 of the paper (`alg:low-ramp`), corrected.

`amp_iterates` is the algorithm, line by line. `half_step` is the one place where F is
formed and a denoiser is called: for both sides of AMP, for
`amptutorial.state_evolution`, and for `amptutorial.reexpansion`.
"""

import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, islice

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator

from . import _validation as door
from ._validation import AMPWarning, check_finite, quiet, read_only
from .denoisers import Denoiser, as_pair
from .score import one_thread

# the smallest eigenvalue of F + c I relative to Q + c I, c the penalty's convexity
FLOOR = 0.1


class IndefinitePrecisionWarning(AMPWarning):
    """The last F = Q - Gamma was not safely positive definite, and was raised.

    `eq:Gadef-row` then has no minimum, or nearly none, and the result is not a fixed
    point of the paper's algorithm.
    """


@dataclass(frozen=True)
class _HalfStep:
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
    F_a, F_b, Gamma_a, Gamma_b, Gamma_a_next : arrays (d, d)
        F_k^a, F_k^b (as the denoisers saw them), Gamma_k^a, Gamma_k^b, Gamma_(k+1)^a.
    floored_a, floored_b : bool
        Whether F_k^a, F_k^b was not safely positive definite and had its eigenvalues
        raised.
    denoiser_a, denoiser_b : Denoiser
        The denoisers of the rows and of the columns, as refitted in this iteration.
    """

    k: int
    A: np.ndarray
    B: np.ndarray
    F_a: np.ndarray
    F_b: np.ndarray
    Gamma_a: np.ndarray
    Gamma_b: np.ndarray
    Gamma_a_next: np.ndarray
    floored_a: bool
    floored_b: bool
    denoiser_a: Denoiser
    denoiser_b: Denoiser


def _of_last(name, doc):
    return property(lambda self: getattr(self.iterates[-1], name), doc=doc)


@dataclass(frozen=True)
class AMPRun:
    """Result of `biased_low_rank_amp`: all `iterates`, and what the last one holds."""

    iterates: list[AMPIterate]

    A = _of_last("A", "The last A_k, shape (m, d).")
    B = _of_last("B", "The last B_(k+1), (n, d).")
    denoiser_a = _of_last("denoiser_a", "That of the rows, refitted.")
    denoiser_b = _of_last("denoiser_b", "That of the columns, refitted.")


def floor_precision(F, Q, convexity=0.0):
    """Return `(F, floored)`, F raised where it is not safely positive definite.

    F is safe if F + c I >= `FLOOR` (Q + c I), where c is the convexity of the penalty.
    The eigenvalues compared are those relative to Q + c I. So the floor turns with the
    coordinates and scales with each direction by itself: a weak direction is not lifted
    because another is strong. Where the other side's estimate has all but vanished (Q
    near zero), a share of the penalty is left.

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
    """Return `(F, floored)`, by the kind of the denoiser.

    F is Q - Gamma, floored, for an "argmin" denoiser, and Q for a "posterior" one.

    Examples
    --------
    >>> from amptutorial.denoisers import GaussianPosterior, Ridge
    >>> Q, Gamma, r = np.diag([4.0]), np.diag([1.0]), np.ones(1)
    >>> form_precision(Q, Gamma, r, Ridge(1.0))
    (array([[3.]]), False)
    >>> form_precision(Q, Gamma, r, GaussianPosterior(1.0))
    (array([[4.]]), False)
    """
    posterior = denoiser.precision == "posterior"
    F = Q if posterior else Q - Gamma
    F = (F + F.T) / 2  # a quadratic form sees the symmetric part only
    return (F, False) if posterior else floor_precision(F, Q, denoiser.convexity(r))


@one_thread()
def half_step(P, r, Q, Gamma, denoiser):
    """Form F from the other side's `Q` and the Onsager term `Gamma`; denoise rows `P`.

    Parameters
    ----------
    P : array (N, d)
    r : array (N,)
    Q, Gamma : arrays (d, d)
        The second moment of the other side's estimate, and the Onsager term.
    denoiser : Denoiser

    Returns
    -------
    _HalfStep
        With the F that was used, the estimate (N, d), its mean Jacobian (d, d), the
        denoiser as refitted, and whether F was floored.

    Raises
    ------
    FloatingPointError
        If P, Q, the estimate or its Jacobian is not finite.

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
    check_finite(Q=Q, P=P)
    F, floored = form_precision(Q, Gamma, r, denoiser)
    denoiser = denoiser.refit(P, r, F)
    estimate, jacobian = denoiser.denoise(P, r, F)
    check_finite(estimate=estimate, mean_jacobian=jacobian)
    return _HalfStep(F, estimate, jacobian, denoiser, floored)


@contextmanager
def naming(denoiser, first):
    """Return a context that names the denoiser where its `first` answer is not finite.

    Nothing can have diverged by then: P and F are finite, and of the size of the start.

    Parameters
    ----------
    denoiser : Denoiser, or a pair of them
    first : bool
        Whether the half-steps inside are the first ones.

    Raises
    ------
    FloatingPointError

    Examples
    --------
    >>> from amptutorial.denoisers import Ridge
    >>> with naming(Ridge(1.0), True):
    ...     check_finite(estimate=np.array([np.nan]))
    Traceback (most recent call last):
    ...
    FloatingPointError: the first estimate of Ridge(1) is not finite, though P and F ...
    """
    try:
        yield
    except FloatingPointError as error:
        what = str(error).partition(" ")[0]
        if not first or what not in ("estimate", "mean_jacobian"):
            raise
        names = " or ".join(dict.fromkeys(map(repr, as_pair(denoiser))))
        raise FloatingPointError(
            f"the first {what} of {names} is not finite, though P and F are: look for "
            "a division by zero, and a logarithm or root of what is not positive"
        ) from error


def as_operator(Y):
    """Return the matrix Y, ready for products with tall matrices.

    Raises
    ------
    TypeError, ValueError
        If `Y` is not a `FisherScore`, another `LinearOperator`, or a finite array or
        sparse array.

    Examples
    --------
    >>> as_operator([[1.0, 2.0]])
    array([[1., 2.]])
    """
    if isinstance(Y, LinearOperator):
        return Y
    if not sp.issparse(Y):
        return door.check_matrix(Y, "Y")
    Y = sp.csr_array(Y)
    door.check_matrix(Y.data[:, None], "Y")
    return Y


def random_start(n: int, d: int, rng: np.random.Generator) -> np.ndarray:
    """Return B_0 (n, d) with independent N(0, 1) entries: the start of the paper.

    Examples
    --------
    >>> random_start(3, 2, np.random.default_rng(0)).shape
    (3, 2)
    """
    size = door.check_integer(n, "n", minimum=1), door.check_integer(d, "d", minimum=1)
    return door.check_rng(rng).standard_normal(size)


def check_start(B0, m, n):
    """Return `B0`, read-only, if it is a start (n, d) with 1 <= d <= min(m, n).

    Raises
    ------
    ValueError

    Examples
    --------
    >>> check_start([[1.0], [2.0]], 5, 2).shape
    (2, 1)
    """
    B0 = door.check_matrix(B0, "B0", shape=(n, None))
    if not 1 <= B0.shape[1] <= min(m, n):
        raise ValueError(
            f"B0 has d = {B0.shape[1]} columns; the embedding dimension must be "
            f"between 1 and min(m, n) = {min(m, n)}"
        )
    return read_only(B0)


def denoiser_input(Y, X, X_hat, Gamma, m):
    """Return P = Y X / sqrt(m) - X_hat Gamma: the product minus the Onsager term."""
    P = Y @ X / np.sqrt(m) - _onsager_term(X_hat, Gamma)
    return P.astype(X.dtype, copy=False)


@one_thread()
def _onsager_term(X_hat, Gamma):
    return X_hat @ Gamma


@one_thread()
def second_moment(X, m):
    """Return Q = X^T X / m, in double precision."""
    return (X.T @ X).astype(np.float64) / m


def _damp(new, old, damping):
    """Return (1 - damping) new + damping old."""
    return new if damping == 0 else (1 - damping) * new + damping * old


def iterate_zero(B0, m, denoiser):
    """Return what comes before the first iteration, line 3: A and Gamma^a are zero."""
    A, Gamma = np.zeros((m, B0.shape[1]), B0.dtype), np.zeros((B0.shape[1],) * 2)
    nothing = (Gamma,) * 5  # F_a, F_b, and the three Gamma
    return AMPIterate(-1, A, B0, *nothing, False, False, *denoiser)


def amp_iterates(Y, r_u, r_v, last, damping=0.0):
    """Yield the iterates of Algorithm 1 that follow the `last` one, without end.

    The numbers are its lines, as chapter 7 of the book has them.
    """
    (m, n), Yt = Y.shape, Y.T
    A, B, Gamma_a, Gamma_b = last.A, last.B, last.Gamma_a_next, last.Gamma_b
    G_a, G_b = last.denoiser_a, last.denoiser_b
    for k in count(last.k + 1):
        old = damping if k else 0.0  # there is no estimate A before the first
        P = denoiser_input(Y, B, A, Gamma_a, m)  # 5
        a = half_step(P, r_u, second_moment(B, m), Gamma_a, G_a)  # 4, 6, 7
        A, Gamma_b = _damp(a.estimate, A, old), _damp(a.jacobian, Gamma_b, old)
        P = denoiser_input(Yt, A, B, Gamma_b, m)  # 9
        b = half_step(P, r_v, second_moment(A, m), Gamma_b, G_b)  # 8, 10, 11
        B = _damp(b.estimate, B, damping)
        # 11 sums over the n rows of B and divides by m; b.jacobian is their mean
        Gamma_next = _damp(b.jacobian * (n / m), Gamma_a, damping)
        G_a, G_b = a.denoiser, b.denoiser
        gammas, floored = (Gamma_a, Gamma_b, Gamma_next), (a.floored, b.floored)
        yield AMPIterate(k, A, B, a.F, b.F, *gammas, *floored, G_a, G_b)
        Gamma_a = Gamma_next


def biased_low_rank_amp(
    Y, r_u, r_v, denoiser, *, B0, n_iter=10, damping=0.0, on_iteration=None
) -> AMPRun:
    """Run biased low-rank AMP (`alg:low-ramp`, with both normalisations corrected).

    Parameters
    ----------
    Y : FisherScore, LinearOperator, array or sparse array (m, n)
        The score Y~.
    r_u, r_v : arrays (m,), (n,)
        Bias factors, estimated or true.
    denoiser : Denoiser, or a pair of them
        G_a and G_b: one for both sides, or a pair (rows, columns).
    B0 : array (n, d)
        The start; see `random_start` and `amptutorial.baselines.spectral_start`.
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
    TypeError
        For a denoiser that is not a `Denoiser` or a pair of them.
    FloatingPointError
        If an iterate is no longer finite.

    Warns
    -----
    IndefinitePrecisionWarning
        If F had to be floored in the last iteration (see `half_step`). Each iterate
        records whether its own was.

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
    >>> B0 = b + rng.standard_normal((300, 1))
    >>> run = biased_low_rank_amp(Y, np.ones(200), np.ones(300), Ridge(0.1), B0=B0)
    >>> bool(abs(np.corrcoef(run.A.ravel(), a.ravel())[0, 1]) > 0.9)
    True
    """
    Y = as_operator(Y)
    m, n = Y.shape
    r_u, r_v = door.check_rates(r_u, m, "r_u"), door.check_rates(r_v, n, "r_v")
    B0, denoiser = check_start(B0, m, n), as_pair(denoiser)
    n_iter = door.check_integer(n_iter, "n_iter", minimum=1)
    damping = door.check_positive(damping, "damping", zero=True, below=1)
    stop = door.check_callback(on_iteration, "on_iteration")
    iterates = amp_iterates(Y, r_u, r_v, iterate_zero(B0, m, denoiser), damping)
    run = AMPRun(_collect(islice(iterates, n_iter), stop, denoiser))
    warn_if_floored([it.floored_a or it.floored_b for it in run.iterates])
    return run


@quiet()
def _collect(iterates, stop, denoiser):
    """Return the iterates as a list that ends where `stop` is true."""
    collected = []
    try:
        for iterate in iterates:
            collected.append(iterate)
            if stop(iterate):
                break
    except FloatingPointError as error:
        error.add_note(f"This was in iteration {len(collected)}.")
        with naming(denoiser, not collected):
            raise
    return collected


def warn_if_floored(floored):
    """Warn, with stacklevel 3, if the last of the iterations `floored` an F."""
    if floored[-1]:
        warnings.warn(
            "F was not safely positive definite in the last iteration "
            f"({sum(floored)} of {len(floored)} in all): its eigenvalues were raised, "
            "and the result is not a fixed point of the paper's algorithm",
            IndefinitePrecisionWarning,
            stacklevel=3,
        )
