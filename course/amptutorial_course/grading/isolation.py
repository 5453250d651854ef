"""Where a submission runs: in a container of its own, or beside everything else.

``bwrap`` and ``docker`` have the operating system refuse what a submission has no
business with, whatever it does to Python: there is no network, no other process, and no
file but Python, its libraries, `amptutorial` and the worker, all of them read-only.
With ``none`` only limits of time and memory are left.
"""

import contextlib
import functools
import os
import platform
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from uuid import uuid4

import amptutorial

KINDS = ("bwrap", "docker", "none")
# What a submission runs with, by the names that it has in the folder PACKAGE of a
# container; the rest of the course is not there.
PACKAGE = "/package"
HERE, COURSE = Path(__file__).resolve().parent, Path(__file__).resolve().parents[1]
PARTS = {"amptutorial": Path(amptutorial.__file__).resolve().parent, "amptutorial_worker": HERE / "worker"}
PRIVATE = (COURSE, COURSE.parent / "assignments", COURSE.parent / "solutions")
# A submission's own folder where it has a machine of its own. All that it writes, there
# and elsewhere, is kept in memory and has this limit for each place.
HOME = "/submission"
SCRATCH_MEGABYTES = 16
# Seconds on the wall for each of the processor that a submission may take: who waits, or
# has found a way to stop the processor's clock, ends by this one.
PATIENCE = 10
# has Python with the requirements of the package; the package itself comes from here
IMAGE = "amptutorial-grading"
START = "import sys; sys.path.insert(0, sys.argv[1]); from amptutorial_worker.answers import main; main({limits!r})"

# Numbers of clone, clone3, and of fork and vfork where there are any.
SYSTEM_CALLS = {"x86_64": (0xC000003E, 56, 435, (57, 58)), "aarch64": (0xC00000B7, 220, 435, ())}
THREAD = 0x10000  # a flag of clone


def bwrap_arguments(readable, hidden=()):
    """Return the command line of bubblewrap, to which a command can be appended.

    Parameters
    ----------
    readable : iterable of str
        Files and folders that can be read, under their own names; beside them and
        `PARTS` nothing exists.
    hidden : iterable of str
        Folders in these that are empty.

    Examples
    --------
    >>> arguments = bwrap_arguments(["/usr"])
    >>> "--unshare-all" in arguments, arguments[arguments.index("--ro-bind") :][:3]
    (True, ['--ro-bind', '/usr', '/usr'])
    """
    scratch = ["--size", str(SCRATCH_MEGABYTES * 2**20), "--tmpfs"]
    return [
        *"bwrap --unshare-all --die-with-parent --new-session --cap-drop ALL --hostname submission".split(),
        *"--dev /dev --proc /proc".split(),
        *(word for folder in ("/dev/shm", "/tmp", HOME) for word in (*scratch, folder)),
        *(word for path in readable for word in ("--ro-bind", path, path)),
        *(word for path in hidden for word in ("--tmpfs", path, "--remount-ro", path)),
        *(word for name, path in PARTS.items() for word in ("--ro-bind", str(path), f"{PACKAGE}/{name}")),
        *f"--remount-ro /dev --remount-ro / --chdir {HOME}".split(),
    ]


