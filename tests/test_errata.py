"""What the paper prints and what is true: an experiment for each erratum that no other file of the suite decides.

The numbers are those of book/errata.md.
"""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import linalg, stats
from sklearn import linear_model
from synthetic import BETA, constant_laws

from amptutorial.amp import IndefinitePrecisionWarning, biased_low_rank_amp, floor_precision, random_start
from amptutorial.baselines import spectral_start, svd
from amptutorial.bias import estimate_bias
from amptutorial.biases import refit_biases
from amptutorial.denoisers import Denoiser, GaussianPosterior, Lasso, Ridge
from amptutorial.laws import ConstantBias, DiscreteBias, GaussianRows, ShiftedExponential, Zipf, scaled_rows
from amptutorial.metrics import QuadraticLoss, align, normalised_mse, overlap, row_errors
from amptutorial.model import PoissonEmbedding, draw_embedding
from amptutorial.paper.descent import NotConvergedWarning, minimise
from amptutorial.paper.experiments import L1
from amptutorial.paper.setting import observe_score
from amptutorial.score import FisherScore
from amptutorial.state_evolution import gaussian_state_evolution, start_overlap, state_evolution

ROOT = Path(__file__).parents[1]


def embedding(m, n, d, rng, *, variance=1.0, bias_u=None, bias_v=None):
    """Return an embedding with Gaussian rows; biases are zero unless a law is given."""
    rows, zero = GaussianRows(variance), ConstantBias(0.0)
    return draw_embedding(m, n, d, rows_u=rows, rows_v=rows, bias_u=bias_u or zero, bias_v=bias_v or zero, rng=rng)


def test_erratum_5_b_is_updated_by_its_own_function(rng):
    """S_0 = W^T A_0 / sqrt(m) + B_0 Psi, B_1 = H_v(S_0): its second moment is that of H_v, not of the printed H_u."""
    m, n = 1600, 2400
    W, B = rng.standard_normal((m, n)), rng.standard_normal(n)  # the printed W (n x m) could not be applied to B
    A = np.tanh(W @ B / np.sqrt(m))
    S = W.T @ A / np.sqrt(m) - B * np.mean(1 - A**2)
    B1 = np.clip(3 * S, -2, 2)
    law = np.random.default_rng(1).standard_normal(400_000) * np.sqrt(np.mean(A**2))
    error = 5 * np.std(B1**2) / np.sqrt(n)
    assert np.mean(B1**2) == pytest.approx(np.mean(np.clip(3 * law, -2, 2) ** 2), abs=error)
    assert abs(np.mean(B1**2) - np.mean(np.tanh(law) ** 2)) > 5 * error


def test_erratum_7_the_origin_can_be_a_true_fixed_point_and_a_saddle(rng):
    """A ridge between the noise edge and the outlier: F and Gamma converge, no floor is needed, and the loss falls."""
    m, n = 200, 300
    left, right = (np.linalg.qr(rng.standard_normal((size, 1)))[0] for size in (m, n))
    Y = 80 * left @ right.T + rng.standard_normal((m, n))
    u, sigma, v = np.linalg.svd(Y)
    edge, top = 1 + np.sqrt(n / m), sigma[0] / np.sqrt(m)
    ridge, ones = Ridge((edge + top) / 2), (np.ones(m), np.ones(n))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = biased_low_rank_amp(Y, *ones, ridge, B0=np.zeros((n, 1)), n_iter=200)
    last, before = run.iterates[-1], run.iterates[-2]
    assert (run.A == 0).all() and (run.B == 0).all()
    assert last.Gamma_a == pytest.approx(before.Gamma_a) and last.F_b + ridge.strength > 0
    loss = QuadraticLoss(Y, *ones, ridge)
    for step in (0.01, 0.1, 1.0):
        assert loss(step * u[:, :1], step * v[:1].T) < loss(run.A, run.B) < loss(step * u[:, :1], -step * v[:1].T)


def test_erratum_7_a_fixed_point_is_optimal_in_each_factor(rng):
    """What the proof of lem:fixed-points does show: A minimises L(., B), and B minimises L(A, .)."""
    model = embedding(150, 200, 2, rng, bias_v=ConstantBias(2.0))
    Y = model.A @ model.B.T / np.sqrt(150) + rng.standard_normal((150, 200))
    ridge, r = Ridge(3.0), (model.r_u, model.r_v)
    run = biased_low_rank_amp(Y, *r, ridge, B0=model.B, n_iter=300)
    A, B = run.A, run.B
    assert np.allclose(ridge.estimate(Y @ B / np.sqrt(150), r[0], B.T @ B / 150), A, atol=1e-6)
    assert np.allclose(ridge.estimate(Y.T @ A / np.sqrt(150), r[1], A.T @ A / 150), B, atol=1e-6)


