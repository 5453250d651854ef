"""AMP on the re-expanded likelihood: where it starts, where it ends, and what it must not depend on."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from amptutorial import reexpansion, sampling, sums
from amptutorial.amp import half_step
from amptutorial.bias import estimate_bias
from amptutorial.biases import refit_biases
from amptutorial.channels import Presence
from amptutorial.denoisers import GaussianPosterior, Lasso, Ridge
from amptutorial.laws import ConstantBias, GaussianRows
from amptutorial.model import draw_embedding
from amptutorial.reexpansion import balanced_sides, new_side, reexpanded_half_step, settle_rows
from amptutorial.sampling import Sampler, exact
from amptutorial.score import FisherScore
from amptutorial.spectrum import shrink
from amptutorial.table import Table, expected_bursts


@pytest.fixture
def counts(rng):
    """60 x 40 counts, about five a cell, with M of order one."""
    rows = GaussianRows(np.sqrt(60 / 2))
    model = draw_embedding(60, 40, 2, rows_u=rows, rows_v=rows, bias_u=ConstantBias(), bias_v=ConstantBias(), rng=rng)
    return sp.csr_array(rng.poisson(5 * model.rates() / model.rates().mean() + 0.1))


def iterated(Z, rows, columns, m, number, channel=reexpansion.COUNTS, sampler=exact):
    """Return both sides after each of so many iterations."""
    table, ahead, found = Table(Z), None, []
    for _ in range(number):
        bursts = table.bursts(channel, rows, columns, m)
        rows, columns, ahead = reexpansion.next_sides(bursts, rows, columns, ahead, m, sampler)
        found.append((rows, columns))
    return found


def in_double(side):
    return new_side(side.X.astype(np.float64), side.r, side.denoiser)


def score(Z, U, V, r_u, r_v):
    """The derivative of the log-likelihood by U, from the dense rates."""
    m = len(U)
    return (Z - r_u[:, None] * r_v * np.exp(U @ V.T / np.sqrt(m))) @ V / np.sqrt(m)


@pytest.fixture
def columns(counts, rng):
    directions = Table(counts).leading_directions(2, rng)[0]
    return in_double(reexpansion.starting_sides(*estimate_bias(counts), Ridge(1.0), directions, np.sqrt(30))[1])


def test_a_half_step_is_that_of_the_score_less_its_excess_at_the_estimate(counts, columns, rng, monkeypatch):
    """`prop-channels-again`: AMP's half-step on Y - E, at any estimate, Onsager term and refitted biases."""
    monkeypatch.setattr(reexpansion, "REACH", 1e9)
    m, denoiser, Gamma = counts.shape[0], GaussianPosterior(0.7, learn=True), np.array([[0.3, 0.1], [0.1, 0.2]])
    r_u, r_v = estimate_bias(counts)
    rows = new_side(rng.standard_normal((m, 2)), r_u, denoiser)
    columns = replace(columns, Gamma=Gamma, bias=r_v * rng.uniform(0.5, 2, 40))
    M = rows.X @ columns.X.T / np.sqrt(m)
    information, rates = r_u[:, None] * r_v, r_u[:, None] * columns.bias
    # rows that add up as the rates do keep the biases
    Z = counts.toarray() * ((rates * np.exp(M)).sum(axis=1) / counts.sum(axis=1))[:, None]
    updated = reexpanded_half_step(Table(sp.csr_array(Z)), rows, columns, m)
    assert np.allclose(updated.bias, r_u, rtol=1e-12)

    A, B = np.sqrt(r_u)[:, None] * rows.X, np.sqrt(r_v)[:, None] * columns.X
    score_less_excess = (Z - information - (rates * np.exp(M) - information * (1 + M))) / np.sqrt(information)
    P = score_less_excess @ B / np.sqrt(m) - A @ Gamma
    half = half_step(P, r_u, B.T @ B / m, Gamma, denoiser)
    assert np.allclose(np.sqrt(r_u)[:, None] * updated.X, half.estimate, rtol=1e-9, atol=1e-9)
    assert np.allclose(updated.Gamma, half.jacobian, rtol=1e-12)
    assert np.allclose(updated.denoiser.covariance, half.denoiser.covariance, rtol=1e-9)


