"""Rates without an embedding: a row is expected to be like the rows nearest to it.

Where rows come in families, a family is a direction of its own, and no few components
hold them all. The counts of its other members say more than any vector.
"""

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer

from . import _validation as door
from .bias import drop_empty, margins, same_pairs, without_gaps
from .channels import CHANNELS

SWEEPS, MISSED = 100, 1e-4  # at most; of the margins
TINY = np.finfo(np.float32).tiny


def neighbour_rates(
    Z, power: float = 4.0, *, share: float = 0.1, channel: str = "damped"
) -> np.ndarray:
    """Return rates of all pairs, each row predicted by the rows nearest to it.

    The rate of a column is its mean share in all other rows, weighted by a power of the
    cosine between their tf-idf and that of the row. No row predicts itself. A share of
    independence is added, and rows and columns are scaled to the margins of the counts.

    Of a table without gaps, the rates of an `AMPEmbedding` have the same margins, and
    so has a mixture like ``0.5 * model.predict_rates() + 0.5 * neighbour_rates(Z)``.
    Which weights and which power are best, hidden pairs say
    (`amptutorial.heldout.split_pairs`).

    Parameters
    ----------
    Z : array or sparse array (m, n)
        Counts. NaN is a pair that was not observed: it has no part in the means. No row
        and no column may be empty.
    power : float
        The larger, the more the nearest rows count.
    share : float
        Of independence, above 0 and below 1.
    channel : {"damped", "counts"}
        What shares and cosines are made of; for text, damped counts.

    Returns
    -------
    array (m, n)
        In single precision; so much memory, and that of all pairs of rows, is needed.

    Raises
    ------
    ValueError
        For invalid counts, an empty row or column, or numbers out of their range.

    Examples
    --------
    >>> Z = np.array([[3, 2, 0, 0], [2, 0, 0, 0], [0, 0, 4, 1], [0, 0, 5, 0]])
    >>> neighbour_rates(Z, channel="counts").round(1)
    array([[4.3, 0.2, 0.4, 0. ],
           [0.5, 1.4, 0.1, 0. ],
           [0.1, 0.2, 4.7, 0. ],
           [0.1, 0.2, 3.8, 0.9]])
    """
    Z = sp.csr_array(door.check_counts(Z, gaps=True), dtype=np.float64)
    door.check_positive(power, "power")
    door.check_positive(share, "share", below=1)
    if drop_empty(Z)[0].shape != Z.shape:
        raise ValueError("Z has an empty row or column: leave it out, with drop_empty")
    law = CHANNELS[door.check_choice(channel, "channel", ("damped", "counts"))]
    table = same_pairs(Z, law.bursts(Z.data, 0.0))
    ratios = neighbour_ratios(table, power, cosines_of_rows(table))
    rows, columns = margins(Z)
    ratios = balanced((1 - share) * ratios + np.float32(share), rows, columns)
    return ratios * rows[:, None].astype(np.float32) * (columns / columns.sum())


def cosines_of_rows(Z):
    """Return the cosines between the tf-idf of the rows of a csr_array, 0 with itself.

    Examples
    --------
    >>> cosines_of_rows(sp.csr_array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]]))
    array([[0., 1., 0.],
           [1., 0., 0.],
           [0., 0., 0.]], dtype=float32)
    """
    unit = TfidfTransformer().fit_transform(without_gaps(Z)[0])
    cosines = (unit @ unit.T).toarray().astype(np.float32)
    np.fill_diagonal(cosines, 0)
    return cosines


def neighbour_ratios(Z, power, cosines):
    """Return mean shares of the columns in near rows, over those in all counts (m, n).

    Examples
    --------
    >>> Z = sp.csr_array([[4.0, 4.0], [2.0, 6.0], [1.0, np.nan]])
    >>> neighbour_ratios(Z, 1.0, np.ones((3, 3), np.float32) - np.eye(3)).round(2)
    array([[0.83, 1.2 ],
           [1.17, 0.8 ],
           [1.  , 1.  ]], dtype=float32)
    """
    rows, columns = margins(Z)
    observed, gaps = without_gaps(Z)
    weights = (cosines**power).astype(np.float32)
    total = weights.sum(axis=0)
    if gaps is not None:
        total = total - gaps.T.astype(np.float32) @ weights
    shares = sp.csr_array(observed.T / rows, dtype=np.float32)
    found = (shares @ weights) / np.maximum(total, TINY)
    return found.T / (columns / columns.sum()).astype(np.float32)


def balanced(ratios, rows, columns):
    """Return ratios (m, n) to independence, scaled until the rates have these margins.

    Examples
    --------
    >>> balanced(np.array([[2.0, 1.0], [1.0, 2.0]]), np.ones(2), np.ones(2)).round(3)
    array([[1.333, 0.667],
           [0.667, 1.333]])
    """
    p, q = ((sums / sums.sum()).astype(ratios.dtype) for sums in (rows, columns))
    by_column = np.ones_like(q)
    for _ in range(SWEEPS):
        by_row = 1 / (ratios @ (q * by_column))
        sums = by_column * ((p * by_row) @ ratios)
        by_column = by_column / sums
        if q @ np.abs(sums - 1) < MISSED:
            break
    return by_row[:, None] * ratios * by_column
