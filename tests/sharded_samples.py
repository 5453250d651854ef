"""Counts, clusters and comparisons for the tests of shards."""

import numpy as np
import scipy.sparse as sp
from distributed import LocalCluster

from amptutorial import FisherScore, biased_low_rank_amp, drop_empty, estimate_bias


def cluster(**kwargs):
    return LocalCluster(dashboard_address=":0", threads_per_worker=1, **kwargs)


def sample_counts():
    """Return counts (61, 40), with biases and a direction."""
    rng = np.random.default_rng(5)
    rates = np.outer(rng.uniform(0.5, 2, 61), rng.uniform(0.5, 2, 40))
    signal = np.outer(rng.standard_normal(61), rng.standard_normal(40))
    return drop_empty(sp.csr_array(rng.poisson(rates * np.exp(0.5 * signal))))[0]


def table(level):
    """Return counts (about 120 by 70) with two directions, `level` of them for each pair."""
    rng = np.random.default_rng(8)
    M = 0.5 * rng.standard_normal((120, 2)) @ rng.standard_normal((2, 70))
    return drop_empty(sp.csr_array(rng.poisson(level * np.exp(M))))[0]


def sample_start():
    return np.random.default_rng(6).standard_normal((40, 2))


def at_once(counts, denoiser, **arguments):
    r_u, r_v = estimate_bias(counts)
    return biased_low_rank_amp(FisherScore(counts, r_u, r_v), r_u, r_v, denoiser, **arguments)


def assert_same(found, expected):
    """The last iterations agree in everything that they hold, to 1e-9 of its size."""
    found, expected = vars(found.iterates[-1]), vars(expected.iterates[-1])
    for name in set(expected) - {"denoiser_a", "denoiser_b"}:
        assert np.allclose(found[name], expected[name], rtol=0, atol=1e-9 * np.abs(expected[name]).max()), name
    for side in ("denoiser_a", "denoiser_b"):
        pair = (getattr(one[side], "covariance", 0) for one in (found, expected))
        assert np.allclose(*pair, rtol=1e-9, atol=1e-12)
