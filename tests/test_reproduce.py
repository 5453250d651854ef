"""Stored results: found out when changed, and computed again, one instance of each experiment."""

import json
import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from amptutorial.paper import reproduce as module
from amptutorial.paper.reproduce import REPRODUCTIONS, STUDIED, load_results, main, reproduce
from studies.text import __main__ as study


def count(index):
    """Stand in for an experiment."""
    return {"square": index**2, "curve": np.arange(3) / 3 + index, "names": ["a", "b"], "time_seconds": 0.5}


@pytest.fixture
def counting(monkeypatch):
    monkeypatch.setitem(REPRODUCTIONS, "count", module._Reproduction(count, 3, "squares", ("fig:none",)))


# "text" and "documents" are in `studies/text`
@pytest.mark.slow
@pytest.mark.parametrize("name", ["l2", "l1", "fisher", "singular", pytest.param("real", marks=pytest.mark.reviews)])
def test_a_stored_instance_is_computed_again(name):
    """Which one is decided by the checksum, so by nobody."""
    record = load_results(name)
    stored = record["instances"]
    index = int(record["checksum"][:8], 16) % REPRODUCTIONS[name].n_instances
    again = REPRODUCTIONS[name].run(index)
    assert not module._differing(again, {key: values[index] for key, values in stored.items()})


@pytest.mark.slow
@pytest.mark.reviews
def test_the_stored_reviews_are_what_a_fit_gives():
    """To the third digit of the gain; of the words, round-off may exchange two neighbours of like distance."""
    stored = load_results("reviews")["instances"]
    fitted = REPRODUCTIONS["reviews"].run(0)
    assert fitted["gain"] == pytest.approx(stored["gain"][0], abs=0.005)
    for key in ("m", "n", "n_inflected", "nonzeros", "d", "words"):
        assert np.array_equal(fitted[key], stored[key][0])
    for near, again in zip(stored["nearest"][0], fitted["nearest"], strict=True):
        assert len(set(near) & set(again)) >= 3


@pytest.mark.parametrize("name, plan", [*REPRODUCTIONS.items(), *study.REPRODUCTIONS.items()])
def test_stored_results_are_complete_and_small(name, plan):
    record, size = load_results(name), (module.RESULTS / f"{name}.json").stat().st_size
    (n_records,) = {len(values) for values in record["instances"].values()}
    # a run of those that are studied returns several records: see `studies/text`
    assert n_records == plan.n_instances or name in STUDIED
    numbers = {key: values for key, values in record["instances"].items() if values.dtype.kind in "fi"}
    assert all(np.isfinite(values).all() for values in numbers.values())
    assert record["figures"] == list(plan.figures)
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
    with pytest.raises(KeyError, match="clone of the repository computes 'text': python -m studies.text text"):
        reproduce("text", folder=tmp_path)
    for command in ("l3", "text"):
        with pytest.raises(SystemExit):
            main(["reproduce", command])
    assert "python -m studies.text text" in capsys.readouterr().err
    (tmp_path / "file").touch()
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", "l2", "--to", str(tmp_path / "file")])
    assert stop.value.code == 1 and "file" in capsys.readouterr().err


def test_a_study_says_its_own_command(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(study.REPRODUCTIONS, "text", module._Reproduction(count, 2, "squares"))
    study.main(["text", "--jobs", "1", "--to", str(tmp_path)])
    assert "It differs from the stored result in" in capsys.readouterr().out
    assert load_results("text", tmp_path)["command"] == "python -m studies.text text"
    with pytest.raises(SystemExit):
        study.main(["all"])
    assert "no experiment 'all': choose from text, documents, inflections" in capsys.readouterr().err
    with pytest.raises(FileNotFoundError, match=f"python -m studies.text documents --to {tmp_path}"):
        load_results("documents", tmp_path)


def test_the_command_line_runs_one_or_all_and_leaves_what_is_installed(counting, tmp_path, monkeypatch, capsys):
    """It writes in the working directory, and says whether what is stored has come out again."""
    for name in [name for name in REPRODUCTIONS if name != "count"]:
        monkeypatch.delitem(REPRODUCTIONS, name)
    monkeypatch.setitem(REPRODUCTIONS, "no figure", module._Reproduction(count, 1, "none"))
    monkeypatch.setattr(module, "RESULTS", tmp_path / "installed")
    monkeypatch.chdir(tmp_path)
    for said in ("There is no stored", "It equals the stored result", "It differs from the stored result in: square"):
        main(["reproduce", "all", "--jobs", "1"])
        assert f"Wrote {Path('reproduced/count.json')}. {said}" in capsys.readouterr().out
        if said.startswith("There"):
            Path("reproduced").rename("installed")
            installed = Path("installed/count.json").read_bytes()
        else:
            REPRODUCTIONS["count"] = module._Reproduction(lambda k: {**count(k), "square": k}, 3, "", ("fig:none",))
    assert os.listdir("installed") == os.listdir("reproduced") == ["count.json"]
    assert Path("installed/count.json").read_bytes() == installed
