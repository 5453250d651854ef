"""Machines for submissions: what holds in them for code that no audit hook confines."""

import json
import os
import platform
import socket
import struct
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

import pytest
from grading_samples import LIMITS, PROBE, RIGHT, ROOT, ask_probe, grade, start_probe

from amptutorial_course.grading import isolation, remote

problem = isolation.bwrap_problem() if sys.platform == "linux" else "not Linux"
needs_bwrap = pytest.mark.skipif(bool(problem), reason=problem)


@pytest.mark.skipif("CI" not in os.environ or sys.platform != "linux", reason="skipped tests are read here")
def test_no_test_of_a_machine_is_skipped_where_nobody_reads_it():
    assert problem == ""


def test_bubblewrap_is_given_what_is_needed_and_nothing_else():
    arguments = isolation.bwrap_arguments(["/usr", "/home/me/amptutorial"], ["/home/me/course/amptutorial_course/assignments"], 7)
    assert arguments == [
        "bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "submission",
        "--dev", "/dev", "--proc", "/proc", "--size", "16777216", "--tmpfs", "/dev/shm",
        "--size", "16777216", "--tmpfs", "/tmp", "--size", "16777216", "--tmpfs", "/submission",
        "--ro-bind", "/usr", "/usr", "--ro-bind", "/home/me/amptutorial", "/home/me/amptutorial",
        "--tmpfs", "/home/me/course/amptutorial_course/assignments", "--remount-ro", "/home/me/course/amptutorial_course/assignments",
        "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", "/submission", "--seccomp", "7",
    ]  # fmt: skip


def test_docker_is_given_what_is_needed_and_nothing_else():
    arguments = isolation.docker_arguments("one", {"seconds": 60, "megabytes": 512}, {"HOME": "/submission"})
    assert arguments == [
        "docker", "run", "--rm", "--interactive", "--init", "--read-only", "--name=one", "--network=none",
        "--ipc=private", "--shm-size=16m", "--user=65534:65534", "--cap-drop=ALL", "--security-opt=no-new-privileges",
        "--pids-limit=64", "--memory=1024m", "--memory-swap=1024m", "--log-driver=none", "--workdir=/submission",
        "--tmpfs=/tmp:size=16m,mode=1777", "--tmpfs=/submission:size=16m,mode=1777", "--env=HOME=/submission",
        f"--volume={ROOT}/amptutorial:/package/amptutorial:ro", "amptutorial-grading", "timeout", "-s", "KILL", "360",
    ]  # fmt: skip


def test_only_python_and_the_package_can_be_read():
    paths = isolation.readable_paths()
    assert str(ROOT / "amptutorial") in paths and sys.base_prefix in paths
    assert not any((ROOT / name).is_relative_to(path) for path in paths for name in ("solutions", "assignments"))


@pytest.mark.parametrize(
    ("wanted", "problem", "kind", "warned"),
    [
        (None, "", "bwrap", False),
        (None, "bubblewrap is not installed", "none", True),
        ("bwrap", "", "bwrap", False),
        ("none", "", "none", True),
    ],
)
def test_bubblewrap_is_the_default_where_it_works(monkeypatch, wanted, problem, kind, warned):
    monkeypatch.setattr(isolation, "bwrap_problem", lambda: problem)
    found, warning = isolation.choose(wanted)
    assert (found, bool(warning)) == (kind, warned)
    assert problem in warning and warned == ("native code" in warning)


def test_what_is_asked_for_and_cannot_be_had_is_an_error(monkeypatch):
    monkeypatch.setattr(isolation, "bwrap_problem", lambda: "no permission")
    monkeypatch.setattr(isolation.shutil, "which", lambda name: None)
    with pytest.raises(ValueError, match="--isolate bwrap: no permission"):
        isolation.choose("bwrap")
    with pytest.raises(ValueError, match="--isolate docker: there is no docker here"):
        isolation.choose("docker")