def test_erratum_9_a_random_start_makes_f_indefinite():
    """In F^b_0 = A_0^T A_0 / m - Gamma^b_0 the noise part of the first term is the second: what is left has both signs.

    Then eq:Gadef-row has no minimum for the lasso and F^(1/2) is not real; with its eigenvalues raised, F serves again.
    """
    m, n, d, indefinite = 200, 300, 10, 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        model = embedding(m, n, d, rng, variance=0.1, bias_v=ConstantBias(5.0))
        Y, B = model.A @ model.B.T / np.sqrt(m) + rng.standard_normal((m, n)), random_start(n, d, rng)
        A, Gamma = Ridge(1e-3).denoise(Y @ B / np.sqrt(m), model.r_u, B.T @ B / m)
        F = A.T @ A / m - Gamma
        indefinite += np.linalg.eigvalsh(F)[0] < 0
    assert indefinite >= 15
    P_b = Y.T @ A / np.sqrt(m) - B @ Gamma
    with pytest.raises(ValueError, match="F must be positive definite"):
        Lasso(1e-3).estimate(P_b, model.r_v, F)
    assert np.isfinite(Lasso(1e-3).estimate(P_b, model.r_v, floor_precision(F, A.T @ A / m)[0])).all()


def test_erratum_13_averages_over_rows_of_a_are_divided_by_m(rng):
    """(1/m) sum |A_i - A_k,i|^2 is what state evolution predicts; (1/n) sum is beta times that."""
    m, n, errors = 600, 900, []
    bias_v, posterior, laws = ConstantBias(np.log(4.0)), GaussianPosterior(1.0), constant_laws(1, 4 / np.sqrt(BETA))
    S = np.array([[4.0 * n / m]])
    se = gaussian_state_evolution(*laws, posterior, beta=m / n, M0=S, Q0=1.5 * S, n_iter=4)
    predicted = 1 - 2 * se.iterates[-1].M_a[0, 0] + se.iterates[-1].Q_a[0, 0]  # E|A - A_k|^2 for E(A^2) = 1
    for _ in range(8):
        model = embedding(m, n, 1, rng, bias_v=bias_v)
        Y = model.A @ model.B.T / np.sqrt(m) + rng.standard_normal((m, n))
        B0 = model.B + np.sqrt(2.0) * rng.standard_normal((n, 1))
        run = biased_low_rank_amp(Y, model.r_u, model.r_v, posterior, B0=B0, n_iter=4)
        errors.append(row_errors(model.A, run.A).sum())
    within = 4 * np.std(errors, ddof=1) / np.sqrt(8)
    assert np.mean(errors) / m == pytest.approx(predicted, abs=within / m)
    assert abs(np.mean(errors) / n - predicted) > 3 * within / n


def test_erratum_15_two_readings_of_the_row_mean(rng):
    """A row's own mean takes a dimension and leaves a mean in the others; the mean row takes the mean alone."""
    U = np.array([4.0, 1, 1, 1]) + rng.standard_normal((500, 4))
    by_row, mean_row = U - U.mean(axis=1, keepdims=True), U - U.mean(axis=0)
    assert np.linalg.matrix_rank(by_row) == 3 and np.abs(by_row.mean(axis=0)).max() > 1
    assert np.linalg.matrix_rank(mean_row) == 4 and np.allclose(mean_row.mean(axis=0), 0)


def test_erratum_15_two_readings_of_the_smallest_element(rng):
    """In absolute value it is of order 1/N, and the rates overflow; the most negative one only rescales."""
    U, V = rng.standard_normal((200, 10)), rng.standard_normal((300, 10))
    zeros = np.zeros(200), np.zeros(300)
    with pytest.raises(OverflowError, match="scale down U and V"):
        PoissonEmbedding(U / np.abs(U).min(), V / np.abs(V).min(), *zeros).rates()
    U, V = U / U.min(), V / V.min()
    assert max(np.abs(U).max(), np.abs(V).max()) < 2
    assert np.isfinite(PoissonEmbedding(U, V, *zeros).rates()).all()


def test_erratum_16_without_biases_the_experiment_is_not_determined():
    """The same rows under two choices of the biases: nothing can be learned, or almost everything."""
    posterior, errors = GaussianPosterior(1.0), []
    for log_rate in (-1.0, 4.0):
        laws = constant_laws(1, np.exp(log_rate) / np.sqrt(BETA))
        run = gaussian_state_evolution(*laws, posterior, beta=2 / 3, M0=[[0.1]], Q0=[[0.1]], n_iter=300)
        errors.append(run.iterates[-1].nmse)
    assert errors[0] > 0.999 and errors[1] < 0.05


def test_erratum_16_fewer_rows_make_every_correlation_larger(rng):
    """2,000 of 7,000 rows, here 200 of 700: the same rows have sqrt(3.5) times the M_ij, by the 1 / sqrt(m) in it."""
    U, V = rng.standard_normal((700, 3)), rng.standard_normal((30, 3))
    all_rows, some = (np.log(PoissonEmbedding(X, V, np.zeros(len(X)), np.zeros(30)).rates()) for X in (U, U[:200]))
    assert np.allclose(some, np.sqrt(3.5) * all_rows[:200])


