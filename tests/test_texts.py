"""From texts to counts: words, lemmas, near-twins, and the docstrings of packages."""

import re
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from samples import as_counters, split
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from amptutorial.corpus import Corpus, corpus_from_texts, load_docstrings, loaders
from amptutorial.corpus.docstrings import docstrings, prose
from amptutorial.corpus.twins import distinct
from amptutorial.corpus.words import clean, lemma, words

pytestmark = pytest.mark.usefixtures("offline")


def count_by_hand(texts, min_df, stop_words=frozenset()):
    tokens = [[w for w in split(text) if w not in stop_words] for text in texts]
    df = Counter(w for t in tokens for w in set(t))
    vocabulary = sorted(w for w in df if df[w] >= min_df)
    return vocabulary, [Counter(w for w in t if df[w] >= min_df) for t in tokens]


PLAIN = {"stop_words": None, "lemmatize": False}
TEXTS = ["Alpha beta, BETA gamma; 3 gammas x", "beta gamma delta! delta2delta", "The the the alpha and beta", "omega"]


@pytest.mark.parametrize(
    ("stop_words", "left_out"),
    [(None, set()), ("english", ENGLISH_STOP_WORDS), (["Beta", "delta"], {"beta", "delta"})],
)
@pytest.mark.parametrize("min_df", [1, 2])
def test_counts_are_those_of_a_counter(min_df, stop_words, left_out):
    result = corpus_from_texts(TEXTS, min_df=min_df, stop_words=stop_words, lemmatize=False)
    vocabulary, counters = count_by_hand(TEXTS, min_df, left_out)
    assert result.vocabulary.tolist() == vocabulary
    assert as_counters(result) == [counter for counter in counters if counter]
    assert result.n_empty == sum(not counter for counter in counters)
    assert result.names.tolist() == [k for k, counter in enumerate(counters) if counter]


@given(st.lists(st.text(alphabet="abé 1.\x85\n_", min_size=1, max_size=25), min_size=1, max_size=8), st.integers(1, 2))
def test_sum_of_counts_is_number_of_kept_tokens(texts, min_df):
    first = list({tuple(split(t)): t for t in reversed(texts) if split(t)}.values())  # short twins are equal texts
    vocabulary, counters = count_by_hand(first, min_df)
    options = {"min_df": min_df, "stop_words": None, "lemmatize": False}
    if not vocabulary:
        with pytest.raises(ValueError, match="no word is left"):
            corpus_from_texts(texts, **options)
        return
    result = corpus_from_texts(texts, **options)
    assert result.vocabulary.tolist() == vocabulary
    assert result.counts.sum() == sum(counter.total() for counter in counters)
    assert result.counts.shape[0] + result.n_twins + result.n_empty == len(texts)
    assert result.counts.sum(axis=0).all() and result.counts.sum(axis=1).all()


def test_max_df_as_number_and_as_proportion():
    texts = ["alpha beta", "alpha gamma", "alpha beta gamma", "beta delta"]
    for max_df in (2, 0.5):
        result = corpus_from_texts(texts, min_df=1, max_df=max_df, stop_words=None, lemmatize=False)
        assert result.vocabulary.tolist() == ["delta", "gamma"]
        assert (result.names.tolist(), result.n_empty) == ([1, 2, 3], 1)


def test_tags_and_the_next_line_character_separate_words():
    text = "one<br /><br />two\x85three\u2028four <i class='x'>five</i> 6seven don't"
    assert words(text) == ["one", "two", "three", "four", "five", "seven", "don"]


def test_letters_are_those_of_regular_expressions():
    everything = "".join(map(chr, range(2**16)))
    assert clean(everything).split() == re.findall(r"[^\W\d_]+", everything.lower())


def test_lemmas_are_counted_together():
    result = corpus_from_texts(["films film movies", "A film, the children saw a movie"], stop_words=None, min_df=1)
    counts = dict(zip(result.vocabulary.tolist(), result.counts.sum(axis=0).tolist(), strict=True))
    assert counts == {"film": 3, "movie": 2, "child": 1, "see": 1, "the": 1}
    assert [lemma(w) for w in ("etc", "zzyzx")] == ["etc", "zzyzx"]  # always a word


def test_stop_words_are_left_out_as_words_and_as_lemmas():
    result = corpus_from_texts(["made make makes has having film", "make film"])  # "made" and "have" are stop words
    assert result.vocabulary.tolist() == ["film", "make"]
    assert result.counts.toarray().tolist() == [[1, 2], [1, 1]]
    result = corpus_from_texts(["well-known films", "well known film noir"], stop_words=["Well-Known"])
    assert result.vocabulary.tolist() == ["film"]


def test_labels_follow_their_texts():
    texts = ["alpha beta", "omega", "Alpha, beta!", "beta alpha"]
    result = corpus_from_texts(texts, labels=["a", "b", "c", "d"], stop_words=None)
    assert (result.labels.tolist(), result.names.tolist()) == (["a", "d"], [0, 3])
    assert (result.n_twins, result.n_empty) == (1, 1)


