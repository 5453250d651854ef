"""The rows on which the kit tries a denoiser are what they are said to be, and the numbers by which it judges."""

import numpy as np
import pytest

from amptutorial.checks import CHECKS, Problem, Trial, draw_problem
from amptutorial.checks.beliefs import Penalty
from amptutorial.checks.minimisers import _difference_jacobian
from amptutorial.checks.prediction import _number_of_rows
from amptutorial.denoisers import Denoiser
from amptutorial.laws import GaussianRows

PROBLEM = draw_problem(400, 3, rng=np.random.default_rng(0), rows=GaussianRows(2.0))


def eigenvalues(problem):
    assert np.array_equal(problem.F, problem.F.T)
    return np.linalg.eigvalsh(problem.F)


def test_an_indefinite_f_lies_half_way_to_where_the_minimum_is_lost():
    for convexity in (0.2, 3.0):
        found = PROBLEM.indefinite(convexity)
        assert np.allclose(eigenvalues(found), [-convexity / 2, *eigenvalues(PROBLEM)[1:]])
        assert np.array_equal(found.P, PROBLEM.P)


def test_hard_problems_are_as_hard_as_they_say():
    hard = PROBLEM.hard()
    assert np.allclose(eigenvalues(hard["an F with the eigenvalue 1e-4"]), [1e-4, 1e-2, 1])
    tiny, huge = hard["a tiny r = 1e-10"], hard["a huge r = 1e10, and p 1e5 times as large"]
    assert tiny.r == [1e-10] and huge.r == [1e10]
    assert np.array_equal(huge.P, 1e5 * tiny.P) and np.array_equal(tiny.P, PROBLEM.P[:1])
    larger = hard["a row of P that is 1e6 times as large as others"].P
    assert np.allclose(larger[0], 1e6 * PROBLEM.P[0]) and np.array_equal(larger[1:], PROBLEM.P[1:])
    assert not hard["P = 0"].P.any() and len(hard["a single row"].P) == 1
    kept = hard["zeros in P"].P != 0
    assert np.array_equal(hard["zeros in P"].P[kept], np.abs(PROBLEM.P[kept]))
    assert (kept[1::2].sum(axis=1) == 1).all() and set(kept[::2].sum(axis=1)) == {2}


def test_other_matrices_share_what_a_cache_may_go_by():
    F = PROBLEM.F
    scaled, turned, swapped, diagonal, equal = PROBLEM.other_F().values()
    assert np.allclose(np.linalg.eigvalsh(scaled), 2 * np.linalg.eigvalsh(F) + 1)
    for other in (turned, swapped):
        assert np.allclose(np.linalg.eigvalsh(other), np.linalg.eigvalsh(F)) and not np.allclose(other, F)
    assert swapped[0, 0] == F[0, 0]
    assert np.array_equal(np.diag(np.diag(diagonal)), diagonal) and len(set(np.diag(diagonal))) == len(F)
    assert np.allclose(equal, np.trace(F) / 3 * np.eye(3))


def test_rows_at_extreme_rates_are_noise_or_have_the_length_of_their_signal():
    """The mean of p = x F + noise is sqrt(r) u F: for r below 1 also a u is tried that stands out of the noise."""
    extreme = PROBLEM.extreme_rates()
    typical = PROBLEM.P / np.sqrt(PROBLEM.r)[:, None]
    near_one = typical[np.argsort(np.abs(np.log(PROBLEM.r)))[:3]]
    sizes = [(1e-6, 1), (1e-6, 1e6**0.5), (1e-3, 1), (1e-3, 1e3**0.5), (1e3, 1e3**0.5), (1e6, 1e6**0.5)]
    for k, (rate, size) in enumerate(sizes):
        block = slice(3 * k, 3 * k + 3)
        assert np.allclose(extreme.r[block], rate) and np.allclose(extreme.P[block], size * near_one)
    assert len(extreme.r) == 18


