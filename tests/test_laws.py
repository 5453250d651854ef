"""Laws of biases and rows: moments against closed forms, quadrature against integrals, normalisation."""

import numpy as np
import pytest
from scipy.integrate import quad

from amptutorial import ConstantBias, DiscreteBias, GaussianRows, ShiftedExponential, Zipf, scaled_rows
from amptutorial.denoisers import GaussianPosterior
from amptutorial.laws import BiasLaw, EmpiricalRows, LogNormal, ScaledRows, SparseGaussianRows
from amptutorial.model import PoissonEmbedding

BIASES = [ConstantBias(1.5), DiscreteBias([4.5, 5.5], [0.25, 0.75]), ShiftedExponential(0.25, 5), Zipf(0.4, 2.0)]
BIASES += [LogNormal(0.7, 0.3)]


@pytest.mark.parametrize("law", BIASES, ids=repr)
def test_draws_follow_the_inverse_survival_function(law, rng):
    """P(s > isf(q)) <= q <= P(s >= isf(q)), within 4 standard errors."""
    draws = law.draw(40_000, rng=rng)
    for q in (0.03, 0.3, 0.8):
        s, error = law.isf(np.array(q)), 4 * np.sqrt(q * (1 - q) / 40_000)
        assert (draws > s + 1e-12).mean() <= q + error and (draws >= s - 1e-12).mean() >= q - error


@pytest.mark.parametrize("law", BIASES, ids=repr)
@pytest.mark.parametrize("p", [-1, 1, 2])
def test_quadrature_equals_the_moment(law, p):
    r, weights = law.atoms()
    exact = quad(lambda q: np.exp(p * law.isf(q)), 0, 1, epsabs=0, epsrel=1e-10, limit=500)[0]
    assert weights.sum() == pytest.approx(1)
    assert weights @ r**p == pytest.approx(law.moment(p), rel=1e-6)
    assert law.moment(p) == pytest.approx(exact, rel=1e-4)  # quad's own error at the singularity


def test_the_quadrature_reaches_far_into_a_heavy_tail():
    """E(r^2) = 1 / (1 - 0.9): the share e^-8.5 of it lies beyond U = e^-85, which the last node must pass by far."""
    r, weights = Zipf(0.45).atoms()
    assert weights @ r**2 == pytest.approx(10, rel=1e-9)


def test_base_class_moment_is_the_quadrature():
    class Uniform(BiasLaw):
        def isf(self, q):
            return 1.0 - np.asarray(q)

    assert Uniform().moment(1) == pytest.approx(np.e - 1, rel=1e-10)


def test_zipf_moments_are_infinite_from_one_over_alpha_on():
    """Erratum 12: for alpha >= 1/2 no second moment, for alpha = 1 no mean, against the assumptions of PL(2)."""
    assert np.isinf(Zipf(0.5).moment(2)) and np.isinf(Zipf(1.0).moment(1)) and np.isfinite(Zipf(0.49).moment(2))


def test_zipf_second_moment_does_not_converge_empirically():
    """(1/m) sum r_i^2 of r_i = (i/m)^-alpha converges for alpha = 0.3 and grows without end for alpha = 0.8."""

    def second(alpha, m):
        return np.mean((np.arange(1, m + 1) / m) ** (-2 * alpha))

    assert second(0.3, 10**6) == pytest.approx(Zipf(0.3).moment(2), rel=0.01)
    growth = np.log(second(0.8, 10**6) / second(0.8, 10**4)) / np.log(100)
    assert growth == pytest.approx(2 * 0.8 - 1, abs=0.02)  # sum ~ m^(2 alpha), divided by m


def test_gaussian_rows_have_their_covariance(rng):
    C = np.array([[2.0, 0.5], [0.5, 1.0]])
    u = GaussianRows(C).draw((50_000, 2), rng=rng)
    assert np.allclose(u.T @ u / len(u), C, atol=4 * 3 / np.sqrt(len(u)))


@pytest.mark.parametrize(("density", "d"), [(0.5, 10), (0.1, 3), (0.0, 2), (1.0, 4)])
def test_sparse_rows_keep_their_share(density, d, rng):
    u = SparseGaussianRows(0.3, density).draw((20_000, d), rng=rng)
    kept = (u != 0).sum(axis=1)
    assert set(np.unique(kept)) <= {int(density * d), int(np.ceil(density * d))}
    assert (u != 0).mean(axis=0) == pytest.approx(density, abs=4 * 0.5 / np.sqrt(20_000))
    assert u.T @ u / len(u) == pytest.approx(SparseGaussianRows(0.3, density).second_moment(d), abs=0.02)


