"""Words in context: which pairs of words are counted, and what the texts of the sources are."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import SMALL, cached_files, one_review, small_archive, split

from amptutorial import AMPEmbedding
from amptutorial.corpus import (
    cooccurrence,
    corpus_from_texts,
    docstring_texts,
    load_docstrings,
    load_movie_reviews,
    movie_review_texts,
    term_lemma,
)
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


# Which pairs are counted


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (1, {("bb", "aa"): 1, ("cc", "bb"): 1, ("aa", "cc"): 1, ("aa", "bb"): 1}),
        (2, {("bb", "aa"): 1, ("cc", "bb"): 1, ("aa", "cc"): 1, ("aa", "bb"): 2, ("cc", "aa"): 1}),
        (3, {("bb", "aa"): 1, ("cc", "bb"): 1, ("aa", "cc"): 1, ("aa", "bb"): 2, ("cc", "aa"): 1, ("aa", "aa"): 1}),
    ],
)
def test_a_window_counts_the_words_before_and_ends_with_the_text(window, expected):
    result = cooccurrence(["aa bb cc aa", "bb aa"], window=window, **PLAIN)
    assert as_counter(result) == expected
    assert result.rows == "words" and np.issubdtype(result.counts.dtype, np.integer)


def test_a_window_longer_than_every_text_counts_all_pairs():
    texts = ["aa bb cc aa", "bb aa", "dd"]
    results = [as_counter(cooccurrence(texts, window=window, **PLAIN)) for window in (3, 4, 10**12)]
    assert results[0] == results[1] == results[2] and results[0].total() == 6 + 1


def test_both_sides_add_the_transpose():
    texts = ["aa bb cc aa", "bb bb aa"]
    result = cooccurrence(texts, window=2, context="both", **PLAIN)
    before = count_by_hand(texts, 2)
    assert as_counter(result) == before + mirrored(before)
    assert as_counter(result)["bb", "bb"] == 2  # each sees the other
    assert (result.counts != result.counts.T).nnz == 0
    assert result.names.tolist() == result.vocabulary.tolist() == ["aa", "bb", "cc"]


@given(
    st.lists(st.text(alphabet="ab é", min_size=1, max_size=30), min_size=1, max_size=6),
    st.integers(1, 5),
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


def test_words_left_out_do_not_separate_their_neighbours():
    texts = ["red and the wine", "wine strangely red"]
    result = cooccurrence(texts, window=1)  # stop words; a word of one text alone
    assert as_counter(result) == {("wine", "red"): 1, ("red", "wine"): 1}
    assert as_counter(cooccurrence(texts, window=1, **PLAIN))["wine", "red"] == 0


def test_words_are_counted_as_lemmas():
    texts = ["bold films", "bold film posters"]
    assert as_counter(cooccurrence(texts, window=1)) == {("film", "bold"): 2}
    by_two_letters = cooccurrence(texts, window=1, min_df=1, lemmatize=lambda word: word[:2])
    assert as_counter(by_two_letters) == {("fi", "bo"): 2, ("po", "fi"): 1}


def test_texts_left_out_are_counted():
    result = cooccurrence(["red wine", "Red, wine!", "wine red", "wine", ""], min_df=1)
    assert as_counter(result) == {("wine", "red"): 1, ("red", "wine"): 1}
    assert (result.n_twins, result.n_empty) == (1, 2)
    assert repr(result) == (
        "Corpus: 2 words x 2 words, 2 of 4 pairs occur (50 %), 2 counts; left out: 1 near-twins, 2 empty"
    )


def test_a_word_without_context_has_no_row():
    result = cooccurrence(["aa bb cc", "aa cc bb"], window=1, **PLAIN)
    assert (result.names.tolist(), result.vocabulary.tolist()) == (["bb", "cc"], ["aa", "bb", "cc"])
    result = cooccurrence(["aa bb", "aa bb cc", "dd"], window=1, context="both", **PLAIN)
    assert result.names.tolist() == result.vocabulary.tolist() == ["aa", "bb", "cc"]


@pytest.mark.parametrize(
    ("texts", "option", "error", "message"),
    [
        ("one text", {}, TypeError, "texts must be a list of strings, got str"),
        ([], {}, ValueError, "texts is empty"),
        (["a", None], {}, TypeError, r"texts\[1\] is of type NoneType"),
        (["red wine"], {"window": 0}, ValueError, "window must be at least 1"),
        (["red wine"], {"window": 2.5}, TypeError, "window must be an integer"),
        (["red wine"], {"context": "left"}, ValueError, r"context must be one of \['before', 'both'\], got 'left'"),
        (["red wine"], {"lemmatize": "english"}, TypeError, "lemmatize must be True, False, or a function from word"),
        (["red wine"], {"min_df": 0}, ValueError, "min_df must be at least 1"),
        (["red wine"], {}, ValueError, "no word is left"),
        (["wine", "wine red"], {}, ValueError, "no pair of words is left: in each of the texts, at most one word"),
    ],
)
def test_bad_arguments_are_refused(texts, option, error, message):
    with pytest.raises(error, match=message):
        cooccurrence(texts, **option)


def test_words_of_a_topic_have_embeddings_near_each_other(rng):
    topics = np.array([[f"{letter}{letter}{other}" for other in "abcdefghij"] for letter in "xyz"])
    texts = [" ".join(rng.choice(topics[k % 3], 30)) for k in range(120)]
    result = cooccurrence(texts, min_df=1, stop_words=None, lemmatize=False)
    model = AMPEmbedding(2, random_state=0).fit(result.counts)
    assert model.heldout_gain_ > 0.9  # of at most log(3): a word says which third of the words surrounds it
    for rows, words in ((model.embedding_, result.names), (model.components_.T, result.vocabulary)):
        assert {word[0] for word in nearest_words(rows, words, "xxa", 9)} == {"x"}


# The texts of the sources


def counts_alike(one, other):
    return one.vocabulary.tolist() == other.vocabulary.tolist() and (one.counts != other.counts).nnz == 0


def test_docstring_texts_are_those_that_are_counted():
    options = {"min_df": 2, "max_df": 0.4}
    texts, corpus = docstring_texts(["pooch"]), load_docstrings(["pooch"], **options)
    assert counts_alike(corpus_from_texts(texts, lemmatize=term_lemma, **options), corpus)
    result = cooccurrence(texts, window=3, lemmatize=term_lemma, **options)
    lengths = corpus.counts.sum(axis=1)
    assert result.counts.sum() == sum(np.maximum(lengths - distance, 0).sum() for distance in (1, 2, 3))
    assert {*result.names, *result.vocabulary} <= {*corpus.vocabulary} and result.n_twins == corpus.n_twins


def test_movie_review_texts_are_those_that_are_counted(tmp_path):
    path = small_archive(tmp_path / "small.tar.gz")
    texts = movie_review_texts(path, n_documents=5)
    assert not (tmp_path / "cache").exists()  # texts are never stored
    assert counts_alike(corpus_from_texts(texts, **PLAIN), load_movie_reviews(path, **SMALL))
    assert (
        texts == movie_review_texts(path, n_documents=7)[:5] != movie_review_texts(path, n_documents=5, random_state=1)
    )
    assert len(cached_files(tmp_path)) == 1


def test_movie_review_texts_are_refused_as_their_counts_are(tmp_path):
    path = one_review(tmp_path / "one.tar.gz", "alone")
    with pytest.raises(ValueError, match="n_documents=2 is more than there are: the archive holds 1 reviews"):
        movie_review_texts(path, n_documents=2)
    with pytest.raises(TypeError, match="random_state must be an integer"):
        movie_review_texts(path, n_documents=1, random_state="0")
    with pytest.raises(ModuleNotFoundError, match="packages names 'no_such_package_here'"):
        docstring_texts(["no_such_package_here"])
    with pytest.raises(TypeError, match="packages must be a list of strings, got str"):
        docstring_texts("pooch")


def test_a_word_at_distance_k_counts_one_kth_where_weights_are_harmonic():
    """By hand: in "red wine glass red", red has glass at 1, wine at 2, and red at 3 before it."""
    corpus = cooccurrence(["red wine glass red"], window=3, weights="harmonic", min_df=1, lemmatize=False)
    row = dict(zip(corpus.vocabulary, corpus.counts.toarray()[corpus.names.tolist().index("red")], strict=True))
    assert row == pytest.approx({"glass": 1.0, "red": 1 / 3, "wine": 1 / 2})
    flat = cooccurrence(["red wine glass red"], window=3, min_df=1, lemmatize=False)
    assert flat.counts.sum() == 6 and corpus.counts.sum() == pytest.approx(3 + 2 / 2 + 1 / 3)


def test_weights_of_another_name_are_an_error():
    with pytest.raises(ValueError, match="weights must be one of"):
        cooccurrence(["red wine"], weights="glove", min_df=1)
