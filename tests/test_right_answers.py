"""The check that draws its problems: what it compares with is right, and what it finds is told in one row."""

import re
from dataclasses import replace

import numpy as np
import pytest
from stated_beliefs import AbsoluteValue, SquaredNorm, Squares, StandardNormal, estimate, estimating

from amptutorial.checks import CHECKS, Problem, Trial, describe_error, draw_problem, oracle, problems
from amptutorial.checks.beliefs import Unstated
from amptutorial.checks.oracle import own_slopes
from amptutorial.checks.problems import LONG, SHORT
from amptutorial.denoisers import GaussianPosterior, Lasso, Ridge
from amptutorial.laws import GaussianRows

CHECK = CHECKS["right_answers"]
TOLD = "expected|gives|two parts|slopes of the estimate|the sum of"  # beside what was found
# one seed and the problems of a student; more seeds and those of a class where there is time
ASKED = [(0, SHORT), *(pytest.param(seed, LONG, marks=pytest.mark.slow) for seed in (1, 2))]


class Moduli(AbsoluteValue):
    """The same, with rows that AMP finds and its answer."""

    rows = GaussianRows(4.0)

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
    assert f"{SHORT} problems" in CHECK.measure(trial(cls, d))


@pytest.mark.parametrize("cls", BELIEFS)
def test_the_answer_of_a_belief_is_the_closed_form(cls):
    """From a wrong estimate, too: for a quadratic a step of Newton's method leads to the minimum."""
    one = trial(cls, 3)
    denoiser, problem = cls(1.0), one.problem
    X = denoiser.estimate(*problem.copies())
    right, allowed, places, slopes, is_smooth = oracle.answer(one, problem, X if cls is Lasso else X + 0.1)
    assert places.tolist() == list(range(20)) and np.allclose(right, X, rtol=1e-6, atol=1e-6)
    assert (allowed < 1e-4 * (1 + np.linalg.norm(X, axis=1))).all()
    for known, smooth in ((slopes, is_smooth), own_slopes(denoiser, problem)[3:]):
        assert smooth.any()
        for i in np.flatnonzero(smooth):
            J = denoiser.mean_jacobian(*problem.rows([i]).copies())
            assert np.allclose(known[i], J, rtol=1e-5, atol=1e-8)


# the minimiser for u >= 0 and a ridge of 1, for the identity
ONE_SIDED = estimating(lambda P, r, F: estimate(np.maximum(P, 0), r, F))


@pytest.mark.parametrize(
    ("denoiser", "P", "smooth"),
    [
        (Lasso(1.0), [[0.5], [1.0], [1.0 + 1e-5], [3.0]], [True, False, False, True]),
        # two kinks at zero may be closer than any step
        (Lasso(1e-9), [[1.0, 2.0], [1.0, 0.0]], [True, False]),
        (ONE_SIDED, [[1.0, 2.0], [1.0, 0.0], [1.0, 1e-6], [1.0, -5e-4]], [True, False, False, False]),
    ],
    ids=["near the threshold", "between two thresholds", "at the edge"],
)
def test_a_row_at_a_kink_has_no_slope_to_be_asked(denoiser, P, smooth):
    P = np.array(P)
    problem = Problem(P, np.ones(len(P)), np.eye(P.shape[1]))
    assert own_slopes(denoiser, problem).is_smooth.tolist() == smooth


def answering(base, denoise):
    """Return a class whose answers are a function of the denoiser, P, r and F."""
    methods = {"denoise": denoise, "estimate": lambda self, *rows: denoise(self, *rows)[0]}
    return type("Wrong", (base,), methods | {"mean_jacobian": lambda self, *rows: denoise(self, *rows)[1]})


def of_other_rates(base, change):
    """Return a class whose answers are those of `base` at other rates."""
    return answering(base, lambda self, P, r, F: base.denoise(self, P, change(r), F))


def five_digits(self, P, r, F):
    """Round, which hides a Jacobian that is a fifth too small from differences."""
    X, J = Ridge(1.0).denoise(P, r, F)
    size = 1e-5 * np.abs(X).max() + 1e-300
    return np.round(X / size) * size, 0.8 * J


def forgetful(self, P, r, F):
    """Keep the Jacobian of the first question with this r and d."""
    X, J = Ridge(1.0).denoise(P, r, F)
    return X, vars(self).setdefault("kept", {}).setdefault((r.tobytes(), len(F)), J)


def first_rows(self, P, r, F):
    """Estimate five hundred rows, and leave the others zero; end at r = 1, as of the row to be told instead."""
    X, J = Ridge(1.0).denoise(P, r, F)
    if (r == 1).all():
        raise KeyError("r")
    X[500:] = 0
    return X, J


def first_five(self, P, r, F):
    """Take the mean Jacobian of the first five rows for that of all, where there are a few hundred at most."""
    some, right = slice(5 if len(r) <= 300 else None), GaussianPosterior(1.0)
    return right.estimate(P, r, F), right.mean_jacobian(P[some], r[some], F)


def in_the_plane(self, P, r, F):
    """Have a threshold that is a thousandth too large in two dimensions alone."""
    return Lasso(1.001 if len(F) == 2 else 1.0).denoise(P, r, F)