def test_many_rows_have_few_rates_each_of_another_frequency():
    many = PROBLEM.many()
    rates, counts = np.unique(many.r, return_counts=True)
    assert len(many.P) == 3000 and len(rates) == 5 and np.isin(rates, PROBLEM.r).all()
    assert np.allclose(np.sort(counts) / 3000, np.arange(1, 6) / 15, atol=4 * np.sqrt(0.25 / 3000))


class OnlyLarge(Denoiser):
    """Zero up to 1, and 2 at most."""

    def estimate(self, P, r, F):
        return np.clip(np.where(np.abs(P) > 1, P, 0.0), -2, 2)


class InACube(Penalty):
    """No entry is larger than 2."""

    rows = GaussianRows(1.0)

    def value(self, U):
        return np.where((np.abs(U) <= 2).all(axis=1), 0.0, np.inf)


def test_rows_near_kinks_lie_on_both_sides_of_them():
    """Even rows leave zero: an entry sets in at 1. The others come from beyond the bound 2, towards the row before."""
    P = np.array([[0.8], [9.0], [1.5], [9.0]])
    kinks = Trial(OnlyLarge, Problem(P, np.ones(4), np.eye(1)), InACube()).near_kinks
    places, ways = np.array([1.0, 2.0, 1.0, 2.0]), np.array([2 * 0.8, 0.8 - 9, 2 * 1.5, 1.5 - 9])
    assert np.allclose(kinks.P.reshape(3, 4), places + np.array([[-1e-2], [1e-3], [1e-2]]) * ways)
    assert Trial(OnlyLarge, Problem(P / 100, np.ones(4), np.eye(1)), InACube()).near_kinks is None


class Soft(Denoiser):
    """Zero up to 1, and what is beyond: one Lasso."""

    factor = 1.0

    def estimate(self, P, r, F):
        return np.sign(P) * np.maximum(np.abs(P) - 1 / np.sqrt(r)[:, None], 0) / F

    def mean_jacobian(self, P, r, F):
        return self.factor * np.mean(np.abs(P) > 1 / np.sqrt(r)[:, None], keepdims=True) / F

    def penalty(self, X, r):
        return float((np.abs(X) / np.sqrt(r)[:, None]).sum())


class Doubled(Soft):
    """Its Jacobian is twice as large."""

    factor = 2.0


@pytest.mark.parametrize("distance", [0.0, 1e-12, -1e-8, 1e-6, -3e-6, 8e-6, -2e-5])
def test_a_row_on_a_kink_is_no_mistake_of_the_jacobian(distance):
    """Differences reach 1e-6 and 1e-5 times as far as the largest P. On a kink both halve the jump, and agree."""
    problem = Problem(np.array([[1 + distance], [10.0], [3.0], [0.3]]), np.ones(4), np.eye(1))
    CHECKS["jacobian"](Trial(Soft, problem))
    with pytest.raises(AssertionError, match="central differences of estimate give"):
        CHECKS["jacobian"](Trial(Doubled, problem))


class Bent(Soft):
    """A hundred times the square: its right and left differences are 200 steps apart."""

    def estimate(self, P, r, F):
        return 100 * P**2


def test_a_bend_is_not_taken_for_a_kink():
    """The steps are 1e-5 and 1e-4 here, so the bends are 2e-3 and 2e-2."""
    problem = Problem(np.array([[10.0], [1.0]]), np.ones(2), np.eye(1))
    jacobian, allowed = _difference_jacobian(Trial(Bent, problem), problem)
    assert jacobian == pytest.approx(1100) and allowed < 1e-4


@pytest.mark.parametrize("scale", [1e-3, 1.0, 50.0])
def test_rows_of_equal_length_are_counted_and_the_silent_left_out(scale):
    """For lengths 1 and 0 it is how many are 1; of Gaussian squares d / (d + 2) of the rows count."""
    X = np.zeros((100, 3))
    X[:7, 1] = scale
    assert np.isclose(_number_of_rows(X), 7)
    rows = scale * np.random.default_rng(0).standard_normal((100_000, 3))
    assert np.isclose(_number_of_rows(rows), 60_000, rtol=0.02)
    assert _number_of_rows(np.zeros((4, 2))) == 0
