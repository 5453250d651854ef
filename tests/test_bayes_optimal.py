"""Matched state evolution in two numbers, against closed forms, brute integrals and the sampled state evolution."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from amptutorial import DiscreteBias, GaussianPosterior, GaussianRows, scaled_rows
from amptutorial.bayes_optimal import GaussianMixture, MatchedEvolution, SeenRows
from amptutorial.spectrum import detection_ratio, overlaps
from amptutorial.state_evolution import gaussian_state_evolution

BETA = 0.6
GAUSSIAN = GaussianMixture([1], [0], [1])
SIGNS = GaussianMixture([0.5, 0.5], [-1, 1], [0, 0])
SPARSE = GaussianMixture([0.9, 0.1], [0, 0], [0, 10])
UNFAIR = GaussianMixture([0.3, 0.7], [-1, 0.5], [0.1, 0.4])
PRIORS = {"gaussian": GAUSSIAN, "signs": SIGNS, "sparse": SPARSE, "unfair": UNFAIR}
every_prior = pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
RATES, CHANCES = np.array([0.5, 2.0, 4.0]), np.array([0.7, 0.2, 0.1])


def rows(prior, scale=1.0):
    """Return rows of three frequencies."""
    return SeenRows(prior, scale * RATES, CHANCES)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_gaussian_rows_have_closed_forms(d):
    """The trapezoidal rule meets a kink at 0 in even dimensions, of a relative size below 1e-6."""
    prior, t = GaussianMixture([1], [0], [1], d), np.array([0, 1e-6, 0.01, 0.7, 20.0, 1e5])
    assert np.allclose(prior.known_share(t), t / (1 + t), rtol=1e-6, atol=0)
    assert np.allclose(prior.information(t), d * np.log1p(t) / 2, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("mean", "variance"), [(1, 1), (-1, 2), (-1, 1), (3, 0), (0, 1e10), (1e10, 1)])
def test_one_component_of_any_mean_and_variance_has_closed_forms(mean, variance):
    prior, t = GaussianMixture([1], [mean], [variance]), np.array([0, 0.3, 7.0])
    assert prior.second_moment == mean**2 + variance
    assert np.allclose(prior.known_share(t), mean**2 + t * variance**2 / (1 + t * variance), rtol=1e-9)
    assert np.allclose(prior.information(t), np.log1p(t * variance) / 2, atol=1e-6)


def test_chances_of_zero_count_for_nothing_and_those_given_are_brought_to_a_sum_of_one():
    prior = GaussianMixture([0, 0.5, 0.5], [7, -1, 1], [3, 0, 0])
    assert prior == SIGNS and prior.known_share(0.8) == SIGNS.known_share(0.8)
    seldom = SeenRows(SPARSE, [0.5, 9.0, 2.0], [0.4, 0.0, 0.6])
    assert seldom.known(0.3) == pytest.approx(SeenRows(SPARSE, [0.5, 2.0], [0.4, 0.6]).known(0.3), rel=1e-12)
    rounded = np.array([0.3, 0.700005])
    assert np.allclose(GaussianMixture(rounded, [0, 0], [1, 2]).weights, rounded / 1.000005, rtol=1e-12)
    sample = SeenRows(SPARSE, [0.5, 2.0], rounded)
    assert np.allclose(sample.probabilities, rounded / 1.000005, rtol=1e-12)


@every_prior
@pytest.mark.parametrize(
    "t", [pytest.param(0.2, marks=pytest.mark.slow), 1.5, pytest.param(12, marks=pytest.mark.slow)]
)
def test_the_known_share_is_that_of_bayes_rule_on_a_grid(prior, t):
    """Bayes' rule with sums over a grid of u and of p; components without width are atoms."""
    grid = np.linspace(-25, 25, 1001)
    atoms, weights = [], []
    for w, mu, v in zip(prior.weights, prior.means, prior.variances, strict=True):
        atoms.append(grid if v else [mu])
        weights.append(w * norm.pdf(grid, mu, np.sqrt(v)) * (grid[1] - grid[0]) if v else [w])
    u, w = np.concatenate(atoms), np.concatenate(weights)
    p, step = np.linspace(-22 * t - 9, 22 * t + 9, 1500, retstep=True)
    joint = w * norm.pdf(p[:, None], t * u, np.sqrt(t))
    density = joint.sum(axis=1)
    seen = density > 1e-300
    share = ((joint @ u)[seen] ** 2 / density[seen]).sum() * step
    entropy = -(density[seen] * np.log(density[seen])).sum() * step
    assert prior.known_share(t) == pytest.approx(share, rel=1e-6)
    assert prior.information(t) == pytest.approx(entropy - np.log(2 * np.pi * np.e * t) / 2, rel=1e-5)


