"""Limits of the operating system, which a process sets for itself and cannot lift."""

import contextlib
import os
import signal
import sys
from pathlib import Path


def set_limits(limits):
    """Limit processor time, memory, the size of files, and how many are open.

    Parameters
    ----------
    limits : dict
        See `amptutorial_course.grading.rules.LIMITS`.
    """
    # the limits of the judge come first; this one outlives the judge
    _limit("RLIMIT_CPU", int(limits["seconds"]) + 5)
    _limit("RLIMIT_FSIZE", int(limits["output_kilobytes"] * 2**10))
    _limit("RLIMIT_CORE", 0)
    _limit("RLIMIT_NOFILE", 64)
    limit_memory(limits["megabytes"])


def limit_memory(megabytes):
    """Limit what this process may take from now on; macOS does not."""
    _limit("RLIMIT_AS", _address_space() + int(megabytes * 2**20))


def end_with_parent():
    """Let the system kill this process when its parent dies; only Linux can."""
    if sys.platform == "linux":
        import ctypes

        set_parent_death_signal = 1  # PR_SET_PDEATHSIG
        ctypes.CDLL(None).prctl(set_parent_death_signal, int(signal.SIGKILL))


def _limit(name, value):
    import resource

    # no such limit here, or a lower one already
    with contextlib.suppress(AttributeError, ValueError, OSError):
        resource.setrlimit(getattr(resource, name), (value, value))


def _address_space():
    """Return how many bytes the process has mapped already."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 2**32
