"""Bars that show progress where somebody looks: in a terminal or a notebook."""

import os
import sys

from tqdm.auto import tqdm

if sys.platform == "emscripten":  # where no thread can be started to watch the bars
    tqdm.monitor_interval = 0

LATE = {"delay": 5, "leave": False}  # for a bar after five seconds, until the end


def progress(*arguments, **options):
    """Return a bar of tqdm; a log, or another program that reads along, gets none.

    Parameters
    ----------
    arguments, options
        As for `tqdm.tqdm`. ``TQDM_DISABLE=1`` in the environment disables every bar.

    Examples
    --------
    >>> sum(progress(range(4)))
    6
    """
    # None is for tqdm: unless there is a terminal. Its notebook does not heed the
    # environment.
    options.setdefault("disable", bool(os.environ.get("TQDM_DISABLE")) or None)
    return tqdm(*arguments, **options)
