"""Methods on counts of words: every one judged by the same likelihood, and none by counts it has seen."""

import numpy as np
import pytest
import scipy.sparse as sp
from samples import topics
from scipy import stats
from scipy.special import digamma

from amptutorial.bias import drop_empty, estimate_bias
from amptutorial.biases import refit_biases
from amptutorial.denoisers import GaussianPosterior
from amptutorial.heldout import held_out_pairs, heldout_gain, hold_out, split_counts, split_pairs
from amptutorial.score import FisherScore
from studies.text import rates, topic_models
from studies.text.meaning import METHODS as OF_MEANING
from studies.text.methods import LINKED, at_best_size
from studies.text.methods import METHODS as COMPARED
from studies.text.minimisers import _burst_loss, _by_frequency, _lbfgs_path, _sampled_factors
from studies.text.rates import EITHER, Exponential, _Mixture, choose, climb, fit_exponential, mixture_of_topics
from studies.text.rivals import _capped, _positive_pmi, _WithoutOnsager, correspondence_analysis
from studies.text.topic_models import _variational_factors


def poisson_gain(kept, held_out, rates):
    """The difference of two Poisson log-likelihoods in full, per held-out count."""
    kept, z = (part.toarray() for part in (kept, held_out))
    scale = z.sum() / kept.sum()
    independent = np.outer(kept.sum(axis=1), kept.sum(axis=0)) / kept.sum()
    logpmf = stats.poisson.logpmf
    return (logpmf(z, scale * rates) - logpmf(z, scale * independent)).sum() / z.sum()


def dense_rates(mixture, kept):
    """Return the rates of a mixture as an array."""
    independent = np.outer(kept.sum(axis=1), kept.sum(axis=0)) / kept.sum()
    ratios = mixture.U @ np.diag(1 / mixture.weights) @ mixture.V.T
    return independent * ((1 - mixture.share) * ratios + mixture.share)


def test_the_gain_of_a_mixture_is_that_of_the_poisson_likelihoods(rng):
    kept, held_out, _, _ = kept_and_held_out(rng)
    W, H = rng.exponential(size=(kept.shape[0], 3)), rng.exponential(size=(3, kept.shape[1]))
    mixture = mixture_of_topics(kept, W, H, 0.3)
    expected = poisson_gain(kept, held_out, dense_rates(mixture, kept))
    assert mixture.gain(kept, held_out) == pytest.approx(expected, rel=1e-9)


def test_a_mixture_leaves_out_what_was_not_seen_and_topics_that_are_empty():
    kept, held_out = np.array([[4, 2, 1], [2, 4, 1]]), np.array([[1, 1, 0], [2, 0, 3]])
    W, H = np.array([[1.0, 0.0], [2.0, 0.0]]), np.array([[1.0, 2.0, 1.0], [1.0, 1.0, 1.0]])
    rates = mixture_of_topics(kept, W, H, 0.5)
    assert rates.U.shape == (2, 1)
    unseen = np.pad(kept, ((0, 1), (0, 0)))
    padded = _Mixture(np.pad(rates.U, ((0, 1), (0, 0))), rates.V, rates.weights, rates.share)
    more = np.vstack([held_out, [5, 5, 5]])
    assert padded.gain(unseen, more) == pytest.approx(rates.gain(kept, held_out), rel=1e-12)


def test_topics_that_rule_out_what_happens_lose_without_bound_unless_mixed():
    Z = np.kron(np.eye(2), np.full((2, 2), 5.0))
    W, H = np.kron(np.eye(2), np.ones((2, 1))), 5 * np.kron(np.eye(2), np.ones((1, 2)))
    other = np.ones((4, 4))
    assert mixture_of_topics(Z, W, H, 0.0).gain(Z, other) == -np.inf
    assert mixture_of_topics(Z, W, H, 0.5).gain(Z, other) == pytest.approx((np.log(1.5) + np.log(0.5)) / 2)
    assert mixture_of_topics(Z, W, H, 0.0).gain(Z, Z) == pytest.approx(np.log(2))


def test_exponential_rates_have_the_margins_of_the_counts(rng):
    corpus, U, V = topics(rng)
    Z = corpus.counts
    rates = fit_exponential(Z, U, V, 20)
    dense = rates.r_u[:, None] * rates.r_v * np.exp(U @ V.T / np.sqrt(len(U)))
    for axis in (0, 1):
        assert np.abs(dense.sum(axis) - Z.sum(axis)).sum() < 1e-3 * Z.sum()
    kept, held_out = split_counts(Z, 0.2, rng)
    biases = refit_biases(kept, U, V)
    gain = heldout_gain(kept, held_out, U, V, *biases)
    # the excess is subtracted here before the mean and there after it, which differs by round-off
    assert Exponential(U, V, *biases).gain(kept, held_out) == pytest.approx(gain, rel=1e-12, abs=0)


