"""`AMPEmbedding` on shards of counts, on the workers of a Dask cluster.

The counts stay with the workers. In a half-step on the rows each worker takes the rows
of its shards, in a half-step on the columns a block of columns and the sum of Z^T U
over all shards. Both sides, m x d and n x d, pass through the calling process, which
draws the samples for the sums (`amptutorial.sampling`), and judges the iterates by the
hidden pairs, a tenth of all, which it holds.
"""

import pickle
from copy import deepcopy
from dataclasses import replace
from functools import cached_property
from itertools import repeat
from operator import itemgetter, matmul, methodcaller

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator

from .._blocks import blocks
from .._counts import sums
from .._validation import check_finite
from ..amp import form_precision
from ..bias import bias_of_margins
from ..denoisers import as_pair
from ..estimator import AMPEmbedding, rare_bursts
from ..poisson import own_sums
from ..reexpansion import (
    alternated,
    columns_of,
    directions_of_score,
    expected_bursts,
    move_rows,
    reexpanded_input,
    scaled_moment,
    settle_rows,
    with_onsager,
)
from ..score import FisherScore
from ..stopping import Chosen, best_iterate, checked_held_out, hide_pairs, is_crowded
from .shards import Shards, load_counts, open_shards
from .tasks import Checkpoint, Tasks, check_client, check_cluster, pickled


def sharded_embedding(shards, model, *, client, checkpoints=None):
    """Fit an `amptutorial.AMPEmbedding` to counts in shards, on a Dask cluster.

    The fit is that of `AMPEmbedding.fit` to all counts with the same `random_state`, up
    to the order in which sums are formed.

    Parameters
    ----------
    shards : Shards or path
        See `write_shards`. All workers see the folder by the same path. No row and no
        column is without counts.
    model : AMPEmbedding
        Its parameters are those of the fit. Sizes of bursts are not estimated:
        ``channel="bursts"`` is refused.
    client : distributed.Client
        Of the cluster. Its workers and its scheduler have this package.
    checkpoints : path, optional
        A folder: the last iteration is stored there, and a fit with the same shards and
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
        As `AMPEmbedding.fit`; for a row or column without counts, for shards that are
        damaged, for a checkpoint that is damaged or of another fit, and for checkpoints
        with ``random_state=None``.

    Notes
    -----
    A checkpoint holds both sides (`amptutorial.reexpansion.Side`) after the last
    iteration and after the best one of each channel, the half-step on the rows that is
    ahead of them, the state of the generator, and what hidden pairs have said. A row or
    a column of a side takes 8 d + 24 bytes, the whole at most that number times 4 m +
    3 n, and three times as much memory while it is written.
    """
    check_client(client)
    if not isinstance(model, AMPEmbedding):
        raise TypeError(f"model must be an AMPEmbedding, got {model!r}")
    model._check_parameters()
    if model.channel == "bursts":
        raise ValueError("channel='bursts' needs all counts in one process")
    if not isinstance(model.denoiser, str):
        pickled(as_pair(model.denoiser))
    if checkpoints is not None and model.random_state is None:
        raise ValueError(
            "random_state=None is another seed at every start, so that no fit goes on "
            "from a checkpoint: give the model a number"
        )
    shards = shards if isinstance(shards, Shards) else open_shards(shards)
    bias_of_margins(shards.rows, shards.columns)  # refuses what is empty
    parameters = pickle.dumps(model.get_params(deep=False), protocol=4)
    parts = shards.checksum.encode(), parameters
    on = _OnWorkers(Checkpoint(checkpoints, parts, "other counts or another model"))
    check_cluster(client, __name__, shards.files)
    tasks, folder = Tasks(client), str(shards.folder)
    parts = tasks.spread(load_counts, ((folder, shard) for shard in shards.files))
    Z = _Table(tasks, shards, parts)
    model._check_size(Z, Z.shape)
    best = model._fit(Z, *map(np.arange, Z.shape), Z.shape, on)
    model.n_features_in_ = Z.shape[1]
    model._warn_of_doubts(best)
    return model


class _Table:
    """Counts on workers: what a fit asks of a sparse array (m, n)."""

    def __init__(self, tasks, shards, parts):
        self.tasks, self.shards, self.parts = tasks, shards, parts
        self.shape, self.slices = shards.shape, shards.slices
        self.pairs = [shard["pairs"] for shard in shards.files]
        self.nnz = sum(self.pairs)

    def map(self, function, *args):
        """Return the table of what `function` makes of each shard."""
        return self.of(self.tasks.spread(function, ((Z, *args) for Z in self.parts)))

    def of(self, parts):
        """Return a table of the same shape with other parts."""
        return _Table(self.tasks, self.shards, parts)

    def max(self):
        return max(self.tasks.client.gather(self.map(methodcaller("max")).parts))

    @cached_property
    def _sums(self):
        rows, (columns,) = self.tasks.collect(self.map(_margins).parts)
        return np.concatenate(rows), columns

    def sum(self, axis=None, dtype=None):
        rows, columns = self._sums
        return columns.sum() if axis is None else (columns, rows)[axis]


