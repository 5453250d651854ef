"""Containers for submissions: what holds in them, whatever a submission does to Python."""

import json
import os
import platform
import shutil
import socket
import struct
import subprocess
import sys
from contextlib import ExitStack
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

import pytest
from grading_samples import ROOT

from amptutorial_course.grading import isolation

problem = isolation.bwrap_problem() if sys.platform == "linux" else "not Linux"
needs_bwrap = pytest.mark.skipif(bool(problem), reason=problem)


@pytest.mark.skipif("CI" not in os.environ or sys.platform != "linux", reason="skipped tests are read here")
def test_no_test_of_a_machine_is_skipped_where_nobody_reads_it():
    assert problem == ""


def test_docker_isolates_and_limits():
    arguments = isolation.docker_arguments("one", {"seconds": 60, "megabytes": 512}, {"HOME": "/submission"})
    assert {
        "--rm", "--read-only", "--network=none", "--ipc=private", "--user=65534:65534", "--cap-drop=ALL",
        "--security-opt=no-new-privileges", "--pids-limit=64", "--memory=1024m", "--memory-swap=1024m",
        "--shm-size=16m", "--tmpfs=/tmp:size=16m,mode=1777", "--tmpfs=/submission:size=16m,mode=1777",
    } <= set(arguments)  # fmt: skip
    volumes = [each for each in arguments if each.startswith("--volume")]
    assert volumes == [f"--volume={path}:/package/{name}:ro" for name, path in isolation.PARTS.items()]


def test_what_a_submission_may_read_has_neither_solutions_nor_assignments():
    paths = [*isolation.readable_paths(), *isolation.PARTS.values()]
    assert sys.base_prefix in paths
    assert not any((ROOT / name).is_relative_to(path) for path in paths for name in ("solutions", "assignments"))


def in_container(script, *arguments):
    with ExitStack() as stack:
        command, inherited = isolation._bwrap_command(stack)
        command += [sys.executable, "-c", script, *arguments]
        done = subprocess.run(command, pass_fds=inherited, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_bwrap
def test_the_grader_is_not_in_the_container(tmp_path, monkeypatch):
    """Neither beside the package and the worker, nor among the libraries."""
    start = "import sys, importlib.util; sys.path.insert(0, '/package'); import amptutorial, amptutorial_worker.answers"
    assert in_container(f"{start}; print(importlib.util.find_spec('amptutorial_course'))") == "None\n"
    course = shutil.copytree(isolation.COURSE, tmp_path / "site-packages" / "amptutorial_course")
    monkeypatch.setattr(isolation, "PRIVATE", (course,))
    monkeypatch.syspath_prepend(course.parent)
    script = f"import os; print(os.listdir({str(course.parent)!r}), os.listdir({str(course)!r}))"
    assert in_container(script) == "['amptutorial_course'] []\n"


def test_bubblewrap_is_the_default_where_it_works(monkeypatch):
    for wanted, problem, kind, warned in (
        (None, "", "bwrap", False),
        (None, "bwrap is not installed", "none", True),
        ("bwrap", "", "bwrap", False),
        ("none", "", "none", True),
    ):
        monkeypatch.setattr(isolation, "bwrap_problem", lambda problem=problem: problem)
        warnings = []
        assert isolation.choose(wanted, warnings.append) == kind and len(warnings) == warned
        assert all(problem in each and "keeps them from your files" in each for each in warnings)


def test_what_is_asked_for_and_cannot_be_had_is_an_error(monkeypatch):
    monkeypatch.setattr(isolation, "bwrap_problem", lambda: "no permission")
    monkeypatch.setattr(isolation.shutil, "which", lambda name: None)
    for kind, problem in (("bwrap", "no permission"), ("docker", "docker is not installed")):
        with pytest.raises(ValueError, match=f"--isolate {kind}: {problem}"):
            isolation.choose(kind)


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Return a function that puts a program of this name and text before all others."""
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    def program(name, text):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)

    return program


def test_a_docker_that_does_not_run_or_has_no_image_is_found_out(program):
    program("docker", "echo 'no such image' >&2; exit 1")
    with pytest.raises(ValueError, match="no such image .start Docker, and build the image amptutorial-grading once"):
        isolation.choose("docker")
    program("docker", '[ "$*" = "image inspect amptutorial-grading" ]')
    assert isolation.choose("docker") == "docker"


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
FOLDER, PACKAGE, PARENT, PORT, SHARED = json.loads(sys.argv[1])
open("/dev/shm/left", "w").write("here")
open("/tmp/left_by_a_submission", "w").write("here")
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
        yield json.dumps([str(tmp_path), str(package), os.getpid(), server.getsockname()[1], "/" + shared.name])
    shared.close()
    shared.unlink()


@needs_bwrap
@pytest.mark.skipif(platform.machine() not in isolation.SYSTEM_CALLS, reason="no filter for this machine")
def test_the_container_holds_against_native_code(outside):
    printed = in_container(INSIDE, outside)
    assert "threads can be started" in printed
    assert set(json.loads(printed.splitlines()[-1])) == set(ATTEMPTS)
    assert not Path("/dev/shm/left").exists() and not Path("/tmp/left_by_a_submission").exists()


def test_the_same_attempts_succeed_where_nothing_is_isolated(outside, tmp_path):
    """The list above proves something only if its entries work elsewhere."""
    harmless = {k: v for k, v in ATTEMPTS.items() if not k.startswith(("write into Python", "fill", "renice", "bind"))}
    script = INSIDE.replace(repr(ATTEMPTS), repr(harmless)).replace("/dev/shm/left", f"{tmp_path}/left")
    script = script.replace("/tmp/left_by_a_submission", f"{tmp_path}/left")
    done = subprocess.run([sys.executable, "-c", script, outside], capture_output=True, text=True)
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


@pytest.mark.parametrize(
    ("machine", "architecture", "clone", "forks"),
    [("x86_64", 0xC000003E, 56, (57, 58, 0x40000000, 0x40000038)), ("aarch64", 0xC00000B7, 220, ())],
)
def test_the_filter_lets_threads_start_and_no_process(machine, architecture, clone, forks):
    program = isolation.process_filter(machine)
    assert run_filter(program, architecture, clone, THREAD_FLAGS) == ALLOWED
    assert run_filter(program, architecture, clone, PROCESS_FLAGS) == REFUSED
    assert run_filter(program, architecture, 435) == ABSENT  # clone3, whose flags cannot be seen
    assert {run_filter(program, architecture, number) for number in forks} <= {REFUSED}
    assert {run_filter(program, architecture, number) for number in (0, 1, 63, 64, 221)} == {ALLOWED}
    assert run_filter(program, architecture + 1, 0) == REFUSED
