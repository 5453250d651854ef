"""Grade the submissions of a class and keep what is done.

Each submission is graded in a process of its own.
"""

import hashlib
import importlib.metadata
import multiprocessing
import os
import platform
import signal
import sys
import threading
import time
import traceback
from dataclasses import replace
from datetime import datetime
from multiprocessing.connection import wait

from amptutorial._files import write_atomically

from . import judge
from .record import Record, make_record, settle
from .worker.limits import limit_memory

# beyond the submission's own: for a judge that hangs although it should not
JUDGE_SECONDS = 300
JUDGE_MEGABYTES = 1024
UNWRITTEN = 28  # how a judge ends that cannot write, as on a full disk
VERSIONS = ("amptutorial", "numpy", "scipy")


def grade_class(submissions, rules, folder, jobs=2, isolate="none"):
    """Yield the `Record` of every submission as soon as it is known.

    Records that are stored and unchanged come first, with the points of today.

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
        stored = _stored(folder, submission)
        if stored is not None and stored.key == _key(submission, rules):
            yield settle(stored, rules.task)
        else:
            rest.append(submission)
    yield from run_judges(rest, rules, folder, jobs, isolate)


def waiting(submission, rules):
    """Return the record of a submission that has not been graded yet."""
    status = "not graded yet: run the same command again"
    return replace(make_record(rules.task, status), student=submission.student)


def run_judges(submissions, rules, folder, jobs, isolate="none"):
    """Yield records from processes, one for each submission.

    Nothing that happens to one of them concerns another.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["amptutorial_course.grading.judge"])
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
                stored = _stored(folder, submission)
                yield stored or _lost_record(submission, rules, process)
    finally:
        for process in running:
            _stop_judge(process)


def _start_judge(context, submission, rules, folder, isolate):
    path = _record_path(folder, submission)
    path.unlink(missing_ok=True)
    task = (submission, rules, _key(submission, rules), path, isolate)
    process = context.Process(target=_judge, args=task)
    process.start()
    return process


def _judge(submission, rules, key, path, isolate):
    """Grade a submission and store its record: the body of a judge's process."""
    # what a script starts in the background ignores interrupts, by which judges end
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=_end_with_the_grader, daemon=True).start()
    limit_memory(JUDGE_MEGABYTES)
    own, started = rules.for_student(submission.student), time.monotonic()
    try:
        record = judge.grade_submission(submission.source, own, isolate, submission.helpers)
        record = replace(record, key=key)
    # nothing is stored; the worker has been killed on the way here
    except KeyboardInterrupt:
        return
    # the grader's own fault: the class goes on, and without a key it is tried again
    except Exception:  # noqa: BLE001
        status = "the grader failed, not the submission: grade it again"
        record = make_record(rules.task, status, traceback=traceback.format_exc())
    log = _log(own, time.monotonic() - started)
    try:
        write_atomically(path, replace(record, student=submission.student, log=log).to_json())
    except OSError:
        sys.exit(UNWRITTEN)


def _key(submission, rules):
    own = rules.for_student(submission.student)
    return own.key(submission.source, submission.helpers)


def _log(rules, seconds):
    """Return when and with what a submission has been graded."""
    return {
        "date": datetime.now().astimezone().isoformat(timespec="seconds"),
        "seconds": round(seconds, 1),
        "seed fingerprint": rules.fingerprint(),
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in VERSIONS},
    }


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
    ended = f"the judge ended with exit code {code}"
    why = "the record could not be written" if code == UNWRITTEN else ended
    status = f"{why}: grade the submission again"
    return replace(make_record(rules.task, status), student=submission.student)


def file_name(student):
    """Return a name for a student's files, whatever the student is called.

    Examples
    --------
    >>> file_name("ada"), len(file_name("a" * 300)), file_name("a/b")[:4]
    ('ada', 57, 'a_b-')
    """
    safe = student.replace("/", "_").replace("\0", "_")
    while len(os.fsencode(safe)) > 100:
        safe = safe[: min(48, len(safe) - 1)]
    if safe == student and student not in ("", ".", ".."):
        return student
    return f"{safe}-{hashlib.sha256(os.fsencode(student)).hexdigest()[:8]}"


def _record_path(folder, submission):
    return folder / f"{file_name(submission.student)}.json"


def _stored(folder, submission):
    """Return the stored record of a submission, or None."""
    try:
        return Record.from_json(_record_path(folder, submission).read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        return None
