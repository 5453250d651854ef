"""Quizzes: what is written becomes nested boxes, and what is incomplete is refused with its reason."""

import re

import pytest
from docutils.core import publish_doctree
from docutils.nodes import admonition, container, paragraph, strong
from docutils.parsers.rst import directives
from docutils.utils import SystemMessage
from myst_parser.parsers.docutils_ import Parser
from quiz import Quiz, setup

QUESTION = "What is *one* and one?\n\nWhole numbers only.\n"
ANSWERS = [
    ":::{dropdown} One.\nNot so. That is one alone,\n  without the other.\n:::",
    ":::{dropdown} **Two**.\nRight.\nOne and one more.\n:::",
]


def tree_of(*parts, kind="quiz"):
    """Return what a page reads of an admonition of class `kind`."""
    directives.register_directive("admonition", Quiz)
    box = ["::::{admonition} Question", f":class: {kind}", "", *parts, "::::"]
    source = "\n".join(["Before.", "", *box, "", "After."])
    settings = {"halt_level": 2, "warning_stream": False, "myst_enable_extensions": ["colon_fence"]}
    return publish_doctree(source, parser=Parser(), settings_overrides=settings)


def parse(*parts):
    """Return the boxes that the page gets, by their classes."""
    return [(" ".join(box["classes"]), box) for box in tree_of(*parts).findall(container)]


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
        ([ANSWERS[1]], "at least two answers"),
        ([ANSWERS[0], ANSWERS[0]], 'one of them "Right."'),
        ([ANSWERS[1], ANSWERS[1]], 'one of them "Right."'),
        ([ANSWERS[1], ":::{dropdown} One.\nThat is one alone.\n:::"], 'begins with "Right." or "Not so."'),
        ([ANSWERS[0], ":::{dropdown} Two.\nRight.\n:::"], "needs an explanation"),
        ([":::{dropdown} One.\nNot so.\n\n:::", ANSWERS[1]], "needs an explanation"),
    ],
)
def test_an_incomplete_quiz_is_refused(answers, message):
    with pytest.raises(SystemMessage, match=message):
        parse(QUESTION, *answers)


def test_another_admonition_stays_one():
    tree = tree_of("A *hint*.", kind="tip")
    assert [box["classes"] for box in tree.findall(admonition)] == [["tip"]] and not [*tree.findall(container)]


def test_the_extension_registers_the_directive_in_place_of_the_plain_one():
    class App:
        def add_directive(self, name, directive, override):
            self.added = name, directive, override

    app = App()
    assert setup(app)["parallel_read_safe"]
    assert app.added == ("admonition", Quiz, True)
