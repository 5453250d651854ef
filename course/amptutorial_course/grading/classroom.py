"""Grade the submissions of a class and keep what is done.

Each submission is graded in a process of its own.
"""

import hashlib
import multiprocessing
import os
import signal
import threading
import time
import traceback
from dataclasses import replace
from multiprocessing.connection import wait

from amptutorial._files import write_atomically

from . import judge
from .record import Record
from .worker.limits import limit_memory

# beyond the submission's own: for a judge that hangs although it should not
JUDGE_SECONDS = 300
JUDGE_MEGABYTES = 1024


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
        stored = _stored(folder, submission)
        if stored is not None and stored.key == rules.key(submission):
            yield stored
        else:
            rest.append(submission)
    yield from run_judges(rest, rules, folder, jobs, isolate)


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
                path = folder / f"{file_name(submission.student)}.json"
                path.unlink(missing_ok=True)
                process = context.Process(target=_judge, args=(submission, rules, path, isolate))
                process.start()
                running[process] = submission, deadline
            wait([process.sentinel for process in running], timeout=1.0)
            for process, (submission, deadline) in list(running.items()):
                if process.is_alive() and time.monotonic() < deadline:
                    continue
                _stop_judge(process)
                del running[process]
                # without a key it is graded again next time
                lost = f"the judge ended with exit code {process.exitcode}: grade the submission again"
                yield _stored(folder, submission) or Record(lost, student=submission.student)
    finally:
        for process in running:
            _stop_judge(process)


def _judge(submission, rules, path, isolate):
    """Grade a submission and store its record: the body of a judge's process."""
    # what a script starts in the background ignores interrupts, by which judges end
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=_end_with_the_grader, daemon=True).start()
    limit_memory(JUDGE_MEGABYTES)
    own = rules.for_student(submission.student)
    try:
        record = judge.grade_submission(submission.source, own, isolate, submission.helpers)
        record = replace(record, key=rules.key(submission))
    # nothing is stored; the worker has been killed on the way here
    except KeyboardInterrupt:
        return
    # the grader's own fault: the class goes on, and without a key it is tried again
    except Exception:  # noqa: BLE001
        status = "the grader failed, not the submission: grade it again"
        record = Record(status, traceback=traceback.format_exc())
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
    process.kill()
    process.join()


def file_name(student):
    """Return a name for a student's files, however long the student's is.

    Examples
    --------
    >>> file_name("ada"), len(file_name("a" * 240))
    ('ada', 49)
    """
    name = os.fsencode(student)
    return student if len(name) <= 100 else f"{student[:40]}-{hashlib.sha256(name).hexdigest()[:8]}"


def _stored(folder, submission):
    """Return the stored record of a submission, or None."""
    try:
        return Record.from_json((folder / f"{file_name(submission.student)}.json").read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        return None
