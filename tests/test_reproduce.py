"""Stored results: found out when changed, and computed again, one instance of each experiment."""

import json
import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from amptutorial.paper import reproduce as module
from amptutorial.paper.comparison import CASES
from amptutorial.paper.meaning import TABLES
from amptutorial.paper.new_documents import CASES as OF_DOCUMENTS
from amptutorial.paper.reproduce import REPRODUCTIONS, load_results, main, reproduce

DATA = os.environ.get("AMPTUTORIAL_DATA")
NO_REVIEWS = pytest.mark.skipif(not DATA, reason="AMPTUTORIAL_DATA names no movie reviews")
REAL = pytest.param("real", marks=[pytest.mark.reviews, NO_REVIEWS])


def count(index):
    """Stand in for an experiment."""
    return {"square": index**2, "curve": np.arange(3) / 3 + index, "names": ["a", "b"], "time_seconds": 0.5}


@pytest.fixture
def counting(monkeypatch):
    monkeypatch.setitem(REPRODUCTIONS, "count", module._Reproduction(count, 3, "squares", ("fig:none",)))


# The others in `test_comparison` and `test_new_documents`: "text" and "documents" in part, "reviews" up to
# neighbours that round-off exchanges
@pytest.mark.slow
@pytest.mark.parametrize("name", ["l2", "l1", "fisher", "singular", REAL])
def test_a_stored_instance_is_computed_again(name):
    """Which one is decided by the checksum, so by nobody."""
    record = load_results(name)
    stored = record["instances"]
    index = int(record["checksum"][:8], 16) % REPRODUCTIONS[name].n_instances
    again = REPRODUCTIONS[name].run(index)
    assert not module._differing(again, {key: values[index] for key, values in stored.items()})


def test_the_numbers_of_cases_which_stand_apart_are_theirs():
    """So stored results are read without scikit-learn, as `test_house` asks."""
    assert REPRODUCTIONS["text"].n_instances == len(CASES)
    assert REPRODUCTIONS["inflections"].n_instances == len(TABLES)
    assert REPRODUCTIONS["documents"].n_instances == len(OF_DOCUMENTS)


@pytest.mark.parametrize("name", REPRODUCTIONS)
def test_stored_results_are_complete_and_small(name):
    record, size = load_results(name), (module.RESULTS / f"{name}.json").stat().st_size
    (n_records,) = {len(values) for values in record["instances"].values()}
    # a run of these returns several records: see `test_comparison`
    assert n_records == REPRODUCTIONS[name].n_instances or name in ("text", "documents", "inflections")
    numbers = {key: values for key, values in record["instances"].items() if values.dtype.kind in "fi"}
    assert all(np.isfinite(values).all() for values in numbers.values())
    assert record["figures"] == list(REPRODUCTIONS[name].figures)
    assert size < 400_000


def test_what_is_stored_is_read_back_and_a_changed_number_is_found_out(counting, tmp_path):
    path = reproduce("count", folder=tmp_path, n_jobs=1)
    record = load_results("count", tmp_path)
    assert np.array_equal(record["instances"]["square"], [0, 1, 4])
    assert np.allclose(record["instances"]["curve"][2], count(2)["curve"], rtol=1e-7)
    assert record["instances"]["names"].tolist() == [["a", "b"]] * 3
    stored = json.loads(path.read_text())
    assert stored.pop("checksum") == module.checksum(stored)
    path.write_text(path.read_text().replace('"square":4', '"square":5'))
    with pytest.raises(ValueError, match="is not as it was stored: python -m amptutorial reproduce count"):
        load_results("count", tmp_path)


def test_a_run_may_return_several_instances(tmp_path, monkeypatch):
    monkeypatch.setitem(REPRODUCTIONS, "several", module._Reproduction(lambda k: [count(k), count(k + 10)], 2, "more"))
    reproduce("several", folder=tmp_path, n_jobs=1)
    assert load_results("several", tmp_path)["instances"]["square"].tolist() == [0, 100, 1, 121]


def test_what_is_missing_is_named(tmp_path, capsys):
    with pytest.raises(FileNotFoundError, match=f"python -m amptutorial reproduce l2 --to {tmp_path} computes it"):
        load_results("l2", tmp_path)
    for function in (partial(reproduce, folder=tmp_path), load_results):
        with pytest.raises(KeyError, match="choose from l2, l1"):
            function("l3")
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", "l2", "--to", str(tmp_path / "file")])
    assert stop.value.code == 1 and "file" in capsys.readouterr().err


def test_the_command_line_runs_one_or_all_and_leaves_what_is_installed(counting, tmp_path, monkeypatch, capsys):
    """It writes in the working directory, and says whether what is stored has come out again."""
    plans = {"count": REPRODUCTIONS["count"], "no figure": module._Reproduction(count, 1, "none")}
    monkeypatch.setattr(module, "REPRODUCTIONS", plans)
    monkeypatch.setattr(module, "RESULTS", tmp_path / "installed")
    monkeypatch.chdir(tmp_path)
    for said in ("There is no stored", "It equals the stored result", "It differs from the stored result in: square"):
        main(["reproduce", "all", "--jobs", "1"])
        assert f"Wrote {Path('reproduced/count.json')}. {said}" in capsys.readouterr().out
        if said.startswith("There"):
            Path("reproduced").rename("installed")
            installed = Path("installed/count.json").read_bytes()
        else:
            plans["count"] = module._Reproduction(lambda k: {**count(k), "square": k}, 3, "", ("fig:none",))
    assert os.listdir("installed") == os.listdir("reproduced") == ["count.json"]
    assert Path("installed/count.json").read_bytes() == installed
