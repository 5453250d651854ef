"""Fit the movie reviews and store what chapter 1 shows of them.

    AMPTUTORIAL_DATA=aclImdb_v1.tar.gz python tools/store_reviews.py

The reviews are not part of the book, and most readers do not have them: the chapter shows these results instead.
"""

import json
from pathlib import Path

import numpy as np

from amptutorial import AMPEmbedding
from amptutorial.corpus import load_movie_reviews
from amptutorial.heldout import heldout_gain, split_counts
from amptutorial.neighbours import nearest_words

RESULTS = Path(__file__).parents[1] / "book/results/reviews.json"
WORDS = ("awful", "horror", "detective", "song", "soldier", "cartoon")
N_COMPONENTS = 10


def fit_reviews(corpus):
    """Return the numbers and words that the chapter shows."""
    kept, held_out = split_counts(corpus.counts, 0.2, np.random.default_rng(0))
    seen = (np.asarray(kept.sum(axis=1)) > 0, np.asarray(kept.sum(axis=0)) > 0)
    kept, held_out = (Z[seen[0]][:, seen[1]] for Z in (kept, held_out))
    model = AMPEmbedding(N_COMPONENTS, random_state=0).fit(kept)
    gain = heldout_gain(kept, held_out, model.embedding_, model.components_.T, model.row_bias_, model.column_bias_)
    vocabulary = corpus.vocabulary[seen[1]]
    return {
        "documents": corpus.counts.shape[0],
        "words": corpus.counts.shape[1],
        "nonzeros": corpus.counts.nnz,
        "n_components": N_COMPONENTS,
        "heldout_gain": round(gain, 3),
        "nearest": {word: nearest_words(model.components_.T, vocabulary, word, 5) for word in WORDS},
    }


if __name__ == "__main__":
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(fit_reviews(load_movie_reviews()), indent=1) + "\n")
    print(f"Stored in {RESULTS}")
