"""How memory and times are taken: times alternately, so that both sides of a ratio see the same machine."""

import resource
import time

import numpy as np


def seconds(function, *args):
    """Return the seconds that one call takes, and its result."""
    start = time.perf_counter()
    result = function(*args)
    return time.perf_counter() - start, result


def ratio(slow, fast, repeats=15):
    """Return the median time of `slow` over that of `fast`, and both medians; the calls alternate."""
    slow(), fast()  # what is done once only should not count
    times = np.array([(seconds(slow)[0], seconds(fast)[0]) for _ in range(repeats)])
    above, below = np.median(times, axis=0)
    return above / below, above, below


def peak():
    """Return the largest memory that this process has had, in bytes."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def row(name, at, value, demanded):
    """Return one row of the printed table."""
    return {"name": name, "at": at, "ratio": float(value), "demanded": demanded}
