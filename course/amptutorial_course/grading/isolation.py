"""Where a submission runs: in a container of its own, as another user, or as a process that the kernel confines.

A submission has no business with the network, with other processes, or with any file
but Python, its libraries, `amptutorial` and the worker, all of them read-only. Whatever
it does to Python, the operating system refuses these: by a container (``bwrap``), or by
what the worker asks the kernel for itself (`worker.confine`), as a user that nobody
else is (``user``) or as the one who grades (``landlock``). ``none`` has of all this what
can be had, and somebody has to ask for it by name.
"""

import contextlib
import functools
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import amptutorial

from .worker.confine import landlock_version, process_filter

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
START = (
    "import sys; sys.path.insert(0, sys.argv[1]); from amptutorial_worker.answers import main; "
    "main({limits!r}, {readable!r})"
)
PYTHON = (sys.executable, *"-s -P -B -c".split())
# numbers that a system gives to nobody for long
USERS = range(61184, 65520)
# what libraries look up about the machine
MACHINE = "/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu", "/sys/fs/cgroup", "/dev/urandom"


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


def readable_paths():
    """Return what Python needs, the system's libraries and its own, and what is hidden in it."""
    system = ["/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/alternatives"]
    installed = [path for path in sys.path if path.endswith("-packages")]
    # a folder before what lies in it
    paths = sorted(path for path in {*system, sys.base_prefix, sys.prefix, *installed} if os.path.exists(path))
    return paths, [str(path) for path in PRIVATE if path.is_dir() and any(map(path.is_relative_to, paths))]


def _rights(package):
    """Return whether each of the paths that a submission may see can be read, or listed only.

    A folder with something hidden in it is listed, and what else lies there is read.
    """
    paths, hidden = readable_paths()
    rights, waiting = {}, [*paths, *MACHINE, package, str(PARTS["amptutorial"])]
    while waiting:
        path = waiting.pop()
        if path not in hidden:
            rights[path] = not any(each.startswith(f"{path}/") for each in hidden)
            waiting += [] if rights[path] else [entry.path for entry in os.scandir(path)]
    return rights


@functools.cache
def bwrap_problem():
    """Return why bubblewrap cannot be used here, or an empty text.

    It is tried with what a submission needs at least.
    """
    return _problem([*bwrap_arguments(*readable_paths()), *PYTHON, "import numpy"])


@functools.cache
def user_problem():
    """Return why no other user can run a submission here, or an empty text."""
    if os.geteuid():
        return "the grader is not root"
    command = f"import sys; sys.path.insert(0, {str(PARTS['amptutorial'].parent)!r}); import amptutorial.denoisers"
    return _filter_problem() or _problem([*PYTHON, command], **_as_user())


def landlock_problem():
    """Return why the kernel cannot keep a process from files here, or an empty text."""
    return _filter_problem() or ("" if landlock_version() else "this kernel has no Landlock")


def _filter_problem():
    return "" if process_filter(platform.machine(), 1) else "no filter of system calls is known for this machine"


def _as_user():
    """Return how a process is started as a user whom no other judge has."""
    number = USERS[os.getpid() % len(USERS)]
    return {"user": number, "group": number, "extra_groups": ()}


def _problem(command, **options):
    """Return the last line of a program that fails, or an empty text."""
    if shutil.which(command[0]) is None:
        return f"{command[0]} is not installed"
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd="/", **options)
    except (subprocess.TimeoutExpired, OSError) as error:
        return f"{command[0]}: {error}"
    lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    return lines[-1] if done.returncode else ""


def choose(wanted=None, warn=print, alone=False):
    """Return the kind of isolation for a run: the first that keeps all that is promised.

    Parameters
    ----------
    wanted : str, optional
        One of `grading.KINDS`; "none" is never chosen without it.
    warn : callable (str)
    alone : bool
        Whether the machine has no files but those that other users cannot read: then a
        user is enough, without Landlock.

    Raises
    ------
    ValueError
        If the wanted one cannot be had, or none.
    """
    problems: dict[str, Callable[[], str]]
    problems = {"bwrap": bwrap_problem, "user": user_problem, "landlock": landlock_problem}
    tried = {}
    for kind in [wanted] if wanted else problems:
        if kind == "none":
            warn(
                "warning: submissions run without the isolation that is promised, as asked for: read them first. They "
                "can do what you can do, wherever the system does not refuse it"
            )
            return kind
        tried[kind] = problems[kind]() or ("" if kind != "user" or alone else landlock_problem())
        if not tried[kind]:
            return kind
    said = "; ".join(f"--isolate {kind}: {problem}" for kind, problem in tried.items())
    raise ValueError(
        f"{said}. Nothing would keep submissions from your files and programs: install bubblewrap, or run the grader "
        'in a container (the page for instructors says how). If you have read them all: "--isolate none", or '
        '"isolate: none" in grading.yml'
    )


def best():
    """Return the kind that `choose` chooses, or none: for a file whose author runs it."""
    try:
        return choose()
    except ValueError:
        return "none"


class Place:
    """The process that runs a submission, and the place that it runs in.

    Parameters
    ----------
    kind : str
        One of `grading.KINDS`.
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
        self.kind, self.folder = kind, None
        # neither the environment of this process nor its options: under `python -O` a
        # submission would run without its own `assert` statements
        options = {"stdin": channel, "stdout": channel, "stderr": printed, "start_new_session": True}
        if kind == "bwrap":
            command, home, package, rights = bwrap_arguments(*readable_paths()), HOME, PACKAGE, None
        else:
            home, package = self._make_folders()
            command, rights = [], _rights(package)
            options |= {"cwd": home} | (_as_user() if kind == "user" else {})
        start = START.format(limits=limits, readable=rights)
        self.process = subprocess.Popen([*command, *PYTHON, start, package], env=_variables(home), **options)

    def _make_folders(self):
        """Return a folder for the submission, and one as `PACKAGE` is elsewhere."""
        self.folder = tempfile.TemporaryDirectory(prefix="amptutorial-grader-", ignore_cleanup_errors=True)
        home, package = (os.path.join(self.folder.name, name) for name in ("home", "package"))
        os.mkdir(home)
        # the worker is copied: where it lies, another user may not look
        worker = shutil.copytree(PARTS["amptutorial_worker"], os.path.join(package, "amptutorial_worker"))
        os.symlink(PARTS["amptutorial"], os.path.join(package, "amptutorial"))
        for path in (self.folder.name, package, worker):
            os.chmod(path, 0o755)
        for entry in os.scandir(worker):
            os.chmod(entry, 0o755)
        if self.kind == "user":
            os.chown(home, _as_user()["user"], -1)
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
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, 9)
        self.process.kill()
        code = self.process.wait()
        if self.kind == "user":  # all that this user runs
            subprocess.run(["/bin/sh", "-c", "kill -9 -1"], capture_output=True, **_as_user())
        if self.folder is not None:
            self.folder.cleanup()
        # bubblewrap reports signals as a shell does
        return 128 - code if self.kind == "bwrap" and code > 128 else code


def _variables(folder):
    """Return the environment of a worker: one thread, the same hashes every time."""
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {"HOME": folder, "TMPDIR": folder, "LANG": "C.UTF-8", "PYTHONHASHSEED": "0", **threads}