def test_erratum_17_counting_fails_where_correlations_are_of_order_one(rng):
    """With M_ij of variance one, counted biases are off by the mean of exp(M_ij), whatever n; refitted ones are not."""
    counted, refitted = [], []
    for n in (100, 900):
        U, V = np.sqrt(3 * np.sqrt(n)) * rng.uniform(-1, 1, (2, n, 1))
        model = PoissonEmbedding(U, V, np.zeros(n), np.full(n, 3.0))
        Z = model.sample(rng)
        means = np.exp(U @ V.T / np.sqrt(n)).mean(axis=1)
        r_u, _ = estimate_bias(Z)
        assert np.abs(r_u * means.mean() / means - 1).max() < 6 / np.sqrt(20 * n)  # Poisson noise: 20 n counts a row
        counted.append(np.sqrt(np.mean((r_u - 1) ** 2)))
        refitted.append(np.sqrt(np.mean((refit_biases(Z, U, V)[0] - 1) ** 2)))
    assert min(counted) > 0.25
    assert refitted[0] < 0.05 and refitted[1] == pytest.approx(refitted[0] / 3, rel=0.3)


def test_erratum_18_pmi_is_the_product_of_centred_embeddings(rng):
    """For rows with a mean the printed error is of order 1/sqrt(m), as large as the signal; centring makes it 1/m."""

    def errors(m):
        U, V = 1 + rng.standard_normal((m, 2)), 1 + rng.standard_normal((m, 2))
        model = PoissonEmbedding(U, V, rng.standard_normal(m) / 2, rng.standard_normal(m) / 2)
        P = model.joint_pmf()
        pmi = np.log(P) - np.log(P.sum(axis=1, keepdims=True)) - np.log(P.sum(axis=0))
        centred = (U - model.r_u @ U / model.r_u.sum()) @ (V - model.r_v @ V / model.r_v.sum()).T
        return [np.sqrt(np.mean((pmi - product / np.sqrt(m)) ** 2)) for product in (U @ V.T, centred)]

    sizes = np.array([100, 300, 900])
    gaps = np.array([np.mean([errors(m) for _ in range(3)], axis=0) for m in sizes])
    slopes = np.polyfit(np.log(sizes), np.log(gaps), 1)[0]
    assert slopes == pytest.approx([-0.5, -1], abs=0.1)
    assert (gaps[:, 0] * np.sqrt(sizes) > 1).all()


def test_erratum_20_the_noise_is_independent_but_not_identically_distributed():
    """Given the parameters W_ij has mean sqrt(rate)(e^M - 1 - M), variance e^M and third moment e^M / sqrt(rate)."""
    for rate in (0.5, 20.0):
        for M in (0.3, 0.01):
            z = np.arange(200)
            pmf = stats.poisson.pmf(z, rate * np.exp(M))
            W = (z - rate) / np.sqrt(rate) - np.sqrt(rate) * M
            mean = pmf @ W
            assert mean == pytest.approx(np.sqrt(rate) * (np.exp(M) - 1 - M), rel=1e-6)
            assert pmf @ (W - mean) ** 2 == pytest.approx(np.exp(M))
            assert pmf @ (W - mean) ** 3 == pytest.approx(np.exp(M) / np.sqrt(rate))


@pytest.mark.slow
def test_erratum_20_poisson_counts_behave_like_the_gaussian_model():
    """Rates of about 3 and skewed noise: the error is still that of state evolution with Gaussian W."""
    start, posterior, gaps = {"beta": BETA, "M0": np.eye(2), "Q0": np.eye(2)}, GaussianPosterior(1.0), []
    predicted = gaussian_state_evolution(*constant_laws(2, 4.0), posterior, **start, n_iter=300).iterates[-1].nmse
    for seed in range(8):
        rng = np.random.default_rng(seed)
        model = embedding(600, 900, 2, rng, bias_v=ConstantBias(np.log(4 * np.sqrt(600 / 900))))
        Y = FisherScore(model.sample(rng), model.r_u, model.r_v)
        B0 = spectral_start(Y, 2, rng=rng)
        run = biased_low_rank_amp(Y, model.r_u, model.r_v, posterior, B0=B0, n_iter=30)
        gaps.append(normalised_mse(model.A, model.B, run.A, run.B) - predicted)
    assert abs(np.mean(gaps)) < 4 * np.std(gaps, ddof=1) / np.sqrt(8)


def test_erratum_21_the_experiments_are_not_bounded(rng):
    """s exponential of *mean* 0.25 gives r = exp(s) moments below order 4; with *rate* 0.25 not even a mean exists."""
    assert np.isfinite(ShiftedExponential(0.25, 5).moment(3.9)) and np.isinf(ShiftedExponential(0.25, 5).moment(4))
    assert np.isinf(ShiftedExponential(4.0, 5).moment(1))
    largest = [np.exp(ShiftedExponential(0.25).isf(np.array(1 / m))) for m in (10**3, 10**6)]
    assert largest[1] == pytest.approx(largest[0] * 10 ** (3 / 4))  # exceeded with chance 1/m: grows like m^(1/4)
    r = np.exp(ShiftedExponential(4.0).draw(10**6, rng=rng))  # the largest is of order m^4, the mean of order m^3
    assert np.quantile(r / r.mean(), 0.99) < 1e-4


