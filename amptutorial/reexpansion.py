"""Biased low-rank AMP on the likelihood expanded anew around every estimate.

Expanded once, at M = 0, the Poisson likelihood becomes the quadratic one of
`amptutorial.amp`, and where all M_ij are small both have the same state evolution
(chapter 19 of the book). Where M_ij is of order one, as on real text, the two are far
apart, and the estimates of quadratic AMP run away. Here the score is Z - rates at the
current estimate, the biases are refitted at every half-step, and no row moves further
than the expansion can be trusted. Everything else is `amptutorial.amp.half_step`: the
denoisers, F, and the Onsager terms. Where counts come in bursts, the bursts expected
given the counts (`amptutorial.channels`) take the place of Z.

The functions here take counts that have been checked, as a sparse array without empty
rows or columns.
"""

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
import scipy.sparse as sp

from ._counts import without_empty
from .amp import half_step
from .bias import estimate_bias
from .channels import Counts
from .denoisers import Denoiser, GaussianPosterior, as_pair
from .poisson import (
    largest_changes,
    margin_biases,
    own_sums,
    products_of_pairs,
    tilted_covariances,
    tilted_means,
    with_own_sums,
)
from .sampling import Part, apply, columns_for
from .score import FisherScore
from .spectrum import shrink

REACH = 1.0  # the most that one step may change any M_ij
SETTLED = 1e-3  # a row whose step changes no M_ij by more has converged
COUNTS = Counts()
BY_ROW = "X", "r", "bias", "step", "length", "reach"  # what a side has for each row
LARGEST_LOG_RATE = 50.0  # of a single pair, on the way: larger ones say no more


