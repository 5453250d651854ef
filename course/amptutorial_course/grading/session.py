"""The judge's side: a session with the worker, and denoisers that ask the worker."""

import copy
import os
import signal
import socket
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial

import numpy as np

from amptutorial.checks.verdict import count
from amptutorial.denoisers import Denoiser

from . import isolation
from .worker import protocol

# Seconds on the wall for each of the processor that a submission may take: who waits, or has found a way to stop the
# processor's clock, ends by this one. For all answers together a limit can be named.
PATIENCE, WALL = 6, "seconds_on_the_wall"
# on the wall, for Python and its libraries, before any line of the submission
START_SECONDS = 120
# so often a method may give no answer, since one problem may be too large for it; and all methods together
PATIENT, RESTARTS = 2, 5


class StudentError(Exception):
    """What went wrong in a submission, in words for its author.

    Attributes
    ----------
    traceback : str
        The student's own lines.
    """

    traceback = ""


class TimeLimit(StudentError):
    """The worker sent no answer in time, its own or that of the clock on the wall."""


class Crash(StudentError):
    """The process that runs the submission has ended."""


class BadAnswer(StudentError):
    """The worker sent something that is not a valid answer."""


class NotRun(StudentError):
    """The worker was not asked: it crashed or hung too often, or the time is used up."""


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
        One of `grading.KINDS`.
    helpers : dict, optional
        The modules beside it, bytes by their path.
    by_hand : bool
        Whether the denoisers of the package are out of order there.

    Raises
    ------
    StudentError
        From `ask`, if the submission does anything wrong.

    Notes
    -----
    The seconds of the processor are those that the worker reports, and the system ends
    a call that takes too many. Who replaces the worker can report what it likes, and is
    held by the clock on the wall alone, which has `PATIENCE`.
    """

    def __init__(self, source, limits, isolate="none", helpers=None, by_hand=False):
        self.files = {**(helpers or {}), "denoiser.py": source}
        self.limits, self.isolate, self.by_hand = limits, isolate, by_hand
        self.place, self.prediction, self.over, self.timed_out = None, None, None, False
        # used of the processor, that of the last worker among it, and when the wall's clock has the last word
        self.generation, self.seconds, self.clock = 0, 0.0, 0.0
        self.ends = time.monotonic() + seconds_on_the_wall(limits)
        self.lost, self.printed = defaultdict(list), tempfile.TemporaryFile()

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
        if self.over is None and (self.seconds >= self.limits["seconds"] or time.monotonic() >= self.ends):
            self.over, self.timed_out = f"the {self.limits['seconds']:g} s for one submission are used up", True
        if self.over is None and self.place is None:
            self.start()
        if self.over is not None:
            raise NotRun(self.over)
        lost = self.lost[question.get("method")]
        if len(lost) >= PATIENT:
            raise NotRun(f"not asked, because {PATIENT} earlier calls failed: {lost[-1]}")
        return self._exchange({"ask": ask, **question})

    def start(self):
        """Start the worker and let it import the submission."""
        self.generation, self.clock = self.generation + 1, 0.0
        self.channel, theirs = socket.socketpair()
        with theirs:
            self.place = isolation.Place(self.isolate, self.limits, theirs, self.printed)
        files = {n: np.frombuffer(data, np.uint8) for n, data in self.files.items()}
        try:
            reply = self._answer({"ask": "write", "files": files}, START_SECONDS)
        except (EOFError, OSError) as error:
            self.stop()
            raise RuntimeError(f"the worker could not be started: {self.output()}") from error
        except ValueError as error:  # names and files larger than a message
            reply = {"error": "ValueError", "text": str(error)}
        try:
            _without_error(reply)
            self.prediction = self._exchange({"ask": "load", "by_hand": self.by_hand}).get("prediction")
        except StudentError as error:
            self.stop()
            self.over = f"denoiser.py cannot be imported: {type(error).__name__}: {error}"
            raise

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
        started, most = time.monotonic(), self.limits["seconds_per_call"]
        try:
            return _without_error(self._answer(question, min(PATIENCE * most, self.ends - started)))
        except (OSError, EOFError, MemoryError, protocol.Malformed) as error:
            seconds = time.monotonic() - started
            # what it used is not known, but at most this
            self.seconds += min(seconds, most)
            raise self._lost(question, error, seconds) from None

    def _answer(self, question, seconds):
        deadline = time.monotonic() + seconds
        protocol.send(self.channel, question, deadline)
        reply = protocol.receive(self.channel, deadline)
        clock = reply.get("seconds")
        if type(clock) is float and clock > self.clock:
            self.seconds, self.clock = self.seconds + clock - self.clock, clock
        return reply

    def _lost(self, question, error, seconds):
        """Stop a worker that is of no more use, and return what to raise.

        The next question starts another worker, unless there were too many.
        """
        self.stop(patience=1.0 if isinstance(error, EOFError) else 0.0)
        if self.generation > RESTARTS:
            self.over = f"the submission was restarted {RESTARTS} times and failed again"
        name = question.get("method", {"new": "making the denoiser"}.get(question["ask"], "the import"))
        why = self._why(name, question, error, seconds)
        self.lost[name].append(why)
        return why

    def _why(self, name, question, error, seconds):
        """Return the error of a method that gave no answer, in words for its author; note whether time ran out."""
        used_up = isinstance(error, EOFError) and -self.status in (signal.SIGPROF, signal.SIGXCPU)
        if used_up or isinstance(error, TimeoutError):
            self.timed_out, shapes = True, [np.shape(each) for each in question.get("arguments", ())]
            asked = f" for {count(shapes[0][0])}, d = {shapes[0][1]}" if shapes and len(shapes[0]) == 2 else ""
            looped = f"{self.limits['seconds_per_call']:g} s of the processor{asked}: an endless loop?"
            waited = f"{seconds:.0f} s on the wall{asked}: does it wait?"
            return TimeLimit(f"{name} gave no answer within {looped if used_up else waited}")
        if isinstance(error, protocol.Malformed | MemoryError):
            return BadAnswer(f"{name} gave no valid answer: {error}")
        ended = f"exit code {self.status}" if self.status >= 0 else f"signal {-self.status}"
        return Crash(f"{name} ended Python itself ({ended}), by os._exit or a crash in a library")


def _without_error(reply):
    """Return an answer, or raise its error under its own name: so its author would see it."""
    if "error" not in reply:
        return reply
    name, text, line = str(reply["error"])[:60], str(reply.get("text", ""))[:2000], reply.get("line")
    where = f" (denoiser.py, line {line})" if type(line) is int else ""
    error = type(name if name.isidentifier() else "Error", (StudentError,), {})(f"{text}{where}".strip())
    error.traceback = str(reply.get("traceback", ""))[-4000:]
    raise error


def seconds_on_the_wall(limits):
    """Return how long all answers of a submission may take on the wall."""
    return limits.get(WALL, PATIENCE * limits["seconds"])


class RemoteDenoiser(Denoiser):
    """A denoiser that lives in a worker; `remote_class` makes its subclasses.

    It has proxies for just those methods that the student's denoiser replaces: for the
    others the base class serves, and a check that asks whether there is a penalty gets
    the right answer.
    """

    _anew = False

    def __init__(self, session, params):
        self._session, self._params = session, params
        self._number: tuple = ()
        self._make()

    def estimate(self, P, r, F):
        """Return the student's estimate."""
        return self._call("estimate", P, r, F)

    def _make(self):
        """Return the number of the student's object in the worker.

        The object is made if there is none, or if the worker has been restarted.
        """
        session, number = self._session, self._number
        if not number or session.place is None or number[0] != session.generation:
            if self._params is None:
                raise NotRun("what the denoiser had learned was lost when the submission was restarted")
            self._know(session.ask("new", name=type(self).__name__, params=self._params))
        return self._number[1]

    def _know(self, reply):
        """Keep what the worker says about an object that it has made."""
        self._reply, self._number = reply, (self._session.generation, reply.get("object"))
        self.precision = reply.get("precision")
        own = reply.get("overrides")
        for method in own if isinstance(own, list) else ():
            if method in SHAPES:
                vars(self)[method] = partial(self._call, method)
            elif method in ("refit", "frozen"):
                vars(self)[method] = partial(self._derive, method)

    def __deepcopy__(self, memo):
        """Return a denoiser of which each question is asked of a copy: the worker makes and forgets it."""
        self._make()
        new = copy.copy(self)
        new._anew = True
        new._know(self._reply)
        return new

    def _ask(self, ask, method, arguments):
        number = self._make()
        return self._session.ask(ask, number=number, method=method, arguments=arguments, anew=self._anew)

    def _call(self, method, *arguments):
        """Return the answer of a method, and what it wrote into its arguments."""
        arrays = [np.asarray(value) for value in arguments]
        reply = self._ask("call", method, arrays)
        changed = reply.get("changed")
        for k, value in enumerate(arrays):
            new = changed.get(str(k)) if isinstance(changed, dict) else None
            if isinstance(new, np.ndarray) and new.shape == value.shape and value.flags.writeable:
                value[...] = new
        return _checked(reply.get("result"), method, SHAPES[method](*map(np.shape, arrays)))

    def _derive(self, method, *arguments):
        """Return the denoiser that `refit` or `frozen` has made."""
        reply = self._ask("derive", method, [np.asarray(value) for value in arguments])
        new = object.__new__(_proxy_class(str(reply.get("name"))[:60]))
        # it has learned: parameters cannot make it again
        new._session, new._params = self._session, None
        new._know(reply)
        return new


