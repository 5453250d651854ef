"""Slices of rows, for what would not fit in memory as a whole.

`sklearn.utils.gen_batches` yields the same slices, but importing scikit-learn takes
longer than importing everything else that the algorithm needs.
"""


def blocks(n, size):
    """Yield slices of at most `size` rows, and of at least one, that cover `n` rows.

    Examples
    --------
    >>> list(blocks(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    >>> list(blocks(2, 0))
    [slice(0, 1, None), slice(1, 2, None)]
    """
    size = max(1, size)
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))
