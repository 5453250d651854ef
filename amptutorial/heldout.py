"""Judging an embedding by counts it has not seen.

Which counts are set aside decides what is judged. `split_counts` sends every count its
own way, which is right for Poisson counts. In text a word that occurs once tends to
occur again in the same document, for reasons that no embedding knows: there
`split_pairs` hides pairs of a row and a column whole.

By hidden pairs a fit chooses its iterate (`Chosen`), and knows when to stop
(`Patience`).
"""

from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from . import _validation as door
from .bias import drop_empty, margins, same_pairs, with_values, without_gaps
from .biases import Gaps, fit_margins
from .channels import COUNTS, Channel
from .sampling import exact
from .score import blocks
from .sums import BLOCK_ENTRIES, log_partition, products_of_pairs

AT_LEAST = 10  # iterations that AMP gets before it may be stopped
FEW_PAIRS = 400  # of which a tenth is too few to judge by
LARGEST_RATIO = 2.0  # nats: what more it may be says nothing of whether there is a gain
SURPRISING = 0.1  # counts expected of a pair, from which on no zero stands for it


def split_counts(Z, fraction: float, rng: np.random.Generator) -> tuple:
    """Split the counts at random into two matrices that add up to `Z`.

    Every single count goes its own way (binomial thinning): for Poisson counts the two
    matrices are independent, with the rates of `Z` times 1 - fraction and times
    fraction. The fractional part of an entry goes to one of them whole, by the same
    coin.

    Parameters
    ----------
    Z : array or sparse array (m, n)
        NaN, a pair that was not observed, is NaN in both.
    fraction : float
        The expected share of the counts in the second matrix, between 0 and 1.
    rng : numpy.random.Generator

    Returns
    -------
    kept, held_out : csr_arrays (m, n)

    Raises
    ------
    ValueError
        For invalid counts, counts of 2^63 or more, or a fraction that is not between 0
        and 1.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> kept, held_out = split_counts(np.array([[3, 0], [1, 6]]), 0.5, rng)
    >>> (kept + held_out).toarray()
    array([[3., 0.],
           [1., 6.]])
    """
    Z, fraction, rng = _checked_split(Z, fraction, rng)
    whole = np.floor(Z.data)
    if (whole >= 2**63).any():
        raise ValueError("only counts below 2^63 can be split: divide Z by a constant")
    gaps = np.isnan(whole)
    taken = rng.binomial(np.where(gaps, 0, whole).astype(np.int64), fraction)
    taken = taken + (Z.data - whole) * (rng.random(len(whole)) < fraction)
    return tuple(with_values(Z, counts) for counts in (Z.data - taken, taken))


def split_pairs(Z, fraction: float, rng: np.random.Generator) -> tuple:
    """Split the counts at random, all counts of one pair to the same side.

    Every pair (i, j) is hidden with probability `fraction`, whatever its count. No
    repetition of a word in its document is on both sides: the two matrices are
    independent but for the pairs themselves.

    A hidden pair is NaN in `kept`, not observed, where a zero would be a surprise:
    where the margins of `kept` let expect a tenth of a count or more. Such pairs are
    no more than ten for each count, and which of them are NaN does not depend on their
    counts. All other hidden pairs leave a zero, like pairs that never occurred: there
    expectations shrink to 1 - fraction times the rate. `AMPEmbedding` and the functions
    of this package know gaps; for other methods `amptutorial.bias.fill_gaps` fills
    them.

    `heldout_gain` is a proper score for rates that are fixed beforehand, or made of the
    kept counts of other pairs. Over the choice of the pairs, it expects fraction times
    the sum of mu log(rate) - rate over all pairs, hidden zeros included, where mu is
    the mean of a count. That is largest at rate = mu, be the counts Poisson or not.
    Rates that are higher in the gaps than in like pairs gain nothing by it: what they
    add there counts against them. But outside the gaps a pair that keeps a count was
    not hidden: rates that are lower just there, and higher at zeros, can expect more
    than the true rates. A fit does the contrary, since a count raises the rate of its
    own pair.

    Parameters
    ----------
    Z : array or sparse array (m, n)
        NaN, a pair that was not observed, is NaN in both.
    fraction : float
        The expected share of the pairs in the second matrix, between 0 and 1.
    rng : numpy.random.Generator

    Returns
    -------
    kept, held_out : csr_arrays (m, n)

    Raises
    ------
    ValueError
        For invalid counts, or a fraction that is not between 0 and 1.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> kept, held_out = split_pairs(np.array([[3, 0, 1], [1, 6, 4]]), 0.5, rng)
    >>> kept.toarray()
    array([[ 3., nan,  1.],
           [nan,  6., nan]])
    >>> held_out.toarray()
    array([[0., 0., 0.],
           [1., 0., 4.]])
    """
    kept, held_out = hide_pairs(*_checked_split(Z, fraction, rng))
    sums = margins(kept)
    zeros = surprising_pairs(*sums, fraction, rng)
    return with_gaps(kept, held_out, zeros, *sums), held_out


