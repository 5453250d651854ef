import hashlib
import io
import os
import socket
import tarfile
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pooch
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from amptutorial import _archive, corpus
from amptutorial._docstrings import docstrings, prose
from amptutorial._text import distinct, lemma, words
from amptutorial.corpus import Corpus, corpus_from_texts, load_docstrings, load_movie_reviews

OFFICIAL = "aclImdb_v1.tar.gz"
REAL = os.environ.get("AMPTUTORIAL_DATA")  # before any test hides it


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    """No network, no data of the machine, no cache but an empty one."""

    def blocked(*args, **kwargs):
        raise OSError("the network is blocked in this test")

    monkeypatch.setattr(socket, "getaddrinfo", blocked)
    monkeypatch.setattr(socket.socket, "connect", blocked)
    monkeypatch.setenv("AMPTUTORIAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("AMPTUTORIAL_DATA", raising=False)


def member(name, text="", **fields):
    info = tarfile.TarInfo(name)
    data = text if isinstance(text, bytes) else text.encode()
    info.size = len(data)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, data


def make_archive(path, members):
    with tarfile.open(path, "w:gz") as archive:
        for info, data in members:
            archive.addfile(info, io.BytesIO(data))
    return path


def review_texts(k=12):
    """Reviews whose words are `shared` and a word of each review's own, twice."""
    return {
        f"aclImdb/{part}/{side}/{i}_{rating}.txt": f"Shared {part}{chr(97 + i) * 3}{side} {part}{chr(97 + i) * 3}{side}"
        for part in ("train", "test")
        for side, rating in (("pos", 9), ("neg", 2))
        for i in range(k // 4)
    }


@pytest.fixture
def small(tmp_path):
    return make_archive(tmp_path / "small.tar.gz", [member(n, t) for n, t in review_texts().items()])


SMALL = {"n_documents": 5, "min_df": 1, "max_df": 1.0, "stop_words": None, "lemmatize": False}


def same(one, other):
    return (
        (one.counts != other.counts).nnz == 0
        and one.vocabulary.tolist() == other.vocabulary.tolist()
        and one.names.tolist() == other.names.tolist()
        and one.labels.tolist() == other.labels.tolist()
        and (one.n_twins, one.n_empty) == (other.n_twins, other.n_empty)
    )


def split(text):
    """Words of a text without tags, without regular expressions."""
    return [w for w in "".join(c if c.isalpha() else " " for c in text.lower()).split() if len(w) > 1]


def count_by_hand(texts, min_df, stop_words=frozenset()):
    """Vocabulary and one Counter a text, the slow way."""
    tokens = [[w for w in split(text) if w not in stop_words] for text in texts]
    df = Counter(w for t in tokens for w in set(t))
    vocabulary = sorted(w for w in df if df[w] >= min_df)
    return vocabulary, [Counter(w for w in t if df[w] >= min_df) for t in tokens]


def as_counters(result):
    dense = result.counts.toarray()
    return [
        Counter({w: z for w, z in zip(result.vocabulary.tolist(), row.tolist(), strict=True) if z}) for row in dense
    ]


# --- texts to counts ----------------------------------------------------------------------------------------------

TEXTS = [
    "Alpha beta, BETA gamma; 3 gammas x",
    "beta gamma delta! delta2delta",
    "The the the alpha and beta",
    "omega",
]


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
    assert words("one<br /><br />two\x85three\u2028four <i class='x'>five</i> 6seven don't") == [
        *("one", "two", "three", "four", "five", "seven", "don")
    ]


def test_words_after_the_next_line_character_are_counted():
    result = corpus_from_texts(["first\x85second", "second\x85first"], stop_words=None, lemmatize=False)
    assert result.counts.toarray().tolist() == [[1, 1], [1, 1]]


def test_lemmas_are_counted_together():
    result = corpus_from_texts(["films film movies", "A film, the children saw a movie"], stop_words=None, min_df=1)
    assert dict(zip(result.vocabulary.tolist(), result.counts.sum(axis=0).tolist(), strict=True)) == {
        **{"film": 3, "movie": 2, "child": 1, "see": 1, "the": 1}
    }


def test_stop_words_are_left_out_as_words_and_as_lemmas():
    result = corpus_from_texts(["made make makes has having film", "make film"])  # "made" and "have" are stop words
    assert result.vocabulary.tolist() == ["film", "make"]
    assert result.counts.toarray().tolist() == [[1, 2], [1, 1]]


def test_lemma_is_always_a_word():
    assert [lemma(w) for w in ("etc", "was", "films", "zzyzx")] == ["etc", "be", "film", "zzyzx"]


def test_own_stop_words_raise_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = corpus_from_texts(["well-known films", "well known film noir"], stop_words=["Well-Known"])
    assert result.vocabulary.tolist() == ["film"]


def test_labels_follow_their_texts():
    texts = ["alpha beta", "omega", "Alpha, beta!", "beta alpha"]
    result = corpus_from_texts(texts, labels=["a", "b", "c", "d"], stop_words=None)
    assert (result.labels.tolist(), result.names.tolist()) == (["a", "d"], [0, 3])
    assert (result.n_twins, result.n_empty) == (1, 1)


# --- near-twins ---------------------------------------------------------------------------------------------------


def letters(start, stop):
    return " ".join(chr(97 + k // 26) + chr(97 + k % 26) for k in range(start, stop))


def test_half_of_the_runs_makes_a_twin():
    # 27 words have 20 runs of eight; sharing the first 17 words shares 10 of them, the first 16 only 9
    original = letters(0, 27)
    assert distinct([original, letters(0, 17) + " " + letters(100, 110)]) == ([0], 1)
    assert distinct([original, letters(0, 16) + " " + letters(100, 111)]) == ([0, 1], 0)


def test_twins_are_found_by_their_definition():
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(["aa", "bb"], size=size)) for size in rng.integers(0, 40, size=60)]
    kept, seen = [], []
    for k, text in enumerate(texts):
        tokens = text.split()
        runs = {tuple(tokens[i : i + 8]) for i in range(max(1, len(tokens) - 7))} if tokens else set()
        if not runs or sum(run in seen for run in runs) < len(runs) / 2:
            kept.append(k)
            seen += list(runs)
    assert len(kept) not in (0, 60)
    assert distinct(texts) == (kept, 60 - len(kept))


def test_twins_differ_in_case_signs_and_tags_only():
    assert distinct(["Good film.", "good <br /> FILM 10", "film good", ""]) == ([0, 2, 3], 1)


def test_limit_counts_only_what_is_kept():
    assert distinct(["aa", "aa", "bb", "cc", "cc"], 2) == ([0, 2], 1)


# --- bad texts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [
        ("one text", TypeError, "texts must be a list of strings, got str"),
        (3, TypeError, "texts must be a list of strings, got int"),
        (["a", None], TypeError, r"texts\[1\] is of type NoneType"),
        ([b"bytes"], TypeError, r"texts\[0\] is of type bytes"),
        ([], ValueError, "texts is empty"),
        (["", "1 2 3"], ValueError, "no word is left: of 2 documents, at least min_df=2 and at most max_df=1.0"),
        (["the and", "the or"], ValueError, "Lower min_df, raise max_df, pass stop_words=None"),
        (["alpha", "beta"], ValueError, "no word is left"),
    ],
)
def test_texts_without_words_are_refused(texts, error, message):
    with pytest.raises(error, match=message):
        corpus_from_texts(texts)


