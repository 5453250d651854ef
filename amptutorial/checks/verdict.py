"""How a check says no: an error that no switch of the interpreter turns off.

`python -O` skips every ``assert``. A verdict that depended on one would be "passed"
for any denoiser, so the kit raises `AssertionError` itself, which pytest reports as it
reports a failed ``assert``.
"""

import numpy as np


def require(condition, text):
    """Raise `AssertionError` with the message `text` unless `condition` holds.

    Raises
    ------
    AssertionError

    Examples
    --------
    >>> require(1 + 1 == 2, "the sum is wrong")
    >>> require(1 + 1 == 3, "the sum is wrong")
    Traceback (most recent call last):
        ...
    AssertionError: the sum is wrong
    """
    if not condition:
        raise AssertionError(text)


def require_close(a, b, text, rtol=1e-6):
    """Raise unless `a` and `b` agree, relative to the largest entry of `b`."""
    scale = 1 + np.abs(b).max(initial=0.0)
    require(np.allclose(a, b, rtol=rtol, atol=rtol / 100 * scale), text)


def short(row):
    """Return a row as a text with four digits in every entry, however small.

    Examples
    --------
    >>> short(np.array([1.23456e-7, -2.0]))
    '[1.235e-07 -2]'
    """
    return np.array2string(np.asarray(row), formatter={"float": "{:.4g}".format})
