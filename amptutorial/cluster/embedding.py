"""`AMPEmbedding` on counts that no process holds: its table on a Dask cluster.

The counts stay with the workers. A fit asks its `ShardedTable` for sums, as it asks an
`amptutorial.table.Table` in one process: workers multiply their blocks, and evaluate
and add up what is large. Both sides, m x d and n x d, stay in the calling process,
which denoises, draws the samples for the sums (`amptutorial.sampling`), and judges the
iterates by the hidden pairs, a tenth of all, which it holds.
"""

import pickle
import warnings
from copy import copy, deepcopy
from dataclasses import replace
from functools import cached_property
from operator import itemgetter, methodcaller
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from .._validation import AMPWarning
from ..bias import bias_of_margins, fill_margins, margins, without_gaps
from ..channels import CHANNELS
from ..estimator import AMPEmbedding, all_or_nothing
from ..heldout import hide_pairs, surprising_pairs, with_gaps
from ..reexpansion import settle_rows
from ..score import blocks
from ..table import VALIDATION, Table, checked_held_out, rare_bursts, with_rates
from .amp import ShardedScore
from .blocks import Blocks, consecutive
from .tasks import Checkpoint, add

HERE = 2**22  # exponentials that take less time here than on their way to workers


def sharded_embedding(counts, model, *, client, checkpoints=None):
    """Fit an `amptutorial.AMPEmbedding` to counts on a Dask cluster.

    The fit is that of `AMPEmbedding.fit` to all counts with the same `random_state`, up
    to the order in which sums are formed.

    Parameters
    ----------
    counts, client
        As for `amptutorial.cluster.blocks.Blocks`. No row and no column is without
        counts.
    model : AMPEmbedding
        Its parameters are those of the fit. Sizes of bursts are not estimated:
        ``channel="bursts"`` is refused.
    checkpoints : path, optional
        A folder: the last iteration is stored there, and a fit with the same counts and
        parameters goes on from it. What precedes the iterations of a channel, and what
        follows the last one, is done again. It is stored by `pickle`, so take no folder
        from someone whose code you would not run.

    Returns
    -------
    AMPEmbedding
        The `model`, fitted.

    Raises
    ------
    ImportError, MemoryError, FileNotFoundError, TypeError
        As `amptutorial.cluster.amp.sharded_amp`.
    ValueError
        As `AMPEmbedding.fit`; for a row or column without counts, for files that are
        damaged, for a checkpoint that is damaged or of another fit, and for checkpoints
        with ``random_state=None``.

    Warns
    -----
    AMPWarning
        As `AMPEmbedding.fit`, but of what it doubts of a table; and if all counts are
        zeros and ones, which are taken for Poisson counts here.

    Notes
    -----
    A checkpoint holds both sides (`amptutorial.reexpansion.Side`) after the last
    iteration and after the best one of each channel, the half-step on the rows that is
    ahead of them, the state of the generator, and what hidden pairs have said. A row or
    a column of a side takes 8 d + 24 bytes, the whole at most that number times 14 m +
    9 n, and 48 bytes for each hidden pair; and three times as much memory while it is
    written.
    """
    if not isinstance(model, AMPEmbedding):
        raise TypeError(f"model must be an AMPEmbedding, got {model!r}")
    model._check_parameters()
    if model.channel == "bursts":
        raise ValueError("channel='bursts' needs all counts in one process")
    if checkpoints is not None and model.random_state is None:
        raise ValueError(
            "random_state=None is another seed at every start: give the model a number"
        )
    table = ShardedTable(counts, client)
    bias_of_margins(*table.margins())  # refuses what is empty
    if checkpoints is not None:
        parameters = pickle.dumps(model.get_params(deep=False), protocol=4)
        parts = table.fingerprint, parameters
        table.keep(Checkpoint(checkpoints, parts, "other counts or another model"))
    with all_or_nothing(model):
        decided = model._fit(table, *map(np.arange, table.shape), table.shape)
        model.n_features_in_ = table.shape[1]
        model.row_names_ = model.column_names_ = None
        if hasattr(model, "feature_names_in_"):  # of a table fitted before
            del model.feature_names_in_
        model._warn_of_doubts(*decided)
        if table.largest() <= 1:
            warnings.warn(
                "zeros and ones are taken for Poisson counts on shards: associations "
                "of frequent pairs are understated",
                AMPWarning,
                stacklevel=2,
            )
    return model


