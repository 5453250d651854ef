"""Does the gain tell the truth? Tables of ten kinds, with structure and without, each judged from inside and outside.

    python -m studies.judging                                    # eight seeds of each kind: an hour on one core
    python -m studies.judging --seeds 3 --first 100 --kinds users_strong windows

A tenth of the pairs of each table is not shown to anything: the *outer* pairs. `AMPEmbedding("auto")` is fitted to the
rest and says its *own* gain. The outer gain is that of the same fit on the outer pairs, from the likelihood written out
here: log-ratios of what was counted, minus what the rates exceed those of independence by, zeros included. The same is
done for each channel and some sizes, to see what the choice loses. Where the law is known and the fit has no doubt, the
standard errors of M are compared with how far M is off. Tables without structure are fitted whole: which pass without a
warning?

The sums are printed by kind, and stored in amptutorial/paper/results/judging.json with --store.
"""

import argparse
import json
import warnings
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from tqdm import tqdm

from amptutorial import AMPEmbedding, cooccurrence, load_docstrings, load_movie_reviews
from amptutorial._validation import AMPWarning
from amptutorial.bias import drop_empty, margins
from amptutorial.corpus import docstring_texts

STORED = Path(__file__).parents[1] / "amptutorial/paper/results/judging.json"
OUTER = 0.1
CHANNELS = "counts", "damped"
SIZES = 1, 3, 5, 10, 20
POPULAR = 0.1  # of the columns: those with the most counts


@dataclass(frozen=True)
class Drawn:
    """A table (m, n), NaN where nothing was observed, and the associations it was drawn with; None if unknown."""

    Z: np.ndarray
    M: np.ndarray | None = None


def taste(m, n, deviation, rng, d=3):
    """Return M = U V^T of rank d, whose entries have this standard deviation."""
    U, V = rng.standard_normal((m, d)), rng.standard_normal((n, d))
    return deviation * U @ V.T / np.sqrt(d)


def rated(rows, columns, M, total):
    """Return rates in proportion to rows, columns and exp(M) that add up to a total."""
    rates = np.outer(rows, columns) * np.exp(M)
    return rates * (total / rates.sum())


def popular(M, rng, counts=40):
    """Return rates of users by items: popularity 1 / rank, lognormal activity, so many counts a user."""
    m, n = M.shape
    return rated(np.exp(0.7 * rng.standard_normal(m)), 1 / np.arange(1, n + 1), M, counts * m)


def shuffled(Z, rng):
    """Return counts with about the margins of a table and no association: each count goes to a pair by chance."""
    rows, columns = Z.sum(axis=1), Z.sum(axis=0)
    return rng.poisson(np.outer(rows, columns) / rows.sum()).astype(float)


def part(Z, m, least, rng):
    """Return m rows of a sparse table, drawn at random, and the columns that are frequent enough there."""
    Z = sp.csr_array(Z)[np.sort(rng.permutation(Z.shape[0])[:m])]
    return Z[:, (Z > 0).sum(axis=0) >= least].toarray().astype(float)


@cache
def corpus(name):
    """Return the counts of a corpus."""
    if name == "docstrings":
        return load_docstrings().counts
    if name == "reviews":
        return load_movie_reviews().counts
    return cooccurrence(docstring_texts(), window=5, min_df=40).counts


def from_corpus(name, m, least):
    """Return a kind of table: a part of a corpus; without structure, counts with its margins."""

    def drawn(rng, structure):
        Z = part(corpus(name), m, least, rng)
        return Drawn(Z if structure else shuffled(Z, rng))

    return drawn


def users(deviation):
    """Return a kind of table: users by items, with popularity 1 / rank and tastes of rank three."""

    def drawn(rng, structure):
        M = taste(800, 300, deviation * structure, rng)
        return Drawn(rng.poisson(popular(M, rng)), M)

    return drawn


def cells(rng, structure, m=500, n=600, kinds=5):
    """Cells by genes: kinds of cells, lognormal depths, genes of very different levels, overdispersed counts."""
    M = 0.7 * structure * rng.standard_normal((kinds, n))[rng.integers(kinds, size=m)]
    levels = np.exp(0.5 * rng.standard_normal(m)), np.exp(1.5 * rng.standard_normal(n))
    rates = rated(*levels, M, 600 * m)
    return Drawn(rng.poisson(rates * rng.gamma(2, 1 / 2, rates.shape)))


def contingency(rng, structure, m=60, n=40):
    """A contingency table: few categories, five counts in a cell."""
    M = taste(m, n, 0.3 * structure, rng, d=2)
    sides = (np.exp(0.5 * rng.standard_normal(size)) for size in (m, n))
    return Drawn(rng.poisson(rated(*sides, M, 5 * m * n)), M)