def test_erratum_22_the_scale_of_zipfs_law_is_not_free():
    """r_i = m P(X_1 = i) has mean 1: C_0 = m^(1 - alpha) / sum i^-alpha tends to 1 - alpha, for alpha = 1 to 0."""

    def C0(alpha, m):
        return m ** (1 - alpha) / (np.arange(1, m + 1.0) ** -alpha).sum()

    assert C0(0.4, 10**6) == pytest.approx(0.6, rel=1e-3) and Zipf(0.4, 0.6).moment(1) == pytest.approx(1)
    assert C0(1.0, 10**6) == pytest.approx(1 / (np.log(1e6) + np.euler_gamma), rel=1e-5)


def test_erratum_23_the_overlap_depends_on_the_rotation(rng):
    """An exact estimate, turned by a right angle: error of A B^T zero, overlap zero, row error twice the signal."""
    A, B = rng.standard_normal((50, 2)), rng.standard_normal((60, 2))
    R = np.array([[0.0, -1.0], [1.0, 0.0]])
    assert normalised_mse(A, B, A @ R, B @ R) == pytest.approx(0, abs=1e-12)
    assert overlap(A, A @ R) == pytest.approx(0, abs=1e-12)
    assert row_errors(A, A @ R).sum() == pytest.approx(2 * (A**2).sum())
    assert overlap(A, align(A @ R, A)) == pytest.approx((A**2).sum() / 50)
    assert (A[:1].T @ A[:1]).shape == (2, 2)  # the printed product of rows is a matrix


def test_erratum_24_a_first_moment_is_not_enough_for_the_strong_law():
    """P(|X| > t) = t^-1.5 has a mean and no second moment: the chances of |S_n| >= 1 have an infinite sum.

    By Levy's inequality P(|S_n| >= 1) is at least half the chance that one term exceeds n; these chances are of order
    n^-0.5, their sum over n < N of order N^0.5, and rows of a triangular array may be independent (Borel-Cantelli).
    """

    def chances(N):
        n = np.arange(1.0, N)
        return (1 - (1 - n**-1.5) ** n).sum() / 2

    assert chances(4e6) / chances(1e6) == pytest.approx(2, rel=0.01)


def test_erratum_24_the_poisson_pieces_have_all_moments():
    """|Y - mu| for Y ~ Poisson(mu), mu <= 3, is uniformly bounded by X = 3 + Poisson(3): E(X^2) = 39 is finite."""
    t = np.arange(0, 60, 0.25)
    X_tail = stats.poisson.sf(np.ceil(t - 3) - 1, 3.0)
    for mu in (0.1, 1.0, 2.5, 3.0):
        tail = stats.poisson.sf(np.ceil(mu + t) - 1, mu) + np.where(t > 0, stats.poisson.cdf(np.floor(mu - t), mu), 0)
        assert (tail <= X_tail + 1e-15).all()
    z = np.arange(100)
    assert stats.poisson.pmf(z, 3.0) @ (3 + z) ** 2 == pytest.approx(39)


def test_erratum_25_convergence_of_the_rates_has_no_rate():
    """r_j = 1 + n^(-1/4) converges to 1 in PL(2), but (E(B_n) - 1)^2 = n^(-1/2) is not O(1/m)."""
    for n in (16, 256):
        model = PoissonEmbedding(np.zeros((n, 1)), np.zeros((n, 1)), np.zeros(n), np.full(n, np.log(1 + n**-0.25)))
        assert (model.rates().mean() - 1) ** 2 == pytest.approx(n**-0.5)


def test_erratum_26_the_lasso_is_lipschitz_without_a_continuous_derivative():
    """At p = lambda the derivative jumps from 0 to 1/F: "Lipschitz derivatives" (eq:bmgen) exclude eq:l1-denoiserA."""
    lasso, one = Lasso(1.0), np.ones(1)
    below, above = (lasso.mean_jacobian(np.array([[1 + e]]), one, [[2.0]])[0, 0] for e in (-1e-9, 1e-9))
    assert (below, above) == (0, 0.5)
    P = np.linspace(-5, 5, 1001)[:, None]
    slopes = np.diff(lasso.estimate(P, np.ones(1001), [[2.0]]), axis=0) / np.diff(P, axis=0)
    assert 0 <= slopes.min() and slopes.max() < 0.5 + 1e-9


def test_erratum_26_the_ridge_is_not_lipschitz_in_the_rate():
    """In p it is, with the constant 1 / F; its slope in r, p lambda / (r F + lambda)^2, grows with p without bound."""
    p, ridge, step = np.array([1.0, 10.0, 100.0]), Ridge(2.0), 1e-6
    below, above = (ridge.estimate(p[:, None], np.full(3, r), [[3.0]])[:, 0] for r in (1 - step, 1 + step))
    assert (above - below) / (2 * step) == pytest.approx(p * 2 / (3 + 2) ** 2)


