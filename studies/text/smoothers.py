"""Rivals of AMP without vectors: rates of similar rows, or of words met together.

All give a share to independence, and have the margins of the counts. A mixture of AMP
and the rows nearest to a row has both: vectors, and what no few of them hold.
"""

from functools import lru_cache

import numpy as np

from amptutorial.bias import margins
from amptutorial.smoothing import cosines_of_rows, neighbour_ratios

from .rates import EMPTY, TABLES, choose, mixed
from .rivals import amp
from .topic_models import SHARES

# of the cosine of two rows; of a ratio to independence
COSINE_POWERS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)
RATIO_POWERS = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)
AMP_SHARES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
LEAST_SHARE = 1e-3  # of independence, for pairs that no neighbour has


def row_neighbours(kept, d, rng):
    """Predict a row by the rows nearest to it; see `amptutorial.smoothing`.

    There is no embedding, and `d` says nothing.
    """

    def fit(counts, table, _):
        ratios = _neighbours(table)
        return lambda power, share: mixed(counts, (1 - share, ratios(power)), (share, 1))

    settings = {"power": COSINE_POWERS, "share": SHARES}
    return choose(fit, settings, kept, rng, TABLES)


def _neighbours(table):
    """Return a function of the power to `neighbour_ratios`, which keeps the last."""
    cosines = cosines_of_rows(table)
    return lru_cache(1)(lambda power: neighbour_ratios(table, power, cosines))


def amp_and_neighbours(kept, d, rng):
    """Mix the rates of AMP with those of `row_neighbours`; choose the share of AMP."""
    seed = int(rng.integers(2**31))

    def of_amp(counts):
        rates = amp(counts, d, np.random.default_rng(seed))
        rows, columns = margins(counts)
        ratios = np.exp(rates.U @ rates.V.T / np.sqrt(len(rates.U)))
        ratios *= (rates.r_u / rows * rows.sum())[:, None] * (rates.r_v / columns)
        return rates, ratios.astype(np.float32)

    def fit(counts, table, _):
        (rates, ratios), near = of_amp(counts), _neighbours(table)

        def mixture(power, amp_share):
            parts = (amp_share, ratios), (1 - amp_share, near(power)), (LEAST_SHARE, 1)
            return mixed(counts, *parts, U=rates.U, V=rates.V)

        return mixture

    settings = {"power": COSINE_POWERS, "amp_share": AMP_SHARES}
    return choose(fit, settings, kept, rng, TABLES)


def word_walk(kept, d, rng):
    """Predict a row by the words that occur with its words.

    From each count of a row, a step to a word of another count beside it in any row, in
    proportion to how often the two meet. The ratios to independence are taken to a
    power. There is no embedding, and `d` says nothing.
    """

    def fit(counts, table, _):
        rows, columns = margins(table)
        together = (table.T @ table).toarray()
        np.fill_diagonal(together, 0)
        together /= np.maximum(together.sum(axis=1, keepdims=True), 1e-300)
        met = (table @ together) / rows[:, None] / (columns / columns.sum())
        met = met.astype(np.float32)
        return lambda power, share: mixed(counts, (1 - share, met**power), (share, 1))

    settings = {"power": RATIO_POWERS, "share": SHARES}
    return choose(fit, settings, kept, rng, EMPTY)
