"""The movie reviews: which are chosen, where the archive is found, what is refused; counts kept between runs."""

import gzip
import hashlib
import os
import shutil
import tarfile
from collections import Counter
from pathlib import Path

import numpy as np
import pooch
import pytest
import samples
from samples import OFFICIAL, SMALL, as_counters, cached_files, loaded_word, one_review, same, split
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from amptutorial.corpus import archive, load_movie_reviews, loaders
from amptutorial.corpus.words import CONTRACTIONS, lemma

REAL = os.environ.get("AMPTUTORIAL_DATA")  # before any test hides it
pytestmark = pytest.mark.usefixtures("offline")


@pytest.fixture
def small(tmp_path):
    return samples.small_archive(tmp_path / "small.tar.gz")


def test_reviews_are_counted_with_their_labels(small):
    result = load_movie_reviews(small, **SMALL)
    texts = samples.review_texts()
    assert result.counts.shape == (5, 6)
    assert np.issubdtype(result.counts.dtype, np.integer)
    assert as_counters(result) == [Counter(split(texts[name])) for name in result.names.tolist()]
    assert result.labels.tolist() == [int("/pos/" in name) for name in result.names]


def test_choice_depends_on_the_seed_alone(small, tmp_path):
    backwards = [samples.member(*item) for item in reversed(samples.review_texts().items())]
    shuffled = samples.make_archive(tmp_path / "b.tar.gz", backwards)
    first = load_movie_reviews(small, **SMALL)
    assert same(first, load_movie_reviews(shuffled, **SMALL))
    assert first.names.tolist() != load_movie_reviews(small, **SMALL, random_state=1).names.tolist()
    more = load_movie_reviews(small, **{**SMALL, "n_documents": 9})
    assert more.names[:5].tolist() == first.names.tolist()


@pytest.mark.slow
def test_every_review_is_equally_likely(small):
    order = [load_movie_reviews(small, **{**SMALL, "n_documents": 1}, random_state=k).names[0] for k in range(240)]
    counts = np.array(list(Counter(order).values()))
    # 20 expected each; chi-square with 11 degrees of freedom exceeds 38.6 once in 16,000 (the seeds are fixed)
    assert counts.size == 12 and ((counts - 20) ** 2 / 20).sum() < 38.6


def test_more_reviews_than_there_are(small, tmp_path):
    with pytest.raises(ValueError, match="n_documents=13 is more than there are: the archive holds 12 reviews"):
        load_movie_reviews(small, **{**SMALL, "n_documents": 13})
    twins = [samples.member(f"./aclImdb/train/pos/{k}_9.txt", "Shared words!" if k else "other") for k in range(6)]
    path = samples.make_archive(tmp_path / "twins.tar.gz", twins)
    with pytest.raises(ValueError, match="the archive holds 2 distinct reviews"):
        load_movie_reviews(path, **SMALL)
    result = load_movie_reviews(path, **{**SMALL, "n_documents": 2})
    assert result.counts.shape[0] == 2 and result.n_twins <= 4
    assert all(name.startswith("aclImdb/") for name in result.names)  # which may begin with the folder


