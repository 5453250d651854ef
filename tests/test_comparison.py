"""The comparison on real text, what the counts themselves show, and the stored results of both."""

import os
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from samples import topics
from scipy import stats

from amptutorial.bias import estimate_bias
from amptutorial.comparison import (
    compare_methods,
    largest_singular_values,
    reviews_instance,
    score_moments,
    sentiment_accuracy,
    without_embedding,
)
from amptutorial.corpus import load_movie_reviews
from amptutorial.methods import METHODS, amp
from amptutorial.reproduce import load_results
from amptutorial.score import FisherScore


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


needs_reviews = pytest.mark.skipif(
    not os.environ.get("AMPTUTORIAL_DATA"), reason="AMPTUTORIAL_DATA does not name the movie reviews"
)


@pytest.mark.slow
@pytest.mark.reviews
@needs_reviews
def test_the_stored_gain_is_what_a_fit_gives():
    """To the third digit: AMP computes in single precision, and stops by a comparison."""
    corpus, stored = load_movie_reviews(), load_results("text")["instances"]
    methods = {name: METHODS[name] for name in ("amp", "svd_pmi")}
    rng = np.random.default_rng([0, len(corpus.labels)])
    found = compare_methods(corpus, rng, methods=methods, dimensions=(10,), words=())
    for name in methods:
        assert found[f"{name}_gain"][0] == pytest.approx(stored[f"{name}_gain"][0, 0], abs=0.002)


@pytest.mark.slow
@pytest.mark.reviews
@needs_reviews
def test_the_stored_reviews_are_what_a_fit_gives():
    """To the third digit of the gain; of the words, round-off may exchange two neighbours of like distance."""
    stored = load_results("reviews")["instances"]
    fitted = reviews_instance(0)
    assert fitted["gain"] == pytest.approx(stored["gain"][0], abs=0.005)
    for key in ("m", "n", "nonzeros", "d", "words"):
        assert np.array_equal(fitted[key], stored[key][0])
    for near, again in zip(stored["nearest"][0], fitted["nearest"], strict=True):
        assert len(set(near) & set(again)) >= 3
