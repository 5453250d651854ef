"""The words nearest to a word: by cosine, whatever the lengths of the embeddings."""

import numpy as np
import pandas as pd
import pytest
from samples import topics
from sklearn.feature_extraction.text import CountVectorizer

from amptutorial import AMPEmbedding, AMPWarning
from amptutorial.neighbours import nearest_words, normalise_rows, principal_coordinates, rate_coordinates

WORDS = np.array(["film", "movie", "tree", "forest", "nothing"])


def test_neighbours_are_those_of_the_smallest_angles(rng):
    angles = np.array([0.0, 0.2, 1.6, 1.1, 0.7])
    X = rng.uniform(0.1, 10, (5, 1)) * np.column_stack([np.cos(angles), np.sin(angles)])
    assert nearest_words(X, WORDS, "film", 4) == ["movie", "nothing", "forest", "tree"]
    assert nearest_words(X, WORDS, "forest", 2) == ["nothing", "tree"]


def test_a_word_without_embedding_is_near_to_none():
    X = np.array([[1.0, 0.0], [0.5, 0.1], [-1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    assert nearest_words(X, WORDS, "film", 9) == ["movie", "forest", "tree"]
    assert np.array_equal(np.linalg.norm(normalise_rows(X), axis=1).round(12), [1, 1, 1, 1, 0])
    with pytest.warns(AMPWarning, match="'nothing' has no embedding"):
        assert nearest_words(X, WORDS, "nothing") == []


@pytest.mark.parametrize("k", [1, 4, 5, 10**6])
def test_a_word_is_not_its_own_neighbour_however_many_are_asked_for(k):
    assert nearest_words(np.eye(5), WORDS, "tree", k) == ["film", "movie", "forest", "nothing"][:k]


@pytest.mark.parametrize("scale", [1e-300, 1e-5, 1e300])
def test_neighbours_do_not_depend_on_the_unit(scale, rng):
    X = rng.standard_normal((5, 3))
    assert nearest_words(scale * X, WORDS, "tree") == nearest_words(X, WORDS, "tree")


def test_rare_words_are_no_neighbours():
    X, counts = np.array([[1.0, 0.0], [1.0, 0.1], [1.0, 0.2], [1.0, 0.3], [0.0, 0.0]]), [90, 4, 5, 20, 50]
    assert nearest_words(X, WORDS, "film", counts=counts) == ["tree", "forest"]
    assert nearest_words(X, WORDS, "film", counts=counts, min_count=6) == ["forest"]
    with pytest.warns(AMPWarning, match="'movie' occurs .* times, less than min_count"):
        assert nearest_words(X, WORDS, "movie", counts=counts) == []
    with pytest.warns(AMPWarning, match="'film' occurs .* times"):  # its row has a zero, and is not zero
        assert nearest_words(X, WORDS, "film", counts=[4, *counts[1:]]) == []
    with pytest.raises(ValueError, match="counts must have shape"):
        nearest_words(X, WORDS, "film", counts=counts[:3])


def test_a_vocabulary_is_read_by_position():
    X, words = np.array([[1, 0.1], [0, 1.0], [1, 0]]), ["film", "tree", "movie"]
    given = [words, iter(words), pd.Index(words), pd.Categorical(words), pd.Series(words, index=[2, 1, 0])]
    for vocabulary in (*given, dict.fromkeys(words).keys(), np.array(words), np.array(words, dtype=object)):
        assert nearest_words(X, vocabulary, "film", 1) == ["movie"]


def test_what_is_no_vocabulary_and_unknown_words_are_refused_with_a_reason():
    # the order of a dictionary is that of the first text, not that of the rows
    tables = pd.DataFrame({"a": ["x"], "b": ["y"], "c": ["z"]}), np.array([["a"], ["b"], ["c"]])
    for vocabulary in ("abc", b"abc", {"a", "b", "c"}, {"c": 2, "a": 0, "b": 1}, *tables, None):
        with pytest.raises(TypeError, match=f"of type {type(vocabulary).__name__}"):
            nearest_words(np.eye(3), vocabulary, "a")
    for vocabulary, word, text in (
        (CountVectorizer(), "a", r"of type CountVectorizer.* get_feature_names_out\(\)"),
        (["a", None, "c"], "a", r"vocabulary\[1\] is None; expected a str"),
        (np.array([b"a", b"b", b"c"]), "a", r"vocabulary\[0\] is .*b'a'.*; expected a str"),
        (["a", "b", "a"], "a", "'a' stands in the vocabulary twice, at 0 and 2"),
        (["a", "b"], "a", r"X must have shape \(2, any\)"),
        (["a", "b", "c"], "d", "'d' is not in the vocabulary of 3 words"),
        (["a", "b", "c"], ["a", "b"], "ask for one at a time"),
    ):
        with pytest.raises((TypeError, ValueError, KeyError), match=text):
            nearest_words(np.eye(3), vocabulary, word)


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
    # and principal coordinates are the singular vectors of the same, in the metric of the shares
    rows, columns, shares = principal_coordinates(*model)
    squares = np.linalg.svd(np.sqrt(p)[:, None] * C * np.sqrt(q), compute_uv=False)[:3] ** 2
    assert np.allclose(rows / np.sqrt(squares) @ columns.T, C) and np.allclose(shares, squares / squares.sum())
    assert np.allclose(p * rows.T @ rows, np.diag(squares)) and np.allclose(q * columns.T @ columns, np.diag(squares))


def test_rows_and_columns_without_rates_say_nothing(model):
    U, V, r_u, r_v = model
    without = np.delete(U, 7, axis=0) * (39 / 40) ** 0.25, np.delete(V, 4, axis=0) * (39 / 40) ** 0.25
    expected = rate_coordinates(*without, np.delete(r_u, 7), np.delete(r_v, 4))
    r_u[7] = r_v[4] = 0
    X, (rows, columns, _) = rate_coordinates(U, V, r_u, r_v), principal_coordinates(U, V, r_u, r_v)
    assert not X[4].any() and not rows[7].any() and not columns[4].any()
    assert np.allclose(np.delete(X, 4, axis=0), expected, rtol=1e-10, atol=1e-12)


def test_neighbours_in_a_fit_depend_little_on_its_balanced_coordinates_and_not_at_all_on_others(rng):
    corpus, _, _ = topics(rng, per_pair=3.0)
    fit = AMPEmbedding(2, random_state=0).fit(corpus.counts)
    U, V, biases, words = fit.embedding_, fit.components_.T, (fit.row_bias_, fit.column_bias_), corpus.vocabulary
    X, Y = rate_coordinates(U, V, *biases), rate_coordinates(U * [0.2, 5], V / [0.2, 5], *biases)
    near = {word: nearest_words(X, words, word) for word in words}
    assert near == {word: nearest_words(Y, words, word) for word in words}
    shared = [len({*near[word]} & {*nearest_words(V, words, word)}) for word in words]
    assert np.mean(shared) > 2.5  # of five; by chance, one of thirty


def test_columns_with_the_log_rates_of_the_mean_have_no_direction_and_factors_that_are_all_zero_are_refused(model):
    U, V, r_u, r_v = model
    X = rate_coordinates(U, 0 * V, r_u, r_v)
    assert X.shape == (30, 3) and not X.any()
    with pytest.raises(ValueError, match="r_v is zero everywhere"):
        rate_coordinates(U, V, r_u, 0 * r_v)