@pytest.mark.parametrize(
    ("option", "error", "message"),
    [
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
def test_bad_options_are_refused(option, error, message):
    with pytest.raises(error, match=message):
        corpus_from_texts(["alpha", "alpha beta"], **option)


# --- the corpus itself --------------------------------------------------------------------------------------------


def test_corpus_is_checked_and_cannot_be_changed():
    Z = sp.csr_array([[1, 2], [0, 1]])
    result = Corpus(Z, np.array(["a", "b"]))
    assert repr(result) == (
        "Corpus: 2 documents x 2 words, 3 of 4 pairs occur (75 %), 4 counts; left out: 0 near-twins, 0 empty"
    )
    with pytest.raises(AttributeError):
        result.counts = None
    with pytest.raises(ValueError, match=r"vocabulary must have shape \(2,\) to go with counts \(2, 2\), got \(1,\)"):
        Corpus(Z, np.array(["a"]))
    with pytest.raises(ValueError, match=r"names must have shape \(2,\)"):
        Corpus(Z, np.array(["a", "b"]), names=np.arange(3))
    with pytest.raises(ValueError, match="empty row or column"):
        Corpus(sp.csr_array([[1, 0], [1, 0]]), np.array(["a", "b"]))
    with pytest.raises(ValueError, match="negative"):
        Corpus(-Z, np.array(["a", "b"]))


# --- the movie reviews --------------------------------------------------------------------------------------------


def test_reviews_are_counted_with_their_labels(small):
    result = load_movie_reviews(small, **SMALL)
    texts = review_texts()
    assert result.counts.shape == (5, 6)
    assert np.issubdtype(result.counts.dtype, np.integer)
    assert as_counters(result) == [Counter(split(texts[name])) for name in result.names.tolist()]
    assert result.labels.tolist() == [int("/pos/" in name) for name in result.names]


def test_choice_depends_on_the_seed_alone(small, tmp_path):
    shuffled = make_archive(tmp_path / "b.tar.gz", [member(n, t) for n, t in reversed(review_texts().items())])
    first = load_movie_reviews(small, **SMALL)
    assert same(first, load_movie_reviews(shuffled, **SMALL))
    assert first.names.tolist() != load_movie_reviews(small, **SMALL, random_state=1).names.tolist()
    more = load_movie_reviews(small, **{**SMALL, "n_documents": 9})
    assert more.names[:5].tolist() == first.names.tolist()


def test_every_review_is_equally_likely(small):
    order = [load_movie_reviews(small, **{**SMALL, "n_documents": 1}, random_state=k).names[0] for k in range(240)]
    counts = np.array(list(Counter(order).values()))
    # 20 expected each; chi-square with 11 degrees of freedom exceeds 38.6 once in 16,000 (the seeds are fixed)
    assert counts.size == 12 and ((counts - 20) ** 2 / 20).sum() < 38.6


def test_other_members_are_passed_over(tmp_path):
    extra = [
        member("aclImdb", type=tarfile.DIRTYPE),
        member("aclImdb/README", "aclImdb/train/pos/0_9.txt"),
        member("aclImdb/train/unsup/0_0.txt", "shared unsup"),
        member("./aclImdb/train/pos/7_9.txt", "shared dotted"),
        member("aclImdb/train/pos/._8_9.txt", "\x00"),
    ]
    path = make_archive(tmp_path / "a.tar.gz", extra + [member(n, t) for n, t in review_texts().items()])
    result = load_movie_reviews(path, **{**SMALL, "n_documents": 13})
    assert sorted(result.names.tolist()) == sorted([*review_texts(), "aclImdb/train/pos/7_9.txt"])


def test_more_reviews_than_there_are(small, tmp_path):
    with pytest.raises(ValueError, match="n_documents=13 is more than there are: the archive holds 12 reviews"):
        load_movie_reviews(small, **{**SMALL, "n_documents": 13})
    twins = [member(f"aclImdb/train/pos/{k}_9.txt", "Shared words!" if k else "other") for k in range(6)]
    path = make_archive(tmp_path / "twins.tar.gz", twins)
    with pytest.raises(ValueError, match="the archive holds 2 distinct reviews"):
        load_movie_reviews(path, **SMALL)
    result = load_movie_reviews(path, **{**SMALL, "n_documents": 2})
    assert result.counts.shape[0] == 2 and result.n_twins <= 4


@pytest.mark.parametrize(
    ("option", "error", "message"),
    [
        ({"n_documents": 0}, ValueError, "n_documents must be at least 1"),
        ({"n_documents": 2.5}, TypeError, "n_documents must be an integer"),
        ({"random_state": "0"}, TypeError, "random_state must be an integer"),
        ({"random_state": np.random.default_rng(0)}, TypeError, "random_state must be an integer"),
        ({"random_state": -1}, ValueError, "random_state must be at least 0"),
    ],
)
def test_bad_choices_are_refused(small, option, error, message):
    with pytest.raises(error, match=message):
        load_movie_reviews(small, **{**SMALL, **option})


# --- archives that must not be trusted ----------------------------------------------------------------------------

LINK = {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}
HARD = {"type": tarfile.LNKTYPE, "linkname": "aclImdb/train/pos/0_9.txt"}


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        ("../evil.txt", {}, "points outside the archive"),
        ("aclImdb/train/pos/../../../../evil.txt", {}, "points outside the archive"),
        ("aclImdb\\..\\..\\evil.txt", {}, "points outside the archive"),
        ("/tmp/evil.txt", {}, "points outside the archive"),
        ("C:\\evil.txt", {}, "points outside the archive"),
        ("aclImdb/train/pos/1_9.txt", LINK, "is a link or device"),
        ("aclImdb/train/pos/2_9.txt", HARD, "is a link or device"),
        ("aclImdb/pipe", {"type": tarfile.FIFOTYPE}, "is a link or device"),
        ("aclImdb/null", {"type": tarfile.CHRTYPE}, "is a link or device"),
    ],
)
def test_members_that_point_outside_are_refused(tmp_path, name, fields, message):
    good = [member(n, t) for n, t in review_texts().items()]
    path = make_archive(tmp_path / "evil.tar.gz", [*good, member(name, "" if fields else "text", **fields)])
    with pytest.raises(ValueError, match=message) as caught:
        load_movie_reviews(path, **SMALL)
    assert repr(name) in str(caught.value) and str(path) in str(caught.value)
    assert not list(tmp_path.parent.rglob("evil.txt"))


