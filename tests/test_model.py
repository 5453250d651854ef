"""The Poisson model: normalisation, marginals and PMI, and both samplers against the exact law."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse as sp
from scipy import stats
from synthetic import drawn_embedding

from amptutorial import model as model_module
from amptutorial.laws import GaussianRows, ShiftedExponential
from amptutorial.model import LONG, PoissonEmbedding, _thinning_bounds, draw_embedding, draw_example


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
    """eq:marginal errs like 1/sqrt(m), eq:pcorr like 1/m."""

    def errors(m):
        model = drawn_embedding(m, m, 2, rng, variance=1.0, shift=0.0, spread=0.3)
        P = model.joint_pmf()
        P_u, P_v = P.sum(axis=1), P.sum(axis=0)
        pmi = np.log(P) - np.log(P_u)[:, None] - np.log(P_v)
        marginal = np.log(P_u) - model.s_u
        return marginal.std(), (pmi - model.U @ model.V.T / np.sqrt(m)).std()

    small, large = (np.median([errors(m) for _ in range(5)], axis=0) for m in (100, 900))
    order_marginal, order_pmi = np.log(small / large) / np.log(9)
    # sum_j r_j v_j / n is itself O(1/sqrt(n)) for centred rows, one half order better than the worst case of the paper
    assert order_marginal == pytest.approx(1, abs=0.25)
    assert order_pmi == pytest.approx(1, abs=0.25)


def test_marginal_error_is_of_order_one_over_sqrt_m_for_rows_with_a_mean(rng):
    def error(m):
        model = PoissonEmbedding(*(1 + rng.standard_normal((2, m, 1))), np.zeros(m), np.zeros(m))
        return np.log(model.joint_pmf().sum(axis=1)).std()

    order = np.log(error(100) / error(1600)) / np.log(16)
    assert order == pytest.approx(0.5, abs=0.15)


@pytest.fixture
def densely_drawn(monkeypatch):
    """Return a list to which every block that the sparse sampler draws densely adds its number of pairs."""
    sizes, draw = [], model_module._draw_densely

    def spy(model, rng, rows, columns):
        sizes.append(len(rows) * len(columns))
        return draw(model, rng, rows, columns)

    monkeypatch.setattr(model_module, "_draw_densely", spy)
    return sizes


def spread_model(rng, *, longer=1.0):
    """Return a 6 x 8 model whose rates differ 100-fold by their embeddings and biases; one row and column `longer`."""
    U, V = 1.2 * rng.standard_normal((6, 2)), 1.2 * rng.standard_normal((8, 2))
    U[0], V[2] = longer * U[0], longer * V[2]
    return PoissonEmbedding(U, V, rng.normal(0, 0.5, 6), rng.normal(-2, 0.7, 8))


def chi_square(Z, rates):
    """Return the p-value of counts `Z` (draws, m, n) under independent Poisson(rates), over all cells and values."""
    draws, statistic, degrees = len(Z), 0.0, 0
    for i, j in np.ndindex(rates.shape):
        top = int(stats.poisson.ppf(0.999, rates[i, j])) + 1
        observed = np.bincount(np.minimum(Z[:, i, j], top), minlength=top + 1)
        pmf = np.append(stats.poisson.pmf(np.arange(top), rates[i, j]), stats.poisson.sf(top - 1, rates[i, j]))
        keep = draws * pmf >= 5
        statistic += (((observed - draws * pmf) ** 2 / (draws * pmf))[keep]).sum()
        degrees += keep.sum() - 1
    return stats.chi2.sf(statistic, degrees)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["dense", "thinned", "partly thinned"])
def test_samples_follow_the_law_of_each_count(how, rng, densely_drawn):
    """Every Z_ij is Poisson(lambda_ij), independently: one chi-square over cells and values, and all correlations."""
    model, draws = spread_model(rng, longer=4.0 if how == "partly thinned" else 1.0), 3000
    Z = np.array([sp.csr_array(model.sample(rng, sparse=how != "dense")).toarray() for _ in range(draws)])
    assert densely_drawn[:2] == {"dense": [], "thinned": [0, 0], "partly thinned": [8, 5]}[how]
    assert chi_square(Z, model.rates()) > 1e-3
    frequent = Z.reshape(draws, -1)[:, model.rates().ravel() > 0.2]  # a correlation of rare events is not normal
    correlation = np.corrcoef(frequent.T)[np.triu_indices(frequent.shape[1], 1)]
    # the largest of fewer than 1000 normal deviates exceeds 4.5 once in 150 times
    assert 10 <= len(correlation) < 1000 and np.abs(correlation).max() < 4.5 / np.sqrt(draws)


def test_thinning_bounds_dominate(rng):
    model = drawn_embedding(30, 40, 3, rng, variance=9.0)
    c_u, c_v = _thinning_bounds(model.U, model.V, np.sqrt(model.m))
    assert (model.U @ model.V.T / np.sqrt(model.m) <= c_u[:, None] + c_v + 1e-12).all()


@pytest.mark.parametrize(("long", "other"), [(2.0, 50.0), (0.02, 0.5), (0.5, 0.02)])
def test_thinning_bounds_are_shared_between_the_sides(long, other, rng):
    """For rows of one length each the bound is |u| |v| / sqrt(m), half from either side, whatever the lengths."""
    directions = rng.standard_normal((20, 2))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    c_u, c_v = _thinning_bounds(long * directions[:8], other * directions[8:], np.sqrt(8))
    assert np.allclose(c_u, long * other / np.sqrt(8) / 2, rtol=1e-14) and np.allclose(c_v, c_u[0], rtol=1e-14)
    c_u, c_v = _thinning_bounds(np.zeros((8, 2)), directions[8:], np.sqrt(8))
    assert not c_u.any() and np.isfinite(c_v).all()
    c_u, c_v = _thinning_bounds(directions[:8], np.zeros((12, 2)), np.sqrt(8))
    assert np.isfinite(c_u).all() and not c_v.any()


def test_pairs_exactly_at_the_bound_are_drawn_once(rng):
    """Rows and columns of squared length 6 with m = 1 have bounds of 3 each: thinned, and not densely as well."""
    u, n, draws = np.array([[1.0, 1.0, 2.0]]), 50, 200
    model = PoissonEmbedding(u, np.repeat(u, n, axis=0), np.zeros(1), np.full(n, -7.0))
    assert [set(c.tolist()) for c in _thinning_bounds(model.U, model.V, 1.0)] == [{LONG}, {LONG}]
    total = sum(model.sample(rng, sparse=True).sum() for _ in range(draws))
    expected = draws * n * np.exp(6 - 7)
    assert abs(total - expected) < 4 * np.sqrt(expected)


@pytest.mark.slow
def test_thinning_in_many_chunks_gives_the_same_law(rng, monkeypatch, densely_drawn):
    """Rows whose proposals fill a chunk each: the sums of 2000 draws are chi-square about their rates."""
    monkeypatch.setattr(model_module, "PROPOSALS_AT_ONCE", 2)
    model = spread_model(rng)
    Z = sum(model.sample(rng, sparse=True).toarray() for _ in range(2000))
    assert not any(densely_drawn)
    statistic = ((Z - 2000 * model.rates()) ** 2 / (2000 * model.rates())).sum()
    assert stats.chi2.sf(statistic, Z.size) > 1e-3


@pytest.mark.parametrize(
    ("long_rows", "long_columns", "level", "dense"),
    [(1, 0, -3, [40, 0]), (0, 1, -3, [0, 50]), (2, 2, -3, [80, 96]), (0, 0, 3, [2000, 0])],
)
def test_only_long_rows_and_frequent_pairs_are_drawn_densely(long_rows, long_columns, level, dense, rng, densely_drawn):
    """One long row must not make every other pair expensive: sums against their Poisson law, over 100 draws."""
    U, V = 0.3 * rng.standard_normal((50, 3)), 0.3 * rng.standard_normal((40, 3))
    U[:long_rows] *= 40
    V[:long_columns] *= 40
    U[:long_rows, 1:] = V[:long_columns, 1:] = 0  # long, but the rates stay within reach
    V[:long_columns, 0] *= -np.sign(U[0, 0] * V[0, 0]) if long_rows and long_columns else 1
    model = PoissonEmbedding(U, V, np.full(50, float(level)), np.zeros(40))
    Z = sum(model.sample(rng, sparse=True) for _ in range(100)).toarray()
    assert densely_drawn == 100 * dense
    rates = 100 * model.rates()
    for axis in (0, 1, None):
        expected = rates.sum(axis=axis)
        assert (np.abs(Z.sum(axis=axis) - expected) < 5 * np.sqrt(expected) + 5).all()


def test_rows_with_more_proposals_than_columns_are_drawn_densely(rng, densely_drawn):
    """The cost of a thinned row is its proposals, that of another one its columns: the sampler takes the smaller."""
    U, V = rng.standard_normal((30, 2)), rng.standard_normal((20, 2))
    model = PoissonEmbedding(U, V, np.linspace(-3, 3, 30), np.linspace(-2, 0, 20))
    c_u, c_v = _thinning_bounds(U, V, np.sqrt(30))
    proposals = np.exp(np.add.outer(model.s_u + c_u, model.s_v + c_v)).sum(axis=1)
    assert max(c_u.max(), c_v.max()) < LONG and 5 < (proposals > 20).sum() < 25
    model.sample(rng, sparse=True)
    assert densely_drawn == [(proposals > 20).sum() * 20, 0]


def test_thinning_needs_indices_of_32_bits_alone(rng, monkeypatch, densely_drawn):
    """Where indices have 32 bits, as in WebAssembly, NumPy refuses numbers of repeats with 64."""

    def repeat_on_32_bits(values, repeats):
        assert np.can_cast(repeats.dtype, np.int32, "safe")
        repeated = [value for value, times in zip(values, repeats, strict=True) for _ in range(times)]
        return np.array(repeated, dtype=values.dtype)

    monkeypatch.setattr(np, "repeat", repeat_on_32_bits)
    monkeypatch.setattr(np, "intp", np.int32)
    Z = spread_model(rng).sample(rng, sparse=True)
    assert Z.nnz and not any(densely_drawn) and Z.indices.dtype == np.int32


def test_the_example_has_the_laws_that_it_names():
    truth = draw_example(4000, 2, variance=0.5, rate=3.0, spread=0.1, rng=np.random.default_rng(0))
    assert truth.U.shape == (4000, 2) and truth.V.shape == (6000, 2)
    for X in (truth.U, truth.V):
        assert abs(X.var() - 0.5) < 4 * 0.5 * np.sqrt(2 / X.size)
    for s in (truth.s_u, truth.s_v):
        assert abs(s.mean() - s.min() - 0.1) < 4 * 0.1 / np.sqrt(s.size)
    assert truth.s_u.min() + truth.s_v.min() == pytest.approx(np.log(3.0), abs=1e-3)


def test_each_side_is_drawn_from_its_own_laws(rng):
    laws = {"rows_u": GaussianRows(1.0), "rows_v": GaussianRows(9.0), "bias_u": ShiftedExponential(0.3, 0.0)}
    model = draw_embedding(500, 600, 2, **laws, bias_v=ShiftedExponential(0.1, 0.0), rng=rng)
    for values, deviation in ((model.U, 1), (model.V, 3), (model.s_u, 0.3), (model.s_v, 0.1)):
        assert values.std() == pytest.approx(deviation, rel=0.2)  # of 500 exponential variables: 4 sqrt(2 / 500)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("length", [100.0, 8.0])
def test_one_rate_that_is_too_large_for_a_count_is_enough(length, sparse, rng):
    """Of exp(10000), which is no float, and exp(64) > 2^63, which no count holds."""
    one = np.array([[length], [0.0]])
    with pytest.raises(OverflowError, match="scale down U|scale U down"):
        PoissonEmbedding(one, np.sqrt(2) * one, np.zeros(2), np.zeros(2)).sample(rng, sparse=sparse)


def test_the_distribution_takes_rates_that_differ_by_more_than_a_float_can():
    """Log rates of 1600, 0, -1600 and 0: one pair has all the probability."""
    model = PoissonEmbedding([[40.0], [-40.0]], 2**0.5 * np.array([[40.0], [0.0]]), np.zeros(2), np.zeros(2))
    assert model.joint_pmf().tolist() == [[1, 0], [0, 0]]


def test_a_short_row_among_columns_that_are_all_long_is_drawn(rng):
    """Thinning has rows but no columns left: the pairs of the row of zeros, of rate 100, are drawn densely."""
    U, V = np.array([[-30.0], [-30.0], [-30.0], [0.0]]), np.full((50, 1), 30.0)
    assert (_thinning_bounds(U, V, 2.0)[1] > LONG).all()
    Z = PoissonEmbedding(U, V, np.zeros(4), np.full(50, np.log(100.0))).sample(rng, sparse=True).toarray()
    assert not Z[:3].any() and abs(Z[3].mean() - 100) < 5 * np.sqrt(100 / 50)
