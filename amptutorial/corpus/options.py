"""The checks at the door of the corpora: texts, and how to count their words."""

import numbers
import reprlib
from collections.abc import Iterable, Mapping

import numpy as np

from .._validation import check_integer, check_positive
from .words import CONTRACTIONS, lemma, words


def check_strings(values, name, *, empty=False) -> list[str]:
    """Return `values` as a list of strings, which may be empty if `empty`."""
    what = f"{name} must be a list of strings, got {type(values).__name__}"
    if isinstance(values, Mapping) or len(getattr(values, "shape", " ")) != 1:
        raise TypeError(f'{what}: of a table, pass one column, as frame["review"]')
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise TypeError(f"{what}: put it in a list, [...]")
    values = list(values)
    for k, value in enumerate(values):
        if not isinstance(value, str):
            raise TypeError(
                f"{name} must hold strings: {name}[{k}] is of type"
                f" {type(value).__name__}, {reprlib.repr(value)}. {_way_out(value)}"
            )
    if not (values or empty):
        raise ValueError(f"{name} is empty: give at least one string")
    return values


def _way_out(value):
    """Return what to do about a value that should be a string."""
    if isinstance(value, bytes):
        return "Decode it, or open its file as text"
    if isinstance(value, Iterable):
        return "Pass one string of each"
    # NaN alone differs from itself; pandas.NA says neither yes nor no
    if value is None or type(value).__name__ == "NAType" or value != value:
        return 'Leave out what is missing, series.dropna(), or make it "", fillna("")'
    return "Make it a string, str(value)"


def check_options(min_df, max_df, stop_words, lemmatize, tokenize=None):
    """Return how to count words, as `loaders` and `windows` take it."""
    tokenize = _check_tokenize(tokenize)
    return {
        "bounds": (_check_df(min_df, "min_df"), _check_df(max_df, "max_df")),
        "stop_words": _check_stop_words(stop_words, tokenize or words),
        "lemmatize": _check_lemmatize(lemmatize),
        "tokenize": tokenize,
    }


def is_yes_or_no(value):
    """Return whether `value` is True or False, and no array of them."""
    return np.isscalar(value) and value in (True, False)


def check_ngram_range(ngram_range):
    """Return the least and the largest number of words of an n-gram."""
    try:
        low, high = ngram_range
    except (TypeError, ValueError):
        raise ValueError(
            f"ngram_range must be a pair of integers (low, high), got {ngram_range!r}"
        ) from None
    low = check_integer(low, "ngram_range[0]", minimum=1)
    return low, check_integer(high, "ngram_range[1]", minimum=low)


def _check_tokenize(tokenize):
    """Return a function from text to list of words that checks what it returns."""
    if tokenize is None:
        return None
    if not callable(tokenize):
        raise TypeError(
            "tokenize must be None, or a function from text to list of words,"
            f" got {tokenize!r}"
        )

    def tokens(text):
        found = tokenize(text)
        if isinstance(found, str | bytes) or not isinstance(found, Iterable):
            raise _refusal("tokenize", tokenize, text, found, "a list of words")
        found = list(found)
        for token in found:
            if not isinstance(token, str):
                raise _refusal("tokenize", tokenize, text, token, "only strings")
        return found

    return tokens


def _refusal(option, function, given, found, wanted):
    name = getattr(function, "__qualname__", repr(function))
    return TypeError(
        f"{option}={name} returned {reprlib.repr(found)}, of type"
        f" {type(found).__name__}, for {reprlib.repr(given)}: return {wanted}"
    )


def _check_df(value, name):
    if isinstance(value, numbers.Integral):
        return check_integer(value, name, minimum=1)
    if check_positive(value, name, zero=True) > 1:
        raise ValueError(
            f"{name} must be a number of documents (an integer) or a proportion up to"
            f" 1.0, got {value}"
        )
    return float(value)


def _check_stop_words(stop_words, words_of):
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

        return ENGLISH_STOP_WORDS | CONTRACTIONS
    texts = check_strings(stop_words, "stop_words", empty=True)
    return frozenset(word for text in texts for word in words_of(text))


def _check_lemmatize(lemmatize):
    if callable(lemmatize):
        return _checked_lemma(lemmatize)
    if not is_yes_or_no(lemmatize):
        raise TypeError(
            "lemmatize must be True, False, or a function from word to dictionary form,"
            f" got {lemmatize!r}"
        )
    if lemmatize:
        lemma("words")  # what is missing is told before the texts are read
    return lemma if lemmatize else str


def _checked_lemma(lemmatize):
    def form(word):
        found = lemmatize(word)
        if found is None:
            return word
        if not isinstance(found, str) or not found.strip():
            wanted = "the dictionary form, or None to keep the word"
            raise _refusal("lemmatize", lemmatize, word, found, wanted)
        return found

    return form
