"""What a check is given: a denoiser, how it is asked, rows, and its belief."""

import copy
import inspect
import itertools
import sys
import sysconfig
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np

from .._validation import check_rng
from ..denoisers import Denoiser, check_is_denoiser
from .beliefs import Belief, OwnPenalty, Unstated
from .problems import SHORT, Problem, draw_problem
from .verdict import Malformed, require_array, what

METHODS = "estimate", "mean_jacobian", "denoise"
# what returns a Jacobian, as messages call it, and its method
JACOBIANS = {"mean_jacobian": "mean_jacobian", "denoise(P, r, F)[1]": "denoise"}
LIBRARIES = tuple(map(sysconfig.get_path, "stdlib platstdlib purelib platlib".split()))


def is_own(denoiser, method):
    """Say whether a method is other than that of the base class.

    It may hang on the denoiser itself, as a function made in its constructor does.

    Examples
    --------
    >>> from amptutorial.denoisers import Ridge
    >>> is_own(Ridge(1.0), "penalty"), is_own(Ridge(1.0), "refit")
    (True, False)
    """
    bound = getattr(denoiser, method)
    return getattr(bound, "__func__", bound) is not getattr(Denoiser, method)


def own_methods(denoiser, methods=METHODS):
    """Return those of the methods that are other than the base class's.

    Those of the base class ask `estimate`, often: they keep what that promises.
    """
    return [name for name in methods if is_own(denoiser, name)]


def copied(denoiser):
    """Return a copy of a denoiser, or itself if it holds what cannot be copied.

    Examples
    --------
    >>> from amptutorial.denoisers import Ridge
    >>> one = Ridge(1.0)
    >>> copied(one) is one, copied(one).strength
    (False, 1.0)
    """
    try:
        return copy.deepcopy(denoiser)
    # such as a module or an open file, and whatever else a student keeps on it
    except Exception:  # noqa: BLE001
        return denoiser


def ask(denoiser, method, arrays):
    """Return the arrays that a method returns, by their names.

    Raises
    ------
    Malformed
        If they are no arrays of the right shapes.

    Examples
    --------
    >>> from amptutorial.denoisers import Ridge
    >>> ask(Ridge(1.0), "denoise", (np.ones((1, 1)), np.ones(1), np.eye(1)))
    {'denoise(P, r, F)[0]': array([[0.5]]), 'denoise(P, r, F)[1]': array([[0.5]])}
    """
    P, r, F = arrays
    answer = getattr(denoiser, method)(P, r, F)
    answers = {method: answer}
    if method == "denoise":
        if not (isinstance(answer, tuple | list) and len(answer) == 2):
            right = "return a pair, (estimate, mean_jacobian)"
            raise Malformed(f"denoise returns {what(answer)}; {right}")
        answers = {f"denoise(P, r, F)[{k}]": array for k, array in enumerate(answer)}
    for name, array in answers.items():
        require_array(array, name, (F if name in JACOBIANS else P).shape)
    return answers


class Anew(Denoiser):
    """A denoiser that keeps, writes and learns nothing.

    Each question is asked of a copy of another denoiser, with copies of the arrays. It
    inherits what that one inherits.
    """

    def __init__(self, denoiser):
        self.denoiser, self.precision = denoiser, denoiser.precision
        for method in own_methods(denoiser, (*METHODS, "penalty", "convexity")):
            setattr(self, method, partial(self._ask, method))

    def estimate(self, P, r, F):
        """Return what a copy estimates."""
        return self._ask("estimate", P, r, F)

    def _ask(self, method, *arrays):
        return getattr(copied(self.denoiser), method)(*map(np.copy, arrays))


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
        files = frame.f_code.co_filename, frame.f_back.f_code.co_filename
        inside, from_inside = (file.startswith(LIBRARIES) for file in files)
        # `map` calls a library without a line
        if event == "line" or (inside and not from_inside):
            next(counter)
        return None if inside else trace

    tracers = {module: module.gettrace() for module in (sys, threading)}
    try:
        for module in tracers:
            module.settrace(trace)
        getattr(denoiser, method)(P, r, F)
    finally:
        for module, before in tracers.items():
            module.settrace(before)
    return next(counter)


