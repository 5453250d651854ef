"""Held-out counts: binomial thinning, and what a gain over independence means."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from amptutorial.heldout import heldout_gain, independence_entropy, is_worse, split_counts
from amptutorial.poisson import refit_biases

counts = arrays(np.int64, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=st.integers(0, 50))


@given(counts, st.floats(0.01, 0.99))
def test_a_split_adds_up_and_stays_non_negative(Z, fraction):
    kept, held_out = split_counts(Z, fraction, np.random.default_rng(0))
    assert np.array_equal((kept + held_out).toarray(), Z)
    for part in (kept, held_out):
        assert (part.data > 0).all() and np.array_equal(part.data, np.floor(part.data))


def test_a_split_is_binomial(rng):
    """4,000 splits of 30 counts: mean and variance of Binomial(30, 0.2), each within 4 of its standard errors."""
    n, p, repeats = 30, 0.2, 4000
    taken = split_counts(np.full((1, repeats), n), p, rng)[1].toarray().ravel()
    variance = n * p * (1 - p)
    fourth_moment = variance * (1 + 3 * (n - 2) * p * (1 - p))
    assert abs(taken.mean() - n * p) < 4 * np.sqrt(variance / repeats)
    assert abs(taken.var() - variance) < 4 * np.sqrt((fourth_moment - variance**2) / repeats)


def test_the_parts_of_poisson_counts_are_independent(rng):
    """Their correlation over 10,000 entries is within 4 standard errors of zero; that of part and whole is not."""
    Z = rng.poisson(3.0, size=(100, 100))
    kept, held_out = (part.toarray().ravel() for part in split_counts(Z, 0.3, rng))
    assert abs(np.corrcoef(kept, held_out)[0, 1]) < 4 / np.sqrt(Z.size)
    assert np.corrcoef(kept, Z.ravel())[0, 1] > 0.5


def test_a_fractional_rest_goes_to_one_part_by_the_coin(rng):
    Z = np.full((1, 2000), 0.75)
    kept, held_out = (part.toarray() for part in split_counts(Z, 0.2, rng))
    assert np.array_equal(kept + held_out, Z)
    assert set(np.unique(held_out)) == {0.0, 0.75}
    assert abs((held_out > 0).mean() - 0.2) < 4 * np.sqrt(0.2 * 0.8 / 2000)


def test_a_split_leaves_its_input_alone(rng):
    Z = sp.csr_array(np.array([[3, 0], [1, 6]]))
    before = Z.toarray()
    split_counts(Z, 0.5, rng)
    assert np.array_equal(Z.toarray(), before)


@pytest.mark.parametrize("fraction", [0, 1, 1.5, -0.1, np.nan])
def test_a_fraction_outside_the_unit_interval_is_an_error(fraction, rng):
    with pytest.raises(ValueError, match="fraction must be"):
        split_counts(np.ones((2, 2)), fraction, rng)


def test_a_seed_is_no_generator():
    with pytest.raises(TypeError, match="numpy.random.Generator"):
        split_counts(np.ones((2, 2)), 0.5, 0)


def small_model(rng, m=12, n=9, d=2):
    U, V = rng.standard_normal((m, d)), rng.standard_normal((n, d))
    r_u, r_v = rng.uniform(0.5, 2, m), rng.uniform(1, 4, n)
    return U, V, r_u, r_v, r_u[:, None] * r_v * np.exp(U @ V.T / np.sqrt(m))


def test_the_gain_is_that_of_the_poisson_likelihoods(rng):
    """Against the two log-likelihoods in full, with their totals, at the scale of the held-out counts."""
    U, V, _, _, rates = small_model(rng)
    kept, held_out = split_counts(rng.poisson(40 * rates), 0.2, rng)
    r_u, r_v = refit_biases(kept, U, V, tol=1e-14, n_sweeps=500)
    scale = held_out.sum() / kept.sum()
    model = scale * r_u[:, None] * r_v * np.exp(U @ V.T / np.sqrt(len(U)))
    null = scale * np.outer(kept.sum(axis=1), kept.sum(axis=0)) / kept.sum()
    Z = held_out.toarray()
    expected = ((Z * np.log(model) - model) - (Z * np.log(null) - null)).sum() / Z.sum()
    assert np.isclose(heldout_gain(kept, held_out, U, V, r_u, r_v), expected, rtol=1e-10)


def test_biases_that_do_not_fit_count_against_the_embedding(rng):
    """The full Poisson likelihoods, totals included, with rates that are too large by a factor, and without bound."""
    U, V = rng.standard_normal((30, 2)), rng.standard_normal((20, 2))
    kept, held_out = split_counts(rng.poisson(3.0, (30, 20)), 0.25, rng)
    r_u, r_v = refit_biases(kept, U, V)
    rates = 1.7 * np.outer(r_u, r_v) * np.exp(U @ V.T / np.sqrt(30))
    kept_, z = kept.toarray(), held_out.toarray()
    independent = np.outer(kept_.sum(1), kept_.sum(0)) / kept_.sum()
    scale = z.sum() / kept_.sum()
    direct = stats.poisson.logpmf(z, scale * rates).sum() - stats.poisson.logpmf(z, scale * independent).sum()
    assert heldout_gain(kept, held_out, U, V, 1.7 * r_u, r_v) == pytest.approx(direct / z.sum(), rel=1e-6)
    assert heldout_gain(kept, held_out, 1e4 * U, V, r_u, r_v) == -np.inf


def test_independence_gains_nothing(rng):
    kept, held_out = split_counts(rng.poisson(3.0, size=(8, 7)), 0.3, rng)
    U, V = np.zeros((8, 2)), rng.standard_normal((7, 2))
    assert abs(heldout_gain(kept, held_out, U, V, *refit_biases(kept, U, V))) < 1e-12


def test_the_true_rates_gain_most_in_expectation(rng):
    """The gain is linear in the held-out counts: with their expectation in their place, no embedding gains more."""
    U, V, r_u, r_v, rates = small_model(rng)
    best = heldout_gain(rates, rates, U, V, r_u, r_v)
    assert best > 0
    for size in (0.01, 0.1, 1.0):
        for _ in range(10):
            U_, V_ = (X + size * rng.standard_normal(X.shape) for X in (U, V))
            assert heldout_gain(rates, rates, U_, V_, *refit_biases(rates, U_, V_)) < best


def test_rows_and_columns_that_were_not_seen_are_left_out():
    kept, held_out = np.array([[4, 2, 0], [2, 4, 0], [0, 0, 0]]), np.array([[1, 1, 5], [2, 0, 0], [7, 0, 0]])
    U, V = np.array([[1.0], [-1.0], [9.0]]), np.array([[1.0], [-1.0], [9.0]])
    r_u, r_v = refit_biases(kept, U, V)
    inside = np.where(kept > 0, held_out, 0)
    assert heldout_gain(kept, held_out, U, V, r_u, r_v) == heldout_gain(kept, inside, U, V, r_u, r_v)


def test_the_entropy_bounds_the_gain():
    """Blocks that never mix: the embedding explains everything but the choice within a block."""
    Z = np.kron(np.eye(2), np.full((2, 2), 5))
    signs = 6 * np.array([[1.0], [1.0], [-1.0], [-1.0]])
    gain = heldout_gain(Z, Z, signs, signs, *refit_biases(Z, signs, signs))
    assert np.isclose(independence_entropy(Z, Z), np.log(4))
    assert np.isclose(gain, np.log(2), atol=2 * np.exp(-2 * 36 / np.sqrt(4)))


def test_being_worse_takes_more_than_chance(rng):
    """Two equally good models: called worse in about 2.3 % of the cases, a normal variable beyond two standard
    errors."""
    z = rng.integers(1, 4, 400)
    calls = [is_worse(z, *rng.standard_normal((2, 400))) for _ in range(2000)]
    # a count of z at one pair is one observation z times over: the rate is that of a heavier, correlated sample
    assert 0.01 < np.mean(calls) < 0.10
    assert is_worse(z, np.zeros(400), np.full(400, 0.1) + 0.1 * rng.standard_normal(400))
    assert not is_worse(z, np.full(400, 0.1), np.zeros(400))
