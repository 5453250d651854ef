"""AMP on shards: weak scaling, the bytes that an iteration moves, memory; and what they say of a thousand workers."""

import tempfile
import time
from contextlib import ExitStack, contextmanager

import numpy as np
import scipy.sparse as sp
from scipy.stats import norm

from amptutorial import Ridge, random_start
from amptutorial._extras import extra
from amptutorial.cluster.amp import sharded_amp
from amptutorial.cluster.shards import write_shards
from amptutorial.cluster.tasks import FAN_IN

from .timing import peak, row

with extra("dask"):
    from distributed import Client, LocalCluster
    from distributed.comm.tcp import TCP

D, N, PER_ROW = 10, 20_000, 100  # columns; counts in a row
ROWS = 12_500  # of a shard
BYTES = 8
SENT = {"bytes": 0}


class Noted(Ridge):
    """The ridge of the columns, which are updated in this process: it notes `note()` each time."""

    notes: list = []
    note = staticmethod(time.perf_counter)

    def denoise(self, P, r, F):
        """Return what the ridge returns."""
        Noted.notes.append(Noted.note())
        return super().denoise(P, r, F)


def block(seed, rows=ROWS):
    """Return counts (rows, N) without an embedding, `PER_ROW` in a row, that leave no column empty."""
    rng = np.random.default_rng(seed)
    j = (N * rng.random((rows, PER_ROW)) ** 2).astype(int)  # some columns have many counts
    j[:, 0] = (seed * rows + np.arange(rows)) % N
    i = np.repeat(np.arange(rows), PER_ROW)
    Z = sp.csr_array((np.ones(j.size, dtype=np.int32), (i, j.ravel())), shape=(rows, N))
    Z.sum_duplicates()
    return Z


def shards_of(count, rows=ROWS):
    """Return so many shards of the same size, in a new folder."""
    return write_shards((block(seed, rows) for seed in range(count)), tempfile.mkdtemp())


@contextmanager
def cluster(n_workers, memory_limit=0):
    """Yield a client of workers with one thread each, which count what they send."""
    local = LocalCluster(
        n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", memory_limit=memory_limit, silence_logs=50
    )
    with local, Client(local) as client:
        client.run(listen)
        yield client


def run(shards, client, n_iter, note=time.perf_counter):
    """Return how much `note()` grows in each iteration but the first, in which the shards are loaded."""
    Noted.note, Noted.notes = staticmethod(note), []
    B0 = random_start(N, D, np.random.default_rng(0))
    sharded_amp(shards, (Ridge(1.0), Noted(1.0)), B0=B0, n_iter=n_iter, client=client)
    return np.diff(Noted.notes, axis=0)


def bench_weak_scaling(per_worker=4, rounds=5, n_iter=9):
    """Yield the work per time of two workers over that of one, with as many shards for each."""
    shards = {k: shards_of(per_worker * k) for k in (1, 2)}
    fastest = {1: [], 2: []}
    with ExitStack() as stack:
        clients = {k: stack.enter_context(cluster(k)) for k in (1, 2)}
        for _ in range(rounds):
            for k, client in clients.items():
                fastest[k].append(np.median(run(shards[k], client, n_iter)))
    one, two = (np.median(fastest[k]) for k in (1, 2))
    each = per_worker * ROWS * PER_ROW
    at = f"{each:,} counts for each worker, {one:.3f} and {two:.3f} s an iteration"
    yield row("Sharded AMP, two workers over one, work per time", at, 2 * one / two, "at least 1.7")
    best = 2 * min(fastest[1]) / min(fastest[2])
    yield row("the same from the fastest of the rounds", f"{rounds} rounds", best, "at least 1.7")


def listen():
    """Count the bytes that this process sends to others, from now on."""
    if getattr(TCP.write, "counts", False):
        return
    write = TCP.write

    async def counted(self, *args, **kwargs):
        sent = await write(self, *args, **kwargs)
        SENT["bytes"] += sent
        return sent

    counted.counts = True
    TCP.write = counted


