"""A table of counts, and the sums that a fit of `amptutorial.AMPEmbedding` asks it for.

A fit never looks at the counts themselves. It asks a table for margins, for products
with an embedding, and for the bursts expected at an estimate, which are a table too.
So counts may lie elsewhere: `amptutorial.cluster.embedding.ShardedTable` answers the
same questions for counts on the workers of a cluster.
"""

from dataclasses import replace
from functools import cached_property

import numpy as np

from .bias import drop_empty, estimate_bias, margins, same_pairs, without_gaps
from .biases import observed_biases
from .channels import channel_of
from .heldout import FEW_PAIRS, HeldOut, split_counts, split_pairs
from .reexpansion import new_side, scaled_rows, settle_rows
from .score import FisherScore
from .spectrum import shrink
from .sums import products_of_pairs

VALIDATION = 0.1  # the fraction of the pairs that decides when to stop
SWEEPS = 30  # in which biases are refitted, at most
REFITS = 4  # of the biases of rows to bursts, which depend on these biases
LARGEST_LOG_RATE = 50.0  # log-rates are clipped here while iterating


class Table:
    """Counts, or expected bursts, that one process holds.

    Parameters
    ----------
    Z : csr_array (m, n)
        Counts that have been checked, without empty rows or columns; NaN where a pair
        was not observed, or is hidden.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> table = Table(sp.csr_array([[1.0, 2.0], [3.0, 0.0]]))
    >>> table.totals, table.T.totals
    (array([3., 3.]), array([4., 2.]))
    """

    def __init__(self, Z):
        self.Z, self.shape = Z, Z.shape
        # a channel that does not follow the rate, and theirs
        self._bursts: tuple = None, None

    def __getitem__(self, rows):
        """Return the table of some rows."""
        return Table(self.Z[rows])

    @cached_property
    def T(self):
        """The transpose."""
        return Table(self.Z.T.tocsr())

    @cached_property
    def totals(self):
        """The sums of the rows."""
        return self.Z.sum(axis=1)

    @cached_property
    def observed(self):
        """The table with zeros in its gaps, and where these are; None without any."""
        Z, gaps = without_gaps(self.Z)
        return Table(Z) if gaps is not None else self, gaps

    @property
    def gaps(self):
        """Whether some pairs were not observed."""
        return self.observed[1] is not None

    def largest(self):
        """Return the largest count."""
        return self.observed[0].Z.max()

    def margins(self):
        """Return the sums of the rows (m,) and of the columns (n,), gaps filled."""
        return margins(self.Z)

    def margins_under(self, channel):
        """Return the margins of the bursts expected without an embedding."""
        rows, columns = self.rare(channel).margins()
        for _ in range(SWEEPS * channel.saturates):
            sides = independent_sides(rows, columns)
            rows, columns = self.bursts(channel, *sides, len(rows)).margins()
        return rows, columns

    def information(self, channel):
        """Return the margins of the information on the pairs observed.

        It is what a channel shows of the bursts where they are independent.
        """
        if not channel.saturates:
            return self.rare(channel).observed[0].margins()
        Z, sides = self.observed[0].Z, independent_sides(*self.margins_under(channel))
        rates = _rates(Z, slice(None), *sides, self.shape[0])
        # the mean of a count is the rate; only those that occurred are stored
        shares = channel.information(rates) / channel.mean(rates)
        return margins(same_pairs(Z, Z.data * shares))

    def channel(self, name):
        """Return the channel of a name: see `amptutorial.channels.channel_of`."""
        return channel_of(name, self.observed[0].Z)

    def hide(self, rng):
        """Hide a tenth of the pairs, and return what is seen and what is held out.

        Parameters
        ----------
        rng : numpy.random.Generator

        Returns
        -------
        seen : Table
        held_out : HeldOut

        Raises
        ------
        ValueError
            If no count is left.
        """
        kept, held_out = hidden_tenth(self.Z, rng)
        seen, sums = Table(kept), margins(kept)
        return seen, checked_held_out(*sums, held_out, seen.observed[1])

    def total(self):
        """Return the sum of all counts."""
        return self.observed[0].Z.sum()

    def rare(self, channel):
        """Return the table of the bursts expected where they are rare."""
        return Table(rare_bursts(self.Z, channel))

    def bursts(self, channel, rows, columns, m):
        """Return the table of the bursts expected given the counts.

        Parameters
        ----------
        channel : Channel
        rows, columns : Side
            Whose rates they are expected at.
        m : int
            Number of rows that M = U V^T / sqrt(m) refers to.

        Returns
        -------
        Table
            With the pairs of this one; the expected counts in its gaps.
        """
        if channel.follows_rate:
            return Table(expected_bursts(self.Z, channel, rows, columns, m))
        if self._bursts[0] is not channel:
            self._bursts = channel, self.rare(channel)
        bursts = self._bursts[1]
        return Table(with_rates(bursts.Z, rows, columns, m)) if self.gaps else bursts

    def fitted_bursts(self, channel, rows, columns, m):
        """Return `bursts` at biases of the rows that are refitted to what they have.

        With those before a step, a pair that the step makes likely would add to the
        total that makes it likely.
        """
        for _ in range(REFITS if channel.saturates else int(self.gaps)):
            seen = self.seen_bursts(channel, rows, columns, m).Z
            bias = observed_biases(seen, rows.X, scaled_rows(columns, m), columns.bias)
            rows = replace(rows, bias=bias)
        return self.bursts(channel, rows, columns, m)

    def seen_bursts(self, channel, rows, columns, m):
        """Return `bursts`, with NaN in the gaps."""
        bursts = self.bursts(channel, rows, columns, m).Z
        values = np.where(np.isnan(self.Z.data), np.nan, bursts.data)
        return Table(same_pairs(bursts, values))

    def sums(self, U, sums):
        """Return what a half-step on rows `U` asks for.

        Parameters
        ----------
        U : array (m, d)
        sums : AllColumns or amptutorial.sampling.RowSums
            With the w_j, as from their `for_rows`.

        Returns
        -------
        product : array (m, d)
            Z W.
        log_sums, means : arrays (m,), (m, d)
            As from `amptutorial.sums.tilted_means`.
        """
        own = sums.own_sums(U, self.Z)
        return self.Z @ sums.W, *sums.tilted_means(U, own)

    def reach(self, step, sums, beyond):
        """Return the `amptutorial.sums.largest_changes` by steps of rows."""
        return sums.reach(step, beyond)

    def score(self):
        """Return the score without empty rows and columns, and the columns it has."""
        kept, _, columns = drop_empty(self.Z)
        return FisherScore(kept, *estimate_bias(kept)), columns

    def leading_directions(self, d, rng):
        """Return leading right singular vectors of the score, and what they explain.

        They come from a few steps of orthogonal iteration. What they explain is the sum
        of the squares of the shrunken singular values, in which a direction inside the
        noise counts as sqrt(m n), the largest square that the noise can hide.

        Parameters
        ----------
        d : int
        rng : numpy.random.Generator

        Returns
        -------
        V : array (n, d)
            Orthonormal columns; zero where a column has no counts.
        variance : float
            The mean of M_ij^2 with the weights r_u_i r_v_j: that sum, divided by the
            total count.
        """
        Y, columns = self.score()
        m, n = Y.shape
        directions = rng.standard_normal((n, d))
        for _ in range(4):
            directions = np.linalg.qr(Y.T @ (Y @ directions))[0]
        signal = shrink(np.linalg.svd(Y @ directions, compute_uv=False), m, n)
        strength = float(np.maximum(signal**2, np.sqrt(m * n)).sum())
        V = np.zeros((self.shape[1], d))
        V[columns, : directions.shape[1]] = directions
        return V, strength / float(self.total())

    def settled(self, rows, columns, m, channel, sample):
        """Return the rows settled: see `amptutorial.reexpansion.settle_rows`."""
        return settle_rows(self, rows, columns, m, channel, sample=sample)

    def repeat(self, step, state, number, rng):
        """Return the state of a stage of the fit after its last step.

        Parameters
        ----------
        step : callable
            Returns the state after the next step, and whether that was the last.
        state : tuple
        number : int
            The largest number of steps.
        rng : numpy.random.Generator
            All that `step` draws from.
        """
        for _ in range(number):
            state, last = step(*state)
            if last:
                break
        return state


