"""The words nearest to a word: by cosine, whatever the lengths of the embeddings."""

import numpy as np
import pytest

from amptutorial.neighbours import nearest_words, normalise_rows

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
    with pytest.raises(ValueError, match="k must be at least 1"):
        nearest_words(X, WORDS, "film", 0)
