"""The kit against wrong denoisers: each must fail the check that names its mistake, also one that shows in a corner."""

import inspect
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from stated_beliefs import (
    HardThreshold,
    Right,
    Rotated,
    SquaredNorm,
    Squares,
    StandardNormal,
    differentiating,
    estimate,
    estimating,
    jacobian,
    variant,
)

from amptutorial.checks import CHECKS, Trial, check_denoiser, draw_problem, run_checks
from amptutorial.denoisers import Denoiser, GaussianPosterior

PROBLEM = draw_problem(40, 3, rng=np.random.default_rng(0))
SHARED = {}


def unity(x):
    """Return ones, or NaN where `x` is zero or has overflowed."""
    return x / x


def looped(P, r, F):
    return np.vstack([estimate(*row, F) for row in zip(P[:, None], r[:, None], strict=True)])


class Peeking(Right):
    """Looks for the truth among the variables of its callers."""

    def denoise(self, P, r, F):
        frame = inspect.currentframe().f_back
        while frame is not None:
            rows = getattr(frame.f_locals.get("self"), "X", None)
            if np.shape(rows) == np.shape(P):
                return rows, 0 * F
            frame = frame.f_back
        return super().denoise(P, r, F)


def iterated(P, r, F):
    """Four hundred steps of Richardson: enough for a usual F."""
    X, step = 0 * P, 1 / (np.linalg.eigvalsh(F)[-1] + 1 / r)[:, None]
    for _ in range(400):
        X = X + step * (P - X @ F - X / r[:, None])
    return X


def between_modes(P, r, F):
    """Divide by the gaps between the eigenvalues of F, to no end but where two are equal."""
    w = np.linalg.eigvalsh(F)
    return estimate(P, r, F) + 0 / (w[1] - w[0])


def floor_of_F(self, r, F):
    w, V = np.linalg.eigh(F)
    return Right.inverses(self, r, (V * np.maximum(w, 1e-3)) @ V.T)


def shared(self, r, F):
    """Keep inverses for all instances, under a key that a rotation of F does not change."""
    return SHARED.setdefault((r.tobytes(), round(np.trace(F), 9)), Right.inverses(self, r, F))


def diagonal_shortcut(P, r, F):
    is_diagonal = np.array_equal(F, np.diag(np.diag(F)))
    return P / (F[0, 0] + 1 / r[:, None]) if is_diagonal else estimate(P, r, F)


def writes_and_restores(P, r, F):
    P *= 2
    X = estimate(P, r, F) / 2
    P /= 2
    return X


