"""The check that draws its problems: what it compares with is right, and what it finds is told in one row."""

import re
from dataclasses import replace

import numpy as np
import pytest
from stated_beliefs import SquaredNorm, StandardNormal

from amptutorial.checks import CHECKS, Problem, Trial, describe_error, draw_problem
from amptutorial.checks import everywhere as module
from amptutorial.checks.beliefs import Penalty, Unstated
from amptutorial.denoisers import Denoiser, GaussianPosterior, Lasso, Ridge
from amptutorial.laws import GaussianRows

CHECK = CHECKS["everywhere"]


class Squares(SquaredNorm):
    """The belief of Ridge(1.0), with its answer."""

    convexity = 1.0

    def prox(self, U, steps):
        return U / (1 + steps)


class Moduli(Penalty):
    """The belief of Lasso(1.0)."""

    rows = GaussianRows(4.0)

    def value(self, U):
        return np.abs(U).sum(axis=1)

    def prox(self, U, steps):
        return np.sign(U) * np.maximum(np.abs(U) - steps, 0)


BELIEFS = {Ridge: Squares(), Lasso: Moduli(), GaussianPosterior: StandardNormal()}


def trial(cls, d=2, seed=0, belief=None, **arguments):
    belief = belief or next(BELIEFS[base] for base in cls.__mro__ if base in BELIEFS)
    problem = draw_problem(20, d, rng=np.random.default_rng(seed), rows=belief.rows)
    return Trial(lambda: cls(1.0), problem, belief, seed=seed, **arguments)


@pytest.mark.parametrize("d", [1, 3, 6])
@pytest.mark.parametrize("cls", BELIEFS)
def test_what_is_right_passes(cls, d):
    assert f"{module.N_PROBLEMS} problems" in CHECK.measure(trial(cls, d))


@pytest.mark.parametrize("cls", BELIEFS)
def test_the_answer_of_a_belief_is_the_closed_form(cls):
    """From a wrong estimate, too: for a quadratic a step of Newton's method leads to the minimum."""
    one = trial(cls, 3)
    denoiser, problem = cls(1.0), one.problem
    X = denoiser.estimate(*problem.copies())
    start = X if cls is Lasso else X + 0.1
    told = module._answer(one, problem, start)
    assert np.allclose(told.estimate, X, rtol=1e-6, atol=1e-6)
    for i in np.flatnonzero(told.is_smooth):
        J = denoiser.mean_jacobian(*problem.rows([i]).copies())
        assert np.allclose(told.slopes[i], J, rtol=1e-5, atol=1e-8)
    assert told.is_smooth.any()


def test_a_row_at_a_kink_has_no_slope_to_be_asked():
    r, F = np.ones(4), np.eye(1)
    P = np.array([[0.5], [1.0], [1.0 + 1e-5], [3.0]])
    X = Lasso(1.0).estimate(P, r, F)
    assert list(module._answer(trial(Lasso), Problem(P, r, F), X).is_smooth) == [True, False, False, True]


class FiveDigits(Ridge):
    """Rounds, which hides a Jacobian that is a fifth too small from differences."""

    def denoise(self, P, r, F):
        return self.estimate(P, r, F), self.mean_jacobian(P, r, F)

    def estimate(self, P, r, F):
        X = super().denoise(P, r, F)[0]
        size = 1e-5 * np.abs(X).max() + 1e-300
        return np.round(X / size) * size

    def mean_jacobian(self, P, r, F):
        return 0.8 * super().denoise(P, r, F)[1]


class Forgetful(Ridge):
    """Keeps the Jacobian of the first question with this r and d."""

    def denoise(self, P, r, F):
        return super().denoise(P, r, F)[0], self.mean_jacobian(P, r, F)

    def mean_jacobian(self, P, r, F):
        kept = self.__dict__.setdefault("kept", {})
        return kept.setdefault((r.tobytes(), len(F)), super().denoise(P, r, F)[1])


