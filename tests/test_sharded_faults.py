"""A cluster that cannot do the work is refused before it begins; a run that is killed goes on where it was."""

import os
import pickle
import signal
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from distributed import Client
from sharded_denoisers import KillsOnce
from sharded_samples import assert_same, at_once, cluster, sample_counts, sample_start

from amptutorial import FisherScore, GaussianPosterior, Ridge
from amptutorial.bias import bias_of_margins
from amptutorial.cluster.amp import sharded_amp
from amptutorial.cluster.shards import bytes_to_load, load_counts, open_shards, write_shards
from amptutorial.cluster.tasks import CHECKPOINT, _workers_of

HIDE = "import sys; sys.modules['amptutorial'] = None"  # as if it were not installed


@pytest.fixture
def shards(tmp_path):
    return write_shards(sample_counts(), tmp_path / "shards", rows=17)


def run_on(shards, client, **arguments):
    return sharded_amp(shards, Ridge(1.0), **{"B0": sample_start(), "n_iter": 2, "client": client} | arguments)


@pytest.mark.slow
def test_a_worker_without_the_package_is_named(shards):
    with cluster(n_workers=2, processes=True) as workers, Client(workers) as client:
        _, lacking = _workers_of(client)
        client.run(exec, HIDE, {}, workers=[lacking])
        told = rf"^{lacking} cannot import .*: run there, .*, pip install \"amptutorial\[dask\] @ git"
        with pytest.raises(ImportError, match=told):
            run_on(shards, client)


def test_a_scheduler_without_the_package_is_named(shards, monkeypatch):
    with cluster(n_workers=1, processes=False) as workers, Client(workers) as client:

        def run_on_scheduler(function, *args):
            raise ModuleNotFoundError("No module named 'amptutorial'")

        monkeypatch.setattr(client, "run_on_scheduler", run_on_scheduler)
        with pytest.raises(ImportError, match="^the scheduler cannot import amptutorial.cluster"):
            run_on(shards, client)


def test_a_shard_too_large_for_a_worker_is_named_before_it_is_loaded(shards):
    need, name = max((bytes_to_load(one), one["file"]) for one in shards.files)
    assert name != shards.files[0]["file"] and need > bytes_to_load(shards.files[0])
    with cluster(n_workers=1, processes=False, memory_limit=need - 1) as workers, Client(workers) as client:
        (worker,) = _workers_of(client)
        (shards.folder / name).write_bytes(b"")  # nobody opens it
        message = rf"^{name} takes .* MB to load, and {worker} may use .* MB: write smaller shards"
        with pytest.raises(MemoryError, match=message):
            run_on(shards, client)


@pytest.mark.parametrize("limit", [0, "8GB"])  # of this whole process, which has run other tests
def test_workers_with_memory_enough_or_without_a_limit_go_to_work(limit, shards):
    with cluster(n_workers=1, processes=False, memory_limit=limit) as workers, Client(workers) as client:
        assert run_on(shards, client).A.shape == (61, 2)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_to_load_a_shard_takes_the_memory_that_is_asked_for(dtype, index, rng, tmp_path):
    Z = sp.random_array((300, 400), density=0.5, format="csr", rng=rng)
    Z = sp.csr_array((np.ceil(9 * Z.data).astype(dtype), Z.indices.astype(index), Z.indptr.astype(index)), Z.shape)
    (shard,) = write_shards(Z, tmp_path).files
    r_u, r_v = bias_of_margins(*(np.asarray(Z.sum(axis=k), float) for k in (1, 0)))
    tracemalloc.start()
    FisherScore(load_counts(tmp_path, shard), r_u, r_v)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    margins = 50 * sum(Z.shape) + 20_000  # of rows and columns, and of what Python itself takes
    wide = index == np.int64 and dtype == np.float64
    assert (0.95 if wide else 0.45) * bytes_to_load(shard) < peak < bytes_to_load(shard) + margins


CALLER = """
import sys
import numpy as np
from distributed import Client
from amptutorial import GaussianPosterior
from amptutorial.cluster.amp import sharded_amp
from sharded_denoisers import KillsOnce

address, shards, start, home, run = sys.argv[1:]
with Client(address) as client:
    pair = GaussianPosterior(1.0, learn=True), KillsOnce(home=int(home))
    sharded_amp(shards, pair, B0=np.load(start), n_iter=6, checkpoints=run, client=client)
"""


@pytest.mark.slow
def test_a_caller_that_is_killed_leaves_a_run_that_goes_on(shards, tmp_path):
    """Its third iteration has new rows, and no new columns, when the calling process is killed by `kill -9`."""
    B0 = sample_start()
    np.save(tmp_path / "start.npy", B0)
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    with cluster(n_workers=1, processes=False, protocol="tcp://") as workers, Client(workers) as client:
        names = [workers.scheduler_address, shards.folder, tmp_path / "start.npy", os.getpid(), tmp_path / "run"]
        command = [sys.executable, "-c", CALLER, *map(str, names)]
        caller = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, timeout=120, check=False)
        assert caller.returncode == -signal.SIGKILL
        last = pickle.loads(np.load(tmp_path / "run" / CHECKPOINT)["state"])
        assert last.k == 1  # two whole iterations
        pair = GaussianPosterior(1.0, learn=True), KillsOnce(home=os.getpid())
        given = {"B0": B0, "n_iter": 6}
        run = sharded_amp(open_shards(shards.folder), pair, **given, checkpoints=tmp_path / "run", client=client)
    assert_same(run, at_once(sample_counts(), (GaussianPosterior(1.0, learn=True), Ridge(1.0)), **given))
