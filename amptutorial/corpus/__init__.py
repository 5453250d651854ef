"""From text to counts: movie reviews, docstrings, or texts of your own (`tab:nlp`).

All go one way: texts -> near-twins left out -> words -> lemmas -> counts Z, documents x
words, or words x words in their context.
"""

from .loaders import (
    Corpus,
    corpus_from_texts,
    docstring_texts,
    load_docstrings,
    load_movie_reviews,
    movie_review_texts,
)
from .windows import cooccurrence
from .words import term_lemma

__all__ = [
    "Corpus", "cooccurrence", "corpus_from_texts", "docstring_texts",
    "load_docstrings", "load_movie_reviews", "movie_review_texts", "term_lemma",
]  # fmt: skip
