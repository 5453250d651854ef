"""AMP on shards is AMP of one process; what goes wrong with a shard, a worker or a checkpoint is named."""

import os
import pickle
import re
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import dask
import dask.array as da
import nbformat
import numpy as np
import pytest
import scipy.sparse as sp
from distributed import Client
from sharded_denoisers import KillsOnce, ScalesOfRows, WithFunction
from sharded_samples import assert_same, at_once, cluster, sample_counts, sample_start

from amptutorial import FisherScore, GaussianPosterior, Lasso, Ridge, biased_low_rank_amp, estimate_bias, random_start
from amptutorial.amp import IndefinitePrecisionWarning
from amptutorial.cluster import amp as module
from amptutorial.cluster import blocks
from amptutorial.cluster.amp import ShardedScore, sharded_amp
from amptutorial.cluster.shards import bytes_to_load, open_shards, write_shards
from amptutorial.cluster.tasks import CHECKPOINT, FAN_IN, _workers_of

pytestmark = pytest.mark.filterwarnings("ignore:F was not safely positive definite")


@pytest.fixture(autouse=True)
def each_file_by_itself(monkeypatch):
    monkeypatch.setattr(blocks, "WORTHWHILE", 0)


@pytest.fixture(scope="module")
def client():
    """Return a client of two workers in this process."""
    with cluster(n_workers=2, processes=False) as workers, Client(workers) as client:
        yield client


@pytest.fixture
def shards(tmp_path):
    return write_shards(COUNTS, tmp_path / "shards", rows=17)


COUNTS, B0 = sample_counts(), sample_start()
LEARNS = GaussianPosterior(1.0, learn=True)
CUTS = {
    "one shard": [],
    "single rows and uneven blocks": [1, 2, 5, 30],
    "four blocks, one of them lower": [17, 34, 51],
    "more than one task adds up": range(5, 61, 5),
}


@pytest.mark.slow
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("denoiser", [Lasso(0.5), LEARNS, (Lasso(0.5), Ridge(2.0)), ScalesOfRows(1.0)], ids=str)
def test_shards_give_what_one_process_gives(denoiser, cut, client, tmp_path):
    ends = CUTS[cut]
    assert cut != "more than one task adds up" or len(ends) >= FAN_IN
    parts = zip([0, *ends], [*ends, COUNTS.shape[0]], strict=True)
    shards = write_shards((COUNTS[start:end] for start, end in parts), tmp_path)
    assert len(shards.files) == len(ends) + 1 and shards.shape == COUNTS.shape
    run = sharded_amp(shards, denoiser, B0=B0, n_iter=4, client=client)
    assert_same(run, at_once(COUNTS, denoiser, B0=B0, n_iter=4))
    assert [iterate.k for iterate in run.iterates] == [3]


def test_small_files_are_joined_to_a_block_for_each_worker(client, tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "WORTHWHILE", 10**9)
    for rows, number in ((61, 1), (31, 2), (16, 2), (1, 3)):
        table = blocks.Blocks(write_shards(COUNTS, tmp_path, rows=rows), client)
        assert len(table.parts) == len(table.slices) == number and sum(table.pairs) == COUNTS.nnz
        for part, where in zip(table.parts, table.slices, strict=True):
            assert (part.result() != COUNTS[where]).nnz == 0
    monkeypatch.setattr(blocks, "WORTHWHILE", 100)
    pairs = blocks.Blocks(write_shards(COUNTS, tmp_path, rows=2), client).pairs
    assert min(pairs[:-1]) >= 100 and max(pairs) < 100 + 2 * 40


def test_large_estimates_raise_no_warning(shards, client):
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1B"}):
        with pytest.warns(UserWarning, match="Sending large graph"):
            client.submit(len, B0).result()
        with warnings.catch_warnings(action="error"):
            sharded_amp(shards, GaussianPosterior(1.0), B0=B0, n_iter=1, client=client)


def test_defaults_damped_steps_and_single_precision_are_those_of_one_process(shards, client):
    for given in ({}, {"n_iter": 5, "damping": 0.3}):
        run = sharded_amp(shards.folder, Ridge(1.0), B0=B0, client=client, **given)
        assert_same(run, at_once(COUNTS, Ridge(1.0), B0=B0, **given))
    run = sharded_amp(shards, Ridge(1.0), B0=B0.astype(np.float32), n_iter=2, client=client)
    assert run.A.dtype == run.B.dtype == np.float32


