"""The kit against denoisers that are wrong where a usual problem does not look: other r, F, sizes, and memory."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from threading import Lock

import numpy as np
import pytest
from stated_beliefs import Squares

from amptutorial.checks import (
    CHECKS,
    Trial,
    check_denoiser,
    draw_problem,
    run_checks,
)
from amptutorial.denoisers import Denoiser

SHARED = {}


class Right(Denoiser):
    """Ridge of strength 1."""

    def inverses(self, r, F):
        return np.linalg.inv(F + np.eye(len(F)) / r[:, None, None])

    def estimate(self, P, r, F):
        return np.einsum("ik,ikl->il", P, self.inverses(r, F))

    def mean_jacobian(self, P, r, F):
        return self.inverses(r, F).mean(axis=0)

    def penalty(self, X, r):
        return float((X**2 / r[:, None]).sum() / 2)

    def convexity(self, r):
        return 1 / r.max()


def memory(key):
    """Return methods of a `Right` that keeps its inverses under a key of the question."""

    def inverses(self, r, F):
        kept = self.__dict__.setdefault("kept", {})
        if key(r, F) not in kept:
            kept[key(r, F)] = Right.inverses(self, r, F)
        return kept[key(r, F)]

    return {"inverses": inverses}


def shared(self, r, F):
    """Keep inverses for all instances, under a key that a rotation of F does not change."""
    key = r.tobytes(), round(np.trace(F), 9)
    if key not in SHARED:
        SHARED[key] = Right.inverses(self, r, F)
    return SHARED[key]


def handed_out_again(self, P, r, F):
    buffer = self.__dict__.setdefault("buffers", {}).setdefault(P.shape, np.empty(P.shape))
    buffer[...] = Right.estimate(self, P, r, F)
    return buffer


def tired(self, P, r, F):
    self.calls = getattr(self, "calls", 0) + 1
    return Right.estimate(self, P, r, F) * (self.calls < 60)


def only_in_order(self, P, r, F):
    return Right.estimate(self, np.frombuffer(P.tobytes("A"), float).reshape(P.shape), r, F)


def writes_and_restores(self, P, r, F):
    P *= 2
    X = Right.estimate(self, P, r, F) / 2
    P /= 2
    return X


def each_r_once(self, P, r, F):
    return self.inverses(np.unique(r), F).mean(axis=0)


def first_thousand(self, P, r, F):
    return self.inverses(r[:1000], F).mean(axis=0)


def mean_rate_of_many(self, P, r, F):
    return Right.estimate(self, P, r if len(r) < 500 else np.full(len(r), r.mean()), F)


def floor_of_F(self, r, F):
    w, V = np.linalg.eigh(F)
    return Right.inverses(self, r, (V * np.maximum(w, 1e-3)) @ V.T)


def floor_of_r(self, r, F):
    return Right.inverses(self, np.maximum(r, 1e-2), F)


def iterated(self, P, r, F):
    """A hundred steps of Richardson: enough for a usual F."""
    X, step = 0 * P, 1 / (np.linalg.eigvalsh(F)[-1] + 1 / r)[:, None]
    for _ in range(400):
        X = X + step * (P - X @ F - X / r[:, None])
    return X


def fresh_Jacobian_of_an_old_estimate(self, P, r, F):
    """Take the inverses of the last estimate where the question stands in the same array."""
    last, inverses = self.__dict__.get("last", (None, None))
    return (inverses if last is P else self.inverses(r, F)).mean(axis=0)


def keeps_inverses(self, P, r, F):
    self.last = P, self.inverses(r, F)
    return Right.estimate(self, P, r, F)


def without_gaps(self, P, r, F):
    held = P if P.base is None else P.base.ravel()[: P.size].reshape(P.shape)
    return Right.estimate(self, held, r, F)


def one_for_zero(self, P, r, F):
    return np.where(P == 0, 1.0, Right.estimate(self, P, r, F))


def untouched(self, P, r, F):
    return np.where(P == 0, 0.0, Right.estimate(self, P, r, F))


def diagonal_shortcut(self, P, r, F):
    if np.array_equal(F, np.diag(np.diag(F))):
        return P / (F[0, 0] + 1 / r[:, None])
    return Right.estimate(self, P, r, F)


def between_modes(self, P, r, F):
    """Divide by the gaps between the eigenvalues of F, to no end but where two are equal."""
    w = np.linalg.eigvalsh(F)
    return Right.estimate(self, P, r, F) + 0 / (w[1] - w[0])


def not_of_one_row(self, X, r):
    return (len(r) > 1) * Right.penalty(self, X, r)


def jacobian_of(change):
    """Return methods of a `Right` whose Jacobian is that of another r and F, by the rows that it takes."""

    def mean_jacobian(self, P, r, F):
        r, F, rows = change(P, r, F)
        return self.inverses(r, F)[rows].sum(axis=0) / len(P)

    return {"mean_jacobian": mean_jacobian}


ALL = slice(None)
LAST = {"estimate": keeps_inverses, "mean_jacobian": fresh_Jacobian_of_an_old_estimate}


WRONG = {
    "what has no pull stays zero": ("right_answers", {"estimate": untouched}),
    "a shortcut for a diagonal F": ("right_answers", {"estimate": diagonal_shortcut}),
    "equal eigenvalues": ("right_answers", {"estimate": between_modes}),
    "the Jacobian has a floor of r": ("right_answers", jacobian_of(lambda P, r, F: (np.maximum(r, 0.05), F, ALL))),
    "the Jacobian has a largest r": ("right_answers", jacobian_of(lambda P, r, F: (np.minimum(r, 100), F, ALL))),
    "the Jacobian has a jitter": ("jacobian", jacobian_of(lambda P, r, F: (r, F + 1e-3 * np.eye(len(F)), ALL))),
    "the Jacobian lacks rows without a pull": ("right_answers", jacobian_of(lambda P, r, F: (r, F, P.all(axis=1)))),
    "the penalty of a single row": ("right_answers", {"penalty": not_of_one_row}),
    "r is floored": ("right_answers", {"inverses": floor_of_r}),
    "F is floored, and may not be indefinite": ("optimality", {"inverses": floor_of_F}),
    "iterations are cut short": ("optimality", {"estimate": iterated}),
    "the convexity is left out": ("penalty", {"convexity": lambda self, r: 0.0}),
    "the convexity is halved": ("penalty", {"convexity": lambda self, r: 0.5 / r.max()}),
    "the convexity is that of the first row": ("penalty", {"convexity": lambda self, r: 1 / r[0]}),
    "each r counts once": ("right_answers", {"mean_jacobian": each_r_once}),
    "the Jacobian of the first thousand rows": ("right_answers", {"mean_jacobian": first_thousand}),
    "one r for many rows": ("right_answers", {"estimate": mean_rate_of_many}),
    "a cache by the trace": ("right_answers", memory(lambda r, F: (len(r), np.trace(F).round(9)))),
    "a cache by the corner": ("right_answers", memory(lambda r, F: (r.tobytes(), F[0, 0].round(9)))),
    "a cache by the array": ("row_independence frequency_scaling right_answers", memory(lambda r, F: (id(r), id(F)))),
    "a cache of all instances": ("right_answers", {"inverses": shared}),
    "a buffer handed out again": ("deterministic", {"estimate": handed_out_again}),
    "tired after many calls": ("right_answers", {"estimate": tired}),
    "rows in the order of C": ("deterministic", {"estimate": only_in_order}),
    "the Jacobian of the estimate before": ("right_answers", LAST),
    "a view is read as if it had no gaps": ("deterministic", {"estimate": without_gaps}),
    "nothing is estimated as one": ("right_answers", {"estimate": one_for_zero}),
    "P is written and restored": ("no_mutation", {"estimate": writes_and_restores}),
}


KEPT = {
    "by the dimension": memory(lambda r, F: len(F)),
    "by the shape": memory(lambda r, F: (len(r), len(F))),
    "by the rates": memory(lambda r, F: r.tobytes()),
    "by the trace, of a posterior mean": WRONG["a cache by the trace"][1] | {"precision": "posterior"},
    "a count of calls": {"estimate": tired},
    "the estimate before": LAST,
}


@pytest.mark.parametrize("mistake", KEPT)
def test_what_is_kept_between_calls_is_named_in_every_check_that_it_fails(mistake):
    failures = check_denoiser(type("Keeps", (Right,), KEPT[mistake])()).failures
    assert failures
    for failure in failures:
        assert "what is kept between calls?" in failure.message, failure
        assert "To ask it again" not in failure.message, failure  # a new denoiser is right


def test_a_wrong_formula_is_no_matter_of_memory():
    report = check_denoiser(type("Wrong", (Right,), {"inverses": floor_of_r})())
    assert not report.passed and "what is kept" not in str(report)


def test_what_cannot_be_copied_is_asked_itself():
    class Locked(Right):
        def __init__(self):
            self.lock = Lock()

    report = check_denoiser(Locked())
    assert report.passed, report


def report_of(methods):
    cls = type("Wrong", (Right,), methods)
    trial = Trial(cls, draw_problem(40, 3, rng=np.random.default_rng(0), rows=Squares.rows), Squares())
    return run_checks("wrong", [trial], [check for name, check in CHECKS.items() if name != "state_evolution"])


@pytest.mark.parametrize("mistake", WRONG)
def test_what_is_wrong_in_a_corner_fails_the_check_that_names_it(mistake):
    name, methods = WRONG[mistake]
    report = report_of(methods)
    assert set(name.split()) & {failure.name for failure in report.failures}, str(report)


@pytest.mark.parametrize(("factor", "fails"), [(1.0, False), (1.01, True)])
def test_a_convexity_that_is_too_large_is_found_without_a_belief(factor, fails):
    wrong = type("Wrong", (Right,), {"convexity": lambda self, r: factor / r.max()})()
    result = next(each for each in check_denoiser(wrong).results if each.name == "penalty")
    assert result.passed is not fails, result.message
    assert ("is too large for 40 rows" in result.message) is fails


def test_a_denoiser_that_has_no_penalty_is_told_so():
    class Silent(Denoiser):
        estimate, inverses = Right.estimate, Right.inverses

    trial = Trial(Silent, draw_problem(40, 3, rng=np.random.default_rng(0), rows=Squares.rows), Squares())
    with pytest.raises(AssertionError, match="penalty is inherited"):
        CHECKS["penalty"](trial)


def test_a_jacobian_is_inherited_if_one_of_the_denoisers_inherits_it():
    class Plain(Denoiser):
        estimate = Right.estimate
        inverses = Right.inverses

    problem = draw_problem(40, 3, rng=np.random.default_rng(0))
    for makers, inherited in [((Right, Plain), True), ((Right, Right), False)]:
        report = run_checks("both", [Trial(make, problem) for make in makers], [CHECKS["jacobian"]])
        assert report.results[0].passed, report
        assert report.results[0].message == "mean_jacobian is inherited" * inherited


class TwoKinds(Denoiser):
    """The posterior mean for two kinds of rows, N(centre, I) and N(-centre, I), both as probable.

    The evidence of a kind has the term -r centre F centre^T / 2 in common with the other's, unless `offset` is added to
    one of the centres.
    """

    precision = "posterior"

    def __init__(self, factor, offset):
        self.factor, self.offset = factor, offset

    def estimate(self, P, r, F):
        K = np.linalg.inv(F + np.eye(len(F)) / r[:, None, None])
        kinds = []
        for centre in (1.0 + self.offset, -1.0):
            centres = np.sqrt(r)[:, None] * np.full(P.shape, centre)
            Y = P - centres @ F
            mean = np.einsum("ikl,il->ik", K, Y)
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


def by_lines(name):
    """Return a trial of a `Right` whose estimate is computed in one of several ways."""

    def paths(self, P, r, F):
        return np.einsum("ik,ikl,lm->im", P, self.inverses(r, F), np.eye(len(F)), optimize=True)

    def converging(self, P, r, F):
        X = Right.estimate(self, P, r, F)
        for _ in range(20 * min(len(P), 300)):  # iterations that many rows take more of, up to a point
            X = X + 0.0
        return X

    def looped(self, P, r, F):
        return np.array([p @ H for p, H in zip(P, self.inverses(r, F), strict=True)])

    def in_a_thread(self, P, r, F):
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(looped, self, P, r, F).result()

    def in_blocks(self, P, r, F):
        blocks = zip(*(np.array_split(each, len(P) // 500 + 1) for each in (P, r)), strict=True)
        return np.concatenate([paths(self, *block, F) for block in blocks])

    def by_a_library(self, P, r, F):
        H = self.inverses(r, F).reshape(len(P), -1)
        return np.apply_along_axis(lambda row: row[: len(F)] @ row[len(F) :].reshape(F.shape), 1, np.hstack([P, H]))

    methods = {each.__name__: each for each in (paths, in_blocks, converging, looped, in_a_thread, by_a_library)}
    cls = type("Counted", (Right,), {"estimate": methods[name]})
    return Trial(cls, draw_problem(40, 3, rng=np.random.default_rng(0)))


@pytest.mark.parametrize("name", ["paths", "in_blocks", "converging"])
def test_lines_that_do_not_grow_with_the_rows_are_no_loop(name):
    CHECKS["speed"](by_lines(name))


@pytest.mark.parametrize("name", ["looped", "in_a_thread", "by_a_library"])
def test_a_loop_is_found_in_every_thread(name):
    with pytest.raises(AssertionError, match=r"lines of Python for every further row.* 4000 rows: "):
        CHECKS["speed"](by_lines(name))


def test_what_is_right_passes():
    report = report_of({})
    assert report.passed, str(report)


def test_a_loop_over_rows_is_not_asked_for_thousands_of_them():
    sizes = []

    def loop(self, P, r, F):
        sizes.append(len(P))
        rows = zip(P[:, None], r[:, None], strict=True)
        return np.concatenate([Right.estimate(self, p, one, F) for p, one in rows])

    looping = type("Loop", (Right,), {"estimate": loop})()
    CHECKS["right_answers"](looping)
    assert max(sizes) <= 4000 and sum(size > 300 for size in sizes) < 10  # `speed` asks those


def test_a_failure_is_told_in_the_simplest_denoiser_and_where_it_is_seen_at_a_glance():
    """A small mistake in three dimensions is large in two, and in one it is smaller still."""

    class OffBy(Right):
        def __init__(self, size):
            self.size = size

        def estimate(self, P, r, F):
            return super().estimate(P, r, F) * (1 + self.size)

    rng, belief = np.random.default_rng(0), Squares()
    sizes = {3: 1e-4, 2: 0.5, 1: 1e-5}
    trials = [
        Trial(lambda size=size: OffBy(size), draw_problem(9, d, rng=rng), belief, title=f"size {size}, d = {d}")
        for d, size in sizes.items()
    ]
    with pytest.raises(AssertionError) as raised:
        CHECKS["right_answers"].run(replace(trials[0], relatives=tuple(trials[1:])))
    assert raised.value.size == pytest.approx(0.5, rel=0.01)
    assert raised.value.__notes__[0].startswith("size 0.5, d = 2, 1 row, F = ")
    report = run_checks("", [replace(trials[0], relatives=tuple(trials[1:]))], [CHECKS["right_answers"]])
    assert report.failures[0].message.partition("To ask it again")[0].count("size") == 1  # names no other setting
