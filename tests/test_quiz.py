"""Quizzes: what is written becomes nested boxes, and what is incomplete is refused with its reason."""

import re

import pytest
from docutils.core import publish_doctree
from docutils.nodes import container, paragraph, strong
from docutils.parsers.rst import directives
from docutils.utils import SystemMessage
from myst_parser.parsers.docutils_ import Parser
from quiz import Quiz, setup

QUESTION = "What is *one* and one?\n\nWhole numbers only.\n"
ANSWERS = ["- [ ] One.\n      That is one alone,\n      without the other.", "- [x] **Two**.\n  One and one more."]


def parse(*parts):
    """Return the boxes that the page gets, by their classes."""
    directives.register_directive("quiz", Quiz)
    source = "\n".join(["Before.", "", "```{quiz}", *parts, "```", "", "After."])
    settings = {"halt_level": 2, "warning_stream": False}
    tree = publish_doctree(source, parser=Parser(), settings_overrides=settings)
    return [(" ".join(box["classes"]), box) for box in tree.findall(container)]


def test_a_quiz_becomes_nested_boxes():
    boxes = parse(QUESTION, *ANSWERS)
    choices = ["quiz-choice", "quiz-answer", "quiz-wrong", "quiz-choice", "quiz-answer", "quiz-right"]
    assert [kind for kind, _ in boxes] == ["quiz", "quiz-question", *choices]
    texts = [re.sub(r"\s+", " ", box.astext()) for _, box in boxes]
    assert texts[1:] == [
        "What is one and one? Whole numbers only.",
        "One. That is one alone, without the other.",
        "One.",
        "That is one alone, without the other.",
        "Two. One and one more.",
        "Two.",
        "One and one more.",
    ]
    assert all(box in boxes[0][1].children for kind, box in boxes if kind in ("quiz-question", "quiz-choice"))
    assert [node.astext() for node in boxes[0][1].findall(strong)] == ["Two"]
    assert {kind: {type(child) for child in box} for kind, box in boxes if "choice" not in kind} == {
        "quiz": {container}, "quiz-question": {paragraph}, "quiz-answer": {paragraph}, "quiz-wrong": {paragraph},
        "quiz-right": {paragraph},
    }  # fmt: skip
    assert len(boxes[1][1]) == 2


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([], "at least two answers"),
        (["- [x] Two.\n  One more."], "at least two answers"),
        ([ANSWERS[0], ANSWERS[0]], "one of them marked"),
        ([ANSWERS[1], ANSWERS[1]], "one of them marked"),
        ([ANSWERS[0], "- [x] Two."], "needs an explanation"),
        (["- [ ] One.\n", ANSWERS[1]], "needs an explanation"),
    ],
)
def test_an_incomplete_quiz_is_refused(answers, message):
    with pytest.raises(SystemMessage, match=message):
        parse(QUESTION, *answers)


def test_the_extension_registers_the_directive():
    class App:
        def add_directive(self, name, directive):
            self.added = name, directive

    app = App()
    assert setup(app)["parallel_read_safe"]
    assert app.added == ("quiz", Quiz)
