"""`AMPEmbedding` fitted to shards is the fit of one process; what cannot be fitted there is refused."""

import warnings
from dataclasses import replace

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from distributed import Client
from sharded_denoisers import ScalesOfRows
from sharded_samples import cluster, table

from amptutorial import AMPEmbedding, Ridge, fitting, heldout, reexpansion, sampling
from amptutorial._validation import AMPWarning
from amptutorial.cluster import blocks
from amptutorial.cluster import embedding as module
from amptutorial.cluster.embedding import sharded_embedding
from amptutorial.cluster.shards import write_shards
from amptutorial.cluster.tasks import CHECKPOINT, Checkpoint
from amptutorial.fitting import COMPARED_AFTER, REFINEMENTS
from amptutorial.table import Table

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:still improving", "ignore:heldout_gain_ =")]


@pytest.fixture(autouse=True)
def each_file_by_itself(monkeypatch):
    monkeypatch.setattr(blocks, "WORTHWHILE", 0)


@pytest.fixture(scope="module")
def client():
    """Return a client of two workers in this process."""
    with cluster(n_workers=2, processes=False) as workers, Client(workers) as client:
        yield client


@pytest.fixture
def in_double(monkeypatch):
    """Let fits start in double precision, so that what differs is not the round-off of float32."""

    def starting_sides(*args):
        names = ("X", "step", "length", "reach")
        sides = reexpansion.starting_sides(*args)
        return tuple(replace(side, **{name: getattr(side, name).astype(float) for name in names}) for side in sides)

    monkeypatch.setattr(fitting, "starting_sides", starting_sides)


def fitted(counts, folder, client, rows=50, **parameters):
    """Return the fits to shards and in one process."""
    parameters = {"n_components": 2, "n_iter": 4, "random_state": 0} | parameters
    shards = write_shards(counts, folder, rows=rows)
    on_shards = sharded_embedding(shards.folder, AMPEmbedding(**parameters), client=client)
    return on_shards, AMPEmbedding(**parameters).fit(counts)


def assert_same(found, expected, counts, tolerance):
    """What the fits found agrees, relative to its size, and so do the embeddings of new rows."""
    for name in ("n_iter_", "channel_", "n_features_in_"):
        assert getattr(found, name) == getattr(expected, name), name
    for name in ("embedding_", "components_", "row_bias_", "column_bias_", "heldout_gain_", "heldout_error_"):
        one, two = getattr(found, name), getattr(expected, name)
        assert np.allclose(one, two, rtol=0, atol=tolerance * np.abs(two).max()), name
    new = [model.transform(counts[:9]) for model in (found, expected)]
    assert np.allclose(*new, rtol=0, atol=tolerance * np.abs(new[1]).max())


@pytest.mark.usefixtures("in_double")
@pytest.mark.parametrize("level", [2.0, 0.1], ids=["hidden zeros are marked", "hidden pairs read as zeros"])
@pytest.mark.parametrize("parameters", [{}, {"channel": "counts", "init": "random"}], ids=str)
def test_shards_give_the_fit_of_one_process(parameters, level, client, tmp_path):
    counts = table(level)
    found, expected = fitted(counts, tmp_path, client, **parameters)
    assert expected.n_iter_ == 4 and expected.heldout_gain_ > 0
    assert_same(found, expected, counts, 1e-9)


def test_single_precision_on_the_way_leaves_its_round_off_and_doubts_are_announced(client, tmp_path):
    counts = table(0.5)
    assert_same(*fitted(counts, tmp_path, client, channel="damped"), counts, 1e-6)
    with pytest.warns(AMPWarning, match="still improving after n_iter=1 ") as caught:
        sharded_embedding(tmp_path, AMPEmbedding(2, n_iter=1, channel="counts", random_state=0), client=client)
    assert caught[0].filename == __file__