def test_a_docker_that_does_not_run_or_has_no_image_is_found_out(tmp_path, monkeypatch):
    program = tmp_path / "docker"
    program.write_text("#!/bin/sh\necho 'no such image' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(ValueError, match="no such image .start Docker, and build the image amptutorial-grading once"):
        isolation.choose("docker")
    program.write_text('#!/bin/sh\n[ "$*" = "image inspect amptutorial-grading" ]\n')
    assert isolation.choose("docker") == ("docker", "")


def test_a_bubblewrap_that_does_not_work_is_found_out(tmp_path, monkeypatch):
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: no user namespaces' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    isolation.bwrap_problem.cache_clear()
    try:
        assert isolation.bwrap_problem() == "bwrap: no user namespaces"
        monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
        isolation.bwrap_problem.cache_clear()
        assert isolation.bwrap_problem() == "bubblewrap is not installed"
    finally:
        isolation.bwrap_problem.cache_clear()


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
    """Return what the attempts are made on."""
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
def test_the_machine_holds_where_no_hook_does(outside):
    with ExitStack() as stack:
        command, inherited = isolation._bwrap_command(stack)
        done = subprocess.run(
            [*command, sys.executable, "-c", INSIDE, outside], pass_fds=inherited, capture_output=True, text=True
        )
    assert done.returncode == 0, done.stderr
    assert "threads can be started" in done.stdout
    assert set(json.loads(done.stdout.splitlines()[-1])) == set(ATTEMPTS)
    assert not Path("/dev/shm/left").exists() and not Path("/tmp/left_by_a_submission").exists()


def test_the_same_attempts_succeed_where_nothing_is_isolated(outside, tmp_path):
    """The list above proves something only if its entries work elsewhere."""
    harmless = {k: v for k, v in ATTEMPTS.items() if not k.startswith(("write into Python", "fill", "renice", "bind"))}
    script = INSIDE.replace(repr(ATTEMPTS), repr(harmless)).replace("/dev/shm/left", f"{tmp_path}/left")
    script = script.replace("/tmp/left_by_a_submission", f"{tmp_path}/left")
    done = subprocess.run([sys.executable, "-c", script, outside], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == []


@needs_bwrap
@pytest.mark.slow
def test_a_right_solution_gets_all_points_in_its_machine(rules, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert grade(RIGHT, rules, "bwrap").total == 100
    assert list(tmp_path.iterdir()) == []


@needs_bwrap
@pytest.mark.slow
def test_a_death_in_the_machine_is_told_as_elsewhere():
    with remote.Session(PROBE.encode(), LIMITS, "bwrap") as session:
        probe = start_probe(session)
        with pytest.raises(remote.Crash, match="signal 40"):
            ask_probe(probe, 11)
        assert ask_probe(probe, 0)[0, 1] == 5  # in a machine of its own again
        assert session.generation == 2


def test_folders_of_judges_that_were_killed_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    of_dead, of_living, of_nobody = (f"{isolation.FOLDER}{number}-x" for number in (dead.pid, os.getpid(), "1a"))
    for name in (of_dead, of_living, of_nobody):
        (tmp_path / name / "folder").mkdir(parents=True)
        (tmp_path / name / isolation.MARKER).touch()
    (tmp_path / f"{of_dead}-link").symlink_to(tmp_path / of_nobody)
    isolation.sweep()
    assert {path.name for path in tmp_path.iterdir()} == {of_living, of_nobody, f"{of_dead}-link"}


def test_folders_that_no_judge_has_made_are_left_alone(tmp_path, monkeypatch):
    """A download from Gradescope, and folders with either the name or the file of a judge's."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    files = [
        f"submission_{dead.pid}_ada/denoiser.py",
        f"submission_{dead.pid}_ada/.amptutorial-grader",
        f"amptutorial-grader-{dead.pid}-notes/denoiser.py",
    ]
    for name in files:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    isolation.sweep()
    assert all((tmp_path / name).exists() for name in files)


def test_a_submission_without_a_machine_has_a_folder_that_is_swept_when_its_judge_is_gone(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with remote.Session(PROBE.encode(), LIMITS, "none") as session:
        start_probe(session)
        (folder,) = tmp_path.iterdir()
        isolation.sweep()
        assert folder.exists()
        monkeypatch.setattr(isolation, "_alive", lambda number: number != os.getpid())
        isolation.sweep()
        assert not folder.exists()


def run_filter(program, architecture, number, argument=0):
    """Return what a seccomp filter answers to a system call, as the kernel runs it: classic BPF."""
    data = struct.pack("=IIQQ", number, architecture, 0, argument)
    at, accumulator = 0, 0
    lines = list(struct.iter_unpack("=HBBI", program))
    while True:
        code, true, false, value = lines[at]
        if code == 0x06:
            return value
        if code == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, value)
            at += 1
        else:
            holds = {0x15: accumulator == value, 0x45: bool(accumulator & value)}[code]
            at += 1 + (true if holds else false)


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
