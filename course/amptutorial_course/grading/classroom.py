"""Grade the submissions of a class and keep what is done.

Each submission is read and graded in a process of its own, and so nothing that is in
one can cost another anything: neither memory, nor time, nor its grade.
"""

import hashlib
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from dataclasses import replace
from multiprocessing.connection import wait

from amptutorial._files import write_atomically

from . import judge
from .record import Record
from .session import seconds_on_the_wall
from .submissions import Refused
from .worker.limits import limit_memory

# beyond the submission's own: for a judge that hangs although it should not
JUDGE_SECONDS = 300
JUDGE_MEGABYTES = 1024
READING_SECONDS = 15
FAULT = "the grader failed, not the submission: grade it again"


def grade_class(entries, rules, folder, jobs=2, isolate="none"):
    """Yield the `Record` of every submission as soon as it is known.

    A record that is stored is kept where nothing that it depends on has changed.

    Parameters
    ----------
    entries : dict
        The paths of each student, as from `submissions.find_submissions`.
    rules : Rules
    folder : Path
        For the records, one JSON file a student.
    jobs : int
        Judges at work at the same time.
    isolate : str
        One of `grading.KINDS`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("forkserver")
    # all that the command imports, which each judge would import again
    context.set_forkserver_preload(["amptutorial_course.grading.commands"])
    waiting, running = list(entries.items()), {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                student, paths = waiting.pop(0)
                deadline = time.monotonic() + seconds_on_the_wall(rules.limits) + JUDGE_SECONDS
                path = folder / f"{file_name(student)}.json"
                process = context.Process(target=_judge, args=(student, paths, rules, path, isolate))
                process.start()
                running[process] = student, path, deadline
            wait([process.sentinel for process in running], timeout=1.0)
            for process, (student, path, deadline) in list(running.items()):
                if process.is_alive() and time.monotonic() < deadline:
                    continue
                _stop_judge(process)
                del running[process]
                yield _outcome(process.exitcode, student, path)
    finally:
        for process in running:
            _stop_judge(process)


def _judge(student, paths, rules, path, isolate):
    """Grade a submission and store its record: the body of a judge's process."""
    # what a script starts in the background ignores interrupts, by which judges end
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=_end_with_the_grader, daemon=True).start()
    limit_memory(JUDGE_MEGABYTES)
    try:
        signal.signal(signal.SIGPROF, _refuse_to_read_on)
        signal.setitimer(signal.ITIMER_PROF, READING_SECONDS)
        submission = rules.read(*paths)
        signal.setitimer(signal.ITIMER_PROF, 0)
        key, stored = rules.key(submission), _stored(path)
        if stored is not None and stored.key == key:
            return
        record = judge.grade_submission(submission, rules, isolate)
        # where time ran out another run, on a quieter machine, may find more
        record = replace(record, key="" if record.timed_out else key)
    # nothing is stored; the worker has been killed on the way here
    except KeyboardInterrupt:
        sys.exit(1)
    # the grader's own fault: the class goes on, and without a key it is tried again
    except Exception:  # noqa: BLE001
        record = Record(FAULT, fault=traceback.format_exc())
    write_atomically(path, replace(record, student=student).to_json())


def _refuse_to_read_on(*_):
    raise Refused(f"reading took more than {READING_SECONDS} s: hand in denoiser.py alone")


def _outcome(exitcode, student, path):
    """Return the record that a judge has stored, unless it did not come to its end."""
    stored = None if exitcode else _stored(path)
    return stored or Record(FAULT, fault=f"the judge ended with exit code {exitcode}", student=student)


def _end_with_the_grader():
    """End this judge if the grader is killed: there is nobody left to stop it."""
    if grader := multiprocessing.parent_process():
        grader.join()
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


def _stored(path):
    """Return a stored record, or None."""
    try:
        return Record.from_json(path.read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        return None
