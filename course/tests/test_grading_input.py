"""What a lecturer may get wrong, and what a machine may lack: a sentence each, and no traceback."""

import errno
import os
import signal
from dataclasses import replace

import pytest
import yaml
from grading_samples import GRADING, LIMITS, PROBE, ask_probe, start_probe
from test_grading_class import hand_in, read

from amptutorial_course.grading import classroom, course, protocol, remote, sandbox
from amptutorial_course.grading.__main__ import main
from amptutorial_course.grading.record import make_record


def run(folder, *more, config=GRADING, out=None):
    out = out or folder / "grades.csv"
    arguments = [folder / "submissions", "--assignment", 1, "--out", out, "--config", config, "--isolate", "none"]
    return main([str(each) for each in (*arguments, *more)])


def test_a_file_of_rules_that_is_not_yaml_is_told_in_a_sentence(tmp_path, capsys):
    hand_in(tmp_path / "submissions", student="")
    path = tmp_path / "grading.yml"
    for text in ("weights: [1", "a: b: c", "\tseed: 1", "- 1", "", "seed: !!python/object:os.system 1", "caf\xe9: 1"):
        path.write_text(text, encoding="latin-1")
        assert run(tmp_path, config=path) == 1
        told = capsys.readouterr().err
        assert told.startswith(str(path)) and told.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("weights", "3", "weights in {path}: expected names, each with a value, and found 3"),
        ("essential", "optimality", "essential in {path} is 'optimality': list names of checks"),
        ("essential", "[optimal]", "essential in {path} is ['optimal']: list names of checks"),
        ("lateness", "{deadlines: 2026-10-15}", "deadlines in {path}: expected names, each with a value"),
        ("lateness", "{extensions: {1: [ada]}}", "the extensions of assignment 1 in {path}: expected names"),
        ("by_hand", "[derivations]", "by_hand in {path}: expected names, each with a value"),
    ],
)
def test_rules_of_another_form_are_told_in_a_sentence(tmp_path, capsys, name, value, told):
    hand_in(tmp_path / "submissions", student="")
    path = tmp_path / "grading.yml"
    rules = yaml.safe_load(GRADING.read_text(encoding="utf-8"))
    path.write_text(yaml.safe_dump(rules | {name: yaml.safe_load(value)}))
    assert run(tmp_path, config=path) == 1
    err = capsys.readouterr().err
    assert told.format(path=path) in err and err.count("\n") == 1


def test_results_are_not_written_among_the_submissions(tmp_path, capsys):
    hand_in(tmp_path / "submissions", student="")
    for out in ("submissions/grades.csv", "submissions/new/grades.csv", "other/../submissions/grades.csv"):
        assert run(tmp_path, out=tmp_path / out) == 1
        assert "where every entry is taken for a student: choose another folder" in capsys.readouterr().err
    assert os.listdir(tmp_path / "submissions") == ["student"]


def test_results_are_written_to_a_file_and_rules_read_from_one(tmp_path, capsys):
    hand_in(tmp_path / "submissions", student="")
    for wrong, told in (
        ({"out": tmp_path}, "is no file: name a table"),
        ({"config": tmp_path / "no.yml"}, "--config"),
        ({"config": tmp_path}, "--config"),
    ):
        assert run(tmp_path, **wrong) == 1
        assert told in capsys.readouterr().err


def test_a_class_of_nobody_is_told_in_a_sentence(tmp_path, capsys):
    (tmp_path / "submissions").mkdir()
    assert run(tmp_path) == 1
    assert "no submissions in" in capsys.readouterr().err


def test_a_class_of_five_hundred(tmp_path, monkeypatch):
    """Everything but the judges: the tables, the pages, and the table after each submission."""

    def judged(submissions, rules, *more):
        for each in submissions:
            yield classroom._named(replace(make_record(rules, each.source), key="of its files"), each)

    monkeypatch.setattr(classroom, "run_judges", judged)
    for number in range(500):
        (tmp_path / f"submissions/student_{number:03d}").mkdir(parents=True)
    assert run(tmp_path) == 0
    table = read(tmp_path / "grades.csv")
    assert len(table) == 500 and {row["status"] for row in table.values()} == {"no file denoiser.py was handed in"}


@pytest.mark.parametrize("where", ["write_similar", "write_course"])
def test_an_interruption_before_and_after_the_judges_is_told_in_a_sentence(tmp_path, capsys, monkeypatch, where):
    hand_in(tmp_path / "submissions", student_1="x = 1\n")
    monkeypatch.setattr(course, where, lambda *arguments: signal.raise_signal(signal.SIGTERM))
    assert run(tmp_path) == 130
    assert capsys.readouterr().err.endswith("Interrupted: the same command goes on from here.\n")
    monkeypatch.undo()
    assert run(tmp_path) == 0


def test_a_full_disk_is_told_in_a_sentence_and_nothing_is_lost(tmp_path, capsys, monkeypatch):
    hand_in(tmp_path / "submissions", student_1="x = 1\n", student_2="x = 2\n")

    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(course, "write_course", full)
    assert run(tmp_path) == 1
    told = capsys.readouterr().err
    assert "the results cannot be written: [Errno 28] No space left on device" in told and "goes on from here" in told
    monkeypatch.undo()
    assert run(tmp_path) == 0
    assert set(read(tmp_path / "grades.csv")) == {"student_1", "student_2"}


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("np.eye(3)", r"estimate has shape \(3, 3\), expected \(1, 2\)"),
        ("np.zeros((0, 2**22))", r"estimate has shape \(0, 4194304\)"),
        ("1.0", r"estimate has shape \(\), expected"),
    ],
)
def test_an_answer_has_the_shape_of_its_question(answer, text):
    source = PROBE.replace("sys.exit(3)", f"return {answer}")
    with remote.Session(source.encode(), LIMITS) as session, pytest.raises(remote.BadAnswer, match=text):
        ask_probe(start_probe(session), 7)


def test_a_judge_takes_no_more_than_its_memory():
    """In a process of its own, since the limit stays."""
    context = classroom.multiprocessing.get_context("spawn")
    process = context.Process(target=_take, args=(classroom.JUDGE_MEGABYTES,))
    process.start()
    process.join()
    assert process.exitcode == 7


def _take(megabytes):
    sandbox.limit_memory(megabytes)
    bytearray(megabytes * 2**19)
    try:
        bytearray(megabytes * 2**20 * 5 // 4)
    except MemoryError:
        os._exit(7)


def test_no_frame_is_much_larger_than_what_was_sent():
    assert protocol.HEADER_LIMIT + protocol.BODY_LIMIT < 2**25
    body = bytes(2 * 10**6)
    named = b'{"__array__": ["|u1", [2000000], "C", true]}'
    with pytest.raises(protocol.Malformed, match="beyond the end"):
        protocol.unpack(b'{"x": [' + b", ".join([named] * 250) + b"]}", body)