class _OnWorkers:
    """The functions of `amptutorial.estimator.IN_PROCESS` for tables on workers.

    The iterations of a fit come in stages: those of each channel, and the last ones.
    After each iteration the `store` has all that the calling process knows then.
    """

    def __init__(self, store):
        self.store, self.stage = store, -1
        self.last = store.load() or {"stage": -1, "judged": []}
        self.judged = self.last["judged"]  # the best iterate of each channel

    @staticmethod
    def set_aside(Z, rng):
        """Hide the pairs that one process would hide: every shard has its numbers."""
        tasks, marked = Z.tasks, is_crowded(Z)
        numbers, found = Z.pairs, []
        if marked:
            numbers = [(part.stop - part.start) * Z.shape[1] for part in Z.slices]
        for part, number in zip(Z.parts, numbers, strict=True):
            found.append(tasks.submit(_hide, part, deepcopy(rng), marked))
            rng.bit_generator.advance(number)
        hidden, (columns,) = tasks.collect(
            [tasks.submit(itemgetter(1), each) for each in found]
        )
        rows = np.concatenate([each[0] for each in hidden])
        held_out = sp.vstack([each[1] for each in hidden])
        seen = Z.of([tasks.submit(itemgetter(0), each) for each in found])
        return seen, checked_held_out(rows, columns, held_out)

    @staticmethod
    def rare_bursts(Z, channel):
        return Z.map(rare_bursts, channel)

    @staticmethod
    def expected_bursts(Z, channel, rows, columns, m):
        if not channel.follows_rate:
            return Z.map(expected_bursts, channel, None, None, m)
        tasks, columns = Z.tasks, Z.tasks.share(columns)
        bursts = [
            tasks.submit(expected_bursts, N, channel, rows.take(part), columns, m)
            for N, part in zip(Z.parts, Z.slices, strict=True)
        ]
        return Z.of(bursts)

    @staticmethod
    def leading_directions(Z, d, rng):
        Y, V = _Score(Z), np.zeros((Z.shape[1], d))
        directions, strength = directions_of_score(Y, d, rng)
        V[Y.columns, : directions.shape[1]] = directions
        return V, strength / float(Z.sum())

    def iterated_sides(self, Z, rows, columns, m, channel, rng, times=1):
        def update(half_step, this, other):
            return half_step(this, other, m, rng, times)

        def tables(rows, columns):
            N = self.expected_bursts(Z, channel, rows, columns, m)
            return _RowStep(N), _ColumnStep(N)

        def iterates(done, rows, columns, moved):
            yield from repeat((rows, columns), done)  # the last of them is looked at
            anew = channel.follows_rate
            found = alternated(update, tables, rows, columns, anew, moved)
            for k, sides in enumerate(found, done + 1):
                state = {"stage": self.stage, "k": k, "sides": sides}
                state |= {"rng": rng.bit_generator.state, "judged": self.judged}
                self.store.save(state)
                yield sides[:2]

        self.stage += 1
        if self.stage > self.last["stage"]:
            return iterates(0, rows, columns, None)
        if self.stage < self.last["stage"]:
            return iter(())
        rng.bit_generator.state = self.last["rng"]
        return iterates(self.last["k"], *self.last.pop("sides"))

    def best_iterate(self, iterates, held_out, tol, rng):
        if self.stage == len(self.judged):
            self.judged.append(Chosen.at_first(held_out, tol))
        return best_iterate(iterates, held_out, tol, rng, self.judged[self.stage])

    @staticmethod
    def settle_rows(Z, this, other, m, channel, columns):
        N = _OnWorkers.expected_bursts(Z, channel, this, other, m)
        columns.parts(this.X, N.sum(axis=1))  # draws the samples
        given = Z.tasks.share((other, columns))
        sides = [
            Z.tasks.submit(_settle, part, this.take(rows), m, channel, given)
            for part, rows in zip(Z.parts, Z.slices, strict=True)
        ]
        return this.with_rows(Z.tasks.client.gather(sides))


class _RowStep:
    """`amptutorial.reexpansion.reexpanded_half_step` on the rows of a table."""

    def __init__(self, N):
        self.N, self.tasks, self.slices = N, N.tasks, N.slices
        self.totals = N.sum(axis=1)

    def inputs(self, this, given):
        """Return futures of what is denoised, for each block of rows."""
        each = zip(self.N.parts, self.slices, strict=True)
        blocks_of = ((N, self.totals[part], this.take(part), given) for N, part in each)
        return self.tasks.spread(_row_input, blocks_of)

    def __call__(self, this, other, m, rng, times):
        tasks, columns = self.tasks, columns_of(this, other, m, rng, times)
        columns.parts(this.X, self.totals)  # draws the samples
        Q, Gamma = scaled_moment(other, m), other.Gamma
        check_finite(Q=Q)
        F, _ = form_precision(Q, Gamma, this.r, this.denoiser)
        given = tasks.share((columns, Q, Gamma))
        inputs = self.inputs(this, given)
        P = tasks.client.gather([tasks.submit(itemgetter(0), each) for each in inputs])
        denoiser = this.denoiser.refit(np.concatenate(P), this.r, F)
        moved = ((each, F, denoiser, given) for each in inputs)
        found = tasks.spread(_move, moved)
        sides, (safe, jacobian) = tasks.collect(found)
        side, N = this.with_rows(sides), len(this.X)
        return with_onsager(side, denoiser, jacobian / N, safe / N, m)


