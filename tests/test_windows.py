"""Words in context: which pairs of words are counted, and what the texts of the sources are."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import SMALL, cached_files, small_archive, split

from amptutorial import AMPEmbedding
from amptutorial.corpus import cooccurrence, corpus_from_texts, docstring_texts, loaders, movie_review_texts, term_lemma
from amptutorial.neighbours import nearest_words

pytestmark = pytest.mark.usefixtures("offline")
PLAIN = {"min_df": 1, "stop_words": None, "lemmatize": False}


def as_counter(corpus):
    """Return the counts by (word of the row, word of the column)."""
    Z = corpus.counts.tocoo()
    pairs = zip(corpus.names[Z.coords[0]].tolist(), corpus.vocabulary[Z.coords[1]].tolist(), strict=True)
    return Counter(dict(zip(pairs, Z.data.tolist(), strict=True)))


def count_by_hand(texts, window, min_df=1, stop_words=()):
    """Return the counts of (word, word before it) by a loop over all pairs of positions."""
    texts = [[word for word in split(text) if word not in stop_words] for text in texts]
    df = Counter(word for text in texts for word in set(text))
    counts = Counter()
    for text in ([word for word in text if df[word] >= min_df] for text in texts):
        for j, word in enumerate(text):
            for k, other in enumerate(text):
                if 1 <= j - k <= window:
                    counts[word, other] += 1
    return counts


def mirrored(counts):
    return Counter({(k, j): z for (j, k), z in counts.items()})


@given(
    st.lists(st.text(alphabet="ab é", min_size=1, max_size=30), min_size=1, max_size=6),
    st.sampled_from([1, 2, 3, 5, 10**12]),  # some windows are longer than every text
    st.integers(1, 2),
    st.sampled_from([(), ("ab", "aaa")]),
    st.sampled_from(["before", "both"]),
)
def test_counts_are_those_of_a_double_loop(texts, window, min_df, stop_words, context):
    distinct = list({tuple(split(text)): text for text in reversed(texts) if split(text)}.values())
    expected = count_by_hand(distinct, window, min_df, stop_words)
    expected += mirrored(expected) if context == "both" else Counter()
    options = {"min_df": min_df, "stop_words": stop_words or None, "lemmatize": False}
    if not expected:
        with pytest.raises(ValueError, match="no word is left|no pair of words is left"):
            cooccurrence(texts, window=window, context=context, **options)
        return
    result = cooccurrence(texts, window=window, context=context, **options)
    assert as_counter(result) == expected
    assert result.counts.sum(axis=0).all() and result.counts.sum(axis=1).all()
    assert result.rows == "words" and np.issubdtype(result.counts.dtype, np.integer)
    if context == "both":
        assert (result.counts != result.counts.T).nnz == 0 and result.names.tolist() == result.vocabulary.tolist()


def test_words_are_counted_as_lemmas_or_as_ones_own():
    texts = ["bold films", "bold film posters"]
    assert as_counter(cooccurrence(texts, window=1)) == {("film", "bold"): 2}
    by_two_letters = cooccurrence(texts, window=1, min_df=1, lemmatize=lambda word: word[:2])
    assert as_counter(by_two_letters) == {("fi", "bo"): 2, ("po", "fi"): 1}
    result = cooccurrence(["红酒", "红茶"], tokenize=list, min_df=1)
    assert as_counter(result) == {("酒", "红"): 1, ("茶", "红"): 1}


def test_texts_left_out_are_counted():
    result = cooccurrence(["red wine", "Red, wine!", "wine red", "wine", ""], min_df=1)
    assert as_counter(result) == {("wine", "red"): 1, ("red", "wine"): 1}
    assert (result.n_twins, result.n_empty) == (1, 2)
    assert repr(result).startswith("Corpus: 2 words x 2 words, 2 of 4 pairs occur")


def test_bad_arguments_are_refused():
    for texts, option, message in (
        ("one text", {}, "texts must be a list of strings, got str"),
        (["red wine"], {"tokenize": len}, "tokenize=len returned 8"),
        (["red wine"], {"window": 0}, "window must be at least 1"),
        (["red wine"], {"context": "left"}, r"context must be one of \['before', 'both'\], got 'left'"),
        (["red wine"], {"context": np.array(["before"])}, "context must be one of"),
        (["red wine"], {"weights": "glove"}, "weights must be one of"),
        (["red wine"], {"lemmatize": "english"}, "lemmatize must be True, False, or a function from word"),
        (["red wine"], {}, "no word is left"),
        (["wine", "wine red"], {}, "no pair of words is left: in each of the texts, at most one word"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            cooccurrence(texts, **option)


def test_words_of_a_topic_have_embeddings_near_each_other(rng):
    topics = np.array([[f"{letter}{letter}{other}" for other in "abcdefghij"] for letter in "xyz"])
    texts = [" ".join(rng.choice(topics[k % 3], 30)) for k in range(120)]
    result = cooccurrence(texts, min_df=1, stop_words=None, lemmatize=False)
    model = AMPEmbedding(2, random_state=0).fit(result.counts)
    assert model.heldout_gain_ > 0.9  # of at most log(3): a word says which third of the words surrounds it
    for rows, words in ((model.embedding_, result.names), (model.components_.T, result.vocabulary)):
        assert {word[0] for word in nearest_words(rows, words, "xxa", 9)} == {"x"}


def counts_alike(one, other):
    return one.vocabulary.tolist() == other.vocabulary.tolist() and (one.counts != other.counts).nnz == 0


def test_docstring_texts_are_those_that_are_counted():
    options = {"min_df": 2, "max_df": 0.4}
    texts, corpus = docstring_texts(["pooch"]), loaders.load_docstrings(["pooch"], **options)
    assert counts_alike(corpus_from_texts(texts, lemmatize=term_lemma, **options), corpus)
    result = cooccurrence(texts, window=3, lemmatize=term_lemma, **options)
    lengths = corpus.counts.sum(axis=1)
    assert result.counts.sum() == sum(np.maximum(lengths - distance, 0).sum() for distance in (1, 2, 3))
    assert {*result.names, *result.vocabulary} <= {*corpus.vocabulary} and result.n_twins == corpus.n_twins


def test_movie_review_texts_are_those_that_are_counted(tmp_path):
    path = small_archive(tmp_path / "small.tar.gz")
    texts = movie_review_texts(path, n_documents=5)
    assert not (tmp_path / "cache").exists()  # texts are never stored
    assert counts_alike(corpus_from_texts(texts, **PLAIN), loaders.load_movie_reviews(path, **SMALL))
    others = movie_review_texts(path, n_documents=5, random_state=1)
    assert texts == movie_review_texts(path, n_documents=7)[:5] != others
    assert len(cached_files(tmp_path)) == 1
    with pytest.raises(ValueError, match="n_documents=13 is more than there are: the archive holds 12 reviews"):
        movie_review_texts(path, n_documents=13)
    with pytest.raises(ModuleNotFoundError, match="packages names 'no_such_package_here'"):
        docstring_texts(["no_such_package_here"])


def test_a_word_at_distance_k_counts_one_kth_where_weights_are_harmonic():
    """By hand: in "red wine glass red", red has glass at 1, wine at 2, and red at 3 before it."""
    corpus = cooccurrence(["red wine glass red"], window=3, weights="harmonic", min_df=1, lemmatize=False)
    row = dict(zip(corpus.vocabulary, corpus.counts.toarray()[corpus.names.tolist().index("red")], strict=True))
    assert row == pytest.approx({"glass": 1.0, "red": 1 / 3, "wine": 1 / 2})
    flat = cooccurrence(["red wine glass red"], window=3, min_df=1, lemmatize=False)
    assert flat.counts.sum() == 6 and corpus.counts.sum() == pytest.approx(3 + 2 / 2 + 1 / 3)
