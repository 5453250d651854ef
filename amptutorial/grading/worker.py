"""The worker: holds a student's module and answers the judge's questions about it.

It runs in a folder of its own that holds a copy of the submission, with a socket to the
judge and a file for all that is printed. The judge believes nothing that is said here
beyond the numbers a denoiser is asked for (and how many lines it took): an answer that
is no answer fails the check.
"""

import errno
import importlib.util
import io
import os
import sys
import traceback
from pathlib import Path

import numpy as np

import amptutorial
import amptutorial.corpus
import amptutorial.estimator  # now: later the sandbox refuses what scikit-learn loads
from amptutorial.checks import count_lines
from amptutorial.denoisers import Denoiser

from . import protocol, sandbox

FILE = "denoiser.py"
METHODS = ("mean_jacobian", "denoise", "penalty", "convexity", "refit", "frozen")


class Printed(io.FileIO):
    """Standard output up to its limit: whatever is printed beyond that is lost, and no mistake."""

    def write(self, data):
        """Write as much as still fits."""
        try:
            return super().write(data)
        except OSError as error:
            if error.errno != errno.EFBIG:
                raise
            return len(data)


class Worker:
    """The questions that can be asked, one method each; what they return is sent back."""

    def __init__(self):
        self.module, self.objects = None, []

    def load(self):
        """Import the submission; say what it predicts for the assignment's experiment."""
        spec = importlib.util.spec_from_file_location("denoiser", FILE)
        self.module = sys.modules["denoiser"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.module)
        prediction = getattr(self.module, "PREDICTION", None)
        is_number = prediction is None or np.asarray(prediction).dtype.kind in "biuf"
        return {"prediction": prediction if is_number else repr(prediction)[:200]}

    def describe(self, name):
        """Say which methods of the base class a class replaces."""
        cls = getattr(self.module, name, None)
        if not (isinstance(cls, type) and issubclass(cls, Denoiser)):
            raise TypeError(
                f"{FILE} has no class {name} derived from amptutorial.Denoiser"
            )
        return {"overrides": _overrides(cls)}

    def new(self, name, params):
        """Make an object; it is known by its number."""
        self.objects.append(getattr(self.module, name)(**params))
        return {
            "object": len(self.objects) - 1,
            "precision": str(self.objects[-1].precision),
        }

    def call(self, number, method, arguments):
        """Call a method; return the answer and those arguments that it has changed."""
        before = [
            value.tobytes() if isinstance(value, np.ndarray) else None
            for value in arguments
        ]
        result = getattr(self.objects[number], method)(*arguments)
        changed = {
            str(k): value
            for k, (value, old) in enumerate(zip(arguments, before, strict=True))
            if old is not None and value.tobytes() != old
        }
        result = (
            [_numbers(each) for each in result]
            if method == "denoise"
            else _numbers(result)
        )
        return {"result": result, "changed": changed}

    def derive(self, number, method, arguments):
        """Keep the denoiser that `refit` or `frozen` returns, and say what it is."""
        new = getattr(self.objects[number], method)(*arguments)
        if not isinstance(new, Denoiser):
            raise TypeError(
                f"{method} returned {type(new).__name__}, expected a Denoiser"
            )
        self.objects.append(new)
        described = {
            "name": type(new).__name__,
            "overrides": _overrides(type(new)),
            "precision": str(new.precision),
        }
        return {"object": len(self.objects) - 1, **described}

    def count_lines(self, number, method, arguments):
        """Count the lines that a call executes."""
        return {"lines": count_lines(self.objects[number], method, *arguments)[0]}


def _overrides(cls):
    return [
        method
        for method in METHODS
        if getattr(cls, method) is not getattr(Denoiser, method)
    ]


def _numbers(value):
    """Return `value` as an array of numbers; what is none is an error of the student's."""
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"the answer is {type(value).__name__} of dtype {array.dtype}, expected an array of floats"
        )
    return array


def failure(error):
    """Return the error as a message: type, text, the student's line, and the part of the traceback that is theirs."""
    frames = [
        f
        for f in traceback.extract_tb(error.__traceback__)
        if f.filename.endswith(FILE)
    ]
    line = (
        error.lineno
        if isinstance(error, SyntaxError)
        else frames[-1].lineno
        if frames
        else None
    )
    lines = traceback.format_list(frames[-8:]) + traceback.format_exception_only(error)
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return {
        "error": type(error).__name__,
        "text": text[:2000],
        "line": line,
        "traceback": "".join(lines)[-4000:],
    }


def answer(worker, question):
    """Return the answer to ``{"ask": method, ...}`` as a frame; it may be an error that the student's code raised."""
    try:
        return protocol.pack(getattr(worker, question.pop("ask"))(**question))
    except BaseException as error:  # noqa: BLE001 - sys.exit in a submission must not end the worker
        return protocol.pack(failure(error))


def main(channel, limits):
    """Confine this process, then answer questions on the socket `channel` (a file descriptor) until it is closed."""
    sys.stdout = sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(Printed(1, "w", closefd=False)), "utf-8", "replace"
    )
    sys.stdout.reconfigure(line_buffering=True)
    # the folder that holds the package, which the judge put first
    sys.path[:] = sys.path[1:]
    package = Path(amptutorial.__file__).parent
    sandbox.close_doors()
    sandbox.set_limits(limits)
    sandbox.forbid(package, count_lines.__code__)
    del amptutorial.grading  # no part of what a submission can use
    for name in [
        name for name in sys.modules if name.startswith("amptutorial.grading")
    ]:
        del sys.modules[name]
    worker = Worker()
    os.write(channel, protocol.pack({"ready": True}))
    while True:
        try:
            question = protocol.unpack(
                *protocol.read_frame(lambda size: os.read(channel, size))
            )
        except EOFError:
            return
        _write(channel, answer(worker, question))


def _write(channel, frame):
    view = memoryview(frame)
    while view:
        view = view[os.write(channel, view) :]
