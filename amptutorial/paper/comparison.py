"""Methods compared on counts of real words, and what the counts themselves show.

How well does a method predict counts that it has not seen, what do its embeddings know
of labels, how long does it take? And what does it report where there is no embedding?
"""

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.preprocessing import scale

from .._validation import AMPWarning
from ..bias import estimate_bias
from ..corpus import (
    Corpus,
    cooccurrence,
    docstring_texts,
    load_docstrings,
    load_movie_reviews,
)
from ..corpus.docstrings import source
from ..estimator import AMPEmbedding
from ..heldout import (
    held_out_pairs,
    heldout_gain,
    hold_out,
    split_counts,
    split_pairs,
)
from ..model import PoissonEmbedding
from ..neighbours import nearest_words
from .rivals import ABLATIONS, METHODS

HELD_OUT = 0.2  # the fraction that judges the methods
N_REVIEWS = 2000  # few, for the sake of the slow methods
SPLITS = {"pairs": split_pairs, "counts": split_counts}
WORDS = ("awful", "horror", "detective", "song", "soldier", "cartoon")
DOC_WORDS = ("matrix", "plot", "sparse", "kernel", "random", "gradient")
LIBRARY_WORDS = ("thread", "socket", "string", "exception", "window", "test")


def _probe_accuracy(features, labels, *, rng):
    """Return the share of documents whose label a logistic regression finds.

    It sees the `features` of four fifths of the documents, an array or sparse array
    (m, k), and judges the others; `rng` is for the folds.

    Examples
    --------
    >>> labels = np.tile([0, 1], 50)
    >>> features = labels[:, None] * [1.0, -1.0]
    >>> _probe_accuracy(features, labels, rng=np.random.default_rng(0))
    1.0
    """
    folds = StratifiedKFold(5, shuffle=True, random_state=int(rng.integers(2**31)))
    regression = LogisticRegression(max_iter=1000)
    return float(cross_val_score(regression, features, labels, cv=folds).mean())


def _without_embedding(Z, *, rng):
    """Return Poisson counts, sparse (m, n), that share only their margins with `Z`.

    The margins of `Z` are their expectations.
    """
    U, V = (np.zeros((size, 1)) for size in Z.shape)
    biases = (np.log(r) for r in estimate_bias(Z))
    return PoissonEmbedding(U, V, *biases).sample(rng, sparse=True)


def _in_bursts(Z, shape, *, rng):
    """Return negative binomial counts that share only their margins with `Z`.

    The rate of each pair is multiplied by a gamma variable of its own, of mean 1 and
    the given shape, small for large bursts: the counts of a pair come together, and
    there is no embedding. No row and no column of `Z`, sparse (m, n), may be empty.

    Examples
    --------
    >>> Z = sp.csr_array(np.ones((300, 400)))
    >>> drawn = _in_bursts(Z, 0.5, rng=np.random.default_rng(0)).toarray()
    >>> drawn.mean().round(1), drawn.var().round(1)  # 1 + 1 / shape
    (np.float64(1.0), np.float64(3.0))
    """
    r_u, r_v = estimate_bias(Z)
    drawn = [
        sp.csr_array(rng.negative_binomial(shape, shape / (shape + r * r_v)))
        for r in r_u
    ]
    return sp.vstack([row.reshape(1, -1) for row in drawn], format="csr")


def _compare_methods(
    corpus, *, rng, methods=METHODS, dimensions=(10,), words=(), split=split_pairs
):
    """Fit every method to four fifths of the counts of a corpus.

    Parameters
    ----------
    corpus : Corpus
    rng : numpy.random.Generator
        For the split; every method gets a generator of its own.
    methods : dict of str to callable
        ``method(kept, d, rng)`` returns rates. The others are compared with the first.
    dimensions : sequence of int
    words : sequence of str
        Whose nearest words are listed.
    split : callable
        What is hidden: `split_pairs`, or `split_counts`.

    Returns
    -------
    list of dict
        For each dimension and method: ``method``, ``d``; ``gain`` in nats per count and
        its two-way standard ``error``; ``lead``, by how much the first method gains
        more, and ``lead_error``, both of the differences pair by pair; ``chosen``, the
        settings; ``probe``, the accuracy of a logistic regression from the rows'
        embeddings to the labels, nan where the corpus has none; ``words``, the five
        words nearest to each of `words`; ``seconds`` of all processors together, the
        choice of the settings included.
    """
    kept, held_out, rows, columns = hold_out(corpus.counts, HELD_OUT, rng, split)
    labels = None if corpus.labels is None else corpus.labels[rows]
    vocabulary = corpus.vocabulary[columns]
    pairs, seed = held_out_pairs(kept, held_out), int(rng.integers(2**31))
    records = []
    for d in dimensions:
        first = None
        for name, method in methods.items():
            begin = time.process_time()
            rates = method(kept, d, np.random.default_rng([seed, d]))
            seconds = time.process_time() - begin
            log_ratios = rates.log_ratios(pairs)
            first = log_ratios if first is None else first
            records.append(
                {
                    **{"method": name, "d": d, "seconds": seconds},
                    "gain": pairs.mean(log_ratios),
                    "error": pairs.standard_error(log_ratios),
                    "lead": pairs.mean(first - log_ratios),
                    "lead_error": pairs.standard_error(first - log_ratios),
                    "chosen": ", ".join(f"{k} {v}" for k, v in rates.chosen.items()),
                    "probe": _probe(rates.U, labels, np.random.default_rng(seed)),
                    "words": [_nearest(rates.V, vocabulary, word) for word in words],
                }
            )
    return records


