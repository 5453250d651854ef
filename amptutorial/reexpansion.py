"""Biased low-rank AMP on the Poisson likelihood expanded around the current estimate, again and again.

Expanded once, at M = 0, the likelihood is the quadratic one of `amptutorial.amp`. Where
M_ij is of order one, as on real text, that is far from the Poisson likelihood, and
estimates run away. Here the score is Z - rates at the current estimate, the biases are
refitted at every half-step, and no row goes further than the expansion can be trusted.
Everything else is `amptutorial.amp.half_step`: the denoisers, F, and the Onsager terms.
"""

from dataclasses import dataclass, replace

import numpy as np

from .amp import half_step
from .bias import drop_empty, estimate_bias
from .denoisers import Denoiser, GaussianPosterior
from .poisson import largest_changes, margin_biases, tilted_means
from .score import FisherScore
from .spectrum import shrink

REACH = 1.0  # the most that one step may change any M_ij
SETTLED = 1e-3  # a row whose step changes no M_ij by more has converged


@dataclass(frozen=True)
class Side:
    """One side of the factorisation: what an iteration knows about the rows, or about the columns.

    Attributes
    ----------
    X : array (N, d)
        The estimate of U or V; its precision is that of the exponentials.
    r : array (N,)
        Counted biases: r_u_i r_v_j is the information on M_ij.
    bias : array (N,)
        Biases refitted given the embedding.
    denoiser : Denoiser
    Gamma : array (d, d)
        The Onsager term that this side causes on the other one.
    step : array (N, d)
        The full step that the last update of each row wanted to take.
    length : array (N,)
        The largest fraction of its step that each row may take.
    reach : array (N,)
        A bound on the change of any M_ij by the full step.
    """

    X: np.ndarray
    r: np.ndarray
    bias: np.ndarray
    denoiser: Denoiser
    Gamma: np.ndarray
    step: np.ndarray
    length: np.ndarray
    reach: np.ndarray

    def take(self, index):
        """Return this side with the rows at `index` only."""
        by_row = ("X", "r", "bias", "step", "length", "reach")
        return replace(self, **{name: getattr(self, name)[index] for name in by_row})


def reexpanded_half_step(Z, this, other, m):
    """Update `this` side by one AMP half-step on the likelihood expanded around the current estimate.

    The score at M is Z - rates, with the biases refitted, in place of Z - r_u r_v^T at
    M = 0; the information r_u r_v^T stays. Where the rates are larger than that says, a
    full step overshoots: a row that turns back takes half the step from then on, and
    none changes an M_ij by more than `REACH`.

    Parameters
    ----------
    Z : array or sparse array (N, N_other)
        The counts, with the rows that belong to `this`.
    this, other : Side
    m : int
        Number of rows that M = U V^T / sqrt(m) refers to.

    Returns
    -------
    Side
        `this`, updated.
    """
    W = other.X / np.sqrt(m)
    log_sums, means = tilted_means(this.X, W, other.bias)
    totals = np.asarray(Z.sum(axis=1), dtype=np.float64)
    # the derivative of the log-likelihood by the rows of X
    score = Z @ W - totals[:, None] * means

    root = np.sqrt(this.r)[:, None]
    A, B = root * this.X, np.sqrt(other.r)[:, None] * other.X
    Q = B.T @ B / m
    half = half_step(
        score / root + A @ (Q - other.Gamma), this.r, Q, other.Gamma, this.denoiser
    )

    step = ((half.estimate - A) / root).astype(this.X.dtype)
    turns_back = (step * this.step).sum(axis=1) < 0
    length = np.where(
        turns_back, this.length / 2, np.minimum(1, 1.5 * this.length)
    ).astype(this.X.dtype)
    reach = _reach(step, W)
    safe = np.minimum(length, REACH / np.maximum(reach, REACH))
    moved = safe.mean(dtype=np.float64)  # Gamma is damped as the rows are
    return Side(
        X=this.X + safe[:, None] * step,
        r=this.r,
        bias=totals * np.exp(-log_sums.astype(np.float64)),
        denoiser=half.denoiser,
        Gamma=(1 - moved) * this.Gamma + moved * half.jacobian * (len(A) / m),
        step=step,
        length=length,
        reach=reach,
    )


def _reach(step, W):
    """Return the largest |step_i . w_j| over j, or an upper bound on it where that is within `REACH` already."""
    bound = np.linalg.norm(step, axis=1) * np.linalg.norm(W, axis=1).max()
    far = bound > REACH
    if far.any():
        bound[far] = largest_changes(step[far], W)
    return bound


