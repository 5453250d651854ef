"""A class: its rules and hidden settings, hostile neighbours, interruptions, faults, the table of points."""

import contextlib
import csv
import errno
import io
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sample_class
import yaml
from grading_samples import GRADING, HOSTILE, LIMITS, LOST, RIGHT, WRONG

from amptutorial_course.assignments import ASSIGNMENTS
from amptutorial_course.grading import classroom, commands, gradebook, isolation, judge, submissions
from amptutorial_course.grading.__main__ import main
from amptutorial_course.grading.record import Record
from amptutorial_course.grading.rules import SEED_VARIABLE, default_path, derive_seed, load_rules
from amptutorial_course.grading.submissions import Submission, find_submissions


def test_hidden_settings_depend_on_the_seed_and_are_not_the_public_ones(task):
    def rows(seed):
        return [trial.problem.P for trial in task.trials(None, seed=seed)]

    assert all(map(np.array_equal, rows(1), rows(1)))
    for one, other in ((1, 2), (1, None), (0, None)):
        assert not any(map(np.array_equal, rows(one), rows(other)))


def test_rules_that_cannot_be_followed_are_told_in_a_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv(SEED_VARIABLE, raising=False)
    hand_in(tmp_path / "submissions", ada="")
    for text, told in (
        ("limits: {seconds: 0}", "limit seconds must be positive"),
        ("limits: {minutes: 3}", "limits in .*: unknown minutes; it may have seconds"),
        ("limits: 3", "limits in .*: unknown 3"),
        ("seed: secret", "seed must be an integer"),
        ("limits: {}", "has no seed: name a seed_file"),
        ("seed_file: none.txt", "the seed_file of .*, is empty or missing"),
        ("weights: {1: {shapes: 3}}", "unknown weights; it may have seed, seed_file, limits, isolate"),
        ("seed: 1\nisolate: docker", "isolate in .* is 'docker': it may be bwrap, user, landlock, none"),
        ("seed: [1", "is not valid YAML|cannot be read"),
        ("seed: !!python/object:os.system 1", "is not valid YAML|cannot be read"),
        ("caf\xe9: 1", "UTF-8|cannot be read"),
    ):
        (tmp_path / "grading.yml").write_text(text, encoding="latin-1")
        assert main(command(tmp_path)) == 1
        err = capsys.readouterr().err
        assert re.search(told, err) and err.count("\n") == 1


def test_points_that_are_no_hundred_are_refused(monkeypatch):
    task = ASSIGNMENTS[1]
    for points in (task.points | {"shapes": 5}, {"shapes": 100}, task.points | {"elegance": 0}):
        with pytest.raises(ValueError, match="the points of assignment 1 must name every check"):
            replace(task, points=points).require_points()


def test_the_secret_comes_from_a_file_or_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.delenv(SEED_VARIABLE, raising=False)
    told = []
    load_rules(GRADING, 1, warn=told.append)
    assert ["is public, and students can try" in text for text in told] == [True]
    (tmp_path / "grading.yml").write_text("seed: 20240\nseed_file: seed.txt")
    (tmp_path / "seed.txt").write_text("hush\n")
    found = load_rules(tmp_path / "grading.yml", 1, warn=told.append)
    assert found.seed == derive_seed("hush", 1) and len(told) == 1
    monkeypatch.setenv(SEED_VARIABLE, "other")
    assert load_rules(tmp_path / "grading.yml", 1).seed == derive_seed("other", 1)


def test_the_default_rules_are_those_of_this_folder_or_of_the_clone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert default_path() == GRADING
    hand_in(tmp_path, assignments="")
    (tmp_path / "assignments/grading.yml").touch()
    assert default_path() == tmp_path / "assignments/grading.yml"


def hand_in(folder, **texts):
    for student, text in texts.items():
        place = folder / student
        place.mkdir(parents=True, exist_ok=True)
        (place / "denoiser.py").write_text(text, encoding="utf-8")
    return folder