# by the check that has to fail: the denoiser, and the belief that it should hold if one is stated
WRONG = {
    "hard_inputs": [
        estimating(lambda P, r, F: estimate(P, r, F) * unity(np.exp(1 / r))[:, None]),
        estimating(lambda P, r, F: estimate(P, r, F) * unity(np.exp(np.abs(P).max(axis=1).astype("f4")))[:, None]),
        estimating(lambda P, r, F: estimate(P, r, F) * unity(P)),
    ],
    "penalty": [
        variant(penalty=lambda self, X, r: float((X**2).sum() / 2)),
        variant(penalty=lambda self, X, r: float((X**2 / r[:, None]).mean() / 2)),
        (variant(convexity=lambda self, r: 0.0), Squares()),
        (variant(convexity=lambda self, r: 0.5 / r.max()), Squares()),
        (variant(convexity=lambda self, r: 1 / r[0]), Squares()),
        (variant(penalty=Denoiser.penalty), Squares()),
    ],
    "speed": [
        estimating(looped),
        differentiating(lambda P, r, F: np.mean([jacobian(P, r[[i]], F) for i in range(len(r))], axis=0)),
        variant(denoise=lambda self, P, r, F: (looped(P, r, F), jacobian(P, r, F))),
    ],
    "tweedie": [
        (GaussianPosterior(0.5), StandardNormal()),
        (GaussianPosterior(np.diag([1.0, 1.0, 2.0])), StandardNormal()),
        (GaussianPosterior(3.0), StandardNormal()),
    ],
    "state_evolution": [variant(denoise=lambda self, P, r, F: (estimate(P, r, F), 0 * F)), Peeking()],
    "shapes": [
        estimating(lambda P, r, F: estimate(P, r, F)[:, :1]),
        estimating(lambda P, r, F: np.full(P.shape, np.nan)),
        differentiating(lambda P, r, F: np.diag(jacobian(P, r, F))),
        variant(denoise=lambda self, P, r, F: (jacobian(P, r, F), estimate(P, r, F))),
    ],
    "no_mutation": [
        estimating(lambda P, r, F: estimate(np.multiply(P, 1.5, out=P) / 1.5, r, F)),
        estimating(writes_and_restores),
        variant(denoise=lambda self, P, r, F: (estimate(P, np.multiply(r, 2, out=r) / 2, F), jacobian(P, r / 2, F))),
        variant(penalty=lambda self, X, r: float(((X / np.sqrt(r, out=r)[:, None]) ** 2).sum() / 2)),
    ],
    "deterministic": [
        variant(denoise=lambda self, P, r, F: (1.01 * estimate(P, r, F), jacobian(P, r, F))),
        estimating(lambda P, r, F: estimate(P, r, F) + np.random.default_rng().standard_normal(P.shape)),
        # rows in the order of C, and a view that is read as if it had no gaps
        estimating(lambda P, r, F: estimate(np.frombuffer(P.tobytes("A"), float).reshape(P.shape), r, F)),
        estimating(
            lambda P, r, F: estimate((P if P.base is None else P.base).ravel()[: P.size].reshape(P.shape), r, F)
        ),
    ],
    "row_independence": [
        estimating(lambda P, r, F: estimate(P, r, F) - estimate(P, r, F).mean(axis=0)),
        estimating(lambda P, r, F: estimate(P, np.full(len(r), r.mean()), F)),
    ],
    "frequency_scaling": [
        estimating(lambda P, r, F: estimate(P, 1 / r, F)),
        estimating(lambda P, r, F: estimate(P, np.sqrt(r), F)),
        estimating(lambda P, r, F: estimate(P, np.ones_like(r), F)),
    ],
    "jacobian": [
        differentiating(lambda P, r, F: len(P) * jacobian(P, r, F)),
        differentiating(lambda P, r, F: np.linalg.inv(F)),
        differentiating(lambda P, r, F: -jacobian(P, r, F)),
        differentiating(lambda P, r, F: np.zeros(F.shape)),
        differentiating(lambda P, r, F: jacobian(P, r, F + 1e-3 * np.eye(len(F)))),
        variant(denoise=lambda self, P, r, F: (estimate(P, r, F), 1.01 * jacobian(P, r, F))),
        Rotated(),
    ],
    "one_prior": [Rotated(), HardThreshold()],
    "optimality": [
        estimating(lambda P, r, F: estimate(P, r / 2, F)),
        estimating(lambda P, r, F: P),
        estimating(lambda P, r, F: -estimate(P, r, F)),
        # steeper than the minimiser of any convex penalty, without a jump
        (estimating(lambda P, r, F: 2 * np.linalg.solve(F, P.T).T), SquaredNorm()),
        (estimating(iterated), Squares()),
        (variant(inverses=floor_of_F), Squares()),
    ],
    "right_answers": [
        (estimating(lambda P, r, F: np.where(P == 0, 0.0, estimate(P, r, F))), Squares()),
        (estimating(lambda P, r, F: np.where(P == 0, 1.0, estimate(P, r, F))), Squares()),
        (estimating(diagonal_shortcut), Squares()),
        (estimating(between_modes), Squares()),
        (estimating(lambda P, r, F: estimate(P, r if len(r) < 500 else np.full(len(r), r.mean()), F)), Squares()),
        (variant(inverses=lambda self, r, F: Right.inverses(self, np.maximum(r, 1e-2), F)), Squares()),
        (variant(inverses=shared), Squares()),
        (variant(penalty=lambda self, X, r: (len(r) > 1) * Right.penalty(self, X, r)), Squares()),
        (differentiating(lambda P, r, F: jacobian(P, np.maximum(r, 0.05), F)), Squares()),
        (differentiating(lambda P, r, F: jacobian(P, np.minimum(r, 15), F)), None),
        (differentiating(lambda P, r, F: jacobian(P, np.minimum(r, 100), F)), Squares()),
        # without the rows that have no pull, each r once, and the first thousand rows
        (differentiating(lambda P, r, F: jacobian(P, r[P.all(axis=1)], F) * P.all(axis=1).mean()), Squares()),
        (differentiating(lambda P, r, F: jacobian(P, np.unique(r), F)), Squares()),
        (differentiating(lambda P, r, F: jacobian(P, r[:1000], F)), Squares()),
    ],
}