def once(rng, structure):
    """Zeros and ones: whether a user takes an item at all."""
    M = taste(800, 300, 0.8 * structure, rng)
    return Drawn(np.minimum(rng.poisson(popular(M, rng)), 1), M)


def bursts(rng, structure, dispersion=2.0):
    """Users by items, each of whose events repeats itself: negative binomial counts."""
    M = taste(800, 300, 0.8 * structure, rng)
    shape = np.maximum(popular(M, rng) / np.log1p(dispersion), 1e-12)
    return Drawn(rng.negative_binomial(shape, 1 / (1 + dispersion)), M)


def unobserved(by_taste):
    """Return a kind of table: 200 x 80, two counts in a pair, of which some are not observed."""

    def drawn(rng, structure):
        M = taste(200, 80, 0.5, rng, d=2)
        Z = rng.poisson(2 * np.exp(M * structure)).astype(float)
        seen = 1 / (1 + np.exp(0.5 - 4 * M)) if by_taste else np.full(M.shape, 0.5)
        return Drawn(np.where(rng.random(M.shape) < seen, Z, np.nan), M * structure)

    return drawn


def windows(rng, structure, m=400, length=120):
    """Overlapping words of four letters in random sequences of four: events that force each other.

    With structure, the letters of every second sequence follow one another by another law.
    """
    laws = rng.dirichlet(np.full(4, 4.0), (2, 4)) if structure else np.full((2, 4, 4), 0.25)
    Z = np.zeros((m, 256))
    for i, draws in enumerate(rng.random((m, length))):
        letters, sums = [0], laws[i % 2].cumsum(axis=1)
        for draw in draws:
            letters.append(min(3, int(np.searchsorted(sums[letters[-1]], draw))))
        words = np.lib.stride_tricks.sliding_window_view(letters, 4) @ 4 ** np.arange(4)
        Z[i] = np.bincount(words, minlength=256)
    return Drawn(Z)


KINDS = {
    "docstrings": from_corpus("docstrings", 800, 8),
    "reviews": from_corpus("reviews", 1000, 20),
    "words in context": from_corpus("context", 500, 8),
    "users, weak": users(0.3),
    "users": users(0.5),
    "users, strong": users(0.8),
    "cells and genes": cells,
    "contingency": contingency,
    "zeros and ones": once,
    "bursts": bursts,
    "NaN by chance": unobserved(by_taste=False),
    "NaN by taste": unobserved(by_taste=True),
    "windows": windows,
}
# whose law is that of the counts, and its rank
POISSON = {"users, weak": 3, "users": 3, "users, strong": 3, "contingency": 2, "NaN by chance": 2, "NaN by taste": 2}


def table(kind, seed, structure=True):
    """Return a table of a kind without empty rows and columns."""
    rng = np.random.default_rng([seed, list(KINDS).index(kind), structure])
    drawn = KINDS[kind](rng, structure)
    Z, rows, columns = drop_empty(np.asarray(drawn.Z, dtype=float))
    return Drawn(Z, None if drawn.M is None else drawn.M[np.ix_(rows, columns)])


