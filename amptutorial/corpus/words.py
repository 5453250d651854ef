"""The words of a text, near-twins among texts, and counting words (`tab:nlp`)."""

import functools
import re

import scipy.sparse as sp
import simplemma
from sklearn.feature_extraction.text import CountVectorizer
from tqdm import tqdm

# part of the key of stored counts: raise it with any change to what is counted
PIPELINE = 1

_TAG = re.compile(r"<[^>]*>")
_NOT_LETTERS = re.compile(r"[\W\d_]+")
# words: texts that have nothing to do with each other share shorter runs ("one of the
# worst movies I have")
_RUN = 8
# numerical terms that would turn into axe, smoothe, spin
_TERMS = {"axes", "smoothing", "span"}


def clean(text):
    """Return `text` in lower case, with a space in place of tags, digits and signs."""
    return _NOT_LETTERS.sub(" ", _TAG.sub(" ", text.lower()))


def words(text):
    """Return the words of `text`, in order: runs of at least two letters."""
    return [word for word in clean(text).split() if len(word) > 1]


@functools.cache
def lemma(word):
    """Return the dictionary form of an English word.

    Where that form is not a word of at least two letters, return the word itself.
    """
    form = simplemma.lemmatize(word, lang="en").lower()
    return form if len(form) > 1 and form.isalpha() else word


def term_lemma(word):
    """Return the dictionary form of a word, but leave some numerical terms as they are.

    Examples
    --------
    >>> [term_lemma(word) for word in ("matrices", "axes", "smoothing")]
    ['matrix', 'axes', 'smoothing']
    """
    return word if word in _TERMS else lemma(word)


def distinct(texts, limit=None):
    """Return the positions of the first `limit` texts left once near-twins are out.

    A text is a near-twin if at least half of its runs of eight words occur in the texts
    kept before it. The number of near-twins met is returned second.
    """
    kept, seen, n_twins = [], set(), 0
    watched = tqdm(texts, total=limit, desc="Comparing documents", leave=False)
    for k, text in enumerate(watched):
        if len(kept) == limit:
            break
        runs = _runs(words(text))
        if runs and 2 * len(runs & seen) >= len(runs):
            n_twins += 1
            continue
        kept.append(k)
        seen |= runs
    return kept, n_twins


def _runs(text_words):
    """Return the hashes of the runs of eight words; a shorter text is one run."""
    # ends with the shortest: at the last full run
    runs = zip(*(text_words[k:] for k in range(_RUN)), strict=False)
    return set(map(hash, runs)) or ({hash(tuple(text_words))} if text_words else set())


def tokens(text, stop_words, lemmatize):
    """Return the lemmas of the words of `text`, in order, without stop words.

    Examples
    --------
    >>> tokens("She made two films", {"made", "she"}, lemma)
    ['two', 'film']
    """
    # Stop words are looked up before lemmatisation and after it: "having" is one by its
    # lemma "have", "made" by itself, whereas "make" is not a stop word.
    lemmas = (lemmatize(word) for word in words(text) if word not in stop_words)
    return [form for form in lemmas if form not in stop_words]


def count_words(texts, *, min_df, max_df, stop_words, lemmatize):
    """Count the words of the texts as `tab:nlp` does.

    Parameters
    ----------
    texts : list of str, length m
    min_df, max_df : int or float
        Bounds on the number of texts (int), or on the proportion of texts (float), in
        which a word occurs; a word outside them is left out.
    stop_words : frozenset of str
        Words left out, as they stand in the text or as lemmas.
    lemmatize : callable
        From word to lemma.

    Returns
    -------
    counts : scipy.sparse.csr_array of int, shape (m, n)
        Rows may be empty.
    vocabulary : array of str, shape (n,)

    Raises
    ------
    ValueError
        If no word is left.
    """
    analyzer = functools.partial(tokens, stop_words=stop_words, lemmatize=lemmatize)
    vectorizer = CountVectorizer(min_df=min_df, max_df=max_df, analyzer=analyzer)
    watched = tqdm(texts, desc="Counting words", leave=False)
    try:
        counts = vectorizer.fit_transform(watched)
    except ValueError as error:
        raise ValueError(
            f"no word is left: of {len(texts)} documents, at least min_df={min_df} and"
            f" at most max_df={max_df} must hold it, and stop words do not count. Lower"
            " min_df, raise max_df, pass stop_words=None, or give more text"
        ) from error
    return sp.csr_array(counts), vectorizer.get_feature_names_out().astype(str)