def test_nothing_is_unpacked(small, tmp_path):
    load_movie_reviews(small, **SMALL)
    assert not list(tmp_path.rglob("*_9.txt")) and not list(tmp_path.rglob("aclImdb"))


def damaged_message(path):
    with pytest.raises(ValueError, match="is truncated or damaged") as caught:
        load_movie_reviews(path, **SMALL)
    return str(caught.value)


@pytest.mark.parametrize("keep", [0.0, 0.03, 0.3, 0.7, 0.99])
def test_truncated_archive_is_refused_with_its_checksum(small, keep):
    data = small.read_bytes()[: int(keep * small.stat().st_size)]
    small.write_bytes(data)
    message = damaged_message(small)
    assert hashlib.sha256(data).hexdigest() in message
    assert all(f"{known} ({name})" in message for name, known in _archive.SHA256.items())
    assert "left where it is" in message and small.read_bytes() == data


def test_altered_archive_is_refused_with_its_checksum(small):
    data = bytearray(small.read_bytes())
    data[-6] ^= 1  # the sum that gzip writes at the end
    small.write_bytes(data)
    assert hashlib.sha256(data).hexdigest() in damaged_message(small)


@pytest.mark.parametrize("position", range(0, 100, 7))
def test_altered_bytes_never_pass_unnoticed(small, position):
    # a flipped bit is refused, or lies in gzip's header, where it changes no review
    whole = load_movie_reviews(small, **SMALL)
    data = bytearray(small.read_bytes())
    data[position * len(data) // 100] ^= 16
    small.write_bytes(data)
    try:
        assert same(whole, load_movie_reviews(small, **SMALL))
    except ValueError as error:
        assert str(small) in str(error)


def test_file_that_is_no_archive(tmp_path):
    path = tmp_path / "text.tar.gz"
    path.write_text("not an archive")
    assert "gzip" in damaged_message(path)


def test_archive_of_another_layout(tmp_path):
    path = make_archive(tmp_path / "a.tar.gz", [member("reviews/pos/0_9.txt", "text")])
    with pytest.raises(ValueError, match=r"holds no review: .*aclImdb/\{train,test\}/\{pos,neg\}/<id>_<rating>.txt"):
        load_movie_reviews(path, **SMALL)


def test_review_that_is_no_text(tmp_path):
    path = make_archive(tmp_path / "a.tar.gz", [member("aclImdb/test/neg/0_1.txt", b"caf\xe9")])
    with pytest.raises(ValueError, match="'aclImdb/test/neg/0_1.txt' is not UTF-8 text"):
        load_movie_reviews(path, **SMALL)


# --- where the archive is looked for ------------------------------------------------------------------------------


def one_review(path, word):
    path.parent.mkdir(parents=True, exist_ok=True)
    return make_archive(path, [member("aclImdb/test/pos/0_9.txt", word)])


def loaded_word(path=None):
    return load_movie_reviews(path, **{**SMALL, "n_documents": 1}).vocabulary.tolist()


def trust(monkeypatch, path):
    monkeypatch.setitem(_archive.SHA256, OFFICIAL, hashlib.sha256(path.read_bytes()).hexdigest())


def test_argument_then_variable_then_cache(tmp_path, monkeypatch):
    argument = one_review(tmp_path / "argument.tar.gz", "argument")
    variable = one_review(tmp_path / "variable.tar.gz", "variable")
    cached = one_review(tmp_path / "cache" / OFFICIAL, "cached")
    trust(monkeypatch, cached)
    assert loaded_word() == ["cached"]
    monkeypatch.setenv("AMPTUTORIAL_DATA", str(variable))
    assert loaded_word() == ["variable"]
    assert loaded_word(str(argument)) == ["argument"]


@pytest.mark.parametrize("name", [OFFICIAL, "aclImdb_labelled.tar.gz"])
def test_folder_may_stand_for_the_archive(tmp_path, monkeypatch, name):
    folder = one_review(tmp_path / "folder" / name, "inside").parent
    assert loaded_word(folder) == ["inside"]
    monkeypatch.setenv("AMPTUTORIAL_DATA", str(folder))
    assert loaded_word() == ["inside"]


def test_cache_is_poochs_without_a_variable(tmp_path, monkeypatch):
    monkeypatch.delenv("AMPTUTORIAL_CACHE")
    monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path / "os" / project)
    trust(monkeypatch, one_review(tmp_path / "os" / "amptutorial" / OFFICIAL, "pooch"))
    assert loaded_word() == ["pooch"]


