"""The checks at the door of the corpora: texts, and how to count their words."""

import numbers
from collections.abc import Iterable

from .._validation import check_integer, check_positive
from .words import lemma, words


def check_strings(values, name):
    """Return `values` as a list of strings that is not empty."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TypeError(
            f"{name} must be a list of strings, got {type(values).__name__}:"
            " put it in a list, [...]"
        )
    values = list(values)
    for k, value in enumerate(values):
        if not isinstance(value, str):
            raise TypeError(
                f"{name} must hold strings: {name}[{k}] is of type"
                f" {type(value).__name__}"
            )
    if not values:
        raise ValueError(f"{name} is empty: give at least one string")
    return values


def check_options(min_df, max_df, stop_words, lemmatize):
    """Return how to count words, as `loaders` and `windows` take it."""
    return {
        "min_df": _check_df(min_df, "min_df"),
        "max_df": _check_df(max_df, "max_df"),
        "stop_words": _check_stop_words(stop_words),
        "lemmatize": _check_lemmatize(lemmatize),
    }


def _check_df(value, name):
    if isinstance(value, numbers.Integral):
        return check_integer(value, name, minimum=1)
    if check_positive(value, name, zero=True) > 1:
        raise ValueError(
            f"{name} must be a number of documents (an integer) or a proportion up to"
            f" 1.0, got {value}"
        )
    return float(value)


def _check_stop_words(stop_words):
    if stop_words is None:
        return frozenset()
    if isinstance(stop_words, str):
        if stop_words != "english":
            raise ValueError(
                'stop_words must be "english", None or a list of words,'
                f" got {stop_words!r}"
            )
        # imported here: loading scikit-learn takes seconds in a reader's browser
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        return ENGLISH_STOP_WORDS
    texts = check_strings(stop_words, "stop_words")
    return frozenset(word for text in texts for word in words(text))


def _check_lemmatize(lemmatize):
    if callable(lemmatize):
        return lemmatize
    if lemmatize not in (True, False):
        raise TypeError(
            "lemmatize must be True, False, or a function from word to dictionary form,"
            f" got {lemmatize!r}"
        )
    return lemma if lemmatize else str
