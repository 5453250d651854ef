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
  those that the sample has there (`RowSums.own_sums`). They are few, and
  among them are its largest ones.
- Rows with many counts and long rows have larger samples. The Poisson noise of a row's
  score, T counts, has the covariance T C, with C that of the w_j under their weights; a
  sample adds the noise T^2 V, with V the variance of the estimated mean. V falls like 1
  / K, and grows like an exponential of the variance of M_ij over j. With the
  `_sample_sizes` here the noise of the sample stays a fraction of the Poisson noise,
  and all samples together grow like the counts.

A deterministic approximation of S_i does not serve: the iteration moves to where it
errs. So every half-step draws anew.
"""

import copy

import numpy as np

from . import _validation as door
from .score import blocks
from .sums import AllColumns, products_of_pairs

ALL_UP_TO = 2**26  # entries of M: where there are no more, sums run over all columns
FEWEST = 2000  # columns in the sample of a row with at least `COMMON` counts
COMMON = 50  # rows with fewer counts have smaller samples, down to a quarter
PER_COUNT = 4  # columns in the sample of a row, for each of its counts
LONGEST = 6.0  # cap on the exponent of the proposal weights
UNTILTED = 0.3  # of a column's weight in the draw, whatever its length
LEADING = 10  # directions whose products are calibrated, if the sample is large enough
DRAWN_PER_SUM = 5  # how many columns must be drawn for each sum that is calibrated
ROWS_AT_ONCE = 2**12  # bounds the memory for their own columns


class Sampler:
    """Draws what sums run over: a `ColumnSample` where M has many entries.

    Parameters
    ----------
    rng : numpy.random.Generator, or None
        Without one nothing is drawn: sums run over all columns, however many.
    times : float
        How many times the usual size samples have.

    Examples
    --------
    >>> sampler = Sampler(np.random.default_rng(0))
    >>> sampler(np.ones((2, 1)), np.ones(2), np.eye(1), np.ones(1)).sampled
    False
    >>> sampler.samples(4_000, 100_000)
    True
    """

    def __init__(self, rng, times=1):
        self.rng, self.times = rng, times

    def samples(self, m, n):
        """Return whether sums of m rows over n columns are sampled."""
        return self.rng is not None and m * n > ALL_UP_TO

    def __call__(self, U, weights, W, r_v):
        """Return what sums of rows `U` (m, d) run over, which count with these weights.

        Raises
        ------
        FloatingPointError
            If sums are to be sampled, and the squares of `U` overflow.
        """
        if not self.samples(len(U), len(W)):
            return AllColumns(W, r_v)
        share = (weights / weights.sum())[:, None]
        with np.errstate(over="ignore", invalid="ignore"):
            second_moment = (U * share).T @ U
        door.check_finite(second_moment=second_moment)
        seed = int(self.rng.integers(2**63))
        return ColumnSample(W, r_v, second_moment, seed, self.times)


exact = Sampler(None)


class ColumnSample:
    """Samples of the columns, one of each size that rows ask for.

    A sample of each size has a seed of its own: which columns it holds does not depend
    on what was asked before.

    Parameters
    ----------
    W : array (n, d)
        M = U W^T.
    r_v : array (n,)
        Bias factors of the columns.
    second_moment : array (d, d)
        The mean of u u^T over the counts. Columns that are long in its units are drawn
        first.
    seed : int
    times : float
        How many times the usual size samples have.
    """

    sampled = True

    def __init__(self, W, r_v, second_moment, seed, times=1):
        self.W, self.r_v, self.times = W, r_v, times
        self.second_moment, self.seed = second_moment, seed
        self._drawn = {len(W): AllColumns(W, r_v)}

    def copy(self):
        """Return a copy that keeps to itself what is drawn for it from now on."""
        other = copy.copy(self)
        other._drawn = dict(self._drawn)
        return other

    def for_rows(self, U, totals):
        """Return the sums for rows `U` (m, d) with so many counts: `RowSums`."""
        sizes = self.times * _sample_sizes(U, totals, self.W, self.r_v)
        largest = len(self.W) / 2  # beyond it, a sample does not pay
        return self.of_sizes(np.where(sizes > largest, len(self.W), sizes).astype(int))

    def of_sizes(self, sizes):
        """Return the sums for rows with samples of these sizes (m,): `RowSums`."""
        # without rows there is one part too
        different = np.unique(sizes) if len(sizes) else [len(self.W)]
        self._draw([size for size in different if size not in self._drawn])
        parts = [(np.flatnonzero(sizes == k), self._drawn[k]) for k in different]
        return RowSums(self, sizes, parts)

    def _draw(self, sizes):
        """Draw the samples of these sizes, which serve from then on."""
        if not sizes:
            return
        variances, E = np.linalg.eigh(self.second_moment)
        # the largest variance first
        Z = self.W @ (E * np.sqrt(np.maximum(variances, 0)))[:, ::-1]
        tilted = UNTILTED + np.exp(np.minimum((Z * Z).sum(axis=1), LONGEST))
        for size in sizes:
            pi = inclusion_probabilities(self.r_v * tilted, size)
            rng = np.random.default_rng([self.seed, int(size)])
            drawn = systematic_sample(pi, rng)
            weights = calibrated_weights(Z, self.r_v, pi, drawn)
            self._drawn[size] = _Drawn(self.W, self.r_v, drawn, weights)


class _Drawn(AllColumns):
    """The sums of rows over one sample of the columns."""

    def __init__(self, W, r_v, drawn, weights):
        super().__init__(W, r_v)
        self._sample = AllColumns(W[drawn], weights)
        self._missed = r_v.copy()  # by the sample, of the bias of each column
        self._missed[drawn] -= weights

    def own_sums(self, U, N, columns=slice(None)):
        """Return what the sums miss at columns where rows have counts.

        They are the sums over the j with a stored N_ij of missed_j (exp(x) - 1 - x -
        x^2 / 2), and of missed_j (exp(x) - 1 - x) w_j, where x = max(M_ij, 0). With
        them added, the terms of these columns are exact where M_ij > 0, but for the
        lowest powers of M_ij, whose sums over all columns are calibrated. As the sample
        does not know the counts, the expectation of the sums stays the same. Those over
        disjoint sets of columns, which `N` then has alone, add up.
        """
        W, missing = self.W[columns], self._missed[columns]
        sums, moments = _zeros(U)
        for rows in blocks(len(U), ROWS_AT_ONCE):
            own = N[rows]
            i = np.repeat(np.arange(rows.start, rows.stop), np.diff(own.indptr))
            x = np.maximum(products_of_pairs(U, W, i, own.indices), 0)
            missed = missing[own.indices]
            own.data = missed * (np.expm1(x) - x)
            moments[rows] = own @ W
            own.data -= missed * (x**2 / 2)
            sums[rows] = own.sum(axis=1)
        return sums, moments

    def tilted_means(self, U, own=None):
        """Return the `tilted_means` over the sample, with own sums added to them."""
        log_sums, means = self._sample.tilted_means(U)
        sums, moments = own or _zeros(U)
        scale = np.exp(-log_sums.astype(np.float64))
        grown = 1 + sums * scale
        means = (means + moments * scale[:, None]) / grown[:, None]
        return log_sums + np.log(grown), means

    def log_partition(self, U):
        return self._sample.log_partition(U)

    def reach(self, step, beyond):
        return self._sample.reach(step, beyond)


class RowSums:
    """The sums of some rows, those of each over the sample of its size.

    Parameters
    ----------
    sample : ColumnSample
    sizes : array of int (m,)
    parts : list of (array of int, AllColumns)
        Which rows have which sums.
    """

    sampled = True

    def __init__(self, sample, sizes, parts):
        self.sample, self.sizes, self.parts = sample, sizes, parts
        self.W = sample.W

    def own_sums(self, U, N, columns=slice(None)):
        """Return what the sums miss where rows have counts, for `tilted_means`.

        `N` (csr_array) stores the pairs that have counts; where it has but some of the
        columns, the sums of all add up.
        """

        def of(part, rows):
            return part.own_sums(U[rows], N[rows], columns) or _zeros(U[rows])

        return self._in_order(of)

    def tilted_means(self, U, own=None):
        """Return the `tilted_means` of rows `U`, with their own sums added to them."""

        def of(part, rows):
            return part.tilted_means(U[rows], own and tuple(each[rows] for each in own))

        return self._in_order(of)

    def log_partition(self, U):
        """Return the `log_partition` of rows `U`."""
        return self._in_order(lambda part, rows: (part.log_partition(U[rows]),))[0]

    def reach(self, step, beyond):
        """Return the `largest_changes` by steps of rows."""
        return self._in_order(lambda part, rows: (part.reach(step[rows], beyond),))[0]

    def _in_order(self, function):
        """Return arrays with all rows in order, from those of each part."""
        found = [function(part, rows) for rows, part in self.parts]
        order = np.argsort(np.concatenate([rows for rows, _ in self.parts]))
        return tuple(np.concatenate(each)[order] for each in zip(*found, strict=True))


def _zeros(U):
    return np.zeros(len(U)), np.zeros(U.shape)


def _sample_sizes(U, totals, W, r_v):
    """Return how many columns the sample of each row has.

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
        of u . w_j over the columns with weights r_v_j; and at least `FEWEST`, or as
        large a part of it as the counts are of `COMMON`. A quarter of `FEWEST`, doubled
        as needed.

    Examples
    --------
    >>> W, r_v = np.array([[1.0], [-1.0]]), np.ones(2)
    >>> _sample_sizes(np.zeros((3, 1)), np.array([5.0, 50.0, 900.0]), W, r_v)
    array([ 500, 2000, 4000])
    """
    share = r_v / r_v.sum()
    centred = W - share @ W
    covariance = (centred * share[:, None]).T @ centred
    variance = np.einsum("ik,ik->i", U @ covariance, U)
    wanted = PER_COUNT * totals * np.exp(2 * np.minimum(variance, 10))
    wanted = np.maximum(wanted, FEWEST * np.minimum(totals / COMMON, 1))
    doublings = np.ceil(np.log2(np.maximum(4 * wanted / FEWEST, 1)))
    return (FEWEST // 4 * 2**doublings).astype(int)


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
    k = np.arange(min(d, LEADING) + 1)
    fit = DRAWN_PER_SUM * (1 + d + k * (k + 1) // 2) <= n_free
    return int(k[fit].max(initial=0))