def test_missing_archive_is_named(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="path is .*nowhere.tar.gz, but there is no such file"):
        load_movie_reviews(tmp_path / "nowhere.tar.gz")
    with pytest.raises(FileNotFoundError, match=f"path is the folder .*, which holds none of {OFFICIAL}"):
        load_movie_reviews(tmp_path)
    monkeypatch.setenv("AMPTUTORIAL_DATA", str(tmp_path / "gone"))
    with pytest.raises(FileNotFoundError, match="AMPTUTORIAL_DATA is .*gone, but there is no such file"):
        load_movie_reviews()


def test_cached_archive_must_have_a_known_checksum(tmp_path):
    cached = one_review(tmp_path / "cache" / OFFICIAL, "altered")
    data = cached.read_bytes()
    with pytest.raises(ValueError, match="is truncated or altered") as caught:
        load_movie_reviews()
    aside = cached.with_name(OFFICIAL + ".rejected")
    assert aside.read_bytes() == data and not cached.exists()
    for part in (hashlib.sha256(data).hexdigest(), *_archive.SHA256.values(), str(aside), "call again"):
        assert part in str(caught.value)


def fake_download(monkeypatch, data, error=None):
    class Downloader:
        def __init__(self, progressbar):
            assert progressbar is True

        def __call__(self, url, output, pooch):
            assert url == _archive.URL
            Path(output).write_bytes(data)
            if error:
                raise error

    monkeypatch.setattr(pooch, "HTTPDownloader", Downloader)


