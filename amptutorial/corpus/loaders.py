"""The three sources of a corpus, and the one way from texts to counts (`tab:nlp`)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import compress
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from .._validation import check_counts, check_integer, keep
from ..names import NamedCounts
from .archive import find_archive, read_reviews, sentiment, sha256
from .docstrings import docstrings, fingerprint, prose
from .options import check_ngram_range, check_options, check_strings, is_yes_or_no
from .store import load, stored
from .twins import distinct
from .words import count, lemmas, ngrams, term_lemma, within_bounds, words

PACKAGES = ("numpy", "scipy", "sklearn", "matplotlib")
COUNTED = Path(__file__).with_name("docstrings.counts")  # of the book's versions
_SHORTEST_DOCSTRING = 20  # words: "Return the parameters." says nothing about its words


@dataclass(frozen=True, eq=False, repr=False)
class Corpus(NamedCounts):
    """The counts of words in documents, with the names of both.

    Or, from `cooccurrence`, the counts of words in the context of words.

    Attributes
    ----------
    counts : scipy.sparse.csr_array, shape (m, n)
        Z_ij, how often word j occurs in document i, whole numbers; words by words they
        may be weighted. No row and no column is empty.
    vocabulary : array of str, shape (n,)
        The words, in alphabetical order.
    labels : array of shape (m,), or None
        What is known of each document; for the movie reviews 1 (positive) or 0
        (negative).
    names : array of shape (m,), or None
        What each document is: the archive's member, the dotted name of the object, or
        its position in your texts. From `cooccurrence`, the word.
    n_twins, n_empty : int
        Number of documents left out as near-twins of others, and of those without a
        word of the vocabulary.
    rows : str
        What the rows are, "documents" or "words".

    Raises
    ------
    ValueError
        If the shapes disagree, the counts are invalid, or a row or column is empty.

    Examples
    --------
    >>> texts = ["The cat sat.", "The cats sit!", "A dog sat.", "Dogs run."]
    >>> corpus_from_texts(texts)  # doctest: +NORMALIZE_WHITESPACE
    Corpus: 4 documents x 3 words, 7 of 12 pairs occur (58.3 %), 7 counts;
    left out: 0 near-twins, 0 empty
    """

    counts: sp.csr_array
    vocabulary: np.ndarray
    labels: np.ndarray | None = None
    names: np.ndarray | None = None
    n_twins: int = 0
    n_empty: int = 0
    rows: str = "documents"

    def __post_init__(self):
        whole = self.rows == "documents"  # weights by distance add up to fractions
        Z = check_counts(self.counts, integers=whole, name="counts")
        m, n = Z.shape
        for field, size in {"vocabulary": n, "labels": m, "names": m}.items():
            array = getattr(self, field)
            if array is not None and np.shape(array) != (size,):
                raise ValueError(
                    f"{field} must have shape ({size},) to go with counts {m, n},"
                    f" got {np.shape(array)}"
                )
        if not (Z.sum(axis=0).all() and Z.sum(axis=1).all()):
            raise ValueError("counts has an empty row or column: leave it out")
        keep(self, counts=sp.csr_array(Z))

    def __len__(self):
        return self.counts.shape[0]

    def __repr__(self):
        (m, n), nnz = self.counts.shape, self.counts.nnz
        share = 100 * nnz / (m * n)
        return (
            f"Corpus: {m:,} {self.rows} x {n:,} words, {nnz:,} of {m * n:,} pairs occur"
            f" ({share:.3g} %), {self.counts.sum():,.0f} counts; left out:"
            f" {self.n_twins:,} near-twins, {self.n_empty:,} empty"
        )


def corpus_from_texts(
    texts: Iterable[str],
    *,
    labels=None,
    min_df: float = 2,
    max_df: float = 1.0,
    stop_words: str | Iterable[str] | None = "english",
    lemmatize: bool | Callable[[str], str | None] = True,
    tokenize: Callable[[str], Iterable[str]] | None = None,
    ngram_range: tuple[int, int] = (1, 1),
) -> Corpus:
    """Count the words of your own texts, as `tab:nlp` does for the movie reviews.

    Texts are put in lower case; tags, digits, signs and what browsers do not show of
    HTML are removed. Near-twins are left out. A text is a near-twin if at least half of
    its runs of eight words occur in the texts kept before it; a text of fewer words,
    only if it repeats another.

    Parameters
    ----------
    texts : iterable of str
        A list, a generator, one column of a table.
    labels : array of shape (number of texts,), optional
        What is known of each text. The corpus keeps the labels of its documents.
    min_df, max_df : int or float
        Bounds on the number of texts (int), or on the proportion of texts (float), in
        which a word occurs; a word outside them is left out.
    stop_words : "english", None or iterable of str
        Words left out, as they stand or as lemmas. "english" are those of scikit-learn
        and contractions such as "don't". Words of your own become words as texts do.
    lemmatize : bool or callable
        Whether to count English words under their dictionary form: "films" as "film".
        Or a function from word to dictionary form, or to None for a word it leaves.
    tokenize : callable, optional
        A function from a text, as it stands, to its words. They are counted as they
        come, unless blank; one letter is a word. Such are ``jieba.lcut`` for Chinese,
        ``janome.tokenizer.Tokenizer(wakati=True).tokenize`` for Japanese (the extra
        ``languages`` brings both), and what scikit-learn's ``build_analyzer`` returns.
    ngram_range : pair of int
        The least and the largest n of the n-grams counted: runs of n words, joined by
        spaces, once stop words are left out.

    Returns
    -------
    Corpus
        Its `names` are positions in `texts`.

    Raises
    ------
    TypeError
        For a bare string, a table, or texts that are not strings; for what `lemmatize`
        or `tokenize` should not return.
    ValueError
        If there are no texts, `labels` do not match them, or no word is left.

    Examples
    --------
    >>> texts = ["Good films, good actors", "A good film", "Bad film!"]
    >>> corpus = corpus_from_texts(texts)
    >>> corpus.vocabulary.tolist(), corpus.counts.toarray().tolist()
    (['film', 'good'], [[1, 2], [1, 1], [1, 0]])
    >>> corpus_from_texts(texts, ngram_range=(2, 2)).vocabulary.tolist()
    ['good film']
    >>> corpus_from_texts(["3D film", "3D"], tokenize=str.split).vocabulary.tolist()
    ['3D']
    """
    texts = check_strings(texts, "texts")
    labels = None if labels is None else np.asarray(labels)
    if labels is not None and labels.shape != (len(texts),):
        raise ValueError(
            f"labels must hold one label for each of the {len(texts)} texts,"
            f" got shape {labels.shape}"
        )
    options = check_options(min_df, max_df, stop_words, lemmatize, tokenize)
    ngram_range = check_ngram_range(ngram_range)
    names = np.arange(len(texts))
    return _corpus(texts, names, labels, options, ngram_range=ngram_range)


def docstring_texts(packages: Iterable[str] = PACKAGES) -> list[str]:
    """Return the docstrings of installed packages, as `load_docstrings` reads them.

    Parameters
    ----------
    packages : iterable of str
        Installed top-level packages or modules; by default NumPy, SciPy, scikit-learn
        and Matplotlib.

    Returns
    -------
    list of str
        The sentences of one docstring each.

    Raises
    ------
    ModuleNotFoundError
        If a package is not installed.

    Examples
    --------
    >>> texts = docstring_texts(["pooch"])
    >>> "download" in corpus_from_texts(texts, lemmatize=term_lemma).vocabulary
    True
    """
    return _docstrings(check_strings(packages, "packages"))[1]


def load_docstrings(packages=None, *, min_df=10, max_df=0.4) -> Corpus:
    """Count the words of docstrings: no download is needed.

    The documents are the docstrings of public modules, classes, functions and methods
    that have at least 20 words without code, formulas, headings, references and types.
    Functions that are asynchronous, or defined under a condition, are passed over.
    They are read from the source: nothing is imported, and the same versions give the
    same counts. The counts are kept in the cache, as in `load_movie_reviews`.

    Parameters
    ----------
    packages : iterable of str or None
        As for `docstring_texts`. None: NumPy, SciPy, scikit-learn and Matplotlib; with
        the default options the counts come with this package, those of the versions
        that the book pins.
    min_df, max_df : int or float
        As in `corpus_from_texts`.

    Returns
    -------
    Corpus
        Its `names` are dotted names, without private steps.

    Raises
    ------
    ModuleNotFoundError
        If a package is not installed.
    ValueError
        If no word is left, or the counts that come with this package are damaged.

    Examples
    --------
    >>> load_docstrings().counts.shape
    (4059, 1981)
    >>> corpus = load_docstrings(["pooch"], min_df=2, max_df=1.0)
    >>> "download" in corpus.vocabulary, "pooch.core.retrieve" in corpus.names
    (True, True)
    """
    if packages is None and (min_df, max_df) == (10, 0.4):
        return _shipped()
    packages = check_strings(PACKAGES if packages is None else packages, "packages")
    options = check_options(min_df, max_df, "english", term_lemma)

    def count():
        names, texts = _docstrings(packages)
        return _corpus(texts, np.array(names), None, options)

    fingerprints = [fingerprint(package) for package in packages]
    return _stored([packages, fingerprints], options, count)


def movie_review_texts(path=None, *, n_documents=7000, random_state=0) -> list[str]:
    """Return movie reviews, those that `load_movie_reviews` chooses and counts.

    Parameters
    ----------
    path, n_documents, random_state
        As for `load_movie_reviews`.

    Returns
    -------
    list of str
        The reviews, without near-twins. They are read anew each time, and never stored.

    Raises
    ------
    FileNotFoundError, ConnectionError, ValueError
        As `load_movie_reviews`.

    Examples
    --------
    >>> len(movie_review_texts(n_documents=100))  # doctest: +SKIP
    100
    """
    _check_choice_of_reviews(n_documents, random_state)
    _, texts = _reviews(find_archive(path), n_documents, random_state)
    return [texts[k] for k in _distinct(texts, n_documents)[1]]


def load_movie_reviews(
    path: str | Path | None = None,
    *,
    n_documents: int = 7000,
    random_state: int = 0,
    min_df: float = 10,
    max_df: float = 3000,
    stop_words: str | Iterable[str] | None = "english",
    lemmatize: bool = True,
) -> Corpus:
    """Count the words of movie reviews chosen at random, as in `tab:nlp`.

    The reviews are those of the Large Movie Review Dataset. Its archive is looked for
    at `path`, then where the environment variable ``AMPTUTORIAL_DATA`` points, then in
    the cache, and at last downloaded (84 MB) and checked. It is read as a stream and
    never unpacked. A file of your own may be any archive of the same layout; downloads
    must have a known checksum.

    The counts are kept in the cache: ``AMPTUTORIAL_CACHE``, else
    ``pooch.os_cache("amptutorial")``. Set ``TQDM_DISABLE=1`` for no progress bars.

    Parameters
    ----------
    path : str or path, optional
        The archive, or a folder that holds ``aclImdb_v1.tar.gz``.
    n_documents : int
        Number of reviews, near-twins not counted (see `corpus_from_texts`). A smaller
        number gives the first of them.
    random_state : int
        Seed of the choice, which does not depend on the order of the archive.
    min_df, max_df, stop_words
        As in `corpus_from_texts`.
    lemmatize : bool
        Whether to count words under their dictionary form.

    Returns
    -------
    Corpus
        Its `labels` are 1 (positive) or 0 (negative), its `names` those of the
        archive's members.

    Raises
    ------
    TypeError
        If `lemmatize` is a function.
    FileNotFoundError, ConnectionError
        If the archive is not where you say, or is nowhere and cannot be downloaded
        whole.
    ValueError
        If the archive is truncated, altered or of another layout, or has fewer than
        `n_documents` distinct reviews; if no word is left.

    Examples
    --------
    >>> corpus = load_movie_reviews(n_documents=7000)  # doctest: +SKIP
    >>> "awful" in corpus.vocabulary  # doctest: +SKIP
    True
    """
    _check_choice_of_reviews(n_documents, random_state)
    if not is_yes_or_no(lemmatize):
        raise TypeError(
            f"lemmatize must be True or False, got {lemmatize!r}: to use a function,"
            " count movie_review_texts() with corpus_from_texts"
        )
    options = check_options(min_df, max_df, stop_words, bool(lemmatize))
    archive = find_archive(path)

    def count():
        names, texts = _reviews(archive, n_documents, random_state)
        labels = np.array([sentiment(name) for name in names])
        return _corpus(texts, names, labels, options, n_documents)

    choices = [sha256(archive), int(n_documents), int(random_state), bool(lemmatize)]
    return _stored(choices, options, count)


def _shipped():
    """Return the corpus of docstrings that comes with the package."""
    try:
        return _from_arrays(load(COUNTED))
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{COUNTED} is missing or damaged ({error}): install amptutorial again"
        ) from error


def _docstrings(packages):
    """Return the dotted names and the sentences of docstrings that are long enough."""
    names, texts = [], []
    for package in packages:
        for name, docstring in docstrings(package):
            text = prose(docstring)
            if len(words(text)) >= _SHORTEST_DOCSTRING:
                names.append(name)
                texts.append(text)
    return names, texts


def _reviews(archive, n_documents, random_state):
    """Return the names and the texts of all reviews, in random order."""
    reviews = read_reviews(archive)
    _check_enough(n_documents, len(reviews), "reviews")
    names = np.random.default_rng(random_state).permutation(list(reviews))
    return names, [reviews[name] for name in names]


def _distinct(texts, n_documents, tokenize=None):
    """Return what `distinct` does, if it finds as many as are asked for."""
    numbered, kept, n_twins = distinct(texts, n_documents, tokenize)
    _check_enough(n_documents or 0, len(kept), "distinct reviews")
    return numbered, kept, n_twins


def _corpus(texts, names, labels, options, n_documents=None, ngram_range=(1, 1)):
    """Leave out near-twins, count the words of the rest, and leave out empty texts.

    The `options` are those of `check_options`.
    """
    numbered, kept, n_twins = _distinct(texts, n_documents, options["tokenize"])
    numbered = lemmas(numbered, options["stop_words"], options["lemmatize"])
    if ngram_range != (1, 1):
        numbered = ngrams(numbered, ngram_range)
    counts = count(numbered)
    chosen = within_bounds(counts, *options["bounds"])
    vocabulary = np.array(list(compress(numbered.vocabulary, chosen)))
    counts = counts[:, chosen]
    full = np.flatnonzero(counts.sum(axis=1))
    kept, n_empty = kept[full], counts.shape[0] - full.size
    labels = None if labels is None else labels[kept]
    return Corpus(counts[full], vocabulary, labels, names[kept], n_twins, n_empty)


def _stored(choices, options, count):
    """Return the corpus that `count` makes, kept under `choices` and `options`."""
    choices = [*choices, *options["bounds"], sorted(options["stop_words"])]
    return _from_arrays(stored(choices, lambda: _to_arrays(count())))


def _from_arrays(arrays):
    """Return the corpus that `_to_arrays` took apart."""
    parts = [arrays[name] for name in ("data", "indices", "indptr")]
    Z = sp.csr_array(tuple(parts), shape=tuple(arrays["shape"]))
    known = arrays["vocabulary"], arrays.get("labels"), arrays["names"]
    n_twins, n_empty = int(arrays["n_twins"]), int(arrays["n_empty"])
    return Corpus(Z, *known, n_twins, n_empty)


def _to_arrays(corpus):
    """Return what has to be stored of a corpus."""
    Z, fields = corpus.counts, vars(corpus)
    arrays = {"data": Z.data, "indices": Z.indices, "indptr": Z.indptr}
    others = {name: fields[name] for name in fields if name not in ("counts", "rows")}
    known = {name: value for name, value in others.items() if value is not None}
    return {**arrays, "shape": Z.shape, **known}


def _check_choice_of_reviews(n_documents, random_state):
    check_integer(n_documents, "n_documents", minimum=1)
    check_integer(random_state, "random_state")


def _check_enough(n_documents, found, what):
    if found < n_documents:
        raise ValueError(
            f"n_documents={n_documents} is more than there are: the archive holds"
            f" {found} {what}"
        )
