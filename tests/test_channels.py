"""Channels: what a count says of the bursts behind it, against sums over all that may have happened."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize_scalar
from scipy.stats import nbinom, poisson
from synthetic import drawn_embedding

from amptutorial.channels import CHANNELS, LEAST_DISPERSION, Bursts, Counts, Damped, Indicator, Presence
from amptutorial.estimator import AMPEmbedding
from amptutorial.heldout import heldout_gain, split_pairs
from amptutorial.reexpansion import new_side
from amptutorial.table import Table

RATES, COUNTED = np.array([1e-3, 0.1, 1.0, 7.0]), np.arange(2000.0)
DISPERSION = 1.5


def law(channel, rate):
    """Return the probabilities of the counts 0, 1, 2, ... of one pair, from SciPy."""
    z = np.arange(2000)
    if isinstance(channel, Bursts):
        return nbinom.pmf(z, rate / np.log1p(DISPERSION), 1 / (1 + DISPERSION))
    return poisson.pmf(z, rate)


@pytest.mark.parametrize("channel", [Counts(), Presence(), Bursts(DISPERSION)])
@pytest.mark.parametrize("rate", RATES)
def test_the_score_is_the_derivative_of_the_log_likelihood(channel, rate):
    """By log rate, from differences of SciPy's laws; where only presence shows, of log P(Z > 0)."""

    def log_likelihood(log_rate):
        p = law(channel, np.exp(log_rate))
        if isinstance(channel, Presence):
            p = np.where(np.arange(len(p)) > 0, -np.expm1(-np.exp(log_rate)), p[0])
        return np.log(p[:6])

    h = 1e-5
    slope = (log_likelihood(np.log(rate) + h) - log_likelihood(np.log(rate) - h)) / (2 * h)
    score = channel.bursts(np.arange(6.0), np.full(6, rate)) - rate
    assert np.allclose(score, slope, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("channel", [Counts(), Presence(), Bursts(DISPERSION)])
def test_the_score_has_the_mean_zero_and_a_variance_that_is_no_larger_than_without_the_channel(channel):
    for rate in RATES:
        score, p = channel.bursts(COUNTED, np.full(COUNTED.size, rate)) - rate, law(channel, rate)
        assert abs(p @ score) < 1e-10 * rate
        assert 0 < p @ score**2 <= rate * (1 + 1e-9)


def test_the_information_of_a_presence_is_the_variance_of_its_score():
    for rate, information in zip(RATES, Presence().information(RATES), strict=True):
        score = Presence().bursts(COUNTED, np.full(COUNTED.size, rate)) - rate
        assert information == pytest.approx(law(Presence(), rate) @ score**2, rel=1e-9)


def test_rare_pairs_show_their_presence_and_frequent_ones_their_counts():
    z = np.array([1.0, 3.0, 10.0])
    assert np.allclose(Bursts(DISPERSION).bursts(z, 1e-9), 1, atol=1e-6)
    assert np.allclose(Bursts(DISPERSION).bursts(z, 1e9), z, rtol=1e-6)


def test_an_indicator_is_the_presence_of_rare_bursts():
    z = np.arange(4.0)
    assert np.allclose(Indicator().bursts(z, 0.0), Presence().bursts(z, np.full(4, 1e-9)), atol=1e-8)


def test_where_bursts_are_rare_every_pair_that_occurs_is_one_burst():
    Z = np.array([[0, 3], [7, 1]])
    table = Table(sp.csr_array(Z)).rare(Bursts(DISPERSION))
    assert np.allclose(table.observed[0].Z.toarray(), Z > 0, atol=1e-6)


def test_the_kth_occurrence_counts_one_kth():
    z = np.arange(1.0, 7.0)
    assert np.allclose(Damped().bursts(z, 0.0), np.cumsum(1 / z))
    rates = np.full(z.size, np.log1p(DISPERSION))  # alpha = 1
    assert np.allclose(Damped().bursts(z, 0.0), Bursts(DISPERSION).bursts(z, rates))


@pytest.mark.parametrize("channel", [*CHANNELS.values(), Presence()])
def test_a_channel_knows_whether_its_bursts_follow_the_rate(channel):
    z = np.array([4.0])
    assert channel.follows_rate == (channel.bursts(z, np.array([0.1])) != channel.bursts(z, np.array([10.0])))[0]


@pytest.mark.parametrize("dispersion", [0.02, 1.0, 50.0])
def test_the_dispersion_has_the_largest_likelihood_under_independence(dispersion, rng):
    """Of all pairs, empty ones too, by SciPy. Its maximum is found to the root of round-off only."""
    means = np.exp(rng.standard_normal((100, 1)) + rng.standard_normal((1, 80)))
    Z = rng.negative_binomial(means / dispersion, 1 / (1 + dispersion))
    Z = Z[Z.any(axis=1)][:, Z.any(axis=0)]
    mean = np.outer(Z.sum(axis=1), Z.sum(axis=0)) / Z.sum()

    def loss(log_dispersion):
        x = np.exp(log_dispersion)
        return -nbinom.logpmf(Z, mean / x, 1 / (1 + x)).sum()

    best = minimize_scalar(loss, bounds=(-7, 7), method="bounded", options={"xatol": 1e-9})
    assert np.log(Bursts().refit(sp.csr_array(Z.astype(float))).dispersion) == pytest.approx(best.x, abs=1e-4)


def test_the_size_of_any_bursts_is_found():
    """The equation that says so, for counts that one row and one column share out, up to the largest tables."""
    for count in (3.0, 1e3, 1e9, 1e15):
        Z = sp.csr_array(count * np.eye(2))
        found = Bursts().refit(Z)
        bursts = 2 * found.bursts(count, count / 2 * np.log1p(found.dispersion) / found.dispersion)
        assert 2 * count / bursts == pytest.approx(found.dispersion / np.log1p(found.dispersion), rel=1e-9)
    assert Bursts().refit(sp.csr_array(np.eye(2))).dispersion == LEAST_DISPERSION


@pytest.mark.parametrize("channel", [*CHANNELS.values(), Presence()])
def test_a_hidden_pair_says_nothing_and_another_what_it_says_without_gaps(channel, rng):
    """Its bursts are the rate at the estimate, whichever channel, and those of the others as without it."""
    m, n = 5, 4
    Z, gaps = rng.poisson(1.0, (m, n)).astype(float), rng.random((m, n)) < 0.4
    rows, columns = (new_side(rng.standard_normal((k, 2)), rng.uniform(1, 2, k), None) for k in (m, n))
    rates = np.outer(rows.bias, columns.bias) * np.exp(rows.X @ columns.X.T / np.sqrt(m))
    table = Table(sp.csr_array(np.where(gaps, np.nan, Z)))
    expected = np.where(gaps, rates, channel.bursts(Z, rates))
    assert np.allclose(table.bursts(channel, rows, columns, m).Z.toarray(), expected, rtol=1e-12)


@pytest.mark.parametrize("channel", [*CHANNELS.values(), Presence()])
def test_zeros_tiny_rates_and_large_counts_stay_finite(channel):
    z = np.array([0.0, 0.25, 1.0, 1e6, 1e12])
    for rate in (0.0, 1e-300, 1.0, 1e20):
        found = channel.bursts(z, np.full(z.size, rate))
        assert np.isfinite(found).all() and found[0] == 0


@pytest.fixture(scope="module")
def bursty():
    """An embedding whose bursts, not its counts, are Poisson, about one in seven pairs: (rates, counts)."""
    rng = np.random.default_rng(3)
    model = drawn_embedding(300, 300, 2, rng, variance=np.sqrt(75), shift=3)
    rates = 0.15 * model.rates() / model.rates().mean()
    return rates, rng.negative_binomial(rates / np.log1p(4.0), 1 / 5.0)


def test_bursts_are_told_from_association(bursty):
    """By whole pairs, each of the channels predicts bursty counts better than the Poisson channel, and knows it."""
    rates, Z = bursty
    kept, held_out = split_pairs(Z, 0.2, np.random.default_rng(0))
    gains = {}
    for channel in ("counts", "damped", "presence", "bursts", "auto"):
        model = AMPEmbedding(2, channel=channel, random_state=0).fit(kept)
        U, V = model.embedding_, model.components_.T
        gains[channel] = heldout_gain(kept, held_out, U, V, model.row_bias_, model.column_bias_)
    assert min(gains[name] for name in ("damped", "presence", "bursts")) > gains["counts"] + 0.01
    assert gains["auto"] > gains["counts"] + 0.02 and model.channel_ == "damped"


@pytest.mark.parametrize("name", CHANNELS)
def test_rates_are_those_of_the_counts_whatever_the_channel(bursty, name):
    Z = bursty[1]
    model = AMPEmbedding(2, channel=name, random_state=0).fit(Z)
    rates = model.predict_rates()
    assert np.allclose(rates.sum(axis=1), Z.sum(axis=1), rtol=1e-6)
    assert np.allclose(rates.sum(axis=0), Z.sum(axis=0), rtol=1e-3, atol=1e-3)
    assert np.isclose(model.row_bias_.mean(), 1)
    again = model.transform(Z)
    assert np.abs((again - model.embedding_) @ model.components_).max() / np.sqrt(len(Z)) < 0.05


def test_poisson_counts_are_taken_as_counts(bursty):
    Z = np.random.default_rng(4).poisson(20 * bursty[0])
    assert AMPEmbedding(2, random_state=0).fit(Z).channel_ == "counts"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::amptutorial._validation.AMPWarning")
@pytest.mark.parametrize("shape", [None, 0.05, 0.3, 1.0])
@pytest.mark.parametrize("mean", [0.05, 2.0])
def test_no_embedding_is_reported_as_none(shape, mean):
    """Poisson, or negative binomial with this shape: independent counts, sparse and dense, and d = 2 and 10."""
    rng = np.random.default_rng(1)
    rates = mean * np.outer(rng.exponential(1, 400) + 0.2, rng.exponential(1, 300) + 0.2)
    noise = 1 if shape is None else rng.gamma(shape, 1 / shape, rates.shape)
    Z = rng.poisson(rates * noise)
    Z = Z[Z.any(axis=1)][:, Z.any(axis=0)]
    for d in (2, 10):
        model = AMPEmbedding(d, random_state=0).fit(Z)
        assert model.heldout_gain_ <= 2 * model.heldout_error_
