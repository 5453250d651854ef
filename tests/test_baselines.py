"""Baselines: the same critical points as AMP, and optimal shrinkage against posterior-mean AMP."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats
from scipy.sparse.linalg import aslinearoperator
from synthetic import instance, small_problem

from amptutorial import baselines
from amptutorial.amp import biased_low_rank_amp
from amptutorial.baselines import spectral_start, svd
from amptutorial.bias import estimate_bias
from amptutorial.denoisers import Ridge
from amptutorial.metrics import QuadraticLoss
from amptutorial.paper.descent import NotConvergedWarning, PoissonLoss, minimise
from amptutorial.score import FisherScore
from amptutorial.spectrum import detection_ratio, detection_weights, shrink

METHODS = ("gradient_descent", "least_squares")


def ridge_loss(Y, strength):
    """Return the quadratic loss at r = 1."""
    m, n = np.shape(Y)
    return QuadraticLoss(Y, np.ones(m), np.ones(n), Ridge(strength))


@pytest.mark.parametrize("wrap", [np.asarray, aslinearoperator])
def test_svd_is_the_best_low_rank_approximation(wrap, rng):
    Y = rng.standard_normal((30, 40))
    u, s, v = np.linalg.svd(Y)
    A, B = svd(wrap(Y), 3, rng=rng)
    assert np.allclose(A @ B.T / np.sqrt(30), (u[:, :3] * s[:3]) @ v[:3])
    assert np.allclose(A.T @ A / 30, B.T @ B / 30)
    assert np.allclose(A.T @ A / 30, np.diag(s[:3]) / np.sqrt(30))
    A, B = svd(wrap(3 * Y), 3, rng=rng, shrink=True)  # beyond the edge of noise of variance 1
    assert np.allclose(A @ B.T / np.sqrt(30), (u[:, :3] * shrink(3 * s[:3], 30, 40)) @ v[:3])


def test_svd_works_on_scores_whose_margins_vanish(rng):
    """With constant counted biases the vector of ones is in the null space: the Lanczos start must not be."""
    Z = np.ones((30, 40), dtype=int)
    Z[:15, :20] = Z[15:, 20:] = 3
    Y = FisherScore(Z, *estimate_bias(Z))
    A, B = svd(Y, 1, rng=rng)
    assert np.allclose(A @ B.T / np.sqrt(30), Y.toarray())


def test_all_minimisers_meet_at_the_same_loss_with_zero_gradient(rng):
    """lem:fixed-points from three sides: AMP, ALS and gradient descent."""
    model, Y = instance(60, 90, 2, rng)
    A0, B0 = rng.standard_normal((60, 2)), model.B + rng.standard_normal((90, 2))
    ridges, r = (Ridge(2.0), Ridge(3.0)), (model.r_u, model.r_v)
    loss = QuadraticLoss(Y, *r, ridges)
    amp = biased_low_rank_amp(Y, *r, ridges, B0=B0, n_iter=500)
    reference = loss(amp.A, amp.B)
    for name in METHODS:
        fit = minimise(loss, A0=A0, B0=B0, method=name, n_iter=20_000, tol=1e-14)
        assert fit.converged, name
        assert fit.losses[-1] == pytest.approx(loss(fit.A, fit.B), rel=1e-9)
        assert (np.diff(fit.losses) <= 1e-9 * reference).all(), name
        assert fit.losses[-1] == pytest.approx(reference, rel=1e-6), name
        assert np.allclose(fit.A @ fit.B.T, amp.A @ amp.B.T, atol=0.02 * np.abs(amp.A @ amp.B.T).max()), name
        size = np.sqrt(sum((g**2).sum() for g in loss.gradient(fit.A, fit.B)))
        assert size < 1e-3 * np.linalg.norm(Y @ fit.B), name


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("rows", [4, 2**20])
def test_poisson_loss_equals_scipys_log_likelihood(rows, make, monkeypatch):
    """In one slice, and in two."""
    monkeypatch.setattr("amptutorial.paper.descent.LOSS_ROWS", rows)
    for seed in range(20):
        Z, r_u, r_v, U, V, _ = small_problem(seed)
        rates = np.outer(r_u, r_v) * np.exp(U @ V.T / np.sqrt(6))
        expected = -stats.poisson.logpmf(Z, rates).sum() + 0.15 * (np.vdot(U, U) + np.vdot(V, V))
        assert PoissonLoss(make(Z), r_u, r_v, 0.3)(U, V) == pytest.approx(expected)


@pytest.mark.parametrize("rows", [4, 2**20])
def test_poisson_gradient_is_a_finite_difference(rows, monkeypatch):
    monkeypatch.setattr("amptutorial.paper.descent.LOSS_ROWS", rows)
    Z, r_u, r_v, U, V, rng = small_problem(2)
    loss, h = PoissonLoss(Z, r_u, r_v, 0.3), 1e-5
    step_U, step_V = rng.standard_normal(U.shape), rng.standard_normal(V.shape)
    slope = (loss(U + h * step_U, V + h * step_V) - loss(U - h * step_U, V - h * step_V)) / (2 * h)
    by_U, by_V = loss.gradient(U, V)
    assert slope == pytest.approx(np.vdot(by_U, step_U) + np.vdot(by_V, step_V), rel=1e-6)


def test_descent_reaches_a_stationary_point_of_the_poisson_loss(rng):
    model, _ = instance(30, 40, 2, rng)
    Z, r = model.sample(rng), (model.r_u, model.r_v)
    loss = PoissonLoss(Z, *r, 0.5)
    fit = minimise(loss, A0=model.U, B0=model.V, n_iter=2000, tol=1e-13)
    by_U, by_V = loss.gradient(fit.A, fit.B)
    assert np.abs(by_U).max() < 1e-3 and np.abs(by_V).max() < 1e-3
    assert fit.losses[-1] < fit.losses[0]


@pytest.mark.filterwarnings("ignore:not converged")
def test_a_step_to_infinite_rates_is_taken_back():
    """The gradient at the start would move u v by thousands of nats.

    How long it takes along the valley u v = log Z, which is a billion times flatter, depends on round-off.
    """
    fit = minimise(PoissonLoss([[10**6]], [1.0], [1.0], 1e-3), A0=[[1e-3]], B0=[[1.0]])
    assert fit.A[0, 0] * fit.B[0, 0] == pytest.approx(np.log(1e6), rel=1e-3)


def test_a_start_has_d_directions_where_the_score_has_fewer(rng):
    """Rank one, d = 2: the second singular value is 0, and a tenth of the first is kept of its direction."""
    B0 = spectral_start(np.diag([30.0, 0.0, 0.0, 0.0]), 2, rng=rng)
    first, second = np.sqrt(4) * shrink(30.0, 4, 4), np.sqrt(4) * 0.1 * 30
    assert np.allclose(B0.T @ B0, np.diag([first, second]))
    assert abs(B0[0, 0]) == pytest.approx(np.sqrt(first)) and abs(B0[0, 1]) < 1e-12


@pytest.mark.parametrize("function", [svd, baselines.singular_values, spectral_start])
def test_what_has_no_singular_vectors_is_refused(function, rng):
    zero = FisherScore(np.ones((4, 5)), np.ones(4), np.ones(5))
    for Y in (np.zeros((4, 5)), zero):
        with pytest.raises(ValueError, match="singular vectors of Y cannot be computed: Y is zero"):
            function(Y, 1, rng=rng)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_singular_values_have_the_scale_of_the_matrix(scale, rng):
    assert np.allclose(baselines.singular_values(scale * np.diag([3.0, 2.0, 1.0]), 2, rng=rng) / scale, [3, 2])


@pytest.mark.parametrize("method", METHODS)
def test_a_looser_tolerance_stops_earlier_and_higher(method, rng):
    _, Y = instance(40, 60, 2, rng)
    start = {"A0": rng.standard_normal((40, 2)), "B0": rng.standard_normal((60, 2))}
    loss = ridge_loss(Y, 1.0)
    loose, tight = (minimise(loss, **start, method=method, n_iter=5000, tol=tol) for tol in (1e-3, 1e-12))
    assert loose.converged and tight.converged
    assert len(loose.losses) < len(tight.losses) and loose.losses[-1] > tight.losses[-1]
    last, before = loose.losses[-1], loose.losses[-2]
    assert before - last <= 1e-3 * abs(last)
    assert all(a - b > 1e-3 * abs(b) for a, b in zip(loose.losses[:-2], loose.losses[1:-1], strict=True))


def test_bad_input_is_named():
    given = {"loss": ridge_loss(np.ones((3, 4)), 1.0), "A0": np.ones((3, 1)), "B0": np.ones((4, 1))}
    poisson = PoissonLoss(np.ones((3, 4)), np.ones(3), np.ones(4))
    for options, message in (
        ({"loss": np.sum}, "loss must have a method gradient"),
        ({"method": "newton"}, "method must be one of .*got 'newton'"),
        ({"tol": 1.5}, "tol must be at most 1, a fraction of the loss"),
        ({"loss": poisson, "method": "least_squares"}, "least squares need a QuadraticLoss"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            minimise(**given | options)


def test_a_loss_that_is_infinite_at_the_start_has_no_minimiser():
    for method, size in zip(METHODS, (1e100, 1e200), strict=True):
        with pytest.raises(FloatingPointError, match="is not finite: the iteration diverges"):
            minimise(ridge_loss(np.eye(2), 1.0), A0=size * np.eye(2), B0=size * np.eye(2), method=method)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_iter", [1, 3])
def test_a_run_that_does_not_converge_takes_all_its_iterations_and_no_more(method, n_iter, rng):
    loss = ridge_loss(rng.standard_normal((20, 30)), 0.1)
    start = {"A0": rng.standard_normal((20, 2)), "B0": rng.standard_normal((30, 2))}
    with pytest.warns(NotConvergedWarning, match=f"not converged after {n_iter} iterations: raise n_iter or tol"):
        fit = minimise(loss, **start, method=method, n_iter=n_iter, tol=0.0)
    assert len(fit.losses) == n_iter and not fit.converged
    assert fit.losses[-1] == pytest.approx(loss(fit.A, fit.B), rel=1e-12)


def test_the_spectral_start_has_the_scale_of_the_shrunken_values_and_a_little_of_the_noise(rng):
    """B_0^T B_0 / sqrt(m) is diagonal: the first value stands out, and the second is inside the noise."""
    u, v = (np.linalg.qr(rng.standard_normal((n, 1)))[0] for n in (900, 400))
    Y = 100 * u @ v.T + rng.standard_normal((900, 400))
    gram = (lambda B: B.T @ B / np.sqrt(900))(spectral_start(Y, 2, rng=rng))
    sigma = np.linalg.norm(Y, 2)
    assert gram[0, 0] == pytest.approx(shrink(sigma, 900, 400), rel=1e-9) and abs(gram[0, 1]) < 1e-9
    assert 0.01 * sigma < gram[1, 1] < 0.3 * sigma


def test_a_step_of_gradient_descent_gains_half_of_what_the_slope_promises(rng):
    """At least, and a step twice as long would not: the line search of Armijo, with halves."""
    Y = rng.standard_normal((6, 5))
    A0, B0 = rng.standard_normal((6, 2)), rng.standard_normal((5, 2))
    loss = ridge_loss(Y, 0.5)
    by_A, by_B = loss.gradient(A0, B0)
    with pytest.warns(NotConvergedWarning):
        fit = minimise(loss, A0=A0, B0=B0, method="gradient_descent", n_iter=1)
    step = np.linalg.norm(fit.A - A0) / np.linalg.norm(by_A)
    assert np.allclose(fit.A, A0 - step * by_A) and np.allclose(fit.B, B0 - step * by_B)
    assert np.log2(step) == pytest.approx(round(np.log2(step)), abs=1e-9)
    slope = (by_A**2).sum() + (by_B**2).sum()
    assert loss(A0, B0) - loss(fit.A, fit.B) >= step * slope / 2
    assert loss(A0, B0) - loss(A0 - 2 * step * by_A, B0 - 2 * step * by_B) < 2 * step * slope / 2


@pytest.mark.parametrize(("start", "loss"), [(np.sqrt(2), 2.5), (0.0, 4.5)])
def test_a_fit_from_a_critical_point_has_converged_with_its_loss(start, loss):
    """(3 - a b)^2 / 2 + (a^2 + b^2) / 2 has them at a = b = sqrt 2, where round-off leaves no descent, and at zero."""
    start = np.array([[start]])
    fit = minimise(ridge_loss([[3.0]], 1.0), A0=start, B0=start, tol=0)
    assert fit.converged and np.allclose([fit.A, fit.B], start, rtol=1e-15)
    assert fit.losses == pytest.approx([loss], rel=1e-14)


def test_the_weighted_start_sees_what_frequencies_hide_and_does_not_warn(rng):
    r_u, r_v = np.repeat([16.0, 1.0], [60, 240]), np.repeat([16.0, 1.0], [90, 360])
    strength = (8 / detection_ratio(r_u, r_v, 1.0, 1.0, 300 / 450)) ** 0.25  # kappa = 8
    A, B = (np.sqrt(r)[:, None] * rng.standard_normal((r.size, 1)) for r in (r_u, r_v))
    Y = strength * A @ B.T / np.sqrt(300) + rng.standard_normal((300, 450))
    with pytest.warns(baselines.BelowThresholdWarning, match="inside the noise, which ends at 38.53"):
        plain = spectral_start(Y, 1, rng=rng)
    with warnings.catch_warnings(action="error"):
        weighted = spectral_start(Y, 1, r_u, r_v, rng=rng)
    plain, weighted = (np.vdot(X, B) ** 2 / np.vdot(X, X) / np.vdot(B, B) for X in (plain, weighted))
    assert plain < 0.1 < 0.3 < weighted


def test_equal_frequencies_do_not_change_the_start_and_all_scores_are_weighted_alike():
    def start(Y, *biases):
        return np.abs(spectral_start(Y, 2, *biases, rng=np.random.default_rng(0)))

    rng = np.random.default_rng(1)
    r_u, r_v = rng.uniform(1, 9, 40), rng.uniform(1, 9, 50)
    Z = rng.poisson(np.outer(r_u, r_v) * np.exp(rng.choice([-0.5, 0.5], (40, 1)) * rng.choice([-1, 1], 50)))
    Y = FisherScore(sp.csr_array(Z), r_u, r_v)
    assert np.allclose(start(Y), start(Y, np.full(40, 2.0), np.full(50, 3.0)))
    # weighted, it is left where it is by one step of A = w_u Y B, B = w_v Y^T A
    B, (w_u, w_v) = spectral_start(Y, 2, r_u, r_v, rng=rng), detection_weights(r_u, r_v)
    image = w_v[:, None] * (Y.T @ (w_u[:, None] * (Y @ B)))
    assert np.allclose(B @ np.linalg.lstsq(B, image)[0], image, atol=1e-9 * np.abs(image).max())
    for same in (Y.toarray(), sp.csr_array(Y.toarray()), Y.toarray().astype(np.float32)):
        assert np.allclose(start(Y, r_u, r_v), start(same, r_u, r_v), atol=1e-3)


@pytest.mark.parametrize("biases", [(np.ones(4),), (np.ones(4), np.ones(4)), (np.ones(4), np.zeros(5))])
def test_bias_factors_of_a_start_must_fit(biases, rng):
    with pytest.raises(ValueError, match="r_v"):
        spectral_start(np.eye(4, 5), 1, *biases, rng=rng)
