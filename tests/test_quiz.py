"""Quizzes: what is written becomes nested boxes, and what is incomplete is refused with its reason."""

import re

import pytest
from docutils.core import publish_doctree
from docutils.nodes import admonition, container, strong
from docutils.parsers.rst import directives
from docutils.utils import SystemMessage
from myst_parser.parsers.docutils_ import Parser
from quiz import Quiz

QUESTION = "What is *one* and one?\n\nWhole numbers only.\n"
ANSWERS = [
    ":::{dropdown} One.\nNot so. That is one alone,\n  without the other.\n:::",
    ":::{dropdown} **Two**.\nRight.\nOne and one more.\n:::",
]


def tree_of(*parts, kind="quiz"):
    directives.register_directive("admonition", Quiz)
    inside = "\n".join(parts)
    source = f"Before.\n\n::::{{admonition}} Question\n:class: {kind}\n\n{inside}\n::::\n\nAfter."
    settings = {"halt_level": 2, "warning_stream": False, "myst_enable_extensions": ["colon_fence"]}
    return publish_doctree(source, parser=Parser(), settings_overrides=settings)


def parse(*parts):
    return [(" ".join(box["classes"]), box) for box in tree_of(*parts).findall(container)]


def test_a_quiz_becomes_nested_boxes():
    boxes = parse(QUESTION, *ANSWERS)
    quiz = boxes[0][1]
    assert [kind for kind, box in boxes if box in quiz] == ["quiz-question", "quiz-choice", "quiz-choice"]
    assert [(kind, re.sub(r"\s+", " ", box.astext())) for kind, box in boxes if box not in quiz][1:] == [
        ("quiz-answer", "One."),
        ("quiz-wrong", "That is one alone, without the other."),
        ("quiz-answer", "Two."),
        ("quiz-right", "One and one more."),
    ]
    assert boxes[1][1].astext().startswith("What is one and one?") and len(boxes[1][1]) == 2
    assert [node.astext() for node in quiz.findall(strong)] == ["Two"]


def test_an_incomplete_quiz_is_refused():
    for answers, message in (
        ([], "at least two answers"),
        ([ANSWERS[1]], "at least two answers"),
        ([ANSWERS[0], ANSWERS[0]], 'one of them "Right."'),
        ([ANSWERS[1], ANSWERS[1]], 'one of them "Right."'),
        ([ANSWERS[1], ":::{dropdown} One.\nThat is one alone.\n:::"], 'begins with "Right." or "Not so."'),
        ([ANSWERS[0], ":::{dropdown} Two.\nRight.\n:::"], "needs an explanation"),
        ([":::{dropdown} One.\nNot so.\n\n:::", ANSWERS[1]], "needs an explanation"),
    ):
        with pytest.raises(SystemMessage, match=message):
            parse(QUESTION, *answers)


def test_another_admonition_stays_one():
    tree = tree_of("A *hint*.", kind="tip")
    assert [box["classes"] for box in tree.findall(admonition)] == [["tip"]] and not [*tree.findall(container)]
