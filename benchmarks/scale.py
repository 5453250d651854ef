"""What large tables cost: `AMPEmbedding`, whose sums are sampled, and quadratic AMP beside its two products."""

import time
import warnings

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import svds

from amptutorial import (
    AMPEmbedding,
    ConstantBias,
    FisherScore,
    GaussianRows,
    ShiftedExponential,
    draw_embedding,
    drop_empty,
    estimate_bias,
)

from .algorithm import compare_iteration
from .timing import peak, row

PER_ROW = 50  # counts, as in the movie reviews
COUNTS = (500_000, 2_000_000, 8_000_000)
D, TEN = 10, {"channel": "counts", "n_iter": 10}  # iterations: what a large table is asked for
MILLION = 1_000_000  # rows and columns of the largest table
LEVEL = 58  # with which a row has 100 counts in the mean
WIDE, GROUPS = (4_000, 100_000), 8  # documents and words of a wide table, where many words occur once or never


def table(size, level, rng):
    """Return a square table of counts, M of standard deviation 0.7; a row has about 1.72 times `level`."""
    rows = GaussianRows(0.7 * np.sqrt(size / D))
    columns, bias = ConstantBias(np.log(level / size)), ShiftedExponential(0.25, 0)
    model = draw_embedding(size, size, D, rows_u=rows, rows_v=rows, bias_u=bias, bias_v=columns, rng=rng)
    return model.sample(rng, sparse=True)


def fit(Z, clock, **given):
    """Return what `clock` says that a fit took, and a description of table and fit."""
    model = AMPEmbedding(D, **given, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ten iterations may be too few
        begin = clock()
        model.fit(Z)
        taken = clock() - begin
    return taken, f"{Z.shape[0]:,} x {Z.shape[1]:,}, {Z.sum():,} counts, gain {model.heldout_gain_:.3f}"


def wide_table(rng):
    """Return counts of about 54 words a document, of a power law, those of a document's group 20 times as often."""
    m, n = WIDE
    frequency, topics, groups = (20 + np.arange(n)) ** -0.5, rng.integers(GROUPS, size=n), rng.integers(GROUPS, size=m)
    lengths = 1 + rng.poisson(rng.gamma(4, 13.3, size=m))
    words = np.empty(lengths.sum(), dtype=int)
    for group, owner in enumerate(np.eye(GROUPS, dtype=bool)[np.repeat(groups, lengths)].T):
        rates = frequency * np.where(topics == group, 20, 1)
        words[owner] = rng.choice(n, size=owner.sum(), p=rates / rates.sum())
    return sp.csr_array((np.ones(len(words)), (np.repeat(np.arange(m), lengths), words)), shape=WIDE)


def bench_wide():
    """Yield the seconds, of all processors together, that a wide table takes, and how much longer than an SVD."""
    Z = wide_table(np.random.default_rng(0))
    taken, at = fit(Z, time.process_time)
    begin = time.process_time()
    svds(Z, D)
    by_svd = time.process_time() - begin
    yield row("AMPEmbedding, a wide table, seconds", at, taken, "at most 20")
    yield row("The same / truncated SVD", f"{by_svd:.1f} s", taken / by_svd, "no limit")


def bench_cost():
    """Yield the seconds, of all processors together, for each number of counts, and the power that fits them."""
    drawn, times = [], []
    for counts in COUNTS:
        Z = table(counts // PER_ROW, PER_ROW, np.random.default_rng(0))
        taken, at = fit(Z, time.process_time, **TEN)
        drawn.append(Z.sum())
        times.append(taken)
        yield row("AMPEmbedding, ten iterations, seconds", at, taken, "no limit")
    slope = np.polyfit(np.log(drawn), np.log(times), 1)[0]
    yield row("Power of the counts in the time", f"{COUNTS[0]:,} to {COUNTS[-1]:,} counts", slope, "0.9 to 1.1")


def bench_quadratic():
    """An iteration of quadratic AMP, against the two bare sparse products, at the largest table."""
    rng = np.random.default_rng(0)
    yield compare_products(table(COUNTS[-1] // PER_ROW, PER_ROW, rng), rng)


def compare_products(Z, rng):
    """Return the row of an iteration of quadratic AMP on Z over its two products."""
    Z = drop_empty(Z)[0]
    r_u, r_v = estimate_bias(Z)
    scaled = Z.multiply(1 / np.sqrt(r_u)[:, None]).multiply(1 / np.sqrt(r_v)).tocsr()
    value, above, below = compare_iteration(FisherScore(Z, r_u, r_v), r_u, r_v, scaled, rng, repeats=3)
    at = f"{Z.shape[0]:,} x {Z.shape[1]:,}, {Z.nnz:,} non-zeros: ten iterations {above:.1f} s, products {below:.1f} s"
    return row("AMP iteration, sparse / two bare sparse products", at, value, "at most 1.3")


def bench_million():
    """Yield minutes and memory of a fit to a million rows and columns with 10^8 counts."""
    rng = np.random.default_rng(0)
    Z = table(MILLION, LEVEL, rng)
    taken, at = fit(Z, time.perf_counter, **TEN)
    yield row("AMPEmbedding, ten iterations, minutes", at, taken / 60, "at most 60")
    yield row("The same, memory with the drawing of the table, GB", at, peak() / 1e9, "at most 12")
    yield compare_products(Z, rng)
