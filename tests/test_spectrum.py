"""Random-matrix formulas against drawn spectra."""

import numpy as np
import pytest

from amptutorial import spectrum
from amptutorial.paper.setting import critical_delta
from amptutorial.spectrum import bulk_edge, detection_ratio, detection_weights, outlier, overlaps, shrink

M, N = 400, 800


def spiked(theta, rng, m=M, n=N):
    """Return Y~ with signal singular values `theta`, and the singular vectors of the signal."""
    left, right = (np.linalg.qr(rng.standard_normal((size, len(theta))))[0] for size in (m, n))
    return (left * theta) @ right.T + rng.standard_normal((m, n)), left, right


def test_bulk_edge_is_where_noise_ends(rng):
    """Marchenko-Pastur: the largest singular value of W is the edge up to fluctuations of order m^(-1/6)."""
    largest = np.linalg.norm(rng.standard_normal((M, N)), 2)
    assert largest == pytest.approx(bulk_edge(M, N), abs=4 * M ** (-1 / 6))


def test_outlier_positions_and_overlaps(rng):
    """Benaych-Georges and Nadakuditi at 0.7 to 4 times the threshold (m n)^(1/4), averaged over 10 matrices.

    Of what is below the threshold nothing is seen, and no singular value stands out.
    """
    threshold = (M * N) ** 0.25
    theta = threshold * np.array([4.0, 2.5, 1.8, 1.3, 0.7])
    sigmas, cosines = [], []
    for _ in range(10):
        Y, left, right = spiked(theta, rng)
        u, s, v = np.linalg.svd(Y, full_matrices=False)
        assert s[4] < bulk_edge(M, N) + 4 * M ** (-1 / 6)
        sigmas.append(s[:4])
        cosines.append([np.diag(u[:, :5].T @ left) ** 2, np.diag(v[:5] @ right) ** 2])
    sigmas, cosines, predicted = np.array(sigmas), np.array(cosines), outlier(theta, M, N)
    assert predicted[4] == bulk_edge(M, N)
    assert np.abs(sigmas.mean(0) - predicted[:4]).max() < 4 * sigmas.std(0, ddof=1).max() / np.sqrt(10) + 0.1
    for side, predicted in enumerate(overlaps(theta, M, N)):
        gap = np.abs(cosines[:, side].mean(0) - predicted)
        assert (gap < 4 * cosines[:, side].std(0, ddof=1) / np.sqrt(10) + 0.01).all()


def test_shrinkage_is_theta_times_both_cosines_and_at_the_threshold_positions_join_the_edge():
    threshold = (M * N) ** 0.25 * (1 + 1e-9)
    assert outlier(threshold, M, N) == pytest.approx(bulk_edge(M, N))
    assert overlaps(threshold, M, N) == pytest.approx((0, 0), abs=1e-8)
    theta = (M * N) ** 0.25 * np.array([1.01, 1.5, 3.0, 10.0])
    left, right = overlaps(theta, M, N)
    assert np.allclose(shrink(outlier(theta, M, N), M, N), theta * np.sqrt(left * right))


def test_shrinkage_begins_at_the_upper_edge_of_the_bulk():
    """sqrt(100) + sqrt(2500): the formula would be positive again below the lower edge, 40."""
    for m, n in ((100, 2500), (2500, 100)):
        assert not shrink([0.0, 5.0, 11.0, 20.0, 39.0, 41.0, 51.0, 59.9, 60.0], m, n).any()
        assert shrink(60 * (1 + 1e-12), m, n) == pytest.approx(0, abs=1e-4) and shrink(61.0, m, n) > 1


def test_signal_singular_values_need_no_m_by_n_array(rng):
    A, B = rng.standard_normal((50, 3)), rng.standard_normal((70, 3))
    expected = np.linalg.svd(A @ B.T / np.sqrt(50), compute_uv=False)[:3]
    assert np.allclose(spectrum.signal_singular_values(A, B), expected)