def _nearest(V, vocabulary, word, k=5):
    """Return the words nearest to a word; empty ones where it has no embedding."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AMPWarning)
        near = nearest_words(V, vocabulary, word, k)
    return near + [""] * (k - len(near))


def _probe(U, labels, rng):
    """Return the accuracy of embeddings in standardised coordinates; nan unlabelled."""
    if labels is None:
        return np.nan
    return _probe_accuracy(scale(U.astype(np.float64)), labels, rng=rng)


def docstrings():
    """Return the counts of the docstrings, labelled by their packages."""
    corpus = load_docstrings()
    packages = [name.partition(".")[0] for name in np.asarray(corpus.names)]
    return replace(corpus, labels=np.array(packages))


def _standard_library():
    """Return the counts of the docstrings of Python's own modules.

    No program of this package was developed on them.
    """
    return load_docstrings(_modules())


def _words_in_context():
    """Return how often words of these docstrings stand among five before another."""
    return cooccurrence(docstring_texts(_modules()), window=5, min_df=5)


def _modules():
    return filter(source, sorted(sys.stdlib_module_names))


def negative_binomial(index, shape):
    """Return counts with the margins of the docstrings' and no embedding."""
    corpus = docstrings()
    counts = _in_bursts(corpus.counts, shape, rng=np.random.default_rng(index))
    return replace(corpus, counts=counts)


def poisson(index):
    """Return Poisson counts with the margins of the docstrings' and no embedding."""
    corpus = docstrings()
    counts = _without_embedding(corpus.counts, rng=np.random.default_rng(index))
    return replace(corpus, counts=counts)


# by the index of a case: of reviews, the choice
CORPORA: dict[str, Callable[[int], Corpus]] = {
    "docstrings": lambda index: docstrings(),
    "standard library": lambda index: _standard_library(),
    "words in context": lambda index: _words_in_context(),
    "reviews": lambda index: load_movie_reviews(
        n_documents=N_REVIEWS, max_df=3 * N_REVIEWS // 7, random_state=index
    ),
    "Poisson": poisson,
    "bursts 0.05": partial(negative_binomial, shape=0.05),
    "bursts 0.3": partial(negative_binomial, shape=0.3),
    "bursts 1": partial(negative_binomial, shape=1.0),
}


NEIGHBOURS = dict.fromkeys(CORPORA, DOC_WORDS) | {"reviews": WORDS}
NEIGHBOURS |= dict.fromkeys(("standard library", "words in context"), LIBRARY_WORDS)


@dataclass(frozen=True)
class _Case:
    """One corpus, one split, and the methods and dimensions compared there."""

    corpus: str  # a key of `CORPORA`
    index: int  # of the split; of the reviews, also of the choice of documents
    hidden: str = "pairs"  # a key of `SPLITS`
    dimensions: tuple = (10, 30, 50)
    methods: tuple = tuple(METHODS)

    def run(self):
        """Return the records of `_compare_methods`, and what each compares where."""
        corpus = CORPORA[self.corpus](self.index)
        records = _compare_methods(
            corpus,
            rng=np.random.default_rng([self.index, corpus.counts.shape[0]]),
            methods={name: METHODS[name] for name in self.methods},
            dimensions=self.dimensions,
            words=NEIGHBOURS[self.corpus],
            split=SPLITS[self.hidden],
        )
        where = {"corpus": self.corpus, "split": self.index, "hidden": self.hidden}
        return [where | record for record in records]


TEXTS = "docstrings", "standard library", "words in context", "reviews"
NULLS = tuple(name for name in CORPORA if name not in TEXTS)
BOTH = "amp", *ABLATIONS, "lbfgs"  # a minimiser beside AMP, and what is switched off
USUAL = *BOTH, "skip_gram", "nmf", "gamma_poisson"
FAST = "amp", "amp_without_onsager", "svd_pmi", "gamma_poisson"
QUICK = *FAST, "lbfgs"


def _cases():
    """Yield what is compared; the slowest methods meet few tables."""
    some = tuple(name for name in METHODS if name != "lda")
    yield _Case("docstrings", 0, dimensions=(30,))
    yield _Case("docstrings", 0, dimensions=(10,), methods=some)
    for d in (30, 10):
        yield _Case("standard library", 0, dimensions=(d,))
    yield _Case("words in context", 0, dimensions=(10,), methods=USUAL)
    yield _Case("reviews", 0, dimensions=(10,), methods=USUAL)
    yield _Case("standard library", 1, dimensions=(10, 30), methods=QUICK)
    for name in NULLS:
        yield _Case(name, 0, dimensions=(10, 30), methods=FAST)
    yield _Case("docstrings", 0, hidden="counts", dimensions=(10,), methods=FAST)


CASES = tuple(_cases())


def text_instance(index):
    """Return the records of `Case.run` for one of the `CASES`, a list of dict."""
    return CASES[index].run()


def reviews_instance(index):
    """Return what the book shows of 7,000 movie reviews: a gain, and nearest words.

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
    model = AMPEmbedding(random_state=index).fit(kept)
    U, V = model.embedding_, model.components_.T
    biases, vocabulary = (
        (model.row_bias_, model.column_bias_),
        corpus.vocabulary[columns],
    )
    (m, n), nonzeros = corpus.counts.shape, corpus.counts.nnz
    return {
        **{"m": m, "n": n, "nonzeros": nonzeros, "d": U.shape[1]},
        "gain": heldout_gain(kept, held_out, U, V, *biases),
        "words": WORDS,
        "nearest": [nearest_words(V, vocabulary, word) for word in WORDS],
    }
