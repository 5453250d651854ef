"""Biased low-rank AMP on the likelihood expanded anew around every estimate.

Expanded once, at M = 0, the Poisson likelihood becomes the quadratic one of
`amptutorial.amp`, and where all M_ij are small both have the same state evolution
(appendix on proofs). Where M_ij is of order one, as on real text, the two are far
apart, and the estimates of quadratic AMP run away. Here the score is Z - rates at the
current estimate, the biases are refitted at every half-step, and no row moves further
than the expansion can be trusted. Everything else is `amptutorial.amp.half_step`: the
denoisers, F, and the Onsager terms. Where counts come in bursts, the bursts expected
given the counts (`amptutorial.channels`) take the place of Z.

The functions here take the counts as an `amptutorial.table.Table`, which they ask for
sums.
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from math import sqrt

import numpy as np

from ._validation import covariance_matrix, quiet, read_only
from .amp import half_step, naming
from .biases import margin_biases
from .channels import COUNTS
from .denoisers import Denoiser, GaussianPosterior, as_pair
from .sampling import exact
from .score import blocks
from .sums import map_blocks

REACH = 1.0  # the most that one step may change any M_ij
SETTLED = 1e-3  # a row whose step changes no M_ij by more has converged
SETTLED_AT_ONCE = 2**22  # entries of the Hessians of rows that settle together
# the fields of a `Side` with one entry for each row
BY_ROW = "X", "r", "bias", "step", "length", "reach"


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

    def in_double(self):
        """Return this side with the estimate in double precision."""
        return replace(self, X=self.X.astype(np.float64))

    def with_rows(self, sides):
        """Return this side with the rows of others, one after another."""
        parts = {name: [getattr(side, name) for side in sides] for name in BY_ROW}
        return replace(self, **{k: np.concatenate(each) for k, each in parts.items()})


def sample_of(this, other, m, sampler=exact):
    """Return what sums for rows of `this` run over: rows of `other`.

    Parameters
    ----------
    this, other : Side
    m : int
        Number of rows that M = U V^T / sqrt(m) refers to.
    sampler : amptutorial.sampling.Sampler
    """
    return sampler(this.X, this.r, scaled_rows(other, m), other.bias)


def scaled_rows(side, m):
    """Return W = X / sqrt(m) in the precision of X: M = U W^T."""
    return side.X / sqrt(m)  # divided by a float64 of NumPy, single becomes double


def reexpanded_half_step(table, this, other, m, sample=None):
    """Update `this` side by one half-step on the likelihood expanded at the estimate.

    The score at M is Z - rates, with the biases refitted, in place of Z - r_u r_v^T at
    M = 0. The information stays r_u r_v^T. Where the rates are larger than r_u r_v^T, a
    full step goes too far: so a row that turns back takes half the step from then on,
    and no row changes an M_ij by more than `REACH`.

    Parameters
    ----------
    table : amptutorial.table.Table (N, N_other)
        The counts, with the rows that belong to `this`.
    this, other : Side
    m : int
        Number of rows that M = U V^T / sqrt(m) refers to.
    sample : AllColumns or amptutorial.sampling.ColumnSample, optional
        Which rows of `other` the sums run over, as from `sample_of`; without it, over
        all of them.

    Returns
    -------
    Side
        `this`, updated.
    """
    B, root = np.sqrt(other.r)[:, None] * other.X, np.sqrt(this.r)[:, None]
    Q, Gamma = B.T @ B / m, other.Gamma
    sample = sample or sample_of(this, other, m)
    sums = sample.for_rows(this.X, table.totals if sample.sampled else None)
    score, bias = _score(table, this, sums)
    P = score / root + root * this.X @ (Q - Gamma)
    with naming(this.denoiser, not this.step.any()):
        half = half_step(P, read_only(this.r), Q, Gamma, this.denoiser)

    moved, taken = _moved(table, this, (half.estimate - root * this.X) / root, sums)
    share = taken.mean(dtype=np.float64)  # Gamma is damped as the rows are
    Gamma = (1 - share) * this.Gamma + share * half.jacobian * (len(taken) / m)
    return replace(moved, bias=bias, denoiser=half.denoiser, Gamma=Gamma)


def _score(table, this, sums):
    """Return the derivative of the log-likelihood by the rows of X, and their biases.

    The biases are refitted to the rows as they are.
    """
    product, log_sums, means = table.sums(this.X, sums)
    bias = table.totals * np.exp(-log_sums.astype(np.float64))
    return product - table.totals[:, None] * means, bias


def _moved(table, this, step, sums):
    """Return `this` side after steps of its rows, and the fractions of them taken."""
    step = step.astype(this.X.dtype)
    turns_back = (step * this.step).sum(axis=1) < 0
    longer = np.minimum(1, 1.5 * this.length)
    length = np.where(turns_back, this.length / 2, longer).astype(step.dtype)
    reach = table.reach(step, sums, REACH)
    taken = np.minimum(length, REACH / np.maximum(reach, REACH))
    X = this.X + taken[:, None] * step
    return replace(this, X=X, step=step, length=length, reach=reach), taken


def next_sides(table, rows, columns, ahead, m, sampler=exact):
    """Return both sides after one more iteration, and what the rows become in the next.

    Parameters
    ----------
    table : amptutorial.table.Table (m, n)
    rows, columns : Side
        As from `starting_sides`, or the iteration before.
    ahead : Side, or None
        As from the iteration before; None in the first.
    m : int
    sampler : amptutorial.sampling.Sampler

    Returns
    -------
    rows, columns, ahead : Side
        The biases of the rows are refitted to both sides.
    """

    def update(table, this, other):
        sample = sample_of(this, other, m, sampler)
        return reexpanded_half_step(table, this, other, m, sample)

    rows = ahead or update(table, rows, columns)
    columns = update(table.T, columns, rows)
    ahead = update(table, rows, columns)
    return replace(rows, bias=ahead.bias), columns, ahead


def new_side(X, r, denoiser):
    """Return a `Side` that has not moved yet, with the counted biases `r`."""
    d, ones = X.shape[1], np.ones(len(X), dtype=X.dtype)
    still = {"step": np.zeros_like(X), "length": ones, "reach": ones}
    return Side(X, r, bias=r, denoiser=denoiser, Gamma=np.zeros((d, d)), **still)


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
        Such as from `amptutorial.table.Table.leading_directions`.
    scale : float

    Returns
    -------
    rows, columns : Side
    """
    denoiser_u, denoiser_v = as_pair(denoiser)
    d, lengths = V.shape[1], np.linalg.norm(V, axis=1, keepdims=True)
    V = V * np.sqrt(d * scale) / np.maximum(lengths, 1e-300)
    U, V = np.zeros((len(r_u), d), dtype=np.float32), V.astype(np.float32)
    return new_side(U, r_u, denoiser_u), new_side(V, r_v, denoiser_v)