class FirstRows(Ridge):
    """Estimates two thousand rows, and leaves the others zero."""

    def denoise(self, P, r, F):
        X, J = super().denoise(P, r, F)
        X[2000:] = 0
        return X, J

    def estimate(self, P, r, F):
        return self.denoise(P, r, F)[0]


class InThePlane(Lasso):
    """Has a threshold that is a thousandth too large in two dimensions alone."""

    def denoise(self, P, r, F):
        return Lasso(1.001 if len(F) == 2 else 1.0).denoise(P, r, F)

    def estimate(self, P, r, F):
        return self.denoise(P, r, F)[0]


class Clipped(GaussianPosterior):
    """Knows no row for more frequent than 100."""

    def denoise(self, P, r, F):
        return super().denoise(P, np.minimum(r, 100.0), F)

    def estimate(self, P, r, F):
        return self.denoise(P, r, F)[0]


class Floored(GaussianPosterior):
    """Has no row that is rarer than 1e-6: an absolute threshold, beyond all rates that the belief names."""

    def denoise(self, P, r, F):
        return super().denoise(P, np.maximum(r, 1e-6), F)

    def estimate(self, P, r, F):
        return self.denoise(P, r, F)[0]


class FirstFive(GaussianPosterior):
    """Takes the mean Jacobian of the first five rows for that of all, where there are a few hundred at most."""

    def denoise(self, P, r, F):
        return super().denoise(P, r, F)[0], self.mean_jacobian(P, r, F)

    def mean_jacobian(self, P, r, F):
        some = slice(5 if len(r) <= 300 else None)
        return GaussianPosterior(1.0).mean_jacobian(P[some], r[some], F)


class Empty(Ridge):
    """Has no penalty where there are twenty rows or more."""

    def penalty(self, X, r):
        return super().penalty(X, r) if len(X) < 20 else 0.0


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("cls", "told"),
    [
        (FiveDigits, "1 row,"),
        (Forgetful, "what is kept between calls"),
        (FirstRows, "[0-9]{4,5} rows, F"),
        (InThePlane, "1 row,"),
        (Clipped, "1 row,"),
        (Floored, "1 row,"),
        (FirstFive, "two halves|and should be"),
        (Empty, "rows is 0, and g of them sums to"),
    ],
)
def test_what_is_wrong_somewhere_is_found_on_every_seed_and_made_small(cls, told, seed):
    with pytest.raises(AssertionError, match="expected|should be|sums to") as failure:
        CHECK.measure(trial(cls, seed=seed))
    assert re.search(told, describe_error(failure.value))


def test_a_relative_with_another_parameter_is_asked_in_between():
    class Shared(Ridge):
        """Keeps, for all instances together, what does not depend on the strength."""

        kept: dict = {}

        def estimate(self, P, r, F):
            return self.kept.setdefault((P.tobytes(), r.tobytes(), F.tobytes()), super().estimate(P, r, F))

    class Weaker(Squares):
        def value(self, U):
            return super().value(U) / 2

        def prox(self, U, steps):
            return super().prox(U, steps / 2)

        convexity = 0.5

    alone = trial(Shared)
    CHECK.measure(alone)
    other = replace(alone, make=lambda: Shared(0.5), belief=Weaker())
    with pytest.raises(AssertionError, match="expected"):
        CHECK.measure(replace(alone, relatives=(other,)))


def test_where_no_belief_states_it_a_zero_of_p_may_lie_between_two_kinks_that_differences_step_over():
    one = Trial(lambda: Lasso(1e-9), Problem(np.ones((4, 2)), np.ones(4), np.eye(2)), Unstated(GaussianRows(1.0)))
    for P, smooth in [([1.0, 2.0], True), ([1.0, 0.0], False)]:
        asked = Problem(np.array([P]), np.ones(1), np.eye(2))
        assert module._answer(one, asked, asked.P).is_smooth == [smooth]