@pytest.mark.usefixtures("in_double")
@pytest.mark.parametrize(
    ("denoiser", "tolerance"),
    [("ridge", 1e-9), ("lasso", 1e-5), (ScalesOfRows(1.0), 1e-9), ((Ridge(0.5), Ridge(2.0)), 1e-9)],
    ids=str,
)
def test_other_denoisers_give_the_fit_of_one_process(denoiser, tolerance, client, tmp_path):
    """The lasso is solved for all rows of a shard at once, up to a tolerance of its own."""
    counts = table(0.5)
    found, expected = fitted(counts, tmp_path, client, rows=61, denoiser=denoiser, channel="damped")
    assert expected.n_iter_ > 0
    assert_same(found, expected, counts, tolerance)


@pytest.mark.usefixtures("in_double")
@pytest.mark.parametrize("here", [0, 2**22])
def test_samples_of_columns_are_those_of_one_process(here, client, tmp_path, monkeypatch):
    """Both draw the same samples, of several sizes, in the same order, wherever exponentials are computed."""
    monkeypatch.setattr(sampling, "ALL_UP_TO", 30)
    monkeypatch.setattr(sampling, "FEWEST", 8)
    drawn, draw = [], sampling.ColumnSample._draw

    def recorded(self, sizes):
        drawn.extend((len(self.W), size) for size in sizes)
        return draw(self, sizes)

    monkeypatch.setattr(sampling.ColumnSample, "_draw", recorded)
    monkeypatch.setattr(module, "HERE", here)
    counts = table(0.1)
    shards = write_shards(counts, tmp_path, rows=37)
    parameters = {"n_iter": 4, "channel": "counts", "random_state": 0}
    found = sharded_embedding(shards, AMPEmbedding(2, **parameters), client=client)
    on_shards = drawn.copy()
    drawn.clear()
    expected = AMPEmbedding(2, **parameters).fit(counts)
    assert on_shards == drawn and len(set(drawn)) > 2
    assert_same(found, expected, counts, 1e-9)


def test_a_shard_that_is_hidden_whole_is_left_out_of_the_start(client, tmp_path):
    """The last shards are rows with one count each. Some of these counts are hidden."""
    some = table(0.05).toarray()
    ones = np.eye(12, some.shape[1])
    counts = sp.csr_array(np.vstack([some, ones]))
    parameters = {"n_components": 2, "n_iter": 2, "channel": "counts", "random_state": 0}
    seen, _ = Table(counts).hide(AMPEmbedding(random_state=0)._generator())
    assert (seen.totals[-12:] == 0).any()
    shards = write_shards([some, *(ones[[k]] for k in range(12))], tmp_path)
    found = sharded_embedding(shards, AMPEmbedding(**parameters), client=client)
    assert_same(found, AMPEmbedding(**parameters).fit(counts), counts, 1e-6)


@pytest.mark.usefixtures("in_double")
@pytest.mark.parametrize("form", [sp.csr_array, np.asarray])
def test_an_array_of_dask_gives_the_fit_of_one_process(form, client, monkeypatch):
    monkeypatch.setattr(module, "HERE", 0)
    counts, parameters = table(0.1), {"n_components": 2, "n_iter": 3, "random_state": 0}
    array = da.from_array(counts.toarray(), chunks=(50, 40)).map_blocks(form)
    found = sharded_embedding(array, AMPEmbedding(**parameters), client=client)
    assert_same(found, AMPEmbedding(**parameters).fit(counts), counts, 1e-9)


def test_a_fit_on_shards_that_fails_leaves_the_model_as_it_was_and_one_that_ends_forgets_the_names(client, tmp_path):
    counts = table(2.0)
    shards = write_shards(counts, tmp_path / "shards", rows=50)
    names = [f"w{k}" for k in range(counts.shape[1])]
    model = AMPEmbedding(2, n_iter=2, channel="counts", random_state=0)
    model.fit(pd.DataFrame.sparse.from_spmatrix(counts, columns=names))
    before = dict(vars(model))

    def interrupt(progress):
        raise KeyboardInterrupt

    model.set_params(callback=interrupt)
    with pytest.raises(KeyboardInterrupt) as caught:
        sharded_embedding(shards, model, client=client)
    assert "callback that returns True" in caught.value.__notes__[0]
    model.set_params(callback=None)
    assert vars(model).keys() == before.keys() and all(vars(model)[name] is before[name] for name in before)
    with warnings.catch_warnings(action="ignore"):
        sharded_embedding(shards, model, client=client)
    assert model.row_names_ is None and not hasattr(model, "feature_names_in_") and model.frames()[1].index[3] == 3


