"""Sums over columns from samples: unbiased, with the noise that is stated, and exact to second order in M."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from amptutorial import AMPEmbedding, sampling
from amptutorial.biases import margin_biases
from amptutorial.heldout import heldout_gain, hold_out
from amptutorial.sampling import (
    ColumnSample,
    Sampler,
    _sample_sizes,
    exact,
    inclusion_probabilities,
    systematic_sample,
)
from amptutorial.sums import AllColumns, log_partition, tilted_means

N, D = 3000, 3


@pytest.fixture
def table(rng):
    """Return rows, columns and biases for which a few columns carry much of the sums."""
    U, W = 0.8 * rng.standard_normal((40, D)), 0.6 * rng.standard_normal((N, D))
    return U, W, rng.gamma(0.5, size=N) + 1e-3


@pytest.fixture
def few(monkeypatch):
    """Let small tables be sampled, with small samples."""
    for name, value in {"ALL_UP_TO": 100, "FEWEST": 300, "COMMON": 1}.items():
        monkeypatch.setattr(sampling, name, value)


@pytest.mark.parametrize("K", [1, 7, 299, 300])
def test_inclusion_probabilities_add_up_and_follow_the_sizes(K, rng):
    sizes = rng.gamma(0.3, size=300) + 1e-9
    pi = inclusion_probabilities(sizes, K)
    assert pi.sum() == pytest.approx(K) and pi.max() <= 1
    free = pi < 1
    assert np.allclose(pi[free] / sizes[free], (pi[free] / sizes[free]).max(initial=0))
    if free.any() and not free.all():  # the certain ones would exceed 1 by the same factor
        assert (sizes[~free] * (pi[free] / sizes[free])[0] >= 1 - 1e-9).all()


def test_where_no_more_sizes_are_positive_than_are_drawn_all_are_certain():
    for K, expected in ((1, [0.75, 0, 0.25]), (2, np.ones(3)), (3, np.ones(3))):
        assert np.array_equal(inclusion_probabilities(np.array([3.0, 0.0, 1.0]), K), expected)


def test_a_systematic_sample_holds_each_column_with_its_probability(rng):
    pi = inclusion_probabilities(rng.gamma(1.0, size=50), 20)
    runs = 4000
    held = np.zeros(50)
    for _ in range(runs):
        drawn = systematic_sample(pi, rng)
        assert len(drawn) in (19, 20, 21)
        held[drawn] += 1
    error = np.sqrt(pi * (1 - pi) / runs)
    assert (np.abs(held / runs - pi) <= 5 * error + 1e-12).all()


def test_a_column_with_most_of_the_sum_is_in_every_sample(table):
    """However long the others are."""
    _, W, r_v = table
    r_v[7], W[7] = 1e4 * r_v.sum(), 0
    for seed in range(5):
        ((_, part),) = ColumnSample(W, r_v, 100 * np.eye(D), seed).of_sizes(np.array([100])).parts
        assert (drawn(part) == 0).all(axis=1).any()


def test_calibrated_weights_have_the_sums_of_all_columns(table, rng):
    """Those of r_v_j, of r_v_j w_j and, in the leading directions, of r_v_j w_j w_j^T; certain columns keep theirs."""
    _, W, r_v = table
    pi = inclusion_probabilities(r_v, 600)
    drawn = systematic_sample(pi, rng)
    weights = sampling.calibrated_weights(W, r_v, pi, drawn)
    assert weights.sum() == pytest.approx(r_v.sum())
    assert np.allclose(weights @ W[drawn], r_v @ W)
    assert np.allclose((W[drawn].T * weights) @ W[drawn], (W.T * r_v) @ W)
    certain = pi[drawn] == 1
    assert certain.any() and np.array_equal(weights[certain], r_v[drawn][certain])
    assert (weights > 0).all()


def test_few_drawn_columns_calibrate_fewer_sums(table, rng, monkeypatch):
    """With 50 columns for each sum, 300 columns allow for five: 1, three entries of w_j and one square."""
    _, W, r_v = table
    monkeypatch.setattr(sampling, "DRAWN_PER_SUM", 50)
    pi = np.full(N, 0.1)
    drawn = systematic_sample(pi, rng)
    weights = sampling.calibrated_weights(W, r_v, pi, drawn)
    assert np.allclose(weights @ W[drawn], r_v @ W) and weights.sum() == pytest.approx(r_v.sum())
    gaps = np.abs((W[drawn].T * weights) @ W[drawn] - (W.T * r_v) @ W)
    assert gaps[0, 0] < 1e-9 * r_v.sum() < np.delete(gaps, 0).min()
    # of a sample, the square of the direction in which the rows are longest
    ((_, part),) = ColumnSample(W, r_v, np.diag([1e-4, 1.0, 1e-2]), 0).of_sizes(np.array([300])).parts
    some, weights = part._sample.W, part._sample.r_v
    gaps = np.abs((some.T * weights) @ some - (W.T * r_v) @ W)
    assert gaps[1, 1] < 1e-9 * r_v.sum() < np.delete(gaps, 4).min()


def drawn(part):
    """Return the columns that the sums of a part run over."""
    return getattr(part, "_sample", part).W


def test_the_noise_is_a_fraction_of_the_poisson_noise(table, few, rng):
    """T^2 V against T C, in the units of C, however many counts a row has."""
    U, W, r_v = table
    totals = np.geomspace(20, 2000, len(U))
    sampler = Sampler(rng)
    samples = (sampler(U, totals, W, r_v).for_rows(U, totals) for _ in range(60))
    found = np.array([sums.tilted_means(U)[1] for sums in samples])
    weights = r_v * np.exp(U @ W.T)
    weights /= weights.sum(axis=1, keepdims=True)
    means = weights @ W
    shares = []
    for i, total in enumerate(totals):
        centred = W - means[i]
        C = (centred * weights[i][:, None]).T @ centred
        V = (found[:, i] - means[i]).T @ (found[:, i] - means[i]) / len(found)
        shares.append(total * np.trace(np.linalg.solve(C, V)) / D)
    assert np.mean(shares) < 0.05 and max(shares) < 0.25


def with_and_without_own(Z, U, W, r_v, rng):
    """Return log sums and means of rows from one sample: as they are, and with the own columns of the rows."""
    sums = ColumnSample(W, r_v, U.T @ U / len(U), int(rng.integers(2**63))).for_rows(U, np.ones(len(U)))
    assert all(len(drawn(part)) <= N / 2 for _, part in sums.parts)
    return sums.tilted_means(U), sums.tilted_means(U, sums.own_sums(U, Z))


def test_where_a_row_has_counts_in_all_columns_only_the_lowest_powers_are_sampled(table, rng):
    """If all M_ij are positive; a row without counts keeps the sums of its sample."""
    U, W, r_v = np.abs(table[0]), np.abs(table[1]), table[2]
    weights = rng.permutation(r_v) * rng.gamma(1.0, size=N)  # of a sample that knows nothing of the columns
    part = sampling._Drawn(W, r_v, np.arange(N), weights)
    Z = sp.csr_array(np.vstack([np.ones((len(U) - 1, N)), np.zeros((1, N))]))
    plain = tilted_means(U, W, weights)
    logs, means = part.tilted_means(U, part.own_sums(U, Z))
    M = U @ W.T
    sums = np.exp(M) @ r_v + (1 + M + M**2 / 2) @ (weights - r_v)
    moments = (np.exp(M) * r_v) @ W + ((1 + M) * (weights - r_v)) @ W
    assert np.allclose(np.exp(logs)[:-1], sums[:-1], rtol=1e-9)
    assert np.allclose(means[:-1], (moments / sums[:, None])[:-1], rtol=1e-9)
    assert logs[-1] == plain[0][-1] and np.array_equal(means[-1], plain[1][-1])


def test_each_row_has_the_sums_of_its_own_sample_and_of_its_own_counts(table, rng):
    U, W, r_v = table
    Z = sp.csr_array(rng.poisson(0.1, (len(U), N)))
    sums = ColumnSample(W, r_v, np.eye(D), 0).of_sizes(np.tile([100, 200], 20))
    found = sums.tilted_means(U, sums.own_sums(U, Z))
    for rows, part in sums.parts:
        expected = part.tilted_means(U[rows], part.own_sums(U[rows], Z[rows]))
        assert all(np.allclose(each[rows], one) for each, one in zip(found, expected, strict=True))
        assert not np.allclose(expected[0], part.log_partition(U[rows]), rtol=1e-3)


def test_own_terms_below_zero_are_left_to_the_sample(table, rng):
    """There exp(M) is below its lowest powers: a sum could turn negative."""
    U, W, r_v = np.abs(table[0]), -np.abs(table[1]), table[2]
    part = sampling._Drawn(W, r_v, np.arange(N), rng.standard_normal(N))
    sums, moments = part.own_sums(U, sp.csr_array(np.ones((len(U), N))))
    assert not sums.any() and not moments.any()


@pytest.mark.slow
def test_sampled_sums_are_unbiased_and_own_columns_take_noise_away(few, rng):
    """Of rows whose counts are Poisson at the rates of a table with long rows in many directions.

    Weights are calibrated: what bias that leaves is below the noise of one sample.
    """
    U, W = 0.3 * rng.standard_normal((40, 12)), rng.standard_normal((N, 12))
    r_v = rng.gamma(0.5, size=N) + 1e-3
    rates = r_v * np.exp(U @ W.T)
    Z = sp.csr_array(rng.poisson(150 * rates / rates.sum(axis=1, keepdims=True)))
    runs, (logs, means) = 200, tilted_means(U, W, r_v)
    found = [with_and_without_own(Z, U, W, r_v, rng) for _ in range(runs)]
    plain, own = (np.exp([run[which][0] - logs for run in found]) for which in range(2))
    for sums in (plain, own):
        assert (np.abs(sums.mean(axis=0) - 1) <= (4.5 / np.sqrt(runs) + 0.4) * sums.std(axis=0, ddof=1)).all()
    assert own.var(axis=0).mean() < 0.8 * plain.var(axis=0).mean()
    plain, own = (np.mean([(run[which][1] - means) ** 2 for run in found]) for which in range(2))
    assert own < 0.8 * plain


def test_rows_with_many_counts_and_long_rows_have_larger_samples(table):
    U, W, r_v = table
    totals = [1.0, 12.5, 12.6, 25.1, 500.0, 500.1]
    sizes = _sample_sizes(np.zeros((6, D)), np.array(totals), W, r_v)
    assert list(sizes) == [500, 500, 1000, 2000, 2000, 4000]
    variance = np.cov((W @ [1.0, 0, 0]), aweights=r_v, bias=True)
    length = np.sqrt(np.log(4 * 2000 / (4 * 100)) / 2 / variance)  # exp(2 s^2) makes 100 counts count as 2000
    sizes = _sample_sizes(np.array([[0.999], [1.001]]) * length * [1.0, 0, 0], np.full(2, 100.0), W, r_v)
    assert list(sizes) == [8000, 16000]


def test_sizes_follow_the_variance_about_the_mean_and_are_bounded(table, rng):
    """A shift of all w_j changes no size; a variance beyond 10 counts as 10."""
    U, W, r_v = table
    totals = np.full(len(U), 100.0)
    sizes = _sample_sizes(U, totals, W, r_v)
    assert np.array_equal(_sample_sizes(U, totals, W + [5.0, -3, 2], r_v), sizes) and len(set(sizes)) > 1
    (size,) = _sample_sizes(np.full((1, D), 1e3), np.ones(1), W, r_v)
    assert size == 2000 * next(2**k for k in range(60) if 2000 * 2**k >= 4 * np.exp(2 * 10))


def test_samples_beyond_half_of_the_columns_are_all_of_them_and_larger_ones_can_be_asked_for(table, few, rng):
    """Of 3,000 columns a sample of 1,200 pays; one of 1,500 does too, one of 2,400 does not."""
    U, W, r_v = table
    wanted, totals = {"little": 300, "much": 1200, "too much": 3000}, np.array([1.0, 300, 600])
    assert list(_sample_sizes(0 * U[:3], totals, W, r_v)) == [300, 1200, 2400]
    for sample in (Sampler(rng)(U, np.ones(len(U)), W, r_v), ColumnSample(W, r_v, np.eye(D), 0)):
        parts = sample.for_rows(0 * U[:3], totals).parts
        assert [list(rows) for rows, _ in parts] == [[0], [1], [2]]
        for (_, part), size in zip(parts, wanted.values(), strict=True):
            assert abs(len(drawn(part)) - size) <= 1
        assert type(parts[2][1]) is AllColumns and parts[2][1].W is W and parts[2][1].r_v is r_v
    for times, size in ((2, 600), (5, 1500), (6, 3000)):
        ((_, part),) = Sampler(rng, times)(U, np.ones(len(U)), W, r_v).for_rows(0 * U, np.ones(len(U))).parts
        assert abs(len(drawn(part)) - size) <= 1


def test_without_a_generator_or_with_few_columns_sums_are_exact(table, rng, monkeypatch):
    U, W, r_v = table
    monkeypatch.setattr(sampling, "ALL_UP_TO", len(U) * N)
    for sampler in (exact, Sampler(rng)):
        sample = sampler(U, np.ones(len(U)), W, r_v)
        assert type(sample) is AllColumns and sample.W is W and sample.r_v is r_v and not sample.sampled
        sums = sample.for_rows(U, np.ones(len(U)))
        assert sums.own_sums(U, None) is None
        assert np.array_equal(sums.log_partition(U), log_partition(U, W, r_v))
        assert all(map(np.array_equal, sums.tilted_means(U), tilted_means(U, W, r_v)))


def test_the_second_moment_is_the_mean_over_the_counts(table, few, rng):
    U, W, r_v = table
    counts = rng.integers(1, 5, len(U))
    rows = np.repeat(U, counts, axis=0)
    assert np.allclose(Sampler(rng)(U, counts, W, r_v).second_moment, rows.T @ rows / len(rows))


def test_a_sample_is_drawn_once_and_the_next_one_is_another(table, few, rng):
    U, W, r_v = table
    sampler, ones = Sampler(rng), np.ones(len(U))
    sample, other = sampler(U, ones, W, r_v), sampler(U, ones, W, r_v)
    once, again, another = (each.for_rows(0 * U, ones).parts[0][1] for each in (sample, sample, other))
    assert once is again and len(drawn(once)) < N
    assert not np.array_equal(drawn(once), drawn(another))


def test_samples_do_not_depend_on_the_order_in_which_their_sizes_are_asked_for(table, few):
    U, W, r_v = table
    rows, totals = 0 * U[:2], np.array([1.0, 300])
    found = []
    for order in ([0, 1], [1, 0]):
        sample = ColumnSample(W, r_v, np.eye(D), 3)
        parts = {k: sample.for_rows(rows[[k]], totals[[k]]).parts[0][1] for k in order}
        found.append([drawn(parts[k]) for k in range(2)])
    assert all(map(np.array_equal, *found)) and len(found[0][0]) < len(found[0][1]) < N


def test_without_rows_there_is_nothing_to_sum(table, few, rng):
    U, W, r_v = table
    sample = Sampler(rng)(U, np.ones(len(U)), W, r_v)
    logs, means = sample.for_rows(U[:0], np.zeros(0)).tilted_means(U[:0])
    assert logs.shape == (0,) and means.shape == (0, D)
    assert margin_biases(np.zeros(0), U[:0], sample).shape == (0,)


@pytest.fixture(scope="module")
def counts():
    """Return a table of rare counts whose sums are sampled where more than 100 columns are."""
    rng = np.random.default_rng(5)
    m, n, d = 900, 700, 3
    U, V = rng.standard_normal((m, d)), rng.standard_normal((n, d))
    r_v = rng.gamma(1.0, size=n) + 0.05
    Z = sp.csr_array(rng.poisson(0.05 * r_v * np.exp(0.8 * U @ V.T / np.sqrt(d))))
    return Z[Z.sum(axis=1) > 0][:, Z.sum(axis=0) > 0]


def test_a_sampled_fit_is_nearly_as_good_with_its_margins_and_transformed_rows_nearly_exact(counts, few):
    kept, held_out, _, _ = hold_out(counts, 0.2, np.random.default_rng(0))
    gains = []
    for most in (10**9, 100):
        sampling.ALL_UP_TO = most  # monkeypatched by `few`, which restores it
        model = AMPEmbedding(3, channel="counts", random_state=0).fit(kept)
        E = model.embedding_, model.components_.T
        gains.append(heldout_gain(kept, held_out, *E, model.row_bias_, model.column_bias_))
        seen = ~np.isnan(kept.toarray())
        columns = (model.predict_rates() * seen).sum(axis=0) / np.nansum(kept.toarray(), axis=0)
        assert np.abs(columns - 1).mean() < (1e-6 if most > 100 else 0.02)
        difference = model.transform(kept[:50]) - model.embedding_[:50]
        assert np.sqrt((difference**2).mean()) < 0.05 * model.embedding_.std()
    assert gains[0] > 0.1 and gains[1] > 0.98 * gains[0]


def test_a_row_or_column_without_counts_is_no_obstacle_to_sampling(counts, few):
    Z = counts.tolil()
    Z[5], Z[:, 7] = 0, 0
    with warnings.catch_warnings(action="ignore"):
        model = AMPEmbedding(2, channel="damped", random_state=0).fit(sp.csr_array(Z))
    assert not model.embedding_[5].any() and np.isfinite(model.components_).all()