def docker_arguments(name, limits, environment):
    """Return the command line of Docker, to which a command can be appended.

    Parameters
    ----------
    name : str
        Of the container, by which it can be ended.
    limits : dict
        See `rules.LIMITS`.
    environment : dict

    Examples
    --------
    >>> limits = {"seconds": 180, "megabytes": 1024}
    >>> arguments = docker_arguments("one", limits, {"LANG": "C.UTF-8"})
    >>> "--network=none" in arguments, arguments[-4:]
    (True, ['timeout', '-s', 'KILL', '2100'])
    """
    # Python and its libraries need some memory before the submission has any
    memory, size = int(limits["megabytes"]) + 512, SCRATCH_MEGABYTES
    options = (
        f"--name={name} --network=none --ipc=private --shm-size={size}m --user=65534:65534 --cap-drop=ALL "
        f"--security-opt=no-new-privileges --pids-limit=64 --memory={memory}m --memory-swap={memory}m "
        f"--log-driver=none --workdir={HOME} --tmpfs=/tmp:size={size}m,mode=1777 --tmpfs={HOME}:size={size}m,mode=1777"
    )
    return [
        *"docker run --rm --interactive --init --read-only".split(),
        *options.split(),
        *(f"--env={key}={value}" for key, value in environment.items()),
        *(f"--volume={path}:{PACKAGE}/{part}:ro" for part, path in PARTS.items()),
        IMAGE,
        # should nobody be left to end the container, it ends by itself
        *f"timeout -s KILL {int(PATIENCE * limits['seconds']) + 300}".split(),
    ]


def process_filter(machine):
    """Return a seccomp filter under which there can be threads, but no second process.

    A limit of the number of processes would not hold for root. For an unknown machine
    nothing is returned.

    Parameters
    ----------
    machine : str
        As in `platform.machine`.

    Examples
    --------
    >>> len(process_filter("x86_64")) % 8, process_filter("abacus")
    (0, b'')
    """
    if machine not in SYSTEM_CALLS:
        return b""
    architecture, clone, clone3, forks = SYSTEM_CALLS[machine]
    load, equal, bits, end = 0x20, 0x15, 0x45, 0x06  # BPF: ld, jeq, jset, ret
    allow, absent = (end, 0, 0, 0x7FFF0000), (end, 0, 0, 0x00050026)  # ALLOW, ENOSYS
    refuse = (end, 0, 0, 0x00050001)  # EPERM
    # each line: code, where to go if true and if false, value
    program = [(load, 0, 0, 4), (equal, 1, 0, architecture), refuse]
    # the number of the call; from clone3 the C library goes on with clone, whose flags can be seen
    program += [(load, 0, 0, 0), (equal, 0, 1, clone3), absent]
    for number in forks:
        program += [(equal, 0, 1, number), refuse]
    if machine == "x86_64":  # its second table of calls, x32
        program += [(bits, 0, 1, 0x40000000), refuse]
    # of clone the flags
    program += [(equal, 0, 3, clone), (load, 0, 0, 16), (bits, 1, 0, THREAD), refuse, allow]
    return b"".join(struct.pack("=HBBI", *line) for line in program)


def readable_paths():
    """Return what Python needs: the system's libraries and its own."""
    system = ["/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/alternatives"]
    installed = [path for path in sys.path if path.endswith("-packages")]
    # a folder before what lies in it
    return sorted(path for path in {*system, sys.base_prefix, sys.prefix, *installed} if os.path.exists(path))


def _bwrap_command(stack):
    """Return the command line of bubblewrap for this machine, and what it inherits."""
    readable = readable_paths()
    hidden = [str(path) for path in PRIVATE if path.is_dir() and any(map(path.is_relative_to, readable))]
    command, program = bwrap_arguments(readable, hidden), process_filter(platform.machine())
    if not program:
        return command, ()
    file = stack.enter_context(tempfile.TemporaryFile())
    file.write(program)
    file.seek(0)
    return [*command, "--seccomp", str(file.fileno())], (file.fileno(),)


@functools.cache
def bwrap_problem():
    """Return why bubblewrap cannot be used here, or an empty text.

    It is tried with what a submission needs at least.
    """
    with contextlib.ExitStack() as stack:
        command, inherited = _bwrap_command(stack)
        return _problem([*command, sys.executable, "-s", "-P", "-B", "-c", "import numpy"], inherited)


def docker_problem():
    """Return why Docker cannot be used here, or an empty text."""
    problem = _problem(["docker", "image", "inspect", IMAGE])
    hint = f" (start Docker, and build the image {IMAGE} once: the page for instructors has the command)"
    return problem and problem + hint