@pytest.mark.parametrize("prior", [*PRIORS.values(), replace(SPARSE, d=3)], ids=[*PRIORS, "three"])
def test_information_rises_by_half_of_what_is_not_known(prior):
    """I-MMSE of Guo, Shamai and Verdu, by central differences of second order."""
    t = np.array([0.01, 0.3, 2.0, 9.0])
    slope = (prior.information(1.001 * t) - prior.information(0.999 * t)) / (0.002 * t)
    assert np.allclose(slope, prior.d / 2 * (prior.second_moment - prior.known_share(t)), rtol=1e-5, atol=1e-6)


@every_prior
def test_the_known_share_runs_from_the_squared_mean_to_the_second_moment(prior):
    share = prior.known_share(np.append(0, np.geomspace(1e-6, 1e8, 60)))
    assert share[0] == pytest.approx(np.dot(prior.weights, prior.means) ** 2, abs=1e-12)
    assert (np.diff(share) > -1e-9).all() and share[-1] == pytest.approx(prior.second_moment, rel=1e-3)


@every_prior
def test_rows_average_over_their_frequencies(prior):
    t = np.geomspace(1e-5, 1e4, 40)
    exact = sum(p * r * prior.known_share(r * t) for r, p in zip(RATES, CHANCES, strict=True))
    assert np.allclose(rows(prior).known(t), exact, rtol=1e-5)  # a cubic spline of 1,000 knots
    exact = sum(p * prior.information(r * t) for r, p in zip(RATES, CHANCES, strict=True))
    assert np.allclose(rows(prior).information(t), exact, rtol=1e-5, atol=1e-9)
    assert rows(prior).size == pytest.approx(CHANCES @ RATES * prior.second_moment)
    sample = SeenRows(prior, np.repeat(RATES, (7, 2, 1)))  # serves as their law
    assert sample.known(0.3) == pytest.approx(rows(prior).known(0.3), rel=1e-12)
    assert rows(prior).known(1e8 / RATES.max()) == pytest.approx(rows(prior).size, rel=1e-3)  # the end of the table


@pytest.mark.parametrize("strength", [0.8, 1.3, 4.0, 5e7])
def test_equal_gaussian_rows_are_estimated_as_by_optimal_shrinkage(strength):
    """Up to the end of the tables: at the largest strength S^b is 0.65e8."""
    sides = SeenRows(GAUSSIAN, [1.0]), SeenRows(GAUSSIAN, [strength * np.sqrt(BETA)])
    evolution = MatchedEvolution(*sides, BETA)
    m, n = 6e6, 1e7
    left, right = overlaps(np.sqrt(strength * np.sqrt(m * n)), int(m), int(n))
    for s, t in (evolution.limit(), evolution.limit(informed=True), evolution.optimum()):
        assert np.allclose([s, t * np.sqrt(BETA) / strength], [left, right], atol=1e-5)
        assert evolution.error(s, t) == pytest.approx(1 - left * right, abs=1e-5)


def test_unequal_gaussian_rows_follow_the_closed_form_of_state_evolution():
    bias = DiscreteBias(np.log(RATES), CHANCES)
    laws = scaled_rows(2, rows_u=GaussianRows(1.0), rows_v=GaussianRows(1.0), bias_u=bias, bias_v=bias)
    start = 0.05 * np.eye(2)
    run = gaussian_state_evolution(*laws, GaussianPosterior(1.0), beta=BETA, M0=start, Q0=start, n_iter=6)
    prior, t = GaussianMixture([1], [0], [1], d=2), 0.05
    sides = [SeenRows(prior, *law.atoms()) for law in laws]
    evolution = MatchedEvolution(*sides, BETA)
    for it in run.iterates:
        s, t = evolution.step(t)
        assert np.allclose(it.Q_a, s * np.eye(2), rtol=1e-5) and np.allclose(it.Q_b_next, t * np.eye(2), rtol=1e-5)
        assert evolution.error(s, t) == pytest.approx(it.nmse, rel=1e-4)


@pytest.mark.parametrize("prior", [GAUSSIAN, SIGNS, SPARSE], ids=["gaussian", "signs", "sparse"])
@pytest.mark.parametrize("ratio", [0.8, 2.0])
def test_knowing_next_to_nothing_is_unstable_above_the_detection_ratio_of_one(prior, ratio):
    sample = np.repeat(RATES, (7, 2, 1))
    scale = np.sqrt(ratio / detection_ratio(sample, sample, 1.0, 1.0, BETA))
    evolution = MatchedEvolution(rows(prior), rows(prior, scale), BETA)
    assert evolution.step(1e-7)[1] / 1e-7 == pytest.approx(ratio, rel=1e-4)
    error = evolution.error(*evolution.limit())
    assert error < 0.99 if ratio > 1 else error == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("informed", [False, True])
