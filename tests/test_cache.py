"""Counts kept between runs: read again where nothing changed, counted again where anything did."""

import os

import pytest
from samples import SMALL, cached_files, loaded_word, one_review, same, small_archive

from amptutorial.corpus import load_movie_reviews, loaders

pytestmark = pytest.mark.usefixtures("offline")


@pytest.fixture
def small(tmp_path):
    return small_archive(tmp_path / "small.tar.gz")


def test_second_call_reads_the_stored_counts(small, tmp_path, monkeypatch):
    first = load_movie_reviews(small, **SMALL)
    monkeypatch.setattr(loaders, "read_reviews", lambda path: pytest.fail("the archive is read again"))
    assert same(first, load_movie_reviews(small, **SMALL))
    assert [p.suffix for p in cached_files(tmp_path)] == [".counts"]


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
    assert len(cached_files(tmp_path)) == 2


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
    (file,) = cached_files(tmp_path)
    file.write_bytes(damage(file.read_bytes()))
    with pytest.warns(UserWarning, match="is damaged .*: the words are counted again"):
        assert same(first, load_movie_reviews(small, **SMALL))
    assert same(first, load_movie_reviews(small, **SMALL))
    assert cached_files(tmp_path) == [file]


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
    assert not cached_files(tmp_path)