def hide_pairs(Z, fraction, rng):
    """Return what is kept of a csr_array, with zeros in hidden pairs, and the rest."""
    hidden, gaps = rng.random(Z.nnz) < fraction, np.isnan(Z.data)
    parts = (np.where(some | gaps, Z.data, 0) for some in (~hidden, hidden))
    return tuple(with_values(Z, values) for values in parts)


def surprising_pairs(rows, columns, fraction=1.0, rng=None):
    """Return a fraction of the pairs of which independence expects `SURPRISING` counts.

    Parameters
    ----------
    rows, columns : arrays (m,), (n,)
        Sums of counts.
    fraction : float
        With which probability each of them is drawn, by itself.
    rng : numpy.random.Generator, optional
        None returns them all.

    Returns
    -------
    csr_array (m, n)
        With ones. The pairs that are not drawn take no memory.
    """
    order, tiny = np.argsort(-columns), np.finfo(float).tiny
    with np.errstate(over="ignore"):  # the sum of a column, in each row
        least = SURPRISING * rows.sum() / np.maximum(rows, tiny)
    numbers = np.searchsorted(-columns[order], -least)
    ends = np.cumsum(numbers)
    drawn = np.arange(ends[-1])
    if rng is not None:  # some of all such pairs, row by row, by their distances
        expected = ends[-1] * fraction
        steps = rng.geometric(fraction, int(expected + 10 * sqrt(expected) + 10))
        drawn = np.cumsum(np.minimum(steps, ends[-1] + 1)) - 1
        drawn = drawn[drawn < ends[-1]]
    i = np.searchsorted(ends, drawn, side="right")
    j = order[drawn - (ends - numbers)[i]]
    shape = len(rows), len(columns)
    return sp.csr_array((np.ones(len(i)), (i, j)), shape)


def with_gaps(kept, held_out, zeros, rows, columns):
    """Return what `hide_pairs` keeps, with NaN where a zero would be a surprise.

    Parameters
    ----------
    kept, held_out : csr_arrays (m, n)
    zeros : csr_array (m, n)
        As from `surprising_pairs`: those without a count are hidden.
    rows, columns : arrays (m,), (n,)
        Sums of what is kept in these rows, and in all columns of the table.
    """
    i, j = held_out.tocoo().coords
    # NaN of the table itself stays
    expected = np.where(held_out.data > 0, rows[i] * columns[j], 0)
    hidden = same_pairs(held_out, expected > SURPRISING * columns.sum())
    counted = same_pairs(kept, 1.0) + same_pairs(held_out, 1.0)
    gaps = zeros - zeros.multiply(counted) + hidden
    gaps.eliminate_zeros()
    return kept + same_pairs(gaps, np.nan)


def _checked_split(Z, fraction, rng):
    Z, rng = door.check_counts(Z, gaps=True), door.check_rng(rng)
    door.check_positive(fraction, "fraction", below=1)
    return sp.csr_array(Z, dtype=np.float64), fraction, rng


