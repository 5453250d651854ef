"""Files that are written all at once: whole or not at all."""

import os

import pytest

from amptutorial._files import write_atomically


@pytest.mark.parametrize("data", ["a text, café", b"\x00 bytes \xff", "", b""], ids=repr)
def test_what_is_written_is_read_back(tmp_path, data):
    path = tmp_path / "folder" / "file"
    write_atomically(path, data)
    assert path.read_bytes() == (data.encode() if isinstance(data, str) else data)
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new" and os.listdir(path.parent) == ["file"]


def test_a_text_that_utf8_cannot_hold_is_stored_with_question_marks(tmp_path):
    write_atomically(tmp_path / "file", "half a pair \ud800 of surrogates")
    assert (tmp_path / "file").read_bytes() == b"half a pair ? of surrogates"
