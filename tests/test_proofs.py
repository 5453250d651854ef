"""The paper's definitions, lemmas and steps of proof (its Section 5): exactly, or in their rates of convergence.

Slopes are fitted to logarithms over four sizes. What is compared is deterministic unless a comment derives the spread.
"""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from scipy.integrate import quad

from amptutorial.amp import IndefinitePrecisionWarning, biased_low_rank_amp
from amptutorial.bias import estimate_bias
from amptutorial.biases import refit_biases
from amptutorial.denoisers import GaussianPosterior, Lasso, Ridge
from amptutorial.laws import ConstantBias, DiscreteBias, GaussianRows, ShiftedExponential, Zipf, scaled_rows
from amptutorial.model import PoissonEmbedding, draw_embedding
from amptutorial.paper.descent import PoissonLoss
from amptutorial.state_evolution import state_evolution

SIZES = np.array([50, 100, 200, 400])
finite = st.floats(-100, 100)


def slope(values, sizes=SIZES):
    return np.polyfit(np.log(sizes), np.log(values), 1)[0]


# Definitions


@given(arrays(float, (2, 4), elements=finite))
def test_pseudo_lipschitz_functions_of_order_two(pair):
    """def:pseudolipschitz with p = 2: |x|^2 and a.b have C = 1; what is used of rows x = (a, b) is of this kind."""
    x, y = pair
    bound = np.linalg.norm(x - y) * (1 + np.linalg.norm(x) + np.linalg.norm(y)) * (1 + 1e-9) + 1e-9
    for phi in (lambda x: x @ x, lambda x: x[:2] @ x[2:], lambda x: abs(x[:2] @ x[2:]), lambda x: np.tanh(x[0]) * x[1]):
        assert abs(phi(x) - phi(y)) <= bound


def test_a_fourth_power_is_not_pseudo_lipschitz_of_order_two():
    """|x^4 - 0| / (|x| (1 + |x|)) grows like x^2: no constant C serves."""
    x = np.array([1e1, 1e2, 1e3])
    assert np.log10(x**4 / (x * (1 + x)))[[0, 2]] @ [-1, 1] == pytest.approx(4, abs=0.05)


PHIS = {"square": np.square, "sine": lambda r: r * np.sin(r), "absolute": lambda r: np.abs(r - 1)}


@pytest.mark.parametrize("name", PHIS)
@pytest.mark.parametrize("law", [Zipf(0.3, 0.7), ShiftedExponential(0.25, 0), DiscreteBias([0.0, 1.0])], ids=repr)
def test_quantiles_converge_empirically_with_second_moments(law, name):
    """def:pl(p) for p = 2 (eq:suvlim, eq:Ruzipf): for r_i = quantile(i / m) the mean of phi(r_i) converges."""
    phi = PHIS[name]
    exact = quad(lambda q: phi(np.exp(law.isf(np.array(q)))), 0, 1, limit=500, points=[0.5])[0]
    gaps = [abs(phi(np.exp(law.isf(np.arange(1, m + 1) / m))).mean() - exact) for m in (10**3, 10**5)]
    # a monotone integrand r^2 <= U^-0.6 leaves at most the first cell: of order m^-0.4
    assert gaps[1] < 0.2 * gaps[0] + 1e-6 and gaps[1] < 0.02 * abs(exact)


# Poisson variables, sums and laws of large numbers


@given(st.floats(0.01, 50))
def test_central_moments_of_a_poisson_variable(rate):
    """lem:poisson by summation over the law: rate and rate + 3 rate^2."""
    z = np.arange(300)
    pmf = stats.poisson.pmf(z, rate)
    assert pmf @ (z - rate) ** 2 == pytest.approx(rate)
    assert pmf @ (z - rate) ** 4 == pytest.approx(rate + 3 * rate**2)


@given(arrays(float, st.tuples(st.integers(1, 6), st.integers(1, 5)), elements=finite))
def test_sum_of_squared_sums(x):
    """lem:sumsq; with equal terms it is an equality."""
    K = x.shape[1]
    assert (x.sum(axis=1) ** 2).sum() <= K**2 * (x**2).sum(axis=0).max() * (1 + 1e-9)
    equal = np.repeat(x[:, :1], K, axis=1)
    assert (equal.sum(axis=1) ** 2).sum() == pytest.approx(K**2 * (x[:, 0] ** 2).sum())


