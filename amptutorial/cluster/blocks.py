"""Counts in blocks of rows on the workers of a Dask cluster, from files or an array."""

from functools import cached_property
from hashlib import sha256
from itertools import accumulate, pairwise
from operator import attrgetter, itemgetter
from os import PathLike

import numpy as np
import scipy.sparse as sp

from .._extras import extra
from .._validation import check_counts
from ..bias import margins
from .shards import Shards, load_counts, open_shards
from .tasks import Tasks, add, check_client, check_cluster

WORTHWHILE = 2**19  # pairs of a block: where there are fewer, messages take longer


class Blocks:
    """A matrix of counts whose blocks of rows stay with workers.

    Parameters
    ----------
    counts : Shards, path, or dask.array.Array (m, n)
        Files of `amptutorial.cluster.shards.write_shards`, which all workers see by the
        same path, or an array of Dask: its blocks, which are dense or sparse, are
        joined to whole rows, without those that have none. Small files that are
        neighbours are joined too.
    client : distributed.Client
        Of the cluster. Its workers and its scheduler have this package.

    Attributes
    ----------
    shape : (int, int)
    slices, pairs : list of slice, list of int
        The rows of each block, and how many pairs of a row and a column it stores.
    fingerprint : bytes
        Of the counts.
    tasks : Tasks
    parts : list of distributed.Future
        The blocks, csr_arrays; workers load files when they are first asked for.

    Raises
    ------
    ImportError
        If Dask is not installed, or a worker does not have this package.
    MemoryError
        If a worker may not use the memory that the largest file takes.
    FileNotFoundError, ValueError
        For files that are missing or changed, and for invalid counts.
    TypeError
        For another client.
    """

    _margins: tuple | None

    def __init__(self, counts, client):
        check_client(client)
        with extra("dask"):
            from dask.array import Array

        self.tasks = Tasks(client)
        if isinstance(counts, Array):
            check_cluster(client, __name__)
            pieces = [client.compute(row) for row in counts.to_delayed().tolist()]
            whole = self.tasks.map(_whole_rows, range(len(pieces)), pieces)
            # a filter leaves blocks without rows
            shapes = self.tasks.gather(self.tasks.map(attrgetter("shape"), whole))
            self.parts = [part for part, (m, _) in zip(whole, shapes, strict=True) if m]
            if not self.parts:
                raise ValueError("the counts have no rows")
            stored = self.tasks.map(attrgetter("nnz"), self.parts)
            self.pairs, self._margins = self.tasks.gather(stored), None
            self.fingerprint = sha256(b"".join(map(bytes, self.margins()))).digest()
            sizes = [m for m, _ in shapes if m]
        else:
            if not isinstance(counts, Shards | str | PathLike):
                raise TypeError(
                    f"counts is of type {type(counts).__name__}: write_shards(counts, "
                    "folder) makes Shards of it"
                )
            shards = counts if isinstance(counts, Shards) else open_shards(counts)
            self._shards, self._margins = shards, (shards.rows, shards.columns)
            self._files = _joined(shards.files, len(self.tasks.workers))
            sizes = [sum(one["shape"][0] for one in files) for files in self._files]
            self.pairs = [sum(one["pairs"] for one in files) for files in self._files]
            self.fingerprint = shards.checksum.encode()
        self.slices = consecutive(sizes)
        self.shape = tuple(map(len, self.margins()))

    @cached_property
    def parts(self):  # noqa: D102
        check_cluster(self.tasks.client, __name__, self._shards.files)
        folders = [str(self._shards.folder)] * len(self._files)
        return self.tasks.map(_load, folders, self._files)

    def margins(self):
        """Return the sums of the rows (m,) and of the columns (n,)."""
        if self._margins is None:
            found = self.tasks.map(margins, self.parts)
            rows = self.tasks.map(itemgetter(0), found)
            columns = self.tasks.summed(self.tasks.map(itemgetter(slice(1, 2)), found))
            rows, columns = self.tasks.gather([rows, columns])
            self._margins = np.concatenate(rows), *add(columns)
        return self._margins


def consecutive(sizes):
    """Return the slices of parts of these sizes, one after another.

    Examples
    --------
    >>> consecutive([2, 3])
    [slice(0, 2, None), slice(2, 5, None)]
    """
    return [slice(*ends) for ends in pairwise(accumulate(sizes, initial=0))]


def _joined(files, workers):
    """Return lists of neighbours among files: each is a block.

    A block is worthwhile, or at least about as large as the share of each worker.
    """
    enough = min(WORTHWHILE, 0.75 * sum(one["pairs"] for one in files) / workers)
    groups, pairs = [], enough
    for one in files:
        if pairs >= enough:
            groups.append([])
            pairs = 0
        groups[-1].append(one)
        pairs += one["pairs"]
    return groups


# What workers do


def _load(folder, files):
    """Return the counts of neighbouring files."""
    return sp.vstack([load_counts(folder, one) for one in files], format="csr")


def _whole_rows(k, pieces):
    """Return a block of rows, whose `pieces` are dense or sparse."""
    whole = sp.hstack([sp.csr_array(piece) for piece in pieces], format="csr")
    if not whole.shape[0]:
        return whole
    return sp.csr_array(check_counts(whole, name=f"block {k} of the counts"))
