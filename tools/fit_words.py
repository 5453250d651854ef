"""The embedding of words with which chapter 1 begins, so that its first result takes no fit; the chapter fits it anew.

python tools/fit_words.py
"""

from pathlib import Path

import numpy as np

from amptutorial import AMPEmbedding
from amptutorial.corpus import load_docstrings
from amptutorial.heldout import hold_out

STORED = Path(__file__).parents[1] / "amptutorial/book/words.npz"


def fitted():
    """Return the numbers of words, the deviations of those of documents, and the shares of words, by name.

    The second are standard deviations of the numbers of a document, such that its inner product with those of a word is
    their association; the shares add up to 1.
    """
    kept = hold_out(load_docstrings().counts, 0.2, np.random.default_rng(1))[0]
    fit = AMPEmbedding(n_components=10, tol=1e-3, random_state=0).fit(kept)
    deviations = fit.embedding_.std(axis=0) / np.sqrt(len(fit.embedding_))
    shares = fit.column_bias_ / fit.column_bias_.sum()
    return {"rows": fit.components_.T, "deviations": deviations, "shares": shares}


if __name__ == "__main__":
    kinds = {"rows": np.float16, "deviations": np.float32, "shares": np.float32}
    np.savez(STORED, **{name: values.astype(kinds[name]) for name, values in fitted().items()})
    print(f"Written: {STORED}")
