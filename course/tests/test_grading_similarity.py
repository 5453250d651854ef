"""Which submissions are put before somebody's eyes: copies, and not what right solutions have in common."""

import re
from itertools import combinations

import pytest
from grading_samples import ROOT, SOLUTIONS

from amptutorial_course.grading import similarity

FOLDERS = sorted(path.name for path in SOLUTIONS.iterdir() if path.is_dir())


def function(number):
    """Return the text of a function of some thirty runs of syntax, with operators by the digits of a number."""
    signs = [("+", "-", "*", "/")[number // 4**k % 4] for k in range(16)]
    terms = [f"(x[{k}] {sign} y.f{k}(x))" for k, sign in enumerate(signs)]
    return f"def f{number}(x, y):\n    return [{', '.join(terms)}]\n"


@pytest.mark.parametrize("folder", FOLDERS)
def test_right_solutions_written_apart_are_no_pair_and_a_renamed_copy_is(folder):
    starter = (ROOT / "assignments" / folder / "denoiser.py").read_text(encoding="utf-8")
    texts = {path.stem: path.read_text(encoding="utf-8") for path in (SOLUTIONS / folder).glob("*.py")}
    copy = re.sub(r"\bP\b", "rows", re.sub("#.*", "", texts["denoiser"]))
    found = similarity.similar_pairs(texts | {"copy": copy}, {}, starter)
    assert [pair[:2] for pair in found] in ([("denoiser", "copy")], [("copy", "denoiser")]) and found[0][2] > 0.9
    given = similarity.fingerprint(starter)
    prints = [similarity.fingerprint(text) - given for text in texts.values()]
    assert max(similarity.similarity(*pair) for pair in combinations(prints, 2)) < 0.1


def test_what_the_starter_has_is_shared_by_nobody():
    starter, own, other = function(0), function(123_456_789), function(987_654_321)
    sources, others = {"ada": starter + own}, {"2025/li": starter + other}
    assert similarity.similar_pairs(sources, others, starter) == []
    assert similarity.similar_pairs(sources, {"2025/li": own}, starter) == [("ada", "2025/li", 1.0)]


def test_the_shorter_file_is_the_measure():
    own, more = similarity.fingerprint(function(5)), similarity.fingerprint(function(5) + function(123_456_789))
    assert similarity.similarity(own, more) == similarity.similarity(more, own) == 1