@pytest.mark.parametrize("p", [1.0, 1.5])
def test_strong_law_for_triangular_arrays(p, rng):
    """lem:slln: rows of different laws, bounded by 2. Over the last half of 2,000 rows |S_n| stays small, and its mean
    falls like n^(1/2 - 1/p).
    """
    n = np.arange(1, 2001)
    sums = np.array([(rng.choice([-1, 1], k) * (1 + np.sin(np.arange(k) + k))).sum() for k in n])
    S = np.abs(sums) / n ** (1 / p)
    # independent rows: the means of 1,000 and of 100 absolute normal variables have relative errors of 0.76 / sqrt(N)
    late, early = S[1000:].mean(), S[100:200].mean()
    expected = (1500 / 150) ** (0.5 - 1 / p)
    assert late / early == pytest.approx(expected, rel=4 * 0.76 / np.sqrt(100) + 0.05)
    assert S[1000:].max() < 5 * np.sqrt(1.5) * 1000 ** (0.5 - 1 / p)


def test_poisson_variables_of_growing_mean(rng):
    """lem:poissonlim: lambda_n = 2n + sqrt(n). |P_n / n - 2| over 500 late rows is below five standard deviations."""
    n = np.arange(10_000, 10_500)
    means = 2 * n + np.sqrt(n)
    gaps = rng.poisson(means) / n - 2
    assert np.abs(gaps).max() < 5 * np.sqrt(2.01 / 1e4) + 1 / 100
    pieces = rng.poisson(means[0] / n[0], (2000, 50)).sum(axis=1)  # the sum of pieces the proof starts from
    assert pieces.var() == pytest.approx(50 * means[0] / n[0], rel=5 * np.sqrt(2 / 2000))


# Consistency of the biases


def embedding(n, rng, m=None):
    """Return an embedding with rows of mean 1/2 whose biases are quantiles: their averages converge like 1/n."""
    m = m or n
    U, V = rng.uniform(0, 1, (m, 2)), rng.uniform(0, 1, (n, 2))
    q_u, q_v = (np.arange(size) + 0.5 for size in (m, n))
    return PoissonEmbedding(U, V, np.log(0.5 + q_u / m), np.log(1 + 2 * q_v / n))


MEAN_RATE = 2.0  # E(R^v) of these quantiles; E(R^u) = 1


def test_expected_counts_up_to_one_over_root_m(rng):
    """eq:expzij, eq:Bnlim, eq:Anlim, exactly from the rates: the three errors fall like 1/sqrt(m)."""
    models = [embedding(n, rng) for n in SIZES]
    cells = [np.abs(M.rates() - np.outer(M.r_u, M.r_v)) for M in models]
    totals = [abs(M.rates().mean() - MEAN_RATE) for M in models]
    rows = [np.abs(M.rates().mean(axis=1) / M.r_u - MEAN_RATE).mean() for M in models]
    for errors in ([cell.mean() for cell in cells], totals, rows):
        # the mean rows have relative errors of 0.6 / sqrt(n): at n = 50 that moves the slope by 0.05
        assert slope(errors) == pytest.approx(-0.5, abs=0.15)
    for n, cell in zip(SIZES, cells, strict=True):  # r_u < 1.5, r_v < 3, u.v < 2, and |e^M - 1| <= |M| e^|M|
        assert cell.max() <= 1.5 * 3 * 2 / np.sqrt(n) * np.exp(2 / np.sqrt(n))


def terms(model, Z):
    """Return A_ni, B_n and the four epsilon_ni^(k) of the proof, shape (4, m)."""
    A, B = Z.sum(axis=1) / model.n, Z.mean()
    mean_A, mean_B = model.rates().mean(axis=1), model.rates().mean()
    r = model.r_u
    epsilon = [r * (B - mean_B), r * (mean_B - MEAN_RATE), mean_A - A, r * MEAN_RATE - mean_A]
    return A, B, np.array(epsilon)


def test_the_estimated_rate_is_a_ratio_of_poisson_sums(rng):
    """eq:rhatratio to eq:Sndef are identities: r_hat = A_n / B_n, squared error S_n / B_n^2, epsilon a sum of four."""
    model = embedding(30, rng, m=20)
    Z = model.sample(rng)
    A, B, epsilon = terms(model, Z)
    r_hat = estimate_bias(Z)[0]
    assert np.allclose(A / B, r_hat)
    assert np.allclose(epsilon.sum(axis=0), B * model.r_u - A)
    S = (epsilon.sum(axis=0) ** 2).mean()
    assert S / B**2 == pytest.approx(np.mean((model.r_u - r_hat) ** 2))
    assert S <= 16 * (epsilon**2).mean(axis=1).max()