def test_erratum_26_an_estimate_does_not_determine_its_derivative():
    """B = sin(S): equal rows of B, derivatives of either sign. So F^a_k is no average over the rows of B_k alone."""

    class Sine(Denoiser):
        def estimate(self, P, r, F):
            return np.sin(P)

    S, rest = np.array([[0.5], [np.pi - 0.5]]), (np.ones(1), np.eye(1))
    first, second = (Sine().denoise(s[None], *rest) for s in S)
    assert first[0] == pytest.approx(second[0]) and first[1] == pytest.approx(-second[1])


def test_erratum_27_counted_biases_tie_the_noise(rng):
    """With true biases the weighted column sums of Y~ have variance 1, as for Gaussian W; with counted ones none."""
    model = PoissonEmbedding(np.zeros((400, 1)), np.zeros((600, 1)), np.zeros(400), np.ones(600))
    Z = model.sample(rng)

    def margins(r_u, r_v):
        return np.sqrt(r_u / r_u.sum()) @ FisherScore(Z, r_u, r_v).toarray()

    assert np.var(margins(model.r_u, model.r_v)) == pytest.approx(1, abs=5 * np.sqrt(2 / 600))
    assert np.abs(margins(*estimate_bias(Z))).max() < 1e-9


def biases_decide(m, mean, rng):
    """Return errors of A B^T with true and with counted biases, the latter's of the centred product, and its own."""
    model = PoissonEmbedding(*(mean + rng.standard_normal((2, m, 1))), np.zeros(m), np.full(m, np.log(6.0)))
    Z, posterior, runs = model.sample(rng), GaussianPosterior(1.0 + mean**2), []
    for r in ((model.r_u, model.r_v), estimate_bias(Z)):
        Y = FisherScore(Z, *r)
        B0 = spectral_start(Y, 1, rng=rng)
        runs.append(biased_low_rank_amp(Y, *r, posterior, B0=B0, n_iter=25))
    truth, centred = (model.A, model.B), (model.A - model.A.mean(axis=0), model.B - model.B.mean(axis=0))
    true, counted = ((run.A, run.B) for run in runs)
    pairs = (truth, true), (truth, counted), (centred, counted), (truth, centred)
    return [normalised_mse(*target, *estimate) for target, estimate in pairs]


@pytest.mark.slow
def test_erratum_27_counted_biases_remove_the_mean_from_the_signal():
    """Rows of mean 1: with counted biases AMP finds the centred product at every size. Rows of mean 0: a small cost."""
    draws = [
        np.transpose([biases_decide(m, mean, np.random.default_rng(seed)) for seed in range(number)])
        for m, mean, number in ((300, 1, 6), (1200, 1, 6), (1200, 0, 12))
    ]
    for true, counted, of_centred, removed in draws[:2]:
        assert true.mean() < 0.15 and of_centred.mean() < 0.4
        assert (counted > removed).all() and removed.mean() == pytest.approx(3 / 4, abs=0.05)
    (small, _), (large, error) = ((gap.mean(), gap.std(ddof=1)) for gap in (d[1] - d[0] for d in draws[:2]))
    assert large > small - 4 * error / np.sqrt(6)
    true, counted, *_ = draws[2]
    cost, error = np.mean(counted - true), np.std(counted - true, ddof=1) / np.sqrt(12)
    assert cost + 4 * error < 0.005 < true.mean() / 50


