"""What large tables cost: `AMPEmbedding`, whose sums are sampled, and quadratic AMP beside its two products."""

import time
import warnings

import numpy as np

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
from .timing import row

PER_ROW = 50  # counts, as in the movie reviews
COUNTS = (500_000, 2_000_000, 8_000_000)
D, ITERATIONS = 10, 10


def table(counts, rng):
    """Return a square table with about so many counts, `PER_ROW` in a row, M of standard deviation 0.7."""
    size = counts // PER_ROW
    rows = GaussianRows(0.7 * np.sqrt(size / D))
    level = ConstantBias(np.log(PER_ROW / size))
    bias = ShiftedExponential(0.25, 0)
    model = draw_embedding(size, size, D, rows_u=rows, rows_v=rows, bias_u=bias, bias_v=level, rng=rng)
    return model.sample(rng, sparse=True)


def bench_cost():
    """Yield the seconds, of all processors together, for each number of counts, and the power that fits them."""
    drawn, times = [], []
    for counts in COUNTS:
        Z = table(counts, np.random.default_rng(0))
        model = AMPEmbedding(D, channel="counts", n_iter=ITERATIONS, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # ten iterations may be too few
            begin = time.process_time()
            model.fit(Z)
            times.append(time.process_time() - begin)
        drawn.append(Z.sum())
        at = f"{Z.shape[0]:,} x {Z.shape[1]:,}, {drawn[-1]:,} counts, gain {model.heldout_gain_:.3f}"
        yield row("AMPEmbedding, ten iterations, seconds", at, times[-1], "no limit")
    slope = np.polyfit(np.log(drawn), np.log(times), 1)[0]
    yield row("Power of the counts in the time", f"{COUNTS[0]:,} to {COUNTS[-1]:,} counts", slope, "0.9 to 1.1")


def bench_quadratic():
    """An iteration of quadratic AMP, against the two bare sparse products, at the largest table."""
    rng = np.random.default_rng(0)
    Z = drop_empty(table(COUNTS[-1], rng))[0]
    r_u, r_v = estimate_bias(Z)
    scaled = Z.multiply(1 / np.sqrt(r_u)[:, None]).multiply(1 / np.sqrt(r_v)).tocsr()
    value, above, below = compare_iteration(FisherScore(Z, r_u, r_v), r_u, r_v, scaled, rng, repeats=3)
    at = f"{Z.shape[0]:,} x {Z.shape[1]:,}, {Z.nnz:,} non-zeros: ten iterations {above:.1f} s, products {below:.1f} s"
    return [row("AMP iteration, sparse / two bare sparse products", at, value, "at most 1.3")]