def test_the_size_of_m_is_weighted_by_the_rates(rng):
    corpus, U, V = topics(rng)
    weights = np.outer(*estimate_bias(corpus.counts))
    M = U @ V.T / np.sqrt(len(U))
    expected = np.sqrt(np.average(M**2, weights=weights))
    assert rates.root_mean_square(corpus.counts, U, V) == pytest.approx(expected, rel=1e-10)


def test_the_settings_are_chosen_by_pairs_that_were_set_aside(rng):
    """Those that predict them best, not those that fit best; then the method sees all counts."""
    corpus, U, V = topics(rng)
    seen = []

    def fit(counts, table, n_sweeps):
        seen.append((counts, table))
        assert counts.shape == corpus.counts.shape  # no row and no column is rare enough to be lost
        return lambda scale: fit_exponential(counts, scale * U, V, n_sweeps)

    chosen = choose(fit, {"scale": (0.0, 0.5, 1.0, 2.0, 4.0)}, corpus.counts, rng)
    (training, same), (_, damped), (everything, _) = seen
    assert (everything != corpus.counts).nnz == 0 and training is same
    harmonic = [sum(1 / k for k in range(1, int(z) + 1)) if z >= 0 else np.nan for z in training.data]
    assert np.allclose(damped.data, harmonic, equal_nan=True) and np.isnan(harmonic).any()
    assert 0.85 < (training.data > 0).sum() / corpus.counts.nnz < 0.95
    kept = training.toarray()
    assert np.array_equal(kept[kept > 0], corpus.counts.toarray()[kept > 0])  # pairs are kept whole
    assert np.allclose(chosen.U, U) and chosen.chosen["scale"] == 1  # the truth


def test_some_rows_of_a_large_table_choose_and_all_are_fitted(rng, monkeypatch):
    monkeypatch.setattr(rates, "TUNING_ROWS", 25)
    corpus, U, V = topics(rng)
    shapes = []

    def fit(counts, table, n_sweeps):
        shapes.append(counts.shape)
        few = slice(counts.shape[0]), slice(counts.shape[1])
        return lambda scale: fit_exponential(counts, scale * U[few[0]], V[few[1]], n_sweeps)

    choose(fit, {"scale": (0.0, 1.0)}, corpus.counts, rng)
    assert [m for m, _ in shapes] == [25, 25, len(U)]


def test_settings_climb_to_the_highest_gain_and_stay_in_their_grids():
    def gain(x, y):
        return -((x - 4) ** 2) - (y - x) ** 2

    assert climb(gain, {"x": range(9), "y": range(9)}) == ({"x": 4, "y": 4}, 0)
    assert climb(gain, {"x": (5, 6, 7), "y": (1, 2)}) == ({"x": 5, "y": 2}, -10)


def test_settings_that_overflow_gain_nothing_and_are_not_chosen(rng):
    corpus, U, V = topics(rng)

    def fit(counts, table, n_sweeps):
        return lambda scale: Exponential(scale * U, V, *refit_biases(counts, U, V))

    assert choose(fit, {"scale": (1.0, 1e4, 1e6)}, corpus.counts, rng).chosen["scale"] == 1.0


def kept_and_held_out(rng, split=split_counts):
    """Return a corpus split count by count, and its truth."""
    corpus, U, V = topics(rng)
    kept, held_out, rows, columns = hold_out(corpus.counts, 0.2, rng, split)
    return kept, held_out, U[rows], V[columns]


def needs_library(name):
    """Skip the method whose library is optional where it is not installed."""
    if name == "skip_gram":
        pytest.importorskip("gensim")


METHODS = COMPARED | LINKED | OF_MEANING
WITHOUT_VECTORS = {"neighbours", "word_walk"}
# Each takes some; the formulas of most are compared with dense ones below, or are those of one that is quick.
SECONDS = {"nmf", "skip_gram", "lda", "lbfgs", "lbfgs_bursts", "lbfgs_amp_ridge", "lbfgs_amp_prior", "gamma_poisson"}
SECONDS |= {"amp_given_prior", "amp_counted_biases", "amp_neighbours", "correspondence"}
SAME = {"amp_counts", "lbfgs_counts", "lbfgs_one_ridge"}  # as others, with fewer choices
every_method = pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name in SECONDS else ()) for name in METHODS if name not in SAME],
)


