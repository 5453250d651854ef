"""How a check says no: an error that no switch of the interpreter turns off.

`python -O` skips every ``assert``. A verdict that depended on one would be "passed"
for any denoiser, so the kit raises `AssertionError` itself, which pytest reports as it
reports a failed ``assert``.
"""

import numpy as np

from .answers import require_array


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


class WrongRow(AssertionError):
    """What is wrong with a `row`, of which the `problem` is the row alone.

    Its estimate is off by `size` times the right one.
    """

    def __init__(self, text, size, row, problem):
        super().__init__(text)
        self.size, self.row, self.problem = size, row, problem


def require_rows(name, X, problem, right, allowed=None, advice="", places=None):
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
    advice : str or callable (float) -> str
        To end the message with, or what says it when it is told the `WrongRow.size`.
    places : array (k,), optional
        The rows; all if left out.

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
    excess = np.nan_to_num(
        far / (allowed + 1e-200), nan=np.inf
    )  # nothing may be allowed
    k = np.where(is_wrong, excess, 0).argmax()
    i, overflow = places[k], " (an overflow? 0 / 0?)" if np.isnan(far[k]) else ""
    size = np.nan_to_num(far[k] / (lengths[k] + allowed[k] + 1e-200), nan=np.inf)
    found, expected = short_pair(X[i], right[k])
    text = f"row {i}, {row_of(problem, i)}: {name} gives {found}, expected {expected}"
    hint = advice(size) if callable(advice) else advice
    raise WrongRow(text + overflow + hint, size, i, problem.rows([i]))


def count(N):
    """Return a number of rows as a text."""
    return "1 row" if N == 1 else f"{N} rows"


def row_of(problem, i):
    """Return a row as a text."""
    return f"p = {short(problem.P[i])}, r = {problem.r[i]:.4g}"


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
