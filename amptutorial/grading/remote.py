"""The judge's side: a session with the worker, and denoisers whose methods are answered by it."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from amptutorial.denoisers import Denoiser

from . import protocol

# for Python and its libraries, before any line of the submission; not counted
START_SECONDS = 120
RESTARTS = 2
PACKAGE_FOLDER = Path(__file__).resolve().parents[2]
START = "import sys; sys.path.insert(0, sys.argv[1]); from amptutorial.grading.worker import main; "


class StudentError(Exception):
    """What went wrong in a submission, in words for its author; `traceback` holds the student's own lines."""

    traceback = ""


class TimeLimit(StudentError):
    """No answer in time."""


class Crash(StudentError):
    """The process that runs the submission has ended."""


class BadAnswer(StudentError):
    """An answer that is none."""


class NotRun(StudentError):
    """Nothing was asked: too many crashes, or the time is used up."""


class Session:
    """A submission in its own process, restarted after a crash; use it as a context manager.

    Parameters
    ----------
    source : bytes
        Of denoiser.py.
    limits : dict
        ``limits`` of grading.yml.

    Raises
    ------
    StudentError
        From `ask`, for whatever the submission does wrong.
    """

    def __init__(self, source, limits):
        self.source, self.limits = source, limits
        self.generation, self.seconds, self.over = 0, 0.0, None
        self.prediction, self.process = None, None
        self.printed = tempfile.TemporaryFile()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.stop()
        self.printed.close()

    def output(self, characters=2000):
        """Return the end of what was printed."""
        size = self.printed.seek(0, os.SEEK_END)
        self.printed.seek(max(0, size - 4 * characters))
        return self.printed.read().decode("utf-8", "replace")[-characters:]

    def ask(self, ask, **question):
        """Return the worker's answer, a dict."""
        if self.over is None and self.process is None:
            self.start()
        if self.over is not None:
            raise NotRun(self.over)
        return self._exchange({"ask": ask, **question})

    def start(self):
        """Start the worker and let it import the submission."""
        self.generation += 1
        self.folder = tempfile.TemporaryDirectory(
            prefix="submission_", ignore_cleanup_errors=True
        )
        Path(self.folder.name, "denoiser.py").write_bytes(self.source)
        self.channel, theirs = socket.socketpair()
        command = f"{START}main({theirs.fileno()}, {self.limits!r})"
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-s", "-P", "-B", "-c", command, PACKAGE_FOLDER],
                cwd=self.folder.name, env=_environment(self.folder.name), pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL, stdout=self.printed, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        try:
            protocol.receive(self.channel, time.monotonic() + START_SECONDS)
        except (EOFError, OSError) as error:
            output = self.output()
            self.stop()
            raise RuntimeError(f"the worker could not be started: {output}") from error
        try:
            prediction = self._exchange({"ask": "load"}).get("prediction")
            is_number = isinstance(prediction, np.ndarray) and prediction.ndim == 0
            self.prediction = prediction.item() if is_number else prediction
        except StudentError as error:
            self.stop()
            self.over = (
                f"denoiser.py cannot be imported: {type(error).__name__}: {error}"
            )
            raise

    def stop(self, patience=0.0):
        """Kill the worker, after so many seconds in which it may end by itself, and remove its folder."""
        if self.process is None:
            return
        try:  # a worker that is about to exit says with which code
            self.process.wait(patience)
        except subprocess.TimeoutExpired:
            pass
        for kill in (
            lambda: os.killpg(self.process.pid, signal.SIGKILL),
            self.process.kill,
        ):
            try:
                kill()
            except ProcessLookupError:
                continue
        self.status = self.process.wait()
        self.process = None
        self.channel.close()
        self.folder.cleanup()

    def _exchange(self, question):
        started = time.monotonic()
        deadline = started + min(
            self.limits["seconds"] - self.seconds, self.limits["seconds_per_call"]
        )
        try:
            protocol.send(self.channel, question, deadline)
            reply = protocol.receive(self.channel, deadline)
        except (OSError, EOFError, protocol.Malformed) as error:
            raise self._lost(question, error, time.monotonic() - started) from None
        finally:
            self.seconds += time.monotonic() - started
        if "error" in reply:
            raise _student_error(reply)
        return reply

    def _lost(self, question, error, seconds):
        """Return what to raise once the worker is of no more use, and decide whether it gets another chance."""
        self.stop(patience=1.0 if isinstance(error, EOFError) else 0.0)
        if self.seconds + seconds >= self.limits["seconds"]:
            self.over = (
                f"the {self.limits['seconds']:g} s for one submission are used up"
            )
        elif self.generation > RESTARTS:
            self.over = (
                f"the submission has been restarted {RESTARTS} times and stopped again"
            )
        name = question.get(
            "method",
            "making the denoiser" if question["ask"] == "new" else "the import",
        )
        if isinstance(error, TimeoutError):
            return TimeLimit(
                f"{name} gave no answer within {seconds:.2g} s: an endless loop?"
            )
        if isinstance(error, protocol.Malformed):
            return BadAnswer(f"{name} gave no proper answer: {error}")
        ended = (
            f"exit code {self.status}" if self.status >= 0 else f"signal {-self.status}"
        )
        return Crash(f"{name} ended Python itself ({ended})")