def _problem(command, inherited=()):
    """Return the last line of a program that fails, or an empty text."""
    if shutil.which(command[0]) is None:
        return f"{command[0]} is not installed"
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, pass_fds=inherited)
    except subprocess.TimeoutExpired:
        return f"{command[0]} gave no answer"
    lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    return lines[-1] if done.returncode else ""


def choose(wanted=None, warn=print):
    """Return the kind of isolation for a run; warn if it is none.

    Parameters
    ----------
    wanted : str, optional
        One of `KINDS`; without it bubblewrap where that works, or else none.
    warn : callable (str)

    Raises
    ------
    ValueError
        If the wanted one cannot be had.
    """
    problem = "" if wanted == "none" else docker_problem() if wanted == "docker" else bwrap_problem()
    if wanted and problem:
        raise ValueError(f"--isolate {wanted}: {problem}")
    if wanted != "none" and not problem:
        return wanted or "bwrap"
    advice = "read them first, or install bubblewrap (Linux) or use Docker"
    allowed = f"nothing but limits of time and memory keeps them from your files, programs and network: {advice}"
    warn(f"warning: submissions run without isolation ({problem or 'as asked for'}): {allowed}")
    return "none"


class Place:
    """The process that runs a submission, and the place that it runs in.

    Parameters
    ----------
    kind : str
        One of `KINDS`.
    limits : dict
        ``limits`` of grading.yml.
    channel : socket
        Its standard input and output.
    printed : file
        Its standard error.

    Attributes
    ----------
    process : Popen
    """

    def __init__(self, kind, limits, channel, printed):
        self.name = f"amptutorial-grader-{uuid4().hex[:12]}"
        self.kind, self.folder = kind, None
        python = [sys.executable, *"-s -P -B -c".split(), START.format(limits=limits)]
        options = {"env": _variables(HOME), "start_new_session": True}
        # neither the environment of this process nor its options: under `python -O` a
        # submission would run without its own `assert` statements
        with contextlib.ExitStack() as stack:
            if kind == "bwrap":
                command, options["pass_fds"] = _bwrap_command(stack)
                command += [*python, PACKAGE]
            elif kind == "docker":
                command = docker_arguments(self.name, limits, options.pop("env"))
                command += ["python", *python[1:], PACKAGE]
            else:
                home, package = self._make_folders()
                command, options = [*python, package], options | {"env": _variables(home), "cwd": home}
            self.process = subprocess.Popen(command, stdin=channel, stdout=channel, stderr=printed, **options)

    def _make_folders(self):
        """Return a folder for the submission, and one as `PACKAGE` is elsewhere."""
        self.folder = tempfile.TemporaryDirectory(prefix=f"{self.name}-", ignore_cleanup_errors=True)
        home, package = (os.path.join(self.folder.name, name) for name in ("home", "package"))
        os.mkdir(home)
        os.mkdir(package)
        for name, path in PARTS.items():
            os.symlink(path, os.path.join(package, name))
        return home, package

    def end(self, patience):
        """End the process and all that it has started; remove its folder.

        Parameters
        ----------
        patience : float
            Seconds in which it may end by itself.

        Returns
        -------
        int
            Its exit code, negative for a signal.
        """
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(patience)
        if self.kind == "docker":
            subprocess.run(["docker", "kill", self.name], capture_output=True)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, 9)
        self.process.kill()
        code = self.process.wait()
        if self.folder is not None:
            self.folder.cleanup()
        # bubblewrap and Docker report signals as a shell does
        return 128 - code if self.kind != "none" and code > 128 else code


def _variables(folder):
    """Return the environment of a worker: one thread, the same hashes every time."""
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {"HOME": folder, "TMPDIR": folder, "LANG": "C.UTF-8", "PYTHONHASHSEED": "0", **threads}