@dataclass(frozen=True)
class Side:
    """What an iteration knows about the rows, or about the columns.

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
        return replace(self, **{name: getattr(self, name)[index] for name in BY_ROW})

    def with_rows(self, sides):
        """Return this side with the rows of others, one after another."""
        stacked = {
            name: np.concatenate([getattr(side, name) for side in sides])
            for name in BY_ROW
        }
        return replace(self, **stacked)


def columns_of(this, other, m, rng=None, times=1):
    """Return the `Columns` that sums for rows of `this` run over: rows of `other`.

    Parameters
    ----------
    this, other : Side
    m : int
        Number of rows that M = U V^T / sqrt(m) refers to.
    rng, times
        As for `amptutorial.sampling.Columns`.
    """
    return columns_for(this.X, this.r, scaled_rows(other, m), other.bias, rng, times)


def scaled_rows(side, m):
    """Return W = X / sqrt(m) in the precision of X: M = U W^T."""
    return side.X / sqrt(m)  # divided by a float64 of NumPy, single becomes double


def reexpanded_half_step(Z, this, other, m, parts=None):
    """Update `this` side by one half-step on the likelihood expanded at the estimate.

    The score at M is Z - rates, with the biases refitted, in place of Z - r_u r_v^T at
    M = 0. The information stays r_u r_v^T. Where the rates are larger than r_u r_v^T, a
    full step goes too far: so a row that turns back takes half the step from then on,
    and no row changes an M_ij by more than `REACH`.

    Parameters
    ----------
    Z : array or sparse array (N, N_other)
        The counts, with the rows that belong to `this`; a csr_array if sums run over
        samples.
    this, other : Side
    m : int
        Number of rows that M = U V^T / sqrt(m) refers to.
    parts : list of Part, optional
        Which rows of `other` the sums run over, as from `Columns.parts`; without it,
        over all of them.

    Returns
    -------
    Side
        `this`, updated.
    """
    W, totals = scaled_rows(other, m), Z.sum(axis=1)
    parts = parts or [Part(slice(None), W, other.bias)]
    Q, own = scaled_moment(other, m), own_sums(Z, this.X, W, parts)
    P, bias = reexpanded_input(Z @ W, totals, own, this, Q, other.Gamma, parts)
    half = half_step(P, this.r, Q, other.Gamma, this.denoiser)
    moved, safe = move_rows(replace(this, bias=bias), half.estimate, parts)
    share = safe.mean(dtype=np.float64)
    return with_onsager(moved, half.denoiser, half.jacobian, share, m)


def scaled_moment(side, m):
    """Return Q = B^T B / m, of the scaled rows B of a side."""
    B = np.sqrt(side.r)[:, None] * side.X
    return B.T @ B / m


def reexpanded_input(product, totals, own, this, Q, Gamma, parts):
    """Return what a half-step denoises, and the biases refitted on the way.

    Each row by itself, as is `move_rows`: some of the rows are enough.

    Parameters
    ----------
    product, totals : arrays (N, d), (N,)
        Z W, where M = U W^T for the rows U of `this`, and the row sums of Z.
    own : tuple
        As from `amptutorial.poisson.own_sums`.
    this : Side
    Q, Gamma : arrays (d, d)
        The second moment of the other side, and its Onsager term.
    parts : list
        As for `reexpanded_half_step`.

    Returns
    -------
    P : array (N, d)
    bias : array (N,)
    """
    log_sums, means = with_own_sums(*apply(tilted_means, parts, this.X), own)
    # the derivative of the log-likelihood by the rows of X
    score = product - totals[:, None] * means
    root = np.sqrt(this.r)[:, None]
    P = score / root + root * this.X @ (Q - Gamma)
    return P, totals * np.exp(-log_sums.astype(np.float64))


def move_rows(this, estimate, parts):
    """Move rows towards their denoised inputs, as far as that is safe.

    Parameters
    ----------
    this : Side
    estimate : array (N, d)
        Of the scaled rows.
    parts : list
        As for `reexpanded_half_step`.

    Returns
    -------
    this : Side
        The rows where they are now.
    safe : array (N,)
        The fraction of its step that each row has taken.
    """
    root, dtype = np.sqrt(this.r)[:, None], this.X.dtype
    step = ((estimate - root * this.X) / root).astype(dtype)
    turns_back = (step * this.step).sum(axis=1) < 0
    longer = np.minimum(1, 1.5 * this.length)
    length = np.where(turns_back, this.length / 2, longer).astype(dtype)
    reach = apply(lambda step, W, _: reach_of(step, W), parts, step)
    safe = np.minimum(length, REACH / np.maximum(reach, REACH))
    X = this.X + safe[:, None] * step
    return replace(this, X=X, step=step, length=length, reach=reach), safe


def with_onsager(side, denoiser, jacobian, share, m):
    """Return the side after a half-step, with the Onsager term that it now causes.

    Parameters
    ----------
    side : Side
        With its rows moved.
    denoiser : Denoiser
        As refitted.
    jacobian : array (d, d)
        Its mean over all rows.
    share : float
        The mean fraction of their steps that the rows have taken: Gamma is damped as
        the rows are.
    m : int
    """
    Gamma = (1 - share) * side.Gamma + share * jacobian * (len(side.X) / m)
    return replace(side, denoiser=denoiser, Gamma=Gamma)


def reach_of(step, W):
    """Return how far a full step of each row changes any M_ij, if further than `REACH`.

    Parameters
    ----------
    step, W : arrays (N, d), (N_other, d)

    Returns
    -------
    array (N,)
        max_j |step_i . w_j|, or an upper bound on it that is itself within `REACH`.

    Examples
    --------
    >>> reach_of(np.array([[0.5, 0.0], [3.0, 0.0]]), np.array([[0.0, 1.0], [0.1, 0.0]]))
    array([0.5, 0.3])
    """
    with np.errstate(over="ignore"):  # an infinite bound is far, and not kept
        bound = np.linalg.norm(step, axis=1) * np.linalg.norm(W, axis=1).max()
    far = bound > REACH
    if far.any():
        bound[far] = largest_changes(step[far], W)
    return bound


def expected_bursts(Z, channel, rows, columns, m):
    """Return the bursts expected given the counts, at the rates of both sides.

    Parameters
    ----------
    Z : csr_array (m, n)
        Counts.
    channel : Channel
    rows, columns : Side
    m : int
        As for `reexpanded_half_step`.

    Returns
    -------
    csr_array (m, n)
        With the pairs of `Z`.
    """
    if not channel.follows_rate:
        return same_pairs(Z, channel.bursts(Z.data, 0.0))
    i, j = Z.tocoo(copy=False).coords
    log_rate = products_of_pairs(rows.X, columns.X, i, j) / np.sqrt(m)
    with np.errstate(divide="ignore"):  # a row without counts has the rate 0
        log_rate += np.log(rows.bias)[i] + np.log(columns.bias)[j]
    rate = np.exp(np.minimum(log_rate, LARGEST_LOG_RATE))
    return same_pairs(Z, channel.bursts(Z.data, rate))


def same_pairs(Z, values):
    """Return a csr_array that stores `values` for the pairs of `Z`."""
    return sp.csr_array((values, Z.indices, Z.indptr), shape=Z.shape)


def iterated_sides(Z, rows, columns, m, channel=COUNTS, rng=None, times=1):
    """Yield both sides after one more iteration, again and again.

    The biases of the rows are refitted to both sides as they are yielded.

    Parameters
    ----------
    Z : csr_array (m, n)
        Counts.
    rows, columns : Side
        As from `starting_sides`.
    m : int
    channel : Channel
        How bursts become counts: the embedding is fitted to the bursts.
    rng : numpy.random.Generator, optional
        With it, sums over many rows or columns are estimated (`amptutorial.sampling`).
    times : float
        How many times the usual size samples have.

    Yields
    ------
    rows, columns : Side
    """

    def update(N, this, other):
        columns = columns_of(this, other, m, rng, times)
        parts = columns.parts(this.X, N.sum(axis=1))
        return reexpanded_half_step(N, this, other, m, parts)

    def tables(rows, columns):
        N = expected_bursts(Z, channel, rows, columns, m)
        return N, N.T.tocsr()

    iterates = alternated(update, tables, rows, columns, channel.follows_rate)
    return ((rows, columns) for rows, columns, _ in iterates)


def alternated(update, tables, rows, columns, anew=False, moved=None):
    """Yield both sides after one more iteration of given half-steps, again and again.

    Parameters
    ----------
    update : callable
        ``update(N, this, other)`` returns `this` after a half-step on the table N.
    tables : callable
        ``tables(rows, columns)`` returns the table for the rows, and for the columns.
    rows, columns : Side
    anew : bool
        Whether the tables change with the sides.
    moved : Side, optional
        With all that was yielded last, the iteration goes on.

    Yields
    ------
    rows, columns, moved : Side
        `moved` is what the rows become in the next iteration.
    """
    N, Nt = tables(rows, columns)
    moved = moved or update(N, rows, columns)
    while True:
        columns = update(Nt, columns, moved)
        rows, moved = moved, update(N, moved, columns)
        rows = replace(rows, bias=moved.bias)
        yield rows, columns, moved
        if anew:
            N, Nt = tables(rows, columns)


def new_side(X, r, denoiser):
    """Return a `Side` that has not moved yet, with the counted biases `r`."""
    d, ones = X.shape[1], np.ones(len(X), dtype=X.dtype)
    return Side(
        X=X,
        r=r,
        bias=r,
        denoiser=denoiser,
        Gamma=np.zeros((d, d)),
        step=np.zeros_like(X),
        length=ones,
        reach=ones,
    )


def leading_directions(Z, d, rng):
    """Return the leading right singular vectors of the score, and what they explain.

    Parameters
    ----------
    Z : sparse array (m, n)
        Counts; rows and columns may be empty.
    d : int
    rng : numpy.random.Generator

    Returns
    -------
    V : array (n, d)
        Orthonormal columns, by a few steps of orthogonal iteration; zero where a column
        of `Z` has no counts.
    variance : float
        The mean of M_ij^2 with the weights r_u_i r_v_j: the sum of the squares of the
        shrunken singular values, divided by the total count. A direction inside the
        noise counts as sqrt(m n), the largest square that the noise can hide.
    """
    some, _, columns = without_empty(Z)
    Y, V = FisherScore(some, *estimate_bias(some)), np.zeros((Z.shape[1], d))
    directions, strength = directions_of_score(Y, d, rng)
    V[columns, : directions.shape[1]] = directions
    return V, strength / float(Z.sum())


def directions_of_score(Y, d, rng):
    """Return leading right singular vectors of a score, and their squared strength.

    Parameters
    ----------
    Y : LinearOperator (m, n)
    d : int
    rng : numpy.random.Generator

    Returns
    -------
    directions : array (n, min(d, n))
    strength : float
        As for `leading_directions`, before the division.
    """
    m, n = Y.shape
    directions = rng.standard_normal((n, d))
    for _ in range(4):
        directions = np.linalg.qr(Y.T @ (Y @ directions))[0]
    signal = shrink(np.linalg.svd(Y @ directions, compute_uv=False), m, n)
    return directions, float(np.maximum(signal**2, np.sqrt(m * n)).sum())


def starting_sides(r_u, r_v, denoiser, V, scale):
    """Return both sides before the first iteration, in single precision.

    U = 0, and each row of V keeps its direction only. Its length becomes that of rows
    drawn from a prior of variance `scale`, sqrt(d scale), because most of the length of
    singular vectors sits in few rows: in rare words of few documents.

    Parameters
    ----------
    r_u, r_v : arrays (m,), (n,)
        Counted biases.
    denoiser : Denoiser, or a pair of them
        One for both sides, or a pair (rows, columns).
    V : array (n, d)
        Such as from `leading_directions`.
    scale : float

    Returns
    -------
    rows, columns : Side
    """
    denoiser_u, denoiser_v = as_pair(denoiser)
    d, lengths = V.shape[1], np.linalg.norm(V, axis=1, keepdims=True)
    V = V * np.sqrt(d * scale) / np.maximum(lengths, 1e-300)
    return (
        new_side(np.zeros((len(r_u), d), dtype=np.float32), r_u, denoiser_u),
        new_side(V.astype(np.float32), r_v, denoiser_v),
    )


def settle_rows(Z, this, other, m, channel=COUNTS, max_iter=200, columns=None):
    """Return `this` side moved until each row has converged, with the other held fixed.

    Rows that have converged stay where they are, so that the result for one row does
    not depend on the others, unless a minimiser's F has to be floored: the floor is
    common to the rows that still move. The biases are refitted to the result.

    Parameters
    ----------
    Z : csr_array (N, N_other)
        The counts, with the rows that belong to `this`.
    this, other : Side
    m : int
        Number of rows that M = U V^T / sqrt(m) refers to.
    channel : Channel
        As for `iterated_sides`.
    max_iter : int
        The largest number of half-steps.
    columns : Columns, optional
        What sums run over, if not over all rows of `other`. A row keeps its sample.

    Returns
    -------
    Side
    """
    columns = columns or columns_of(this, other, m)
    this = replace(this, denoiser=this.denoiser.frozen())
    settled, totals = this.X.copy(), np.empty(len(this.X))
    N = expected_bursts(Z, channel, this, other, m)
    for part in columns.parts(this.X, N.sum(axis=1)):
        rows, part = part.rows, [part._replace(rows=slice(None))]
        moving, side, N_moving = np.arange(len(this.X))[rows], this.take(rows), N[rows]
        for _ in range(max_iter):
            side = reexpanded_half_step(N_moving, side, other, m, part)
            settled[moving], totals[moving] = side.X, N_moving.sum(axis=1)
            going = side.reach > SETTLED
            if not going.any():
                break
            moving, side, N_moving = moving[going], side.take(going), N_moving[going]
            if channel.follows_rate:
                N_moving = expected_bursts(Z[moving], channel, side, other, m)
    return replace(this, X=settled, bias=margin_biases(totals, settled, columns))


def posterior_covariances(this, other, m):
    """Return the covariance of every row of `this`, given the other side.

    It is (C^-1 + I_i)^-1, where C is the covariance of the Gaussian prior and I_i the
    Fisher information on row i at the fitted rates, the bias of the row being unknown.

    Parameters
    ----------
    this, other : Side
        `this` with a `GaussianPosterior`, both in double precision.
    m : int
        Number of rows that M = U V^T / sqrt(m) refers to.

    Returns
    -------
    array (N, d, d)
    """
    W = scaled_rows(other, m)
    sums, covariances = tilted_covariances(this.X, W, other.bias)
    information = (this.bias * sums)[:, None, None] * covariances
    return np.linalg.inv(np.linalg.inv(prior_covariance(this)) + information)


def prior_covariance(side):
    """Return the covariance (d, d) of the Gaussian prior of a side."""
    covariance, d = side.denoiser.covariance, side.X.shape[1]
    return covariance * np.eye(d) if np.ndim(covariance) == 0 else covariance


def balanced_sides(rows, columns):
    """Return both sides in coordinates where A^T A = B^T B is diagonal, largest first.

    In each, the largest entry of A is positive, whichever sign the decomposition gave.
    M does not change. Only Gaussian priors can follow the change of coordinates; sides
    with other denoisers are returned as they are.
    """
    sides = rows, columns
    if not all(isinstance(side.denoiser, GaussianPosterior) for side in sides):
        return sides
    A, B = (np.sqrt(side.r)[:, None] * side.X for side in sides)
    R_u, R_v = (np.linalg.qr(scaled)[1] for scaled in (A, B))
    left, sigma, right = np.linalg.svd(R_u @ R_v.T)
    T_u = np.linalg.pinv(R_u) @ (left * np.sqrt(sigma))
    T_v = np.linalg.pinv(R_v) @ (right.T * np.sqrt(sigma))
    A = A @ T_u
    signs = np.where(A.max(axis=0) < -A.min(axis=0), -1, 1)
    changes = (rows, T_u * signs), (columns, T_v * signs)
    return tuple(_change_coordinates(side, T) for side, T in changes)


def _change_coordinates(side, T):
    """Return the side with rows X T and the prior, the Onsager term to match."""
    d, covariance = len(T), T.T @ prior_covariance(side) @ T
    # symmetric, but for round-off
    covariance = np.tril(covariance) + np.tril(covariance, -1).T
    # a direction may have been lost
    covariance += 1e-9 * max(np.trace(covariance), 1e-9) * np.eye(d)
    X, Gamma = (side.X @ T).astype(side.X.dtype), T.T @ side.Gamma @ T
    return replace(side, X=X, denoiser=GaussianPosterior(covariance), Gamma=Gamma)
