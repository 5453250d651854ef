"""Containers for submissions: what holds in them, whatever a submission does to Python."""

import functools
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

import pytest
from grading_samples import LIMITS, ROOT, isolated

from amptutorial_course.grading import isolation
from amptutorial_course.grading.worker import confine

readable_paths = isolation.readable_paths
# `user` is tried in test_grading_gradescope.py, where there is a place that it can read
each_kind = pytest.mark.parametrize("kind", [isolated("bwrap"), isolated("landlock")])


@pytest.mark.skipif("CI" not in os.environ or sys.platform != "linux", reason="skipped tests are read here")
def test_no_test_of_a_machine_is_skipped_where_nobody_reads_it():
    assert isolation.bwrap_problem() == ""


def test_what_a_submission_may_read_has_neither_solutions_nor_assignments():
    paths = [*isolation.readable_paths()[0], *isolation.PARTS.values()]
    assert sys.base_prefix in paths
    assert not any((ROOT / name).is_relative_to(path) for path in paths for name in ("solutions", "assignments"))


def in_place(kind, script):
    """Return what a script prints that runs where a submission would, confined as the worker is."""
    start = "import sys, os; sys.path.insert(0, sys.argv[1]); sys.stdout = sys.stderr\n"
    start += "from amptutorial_worker import confine\n"
    start += f"confine.confine({{readable!r}})\n{script.replace('{', '{{').replace('}', '}}')}"
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryFile() as printed:
        patch.setattr(isolation, "START", start)
        place = isolation.Place(kind, LIMITS, subprocess.DEVNULL, printed)
        code = place.end(60)
        printed.seek(0)
        text = printed.read().decode()
    assert code == 0, text
    return text


@each_kind
def test_the_grader_is_not_to_be_had(kind, tmp_path, monkeypatch):
    """Neither beside the package and the worker, nor among the libraries."""
    look = "import amptutorial, amptutorial_worker.answers\ntry:\n    import amptutorial_course.grading\n"
    assert in_place(kind, f"{look}except (ImportError, PermissionError):\n    print('no')") == "no\n"
    course = shutil.copytree(isolation.COURSE, tmp_path / "site-packages" / "amptutorial_course")
    monkeypatch.setattr(isolation, "PRIVATE", (course,))
    monkeypatch.syspath_prepend(course.parent)
    monkeypatch.setattr(isolation, "readable_paths", functools.partial(with_library, course.parent))
    script = f"print(os.listdir({str(course.parent)!r}))\ntry:\n    open({str(course / 'py.typed')!r})\n"
    script += "except OSError:\n    print('no')"
    assert in_place(kind, script) == "['amptutorial_course']\nno\n"


def with_library(folder):
    paths, hidden = readable_paths()
    return [*paths, str(folder)], [*hidden, str(folder / "amptutorial_course")]


def test_the_first_isolation_that_works_is_chosen_and_none_only_by_its_name(monkeypatch):
    works, told = {"bwrap": "", "user": "", "landlock": ""}, []
    for kind in works:
        monkeypatch.setattr(isolation, f"{kind}_problem", lambda kind=kind: works[kind])
    assert isolation.choose() == "bwrap"
    works["bwrap"] = "bwrap is not installed"
    assert isolation.choose() == "user" and isolation.choose("landlock") == "landlock"
    works["landlock"] = "this kernel has no Landlock"
    assert isolation.choose(alone=True) == "user"  # who keeps the files of others apart needs no Landlock
    with pytest.raises(ValueError, match="bwrap is not installed; --isolate user: this kernel has no Landlock; "):
        isolation.choose()
    works |= {"user": "the grader is not root", "landlock": ""}
    assert isolation.choose() == "landlock"
    works["landlock"] = "this kernel has no Landlock"
    with pytest.raises(ValueError, match='"isolate: none" in grading.yml'):
        isolation.choose()
    assert isolation.best() == "none"  # for one's own file
    with pytest.raises(ValueError, match="--isolate bwrap: bwrap is not installed. Nothing would keep submissions"):
        isolation.choose("bwrap")
    assert isolation.choose("none", told.append) == "none"  # which has to be asked for
    assert len(told) == 1 and "read them first" in told[0]


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Return a function that puts a program of this name and text before all others."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    def program(name, text):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)

    return program


def test_a_bubblewrap_that_does_not_work_is_found_out(program, tmp_path, monkeypatch):
    program("bwrap", "echo 'bwrap: no user namespaces' >&2; exit 1")
    problem = isolation.bwrap_problem.__wrapped__  # what is true of this machine stays known
    assert problem() == "bwrap: no user namespaces"
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    assert problem() == "bwrap is not installed"