def test_erratum_28_pairs_of_equal_delta_have_different_errors():
    """Posterior mean, two classes a side: the error of M_ij is 1 - q_u(r_i) q_v(r_j), no function of r_i r_j alone.

    Delta is the same for (0.05, 78) and (1.95, 2); AMP meets both predictions, and the two errors are far apart.
    """
    m, n, a, b, P_v = 900, 450, np.array([0.05, 1.95]), np.array([2.0, 78.0]), 1.0
    for _ in range(200):
        q_u = a * P_v / (1 + a * P_v)
        P_u = np.mean(a * q_u)
        q_v = b * P_u / (1 + b * P_u)
        P_v = np.mean(b * q_v) * n / m
    predicted = 1 - np.outer(q_u, q_v)
    posterior, measured = GaussianPosterior(1.0), []
    for seed in range(16):
        rng = np.random.default_rng(seed)
        r_u, r_v = np.repeat(a, m // 2), np.repeat(b, n // 2)
        A, B = (np.sqrt(r)[:, None] * rng.standard_normal((len(r), 1)) for r in (r_u, r_v))
        Y = A @ B.T / np.sqrt(m) + rng.standard_normal((m, n))
        run = biased_low_rank_amp(Y, r_u, r_v, posterior, B0=B, n_iter=15)
        rows, columns = np.split(np.arange(m), 2), np.split(np.arange(n), 2)
        measured.append([[normalised_mse(A[i], B[j], run.A[i], run.B[j]) for j in columns] for i in rows])
    mean, error = np.mean(measured, axis=0), np.std(measured, axis=0, ddof=1) / np.sqrt(16)
    assert (np.abs(mean - predicted) < 4 * error).all()
    assert a[0] * b[1] == pytest.approx(a[1] * b[0])
    assert mean[0, 1] - mean[1, 0] > 5 * np.hypot(error[0, 1], error[1, 0])


# The page


def test_errata_are_numbered_one_by_one_and_name_tests_that_exist():
    page = (ROOT / "book" / "errata.md").read_text()
    parts = re.split(r"^\(erratum-(\d+)\)=$", page, flags=re.MULTILINE)[1:]
    sections = dict(zip(map(int, parts[::2]), parts[1::2], strict=True))
    assert sorted(sections) == list(range(1, len(sections) + 1))
    for number, text in sections.items():
        assert text.lstrip().startswith(f"### {number}. ") and "**Where" in text, number
        groups = re.findall(r"(\*[^*].*?)\s\(`(test_\w+)`\)", text.split("**Shown by.**")[1], flags=re.DOTALL)
        assert groups, number
        for group, file in groups:
            written = (ROOT / "tests" / f"{file}.py").read_text()
            for name in re.findall(r"\*([^*]+)\*", group):
                assert f"def test_{'_'.join(name.split())}(" in written, name


@pytest.mark.slow
def test_erratum_30_counted_biases_make_the_mean_row_unstable(rng):
    """sqrt(r)^T Y~ = 0 when both biases are counted: of the mean of P only the Onsager term is left. It grows by
    -1 / (rho sqrt(beta)) an iteration, rho the signal in units of the threshold, and ends in a cycle of two; centring
    or damping stops it."""
    m, n, rate = 400, 6400, 100.0
    root_beta = np.sqrt(m / n)
    variance = np.sqrt(2 * root_beta / rate)
    e = embedding(m, n, 1, rng, variance=variance, bias_v=ConstantBias(np.log(rate)))
    rho = np.mean(e.A**2) * np.mean(e.B**2) / root_beta
    Z = e.sample(rng)

    class Centred(GaussianPosterior):
        def denoise(self, P, r, F):
            X, jacobian = super().denoise(P, r, F)
            return X - np.outer(np.sqrt(r), np.sqrt(r) @ X) / r.sum(), jacobian

    def run(r_u, r_v, n_iter, damping=0.0, denoiser=GaussianPosterior):
        Y = FisherScore(Z, r_u, r_v)
        B0, prior = spectral_start(Y, 1, rng=np.random.default_rng(0)), denoiser(variance)
        fit = biased_low_rank_amp(Y, r_u, r_v, prior, B0=B0, n_iter=n_iter, damping=damping)
        means = np.array([np.sqrt(r_u) @ it.A[:, 0] for it in fit.iterates])
        return means, normalised_mse(e.A, e.B, fit.A, fit.B)

    counted, true = estimate_bias(Z), (e.r_u, e.r_v)
    assert np.abs(np.sqrt(counted[0]) @ FisherScore(Z, *counted).toarray()).max() < 1e-8
    means, _ = run(*counted, 12)
    assert np.allclose(means[6:] / means[5:-1], -1 / (rho * root_beta), rtol=0.15)
    error = run(*true, 60)[1]
    assert run(*counted, 60)[1] > 0.97 and error < 0.9
    assert run(*counted, 60, damping=0.5)[1] == pytest.approx(error, abs=0.03)
    assert run(*counted, 60, denoiser=Centred)[1] == pytest.approx(error, abs=0.03)


def test_erratum_31_twenty_rows_are_not_enough():
    """The final error is a small difference of large moments: over seeds, 20 sampled rows scatter by a large share of
    it and 2,000 by about a tenth of that share."""
    rows, bias, ridge = GaussianRows(0.1), ShiftedExponential(0.25, 5.0), Ridge(1e-3)
    laws = scaled_rows(2, rows_u=rows, rows_v=rows, bias_u=bias, bias_v=bias)
    S = 0.1 * (laws[1].atoms()[1] @ laws[1].atoms()[0]) * np.eye(2) / (2 / 3)
    start = {"beta": 2 / 3, "M0": S / 2, "Q0": S, "n_iter": 4}
    exact = gaussian_state_evolution(*laws, ridge, **start).iterates[-1].nmse

    def spread(n_samples):
        generators = (np.random.default_rng(k) for k in range(20))
        runs = [state_evolution(*laws, ridge, **start, n_samples=n_samples, rng=rng) for rng in generators]
        return np.std([run.iterates[-1].nmse / exact for run in runs])

    assert spread(20) > 0.2 and spread(2000) < 0.06


def test_erratum_32_critical_points_have_different_errors(rng):
    """Ridge, r = 1, rank 3: each choice of at most two of three directions is critical, the empty one with error 1."""
    m, n, strength = 60, 90, 0.5
    ones, ridge = (np.ones(m), np.ones(n)), Ridge(strength)
    left, right = (np.linalg.qr(rng.standard_normal((size, 3)))[0] for size in (m, n))
    Y = left * [120.0, 80, 40] @ right.T + rng.standard_normal((m, n))
    u, sigma, v = np.linalg.svd(Y, full_matrices=False)
    loss, errors = QuadraticLoss(Y, *ones, ridge), []
    for kept in ([], [0], [1], [2], [0, 1], [0, 2], [1, 2]):
        root = np.zeros(2)
        root[: len(kept)] = np.sqrt(np.sqrt(m) * (sigma[kept] - strength * np.sqrt(m)))
        columns = kept + [3, 4][len(kept) :]  # a direction of strength zero fills an empty place
        A, B = u[:, columns] * root, v[columns].T * root
        assert max(np.abs(side).max() for side in loss.gradient(A, B)) < 1e-10
        errors.append(normalised_mse(left * [120.0, 80, 40], np.sqrt(m) * right, A, B))
    assert errors[0] == pytest.approx(1) and min(errors) < 0.1 and np.diff(np.sort(errors)).min() > 0.01


@pytest.mark.slow
def test_erratum_32_a_weak_ridge_leaves_the_balance_to_the_start(rng):
    """AMP and gradient descent agree in the product long before either is at a critical point, where U^T U = V^T V."""
    m, n, d = 100, 150, 2
    e = embedding(m, n, d, rng, variance=0.1, bias_u=ConstantBias(5.0), bias_v=ConstantBias(5.0))
    Z = e.sample(rng)
    r_u, r_v = estimate_bias(Z)
    Y = FisherScore(Z, r_u, r_v)
    A0, B0 = random_start(m, d, rng), random_start(n, d, rng)

    def imbalance(A, B):
        UU, VV = ((X / r[:, None]).T @ X for X, r in ((A, r_u), (B, r_v)))
        return np.linalg.norm(UU - VV) / np.linalg.norm(UU + VV)

    def amp(strength, n_iter):
        ridge = Ridge(strength)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", IndefinitePrecisionWarning)
            return biased_low_rank_amp(Y, r_u, r_v, ridge, B0=B0, n_iter=n_iter)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)
        loss = QuadraticLoss(Y, r_u, r_v, Ridge(1e-3))
        descent = minimise(loss, A0=A0, B0=B0, method="gradient_descent", n_iter=500, tol=1e-16)
    left, right = svd(Y, d, rng=rng)
    for fit in (amp(1e-3, 500), descent):
        assert normalised_mse(left, right, fit.A, fit.B) < 1e-8
        assert imbalance(fit.A, fit.B) > 0.9  # 1 is the largest possible
    strong = amp(10.0, 3000)
    assert imbalance(strong.A, strong.B) < 1e-6