@pytest.mark.parametrize(("name", "wrong"), [(name, wrong) for name, bank in WRONG.items() for wrong in bank])
def test_each_mistake_fails_the_check_that_names_it_and_is_not_taken_for_memory(name, wrong):
    denoiser, belief = wrong if isinstance(wrong, tuple) else (wrong, None)
    report = check_denoiser(denoiser, belief=belief, rng=np.random.default_rng(2))
    failures = {failure.name: failure for failure in report.failures}
    assert failures[name].message and f"FAIL  {name}: " in str(report), report
    assert failures[name].contract in str(report) and failures[name].read in str(report)
    assert "what is kept" not in str(report)


def test_the_bank_covers_every_check():
    assert set(CHECKS) == set(WRONG)


def memory(key):
    """Return methods that keep the inverses under a key of the question."""

    def inverses(self, r, F):
        kept = self.__dict__.setdefault("kept", {})
        if key(r, F) not in kept:
            kept[key(r, F)] = Right.inverses(self, r, F)
        return kept[key(r, F)]

    return {"inverses": inverses}


def tired(self, P, r, F):
    self.calls = getattr(self, "calls", 0) + 1
    return estimate(P, r, F) * (self.calls < 60)


def drifting(self, P, r, F):
    self.calls = getattr(self, "calls", -1) + 1
    return estimate(P, r, F) + 1e-3 * self.calls


def handed_out_again(self, P, r, F):
    buffer = self.__dict__.setdefault("buffers", {}).setdefault(P.shape, np.empty(P.shape))
    buffer[...] = estimate(P, r, F)
    return buffer


def keeps_inverses(self, P, r, F):
    self.last = P, self.inverses(r, F)
    return estimate(P, r, F)


def jacobian_of_an_old_estimate(self, P, r, F):
    """Take the inverses of the last estimate where the question stands in the same array."""
    last, inverses = self.__dict__.get("last", (None, None))
    return (inverses if last is P else self.inverses(r, F)).mean(axis=0)


TRACE = memory(lambda r, F: (len(r), np.trace(F).round(9)))
LAST = {"estimate": keeps_inverses, "mean_jacobian": jacobian_of_an_old_estimate}
KEPT = {
    "by the dimension": (memory(lambda r, F: len(F)), "right_answers"),
    "by the shape": (memory(lambda r, F: (len(r), len(F))), "deterministic right_answers"),
    "by the rates": (memory(lambda r, F: r.tobytes()), "right_answers"),
    "by the trace": (TRACE, "right_answers"),
    "by the corner": (memory(lambda r, F: (r.tobytes(), F[0, 0].round(9))), "right_answers"),
    "by the array": (memory(lambda r, F: (id(r), id(F))), "right_answers"),
    "by the trace, of a posterior mean": (TRACE | {"precision": "posterior"}, "right_answers"),
    "each call": ({"estimate": drifting}, "deterministic"),
    "many calls": ({"estimate": tired}, "right_answers"),
    "a buffer": ({"estimate": handed_out_again}, "deterministic"),
    "the estimate before": (LAST, "right_answers"),
}


@pytest.mark.parametrize(("methods", "names"), KEPT.values(), ids=KEPT)
def test_what_is_kept_between_calls_is_named_in_every_check_that_it_fails(methods, names):
    belief = None if "precision" in methods else Squares()
    failures = check_denoiser(variant(**methods), belief=belief, rng=np.random.default_rng(2)).failures
    failed = {failure.name for failure in failures}
    assert failed & {*names.split()} and failed <= {"deterministic", "right_answers"}
    for failure in failures:
        assert "what is kept between calls?" in failure.message, failure
        assert "To ask it again" not in failure.message, failure  # a new denoiser is right


def test_a_jacobian_is_inherited_if_one_of_the_denoisers_inherits_it():
    makers = [Right, lambda: variant(mean_jacobian=Denoiser.mean_jacobian)]
    for some, said in ((makers, "mean_jacobian is inherited"), (makers[:1] * 2, "")):
        (result,) = run_checks("both", [Trial(make, PROBLEM) for make in some], [CHECKS["jacobian"]]).results
        assert result.passed and result.message == said


