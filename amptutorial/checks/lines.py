"""How many lines of Python a call executes."""

import itertools
import sys
import sysconfig
import threading

LIBRARIES = tuple(
    map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib"))
)


def count_lines(denoiser, method, P, r, F):
    """Count the lines of Python that a call of `method` executes, in all its threads.

    A call into an installed library counts as a line, and what it executes does not:
    how it goes about a sum is its own.

    Examples
    --------
    >>> import numpy as np
    >>> from amptutorial.denoisers import Ridge
    >>> def lines(N):
    ...     rows = np.ones((N, 2)), np.ones(N), np.eye(2)
    ...     return count_lines(Ridge(1.0), "estimate", *rows)
    >>> _ = lines(1)  # what is computed once
    >>> lines(1) == lines(50)
    True
    """
    counter = itertools.count()  # threads share it

    def trace(frame, event, argument):
        if frame.f_code.co_filename.startswith(LIBRARIES):
            if not frame.f_back.f_code.co_filename.startswith(LIBRARIES):
                next(counter)  # `map` calls it without a line
            return None
        if event == "line":
            next(counter)
        return trace

    before = sys.gettrace(), threading.gettrace()
    sys.settrace(trace)
    threading.settrace(trace)
    try:
        getattr(denoiser, method)(P, r, F)
    finally:
        sys.settrace(before[0])
        threading.settrace(before[1])
    return next(counter)
