"""The judge's side: a session with the worker, and denoisers that ask the worker."""

import os
import socket
import tempfile
import time
from types import MethodType

import numpy as np

from amptutorial.denoisers import Denoiser

from . import isolation
from .worker import protocol

# for Python and its libraries, before any line of the submission; not counted
START_SECONDS = 120
# three checks and the prediction ask `penalty`: where it crashes, the others still run
RESTARTS = 3


class StudentError(Exception):
    """What went wrong in a submission, in words for its author.

    Attributes
    ----------
    traceback : str
        The student's own lines.
    """

    traceback = ""


class TimeLimit(StudentError):
    """The worker sent no answer in time."""


class Crash(StudentError):
    """The process that runs the submission has ended."""


class BadAnswer(StudentError):
    """The worker sent something that is not a valid answer."""


class NotRun(StudentError):
    """The worker was not asked: it crashed too often, or the time is used up."""


class Session:
    """A submission in its own process, restarted after a crash.

    Use it as a context manager.

    Parameters
    ----------
    source : bytes
        Of denoiser.py.
    limits : dict
        See `rules.LIMITS`.
    isolate : str
        One of `isolation.KINDS`.
    helpers : dict, optional
        The modules beside it, bytes by their path.

    Raises
    ------
    StudentError
        From `ask`, if the submission does anything wrong.
    """

    def __init__(self, source, limits, isolate="none", helpers=None):
        self.files = {**(helpers or {}), "denoiser.py": source}
        self.limits, self.isolate = limits, isolate
        self.generation, self.seconds, self.over = 0, 0.0, None
        self.prediction, self.place = None, None
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
        if self.over is None and self.place is None:
            self.start()
        if self.over is not None:
            raise NotRun(self.over)
        return self._exchange({"ask": ask, **question})

    def start(self):
        """Start the worker and let it import the submission."""
        self.generation += 1
        self.channel, theirs = socket.socketpair()
        with theirs:
            self.place = isolation.Place(self.isolate, self.limits, theirs, self.printed)
        files = {n: np.frombuffer(data, np.uint8) for n, data in self.files.items()}
        try:
            deadline = time.monotonic() + START_SECONDS
            question = {"ask": "write", "files": files}
            protocol.send(self.channel, question, deadline)
            reply = protocol.receive(self.channel, deadline)
        except (EOFError, OSError) as error:
            output = self.output()
            self.stop()
            raise RuntimeError(f"the worker could not be started: {output}") from error
        try:
            _require_no_error(reply)
            prediction = self._exchange({"ask": "load"}).get("prediction")
        except StudentError as error:
            self.stop()
            reason = f"{type(error).__name__}: {error}"
            self.over = f"denoiser.py cannot be imported: {reason}"
            raise
        is_number = isinstance(prediction, np.ndarray) and prediction.ndim == 0
        self.prediction = prediction.item() if is_number else prediction

    def stop(self, patience=0.0):
        """Kill the worker and remove its folder.

        Parameters
        ----------
        patience : float
            Seconds in which the worker may end by itself; its exit code is known then.
        """
        if self.place is None:
            return
        self.status = self.place.end(patience)
        self.place = None
        self.channel.close()

    def _exchange(self, question):
        started, left = time.monotonic(), self.limits["seconds"] - self.seconds
        deadline = started + min(left, self.limits["seconds_per_call"])
        try:
            protocol.send(self.channel, question, deadline)
            reply = protocol.receive(self.channel, deadline)
        except (OSError, EOFError, MemoryError, protocol.Malformed) as error:
            raise self._lost(question, error, time.monotonic() - started) from None
        finally:
            self.seconds += time.monotonic() - started
        _require_no_error(reply)
        return reply

    def _lost(self, question, error, seconds):
        """Stop a worker that is of no more use, and return what to raise.

        Where the limits are reached, the session is over; otherwise the next question
        starts another worker.
        """
        self.stop(patience=1.0 if isinstance(error, EOFError) else 0.0)
        most = self.limits["seconds"]
        if self.seconds + seconds >= most:
            self.over = f"the {most:g} s for one submission are used up"
        elif self.generation > RESTARTS:
            self.over = f"the submission was restarted {RESTARTS} times and failed again"
        making = "making the denoiser" if question["ask"] == "new" else "the import"
        name = question.get("method", making)
        if isinstance(error, TimeoutError):
            waited = f"{name} gave no answer within {seconds:.2g} s"
            return TimeLimit(f"{waited}: an endless loop?")
        if isinstance(error, protocol.Malformed | MemoryError):
            return BadAnswer(f"{name} gave no valid answer: {error}")
        code = self.status
        ended = f"exit code {code}" if code >= 0 else f"signal {-code}"
        return Crash(f"{name} ended Python itself ({ended})")


def _require_no_error(reply):
    """Raise the error of an answer, under its own name: so its author would see it."""
    if "error" not in reply:
        return
    name, text = str(reply["error"])[:60], str(reply.get("text", ""))[:2000]
    line = reply.get("line")
    where = f" (denoiser.py, line {line})" if type(line) is int else ""
    cls = type(name if name.isidentifier() else "Error", (StudentError,), {})
    error = cls(f"{text}{where}".strip())
    error.traceback = str(reply.get("traceback", ""))[-4000:]
    raise error


