"""Methods compared on counts of real words, and what the counts themselves show.

How well does a method predict counts that it has not seen, what do its embeddings know
of sentiment, how long does it take?
"""

import time
from functools import partial

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.preprocessing import scale

from .baselines import singular_values
from .bias import drop_empty, estimate_bias
from .corpus import load_movie_reviews
from .estimator import AMPEmbedding
from .heldout import heldout_gain, hold_out
from .methods import METHODS, amp, tf_idf
from .model import PoissonEmbedding
from .neighbours import nearest_words
from .score import FisherScore

HELD_OUT = 0.2  # the fraction of the counts that judges the methods
DIMENSIONS = (10, 50)
MORE_DIMENSIONS = (2, 5, 20, 100)  # for `AMPEmbedding` alone
WORDS = ("awful", "horror", "detective", "song", "soldier", "cartoon")
N_SINGULAR = 60


def sentiment_accuracy(features, labels, rng):
    """Return the share of documents whose label a logistic regression finds.

    It sees the features of four fifths of the documents, and judges the others.

    Parameters
    ----------
    features : array or sparse array (m, k)
    labels : array (m,)
    rng : numpy.random.Generator
        For the folds.

    Examples
    --------
    >>> labels = np.tile([0, 1], 50)
    >>> features = labels[:, None] * [1.0, -1.0]
    >>> sentiment_accuracy(features, labels, np.random.default_rng(0))
    1.0
    """
    folds = StratifiedKFold(5, shuffle=True, random_state=int(rng.integers(2**31)))
    regression = LogisticRegression(max_iter=1000)
    return float(cross_val_score(regression, features, labels, cv=folds).mean())


def score_moments(Z):
    """Return variance and kurtosis of all entries of Y~, without forming them.

    They are 1 and 3 for Gaussian noise. No row and no column of the counts `Z`, an
    array or sparse array (m, n), may be empty.

    Examples
    --------
    >>> [round(moment, 6) for moment in score_moments(np.array([[8, 2], [2, 8]]))]
    [1.8, 1.0]
    """
    Z = sp.coo_array(Z)
    r_u, r_v = estimate_bias(Z)
    rate = r_u[Z.coords[0]] * r_v[Z.coords[1]]
    here, zero = (Z.data - rate) / np.sqrt(rate), -np.sqrt(rate)

    def moment(p):
        if_all_were_zero = (-1) ** p * (r_u ** (p / 2)).sum() * (r_v ** (p / 2)).sum()
        return (if_all_were_zero + (here**p - zero**p).sum()) / np.prod(Z.shape)

    mean, second, third, fourth = (moment(p) for p in (1, 2, 3, 4))
    variance = second - mean**2
    central = fourth - 4 * mean * third + 6 * mean**2 * second - 3 * mean**4
    return float(variance), float(central / variance**2)


def largest_singular_values(Z, k):
    """Return the `k` largest singular values of Y~, largest first.

    Rows and columns without counts are left out.

    Examples
    --------
    >>> largest_singular_values(np.array([[8, 2, 0], [2, 8, 0]]), 1).round(6)
    array([2.683282])
    """
    Z, _, _ = drop_empty(Z)
    Y = FisherScore(Z, *estimate_bias(Z))
    return singular_values(Y, k, rng=np.random.default_rng(0))


def without_embedding(Z, rng):
    """Return Poisson counts, sparse (m, n), that share only their margins with `Z`.

    The margins of `Z` are their expectations.
    """
    U, V = (np.zeros((size, 1)) for size in Z.shape)
    biases = (np.log(r) for r in estimate_bias(Z))
    return PoissonEmbedding(U, V, *biases).sample(rng, sparse=True)


