"""Every chapter can be read in the time that it states; studies/readability.py says what is counted."""

import re

import pytest
from execute_book import BOOK

from studies.readability import measure, open_text, sentences


@pytest.mark.parametrize("path", sorted(BOOK.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_chapter_is_one_sitting_of_the_stated_minutes_and_opens_with_something_to_look_at(path):
    page = measure(path)
    assert page.words <= 3000 and page.lines <= 200
    assert page.median <= 7 and page.longest_of_most <= 14
    assert page.pixels <= 900
    assert len(page.long_sentences) <= 2, page.long_sentences
    assert page.questions <= 1
    assert int(re.search(r"\*Time:\* about (\d+) minutes", page.prose)[1]) == page.minutes


def test_folds_and_formulas_do_not_count_and_included_code_does():
    text = "One two $x + y$ three.\n\n$$\nz = 1\n$$\n\n:::{dropdown} Proof\nHidden words.\n:::\n\n"
    text += "```{prf:lemma} Name\n:label: lem-x\n\nFour {ref}`ch-x` five?\n```\n"
    shown, included = open_text(text, BOOK)
    assert "Hidden" not in shown and "z = 1" not in shown and "Four" in shown and included == 0
    assert sentences(shown) == ["One two word three.", "Four word five?"]
    text = "```{literalinclude} ../amptutorial/model.py\n:pyobject: draw_embedding\n:lines: 1,3-5\n```\n"
    assert open_text(text, BOOK)[1] == 4
