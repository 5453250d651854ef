"""The judge's side: a right solution and a mistake are the same from afar."""

import tempfile
from contextlib import contextmanager
from pathlib import Path

import grading_samples as samples
import numpy as np
import pytest

from amptutorial.checks import CheckResult, describe_error
from amptutorial.checks.trials import is_own
from amptutorial_course.grading import session as remote
from amptutorial_course.grading.record import Record


def test_without_an_essential_check_nothing_else_earns_points(rules):
    results = (CheckResult(name, name not in rules.task.essential) for name in rules.task.points)
    found = Record("graded", tuple(results))
    assert samples.passed(found) and samples.total(found) == 0
    assert "optimality or limits" in found.told(rules.task)


@pytest.fixture(scope="module")
def session():
    with remote.Session(samples.PROBE.encode(), samples.LIMITS) as session:
        yield session


@pytest.fixture(scope="module")
def probe(session):
    return samples.start_probe(session, scale=2.0, center=np.arange(2.0))


def test_a_remote_denoiser_answers_like_the_student_s_class(session, probe):
    assert probe.precision == "posterior"
    assert is_own(probe, "convexity") and not is_own(probe, "penalty")
    assert probe.convexity(np.ones(3)) == 0.5
    np.testing.assert_array_equal(samples.ask_probe(probe, 0), [[0.0, 10.0]])
    np.testing.assert_allclose(probe.mean_jacobian(np.zeros((1, 2)), np.ones(1), np.eye(2)), 2 * np.eye(2), atol=1e-8)
    np.testing.assert_array_equal(samples.ask_probe(probe, 6), [[6.0, 6.0]])
    np.testing.assert_array_equal(samples.ask_probe(probe, 4), [[1.0, 2.0]])
    np.testing.assert_array_equal(samples.ask_probe(probe, 9, dtype="f4"), [[4.0, 1.0]])


def test_a_denoiser_that_learns_does_so_at_the_other_side():
    with remote.Session(samples.LEARNS.encode(), samples.LIMITS) as session:
        learner = remote.remote_class(session, "Learner")(session, {})
        P, r, F = np.array([[1.0], [3.0]]), np.ones(2), np.eye(1)
        learned = learner.refit(P, r, F)
        assert (learned.estimate(P, r, F) == P + 2).all() and (learner.estimate(P, r, F) == P).all()
        assert (learned.frozen().refit(10 * P, r, F).estimate(P, r, F) == P + 2).all()
        assert (learned.refit(10 * P, r, F).estimate(P, r, F) == P + 20).all()
        session.stop()
        with pytest.raises(remote.NotRun, match="lost when the submission was restarted"):
            learned.estimate(P, r, F)
        assert (learner.estimate(P, r, F) == P).all()


def test_what_a_student_writes_into_arguments_is_seen(probe):
    P, F = np.array([[1.0, 5.0]]), np.eye(2)
    probe.estimate(P, np.ones(1), F)
    assert (P[0, 1], F[0, 0]) == (7.0, 8.0)


def test_errors_keep_their_name_and_line_and_prints_disturb_nothing(session, probe):
    for case, name, text in (
        (2, "TypeError", "the answer is NoneType"),
        (3, "TypeError", "complex128"),
        (5, "ValueError", r"<b>bold</b> \(denoiser.py, line 16\)"),
        (7, "SystemExit", "3"),
    ):
        with pytest.raises(remote.StudentError, match=text) as failure:
            samples.ask_probe(probe, case)
        assert type(failure.value).__name__ == name
    np.testing.assert_array_equal(samples.ask_probe(probe, 8), [[16.0, 10.0]])
    assert session.output().endswith("one line\n")


def test_lines_are_counted_at_the_other_side(probe):
    rows = {n: (np.full((n, 2), 10.0), np.ones(n), np.eye(2)) for n in (10, 110)}
    few, many = (remote.count_remote_lines(probe, "estimate", *each) for each in rows.values())
    assert many - few == 200


def test_a_class_must_exist_and_be_a_denoiser(session):
    for name in ("Plain", "Missing"):
        with pytest.raises(remote.StudentError, match=f"no class {name} derived from"):
            remote.remote_class(session, name)


@contextmanager
def probing(code, **limits):
    """Yield a session, and in it a probe that runs `code` in case 7."""
    source = samples.PROBE.replace("sys.exit(3)", code)
    with remote.Session(source.encode(), samples.LIMITS | limits) as session:
        yield session, samples.start_probe(session)


def test_too_many_crashes_end_the_session(monkeypatch):
    monkeypatch.setattr(remote, "RESTARTS", 1)
    with probing("import os; os._exit(3)") as (session, probe):
        for error in (remote.Crash, remote.Crash, remote.NotRun, remote.NotRun):
            with pytest.raises(error):
                samples.ask_probe(probe, 7)
        assert session.generation == 2


def test_the_time_for_a_submission_is_limited_as_a_whole():
    """Two seconds of the processor, in calls of 0.4: that is what the worker says, and here it is right."""
    slow = "import time; end = time.process_time() + 0.4\n            while time.process_time() < end: pass"
    with probing(f"\n            {slow}", seconds=2.0, seconds_on_the_wall=99) as (session, probe):
        with pytest.raises(remote.NotRun, match="2 s for one submission are used up"):
            for _ in range(6):
                samples.ask_probe(probe, 7)
        assert session.timed_out and session.generation == 1