def test_axes_are_not_turned_where_sweeps_of_a_right_solution_would_not_end():
    one = Trial(
        lambda: Ridge(1.0), Problem(np.ones((4, 2)), np.ones(4), np.diag([1.0, 1e-3])), Unstated(GaussianRows(1.0))
    )
    for seed in range(20):
        F = module._move(np.random.default_rng(seed), "axes", [one], 0, one.problem)[1].F
        assert F[0, 1] == 0 or np.linalg.cond(F) < 1.01 * module.CONDITION


class RealNumbers(StandardNormal):
    """Takes no complex rows."""

    def log_partition(self, P, r, F):
        return super().log_partition(np.asarray(P, dtype=float), r, F)


class RowsAlone:
    """A belief with what every belief has, and no more."""

    rows, precision = GaussianRows(1.0), "argmin"


class RootOfR(Ridge):
    """Takes sqrt(r) for r where it is large."""

    def denoise(self, P, r, F):
        return super().denoise(P, np.where(r > 10, np.sqrt(10 * r), r), F)

    def estimate(self, P, r, F):
        return self.denoise(P, r, F)[0]


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("belief", [RealNumbers(), SquaredNorm(), RowsAlone(), None])
def test_where_a_belief_does_not_say_what_is_right_rows_are_compared_with_what_they_get_alone(belief):
    problem = draw_problem(20, 2, rng=np.random.default_rng(0))
    CHECK.measure(Trial(lambda: Ridge(1.0), problem, belief))
    for wrong in (RootOfR, Forgetful):
        with pytest.raises(AssertionError, match="expected|should be"):
            CHECK.measure(Trial(lambda cls=wrong: cls(1.0), problem, belief))


class OneSided(Denoiser):
    """The minimiser for u >= 0 and a ridge of 1, with its Jacobian, which no belief states; for a diagonal F."""

    def estimate(self, P, r, F):
        return np.maximum(P, 0) / (np.diag(F) + 1 / r[:, None])

    def mean_jacobian(self, P, r, F):
        return np.diag(((P > 0) / (np.diag(F) + 1 / r[:, None])).mean(axis=0))


def test_a_row_on_a_kink_is_not_asked_for_its_slope_where_no_belief_states_it():
    one = Trial(OneSided, Problem(np.ones((4, 2)), np.ones(4), np.eye(2)), Unstated(GaussianRows(1.0)))
    for P, smooth in [([1.0, 2.0], True), ([1.0, 0.0], False), ([1.0, 1e-6], False), ([1.0, -5e-4], False)]:
        asked = Problem(np.array([P]), np.ones(1), np.eye(2))
        assert module._answer(one, asked, asked.P).is_smooth == [smooth]


def test_an_error_of_the_denoiser_says_where_it_was_asked():
    class NotOfOne(Denoiser):
        def __init__(self, strength):
            self.strength = strength

        def penalty(self, X, r):
            return Ridge(1.0).penalty(X, r)

        def convexity(self, r):
            return Ridge(1.0).convexity(r)

        def estimate(self, P, r, F):
            return Ridge(1.0).estimate(P, r, F) if len(P) > 1 else P[7]

    with pytest.raises(IndexError) as error:
        CHECK.measure(trial(NotOfOne, belief=Squares()))
    assert "1 row, F = " in error.value.__notes__[0]


class Wide(Unstated):
    decades = (-4, 4)


def own(cls, seed):
    """Return a trial whose belief is nothing but rows."""
    return trial(cls, seed=seed, belief=Wide(GaussianRows(1.0)))


class OneRate(GaussianPosterior):
    """Has one rate for rows whose rates are of the same order."""

    def denoise(self, P, r, F):
        return super().denoise(P, np.full(len(r), r.mean()) if r.max() < 10 * r.min() else r, F)

    def estimate(self, P, r, F):
        return self.denoise(P, r, F)[0]


@pytest.mark.parametrize("seed", range(3))
def test_where_the_prior_is_the_denoisers_own_each_row_gets_the_answer_that_it_gets_alone(seed):
    CHECK.measure(own(GaussianPosterior, seed))
    for wrong in (FirstFive, OneRate, Clipped):
        with pytest.raises(AssertionError, match="expected|should be"):
            CHECK.measure(own(wrong, seed))
