"""From texts to counts: words, lemmas, near-twins, and the docstrings of packages."""

import io
import os
import re
import unicodedata
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pandas
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from samples import as_counters, split
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from amptutorial.corpus import Corpus, corpus_from_texts, load_docstrings, loaders
from amptutorial.corpus.docstrings import docstrings, prose
from amptutorial.corpus.twins import distinct
from amptutorial.corpus.words import _clean, lemma, words

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.usefixtures("offline")


def count_by_hand(texts, min_df, stop_words=frozenset()):
    tokens = [[w for w in split(text) if w not in stop_words] for text in texts]
    df = Counter(w for t in tokens for w in set(t))
    vocabulary = sorted(w for w in df if df[w] >= min_df)
    return vocabulary, [Counter(w for w in t if df[w] >= min_df) for t in tokens]


PLAIN = {"stop_words": None, "lemmatize": False}


@given(
    st.lists(st.text(alphabet="abé 1.\x85\n_", min_size=1, max_size=25), min_size=1, max_size=8),
    st.integers(1, 2),
    st.sampled_from([set(), {"ab", "ba"}]),
)
def test_counts_are_those_of_a_counter(texts, min_df, stop_words):
    first = {tuple(split(text)): k for k, text in reversed([*enumerate(texts)])}  # short twins are equal texts
    kept = sorted(k for tokens, k in first.items() if tokens)
    vocabulary, counters = count_by_hand([texts[k] for k in kept], min_df, stop_words)
    options = PLAIN | {"min_df": min_df, "stop_words": [word.upper() for word in stop_words] or None}
    if not vocabulary:
        with pytest.raises(ValueError, match="no word is left"):
            corpus_from_texts(texts, **options)
        return
    result = corpus_from_texts(texts, **options)
    assert result.vocabulary.tolist() == vocabulary
    assert as_counters(result) == [counter for counter in counters if counter]
    assert result.names.tolist() == [k for k, counter in zip(kept, counters, strict=True) if counter]
    assert result.n_empty == sum(not split(text) for text in texts) + sum(not counter for counter in counters)
    assert result.counts.shape[0] + result.n_twins + result.n_empty == len(texts)


def test_max_df_as_number_and_as_proportion():
    texts = ["alpha beta", "alpha gamma", "alpha beta gamma", "beta delta"]
    for max_df in (2, 0.5):
        result = corpus_from_texts(texts, min_df=1, max_df=max_df, **PLAIN)
        assert result.vocabulary.tolist() == ["delta", "gamma"]
        assert (result.names.tolist(), result.n_empty) == ([1, 2, 3], 1)


SPLIT = [
    ("one<br /><br />two\x85three\u2028four <i class='x'>five</i> 6seven", "one two three four five seven"),
    ("I <3 this film, a great plot: 10 > 9", "this film great plot"),
    ("if a < b and -> c <- dd <= ee <!-- no --> ff <?no?> </p>gg", "if and dd ee ff gg"),
    ("Tom &amp; Jerry&nbsp;film caf&eacute; &#39;red&#x27; &lt;br&gt; &lt;3 wine", "tom jerry film café red wine"),
    ("twice &amp;amp; escaped&amp;nbsp;text &amp;lt;br&amp;gt;", "twice escaped text"),
    (f"no &#{'9' * 5000}; character", "no character"),
    ("आधुनिक हिन्दी", "आधुनिक हिन्दी"),
    ("العَرَبِيَّة שָׁלוֹם ทำไม", "العَرَبِيَّة שָׁלוֹם ทำไม"),
    (unicodedata.normalize("NFD", "Naïve café"), "naïve café"),
    ("İstanbul I\u0307zmir istanbul", "istanbul izmir istanbul"),
    ("soft\u00adhyphen می\u200cخواهم \ufeffbom", "softhyphen میخواهم bom"),
    ("zero\u200bwidth", "zero width"),
    ("\u2764\ufe0flove 1\ufe0f\u20e3 5\u0301\u0302", "love"),
    ("\ufb01lm \uff46ull ㅋㅋ Windows™", "film full ㅋㅋ windows"),
    ("mustn't won’t isn`t they'll we’ve", "mustn't won't isn't they ll we ve"),
    ("o'clock l’homme 'quoted' rock'n'roll didn't've", "clock homme quoted rock roll didn't ve"),
    ("'мята' ·vi· ״שלום״ 张三·李四 a·b cʼhoar km² km2 H₂O 2½h ①st", "мята vi שלום 张三 李四 a·b cʼhoar km km st"),
    ("the <title> of a page", "the of page"),
    ("a <video> of wine, <p hidden>never ended", "of wine never ended"),
    ("red &lt;script&gt; is a tag <!-- cut off", "red is tag"),
]