def test_the_onsager_term_of_the_columns_is_a_sum_over_them_divided_by_m(counts, rng, monkeypatch):
    monkeypatch.setattr(reexpansion, "REACH", 1e9)
    (r_u, r_v), m = estimate_bias(counts), 60
    rows = new_side(0.1 * rng.standard_normal((60, 2)), r_u, GaussianPosterior(1.0))
    columns = new_side(np.zeros((40, 2)), r_v, GaussianPosterior(0.7))
    updated = reexpanded_half_step(Table(counts).T, columns, rows, m)
    Q = (rows.X * r_u[:, None]).T @ rows.X / m
    assert np.allclose(updated.Gamma, sum(np.linalg.inv(Q + np.eye(2) / (0.7 * r)) for r in r_v) / m, rtol=1e-12)


def test_no_step_changes_m_by_more_than_the_reach(counts, columns):
    m = counts.shape[0]
    rows = new_side(np.zeros((m, 2)), estimate_bias(counts)[0], GaussianPosterior(1e6))
    far = replace(columns, X=100 * columns.X)
    updated = reexpanded_half_step(Table(counts), rows, far, m)
    assert np.abs(updated.X @ far.X.T / np.sqrt(m)).max() <= reexpansion.REACH * (1 + 1e-12)
    # the Onsager term goes as far as the rows do on average
    share, B = (updated.X / updated.step).mean(), np.sqrt(far.r)[:, None] * far.X
    whole = sum(np.linalg.inv(B.T @ B / m + np.eye(2) / (1e6 * r)) for r in rows.r) / m
    assert share < 0.95 and np.allclose(updated.Gamma, share * whole, rtol=1e-6)


def test_after_an_iteration_the_rates_have_the_row_sums_of_the_counts(counts, columns):
    """The biases of the rows are those beside the columns as they are then, and far from the counted ones."""
    rows = new_side(np.zeros((60, 2)), estimate_bias(counts)[0], Ridge(1.0))
    ((rows, columns),) = iterated(counts, rows, columns, 60, 1)
    rates = rows.bias[:, None] * columns.bias * np.exp(rows.X @ columns.X.T / np.sqrt(60))
    assert np.allclose(rates.sum(axis=1), counts.sum(axis=1), rtol=1e-9) and np.ptp(rows.bias / rows.r) > 0.1


def settled(counts, columns, denoiser):
    """Return rows settled from zero, and the derivative of the log-likelihood by them."""
    m = counts.shape[0]
    rows = new_side(np.zeros((m, 2)), estimate_bias(counts)[0], denoiser)
    rows = settle_rows(Table(counts), rows, columns, m)
    return rows, score(counts.toarray(), rows.X, columns.X, rows.bias, columns.bias)


@pytest.fixture
def to_the_end(monkeypatch):
    monkeypatch.setattr(reexpansion, "SETTLED", 1e-11)


@pytest.mark.parametrize("gamma", [0.0, 0.1])
def test_settled_rows_are_stationary_points_of_the_ridge_penalised_likelihood(counts, columns, gamma, to_the_end):
    """Onsager term or not: it cancels at a fixed point of an argmin denoiser (lem:fixed-points, for Poisson)."""
    B = np.sqrt(columns.r)[:, None] * columns.X
    rows, gradient = settled(counts, replace(columns, Gamma=gamma * B.T @ B / 60), Ridge(0.3))
    assert np.allclose(gradient, 0.3 * rows.X, atol=1e-7)
    rates = rows.bias[:, None] * columns.bias * np.exp(rows.X @ columns.X.T / np.sqrt(60))
    assert np.allclose(rates.sum(axis=1), counts.sum(axis=1), rtol=1e-12)  # the margins are right
    assert balanced_sides(columns, columns) == (columns, columns)  # a ridge knows its axes


def test_settled_rows_are_minimisers_for_the_absolute_norm(counts, columns, to_the_end):
    """The optimality conditions of the lasso: |score| <= strength, with equality and the sign where u is not zero."""
    rows, gradient = settled(counts, columns, Lasso(2.0))
    active = rows.X != 0
    assert 0 < active.mean() < 1
    assert np.allclose(gradient[active], 2.0 * np.sign(rows.X[active]), atol=1e-7)
    assert (np.abs(gradient) <= 2.0 + 1e-7).all()