def test_what_cannot_be_fitted_on_shards_is_refused(client, tmp_path):
    shards = write_shards(table(0.3), tmp_path / "shards", rows=50)

    def fit(model, shards=shards):
        with warnings.catch_warnings(action="ignore"):
            return sharded_embedding(shards, model, client=client)

    gap = write_shards(np.array([[1, 0], [2, 0]]), tmp_path / "gap")
    (shards.folder / "shard-00001.npz").write_bytes(b"")
    for arguments, message in (
        ([Ridge(1.0)], "model must be an AMPEmbedding"),
        ([AMPEmbedding(2, channel="bursts")], "channel='bursts' needs all counts in one process"),
        ([AMPEmbedding(90)], "n_components=90 must be at most"),
        ([AMPEmbedding(1), gap], "column 1 has no counts"),
        ([AMPEmbedding(2)], "shard-00001.npz in .* is not as it was written"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            fit(*arguments)


# A fit that is interrupted goes on where it was, to the result of one that was not, bit for bit


PARAMETERS = {"n_components": 2, "n_iter": 3, "random_state": 0}


@pytest.fixture(scope="module")
def alone():
    """Return a client of one worker in this process.

    With two, both may load a shard as futures of an interrupted fit are collected. NumPy parses the heads of arrays by
    `ast`, which in Python 3.11.7 fails where threads meet (python/cpython#106905).
    """
    with cluster(n_workers=1, processes=False) as workers, Client(workers) as client:
        yield client


@pytest.fixture
def few_columns(monkeypatch):
    """Let every half-step and every judgement draw samples, so that the generator matters."""
    # FEWEST: half of them at first; COMMON: rare rows have no smaller ones
    for name, value in {"ALL_UP_TO": 30, "FEWEST": 16, "PER_COUNT": 0.2, "COMMON": 1e-3}.items():
        monkeypatch.setattr(sampling, name, value)


@pytest.fixture
def half_steps(monkeypatch):
    """Return a list with the class of the table of each half-step that the calling process takes."""
    taken, half_step = [], reexpansion.reexpanded_half_step

    def counted(table, *args):
        if not isinstance(table, Table):  # as those are on workers, where rows settle
            taken.append(type(table))
        return half_step(table, *args)

    monkeypatch.setattr(reexpansion, "reexpanded_half_step", counted)
    return taken


def fit(shards, alone, checkpoints=None, **changes):
    model = AMPEmbedding(**PARAMETERS | changes)
    return module.sharded_embedding(shards, model, client=alone, checkpoints=checkpoints)


def interrupt(monkeypatch, owner, name, call):
    """Let a function be interrupted at the beginning of one of its calls, counted from one."""
    calls, function = [], getattr(owner, name)

    def interrupted(*args):
        calls.append(args)
        if len(calls) == call:
            raise KeyboardInterrupt
        return function(*args)

    monkeypatch.setattr(owner, name, interrupted)


@pytest.mark.usefixtures("few_columns")
@pytest.mark.parametrize(
    ("level", "channel", "stages"),
    [(0.3, "auto", (3, 3)), (0.3, "auto", (COMPARED_AFTER, COMPARED_AFTER, 1, 1)), (0.05, "damped", (3,))],
)
def test_a_fit_that_is_interrupted_after_every_iteration_is_the_same(
    level, channel, stages, half_steps, alone, tmp_path, monkeypatch
):
    """Each start makes one iteration, and repeats none: those of each channel, in two stages, and the last ones."""
    counts, given = table(level), {"channel": channel, "n_iter": sum(stages[::2])}
    assert counts.max() > 1
    shards, reached, generators = write_shards(counts, tmp_path / "shards", rows=61), [], set()
    expected = fit(shards, alone, **given)
    at_once = half_steps.copy()
    half_steps.clear()
    save = Checkpoint.save

    def interrupted(self, state):
        save(self, state)
        reached.append((len(state) - 1, state[-1][0]))
        generators.add(state[-1][2]["state"]["state"])
        raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoint, "save", interrupted)
    stages = *stages, REFINEMENTS
    for _ in range(sum(stages)):
        with pytest.raises(KeyboardInterrupt):
            fit(shards, alone, tmp_path / "run", **given)
    assert reached == [(stage, k + 1) for stage, number in enumerate(stages) for k in range(number)]
    assert half_steps == at_once and expected.n_iter_ > 0
    assert len(generators) > 1  # samples have seeds of the generator, which a fit that goes on has to find again
    for _ in range(2):  # again where no iteration is left
        assert_same(fit(shards, alone, tmp_path / "run", **given), expected, counts, 0)
    assert half_steps == at_once
    size, (m, n) = (tmp_path / "run" / CHECKPOINT).stat().st_size, shards.shape
    sides = 8 * m + 5 * n if len(stages) <= 3 else 14 * m + 9 * n
    assert size < (8 * 2 + 24) * sides + 8 * 4 * n + 10_000  # and the biases and log-ratios of judgements


def test_a_fit_without_an_iterate_worth_keeping_goes_on(half_steps, alone, tmp_path, monkeypatch):
    """No iteration follows those of the channel."""
    counts = np.random.default_rng(3).poisson(0.3, (120, 70))
    shards, given = write_shards(counts, tmp_path / "shards", rows=61), {"n_iter": 1, "channel": "counts"}
    expected = fit(shards, alone, **given)
    assert expected.n_iter_ == 0 and len(half_steps) == 3
    interrupt(monkeypatch, heldout, "fit_margins", 1)
    with pytest.raises(KeyboardInterrupt):
        fit(shards, alone, tmp_path / "run", **given)
    assert_same(fit(shards, alone, tmp_path / "run", **given), expected, counts, 0)
    assert len(half_steps) == 9  # all of them again: an iteration ends with its judgement


def test_a_checkpoint_of_another_fit_or_a_damaged_one_is_refused(alone, tmp_path, monkeypatch):
    shards, folder = write_shards(table(0.3), tmp_path / "shards", rows=61), tmp_path / "run"
    interrupt(monkeypatch, module.ShardedTable, "sums", 3)
    with pytest.raises(KeyboardInterrupt):
        fit(shards, alone, folder)
    path, stored = folder / CHECKPOINT, (folder / CHECKPOINT).read_bytes()
    with pytest.raises(ValueError, match="random_state=None is another seed at every start.* give the model a number"):
        fit(shards, alone, folder, random_state=None)
    monkeypatch.setattr(alone, "map", None)  # nothing is asked of the workers
    other = write_shards(table(0.4), tmp_path / "other", rows=61)
    changes = dict(n_components=3, denoiser="ridge", channel="counts", n_iter=4, tol=0.1, init="random", random_state=1)
    for counted, change in [(other, {}), *((shards, {name: value}) for name, value in changes.items())]:
        with pytest.raises(ValueError, match="is of other counts or another model: give this run a folder of its own"):
            fit(counted, alone, folder, **change)
    assert path.read_bytes() == stored
    middle = len(stored) // 2
    flipped = stored[:middle] + bytes([stored[middle] ^ 1]) + stored[middle + 1 :]
    for damaged in (b"", stored[:10], stored[:middle], stored[:-1], flipped, b"other" + stored[5:100]):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"checkpoint.npz is damaged \(.*\): remove it, and the run begins anew"):
            fit(shards, alone, folder)
