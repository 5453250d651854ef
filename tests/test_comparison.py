"""The comparison on real text: every method judged by the same likelihood, and none by counts it has seen."""

import os
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats

from amptutorial.bias import drop_empty, estimate_bias
from amptutorial.comparison import (
    METHODS,
    Exponential,
    Mixture,
    amp,
    chosen,
    compare_methods,
    exponential,
    largest_singular_values,
    mixture,
    positive_pmi,
    root_mean_square,
    score_moments,
    sentiment_accuracy,
    without_embedding,
)
from amptutorial.corpus import Corpus, load_movie_reviews
from amptutorial.heldout import heldout_gain, split_counts
from amptutorial.poisson import refit_biases
from amptutorial.reproduce import load_results
from amptutorial.score import FisherScore

CHOSEN = ("quadratic_refitted", "quadratic", "nmf", "svd_pmi", "svd_tfidf", "svd_counts")


def topics(rng, m=200, n=150, per_pair=1.0):
    """Return a corpus of three topics, M_ij of order one, labelled by the first coordinate of U, and its truth."""
    U, V = (1.3 * m**0.25 * rng.choice([-1.0, 0.0, 1.0], (size, 2)) for size in (m, n))
    r_u, r_v = rng.uniform(0.5, 1.5, m), per_pair * rng.uniform(0.5, 1.5, n)
    Z = sp.csr_array(rng.poisson(r_u[:, None] * r_v * np.exp(U @ V.T / np.sqrt(m))))
    Z, rows, columns = drop_empty(Z)
    vocabulary = np.array([f"w{j:03d}" for j in columns])
    return Corpus(Z, vocabulary, (U[rows, 0] > 0).astype(int)), U[rows], V[columns]


def poisson_gain(kept, held_out, rates):
    """The difference of two Poisson log-likelihoods in full, per held-out count."""
    kept, z = (part.toarray() for part in (kept, held_out))
    scale = z.sum() / kept.sum()
    independent = np.outer(kept.sum(axis=1), kept.sum(axis=0)) / kept.sum()
    logpmf = stats.poisson.logpmf
    return (logpmf(z, scale * rates) - logpmf(z, scale * independent)).sum() / z.sum()


def test_the_gain_of_a_mixture_is_that_of_the_poisson_likelihoods(rng):
    corpus, _, _ = topics(rng)
    kept, held_out = split_counts(corpus.counts, 0.2, rng)
    W, H = rng.exponential(size=(kept.shape[0], 3)), rng.exponential(size=(3, kept.shape[1]))
    kept, rows, columns = drop_empty(kept)
    held_out = held_out[rows][:, columns]
    W, H, total = W[rows], H[:, columns], kept.sum()
    independent = np.outer(kept.sum(axis=1), kept.sum(axis=0)) / total
    rates = 0.7 * W @ H * total / (W @ H).sum() + 0.3 * independent
    assert mixture(kept, W, H, 0.3).gain(kept, held_out) == pytest.approx(poisson_gain(kept, held_out, rates), rel=1e-9)


def test_a_mixture_leaves_out_what_was_not_seen_and_topics_that_are_empty():
    kept, held_out = np.array([[4, 2, 1], [2, 4, 1]]), np.array([[1, 1, 0], [2, 0, 3]])
    W, H = np.array([[1.0, 0.0], [2.0, 0.0]]), np.array([[1.0, 2.0, 1.0], [1.0, 1.0, 1.0]])
    rates = mixture(kept, W, H, 0.5)
    assert rates.U.shape == (2, 1)
    unseen = np.pad(kept, ((0, 1), (0, 0)))
    padded = Mixture(np.pad(rates.U, ((0, 1), (0, 0))), rates.V, rates.weights, rates.share)
    more = np.vstack([held_out, [5, 5, 5]])
    assert padded.gain(unseen, more) == pytest.approx(rates.gain(kept, held_out), rel=1e-12)


def test_topics_that_rule_out_what_happens_lose_without_bound_unless_mixed():
    Z = np.kron(np.eye(2), np.full((2, 2), 5.0))
    W, H = np.kron(np.eye(2), np.ones((2, 1))), 5 * np.kron(np.eye(2), np.ones((1, 2)))
    other = np.ones((4, 4))
    assert mixture(Z, W, H, 0.0).gain(Z, other) == -np.inf
    assert mixture(Z, W, H, 0.5).gain(Z, other) == pytest.approx((np.log(1.5) + np.log(0.5)) / 2)
    assert mixture(Z, W, H, 0.0).gain(Z, Z) == pytest.approx(np.log(2))