def test_erratum_8_the_printed_threshold_is_not_one(rng):
    """At twice the printed Delta the outliers are still where they are predicted, clear of the edge; past the correct
    one they are gone. Constant biases, d = 3, rows N(0, 0.1 I) (fig:singular)."""
    m, n, d, C = 1000, 2000, 3, 0.1 * np.eye(3)
    printed, correct = 0.1**2 / (1 + np.sqrt(m / n)) ** 2, critical_delta(C, C, m / n)

    def drawn(delta):
        A = np.sqrt(0.1) * rng.standard_normal((m, d)) / np.sqrt(delta)
        B = np.sqrt(0.1) * rng.standard_normal((n, d))
        s = np.linalg.svd(A @ B.T / np.sqrt(m) + rng.standard_normal((m, n)), compute_uv=False)
        return s[: d + 1], outlier(spectrum.signal_singular_values(A, B), m, n)

    s, predicted = drawn(2 * printed)
    assert np.allclose(s[:d], predicted, rtol=0.015)
    assert s[d - 1] > 1.02 * bulk_edge(m, n) > s[d]
    s, _ = drawn(1.5 * correct)
    assert s[0] < 1.01 * bulk_edge(m, n)


def test_critical_delta_is_where_the_signal_meets_the_threshold():
    """n lambda / Delta = sqrt(m n) at the correct value, for covariances that are not multiples of the identity."""
    C_u, C_v = np.diag([0.3, 0.1]), np.array([[0.2, 0.05], [0.05, 0.1]])
    m, n = 600, 1500
    strongest = max(np.linalg.eigvals(C_u @ C_v).real)
    assert np.sqrt(n * strongest / critical_delta(C_u, C_v, m / n)) == pytest.approx((m * n) ** 0.25)


def test_detection_ratio_for_constant_rates_is_the_distance_to_the_threshold_squared():
    beta, r_u, r_v, variance = 0.5, 1.0, 80.0, 0.1
    delta = 1 / (r_u * r_v)
    critical = critical_delta([[variance]], [[variance]], beta)
    assert detection_ratio([r_u], [r_v], variance, variance, beta) == pytest.approx((critical / delta) ** 2)
    # without variance nothing can be detected
    assert detection_ratio([1.0], [2.0], 0.0, 1.0, 1.0) == detection_ratio([1.0], [2.0], 1.0, 0.0, 1.0) == 0


def test_sizes_may_be_small_numpy_integers():
    """10^5 by 10^5 is more than 32 bits hold: below the threshold of 10^5 there are an edge and no overlap."""
    size = np.int32(10**5)
    assert outlier(250.0, size, size) == bulk_edge(size, size) == pytest.approx(2 * np.sqrt(1e5))
    assert overlaps(250.0, size, size) == (0, 0)
    assert shrink(650.0, size, size) == shrink(650.0, 10**5, 10**5)


@pytest.mark.parametrize(("m", "n"), [(300, 1200), (1200, 300)])
def test_weights_are_those_of_the_faintest_signal(m, n):
    """Noise ends at the edge of equal frequencies, and a signal of kappa = 1 leaves it right there: Dyson's equations.

    Weighted noise sqrt(a_i b_j) W_ij has the resolvent G_i = 1 / (z - a_i y), H_j = 1 / (z - b_j x) at z, where
    x = sum a G and y = sum b H. It ends where sum (a G)^2 sum (b H)^2 is 1. A signal whose rows have the variance r is
    an outlier at z if its square times sum (a r G) sum (b r H) is 1. Above the end, both fall like a root.
    """
    r_u, r_v = (np.where(np.arange(size) < size / 5, rate, 1.0) for size, rate in ((m, 16.0), (n, 6.0)))
    (a, b), z, y = detection_weights(r_u, r_v), bulk_edge(m, n) * (1 + 1e-6), 0.0
    for _ in range(4000):
        x = (a / (z - a * y)).sum()
        y = (b / (z - b * x)).sum()
    G, H = 1 / (z - a * y), 1 / (z - b * x)
    signal = (a * r_u * G).sum() * (b * r_v * H).sum() / m / np.sqrt(detection_ratio(r_u, r_v, 1.0, 1.0, m / n))
    assert 0.99 < ((a * G) ** 2).sum() * ((b * H) ** 2).sum() < 1 and 0.99 < signal < 1
    assert G.min() > 0 and H.min() > 0


def test_weights_for_equal_frequencies_do_not_weigh_and_have_no_unit(rng):
    assert np.allclose(np.concatenate(detection_weights(np.full(5, 0.3), np.full(9, 7.0))), 1)
    r_u, r_v = rng.uniform(0.1, 9, 5), rng.uniform(0.1, 9, 8)
    for one, other in zip(detection_weights(r_u, r_v), detection_weights(10 * r_u, r_v / 7), strict=True):
        assert np.allclose(one, other)