def hold_out(Z, fraction: float, rng, split=split_pairs) -> tuple:
    """Split the counts, and leave out the rows and columns that keep none.

    Parameters
    ----------
    Z, fraction, rng
        As for `split_pairs`.
    split : callable
        `split_pairs`, or `split_counts` for counts that are Poisson.

    Returns
    -------
    kept, held_out : csr_arrays
        What `split` returns, without the rows and columns that are empty in the first.
    rows, columns : arrays of int
        Row k of both is row ``rows[k]`` of `Z`, and the same for the columns.

    Raises
    ------
    ValueError
        As `split_pairs`, or if no count is kept.

    Examples
    --------
    >>> Z, rng = np.array([[0, 0], [40, 60]]), np.random.default_rng(0)
    >>> kept, held_out, rows, columns = hold_out(Z, 0.2, rng, split_counts)
    >>> (kept + held_out).toarray(), rows, columns
    (array([[40., 60.]]), array([1]), array([0, 1]))
    """
    kept, held_out = split(Z, fraction, rng)
    if not (kept.data > 0).any():
        raise ValueError("no counts are kept: too few, or fraction is too large")
    kept, rows, columns = drop_empty(kept)
    return kept, held_out[rows][:, columns], rows, columns


class Judged(NamedTuple):
    """What pairs say that have not chosen.

    Attributes
    ----------
    gain, error : float
        In nats per held-out count, and its two-way standard error.
    errors : float
        By how many standard errors the pairs are predicted better than by independence,
        as they are or, if that is more, with log-ratios cut at `LARGEST_RATIO`. Of a
        strong embedding, few pairs would make the error large; without one, the mean is
        expected below zero with the cut as it is without.
    """

    gain: float
    error: float
    errors: float


