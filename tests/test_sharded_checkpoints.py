"""A fit to shards that is interrupted goes on where it was, to the result of a fit that was not, bit for bit."""

import numpy as np
import pytest
from distributed import Client
from sharded_samples import cluster, table

from amptutorial import AMPEmbedding, heldout, reexpansion, sampling
from amptutorial.cluster import embedding as module
from amptutorial.cluster.shards import write_shards
from amptutorial.cluster.tasks import CHECKPOINT, Checkpoint
from amptutorial.fitting import COMPARED_AFTER, REFINEMENTS
from amptutorial.table import Table

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:still improving", "ignore:heldout_gain_ =")]
PARAMETERS = {"n_components": 2, "n_iter": 3, "random_state": 0}


@pytest.fixture(scope="module")
def client():
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


def fit(shards, client, checkpoints=None, **changes):
    model = AMPEmbedding(**PARAMETERS | changes)
    return module.sharded_embedding(shards, model, client=client, checkpoints=checkpoints)


def assert_equal(found, expected):
    names = "embedding_", "components_", "row_bias_", "column_bias_", "heldout_gain_", "heldout_error_", "n_iter_"
    for name in (*names, "channel_"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name


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
    level, channel, stages, half_steps, client, tmp_path, monkeypatch
):
    """Each start makes one iteration, and repeats none: those of each channel, in two stages, and the last ones."""
    counts, given = table(level), {"channel": channel, "n_iter": sum(stages[::2])}
    assert counts.max() > 1
    shards, reached, generators = write_shards(counts, tmp_path / "shards", rows=61), [], set()
    expected = fit(shards, client, **given)
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
            fit(shards, client, tmp_path / "run", **given)
    assert reached == [(stage, k + 1) for stage, number in enumerate(stages) for k in range(number)]
    assert half_steps == at_once and expected.n_iter_ > 0
    assert len(generators) > 1  # samples have seeds of the generator, which a fit that goes on has to find again
    for _ in range(2):  # again where no iteration is left
        assert_equal(fit(shards, client, tmp_path / "run", **given), expected)
    assert half_steps == at_once
    size, (m, n) = (tmp_path / "run" / CHECKPOINT).stat().st_size, shards.shape
    sides = 8 * m + 5 * n if len(stages) <= 3 else 14 * m + 9 * n
    assert size < (8 * 2 + 24) * sides + 8 * 4 * n + 10_000  # and the biases and log-ratios of judgements


def test_a_fit_without_an_iterate_worth_keeping_goes_on(half_steps, client, tmp_path, monkeypatch):
    """No iteration follows those of the channel."""
    counts = np.random.default_rng(3).poisson(0.3, (120, 70))
    shards, given = write_shards(counts, tmp_path / "shards", rows=61), {"n_iter": 1, "channel": "counts"}
    expected = fit(shards, client, **given)
    assert expected.n_iter_ == 0 and len(half_steps) == 3
    interrupt(monkeypatch, heldout, "fit_margins", 1)
    with pytest.raises(KeyboardInterrupt):
        fit(shards, client, tmp_path / "run", **given)
    assert_equal(fit(shards, client, tmp_path / "run", **given), expected)
    assert len(half_steps) == 9  # all of them again: an iteration ends with its judgement


def test_a_checkpoint_of_another_fit_or_a_damaged_one_is_refused(client, tmp_path, monkeypatch):
    shards, folder = write_shards(table(0.3), tmp_path / "shards", rows=61), tmp_path / "run"
    interrupt(monkeypatch, module.ShardedTable, "sums", 3)
    with pytest.raises(KeyboardInterrupt):
        fit(shards, client, folder)
    path, stored = folder / CHECKPOINT, (folder / CHECKPOINT).read_bytes()
    with pytest.raises(ValueError, match="random_state=None is another seed at every start.* give the model a number"):
        fit(shards, client, folder, random_state=None)
    monkeypatch.setattr(client, "map", None)  # nothing is asked of the workers
    other = write_shards(table(0.4), tmp_path / "other", rows=61)
    changes = dict(n_components=3, denoiser="ridge", channel="counts", n_iter=4, tol=0.1, init="random", random_state=1)
    for counted, change in [(other, {}), *((shards, {name: value}) for name, value in changes.items())]:
        with pytest.raises(ValueError, match="is of other counts or another model: give this run a folder of its own"):
            fit(counted, client, folder, **change)
    assert path.read_bytes() == stored
    middle = len(stored) // 2
    flipped = stored[:middle] + bytes([stored[middle] ^ 1]) + stored[middle + 1 :]
    for damaged in (b"", stored[:10], stored[:middle], stored[:-1], flipped, b"other" + stored[5:100]):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"checkpoint.npz is damaged \(.*\): remove it, and the run begins anew"):
            fit(shards, client, folder)
