"""The Poisson model: normalisation, marginals and PMI, and both samplers against the exact law."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from amptutorial.laws import ConstantBias, DiscreteBias, GaussianRows, ShiftedExponential
from amptutorial.model import PoissonEmbedding, draw_embedding, thinning_bounds


def make(m, n, d, rng, variance=1.0, shift=1.0):
    rows, bias = GaussianRows(variance), ShiftedExponential(0.3, shift)
    return draw_embedding(m, n, d, rows_u=rows, rows_v=rows, bias_u=bias, bias_v=bias, rng=rng)


@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 3), st.integers(0, 99))
def test_normalisation_changes_no_rate(m, n, d, seed):
    """eq:bias_norm: mean(r_u) = 1, and lambda_ij = exp(u.v/sqrt(m) + s_i + s_j) with the biases as given."""
    rng = np.random.default_rng(seed)
    U, V, s_u, s_v = (rng.standard_normal(shape) for shape in ((m, d), (n, d), m, n))
    model = PoissonEmbedding(U, V, s_u, s_v)
    assert np.mean(model.r_u) == pytest.approx(1)
    direct = np.array([[np.exp(U[i] @ V[j] / np.sqrt(m) + s_u[i] + s_v[j]) for j in range(n)] for i in range(m)])
    assert np.allclose(model.rates(), direct)
    assert np.allclose(np.exp(model.log_rates()), direct)
    assert np.allclose(model.joint_pmf(), direct / direct.sum())
    assert np.allclose(model.A @ model.B.T, np.sqrt(np.outer(model.r_u, model.r_v)) * (U @ V.T))


def test_marginals_and_pmi_up_to_their_orders(rng):
    """eq:marginal errs like 1/sqrt(m), eq:pcorr like 1/m: the largest error shrinks by 2 and by 4 when m grows 4
    times."""

    def errors(m):
        model = make(m, m, 2, rng, shift=0.0)
        P = model.joint_pmf()
        P_u, P_v = P.sum(axis=1), P.sum(axis=0)
        pmi = np.log(P) - np.log(P_u)[:, None] - np.log(P_v)
        marginal = np.log(P_u) - model.s_u
        return marginal.std(), (pmi - model.U @ model.V.T / np.sqrt(m)).std()

    small, large = (np.median([errors(m) for _ in range(5)], axis=0) for m in (100, 1600))
    order_marginal, order_pmi = np.log(small / large) / np.log(16)
    # sum_j r_j v_j / n is itself O(1/sqrt(n)) for centred rows, one half order better than the worst case of the paper
    assert order_marginal == pytest.approx(1, abs=0.25)
    assert order_pmi == pytest.approx(1, abs=0.25)


def test_marginal_error_is_of_order_one_over_sqrt_m_for_rows_with_a_mean(rng):
    def error(m):
        U, V = 1 + rng.standard_normal((m, 1)), 1 + rng.standard_normal((m, 1))
        model = PoissonEmbedding(U, V, np.zeros(m), np.zeros(m))
        return np.log(model.joint_pmf().sum(axis=1)).std()

    order = np.log(error(100) / error(1600)) / np.log(16)
    assert order == pytest.approx(0.5, abs=0.15)


@pytest.mark.parametrize("sparse", [False, True])
def test_samples_follow_the_law_of_each_count(sparse, rng):
    """Every Z_ij is Poisson(lambda_ij), independently: one chi-square over cells and values, strong correlations
    included."""
    model = PoissonEmbedding(*(2 * rng.standard_normal((4, 2)) for _ in range(2)), *rng.standard_normal((2, 4)))
    draws = 4000
    samples = [model.sample(rng, sparse=sparse) for _ in range(draws)]
    Z = np.array([z.toarray() if sparse else z for z in samples])
    rates = model.rates()
    statistic = degrees = 0
    for i, j in np.ndindex(rates.shape):
        top = int(stats.poisson.ppf(0.999, rates[i, j])) + 1
        observed = np.bincount(np.minimum(Z[:, i, j], top), minlength=top + 1)
        pmf = np.append(stats.poisson.pmf(np.arange(top), rates[i, j]), stats.poisson.sf(top - 1, rates[i, j]))
        keep = draws * pmf >= 5
        statistic += (((observed - draws * pmf) ** 2 / (draws * pmf))[keep]).sum()
        degrees += keep.sum() - 1
    assert stats.chi2.sf(statistic, degrees) > 1e-3
    frequent = Z.reshape(draws, -1)[:, rates.ravel() > 0.5]  # a correlation of rare events is not close to normal
    correlation = np.corrcoef(frequent.T)[np.triu_indices(frequent.shape[1], 1)]
    assert len(correlation) >= 10 and np.abs(correlation).max() < 4.5 / np.sqrt(draws)


def test_thinning_bounds_dominate(rng):
    model = make(30, 40, 3, rng, variance=9.0)
    c_u, c_v = thinning_bounds(model.U, model.V, np.sqrt(model.m))
    assert (model.U @ model.V.T / np.sqrt(model.m) <= c_u[:, None] + c_v + 1e-12).all()


def test_thinning_many_chunks_gives_the_same_law(rng, monkeypatch):
    monkeypatch.setattr("amptutorial.model.PAIRS_AT_ONCE", 50)
    model = make(40, 30, 2, rng)
    Z = sum(model.sample(rng, sparse=True).toarray() for _ in range(200))
    standardised = (Z - 200 * model.rates()) / np.sqrt(200 * model.rates())
    assert stats.kstest(standardised.ravel(), "norm").pvalue > 1e-3


@pytest.mark.parametrize(("long_rows", "long_columns", "level"), [(1, 0, -3), (0, 1, -3), (2, 2, -3), (0, 0, 3)])
def test_long_rows_and_frequent_pairs_are_drawn_densely(long_rows, long_columns, level, rng):
    """One long row must not make every other pair expensive: sums against their Poisson law, over 100 draws."""
    U, V = 0.3 * rng.standard_normal((50, 3)), 0.3 * rng.standard_normal((40, 3))
    U[:long_rows] *= 40
    V[:long_columns] *= 40
    U[:long_rows, 1:] = V[:long_columns, 1:] = 0  # long, but the rates stay within reach
    V[:long_columns, 0] *= -np.sign(U[0, 0] * V[0, 0]) if long_rows and long_columns else 1
    model = PoissonEmbedding(U, V, np.full(50, float(level)), np.zeros(40))
    Z = sum(model.sample(rng, sparse=True) for _ in range(100)).toarray()
    rates = 100 * model.rates()
    for axis in (0, 1, None):
        expected = rates.sum(axis=axis)
        assert (np.abs(Z.sum(axis=axis) - expected) < 5 * np.sqrt(expected) + 5).all()


def test_the_model_keeps_its_own_arrays():
    U = np.ones((3, 1))
    model = PoissonEmbedding(U, U, np.zeros(3), np.zeros(3))
    U[:] = 7
    assert np.allclose(model.rates(), np.exp(1 / np.sqrt(3)))


def test_biases_that_are_no_floats_are_refused():
    for s in (800.0, -800.0):
        with pytest.raises(OverflowError, match=r"exp\(s_v\) is zero or infinite: the biases differ too much"):
            PoissonEmbedding(np.ones((6, 2)), np.ones((4, 2)), np.zeros(6), np.full(4, s))


def test_sparse_sampling_at_zero_embeddings_and_large_sizes(rng):
    model = PoissonEmbedding(np.zeros((1000, 1)), np.zeros((2000, 1)), np.full(1000, -4.0), np.zeros(2000))
    Z = model.sample(rng, sparse=True)
    expected = 1000 * 2000 * np.exp(-4)
    assert Z.shape == (1000, 2000) and abs(Z.sum() - expected) < 5 * np.sqrt(expected)


def test_draw_embedding_is_reproducible():
    one, two = (make(5, 6, 2, np.random.default_rng(3)) for _ in range(2))
    assert np.array_equal(one.U, two.U) and np.array_equal(one.s_v, two.s_v) and (one.m, one.n, one.d) == (5, 6, 2)


def test_overflow_is_reported(rng):
    model = PoissonEmbedding(np.full((2, 1), 100.0), np.full((2, 1), 100.0), np.zeros(2), np.zeros(2))
    with pytest.raises(OverflowError, match="scale down U and V"):
        model.rates()
    assert np.allclose(model.joint_pmf(), 0.25)  # the distribution itself does not overflow


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros((2, 2)), np.zeros((3, 1)), np.zeros(2), np.zeros(3)), r"V must have shape \(any, 2\), got \(3, 1\)"),
        ((np.zeros((2, 1)), np.zeros((3, 1)), np.zeros(3), np.zeros(3)), r"s_u must have shape \(2,\), got \(3,\)"),
        ((np.full((2, 1), np.nan), np.zeros((3, 1)), np.zeros(2), np.zeros(3)), "U holds NaN"),
        ((np.zeros((2, 1)), np.zeros((3, 1)), np.zeros(2), np.array([0, -np.inf, 0])), "s_v holds NaN or infinite"),
        ((np.zeros((0, 1)), np.zeros((3, 1)), np.zeros(0), np.zeros(3)), "must not be empty"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        PoissonEmbedding(*arguments)


@pytest.mark.parametrize("bad", [0, -3, 2.5, True])
def test_sizes_are_positive_integers(bad):
    law = GaussianRows()
    with pytest.raises((ValueError, TypeError), match="d must be"):
        draw_embedding(
            2,
            3,
            bad,
            rows_u=law,
            rows_v=law,
            bias_u=ConstantBias(),
            bias_v=DiscreteBias([0.0]),
            rng=np.random.default_rng(0),
        )


def test_a_seed_is_no_generator(rng):
    with pytest.raises(TypeError, match="numpy.random.Generator"):
        make(2, 3, 1, rng).sample(0)
