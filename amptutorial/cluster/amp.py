"""Biased low-rank AMP on shards of counts, on the workers of a Dask cluster.

A worker loads a shard once and keeps its score. In each iteration the workers update
the rows of A and return what adds up over the rows, such as Y^T A; the calling process
then updates the columns. The counts stay with the workers. The estimates, m x d and
n x d, pass through the calling process, which keeps the last ones. So a worker may be
lost: Dask lets another one load its shards, and the iteration goes on.
"""

import numpy as np
from tqdm import tqdm

from .._validation import check_finite, check_integer, quiet
from ..amp import (
    AMPRun,
    HalfStep,
    RowStep,
    check_damping,
    check_start,
    damp,
    denoise_rows,
    denoiser_input,
    form_precision,
    one_iteration,
    second_moment,
    start_state,
    warn_if_floored,
)
from ..bias import bias_of_margins
from ..denoisers import as_pair
from .shards import Shards, load_score, open_shards
from .tasks import (
    Checkpoint,
    Tasks,
    check_client,
    check_cluster,
    learns,
    pickled,
)


@quiet
def _denoiser_input(Y, r, A, given):
    """Return P for the rows of a shard, beside r and A."""
    B, Gamma, m = given
    P = denoiser_input(Y, B, A, Gamma, m)
    check_finite(P=P)
    return P, r, A


@quiet
def _update(Y, given, m, F, denoiser, damping):
    """Return the new rows of a shard, and what they add to the sums over all rows."""
    P, r, A = given
    estimate, jacobian = denoise_rows(P, r, F, denoiser)
    A = damp(estimate, A, damping)
    return A, (Y.T @ A, second_moment(A, m), jacobian * (len(P) / m))


def _iterate(Y, r, A, given, *rest):
    """Return what `_update` does, in one task."""
    return _update(Y, _denoiser_input(Y, r, A, given), *rest)


class _RowsOnWorkers(Tasks):
    """Lines 4 to 7 of Algorithm 1 on shards, as `amptutorial.amp.update_rows`."""

    def __init__(self, client, shards, r_u, r_v):
        super().__init__(client)
        self.shards, self.r_u = shards, r_u
        self.r = [r_u[part] for part in shards.slices]
        r_v, folder = self.share(r_v), str(shards.folder)
        pairs = zip(shards.files, self.r, strict=True)
        arguments = ((folder, *each, r_v) for each in pairs)
        self.scores = self.spread(load_score, arguments)

    def __call__(self, state, damping):
        denoiser, m, Gamma = state.denoiser_u, len(self.r_u), state.Gamma_a
        Q = second_moment(state.B, m)
        check_finite(Q=Q)
        F, floored = form_precision(Q, Gamma, self.r_u, denoiser)
        A = [state.A[part] for part in self.shards.slices]
        given = self.share((state.B, Gamma, m))
        each = [(*one, given) for one in zip(self.scores, self.r, A, strict=True)]
        task = _iterate
        if learns(denoiser):  # from all rows, before any of them is updated
            inputs, task = self.spread(_denoiser_input, each), _update
            denoiser = self.refit(denoiser, inputs, F)
            each = zip(self.scores, inputs, strict=True)
        rest = m, F, denoiser, damping
        updated = self.spread(task, ((*one, *rest) for one in each))
        rows, (product, Q, jacobian) = self.collect(updated)
        A = np.concatenate(rows)
        return RowStep(HalfStep(F, A, jacobian, denoiser, floored), A, product, Q)


def sharded_amp(
    shards, denoiser, *, B0, n_iter=10, damping=0.0, checkpoints=None, client
):
    """Run `amptutorial.biased_low_rank_amp` on counts in shards, on a Dask cluster.

    Y~ is the score of the counts with counted biases (`amptutorial.estimate_bias`). The
    result is that of a single process, up to the order in which sums are formed.

    Parameters
    ----------
    shards : Shards or path
        See `write_shards`. All workers see the folder by the same path.
    denoiser, B0, n_iter, damping
        As for `amptutorial.biased_low_rank_amp`. The denoiser of the rows treats each
        row by itself; what it learns from all rows, it learns from their `statistics`.
    checkpoints : path, optional
        A folder: the last iteration is stored there, and a run with the same shards,
        denoiser, start and damping goes on from it. It is stored by `pickle`, so take
        no folder from someone whose code you would not run.
    client : distributed.Client
        Of the cluster. Its workers and its scheduler have this package.

    Returns
    -------
    AMPRun
        Its `iterates` hold the last iteration alone.

    Raises
    ------
    ImportError
        If Dask is not installed, or a worker does not have this package.
    MemoryError
        If a worker may not use the memory that the largest shard takes.
    FileNotFoundError, ValueError
        For shards that are missing or changed, a row or column without counts, a
        checkpoint that is damaged or of another run, and as
        `amptutorial.biased_low_rank_amp`.
    TypeError
        For a denoiser that cannot be pickled, or one of the rows that overrides
        `refit`, and for another client.

    Warns
    -----
    IndefinitePrecisionWarning
        If F had to be floored in the last iteration.
    """
    check_client(client)
    if not isinstance(shards, Shards):
        shards = open_shards(shards)
    (m, n), n_iter = shards.shape, check_integer(n_iter, "n_iter", minimum=1)
    r_u, r_v = bias_of_margins(shards.rows, shards.columns)
    B0, denoiser = check_start(B0, m, n), as_pair(denoiser)
    damping, as_bytes = check_damping(damping), pickled(denoiser, denoiser[:1])
    parts = shards.checksum.encode(), as_bytes, B0.tobytes(), repr(damping).encode()
    others = "other counts, another denoiser, start or damping"
    store = Checkpoint(checkpoints, parts, others)
    iterate, state = store.load() or (None, start_state(B0, m, denoiser))
    if state.k > n_iter:
        raise ValueError(
            f"n_iter is {n_iter}, and {store.path} is of iteration {state.k}"
        )
    floored = [iterate.floored_a or iterate.floored_b] if iterate else []
    if state.k < n_iter:
        check_cluster(client, shards, __name__)
        rows = _RowsOnWorkers(client, shards, r_u, r_v)
    left = range(state.k, n_iter)
    for _ in tqdm(left, desc="AMP on shards", unit=" iterations", leave=False):
        iterate, state = quiet(one_iteration)(state, rows, r_v, damping)
        floored.append(iterate.floored_a or iterate.floored_b)
        store.save((iterate, state))
    warn_if_floored(floored)
    return AMPRun([iterate])