Clipped = of_other_rates(GaussianPosterior, lambda r: np.minimum(r, 100.0))  # knows no row for more frequent
# an absolute threshold, beyond all rates that the belief names
Floored = of_other_rates(GaussianPosterior, lambda r: np.maximum(r, 1e-6))
RootOfR = of_other_rates(Ridge, lambda r: np.where(r > 10, np.sqrt(10 * r), r))
# one rate for rows whose rates are of the same order
OneRate = of_other_rates(GaussianPosterior, lambda r: np.full(len(r), r.mean()) if r.max() < 10 * r.min() else r)
FirstFive, Forgetful = answering(GaussianPosterior, first_five), answering(Ridge, forgetful)


class Empty(Ridge):
    """Has no penalty where there are twenty rows or more."""

    def penalty(self, X, r):
        return super().penalty(X, r) if len(X) < 20 else 0.0


@pytest.mark.parametrize(("seed", "n_problems"), ASKED)
@pytest.mark.parametrize(
    ("cls", "told"),
    [
        (answering(Ridge, five_digits), "1 row,"),
        (Forgetful, "what is kept between calls"),
        (answering(Ridge, first_rows), "[0-9]{3,5} rows, F"),
        (answering(Lasso, in_the_plane), "1 row,"),
        (Clipped, "1 row,"),
        (Floored, "1 row,"),
        (FirstFive, "two parts|slopes of the estimate"),
        (Empty, "penalty is 0 for [0-9]* rows, and the sum of"),
    ],
)
def test_what_is_wrong_somewhere_is_found_on_every_seed_and_made_small(cls, told, seed, n_problems):
    with pytest.raises(AssertionError, match=TOLD) as failure:
        CHECK.measure(trial(cls, seed=seed, n_problems=n_problems))
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
    other = replace(alone, make=lambda: Shared(0.5), stated=Weaker())
    with pytest.raises(AssertionError, match="expected"):
        CHECK.measure(replace(alone, relatives=(other,)))


def test_axes_are_not_turned_where_sweeps_of_a_right_solution_would_not_end():
    family = [Trial(lambda: Ridge(1.0), Problem(*map(np.ones, ((4, 2), 4, (2, 2)))), Unstated(GaussianRows(1.0)))]
    for seed in range(20):
        for _, problem in problems.ladder(np.random.default_rng(seed), family, LONG):
            F = problem.F
            assert F[0, 1] == 0 or np.linalg.cond(F) < 1.01 * problems.CONDITION


def test_the_ladder_has_every_kind_of_problem():
    """Of a class: single rows of few digits and thousands of rows, twins of each kind, all of a family."""
    family = [trial(Ridge, d) for d in (1, 2, 3)]
    questions = problems.ladder(np.random.default_rng(0), family, LONG)
    sizes = np.array([len(problem.r) for _, problem in questions])
    assert (sizes == 1).mean() > 0.15 and (sizes > 40).mean() > 0.15
    assert (sizes > 2000).sum() == 1 and sizes.max() > 15_000
    assert np.bincount([one.d for one, _ in questions])[1:].min() > LONG / 6
    twins = [pair for pair in zip(questions[1::3], questions[2::3], strict=True)]
    alike = np.array([[a is b or np.allclose(a, b) for a, b in zip(*map(arrays, pair), strict=True)] for pair in twins])
    assert (alike.sum(axis=1) >= 1).mean() > 0.7  # the others differ in the order, the axes, or next to nothing


def arrays(question):
    """Return P, r and F of a question, at a size of their own where they have different shapes."""
    return [np.sort(array, axis=None)[:1] for array in question[1].copies()]


class RealNumbers(StandardNormal):
    """Takes no complex rows."""

    def log_partition(self, P, r, F):
        return super().log_partition(np.asarray(P, dtype=float), r, F)


def test_a_prior_that_takes_no_complex_rows_is_told_so():
    with pytest.raises(TypeError, match="RealNumbers.* has to take complex entries of P"):
        CHECK.measure(trial(GaussianPosterior, belief=RealNumbers()))


@pytest.mark.parametrize("belief", [SquaredNorm(), None])
def test_where_a_belief_does_not_say_what_is_right_rows_are_compared_with_what_they_get_alone(belief):
    problem = draw_problem(20, 2, rng=np.random.default_rng(0))
    CHECK.measure(Trial(lambda: Ridge(1.0), problem, belief))
    for wrong in (RootOfR, Forgetful):
        with pytest.raises(AssertionError, match=TOLD):
            CHECK.measure(Trial(lambda cls=wrong: cls(1.0), problem, belief))


def test_an_error_of_the_denoiser_says_where_it_was_asked():
    not_of_one = estimating(lambda P, r, F: estimate(P, r, F) if len(P) > 1 else P[7])
    with pytest.raises(IndexError) as error:
        CHECK.measure(replace(trial(Ridge), make=lambda: not_of_one))
    assert "1 row, F = " in error.value.__notes__[0]


class Wide(Unstated):
    """Nothing but rows, and r of many sizes."""

    decades = (-4, 4)


@pytest.mark.parametrize(("seed", "n_problems"), ASKED)
def test_where_the_prior_is_the_denoisers_own_each_row_gets_the_answer_that_it_gets_alone(seed, n_problems):
    unstated = {"belief": Wide(GaussianRows(1.0)), "seed": seed, "n_problems": n_problems}
    CHECK.measure(trial(GaussianPosterior, **unstated))
    for wrong in (FirstFive, OneRate, Clipped):
        with pytest.raises(AssertionError, match=TOLD):
            CHECK.measure(trial(wrong, **unstated))
