"""Algorithm 1: against its lines written out, its fixed points, its symmetries, and what it does with bad input."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from synthetic import Linear, instance

from amptutorial import AMPEmbedding, state_evolution
from amptutorial import amp as loop
from amptutorial.amp import FLOOR, IndefinitePrecisionWarning, biased_low_rank_amp, floor_precision, random_start
from amptutorial.denoisers import Denoiser, GaussianPosterior, Lasso, Ridge
from amptutorial.laws import ConstantBias, GaussianRows, ScaledRows
from amptutorial.metrics import QuadraticLoss, normalised_mse


def informed_start(model, rng):
    """Return a start near the truth, from which F is positive definite."""
    return model.B + 0.5 * rng.standard_normal(model.B.shape)


def denoised(P, r, Q, Gamma, denoiser):
    """Return rows, the sum of their Jacobians and the denoiser, which learns first; only a minimiser sees Gamma."""
    F = Q if denoiser.precision == "posterior" else Q - Gamma
    denoiser = denoiser.refit(P, r, F)
    return denoiser.estimate(P, r, F), len(P) * denoiser.mean_jacobian(P, r, F), denoiser


def algorithm_1(Y, r_u, r_v, B, n_iter, denoiser, *, damping=0.0, per_n=False):
    """Algorithm 1 written out, sums over n divided by m (or by n, as printed); all that is updated is damped."""
    m, n = Y.shape
    d, kept = B.shape[1], 0.0
    A, Gamma_a, Gamma_b, of_u, of_v = np.zeros((m, d)), np.zeros((d, d)), np.zeros((d, d)), denoiser, denoiser
    for _ in range(n_iter):
        new, jacobians, of_u = denoised(Y @ B / np.sqrt(m) - A @ Gamma_a, r_u, B.T @ B / m, Gamma_a, of_u)
        A, Gamma_b = (1 - kept) * new + kept * A, (1 - kept) * jacobians / m + kept * Gamma_b
        kept = damping  # from the second A on
        new, jacobians, of_v = denoised(Y.T @ A / np.sqrt(m) - B @ Gamma_b, r_v, A.T @ A / m, Gamma_b, of_v)
        B, Gamma_a = (1 - kept) * new + kept * B, (1 - kept) * jacobians / (n if per_n else m) + kept * Gamma_a
    return A, B


@pytest.mark.parametrize("damping", [0.0, 0.4])
@pytest.mark.parametrize("denoiser", [Ridge(0.3), GaussianPosterior(1.0, learn=True), Linear()], ids=repr)
def test_loop_equals_algorithm_1_written_out(denoiser, damping, rng):
    """Far from any fixed point, at m != n and unequal rates."""
    model, Y = instance(60, 90, 2, rng)
    B0, r = informed_start(model, rng), (model.r_u, model.r_v)
    with warnings.catch_warnings(action="error"):
        run = biased_low_rank_amp(Y, *r, denoiser, B0=B0, n_iter=4, damping=damping)
    A, B = algorithm_1(Y, *r, B0, 4, denoiser, damping=damping)
    assert np.allclose(run.A, A) and np.allclose(run.B, B)
    printed = algorithm_1(Y, *r, B0, 4, denoiser, damping=damping, per_n=True)  # erratum 2
    assert not np.allclose(printed[1], B, rtol=1e-2)


def test_iterates_carry_the_indices_of_the_paper(rng):
    model, Y = instance(60, 90, 2, rng)
    B0 = informed_start(model, rng)
    run = biased_low_rank_amp(Y, model.r_u, model.r_v, (Ridge(0.3), Lasso(0.3)), B0=B0, n_iter=4)
    previous = B0
    assert [it.k for it in run.iterates] == [0, 1, 2, 3] and (run.iterates[0].Gamma_a == 0).all()
    for it in run.iterates:
        assert np.allclose(it.F_a, previous.T @ previous / 60 - it.Gamma_a)
        assert np.allclose(it.F_b, it.A.T @ it.A / 60 - it.Gamma_b)
        P_b = Y.T @ it.A / np.sqrt(60) - previous @ it.Gamma_b
        assert np.allclose(Lasso(0.3).estimate(P_b, model.r_v, it.F_b), it.B)
        previous = it.B


@pytest.mark.slow
@pytest.mark.parametrize("denoiser", [Ridge(3.0), Lasso(2.0)], ids=repr)
def test_fixed_points_are_critical_points(denoiser, rng):
    """lem:fixed-points: at the limit the gradient of eq:LAB (or its subdifferential) contains zero."""
    model, Y = instance(150, 200, 2, rng)
    run = biased_low_rank_amp(Y, model.r_u, model.r_v, denoiser, B0=informed_start(model, rng), n_iter=1000)
    A, B = run.A, run.B
    assert np.allclose(B, run.iterates[-2].B, rtol=0, atol=1e-9)
    smooth = QuadraticLoss(Y, model.r_u, model.r_v, Ridge(1.0))
    for X, r, gradient in zip((A, B), (model.r_u[:, None], model.r_v[:, None]), smooth.gradient(A, B), strict=True):
        residual, t = gradient - X / r, 2.0 / np.sqrt(r)  # of the fit alone; the threshold of the lasso
        lasso = np.where(X == 0, np.maximum(np.abs(residual) - t, 0), residual + t * np.sign(X))
        violation = residual + 3 * X / r if isinstance(denoiser, Ridge) else lasso
        assert np.abs(violation).max() < 1e-6 * np.abs(Y @ B).max()


def test_indefinite_f_is_floored_and_recorded(rng):
    """Finding 9: from a random start F is indefinite; Lasso could not go on. The last F is not, so nobody is warned."""
    model, Y = instance(300, 400, 4, rng, variance=0.3, shift=3)
    lasso = Lasso(0.01)

    def amp(B0):
        return biased_low_rank_amp(Y, model.r_u, model.r_v, lasso, B0=B0, n_iter=40)

    run = amp(random_start(400, 4, rng))
    floored = [it.floored_a or it.floored_b for it in run.iterates]
    assert any(floored) and not any(floored[20:])
    for it in run.iterates:  # what is reported is what the denoiser saw
        assert np.linalg.eigvalsh(it.F_b - FLOOR * it.A.T @ it.A / 300)[0] > -1e-9
    informed = amp(informed_start(model, rng))
    # Lasso's fixed point depends on the rotation of the start; the fit does not, at so small a strength
    error, best = (normalised_mse(model.A, model.B, each.A, each.B) for each in (run, informed))
    assert error == pytest.approx(best, rel=0.02)


@pytest.mark.parametrize(
    ("denoiser", "n_iter", "sides"),
    [(Lasso(0.01), 1, (False, True)), ((Lasso(0.01), GaussianPosterior(1e-5)), 2, (True, False))],
    ids=["columns", "rows"],
)
def test_a_last_iterate_that_is_floored_is_warned_about_once(denoiser, n_iter, sides, rng):
    """Without Gamma_a the first F_a is Q, and posterior means know no floor: one side has it, the other has not."""
    model, Y = instance(300, 400, 4, rng, variance=0.3, shift=3)
    B0, message = random_start(400, 4, rng), rf"in the last iteration \(1 of {n_iter} in all\)"
    with pytest.warns(IndefinitePrecisionWarning, match=message) as caught:
        run = biased_low_rank_amp(Y, model.r_u, model.r_v, denoiser, B0=B0, n_iter=n_iter)
    assert len(caught) == 1 and caught[0].filename == __file__
    assert (run.iterates[-1].floored_a, run.iterates[-1].floored_b) == sides


@given(st.integers(0, 1000), st.integers(1, 5), st.floats(0, 2))
def test_floor_guarantees_its_bound_and_touches_nothing_else(seed, d, convexity):
    rng = np.random.default_rng(seed)
    root, F = rng.standard_normal((d, d)), rng.standard_normal((d, d))
    Q, F = root @ root.T, (F + F.T) / 2
    floored, changed = floor_precision(F, Q, convexity)
    R = Q + convexity * np.eye(d)
    gap = np.linalg.eigvalsh(floored + convexity * np.eye(d) - FLOOR * R)[0]
    assert gap > -1e-8 * (1 + np.trace(Q))
    if changed:  # and no more than the bound, up to the small multiple of I that keeps a singular Q in hand
        assert gap < FLOOR * (1.1e-3 * np.trace(R) / d) + 1e-8 * (1 + np.trace(Q))
    assert changed or np.array_equal(F, floored)
    assert floor_precision(F + 10 * (1 + np.trace(Q) + np.abs(F).sum()) * np.eye(d), Q, convexity)[1] is False


def test_callback_sees_every_iterate_and_can_stop(rng):
    model, Y = instance(40, 50, 1, rng)
    seen, posterior = [], GaussianPosterior(1.0)
    stop_at_two = {"on_iteration": lambda iterate: seen.append(iterate.k) or iterate.k == 2}
    run = biased_low_rank_amp(Y, model.r_u, model.r_v, posterior, B0=model.B, **stop_at_two)
    assert seen == [0, 1, 2] and len(run.iterates) == 3


class NoAnswer(Denoiser):
    """One of its answers is not finite, as after 0 / 0, in its first call or in a later one."""

    precision = "posterior"

    def __init__(self, spoiled, call=1):
        self.spoiled, self.left = spoiled, call

    def answer(self, which, good):
        self.left -= which == self.spoiled
        return good * (np.nan if which == self.spoiled and self.left <= 0 else 1.0)

    def estimate(self, P, r, F):
        return self.answer("estimate", P)

    def mean_jacobian(self, P, r, F):
        return self.answer("mean_jacobian", np.eye(len(F)))

    def __repr__(self):
        return "NoAnswer()"


def test_a_non_finite_iterate_is_refused_with_its_name_and_iteration(rng):
    model, Y = instance(40, 50, 2, rng)
    pair = NoAnswer("estimate", call=3), GaussianPosterior(1.0)
    with pytest.raises(FloatingPointError, match=r"estimate is not finite: .*spectral_start") as caught:
        biased_low_rank_amp(Y, model.r_u, model.r_v, pair, B0=model.B)
    assert caught.value.__notes__ == ["This was in iteration 2."]


def runs_of(pair, rng):
    """Return what asks a pair of denoisers: AMP, state evolution, and the fit of `AMPEmbedding`."""
    model, Y = instance(40, 50, 1, rng)
    law, counts = ScaledRows(GaussianRows(0.5), ConstantBias(0.0), 1), rng.poisson(2.0, (40, 30)) + 1
    start = {"beta": 0.8, "M0": np.eye(1), "Q0": 2 * np.eye(1), "n_iter": 2, "n_samples": 50, "rng": rng}
    return (
        lambda: biased_low_rank_amp(Y, model.r_u, model.r_v, pair, B0=model.B),
        lambda: state_evolution(law, law, pair, **start),
        lambda: AMPEmbedding(1, denoiser=pair, random_state=0).fit(counts),
    )


@pytest.mark.parametrize("spoiled", ["estimate", "mean_jacobian"])
@pytest.mark.parametrize("side", [1, -1])
def test_a_denoiser_without_an_answer_is_named_and_not_the_iteration(spoiled, side, rng):
    named = rf"the first {spoiled} of .*NoAnswer\(\).* is not finite, though P and F are: look for a division by zero"
    for run in runs_of((NoAnswer(spoiled), Ridge(1.0))[::side], rng):
        with pytest.raises(FloatingPointError, match=named):
            run()


class WritesInto(Denoiser):
    """It changes the bias factors that it is given."""

    precision = "posterior"

    def estimate(self, P, r, F):
        r *= 2
        return P


@pytest.mark.parametrize("side", [1, -1])
def test_a_denoiser_cannot_change_the_bias_factors_of_its_caller(side, rng):
    pair = (WritesInto(), Ridge(1.0))[::side]
    for run in runs_of(pair, rng):
        with pytest.raises(ValueError, match="read-only"):
            run()
    r = np.full(4, 2.0), np.full(5, 3.0)
    with pytest.raises(ValueError, match="read-only"):
        biased_low_rank_amp(np.eye(4, 5), *r, pair, B0=np.ones((5, 1)))
    B0 = np.ones((4, 1))
    doubled = sp.linalg.LinearOperator((4, 4), lambda x: np.multiply(x, 2, out=x), dtype=float)
    with pytest.raises(ValueError, match="read-only"):  # an operator cannot change the start
        biased_low_rank_amp(doubled, r[0], r[0], Ridge(1.0), B0=B0)
    assert (
        (B0 == 1).all() and set(r[0]) == {2.0} and set(r[1]) == {3.0} and r[0].flags.writeable and r[1].flags.writeable
    )


def test_an_operator_that_returns_its_argument_or_its_own_buffer_keeps_its_numbers(rng):
    """The identity hands back B_0 itself; an operator with a buffer of its own hands out that."""
    B0, buffer = rng.standard_normal((6, 2)), np.zeros((6, 2))

    def buffered(X):
        buffer.flags.writeable = True
        buffer[:] = X
        buffer.flags.writeable = False
        return buffer

    products = dict.fromkeys(("matvec", "matmat", "rmatvec", "rmatmat"), buffered)
    same = sp.linalg.LinearOperator((6, 6), **products, dtype=np.float64)
    plain = sp.linalg.LinearOperator((6, 6), matvec=lambda x: x, matmat=lambda X: X, dtype=np.float64)
    before, ones = B0.copy(), np.ones(6)
    runs = [biased_low_rank_amp(Y, ones, ones, GaussianPosterior(1.0), B0=B0, n_iter=3) for Y in (np.eye(6), same)]
    P = loop.denoiser_input(plain, B0, np.zeros((6, 2)), np.zeros((2, 2)), 6)
    assert np.allclose(runs[0].B, runs[1].B) and np.array_equal(B0, before) and not np.shares_memory(P, B0)


def test_a_wrong_shape_of_a_students_estimate_is_named(rng):
    class Narrow(Denoiser):
        precision = "posterior"

        def estimate(self, P, r, F):
            return P[:, :1]

    model, Y = instance(40, 50, 2, rng)
    with pytest.raises(ValueError, match=r"returned an estimate of shape \(40, 1\), expected \(40, 2\)"):
        biased_low_rank_amp(Y, model.r_u, model.r_v, Narrow(), B0=model.B)


@pytest.mark.parametrize(
    ("d", "damping", "message"),
    [(5, 0.0, r"d = 5 columns; .* between 1 and min\(m, n\) = 4"), (1, 1.0, "damping must be below 1, got 1")],
)
def test_bad_input_is_named(d, damping, message):
    with pytest.raises(ValueError, match=message):
        biased_low_rank_amp(np.eye(4, 5), np.ones(4), np.ones(5), Ridge(1.0), B0=np.ones((5, d)), damping=damping)


@pytest.mark.parametrize("denoiser", [Ridge(1.0), GaussianPosterior(1.0)])
def test_a_precision_is_symmetric_also_where_round_off_is_not(denoiser):
    """A quadratic form sees the symmetric part only."""
    Q, lopsided = np.array([[4.0, 1.0], [1.0, 3.0]]), np.array([[0.0, 0.5], [-0.5, 0.0]])
    F, floored = loop.form_precision(Q + lopsided, np.zeros((2, 2)), np.ones(1), denoiser)
    assert np.array_equal(F, Q) and not floored


def test_the_floor_is_relative_to_the_second_moment_with_the_penalty():
    """F + 1 = diag(-4, 3) against Q + 1 = diag(2, 5): the first is raised to a tenth of 2, the second stays."""
    r = np.array([1.0, 2.0])  # the penalty 2 / r is least, 1, in the row of the largest r
    F, floored = loop.form_precision(np.diag([1.0, 4.0]), np.diag([6.0, 2.0]), r, Ridge(2.0))
    assert floored and np.allclose(F, np.diag([2 * FLOOR - 1, 2.0]), atol=1e-3)  # what is added to Q at most
    F, floored = floor_precision(np.zeros((2, 2)), np.zeros((2, 2)))  # some is left without estimate and penalty
    assert floored and np.linalg.eigvalsh(F)[0] > 0


def test_without_a_number_there_are_ten_undamped_iterations(rng):
    model, Y = instance(30, 40, 2, rng)
    B0 = informed_start(model, rng)
    run = biased_low_rank_amp(Y, model.r_u, model.r_v, Ridge(0.3), B0=B0)
    expected = algorithm_1(Y, model.r_u, model.r_v, B0, 10, Ridge(0.3))
    assert np.allclose(run.A, expected[0]) and np.allclose(run.B, expected[1])
    for name in ("A", "B", "denoiser_a", "denoiser_b"):
        assert getattr(run, name) is getattr(run.iterates[9], name)