@pytest.mark.parametrize(("text", "expected"), SPLIT)
def test_words_of_a_text(text, expected):
    assert words(text) == expected.split()


# A browser shows "red", "seen" and "wine" of them: tests/test_browser.py asks one.
HTML = [
    "red <script>var hidden = 1; if (a < b) tell('</div>')</script> <style>p {color: blue}</style> wine",
    "<html><head><title>Tab</title><meta name='author' content='me'></head><body>red wine</body></html>",
    "red <!-- a > b, <b>secret</b> --> <!--> <!---> <?xml version='1'?> <!doctype html> wine <!-- cut off",
    "red <template><p>secret</p></template> <noscript>secret</noscript> <iframe>secret</iframe> wine",
    "red <DIV HIDDEN><div>secret</div>more</div> <span\nhidden=''>secret</span> wine",
    "red <b style='color: red; DISPLAY : none'>secret</b> <i style=\"visibility:hidden\">secret</i> wine",
    "red <p hidden>secret<p>seen</p> <video>secret</video> <canvas>secret</canvas> <dialog>secret</dialog> wine",
    "red <p style='backface-visibility: hidden; display: nonesuch'>seen</p> wine",
    "red <p aria-hidden=true>seen</p> <i class='a hidden b' title='is hidden'>seen</i> <dialog open>seen</dialog> wine",
    "red <input hidden> <br hidden> <img hidden> <input type=hidden value='x > secret'> wine <i data-hidden>seen</i>",
    "red <img alt='a > secret' title=\"it's > secret\"> <p onclick='if (a > secret) tell()'>seen</p> wine",
    "red <math><mi>seen</mi><annotation>secret</annotation></math> <svg><title>secret</title></svg> wine",
    "red wine <script>secret",
]


@pytest.mark.parametrize("text", HTML)
def test_words_are_those_that_a_browser_shows(text):
    found = words(text)
    assert found[0] == "red" and set(found) <= {"red", "seen", "wine"} and "wine" in found
    assert found.count("seen") == text.count("seen")


ONE_WORD = [
    "м'ята м’ята мʼята м‘ята М`ЯТА",
    "ג'ירף ג׳ירף ג’ירף",
    'צה״ל צה"ל צה”ל',
    "col·legi COL·LEGI coŀlegi col‧legi",
    "كتاب كتـــاب ﻛﺘﺎب",
    "ガイド ｶﾞｲﾄﾞ",
    "wine ｗｉｎｅ 𝐰𝐢𝐧𝐞 ｗi\u00adne",
    "ինչու ինչո՞ւ",
    "didn't didnʼt didn’t didn＇t",
    "iz İz I\u0307z",
    "շեմն շեﬓ",
    "שלום ﬩שלום",
    "džep ǆep Ǆep",
]


@pytest.mark.parametrize("spellings", ONE_WORD)
def test_spellings_of_one_word_are_one(spellings):
    found = words(spellings)
    assert len(found) == len(spellings.split()) and set(found) == {found[0]}


PIECES = ["<", "a < b ", "<a ", "<!--", "&", "&amp;", "&#1", "'", "n't", "a\u0301\u0323", "\u0301\u0323"]
PIECES += [*"<script>|<script |<title>|<p hidden>|<div hidden><div>|<a b='|</|·|ʼ".split("|"), '="<a "', '"']


