"""The batched Lasso solver: optimality conditions, ties, scales, and the Jacobian."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amptutorial import lasso_rows
from amptutorial.lasso_rows import _lasso_kkt, lasso_mean_jacobian, solve_lasso_rows

EPS = np.finfo(float).eps


def precision(d, condition, rng):
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    F = rotation * np.geomspace(1, 1 / condition, d) @ rotation.T
    return (F + F.T) / 2


def rows(N, F, rng):
    """Noisy sparse rows, as a denoiser sees them, and unequal thresholds."""
    truth = rng.standard_normal((N, len(F))) * (rng.random((N, len(F))) < 0.5)
    P = truth @ F + rng.standard_normal((N, len(F))) @ np.linalg.cholesky(F).T
    return P, rng.uniform(0.5, 2, N)


def worst_kkt(A, P, t, F):
    """Written with the subdifferential's two ends, and relative to the data alone, unlike `_lasso_kkt`."""
    residual, t = P - A @ F, t[:, None]
    low, high = np.where(A > 0, t, -t), np.where(A < 0, -t, t)
    violation = np.maximum(low - residual, residual - high)
    return (violation.max(1) / np.maximum(np.abs(P).max(1), t[:, 0])).max(initial=0)


@given(
    seed=st.integers(0, 2**32 - 1),
    d=st.integers(1, 12),
    condition=st.sampled_from([1, 10, 1e3, 1e5, 1e8]),
    strength=st.sampled_from([1e-3, 0.03, 0.3, 1, 10]),
)
def test_kkt_conditions(seed, d, condition, strength):
    rng = np.random.default_rng(seed)
    F = precision(d, condition, rng)
    P, t = rows(30, F, rng)
    P[0], P[1] = 0, P[2]
    A = solve_lasso_rows(P, strength * t, F)
    assert worst_kkt(A, P, strength * t, F) < 1e-9
    assert _lasso_kkt(A, P, strength * t, F).max() < 1e-12
    np.testing.assert_array_equal(A[0], 0)


@given(
    data=st.data(), d=st.integers(1, 6), kind=st.sampled_from(["equal", "opposed", "whole"]), sweeps=st.integers(0, 3)
)
def test_ties(data, d, kind, sweeps):
    """Whole numbers and symmetric F make many bounds meet at one moment: the walk must not go in circles."""
    entries = st.integers(-3, 3)
    P = np.array(data.draw(st.lists(st.lists(entries, min_size=d, max_size=d), min_size=1, max_size=20)), dtype=float)
    t = np.array(data.draw(st.lists(st.integers(1, 4), min_size=len(P), max_size=len(P))), dtype=float)
    root = np.array(data.draw(st.lists(st.lists(entries, min_size=d, max_size=d), min_size=d, max_size=d)))
    F = {
        "equal": np.ones((d, d)) + 1e-3 * np.eye(d),
        "opposed": np.eye(d) - 0.99 * np.ones((d, d)) / d,
        "whole": root @ root.T + np.eye(d),
    }[kind]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lasso_rows, "_SWEEPS", sweeps)
        assert worst_kkt(solve_lasso_rows(P, t, F), P, t, F) < 1e-9


