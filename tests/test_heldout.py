"""Held-out counts: binomial thinning, and what a gain over independence means."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from amptutorial import heldout, sums
from amptutorial.bias import drop_empty, estimate_bias, margins
from amptutorial.biases import refit_biases
from amptutorial.heldout import Chosen, HeldOut, held_out_pairs, heldout_gain, hold_out, split_counts, split_pairs
from amptutorial.table import Table

counts = arrays(np.int64, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=st.integers(0, 50))


@given(counts, st.floats(0.01, 0.99))
def test_a_split_adds_up_and_stays_non_negative(Z, fraction):
    kept, held_out = split_counts(Z, fraction, np.random.default_rng(0))
    assert np.array_equal((kept + held_out).toarray(), Z)
    for part in (kept, held_out):
        assert (part.data > 0).all() and np.array_equal(part.data, np.floor(part.data))


def test_a_split_is_binomial(rng):
    """4,000 splits of 30 counts: mean and variance of Binomial(30, 0.2), each within 4 of its standard errors."""
    n, p, repeats = 30, 0.2, 4000
    taken = split_counts(np.full((1, repeats), n), p, rng)[1].toarray().ravel()
    variance = n * p * (1 - p)
    fourth_moment = variance * (1 + 3 * (n - 2) * p * (1 - p))
    assert abs(taken.mean() - n * p) < 4 * np.sqrt(variance / repeats)
    assert abs(taken.var() - variance) < 4 * np.sqrt((fourth_moment - variance**2) / repeats)


def test_a_fractional_rest_goes_to_one_part_by_the_coin(rng):
    Z = np.full((1, 2000), 0.75)
    kept, held_out = (part.toarray() for part in split_counts(Z, 0.2, rng))
    assert np.array_equal(kept + held_out, Z)
    assert set(np.unique(held_out)) == {0.0, 0.75}
    assert abs((held_out > 0).mean() - 0.2) < 4 * np.sqrt(0.2 * 0.8 / 2000)


def test_what_cannot_be_split_is_an_error(rng):
    """NumPy draws from at most 2^63 - 1 counts; the largest double below 2^63 is 2^63 - 1024."""
    kept, held_out = split_counts(np.array([[2.0**63 - 1024]]), 0.5, rng)
    assert (kept + held_out).toarray() == 2.0**63 - 1024
    large = np.array([[2.0**63]]), np.array([[2**64 - 1]], dtype=np.uint64), sp.csr_array([[1e300]])
    for split, Z, fraction, message in (
        *((split_counts, np.ones((2, 2)), fraction, "fraction must be") for fraction in (0, 1, 1.5, -0.1, np.nan)),
        *((split_counts, Z, 0.5, r"only counts below 2\^63 can be split") for Z in large),
        (hold_out, np.array([[1]]), 1 - 1e-12, "no counts are kept"),
    ):
        with pytest.raises(ValueError, match=message):
            split(Z, fraction, rng)


def test_holding_out_is_splitting_and_leaving_out_what_keeps_no_count():
    """With the same draws, for counts so few that rows and columns are lost."""
    Z = np.random.default_rng(0).poisson(0.05, (40, 30))
    kept, held_out = split_counts(Z, 0.5, np.random.default_rng(1))
    kept, rows, columns = drop_empty(kept)
    found = hold_out(Z, 0.5, np.random.default_rng(1), split_counts)
    assert len(rows) < 40 and len(columns) < 30
    assert np.array_equal(found[0].toarray(), kept.toarray())
    assert np.array_equal(found[1].toarray(), held_out.toarray()[np.ix_(rows, columns)])
    assert np.array_equal(found[2], rows) and np.array_equal(found[3], columns)


def small_model(rng, m=12, n=9, d=2):
    U, V = rng.standard_normal((m, d)), rng.standard_normal((n, d))
    r_u, r_v = rng.uniform(0.5, 2, m), rng.uniform(1, 4, n)
    return U, V, r_u, r_v, r_u[:, None] * r_v * np.exp(U @ V.T / np.sqrt(m))


def test_the_gain_is_that_of_the_poisson_likelihoods(rng):
    """In full, totals included, with fitted rates, too large ones by a factor, and without bound."""
    U, V = rng.standard_normal((30, 2)), rng.standard_normal((20, 2))
    kept, held_out = split_counts(rng.poisson(3.0, (30, 20)), 0.25, rng)
    r_u, r_v = refit_biases(kept, U, V)
    rates = np.outer(r_u, r_v) * np.exp(U @ V.T / np.sqrt(30))
    kept_, z = kept.toarray(), held_out.toarray()
    independent = np.outer(kept_.sum(1), kept_.sum(0)) / kept_.sum()
    scale = z.sum() / kept_.sum()
    null = stats.poisson.logpmf(z, scale * independent).sum()
    for factor in (1, 1.7):
        direct = (stats.poisson.logpmf(z, factor * scale * rates).sum() - null) / z.sum()
        assert heldout_gain(kept, held_out, U, V, factor * r_u, r_v) == pytest.approx(direct, rel=1e-10)
    assert heldout_gain(kept, held_out, 1e4 * U, V, r_u, r_v) == -np.inf


def test_rates_of_pairs_that_were_not_observed_are_no_excess(rng):
    """Of counts with gaps: what the rates of the pairs observed add up to, beyond the counts there, is subtracted."""
    U, V, r_u, r_v, rates = small_model(rng)
    Z, hidden, own = rng.poisson(3 * rates) + 1, rng.random(rates.shape) < 0.3, rng.random(rates.shape) < 0.3
    kept, held_out = np.where(hidden | own, np.nan, Z), np.where(own, np.nan, hidden * Z)
    independent, z = np.outer(*estimate_bias(kept)), np.nan_to_num(held_out)
    gain = (z * np.log(rates / independent)).sum() / z.sum()
    seen, hidden = ~hidden & ~own, hidden & ~own
    excess = rates[seen].sum() / Z[seen].sum() - 1
    more = rates - independent  # in the gaps that hide, beyond what it is in like pairs: here, in all
    raised = more[hidden].sum() - hidden.sum() * more[seen].mean()
    found = heldout_gain(kept, held_out, U, V, r_u, r_v)
    assert found == pytest.approx(gain - excess - raised / z.sum(), rel=1e-9)


def test_what_gaps_add_expects_nothing_for_rates_that_do_not_follow_them(rng):
    """Of true rates, over splits of one table with popular columns: the mean is zero, within its error."""
    U, V, *_ = small_model(rng, m=60, n=80)
    Z = rng.poisson(np.outer(np.ones(60), 4 / np.arange(1, 81)) * np.exp(U @ V.T / np.sqrt(60))) + np.eye(60, 80)
    found = []
    for _ in range(100):
        kept, held_out = split_pairs(Z, 0.2, rng)
        compared = held_out_pairs(kept, held_out).compared
        found.append(compared.raised(compared.log_ratios(U, V, *refit_biases(kept, U, V))))
    assert abs(np.mean(found)) < 3 * np.std(found) / 10 and np.std(found) > 0


def test_an_iterate_is_judged_with_biases_refitted_to_the_counts_that_were_seen(rng):
    """One sweep from the biases of the iterate before, at first the sums of the columns; written out at m != n."""
    U, V, *_, rates = small_model(rng)
    kept, held_out = split_counts(rng.poisson(5 * rates) + 1, 0.3, rng)
    pairs, (rows, columns) = held_out_pairs(kept, held_out), (kept.sum(axis=1), kept.sum(axis=0))
    chosen, r_v = Chosen(pairs, 1e-4), columns
    for scale in (0.5, 1.0):
        exponentials = np.exp(scale * U @ V.T / np.sqrt(12))
        r_u = rows / (exponentials @ r_v)
        r_v = columns / (r_u @ exponentials)
        ratios = np.log(np.outer(r_u, r_v) * exponentials / np.outer(rows, columns) * rows.sum())
        chosen.judge(SimpleNamespace(X=scale * U), SimpleNamespace(X=V), pairs)
        assert np.allclose(chosen.log_ratios, ratios[pairs.i, pairs.j]) and np.allclose(chosen.r_v, r_v)


@pytest.fixture
def example(rng):
    """Arguments of `heldout_gain`, with empty rows and columns on either side."""
    U, V, _, _, rates = small_model(rng)
    kept, held_out = (part.toarray() for part in split_counts(rng.poisson(3 * rates), 0.3, rng))
    kept[2], kept[:, 3], held_out[4] = 0, 0, 0
    return kept, held_out, U, V, *refit_biases(kept, U, V)


def test_log_ratios_are_those_of_the_rates_and_of_independence(example, monkeypatch):
    kept, held_out, U, V, r_u, r_v = example
    i, j = np.nonzero(np.where(kept.sum(axis=1, keepdims=True) * kept.sum(axis=0) > 0, held_out, 0))
    rates = r_u[:, None] * r_v * np.exp(U @ V.T / np.sqrt(len(U)))
    independent = np.outer(kept.sum(axis=1), kept.sum(axis=0)) / kept.sum()
    for size in (sums.PAIRS_AT_ONCE, 7):  # a block more or less makes no difference
        monkeypatch.setattr(sums, "PAIRS_AT_ONCE", size)
        pairs = held_out_pairs(kept, held_out)
        assert np.array_equal(pairs.z, held_out[i, j])
        expected = np.log(rates[i, j] / independent[i, j])
        assert np.allclose(pairs.log_ratios(U, V, r_u, r_v), expected, rtol=1e-12, atol=1e-14)


def test_rates_that_overflow_are_an_error_and_rates_of_zero_gain_minus_infinity(example):
    kept, held_out, U, V, r_u, r_v = example
    with pytest.raises(FloatingPointError, match="the rates overflow"):
        heldout_gain(kept, held_out, U, V, 1e308 * r_u / r_u.max(), r_v)
    r_u[0] = 1e308  # one among others is enough
    with pytest.raises(FloatingPointError, match="the rates overflow"):
        held_out_pairs(kept, held_out).log_ratios(U, V, r_u, 1e2 * r_v)
    assert heldout_gain(kept, held_out, U, V, np.zeros_like(r_u), r_v) == -np.inf


def test_without_held_out_counts_every_mean_is_zero(example):
    kept, held_out, U, V, r_u, r_v = example
    pairs = held_out_pairs(kept, 0 * held_out)
    assert pairs.mean(np.zeros(0)) == pairs.entropy() == 0 and pairs.standard_error(np.zeros(0)) == np.inf
    assert heldout_gain(kept, 0 * held_out, U, V, r_u, r_v) == pytest.approx(0, abs=1e-6)  # the tolerance of the refit


def held_out_of(counts):
    """Return all pairs of a table with counts, of rows and columns of one count each."""
    m, n = np.shape(counts)
    return HeldOut.of(np.ones(m), np.ones(n), sp.csr_array(counts))


def test_a_mean_is_one_over_counts_even_if_they_are_less_than_one():
    assert held_out_of([[0.1, 0.3]]).mean(np.array([1.0, 2.0])) == pytest.approx(0.7 / 0.4)


def test_the_entropy_bounds_the_gain():
    """Blocks that never mix: the embedding explains everything but the choice of one of three columns in a block."""
    Z = np.kron(np.eye(2), np.full((2, 3), 5))
    U, V = (6 * np.repeat([[1.0], [-1.0]], size, axis=0) for size in (2, 3))
    gain = heldout_gain(Z, Z, U, V, *refit_biases(Z, U, V))
    assert np.isclose(held_out_pairs(Z, Z).entropy(), np.log(6))
    assert np.isclose(gain, np.log(2), atol=2 * np.exp(-2 * 36 / np.sqrt(4)))


@pytest.mark.parametrize("level", [0.05, 2.0])
def test_pairs_are_hidden_whole_by_the_same_coin_and_are_gaps_where_a_zero_would_be_a_surprise(level, rng):
    """Whatever their counts: empty pairs of popular columns are gaps as often as the others there."""
    unknown = rng.random((400, 300)) < 0.3  # not observed: no count, and no empty pair
    popularity = 4 / (1 + np.arange(300) % 20)
    Z = np.where(unknown, np.nan, rng.poisson(level * popularity, (400, 300)))
    kept, held_out = (part.toarray() for part in split_pairs(Z, 0.2, rng))
    gaps = np.isnan(kept) & ~unknown
    assert not held_out[kept > 0].any()
    assert np.array_equal(np.where(gaps, 0, kept) + held_out, Z, equal_nan=True)
    rows, columns = margins(np.where(gaps, 0, kept))
    surprising = (np.outer(rows, columns) > heldout.SURPRISING * rows.sum()) & ~unknown
    assert 0.02 < surprising.mean() and not gaps[~surprising].any()
    assert (gaps == (held_out > 0))[surprising & (Z > 0)].all()
    for some in (Z == 1, Z > 1):  # large counts are hidden as often as small ones
        assert abs((held_out[some] > 0).mean() - 0.2) < 4 * np.sqrt(0.16 / some.sum())
    for some in (surprising & (Z == 0), surprising & (Z > 0)):
        assert abs(gaps[some].mean() - 0.2) < 4 * np.sqrt(0.16 / some.sum())
    contrast = held_out_pairs(kept, held_out).contrast.toarray()
    assert np.array_equal(contrast > 0, gaps) and np.array_equal(contrast < 0, surprising & ~gaps)


def test_pairs_are_drawn_alike_and_where_the_margins_say(rng):
    """Of the rows and columns of a small table, in a thousand draws."""
    rows, columns = np.array([6.0, 0.0, 1.0, 3.0]), np.array([1.0, 0.0, 5.0, 2.0, 2.0])
    drawn = sum(heldout.surprising_pairs(rows, columns, 0.3, rng) for _ in range(1000)).toarray()
    some = np.outer(rows, columns) > heldout.SURPRISING * 10
    assert (drawn[some] > 0).all() and not drawn[~some].any()
    assert np.abs(drawn[some] / 1000 - 0.3).max() < 4 * np.sqrt(0.21 / 1000)


def test_by_pairs_the_true_rates_score_best_even_for_bursts(rng):
    """A proper score: rates twice as far from independence, or half as far, predict worse than the true ones."""
    m, n = 300, 200
    U, V = rng.standard_normal((m, 1)), rng.standard_normal((n, 1))
    rates = np.exp(0.8 * U @ V.T - 1)
    Z = rng.poisson(rates * rng.gamma(0.5, 2.0, (m, n)))
    kept, held_out = split_pairs(Z, 0.3, rng)
    gains = []
    for scale in (0.5, 1.0, 2.0):
        X = 0.8 * scale * np.sqrt(m) * U
        gains.append(heldout_gain(kept, held_out, X, V, *refit_biases(kept, X, V)))
    assert gains[1] == max(gains) > 0.1


def test_the_standard_error_covers_what_rows_and_columns_share(rng):
    """Each row and each column shifts all its pairs: repeated draws scatter as the two-way error says."""
    i, j = np.indices((60, 40)).reshape(2, -1)
    pairs = HeldOut(i, j, np.ones(2400), np.ones(60), np.ones(40))
    draws = [rng.standard_normal(60)[i] + rng.standard_normal(40)[j] + rng.standard_normal(2400) for _ in range(400)]
    errors = np.array([pairs.standard_error(values) for values in draws])
    scatter = np.std([pairs.mean(values) for values in draws])
    assert scatter == pytest.approx(np.sqrt(1 / 60 + 1 / 40 + 1 / 2400), rel=4 / np.sqrt(800))
    assert np.sqrt((errors**2).mean()) == pytest.approx(scatter, rel=0.1)
    naive = np.std(draws[0]) / np.sqrt(2400)
    assert naive < 0.25 * scatter


@pytest.mark.parametrize(
    ("counts", "values", "error"),
    [
        # mean 0.75, deviations -0.25 * (-0.75), 0.75 * 0.25 in two rows and two columns
        ([[1, 0], [0, 3]], [0.0, 1.0], np.hypot(0.25 * -0.75, 0.75 * 0.25)),
        # deviations +-1/8 by rows: the sums of rows squared are 2/4, those of columns 0, the squares 8/64
        (np.ones((2, 4)), np.repeat([1.0, -1.0], 4), np.sqrt(1 / 2 - 1 / 8)),
        (np.ones((4, 2)), np.tile([1.0, -1.0], 4), np.sqrt(1 / 2 - 1 / 8)),
        # pairs of one row, or of one column
        *((counts, np.ones(2), np.inf) for counts in ([[1, 3], [0, 0]], [[1, 0], [2, 0]])),
        ([[0, 3], [0, 0]], [1.0], np.inf),
    ],
)
def test_the_standard_error_is_that_by_hand(counts, values, error):
    assert held_out_of(counts).standard_error(np.array(values)) == pytest.approx(error, rel=1e-14)


def test_pairs_without_held_out_counts_are_left_out_even_if_they_are_stored():
    held_out = sp.csr_array((np.array([0.0, 2.0]), np.array([0, 1]), np.array([0, 1, 2])), shape=(2, 2))
    pairs = held_out_of(held_out)
    assert (pairs.i.tolist(), pairs.j.tolist(), pairs.z.tolist()) == ([1], [1], [2.0])


def halves_of(pairs, iterates):
    return [[heldout.Half(pairs.mean(x, z), x) for z in pairs.halves] for x in iterates]


def test_a_half_of_the_pairs_is_judged_by_what_the_other_half_would_choose():
    """Of two iterates the first is better for every second pair; by hand."""
    pairs = held_out_of(np.ones((20, 20)))
    found = [np.tile([3.0, 1.0], 200), np.tile([1.0, 2.0], 200)]
    assert pairs.judged(halves_of(pairs, found))[:2] == (1.0, 0.0)
    assert pairs.judged(halves_of(pairs, found[:1]))[0] == 2.0  # without a choice all pairs judge


def test_a_gain_that_is_the_same_everywhere_is_sure():
    """Cut at two, all log-ratios are the same: no error is left to compare with."""
    pairs = held_out_of(np.ones((20, 20)))
    strong = 3 + 0.1 * np.random.default_rng(0).standard_normal(400)
    assert pairs.judged(halves_of(pairs, [strong])).errors == np.inf
    assert pairs.judged(halves_of(pairs, [np.zeros(400)])).errors == 0


def test_in_a_small_table_each_pair_gives_counts_to_both_halves():
    pairs = held_out_of([[4, 5], [0, 3]])
    assert [half.tolist() for half in pairs.halves] == [[2, 3, 1], [2, 2, 2]]


def test_what_is_chosen_by_noise_gains_nothing_in_the_mean(rng):
    """Of fifty iterates whose log-ratios are noise the best gains two errors; by the other half, none."""
    pairs = held_out_of(np.ones((30, 40)))
    best, ratios = [], []
    for _ in range(100):
        found = [rng.standard_normal(1200) for _ in range(50)]
        ratios.append(pairs.judged(halves_of(pairs, found)).errors)
        best.append(max(map(pairs.mean, found)) * np.sqrt(1200))
    assert np.mean(best) > 2 and abs(np.mean(ratios)) < 0.4


def test_rates_may_be_moved_to_gaps_without_a_gain(rng):
    """Judged are the pairs that were observed: an iterate that follows only which these are gains nothing."""
    U, V = rng.standard_normal((60, 1)), rng.standard_normal((50, 1))
    seen = rng.random((60, 50)) < 1 / (1 + np.exp(-2 * U @ V.T))
    kept, held_out = split_pairs(np.where(seen, rng.poisson(3.0, (60, 50)), np.nan), 0.2, rng)
    pairs = held_out_pairs(kept, held_out)
    chosen = Chosen(pairs, 1e-4)
    for _ in range(20):
        chosen.judge(SimpleNamespace(X=0.5 * np.sqrt(60) * U), SimpleNamespace(X=V), pairs)
    assert chosen.patience.highest < 0
    biases = refit_biases(kept, 0.5 * np.sqrt(60) * U, V)
    there = 0.5 * np.sqrt(60) * U, V, *biases
    gain = heldout_gain(kept, held_out, *there) + pairs.compared.raised(pairs.compared.log_ratios(*there))
    assert chosen.patience.highest == pytest.approx(gain, abs=0.02)


# When a fit stops, and which iterate it keeps


def test_patience_ends_with_the_first_iteration_without_progress():
    """But not before the tenth. Progress lowers the cross-entropy, here 3 - gain, by more than a hundredth."""
    patience, ended = heldout.Patience(entropy=3.0, tol=0.01), []
    for k in range(1, 13):
        patience = patience.after(0.1 * k if k not in (4, 12) else -1.0)
        ended.append(patience.exhausted)
    assert ended == 11 * [False] + [True]
    assert patience.k == 12 and patience.highest == pytest.approx(1.1)


@pytest.mark.parametrize(
    ("tol", "gains", "progress"),
    [
        (0.01, [1.0, 1.0201], [True, True]),
        *((0.01, [1.0, gain], [True, False]) for gain in (1.0199, 0.9, 1.0)),
        (0.0, [-1e9, -1e9, 1.0, 1.0, 1.5], [True, False, True, False, True]),
    ],
)
def test_progress_is_measured_by_what_is_left_of_the_cross_entropy(tol, gains, progress):
    """With an entropy of 3 + 1/50: a hundredth of what is left at 1.02 is 0.02; without a tolerance any gain counts."""
    patience = heldout.Patience(entropy=3.02, tol=tol)
    assert patience.progress is False and patience.k == 0
    for k, (gain, some) in enumerate(zip(gains, progress, strict=True), 1):
        patience = patience.after(gain)
        assert patience.progress is some and patience.highest == max(gains[:k])


class Gains:
    """In the place of `HeldOut`: an iterate is its own log-ratio, and every pair has one count."""

    rows = columns = z = np.ones(100)
    observed, gaps, halves = (rows, columns), None, (z, z)

    def log_ratios(self, X, _, __, ___):
        return X[:, 0]

    def mean(self, values, z=None):
        return float(values.mean())

    def standard_error(self, values):
        return 7.0 * float(values.mean())

    def entropy(self):
        return 5.0


def sides(gain):
    return SimpleNamespace(X=np.full((100, 1), gain)), SimpleNamespace(X=np.zeros((100, 1)))


@pytest.fixture
def judged(monkeypatch):
    """Return a function that returns what is chosen of iterates, which end after the last one; nothing is refitted."""
    monkeypatch.setattr(heldout, "fit_margins", lambda *_: (np.ones(100), np.ones(100)))

    def judge(iterates, best=None):
        best = best or Chosen(Gains(), 1e-4)
        for rows, columns in iterates:
            if best.judge(rows, columns, Gains()):
                break
        return best

    return judge


def test_the_best_iterate_is_kept_with_its_gain_and_error(judged):
    gains = [0.1, 0.5, 0.3, *[0.2] * 7]
    best = judged(sides(gain) for gain in gains)
    assert best.sides[0].X[0, 0] == 0.5 and best.k == 2 and not best.patience.progress
    assert best.gain == pytest.approx(0.5) and best.error == pytest.approx(3.5)


def test_independence_is_kept_where_no_iterate_beats_it(judged):
    best = judged([sides(-0.1)] * 10)
    assert best.sides is None and (best.gain, best.k, best.patience.progress) == (0.0, 0, False)
    assert best.error == pytest.approx(-0.7)  # of the best of them, for what is said of it


def test_the_last_iterate_is_announced(judged):
    iterates = iter([sides(1.0)] * 20)
    best = judged(iterates)
    assert best.k == 1 and not best.patience.progress  # all are equally good: the first one is kept
    assert len(list(iterates)) == 10


def test_iterates_that_run_out_while_improving_are_reported(judged):
    best = judged([sides(0.1), sides(0.2)])
    assert best.k == 2 and best.patience.progress


@pytest.mark.parametrize("gain", [np.nan, -np.inf])
def test_a_gain_that_is_not_finite_is_an_error(gain, judged):
    with pytest.raises(FloatingPointError, match="heldout_gain is not finite"):
        judged([sides(gain)])


def test_hidden_pairs_are_marked_where_counts_are_expected_and_look_empty_elsewhere(rng):
    """Of columns with 0.02 counts in a pair all do, of columns with one count none, whether they have counts or not."""
    Z = rng.poisson(np.repeat([0.02, 1.0], [90, 100]), (200, 190)).astype(float)
    seen, held_out = Table(sp.csr_array(Z)).hide(np.random.default_rng(0))
    gaps, kept = np.isnan(seen.Z.toarray()), np.nan_to_num(seen.Z.toarray())
    rest = sp.coo_array((held_out.z, (held_out.i, held_out.j)), shape=Z.shape).toarray()
    assert (kept + rest <= Z).all() and np.array_equal((kept + rest)[:, 90:], Z[:, 90:])
    rare, frequent = np.split(gaps, [90], axis=1)
    assert not rare.any() and frequent[rest[:, 90:] > 0].all()
    assert abs(frequent.mean() - 0.1) < 4 * np.sqrt(0.09 / frequent.size)
    assert abs((Z[gaps] == 0).mean() - np.exp(-1)) < 4 * np.sqrt(0.25 / gaps.sum())
    independent = np.outer(held_out.rows, held_out.columns) / held_out.rows.sum()
    for axis in (0, 1):  # of the pairs seen
        assert np.allclose(np.where(gaps, 0, independent).sum(axis=axis), kept.sum(axis=axis))