def fitted(Z, d, channel, seed):
    """Return a fit, and whether it warned of doubts."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", AMPWarning)
        model = AMPEmbedding(d, channel=channel, random_state=seed, verbose=False).fit(Z)
    return model, bool(said)


def independent_once(Z, rates):
    """Return probabilities 1 - exp(-r_i c_j) that are most likely given zeros and ones, NaN where none was observed."""
    for _ in range(50):  # bursts expected behind each one, and rates with their margins, in turn
        bursts = np.where(np.isnan(Z), rates, Z * rates / -np.expm1(-rates))
        rates = np.outer(bursts.sum(axis=1), bursts.sum(axis=0)) / bursts.sum()
    return -np.expm1(-rates)


class Outside:
    """A table whose outer pairs are hidden from everything that is fitted."""

    def __init__(self, Z, seed):
        hidden = np.random.default_rng([seed, 77]).random(Z.shape) < OUTER
        shown, self.rows, self.columns = drop_empty(np.where(hidden, np.nan, Z))
        self.shown, some = shown, np.ix_(self.rows, self.columns)
        self.judging, self.Z = hidden[some] & ~np.isnan(Z[some]), np.nan_to_num(Z[some])
        rows, columns = margins(shown)
        self.independent = np.outer(rows, columns) / rows.sum()
        if np.nanmax(Z) <= 1:
            self.independent = independent_once(shown, self.independent)

    def gain(self, model):
        """Return the outer gain of a fit in nats per count, and its two-way standard error."""
        rates, some = model.predict_rates(), self.judging
        with np.errstate(divide="ignore"):
            gains = self.Z * np.log(rates / self.independent)
        gains = np.where(some, np.where(self.Z > 0, gains, 0) - rates + self.independent, 0)
        gain = gains.sum() / self.Z[some].sum()
        off = np.where(some, gains - gain * self.Z, 0)
        squares = [(off.sum(axis=axis) ** 2).sum() for axis in (0, 1)]
        single = (off**2).sum()
        error = np.sqrt(max(sum(squares) - single, single)) / self.Z[some].sum()
        return float(gain), float(error)


def covered(model, outside, M):
    """Return which share of M lies within two standard errors, in popular columns and in the others."""
    M = M[np.ix_(outside.rows, outside.columns)]
    estimate = model.embedding_ @ model.components_ / np.sqrt(len(M))
    rows, columns = (side / side.sum() for side in (model.row_bias_, model.column_bias_))

    def centred(M):
        return M - (M @ columns)[:, None] - rows @ M + rows @ M @ columns

    near = np.abs(centred(estimate) - centred(M)) < 2 * model.standard_errors()
    order = np.argsort(-model.column_bias_)
    first = max(1, round(POPULAR * len(order)))
    return [float(near[:, some].mean()) for some in (order[:first], order[first:])]


def judged(kind, seed):
    """Return the record of a table with structure."""
    drawn = table(kind, seed)
    outside = Outside(drawn.Z, seed)
    model, told = fitted(outside.shown, "auto", "auto", seed)
    record = {"kind": kind, "seed": seed, "d": model.components_.shape[0], "channel": model.channel_, "told": told}
    record |= {"own": [model.heldout_gain_, model.heldout_error_], "outer": outside.gain(model)}
    if kind in POISSON:
        right, doubted = fitted(outside.shown, POISSON[kind], "counts", seed)
        if not doubted:
            record["covered"] = covered(right, outside, drawn.M)
    tried = [(channel, d) for channel in CHANNELS for d in SIZES if d <= min(outside.shown.shape)]
    record["tried"] = {
        f"{channel} {d}": outside.gain(fitted(outside.shown, d, channel, seed)[0])[0] for channel, d in tried
    }
    return record


def by_chance(kind, seed):
    """Return the record of a table without structure: whether it passes without a word."""
    Z, record = table(kind, seed, structure=False).Z, {"kind": kind, "seed": seed}
    for d in ("auto", 1, 10):
        model, told = fitted(Z, d, "auto", seed)
        record[str(d)] = [told, model.heldout_gain_, model.heldout_error_, model.components_.shape[0]]
    return record


def lost(records):
    """Return what the choice of channel and size loses in the mean, against the best of all settings."""
    chosen = np.mean([record["outer"][0] for record in records])
    return max(np.mean([record["tried"][name] for record in records]) for name in records[0]["tried"]) - chosen


def summary(records, nulls):
    """Return the lines of a table: by kind."""
    lines = [f"{'':17}   own  outer  within 2  lost  covered  by chance"]
    for kind in dict.fromkeys(record["kind"] for record in records):
        some = [record for record in records if record["kind"] == kind]
        own, outer = (np.array([record[name] for record in some]) for name in ("own", "outer"))
        near = np.abs(own[:, 0] - outer[:, 0]) <= 2 * np.hypot(own[:, 1], outer[:, 1])
        bars = [record["covered"] for record in some if "covered" in record]
        shares = " ".join(f"{share:.2f}" for share in np.mean(bars, axis=0)) if bars else ""
        passed = [not record[d][0] for record in nulls if record["kind"] == kind for d in ("auto", "1", "10")]
        lines.append(
            f"{kind:17} {own[:, 0].mean():.3f}  {outer[:, 0].mean():.3f}  {near.sum()} of {len(near)}  "
            f"{lost(some):5.3f}  {shares:9}  {sum(passed)} of {len(passed)}"
        )
    return lines


def stored(records, nulls):
    """Return the records as JSON, a line each, to five digits."""
    rounded = json.loads(json.dumps([records, nulls]), parse_float=lambda number: round(float(number), 5))
    parts = (",\n  ".join(map(json.dumps, part)) for part in rounded)
    return '{{\n "tables": [\n  {}\n ],\n "by chance": [\n  {}\n ]\n}}\n'.format(*parts)


def main(arguments=None):
    """Judge the tables asked for, and print the sums."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=8, help="how many tables of each kind")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), metavar="KIND")
    parser.add_argument("--store", action="store_true", help="store the records")
    asked = parser.parse_args(arguments)
    each = [(kind, seed) for kind in asked.kinds for seed in range(asked.first, asked.first + asked.seeds)]
    records = [judged(*one) for one in tqdm(each, desc="with structure", disable=None)]
    nulls = [by_chance(*one) for one in tqdm(each, desc="by chance", disable=None)]
    print(*summary(records, nulls), sep="\n")
    if asked.store:
        STORED.write_text(stored(records, nulls))


if __name__ == "__main__":
    main()
