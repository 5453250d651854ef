"""Walk through a class: collect the submissions, grade each in its own process, keep what is done, write the CSV."""

import csv
import errno
import io
import json
import multiprocessing
import os
import signal
import stat
import time
import traceback
from dataclasses import dataclass
from multiprocessing.connection import wait

from . import judge

# beyond the submission's own: for a judge that hangs although it should not
JUDGE_SECONDS = 300


@dataclass(frozen=True)
class Submission:
    """What a student handed in: the bytes of denoiser.py, or a text that says why there are none."""

    student: str
    source: bytes | str


def collect(folder, kilobytes):
    """Return the `Submission` of every student: ``folder/<student>/denoiser.py`` or ``folder/<student>.py``.

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
    entries = [
        entry
        for entry in sorted(folder.iterdir())
        if not entry.name.startswith((".", "__"))
    ]
    places = {}
    for entry in entries:
        if entry.is_dir() or entry.suffix == ".py":
            student = entry.name if entry.is_dir() else entry.stem
            places.setdefault(student, []).append(
                entry / "denoiser.py" if entry.is_dir() else entry
            )
    if not places:
        raise FileNotFoundError(
            f"no submissions in {folder}: expected <student>/denoiser.py or <student>.py there"
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
    try:
        with open(
            os.open(paths[0], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb"
        ) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return "denoiser.py is no regular file"
            source = file.read(int(kilobytes * 1024) + 1)
    except FileNotFoundError:
        return "no file denoiser.py was handed in"
    except OSError as error:
        link = error.errno == errno.ELOOP
        return (
            "the file is a symbolic link: hand in the file itself"
            if link
            else f"cannot be read: {error.strerror}"
        )
    if len(source) > kilobytes * 1024:
        return f"the file is larger than {kilobytes:g} kB"
    try:
        source.decode("utf-8")
    except UnicodeDecodeError:
        return "the file is not encoded in UTF-8: save it with that encoding"
    return source


def grade_class(submissions, rules, folder, jobs=2):
    """Yield the record of every submission as soon as it is known; those that are stored and unchanged come first.

    Parameters
    ----------
    submissions : list of Submission
    rules : Rules
    folder : Path
        For the records, one JSON file a student.
    jobs : int
        Judges at work at the same time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    rest = []
    for submission in submissions:
        stored = _stored(folder, submission.student)
        if stored.get("key") == rules.key(submission.source):
            yield stored
        else:
            rest.append(submission)
    yield from run_judges(rest, rules, folder, jobs)


def run_judges(submissions, rules, folder, jobs):
    """Yield records from processes, one for each submission: whatever happens to one is no other's concern."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["amptutorial.grading.judge"])
    waiting, running = list(submissions), {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                submission = waiting.pop(0)
                path = folder / f"{submission.student}.json"
                path.unlink(missing_ok=True)
                task = (submission, rules, rules.key(submission.source), path)
                process = context.Process(target=_judge, args=task)
                process.start()
                running[process] = (
                    submission,
                    time.monotonic() + rules.limits["seconds"] + JUDGE_SECONDS,
                )
            wait([process.sentinel for process in running], timeout=1.0)
            for process, (submission, deadline) in list(running.items()):
                if process.is_alive() and time.monotonic() < deadline:
                    continue
                _stop(process)
                del running[process]
                yield _stored(folder, submission.student) or _lost(
                    submission, rules, process
                )
    finally:
        for process in running:
            _stop(process)


def _judge(submission, rules, key, path):
    """Grade a submission and store its record: the body of a judge's process."""
    try:
        found = {"key": key, **judge.grade(submission.source, rules)}
    # nothing is stored; the worker has been killed on the way here
    except KeyboardInterrupt:
        return
    except Exception:  # noqa: BLE001 - the grader's own fault: the class goes on, and without a key it is tried again
        status = "the grader failed, not the submission: grade it again"
        found = judge.record(rules, status, traceback=traceback.format_exc())
    write(path, json.dumps({"student": submission.student, **found}, indent=1))


def _stop(process):
    """End a judge: by an interrupt, on which it takes its worker along, or if need be at once."""
    if process.is_alive():
        os.kill(process.pid, signal.SIGINT)
    process.join(5)
    if process.is_alive():
        process.kill()
        process.join()


def _lost(submission, rules, process):
    """Return the record where the judge has left none; without a key, it is not taken for a result next time."""
    found = judge.record(
        rules,
        f"the judge ended with exit code {process.exitcode}: grade the submission again",
    )
    return {"student": submission.student, **found}


def _stored(folder, student):
    """Return the stored record of a student, or an empty one."""
    try:
        return json.loads((folder / f"{student}.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}


def write(path, text):
    """Write a file all at once: a reader, and an interrupted run, find the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.draft")
    # a student's text may hold what no file can
    draft.write_bytes(text.encode("utf-8", "replace"))
    os.replace(draft, path)


def grades(records, rules):
    """Return the CSV of a class as a text: student, points of every check, total, status."""
    table = io.StringIO()
    writer = csv.writer(table)
    writer.writerow(["student", *rules.weights, "total", "status"])
    for found in sorted(records, key=lambda found: found["student"]):
        points = {check["name"]: check["points"] for check in found["checks"]}
        numbers = [
            f"{value:.2f}"
            for value in (*(points[name] for name in rules.weights), found["total"])
        ]
        writer.writerow([cell(found["student"]), *numbers, cell(found["status"])])
    return table.getvalue()


def cell(text):
    """Return a text as one line that no spreadsheet takes for a formula.

    Examples
    --------
    >>> cell("=1+1")
    "'=1+1"
    """
    line = " ".join(text.split())[:300]
    return f"'{line}" if line.startswith(("=", "+", "-", "@")) else line