# Attempts of a Python that nothing confines: each succeeds outside, and must raise OSError in the machine.
ATTEMPTS = {
    "read the solutions": "open(FOLDER + '/secret.txt').read()",
    "read a home": "os.listdir(os.path.dirname(FOLDER))",
    "write beside them": "open(FOLDER + '/new.txt', 'w').write('x')",
    "write into the package": "open(PACKAGE + '/new.py', 'w').write('x')",
    "write into Python": "open(os.path.dirname(os.__file__) + '/new.pth', 'w').write('x')",
    "fill /dev/shm": "open('/dev/shm/much', 'wb').write(bytes(2**25))",
    "fill /tmp": "open('/tmp/much', 'wb').write(bytes(2**25))",
    "change who may read": "os.chmod(FOLDER + '/secret.txt', 0o666)",
    "change the time of a file": "os.utime(FOLDER + '/secret.txt', (1, 1))",
    "become another program": "os.execv('/usr/bin/env', ['env'])",
    "fork": "os.fork() or os._exit(0)",
    "start a program": "subprocess.run(['/bin/true'], check=True)",
    "spawn": "os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)",
    "connect": "socket.create_connection(('127.0.0.1', PORT), timeout=5).close()",
    "signal the parent": "os.kill(PARENT, 0)",
    "renice the parent": "os.setpriority(os.PRIO_PROCESS, PARENT, 19)",
    "bind the parent to one core": "os.sched_setaffinity(PARENT, {0})",
    "look at the parent": "os.listdir(f'/proc/{PARENT}')",
    "use shared memory that others made": "_posixshmem.shm_open(SHARED, os.O_RDWR)",
}
INSIDE = f"""
import os, socket, subprocess, sys, json
import _posixshmem
FOLDER, PACKAGE, PARENT, PORT, SHARED = OUTSIDE
held = []
for name, attempt in {ATTEMPTS!r}.items():
    try:
        eval(attempt)
    except (OSError, subprocess.SubprocessError):
        held.append(name)
import threading
thread = threading.Thread(target=print, args=("threads can be started",))
thread.start()
thread.join()
print(json.dumps(held))
"""


@pytest.fixture
def outside(tmp_path):
    (tmp_path / "secret.txt").write_text("SECRET")
    package = tmp_path / "package"
    package.mkdir()
    shared = SharedMemory(create=True, size=64)
    with socket.create_server(("127.0.0.1", 0)) as server:
        given = [str(tmp_path), str(package), os.getpid(), server.getsockname()[1], "/" + shared.name]
        yield INSIDE.replace("OUTSIDE", repr(given))
    shared.close()
    shared.unlink()


@each_kind
def test_every_isolation_holds_against_native_code(kind, outside):
    printed = in_place(kind, outside)
    assert "threads can be started" in printed
    assert set(json.loads(printed.splitlines()[-1])) == set(ATTEMPTS)
    assert not Path("/dev/shm/much").exists() and not Path("/tmp/much").exists()


def test_the_same_attempts_succeed_where_nothing_is_isolated(outside, tmp_path):
    """The list above proves something only if its entries work elsewhere."""
    others = ("write into Python", "fill", "renice", "bind", "become")
    harmless = {k: v for k, v in ATTEMPTS.items() if not k.startswith(others)}
    script = outside.replace(repr(ATTEMPTS), repr(harmless))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == []


def run_filter(program, architecture, number, argument=0):
    """Return what a seccomp filter answers to a system call, as the kernel runs it: classic BPF."""
    data = struct.pack("=IIQQ", number, architecture, 0, argument)
    at, accumulator = -1, 0
    lines = list(struct.iter_unpack("=HBBI", program))
    while True:
        at += 1
        code, true, false, value = lines[at]
        if code == 0x06:
            return value
        if code == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, value)
        else:
            at += true if {0x15: accumulator == value, 0x45: accumulator & value}[code] else false


ALLOWED, REFUSED, ABSENT = 0x7FFF0000, 0x00050001, 0x00050026
THREAD_FLAGS, PROCESS_FLAGS = 0x3D0F00, 0x1200011  # of clone, as the C library starts either
OWN, OTHER = 4242, 4243
# of the two machines: architecture, clone, kill, tgkill, prlimit64; and fork, vfork, x32, execve, socket, ptrace, chmod
MACHINES = {
    "x86_64": (0xC000003E, 56, 62, 234, 302, (57, 58, 0x40000000, 0x40000038, 59, 41, 101, 90)),
    "aarch64": (0xC00000B7, 220, 129, 131, 261, (221, 198, 117, 53)),
}


@pytest.mark.parametrize("machine", MACHINES)
def test_the_filter_lets_threads_start_and_no_process(machine):
    architecture, clone, kill, tgkill, prlimit, refused = MACHINES[machine]
    program = confine.process_filter(machine, OWN)
    assert run_filter(program, architecture, clone, THREAD_FLAGS) == ALLOWED
    assert run_filter(program, architecture, clone, PROCESS_FLAGS) == REFUSED
    assert run_filter(program, architecture, 435) == ABSENT  # clone3, whose flags cannot be seen
    for number in (kill, tgkill):
        assert run_filter(program, architecture, number, OWN) == ALLOWED
        assert {run_filter(program, architecture, number, who) for who in (OTHER, 0, 2**32 - 1)} == {REFUSED}
    assert run_filter(program, architecture, prlimit, 0) == ALLOWED != run_filter(program, architecture, prlimit, OTHER)
    assert {run_filter(program, architecture, number) for number in refused} == {REFUSED}
    harmless = {"x86_64": (0, 1, 9, 35, 202, 257), "aarch64": (56, 63, 64, 98, 222)}[machine]  # read, write, futex ...
    assert {run_filter(program, architecture, number) for number in harmless} == {ALLOWED}
    assert run_filter(program, architecture + 1, 0) == REFUSED


@pytest.mark.skipif(sys.platform != "linux", reason="not Linux")
def test_what_has_threads_is_not_taken_for_confined():
    script = "import threading, time; threading.Thread(target=time.sleep, args=(1,)).start()\n"
    script += "from amptutorial_course.grading.worker import confine; confine.confine({})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "they would not be confined" in done.stderr
