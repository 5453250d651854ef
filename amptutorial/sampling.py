"""Sums over all columns from a sample of them, so that the cost follows the counts.

A half-step of `amptutorial.reexpansion` asks, for each row i, for S_i = sum_j r_v_j
exp(u_i . w_j) and for the mean of the w_j under these weights: m n exponentials,
however few the counts. A sample of the columns can stand for all of them. Column j is
drawn with probability pi_j and weighs r_v_j / pi_j, so that the estimate of S_i has the
expectation S_i. Four things keep its noise small; the second one costs a bias, far
below the noise.

- Frequent and long columns are drawn with certainty, the others in proportion to what
  they contribute to S_i for rows of a Gaussian law.
- The weights are calibrated (Deville and Sarndal 1992): changed as little as possible,
  so that the sums over the sample of r_v_j, of r_v_j w_j, and of r_v_j w_j w_j^T in the
  leading directions are those over all columns. To second order in M, S_i is exact.
- Where a row has counts, its terms are not estimated but computed, in the place of
  those that the sample has there (`amptutorial.poisson.own_sums`). They are few, and
  among them are its largest ones.
- Rows with many counts and long rows have larger samples. The Poisson noise of a row's
  score, T counts, has the covariance T C, with C that of the w_j under their weights; a
  sample adds the noise T^2 V, with V the variance of the estimated mean. V falls like 1
  / K, and grows like an exponential of the variance of M_ij over j. With `sample_sizes`
  the noise of the sample stays a fraction of the Poisson noise, and all samples
  together grow like the counts.

A deterministic approximation of S_i does not serve: the iteration moves to where it
errs. So every half-step draws anew.
"""

import copy
from typing import NamedTuple

import numpy as np

from ._validation import check_finite

ALL_UP_TO = 8192  # columns: where there are no more, sums run over all of them
FEWEST = 2000  # columns in a sample
PER_COUNT = 4  # columns in the sample of a row, for each of its counts
LONGEST = 6.0  # of a squared length, in units of the rows: exp(6) is long enough
UNTILTED = 0.3  # of a column's weight in the draw, whatever its length
LEADING = 10  # directions whose products are calibrated, if the sample is large enough
DRAWN_PER_SUM = 5  # how many columns must be drawn for each sum that is calibrated


class Part(NamedTuple):
    """Some rows, and the columns that their sums run over.

    Attributes
    ----------
    rows : slice or array of int
    W, r_v : arrays (K, d), (K,)
        The columns and their weights.
    missed : array (n,), or None
        r_v_j less the weight of column j in the sample, for all columns; None if sums
        run over all of them.
    """

    rows: slice | np.ndarray
    W: np.ndarray
    r_v: np.ndarray
    missed: np.ndarray | None = None