def _environment(folder):
    """Return the worker's environment: nothing inherited, one thread, the same hashes every time."""
    return {
        "HOME": folder, "TMPDIR": folder, "LANG": "C.UTF-8", "PYTHONHASHSEED": "0",
        "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
    }  # fmt: skip


def _student_error(reply):
    """Return the error of an answer, under its own name: reports then read as they do at the student's desk."""
    name, text, line = (
        str(reply["error"])[:60],
        str(reply.get("text", ""))[:2000],
        reply.get("line"),
    )
    where = f" (denoiser.py, line {line})" if type(line) is int else ""
    error = type(name if name.isidentifier() else "Error", (StudentError,), {})(
        f"{text}{where}".strip()
    )
    error.traceback = str(reply.get("traceback", ""))[-4000:]
    return error


class RemoteDenoiser(Denoiser):
    """A denoiser that lives in a worker; `remote_class` makes its subclasses."""

    def __init__(self, session, params):
        self._session, self._params, self._number = session, params, None
        self._make()

    def __repr__(self):
        params = (self._params or {}).items()
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in params)})"

    def _make(self):
        """Make the object at the other side, again if the worker has been restarted; return its number there."""
        if (
            self._number is None
            or self._number[0] != self._session.generation
            or self._session.process is None
        ):
            if self._params is None:
                raise NotRun(
                    "what the denoiser had learned was lost when the submission was restarted"
                )
            reply = self._session.ask(
                "new", name=type(self).__name__, params=self._params
            )
            self._number, self.precision = (
                (self._session.generation, reply.get("object")),
                reply.get("precision"),
            )
        return self._number[1]

    def _call(self, method, *arguments):
        """Return the answer of a method, and what it wrote into its arguments."""
        arguments = [np.asarray(value) for value in arguments]
        reply = self._session.ask(
            "call", number=self._make(), method=method, arguments=arguments
        )
        changed, result = reply.get("changed"), reply.get("result")
        for k, value in enumerate(arguments):
            new = changed.get(str(k)) if isinstance(changed, dict) else None
            if (
                isinstance(new, np.ndarray)
                and new.shape == value.shape
                and value.flags.writeable
            ):
                value[...] = new
        return result

    def estimate(self, P, r, F):
        """Return the student's estimate."""
        return _array(self._call("estimate", P, r, F), "estimate")


def _array(value, method):
    if not isinstance(value, np.ndarray):
        raise BadAnswer(f"{method} gave no array")
    return value if value.ndim else value.item()


def _single(method):
    def call(self, *arguments):
        return _array(self._call(method, *arguments), method)

    return call


def _denoise(self, P, r, F):
    pair = self._call("denoise", P, r, F)
    if not (isinstance(pair, list) and len(pair) == 2):
        raise BadAnswer("denoise gave no pair (estimate, mean Jacobian)")
    return tuple(_array(value, "denoise") for value in pair)


def _derived(method):
    def derive(self, *arguments):
        arguments = [np.asarray(value) for value in arguments]
        reply = self._session.ask(
            "derive", number=self._make(), method=method, arguments=arguments
        )
        new = object.__new__(
            _proxy_class(str(reply.get("name"))[:60], reply.get("overrides"))
        )
        # it has learned: parameters cannot make it again
        new._session, new._params = self._session, None
        new._number, new.precision = (
            (self._session.generation, reply.get("object")),
            reply.get("precision"),
        )
        return new

    return derive


PROXIES = {"refit": _derived("refit"), "frozen": _derived("frozen")}
PROXIES |= {
    "mean_jacobian": _single("mean_jacobian"),
    "penalty": _single("penalty"),
    "convexity": _single("convexity"),
}
PROXIES["denoise"] = _denoise


def remote_class(session, name):
    """Return a subclass of `Denoiser` that stands for the student's class `name`.

    It has proxies for just those methods that the student's class replaces: for the
    others the base class serves, and a check that asks whether there is a penalty gets
    the right answer.
    """
    return _proxy_class(name, session.ask("describe", name=name).get("overrides"))


def _proxy_class(name, overrides):
    named = overrides if isinstance(overrides, list) else ()
    return type(
        name,
        (RemoteDenoiser,),
        {method: proxy for method, proxy in PROXIES.items() if method in named},
    )


def count_remote_lines(denoiser, method, *arguments):
    """Return `(lines, seconds)` as `amptutorial.checks.count_lines` does; the seconds are by the judge's clock."""
    started = time.perf_counter()
    number = denoiser._make()
    reply = denoiser._session.ask(
        "count_lines", number=number, method=method, arguments=list(arguments)
    )
    if type(reply.get("lines")) is not int:
        raise BadAnswer("the lines could not be counted")
    return reply["lines"], time.perf_counter() - started