@pytest.mark.parametrize("prior", [*PRIORS.values(), replace(SPARSE, d=3)], ids=[*PRIORS, "three"])
def test_fixed_points_are_the_critical_points_of_the_potential(prior, informed):
    evolution = MatchedEvolution(rows(prior), rows(replace(SPARSE, d=prior.d), 0.9), BETA)
    limit = np.array(evolution.limit(informed=informed))

    def slopes(point):
        steps = 1e-3 * np.diag(point)
        return [(evolution.potential(*(point + h)) - evolution.potential(*(point - h))) / h.sum() / 2 for h in steps]

    assert np.allclose(slopes(limit), 0, atol=1e-5)
    away = 0.9 * limit
    s, t = away
    expected = prior.d / 2 * np.array([s - evolution.rows_u.known(t), t - evolution.rows_v.known(s) / BETA])
    assert np.allclose(slopes(away)[::-1], expected, atol=1e-5) and np.abs(expected).max() > 1e-3


def test_the_optimum_is_where_the_potential_is_least_on_a_fine_grid():
    """Strengths on both sides of the first-order transition, where the informed limit stops being the best."""
    strengths = np.linspace(0.6, 0.8, 41)
    evolution = MatchedEvolution(rows(SPARSE), rows(SPARSE, strengths[:, None] * 0.3), BETA)
    nothing, informed, best = evolution.limit(), evolution.limit(informed=True), evolution.optimum()
    fine = np.linspace(0, 1, 4001)[:, None] * evolution.sizes[1]
    least = fine[evolution.potential(evolution.rows_u.known(fine), fine).argmin(axis=0), np.arange(41)]
    assert np.allclose(best[1], least, atol=2e-3 * evolution.sizes[1])
    is_first, is_informed = (np.isclose(best[1], other[1], rtol=1e-5, atol=1e-9) for other in (nothing, informed))
    apart = ~np.isclose(nothing[1], informed[1], rtol=1e-2, atol=1e-6)
    assert (is_first | is_informed).all() and (apart & is_first).any() and (apart & is_informed).any()


@pytest.mark.parametrize("scale", [0.2, 0.33, 0.9])
@pytest.mark.parametrize("unit", [1e-4, 1e4])
def test_the_units_of_the_two_sides_do_not_matter(scale, unit):
    """Rates times a unit and rates divided by it: s and t change like S^a and S^b, the errors not at all."""
    one = MatchedEvolution(rows(SPARSE), rows(SPARSE, scale), BETA)
    other = MatchedEvolution(rows(SPARSE, unit), rows(SPARSE, scale / unit), BETA)
    ends = [(each.limit(), each.limit(informed=True), each.optimum()) for each in (one, other)]
    for (s, t), (s_other, t_other) in zip(*ends, strict=True):
        assert np.allclose([s_other / unit, t_other * unit], [s, t], rtol=1e-4, atol=1e-7)


def test_problems_are_solved_together_as_one_by_one():
    scales = np.array([0.3, 0.5, 0.9])
    together = MatchedEvolution(rows(SPARSE), rows(SIGNS, scales[:, None]), BETA)
    for k, scale in enumerate(scales):
        alone = MatchedEvolution(rows(SPARSE), rows(SIGNS, scale), BETA)
        ends = [(each.limit(), each.limit(informed=True), each.optimum()) for each in (together, alone)]
        for stacked, single in zip(*ends, strict=True):
            assert np.allclose([stacked[0][k], stacked[1][k]], single, rtol=1e-5, atol=1e-9)
            assert together.error(*stacked)[k] == pytest.approx(alone.error(*single), abs=1e-6)


def test_bad_input_is_refused_by_name():
    for make, message in (
        (lambda: GaussianMixture([0.5, 0.4], [0, 0], [1, 1]), "weights"),
        (lambda: GaussianMixture([0.5, 0.5], [0, 0], [1, 1.5e10]), "variances"),
        (lambda: GaussianMixture([0.5, 0.5], [0, -1.5e10], [1, 1]), "variances"),
        (lambda: GaussianMixture([1, 0], [0, 3], [0, 0]), "all be zero"),
        (lambda: GaussianMixture([0.5, 0.5], [0, 1], [1, 1], d=2), "isotropic"),
        (lambda: GAUSSIAN.information([1.0, 1.1e8]), "t must be"),
        (lambda: SeenRows(GaussianPosterior(1.0), [1.0]), "prior"),
        (lambda: SeenRows(GAUSSIAN, [1.0, 2.0], [0.5, 0.6]), "probabilities"),
        (lambda: rows(GAUSSIAN).known(2.6e7), "scale down"),
        (lambda: MatchedEvolution(rows(GAUSSIAN), GAUSSIAN, 1.0), "rows_v"),
        (lambda: MatchedEvolution(rows(GAUSSIAN), rows(replace(GAUSSIAN, d=2)), 1.0), "same d"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            make()