@pytest.mark.filterwarnings("default:F was not safely positive definite")
def test_a_floored_last_iteration_is_announced_as_by_one_process(shards, client, tmp_path):
    with pytest.warns(IndefinitePrecisionWarning) as expected:
        at_once(COUNTS, Ridge(1.0), B0=0.1 * B0, n_iter=5)
    with pytest.warns(IndefinitePrecisionWarning) as found:
        sharded_amp(shards, Ridge(1.0), B0=0.1 * B0, n_iter=5, client=client)
    assert "(4 of 5 in all)" in str(found[0].message)
    assert [str(each.message) for each in found] == [str(each.message) for each in expected]
    assert found[0].filename == __file__
    for _ in range(2):  # again where the checkpoint is of the last iteration, in which one F of two was floored
        with pytest.warns(IndefinitePrecisionWarning):
            run = sharded_amp(shards, Ridge(1.0), B0=0.1 * B0, n_iter=5, checkpoints=tmp_path / "run", client=client)
    assert run.iterates[-1].floored_a != run.iterates[-1].floored_b


def run_on(shards, client, **arguments):
    return sharded_amp(shards, Ridge(1.0), **{"B0": B0, "n_iter": 2, "client": client} | arguments)


@pytest.mark.parametrize("size", [-1, 0.5])
def test_a_shard_that_changed_is_named_by_the_worker(size, shards, client):
    path = shards.folder / "shard-00002.npz"
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * 0.5)] if size == 0.5 else data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(ValueError, match="shard-00002.npz in .* is not as it was written"):
        run_on(shards, client)


@pytest.mark.parametrize("denoiser", [Ridge(1.0), LEARNS], ids=str)
def test_a_run_goes_on_from_its_checkpoint(denoiser, shards, client, tmp_path, monkeypatch):
    """The run is interrupted in its fourth iteration, before that is stored."""
    given = {"B0": B0, "n_iter": 7, "checkpoints": tmp_path / "run", "damping": 0.2, "client": client}
    calls, iterates = [], module.amp_iterates

    def interrupted(*args):
        for iterate in iterates(*args):
            calls.append(iterate.k)
            if len(calls) == 4:
                raise KeyboardInterrupt
            yield iterate

    monkeypatch.setattr(module, "amp_iterates", interrupted)
    with pytest.raises(KeyboardInterrupt):
        sharded_amp(shards, denoiser, **given)
    run = sharded_amp(shards, denoiser, **given)
    assert calls == [0, 1, 2, 3, 3, 4, 5, 6]
    assert_same(run, at_once(COUNTS, denoiser, B0=B0, n_iter=7, damping=0.2))
    monkeypatch.setattr(client, "map", None)  # nothing is left to do, and nothing is asked of the workers
    assert_same(sharded_amp(shards, denoiser, **given), run)
    assert len(calls) == 8
    with pytest.raises(ValueError, match="n_iter is 6, and .* is of iteration 7"):
        sharded_amp(shards, denoiser, **given | {"n_iter": 6})


def test_a_checkpoint_of_another_run_is_refused(shards, client, tmp_path):
    folder = tmp_path / "run"
    run_on(shards, client, checkpoints=folder)
    stored = (folder / CHECKPOINT).read_bytes()
    more = write_shards(COUNTS + COUNTS, tmp_path / "more", rows=17)
    others = [(more, {}), (shards, {"B0": B0 + 1}), (shards, {"damping": 0.5})]
    for counted, change in others:
        with pytest.raises(ValueError, match="is of other counts, another denoiser, start or damping"):
            run_on(counted, client, checkpoints=folder, **change)
    with pytest.raises(ValueError, match="is of other counts"):
        sharded_amp(shards, Ridge(2.0), B0=B0, checkpoints=folder, client=client)
    assert (folder / CHECKPOINT).read_bytes() == stored
    (folder / CHECKPOINT).write_bytes(stored[:-100])
    with pytest.raises(ValueError, match=r"checkpoint.npz is damaged \(.*\): remove it, and the run begins anew"):
        run_on(shards, client, checkpoints=folder)


def test_a_denoiser_that_cannot_be_pickled_has_no_checkpoint(shards, client, tmp_path):
    with pytest.raises(TypeError, match="WithFunction.* cannot be pickled.* define its class in a module"):
        sharded_amp(shards, WithFunction(), B0=B0, checkpoints=tmp_path / "run", client=client)
    run = sharded_amp(shards, WithFunction(), B0=B0, n_iter=2, client=client)
    assert_same(run, at_once(COUNTS, WithFunction(), B0=B0, n_iter=2))


@pytest.mark.parametrize("form", [sp.csr_array, np.asarray])
def test_an_array_of_dask_is_multiplied_where_it_is(form, client):
    """Its blocks may be cut in both directions, and hold a row without counts of their own."""
    r_u, r_v = estimate_bias(COUNTS)
    array = da.from_array(COUNTS.toarray(), chunks=((20, 1, 40), (30, 10))).map_blocks(form)
    Y, X = ShardedScore(array, client), np.random.default_rng(3).standard_normal((61, 2))
    whole = FisherScore(COUNTS, r_u, r_v)
    assert np.array_equal(Y.r_u, r_u) and np.allclose(Y.r_v, r_v, rtol=1e-15)
    assert np.allclose(Y @ B0, whole @ B0, rtol=1e-12) and np.allclose(Y.T @ X, whole.T @ X, rtol=1e-12)
    run = biased_low_rank_amp(Y, Y.r_u, Y.r_v, Ridge(1.0), B0=B0, n_iter=3)
    assert_same(run, at_once(COUNTS, Ridge(1.0), B0=B0, n_iter=3))
    assert_same(sharded_amp(array, Ridge(1.0), B0=B0, n_iter=3, client=client), run)


