"""Denoisers against optimality conditions, finite differences, direct inverses and Nishimori's identity."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Lasso as SklearnLasso
from synthetic import Linear

from amptutorial.checks import check_denoiser, draw_problem
from amptutorial.denoisers import Denoiser, GaussianPosterior, Lasso, Ridge
from amptutorial.laws import GaussianRows

COVARIANCE = np.array([[1.0, 0.3, 0.0], [0.3, 0.5, 0.1], [0.0, 0.1, 2.0]])
DENOISERS = [Ridge(0.7), Lasso(0.9), GaussianPosterior(0.5), GaussianPosterior(COVARIANCE)]
seeds = st.integers(0, 10_000)
dimensions = st.integers(1, 6)


def gaussians(d):
    """Return Ridge and GaussianPosterior with the matrix C^-1 that each uses in d dimensions."""
    rng = np.random.default_rng(d)
    root = rng.standard_normal((d, d))
    C = root @ root.T + 0.1 * np.eye(d)
    posteriors = [(GaussianPosterior(0.4), np.eye(d) / 0.4), (GaussianPosterior(C), np.linalg.inv(C))]
    return [(Ridge(0.7), 0.7 * np.eye(d)), *posteriors]


@pytest.mark.slow
@pytest.mark.parametrize("denoiser", DENOISERS, ids=repr)
def test_all_checks_pass(denoiser):
    assert check_denoiser(denoiser).passed, str(check_denoiser(denoiser))


@given(seeds, dimensions)
def test_gaussian_denoisers_equal_the_direct_inverse(seed, d):
    """p (F + C^-1 / r)^-1 and the mean of the inverses, row by row with numpy.linalg.inv."""
    problem = draw_problem(7, d, rng=np.random.default_rng(seed))
    for denoiser, precision in gaussians(d):
        inverses = np.array([np.linalg.inv(problem.F + precision / r) for r in problem.r])
        X = denoiser.estimate(problem.P, problem.r, problem.F)
        assert np.allclose(X, np.einsum("ik,ikl->il", problem.P, inverses), rtol=1e-8, atol=1e-10)
        assert np.allclose(denoiser.mean_jacobian(problem.P, problem.r, problem.F), inverses.mean(axis=0))


def test_lasso_equals_scikit_learn(rng):
    """The paper's route: W = F^(1/2), q = W^-1 p, scikit-learn's Lasso with alpha = t / d."""
    problem = draw_problem(12, 4, rng=rng)
    w, V = np.linalg.eigh(problem.F)
    W = (V * np.sqrt(w)) @ V.T
    X = Lasso(1.5).estimate(problem.P, problem.r, problem.F)
    for x, p, r in zip(X, problem.P, problem.r, strict=True):
        reference = SklearnLasso(alpha=1.5 / np.sqrt(r) / 4, fit_intercept=False, tol=1e-14, max_iter=100_000)
        assert np.allclose(reference.fit(W, np.linalg.solve(W, p)).coef_, x, atol=1e-6)
    assert 0.1 < (X == 0).mean() < 0.9


@pytest.mark.parametrize("denoiser", DENOISERS, ids=repr)
def test_analytic_jacobian_equals_the_numerical_one_of_the_base_class(denoiser, rng):
    problem = draw_problem(200, 3, rng=rng)
    arguments = problem.P, problem.r, problem.F
    # one of 600 entries of the Lasso may have its kink within the difference step: it adds at most 1 / 200 of F^-1
    kink = np.abs(np.linalg.inv(problem.F)).max() / 200 if isinstance(denoiser, Lasso) else 0
    numerical = Denoiser.mean_jacobian(denoiser, *arguments)
    assert np.allclose(denoiser.mean_jacobian(*arguments), numerical, atol=1e-7 + kink)


def test_numerical_jacobian_has_the_documented_orientation(rng):
    """[k, l] = d estimate_l / d P_k: for estimate = P G it is G, not its transpose."""
    problem = draw_problem(5, 2, rng=rng)
    assert np.allclose(Linear().mean_jacobian(problem.P, problem.r, problem.F), Linear.MIX)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_the_step_of_the_numerical_jacobian_follows_the_scale_of_its_rows(scale, rng):
    """Against 1 - tanh^2: the step h relative to the scale errs by h^2 / 3 and by eps / h, both below 1e-10."""

    class Saturating(Denoiser):
        def estimate(self, P, r, F):
            return scale * np.tanh(P / scale)

    P = scale * rng.uniform(-1, 1, (7, 2))
    expected = np.diag((1 - np.tanh(P / scale) ** 2).mean(axis=0))
    assert np.allclose(Saturating().mean_jacobian(P, np.ones(7), np.eye(2)), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("covariance", [1e-20, 1e20])
def test_round_off_below_zero_is_told_from_a_negative_eigenvalue_at_any_scale(scale, covariance, rng):
    """F of rank 3 in 10 dimensions: r is so large that round-off, if it were taken as it is, would be indefinite."""
    X, P = rng.standard_normal((3, 10)), rng.standard_normal((5, 10))
    F, posterior = scale * X.T @ X, GaussianPosterior(covariance)
    r = np.full(5, 1e18 / (scale * covariance))
    assert np.isfinite(posterior.estimate(P, r, F)).all()
    with pytest.raises(ValueError, match="not positive definite"):
        posterior.estimate(P, r, F - 1e-6 * scale * np.eye(10))
    # with r that the inverse can bear, of condition number 1e8, it is as if round-off were zero
    expected = P @ np.linalg.inv(F + 1e-6 * scale * np.eye(10))
    assert np.allclose(posterior.estimate(P, 1e-12 * r, F) / expected, 1, rtol=0, atol=1e-4)


def test_a_negative_precision_is_taken_as_long_as_the_penalty_outweighs_it():
    """lambda / r is 1/4 in the row of the largest r: F + 1/4 must be positive in it, and is 1/16 for F = -3/16."""
    P, r = np.ones((2, 1)), np.array([1.0, 16.0])
    assert Ridge(4.0).estimate(P, r, np.array([[-3 / 16]]))[1, 0] == pytest.approx(16, rel=1e-14)
    for F in (-4 / 16, -5 / 16):
        with pytest.raises(ValueError, match="not positive definite for row 1: the minimum does not exist"):
            Ridge(4.0).estimate(P, r, np.array([[F]]))


def test_a_denoiser_of_ones_own_has_no_penalty_and_does_not_learn(rng):
    class Identity(Denoiser):
        def estimate(self, P, r, F):
            return P

    one, (P, r) = Identity(), (rng.standard_normal((4, 2)), np.ones(4))
    assert one.penalty(P, r) == one.convexity(r) == 0
    assert one.refit(P, r, np.eye(2)) is one and one.frozen() is one


def test_nishimori_identity(rng):
    """E(x_hat x^T) = E(x_hat x_hat^T) for the posterior mean on data from its own prior; false for another prior."""
    N, F, r = 200_000, np.array([[2.0, 0.4], [0.4, 0.7]]), np.exp(rng.uniform(-1, 1, 200_000))
    C = COVARIANCE[:2, :2]
    X = np.sqrt(r)[:, None] * rng.multivariate_normal(np.zeros(2), C, N)
    P = X @ F + rng.multivariate_normal(np.zeros(2), F, N)
    for covariance, holds in ((C, True), (3 * C, False)):
        X_hat = GaussianPosterior(covariance).estimate(P, r, F)
        gap = np.abs(X_hat.T @ X - X_hat.T @ X_hat).max() / N
        spread = 6 * (X_hat**2).max(axis=1).std() / np.sqrt(N)  # six standard errors of such a mean
        assert (gap < spread) == holds


def test_a_step_of_em_averages_the_second_moments_of_the_posteriors(rng):
    """Row by row: u given p has the precision C^-1 + r F, and the mean that times sqrt(r) p."""
    problem = draw_problem(7, 3, rng=rng)
    P, r, F = problem.P, problem.r, problem.F
    covariances = [np.linalg.inv(np.linalg.inv(COVARIANCE) + rate * F) for rate in r]
    means = [np.sqrt(rate) * S @ p for rate, S, p in zip(r, covariances, P, strict=True)]
    expected = sum(np.outer(u, u) + S for u, S in zip(means, covariances, strict=True)) / 7
    found = GaussianPosterior(COVARIANCE, learn=True).refit(P, r, F)
    assert np.ptp(r) > 0.5 and np.allclose(found.covariance, expected, rtol=1e-9)
    for fixed in (GaussianPosterior(1.0), found.frozen()):
        assert fixed.refit(P, r, F) is fixed
    assert np.array_equal(found.frozen().covariance, found.covariance)


def test_penalties_are_the_regularisers():
    """eq:regl2 and eq:regsparse at u = x / sqrt(r), by hand."""
    U, r = np.array([[1.0, -2.0], [0.5, 0.0]]), np.array([4.0, 9.0])
    X = np.sqrt(r)[:, None] * U
    assert Ridge(3.0).penalty(X, r) == pytest.approx(1.5 * (U**2).sum())
    assert Lasso(3.0).penalty(X, r) == pytest.approx(3 * np.abs(U).sum())
    C = COVARIANCE[:2, :2]
    assert GaussianPosterior(C).penalty(X, r) == pytest.approx(np.einsum("ik,kl,il->", U, np.linalg.inv(C), U) / 2)


@pytest.mark.parametrize("denoiser", DENOISERS, ids=repr)
def test_float32_stays_float32(denoiser, rng):
    problem = draw_problem(4, 3, rng=rng)
    assert denoiser.estimate(problem.P.astype(np.float32), problem.r, problem.F).dtype == np.float32


def test_bad_parameters_are_named():
    for kind, parameter, message in (
        (Ridge, -1.0, "strength must be positive and finite, got -1"),
        (Lasso, np.nan, "strength must be positive and finite"),
        (GaussianPosterior, 0.0, "covariance must be positive"),
        (GaussianPosterior, np.diag([1.0, -1.0]), "positive definite, its smallest eigenvalue is -1"),
        (GaussianPosterior, [[1.0, 0.5], [0.0, 1.0]], "covariance must be symmetric"),
    ):
        with pytest.raises(ValueError, match=message):
            kind(parameter)


@pytest.mark.parametrize("kind", [GaussianPosterior, GaussianRows])
def test_an_array_without_axes_is_a_number(kind, rng):
    """As `numpy.cov` returns the variance of one variable."""
    variance = np.cov(rng.standard_normal(50))
    assert variance.shape == () and kind(variance).covariance == float(variance)
    with pytest.raises(ValueError, match="covariance must be .* finite, got -1"):
        kind(np.array(-1.0))


def test_no_rows_have_the_jacobian_zero():
    for denoiser in (Ridge(0.7), Lasso(0.9), GaussianPosterior(0.5), Linear()):
        assert (denoiser.mean_jacobian(np.ones((0, 2)), np.ones(0), np.eye(2)) == 0).all()


def test_the_lasso_needs_a_definite_precision():
    with pytest.raises(ValueError, match="F must be positive definite, its smallest eigenvalue is 0"):
        Lasso(1.0).estimate(np.ones((1, 2)), np.ones(1), np.diag([1.0, 0.0]))


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_em_lifts_a_degenerate_covariance_by_its_own_scale_only(scale, rng):
    X = scale * rng.standard_normal((50, 1)) @ np.ones((1, 3))
    F, denoiser = 1e8 / scale**2 * np.eye(3), GaussianPosterior(scale**2, learn=True)
    for _ in range(20):
        denoiser = denoiser.refit(X @ F, np.ones(50), F)
    values = np.linalg.eigvalsh(denoiser.covariance)
    assert values[-1] == pytest.approx((X**2).sum() / 50, rel=1e-6) and 0 < values[0] < 1e-6 * values[-1]
    assert denoiser.refit(np.zeros((0, 3)), np.ones(0), F) is denoiser
