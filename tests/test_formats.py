"""What a release has written is read by this version, with the numbers that stand beside it as text."""

import csv
import json
import pickle
import shutil
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas
import pytest
import yaml
from distributed import Client
from sharded_samples import assert_same, at_once, cluster
from sklearn.exceptions import InconsistentVersionWarning

import amptutorial
from amptutorial import AMPEmbedding, AMPWarning, Ridge
from amptutorial.cluster.amp import sharded_amp
from amptutorial.cluster.embedding import sharded_embedding
from amptutorial.cluster.shards import load_counts, open_shards
from amptutorial.cluster.tasks import Checkpoint
from amptutorial.corpus.loaders import _from_arrays
from amptutorial.corpus.store import load
from amptutorial.paper.reproduce import REPRODUCTIONS, load_results
from amptutorial_course.assignments import assignment
from amptutorial_course.grading.gradebook import class_table
from amptutorial_course.grading.record import Record
from amptutorial_course.grading.rules import LIMITS, load_rules

FOLDER = Path(__file__).parent / "formats"
RELEASES = sorted(path.name for path in FOLDER.iterdir())


@pytest.fixture(params=RELEASES)
def release(request):
    """Return the folder of the files that `python -m studies.formats` wrote for a release."""
    return FOLDER / request.param


def table(release):
    return pandas.read_csv(release / "counts.csv", index_col=0)


def test_this_version_has_its_files_and_they_are_small():
    assert amptutorial.__version__ in RELEASES
    for name in RELEASES:
        assert sum(path.stat().st_size for path in (FOLDER / name).rglob("*") if path.is_file()) < 300_000


def test_a_model_is_read_and_warns_where_another_version_wrote_it(release):
    versions = json.loads((release / "versions.json").read_text())
    expected = {AMPWarning} if release.name != amptutorial.__version__ else set()
    expected |= {InconsistentVersionWarning} if versions["scikit-learn"] != version("scikit-learn") else set()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = pickle.loads((release / "model.pickle").read_bytes())
    assert {each.category for each in told} == expected
    Z, words = table(release), pandas.read_csv(release / "model.vec", sep=" ", skiprows=1, header=None, index_col=0)
    assert list(words.index) == list(Z.columns) and np.allclose(words, model.components_.T, rtol=1e-5)
    assert np.allclose(model.transform(Z), np.loadtxt(release / "transformed.txt"), rtol=0, atol=1e-6)
    assert list(model.frames()[0].index) == list(Z.index)


def test_shards_and_a_corpus_hold_the_counts(release):
    Z, shards = table(release), open_shards(release / "shards")
    assert np.array_equal(np.vstack([load_counts(shards.folder, one).toarray() for one in shards.files]), Z)
    assert np.array_equal(shards.rows, Z.sum(axis=1)) and np.array_equal(shards.columns, Z.sum(axis=0))
    corpus = _from_arrays(load(release / "corpus.counts"))
    assert np.array_equal(corpus.counts.toarray(), Z) and list(corpus.vocabulary) == list(Z.columns)


def test_a_stored_result_passes_its_checksum(release):
    stored, found = json.loads((release / "singular.json").read_text()), load_results("singular", release)
    assert len(stored["instances"]) == REPRODUCTIONS["singular"].n_instances
    for key, values in found["instances"].items():
        assert values.tolist() == [each[key] for each in stored["instances"]]


def test_a_gradebook_and_its_rules_are_read(release):
    paths = sorted((release / "grades_files/results").glob("*.json"))
    task, records = assignment(1), [Record.from_json(path.read_text()) for path in paths]
    again, written = class_table(records, task), (release / "grades.csv").read_text()
    for new, old in zip(*(csv.DictReader(text.splitlines()) for text in (again, written)), strict=True):
        names = "student", "name", "id", "status"
        assert [new[name] for name in names] == [old[name] for name in names]
        both = set(old).intersection(task.points)  # a later version may ask more, and weigh otherwise
        assert len(both) > 10 and all((float(new[name]) > 0) == (float(old[name]) > 0) for name in both)
    written = yaml.safe_load((release / "grading.yml").read_text())
    assert load_rules(release / "grading.yml", 1).limits == LIMITS | written["limits"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:still improving", "ignore:heldout_gain_ =")
def test_runs_on_shards_go_on_from_their_checkpoints(release, tmp_path):
    kept, Z = shutil.copytree(release / "checkpoints", tmp_path / "kept"), table(release)
    B0, denoiser = np.loadtxt(release / "start.txt"), Ridge(1.0)
    with cluster(n_workers=1, processes=False) as workers, Client(workers) as client:
        given = {"B0": B0, "checkpoints": kept / "amp", "client": client}
        with pytest.raises(ValueError, match="n_iter is 1, and .* is of iteration 2"):
            sharded_amp(release / "shards", denoiser, n_iter=1, **given)
        found = sharded_amp(release / "shards", denoiser, n_iter=4, **given)
        assert_same(found, at_once(Z.to_numpy(), denoiser, B0=B0, n_iter=4))
        model = AMPEmbedding(n_components=2, n_iter=3, random_state=0)
        model = sharded_embedding(release / "shards", model, checkpoints=kept / "embedding", client=client)
    expected = AMPEmbedding(**model.get_params()).fit(Z).embedding_
    assert np.allclose(model.embedding_, expected, rtol=0, atol=1e-6 * np.abs(expected).max())


def test_a_checkpoint_that_cannot_be_read_names_its_version(tmp_path, monkeypatch):
    place = Checkpoint(tmp_path, [b"a run"], "another run")
    monkeypatch.setattr("amptutorial.amp.Gone", type("Gone", (), {"__module__": "amptutorial.amp"}), raising=False)
    place.save(amptutorial.amp.Gone())
    monkeypatch.undo()
    told = rf"of version {amptutorial.__version__} .* cannot be read .*Gone.*: go on with that version"
    with pytest.raises(ValueError, match=told):
        place.load()
