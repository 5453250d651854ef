"""Hold a student's module and answer the judge's questions about it.

The worker runs in a folder of its own into which it writes the submission. Standard
input and output lead to the judge, and all that is printed goes into a file. The judge
takes from here only the numbers that a denoiser is asked for, and how many lines it
took: anything that is not a valid answer fails the check.
"""

import errno
import importlib.util
import io
import os
import sys
import traceback
from pathlib import Path

import numpy as np

from amptutorial.checks import count_lines
from amptutorial.checks.trials import is_own, ready_made
from amptutorial.denoisers import Denoiser

from . import limits, protocol

FILE = "denoiser.py"
METHODS = ("mean_jacobian", "denoise", "penalty", "convexity", "refit", "frozen")


class Printed(io.FileIO):
    """Standard output up to its limit; anything beyond is dropped silently."""

    def write(self, data):
        """Write as much as still fits."""
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

    def load(self):
        """Import the submission; return its prediction for the experiment."""
        spec = importlib.util.spec_from_file_location("denoiser", FILE)
        self.module = sys.modules["denoiser"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.module)
        prediction = getattr(self.module, "PREDICTION", None)
        is_number = prediction is None or np.asarray(prediction).dtype.kind in "biuf"
        return {"prediction": prediction if is_number else repr(prediction)[:200]}

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
        return {
            "object": len(self.objects) - 1,
            "precision": str(denoiser.precision),
            "overrides": [name for name in METHODS if is_own(denoiser, name)],
        }

    def call(self, number, method, arguments):
        """Call a method; return the answer and those arguments that it has changed."""
        before = [value.tobytes() if isinstance(value, np.ndarray) else None for value in arguments]
        result = getattr(self.objects[number], method)(*arguments)
        changed = {
            str(k): value
            for k, (value, old) in enumerate(zip(arguments, before, strict=True))
            if old is not None and value.tobytes() != old
        }
        if method == "denoise":
            return {"result": [_numbers(each) for each in result], "changed": changed}
        return {"result": _numbers(result), "changed": changed}

    def derive(self, number, method, arguments):
        """Keep the denoiser that `refit` or `frozen` returns; return what it is."""
        new = getattr(self.objects[number], method)(*arguments)
        cls = type(new)
        if not isinstance(new, Denoiser):
            raise TypeError(f"{method} returned {cls.__name__}, expected a Denoiser")
        return {"name": cls.__name__} | self._keep(new)

    def count_lines(self, number, method, arguments):
        """Count the lines that a call executes."""
        return {"lines": count_lines(self.objects[number], method, *arguments)[0]}


def _numbers(value):
    """Return `value` as an array of numbers; anything else is the student's error."""
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        kind = f"{type(value).__name__} of dtype {array.dtype}"
        raise TypeError(f"the answer is {kind}, expected an array of floats")
    return array


def describe_failure(error):
    """Return an error as a message.

    The message has its type, its text, the student's line, and those lines of the
    traceback that are the student's.
    """
    stack = traceback.extract_tb(error.__traceback__)
    frames = [frame for frame in stack if frame.filename.endswith(FILE)]
    lines = traceback.format_list(frames[-8:]) + traceback.format_exception_only(error)
    if isinstance(error, SyntaxError):
        line, text = error.lineno, error.msg
    else:
        line, text = frames[-1].lineno if frames else None, str(error)
    return {
        "error": type(error).__name__,
        "text": text[:2000],
        "line": line,
        "traceback": "".join(lines)[-4000:],
    }


def answer_question(worker, question):
    """Return the answer to ``{"ask": method, ...}`` as a frame.

    It may be an error that the student's code raised.
    """
    try:
        return protocol.pack(getattr(worker, question.pop("ask"))(**question))
    # sys.exit in a submission must not end the worker
    except BaseException as error:  # noqa: BLE001
        return protocol.pack(describe_failure(error))


def main(most):
    """Confine this process, then answer questions until the judge is gone.

    Parameters
    ----------
    most : dict
        See `limits.set_limits`.
    """
    questions, answers = os.dup(0), os.dup(1)

    def receive():
        frame = protocol.read_frame(lambda size: os.read(questions, size))
        return protocol.unpack(*frame)

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
    _write_all(answers, answer_question(worker, receive()))
    limits.set_limits(most)
    while True:
        try:
            question = receive()
        except EOFError:
            return
        _write_all(answers, answer_question(worker, question))


def _write_all(answers, frame):
    view = memoryview(frame)
    while view:
        view = view[os.write(answers, view) :]
