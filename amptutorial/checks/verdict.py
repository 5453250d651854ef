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


def require_close(a, b, text, rtol=1e-6):
    """Raise unless `a` and `b` agree, relative to the largest entry of `b`.

    Where an answer is nan the message begins with that, and not with what it leads to.

    Examples
    --------
    >>> require_close(np.full(2, np.nan), np.zeros(2), "they differ")
    Traceback (most recent call last):
        ...
    AssertionError: an answer is nan (an overflow? 0 / 0?). Compared was: they differ
    """
    if np.isnan(a).any() or np.isnan(b).any():
        text = f"an answer is nan (an overflow? 0 / 0?). Compared was: {text}"
    scale = 1 + np.abs(b).max(initial=0.0)
    require(np.allclose(a, b, rtol=rtol, atol=rtol / 100 * scale), text)


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
