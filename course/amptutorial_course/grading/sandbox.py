"""What a submission may do.

It may compute, read what Python has installed, write a little into its own folder, and
print. The limits are those of the operating system. The rest is an audit hook, which
Python calls before it opens a file, starts a process or reaches for the network, and
which nothing can remove.

What this does not stop: native code. Arrays that point at foreign memory, the
foreign-function interface that NumPy has already loaded, or a compiled extension with a
door of its own can undo the hook. It keeps out carelessness and mischief in Python; a
class that may hold an attacker belongs in a container without network, the solutions
outside it.
"""

import _multiprocessing
import contextlib
import itertools
import os
import signal
import subprocess
import sys
import sysconfig
from pathlib import Path

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# files opened for writing, each at most as large as what may be printed
MOST_WRITES = 100

# Everything not listed is refused. These give no access, or come with an `open` or a
# `scandir` that is examined; imports have a hook of their own.
HARMLESS = frozenset(
    """
    _thread.start_joinable_thread _thread.start_new_thread array.__new__ builtins.id
    compile exec function.__new__ glob.glob glob.glob/2 import marshal.dumps
    marshal.load marshal.loads mmap.__new__ object.__delattr__ object.__getattr__
    object.__setattr__ os.fwalk os.putenv os.unsetenv os.walk pathlib.Path.glob
    pathlib.Path.rglob pickle.find_class sys._getframe sys._getframemodulename
    sys.excepthook sys.unraisablehook tempfile.mkdtemp tempfile.mkstemp time.sleep
    """.split()
)
LISTS = frozenset(["os.listdir", "os.scandir"])
CHANGES = frozenset(["os.mkdir", "os.remove", "os.rename", "os.rmdir"])

# Extension modules act without asking the hook, so only these may be loaded; scientific
# ones, and what plots need.
NATIVE = (
    "numpy",
    "scipy",
    "sklearn",
    "amptutorial",
    "pandas",
    "matplotlib",
    "PIL",
    "contourpy",
    "kiwisolver",
)
# Doors that open without an event: other shells, other interpreters, second copies of
# modules, shared memory, writers of SciPy in other languages.
CLOSED = frozenset(
    """
    __odrpack _ctypes _curses _curses_panel _dbm _fmm_core _gdbm _interpchannels
    _interpqueues _interpreters _posixshmem _posixsubprocess _signal _testcapi
    _testinternalcapi _tkinter _xxinterpchannels _xxsubinterpreters ossaudiodev posix
    readline spwd
    """.split()
)
SILENT = {  # functions that raise no event
    os: (
        "chroot",
        "mkfifo",
        "mknod",
        "nice",
        "pidfd_open",
        "sched_setaffinity",
        "sched_setparam",
        "sched_setscheduler",
        "setns",
        "setpgid",
        "setpriority",
        "setsid",
        "unshare",
    ),
    signal: ("pidfd_send_signal",),
    subprocess: ("_fork_exec",),
    _multiprocessing: ("SemLock",),
}


def set_limits(limits):
    """Set limits of the operating system, as far as this platform has them.

    They are processor time, file size, the number of open files, and memory.
    """
    # the judge's deadline comes first; this one outlives the judge
    _limit("RLIMIT_CPU", int(limits["seconds"]) + 5)
    _limit("RLIMIT_FSIZE", int(limits["output_kilobytes"] * 2**10))
    _limit("RLIMIT_CORE", 0)
    _limit("RLIMIT_NOFILE", 64)
    limit_memory(limits["megabytes"])


def limit_memory(megabytes):
    """Limit what this process may take from now on; macOS does not."""
    _limit("RLIMIT_AS", _address_space() + int(megabytes * 2**20))


def _limit(name, value):
    import resource

    # no such limit here, or a lower one already
    with contextlib.suppress(AttributeError, ValueError, OSError):
        resource.setrlimit(getattr(resource, name), (value, value))


def end_with_parent():
    """Let the system kill this process when its parent dies; only Linux can."""
    if sys.platform == "linux":
        import ctypes

        set_parent_death_signal = 1  # PR_SET_PDEATHSIG
        ctypes.CDLL(None).prctl(set_parent_death_signal, int(signal.SIGKILL))


