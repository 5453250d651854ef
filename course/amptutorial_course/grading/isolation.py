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
PARTS = {
    "amptutorial": Path(amptutorial.__file__).resolve().parent,
    "amptutorial_worker": Path(__file__).resolve().parent / "worker",
}
COURSE = Path(__file__).resolve().parents[1]
PRIVATE = (COURSE, *(COURSE.parent / name for name in ("assignments", "solutions")))
# A submission's own folder where it has a machine of its own. All that it writes, there
# and elsewhere, is kept in memory and has this limit for each place.
HOME = "/submission"
SCRATCH_MEGABYTES = 16
# has Python with the requirements of the package; the package itself comes from here
IMAGE = "amptutorial-grading"
START = "import sys; sys.path.insert(0, sys.argv[1]); from amptutorial_worker.answers import main; main({limits!r})"

# Numbers of clone, clone3, and of fork and vfork where there are any.
SYSTEM_CALLS = {
    "x86_64": (0xC000003E, 56, 435, (57, 58)),
    "aarch64": (0xC00000B7, 220, 435, ()),
}
THREAD = 0x10000  # a flag of clone


def bwrap_arguments(readable, hidden=(), filter_descriptor=None):
    """Return the command line of bubblewrap, to which a command can be appended.

    Parameters
    ----------
    readable : iterable of str
        Files and folders that can be read, under their own names; beside them and
        `PARTS` nothing exists.
    hidden : iterable of str
        Folders in these that are empty.
    filter_descriptor : int, optional
        Of a file that holds `process_filter`.

    Examples
    --------
    >>> arguments = bwrap_arguments(["/usr"])
    >>> "--unshare-all" in arguments, arguments[arguments.index("--ro-bind") :][:3]
    (True, ['--ro-bind', '/usr', '/usr'])
    """

    def memory(folder):
        return ["--size", str(SCRATCH_MEGABYTES * 2**20), "--tmpfs", folder]

    arguments = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session"]
    arguments += ["--cap-drop", "ALL", "--hostname", "submission"]
    arguments += ["--dev", "/dev", "--proc", "/proc", *memory("/dev/shm")]
    arguments += [*memory("/tmp"), *memory(HOME)]
    for path in readable:
        arguments += ["--ro-bind", path, path]
    for path in hidden:
        arguments += ["--tmpfs", path, "--remount-ro", path]
    for name, path in PARTS.items():
        arguments += ["--ro-bind", str(path), f"{PACKAGE}/{name}"]
    arguments += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", HOME]
    if filter_descriptor is not None:
        arguments += ["--seccomp", str(filter_descriptor)]
    return arguments


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
    (True, ['timeout', '-s', 'KILL', '480'])
    """
    scratch = f"size={SCRATCH_MEGABYTES}m,mode=1777"
    # Python and its libraries need some memory before the submission has any
    memory = f"{int(limits['megabytes']) + 512}m"
    options = {
        "name": name,
        "network": "none",
        "ipc": "private",
        "shm-size": f"{SCRATCH_MEGABYTES}m",
        "user": "65534:65534",
        "cap-drop": "ALL",
        "security-opt": "no-new-privileges",
        "pids-limit": "64",
        "memory": memory,
        "memory-swap": memory,
        "log-driver": "none",
        "workdir": HOME,
    }
    arguments = ["docker", "run", "--rm", "--interactive", "--init", "--read-only"]
    arguments += [f"--{option}={value}" for option, value in options.items()]
    arguments += [f"--tmpfs={folder}:{scratch}" for folder in ("/tmp", HOME)]
    arguments += [f"--env={key}={value}" for key, value in environment.items()]
    arguments += [f"--volume={path}:{PACKAGE}/{n}:ro" for n, path in PARTS.items()]
    # should nobody be left to end the container, it ends by itself
    return [*arguments, IMAGE, "timeout", "-s", "KILL", str(int(limits["seconds"]) + 300)]


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
    allow, refuse, absent = 0x7FFF0000, 0x00050001, 0x00050026  # 0, EPERM, ENOSYS
    program = [  # code, where to go if true and if false, value
        (load, 0, 0, 4),  # the architecture
        (equal, 1, 0, architecture),
        (end, 0, 0, refuse),
        (load, 0, 0, 0),  # the number of the call
        # the C library goes on with clone, whose flags can be seen
        (equal, 0, 1, clone3),
        (end, 0, 0, absent),
    ]
    for number in forks:
        program += [(equal, 0, 1, number), (end, 0, 0, refuse)]
    if machine == "x86_64":  # its second table of calls, x32
        program += [(bits, 0, 1, 0x40000000), (end, 0, 0, refuse)]
    program += [
        (equal, 0, 3, clone),
        (load, 0, 0, 16),  # its flags
        (bits, 1, 0, THREAD),
        (end, 0, 0, refuse),
        (end, 0, 0, allow),
    ]
    return b"".join(struct.pack("=HBBI", *line) for line in program)


def readable_paths():
    """Return what Python needs: the system's libraries and its own."""
    system = ["/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/alternatives"]
    installed = [path for path in sys.path if path.endswith("-packages")]
    paths = [*system, sys.base_prefix, sys.prefix, *installed]
    # a folder before what lies in it
    return sorted(path for path in set(paths) if os.path.exists(path))


