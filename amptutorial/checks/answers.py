"""How a denoiser is asked, and what it may return."""

import copy
import itertools
import sys
import sysconfig
import threading

import numpy as np

from ..denoisers import Denoiser

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

    Examples
    --------
    >>> from amptutorial.denoisers import Ridge
    >>> ask(Ridge(1.0), "denoise", (np.ones((1, 1)), np.ones(1), np.eye(1)))
    {'denoise(P, r, F)[0]': array([[0.5]]), 'denoise(P, r, F)[1]': array([[0.5]])}
    """
    answer = getattr(denoiser, method)(*arrays)
    if method != "denoise":
        return {method: answer}
    if not (isinstance(answer, tuple | list) and len(answer) == 2):
        right = "return a pair, (estimate, mean_jacobian)"
        raise Malformed(f"denoise returns {_what(answer)}; {right}")
    return {f"denoise(P, r, F)[{k}]": array for k, array in enumerate(answer)}


class Malformed(AssertionError):
    """An answer of a wrong type or shape, of which no other check could make sense."""


def require_array(value, method, shape):
    """Return `value` if it is an array of double precision that has this shape.

    Other kinds compute otherwise: a product of matrices is none of entries, and
    differences of single precision are round-off.

    Examples
    --------
    >>> require_array([1.0, 2.0], "estimate", (2,))
    Traceback (most recent call last):
        ...
    amptutorial.checks.answers.Malformed: estimate returns a list; return an array of \
shape (2,)
    """
    if type(value) is np.ndarray and value.shape == shape and value.dtype == float:
        return value
    doubles = getattr(value, "dtype", None) in (None, np.float64)
    right = f"an array of {'' if doubles else 'float64 and of '}shape {shape}"
    raise Malformed(f"{method} returns {_what(value)}; return {right}")


def require_number(value, method):
    """Return `value` as a float if it is a number with the digits of one.

    Examples
    --------
    >>> require_number(np.array([2.0]), "penalty")
    Traceback (most recent call last):
        ...
    amptutorial.checks.answers.Malformed: penalty returns an array of shape (1,); \
return a float
    """
    if isinstance(value, float | int | np.generic | np.ndarray):
        array = np.asarray(value)
        is_exact = array.dtype.kind == "i" or array.dtype == float
        if array.shape == () and is_exact and not np.isnan(array):
            return float(array)
    raise Malformed(f"{method} returns {_what(value)}; return a float")


def _what(value):
    """Return what an answer is, in words."""
    if type(value) is np.ndarray:
        kind = "" if value.dtype == float else f" and dtype {value.dtype}"
        return f"an array of shape {value.shape}{kind}"
    if value is None or isinstance(value, float):
        return str(value)
    name = type(value).__name__
    return f"a{'n' * (name[0] in 'aeiou')} {name}"


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
