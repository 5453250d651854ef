"""How a check says no: an error that no switch of the interpreter turns off.

`python -O` skips every ``assert``. A verdict that depended on one would be "passed"
for any denoiser, so the kit raises `AssertionError` itself, which pytest reports as it
reports a failed ``assert``.
"""

from itertools import product

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
    raise Malformed(f"{method} returns {what(value)}; return {right}")


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
    raise Malformed(f"{method} returns {what(value)}; return a float")


def what(value):
    """Return what an answer is, in words."""
    if type(value) is np.ndarray:
        kind = "" if value.dtype == float else f" and dtype {value.dtype}"
        return f"an array of shape {value.shape}{kind}"
    if value is None or isinstance(value, float):
        return str(value)
    name = type(value).__name__
    return f"a{'n' * (name[0] in 'aeiou')} {name}"


class WrongRow(AssertionError):
    """What is wrong with a `row`, of which the `problem` is the row alone.

    Its estimate is off by `size` times the right one.
    """

    def __init__(self, text, size, row, problem):
        super().__init__(text)
        self.size, self.row, self.problem = size, row, problem


def require_rows(name, X, problem, right, allowed=None, places=None, advice=""):
    """Raise unless `X`, the answer of `name` to a problem, is `right` in some rows.

    Parameters
    ----------
    name : str
        What gave the answer, to begin the message with.
    X : array (N, d)
    problem : Problem
    right, allowed : array (k, d), array (k,)
        What it should be in these rows, and by how much it may be off: by round-off if
        that is left out.
    places : array (k,), optional
        The rows; all if left out.
    advice : str or callable (float) -> str
        To end the message with, or what says it when it is told the `WrongRow.size`.

    Raises
    ------
    WrongRow
        With the row that is farthest off.
    """
    require_array(X, name, problem.P.shape)
    places = np.arange(len(X)) if places is None else places
    lengths = np.linalg.norm(right, axis=1)
    if allowed is None:
        allowed = 1e-6 * lengths + 1e-8 * (1 + np.abs(right).max(initial=0.0))
    far = np.linalg.norm(X[places] - right, axis=1)
    is_wrong = ~(far <= allowed)  # or no number
    if not is_wrong.any():
        return  # to write the text below would take longer than to ask
    excess = np.nan_to_num(far / (allowed + 1e-200), nan=np.inf)
    k = np.where(is_wrong, excess, 0).argmax()
    i, overflow = places[k], " (an overflow? 0 / 0?)" if np.isnan(far[k]) else ""
    size = np.nan_to_num(far[k] / (lengths[k] + allowed[k] + 1e-200), nan=np.inf)
    found, expected = short_pair(X[i], right[k])
    text = f"row {i}, {row_of(problem, i)}: {name} gives {found}, expected {expected}"
    hint = advice(size) if callable(advice) else advice
    raise WrongRow(text + overflow + hint, size, i, problem.rows([i]))


def require_penalty(belief, denoiser, X, problem):
    """Raise unless the penalty of the estimates `X` is the belief's, and its convexity.

    Rows that may not be allowed are tried among them: p, and the nearest that is
    allowed, each entry moved out by a millionth of the largest.
    """
    P, r, root = problem.P, problem.r, np.sqrt(problem.r)[:, None]
    c = require_number(denoiser.convexity(r.copy()), "convexity")
    stated = belief.convexity
    right = min(c, _bend(belief, P, root)) if stated is None else stated / r.max()
    require(
        np.isclose(c, right, rtol=1e-6, atol=0),
        f"convexity(r) = {c:.6g} is too {'small' if c < right else 'large'} for "
        f"{count(len(r))} with r from {r.min():.6g} to {r.max():.6g}: the largest c "
        f"for which g(x / sqrt(r)) - c |x|^2 / 2 is convex in every row is {right:.6g}."
        " AMP lets eigenvalues of F fall to -c, and raises those below",
    )
    nearest = belief.nearest(P, r)
    lengths = np.abs(nearest).max(axis=1, keepdims=True)
    outside = nearest + 1e-6 * np.sign(P - nearest) * lengths
    for some, i in product((X, P, outside), (r.argmin(), len(r) // 2)):
        rows = X.copy()
        rows[i] = some[i]
        value = require_number(denoiser.penalty(rows.copy(), r.copy()), "penalty")
        right = belief.value(rows / root).sum()
        require(
            np.isclose(value, right, rtol=1e-8, atol=1e-12),
            f"penalty is {value:.9g} for {count(len(r))}, and the sum of "
            f"g(x_i / sqrt(r_i)) is {right:.9g}; row {i} is x = {short(rows[i], 9)}, "
            f"r = {r[i]:.4g}",
        )


def _bend(belief, P, root):
    """Return the least bend of g from p to 2 p, where g is finite, or infinity.

    No c for which g(x / sqrt(r)) - c |x|^2 / 2 is convex is larger.
    """
    start, middle, end = (belief.value(t * P / root) for t in (1, 1.5, 2))
    bends = 8 * ((start + end) / 2 - (1 - 1e-9) * middle) / (P**2).sum(axis=1)
    return np.maximum(bends, 0)[np.isfinite(bends)].min(initial=np.inf)


def count(N):
    """Return a number of rows as a text."""
    return "1 row" if N == 1 else f"{N} rows"


def row_of(problem, i):
    """Return a row as a text, with the F of few dimensions."""
    F = f", F = {' '.join(short(problem.F).split())}" if len(problem.F) <= 3 else ""
    return f"p = {short(problem.P[i])}, r = {problem.r[i]:.4g}{F}"


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
    digits = next((k for k in range(4, 16) if short(a, k) != short(b, k)), 16)
    return short(a, digits), short(b, digits)