class Columns:
    """The columns that the sums of rows run over: all of them, or samples.

    Parameters
    ----------
    W : array (n, d)
        M = U W^T.
    r_v : array (n,)
        Bias factors of the columns.
    second_moment : array (d, d), optional
        The mean of u u^T over the counts. Columns that are long in its units are drawn
        first.
    rng : numpy.random.Generator, optional
        Without it, sums run over all columns. With it, a sample of each size has a seed
        of its own: which columns it holds does not depend on what was asked before.
    times : float
        How many times the usual size samples have.

    Examples
    --------
    >>> columns = Columns(np.ones((3, 1)), np.ones(3))
    >>> (part,) = columns.parts(np.ones((5, 1)), np.ones(5))
    >>> part.rows, part.W.shape
    (slice(None, None, None), (3, 1))
    """

    def __init__(self, W, r_v, second_moment=None, rng=None, times=1):
        self.W, self.r_v, self.times = W, r_v, times
        self.second_moment = second_moment
        self.seed = None if rng is None else int(rng.integers(2**63))
        self._drawn = {len(W): (W, r_v, None)}

    @property
    def sampled(self):
        """Whether sums run over samples."""
        return self.seed is not None

    def copy(self):
        """Return a copy that keeps to itself what is drawn for it from now on."""
        other = copy.copy(self)
        other._drawn = dict(self._drawn)
        return other

    def parts(self, U, totals):
        """Return which rows use which columns: a list of `Part`.

        Parameters
        ----------
        U : array (m, d)
        totals : array (m,)
            The counts of the rows.
        """
        if not self.sampled:
            return [Part(slice(None), self.W, self.r_v)]
        sizes = self.times * sample_sizes(U, totals, self.W, self.r_v)
        largest = len(self.W) / 2  # beyond it, a sample does not pay
        sizes = np.where(sizes > largest, len(self.W), sizes).astype(int)
        # without rows there is one part too, for `apply`
        different = np.unique(sizes) if len(sizes) else [len(self.W)]
        self._draw([size for size in different if size not in self._drawn])
        return [
            Part(np.flatnonzero(sizes == size), *self._drawn[size])
            for size in different
        ]

    def _draw(self, sizes):
        """Draw the samples of these sizes, which serve from then on."""
        if not sizes:
            return
        Z = self.W @ _scaled_axes(self.second_moment)
        tilted = UNTILTED + np.exp(np.minimum((Z * Z).sum(axis=1), LONGEST))
        for size in sizes:
            pi = inclusion_probabilities(self.r_v * tilted, size)
            rng = np.random.default_rng([self.seed, int(size)])
            drawn = systematic_sample(pi, rng)
            weights = calibrated_weights(Z, self.r_v, pi, drawn)
            missed = self.r_v.copy()
            missed[drawn] -= weights
            self._drawn[size] = self.W[drawn], weights, missed


def columns_for(U, weights, W, r_v, rng=None, times=1):
    """Return the `Columns` for rows `U` (m, d), such as they count with these weights.

    Sums are sampled if there is a generator, and there are more than `ALL_UP_TO`
    columns.

    Parameters
    ----------
    U : array (m, d)
    weights : array (m,)
        Zero or more.
    W, r_v, rng, times
        As for `Columns`.

    Raises
    ------
    FloatingPointError
        If sums are to be sampled, and the squares of `U` overflow.

    Examples
    --------
    >>> columns_for(np.ones((2, 1)), np.ones(2), np.eye(1), np.ones(1)).sampled
    False
    """
    if rng is None or len(W) <= ALL_UP_TO:
        return Columns(W, r_v)
    share = (weights / weights.sum())[:, None]
    with np.errstate(over="ignore", invalid="ignore"):
        second_moment = (U * share).T @ U
    check_finite(second_moment=second_moment)
    return Columns(W, r_v, second_moment, rng, times)


def apply(function, parts, X):
    """Return ``function(X, W, r_v)``, each row of `X` with the columns that it uses.

    Parameters
    ----------
    function : callable
        Returns an array with the rows of its first argument, or a tuple of them.
    parts : list of Part
    X : array (m, d)

    Examples
    --------
    >>> one = Part(np.array([1]), np.array([[1.0]]), np.ones(1))
    >>> two = Part(np.array([0]), np.array([[2.0]]), np.ones(1))
    >>> apply(lambda X, W, r_v: X @ W.T, [one, two], np.array([[1.0], [5.0]]))
    array([[2.],
           [5.]])
    """
    results = [function(X[part.rows], part.W, part.r_v) for part in parts]
    if len(parts) == 1:
        return results[0]
    order = np.argsort(np.concatenate([part.rows for part in parts]))
    if isinstance(results[0], tuple):
        return tuple(np.concatenate(some)[order] for some in zip(*results, strict=True))
    return np.concatenate(results)[order]