class _ColumnStep(_RowStep):
    """The same on the columns, in blocks: as many as there are shards."""

    def __init__(self, N):
        self.N, self.tasks = N, N.tasks
        n = N.shape[1]
        self.slices = list(blocks(n, -(-n // len(N.parts))))
        self.totals = N.sum(axis=0)

    def inputs(self, this, given):
        """Return futures of what is denoised, for each block of columns."""
        tasks, whole = self.tasks, self.tasks.share((this.X, self.totals))
        pairs = zip(self.N.parts, self.N.slices, strict=True)
        each = ((N, part, whole, given) for N, part in pairs)
        total = tasks.total(tasks.spread(_transposed_sums, each))
        blocks_of = (
            (total, part, self.totals[part], this.take(part), given)
            for part in self.slices
        )
        return tasks.spread(_column_input, blocks_of)


class _Score(LinearOperator):
    """The score of the rows and columns that have counts."""

    def __init__(self, N):
        rows, columns = sums(N)
        some, self.columns = rows > 0, np.flatnonzero(columns)
        r_u, r_v = np.zeros(len(rows)), columns[self.columns]
        r_u[some], r_v = bias_of_margins(rows[some], r_v)
        self.tasks, given = N.tasks, N.tasks.share((r_v, self.columns))
        self.parts = [
            self.tasks.submit(_score, part, r_u[rows], given)
            for part, rows in zip(N.parts, N.slices, strict=True)
            if r_u[rows].any()
        ]
        kept = [np.count_nonzero(r_u[part]) for part in N.slices]
        ends = np.unique(np.cumsum([0, *kept]))
        self.slices = [slice(*each) for each in zip(ends, ends[1:], strict=False)]
        super().__init__(np.dtype(np.float64), (int(some.sum()), len(r_v)))

    def _matmat(self, X):
        X, tasks = self.tasks.share(X), self.tasks
        products = [tasks.submit(matmul, Y, X) for Y in self.parts]
        return np.concatenate(tasks.client.gather(products))

    def _rmatmat(self, X):
        submit, pairs = self.tasks.submit, zip(self.parts, self.slices, strict=True)
        parts = [submit(_transposed_times, Y, X[part]) for Y, part in pairs]
        return self.tasks.total(parts).result()[0]


# What workers do


def _margins(N):
    rows, columns = sums(N)
    return rows, (columns,)


def _hide(Z, rng, marked):
    seen, kept, held_out = hide_pairs(sp.csr_array(Z, dtype=np.float64), rng, marked)
    rows, columns = sums(kept)
    return seen, ((rows, held_out), (columns,))


def _score(N, r_u, given):
    r_v, columns = given
    some = np.flatnonzero(r_u)
    return FisherScore(N[some][:, columns], r_u[some], r_v)


def _transposed_times(Y, X):
    return (Y.T @ X,)


def _transposed_sums(N, part, whole, given):
    """Return Z^T W and the own sums of all columns, as far as this shard has them."""
    (V, totals), columns = whole, given[0]
    Nt, W = N.T.tocsr(), columns.W[part]
    parts = [
        one._replace(missed=one.missed[part])
        for one in columns.parts(V, totals)
        if one.missed is not None
    ]
    return Nt @ W, *own_sums(Nt, V, W, parts)


def _row_input(N, totals, this, given):
    W, parts = given[0].W, given[0].parts(this.X, totals)
    return _input(N @ W, own_sums(N, this.X, W, parts), totals, this, given, parts)


def _column_input(total, part, totals, this, given):
    product, sums, moments = (one[part] for one in total)
    parts = given[0].parts(this.X, totals)
    return _input(product, (sums, moments), totals, this, given, parts)


def _input(product, own, totals, this, given, parts):
    _, Q, Gamma = given
    P, bias = reexpanded_input(product, totals, own, this, Q, Gamma, parts)
    check_finite(P=P)
    return P, this.r, replace(this, bias=bias), totals


def _move(given, F, denoiser, shared):
    P, r, this, totals = given
    estimate, jacobian = denoiser.denoise(P, r, F)
    parts = shared[0].parts(this.X, totals)
    side, safe = move_rows(this, estimate, parts)
    return side, (safe.sum(dtype=np.float64), jacobian * len(P))


def _settle(Z, this, m, channel, given):
    other, columns = given
    return settle_rows(Z, this, other, m, channel, columns=columns)
