"""Tables of zeros and ones: whether a pair occurs, and not how often."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from synthetic import without_margins

from amptutorial import AMPEmbedding
from amptutorial.channels import Presence
from amptutorial.heldout import HeldOut
from amptutorial.table import Table


def drawn(seed, m=500, n=200, d=2, deviation=0.8):
    """Return whether there are events, which are frequent in popular columns, and M."""
    rng = np.random.default_rng(seed)
    U, V = rng.standard_normal((m, d)), rng.standard_normal((n, d))
    M = deviation * U @ V.T / np.sqrt(d)
    rates = np.outer(rng.gamma(2, 0.5, m), 1 / np.arange(1, n + 1)) * np.exp(M)
    Z = (rng.random((m, n)) < -np.expm1(-rates * 25 * m / rates.sum())).astype(float)
    rows, columns = Z.any(axis=1), Z.any(axis=0)
    return Z[rows][:, columns], M[rows][:, columns]


@pytest.fixture(scope="module")
def fits():
    """Return tables, their M, and fits by the law and as Poisson counts."""
    found = []
    for seed in range(2):
        Z, M = drawn(seed)
        law = AMPEmbedding(2, random_state=seed).fit(Z)
        with pytest.warns(match="take"):
            poisson = AMPEmbedding(2, channel="counts", random_state=seed).fit(Z)
        found.append((Z, M, law, poisson))
    return found


def test_the_law_is_chosen_by_itself_and_predicts_probabilities(fits):
    for Z, _, law, _ in fits:
        rates = law.predict_rates()
        assert law.channel_ == "presence" and 0 <= rates.min() and rates.max() <= 1
        assert rates.sum() == pytest.approx(Z.sum(), rel=0.02)
        assert np.corrcoef(rates.sum(axis=0), Z.sum(axis=0))[0, 1] > 0.99


def test_associations_of_popular_columns_are_no_longer_understated(fits):
    """Squared error of M against that of the fit to Poisson counts, and the share within two standard errors."""
    for _, M, law, poisson in fits:
        errors, slopes = [], []
        for fit in (law, poisson):
            sides = fit.row_bias_, fit.column_bias_
            estimate = without_margins(fit.embedding_ @ fit.components_ / np.sqrt(len(M)), *sides)
            truth, popular = without_margins(M, *sides), np.argsort(-fit.column_bias_)[:20]
            gap = (estimate - truth)[:, popular]
            slopes.append(np.vdot(estimate[:, popular], truth[:, popular]) / (truth[:, popular] ** 2).sum())
            errors.append((gap**2).mean())
            near = np.abs(gap) < 2 * fit.standard_errors()[:, popular]
            assert near.mean() > 0.88 if fit is law else near.mean() < 0.85
        assert errors[0] < 0.7 * errors[1] and slopes[0] > slopes[1] + 0.2


def test_new_rows_have_probabilities_a_gain_and_bars(fits):
    Z, _, law, _ = fits[0]
    again = law.predict_rates(Z[:40])
    assert np.allclose(again, law.predict_rates(slice(40)), atol=0.02)
    gain, error = law.gain(Z[:100])
    assert 0 < error and gain > 2 * error and gain == law.score(Z[:100])
    gain, error = law.gain(Z)  # in nats of the law, as that of the fit
    assert abs(gain - law.heldout_gain_) < 3 * np.hypot(error, law.heldout_error_)
    assert np.allclose(law.standard_errors(Z[:40]), law.standard_errors(slice(40)), rtol=0.05)


def test_independent_zeros_and_ones_gain_nothing(fits):
    """Even where Poisson independence would expect more than one: the law of independence has the popular pairs too."""
    rng = np.random.default_rng(0)
    rates = np.outer(rng.gamma(2, 0.5, 500), 25 / np.arange(1, 201) / 6)
    gains = []
    for _ in range(2):
        Z = (rng.random(rates.shape) < -np.expm1(-rates)).astype(float)
        Z = Z[Z.any(axis=1)][:, Z.any(axis=0)]
        with pytest.warns(match="within three standard errors"):
            gains.append(AMPEmbedding(1, random_state=0).fit(Z).heldout_gain_)
    assert max(gains) < 0.01


@pytest.mark.filterwarnings("ignore:heldout_gain_")
def test_the_law_is_for_zeros_and_ones_alone():
    """Not for shares below one, nor where hardly a zero is left."""
    rng = np.random.default_rng(0)
    shares = 0.1 * rng.random((60, 30))
    with pytest.warns(match="fractions"):
        model = AMPEmbedding(1, random_state=0).fit(shares)
    assert model.channel_ in ("counts", "damped") and model.predict_rates().sum() == pytest.approx(shares.sum())
    with pytest.warns(match="taken for Poisson counts"):
        assert AMPEmbedding(1, random_state=0).fit(rng.random((100, 50)) < 0.95).channel_ == "counts"


def test_log_ratios_under_the_law_are_those_of_probabilities_less_their_excess(rng):
    """Written out: expected counts of the pairs seen, beyond those of independence, over the counts kept."""
    m, n, total = 12, 9, 40.0
    U, V = rng.standard_normal((m, 2)), rng.standard_normal((n, 2))
    r_u, r_v, rows, columns = (rng.uniform(0.3, 1.5, size) for size in (m, n, m, n))
    columns *= rows.sum() / columns.sum()
    gaps, held_out = rng.random((m, n)) < 0.3, (rng.random((m, n)) < 0.3).astype(float)
    pairs = HeldOut.of(rows, columns, held_out, sp.csr_array(gaps.astype(float)))
    pairs = replace(pairs, law=Presence(), total=total)
    p = 1 - np.exp(-np.outer(r_u, r_v) * np.exp(U @ V.T / np.sqrt(m)))
    independent = 1 - np.exp(-np.outer(rows, columns) / rows.sum())
    expected = np.log(p / independent)[pairs.i, pairs.j] - (p - independent)[~gaps].sum() / total
    assert np.allclose(pairs.log_ratios(U, V, r_u, r_v), expected, rtol=1e-12)


def test_the_information_of_frequent_pairs_is_less_than_their_rates(rng):
    """Each one counts so that a pair has rate^2 / (exp(rate) - 1) in the mean."""
    rates = np.outer(rng.uniform(0.5, 2, 300), 4 / (1 + np.arange(100)))
    table = Table(sp.csr_array((rng.random(rates.shape) < 1 - np.exp(-rates)).astype(float)))
    rows, columns = table.margins_under(Presence())
    assert np.allclose(rows.sum(), rates.sum(), rtol=0.05)
    found, information = table.information(Presence()), rates**2 / np.expm1(rates)
    for sums, axis in zip(found, (1, 0), strict=True):
        expected = information.sum(axis=axis)
        assert sums.sum() == pytest.approx(expected.sum(), rel=0.05)
        assert np.corrcoef(sums, expected)[0, 1] > 0.8
    assert found[1][0] < 0.5 * columns[0]