def sent():
    """Return how many bytes this process has sent."""
    return SENT["bytes"]


def moved(m, n, d, workers):
    """Return the bytes that workers send in an iteration, if each has enough shards for sums of its own.

    The new rows; B, which each hands on to another; in the tree and to the calling process the sums, n x d.
    """
    rows, columns = m * d * BYTES, n * d * BYTES
    return rows + (workers - 1) * columns + workers * columns


def bench_bytes(count=16, n_iter=12):
    """Yield the bytes that two workers send in an iteration, and the formula."""
    shards = shards_of(count, rows=1_250)
    with cluster(2) as client:
        found = run(shards, client, n_iter, lambda: sum(client.run(sent).values()))
    m, n = shards.shape
    formula = moved(m, n, D, 2)
    at = f"{m:,} x {n:,}, d = {D}, {count} shards; MB, from {found.min() / 1e6:.1f} to {found.max() / 1e6:.1f}"
    yield row("Sent by two workers in an iteration", at, np.median(found) / 1e6, f"{formula / 1e6:.1f} by the formula")


def cpu():
    """Return the seconds of computing that this process has taken."""
    return time.process_time()


def bench_cpu(per_worker=4, n_iter=9):
    """Yield the seconds of computing in an iteration: of the busiest worker, and of this process."""
    for k in (1, 2):
        shards = shards_of(per_worker * k)
        with cluster(k) as client:
            found = run(shards, client, n_iter, lambda client=client: [cpu(), *client.run(cpu).values()])
        here, *workers = np.median(found, axis=0)
        yield row(f"Computing of the busiest of {k} workers, seconds", f"calling process {here:.3f}", max(workers), "")


def bench_memory(count=16, limit=0.4e9, n_iter=4):
    """Yield the memory of both workers, at its peak, with counts whose scores take more."""
    shards = shards_of(count)
    pairs = sum(one["pairs"] for one in shards.files)
    with cluster(2, memory_limit=int(limit)) as client:
        base = sum(client.run(peak).values())
        times = run(shards, client, n_iter)
        peaks = sum(client.run(peak).values())
    at = f"{pairs * 1.0:.3g} pairs, base {base / 1e6:.0f} MB, {np.median(times):.1f} s an iteration"
    yield row("Peak memory of two workers, GB", at, peaks / 1e9, f"at most {2 * limit / 1e9:.1f}")


def stragglers(workers, sigma=0.3):
    """Return the mean of the slowest of so many times over the mean of one: exponential, and lognormal ones."""
    exponential = (1 / np.arange(1, workers + 1)).sum()
    # E max = the integral of P(max > t) over t
    t = np.geomspace(1e-3, 1e3, 200_000)
    survival = -np.expm1(workers * norm.logcdf(np.log(t) / sigma))
    return exponential, (t[0] + np.trapezoid(survival, t)) / np.exp(sigma**2 / 2)


def bench_thousand(workers=1_000, counts=1e11, n=1_000_000, link=1.25e9):
    """Yield what an iteration moves with a thousand workers, by the formulas, at 1.25 GB/s for each machine."""
    columns, levels = n * D * BYTES, int(np.ceil(np.log(workers) / np.log(FAN_IN)))
    yield row("B, and each sum, MB", f"n = {n:,}, d = {D}", columns / 1e6, "")
    yield row("The tree, seconds", f"{levels} levels of {FAN_IN}", levels * FAN_IN * columns / link, "")
    for per_row in (100, 10_000):
        m = int(counts / per_row)
        at = f"m = {m:,}"
        yield row("Rows to and from the calling process, GB each way", at, m * D * BYTES / 1e9, "")
        yield row("The same, seconds both ways", at, 2 * m * D * BYTES / link, "")
        yield row("Sent by all workers, GB", at, moved(m, n, D, workers) / 1e9, "")
    for name, factor in zip(("exponential", "lognormal, sigma 0.3"), stragglers(workers), strict=True):
        yield row("Slowest of the workers over the mean", name, factor, "")