def hidden_tenth(Z, rng):
    """Return what is kept of a csr_array and what is held out: a tenth of the pairs.

    In a table of fewer than `FEW_PAIRS`, too few pairs would be hidden to judge by:
    there it is a tenth of the single counts.
    """
    few = Z.shape[0] * Z.shape[1] < FEW_PAIRS
    return (split_counts if few else split_pairs)(Z, VALIDATION, rng)


def checked_held_out(rows, columns, held_out, gaps):
    """Return the `HeldOut`, if some counts were kept."""
    if not rows.any():
        raise ValueError("too few counts: none is left when a tenth is set aside")
    return HeldOut.of(rows, columns, held_out, gaps)


def expected_bursts(Z, channel, rows, columns, m):
    """Return the bursts expected at the rates of both sides: see `Table.bursts`."""
    rate = _rates(Z, slice(None), rows, columns, m)
    bursts = channel.bursts(np.nan_to_num(Z.data), rate)
    return same_pairs(Z, np.where(np.isnan(Z.data), rate, bursts))


def rare_bursts(Z, channel):
    """Return the bursts expected where they are rare, whatever the estimate."""
    bursts = channel.bursts(np.nan_to_num(Z.data), np.zeros(Z.nnz))
    return same_pairs(Z, np.where(np.isnan(Z.data), np.nan, bursts))


def with_rates(N, rows, columns, m):
    """Return bursts with the rates of both sides where they are NaN.

    A pair that was not observed says nothing of its bursts: they are what is expected.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> N = sp.csr_array([[np.nan, 3.0]])
    >>> rows, columns = (new_side(np.zeros((k, 1)), np.ones(k), None) for k in (1, 2))
    >>> with_rates(N, rows, columns, m=1).toarray()
    array([[1., 3.]])
    """
    gaps, values = np.isnan(N.data), N.data.copy()
    values[gaps] = _rates(N, gaps, rows, columns, m)
    return same_pairs(N, values)


def independent_sides(rows, columns):
    """Return both sides without an embedding, whose rates have these margins."""
    biases = rows, columns / rows.sum()
    return [new_side(np.zeros((len(r), 1)), r, None) for r in biases]


def _rates(Z, some, rows, columns, m):
    """Return the rates of some of the pairs that a csr_array stores."""
    i, j = (index[some] for index in Z.tocoo(copy=False).coords)
    log_rate = products_of_pairs(rows.X, columns.X, i, j) / np.sqrt(m)
    with np.errstate(divide="ignore"):  # a row without counts has the rate 0
        log_rate += np.log(rows.bias)[i] + np.log(columns.bias)[j]
    return np.exp(np.minimum(log_rate, LARGEST_LOG_RATE))