@every_method
def test_every_method_finds_what_is_there(name):
    """A strong embedding of two coordinates: a good half of what the truth itself gains, and not more than it does.

    Four coordinates, because without signs, or without an exponential, it takes twice as many.
    """
    needs_library(name)
    kept, held_out, U, V = kept_and_held_out(np.random.default_rng(5))
    truth = heldout_gain(kept, held_out, U, V, *refit_biases(kept, U, V))
    rates = METHODS[name](kept, 4, np.random.default_rng(1))
    assert 0.5 * truth < rates.gain(kept, held_out) < truth
    assert name in WITHOUT_VECTORS or (len(rates.U), len(rates.V)) == kept.shape
    sizes = {"scale", "steps", "share", "shape", "deviation", "epochs"}
    ends = {key for key, value in rates.chosen.items() if str(value).endswith("*")}
    assert not ends & sizes, rates.chosen


@every_method
def test_nothing_is_gained_where_nothing_is(name):
    """Independent counts: a gain above chance would mean that held-out counts were seen.

    The gain is a mean of log-ratios of spread below 0.7 over about 6,000 counts: 4 standard errors are 0.036.
    """
    needs_library(name)
    rng = np.random.default_rng(6)
    Z = sp.csr_array(rng.poisson(1.0, (200, 150)))
    kept, held_out = split_counts(Z, 0.2, rng)
    assert METHODS[name](kept, 2, np.random.default_rng(1)).gain(kept, held_out) < 0.036


@pytest.mark.parametrize("shift, smoothing", [(0.0, 1.0), (0.7, 0.75)])
def test_positive_pmi_is_that_of_the_dense_formula(rng, shift, smoothing):
    """Levy, Goldberg and Dagan's: log P(i, j) / (P(i) P_smoothed(j)), less the shift."""
    Z = topics(rng)[0].counts
    dense = Z.toarray()
    smooth = dense.sum(axis=0) ** smoothing
    with np.errstate(divide="ignore"):
        pmi = np.log(dense / np.outer(dense.sum(axis=1), smooth / smooth.sum())) - shift
    assert np.allclose(_positive_pmi(Z, shift, smoothing).toarray(), np.maximum(pmi, 0))


def test_topics_have_the_margins_of_the_counts_whatever_they_were_fitted_to(rng):
    kept, _, _, _ = kept_and_held_out(rng)
    W, H = rng.exponential(size=(kept.shape[0], 3)), rng.exponential(size=(3, kept.shape[1]))
    dense = dense_rates(mixture_of_topics(kept, W, H, 0.3), kept)
    assert np.allclose(dense.sum(axis=1), kept.sum(axis=1), rtol=1e-4)
    assert np.allclose(dense.sum(axis=0), kept.sum(axis=0), rtol=1e-4)


def value_of(chosen):
    """Return a chosen number without the star that says that it is at an end of its grid."""
    return float(str(chosen).rstrip("*"))


def test_a_score_with_large_entries_cut_off_is_what_it_says(rng):
    Z = sp.csr_array(topics(rng)[0].counts)
    biases = estimate_bias(Z)
    before, after = (FisherScore(T, *biases).toarray() for T in (Z, _capped(Z, *biases, 2.0)))
    here = Z.toarray() > 0
    assert (before[here] > 2).any() and np.allclose(after[here], np.minimum(before[here], 2))
    assert np.allclose(after[~here], before[~here])


def test_without_the_onsager_term_the_posterior_mean_is_the_same_and_nothing_is_subtracted(rng):
    P, r = rng.standard_normal((50, 2)), rng.uniform(0.5, 2, 50)
    one, other = (kind(3.0, learn=True).refit(P, r, np.eye(2)) for kind in (GaussianPosterior, _WithoutOnsager))
    assert isinstance(other, _WithoutOnsager) and np.allclose(one.covariance, other.covariance)
    estimate, jacobian = other.denoise(P, r, np.eye(2))
    assert np.allclose(estimate, one.estimate(P, r, np.eye(2))) and not jacobian.any()


