"""What the kernel refuses a process that has asked for it: other processes, other files, a network.

A process sets this for itself, needs no privilege for it, and cannot take it back. The judge asks for it in the
worker, whatever else isolates a submission. Only Linux can.
"""

import csv
import ctypes
import os
import platform
import struct
from pathlib import Path

# Numbers of system calls by machine. A call of `SOME` goes through if its first argument is a flag of threads, this
# process, or 0 for this process; those of `NONE` never do.
SOME = {"x86_64": (56, 62, 234, 302), "aarch64": (220, 129, 131, 261)}  # clone, kill, tgkill, prlimit64
CLONE3, X32 = 435, 0x40000000
CALLS = [*csv.DictReader(Path(__file__).with_name("calls.csv").read_text().splitlines())]
NONE = {machine: [int(call[machine]) for call in CALLS if call[machine]] for machine in SOME}
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
THREAD = 0x10000  # a flag of clone
LOAD, EQUAL, BITS, END = 0x20, 0x15, 0x45, 0x06  # BPF: ld, jeq, jset, ret
ALLOW, REFUSE, ABSENT = (END, 0, 0, 0x7FFF0000), (END, 0, 0, 0x00050001), (END, 0, 0, 0x00050026)  # EPERM, ENOSYS

CREATE, ADD, RESTRICT = 444, 445, 446  # the calls of Landlock
READ, LIST, OF_FILES = 0b101, 0b1000, 0b1100000000000111  # to read and execute, to list, and what a file knows
VERSIONS = (0, 13, 14, 15, 15, 16)  # rights by version


def process_filter(machine, process):
    """Return a seccomp filter under which a process has threads, and only itself.

    For an unknown machine nothing is returned.

    Parameters
    ----------
    machine : str
        As in `platform.machine`.
    process : int
        Its number: the only one that it may send signals to.

    Examples
    --------
    >>> len(process_filter("x86_64", 1)) % 8, process_filter("abacus", 1)
    (0, b'')
    """
    if machine not in NONE:
        return b""
    # each line: code, where to go if true and if false, value
    program = [(LOAD, 0, 0, 4), (EQUAL, 1, 0, ARCHITECTURES[machine]), REFUSE, (LOAD, 0, 0, 0)]
    # from clone3 the C library goes on with clone, whose flags can be seen
    program += [(EQUAL, 0, 1, CLONE3), ABSENT]
    if machine == "x86_64":  # its second table of calls, x32
        program += [(BITS, 0, 1, X32), REFUSE]
    for number in NONE[machine]:
        program += [(EQUAL, 0, 1, number), REFUSE]
    conditions = (BITS, THREAD), (EQUAL, process), (EQUAL, process), (EQUAL, 0)
    for number, (test, value) in zip(SOME[machine], conditions, strict=True):
        program += [(EQUAL, 0, 4, number), (LOAD, 0, 0, 16), (test, 0, 1, value), ALLOW, REFUSE]
    return b"".join(struct.pack("=HBBI", *line) for line in [*program, ALLOW])


def landlock_version():
    """Return the version of Landlock in this kernel, 0 if it has none."""
    try:
        return max(ctypes.CDLL(None).syscall(CREATE, None, 0, 1), 0)
    except AttributeError:  # no such system
        return 0


def confine(readable=None):
    """Refuse this process, from now on, whatever is not its own.

    Parameters
    ----------
    readable : dict, optional
        Whether a folder or file may be read, or listed only, by its path. Beside them there is the present folder, in
        which files may be written. Without it no file is refused: a container has done it.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if len(os.listdir("/proc/self/task")) > 1:
        raise RuntimeError("threads were started before the submission: they would not be confined")
    no_new_privileges, set_filter, version_3 = 38, 22, 0x20080522
    _succeed(libc.prctl(no_new_privileges, 1, 0, 0, 0))
    _succeed(libc.capset(struct.pack("=Ii", version_3, 0), bytes(24)))
    if readable is not None and landlock_version():
        _allow_files(libc, readable)
    if program := process_filter(platform.machine(), os.getpid()):
        lines = ctypes.create_string_buffer(program)
        head = struct.pack("@HP", len(program) // 8, ctypes.addressof(lines))
        _succeed(libc.prctl(set_filter, 2, head, 0, 0))


def _allow_files(libc, readable):
    """Let this process read and write what it may, by Landlock, and nothing else."""
    version = min(landlock_version(), len(VERSIONS) - 1)
    every = 2 ** VERSIONS[version] - 1
    rights = {path: (READ | LIST if read else LIST) for path, read in readable.items()}
    rights |= {"/dev/null": every, os.getcwd(): every}
    newer = landlock_version()
    # all rights to files; of those to a network, and to what is outside, what this version knows
    rules = libc.syscall(CREATE, struct.pack("=QQQ", every, 3 * (newer >= 4), 3 * (newer >= 6)), 24, 0)
    _succeed(min(rules, 0))
    for path, right in rights.items():
        if os.path.exists(path):
            file = os.open(path, os.O_PATH)
            known = every if os.path.isdir(path) else every & OF_FILES
            _succeed(libc.syscall(ADD, rules, 1, struct.pack("=Qi", right & known, file), 0))
            os.close(file)
    _succeed(libc.syscall(RESTRICT, rules, 0))
    os.close(rules)


def _succeed(code):
    """Raise an OSError unless a call of the system has succeeded."""
    if code:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
