"""Which embeddings point the same way: the words nearest to a word."""

import numpy as np

from ._validation import check_integer, check_matrix


def nearest_words(X, vocabulary, word, k=5):
    """Return the `k` words that are nearest to `word`, nearest first.

    Near are words whose embeddings have a large cosine with the embedding of `word`.

    Parameters
    ----------
    X : array (n, d)
        One embedding a word.
    vocabulary : array of str (n,)
    word : str
    k : int

    Returns
    -------
    list of str

    Raises
    ------
    KeyError
        If `word` is not in the vocabulary.

    Examples
    --------
    >>> X = np.array([[1.0, 0.1], [0.0, 1.0], [1.0, 0.0]])
    >>> nearest_words(X, ["film", "tree", "movie"], "film", 1)
    ['movie']
    """
    X = check_matrix(X, "X", shape=(len(vocabulary), None))
    found = np.flatnonzero(np.asarray(vocabulary) == word)
    if not found.size:
        raise KeyError(f"{word!r} is not in the vocabulary of {len(vocabulary)} words")
    cosines = normalise_rows(X) @ normalise_rows(X)[found[0]]
    cosines[found[0]] = -np.inf
    order = np.argsort(-cosines, kind="stable")[: check_integer(k, "k", minimum=1)]
    return [str(vocabulary[j]) for j in order]


def normalise_rows(X):
    """Return the rows divided by their lengths; a zero row stays zero.

    Examples
    --------
    >>> normalise_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(lengths > 0, lengths, 1)
