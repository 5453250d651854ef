"""From text to counts: movie reviews, docstrings, or texts of your own (`tab:nlp`).

All three go one way: texts -> near-twins left out -> words -> lemmas -> counts Z,
documents x words.
"""

from .loaders import Corpus, corpus_from_texts, load_docstrings, load_movie_reviews

__all__ = ["Corpus", "corpus_from_texts", "load_docstrings", "load_movie_reviews"]