def sample_sizes(U, totals, W, r_v):
    """Return how many columns the sample of each row has: `FEWEST`, doubled as needed.

    Parameters
    ----------
    U : array (m, d)
    totals : array (m,)
        Counts.
    W, r_v : arrays (n, d), (n,)

    Returns
    -------
    array of int (m,)
        At least `PER_COUNT` for each count, times exp(2 s^2), where s^2 is the variance
        of u . w_j over the columns with weights r_v_j.

    Examples
    --------
    >>> W, r_v = np.array([[1.0], [-1.0]]), np.ones(2)
    >>> sample_sizes(np.zeros((2, 1)), np.array([5.0, 900.0]), W, r_v)
    array([2000, 4000])
    """
    share = r_v / r_v.sum()
    centred = W - share @ W
    covariance = (centred * share[:, None]).T @ centred
    variance = np.einsum("ik,ik->i", U @ covariance, U)
    wanted = PER_COUNT * totals * np.exp(2 * np.minimum(variance, 10))
    doublings = np.ceil(np.log2(np.maximum(wanted / FEWEST, 1)))
    return (FEWEST * 2**doublings).astype(int)


def _scaled_axes(second_moment):
    """Return S^(1/2) as E diag(sqrt(variances)), the largest variance first."""
    variances, E = np.linalg.eigh(second_moment)
    return (E * np.sqrt(np.maximum(variances, 0)))[:, ::-1]


def inclusion_probabilities(sizes, K):
    """Return probabilities min(1, c sizes_j) that add up to K.

    Parameters
    ----------
    sizes : array (n,)
        Zero or more. If no more than K of them are positive, all are certain.
    K : int

    Examples
    --------
    >>> inclusion_probabilities(np.array([1.0, 10.0, 1.0, 2.0]), 2)
    array([0.25, 1.  , 0.25, 0.5 ])
    """
    descending = np.sort(sizes)[::-1]
    rest = np.cumsum(descending[::-1])[::-1]  # from each size on
    uncertain = descending * (K - np.arange(len(sizes))) < rest
    if not uncertain.any():
        return np.ones(len(sizes))
    certain = np.argmax(uncertain)
    return np.minimum(1, sizes * ((K - certain) / rest[certain]))


def systematic_sample(pi, rng):
    """Return the indices of a sample in which j is with probability pi_j.

    One random number places a comb with teeth at distance 1 over the cumulated pi, so
    that the size of the sample is their sum, up to rounding.

    Examples
    --------
    >>> systematic_sample(np.array([1.0, 0.0, 0.5, 0.5]), np.random.default_rng(0))
    array([0, 3])
    """
    ends = np.cumsum(pi)
    teeth = np.arange(rng.random(), ends[-1], 1.0)
    drawn = np.searchsorted(ends, teeth, side="right")
    return np.unique(drawn.clip(max=len(pi) - 1))


def calibrated_weights(Z, r_v, pi, drawn):
    """Return weights of drawn columns with which low-order sums are exact.

    Parameters
    ----------
    Z : array (n, d)
        The w_j, in coordinates whose leading ones matter most.
    r_v, pi : arrays (n,)
        Bias factors, and the probabilities with which the columns were drawn.
    drawn : array of int (K,)

    Returns
    -------
    array (K,)
        r_v_j / pi_j, times 1 + b . f_j where pi_j < 1: f_j holds 1, z_j, and products
        of two leading coordinates of z_j. Their sums with these weights are those with
        r_v_j over all columns, unless that would ask for a negative weight.
    """
    weights = r_v[drawn] / pi[drawn]
    free = pi[drawn] < 1
    k = _directions(Z.shape[1], free.sum())
    one, two = np.triu_indices(k)
    moments = (Z[:, :k] * r_v[:, None]).T @ Z[:, :k]
    sums = np.concatenate([[r_v.sum()], r_v @ Z, moments[one, two]])
    z = Z[drawn]
    f = np.column_stack([np.ones_like(weights), z, z[:, one] * z[:, two]])
    missing, f = sums - weights @ f, f[free]
    b = np.linalg.lstsq((f * weights[free, None]).T @ f, missing, rcond=1e-10)[0]
    weights[free] *= np.maximum(1 + f @ b, 0.1)
    return weights


def _directions(d, n_free):
    """Return how many of d directions have their products calibrated."""
    fitting = [
        k
        for k in range(min(d, LEADING) + 1)
        if DRAWN_PER_SUM * (1 + d + k * (k + 1) // 2) <= n_free
    ]
    return max(fitting, default=0)