@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize("start", ["", "<a ", "<p hidden>"])
def test_time_is_linear_in_the_length_of_a_text(piece, start):
    """In quadratic time so many characters would take minutes."""
    assert len(_clean(start + piece * (200_000 // len(piece)))) <= 200_000 + len(start)


def test_letters_are_those_of_unicode_and_forms_of_a_letter_are_the_letter():
    unseen_or_mark = {"Cf", "Mn", "Mc"}
    typed = "[\u0674\u1100-\u11ff]"  # Kazakh and Korean letters that NFKC takes apart
    for character in map(chr, range(2**16)):
        one = character.lower()
        if len(one) > 1 or unicodedata.category(one) in unseen_or_mark or one in "\u0640\u07fa\u05f4":
            continue
        if unicodedata.is_normalized("NFKC", one):
            is_letter = unicodedata.category(one)[0] == "L" or unicodedata.category(one) == "Nl"
            assert _clean(character).split() == [one] * is_letter, character
        elif one >= "\ufb00" and one.isalpha():
            plain = unicodedata.normalize("NFKC", one)
            assert _clean(character) == _clean(plain) or re.search(typed, plain), character


@pytest.mark.parametrize("lemmatize", [True, False])
def test_nothing_of_a_contraction_stays_with_english_stop_words(lemmatize):
    verbs = "ai are ca could do does did had has have is might must need sha should was were wo would".split()
    texts = [f"{verb}n{mark}t they{mark}{end} go" for verb in verbs for mark in "'’" for end in ("ll", "ve", "re", "d")]
    texts += ["Don won a haven, sadn?t mustn?t"]
    result = corpus_from_texts(texts, min_df=1, lemmatize=lemmatize)
    assert result.vocabulary.tolist() == ["haven", "sadn", "won"] if lemmatize else ["don", "haven", "sadn", "won"]
    own = corpus_from_texts(["they don’t know, mustn't they"], stop_words=["don't", "They"], min_df=1, lemmatize=False)
    assert own.vocabulary.tolist() == ["know", "mustn't"]


def test_lemmas_are_counted_together():
    result = corpus_from_texts(["films film movies", "A film, the children saw a movie"], stop_words=None, min_df=1)
    counts = dict(zip(result.vocabulary.tolist(), result.counts.sum(axis=0).tolist(), strict=True))
    assert counts == {"film": 3, "movie": 2, "child": 1, "see": 1, "the": 1}
    assert [lemma(w) for w in ("etc", "zzyzx")] == ["etc", "zzyzx"]  # always a word
    result = corpus_from_texts(["films and xyzzy"], min_df=1, stop_words=None, lemmatize={"films": "film"}.get)
    assert result.vocabulary.tolist() == ["and", "film", "xyzzy"]  # which a lemmatiser may leave as it is


def test_stop_words_are_left_out_as_words_and_as_lemmas():
    result = corpus_from_texts(["made make makes has having film", "make film"])  # "made" and "have" are stop words
    assert result.vocabulary.tolist() == ["film", "make"]
    assert result.counts.toarray().tolist() == [[1, 2], [1, 1]]
    result = corpus_from_texts(["well-known films", "well known film noir"], stop_words=["Well-Known"])
    assert result.vocabulary.tolist() == ["film"]


@pytest.mark.parametrize("nothing", [(), set(), np.array([], dtype=str), iter([]), pandas.Index([])], ids=repr)
def test_nothing_is_no_stop_word(nothing):
    result = corpus_from_texts(["the red wine", "the wine"], stop_words=nothing, min_df=1)
    assert result.vocabulary.tolist() == ["red", "the", "wine"]


def test_labels_follow_their_texts_and_a_word_of_twins_alone_is_not_in_the_vocabulary():
    result = corpus_from_texts([letters(0, 30), letters(0, 20) + " twinned"], min_df=0.0, **PLAIN)
    assert (result.counts.shape, result.n_twins) == ((1, 30), 1)
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
    assert kept_and_twins(["Good film.", "good <br /> FILM 10", "film good", ""]) == ([0, 2, 3], 1)
    assert len(kept) not in (4, 60) and [61, 66] == sorted({*range(60, 67)} - {*kept})
    assert kept_and_twins(texts) == (kept, 67 - len(kept))


@pytest.mark.parametrize("limit", [1, 2, 19, 20])
def test_more_texts_are_read_where_most_are_twins(limit):
    texts = [letters(30 * (k // 5), 30 * (k // 5) + 30) for k in range(100)]  # each five times
    assert kept_and_twins(texts, limit) == (list(range(0, 5 * limit, 5)), 4 * (limit - 1))  # limit: of those kept


def test_bad_texts_and_options_are_refused():
    for wrong, error, message in (
        ("one text", TypeError, "texts must be a list of strings, got str"),
        (["a", None], TypeError, r"texts\[1\] is of type NoneType"),
        ([b"bytes"], TypeError, r"texts\[0\] is of type bytes, b'bytes'. Decode it, or open its file as text"),
        (io.BytesIO(b"a line"), TypeError, "open its file as text"),
        ([("a", 1)], TypeError, r"texts\[0\] is of type tuple, .* Pass one string of each"),
        (pandas.DataFrame({"review": ["a"]}), TypeError, r'got DataFrame: of a table, .* column.*frame\["review"\]'),
        (pandas.Series(["a", np.nan]), TypeError, r"texts\[1\] is of type float, nan. Leave out what is missing"),
        (pandas.Series(["a", None], dtype="string"), TypeError, r"texts\[1\] is of type NAType, .*dropna\(\)"),
        (np.array([["a", "b"]]), TypeError, "got ndarray: of a table, pass one column"),
        (MappingProxyType({"a": "b"}), TypeError, "got mappingproxy: of a table, pass one column"),
        (sp.csr_array([[1]]), TypeError, "got csr_array: of a table, pass one column"),
        ([], ValueError, "texts is empty"),
        (["", "1 2 3"], ValueError, "no word is left: of 2 documents, at least min_df=2 and at most max_df=1.0"),
        (["the and", "the or"], ValueError, "Lower min_df, raise max_df, pass stop_words=None"),
        ({"labels": [1]}, ValueError, "labels must hold one label for each of the 2 texts"),
        ({"stop_words": "french"}, ValueError, 'stop_words must be "english", None or a list of words'),
        ({"stop_words": [1]}, TypeError, r"stop_words\[0\] is of type int"),
        ({"min_df": 0}, ValueError, "min_df must be at least 1"),
        ({"max_df": 1.5}, ValueError, "max_df must be a number of documents .* or a proportion up to 1.0, got 1.5"),
        ({"stop_words": {"the": 1}}, TypeError, "stop_words must be a list of strings, got dict"),
        ({"tokenize": "jieba"}, TypeError, "tokenize must be None, or a function from text to list of words"),
        ({"tokenize": str.lower}, TypeError, "tokenize=str.lower returned 'alpha', of type str, for 'alpha': return a"),
        ({"tokenize": len}, TypeError, "tokenize=len returned 5, of type int, for 'alpha'"),
        ({"tokenize": lambda text: [text, None]}, TypeError, "returned None, of type .*, for 'alpha': return only str"),
        ({"lemmatize": []}, TypeError, "lemmatize must be"),
        ({"lemmatize": np.array([True, False])}, TypeError, "lemmatize must be"),
        ({"lemmatize": len}, TypeError, "lemmatize=len returned 5, of type int, for 'alpha': return the dictionary"),
        ({"lemmatize": lambda word: ""}, TypeError, "<lambda> returned '', of type str, for 'alpha'"),
        ({"ngram_range": 2}, ValueError, r"ngram_range must be a pair of integers \(low, high\), got 2"),
        ({"ngram_range": (0, 1)}, ValueError, r"ngram_range\[0\] must be at least 1"),
        ({"ngram_range": (2, 1)}, ValueError, r"ngram_range\[1\] must be at least 2"),
    ):
        texts, options = (["alpha", "alpha beta"], wrong) if isinstance(wrong, dict) else (wrong, {})
        with pytest.raises(error, match=message):
            corpus_from_texts(texts, **options)


@pytest.mark.parametrize(
    "form", [list, tuple, iter, pandas.Series, pandas.Index, np.array, lambda texts: io.StringIO("\n".join(texts))]
)
def test_what_holds_one_text_after_another_is_taken(form):
    result = corpus_from_texts(form(["red wine", "red car"]), min_df=1)
    assert result.vocabulary.tolist() == ["car", "red", "wine"]


def test_words_of_ones_own_count_as_they_come():
    seen = []

    def split_at_bars(text):
        seen.append(text)
        return (token for token in text.split("|"))

    texts = ["Red|wine|a|<b>|| ", "a|New York|wine", "a|New York|wine"]
    result = corpus_from_texts(texts, tokenize=split_at_bars, min_df=1, stop_words=["wine|x"], lemmatize=False)
    assert seen[1:] == texts and seen[0] == "wine|x"
    assert result.vocabulary.tolist() == ["<b>", "New York", "Red", "a"]
    assert result.n_twins == 1 and result.counts.sum() == 5


def ngrams_by_hand(tokens, low, high):
    return [" ".join(tokens[k : k + n]) for n in range(low, high + 1) for k in range(len(tokens) - n + 1)]


@pytest.mark.parametrize("ngram_range", [(1, 1), (1, 2), (2, 3), (3, 3)])
def test_ngrams_are_runs_of_the_words_that_are_left(ngram_range):
    texts = ["red wine of the old glasses", "old red wine, red wine", "glass", "", "wine of old"]
    tokens = [["red", "wine", "old", "glass"], ["old", "red", "wine", "red", "wine"], ["glass"], [], ["wine", "old"]]
    expected = [Counter(ngrams_by_hand(words, *ngram_range)) for words in tokens]
    result = corpus_from_texts(texts, ngram_range=ngram_range, min_df=1)
    assert as_counters(result) == [counter for counter in expected if counter]
    assert result.vocabulary.tolist() == sorted(set().union(*expected))
    with pytest.raises(ValueError, match="no word is left"):
        corpus_from_texts(texts, ngram_range=(7, 8), min_df=1)


@pytest.mark.slow  # it reads its dictionary
@pytest.mark.filterwarnings("ignore:pkg_resources")  # which it imports where it can
def test_chinese_with_jieba(tmp_path):
    jieba = pytest.importorskip("jieba")
    jieba.setLogLevel("ERROR")
    jieba.dt.tmp_dir = str(tmp_path)  # of its own cache
    result = corpus_from_texts(["我喜欢红酒", "红酒很好"], tokenize=jieba.lcut, stop_words=["我", "很"], min_df=1)
    assert result.vocabulary.tolist() == ["喜欢", "好", "红酒"]


def test_japanese_with_janome():
    tokenizer = pytest.importorskip("janome.tokenizer").Tokenizer(wakati=True)
    stop_words = ["が", "です", "と"]
    result = corpus_from_texts(["猫が好きです", "猫と犬"], tokenize=tokenizer.tokenize, stop_words=stop_words, min_df=1)
    assert result.vocabulary.tolist() == ["好き", "犬", "猫"]


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
        "nested.py": "x = " + "+".join(["1"] * 20_000),
        "null.py": "x = '\0'",
        "folder.py/inside.py": '"""Inside."""',
        **dict.fromkeys(("tests/test_a.py", "test_b.py", "conftest.py"), '"""Test."""'),
    }.items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text)
    if os.name == "posix":
        (root / ".#notes.py").symlink_to("someone@host.1234")
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
        "shapes_of_mine.folder.py.inside": "Inside.",
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
    for packages, message in (
        ([package], "no word is left: of 0 documents"),
        (["no_such_package_here"], "packages names 'no_such_package_here'"),
        (["scipy.stats"], "'scipy.stats', which is not an installed top-level package"),
        ("numpy", "packages must be a list of strings, got str"),
    ):
        with pytest.raises((ValueError, ModuleNotFoundError, TypeError), match=message):
            load_docstrings(packages)


@pytest.mark.slow
def test_the_counts_that_come_with_the_package_are_those_of_the_pinned_versions():
    pinned = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().split() if "==" in line)
    names = ("numpy", "scipy", "scikit-learn", "matplotlib")
    if any(version(name) != pinned[name] for name in names):
        pytest.skip("other versions have other docstrings")
    given, counted = load_docstrings(), load_docstrings(loaders.PACKAGES)
    assert (given.counts != counted.counts).nnz == 0
    for key in ("vocabulary", "names"):
        assert np.array_equal(getattr(given, key), getattr(counted, key))


def test_default_docstrings_make_a_corpus_to_learn_from_whatever_is_installed(monkeypatch):
    monkeypatch.setattr(loaders, "docstrings", lambda name: pytest.fail("the source is read"))
    result = load_docstrings()
    df = (result.counts > 0).sum(axis=0)
    vocabulary, names = set(result.vocabulary.tolist()), result.names.tolist()
    assert df.min() >= 10 and df.max() <= 0.4 * len(names)
    assert {"matrix", "eigenvalue", "axes", "cluster", "integral"} <= vocabulary
    assert ENGLISH_STOP_WORDS.isdisjoint(vocabulary)
    assert {name.split(".")[0] for name in names} == {"numpy", "scipy", "sklearn", "matplotlib"}
    assert "sklearn.linear_model.ridge_regression" in names


@pytest.mark.parametrize("keep", [slice(0), slice(10_000), slice(1, None), None], ids=["empty", "begun", "cut", "none"])
def test_damaged_counts_that_come_with_the_package_are_refused_and_the_file_is_named(tmp_path, monkeypatch, keep):
    copy = tmp_path / "docstrings.counts"
    if keep:
        copy.write_bytes(loaders.COUNTED.read_bytes()[keep])
    monkeypatch.setattr(loaders, "COUNTED", copy)
    with pytest.raises(ValueError, match=rf"{copy} is missing or damaged \(.+\): install amptutorial again"):
        load_docstrings()


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