def test_the_sums_are_poisson(rng):
    """eq:ABprimedef: row sums and total have variance equal to mean, within five standard errors over 4,000 draws."""
    model = embedding(4, rng, m=3)
    Z = rng.poisson(model.rates(), (4000, 3, 4))
    for sums, mean in ((Z.sum(axis=(1, 2)), model.rates().sum()), (Z[:, 1].sum(axis=1), model.rates()[1].sum())):
        assert sums.mean() == pytest.approx(mean, abs=5 * np.sqrt(mean / 4000))
        assert sums.var() == pytest.approx(mean, rel=5 * np.sqrt((2 + 1 / mean) / 4000))


def test_second_moment_of_the_squared_deviation(rng):
    """eq:Ynsq: E(Y_n^2) (m n)^2 tends to 3 E(R^v)^2, by lem:poisson with the mean of the total."""
    for n in SIZES:
        mean, cells = embedding(n, rng).rates().sum(), float(n * n)
        scaled = (mean + 3 * mean**2) / cells**4 * cells**2
        assert scaled == pytest.approx(3 * MEAN_RATE**2, rel=6 / np.sqrt(n))


def test_the_four_error_terms_vanish(rng):
    """eq:Bnlim1, eq:BSlim, eq:rrlim1, eq:Snklim: S^(1) like 1/(m n), the three others and S_n / B_n^2 like 1/n."""
    runs = []
    for n in SIZES:
        model, draws = embedding(n, rng), []
        for _ in range(60):
            _, B, epsilon = terms(model, model.sample(rng))
            parts = (epsilon**2).mean(axis=1)
            draws.append([*parts, (epsilon.sum(axis=0) ** 2).mean() / B**2, abs(B - MEAN_RATE)])
        runs.append(np.mean(draws, axis=0))
    *parts, ratio, total = np.array(runs).T
    # S^(1) is a squared normal variable: a mean of 60 errs by 18 %, through four sizes over a factor 8 by 0.12 in slope
    assert slope(parts[0]) == pytest.approx(-2, abs=0.4)
    for values in (*parts[1:], ratio):
        assert slope(values) == pytest.approx(-1, abs=0.25)
    assert slope(total) == pytest.approx(-0.5, abs=0.15)


def test_consistency_for_every_test_function(rng):
    """eq:rulim, eq:rvlim, eq:philimrr: mean phi(r, r_hat) - mean phi(r, r) is bounded through the squared error."""
    model = embedding(200, rng)
    estimates = estimate_bias(model.sample(rng))
    for r, r_hat in zip((model.r_u, model.r_v), estimates, strict=True):
        error = np.sqrt(np.mean((r - r_hat) ** 2))
        growth = np.sqrt(np.mean((1 + np.hypot(r, r) + np.hypot(r, r_hat)) ** 2))
        for phi in (lambda a, b: a * b, lambda a, b: b**2, lambda a, b: np.abs(a - b) * b):
            assert abs(np.mean(phi(r, r_hat)) - np.mean(phi(r, r))) <= error * growth


def test_column_rates_converge(rng):
    """eq:rvlim with the corrected eq:rest: the mean squared error of r_v falls like 1/m; the printed one would not."""
    errors, printed = [], []
    for n in SIZES:
        model = embedding(n, rng)
        r_v = [estimate_bias(model.sample(rng))[1] for _ in range(20)]
        errors.append(np.mean((np.array(r_v) - model.r_v) ** 2))
        printed.append(np.mean((r_v[0] / r_v[0].mean() - model.r_v) ** 2))
    assert slope(errors) == pytest.approx(-1, abs=0.25)
    assert min(printed) > 0.5


def test_refitted_biases_maximise_the_likelihood(rng):
    """eq:thetamin over the biases alone: at the refitted ones no change raises the Poisson likelihood."""
    model = embedding(12, rng, m=9)
    Z = model.sample(rng)
    r_u, r_v = refit_biases(Z, model.U, model.V, tol=1e-12)
    best = PoissonLoss(Z, r_u, r_v)(model.U, model.V)
    for _ in range(20):
        step = 0.1 * rng.standard_normal(21)
        assert PoissonLoss(Z, r_u * np.exp(step[:9]), r_v * np.exp(step[9:]))(model.U, model.V) > best


# From Algorithm 1 to the general recursion