def _bwrap_command(stack):
    """Return the command line of bubblewrap for this machine, and what it inherits."""
    readable = readable_paths()
    hidden = [str(path) for path in PRIVATE if path.is_dir() and any(map(path.is_relative_to, readable))]
    program = process_filter(platform.machine())
    if not program:
        return bwrap_arguments(readable, hidden), ()
    file = stack.enter_context(tempfile.TemporaryFile())
    file.write(program)
    file.seek(0)
    descriptor = file.fileno()
    return bwrap_arguments(readable, hidden, descriptor), (descriptor,)


@functools.cache
def bwrap_problem():
    """Return why bubblewrap cannot be used here, or an empty text.

    It is tried with what a submission needs at least.
    """
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed"
    with contextlib.ExitStack() as stack:
        command, inherited = _bwrap_command(stack)
        command += [sys.executable, "-s", "-P", "-B", "-c", "import numpy"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, pass_fds=inherited)
        except subprocess.TimeoutExpired:
            return "bubblewrap gave no answer"
    return _complaint(done)


def docker_problem():
    """Return why Docker cannot be used here, or an empty text."""
    if shutil.which("docker") is None:
        return "there is no docker here"
    try:
        done = subprocess.run(
            ["docker", "image", "inspect", IMAGE],
            capture_output=True,
            text=True,
            timeout=60,
        )
    except subprocess.TimeoutExpired:
        return "docker gave no answer"
    complaint = _complaint(done)
    hint = f" (start Docker, and build the image {IMAGE} once: the page for lecturers has the command)"
    return complaint + hint if complaint else ""


def _complaint(done):
    """Return the last line of a program that has failed, or an empty text."""
    last = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
    return last[0] if done.returncode else ""


def choose(wanted=None):
    """Return the kind of isolation for a run, and a warning or an empty text.

    Parameters
    ----------
    wanted : str, optional
        One of `KINDS`; without it bubblewrap where that works, or else none.

    Raises
    ------
    ValueError
        If the wanted one cannot be had.
    """
    problem = bwrap_problem() if wanted in (None, "bwrap") else ""
    if wanted == "docker":
        problem = docker_problem()
    if wanted in ("bwrap", "docker") and problem:
        raise ValueError(f"--isolate {wanted}: {problem}")
    if wanted != "none" and not problem:
        return wanted or "bwrap", ""
    why = f" ({problem})" if problem else ""
    return "none", (
        f"warning: submissions run without isolation{why}. Their time and memory are "
        "limited, and nothing keeps them from your files, your programs and the "
        "network: read them first, or install bubblewrap (Linux) or use Docker."
    )


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
        python = [sys.executable, "-s", "-P", "-B", "-c", START.format(limits=limits)]
        inherited: tuple[int, ...] = ()
        # neither the environment of this process nor its options: under `python -O` a
        # submission would run without its own `assert` statements
        with contextlib.ExitStack() as stack:
            if kind == "bwrap":
                variables = _variables(HOME)
                command, inherited = _bwrap_command(stack)
                command += [*python, PACKAGE]
            elif kind == "docker":
                # the program itself needs HOME, to find its daemon
                variables = dict(os.environ)
                command = docker_arguments(self.name, limits, _variables(HOME))
                command += ["python", *python[1:], PACKAGE]
            else:
                home, package = self._make_folders()
                variables, command = _variables(home), [*python, package]
            self.process = subprocess.Popen(
                command,
                cwd=variables["HOME"] if kind == "none" else None,
                env=variables,
                pass_fds=inherited,
                stdin=channel,
                stdout=channel,
                stderr=printed,
                start_new_session=True,
            )

    def _make_folders(self):
        """Return a folder for the submission, and one as `PACKAGE` is elsewhere."""
        self.folder = tempfile.TemporaryDirectory(prefix=f"{self.name}-", ignore_cleanup_errors=True)
        home, package = (Path(self.folder.name, name) for name in ("home", "package"))
        for path in (home, package):
            path.mkdir()
        for name, path in PARTS.items():
            (package / name).symlink_to(path)
        return str(home), str(package)

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
    threads = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    return {
        "HOME": folder,
        "TMPDIR": folder,
        "LANG": "C.UTF-8",
        "PYTHONHASHSEED": "0",
        **dict.fromkeys(threads, "1"),
    }