# of the answer of a method, from the shapes of its arguments
SHAPES: dict[str, Callable] = {
    "estimate": lambda P, r, F: P,
    "mean_jacobian": lambda P, r, F: F,
    "denoise": lambda P, r, F: {"the estimate of denoise": P, "the Jacobian of denoise": F},
    "penalty": lambda X, r: (),
    "convexity": lambda r: (),
}


def _checked(value, name, shape):
    """Return an answer if it has the shape that it must have.

    A larger one could be too much for what the checks do with it.
    """
    if isinstance(shape, dict):
        if not (isinstance(value, list) and len(value) == len(shape)):
            raise BadAnswer(f"{name} did not return a pair (estimate, mean Jacobian)")
        return tuple(_checked(one, *part) for one, part in zip(value, shape.items(), strict=True))
    if not isinstance(value, np.ndarray):
        raise BadAnswer(f"{name} did not return an array")
    if shape == () and value.size == 1:
        return value.item()
    if value.shape != shape:
        raise BadAnswer(f"{name} has shape {value.shape}, expected {shape}")
    return value


def remote_class(session, name):
    """Return a subclass of `Denoiser` that stands for the student's class `name`."""
    proxy, names = _proxy_class(name), session.ask("describe", name=name).get("ready_made")
    proxy.ready_made = tuple(map(str, names if isinstance(names, list) else ()))
    return proxy


def _proxy_class(name):
    return type(name, (RemoteDenoiser,), {})


def count_remote_lines(denoiser, method, *arguments):
    """Return the lines of a call, as `amptutorial.checks.count_lines` does."""
    lines = denoiser._ask("count_lines", method, list(arguments)).get("lines")
    if type(lines) is not int:
        raise BadAnswer("the lines could not be counted")
    return lines