@dataclass(frozen=True)
class HeldOut:
    """Held-out counts, pair by pair, and the margins of the counts that were kept.

    Pairs whose row or column has no counts in `kept` are left out: no model fitted to
    `kept` can predict them.

    Attributes
    ----------
    i, j : arrays of int (number of pairs,)
        The row and the column of each pair that has held-out counts.
    z : array (number of pairs,)
        The held-out counts.
    rows, columns : arrays (m,), (n,)
        The row and column sums of the counts that were kept, gaps filled
        (`amptutorial.bias.margins`).
    gaps : csr_array (m, n), or None
        One where a pair was not observed, or is hidden and no zero stands for it.
    contrast : csr_array (m, n), or None
        See `contrasted`.
    law : Channel
        The margins are those of the bursts of a law that saturates.
    total : float
        Of the counts kept, under such a law.
    """

    i: np.ndarray
    j: np.ndarray
    z: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    gaps: sp.csr_array | None = None
    contrast: sp.csr_array | None = None
    law: Channel = COUNTS
    total: float = 0.0

    @classmethod
    def of(cls, rows, columns, held_out, gaps=None, contrast=None):
        """Return the `HeldOut`, given the row and column sums of what was kept.

        Examples
        --------
        >>> rows, columns = np.array([6.0, 0.0]), np.array([4.0, 2.0])
        >>> HeldOut.of(rows, columns, np.array([[0, 1], [3, 0]])).z
        array([1.])
        """
        held_out = sp.coo_array(held_out, dtype=np.float64)
        i, j = held_out.coords
        seen = (rows[i] > 0) & (columns[j] > 0) & (held_out.data > 0)
        z = held_out.data[seen]
        return cls(i[seen], j[seen], z, rows, columns, gaps, contrast)

    @cached_property
    def observed(self):
        """The row and column sums of the counts that were kept, without the gaps."""
        rows, columns = self.rows, self.columns
        if self.gaps is None:
            return rows, columns
        p, q = rows / rows.sum(), columns / columns.sum()
        return rows * (1 - self.gaps @ q), columns * (1 - self.gaps.T @ p)

    @cached_property
    def halves(self):
        """The counts in two halves, one of which judges what the other one chooses.

        That is every second pair; in a small table, every second count of each pair.
        """
        first = np.arange(len(self.z)) % 2
        few = len(self.rows) * len(self.columns) < FEW_PAIRS
        first = (self.z + first) // 2 if few else self.z * first
        return first, self.z - first

    def log_ratios(self, U, V, r_u, r_v):
        """Return log(rate / rate under independence) of each pair.

        The rates are r_u_i r_v_j exp(u_i . v_j / sqrt(m)), those under independence
        row_i col_j / Z_tot. Under a law that saturates, expected counts take their
        place, and their excess over those of independence is subtracted.

        Raises
        ------
        FloatingPointError
            If a rate is too large for double precision.
        """
        # a row or a column without counts is in none of the pairs
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            bias_u = np.log(r_u / self.rows * self.rows.sum())
            bias_v = np.log(r_v / self.columns)
        products = products_of_pairs(U, V, self.i, self.j)
        log_ratios = bias_u[self.i] + bias_v[self.j] + products / np.sqrt(len(U))
        if not (log_ratios < np.inf).all():
            raise FloatingPointError("the rates overflow: scale U, V or biases down")
        if not self.law.saturates:
            return log_ratios
        rates = self.rows[self.i] * self.columns[self.j] / self.rows.sum()
        means = (self.law.mean(rate) for rate in (rates * np.exp(log_ratios), rates))
        more = self._expected(U, V / np.sqrt(len(U)), r_u, r_v) - self._independent
        return np.subtract(*map(np.log, means)) - more / self.total

    def _expected(self, U, W, r_u, r_v):
        """Return how many counts a law that saturates expects in the pairs seen."""
        total = 0.0
        for some in blocks(len(U), max(1, BLOCK_ENTRIES // len(W))):
            rates = r_u[some, None] * np.exp(U[some] @ W.T) * r_v
            total += self.law.mean(rates).sum()
        if self.gaps is not None:
            i, j, M = Gaps.of(self.gaps, U, W)
            total -= self.law.mean(r_u[i] * r_v[j] * np.exp(M)).sum()
        return total

    @cached_property
    def _independent(self):
        U, W = (np.zeros((len(sums), 1)) for sums in (self.rows, self.columns))
        return self._expected(U, W, self.rows, self.columns / self.rows.sum())

    def excess(self, U, W, r_u, r_v):
        """Return by which fraction rates exceed the counts kept, over the pairs seen.

        Minus it, the mean of `log_ratios` is the gain, whatever the biases.

        Raises
        ------
        FloatingPointError
            If it is not a number: the rates overflow.
        """
        some = np.flatnonzero(r_u)
        with np.errstate(over="ignore", invalid="ignore"):
            total = np.exp(log_partition(U[some], W, r_v) + np.log(r_u[some])).sum()
            if self.gaps is not None:
                total -= r_u @ Gaps.of(self.gaps, U, W).sums(r_v, len(U))
        if np.isnan(total):
            raise FloatingPointError("the rates overflow: scale the embedding down")
        return total / self.observed[0].sum() - 1

    @cached_property
    def unseen(self):
        """The gaps; in place of counts, what independence expects of the counts seen.

        That is as shares of all of them, so that ``unseen.raised(log_ratios)`` is by
        which fraction of the counts seen rates in the gaps exceed independence.
        """
        return self._at(self.gaps, self.observed[0].sum())

    @cached_property
    def compared(self):
        """The pairs of `contrast`, weighted as shares of the held-out counts."""
        return self._at(self.contrast, self.z.sum() or 1)

    def _at(self, weights, total):
        shape = len(self.rows), len(self.columns)
        weights = sp.coo_array(shape if weights is None else weights)
        i, j = weights.coords
        z = weights.data * self.rows[i] * self.columns[j] / self.rows.sum() / total
        some = z != 0  # rows and columns without counts have no rates to compare
        return replace(self, i=i[some], j=j[some], z=z[some])

    def raised(self, log_ratios):
        """Return the sum of what rates exceed independence by, given `log_ratios`.

        Raises
        ------
        FloatingPointError
            If it is not finite: the rates overflow.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            total = float(self.z @ np.expm1(log_ratios))
        if not np.isfinite(total):
            raise FloatingPointError("the rates overflow: scale the embedding down")
        return total

    def judged(self, halves):
        """Return the gain of what was chosen by other pairs: `Judged`.

        Parameters
        ----------
        halves : sequence of pairs of `Half`
            Of all that the choice was among. The counts of each half are judged by the
            iterate that the other half would choose.
        """
        best = [max(each, key=attrgetter("gain")) for each in zip(*halves, strict=True)]
        judging = zip(reversed(self.halves), best, strict=True)
        log_ratios = sum(z * half.log_ratios for z, half in judging) / self.z
        values = log_ratios, np.minimum(log_ratios, LARGEST_RATIO)
        means = [self.mean(each) for each in values]
        errors = [self.standard_error(each) for each in values]
        with np.errstate(divide="ignore", invalid="ignore"):
            times = np.nan_to_num(np.divide(means, errors), nan=0.0, posinf=np.inf)
        return Judged(means[0], errors[0], float(times.max()))

    def mean(self, values, z=None):
        """Return the mean over the held-out counts of `values`, one for each pair.

        It is over all counts or, given those of each pair, over `z`; zero without any.
        """
        z = self.z if z is None else z
        return float(z @ values / (z.sum() or 1))

    def standard_error(self, values):
        """Return the standard error of `mean`, two-way: by rows and by columns.

        Pairs of one document share what is special about the document, and pairs of one
        word what is special about the word. So the deviations are added up by row and
        by column before they are squared; what both sums hold, the squares pair by
        pair, is subtracted once (Cameron, Gelbach and Miller 2011). Infinite if all
        pairs are of one row or of one column, which do not show how others differ.

        Examples
        --------
        >>> pairs = HeldOut.of(np.ones(2), np.ones(2), np.array([[1, 0], [0, 3]]))
        >>> values = np.array([0.0, 1.0])
        >>> pairs.mean(values), round(pairs.standard_error(values), 3)
        (0.75, 0.265)
        """
        if any(len(np.unique(index)) < 2 for index in (self.i, self.j)):
            return np.inf
        share = self.z / (self.z.sum() or 1)
        deviations = share * (values - self.mean(values))
        by_row, by_column = (np.bincount(k, deviations) for k in (self.i, self.j))
        single = deviations @ deviations
        # the difference may be negative by chance
        both = by_row @ by_row + by_column @ by_column - single
        return float(np.sqrt(max(both, single)))

    def entropy(self):
        """Return how many nats per held-out count an embedding can gain at most.

        The mean of - log(col_j / Z_tot) over the held-out counts: rates that add up to
        the margins of `kept` exceed those of independence at most by the factor Z_tot /
        col_j.
        """
        return -self.mean(np.log(self.columns[self.j] / self.columns.sum()))


def held_out_pairs(kept, held_out):
    """Return the pairs that have held-out counts.

    Parameters
    ----------
    kept, held_out : arrays or sparse arrays (m, n)
        As from `split_counts` or `split_pairs`.

    Returns
    -------
    HeldOut

    Raises
    ------
    ValueError
        For invalid counts, matrices of different shapes, or no counts in `kept`.

    Examples
    --------
    >>> held_out_pairs([[4, 2], [0, 0]], [[0, 1], [3, 0]]).z
    array([1.])
    """
    kept = door.check_counts(kept, gaps=True, name="kept")
    held_out = door.check_counts(held_out, gaps=True, name="held_out")
    if kept.shape != held_out.shape:
        shapes = f"{kept.shape} and {held_out.shape}"
        raise ValueError(f"kept and held_out must have the same shape, got {shapes}")
    sums, kept, held_out = margins(kept), sp.csr_array(kept), sp.csr_array(held_out)
    (observed, gaps), (_, own) = without_gaps(kept), without_gaps(held_out)
    contrast = None
    if gaps is not None:
        # what the split saw: zeros in its gaps
        before = observed if own is None else observed + same_pairs(own, np.nan)
        contrast = contrasted(surprising_pairs(*margins(before)), gaps, own)
    pairs = HeldOut.of(*sums, held_out, gaps, contrast)
    if not pairs.rows.any():
        raise ValueError("kept has no counts at all")
    return pairs


def contrasted(like, gaps, own=None):
    """Return 1 in the gaps of `split_pairs`, minus a share in like pairs that are seen.

    The shares add up to the number of the gaps, so that a sum with these weights
    expects zero for rates that do not follow which pairs are hidden.

    Parameters
    ----------
    like : csr_array (m, n)
        One in all pairs that the split might have made gaps.
    gaps, own : csr_arrays (m, n)
        One where a pair is a gap, or one of the table itself.
    """
    seen = like - like.multiply(gaps)
    hidden = like.multiply(gaps if own is None else gaps - gaps.multiply(own))
    contrast = hidden - seen * (hidden.sum() / (seen.sum() or 1))
    contrast.eliminate_zeros()
    return contrast


def heldout_gain(kept, held_out, U, V, r_u, r_v) -> float:
    """Return how much better an embedding predicts held-out counts than independence.

    In nats per count: the difference of two Poisson log-likelihoods, of the rates r_u_i
    r_v_j exp(M_ij), and of the rates row_i col_j / Z_tot of the counts `kept`, both
    scaled to the number of held-out counts.

    Parameters
    ----------
    kept, held_out : arrays or sparse arrays (m, n)
        As from `split_counts` or `split_pairs`. Held-out counts in a row or column that
        has none in `kept` are left out: no model fitted to `kept` can predict them.
    U, V : arrays (m, d), (n, d)
        M = U V^T / sqrt(m).
    r_u, r_v : arrays (m,), (n,)
        Bias factors, zero or more. With those of `amptutorial.biases.refit_biases` the
        rates add up to the counts `kept`. Rates that add up to more count against the
        embedding, by their excess; so do rates that are higher where `split_pairs`
        hides than in like pairs.

    Returns
    -------
    float
        Zero if M = 0; below zero for an embedding worse than none; minus infinity if a
        pair with held-out counts has the rate 0, or the sum of the rates overflows.

    Raises
    ------
    ValueError
        For invalid counts; for arrays that have the wrong shape or are not finite; for
        negative bias factors.
    FloatingPointError
        If the rate of a pair with held-out counts overflows.

    Examples
    --------
    >>> from amptutorial.biases import refit_biases
    >>> Z = np.array([[8, 1], [1, 8]])
    >>> signs = np.array([[1.0], [-1.0]])
    >>> round(heldout_gain(Z, Z, signs, signs, *refit_biases(Z, signs, signs)), 3)
    0.318
    """
    pairs = held_out_pairs(kept, held_out)
    m, n = len(pairs.rows), len(pairs.columns)
    r_u = door.check_rates(r_u, m, "r_u", zero=True)
    r_v = door.check_rates(r_v, n, "r_v", zero=True)
    U, V = door.check_embedding(U, V, m, n)
    log_ratios = pairs.log_ratios(U, V, r_u, r_v)
    excess = pairs.excess(U, V / np.sqrt(m), r_u, r_v)
    excess += pairs.compared.raised(pairs.compared.log_ratios(U, V, r_u, r_v))
    return float(pairs.mean(log_ratios) - excess)


@dataclass(frozen=True)
class Patience:
    """When to stop: after an iteration without progress, but not in the first ten.

    An iteration makes progress if it lowers the held-out cross-entropy, entropy - gain,
    below the lowest so far by more than the fraction `tol` of it.

    Parameters
    ----------
    entropy : float
        The held-out cross-entropy of independence, in nats per count.
    tol : float

    Attributes
    ----------
    k : int
        The number of iterations so far.
    highest : float
        The highest gain so far.
    progress : bool
        Whether the last iteration made progress.

    Examples
    --------
    >>> patience = Patience(entropy=5.0, tol=0.01)
    >>> for gain in [1.0, 1.5, 1.54, 1.55]:
    ...     patience = patience.after(gain)
    ...     print(gain, patience.progress)
    1.0 True
    1.5 True
    1.54 True
    1.55 False
    >>> patience.k, patience.exhausted
    (4, False)
    """

    entropy: float
    tol: float
    k: int = 0
    highest: float = -np.inf
    progress: bool = False

    def after(self, gain):
        """Return the patience after one more iteration, with this held-out gain."""
        progress = gain > self.highest + self.tol * (self.entropy - gain)
        highest = max(self.highest, gain)
        return replace(self, k=self.k + 1, highest=highest, progress=progress)

    @property
    def exhausted(self):
        """Whether to stop."""
        return self.k >= AT_LEAST and not self.progress


class Half(NamedTuple):
    """The iterate that one half of the hidden pairs would choose.

    Attributes
    ----------
    gain : float
        Of this half; zero for independence.
    log_ratios : array (number of pairs,)
        Of both halves.
    """

    gain: float
    log_ratios: np.ndarray


class Chosen:
    """The iterate that predicts hidden pairs best, of all that have been judged.

    Parameters
    ----------
    held_out : HeldOut
        The hidden pairs, and the margins of the counts that were seen.
    tol : float
        For `Patience`, which says when to stop.

    Attributes
    ----------
    patience : Patience
        Which has counted the iterates judged so far.
    r_v : array (n,)
        Biases of the columns, refitted to the last iterate.
    log_ratios : array (number of pairs,)
        See `HeldOut.log_ratios`; zero for independence.
    sides : pair of Side, or None
        None if no iterate beats independence.
    gain : float
        In nats per held-out count; zero for independence. As the largest of several it
        errs on the high side: what `HeldOut.judged` makes of `halves` does not.
    error : float
        The two-way standard error of the highest gain, be it below zero.
    halves : pair of Half
    k : int
        The number of the iterate, from 1 on; 0 for independence.
    """

    sides, gain, error, k, log_ratios = None, 0.0, 0.0, 0, 0.0

    def __init__(self, held_out, tol):
        self.patience = Patience(held_out.entropy(), tol)
        self.r_v = held_out.columns
        self.halves: tuple = (Half(0.0, np.zeros(len(held_out.z))),) * 2

    def judge(self, rows, columns, held_out, sampler=exact, observed=None):
        """Judge one more iterate, two `Side`; return whether it is the last.

        The biases are refitted to the counts seen, whatever the embedding is fitted to;
        under a law that saturates to sums of bursts, `observed`.

        Raises
        ------
        FloatingPointError
            If the gain is not finite.
        """
        U, W = rows.X, columns.X / sqrt(len(rows.X))
        gaps, sums = Gaps.of(held_out.gaps, U, W), observed or held_out.observed
        r_u, self.r_v = fit_margins(*sums, U, W, self.r_v, sampler, gaps)
        log_ratios = held_out.log_ratios(rows.X, columns.X, r_u, self.r_v)
        gain = held_out.mean(log_ratios)
        door.check_finite(heldout_gain=gain)
        if gain > self.patience.highest:
            self.error = held_out.standard_error(log_ratios)
        self.patience = self.patience.after(gain)
        if gain > self.gain:
            self.sides, self.gain, self.k = (rows, columns), gain, self.patience.k
            self.log_ratios = log_ratios
        means = (held_out.mean(log_ratios, z) for z in held_out.halves)
        both = zip(self.halves, (Half(mean, log_ratios) for mean in means), strict=True)
        self.halves = tuple(max(pair, key=attrgetter("gain")) for pair in both)
        return self.patience.exhausted