def test_scaled_rows_are_normalised(rng):
    """E(R^u) = 1, the product of rates unchanged, E(x x^T) = E(r) covariance (eq:bias_norm, eq:abyscaled)."""
    bias_u, bias_v = ShiftedExponential(0.25, 5), Zipf(0.3, 0.7)
    law_u, law_v = scaled_rows(2, rows_u=GaussianRows(0.1), rows_v=GaussianRows(1), bias_u=bias_u, bias_v=bias_v)
    (r_u, w_u), (r_v, w_v) = law_u.atoms(), law_v.atoms()
    assert w_u @ r_u == pytest.approx(1) and w_v @ r_v == pytest.approx(bias_u.moment(1) * bias_v.moment(1))
    r, X = law_u.draw(100_000, rng=rng)
    assert r.mean() == pytest.approx(1, abs=0.01)
    assert X.T @ X / len(X) == pytest.approx(0.1 * np.eye(2), abs=0.005)


def test_scaled_rows_need_a_mean_rate_but_no_second_moment():
    heavy, rows = Zipf(0.6), GaussianRows(1)
    law_u, law_v = scaled_rows(1, rows_u=rows, rows_v=rows, bias_u=heavy, bias_v=heavy)
    assert heavy.moment(2) == np.inf and law_u.log_scale == -law_v.log_scale == -np.log(heavy.moment(1))


def test_empirical_rows_repeat_the_instance(rng):
    r, X = np.array([1.0, 2.0, 3.0]), np.arange(6.0).reshape(3, 2)
    law, oftener = EmpiricalRows(r, X), set()
    for _ in range(20):
        drawn_r, drawn_X = law.draw(7, rng=rng)
        counts = [(drawn_r == value).sum() for value in r]
        assert sorted(counts) == [2, 2, 3]
        oftener.add(r[np.argmax(counts)])
    assert oftener == {1, 2, 3}  # but for 3 (2 / 3)^20 = 1e-3
    assert all((X[list(r).index(a)] == b).all() for a, b in zip(drawn_r, drawn_X, strict=True))


def test_laws_denoisers_and_models_keep_their_own_arrays(rng):
    r, X, C, U = np.ones(2), np.ones((2, 1)), np.eye(2), np.ones((3, 1))
    rows, gaussian, posterior = EmpiricalRows(r, X), GaussianRows(C), GaussianPosterior(C)
    model = PoissonEmbedding(U, U, np.zeros(3), np.zeros(3))
    for array in (r, X, C, U):
        array[:] = 7
    assert (rows.draw(2, rng=rng)[0] == 1).all() and (rows.draw(2, rng=rng)[1] == 1).all()
    assert (gaussian.second_moment(2) == np.eye(2)).all() and (posterior.covariance == np.eye(2)).all()
    assert np.allclose(model.rates(), np.exp(1 / np.sqrt(3)))


def test_probabilities_that_sum_to_one_but_for_their_digits_are_normalised_and_their_order_does_not_matter():
    law = DiscreteBias([0.0, 1.0], [0.333333, 0.666666])
    assert sum(law.probabilities) == pytest.approx(1, rel=1e-15)
    assert law.probabilities[1] == pytest.approx(2 * law.probabilities[0], rel=1e-15)
    assert DiscreteBias([2.0, 1.0, 3.0], [0.25, 0.7, 0.05]) == DiscreteBias([1.0, 2.0, 3.0], [0.7, 0.25, 0.05])
    law = DiscreteBias([2.0, 1.0, 3.0], [0.25, 0.7, 0.05])
    assert law.isf([0.01, 0.04, 0.06, 0.29, 0.31, 1.0]).tolist() == [3, 3, 2, 2, 1, 1]


def test_laws_may_have_no_variance_no_probability_and_rates_below_one(rng):
    assert not GaussianRows(0.0).draw((3, 2), rng=rng).any() and not SparseGaussianRows(0.0).draw((3, 2), rng=rng).any()
    assert DiscreteBias([1.0, 2.0], [1.0, 0.0]).moment(1) == np.e
    rare, rows = ConstantBias(-1.0), GaussianRows()
    assert scaled_rows(1, rows_u=rows, rows_v=rows, bias_u=rare, bias_v=rare)[0].log_scale == 1.0


