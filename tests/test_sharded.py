"""AMP on shards is AMP of one process; what goes wrong with a shard, a worker or a checkpoint is named."""

import re
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
from amptutorial.cluster.shards import write_shards
from amptutorial.cluster.tasks import CHECKPOINT, FAN_IN

pytestmark = pytest.mark.filterwarnings("ignore:F was not safely positive definite")


@pytest.fixture(autouse=True)
def each_file_by_itself(monkeypatch):
    monkeypatch.setattr(blocks, "WORTHWHILE", 0)


@pytest.fixture(scope="module")
def client():
    """Return a client of two workers in this process."""
    with cluster(n_workers=2, processes=False) as workers, Client(workers) as client:
        yield client


@pytest.fixture(scope="module")
def counts():
    return sample_counts()


@pytest.fixture(scope="module")
def B0():
    return sample_start()


@pytest.fixture
def shards(counts, tmp_path):
    return write_shards(counts, tmp_path / "shards", rows=17)


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
def test_shards_give_what_one_process_gives(denoiser, cut, counts, B0, client, tmp_path):
    ends = CUTS[cut]
    assert cut != "more than one task adds up" or len(ends) >= FAN_IN
    parts = zip([0, *ends], [*ends, counts.shape[0]], strict=True)
    shards = write_shards((counts[start:end] for start, end in parts), tmp_path)
    assert len(shards.files) == len(ends) + 1 and shards.shape == counts.shape
    run = sharded_amp(shards, denoiser, B0=B0, n_iter=4, client=client)
    assert_same(run, at_once(counts, denoiser, B0=B0, n_iter=4))
    assert [iterate.k for iterate in run.iterates] == [3]


def test_small_files_are_joined_to_a_block_for_each_worker(counts, client, tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "WORTHWHILE", 10**9)
    for rows, number in ((61, 1), (31, 2), (16, 2), (1, 3)):
        table = blocks.Blocks(write_shards(counts, tmp_path, rows=rows), client)
        assert len(table.parts) == len(table.slices) == number and sum(table.pairs) == counts.nnz
        for part, where in zip(table.parts, table.slices, strict=True):
            assert (part.result() != counts[where]).nnz == 0
    monkeypatch.setattr(blocks, "WORTHWHILE", 100)
    pairs = blocks.Blocks(write_shards(counts, tmp_path, rows=2), client).pairs
    assert min(pairs[:-1]) >= 100 and max(pairs) < 100 + 2 * 40


def test_what_is_left_out_is_as_for_one_process(counts, shards, B0, client):
    run = sharded_amp(shards, Ridge(1.0), B0=B0, client=client)
    assert_same(run, at_once(counts, Ridge(1.0), B0=B0))


def test_large_estimates_raise_no_warning(shards, B0, client):
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1B"}):
        with pytest.warns(UserWarning, match="Sending large graph"):
            client.submit(len, B0).result()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            sharded_amp(shards, GaussianPosterior(1.0), B0=B0, n_iter=1, client=client)


def test_damped_steps_and_single_precision_are_those_of_one_process(counts, shards, B0, client):
    run = sharded_amp(shards.folder, Ridge(1.0), B0=B0, n_iter=5, damping=0.3, client=client)
    assert_same(run, at_once(counts, Ridge(1.0), B0=B0, n_iter=5, damping=0.3))
    run = sharded_amp(shards, Ridge(1.0), B0=B0.astype(np.float32), n_iter=2, client=client)
    assert run.A.dtype == run.B.dtype == np.float32


@pytest.mark.filterwarnings("default:F was not safely positive definite")
def test_a_floored_last_iteration_is_announced_as_by_one_process(counts, shards, B0, client, tmp_path):
    with pytest.warns(IndefinitePrecisionWarning) as expected:
        at_once(counts, Ridge(1.0), B0=0.1 * B0, n_iter=5)
    with pytest.warns(IndefinitePrecisionWarning) as found:
        sharded_amp(shards, Ridge(1.0), B0=0.1 * B0, n_iter=5, client=client)
    assert "(4 of 5 in all)" in str(found[0].message)
    assert [str(each.message) for each in found] == [str(each.message) for each in expected]
    assert found[0].filename == __file__
    for _ in range(2):  # again where the checkpoint is of the last iteration, in which one F of two was floored
        with pytest.warns(IndefinitePrecisionWarning):
            run = sharded_amp(shards, Ridge(1.0), B0=0.1 * B0, n_iter=5, checkpoints=tmp_path / "run", client=client)
    assert run.iterates[-1].floored_a != run.iterates[-1].floored_b