def test_settled_posterior_means_balance_score_prior_and_onsager_term(counts, columns, to_the_end):
    """score = C^-1 u + r Gamma u: the uncertainty of the other side acts as a further ridge."""
    C, Gamma = np.array([[2.0, 0.5], [0.5, 1.0]]), np.diag([0.3, 0.1])
    rows, gradient = settled(counts, replace(columns, Gamma=Gamma), GaussianPosterior(C))
    assert np.allclose(gradient, rows.X @ np.linalg.inv(C) + rows.r[:, None] * rows.X @ Gamma, atol=1e-7)


def presence(Z, U, V, r_u, r_v):
    """The bursts of pairs that show only whether there is one: rate / (1 - exp(-rate)), and the dense rates."""
    rates = r_u[:, None] * r_v * np.exp(U @ V.T / np.sqrt(len(U)))
    return np.where(Z > 0, rates / -np.expm1(-rates), 0), rates


def test_a_pair_may_have_any_rate_on_the_way():
    """Beyond exp(50) it is exp(50), and a row without counts has none: finite bursts, without a warning."""
    Z = sp.csr_array(np.ones((2, 1)))
    rows, columns = (new_side(np.full((n, 1), 100.0), np.ones(n), None) for n in (2, 1))
    found = expected_bursts(Z, Presence(), replace(rows, bias=np.array([1.0, 0.0])), columns, 2)
    assert np.allclose(found.toarray().ravel(), [np.exp(50), 1.0], rtol=1e-12)