class ShardedTable(Blocks):
    """What `amptutorial.table.Table` is in one process, in blocks on workers."""

    store: Checkpoint | None = None
    saved: list = []
    stage, unseen = 0, None
    _bursts: tuple = None, None

    def of(self, parts, slices=None, n=None):
        """Return a table with other parts, and perhaps with other rows and columns."""
        other = object.__new__(ShardedTable)
        other.tasks, other.parts, other._margins = self.tasks, parts, None
        other.slices = slices or self.slices
        other.shape = other.slices[-1].stop, self.shape[1] if n is None else n
        return other

    def keep(self, store):
        """Store the stages of the fit, and go on from those that are stored."""
        self.store, self.saved = store, store.load() or []

    @cached_property
    def T(self):
        """The transpose."""
        return _Columns(self)

    @cached_property
    def totals(self):
        """The sums of the rows."""
        return self.margins()[0]

    @property
    def observed(self):
        """Itself, and no gaps: as for a table of which all pairs were observed."""
        return self, None

    def largest(self):
        """Return the largest count."""
        return max(self.tasks.gather(self.tasks.map(methodcaller("max"), self.parts)))

    def total(self):
        """Return the sum of all counts."""
        return self.margins()[1].sum()

    def channel(self, name):
        """Return the channel: none that is taken here has a dispersion to estimate."""
        return CHANNELS[name]

    def hide(self, rng):
        """Hide the pairs that one process would hide: every block has its numbers."""
        generators, k = [], len(self.parts)
        for number in self.pairs:
            generators.append(deepcopy(rng))
            rng.bit_generator.advance(number)
        found = self.tasks.map(_hide, self.parts, generators)
        parts, rows, columns = (self.tasks.map(itemgetter(k), found) for k in range(3))
        rows, columns = self.tasks.gather([rows, self.tasks.summed(columns)])
        sums = np.concatenate(rows), *add(columns)
        zeros = surprising_pairs(*sums, VALIDATION, rng)
        zeros = [zeros[part] for part in self.slices]
        found = self.tasks.map(_mark, parts, zeros, rows, self.tasks.share(sums[1], k))
        seen, hidden = (self.tasks.map(itemgetter(k), found) for k in range(2))
        held_out, gaps = zip(*self.tasks.gather(hidden), strict=True)
        gaps, seen = sp.vstack(gaps, format="csr"), self.of(seen)
        seen.unseen = gaps if gaps.nnz else None
        kept = fill_margins(*sums, seen.unseen)
        return seen, checked_held_out(*kept, sp.vstack(held_out), seen.unseen)

    @property
    def gaps(self):
        """Whether some pairs are hidden."""
        return self.unseen is not None

    def margins_under(self, channel):
        """Return the margins of the bursts expected without an embedding."""
        parts = self.tasks.map(without_gaps, self.rare(channel).parts)
        observed = self.of(self.tasks.map(itemgetter(0), parts))
        return fill_margins(*observed.margins(), self.unseen)

    def rare(self, channel):
        """Return the table of the bursts expected where they are rare."""
        channels = [channel] * len(self.parts)
        return self.of(self.tasks.map(rare_bursts, self.parts, channels))

    def bursts(self, channel, rows, columns, m):
        """Return the table of the bursts expected given the counts."""
        if self._bursts[0] is not channel:
            self._bursts = channel, self.rare(channel)
        if not self.gaps:
            return self._bursts[1]
        each = [_Placed(rows.X[part], rows.bias[part]) for part in self.slices]
        columns, k = _Placed(columns.X, columns.bias), len(each)
        given = each, self.tasks.share(columns, k), [m] * k
        return self.of(self.tasks.map(with_rates, self._bursts[1].parts, *given))

    def sums(self, U, sums):
        """Return what a half-step on rows `U` asks for."""
        rows = [U[part] for part in self.slices]
        sizes = [_of(sums.sizes, part) for part in self.slices]
        sample = self.tasks.share(sums.sample, len(rows))
        found = self.tasks.map(_sums_of_rows, self.parts, rows, sizes, sample)
        found = zip(*self.tasks.gather(found), strict=True)
        self.totals, *asked = map(np.concatenate, found)
        return asked

    def reach(self, step, sums, beyond):
        """Return the `amptutorial.sums.largest_changes` by steps of rows."""
        return self.over_rows("reach", sums, step, beyond)

    def over_rows(self, name, sums, X, *given):
        """Return what a method of `sums` returns, computed in blocks of the rows `X`.

        What is `given` too has as many rows, or is the same for all.
        """
        if len(X) * len(sums.W) < HERE:
            return getattr(sums, name)(X, *given)
        cuts = list(blocks(len(X), -(-len(X) // len(self.parts))))
        split = sums.sizes, X, *given
        each = ([_of(value, rows) for rows in cuts] for value in split)
        sample, names = self.tasks.share(sums.sample, len(cuts)), [name] * len(cuts)
        found = self.tasks.gather(self.tasks.map(_method, names, sample, *each))
        if isinstance(found[0], tuple):
            return tuple(map(np.concatenate, zip(*found, strict=True)))
        return np.concatenate(found)

    def score(self):
        """Return the score without empty rows and columns, and the columns it has."""
        rows, columns = (margin > 0 for margin in self.margins())
        if rows.all() and columns.all():
            return ShardedScore(self), np.arange(self.shape[1])
        columns = np.flatnonzero(columns)
        some = [np.flatnonzero(rows[part]) for part in self.slices]
        kept = [k for k, each in enumerate(some) if each.size]
        slices = consecutive(some[k].size for k in kept)
        given = [some[k] for k in kept], self.tasks.share(columns, len(kept))
        parts = self.tasks.map(_take, [self.parts[k] for k in kept], *given)
        return ShardedScore(self.of(parts, slices, len(columns))), columns

    leading_directions = Table.leading_directions
    information = Table.information

    def settled(self, rows, columns, m, channel, sample):
        """Return the rows settled, those of each block where it is."""
        if sample.sampled:  # draw the samples, for all workers
            sample.for_rows(rows.X, self.bursts(channel, rows, columns, m).totals)
        sides = [rows.take(part) for part in self.slices]
        given = replace(columns, denoiser=None), m, channel, sample
        given = self.tasks.share(given, len(sides))
        settled = self.tasks.map(_settle, self.parts, sides, given)
        return rows.with_rows(self.tasks.gather(settled))

    def repeat(self, step, state, number, rng):
        """Return the state of a stage of the fit after its last step.

        The `store` has each stage as it ended, and the state of the last one.
        """
        stage, done = self.stage, 0
        self.stage += 1
        if stage < len(self.saved):
            done, saved, rng.bit_generator.state = self.saved[stage]
            state = tuple(map(copy, saved))  # which goes on, and what is kept does not
        for k in range(done, number):
            state, last = step(*state)
            if self.store:
                done = number if last else k + 1
                kept = tuple(map(copy, state))
                self.saved[stage:] = [(done, kept, rng.bit_generator.state)]
                self.store.save(self.saved)
            if last:
                break
        return state


class _Columns:
    """The transpose of a table: its rows are the columns."""

    def __init__(self, table):
        self.table, self.tasks, self.reach = table, table.tasks, table.reach

    @cached_property
    def totals(self):
        return self.table.margins()[1]

    def sums(self, U, sums):
        """Return what a half-step on rows `U` asks for: the columns of the table."""
        parts, slices = self.table.parts, self.table.slices
        given = self.tasks.share((U, sums), len(parts))
        found = self.tasks.map(_sums_of_columns, parts, slices, given)
        product, self.totals, *own = add(self.tasks.gather(self.tasks.summed(found)))
        return product, *self.table.over_rows("tilted_means", sums, U, own or None)


class _Placed(NamedTuple):
    """What of a side the rates of pairs depend on."""

    X: np.ndarray
    bias: np.ndarray


def _of(value, rows):
    """Return some rows of an array, or of several; what has no rows stays as it is."""
    if isinstance(value, list):
        return [each[rows] for each in value]
    return value[rows] if isinstance(value, np.ndarray) else value


# What workers do


def _hide(Z, rng):
    kept, held_out = hide_pairs(sp.csr_array(Z, dtype=np.float64), VALIDATION, rng)
    rows, columns = margins(kept)
    return (kept, held_out), rows, (columns,)


def _mark(parts, zeros, rows, columns):
    seen = with_gaps(*parts, zeros, rows, columns)
    gaps = without_gaps(seen)[1]
    return seen, (parts[1], sp.csr_array(seen.shape) if gaps is None else gaps)


def _take(N, rows, columns):
    return N[rows][:, columns]


def _sums_of_rows(N, U, sizes, sample):
    return N.sum(axis=1), *Table(N).sums(U, sample.of_sizes(sizes))


def _sums_of_columns(N, part, given):
    """Return what a block adds to the product, the totals and the own sums."""
    (V, sums), N = given, N.T.tocsr()
    return N @ sums.W[part], N.sum(axis=1), *(sums.own_sums(V, N, part) or ())


def _method(name, sample, sizes, X, *given):
    return getattr(sample.of_sizes(sizes), name)(X, *given)


def _settle(Z, this, given):
    other, m, channel, sample = given
    return settle_rows(Table(Z), this, other, m, channel, sample=sample)