def test_bad_choices_are_refused(small):
    for option, value, message in (
        ("n_documents", 0, "n_documents must be at least 1"),
        ("random_state", np.random.default_rng(0), "random_state must be an integer"),
        ("lemmatize", str.lower, r"lemmatize must be True or False.*movie_review_texts\(\)"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            load_movie_reviews(small, **{**SMALL, option: value})


LINK = {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}
HARD = {"type": tarfile.LNKTYPE, "linkname": "aclImdb/train/pos/0_9.txt"}
ELSEWHERE = """../evil.txt aclImdb/train/pos/../../../../evil.txt aclImdb/train/pos/../pos/1_9.txt C:\\evil.txt
    aclImdb/README aclImdb/train/unsup/0_0.txt aclImdb/train/pos/._8_9.txt
    ../aclImdb/train/pos/1_9.txt /aclImdb/train/pos/1_9.txt aclImdb\\..\\..\\evil.txt""".split()
KINDS = [LINK, HARD, *({"type": kind} for kind in (tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.DIRTYPE))]


@pytest.mark.parametrize(
    ("name", "fields"),
    [(name, {}) for name in [*ELSEWHERE, "aclImdb/train/pos/1_9.txt\n"]]
    + [(f"aclImdb/train/pos/{number}_9.txt", fields) for number, fields in enumerate(KINDS, start=11)],
)
def test_other_members_are_passed_over_and_nothing_is_unpacked(tmp_path, name, fields):
    members = [samples.member(*item) for item in samples.review_texts().items()]
    members.append(samples.member(name, "" if fields else "evil", **fields))
    path = samples.make_archive(tmp_path / "evil.tar.gz", members)
    result = load_movie_reviews(path, **{**SMALL, "n_documents": 12})
    assert sorted(result.names.tolist()) == sorted(samples.review_texts())
    assert "evil" not in result.vocabulary
    assert not [*tmp_path.parent.rglob("evil.txt"), *tmp_path.rglob("*_9.txt"), *tmp_path.rglob("aclImdb")]
    with pytest.raises(ValueError, match="holds 12 reviews"):
        load_movie_reviews(path, **{**SMALL, "n_documents": 13})


def damaged_message(path):
    with pytest.raises(ValueError, match="is truncated or damaged") as caught:
        load_movie_reviews(path, **SMALL)
    return str(caught.value)


@pytest.mark.parametrize("keep", [0.0, 0.03, 0.3, 0.7, 0.99, 1.0])
def test_damaged_archive_is_refused_with_its_checksum(small, keep):
    data = bytearray(small.read_bytes()[: int(keep * small.stat().st_size)])
    if keep == 1:
        data[-6] ^= 1  # the sum that gzip writes at the end
    small.write_bytes(data)
    message = damaged_message(small)
    assert hashlib.sha256(data).hexdigest() in message
    assert all(f"{known} ({name})" in message for name, known in archive.SHA256.items())
    assert "left where it is" in message and small.read_bytes() == data


def test_what_holds_no_review_says_why(tmp_path):
    path = tmp_path / "a.tar.gz"
    path.write_bytes(gzip.compress(b"review,sentiment\n" * 100))
    assert "or no tar archive" in damaged_message(path)
    for name, text, told in (
        ("reviews/pos/0_9.txt", "text", r"holds no review: .*aclImdb/\{train,test\}/\{pos,neg\}/<id>_<rating>.txt"),
        ("aclImdb/test/neg/0_1.txt", b"caf\xe9", "'aclImdb/test/neg/0_1.txt' is not UTF-8 text"),
    ):
        with pytest.raises(ValueError, match=told):
            load_movie_reviews(samples.make_archive(path, [samples.member(name, text)]), **SMALL)


OTHER_FILES = [
    ("zip", "a zip archive"),
    ("xztar", "a tar archive that is not compressed by gzip"),
    (b"review,sentiment\ngood,1", "text that begins with 'review,sentiment"),
    (b"\x89PNG\0\0", "no archive"),
]


@pytest.mark.parametrize(("kind", "found"), OTHER_FILES)
def test_another_kind_of_file_is_named(tmp_path, kind, found):
    (tmp_path / "aclImdb").mkdir()
    (tmp_path / "aclImdb/0_9.txt").write_text("text")
    path = tmp_path / "reviews.bin"
    if isinstance(kind, bytes):
        path.write_bytes(kind)
    else:
        os.rename(shutil.make_archive(tmp_path / "packed", kind, tmp_path, "aclImdb"), path)
    with pytest.raises(ValueError, match=f"reviews.bin is {found}.*: wanted is a tar archive compressed by gzip"):
        load_movie_reviews(path, **SMALL)


def trust(monkeypatch, path):
    monkeypatch.setitem(archive.SHA256, OFFICIAL, hashlib.sha256(path.read_bytes()).hexdigest())


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


def test_the_cache_is_poochs_without_a_variable_and_may_be_below_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("AMPTUTORIAL_CACHE", "~/cache")
    assert archive.cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("AMPTUTORIAL_CACHE")
    monkeypatch.setattr(pooch, "os_cache", lambda project: tmp_path / "os" / project)
    trust(monkeypatch, one_review(tmp_path / "os" / "amptutorial" / OFFICIAL, "pooch"))
    assert loaded_word() == ["pooch"]


def test_missing_archive_is_named(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="path is .*nowhere.tar.gz, but there is no such file or folder"):
        load_movie_reviews(tmp_path / "nowhere.tar.gz")
    with pytest.raises(FileNotFoundError, match=f"path is the folder .*, which holds none of {OFFICIAL}"):
        load_movie_reviews(tmp_path)
    monkeypatch.setenv("AMPTUTORIAL_DATA", str(tmp_path / "gone"))
    with pytest.raises(FileNotFoundError, match="AMPTUTORIAL_DATA is .*gone, but there is no such file or folder"):
        load_movie_reviews()


def test_cached_archive_must_have_a_known_checksum(tmp_path):
    cached = one_review(tmp_path / "cache" / OFFICIAL, "altered")
    data = cached.read_bytes()
    with pytest.raises(ValueError, match="is truncated or altered") as caught:
        load_movie_reviews()
    aside = cached.with_name(OFFICIAL + ".rejected")
    assert aside.read_bytes() == data and not cached.exists()
    for part in (hashlib.sha256(data).hexdigest(), *archive.SHA256.values(), str(aside), "call again"):
        assert part in str(caught.value)


def fake_download(monkeypatch, data, error=None):
    class Downloader:
        def __init__(self, progressbar):
            assert progressbar.disable and progressbar.total == archive.SIZE

        def __call__(self, url, output, pooch):
            assert url == archive.URL
            Path(output).write_bytes(data)
            if error:
                raise error

    monkeypatch.setattr(pooch.downloaders, "HTTPDownloader", Downloader)


def test_download_is_kept_for_the_next_time(tmp_path, monkeypatch):
    source = one_review(tmp_path / "source.tar.gz", "downloaded")
    trust(monkeypatch, source)
    fake_download(monkeypatch, source.read_bytes())
    assert loaded_word() == ["downloaded"]
    assert (tmp_path / "cache" / OFFICIAL).read_bytes() == source.read_bytes()
    assert {p.suffix for p in cached_files(tmp_path)} == {".gz", ".counts"}
    fake_download(monkeypatch, b"", error=AssertionError("downloaded twice"))
    assert loaded_word() == ["downloaded"]


def test_truncated_download_is_refused_and_not_kept(tmp_path, monkeypatch):
    source = one_review(tmp_path / "source.tar.gz", "downloaded")
    trust(monkeypatch, source)
    data = source.read_bytes()[:-20]
    fake_download(monkeypatch, data)
    with pytest.raises(ConnectionError, match="could not be downloaded") as caught:
        load_movie_reviews()
    for digest in (archive.SHA256[OFFICIAL], hashlib.sha256(data).hexdigest()):
        assert digest in str(caught.value)
    assert not cached_files(tmp_path)
    fake_download(monkeypatch, source.read_bytes())
    assert loaded_word() == ["downloaded"]


def test_no_network_names_the_ways_out_and_leaves_nothing(tmp_path, monkeypatch):
    with pytest.raises(ConnectionError, match="could not be downloaded") as caught:
        load_movie_reviews()
    ways = "load_movie_reviews('aclImdb_v1.tar.gz')", "AMPTUTORIAL_DATA", "load_docstrings() needs no download"
    assert all(part in str(caught.value) for part in (*ways, str(tmp_path / "cache" / OFFICIAL)))
    fake_download(monkeypatch, b"half", error=OSError("connection lost"))
    with pytest.raises(ConnectionError, match="connection lost"):
        load_movie_reviews()
    assert not list((tmp_path / "cache").iterdir())


def test_second_call_reads_the_stored_counts(small, tmp_path, monkeypatch):
    first = load_movie_reviews(small, **SMALL)
    monkeypatch.setattr(loaders, "read_reviews", lambda path: pytest.fail("the archive is read again"))
    assert same(first, load_movie_reviews(small, **SMALL))
    assert [p.suffix for p in cached_files(tmp_path)] == [".counts"]


def test_every_choice_is_stored_apart(small, tmp_path):
    choices = dict(n_documents=6, random_state=1, min_df=2, max_df=3, stop_words=["shared"], lemmatize=True)
    for stored, choice in enumerate([{}, *({name: choices[name]} for name in choices)], start=1):
        load_movie_reviews(small, **SMALL | choice)
        assert len(cached_files(tmp_path)) == stored, choice
    one_review(small, "other")  # another archive of the same name
    assert loaded_word(small) == ["other"]


def flip(data, position):
    return data[:position] + bytes([data[position] ^ 64]) + data[position + 1 :]


def test_damaged_store_is_counted_again_after_a_warning(small, tmp_path):
    first = load_movie_reviews(small, **SMALL)
    (file,) = cached_files(tmp_path)
    whole = file.read_bytes()
    places = 0, len(whole) // 2, whole.rindex(b"labels.npy")  # a checksum, data, and a name, which zip does not protect
    for damaged in (b"", b"no counts", whole[: len(whole) // 2], *(flip(whole, place) for place in places)):
        file.write_bytes(damaged)
        with pytest.warns(UserWarning, match="is damaged .*: the words are counted again"):
            assert same(first, load_movie_reviews(small, **SMALL))
        assert same(first, load_movie_reviews(small, **SMALL))
        assert cached_files(tmp_path) == [file]


def test_counts_are_returned_where_they_cannot_be_stored(small, tmp_path, monkeypatch):
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.warns(UserWarning, match="cannot be kept in"):
        assert load_movie_reviews(small, **SMALL).counts.shape[0] == 5


@pytest.mark.slow
@pytest.mark.reviews
def test_real_reviews_are_counted_as_by_hand():
    result = load_movie_reviews(REAL, n_documents=400, min_df=3, max_df=200)
    rows = dict(zip(result.names.tolist(), as_counters(result), strict=True))
    vocabulary = set(result.vocabulary.tolist())
    assert len(rows) == 400 - result.n_empty
    assert result.labels.tolist() == ["/pos/" in name for name in rows]
    with tarfile.open(archive.find_archive(REAL)) as members:
        for info in members:
            if info.name in rows:
                text = members.extractfile(info).read().decode().replace("<br />", " ").lower()
                whole = [w.replace("\u02bc", "'") for w in split(text.replace("n't", "n\u02bct"))]
                tokens = [lemma(w) for w in whole if w not in ENGLISH_STOP_WORDS | CONTRACTIONS]
                assert Counter(w for w in tokens if w in vocabulary) == rows.pop(info.name)
    assert not rows