@pytest.mark.parametrize("method", [METHODS["quartic_target"], correspondence_analysis])
def test_decompositions_are_those_of_the_dense_formulas(method, rng):
    """Of (Z - E) / ((Z + E) / 2), and of (Z - E) / sqrt(E), times that root again, with E that of independence.

    The table has no repetitions, so the damped one is the same.
    """
    Z = sp.csr_array(np.minimum(kept_and_held_out(rng)[0].toarray(), 1.0))
    rates = method(Z, 3, rng)
    dense = Z.toarray()
    expected = np.outer(dense.sum(axis=1), dense.sum(axis=0)) / dense.sum()
    root = np.sqrt(expected) if method is correspondence_analysis else 1.0
    left, sigma, right = np.linalg.svd((dense - expected) / (root if np.ndim(root) else (dense + expected) / 2))
    M = (left[:, :3] * sigma[:3] ** value_of(rates.chosen["power"])) @ right[:3] / root
    M *= value_of(rates.chosen["scale"]) / np.sqrt(np.average(M**2, weights=expected))
    assert np.allclose(rates.U @ rates.V.T / np.sqrt(len(dense)), M, atol=1e-4)


@pytest.mark.parametrize("split", [split_counts, split_pairs])
def test_the_minimum_of_the_poisson_loss_has_the_margins_and_balances_the_ridge(rng, split):
    """Its derivatives by the biases and by X vanish: sums of rates, and (Z - rates) Y = ridge * X, without gaps."""
    Z, _, _, _ = kept_and_held_out(rng, split)
    gaps = np.isnan(Z.toarray())
    assert gaps.any() == (split is split_pairs)
    ridges = _by_frequency(Z, 15.0, 8.0, 2)
    sums = (np.nansum(Z.toarray(), axis) for axis in (1, 0))
    ridge_X, ridge_Y = (15 + 8 * (each / each.mean())[:, None] for each in sums)
    X, Y = (0.3 * rng.standard_normal((size, 2)) for size in Z.shape)
    *_, (X, Y) = _lbfgs_path(Z, X, Y, *ridges)
    fitted = fit_exponential(Z, *(len(X) ** 0.25 * E for E in (X, Y)), 100)
    rates = fitted.r_u[:, None] * fitted.r_v * np.exp(X @ Y.T)
    residual, Z = np.where(gaps, 0, Z.toarray() - rates), np.nan_to_num(Z.toarray())
    assert np.abs(X).max() > 0.1
    assert np.abs(residual @ Y - ridge_X * X).max() < 0.01 * np.abs(Z @ Y).max()
    assert np.abs(residual.T @ X - ridge_Y * Y).max() < 0.01 * np.abs(Z.T @ X).max()


def test_the_loss_of_bursts_is_the_negative_binomial_likelihood_and_its_slopes(rng):
    """SciPy's, over the pairs that are no gaps, up to a constant; slopes by central differences."""
    Z, gaps = rng.poisson(1.5, (7, 5)).astype(float), rng.random((7, 5)) < 0.2
    Z[gaps] = 0
    parts = [rng.standard_normal(shape) for shape in ((7, 2), (5, 2), 5, 7)]

    def loss(X, Y, b, a):
        means = np.exp(a[:, None] + b + X @ Y.T)
        return -stats.nbinom.logpmf(Z, 0.7, 0.7 / (0.7 + means))[~gaps].sum()

    def found(X, Y, b, a):
        return _burst_loss(sp.csr_array(Z), X, Y, b, a, sp.csr_array(gaps, dtype=float), 0.7)

    others = [0.5 * part for part in parts]
    assert found(*parts)[0] - found(*others)[0] == pytest.approx(loss(*parts) - loss(*others), rel=1e-5)
    for k, slopes in enumerate(found(*parts)[1:]):
        step = np.zeros_like(parts[k])
        step.flat[-1] = 1e-4
        both = (loss(*parts[:k], parts[k] + sign * step, *parts[k + 1 :]) for sign in (1, -1))
        assert slopes.flat[-1] == pytest.approx(np.subtract(*both) / 2e-4, rel=1e-4)


def test_the_size_is_that_of_the_largest_own_gain_up_or_down(rng):
    """From the second size on, as long as the next one gains more."""
    asked = []

    def method(peak):
        def fit(kept, d, rng):
            asked.append(d)
            return Exponential(*(np.ones((2, d)), np.ones((2, d)), np.ones(2), np.ones(2)), {}, -abs(d - peak))

        return fit

    for peak, wanted, tried in (
        (20, 20, [10, 20, 30]),
        (4, "5*", [10, 20, 5]),
        (900, "400*", [10, 20, 30, 60, 100, 200, 400]),
    ):
        assert at_best_size(method(peak), None, rng).chosen["d"] == wanted and asked == tried
        asked.clear()