def run_on(shards, client, B0, **arguments):
    return sharded_amp(shards, Ridge(1.0), **{"B0": B0, "n_iter": 2, "client": client} | arguments)


@pytest.mark.parametrize("size", [-1, 0.5])
def test_a_shard_that_changed_is_named_by_the_worker(size, shards, B0, client):
    path = shards.folder / "shard-00002.npz"
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * 0.5)] if size == 0.5 else data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(ValueError, match="shard-00002.npz in .* is not as it was written"):
        run_on(shards, client, B0)


@pytest.mark.parametrize("denoiser", [Ridge(1.0), LEARNS], ids=str)
def test_a_run_goes_on_from_its_checkpoint(denoiser, counts, shards, B0, client, tmp_path, monkeypatch):
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
    assert_same(run, at_once(counts, denoiser, B0=B0, n_iter=7, damping=0.2))
    monkeypatch.setattr(client, "map", None)  # nothing is left to do, and nothing is asked of the workers
    assert_same(sharded_amp(shards, denoiser, **given), run)
    assert len(calls) == 8
    with pytest.raises(ValueError, match="n_iter is 6, and .* is of iteration 7"):
        sharded_amp(shards, denoiser, **given | {"n_iter": 6})


def test_a_checkpoint_of_another_run_is_refused(counts, shards, B0, client, tmp_path):
    folder = tmp_path / "run"
    run_on(shards, client, B0, checkpoints=folder)
    stored = (folder / CHECKPOINT).read_bytes()
    more = write_shards(counts + counts, tmp_path / "more", rows=17)
    others = [(more, {}), (shards, {"B0": B0 + 1}), (shards, {"damping": 0.5})]
    for counted, change in others:
        with pytest.raises(ValueError, match="is of other counts, another denoiser, start or damping"):
            run_on(counted, client, **{"B0": B0, "checkpoints": folder} | change)
    with pytest.raises(ValueError, match="is of other counts"):
        sharded_amp(shards, Ridge(2.0), B0=B0, checkpoints=folder, client=client)
    assert (folder / CHECKPOINT).read_bytes() == stored
    (folder / CHECKPOINT).write_bytes(stored[:-100])
    with pytest.raises(ValueError, match=r"checkpoint.npz is damaged \(.*\): remove it, and the run begins anew"):
        run_on(shards, client, B0, checkpoints=folder)


def test_a_denoiser_that_cannot_be_pickled_has_no_checkpoint(counts, shards, B0, client, tmp_path):
    with pytest.raises(TypeError, match="WithFunction.* cannot be pickled.* define its class in a module"):
        sharded_amp(shards, WithFunction(), B0=B0, checkpoints=tmp_path / "run", client=client)
    run = sharded_amp(shards, WithFunction(), B0=B0, n_iter=2, client=client)
    assert_same(run, at_once(counts, WithFunction(), B0=B0, n_iter=2))


@pytest.mark.parametrize("form", [sp.csr_array, np.asarray])
def test_an_array_of_dask_is_multiplied_where_it_is(form, counts, B0, client):
    """Its blocks may be cut in both directions, and hold a row without counts of their own."""
    r_u, r_v = estimate_bias(counts)
    array = da.from_array(counts.toarray(), chunks=((20, 1, 40), (30, 10))).map_blocks(form)
    Y, X = ShardedScore(array, client), np.random.default_rng(3).standard_normal((61, 2))
    whole = FisherScore(counts, r_u, r_v)
    assert np.array_equal(Y.r_u, r_u) and np.allclose(Y.r_v, r_v, rtol=1e-15)
    assert np.allclose(Y @ B0, whole @ B0, rtol=1e-12) and np.allclose(Y.T @ X, whole.T @ X, rtol=1e-12)
    run = biased_low_rank_amp(Y, Y.r_u, Y.r_v, Ridge(1.0), B0=B0, n_iter=3)
    assert_same(run, at_once(counts, Ridge(1.0), B0=B0, n_iter=3))
    assert_same(sharded_amp(array, Ridge(1.0), B0=B0, n_iter=3, client=client), run)


