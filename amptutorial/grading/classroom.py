"""Walk through a class: collect the submissions, grade each, keep what is done.

Each submission is graded in a process of its own.
"""

import csv
import errno
import io
import multiprocessing
import os
import signal
import stat
import threading
import time
import traceback
from dataclasses import dataclass, replace
from multiprocessing.connection import wait

from .._files import write_atomically
from . import judge
from .record import Record, make_record

# beyond the submission's own: for a judge that hangs although it should not
JUDGE_SECONDS = 300


@dataclass(frozen=True)
class Submission:
    """What a student handed in.

    Attributes
    ----------
    student : str
    source : bytes or str
        The bytes of denoiser.py, or a text that says why there are none.
    """

    student: str
    source: bytes | str


def collect_submissions(folder, kilobytes):
    """Return the `Submission` of every student in a folder.

    Students hand in ``folder/<student>/denoiser.py`` or ``folder/<student>.py``.

    Parameters
    ----------
    folder : Path
    kilobytes : float
        The largest file that is accepted.

    Raises
    ------
    FileNotFoundError
        If the folder has no submission at all.
    """
    places = {}
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith((".", "__")):
            continue
        if entry.is_dir():
            places.setdefault(entry.name, []).append(entry / "denoiser.py")
        elif entry.suffix == ".py":
            places.setdefault(entry.stem, []).append(entry)
    if not places:
        raise FileNotFoundError(
            f"no submissions in {folder}: expected <student>/denoiser.py or "
            "<student>.py there"
        )
    return [
        Submission(student, _source(paths, kilobytes))
        for student, paths in sorted(places.items())
    ]


def _source(paths, kilobytes):
    """Return the bytes of a submission, or why it cannot be graded."""
    if len(paths) > 1:
        return "handed in twice, as a folder and as a file: keep one"
    if paths[0].name == "denoiser.py" and paths[0].parent.is_symlink():
        return "the folder is a symbolic link: hand in a folder"
    # without following links, and without waiting for the other end of a named pipe
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        with open(os.open(paths[0], flags), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return "denoiser.py is not a regular file"
            source = file.read(int(kilobytes * 1024) + 1)
    except FileNotFoundError:
        return "no file denoiser.py was handed in"
    except OSError as error:
        if error.errno == errno.ELOOP:
            return "the file is a symbolic link: hand in the file itself"
        return f"cannot be read: {error.strerror}"
    if len(source) > kilobytes * 1024:
        return f"the file is larger than {kilobytes:g} kB"
    try:
        source.decode("utf-8")
    except UnicodeDecodeError:
        return "the file is not encoded in UTF-8: save it with that encoding"
    return source


def grade_class(submissions, rules, folder, jobs=2, isolate="none"):
    """Yield the `Record` of every submission as soon as it is known.

    Records that are stored and unchanged come first.

    Parameters
    ----------
    submissions : list of Submission
    rules : Rules
    folder : Path
        For the records, one JSON file a student.
    jobs : int
        Judges at work at the same time.
    isolate : str
        One of `isolation.KINDS`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rest = []
    for submission in submissions:
        stored = _stored(folder, submission.student)
        if stored is not None and stored.key == rules.key(submission.source):
            yield stored
        else:
            rest.append(submission)
    yield from run_judges(rest, rules, folder, jobs, isolate)


def run_judges(submissions, rules, folder, jobs, isolate="none"):
    """Yield records from processes, one for each submission.

    Nothing that happens to one of them concerns another.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["amptutorial.grading.judge"])
    waiting, running = list(submissions), {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                submission = waiting.pop(0)
                deadline = time.monotonic() + rules.limits["seconds"] + JUDGE_SECONDS
                process = _start_judge(context, submission, rules, folder, isolate)
                running[process] = submission, deadline
            wait([process.sentinel for process in running], timeout=1.0)
            for process, (submission, deadline) in list(running.items()):
                if process.is_alive() and time.monotonic() < deadline:
                    continue
                _stop_judge(process)
                del running[process]
                stored = _stored(folder, submission.student)
                yield stored or _lost_record(submission, rules, process)
    finally:
        for process in running:
            _stop_judge(process)


def _start_judge(context, submission, rules, folder, isolate):
    path = _record_path(folder, submission.student)
    path.unlink(missing_ok=True)
    task = (submission, rules, rules.key(submission.source), path, isolate)
    process = context.Process(target=_judge, args=task)
    process.start()
    return process


def _judge(submission, rules, key, path, isolate):
    """Grade a submission and store its record: the body of a judge's process."""
    threading.Thread(target=_end_with_the_grader, daemon=True).start()
    try:
        found = judge.grade_submission(submission.source, rules, isolate)
        record = replace(found, key=key)
    # nothing is stored; the worker has been killed on the way here
    except KeyboardInterrupt:
        return
    # the grader's own fault: the class goes on, and without a key it is tried again
    except Exception:  # noqa: BLE001
        status = "the grader failed, not the submission: grade it again"
        record = make_record(rules, status, traceback=traceback.format_exc())
    write_atomically(path, replace(record, student=submission.student).to_json())


def _end_with_the_grader():
    """End this judge if the grader is killed: there is nobody left to stop it."""
    multiprocessing.parent_process().join()
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(5)
    os._exit(1)


def _stop_judge(process):
    """End a judge by an interrupt, on which it takes its worker along.

    A judge that does not end within five seconds is killed.
    """
    if process.is_alive():
        os.kill(process.pid, signal.SIGINT)
    process.join(5)
    if process.is_alive():
        process.kill()
        process.join()


def _lost_record(submission, rules, process):
    """Return the record of a submission whose judge has left none.

    It has no key, so that the submission is graded again next time.
    """
    code = process.exitcode
    status = f"the judge ended with exit code {code}: grade the submission again"
    return replace(make_record(rules, status), student=submission.student)


def _record_path(folder, student):
    return folder / f"{student}.json"


def _stored(folder, student):
    """Return the stored record of a student, or None."""
    try:
        return Record.from_json(_record_path(folder, student).read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        return None


def class_table(records, rules):
    """Return the CSV of a class: student, points of every check, total, status."""
    table = io.StringIO()
    writer = csv.writer(table)
    writer.writerow(["student", *rules.weights, "total", "status"])
    for record in sorted(records, key=lambda record: record.student):
        points = {mark.name: mark.points for mark in record.marks}
        values = [*(points[name] for name in rules.weights), record.total]
        numbers = [f"{value:.2f}" for value in values]
        writer.writerow([csv_cell(record.student), *numbers, csv_cell(record.status)])
    return table.getvalue()


def csv_cell(text):
    """Return a text as one line that no spreadsheet takes for a formula.

    Examples
    --------
    >>> csv_cell("=1+1")
    "'=1+1"
    """
    line = " ".join(text.split())[:300]
    return f"'{line}" if line.startswith(("=", "+", "-", "@")) else line
