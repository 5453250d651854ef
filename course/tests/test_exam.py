"""The exam has two questions with solutions for every chapter, under its title."""

import re
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.skipif(not (ROOT / "solutions").is_dir(), reason="the solutions are elsewhere")
def test_every_chapter_has_two_exam_questions_with_solutions():
    parts = re.split(r"^## ", (ROOT / "solutions/exam.md").read_text(), flags=re.MULTILINE)[1:]
    chapters = sorted((ROOT.parent / "book").glob("*.ipynb"))
    for number, (part, path) in enumerate(zip(parts, chapters, strict=True), start=1):
        title = re.search(r"^# (.*)$", nbformat.read(path, as_version=4).cells[0].source, re.MULTILINE)[1]
        assert part.startswith(f"{number}. {title}\n")
        assert [f"**{number}{letter}.**" in part for letter in "abc"] == [True, True, False]
        assert part.count("*Solution.*") == 2
