"""What a lecturer may get wrong, and what a machine may lack: a sentence each, and no traceback."""

import errno
import os

from grading_samples import GRADING
from test_grading_class import hand_in, read

from amptutorial_course.grading import __main__ as command_line
from amptutorial_course.grading import classroom
from amptutorial_course.grading.record import Record
from amptutorial_course.grading.worker.limits import limit_memory


def run(folder, *more, out=None):
    out = out or folder / "grades.csv"
    arguments = [folder / "submissions", "--assignment", 1, "--out", out, "--config", GRADING, "--isolate", "none"]
    return command_line.main([str(each) for each in (*arguments, *more)])


def test_a_class_of_five_hundred(tmp_path, monkeypatch):
    """Everything but the judges: the table after each submission, and the pages."""

    def judged(submissions, rules, *more):
        for each in submissions:
            yield Record(each.source, student=each.student, key="of its files")

    monkeypatch.setattr(classroom, "run_judges", judged)
    for number in range(500):
        (tmp_path / f"submissions/student_{number:03d}").mkdir(parents=True)
    assert run(tmp_path) == 0
    table = read(tmp_path / "grades.csv")
    assert len(table) == 500
    assert {row["status"] for row in table.values()} == {"no Python file and no notebook was handed in"}


def test_a_full_disk_is_told_in_a_sentence_and_nothing_is_lost(tmp_path, capsys, monkeypatch):
    hand_in(tmp_path / "submissions", student_1="x = 1\n", student_2="x = 2\n")

    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(command_line, "_write_results", full)
    assert run(tmp_path) == 1
    assert capsys.readouterr().err.endswith("No space left on device\n")
    monkeypatch.undo()
    assert run(tmp_path) == 0
    assert set(read(tmp_path / "grades.csv")) == {"student_1", "student_2"}


def test_a_judge_takes_no_more_than_its_memory():
    """In a process of its own, since the limit stays."""
    context = classroom.multiprocessing.get_context("spawn")
    process = context.Process(target=_take, args=(classroom.JUDGE_MEGABYTES,))
    process.start()
    process.join()
    assert process.exitcode == 7


def _take(megabytes):
    limit_memory(megabytes)
    bytearray(megabytes * 2**19)
    try:
        bytearray(megabytes * 2**20 * 5 // 4)
    except MemoryError:
        os._exit(7)