def settle_rows(table, this, other, m, channel=COUNTS, max_iter=200, sample=None):
    """Return `this` side moved until each row has converged, with the other held fixed.

    Rows that have converged stay where they are, so that the result for one row does
    not depend on the others, unless a minimiser's F has to be floored: the floor is
    common to the rows that still move. The biases are refitted to the result.

    Under a Gaussian prior, a row takes steps of Newton's method, with the approximate
    Hessian of `_row_covariances`; under others, half-steps.

    Parameters
    ----------
    table : amptutorial.table.Table (N, N_other)
        The counts, with the rows that belong to `this`.
    this, other : Side
    m : int
        Number of rows that M = U V^T / sqrt(m) refers to.
    channel : Channel
        How bursts become counts: the rows are fitted to the bursts.
    max_iter : int
        The largest number of steps.
    sample : AllColumns or amptutorial.sampling.ColumnSample, optional
        What sums run over, if not over all rows of `other`. A row keeps its sample.

    Returns
    -------
    Side
    """
    sample = sample or sample_of(this, other, m)
    this = replace(this, denoiser=this.denoiser.frozen())
    settled, totals = this.X.copy(), np.empty(len(this.X))
    bursts = table.fitted_bursts(channel, this, other, m)
    newton = isinstance(this.denoiser, GaussianPosterior)
    for block, sums in _in_blocks(sample.for_rows(this.X, bursts.totals), this.X):
        side, N, moving = this.take(block), bursts[block], np.arange(len(block))
        if newton:
            covariances = _row_covariances(N, side, other, m)
        for _ in range(max_iter):
            if newton:
                side = _newton_step(N, side, other, sums, covariances[moving])
            else:
                side = reexpanded_half_step(N, side, other, m, sums)
            settled[block[moving]], totals[block[moving]] = side.X, N.totals
            going = side.reach > SETTLED
            if not going.any():
                break
            moving, side, N = moving[going], side.take(going), N[going]
            if channel.follows_rate or table.gaps:
                N = table[block[moving]].fitted_bursts(channel, side, other, m)
    return replace(this, X=settled, bias=margin_biases(totals, settled, sample))