def test_arguments_that_cannot_be_followed_are_told_in_a_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "submissions").mkdir()
    for arguments, told in (
        ("submissions --assignment 1 --out grades.csv", "expected NAME.py, NAME.ipynb, NAME.zip or a folder NAME"),
        ("none --assignment 1 --out grades.csv", "none"),
        ("submissions --assignment 99 --out grades.csv", "there is no assignment 99"),
        ("submissions --assignment 1 --out grades.csv --jobs 0", "--jobs must be at least 1"),
        ("submissions --out grades.csv", "name the assignment: --assignment N"),
        ("submissions --assignment 1 --out submissions/new/grades.csv", "lies among the submissions"),
        ("submissions --assignment 1 --out .", "is no file: name a table"),
    ):
        assert main(arguments.split()) == 1
        assert told in capsys.readouterr().err and os.listdir("submissions") == []


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """Return the folder of a class that was graded with the command line, a well-behaved one and then a mixed one."""
    folder = tmp_path_factory.mktemp("class")
    data = {"seed": 20240, "limits": LIMITS}
    (folder / "grading.yml").write_text(yaml.safe_dump(data, sort_keys=False))
    hand_in(folder / "submissions", student_01=RIGHT, student_03=WRONG, another_name=WRONG)
    assert main(command(folder)) == 0
    (folder / "before.csv").write_bytes((folder / "grades.csv").read_bytes())
    # without a container it may kill its judge, and that is not held against it
    parent = "os._exit" if isolation.bwrap_problem() else "an attack on the parent"
    attacks = ["os._exit in estimate", "a patched NumPy in estimate", f"{parent} in estimate"]
    names = ("student_02", "student_04", "=student<b>")
    hand_in(folder / "submissions", **{name: HOSTILE[attack] for name, attack in zip(names, attacks, strict=True)})
    hand_in(folder / "submissions", student_05="raise ValueError('=1+1|<script>alert(1)</script>\\ud800')\n")
    (folder / "submissions/student_06").mkdir()
    assert main(command(folder)) == 0
    return folder


def command(folder, *more):
    return [
        str(folder / "submissions"), "--assignment", "1", "--out", str(folder / "grades.csv"),
        "--config", str(folder / "grading.yml"), *more,
    ]  # fmt: skip


def points_of_the_others_do_not_depend_on_a_hostile_neighbour(graded, rules):
    alone, together = read(graded / "before.csv"), read(graded / "grades.csv")
    assert {name: together[name] for name in alone} == alone
    assert alone["student_01"]["total"] == "100.00"
    assert {name for name in rules.task.points if not float(alone["student_03"][name])} == set(LOST)
    assert float(alone["student_03"]["total"]) == 100 - sum(rules.task.points[name] for name in LOST)
    assert {row["total"] for name, row in together.items() if name not in alone} == {"0.00"}


def equal_files_are_found_equal_whoever_hands_them_in(graded):
    paths = (graded / f"grades_files/results/{name}.json" for name in ("student_03", "another_name"))
    one, other = (Record.from_json(path.read_text()) for path in paths)
    assert (one.results, one.key) == (other.results, other.key)


def the_csv_has_a_column_for_every_check_and_no_formula(graded, rules):
    table = read(graded / "grades.csv")
    assert list(table["student_01"]) == ["student", "name", "id", *rules.task.points, "total", "status"]
    assert "'=student<b>" in table
    assert "no Python file and no notebook" in table["student_06"]["status"]
    assert [gradebook.csv_cell(text)[0] for text in ("=1", "+1", "-1", "@a", "\t=1", "a")] == ["'"] * 5 + ["a"]
    text = (graded / "grades.csv").read_text()
    assert not any(cell.startswith(("=", "+", "-", "@")) for row in csv.reader(io.StringIO(text)) for cell in row)


def what_was_found_reaches_the_student_and_the_hidden_seed_does_not(graded):
    pages = {name: (graded / f"grades_files/feedback/student_{name}.html").read_text() for name in ("03", "05")}
    assert "a mean over the rows, not a sum" in pages["03"]
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in pages["05"] and "line 1, in &lt;module&gt;" in pages["05"]
    assert "20240" not in pages["03"]
    assert {path.name for path in (graded / "grades_files").iterdir()} == {"feedback", "results"}


def run_again(graded):
    """Run the command once more; return the names of the records that were written."""
    paths = list((graded / "grades_files/results").iterdir())
    before = {path: path.stat().st_mtime_ns for path in paths}
    assert main(command(graded)) == 0
    return {path.stem for path in paths if path.stat().st_mtime_ns != before[path]}


def a_second_run_grades_only_what_has_changed(graded):
    before = (graded / "grades.csv").read_bytes()
    assert run_again(graded) == set() and (graded / "grades.csv").read_bytes() == before
    source = graded / "submissions/student_05/denoiser.py"
    source.write_text(source.read_text() + "# again\n")
    (graded / "grades_files/results/student_06.json").write_text('{"half a rec')
    assert run_again(graded) == {"student_05", "student_06"} and (graded / "grades.csv").read_bytes() == before


def other_points_need_no_other_run(graded, monkeypatch):
    task = ASSIGNMENTS[1]
    points = task.points | {"shapes": 1, "jacobian": 11}
    monkeypatch.setitem(ASSIGNMENTS, 1, replace(task, points=points))
    assert run_again(graded) == set()
    table = read(graded / "grades.csv")
    assert table["student_01"]["shapes"] == "1.00" and table["student_01"]["total"] == "100.00"
    assert float(table["student_03"]["total"]) == 100 - sum(points[name] for name in LOST)