def test_equal_laws_are_equal_and_may_be_keys():
    for make in (lambda: GaussianRows(np.eye(2)), lambda: GaussianRows(0.1), lambda: DiscreteBias([1.0, 2.0])):
        assert make() == make() and len({make(), make()}) == 1
    assert GaussianRows(np.eye(2)) != GaussianRows(2 * np.eye(2))


@pytest.mark.parametrize("s", [-800.0, 800.0])
def test_biases_whose_exponentials_are_not_floats_are_refused(s, rng):
    """exp(-800) is zero: a law of rates may not be made of it, nor a mean of 1 by dividing by it."""
    rows = {"rows_u": GaussianRows(), "rows_v": GaussianRows()}
    with pytest.raises(OverflowError, match=r"exp\(value\) is zero or infinite"):
        scaled_rows(2, bias_u=ConstantBias(s), bias_v=ConstantBias(), **rows)
    with pytest.raises(OverflowError, match=r"exp\(s\) is zero or infinite: the biases are too"):
        ScaledRows(GaussianRows(), ConstantBias(s), 2).draw(3, rng=rng)
    message = r"exp\(s \+ log_scale\) must be positive and finite: .*\[0\] is"
    with np.errstate(over="ignore"), pytest.raises(ValueError, match=message):
        ScaledRows(GaussianRows(), ConstantBias(s / 2), 2, s / 2).atoms()


def test_moments_that_do_not_exist_are_infinite_and_those_that_are_too_large_with_a_warning():
    assert ShiftedExponential(0.5).moment(2) == Zipf(0.5).moment(2) == np.inf
    for law in (ConstantBias(500), ShiftedExponential(0.25, 500), Zipf(0.4, 1e200), DiscreteBias([500.0, 0.0])):
        with pytest.warns(RuntimeWarning, match="overflow"):
            assert law.moment(2) == np.inf


LAWS = {"rows_u": GaussianRows(), "rows_v": GaussianRows(), "bias_u": ConstantBias(), "bias_v": ConstantBias()}


class Never(ConstantBias):
    def moment(self, p):
        return 0.0


def test_bad_input_is_named():
    for make, message in (
        (lambda: SparseGaussianRows(density=1.5), "density must be between 0 and 1"),
        (lambda: DiscreteBias([1.0, 2.0], [0.5, 0.6]), "sum to 1"),
        (lambda: DiscreteBias([1.0, 2.0], [1.5, -0.5]), "must be non-negative"),
        (lambda: scaled_rows(2, **LAWS | {"bias_u": Zipf(1.0)}), "bias_u = .* has no finite mean rate"),
        (lambda: scaled_rows(2, **LAWS | {"bias_v": Never()}), "bias_v = .* has no finite mean rate above zero"),
        (lambda: Zipf().isf([0.5, 1.5]), "q must be above 0 and at most 1"),
        (lambda: ConstantBias().draw((2, -1), rng=np.random.default_rng(0)), "size must be at least 0"),
    ):
        with pytest.raises(ValueError, match=message):
            make()


def test_without_parameters_laws_are_the_papers_and_the_standard_ones(rng):
    """Section 4.2: exponential biases of mean 0.25 beyond 5, half of a sparse row zero; standard: N(0, I), no bias."""
    assert np.allclose(np.exp(Zipf().isf([0.01, 0.5, 1.0])), [100, 2, 1], rtol=1e-14)  # Zipf's own: 1 / rank
    paper = ShiftedExponential()
    assert paper.isf(1.0) == 5 and paper.isf(np.exp(-1)) == pytest.approx(5.25, rel=1e-15)
    assert (ConstantBias().isf([0.5, 1.0]) == 0).all()
    assert (GaussianRows().second_moment(2) == np.eye(2)).all()
    assert (SparseGaussianRows().second_moment(2) == np.eye(2) / 2).all()
    law = ScaledRows(GaussianRows(), ConstantBias(), 1)
    assert (law.draw(3, rng=rng)[0] == 1).all() and (law.atoms()[0] == 1).all()