def _in_blocks(sums, X):
    """Yield the indices of rows that settle together, and their sums."""
    every, d = np.arange(len(X)), X.shape[1]
    for rows, part in sums.parts:
        index = every[rows]
        for some in blocks(len(index), SETTLED_AT_ONCE // d**2):
            yield index[some], part


def _newton_step(table, this, other, sums, covariances):
    """Return `this` side after a step of Newton's method, under a Gaussian prior.

    The `covariances` are approximate inverse Hessians, from where the rows began.
    """
    score, bias = _score(table, this, sums)
    prior = this.X @ np.linalg.inv(prior_covariance(this))
    onsager = this.r[:, None] * (this.X @ other.Gamma)
    gradient = (score - prior - onsager).astype(this.X.dtype)
    step = np.einsum("ikl,il->ik", covariances, gradient)
    return replace(_moved(table, this, step, sums)[0], bias=bias)


def _row_covariances(table, this, other, m):
    """Return about how uncertain the rows of `this` are: inverse Hessians, for steps.

    The information of T counts on row i, T times the covariance of the w_j under its
    rates, is about the mean of two things that take no exponentials: the same at the
    counts themselves, and r_u_i times the information at M = 0. The first one knows the
    directions of the words that the row has, the second one all others. Added are the
    precision of the prior and the Onsager term. A wrong one costs steps, and changes no
    result.

    Parameters
    ----------
    table : amptutorial.table.Table (N, N_other)
        The counts, none of whose rows is empty.
    this, other : Side
        `this` with a `GaussianPosterior`.
    m : int
        Number of rows that M = U V^T / sqrt(m) refers to.

    Returns
    -------
    array (N, d, d)
        In the precision of X.
    """
    W, Z = scaled_rows(other, m), table.Z
    information = (W * other.r[:, None]).T @ W
    found = this.r[:, None, None] * (information / 2 + other.Gamma)
    found += np.linalg.inv(prior_covariance(this))
    for i, (begin, end) in enumerate(pairwise(Z.indptr)):
        z, w = Z.data[begin:end], W[Z.indices[begin:end]]
        w = w - z @ w / z.sum()
        found[i] += (w.T * z) @ w / 2
    return np.linalg.inv(found).astype(this.X.dtype)


def posterior_covariances(this, other, m, gaps=None, channel=COUNTS):
    """Return the covariance of every row of `this`, given the other side.

    It is (C^-1 + I_i)^-1, where C is the covariance of the Gaussian prior and I_i the
    Fisher information on row i at the fitted rates, the bias of the row being unknown.

    Parameters
    ----------
    this, other : Side
        `this` with a `GaussianPosterior`, both in double precision.
    m : int
        Number of rows that M = U V^T / sqrt(m) refers to.
    gaps : csr_array (N, n), optional
        One where a pair was not observed, and tells nothing.
    channel : Channel
        How much of the information of bursts the counts show, if it saturates.

    Returns
    -------
    array (N, d, d)
    """
    W, (N, d) = scaled_rows(other, m), this.X.shape
    squares = (W[:, :, None] * W[:, None]).reshape(len(W), d * d)
    with quiet():  # the logarithm of a bias of zero is minus infinity, as it must be
        log_u, log_v = np.log(this.bias), np.log(other.bias)

    def information(some):
        rates = np.exp(this.X[some] @ W.T + log_u[some, None] + log_v)
        if channel.saturates:
            rates = channel.information(rates)
        if gaps is not None:
            rates[gaps[some].nonzero()] = 0
        sums, means = rates.sum(axis=1), rates @ W
        products = means[:, :, None] * (means / sums[:, None])[:, None]
        return ((rates @ squares).reshape(-1, d, d) - products,)

    (found,) = map_blocks(information, N, len(W))
    return np.linalg.inv(np.linalg.inv(prior_covariance(this)) + found)


def prior_covariance(side):
    """Return the covariance (d, d) of the Gaussian prior of a side."""
    return covariance_matrix(side.denoiser.covariance, side.X.shape[1])


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