def test_download_is_kept_for_the_next_time(tmp_path, monkeypatch):
    source = one_review(tmp_path / "source.tar.gz", "downloaded")
    trust(monkeypatch, source)
    fake_download(monkeypatch, source.read_bytes())
    assert loaded_word() == ["downloaded"]
    assert (tmp_path / "cache" / OFFICIAL).read_bytes() == source.read_bytes()
    assert {p.suffix for p in stored_files(tmp_path)} == {".gz", ".counts"}


def test_truncated_download_is_kept_aside(tmp_path, monkeypatch):
    source = one_review(tmp_path / "source.tar.gz", "downloaded")
    trust(monkeypatch, source)
    data = source.read_bytes()[:-20]
    fake_download(monkeypatch, data)
    with pytest.raises(ValueError, match=hashlib.sha256(data).hexdigest()):
        load_movie_reviews()
    assert [p.name for p in (tmp_path / "cache").iterdir()] == [OFFICIAL + ".rejected"]
    fake_download(monkeypatch, source.read_bytes())
    assert loaded_word() == ["downloaded"]


def test_no_network_names_the_ways_out(tmp_path):
    with pytest.raises(ConnectionError) as caught:
        load_movie_reviews()
    for part in (
        "could not be downloaded",
        "load_movie_reviews('aclImdb_v1.tar.gz')",
        "AMPTUTORIAL_DATA",
        str(tmp_path / "cache" / OFFICIAL),
        "load_docstrings() needs no download",
    ):
        assert part in str(caught.value)
    assert not list((tmp_path / "cache").iterdir())