def test_a_class_is_graded_from_end_to_end(graded, rules, monkeypatch):
    """One test, because two processes would each grade the class."""
    points_of_the_others_do_not_depend_on_a_hostile_neighbour(graded, rules)
    equal_files_are_found_equal_whoever_hands_them_in(graded)
    the_csv_has_a_column_for_every_check_and_no_formula(graded, rules)
    what_was_found_reaches_the_student_and_the_hidden_seed_does_not(graded)
    a_second_run_grades_only_what_has_changed(graded)
    other_points_need_no_other_run(graded, monkeypatch)


def test_a_result_belongs_to_its_rules(rules):
    one = Submission(b"a")
    other = [Submission(b"b"), Submission("b'a'"), Submission(b"a", {"helper.py": b""})]
    keys = {rules.key(each) for each in (one, *other)} | {replace(rules, seed=rules.seed + 1).key(one)}
    assert len(keys) == 5 and rules.key(one) in keys


def test_a_judge_that_dies_costs_nobody_else(tmp_path, rules, monkeypatch):
    monkeypatch.setattr(classroom, "_judge", len)  # takes other arguments: the process ends at once
    (tmp_path / "student_01.json").write_text(Record("graded", student="student_01", key="old").to_json())
    entries = {name: [tmp_path / name] for name in ("student_01", "student_02")}
    found = {each.student: each for each in classroom.grade_class(entries, rules, tmp_path)}
    assert set(found) == set(entries)
    assert {(each.fault, each.key) for each in found.values()} == {("the judge ended with exit code 1", "")}


@pytest.fixture
def judged_here(tmp_path, rules, monkeypatch):
    """Return a function that judges a file in this process, and returns the record."""
    monkeypatch.setattr(classroom, "_end_with_the_grader", lambda: None)  # there is none above this process
    monkeypatch.setattr(classroom, "limit_memory", lambda megabytes: None)  # nor a limit on the other tests

    def judged_here(source):
        source.touch()
        classroom._judge("ada", [source], rules, tmp_path / "ada.json", "none")
        return Record.from_json((tmp_path / "ada.json").read_text())

    return judged_here


def test_a_fault_of_the_grader_is_reported_and_tried_again(tmp_path, judged_here, monkeypatch):
    monkeypatch.setattr(judge, "grade_submission", lambda *arguments: 1 / 0)
    stored = judged_here(tmp_path / "denoiser.py")
    for text in ("", "[]", '"graded"', "{}", '{"marks": [1]}', '{"marks": [], "grade": 1}'):
        with pytest.raises(ValueError):
            Record.from_json(text)
    assert "the grader failed, not the submission" in stored.status and "ZeroDivisionError" in stored.fault
    assert (stored.student, stored.key) == ("ada", "")


def test_a_verdict_with_a_time_out_is_no_final_one(tmp_path, rules, judged_here, monkeypatch):
    records, source = iter([Record("graded", timed_out=True), Record("graded")]), tmp_path / "denoiser.py"
    monkeypatch.setattr(judge, "grade_submission", lambda *arguments: next(records))
    keys = [judged_here(source).key for _ in range(3)]  # the third is the second, kept
    assert not keys[0] and keys[1] == keys[2] == rules.key(rules.read(source))


def test_reading_has_its_time(tmp_path, judged_here, monkeypatch):
    monkeypatch.setattr(classroom, "READING_SECONDS", 0.1)
    monkeypatch.setattr(submissions, "read_files", lambda path: [None for _ in iter(int, 1)])
    assert judged_here(tmp_path).status.startswith("reading took more than 0.1 s")


def test_one_who_hands_in_a_class_in_one_folder_is_told(tmp_path, capsys):
    hand_in(tmp_path / "submissions/export", ada="x = 1", bob="x = 2")
    (tmp_path / "grading.yml").write_text("seed: 20240\n")
    assert main(command(tmp_path)) == 0
    export = tmp_path / "submissions/export"
    told = capsys.readouterr().err
    assert f"if export holds a whole class, name {export} as the folder" in told
    assert "1 submissions, 2 at a time: about 0.1 min" in told