def test_an_invalid_block_of_an_array_is_named(client):
    array = da.from_array(np.array([[1.0, 2.0], [3.0, -1.0]]), chunks=(1, 2))
    with pytest.raises(ValueError, match="block 1 of the counts"):
        ShardedScore(array, client)


def test_blocks_of_an_array_without_rows_are_passed_over(client):
    """Those that a filter leaves, of unknown sizes."""
    Z = COUNTS.toarray()
    array = da.from_array(Z, chunks=(17, 30))
    kept = np.repeat([True, False, True], [17, 17, 27])
    found = ShardedScore(array[da.from_array(kept, chunks=17)], client)
    assert found.shape == (44, 40) and np.allclose(found.r_u, estimate_bias(Z[kept])[0])
    with pytest.raises(ValueError, match="the counts have no rows"):
        ShardedScore(array[da.from_array(~kept | kept, chunks=17) & False], client)


def test_a_denoiser_without_an_answer_is_named_in_its_first_half_step_on_shards(shards, client):
    with pytest.raises(FloatingPointError, match="the first estimate of .*WithFunction.* is not finite"):
        sharded_amp(shards, WithFunction(np.nan), B0=B0, client=client)


def test_an_iteration_takes_few_tasks_a_shard(shards, client, monkeypatch):
    numbers, spread = [], client.map
    counted = lambda task, *each, **how: numbers.append(len(each[0])) or spread(task, *each, **how)  # noqa: E731
    monkeypatch.setattr(client, "map", counted)

    def tasks(n_iter):
        numbers.clear()
        run_on(shards, client, n_iter=n_iter)
        return sum(numbers)

    assert tasks(3) - tasks(2) == 2 * len(shards.files) + 2  # each of two workers adds up two sums


def test_rows_and_columns_without_counts_and_other_clients_are_refused(shards, client, tmp_path):
    for table, gap in (([[1, 0], [2, 0]], "column 1"), ([[1, 1], [0, 0]], "row 1")):
        with pytest.raises(ValueError, match=f"{gap} has no counts"):
            run_on(write_shards(np.array(table), tmp_path / "gap"), client, B0=np.ones((2, 1)))
    with pytest.raises(TypeError, match=r"counts is of type ndarray: write_shards\(counts, folder\) makes Shards"):
        run_on(np.eye(2), client)
    with pytest.raises(TypeError, match="client must be a distributed.Client"):
        run_on(shards, None)


@pytest.mark.slow
def test_a_worker_that_is_lost_loses_nothing(shards, tmp_path):
    """It is killed in the third iteration; Dask starts another one."""
    with cluster(n_workers=2, processes=True) as workers, Client(workers) as client:
        lost = workers.workers[0].pid
        run = sharded_amp(shards, (KillsOnce(lost), Ridge(1.0)), B0=B0, n_iter=5, client=client)
        assert lost not in [worker.pid for worker in workers.workers.values()]
    assert_same(run, at_once(COUNTS, Ridge(1.0), B0=B0, n_iter=5))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Port 8787 is already in use")
def test_the_example_in_the_guide_runs(rng, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    guide = nbformat.read(Path(__file__).parents[1] / "book/at_scale.ipynb", as_version=4)
    text = "\n".join(cell.source for cell in guide.cells)
    (example,) = (block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "sharded" in block)
    start = random_start(COUNTS.shape[1], 10, rng)
    names = {"__name__": "__main__", "counts": COUNTS, "B0": start, "GaussianPosterior": GaussianPosterior}
    exec(compile(example, "At scale", "exec"), names)
    assert names["run"].A.shape == (61, 10) and (tmp_path / "run" / CHECKPOINT).exists()


# A cluster that cannot do the work, and a run that is killed


HIDE = "import sys; sys.modules['amptutorial'] = None"  # as if it were not installed


@pytest.mark.slow
def test_a_worker_without_the_package_is_named(shards):
    with cluster(n_workers=2, processes=True) as workers, Client(workers) as client:
        _, lacking = _workers_of(client)
        client.run(exec, HIDE, {}, workers=[lacking])
        told = rf"^{lacking} cannot import .*: run there, .*, pip install \"amptutorial\[dask\] @ git"
        with pytest.raises(ImportError, match=told):
            run_on(shards, client)


def test_a_scheduler_without_the_package_is_named(shards, client, monkeypatch):
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
    assert_same(run, at_once(COUNTS, (GaussianPosterior(1.0, learn=True), Ridge(1.0)), **given))