def test_a_method_that_knows_no_gaps_is_told_zeros_or_what_independence_expects():
    table = sp.csr_array(np.array([[1.0, 2.0], [3.0, np.nan]]))
    zeros, filled = (EITHER[name](table).toarray() for name in ("counts with zeros", "counts"))
    assert np.allclose(zeros, [[1, 2], [3, 0]]) and np.allclose(filled, [[1, 2], [3, 6]])


def test_variational_factors_are_those_of_the_dense_formulas(rng, monkeypatch):
    """Every count is shared out by topic, z phi_k with phi_k ~ exp(E log theta_k + E log beta_k)."""
    monkeypatch.setattr(topic_models, "SWEEPS", 4)
    Z, shape, d, seen = rng.poisson(1.0, (7, 5)) + 1.0, 0.7, 2, np.ones((7, 5))
    seen[2, 3] = seen[4, 0] = 0
    Z[seen == 0] = np.nan
    theta, beta = _variational_factors(sp.csr_array(Z), d, shape, np.random.default_rng(0))
    start = np.random.default_rng(0)
    mean = [start.gamma(100, 0.01, (size, d)) / np.sqrt(d) for size in Z.shape]
    log_mean = [np.log(E) for E in mean]
    exposure = np.outer(*estimate_bias(Z)) * seen
    Z = np.nan_to_num(Z)
    for _ in range(4):
        for side, other, axes in ((0, 1, "ijk->ik"), (1, 0, "ijk->jk")):
            phi = np.exp(log_mean[0][:, None] + log_mean[1])
            phi /= phi.sum(axis=2, keepdims=True)
            shapes = shape + np.einsum(axes, Z[:, :, None] * phi)
            rates = shape * np.sqrt(d) + (exposure if side == 0 else exposure.T) @ mean[other]
            mean[side], log_mean[side] = shapes / rates, digamma(shapes) - np.log(rates)
    assert np.allclose(theta, mean[0]) and np.allclose(beta, mean[1])


@pytest.mark.slow
def test_damped_counts_are_chosen_where_counts_come_in_bursts(rng):
    """The rate of every pair is multiplied by a gamma variable of mean 1 and variance 10."""
    _, U, V = topics(rng, m=400, n=300)
    rates = 0.3 * np.exp(U @ V.T / np.sqrt(400)) * rng.gamma(0.1, 10, (len(U), len(V)))
    Z, _, _ = drop_empty(sp.csr_array(rng.poisson(rates)))
    assert METHODS["svd_pmi"](Z, 2, rng).chosen["table"] == "damped"
    assert METHODS["lbfgs"](Z, 2, rng).chosen["table"] == "damped"


def test_the_gain_is_the_mean_of_the_log_ratios(rng):
    """Rates that are too large everywhere are seen in every log-ratio."""
    kept, held_out, U, V = kept_and_held_out(rng)
    r_u, r_v = refit_biases(kept, U, V)
    pairs = held_out_pairs(kept, held_out)
    right, doubled = (Exponential(U, V, r_u, k * r_v) for k in (1, 2))
    assert np.allclose(doubled.log_ratios(pairs) - right.log_ratios(pairs), np.log(2) - 1)
    assert right.gain(kept, held_out) == pytest.approx(pairs.mean(right.log_ratios(pairs)))


def test_skip_gram_gives_each_row_and_column_its_own_factor_the_same_each_time():
    """Two blocks: inside them the products are larger. A row of more words than gensim reads at once counts whole."""
    pytest.importorskip("gensim")
    Z = np.kron(np.array([[6.0, 0.5], [0.5, 6.0]]), np.ones((8, 5)))
    Z[0, :5] = 3000
    X, Y = _sampled_factors(sp.csr_array(Z), 2, np.random.default_rng(0), epochs=40, negative=5)
    again = _sampled_factors(sp.csr_array(Z), 2, np.random.default_rng(0), epochs=40, negative=5)
    assert np.array_equal(X, again[0]) and np.array_equal(Y, again[1])
    products = X @ Y.T
    assert products.shape == Z.shape
    products = products - products.mean(axis=1, keepdims=True) - products.mean(axis=0)  # terms of i or j
    inside = np.kron(np.eye(2), np.ones((8, 5))).astype(bool)
    assert products[inside].min() > products[~inside].max()