WAITING = [
    ("\n            while True: pass", 99, "within 1 s of the processor for 1 row, d = 2: an endless loop"),
    ("import time; time.sleep(99)", 2, "within 2 s on the wall for 1 row, d = 2: does it wait"),
]


@pytest.mark.parametrize(("code", "patience", "told"), WAITING)
def test_a_call_has_its_seconds_of_the_processor_and_more_on_the_wall(monkeypatch, code, patience, told):
    monkeypatch.setattr(remote, "PATIENCE", patience)
    with probing(code, seconds_per_call=1) as (session, probe):
        with pytest.raises(remote.TimeLimit, match=told):
            samples.ask_probe(probe, 7)
        assert session.timed_out
        assert samples.ask_probe(probe, 0)[0, 1] == 5


def test_a_method_that_gave_no_answer_twice_is_not_asked_again():
    with probing("\n            while True: pass", seconds_per_call=0.5) as (session, probe):
        for error in (remote.TimeLimit, remote.TimeLimit, remote.NotRun):
            with pytest.raises(error) as raised:
                samples.ask_probe(probe, 7)
        assert "not asked, because 2 earlier calls failed: estimate gave no answer" in describe_error(raised.value)
        assert "session.py" not in describe_error(raised.value)
        assert session.over is None


KEPT = "return vars(self).setdefault(str(P.shape), right(self, P, r, F))"
CRASH = "raised Crash: {} ended Python itself (exit code 9), by os._exit or"
OF_JACOBIAN = {"shapes", "jacobian", "right_jacobian"}
COSTS = [
    ("penalty", "os._exit(9)", {"penalty", "right_penalty"}, "penalty", CRASH.format("penalty")),
    ("mean_jacobian", "os._exit(9)", OF_JACOBIAN, "jacobian", CRASH.format("mean_jacobian")),
    ("mean_jacobian", "return np.ones(3)", OF_JACOBIAN, "jacobian", "shape (3,)"),
    ("estimate", KEPT, {"right_answers"}, "right_answers", ""),
]  # each is a whole grading: the first stands for the others in make test


@pytest.mark.parametrize(
    ("method", "body", "lost", "judge", "told"),
    [COSTS[0], *(pytest.param(*each, marks=pytest.mark.slow) for each in COSTS[1:])],
)
def test_a_mistake_costs_the_checks_that_judge_it(rules, method, body, lost, judge, told):
    """A crash too: all other checks ask without that method, and its judge says how it ended.

    And state: whoever is asked anew is a copy.
    """
    arguments = "self, X, r" if method == "penalty" else "self, P, r, F"
    wrong = f"\nimport os\nright = RidgeByHand.estimate\ndef wrong({arguments}):\n    {body}\n"
    wrong += f"RidgeByHand.{method} = wrong\n"
    record = samples.grade(samples.RIGHT + wrong, rules)
    assert samples.passed(record) == set(rules.task.points) - lost
    assert told in next(result.message for result in record.results if result.name == judge)


def test_nothing_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with remote.Session(samples.PROBE.encode(), samples.LIMITS) as session:
        session.start()
        process, folder = session.place.process, Path(session.place.folder.name)
        assert folder.parent == tmp_path
        assert [path.name for path in (folder / "home").iterdir()] == ["denoiser.py"]
    assert process.poll() is not None and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("isolate", ["none", samples.isolated("bwrap", pytest.mark.slow)])
def test_a_death_by_any_signal_is_a_crash_after_which_the_session_goes_on(isolate):
    with remote.Session(samples.PROBE.encode(), samples.LIMITS, isolate) as session:
        probe = samples.start_probe(session)
        with pytest.raises(remote.Crash, match="signal 40"):
            samples.ask_probe(probe, 11)
        assert samples.ask_probe(probe, 0)[0, 1] == 5 and session.generation == 2


def test_an_answer_has_the_shape_of_its_question():
    shapes = r"\(3, 3\), expected \(1, 2\)", r"\(0, 4194304\)", r"\(\), expected"
    with probing("return (np.eye(3), np.zeros((0, 2**22)), 1.0)[len(r) - 1]") as (_, probe):
        for rows, shape in enumerate(shapes, 1):
            with pytest.raises(remote.BadAnswer, match=f"estimate has shape {shape}"):
                probe.estimate(np.full((rows, 2), 7.0), np.ones(rows), np.eye(2))


def test_files_that_cannot_be_written_are_the_submission_s_fault(rules):
    helpers = {"a.py": b"", "a.py/b.py": b"", "x" * 300 + ".py": b""}
    record = samples.grade(samples.RIGHT, rules, helpers=helpers)
    assert samples.total(record) == 0 and "denoiser.py cannot be imported: FileExistsError" in record.status
    record = samples.grade(samples.RIGHT, rules, helpers={"x" * 2**18 + ".py": b""})
    assert samples.total(record) == 0 and "are too long to be sent" in record.status


def test_who_prints_without_end_is_stopped_and_told():
    with probing("print('x' * 2**20) or [print('x' * 2**20) for _ in range(99)]") as (session, probe):
        with pytest.raises(remote.StudentError, match="more than 20 MB were printed"):
            samples.ask_probe(probe, 7)
        assert len(session.output(10**6)) <= samples.LIMITS["output_kilobytes"] * 2**10
        assert samples.ask_probe(probe, 0)[0, 1] == 5 and session.generation == 1