def test_erratum_34_the_simulated_biases_are_not_normalised(rng):
    """Mean 4/3 e^5 of the r^u, not 1. Dividing them by it and multiplying the r^v changes neither score nor fit."""
    scale = ShiftedExponential(0.25, 5.0).moment(1)
    assert scale == pytest.approx(np.exp(5) * 4 / 3)
    model = embedding(60, 90, 2, rng, bias_v=ConstantBias(5.0))
    r_u, r_v = rng.uniform(0.5, 2, 60), model.r_v
    Y, B0 = model.A @ model.B.T / np.sqrt(60) + rng.standard_normal((60, 90)), model.B
    one, other = (
        biased_low_rank_amp(Y, r_u * c, r_v / c, Ridge(3.0), B0=B0 / np.sqrt(c), n_iter=8) for c in (1, scale)
    )
    assert np.allclose(one.A @ one.B.T, other.A @ other.B.T) and np.allclose(one.A * np.sqrt(scale), other.A)


def test_erratum_35_the_error_at_one_frequency_is_not_a_limit_of_averages():
    """Rates 1/m, 2/m, ..., 1 and no error but in the row of rate 1/2: averages over all rows and over bins vanish."""
    for m in (100, 10_000):
        r = np.arange(1, m + 1) / m
        error = (r == 0.5).astype(float)
        assert error.mean() == pytest.approx(1 / m) and error[np.abs(r - 0.5) < 0.05].mean() < 11 / m
        assert error[r == 0.5].mean() == 1


def test_erratum_36_the_pair_of_iterates_matters_before_the_run_settles(rng):
    """From a start with half the variance known, A_0 goes with B_1 rather than B_0; at the end the two agree."""
    model = embedding(200, 300, 2, rng, bias_v=ConstantBias(np.log(20.0)))
    Y = model.A @ model.B.T / np.sqrt(200) + rng.standard_normal((200, 300))
    B0 = model.B + np.sqrt(20.0) * rng.standard_normal((300, 2))
    run = biased_low_rank_amp(Y, model.r_u, model.r_v, GaussianPosterior(1.0), B0=B0, n_iter=30)
    before = [B0, *(it.B for it in run.iterates)]
    printed, returned = (
        [normalised_mse(model.A, model.B, it.A, B) for it, B in zip(run.iterates, side, strict=False)]
        for side in (before, before[1:])
    )
    assert printed[0] > 2 * returned[0] and printed[-1] == pytest.approx(returned[-1], rel=1e-3)