def _address_space():
    """Return how many bytes the process has mapped before the submission runs."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 2**32


def close_doors():
    """Replace the functions that call no audit hook."""

    def refuse(*args, **kwargs):
        raise PermissionError("not allowed while graded")

    modules = {
        **SILENT,
        sys.modules.get("posix"): SILENT[os],
        sys.modules.get("_signal"): SILENT[signal],
    }
    modules[sys.modules.get("_posixsubprocess")] = ("fork_exec",)
    for module, names in modules.items():
        for name in names:
            if hasattr(module, name):
                setattr(module, name, refuse)


def readable_folders(package):
    """Return the folders of the standard library, of installed packages, and `package`.

    The folder that holds the package is not among them, unless it is one of installed
    packages: the solutions may lie there. Every folder is given as it is spelled and
    without symbolic links.
    """
    library = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib")]
    folders = [p for p in sys.path if p and (p != str(package.parent) or _installed(p))]
    folders += [*library, str(package)]
    spellings = {*folders, *map(os.path.realpath, folders)}
    return tuple(sorted(f"{folder}/" for folder in spellings))


def _installed(folder):
    return folder.endswith(("site-packages", "-packages"))


def install_hooks(package, tracer):
    """Install the audit hooks, which refuse all that is not allowed.

    Only the code object `tracer` may set a trace function from now on.

    What a hook uses is bound to it as defaults, all of it immutable: it looks up no
    name that a student could replace, and a frame that shows its variables shows no way
    to change them.
    """
    readable = readable_folders(package)
    sys.addaudithook(_import_hook(readable))
    sys.addaudithook(_access_hook(readable, package, tracer))


def _import_hook(readable):
    """Return the hook that refuses modules."""
    packages = [f"{folder}{name}" for folder in readable for name in NATIVE]
    library = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib")]
    native = (*packages, *(f"{folder}/lib-dynload/" for folder in library))

    def hook(
        event, args, *, closed=CLOSED, native=native, text=str, unknown=ImportError,
        own=("amptutorial_course.grading", "amptutorial_course.assignments"),
    ):  # fmt: skip
        if event != "import":
            return
        name = text.__str__(args[0])
        file = "" if args[1] is None else text.__str__(args[1])
        foreign = file and (".." in file or not file.startswith(native))
        if name.split(".")[-1] in closed or name.startswith(own) or foreign:
            raise unknown(f"{name} cannot be imported while graded")

    return hook


def _access_hook(readable, package, tracer):
    """Return the hook that refuses files and folders, and all other access."""
    home = tuple({f"{os.getcwd()}/", f"{os.path.realpath(os.getcwd())}/"})
    private = tuple(
        f"{folder}/{name}/"
        for folder in {package, package.resolve()}
        for name in ("grading", "assignments")
    )
    count = itertools.count()  # a counter that can only go up

    def hook(
        event, args, *, harmless=HARMLESS, lists=LISTS, changes=CHANGES,
        writes=WRITES, most=MOST_WRITES, home=home, readable=(*readable, *home),
        private=private, cwd=home[0], reading=frozenset([None, "r", "rb"]),
        tracer=tracer, count=count, advance=next, status=os.stat,
        frame=sys._getframe, kind=type, text=str, raw=bytes, number=int,
        missing=OSError, refused=PermissionError,
    ):  # fmt: skip
        if event in harmless or (event == "sys.settrace" and frame(1).f_code is tracer):
            return
        if event == "open":
            change = args[1] not in reading or bool(args[2] & writes)
            paths, folder = args[:1], False
        elif event in lists:
            paths, folder, change = (cwd if args[0] is None else args[0],), True, False
        elif event in changes:
            paths, folder, change = args[: 2 if event == "os.rename" else 1], True, True
        else:
            raise refused(f"not allowed while graded: {event}")
        for path in paths:
            if kind(path) is number and not folder:  # it is open already
                continue
            # a plain str: the methods of a subclass would be the student's
            if kind(path) is raw:
                path = raw.decode(path, "utf-8", "surrogateescape")
            else:
                path = text.__str__(path)
            if path == "/dev/null":
                continue
            parts = (path if path.startswith("/") else cwd + path).split("/")
            names = [part for part in parts if part not in ("", ".")]
            full = "/" + "/".join(names) + ("/" if folder else "")
            where = home if change else readable
            allowed = ".." not in parts and full.startswith(where)
            # an open folder would be a way round every path, and a device one into the
            # machine
            try:
                regular = folder or status(full).st_mode & 0o170000 == 0o100000
            except missing:
                regular = True
            if not (allowed and regular) or full.startswith(private):
                raise refused(f"not allowed while graded: {event} of {path[:200]}")
            if change and advance(count) >= most:
                raise refused(
                    f"not allowed while graded: writing more than {most} files"
                )

    return hook
