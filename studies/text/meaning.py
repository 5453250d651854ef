"""A test of meaning that needs no other data: how near is *threads* to *thread*.

A word and its inflected form mean nearly the same, and no method is told so.
"""

import re

import numpy as np
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from amptutorial.corpus import cooccurrence, corpus_from_texts, docstring_texts
from amptutorial.corpus.words import lemma
from amptutorial.neighbours import normalise_rows, rate_coordinates

from .minimisers import skip_gram
from .rivals import amp, lsa, svd_pmi

METHODS = {"amp": amp, "lsa": lsa, "svd_pmi": svd_pmi, "skip_gram": skip_gram}
DIMENSION = 30
TABLES = "documents", "contexts"
LEAST = 20  # counts of a word, and of its form


def _inflected(vocabulary, counts):
    """Return the words that also occur with an s at the end, and these forms, (k, 2).

    Both occur `LEAST` times or more, and the one is the dictionary form of the other.

    Examples
    --------
    >>> words = np.array(["as", "bus", "new", "news", "thread", "threads"])
    >>> _inflected(words, np.full(6, 20)).tolist()
    [['thread', 'threads']]
    """
    words = set(vocabulary[counts >= LEAST].tolist())
    forms = {word: f"{word}s" for word in sorted(words)}
    found = [(w, f) for w, f in forms.items() if f in words and lemma(f) == w]
    return np.array(found)


def _reciprocal_ranks(X, pairs):
    """Return 1 / rank of the second word of each pair among all others.

    The words are ranked by the cosine with the first; `X` (n, d) holds all of them.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [1.0, 2.0], [1.0, 1.0]])
    >>> _reciprocal_ranks(X, np.array([[0, 1], [0, 2]]))
    array([0.5, 1. ])
    """
    X = normalise_rows(X.astype(np.float64))
    first, second = pairs.T
    cosines = X[first] @ X.T
    ahead = cosines > cosines[np.arange(len(pairs)), second][:, None]
    ahead[np.arange(len(pairs)), first] = False
    return 1 / (1 + ahead.sum(axis=1))


def counted(index):
    """Return counts, the words, and the numbers of the `_inflected` pairs.

    Words are the columns, and the rows are docstrings (0); or words are the rows, and
    the columns are the words among the five before (1).
    """
    # letters and a public list, so that finer rules of what is a word do not matter
    texts = [" ".join(re.findall("[a-z]+", text.lower())) for text in docstring_texts()]
    options = {"min_df": 10, "lemmatize": False, "stop_words": ENGLISH_STOP_WORDS}
    corpus = corpus_from_texts(texts, **options)
    pairs = _inflected(corpus.vocabulary, corpus.counts.sum(axis=0))
    Z, words = corpus.counts, corpus.vocabulary
    if index:
        corpus = cooccurrence(texts, window=5, **options)
        Z, words = corpus.counts, corpus.names
    place = {word: j for j, word in enumerate(words)}
    return Z, words, np.vectorize(place.get)(pairs)


def vectors(rates, index):
    """Return vectors of the words (n, d) that follow from the rates, and those used."""
    sides = (rates.U, rates.r_u), (rates.V, rates.r_v)
    (U, r_u), (V, r_v) = sides[::-1] if index else sides
    root = (len(U) / len(rates.U)) ** 0.25  # M_ij has the number of rows in it
    return rate_coordinates(root * U, root * V, r_u, r_v), V


def inflections_instance(index):
    """Return how near the methods put words to their inflected forms, a list of dict.

    Each is tuned by hidden pairs of one of the `TABLES`, then fitted to all of it. The
    vectors are those of the method, and those that follow from its rates alone
    (`amptutorial.neighbours.rate_coordinates`), which depend on no convention.

    Returns
    -------
    list of dict
        For each method: ``table``, ``method``; ``n_words``, ``n_pairs``; ``mrr``, the
        mean reciprocal rank, and its standard ``error``; ``lead``, by how much that of
        `AMPEmbedding` is larger, and ``lead_error``, both of the differences pair by
        pair; ``first``, the share of forms that rank first; ``own_mrr``, ``own_lead``
        and ``own_lead_error`` with the method's vectors; ``chosen``, the settings.
    """
    Z, words, pairs = counted(index)
    records, amp_ranks = [], None
    for method, fit in METHODS.items():
        rates = fit(Z, DIMENSION, np.random.default_rng(index))
        ranks = [_reciprocal_ranks(X, pairs) for X in vectors(rates, index)]
        amp_ranks = amp_ranks or ranks
        leads = [ours - theirs for ours, theirs in zip(amp_ranks, ranks, strict=True)]
        records.append(
            {
                **{"table": TABLES[index], "method": method},
                **{"n_words": len(words), "n_pairs": len(pairs)},
                **{"mrr": ranks[0].mean(), "error": _error(ranks[0])},
                **{"lead": leads[0].mean(), "lead_error": _error(leads[0])},
                "first": np.mean(ranks[0] == 1),
                **{"own_mrr": ranks[1].mean(), "own_lead": leads[1].mean()},
                "own_lead_error": _error(leads[1]),
                "chosen": ", ".join(f"{k} {v}" for k, v in rates.chosen.items()),
            }
        )
    return records


def _error(values):
    return values.std(ddof=1) / np.sqrt(len(values))
