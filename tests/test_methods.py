"""Methods on counts of words: every one judged by the same likelihood, and none by counts it has seen."""

import numpy as np
import pytest
import scipy.sparse as sp
from samples import topics
from scipy import stats

from amptutorial.bias import drop_empty, estimate_bias
from amptutorial.heldout import heldout_gain, split_counts
from amptutorial.methods import (
    METHODS,
    Exponential,
    Mixture,
    choose_by_validation,
    fit_exponential,
    mixture_of_topics,
    positive_pmi,
    root_mean_square,
)
from amptutorial.poisson import refit_biases

CHOSEN = ("quadratic_refitted", "quadratic", "nmf", "svd_pmi", "svd_tfidf", "svd_counts")


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
    assert mixture_of_topics(kept, W, H, 0.3).gain(kept, held_out) == pytest.approx(
        poisson_gain(kept, held_out, rates), rel=1e-9
    )


def test_a_mixture_leaves_out_what_was_not_seen_and_topics_that_are_empty():
    kept, held_out = np.array([[4, 2, 1], [2, 4, 1]]), np.array([[1, 1, 0], [2, 0, 3]])
    W, H = np.array([[1.0, 0.0], [2.0, 0.0]]), np.array([[1.0, 2.0, 1.0], [1.0, 1.0, 1.0]])
    rates = mixture_of_topics(kept, W, H, 0.5)
    assert rates.U.shape == (2, 1)
    unseen = np.pad(kept, ((0, 1), (0, 0)))
    padded = Mixture(np.pad(rates.U, ((0, 1), (0, 0))), rates.V, rates.weights, rates.share)
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

    def fit(counts, n_sweeps):
        seen.append(counts)
        assert counts.shape == corpus.counts.shape  # no row and no column is rare enough to be lost
        return lambda scale: fit_exponential(counts, scale * U, V, n_sweeps)

    rates = choose_by_validation(fit, (0.0, 0.5, 1.0, 2.0, 4.0), corpus.counts, rng)
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
