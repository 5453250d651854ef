"""How many lines of Python a call executes: in a loop, more for each further row."""

import itertools
import sys
import sysconfig
import threading
from contextlib import contextmanager
from typing import Any

import numpy as np

LIBRARIES = tuple(
    map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib"))
)


def count_lines(denoiser, method, P, r, F):
    """Count the lines of Python that a call of `method` executes, in all its threads.

    A call into an installed library counts as a line, and what it executes does not:
    how it goes about a sum is its own.

    Examples
    --------
    >>> from amptutorial.denoisers import Ridge
    >>> def lines(N):
    ...     rows = np.ones((N, 2)), np.ones(N), np.eye(2)
    ...     return count_lines(Ridge(1.0), "estimate", *rows)
    >>> _ = lines(1)  # what is computed once
    >>> lines(1) == lines(50)
    True
    """
    counter = itertools.count()  # threads share it
    with _threads_that_count(counter):
        traced(counter, getattr(denoiser, method), P, r, F)
    return next(counter)


def traced(counter, function, *arguments):
    """Call a function in this thread, and advance the counter by a step for each line.

    Nothing else in the package sets a trace function.
    """

    def trace(frame, event, argument):
        if frame.f_code.co_filename.startswith(LIBRARIES):
            if not frame.f_back.f_code.co_filename.startswith(LIBRARIES):
                next(counter)  # `map` calls it without a line
            return None
        if event == "line":
            next(counter)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return function(*arguments)
    finally:
        sys.settrace(before)


@contextmanager
def _threads_that_count(counter):
    """Let threads that are started meanwhile advance the counter too."""
    run = threading.Thread.run
    replaced: Any = threading.Thread  # which mypy lets nobody patch
    replaced.run = lambda thread: traced(counter, run, thread)
    try:
        yield
    finally:
        replaced.run = run


def loop_over_rows(trial):
    """Return a text if each further row takes more lines, among thousands and few.

    A solver may take more iterations for more rows, up to a point; a loop goes on.
    """
    few = trial.problem.rows(slice(40))

    def count(method, copies):
        """Return the numbers of rows and of lines; the same rows take as many steps."""
        P, r = np.tile(few.P, (copies, 1)), np.tile(few.r, copies)
        lines = trial.count_lines(trial.denoiser, method, P, r, few.F.copy())
        return np.array([len(r), lines])

    for method in trial.own("estimate", "mean_jacobian", "denoise"):
        first, second = count(method, 1), count(method, 26)
        growth = np.divide(*(second - first)[::-1])
        if growth < 0.5:
            continue
        third = count(method, 101)
        later = np.divide(*(third - second)[::-1])
        if later >= max(growth / 2, 0.5):
            counts = "{} rows: {} lines; {} rows: {} lines; {} rows: {} lines"
            return (
                f"{method} executes {later:.1f} lines of Python for every further row: "
                f"a loop over the rows. {counts.format(*first, *second, *third)}. Use "
                "operations on whole arrays, such as np.einsum, broadcasting, or one "
                "decomposition of F for all rows"
            )
    return ""