@pytest.mark.parametrize("denoiser", [Ridge(2.0), Lasso(1.0), GaussianPosterior(1.0)], ids=repr)
def test_amp_is_the_general_recursion(denoiser, rng):
    """eq:zuvdef to eq:PsiGamma: with H_u(T) = G_a(T + A M^b) and Psi = -Gamma, eq:bmgen gives the iterates of AMP."""
    m, n, d = 60, 90, 2
    rows = GaussianRows(1.0)
    bias_u, bias_v = DiscreteBias([-0.5, 0.5]), ConstantBias(2.0)
    model = draw_embedding(m, n, d, rows_u=rows, rows_v=rows, bias_u=bias_u, bias_v=bias_v, rng=rng)
    W, B = rng.standard_normal((m, n)), model.B + rng.standard_normal((n, d))
    Y = model.A @ model.B.T / np.sqrt(m) + W
    with warnings.catch_warnings():
        warnings.simplefilter("error", IndefinitePrecisionWarning)
        run = biased_low_rank_amp(Y, model.r_u, model.r_v, denoiser, B0=B, n_iter=4)
    A, Psi_u = np.zeros((m, d)), np.zeros((d, d))
    estimate_a, estimate_b = A, B
    keep = denoiser.precision == "argmin"
    for iterate in run.iterates:
        M_b, F_a = model.B.T @ B / m, B.T @ B / m + keep * Psi_u  # theta^u_k
        T = W @ B / np.sqrt(m) + A @ Psi_u
        P_a = Y @ estimate_b / np.sqrt(m) - estimate_a @ iterate.Gamma_a
        assert np.allclose(T, P_a - model.A @ M_b)
        A, Gamma_b = denoiser.denoise(T + model.A @ M_b, model.r_u, F_a)
        Psi_v = -Gamma_b
        M_a, F_b = model.A.T @ A / m, A.T @ A / m + keep * Psi_v  # theta^v_k
        S = W.T @ A / np.sqrt(m) + B @ Psi_v
        P_b = Y.T @ iterate.A / np.sqrt(m) - estimate_b @ iterate.Gamma_b
        assert np.allclose(S, P_b - model.B @ M_a)
        B, jacobian = denoiser.denoise(S + model.B @ M_a, model.r_v, F_b)
        Psi_u = -jacobian * n / m
        assert np.allclose(A, iterate.A) and np.allclose(B, iterate.B)
        estimate_a, estimate_b = iterate.A, iterate.B


def test_parameters_and_rows_converge_together(rng):
    """eq:param-conv, eq:bm-theta, eq:empiricalA, eq:thetarv: M, Q, F and E(r |A_k|^2), averaged over 6 seeds."""
    m, n, posterior, k = 1000, 1500, Ridge(2.0), 3
    bias_u, bias_v = DiscreteBias(np.log([0.5, 1.5])), DiscreteBias(np.log([4.0, 12.0]))
    laws = scaled_rows(2, rows_u=GaussianRows(1), rows_v=GaussianRows(1), bias_u=bias_u, bias_v=bias_v)
    S = 8 * n / m * np.eye(2)
    start = {"beta": m / n, "M0": S, "Q0": 1.5 * S, "n_iter": k + 1}
    se = state_evolution(*laws, posterior, **start, n_samples=200_000, rng=rng)
    last, (r, _, A_hat) = se.iterates[k], se.rows_a
    predicted = [last.M_a, last.Q_a, last.F_a, last.F_b, last.M_b_next, last.Q_b_next]
    predicted = np.append(np.array(predicted).ravel(), np.mean(r * (A_hat**2).sum(axis=1)))
    measured = []
    for _ in range(6):
        (r_u, A), (r_v, B) = laws[0].draw(m, rng=rng), laws[1].draw(n, rng=rng)
        Y = A @ B.T / np.sqrt(m) + rng.standard_normal((m, n))
        B0 = B + 2 * rng.standard_normal((n, 2))
        run = biased_low_rank_amp(Y, r_u, r_v, posterior, B0=B0, n_iter=k + 1)
        it = run.iterates[k]
        values = [A.T @ it.A / m, it.A.T @ it.A / m, it.F_a, it.F_b, B.T @ it.B / m, it.B.T @ it.B / m]
        measured.append(np.append(np.array(values).ravel(), np.mean(r_u * (it.A**2).sum(axis=1))))
    spread = np.std(measured, axis=0, ddof=1) / np.sqrt(6)
    # 25 quantities with Student's t of 5 degrees of freedom: beyond 8 standard errors once in 80 such tests
    assert (np.abs(np.mean(measured, axis=0) - predicted) < 8 * spread).all()