def test_exponential_rates_have_the_margins_of_the_counts(rng):
    corpus, U, V = topics(rng)
    Z = corpus.counts
    rates = exponential(Z, U, V, 20)
    dense = rates.r_u[:, None] * rates.r_v * np.exp(U @ V.T / np.sqrt(len(U)))
    for axis in (0, 1):
        assert np.abs(dense.sum(axis) - Z.sum(axis)).sum() < 1e-3 * Z.sum()
    kept, held_out = split_counts(Z, 0.2, rng)
    assert Exponential(U, V, *refit_biases(kept, U, V)).gain(kept, held_out) == heldout_gain(
        kept, held_out, U, V, *refit_biases(kept, U, V)
    )


def test_the_size_of_m_is_weighted_by_the_rates(rng):
    corpus, U, V = topics(rng)
    weights = np.outer(*estimate_bias(corpus.counts))
    M = U @ V.T / np.sqrt(len(U))
    expected = np.sqrt(np.average(M**2, weights=weights))
    assert root_mean_square(corpus.counts, U, V) == pytest.approx(expected, rel=1e-10)


def test_the_parameter_is_chosen_by_counts_that_were_set_aside(rng):
    """The one that predicts them best, not the one that fits best; then the method sees all counts."""
    corpus, U, V = topics(rng)
    seen = []

    def fit(counts, turns):
        seen.append(counts)
        assert counts.shape == corpus.counts.shape  # no row and no column is rare enough to be lost
        return lambda scale: exponential(counts, scale * U, V, turns)

    rates = chosen(fit, (0.0, 0.5, 1.0, 2.0, 4.0), corpus.counts, rng)
    training, everything = seen
    assert (everything != corpus.counts).nnz == 0
    assert training.sum() < 0.95 * corpus.counts.sum()
    assert np.allclose(rates.U, U)  # the truth: scale 1


@pytest.mark.parametrize("name", METHODS)
def test_every_method_finds_what_is_there(name):
    """A strong embedding of two coordinates: a good half of what the truth itself gains, and not more than it does.

    Four coordinates, because without signs, or without an exponential, it takes twice as many.
    """
    rng = np.random.default_rng(5)
    corpus, U, V = topics(rng)
    kept, held_out = split_counts(corpus.counts, 0.2, rng)
    kept, rows, columns = drop_empty(kept)
    held_out, U, V = held_out[rows][:, columns], U[rows], V[columns]
    truth = heldout_gain(kept, held_out, U, V, *refit_biases(kept, U, V))
    rates = METHODS[name](kept, 4, np.random.default_rng(1))
    assert 0.6 * truth < rates.gain(kept, held_out) < truth
    assert (len(rates.U), len(rates.V)) == kept.shape


@pytest.mark.parametrize("name", CHOSEN)
def test_nothing_is_gained_where_nothing_is(name):
    """Independent counts: a gain above chance would mean that held-out counts were seen.

    The gain is a mean of log-ratios of spread below 0.7 over about 6,000 counts: 4 standard errors are 0.036.
    """
    rng = np.random.default_rng(6)
    Z = sp.csr_array(rng.poisson(1.0, (200, 150)))
    kept, held_out = split_counts(Z, 0.2, rng)
    assert METHODS[name](kept, 2, np.random.default_rng(1)).gain(kept, held_out) < 0.036


def test_positive_pmi_is_that_of_the_dense_formula(rng):
    Z = topics(rng)[0].counts
    dense = Z.toarray()
    with np.errstate(divide="ignore"):
        pmi = np.log(dense * dense.sum() / np.outer(dense.sum(axis=1), dense.sum(axis=0)))
    assert np.allclose(positive_pmi(Z).toarray(), np.maximum(pmi, 0))


def test_moments_of_the_score_are_those_of_the_dense_score(rng):
    Z = topics(rng)[0].counts
    Y = FisherScore(Z, *estimate_bias(Z)).toarray().ravel()
    assert score_moments(Z) == pytest.approx((Y.var(), stats.kurtosis(Y, fisher=False)), rel=1e-9)