def compare_methods(
    corpus, rng, *, methods=METHODS, dimensions=DIMENSIONS, words=WORDS
):
    """Fit every method to four fifths of the counts of a corpus.

    Parameters
    ----------
    corpus : Corpus
        With labels.
    rng : numpy.random.Generator
        For the split; every method gets a generator of its own.
    methods : dict of str to callable
        ``method(kept, d, rng)`` returns rates.
    dimensions : sequence of int
    words : sequence of str
        Whose nearest words are listed.

    Returns
    -------
    dict
        For each method, by dimension: ``<method>_gain`` in nats per count;
        ``<method>_sentiment``, the accuracy of a logistic regression on the rows'
        embeddings; ``<method>_words``, the five words nearest to each of `words`;
        ``<method>_seconds`` of all processors together, the choice of the free
        parameter included.

    Raises
    ------
    ValueError
        If the corpus has no labels.
    """
    if corpus.labels is None:
        raise ValueError(
            "the corpus has no labels, and the comparison asks what embeddings know"
            " of them"
        )
    kept, held_out, rows, columns = hold_out(corpus.counts, HELD_OUT, rng)
    labels, vocabulary = corpus.labels[rows], corpus.vocabulary[columns]
    seed = int(rng.integers(2**31))
    results = {}
    for name, method in methods.items():
        for d in dimensions:
            begin = time.process_time()
            rates = method(kept, d, np.random.default_rng([seed, d]))
            found = {
                "seconds": time.process_time() - begin,
                "gain": rates.gain(kept, held_out),
                "sentiment": _probe(rates.U, labels, np.random.default_rng(seed)),
                "words": [nearest_words(rates.V, vocabulary, word) for word in words],
            }
            for key, value in found.items():
                results.setdefault(f"{name}_{key}", []).append(value)
    return results


def _probe(U, labels, rng):
    """Return the `sentiment_accuracy` of embeddings in standardised coordinates."""
    return sentiment_accuracy(scale(U.astype(np.float64)), labels, rng)


def text_instance(index):
    """Compare the methods on one choice of 7,000 movie reviews and one split.

    Returns
    -------
    dict
        As `compare_methods`, by the dimensions in ``d``; ``all_words_sentiment``, the
        accuracy with every word as a feature, from all counts (the embeddings have seen
        four fifths of them); ``more_d`` and ``more_gain``, the gain of `AMPEmbedding`
        by dimension; ``singular``, the largest singular values of Y~, and ``variance``
        and ``kurtosis`` of its entries; ``control_singular``, ``control_variance`` and
        ``control_kurtosis``, the same of the control, `without_embedding`; ``m``,
        ``n``, ``nonzeros``, ``counts``.
    """
    corpus = load_movie_reviews(random_state=index)
    Z = corpus.counts
    m, n = Z.shape
    generator = partial(np.random.default_rng, [index, m])  # the same for every part
    results = compare_methods(corpus, generator())
    more = compare_methods(
        corpus, generator(), methods={"amp": amp}, dimensions=MORE_DIMENSIONS, words=()
    )
    all_d = (*DIMENSIONS, *MORE_DIMENSIONS)
    by_d = sorted(zip(all_d, results["amp_gain"] + more["amp_gain"], strict=True))
    rng = generator()
    control = without_embedding(Z, rng)
    results |= {
        "d": DIMENSIONS,
        "all_words_sentiment": sentiment_accuracy(tf_idf(Z), corpus.labels, rng),
        "more_d": [d for d, _ in by_d],
        "more_gain": [gain for _, gain in by_d],
    }
    for prefix, counts in (("", Z), ("control_", control)):
        results[f"{prefix}singular"] = largest_singular_values(counts, N_SINGULAR)
        moments = score_moments(drop_empty(counts)[0])
        results[f"{prefix}variance"], results[f"{prefix}kurtosis"] = moments
    return results | {"m": m, "n": n, "nonzeros": Z.nnz, "counts": int(Z.sum())}


def reviews_instance(index, d=10, n_nearest=5):
    """Return what chapter 1 shows of 7,000 movie reviews: a gain, and nearest words.

    `AMPEmbedding` is fitted to four fifths of their counts. `index` is the seed of the
    choice of the reviews, of the split of their counts, and of the fit.

    Returns
    -------
    dict
        ``m``, ``n``, ``nonzeros``, ``d``; ``gain`` in nats per held-out count;
        ``words``, and the words ``nearest`` to each, nearest first.
    """
    corpus = load_movie_reviews(random_state=index)
    rng = np.random.default_rng(index)
    kept, held_out, _, columns = hold_out(corpus.counts, HELD_OUT, rng)
    model = AMPEmbedding(d, random_state=index).fit(kept)
    U, V = model.embedding_, model.components_.T
    biases, vocabulary = (
        (model.row_bias_, model.column_bias_),
        corpus.vocabulary[columns],
    )
    (m, n), nonzeros = corpus.counts.shape, corpus.counts.nnz
    return {
        **{"m": m, "n": n, "nonzeros": nonzeros, "d": d},
        "gain": heldout_gain(kept, held_out, U, V, *biases),
        "words": WORDS,
        "nearest": [nearest_words(V, vocabulary, word, n_nearest) for word in WORDS],
    }
