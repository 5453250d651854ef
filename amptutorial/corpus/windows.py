"""Words in context: how often words stand near each other."""

from collections.abc import Callable, Iterable

import numpy as np
import scipy.sparse as sp

from .._validation import check_choice, check_integer
from ..bias import drop_empty
from .loaders import Corpus
from .options import check_options, check_strings
from .twins import distinct
from .words import count, lemmas, within_bounds


def cooccurrence(
    texts: Iterable[str],
    *,
    window: int = 5,
    context: str = "before",
    weights: str = "flat",
    min_df: float = 2,
    max_df: float = 1.0,
    stop_words: str | Iterable[str] | None = "english",
    lemmatize: bool | Callable[[str], str | None] = True,
    tokenize: Callable[[str], Iterable[str]] | None = None,
) -> Corpus:
    """Count how often words stand near each other: words by words.

    Z_jk is how often word k stands among the `window` words before word j, in the same
    text. Texts become words as in `corpus_from_texts`, and near-twins are left out.
    Distances are counted as word2vec and GloVe count them, in what is left: stop words
    and words outside the vocabulary do not separate their neighbours.

    Parameters
    ----------
    texts : iterable of str
        Such as `docstring_texts` and `movie_review_texts` return.
    window : int
        The largest distance; 1 counts neighbours alone. A window as large as the
        longest text counts all pairs of a text.
    context : {"before", "both"}
        Whether the context of a word is what stands before it, or on both sides.
    weights : {"flat", "harmonic"}
        Whether all distances count alike, or a word at distance k counts 1/k, as GloVe
        counts. The sums are fractions then, and vary less than Poisson counts do.
    min_df, max_df, stop_words, lemmatize, tokenize
        As in `corpus_from_texts`.

    Returns
    -------
    Corpus
        Its `names` are the words of the rows, its `vocabulary` those of the columns.
        They differ where a word begins or ends every one of its texts, unless `context`
        is "both". `n_empty` is the number of texts without a pair of words.

    Raises
    ------
    TypeError
        For a bare string, a table, or texts that are not strings; for what `lemmatize`
        or `tokenize` should not return.
    ValueError
        If there are no texts, `window` is less than 1, or no pair of words is left.

    Notes
    -----
    In an embedding of these counts, U describes words as targets and V describes them
    as contexts.

    By default each co-occurrence is counted once, in the row of the later word. With
    "both" it is counted twice, and Z_jk and Z_kj are one number, not two independent
    ones: what a split of counts or pairs (`amptutorial.heldout`, and inside
    `AMPEmbedding`) holds out at (j, k) may have been seen at (k, j). To judge such an
    embedding, split the counts of "before" and add its transpose to each part.

    Examples
    --------
    >>> texts = ["red wine", "red red wine", "wine glass"]
    >>> corpus = cooccurrence(texts, window=1, min_df=1)
    >>> corpus.names.tolist(), corpus.vocabulary.tolist()
    (['glass', 'red', 'wine'], ['red', 'wine'])
    >>> corpus.counts.toarray()
    array([[0, 1],
           [1, 0],
           [2, 0]])
    """
    texts = check_strings(texts, "texts")
    window = check_integer(window, "window", minimum=1)
    check_choice(context, "context", ("before", "both"))
    check_choice(weights, "weights", ("flat", "harmonic"))
    chosen = check_options(min_df, max_df, stop_words, lemmatize, tokenize)
    known, _, n_twins = distinct(texts, tokenize=chosen["tokenize"])
    known = lemmas(known, chosen["stop_words"], chosen["lemmatize"])
    known = known.select(within_bounds(count(known), *chosen["bounds"]))

    Z = _counts_before(known, window, weights == "harmonic")
    if not Z.nnz:
        raise ValueError(
            "no pair of words is left: in each of the texts, at most one word is in the"
            " vocabulary. Give longer texts, lower min_df, or raise max_df"
        )
    Z, rows, columns = drop_empty(Z + Z.T if context == "both" else Z)
    n_empty, words = int(np.sum(known.lengths < 2)), np.array(known.vocabulary)
    return Corpus(Z, words[columns], None, words[rows], n_twins, n_empty, rows="words")


def _counts_before(texts, window, harmonic=False):
    """Return how often k stands among the `window` numbers before j, sparse (n, n).

    If `harmonic`, a number at distance k counts 1/k.

    Examples
    --------
    >>> from amptutorial.corpus.words import number_words
    >>> _counts_before(number_words(["red wine wine", "red"]), 2).toarray()
    array([[0, 0],
           [2, 1]])
    """
    word, text_of, n = texts.numbers, texts.owners(), len(texts.vocabulary)
    Z = sp.csr_array((n, n), dtype=np.float64 if harmonic else np.int64)
    for distance in range(1, min(window + 1, texts.lengths.max())):
        together = text_of[distance:] == text_of[:-distance]
        pairs = word[distance:][together], word[:-distance][together]
        ones = np.ones(together.sum(), dtype=np.int64)
        counts = sp.csr_array((ones, pairs), shape=(n, n))
        Z = Z + (counts / distance if harmonic else counts)
    return Z