def letters(start, stop):
    return " ".join(chr(97 + k // 26) + chr(97 + k % 26) for k in range(start, stop))


def kept_and_twins(texts, limit=None):
    """Return the positions kept and the number of twins, and check that the words kept are those of the texts."""
    numbered, kept, n_twins = distinct(texts, limit)
    found = [numbered.vocabulary[number] for number in numbered.numbers]
    assert found == [word for k in kept for word in split(texts[k])]
    assert numbered.lengths.tolist() == [len(split(texts[k])) for k in kept]
    return kept.tolist(), n_twins


def test_twins_are_found_by_their_definition():
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(["aa", "bb"], size=size)) for size in rng.integers(0, 40, size=60)]
    # 27 words have 20 runs of eight; sharing the first 17 words shares 10 of them, the first 16 only 9
    texts += [letters(0, 27), f"{letters(0, 17)} {letters(100, 110)}", f"{letters(0, 16)} {letters(110, 121)}"]
    texts += [letters(200, 212), letters(204, 208), letters(208, 212), letters(204, 212)]
    kept, seen = [], []
    for k, text in enumerate(texts):
        tokens = text.split()
        runs = {tuple(tokens[i : i + 8]) for i in range(max(1, len(tokens) - 7))} if tokens else set()
        if not runs or sum(run in seen for run in runs) < len(runs) / 2:
            kept.append(k)
            seen += list(runs)
    assert len(kept) not in (4, 60) and [61, 66] == sorted({*range(60, 67)} - {*kept})
    assert kept_and_twins(texts) == (kept, 67 - len(kept))


def test_twins_differ_in_case_signs_and_tags_only():
    assert kept_and_twins(["Good film.", "good <br /> FILM 10", "film good", ""]) == ([0, 2, 3], 1)


@pytest.mark.parametrize("limit", [1, 2, 19, 20])
def test_more_texts_are_read_where_most_are_twins(limit):
    texts = [letters(30 * (k // 5), 30 * (k // 5) + 30) for k in range(100)]  # each five times
    assert kept_and_twins(texts, limit) == (list(range(0, 5 * limit, 5)), 4 * (limit - 1))  # limit: of those kept


def test_a_word_of_twins_alone_is_not_in_the_vocabulary():
    result = corpus_from_texts([letters(0, 30), letters(0, 20) + " twinned"], min_df=0.0, **PLAIN)
    assert (result.counts.shape, result.n_twins) == ((1, 30), 1)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ("one text", TypeError, "texts must be a list of strings, got str"),
        (3, TypeError, "texts must be a list of strings, got int"),
        (["a", None], TypeError, r"texts\[1\] is of type NoneType"),
        ([b"bytes"], TypeError, r"texts\[0\] is of type bytes"),
        ([], ValueError, "texts is empty"),
        (["", "1 2 3"], ValueError, "no word is left: of 2 documents, at least min_df=2 and at most max_df=1.0"),
        (["the and", "the or"], ValueError, "Lower min_df, raise max_df, pass stop_words=None"),
        (["alpha", "beta"], ValueError, "no word is left"),
        ({"labels": [1]}, ValueError, "labels must hold one label for each of the 2 texts"),
        ({"stop_words": "french"}, ValueError, 'stop_words must be "english", None or a list of words'),
        ({"stop_words": [1]}, TypeError, r"stop_words\[0\] is of type int"),
        ({"min_df": 0}, ValueError, "min_df must be at least 1"),
        ({"min_df": "two"}, TypeError, "min_df must be a number"),
        ({"max_df": 1.5}, ValueError, "max_df must be a number of documents .* or a proportion up to 1.0, got 1.5"),
        ({"max_df": float("nan")}, ValueError, "max_df must be non-negative and finite"),
        ({"min_df": 2, "max_df": 1}, ValueError, "no word is left"),
    ],
)
def test_bad_texts_and_options_are_refused(given, error, message):
    texts, options = (["alpha", "alpha beta"], given) if isinstance(given, dict) else (given, {})
    with pytest.raises(error, match=message):
        corpus_from_texts(texts, **options)


def test_corpus_is_checked_and_cannot_be_changed():
    Z = sp.csr_array([[1, 2], [0, 1]])
    result = Corpus(Z, np.array(["a", "b"]))
    counts = "3 of 4 pairs occur (75 %), 4 counts"
    assert repr(result) == f"Corpus: 2 documents x 2 words, {counts}; left out: 0 near-twins, 0 empty"
    with pytest.raises(AttributeError):
        result.counts = None
    for counts, words_of, more, message in (
        (Z, ["a"], {}, r"vocabulary must have shape \(2,\) to go with counts \(2, 2\), got \(1,\)"),
        (Z, ["a", "b"], {"names": np.arange(3)}, r"names must have shape \(2,\)"),
        (sp.csr_array([[1, 0], [1, 0]]), ["a", "b"], {}, "empty row or column"),
        (-Z, ["a", "b"], {}, "negative"),
    ):
        with pytest.raises(ValueError, match=message):
            Corpus(counts, np.array(words_of), **more)


SOURCE = '''
"""Private module."""
raise SystemExit("imported")

class Shape:
    """A shape."""
    def area(self):
        """Area of it."""
    def _hidden(self):
        """Hidden."""

def _private():
    """Private."""

def outer():
    "Outer \\d function."
    def inner():
        """Inner."""

add_newdoc("place", "compiled", """
    Compiled function.
    """)
add_newdoc("place", "compiled", ("method", """Compiled method."""))
add_newdoc("place", "computed", f"{outer}")
add_newdoc("place", "_internal", """Internal.""")
'''


@pytest.fixture
def package(tmp_path, monkeypatch):
    root = tmp_path / "packages" / "shapes_of_mine"
    for file, text in {
        "__init__.py": '"""Top."""\nraise SystemExit("imported")',
        "_impl.py": SOURCE,
        "plane/__init__.py": '"""Plane."""',
        "plane/curves.py": "async def f():\n    '''Not a plain function.'''",
        "broken.py": "def (",
        **dict.fromkeys(("tests/test_a.py", "test_b.py", "conftest.py"), '"""Test."""'),
    }.items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text)
    monkeypatch.syspath_prepend(root.parent)
    return root.name