class RemoteDenoiser(Denoiser):
    """A denoiser that lives in a worker; `remote_class` makes its subclasses.

    It has proxies for just those methods that the student's denoiser replaces: for the
    others the base class serves, and a check that asks whether there is a penalty gets
    the right answer.
    """

    def __init__(self, session, params):
        self._session, self._params, self._number = session, params, None
        self._make()

    def __repr__(self):
        params = (self._params or {}).items()
        shown = ", ".join(f"{name}={value!r}" for name, value in params)
        return f"{type(self).__name__}({shown})"

    def _make(self):
        """Return the number of the student's object in the worker.

        The object is made if there is none, or if the worker has been restarted.
        """
        session = self._session
        alive = session.place is not None
        if self._number is None or not alive or self._number[0] != session.generation:
            if self._params is None:
                raise NotRun("what the denoiser had learned was lost when the submission was restarted")
            name = type(self).__name__
            self._know(session.ask("new", name=name, params=self._params))
        return self._number[1]

    def _know(self, reply):
        """Keep what the worker says about an object that it has made."""
        self._number = self._session.generation, reply.get("object")
        self.precision = reply.get("precision")
        own = reply.get("overrides")
        for method, proxy in PROXIES.items():
            if isinstance(own, list) and method in own:
                vars(self)[method] = MethodType(proxy, self)

    def _call(self, method, *arguments):
        """Return the answer of a method, and what it wrote into its arguments."""
        arguments = [np.asarray(value) for value in arguments]
        number = self._make()
        reply = self._session.ask("call", number=number, method=method, arguments=arguments)
        changed = reply.get("changed")
        for k, value in enumerate(arguments):
            new = changed.get(str(k)) if isinstance(changed, dict) else None
            same_shape = isinstance(new, np.ndarray) and new.shape == value.shape
            if same_shape and value.flags.writeable:
                value[...] = new
        return reply.get("result")

    def estimate(self, P, r, F):
        """Return the student's estimate."""
        return _array(self._call("estimate", P, r, F), "estimate", np.shape(P))


def _array(value, method, shape):
    """Return an answer if it has the shape that it must have.

    A larger one could be too much for what the checks do with it.
    """
    if not isinstance(value, np.ndarray):
        raise BadAnswer(f"{method} did not return an array")
    if value.shape != shape:
        raise BadAnswer(f"{method} has shape {value.shape}, expected {shape}")
    return value


def _mean_jacobian(self, P, r, F):
    value = self._call("mean_jacobian", P, r, F)
    return _array(value, "mean_jacobian", np.shape(F))


def _number(method):
    def call(self, *arguments):
        value = self._call(method, *arguments)
        if not isinstance(value, np.ndarray) or value.size != 1:
            raise BadAnswer(f"{method} did not return a number")
        return value.item()

    return call


def _denoise(self, P, r, F):
    pair = self._call("denoise", P, r, F)
    if not (isinstance(pair, list) and len(pair) == 2):
        raise BadAnswer("denoise did not return a pair (estimate, mean Jacobian)")
    shapes = np.shape(P), np.shape(F)
    return tuple(
        _array(value, f"{name} of denoise", shape)
        for value, name, shape in zip(pair, ("the estimate", "the Jacobian"), shapes, strict=True)
    )


def _derived(method):
    def derive(self, *arguments):
        arguments = [np.asarray(value) for value in arguments]
        number = self._make()
        reply = self._session.ask("derive", number=number, method=method, arguments=arguments)
        name = str(reply.get("name"))[:60]
        new = object.__new__(_proxy_class(name))
        # it has learned: parameters cannot make it again
        new._session, new._params = self._session, None
        new._know(reply)
        return new

    return derive


PROXIES = {
    "mean_jacobian": _mean_jacobian,
    "denoise": _denoise,
    "penalty": _number("penalty"),
    "convexity": _number("convexity"),
    "refit": _derived("refit"),
    "frozen": _derived("frozen"),
}


def remote_class(session, name):
    """Return a subclass of `Denoiser` that stands for the student's class `name`."""
    names = session.ask("describe", name=name).get("ready_made")
    proxy = _proxy_class(name)
    proxy.ready_made = tuple(map(str, names if isinstance(names, list) else ()))
    return proxy


def _proxy_class(name):
    return type(name, (RemoteDenoiser,), {})


def count_remote_lines(denoiser, method, *arguments):
    """Return `(lines, seconds)` as `amptutorial.checks.count_lines` does.

    The seconds are those of the judge's clock.
    """
    started = time.perf_counter()
    session, number, arguments = denoiser._session, denoiser._make(), list(arguments)
    reply = session.ask("count_lines", number=number, method=method, arguments=arguments)
    if type(reply.get("lines")) is not int:
        raise BadAnswer("the lines could not be counted")
    return reply["lines"], time.perf_counter() - started