def test_largest_singular_values_leave_out_what_is_empty(rng):
    Z = topics(rng)[0].counts.toarray()
    expected = np.linalg.svd(FisherScore(Z, *estimate_bias(Z)).toarray(), compute_uv=False)[:5]
    padded = sp.csr_array(np.pad(Z, ((0, 2), (1, 0))))
    assert np.allclose(largest_singular_values(padded, 5), expected)


def test_the_control_has_the_frequencies_and_no_embedding(rng):
    corpus, _, _ = topics(rng, per_pair=4.0)
    Z = corpus.counts
    control = without_embedding(Z, rng)
    for axis in (0, 1):
        sums = Z.sum(axis)
        assert np.mean((control.sum(axis) - sums) ** 2 / sums) == pytest.approx(1, abs=4 * np.sqrt(2 / len(sums)))
    # for Poisson counts of variance one the variance of the score is 1, up to margins and chance; of topics it is not
    assert abs(score_moments(control)[0] - 1) < 0.05 < 0.5 < score_moments(Z)[0] - 1


def test_the_probe_knows_nothing_of_labels_at_random_and_all_of_a_feature(rng):
    features, labels = rng.standard_normal((2000, 3)), rng.integers(0, 2, 2000)
    assert abs(sentiment_accuracy(features, labels, rng) - 0.5) < 4 * np.sqrt(0.25 / 2000)
    assert sentiment_accuracy(features, (features[:, 1] > 0).astype(int), rng) > 0.97


def test_a_comparison_is_told_by_dimension_and_repeats_itself():
    def run():
        rng = np.random.default_rng(3)
        corpus, _, _ = topics(rng)
        words = corpus.vocabulary[:2]
        return compare_methods(corpus, rng, methods={"amp": amp}, dimensions=(1, 2), words=words)

    first, second = run(), run()
    assert set(first) == {"amp_gain", "amp_sentiment", "amp_words", "amp_seconds"}
    assert np.shape(first["amp_words"]) == (2, 2, 5)
    assert first["amp_gain"][1] > first["amp_gain"][0] > 0  # two coordinates are there
    assert first["amp_sentiment"][1] > 0.9
    for key in ("amp_gain", "amp_sentiment", "amp_words"):
        assert first[key] == second[key]


def test_a_comparison_asks_for_labels(rng):
    corpus, _, _ = topics(rng)
    with pytest.raises(ValueError, match="no labels"):
        compare_methods(replace(corpus, labels=None), rng)


# The stored results


def test_amp_predicts_reviews_better_than_every_other_method():
    """In each choice of reviews; and each mean of paired differences exceeds 4 of its standard errors.

    The plain quadratic has none: where the sum of its rates explodes, one instance outweighs all others.
    """
    stored = load_results("text")["instances"]
    for name in set(METHODS) - {"amp"}:
        difference = stored["amp_gain"] - stored[f"{name}_gain"]
        error = difference.std(axis=0, ddof=1) / np.sqrt(len(difference))
        assert (difference > 0).all(), name
        assert name == "quadratic" or (difference.mean(axis=0) > 4 * error).all(), name


def test_amp_takes_a_fraction_of_the_time_of_the_minimiser():
    stored = load_results("text")["instances"]
    assert (stored["lbfgs_seconds"] > 3 * stored["amp_seconds"]).all()


@pytest.mark.slow
@pytest.mark.reviews
@pytest.mark.skipif(not os.environ.get("AMPTUTORIAL_DATA"), reason="AMPTUTORIAL_DATA does not name the movie reviews")
def test_the_stored_gain_is_what_a_fit_gives():
    """To the third digit: AMP computes in single precision, and stops by a comparison."""
    corpus, stored = load_movie_reviews(), load_results("text")["instances"]
    methods = {name: METHODS[name] for name in ("amp", "svd_pmi")}
    rng = np.random.default_rng([0, len(corpus.labels)])
    found = compare_methods(corpus, rng, methods=methods, dimensions=(10,), words=())
    for name in methods:
        assert found[f"{name}_gain"][0] == pytest.approx(stored[f"{name}_gain"][0, 0], abs=0.002)
