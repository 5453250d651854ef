"""Error bars of an embedding: posterior covariances, and what they promise of M."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import norm, poisson
from synthetic import without_margins

from amptutorial import AMPEmbedding, GaussianPosterior
from amptutorial.heldout import hold_out, split_counts
from amptutorial.reexpansion import Side, posterior_covariances

# of tables so small that their hidden counts hardly tell
pytestmark = pytest.mark.filterwarnings("ignore:heldout_gain_ =")

LEVELS = (0.5, 0.8, 0.9, 0.95)


@pytest.mark.parametrize("hidden", [[], [2, 5, 6]])
def test_posterior_covariances_add_the_precisions_of_prior_and_counts(hidden, rng):
    """C^-1 + sum_j rate_ij (v_j - mean)(v_j - mean)^T / m: at the fitted rates, not those of the counted biases."""
    U, V, m, C = rng.standard_normal((2, 2)), rng.standard_normal((9, 2)), 30, np.array([[2.0, 0.3], [0.3, 1.0]])
    counted, fitted = ([rng.uniform(0.5, 3, size) for size in (2, 9)] for _ in range(2))
    gaps = np.zeros((2, 9))
    gaps[1, hidden] = 1  # pairs that were not observed tell nothing
    rows, columns = (
        Side(X, r, bias, prior, None, None, None, None)
        for X, r, bias, prior in zip((U, V), counted, fitted, (GaussianPosterior(C), None), strict=True)
    )
    found = posterior_covariances(rows, columns, m, sp.csr_array(gaps) if hidden else None)
    rates = np.outer(*fitted) * np.exp(U @ V.T / np.sqrt(m)) * (1 - gaps)
    for rate, covariance in zip(rates, found, strict=True):
        information = rate.sum() * np.cov(V.T, aweights=rate, ddof=0) / m
        assert np.allclose(np.linalg.inv(covariance), np.linalg.inv(C) + information)


def drawn(seed, tau, m=400, n=500, d=2):
    """Return counts with unequal frequencies, and M."""
    rng = np.random.default_rng([seed, round(10 * tau)])
    U, V = (np.sqrt(tau) * rng.standard_normal((size, d)) for size in (m, n))
    M = U @ V.T / np.sqrt(m)
    rates = np.outer(rng.gamma(2, 0.5, m), rng.gamma(2, 0.5, n)) * np.exp(M) / np.exp(M).mean()
    return rng.poisson(rates), M


@pytest.mark.slow
@pytest.mark.parametrize("tau", [4.0, 12.0])
def test_ninety_per_cent_intervals_cover_ninety_per_cent(tau):
    """Weak and strong correlations: M has the standard deviation 0.28 and 0.85."""
    covered = []
    for seed in range(6):
        Z, M = drawn(seed, tau)
        fit = AMPEmbedding(2, channel="counts", random_state=0).fit(Z)
        fitted = fit.embedding_ @ fit.components_ / np.sqrt(len(M))
        some = np.ix_(fit.row_bias_ > 0, fit.column_bias_ > 0)
        weights = [sums[sums > 0] for sums in (Z.sum(axis=1), Z.sum(axis=0))]
        gap = without_margins(fitted[some], *weights) - without_margins(M[some], *weights)
        covered.append(np.mean(np.abs(gap) < norm.ppf(0.95) * fit.standard_errors()[some]))
    assert abs(np.mean(covered) - 0.9) < 0.02


def test_what_has_no_counts_has_the_covariance_of_the_prior_and_counts_lower_it():
    """Errors of some rows are those rows, and do not depend on the empty ones."""
    Z, _ = drawn(1, 4.0)
    fit = AMPEmbedding(2, channel="counts", random_state=0).fit(Z)
    with pytest.warns(match="without counts"):
        padded = AMPEmbedding(2, channel="counts", random_state=0).fit(np.pad(Z, ((0, 100), (0, 0))))
    C_u, C_v = padded.covariances()
    assert C_u.shape == C_v.shape == (500, 2, 2)
    assert np.allclose(C_u[400:], C_u[-1]) and np.allclose(C_u, C_u.transpose(0, 2, 1))
    spread, totals = np.trace(C_u[:400], axis1=1, axis2=2), Z.sum(axis=1)
    assert (spread < np.trace(C_u[-1])).all()
    assert spread[totals > np.quantile(totals, 0.9)].max() < spread[totals < np.quantile(totals, 0.1)].min()
    assert np.allclose(padded.standard_errors(slice(400)), fit.standard_errors(), rtol=1e-3)
    assert np.allclose(fit.standard_errors([3, 5]), fit.standard_errors()[[3, 5]])
    assert np.array_equal(fit.standard_errors(3), fit.standard_errors([3]))  # as predict_rates takes rows


def test_standard_errors_are_the_spread_of_products_of_drawn_rows(rng):
    """Rows and columns with few counts, so that the product of both uncertainties matters; 50,000 draws a pair."""
    Z, _ = drawn(2, 4.0, m=40, n=50)
    fit = AMPEmbedding(2, channel="counts", random_state=0).fit(Z)
    C_u, C_v = fit.covariances()
    errors = fit.standard_errors()
    for i, j in ((0, 0), (7, 30), (39, 49)):
        u = rng.multivariate_normal(fit.embedding_[i], C_u[i], 50_000)
        v = rng.multivariate_normal(fit.components_[:, j], C_v[j], 50_000)
        assert (u * v).sum(axis=1).std() / np.sqrt(40) == pytest.approx(errors[i, j], rel=0.03)


def test_only_a_gaussian_prior_has_covariances():
    Z, _ = drawn(2, 4.0, m=40, n=50)
    fit = AMPEmbedding(1, denoiser="ridge", channel="counts", random_state=0).fit(Z)
    with pytest.raises(ValueError, match="denoiser='posterior'"):
        fit.covariances()


def ranks_of_held_out_counts(seed, tau):
    """Return the ranks of held-out counts in their predictive laws, and their rates."""
    rng = np.random.default_rng(seed)
    kept, held_out, _, _ = hold_out(drawn(seed, tau)[0], 0.2, rng, split_counts)
    fit = AMPEmbedding(2, channel="counts", random_state=0).fit(kept)
    z, rate, s = held_out.toarray().ravel(), fit.predict_rates().ravel() / 4, fit.standard_errors().ravel()
    nodes, weights = np.polynomial.hermite_e.hermegauss(20)
    low, high = (
        sum(w * poisson.cdf(z - k, rate * np.exp(s * x - s**2 / 2)) for x, w in zip(nodes, weights, strict=True))
        for k in (1, 0)
    )
    return (low + rng.random(len(z)) * (high - low)) / weights.sum(), rate


@pytest.mark.slow
@pytest.mark.parametrize("tau", [4.0, 12.0])
def test_ranks_of_held_out_counts_are_uniform_at_every_rate(tau):
    """In five classes of pairs, each with a fifth of the expected counts: intervals of level 50, 80, 90, 95 %."""
    shares = []
    for seed in range(6):
        rank, rate = ranks_of_held_out_counts(seed, tau)
        order = np.argsort(rate)
        cuts = np.searchsorted(np.cumsum(rate[order]), np.arange(0.2, 1, 0.2) * rate.sum())
        off = np.abs(rank[order] - 0.5)
        shares.append([[np.mean(part < level / 2) for level in LEVELS] for part in np.split(off, cuts)])
    assert np.abs(np.mean(shares, axis=0) - LEVELS).max() < 0.02