def test_public_docstrings_are_found_without_importing(package):
    assert dict(docstrings(package)) == {
        "shapes_of_mine": "Top.",
        "shapes_of_mine.Shape": "A shape.",
        "shapes_of_mine.Shape.area": "Area of it.",
        "shapes_of_mine.outer": "Outer \\d function.",
        "shapes_of_mine.compiled": "Compiled function.",
        "shapes_of_mine.compiled.method": "Compiled method.",
        "shapes_of_mine.plane": "Plane.",
    }


SECTIONS = {
    "Parameters": "strength : float, default=1.0\n    Weight of the :ref:`penalty <here>`, between 0 and 1.",
    "Returns": "model : object\n\n    The fitted one.",
    "See Also": "other : Something else.",
    "Notes": "Solved by :math:`x = y` iterations.",
    "References": '.. [1] Someone, "A book".',
    "Examples": ">>> fit(3)\nthree",
}
START = "Fit the model to ``X`` with `alpha` and n_samples of np.ndarray, f(x) = 1.\n\n.. versionadded:: 1.2"


def test_prose_leaves_out_what_is_not_a_sentence():
    text = "\n\n".join([START, *(f"{title}\n{'-' * len(title)}\n{words}" for title, words in SECTIONS.items())])
    expected = "Fit the model with alpha and Weight the penalty between and The fitted one Solved iterations"
    assert split(prose(text)) == split(expected)


def test_missing_packages_are_named(package):
    with pytest.raises(ValueError, match="no word is left: of 0 documents"):
        load_docstrings([package])
    with pytest.raises(ModuleNotFoundError, match="packages names 'no_such_package_here'"):
        load_docstrings(["no_such_package_here"])
    with pytest.raises(ModuleNotFoundError, match="'scipy.stats', which is not an installed top-level package"):
        load_docstrings(["scipy.stats"])
    with pytest.raises(TypeError, match="packages must be a list of strings, got str"):
        load_docstrings("numpy")


@pytest.mark.slow
def test_default_docstrings_make_a_corpus_to_learn_from():
    pytest.importorskip("matplotlib")
    result = load_docstrings()
    df = (result.counts > 0).sum(axis=0)
    vocabulary, names = set(result.vocabulary.tolist()), result.names.tolist()
    assert df.min() >= 10 and df.max() <= 0.4 * len(names)
    assert {"matrix", "eigenvalue", "axes", "cluster", "integral"} <= vocabulary
    assert ENGLISH_STOP_WORDS.isdisjoint(vocabulary)
    assert {name.split(".")[0] for name in names} == {"numpy", "scipy", "sklearn", "matplotlib"}
    assert "sklearn.linear_model.ridge_regression" in names


def test_docstrings_are_the_same_every_time(tmp_path, monkeypatch):
    one = load_docstrings(["joblib", "pooch"], min_df=3)
    monkeypatch.setenv("AMPTUTORIAL_CACHE", str(tmp_path / "other"))
    two = load_docstrings(["joblib", "pooch"], min_df=3)
    assert (one.counts != two.counts).nnz == 0
    assert one.vocabulary.tolist() == two.vocabulary.tolist() and one.names.tolist() == two.names.tolist()


def test_stored_docstrings_follow_the_source(package, tmp_path, monkeypatch):
    source = tmp_path / "packages" / package / "plane" / "curves.py"
    text = " ".join(["curve", *(chr(97 + k) * 4 for k in range(20))])
    source.write_text(f'"""{text}"""')
    first = load_docstrings([package], min_df=1, max_df=1.0)
    assert first.names.tolist() == ["shapes_of_mine.plane.curves"] and first.labels is None
    with monkeypatch.context() as patch:
        patch.setattr(loaders, "docstrings", lambda name: pytest.fail("the source is read again"))
        assert load_docstrings([package], min_df=1, max_df=1.0).vocabulary.tolist() == first.vocabulary.tolist()
    source.write_text(f'"""{text} surface"""')
    assert "surface" in load_docstrings([package], min_df=1, max_df=1.0).vocabulary
