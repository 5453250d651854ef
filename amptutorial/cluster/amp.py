"""Biased low-rank AMP on counts that no process holds: a score on a Dask cluster.

Workers multiply and add, and nothing else: a worker loads a block of rows once, keeps
its score, and multiplies it. The estimates, m x d and n x d, stay in the calling
process, which denoises. So any `LinearOperator` algorithm runs on a `ShardedScore`,
with any denoiser; and a worker may be lost: Dask lets another one load its blocks.
"""

from operator import matmul

import numpy as np
from scipy.sparse.linalg import LinearOperator

from .._progress import progress
from .._validation import check_integer, check_positive, quiet, read_only
from ..amp import (
    AMPRun,
    amp_iterates,
    check_start,
    iterate_zero,
    naming,
    warn_if_floored,
)
from ..bias import bias_of_margins
from ..denoisers import as_pair
from ..score import FisherScore
from .blocks import Blocks
from .tasks import Checkpoint, add, pickled


class ShardedScore(LinearOperator):
    """The score Y~ of counts in blocks of rows, with counted biases, on a cluster.

    What `amptutorial.FisherScore` is in one process: `amptutorial.biased_low_rank_amp`,
    `amptutorial.baselines` and `scipy.sparse.linalg` take it.

    Parameters
    ----------
    counts, client
        As for `amptutorial.cluster.blocks.Blocks`, which may take their place.

    Attributes
    ----------
    r_u, r_v : arrays (m,), (n,)
        The biases, as from `amptutorial.estimate_bias`.

    Raises
    ------
    ImportError, MemoryError, FileNotFoundError, TypeError
        As `amptutorial.cluster.blocks.Blocks`.
    ValueError
        As there, and for a row or column without counts.
    """

    def __init__(self, counts, client=None):
        blocks = counts if isinstance(counts, Blocks) else Blocks(counts, client)
        self.r_u, self.r_v = bias_of_margins(*blocks.margins())
        self.tasks, self.slices = blocks.tasks, blocks.slices
        r_u = [self.r_u[rows] for rows in self.slices]
        r_v = self.tasks.share(self.r_v, len(r_u))
        self.parts = self.tasks.map(FisherScore, blocks.parts, r_u, r_v)
        super().__init__(np.dtype(np.float64), blocks.shape)

    def _matmat(self, X):
        """Return Y X, each block where it is."""
        X = self.tasks.share(X, len(self.parts))
        return np.concatenate(self.tasks.gather(self.tasks.map(matmul, self.parts, X)))

    def _rmatmat(self, X):
        """Return Y^T X, added up in a tree."""
        X = [X[rows] for rows in self.slices]
        products = self.tasks.map(_transposed_times, self.parts, X)
        return add(self.tasks.gather(self.tasks.summed(products)))[0]


def sharded_amp(
    counts, denoiser, *, B0, n_iter=10, damping=0.0, checkpoints=None, client
):
    """Run `amptutorial.biased_low_rank_amp` on a `ShardedScore`, with checkpoints.

    The result is that of a single process, up to the order in which sums are formed.

    Parameters
    ----------
    counts, client
        As for `amptutorial.cluster.blocks.Blocks`.
    denoiser, B0, n_iter, damping
        As for `amptutorial.biased_low_rank_amp`.
    checkpoints : path, optional
        A folder: the last iterate is stored there, and a run with the same counts,
        denoiser, start and damping goes on from it. It is stored by `pickle`, so take
        no folder from someone whose code you would not run.

    Returns
    -------
    AMPRun
        Its `iterates` hold the last iteration alone.

    Raises
    ------
    ImportError, MemoryError, FileNotFoundError, ValueError, TypeError
        As `ShardedScore` and `amptutorial.biased_low_rank_amp`; for a checkpoint that
        is damaged or of another run, and for one with a denoiser that cannot be
        pickled.

    Warns
    -----
    IndefinitePrecisionWarning
        If F had to be floored in the last iteration.
    """
    blocks, n_iter = Blocks(counts, client), check_integer(n_iter, "n_iter", minimum=1)
    (m, n), biases = blocks.shape, bias_of_margins(*blocks.margins())
    r_u, r_v = map(read_only, biases)
    B0, denoiser = check_start(B0, m, n), as_pair(denoiser)
    damping = check_positive(damping, "damping", zero=True, below=1)
    as_bytes = pickled(denoiser) if checkpoints else b""
    given = as_bytes, B0.tobytes(), repr(damping).encode()
    others = "other counts, another denoiser, start or damping"
    store = Checkpoint(checkpoints, (blocks.fingerprint, *given), others)
    last = store.load() or iterate_zero(B0, m, denoiser)
    if last.k >= n_iter:
        raise ValueError(
            f"n_iter is {n_iter}, and {store.path} is of iteration {last.k + 1}"
        )
    floored = [last.floored_a or last.floored_b] if last.k >= 0 else []
    if last.k < n_iter - 1:
        Y = ShardedScore(blocks)
        iterates = amp_iterates(Y, r_u, r_v, last, damping)
    left = range(last.k + 1, n_iter)
    for _ in progress(left, desc="AMP on shards", unit=" iterations", leave=False):
        with quiet(), naming(denoiser, last.k < 0):  # what is not finite is named
            last = next(iterates)
        floored.append(last.floored_a or last.floored_b)
        store.save(last)
    warn_if_floored(floored)
    return AMPRun([last])


# What workers do


def _transposed_times(Y, X):
    return (Y.T @ X,)