@pytest.mark.parametrize("t", [1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("diagonal", [0.5, 1.0, 2.0])
def test_residuals_exactly_on_their_bounds(t, diagonal, monkeypatch):
    """Every row of {-3, 0, 3}^7, from a guess of zero: round-off on a bound must not count as a violation."""
    monkeypatch.setattr(lasso_rows, "_SWEEPS", 0)
    P, F = np.array(list(itertools.product((-3.0, 0.0, 3.0), repeat=7))), np.ones((7, 7)) + diagonal * np.eye(7)
    t = np.full(len(P), t)
    assert worst_kkt(solve_lasso_rows(P, t, F), P, t, F) < 1e-13


def test_the_walk_starts_where_the_guess_is_optimal(rng):
    F = precision(6, 10, rng)
    P, t = rows(100, F, rng)
    guess = rng.standard_normal(P.shape) * (rng.random(P.shape) < 0.5)
    start = lasso_rows._solved_by(guess, P, t[:, None], F)
    np.testing.assert_allclose(solve_lasso_rows(start, t, F), guess, rtol=1e-12, atol=0)
    inside = np.abs(start - guess @ F)[guess == 0] / np.broadcast_to(t[:, None], P.shape)[guess == 0]
    assert inside.max() < 1
    symmetric = lasso_rows._solved_by(np.zeros((1, 6)), np.full((1, 6), 3.0), np.ones((1, 1)), np.eye(6))
    assert len(np.unique(symmetric)) == 6  # no two bounds are met at one moment


@pytest.mark.parametrize("strength", [1e-3, 0.02, 0.3])
@pytest.mark.parametrize(("condition", "units"), [(1e10, 0), (1e12, 0), (100, 8)])
def test_nearly_singular_or_in_unequal_units(condition, units, strength, rng):
    scales = np.geomspace(1, 10**units, 12)
    F = scales[:, None] * precision(12, condition, rng) * scales
    P, t = rows(1000, F, rng)
    assert _lasso_kkt(solve_lasso_rows(P, strength * t, F), P, strength * t, F).max() < 1e-12


@pytest.mark.parametrize("d", [31, 32, 33, 64, 70])
def test_many_columns(d, rng, monkeypatch):
    monkeypatch.setattr(lasso_rows, "_BLOCK", 10 * d**2)
    F = precision(d, 1e3, rng)
    P, t = rows(25, F, rng)
    A = solve_lasso_rows(P, 0.2 * t, F)
    assert 0.1 < (A == 0).mean() < 0.9
    assert worst_kkt(A, P, 0.2 * t, F) < 1e-11


def test_coordinate_descent_alone_solves_well_conditioned_rows(rng):
    """A sweep shrinks the largest error by max_i sum_j |f_ij| / f_ii = 0.15: after 20 of them round-off is left."""
    d = 4
    F = np.eye(d) + 0.05 * np.triu(rng.choice([-1, 1], (d, d)), 1)
    F = 3 * (np.triu(F) + np.triu(F, 1).T)
    P, t = 3 * rng.standard_normal((200, d)), rng.uniform(0.5, 2, 200)
    A = lasso_rows._coordinate_descent(P, t, F)
    assert 0.1 < (A == 0).mean() < 0.9
    assert worst_kkt(A, P, t, F) < 20 * EPS


def test_rows_are_distinct_if_one_of_many_columns_differs(rng):
    support = rng.random((50, 70)) < 0.5
    support = np.vstack([support, support[::2], ~support, np.eye(70, dtype=bool)])
    expected = {tuple(row) for row in support}
    distinct, which, counts = lasso_rows._distinct_rows(support)
    assert len(distinct) == len(expected) == 170 and {tuple(row) for row in distinct} == expected
    assert (distinct[which] == support).all() and counts.sum() == len(support)


@pytest.mark.parametrize("p_scale", [1e-150, 1, 1e150])
@pytest.mark.parametrize("f_scale", [2.0**-27, 1, 2.0**27])
def test_scale_equivariance(p_scale, f_scale, rng):
    F = precision(6, 1e3, rng)
    P, t = rows(40, F, rng)
    scaled = solve_lasso_rows(P * p_scale, t * p_scale, F * f_scale)
    # |a|_inf is at most 1e3 |p|; rounding P and t when they are scaled moves a by another factor 1e3 eps at most
    np.testing.assert_allclose(scaled / p_scale * f_scale, solve_lasso_rows(P, t, F), rtol=0, atol=1e6 * 10 * EPS)


def test_entries_of_one_row_and_curvatures_may_differ_by_more_than_a_float_can():
    """A coordinate without curvature to speak of is held at zero by t; the other has (3 - 1) / 1e155."""
    A = solve_lasso_rows(np.array([[0.5, 3.0]]), np.ones(1), np.diag([1e-155, 1e155]))
    np.testing.assert_allclose(A, [[0.0, 2e-155]], rtol=1e-12)
    P, t = np.array([[1e200, 1e-200], [1.0, 1e200]]), np.array([1e-200, 1.0])
    np.testing.assert_allclose(solve_lasso_rows(P, t, np.eye(2)), [[1e200, 0.0], [0.0, 1e200]], rtol=1e-12)


def test_no_rows_and_float32():
    F = np.array([[2.0, 0.5], [0.5, 1.0]])
    assert solve_lasso_rows(np.empty((0, 2)), np.empty(0), F).shape == (0, 2)
    np.testing.assert_array_equal(lasso_mean_jacobian(np.empty((0, 2), dtype=bool), F), 0)
    P, t = np.array([[3.0, -0.25], [1.0, 2.0]]), np.array([0.5, 1.0])
    single = solve_lasso_rows(P.astype(np.float32), t.astype(np.float32), F.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single, solve_lasso_rows(P, t, F).astype(np.float32))


def test_says_so_when_the_walk_does_not_end(rng, monkeypatch):
    monkeypatch.setattr(lasso_rows, "_ROUNDS_PER_COORDINATE", 0)
    F = precision(3, 10, rng)
    with pytest.raises(np.linalg.LinAlgError, match="4 rows did not settle: F has condition number 1e\\+01"):
        solve_lasso_rows(*rows(4, F, rng), F)


def test_one_row_that_is_not_optimal_is_enough(rng, monkeypatch):
    F = precision(3, 10, rng)
    P, t = rows(4, F, rng)
    walk = lasso_rows._walk_to_optimum
    last = np.array([[0.0], [0.0], [0.0], [1.0]])
    monkeypatch.setattr(lasso_rows, "_walk_to_optimum", lambda *arguments: walk(*arguments) + last)
    with pytest.raises(np.linalg.LinAlgError, match="a row misses its optimality conditions by .*raise its smallest"):
        solve_lasso_rows(P, t, F)


def test_kkt_of_known_points():
    """F = 2, p = 4, t = 1: the minimiser is 3/2; at 1 the residual is 2 instead of 1, at 0 it is 4, at -1 it is 6."""
    A, P, t = np.array([[1.5], [1.0], [0.0], [-1.0]]), np.full((4, 1), 4.0), np.ones(4)
    np.testing.assert_allclose(_lasso_kkt(A, P, t, np.array([[2.0]])), [0, 1 / 4, 3 / 4, 7 / 4], atol=1e-16)
    # the terms of F a = 1/2 cancel: 2 - 3/2, so 7/2 is the scale; the residual is 1/2 and t is 1/4
    F = np.array([[2.0, -1.5], [-1.5, 2.0]])
    np.testing.assert_allclose(_lasso_kkt(np.ones((1, 2)), np.ones((1, 2)), np.array([0.25]), F), 1 / 14, rtol=1e-15)


def test_jacobian_in_blocks_is_the_mean_over_rows(rng, monkeypatch):
    F, support = precision(4, 10, rng), rng.random((100, 4)) < 0.5
    expected = np.zeros((4, 4))
    for S in map(np.flatnonzero, support):
        expected[np.ix_(S, S)] += np.linalg.inv(F[np.ix_(S, S)]) / 100
    monkeypatch.setattr(lasso_rows, "_BLOCK", 3 * 16)
    np.testing.assert_allclose(lasso_mean_jacobian(support, F), expected, rtol=1e-12, atol=1e-13)