def test_broken_download_leaves_nothing(tmp_path, monkeypatch):
    fake_download(monkeypatch, b"half", error=OSError("connection lost"))
    with pytest.raises(ConnectionError, match="connection lost"):
        load_movie_reviews()
    assert not list((tmp_path / "cache").iterdir())


# --- counts kept between runs -------------------------------------------------------------------------------------


def stored_files(tmp_path):
    return sorted((tmp_path / "cache").iterdir())


def test_second_call_reads_the_stored_counts(small, tmp_path, monkeypatch):
    first = load_movie_reviews(small, **SMALL)
    monkeypatch.setattr(corpus, "read_reviews", lambda path: pytest.fail("the archive is read again"))
    assert same(first, load_movie_reviews(small, **SMALL))
    assert [p.suffix for p in stored_files(tmp_path)] == [".counts"]


@pytest.mark.parametrize(
    "change",
    [
        {"n_documents": 6},
        {"random_state": 1},
        {"min_df": 2},
        {"max_df": 3},
        {"stop_words": ["shared"]},
        {"lemmatize": True},
    ],
)
def test_every_choice_is_stored_apart(small, tmp_path, change):
    load_movie_reviews(small, **SMALL)
    load_movie_reviews(small, **{**SMALL, **change})
    assert len(stored_files(tmp_path)) == 2


def test_another_archive_is_stored_apart(small, tmp_path):
    load_movie_reviews(small, **SMALL)
    one_review(small, "other")
    assert loaded_word(small) == ["other"]


def flip(data, position):
    return data[:position] + bytes([data[position] ^ 64]) + data[position + 1 :]


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: b"",
        lambda whole: b"no counts",
        lambda whole: whole[: len(whole) // 2],
        lambda whole: flip(whole, 0),
        lambda whole: flip(whole, len(whole) // 2),
        lambda whole: flip(whole, whole.rindex(b"labels.npy")),  # which a zip file does not protect
    ],
    ids=["empty", "other", "half", "checksum", "data", "name"],
)
def test_damaged_store_is_counted_again_after_a_warning(small, tmp_path, damage):
    first = load_movie_reviews(small, **SMALL)
    (file,) = stored_files(tmp_path)
    file.write_bytes(damage(file.read_bytes()))
    with pytest.warns(UserWarning, match="is damaged .*: the words are counted again"):
        assert same(first, load_movie_reviews(small, **SMALL))
    assert same(first, load_movie_reviews(small, **SMALL))
    assert stored_files(tmp_path) == [file]


