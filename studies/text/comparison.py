"""Methods compared on counts of real words, and what the counts themselves show.

How well does a method predict counts that it has not seen, and how long does it take?
And what does it report where there is no embedding?
"""

import time
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from amptutorial.heldout import (
    held_out_pairs,
    hold_out,
    split_counts,
    split_pairs,
)
from amptutorial.smoothing import cosines_of_rows

from .corpora import CORPORA, NULLS, TEXTS
from .methods import ABLATIONS, LINKED, METHODS, SMOOTHERS, at_best_size
from .rates import judged

HELD_OUT = 0.2  # the fraction that judges the methods
COSINES = (0.0, 0.3, 0.4, 0.5, 0.6, 1.0)  # of a row with the row nearest to it
SPLITS = {"pairs": split_pairs, "counts": split_counts}


def _compare_methods(corpus, *, rng, methods=METHODS, dimensions=(10,), split=split_pairs):
    """Fit every method to four fifths of the counts of a corpus.

    Parameters
    ----------
    corpus : Corpus
    rng : numpy.random.Generator
        For the split; every method gets a generator of its own.
    methods : dict of str to callable
        ``method(kept, d, rng)`` returns rates. The others are compared with the first.
    dimensions : sequence of int
        Zero for the size that each method would choose (`at_best_size`); `SMOOTHERS`,
        which have none, are then as at ten.
    split : callable
        What is hidden: `split_pairs`, or `split_counts`.

    Returns
    -------
    list of dict
        For each dimension and method: ``method``, ``d``; ``gain`` in nats per count and
        its two-way standard ``error``; ``against``, the first method; ``lead``, by how
        much it gains more, and ``lead_error``, both of the differences pair by pair; ``chosen``, the
        settings; ``by_cosine``, the gain in rows whose largest cosine with another row
        is between those of `COSINES`, and ``shares``, how many of the hidden counts are
        there; ``seconds`` of
        all processors together, the choice of the settings included.
    """
    kept, held_out, _, _ = hold_out(corpus.counts, HELD_OUT, rng, split)
    pairs, seed = held_out_pairs(kept, held_out), int(rng.integers(2**31))
    nearest = cosines_of_rows(sp.csr_array(kept)).max(axis=1)[pairs.i]
    places = np.digitize(nearest, COSINES[1:-1])
    shares = np.bincount(places, pairs.z, len(COSINES) - 1)
    records = []
    for d in dimensions:
        first = None
        for name, method in methods.items():
            begin = time.process_time()
            size = d or 10 * (name in SMOOTHERS)  # which choose none
            own_rng = np.random.default_rng([seed, size])
            rates = method(kept, size, own_rng) if size else at_best_size(method, kept, own_rng)
            seconds = time.process_time() - begin
            log_ratios = rates.log_ratios(pairs)
            if first is None:
                first, against = log_ratios, name
            records.append(
                {
                    **{"method": name, "against": against, "d": d, "seconds": seconds},
                    **judged(pairs, log_ratios, first, rates.chosen),
                    "by_cosine": np.bincount(places, pairs.z * log_ratios, len(shares)) / np.maximum(shares, 1),
                    "shares": shares / shares.sum(),
                }
            )
    return records


@dataclass(frozen=True)
class _Case:
    """One corpus, one split, and the methods and dimensions compared there."""

    corpus: str  # a key of `CORPORA`
    index: int  # of the split; of the reviews, also of the choice of documents
    hidden: str = "pairs"  # a key of `SPLITS`
    dimensions: tuple = (10,)
    methods: tuple = tuple(METHODS)

    def run(self):
        """Return the records of `_compare_methods`, and what each compares where."""
        corpus = CORPORA[self.corpus](self.index)
        records = _compare_methods(
            corpus,
            rng=np.random.default_rng([self.index, corpus.counts.shape[0]]),
            methods={name: (METHODS | LINKED)[name] for name in self.methods},
            dimensions=self.dimensions,
            split=SPLITS[self.hidden],
        )
        where = {"corpus": self.corpus, "split": self.index, "hidden": self.hidden}
        where |= {"shape": corpus.counts.shape, "counts": corpus.counts.sum()}
        return [where | record for record in records]


FAST = "amp", "amp_without_onsager", "svd_pmi", "gamma_poisson", *SMOOTHERS
QUICK = "amp", "amp_neighbours", *SMOOTHERS, "lbfgs"
SIZED = "amp", "amp_neighbours", "gamma_poisson", "svd_pmi", "svd_of_ratios", "lsa"
N_SPLITS = 5
# what would take hours
NOT_RUN = {
    "docstrings": ("lda", "lbfgs_bursts"),
    "words in context": ("lda",),
    "identifiers": ("lda",),
    "manual pages": ("lda", "lbfgs_bursts", "skip_gram"),
    "news": ("lbfgs_bursts",),
}
# of skip-gram, which takes minutes there
ONE_SPLIT = "docstrings", "manual pages", "news"


def _cases():
    """Yield what is compared."""
    for name in TEXTS:
        run = tuple(method for method in METHODS if method not in NOT_RUN.get(name, ()))
        yield _Case(name, 0, dimensions=(10,), methods=run)
    for name in TEXTS:
        more = ("lbfgs", "skip_gram") if name in ("standard library", "reviews") else ()
        if name != "manual pages":  # of a system that has changed since they were stored
            more = "neighbours", *more
        yield _Case(name, 0, dimensions=(0,), methods=(*SIZED, *more))
    for name in ("docstrings", "standard library"):
        yield _Case(name, 0, dimensions=(30,), methods=("amp", *ABLATIONS, "lbfgs"))
    for k in range(1, N_SPLITS):
        for name in TEXTS:
            also = () if name in ONE_SPLIT else ("skip_gram",)
            yield _Case(name, k, dimensions=(10,), methods=(*QUICK, *also))
    for name in NULLS:
        yield _Case(name, 0, dimensions=(10, 30), methods=FAST)
    yield _Case("docstrings", 0, hidden="counts", dimensions=(10,), methods=FAST)
    for name in TEXTS:
        if name != "manual pages":  # see above
            yield _Case(name, 0, dimensions=(10,), methods=(*LINKED, "amp"))


CASES = tuple(_cases())


def text_instance(index):
    """Return the records of `Case.run` for one of the `CASES`, a list of dict."""
    return CASES[index].run()
