"""Hold a student's module and answer the judge's questions about it.

The worker runs in a folder of its own into which it writes the submission. Standard
input and output lead to the judge, and all that is printed goes into a file. The judge
takes from here only the numbers that a denoiser is asked for, and how many lines and
seconds it took: anything that is not a valid answer fails the check.

A submission shares this process, and can replace whatever is here: it can answer the
judge by itself. That gains it nothing in what is computed, since the judge knows what is
right, and all in what is observed: lines, seconds, changed arguments, and whether the
work is left to the package.
"""

import errno
import importlib.util
import io
import os
import signal
import socket
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np

from amptutorial.checks import count_lines
from amptutorial.checks.trials import copied, is_own
from amptutorial.denoisers import Denoiser

from . import confine, limits, protocol
from .by_hand import ready_made

FILE = "denoiser.py"
METHODS = ("mean_jacobian", "denoise", "penalty", "convexity", "refit", "frozen")


class Printed(io.FileIO):
    """Standard output up to its limit; beyond, it is dropped silently, up to an amount that takes all the time."""

    left = 2**20 * 20

    def write(self, data):
        """Write as much as still fits."""
        self.left -= len(data)
        if self.left < 0:
            raise RuntimeError("more than 20 MB were printed: print nothing for every row")
        try:
            return super().write(data)
        except OSError as error:
            if error.errno != errno.EFBIG:
                raise
            return len(data)


class Worker:
    """The questions that can be asked, a method for each; its value is sent back."""

    def __init__(self):
        self.module, self.objects = None, []

    def write(self, files):
        """Write the submission into this folder, bytes by their path."""
        for name, data in files.items():
            path = Path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data.tobytes())
        return {}

    def load(self, by_hand):
        """Import the submission; return its prediction for the experiment."""
        spec: Any = importlib.util.spec_from_file_location("denoiser", FILE)
        self.module = sys.modules["denoiser"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.module)
        if by_hand:
            _refuse_ready_made()
        prediction = getattr(self.module, "PREDICTION", None)
        number = np.asarray(prediction)
        shown = number.tolist() if number.dtype.kind in "biuf" else repr(prediction)[:200]
        return {"prediction": None if prediction is None else shown}

    def describe(self, name):
        """Return of which classes of the package a class is made."""
        cls = getattr(self.module, name, None)
        if not (isinstance(cls, type) and issubclass(cls, Denoiser)):
            raise TypeError(f"{FILE} has no class {name} derived from amptutorial.Denoiser")
        return {"ready_made": ready_made(cls)}

    def new(self, name, params):
        """Make an object; it is known by its number."""
        return self._keep(getattr(self.module, name)(**params))

    def _keep(self, denoiser):
        """Keep an object; return its number, and what the judge has to know."""
        self.objects.append(denoiser)
        own = [name for name in METHODS if is_own(denoiser, name)]
        return {"object": len(self.objects) - 1, "precision": str(denoiser.precision), "overrides": own}

    def _asked(self, number, anew):
        return copied(self.objects[number]) if anew else self.objects[number]

    def call(self, number, method, arguments, anew):
        """Call a method; return the answer and those arguments that it has changed."""
        before = [np.asarray(value).tobytes() for value in arguments]
        result = getattr(self._asked(number, anew), method)(*arguments)
        pairs = enumerate(zip(arguments, before, strict=True))
        changed = {str(k): value for k, (value, old) in pairs if np.asarray(value).tobytes() != old}
        numbers = [_numbers(each) for each in result] if method == "denoise" else _numbers(result)
        return {"result": numbers, "changed": changed}

    def derive(self, number, method, arguments, anew):
        """Keep the denoiser that `refit` or `frozen` returns; return what it is."""
        new = getattr(self._asked(number, anew), method)(*arguments)
        if not isinstance(new, Denoiser):
            raise TypeError(f"{method} returned {type(new).__name__}, expected a Denoiser")
        return {"name": type(new).__name__} | self._keep(new)

    def count_lines(self, number, method, arguments, anew):
        """Count the lines that a call executes."""
        return {"lines": count_lines(self._asked(number, anew), method, *arguments)}


def _refuse_ready_made():
    """Let no denoiser of the package be made, or asked, from here on.

    Until then a submission may run AMP with them, for its prediction.
    """
    for cls in vars(sys.modules[Denoiser.__module__]).values():
        if isinstance(cls, type) and issubclass(cls, Denoiser) and cls is not Denoiser:
            for name in vars(cls).keys() & {"__init__", "estimate", *METHODS}:
                setattr(cls, name, _refuse)


def _refuse(*arguments, **named):
    raise TypeError("a denoiser of the package was asked, but this assignment is written by hand")


def _numbers(value):
    """Return `value` as an array of numbers; anything else is the student's error."""
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"the answer is {type(value).__name__} of dtype {array.dtype}, expected an array of floats")
    return array


def describe_failure(error):
    """Return an error as a message.

    The message has its type, its text, the student's line, and those lines of the
    traceback that are the student's.
    """
    stack = traceback.extract_tb(error.__traceback__)
    frames = [frame for frame in stack if frame.filename.endswith(FILE)]
    lines = traceback.format_list(frames[-8:]) + traceback.format_exception_only(error)
    line, text = frames[-1].lineno if frames else None, str(error)
    if isinstance(error, SyntaxError):
        line, text = error.lineno, error.msg
    if isinstance(error, PermissionError) and error.filename is None:
        text = f"{text}: a submission that is graded can start threads, and has no other process and no network"
    known = {"error": type(error).__name__, "text": text[:2000], "line": line}
    return known | {"traceback": "".join(lines)[-4000:]}


def answer_question(worker, question):
    """Return the answer to ``{"ask": method, ...}`` as a frame.

    It may be an error that the student's code raised. It has the seconds that this
    process has computed.
    """
    try:
        return _pack(getattr(worker, question.pop("ask"))(**question))
    # sys.exit in a submission must not end the worker
    except BaseException as error:  # noqa: BLE001
        return _pack(describe_failure(error))


def _pack(answer):
    return protocol.pack({"seconds": time.process_time(), **answer})


def main(most, readable=None):
    """Confine this process, then answer questions until the judge is gone.

    Parameters
    ----------
    most : dict
        See `limits.set_limits`.
    readable : dict, optional
        See `confine.confine`.
    """
    judge = socket.socket(fileno=os.dup(0))

    def receive():
        return protocol.unpack(*protocol.read_frame(judge.recv))

    os.dup2(2, 1)  # whatever is printed, also by native code
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    printed = io.BufferedWriter(Printed(1, "w", closefd=False))
    sys.stdout = sys.stderr = io.TextIOWrapper(printed, "utf-8", "replace")
    sys.stdout.reconfigure(line_buffering=True)
    # the modules beside denoiser.py come last: none of them replaces a library
    sys.path.append(os.getcwd())
    limits.end_with_parent()
    worker = Worker()
    # the first question has the files, which may be larger than what a submission writes
    judge.sendall(answer_question(worker, receive()))
    limits.set_limits(most)
    if sys.platform == "linux":
        confine.confine(readable)
    while True:
        try:
            question = receive()
        except EOFError:
            return
        # the system ends this process when a call has computed for so long
        signal.setitimer(signal.ITIMER_PROF, most["seconds_per_call"])
        judge.sendall(answer_question(worker, question))