def test_counts_are_returned_where_they_cannot_be_stored(small, tmp_path, monkeypatch):
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.warns(UserWarning, match="cannot be kept in"):
        assert load_movie_reviews(small, **SMALL).counts.shape[0] == 5


def test_interrupted_writing_leaves_nothing(small, tmp_path, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        load_movie_reviews(small, **SMALL)
    assert not stored_files(tmp_path)


# --- docstrings ---------------------------------------------------------------------------------------------------

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
        "tests/test_a.py": '"""Test."""',
        "test_b.py": '"""Test."""',
        "conftest.py": '"""Test."""',
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


NUMPYDOC = """Fit the model to ``X`` with `alpha` and n_samples of np.ndarray, f(x) = 1.

.. versionadded:: 1.2

Parameters
----------
strength : float, default=1.0
    Weight of the :ref:`penalty <here>`, between 0 and 1.

Returns
-------
model : object

    The fitted one.

See Also
--------
other : Something else.

Notes
-----
Solved by :math:`x = y` iterations.

References
----------
.. [1] Someone, "A book".

Examples
--------
>>> fit(3)
three
"""


def test_prose_leaves_out_what_is_no_sentence():
    assert split(prose(NUMPYDOC)) == split(
        "Fit the model with alpha and Weight the penalty between and The fitted one Solved iterations"
    )


def test_missing_packages_are_named():
    with pytest.raises(ModuleNotFoundError, match="packages names 'no_such_package_here'"):
        load_docstrings(["no_such_package_here"])
    with pytest.raises(ModuleNotFoundError, match="'scipy.stats', which is no installed top-level package"):
        load_docstrings(["scipy.stats"])
    with pytest.raises(TypeError, match="packages must be a list of strings, got str"):
        load_docstrings("numpy")


def test_package_without_enough_words(package):
    with pytest.raises(ValueError, match="no word is left: of 0 documents"):
        load_docstrings([package])


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
        patch.setattr(corpus, "docstrings", lambda name: pytest.fail("the source is read again"))
        assert load_docstrings([package], min_df=1, max_df=1.0).vocabulary.tolist() == first.vocabulary.tolist()
    source.write_text(f'"""{text} surface"""')
    assert "surface" in load_docstrings([package], min_df=1, max_df=1.0).vocabulary


# --- the real reviews ---------------------------------------------------------------------------------------------


@pytest.mark.reviews
@pytest.mark.skipif(REAL is None, reason="the movie reviews are not here: set AMPTUTORIAL_DATA to them or their folder")
def test_real_reviews_are_counted_as_by_hand():
    result = load_movie_reviews(REAL, n_documents=400, min_df=3, max_df=200)
    rows = dict(zip(result.names.tolist(), as_counters(result), strict=True))
    vocabulary = set(result.vocabulary.tolist())
    assert len(rows) == 400 - result.n_empty
    assert result.labels.tolist() == ["/pos/" in name for name in rows]
    with tarfile.open(_archive.find_archive(REAL)) as archive:
        for info in archive:
            if info.name in rows:
                text = archive.extractfile(info).read().decode().replace("<br />", " ")
                tokens = [lemma(w) for w in split(text) if w not in ENGLISH_STOP_WORDS]
                assert Counter(w for w in tokens if w in vocabulary) == rows.pop(info.name)
    assert not rows


@pytest.mark.reviews
@pytest.mark.skipif(REAL is None, reason="the movie reviews are not here: set AMPTUTORIAL_DATA to them or their folder")
def test_truncated_real_archive_is_refused(tmp_path):
    whole = _archive.find_archive(REAL)
    path = tmp_path / OFFICIAL
    with open(whole, "rb") as source:
        path.write_bytes(source.read(3_000_000))
    assert hashlib.sha256(path.read_bytes()).hexdigest() in damaged_message(path)
