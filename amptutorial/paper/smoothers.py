"""Rivals of AMP without vectors: rates of similar rows, or of words met together.

Both give every pair a rate of its own, (1 - share) times what they say and share times
what independence says, and scale the rows and columns to the margins of the counts.
"""

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer

from ..bias import margins, without_gaps
from .rates import BALANCED, EMPTY, TABLES, Rates, choose
from .topic_models import SHARES

# of the cosine of two rows; of a ratio to independence
COSINE_POWERS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)
RATIO_POWERS = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)
MISSED = 1e-4  # of the margins


@dataclass(frozen=True)
class Ratios(Rates):
    """Rates of all pairs, without vectors, with the margins of the kept counts."""

    ratios: np.ndarray  # (m, n): over those of independence
    chosen: dict = field(default_factory=dict)  # the settings that hidden pairs chose
    own_gain: float = 0.0  # by these pairs

    def of_pairs(self, pairs):
        """See `Rates.of_pairs`."""
        return np.log(self.ratios[pairs.i, pairs.j], dtype=np.float64)


def balanced(ratios, counts):
    """Return `Ratios` in proportion to an array (m, n), with the margins of the counts.

    Examples
    --------
    >>> rates = balanced(np.array([[2.0, 1.0], [1.0, 2.0]]), np.ones((2, 2)))
    >>> rates.ratios.round(3)
    array([[1.333, 0.667],
           [0.667, 1.333]])
    """
    rows, columns = (sums / sums.sum() for sums in margins(counts))
    rows, columns = rows.astype(ratios.dtype), columns.astype(ratios.dtype)
    by_column = np.ones_like(columns)
    for _ in range(BALANCED):
        by_row = 1 / (ratios @ (columns * by_column))
        sums = by_column * ((rows * by_row) @ ratios)
        by_column = by_column / sums
        if columns @ np.abs(sums - 1) < MISSED:
            break
    return Ratios(by_row[:, None] * ratios * by_column)


def row_neighbours(kept, d, rng):
    """Predict a row by the other rows, weighted by powers of cosines of their tf-idf.

    The rate of a word is its mean share of those rows in which it was not hidden.
    There is no embedding, and `d` says nothing.
    """

    def fit(counts, table, _):
        rows, columns = margins(table)
        observed, gaps = without_gaps(table)
        unit = TfidfTransformer().fit_transform(observed)
        cosines = (unit @ unit.T).toarray().astype(np.float32)
        np.fill_diagonal(cosines, 0)
        shares = sp.csr_array(observed.T / rows, dtype=np.float32)

        @lru_cache(1)
        def ratios(power):
            weights = cosines**power
            total = weights.sum(axis=0)
            if gaps is not None:
                total = total - gaps.T.astype(np.float32) @ weights
            found = (shares @ weights) / np.maximum(total, np.finfo(np.float32).tiny)
            return found.T / (columns / columns.sum()).astype(np.float32)

        return lambda power, share: balanced(
            (1 - share) * ratios(power) + np.float32(share), counts
        )

    settings = {"power": COSINE_POWERS, "share": SHARES}
    return choose(fit, settings, kept, rng, TABLES)


def word_walk(kept, d, rng):
    """Predict a row by the words that occur with its words.

    From each count of a row, a step to a word of another count beside it in any row,
    in proportion to how often they meet. The ratios to independence are taken to a
    power. There is no embedding, and `d` says nothing.
    """

    def fit(counts, table, _):
        rows, columns = margins(table)
        together = (table.T @ table).toarray()
        np.fill_diagonal(together, 0)
        together /= np.maximum(together.sum(axis=1, keepdims=True), 1e-300)
        found = (table @ together) / rows[:, None] / (columns / columns.sum())
        found = found.astype(np.float32)
        return lambda power, share: balanced(
            (1 - share) * found**power + np.float32(share), counts
        )

    settings = {"power": RATIO_POWERS, "share": SHARES}
    return choose(fit, settings, kept, rng, EMPTY)