class TwoKinds(Denoiser):
    """The posterior mean for two kinds of rows, N(centre, I) and N(-centre, I), both as probable.

    The evidence of a kind has the term -r centre F centre^T / 2 in common with the other's, unless `offset` is added to
    one of the centres.
    """

    precision = "posterior"

    def __init__(self, factor, offset):
        self.factor, self.offset = factor, offset

    def estimate(self, P, r, F):
        kinds = []
        for centre in (1.0 + self.offset, -1.0):
            centres = np.sqrt(r)[:, None] * np.full(P.shape, centre)
            Y = P - centres @ F
            mean = estimate(Y, r, F)
            cross, square = (centres * P).sum(axis=1), np.einsum("ik,kl,il->i", centres, F, centres)
            kinds.append((cross - self.factor * square / 2 + (Y * mean).sum(axis=1) / 2, centres + mean))
        (a, first), (b, second) = kinds
        share = 1 / (1 + np.exp(np.clip(b - a, -700, 700)))[:, None]
        return share * first + (1 - share) * second


@pytest.mark.parametrize(("factor", "offset", "fails"), [(1, 0, 0), (1, 0.5, 0), (1.2, 0, 0), (1.2, 0.5, 1)])
def test_estimates_at_different_f_come_from_one_prior(factor, offset, fails):
    """A wrong factor before what both kinds have in common changes nothing."""
    trial = Trial(lambda: TwoKinds(factor, offset), draw_problem(40, 2, rng=np.random.default_rng(0)))
    with pytest.raises(AssertionError, match="the posterior mean of one prior") if fails else nullcontext():
        CHECKS["one_prior"](trial)


class Signs(Denoiser):
    """The posterior mean for u = 0.3 and u = -0.3, which F is no part of."""

    precision = "posterior"

    def estimate(self, P, r, F):
        root = 0.3 * np.sqrt(r)[:, None]
        return root * np.tanh(root * P)


def test_an_estimate_that_does_not_depend_on_f_comes_from_one_prior():
    for seed in range(20):
        CHECKS["one_prior"](Trial(Signs, draw_problem(40, 1, rng=np.random.default_rng(seed))))


def paths(P, r, F):
    return np.einsum("ik,ikl,lm->im", P, Right().inverses(r, F), np.eye(len(F)), optimize=True)


def converging(P, r, F):
    X = estimate(P, r, F)
    for _ in range(20 * min(len(P), 300)):  # iterations that many rows take more of, up to a point
        X = X + 0.0
    return X


def in_a_thread(P, r, F):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(looped, P, r, F).result()


def in_blocks(P, r, F):
    blocks = zip(*(np.array_split(each, len(P) // 500 + 1) for each in (P, r)), strict=True)
    return np.concatenate([paths(*block, F) for block in blocks])


def by_a_library(P, r, F):
    H = Right().inverses(r, F).reshape(len(P), -1)
    return np.apply_along_axis(lambda row: row[: len(F)] @ row[len(F) :].reshape(F.shape), 1, np.hstack([P, H]))


@pytest.mark.parametrize("formula", [paths, in_blocks, converging, looped, in_a_thread, by_a_library])
def test_a_loop_over_rows_is_found_in_every_thread_and_no_other_loop(formula):
    is_loop = formula in (looped, in_a_thread, by_a_library)
    told = r"lines of Python for every further row.* 4000 rows: "
    with pytest.raises(AssertionError, match=told) if is_loop else nullcontext():
        CHECKS["speed"](estimating(formula))


def test_a_loop_over_rows_is_not_asked_for_thousands_of_them():
    sizes = []

    def loop(P, r, F):
        sizes.append(len(P))
        return looped(P, r, F)

    CHECKS["right_answers"](estimating(loop))
    assert max(sizes) <= 4000 and sum(size > 300 for size in sizes) < 10  # `speed` asks those


def test_a_failure_is_told_in_the_simplest_denoiser_and_where_it_is_seen_at_a_glance():
    """A small mistake in three dimensions is large in two, and in one it is smaller still."""
    rng = np.random.default_rng(0)

    def off_by(size, d):
        wrong = estimating(lambda P, r, F: estimate(P, r, F) * (1 + size))
        return Trial(lambda: wrong, draw_problem(9, d, rng=rng), Squares(), title=f"size {size}, d = {d}")

    trial, *others = (off_by(size, d) for d, size in {3: 1e-4, 2: 0.5, 1: 1e-5}.items())
    trial = replace(trial, relatives=tuple(others))
    with pytest.raises(AssertionError) as raised:
        CHECKS["right_answers"].run(trial)
    assert raised.value.size == pytest.approx(0.5, rel=0.01)
    assert raised.value.__notes__[0].startswith("size 0.5, d = 2, 1 row, F = ")
    report = run_checks("", [trial], [CHECKS["right_answers"]])
    assert report.failures[0].message.partition("To ask it again")[0].count("size") == 1  # names no other setting
