"""Rates of similar rows: the formula written out, gaps, margins, and what low rank cannot hold."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfTransformer

from amptutorial import AMPEmbedding, estimate_bias
from amptutorial.bias import drop_empty
from amptutorial.heldout import hold_out
from amptutorial.smoothing import neighbour_rates


def written_out(Z, power, share):
    """The rates, row by row and column by column, and scaled to the margins."""
    m, n = Z.shape
    unit = TfidfTransformer().fit_transform(np.nan_to_num(Z)).toarray()
    independent = np.outer(*estimate_bias(Z))
    rates = np.empty((m, n))
    for i in range(m):
        for j in range(n):
            others = [k for k in range(m) if k != i and not np.isnan(Z[k, j])]
            weights = [(unit[i] @ unit[k]) ** power for k in others]
            shares = [Z[k, j] / independent[k].sum() for k in others]
            mean = np.dot(weights, shares) / sum(weights)
            rates[i, j] = (1 - share) * mean * independent[i].sum() + share * independent[i, j]
    for _ in range(200):
        rates *= (independent.sum(axis=1) / rates.sum(axis=1))[:, None]
        rates *= independent.sum(axis=0) / rates.sum(axis=0)
    return rates


def test_the_rates_are_those_of_the_definition_with_gaps_left_out(rng):
    Z = rng.poisson(2.0, (9, 6)) + 1.0
    Z[2, 3] = Z[5, 0] = np.nan
    found = neighbour_rates(Z, 2.5, share=0.2, channel="counts")
    assert found == pytest.approx(written_out(Z, 2.5, 0.2), rel=2e-3)
    assert found.sum(axis=1) == pytest.approx(np.outer(*estimate_bias(Z)).sum(axis=1), rel=1e-3)


def test_damped_counts_are_counts_damped(rng):
    """Their rates differ from those of the counts, and have the margins of the counts all the same."""
    Z = rng.poisson(2.0, (9, 6)) + 1
    damped = np.vectorize(lambda z: sum(1 / k for k in range(1, z + 1)))(Z)
    found, other = neighbour_rates(Z), neighbour_rates(damped, channel="counts")
    ratios = [rates / np.outer(*estimate_bias(of)) for rates, of in ((found, Z), (other, damped))]
    scaled = ratios[1] * np.outer(*estimate_bias(Z))
    for _ in range(200):
        scaled *= (Z.sum(axis=1) / scaled.sum(axis=1))[:, None]
        scaled *= Z.sum(axis=0) / scaled.sum(axis=0)
    assert found == pytest.approx(scaled, rel=2e-3)


def test_what_cannot_be_is_refused():
    for pair, options, message in (
        ([0, 0], {}, "empty row or column"),
        ([-1, 1], {}, "negative"),
        ([1, 1], {"share": 1.0}, "share must be below 1, got 1"),
        ([1, 1], {"share": 0.0}, "share must be positive"),
        ([1, 1], {"power": np.inf}, "power must be positive"),
        ([1, 1], {"channel": "bursts"}, "channel must be one of"),
    ):
        with pytest.raises(ValueError, match=message):
            neighbour_rates(np.array([[1, 2], pair]).T, **options)


def test_many_families_are_told_by_neighbours_and_not_by_ten_dimensions(rng):
    """Sixty families of six rows, each with columns of its own."""
    families = np.repeat(3.5 * (rng.random((60, 200)) < 0.06), 6, axis=0)
    Z = rng.poisson(0.2 * np.exp(families - 1))
    kept, held_out, _, _ = hold_out(drop_empty(Z)[0], 0.2, rng)
    z, independent = held_out.toarray(), np.outer(*estimate_bias(kept.toarray()))
    of_amp = AMPEmbedding(10, channel="counts", random_state=0).fit(kept).predict_rates()
    near = neighbour_rates(kept, channel="counts")
    gains = [(z * np.log(rates / independent)).sum() / z.sum() for rates in (of_amp, near)]
    assert gains[1] > 1.5 * gains[0] > 0
    assert near.sum(axis=0) == pytest.approx(independent.sum(axis=0), rel=1e-3)