def test_erratum_37_a_posterior_mean_is_not_to_be_given_the_curvature(rng):
    """F = Q - Gamma in a posterior mean: another length, the same direction, and an error of .552 in place of .474."""

    class AsPrinted(GaussianPosterior):
        precision = "argmin"

    m, n, level, laws = 1000, 1500, ConstantBias(np.log(3.0)), constant_laws(1, 3 / np.sqrt(BETA))
    right, printed = (
        gaussian_state_evolution(*laws, each, beta=m / n, M0=[[0.5]], Q0=[[0.5]], n_iter=60).iterates[-1]
        for each in (GaussianPosterior(1.0), AsPrinted(1.0))
    )
    assert (right.nmse, printed.nmse) == (pytest.approx(0.474, abs=5e-4), pytest.approx(0.552, abs=5e-4))
    assert np.allclose(right.M_a**2 / right.Q_a, printed.M_a**2 / printed.Q_a)
    gaps = []
    for _ in range(6):
        e = embedding(m, n, 1, rng, bias_v=level)
        Y = e.A @ e.B.T / np.sqrt(m) + rng.standard_normal((m, n))
        B0 = spectral_start(Y, 1, rng=rng)
        denoisers, rest = (AsPrinted(1.0), GaussianPosterior(1.0)), {"B0": B0, "n_iter": 20}
        runs = (biased_low_rank_amp(Y, e.r_u, e.r_v, each, **rest) for each in denoisers)
        gaps.append(np.subtract(*(normalised_mse(e.A, e.B, run.A, run.B) for run in runs)))
    error = np.std(gaps, ddof=1) / np.sqrt(len(gaps))
    assert abs(np.mean(gaps) - (printed.nmse - right.nmse)) < 4 * error and np.mean(gaps) > 8 * error


def test_erratum_39_the_divergence_of_the_learned_distribution_is_predicted(rng):
    """With true biases and with refitted ones, whose number enters; as a share of the information it is the error."""
    m, n, levels = 300, 450, DiscreteBias(np.log([4.0, 16.0]), [0.5, 0.5])
    sides = {"rows_u": GaussianRows(1.0), "rows_v": GaussianRows(1.0), "bias_u": ConstantBias(0.0), "bias_v": levels}
    laws, posterior, gaps = scaled_rows(2, **sides), GaussianPosterior(1.0), []
    for _ in range(10):
        truth = draw_embedding(m, n, 2, **sides, rng=rng)
        Z, P, N = truth.sample(rng), truth.joint_pmf(), truth.rates().sum()
        Y = FisherScore(Z, truth.r_u, truth.r_v)
        B0 = spectral_start(Y, 2, rng=rng)
        run = biased_low_rank_amp(Y, truth.r_u, truth.r_v, posterior, B0=B0, n_iter=12)
        start = start_overlap(truth.B, B0, m)
        it = gaussian_state_evolution(*laws, posterior, beta=m / n, **start, n_iter=12).iterates[-1]
        U, V = run.A / np.sqrt(truth.r_u)[:, None], run.B / np.sqrt(truth.r_v)[:, None]
        measured = []
        for r_u, r_v in ((truth.r_u, truth.r_v), refit_biases(Z, U, V)):
            P_hat = np.outer(r_u, r_v) * np.exp(U @ V.T / np.sqrt(m))
            measured.append(N / m * np.sum(P * np.log(P / P_hat * P_hat.sum())))
        information = N / m * np.sum(P * np.log(P / np.outer(P.sum(axis=1), P.sum(axis=0))))
        predicted = (it.divergence, it.divergence + (m + n - 2) / (2 * m), it.nmse)
        gaps.append(np.subtract([*measured, measured[0] / information], predicted) / predicted)
    error = np.std(gaps, axis=0, ddof=1) / np.sqrt(len(gaps))
    assert (np.abs(np.mean(gaps, axis=0)) < 4 * error).all() and error.max() < 0.02


def test_erratum_40_the_strength_of_the_lasso_is_divided_by_the_number_of_equations(rng):
    """The book's lasso against scikit-learn's by the square root of F: alpha is lambda / (d sqrt(r))."""
    d, r, strength = 10, 0.3, 0.8
    F, p = np.cov(rng.standard_normal((d, 40))), rng.standard_normal(d)
    root = np.real(linalg.sqrtm(F))
    fit = linear_model.Lasso(alpha=strength / (d * np.sqrt(r)), fit_intercept=False, tol=1e-12, max_iter=10**5)
    fit.fit(root, np.linalg.solve(root, p))
    for factor, equal in ((1, True), (1 / d, False)):
        ours = Lasso(strength * factor).estimate(p[None], np.array([r]), F)[0]
        assert np.allclose(ours, fit.coef_, atol=1e-6) == equal


@pytest.mark.slow
def test_erratum_40_ten_times_the_strength_of_the_lasso_changes_nothing(rng):
    """The sparse experiment at full size: with either strength hardly a zero is found, and the errors agree."""
    truth, B0 = L1.draw(rng=rng), random_start(L1.n, L1.d, rng)
    score, errors = observe_score(truth, "counted", rng=rng), []
    for strength in (1e-3, 1e-2):
        run = biased_low_rank_amp(*score, Lasso(strength), B0=B0, n_iter=6)
        assert sum((X == 0).sum() for X in (run.A, run.B)) < 50
        assert np.sqrt(np.vdot(run.B, run.B) / (L1.m * L1.d)) > 20_000 * 1e-3  # the noise of an entry of A, at r = 1
        errors.append(normalised_mse(truth.A, truth.B, run.A, run.B))
    assert abs(errors[1] / errors[0] - 1) < 1e-4
