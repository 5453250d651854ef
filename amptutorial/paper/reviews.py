"""The paper's table of nearest words: `AMPEmbedding` on 7,000 movie reviews."""

import numpy as np

from ..corpus import load_movie_reviews
from ..estimator import AMPEmbedding
from ..heldout import heldout_gain, hold_out
from ..neighbours import nearest_words

HELD_OUT = 0.2  # the fraction that judges the fit
WORDS = ("awful", "horror", "detective", "song", "soldier", "cartoon")


def reviews_instance(index):
    """Return what the book shows of 7,000 movie reviews: a gain, and nearest words.

    `AMPEmbedding` is fitted to four fifths of their counts. `index` is the seed of the
    choice of the reviews, of the split of their counts, and of the fit.

    Returns
    -------
    dict
        ``m``, ``n``, ``nonzeros``, ``d``; ``n_inflected``, the number of words where
        they are not put in their dictionary form; ``gain`` in nats per held-out count;
        ``words``, and the words ``nearest`` to each, nearest first.
    """
    corpus = load_movie_reviews(random_state=index)
    inflected = load_movie_reviews(random_state=index, lemmatize=False)
    rng = np.random.default_rng(index)
    kept, held_out, _, columns = hold_out(corpus.counts, HELD_OUT, rng)
    model = AMPEmbedding(random_state=index).fit(kept)
    U, V = model.embedding_, model.components_.T
    biases = model.row_bias_, model.column_bias_
    vocabulary = corpus.vocabulary[columns]
    (m, n), nonzeros = corpus.counts.shape, corpus.counts.nnz
    return {
        **{"m": m, "n": n, "nonzeros": nonzeros, "d": U.shape[1]},
        "n_inflected": inflected.counts.shape[1],
        "gain": heldout_gain(kept, held_out, U, V, *biases),
        "words": WORDS,
        "nearest": [nearest_words(V, vocabulary, word) for word in WORDS],
    }
