"""The Fisher score: derivative, information, and the operator against its dense form."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from amptutorial import score
from amptutorial.bias import estimate_bias
from amptutorial.score import FisherScore


def problem(seed, m=7, n=5):
    rng = np.random.default_rng(seed)
    return rng.poisson(1.0, (m, n)), np.exp(rng.standard_normal(m)), np.exp(rng.standard_normal(n)), rng


@given(st.integers(0, 200), st.booleans(), st.integers(1, 4), st.sampled_from([0, 0.3]))
def test_operator_equals_its_definition(seed, sparse, k, hidden):
    """R_u^(-1/2) (Z - r_u r_v^T) R_v^(-1/2), entry by entry (eq:abyscaled); zero where a pair was not observed."""
    Z, r_u, r_v, rng = problem(seed)
    Z = np.where(rng.random(Z.shape) < hidden, np.nan, Z)
    dense = np.array([[(Z[i, j] - r_u[i] * r_v[j]) / np.sqrt(r_u[i] * r_v[j]) for j in range(5)] for i in range(7)])
    dense = np.nan_to_num(dense)
    Y = FisherScore(sp.csr_array(Z) if sparse else Z, r_u, r_v)
    B, A = rng.standard_normal((5, k)), rng.standard_normal((7, k))
    assert Y.shape == (7, 5) and Y.T.shape == (5, 7)
    assert np.allclose(Y.toarray(), dense) and np.allclose(Y.T.toarray(), dense.T)
    assert np.allclose(Y @ B, dense @ B) and np.allclose(Y @ B[:, 0], dense @ B[:, 0])
    assert np.allclose(Y.T @ A, dense.T @ A) and np.allclose(Y.T.T @ B, dense @ B)
    assert np.allclose(Y.rmatvec(A[:, 0]), dense.T @ A[:, 0]) and np.allclose(Y.rmatmat(A), dense.T @ A)
    assert np.isclose(Y.squared_norm(), (dense**2).sum()) and np.isclose(Y.T.squared_norm(), (dense**2).sum())


@pytest.mark.parametrize("shape", [(2050, 1025), (2, 2**20 + 1)])
def test_a_large_table_is_scored_in_parts(shape):
    Z, r_u, r_v, _ = problem(0, *shape)
    rates = np.outer(r_u, r_v)
    np.testing.assert_allclose(FisherScore(Z, r_u, r_v).toarray(), (Z - rates) / np.sqrt(rates), rtol=1e-9, atol=1e-9)


def test_a_score_too_large_for_the_cache_is_stored_the_other_way(rng, monkeypatch):
    Z = sp.csr_array(rng.poisson(1.0, (7, 5)) + np.eye(7, 5, dtype=int))
    X, (r_u, r_v) = rng.standard_normal((5, 2)), estimate_bias(Z)
    Y = FisherScore(Z, r_u, r_v)
    monkeypatch.setattr(score, "CACHED", 6)
    large = FisherScore(Z, r_u, r_v)
    product = large @ X
    np.testing.assert_array_equal(product, Y @ X)  # terms are added in the same order
    np.testing.assert_allclose(large.T @ product, large.toarray().T @ product, rtol=1e-12, atol=1e-12)


def test_score_is_the_standardised_derivative():
    """Y~_ij = (d/dw log P) / sqrt(information), by differences of SciPy's Poisson law (eq:score_ij, eq:del_ij).

    Erratum 6: d/dw log P = Z - r r = Y_ij / Delta_ij, not the printed (Z - r r) / (r r); the information is r r.
    """
    Z, r_u, r_v, _ = problem(1)
    rate, h = np.outer(r_u, r_v), 1e-5

    def log_p(w):
        return stats.poisson.logpmf(Z, rate * np.exp(w))

    derivative = (log_p(h) - log_p(-h)) / (2 * h)
    assert np.allclose(FisherScore(Z, r_u, r_v).toarray(), derivative / np.sqrt(rate), atol=1e-6)
    assert np.allclose(derivative, Z - rate, atol=1e-6) and not np.allclose(derivative, (Z - rate) / rate, rtol=0.1)
    assert np.allclose((2 * log_p(0) - log_p(1e-3) - log_p(-1e-3)) / 1e-6, rate, rtol=1e-4, atol=1e-6)


def test_quadratic_approximation_has_third_order_error():
    """eq:logquad2: the mean error of |Y~ - sqrt(rate) M|^2 / 2 is cubic in M: halve M, divide it by 8."""
    rate, M = 3.0, 0.02
    z = np.arange(60)
    pmf = stats.poisson.pmf(z, rate)

    def error(M):
        exact = stats.poisson.logpmf(z, rate * np.exp(M)) - stats.poisson.logpmf(z, rate)
        y = (z - rate) / np.sqrt(rate)
        quadratic = (y**2 - (y - np.sqrt(rate) * M) ** 2) / 2
        return pmf @ (exact - quadratic)

    assert error(M) / error(M / 2) == pytest.approx(8, rel=0.02)


def test_noise_has_unit_variance_and_the_margins_vanish(rng):
    """With counted biases sqrt(r_u)^T Y~ = 0 and Y~ sqrt(r_v) = 0; for independent counts the variance of W is 1."""
    Z = rng.poisson(np.outer(np.linspace(0.5, 2, 300), np.linspace(1, 3, 400)))
    r_u, r_v = estimate_bias(Z)
    Y = FisherScore(Z, r_u, r_v)
    assert np.allclose(Y @ np.sqrt(r_v), 0, atol=1e-9) and np.allclose(np.sqrt(r_u) @ Y.toarray(), 0, atol=1e-9)
    # var of the mean of W^2: W^2 has variance 2 + 1/rate at most 4
    assert Y.squared_norm() / (300 * 400) == pytest.approx(1, abs=4 * 2 / np.sqrt(300 * 400) + 2 / 300)


def test_float32_stays_float32_and_products_with_no_columns_have_none():
    Z, r_u, r_v, _ = problem(3)
    for make in (np.asarray, sp.csr_array):
        Y = FisherScore(make(Z.astype(np.float32)), r_u, r_v)
        assert (Y @ np.ones((5, 2), np.float32)).dtype == np.float32
        assert FisherScore(make(Z), r_u, r_v).dtype == np.float64
        assert (Y @ np.ones((5, 0))).shape == (7, 0) and (Y.T @ np.ones((7, 0))).shape == (5, 0)
