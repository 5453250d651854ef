"""Counts in blocks of rows on the workers of a Dask cluster, from files or an array."""

from functools import cached_property
from hashlib import sha256
from itertools import accumulate

import numpy as np
import scipy.sparse as sp

from .._validation import check_counts
from ..bias import margins
from .shards import Shards, load_counts, open_shards
from .tasks import Tasks, check_client, check_cluster


class Blocks:
    """A matrix of counts whose blocks of rows stay with workers.

    Parameters
    ----------
    counts : Shards, path, or dask.array.Array (m, n)
        Files of `amptutorial.cluster.shards.write_shards`, which all workers see by the
        same path, or an array of Dask: its blocks, which are dense or sparse, are
        joined to whole rows.
    client : distributed.Client
        Of the cluster. Its workers and its scheduler have this package.

    Attributes
    ----------
    shape : (int, int)
    slices : list of slice
        The rows of each block.
    margins : pair of arrays (m,), (n,)
        The sums of the rows and of the columns.
    fingerprint : bytes
        Of the counts.
    tasks : Tasks
    parts : list of distributed.Future
        The blocks, csr_arrays; workers load them when they are first asked for.

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

    def __init__(self, counts, client):
        check_client(client)
        from dask.array import Array

        self.tasks = Tasks(client)
        if isinstance(counts, Array):
            self._files = None
            check_cluster(client, __name__)
            self.parts = self.tasks.spread(_whole_rows, _pieces(counts, client))
            found = [self.tasks.submit(margins, part) for part in self.parts]
            rows, columns = zip(*client.gather(found), strict=True)
            self.margins = np.concatenate(rows), sum(columns)
            sizes = list(map(len, rows))
            self.fingerprint = sha256(b"".join(map(bytes, self.margins))).digest()
        else:
            files = counts if isinstance(counts, Shards) else open_shards(counts)
            self._files, self.margins = files, (files.rows, files.columns)
            sizes = [file["shape"][0] for file in files.files]
            self.fingerprint = files.checksum.encode()
        ends = list(accumulate(sizes))
        self.slices = [slice(*each) for each in zip([0, *ends], ends, strict=False)]
        self.shape = tuple(map(len, self.margins))

    @cached_property
    def parts(self):  # noqa: D102
        check_cluster(self.tasks.client, __name__, self._files.files)
        folder = str(self._files.folder)
        files = ((folder, file) for file in self._files.files)
        return self.tasks.spread(load_counts, files)


def _pieces(array, client):
    """Return for each block of rows its number and the futures of its pieces."""
    grid = array.to_delayed()
    futures = np.empty(grid.shape, dtype=object)
    futures.ravel()[:] = client.compute(grid.ravel().tolist())
    return ((k, *pieces) for k, pieces in enumerate(futures))


# What workers do


def _whole_rows(k, *pieces):
    """Return a block of rows, whose `pieces` are dense or sparse."""
    whole = sp.hstack([sp.csr_array(piece) for piece in pieces], format="csr")
    return sp.csr_array(check_counts(whole, name=f"block {k} of the counts"))
