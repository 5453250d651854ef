"""The words nearest to a word: by cosine, whatever the lengths of the embeddings."""

import numpy as np
import pytest
from samples import topics

from amptutorial import AMPEmbedding
from amptutorial.neighbours import nearest_words, normalise_rows, rate_coordinates

WORDS = np.array(["film", "movie", "tree", "forest", "nothing"])


def test_neighbours_are_those_of_the_smallest_angles(rng):
    angles = np.array([0.0, 0.2, 1.6, 1.1, 0.7])
    X = rng.uniform(0.1, 10, (5, 1)) * np.column_stack([np.cos(angles), np.sin(angles)])
    assert nearest_words(X, WORDS, "film", 4) == ["movie", "nothing", "forest", "tree"]
    assert nearest_words(X, WORDS, "forest", 2) == ["nothing", "tree"]


def test_a_word_without_embedding_is_near_to_none():
    X = np.array([[1.0, 0.0], [0.5, 0.1], [-1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    assert nearest_words(X, WORDS, "film", 4) == ["movie", "forest", "nothing", "tree"]
    assert np.array_equal(np.linalg.norm(normalise_rows(X), axis=1).round(12), [1, 1, 1, 1, 0])


def test_unknown_words_and_wrong_shapes_are_refused(rng):
    X = rng.standard_normal((5, 2))
    with pytest.raises(KeyError, match="'actor' is not in the vocabulary of 5 words"):
        nearest_words(X, WORDS, "actor")
    with pytest.raises(ValueError, match="X must have shape"):
        nearest_words(X[:4], WORDS, "film")


# Coordinates that follow from the rates alone


@pytest.fixture
def model(rng):
    """Return U, V, r_u, r_v with M of order one."""
    m, n, d = 40, 30, 3
    U, V = m**0.25 * rng.standard_normal((m, d)), rng.standard_normal((n, d)) * m**0.25
    return U, V, rng.uniform(0.2, 5, m), rng.uniform(0.2, 5, n)


def rates(U, V, r_u, r_v):
    return r_u[:, None] * np.exp(U @ V.T / np.sqrt(len(U))) * r_v


def test_inner_products_are_covariances_of_log_rates_without_their_weighted_means(model):
    R = rates(*model)
    p, q, L = R.sum(axis=1) / R.sum(), R.sum(axis=0) / R.sum(), np.log(R)
    C = L - (L @ q)[:, None] - p @ L + p @ L @ q
    X = rate_coordinates(*model)
    assert X.shape == (30, 3)
    assert np.allclose(X @ X.T, np.cov(C.T, aweights=p, ddof=0), rtol=1e-10, atol=1e-12)


def test_equal_rates_have_equal_coordinates(model, rng):
    U, V, r_u, r_v = model
    T = np.linalg.qr(rng.standard_normal((3, 3)))[0] * [0.2, 1, 5] @ np.linalg.qr(rng.standard_normal((3, 3)))[0]
    other_U, other_V = U @ T, V @ np.linalg.inv(T).T
    # a vector added to one side is absorbed by the biases of the other
    shift_u, shift_v = 3 * rng.standard_normal((2, 3))
    other_r_v = 7 * r_v * np.exp(-other_V @ shift_u / np.sqrt(40))
    other_U = other_U + shift_u
    other_r_u = r_u / 7 * np.exp(-other_U @ shift_v / np.sqrt(40))
    other = other_U, other_V + shift_v, other_r_u, other_r_v
    assert np.allclose(rates(*other), rates(*model), rtol=1e-11)

    X, Y = rate_coordinates(*model), rate_coordinates(*other)
    assert np.abs(X @ X.T - Y @ Y.T).max() < 1e-9
    words = np.array([f"w{j}" for j in range(30)])
    assert all(nearest_words(X, words, word, 29) == nearest_words(Y, words, word, 29) for word in words)
    assert any(nearest_words(V, words, word, 1) != nearest_words(other[1], words, word, 1) for word in words)


def test_isotropic_rows_leave_the_columns_as_they_are():
    # all signs: no mean, unit covariance, and the sum over the +-e_k of exp(u . v) is the same for every u
    U = np.array([[a, b] for a in (-1.0, 1.0) for b in (-1.0, 1.0)])
    V = np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 2.0], [0.0, -2.0]])
    assert np.allclose(rate_coordinates(U, V, np.ones(4), np.ones(4)), V / 2)  # sqrt(m) = 2


def test_rows_and_columns_without_rates_say_nothing(model):
    U, V, r_u, r_v = model
    without = np.delete(U, 7, axis=0) * (39 / 40) ** 0.25, np.delete(V, 4, axis=0) * (39 / 40) ** 0.25
    expected = rate_coordinates(*without, np.delete(r_u, 7), np.delete(r_v, 4))
    r_u[7] = r_v[4] = 0
    X = rate_coordinates(U, V, r_u, r_v)
    assert not X[4].any()
    assert np.allclose(np.delete(X, 4, axis=0), expected, rtol=1e-10, atol=1e-12)


def test_columns_with_the_log_rates_of_the_mean_have_no_direction(model):
    U, V, r_u, r_v = model
    X = rate_coordinates(U, 0 * V, r_u, r_v)
    assert X.shape == (30, 3) and not X.any()


def test_neighbours_in_a_fit_depend_little_on_its_balanced_coordinates_and_not_at_all_on_others(rng):
    corpus, _, _ = topics(rng, per_pair=3.0)
    fit = AMPEmbedding(2, random_state=0).fit(corpus.counts)
    U, V, biases, words = fit.embedding_, fit.components_.T, (fit.row_bias_, fit.column_bias_), corpus.vocabulary
    X, Y = rate_coordinates(U, V, *biases), rate_coordinates(U * [0.2, 5], V / [0.2, 5], *biases)
    near = {word: nearest_words(X, words, word) for word in words}
    assert near == {word: nearest_words(Y, words, word) for word in words}
    shared = [len({*near[word]} & {*nearest_words(V, words, word)}) for word in words]
    assert np.mean(shared) > 2.5  # of five; by chance, one of thirty


def test_bias_factors_that_are_all_zero_are_refused(model):
    with pytest.raises(ValueError, match="r_v is zero everywhere"):
        rate_coordinates(*model[:3], 0 * model[3])