def test_an_invalid_block_of_an_array_is_named(client):
    array = da.from_array(np.array([[1.0, 2.0], [3.0, -1.0]]), chunks=(1, 2))
    with pytest.raises(ValueError, match="block 1 of the counts"):
        ShardedScore(array, client)


def test_blocks_of_an_array_without_rows_are_passed_over(counts, B0, client):
    """Those that a filter leaves, of unknown sizes."""
    Z = counts.toarray()
    array = da.from_array(Z, chunks=(17, 30))
    kept = np.repeat([True, False, True], [17, 17, 27])
    found = ShardedScore(array[da.from_array(kept, chunks=17)], client)
    assert found.shape == (44, 40) and np.allclose(found.r_u, estimate_bias(Z[kept])[0])
    with pytest.raises(ValueError, match="the counts have no rows"):
        ShardedScore(array[da.from_array(~kept | kept, chunks=17) & False], client)


def test_a_denoiser_without_an_answer_is_named_in_its_first_half_step_on_shards(shards, B0, client):
    with pytest.raises(FloatingPointError, match="the first estimate of .*WithFunction.* is not finite"):
        sharded_amp(shards, WithFunction(np.nan), B0=B0, client=client)


def test_an_iteration_takes_few_tasks_a_shard(shards, B0, client, monkeypatch):
    numbers, spread = [], client.map
    counted = lambda task, *each, **how: numbers.append(len(each[0])) or spread(task, *each, **how)  # noqa: E731
    monkeypatch.setattr(client, "map", counted)

    def tasks(n_iter):
        numbers.clear()
        run_on(shards, client, B0, n_iter=n_iter)
        return sum(numbers)

    assert tasks(3) - tasks(2) == 2 * len(shards.files) + 2  # each of two workers adds up two sums


def test_rows_and_columns_without_counts_and_other_clients_are_refused(shards, B0, client, tmp_path):
    for counts, gap in (([[1, 0], [2, 0]], "column 1"), ([[1, 1], [0, 0]], "row 1")):
        with pytest.raises(ValueError, match=f"{gap} has no counts"):
            run_on(write_shards(np.array(counts), tmp_path / "gap"), client, np.ones((2, 1)))
    with pytest.raises(TypeError, match=r"counts is of type ndarray: write_shards\(counts, folder\) makes Shards"):
        run_on(np.eye(2), client, B0)
    with pytest.raises(TypeError, match="client must be a distributed.Client"):
        run_on(shards, None, B0)


@pytest.mark.slow
def test_a_worker_that_is_lost_loses_nothing(counts, shards, B0, tmp_path):
    """It is killed in the third iteration; Dask starts another one."""
    with cluster(n_workers=2, processes=True) as workers, Client(workers) as client:
        lost = workers.workers[0].pid
        run = sharded_amp(shards, (KillsOnce(lost), Ridge(1.0)), B0=B0, n_iter=5, client=client)
        assert lost not in [worker.pid for worker in workers.workers.values()]
    assert_same(run, at_once(counts, Ridge(1.0), B0=B0, n_iter=5))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Port 8787 is already in use")
def test_the_example_in_the_guide_runs(counts, rng, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    guide = nbformat.read(Path(__file__).parents[1] / "book/at_scale.ipynb", as_version=4)
    text = "\n".join(cell.source for cell in guide.cells)
    (example,) = (block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "sharded" in block)
    B0 = random_start(counts.shape[1], 10, rng)
    names = {"__name__": "__main__", "counts": counts, "B0": B0, "GaussianPosterior": GaussianPosterior}
    exec(compile(example, "At scale", "exec"), names)
    assert names["run"].A.shape == (61, 10) and (tmp_path / "run" / CHECKPOINT).exists()
