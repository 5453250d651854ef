"""The rows on which the kit tries a denoiser are what they are said to be, and the numbers by which it judges."""

import numpy as np
import pytest

from amptutorial.checks import CHECKS, Problem, Trial, draw_problem
from amptutorial.checks.oracle import own_slopes
from amptutorial.checks.promises import _number_of_rows
from amptutorial.denoisers import Denoiser, Ridge
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


@pytest.mark.parametrize("unit", [1e-8, 1e8])
def test_in_other_units_the_estimate_is_longer_by_the_root(unit):
    problem, denoiser = PROBLEM.in_units(unit), Ridge(2.0)
    assert np.allclose(denoiser.estimate(*problem.copies()), np.sqrt(unit) * denoiser.estimate(*PROBLEM.copies()))


def test_hard_problems_are_as_hard_as_they_say():
    hard = PROBLEM.hard()
    assert np.allclose(eigenvalues(hard["an F with the eigenvalue 1e-4"]), [1e-4, 1e-2, 1])
    tiny, huge = hard["a tiny r = 1e-10"], hard["a huge r = 1e10, and p 1e5 times as large"]
    assert tiny.r == [1e-10] and huge.r == [1e10]
    assert np.array_equal(huge.P, 1e5 * tiny.P) and np.array_equal(tiny.P, PROBLEM.P[:1])
    assert not hard["P = 0"].P.any()


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


@pytest.mark.parametrize("distance", [0.0, 1e-12, -1e-8, 1e-6, -3e-5, 8e-5, -2e-4])
def test_a_row_on_a_kink_is_no_mistake_of_the_jacobian(distance):
    """Differences reach 1e-4 and 1e-3 times as far as p. On a kink both halve the jump, and agree."""
    problem = Problem(np.array([[1 + distance], [10.0], [3.0], [0.3]]), np.ones(4), np.eye(1))
    CHECKS["jacobian"](Trial(Soft, problem))
    with pytest.raises(AssertionError, match="the slopes of the estimate are"):
        CHECKS["jacobian"](Trial(Doubled, problem))


class Bent(Soft):
    """A hundred times the square: its right and left differences are 200 steps apart."""

    def estimate(self, P, r, F):
        return 100 * P**2


def test_a_bend_is_not_taken_for_a_kink():
    """The steps are 1e-4 and 1e-3 times p, so that right and left differences are as many fifths of the slope apart."""
    problem = Problem(np.array([[10.0], [1.0]]), np.ones(2), np.eye(1))
    known = own_slopes(Bent(), problem)
    assert known.slopes.ravel() == pytest.approx([2000, 200]) and known.is_smooth.all()


@pytest.mark.parametrize("scale", [1e-3, 1.0, 50.0])
def test_rows_of_equal_length_are_counted_and_the_silent_left_out(scale):
    """For lengths 1 and 0 it is how many are 1; of Gaussian squares d / (d + 2) of the rows count."""
    X = np.zeros((100, 3))
    X[:7, 1] = scale
    assert np.isclose(_number_of_rows(X), 7)
    rows = scale * np.random.default_rng(0).standard_normal((100_000, 3))
    assert np.isclose(_number_of_rows(rows), 60_000, rtol=0.02)
    assert _number_of_rows(np.zeros((4, 2))) == 0
