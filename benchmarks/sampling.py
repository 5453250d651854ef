"""Sparse sampling at a size where a dense matrix would have 10^12 entries."""

import numpy as np

from amptutorial import ConstantBias, GaussianRows, ShiftedExponential, draw_embedding

from .timing import peak, row, seconds

SIZE, COUNTS = 10**6, 10**7


def bench_sampling():
    """Counts a second, and the largest memory that this process has needed so far."""
    rng = np.random.default_rng(0)
    rows, bias = GaussianRows(1.0), ShiftedExponential(0.25, 0)
    level = ConstantBias(np.log(COUNTS / SIZE**2 / bias.moment(1)))
    model = draw_embedding(SIZE, SIZE, 10, rows_u=rows, rows_v=rows, bias_u=bias, bias_v=level, rng=rng)
    taken, Z = seconds(lambda: model.sample(rng, sparse=True))
    memory = peak() / 2**30
    at = f"10^6 x 10^6, {Z.sum():,} counts: {taken:.1f} s, peak {memory:.1f} GB (at most 4)"
    return [row("Sparse sampling, 10^6 counts a second", at, Z.sum() / taken / 1e6, "at least 1")]