@dataclass(frozen=True)
class Trial:
    """A denoiser, rows to try it on, and the belief that it should hold.

    ``make(**changes)`` returns the denoiser, with some constructor parameters changed.
    `count_lines` is another one where the denoiser runs in another process.
    """

    make: Callable  # of keyword arguments
    problem: Problem
    stated: Belief | None = None  # the belief; the denoiser's own if left out
    title: str = ""  # which setting this is, where there are several
    count_lines: Callable[..., int] = field(default=count_lines)
    relatives: tuple["Trial", ...] = ()  # of other parameters, for `right_answers`
    seed: int | None = 0  # of that check; None where it asks on behalf of a relative
    n_problems: int = SHORT  # of that check
    call: str = ""  # code that makes the denoiser, where its attributes do not say it

    @property
    def d(self):
        """The length of a row."""
        return self.problem.P.shape[1]

    @cached_property
    def denoiser(self):
        """The denoiser, made on first use, which keeps nothing between two questions.

        A check of what is kept asks one of `make`. A denoiser that cannot be made fails
        the checks, and not the collection of them.
        """
        return Anew(self.make())

    @cached_property
    def belief(self):
        """What the denoiser should believe: what is stated, or its own penalty."""
        if self.stated is not None:
            return self.stated
        one = self.make()
        is_minimiser = one.precision == "argmin" and is_own(one, "penalty")
        return OwnPenalty(one) if is_minimiser else Unstated(precision=one.precision)

    def states(self, what):
        """Say whether the belief states a ``value``, ``prox`` or ``log_partition``."""
        return hasattr(self.belief, what)

    @cached_property
    def entry_size(self):
        """The root mean square of an entry of u, by the law of the belief."""
        u = self.belief.rows.draw((30_000, self.d), rng=np.random.default_rng(0))
        return np.sqrt(np.mean(u**2))

    def estimate(self, problem=None):
        """Return the estimate for `problem`, or for the trial's own."""
        arrays = (problem or self.problem).copies()
        return ask(self.denoiser, "estimate", arrays)["estimate"]

    @cached_property
    def loop(self):
        """What shows that the denoiser takes one row at a time, or an empty text.

        A solver may take more iterations for more rows, up to a point; a loop goes on.
        """
        for method in own_methods(self.denoiser):
            # the same rows again take as many steps
            sizes = (np.arange(N) % len(self.problem.r) for N in (1000, 4000))
            asked = (self.problem.rows(rows).copies() for rows in sizes)
            few, many = (self.count_lines(self.make(), method, *one) for one in asked)
            growth = (many - few) / 3000
            if growth >= 0.5:
                return (
                    f"{method} executes {growth:.1f} lines of Python for every further "
                    f"row, {few} lines for 1000 rows, and {many} for 4000 rows: a loop "
                    "over the rows. Use operations on whole arrays, such as np.einsum, "
                    "broadcasting, or one decomposition of F for all rows"
                )
        return ""


def trial_of(denoiser, *, belief=None, d=3, n_rows=40, rng=None):
    """Return a `Trial` of a denoiser that has been made, on random rows.

    A new denoiser is a copy of this one, which nobody asks: so no copy has what another
    one keeps. What cannot be copied, such as an open file, is asked itself.
    """
    check_is_denoiser(denoiser, "denoiser")
    rng = np.random.default_rng(0) if rng is None else check_rng(rng)
    problem = draw_problem(n_rows, d, rng=rng, rows=belief and belief.rows)
    make, seed = partial(copied, denoiser), int(rng.integers(2**31))
    return Trial(make, problem, belief, seed=seed)


def code_of(denoiser):
    """Return code that makes a denoiser, from the attributes that its class takes.

    Examples
    --------
    >>> from amptutorial.denoisers import GaussianPosterior, Ridge
    >>> class Mine(Ridge):
    ...     pass
    >>> code_of(Mine(0.125))
    'Mine(strength=0.125)'
    """
    names = inspect.signature(type(denoiser)).parameters
    if not all(hasattr(denoiser, name) for name in names):
        return repr(denoiser)
    given = (f"{name}={literal(getattr(denoiser, name))}" for name in names)
    return f"{type(denoiser).__name__}({', '.join(given)})"


def literal(x):
    """Return code for a value; arrays have all their digits."""
    return f"np.array({x.tolist()})" if isinstance(x, np.ndarray) else repr(x)