def iterate(Z, rows, columns, m):
    """Yield both sides after one more iteration, again and again, the biases of the rows refitted to each."""
    Zt = Z.T.tocsr()
    moved = reexpanded_half_step(Z, rows, columns, m)
    while True:
        columns = reexpanded_half_step(Zt, columns, moved, m)
        rows, moved = moved, reexpanded_half_step(Z, moved, columns, m)
        yield replace(rows, bias=moved.bias), columns


def new_side(X, r, denoiser):
    """Return a `Side` that has not moved yet, with the counted biases `r`."""
    none, ones = np.zeros((X.shape[1], X.shape[1])), np.ones(len(X), dtype=X.dtype)
    return Side(
        X,
        r,
        bias=r,
        denoiser=denoiser,
        Gamma=none,
        step=np.zeros_like(X),
        length=ones,
        reach=ones,
    )


def leading_directions(Z, d, rng):
    """Return the leading right singular vectors of the score of `Z`, and how much of M they explain.

    Parameters
    ----------
    Z : sparse array (m, n)
        Counts.
    d : int
    rng : numpy.random.Generator

    Returns
    -------
    V : array (n, d)
        Orthonormal columns, by a few steps of orthogonal iteration; zero where a column
        of `Z` has no counts.
    variance : float
        Of the M_ij, averaged with the weights r_u_i r_v_j: the squares of the shrunken
        singular values, by the total count. A direction inside the noise counts with
        the largest square, sqrt(m n), that the noise can hide.
    """
    some, _, columns = drop_empty(Z)
    m, n = some.shape
    Y = FisherScore(some, *estimate_bias(some))
    directions = rng.standard_normal((n, d))
    for _ in range(4):
        directions = np.linalg.qr(Y.T @ (Y @ directions))[0]
    signal = shrink(np.linalg.svd(Y @ directions, compute_uv=False), m, n)
    V = np.zeros((Z.shape[1], d))
    V[columns, : directions.shape[1]] = directions
    return V, float(np.maximum(signal**2, np.sqrt(m * n)).sum() / Z.sum())


def start(Z, denoiser_u, denoiser_v, V, scale):
    """Return both sides before the first iteration, in single precision: U = 0, V in the given directions.

    Each row of V gets the length sqrt(d `scale`) of rows drawn from a prior of variance
    `scale`. Of singular vectors only the directions are kept: most of their length sits
    in few rows, of rare words in few documents.
    """
    r_u, r_v = estimate_bias(Z)
    d = V.shape[1]
    V = (
        V
        * np.sqrt(d * scale)
        / np.maximum(np.linalg.norm(V, axis=1, keepdims=True), 1e-300)
    )
    return (
        new_side(np.zeros((len(r_u), d), dtype=np.float32), r_u, denoiser_u),
        new_side(V.astype(np.float32), r_v, denoiser_v),
    )


def settle(Z, this, other, m, max_iter=200):
    """Return `this` side after half-steps of its own, the other one held fixed, until each of its rows has converged.

    Rows that have converged stay where they are, so that no row depends on which others
    are there. The biases are those that go with the result.
    """
    this = replace(this, denoiser=this.denoiser.frozen())
    X, moving, side = this.X.copy(), np.arange(len(this.X)), this
    for _ in range(max_iter):
        side = reexpanded_half_step(Z[moving], side, other, m)
        X[moving] = side.X
        going = side.reach > SETTLED
        if not going.any():
            break
        moving, side = moving[going], side.take(going)
    totals = np.asarray(Z.sum(axis=1), dtype=np.float64)
    return replace(
        this, X=X, bias=margin_biases(totals, X, other.X / np.sqrt(m), other.bias)
    )


def balance(rows, columns):
    """Return both sides in the coordinates in which A^T A = B^T B is diagonal, largest first; M does not change.

    Only Gaussian priors can follow the change of coordinates; other denoisers keep
    theirs.
    """
    if not all(
        isinstance(side.denoiser, GaussianPosterior) for side in (rows, columns)
    ):
        return rows, columns
    R_u, R_v = (
        np.linalg.qr(np.sqrt(side.r)[:, None] * side.X)[1] for side in (rows, columns)
    )
    left, sigma, right = np.linalg.svd(R_u @ R_v.T)
    return tuple(
        _change_coordinates(side, np.linalg.pinv(R) @ (E * np.sqrt(sigma)))
        for side, R, E in ((rows, R_u, left), (columns, R_v, right.T))
    )


def _change_coordinates(side, T):
    d = len(T)
    covariance = side.denoiser.covariance
    covariance = (
        T.T @ (covariance * np.eye(d) if np.ndim(covariance) == 0 else covariance) @ T
    )
    # a direction may have been lost
    covariance += 1e-9 * max(np.trace(covariance), 1e-9) * np.eye(d)
    X, Gamma = (side.X @ T).astype(side.X.dtype), T.T @ side.Gamma @ T
    return replace(side, X=X, denoiser=GaussianPosterior(covariance), Gamma=Gamma)
