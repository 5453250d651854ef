"""The command that says how fast everything is: what it tells of itself, and what it does without a network."""

import re
from pathlib import Path

import pytest

from benchmarks import sampling
from benchmarks.__main__ import ROWS, main
from benchmarks.timing import row


@pytest.fixture
def sampled(monkeypatch):
    monkeypatch.setattr(sampling, "bench_sampling", lambda: [row("Sampling", "in no time", 1, "no limit")])


def test_the_help_tells_of_every_benchmark_what_it_measures_and_its_time(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    told = capsys.readouterr().out
    assert stop.value.code == 0
    for name, (module, _, _) in ROWS.items():
        assert re.search(rf"^  {name} +\d+ (s|min)  \w.*", told, re.MULTILINE), name
        source = Path(sampling.__file__).with_name(f"{module}.py").read_text()  # not imported: that takes seconds
        assert f"\ndef bench_{name}(" in source


def test_an_unknown_word_is_refused_and_nothing_is_run(sampled, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["sampling", "speed"])
    out, error = capsys.readouterr()
    assert stop.value.code == 2 and not out
    assert "there is no benchmark speed: choose from sampling, dense, " in error


def test_without_a_network_a_benchmark_is_left_out_with_a_sentence_and_the_next_one_runs(sampled, offline, capsys):
    main(["reviews", "sampling"])
    left_out, *found = capsys.readouterr().out.splitlines()
    assert left_out.startswith("reviews is left out: the movie reviews are not on this machine")
    assert found == [f"{'Sampling':<52} {1:8.2f}   (no limit)", "    in no time"]