@pytest.mark.parametrize("which", ["rows", "both sides"])
def test_bursts_follow_the_estimate_until_both_agree(counts, columns, which, to_the_end):
    """score = strength u with the bursts expected at the very rates, whose margins are those of the bursts."""
    Z = sp.csr_array(counts.toarray() // 4.0)  # about half of the pairs are empty
    m, strength, r_u = 60, 1.0, estimate_bias(Z)[0]
    columns = replace(columns, r=estimate_bias(Z)[1], bias=estimate_bias(Z)[1], denoiser=Ridge(strength))
    rows = new_side(np.zeros((m, 2)), r_u, Ridge(strength))
    if which == "rows":
        rows = settle_rows(Table(Z), rows, columns, m, Presence(), max_iter=2000)
    else:
        rows, columns = iterated(Z, rows, columns, m, 250, Presence())[-1]
    N, rates = presence(Z.toarray(), rows.X, columns.X, rows.bias, columns.bias)
    assert np.allclose(rates.sum(axis=1), N.sum(axis=1), rtol=1e-7)
    assert np.allclose((N - rates) @ columns.X / np.sqrt(m), strength * rows.X, atol=1e-6)
    if which == "both sides":
        assert np.allclose((N - rates).T @ rows.X / np.sqrt(m), strength * columns.X, atol=1e-6)
    assert np.abs(rows.X @ columns.X.T).max() / np.sqrt(m) > 0.5


def test_settled_rows_do_not_depend_on_each_other(counts, columns):
    m = counts.shape[0]
    rows = new_side(np.zeros((m, 2)), estimate_bias(counts)[0], GaussianPosterior(1.0))
    together, some = settle_rows(Table(counts), rows, columns, m), np.arange(0, m, 7)
    alone = settle_rows(Table(counts[some]), rows.take(some), columns, m)
    assert np.allclose(alone.X, together.X[some], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("largest", [10**6, 30], ids=["all columns", "samples"])
def test_iterations_stay_in_the_precision_of_their_start(largest, counts, rng, monkeypatch):
    """Single precision is twice as fast, and one double number on the way would end it unnoticed."""
    for name, value in {"ALL_UP_TO": largest, "FEWEST": 8, "PER_COUNT": 0.1}.items():
        monkeypatch.setattr(sampling, name, value)
    seen, tilted = set(), sums.tilted_means
    monkeypatch.setattr(sums, "tilted_means", lambda U, W, r_v: seen.add((U.dtype, W.dtype)) or tilted(U, W, r_v))
    directions = Table(counts).leading_directions(2, rng)[0]
    sides = reexpansion.starting_sides(*estimate_bias(counts), GaussianPosterior(1.0, learn=True), directions, 5.0)
    m, single = counts.shape[0], np.dtype(np.float32)
    for rows, columns in iterated(counts, *sides, m, 3, sampler=Sampler(rng)):
        for side in (rows, columns):
            assert {getattr(side, name).dtype for name in ("X", "step", "length", "reach")} == {single}
    assert seen == {(single, single)}


def test_balancing_changes_coordinates_only(counts, rng):
    m = counts.shape[0]
    learned, directions = GaussianPosterior(1.0, learn=True), Table(counts).leading_directions(2, rng)[0]
    sides = reexpansion.starting_sides(*estimate_bias(counts), learned, directions, 5.0)
    rows, columns = iterated(counts, *(in_double(side) for side in sides), m, 5)[-1]
    new_rows, new_columns = balanced_sides(rows, columns)
    assert np.allclose(new_rows.X @ new_columns.X.T, rows.X @ columns.X.T, atol=1e-9)
    grams = [(np.sqrt(s.r)[:, None] * s.X).T @ (np.sqrt(s.r)[:, None] * s.X) for s in (new_rows, new_columns)]
    assert np.allclose(grams[0], grams[1]) and np.allclose(grams[0], np.diag(np.sort(np.diag(grams[0]))[::-1]))

    bias = refit_biases(counts, rows.X, columns.X)[1]
    before = settle_rows(Table(counts), rows, replace(columns, bias=bias), m)
    after = settle_rows(Table(counts), new_rows, replace(new_columns, bias=bias), m)
    within = 10 * reexpansion.SETTLED * np.sqrt(m)
    assert np.allclose(after.X @ new_columns.X.T, before.X @ columns.X.T, atol=within)


def test_the_signs_of_the_coordinates_are_those_of_the_largest_entries(counts, rng):
    # skewed: the largest entries are positive where the sums are negative
    X, r = [np.exp(rng.standard_normal((size, 2))) - 2.5 for size in (60, 40)], estimate_bias(counts)

    def balanced(signs):
        return balanced_sides(*(new_side(signs * X, r, GaussianPosterior(1.0)) for X, r in zip(X, r, strict=True)))

    found = [balanced(signs) for signs in np.array([[1, 1], [-1, 1], [-1, -1]])]
    for sides in found:
        for side, first in zip(sides, found[0], strict=True):
            assert np.allclose(side.X, first.X)
        A = np.sqrt(sides[0].r)[:, None] * sides[0].X
        assert (A.max(axis=0) > -A.min(axis=0)).all()


def test_a_number_for_the_covariance_is_that_multiple_of_the_identity(counts, rng):
    X, r = (rng.standard_normal((60, 2)), rng.standard_normal((40, 2))), estimate_bias(counts)
    both = ([new_side(*side, GaussianPosterior(C)) for side in zip(X, r, strict=True)] for C in (3.0, 3.0 * np.eye(2)))
    for a, b in zip(*(balanced_sides(*sides) for sides in both), strict=True):
        assert np.array_equal(a.denoiser.covariance, b.denoiser.covariance) and np.array_equal(a.X, b.X)


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_a_direction_that_was_lost_keeps_a_little_of_the_prior_by_its_scale(counts, scale, rng):
    X = [scale * rng.standard_normal((n, 1)) @ np.ones((1, 2)) for n in (60, 40)]
    sides = (new_side(X, r, GaussianPosterior(scale**2)) for X, r in zip(X, estimate_bias(counts), strict=True))
    for side in balanced_sides(*sides):
        values = np.linalg.eigvalsh(side.denoiser.covariance)
        assert 0 < values[0] < 1e-6 * values[-1]


def test_the_prior_of_unequal_sides_stays_symmetric(counts, rng):
    """A change of coordinates by 1e9 leaves round-off that a covariance must not have."""
    prior, X = GaussianPosterior([[1.0, 0.3], [0.3, 2.0]]), [rng.standard_normal((n, 2)) * [1.0, 1e9] for n in (60, 40)]
    sides = (new_side(*side, prior) for side in zip(X, estimate_bias(counts), strict=True))
    covariance = balanced_sides(*sides)[0].denoiser.covariance
    assert np.array_equal(covariance, covariance.T)


def test_starting_rows_have_the_length_of_the_prior(counts, rng):
    V = rng.standard_normal((counts.shape[1], 2))
    rows, columns = reexpansion.starting_sides(*estimate_bias(counts), (Ridge(1.0), Lasso(2.0)), V, 3.0)
    assert (rows.X == 0).all() and isinstance(rows.denoiser, Ridge) and isinstance(columns.denoiser, Lasso)
    assert np.allclose((columns.X**2).sum(axis=1), 2 * 3.0, rtol=1e-5)
    cosines = np.einsum("jk,jk->j", columns.X, V) / np.linalg.norm(columns.X, axis=1) / np.linalg.norm(V, axis=1)
    assert np.allclose(cosines, 1)


def test_leading_directions_are_those_of_the_score(rng):
    """Against the dense SVD, for clear outliers; an empty column has no direction."""
    U, V = rng.choice([-1.0, 1.0], (80, 1)), rng.choice([-1.0, 1.0], (120, 1))
    Z = rng.poisson(20 * np.exp(0.5 * U @ V.T))
    Z[:, 7] = 0
    directions, variance = Table(sp.csr_array(Z)).leading_directions(1, rng)
    kept = np.delete(Z, 7, axis=1)
    Y = FisherScore(kept, *estimate_bias(kept)).toarray()
    sigma, right = np.linalg.svd(Y)[1:]
    assert directions[7] == 0 and abs(np.delete(directions, 7) @ right[0]) == pytest.approx(1, abs=1e-3)
    assert variance == pytest.approx(shrink(sigma[0], 80, 119) ** 2 / Z.sum(), rel=1e-3)
    assert variance == pytest.approx(0.25, rel=0.25)  # of M_ij = +-0.5, up to the terms of higher order in M


def test_without_a_signal_the_variance_is_the_largest_that_noise_can_hide(rng):
    Z = sp.csr_array(rng.poisson(5.0, (80, 120)))
    assert Table(Z).leading_directions(3, rng)[1] == pytest.approx(3 * np.sqrt(80 * 120) / Z.sum())


# How far rows go: less after they turn back, up to a whole step where they go on


@pytest.fixture
def sides(rng):
    """Counts of 8 x 6 pairs, rows at the origin, and columns so short that no whole step is beyond the reach."""
    Z = sp.csr_array(rng.integers(1, 9, (8, 6)))
    r_u, r_v = estimate_bias(Z)
    columns = new_side(0.1 * rng.standard_normal((6, 2)), r_v, Ridge(1.0))
    return Table(Z), new_side(np.zeros((8, 2)), r_u, Ridge(1.0)), columns


@pytest.mark.parametrize(("length", "longer"), [(0.25, 0.375), (0.5, 0.75), (0.8, 1.0), (1.0, 1.0)])
def test_a_row_that_goes_on_takes_half_as_much_again_and_one_that_turns_back_half(sides, length, longer):
    """Its first step is a whole one."""
    Z, rows, columns = sides
    first = reexpanded_half_step(Z, rows, columns, 8)
    step = first.step
    assert (np.abs(step).max(axis=1) > 0).all()
    assert (first.length == 1).all() and np.array_equal(first.X, step)
    turning = np.arange(8) % 2 == 0
    back, on = (np.array([[np.cos(t), np.sin(t)], [-np.sin(t), np.cos(t)]]) for t in np.radians([95, 85]))
    before = replace(rows, step=np.where(turning[:, None], step @ back, step @ on), length=np.full(8, length))
    after = reexpanded_half_step(Z, before, columns, 8)
    assert (after.reach < reexpansion.REACH).all() and np.array_equal(after.step, step)
    assert np.allclose(after.length, np.where(turning, length / 2, longer), rtol=1e-15)
    assert np.allclose(after.X, after.length[:, None] * step, rtol=1e-15)
    # the Onsager term goes as far as the rows do on average
    whole, moved = first.Gamma, after.length.mean()
    assert np.allclose(after.Gamma, moved * whole, rtol=1e-12)
    after = reexpanded_half_step(Z, replace(before, Gamma=np.diag([5.0, 7.0])), columns, 8)
    assert np.allclose(after.Gamma, moved * whole + (1 - moved) * np.diag([5.0, 7.0]), rtol=1e-12)
