"""How a check says no: an error that no switch of the interpreter turns off.

`python -O` skips every ``assert``. A verdict that depended on one would be "passed"
for any denoiser, so the kit raises `AssertionError` itself, which pytest reports as it
reports a failed ``assert``.
"""

import numpy as np


def require(condition, text):
    """Raise `AssertionError` with the message `text` unless `condition` holds.

    Examples
    --------
    >>> require(1 + 1 == 3, "the sum is wrong")
    Traceback (most recent call last):
        ...
    AssertionError: the sum is wrong
    """
    if not condition:
        raise AssertionError(text)


class Malformed(AssertionError):
    """An answer of a wrong type or shape, of which no other check could make sense."""


class WrongRow(AssertionError):
    """What is wrong with a `row`.

    Its estimate is off by `size` times the right one; other faults are infinite.
    """

    def __init__(self, text, size=np.inf, row=0):
        super().__init__(text)
        self.size, self.row = size, row


def require_rows(name, X, problem, right, allowed, advice="", places=None):
    """Raise unless `X`, the answer of `name` to a problem, is `right` in some rows.

    Parameters
    ----------
    name : str
        What gave the answer, to begin the message with.
    X : array (N, d)
    problem : Problem
    right, allowed : array (k, d), array (k,)
        What it should be in these rows, and by how much it may be off.
    advice : str
    places : array (k,), optional
        The rows; all if left out.

    Raises
    ------
    WrongRow
        With the row that is farthest off.
    """
    require_array(X, name, problem.P.shape)
    places = np.arange(len(X)) if places is None else places
    far = np.linalg.norm(X[places] - right, axis=1)
    k = np.where(np.isnan(far), np.inf, far / allowed).argmax()
    if far[k] <= allowed[k]:
        return  # to write the text below would take longer than to ask
    i = places[k]
    found, expected = short_pair(X[i], right[k])
    overflow = " (an overflow? 0 / 0?)" if np.isnan(far[k]) else ""
    raise WrongRow(
        f"row {i}, {row_of(problem, i)}: {name} gives {found}, expected {expected}"
        f"{overflow}{advice}",
        far[k] / (np.linalg.norm(right[k]) + allowed[k]),
        i,
    )


def row_of(problem, i):
    """Return a row as a text."""
    return f"p = {short(problem.P[i])}, r = {problem.r[i]:.4g}"


def noise(X):
    """Return by how much two answers for the rows `X` may differ by round-off."""
    return 1e-6 * np.linalg.norm(X, axis=1) + 1e-8 * (1 + np.abs(X).max(initial=0.0))


def require_jacobian(name, J, right, tolerance, N, source):
    """Raise unless `J`, the answer of the method `name` for N rows, is `right`.

    The message names the entry that is farthest off, the `source` of what is right, and
    the common mistake that explains the difference.
    """
    require_array(J, name, right.shape)
    error = np.abs(J - right)
    if (error <= tolerance).all():
        return
    k, l = np.unravel_index(np.where(np.isnan(error), np.inf, error).argmax(), J.shape)  # noqa: E741
    hints = {
        "; its transpose fits: [k, l] is d estimate_l / d P_k": J.T,
        "; its negative fits": -J,
        "; it fits after division by N: the Jacobian is a mean over the rows, not a "
        "sum": J / N,
        "; it fits after multiplication by N: it was divided by N twice": J * N,
    }
    fits = (h for h, value in hints.items() if np.abs(value - right).max() <= tolerance)
    text = f"{name}[{k}, {l}] is {J[k, l]:.6g}, {source} {right[k, l]:.6g}"
    raise AssertionError(text + next(fits, ""))


def setting_of(error, title):
    """Return the setting in which a check failed, to begin its message with.

    A note of the error names it where there were several.

    Examples
    --------
    >>> setting_of(AssertionError("it is wrong"), "d = 1"), setting_of(KeyError(), "")
    ('d = 1: ', '')
    """
    titles = getattr(error, "__notes__", [title])
    return "".join(f"{title}: " for title in titles if title)


def require_array(value, method, shape):
    """Return `value` if it is an array of double precision that has this shape.

    Other kinds compute otherwise: a product of matrices is none of entries, and
    differences of single precision are round-off.

    Examples
    --------
    >>> require_array([1.0, 2.0], "estimate", (2,))
    Traceback (most recent call last):
        ...
    amptutorial.checks.verdict.Malformed: estimate returns a list; return an array of \
shape (2,)
    """
    if type(value) is np.ndarray and value.shape == shape and value.dtype == float:
        return value
    doubles = getattr(value, "dtype", None) in (None, np.float64)
    right = f"an array of {'' if doubles else 'float64 and of '}shape {shape}"
    raise Malformed(f"{method} returns {_what(value)}; return {right}")


def require_pair(value):
    """Return `value` if it is a pair, as what `denoise` returns has to be."""
    if isinstance(value, tuple | list) and len(value) == 2:
        return value
    right = "a pair, (estimate, mean_jacobian)"
    raise Malformed(f"denoise returns {_what(value)}; return {right}")


def require_number(value, method):
    """Return `value` as a float if it is a number with the digits of one.

    Examples
    --------
    >>> require_number(np.array([2.0]), "penalty")
    Traceback (most recent call last):
        ...
    amptutorial.checks.verdict.Malformed: penalty returns an array of shape (1,); \
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


def require_same(parts, others, text, tolerance=1e-6):
    """Raise unless the arrays in two lists agree, relative to the largest entries."""
    for a, b in zip(parts, others, strict=True):
        scale = 1 + np.abs(b).max(initial=0.0)
        require(np.allclose(a, b, tolerance, tolerance / 100 * scale), text)


def short(row, digits=4):
    """Return a row as a text with four digits in every entry, however small.

    Examples
    --------
    >>> short(np.array([1.23456e-7, -2.0]))
    '[1.235e-07 -2]'
    """
    shown = f"{{:.{digits}g}}".format
    return np.array2string(np.asarray(row), formatter={"float": shown})


def short_pair(a, b):
    """Return two rows as texts, with as many digits as it takes to tell them apart.

    Examples
    --------
    >>> short_pair(np.array([1.23, 0.0]), np.array([1.23012, 0.0]))
    ('[1.23 0]', '[1.2301 0]')
    """
    for digits in range(4, 17):
        texts = short(a, digits), short(b, digits)
        if texts[0] != texts[1]:
            break
    return texts