def descendants(number):
    """Return the numbers of the processes that a process has started, directly or not."""
    found = []
    with contextlib.suppress(OSError):
        for path in Path(f"/proc/{number}/task").glob("*/children"):
            found += path.read_text().split()
    return found + [each for child in found for each in descendants(child)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ending", "isolate"),
    [(signal.SIGINT, "none"), (signal.SIGTERM, "bwrap"), (signal.SIGHUP, "none"), (signal.SIGKILL, "none")],
)
def test_an_interrupted_run_leaves_valid_files_and_goes_on(tmp_path, ending, isolate):
    if isolate == "bwrap" and isolation.bwrap_problem():
        pytest.skip(isolation.bwrap_problem())
    data = {"seed": 20240, "limits": LIMITS | {"seconds_per_call": 500, "seconds": 500}}
    (tmp_path / "grading.yml").write_text(yaml.safe_dump(data, sort_keys=False))
    hand_in(tmp_path / "submissions", student_01="x = 1\n", student_02="while True:\n    pass\n", student_03=RIGHT)
    # in the background of a script interrupts are ignored, and the others end a run all the same
    interrupts = signal.SIG_DFL if ending == signal.SIGINT else signal.SIG_IGN

    def prepare():
        signal.signal(signal.SIGINT, interrupts)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever starts the tests by nohup ignores it

    process = subprocess.Popen(
        [sys.executable, "-m", "amptutorial_course.grading", *command(tmp_path, "--jobs", "1", "--isolate", isolate)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"TMPDIR": str(tmp_path)},
        preexec_fn=prepare,
    )  # fmt: skip
    first = tmp_path / "grades_files/results/student_01.json"
    while process.poll() is None and not (first.exists() and len(descendants(process.pid)) > 3):
        time.sleep(0.1)
    time.sleep(1)
    started = descendants(process.pid)
    process.send_signal(ending)
    errors = process.communicate(timeout=300)[1]  # a guard against hanging, not a measurement
    wait_for(lambda: not any(Path(f"/proc/{number}").exists() for number in started))
    wait_for(lambda: not list(tmp_path.glob("amptutorial-grader-*")))
    assert Record.from_json(first.read_text()).key
    if ending == signal.SIGINT:
        assert process.returncode == 130 and "the same command goes on from here" in errors
        told = {name: row["status"] == "not graded yet" for name, row in read(tmp_path / "grades.csv").items()}
        assert told == {"student_01": False, "student_02": True, "student_03": True}
        (tmp_path / "submissions/student_02/denoiser.py").unlink()
        assert main(command(tmp_path)) == 0 and set(read(tmp_path / "grades.csv")) == set(told)


def wait_for(condition, seconds=60):
    """Wait for what has to happen; the time is a guard against hanging, not a measurement."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.1)


def test_a_full_disk_is_told_in_a_sentence_and_nothing_is_lost(tmp_path, capsys, monkeypatch):
    hand_in(tmp_path / "submissions", student_1="x = 1\n", student_2="x = 2\n")
    (tmp_path / "grading.yml").write_text("seed: 20240\n")

    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(commands.gradebook, "class_table", full)
    assert main(command(tmp_path)) == 1
    assert capsys.readouterr().err.endswith("No space left on device\n")
    monkeypatch.undo()
    written, write = [], commands.pages.student_page
    monkeypatch.setattr(commands.pages, "student_page", lambda record, task: written.append(1) or write(record, task))
    assert main(command(tmp_path)) == 0 and len(written) == 2  # each page once
    assert set(read(tmp_path / "grades.csv")) == {"student_1", "student_2"}


def test_a_judge_takes_no_more_than_its_memory():
    """In a process of its own, since the limit stays."""
    take = f"""from amptutorial_course.grading.worker.limits import limit_memory
limit_memory({classroom.JUDGE_MEGABYTES})
bytearray({classroom.JUDGE_MEGABYTES} * 2**19)
bytearray({classroom.JUDGE_MEGABYTES} * 2**20 * 5 // 4)"""
    taken = subprocess.run([sys.executable, "-c", take], capture_output=True, text=True)
    assert "line 4, in" in taken.stderr and taken.stderr.endswith("MemoryError\n"), taken.stderr


# A submission whose own assert is what finds a mistake of its author.
CAREFUL = RIGHT.replace("def penalty(self, X, r):", "def penalty(self, X, r):\n        assert False, 'not finished'")


@pytest.mark.slow
def test_the_grader_gives_the_same_points_with_and_without_assertions(tmp_path):
    hand_in(tmp_path / "submissions", right=RIGHT, wrong=WRONG, careful=CAREFUL)
    tables = []
    for options in ([], ["-OO"]):
        arguments = ["-m", "amptutorial_course.grading", tmp_path / "submissions", "--assignment", "1"]
        out = tmp_path / f"points{len(options)}.csv"
        subprocess.run([sys.executable, *options, *arguments, "--out", out, "--config", GRADING], check=True)
        tables.append(read(out))
    plain, optimised = tables
    assert float(plain["careful"]["penalty"]) == float(plain["wrong"]["jacobian"]) == 0
    assert float(plain["right"]["total"]) == 100 and optimised == plain


@pytest.mark.parametrize("number", ASSIGNMENTS)
def test_the_sample_class_is_right_wrong_and_hostile(number, tmp_path):
    handed_in = sample_class.write_class(tmp_path, number)
    assert len({*handed_in.values()}) == len(handed_in) >= sample_class.SIZE
    assert sum(name.startswith("right") for name in handed_in.values()) >= 4
    assert set(find_submissions(tmp_path)) == set(handed_in)
