"""Sphinx extension: a quiz, written as a box of folds so that JupyterLab shows it too.

    ::::{admonition} Question
    :class: quiz

    What is $1 + 1$?

    :::{dropdown} One.
    Not so. That is $1$ alone.
    :::
    :::{dropdown} Two.
    Right. One and one more.
    :::
    ::::

It writes nested boxes only, readable as they stand; `book/assets/book.js` makes buttons of the answers.
"""

import re

from docutils import nodes
from docutils.parsers.rst.directives.admonitions import Admonition
from sphinx.util.docutils import SphinxDirective

ANSWER, END = ":::{dropdown} ", ":::"
REASON = re.compile(r"(Right|Not so)\.\s*(.*)", re.DOTALL)


def split_answers(lines):
    """Return the lines of the question, and for each answer whether it is right, its line, and why.

    Of an answer that does not say whether it is right, nothing is known: None.

    Examples
    --------
    >>> quiz = ":::{dropdown} Yes.|Right. It is.|:::|:::{dropdown} No.|Not so. It is not.|:::"
    >>> split_answers(["One?", "", *quiz.split("|")])
    (['One?', ''], [(True, 'Yes.', ['It is.']), (False, 'No.', ['It is not.'])])
    """
    question, answers, lines = [], [], iter(lines)
    for line in lines:
        if line.startswith(ANSWER):
            reason = "\n".join(iter(lambda: next(lines, END), END))
            found = REASON.match(reason)
            right, why = (found[1] == "Right", found[2]) if found else (None, reason)
            answers.append((right, line.removeprefix(ANSWER), why.split("\n")))
        else:
            question.append(line)
    return question, answers


class Quiz(Admonition, SphinxDirective):
    """An admonition; with the class `quiz`, a question with answers, one of them right, each with an explanation."""

    def run(self):
        """Return a box of class `quiz` with the question and one box for each answer."""
        if "quiz" not in self.options.get("class", []):
            return super().run()
        question, answers = split_answers(list(self.content))
        if len(answers) < 2 or [right for right, _, _ in answers].count(True) != 1:
            raise self.error('a quiz needs at least two answers, one of them "Right."')
        if any(right is None for right, _, _ in answers):
            raise self.error('every answer of a quiz begins with "Right." or "Not so."')
        if not all("".join(why).strip() for _, _, why in answers):
            raise self.error("every answer of a quiz needs an explanation")
        choices = [
            nodes.container(
                "", self.box([answer], "quiz-answer"), self.box(why, "quiz-right" if right else "quiz-wrong"),
                classes=["quiz-choice"],
            )
            for right, answer, why in answers
        ]  # fmt: skip
        return [nodes.container("", self.box(question, "quiz-question"), *choices, classes=["quiz"])]

    def box(self, lines, kind):
        """Return a box of class `kind` with what the `lines` say."""
        parsed = self.parse_text_to_nodes("\n".join(lines), offset=self.content_offset)
        return nodes.container("", *parsed, classes=[kind])


def setup(app):
    """Register the directive in the place of the plain one."""
    app.add_directive("admonition", Quiz, override=True)
    return {"parallel_read_safe": True}
