"""Sphinx extension: the directive `quiz`, a question whose answers say why they are right or wrong.

    ```{quiz}
    What is $1 + 1$?

    - [ ] One.
      That is $1$ alone.
    - [x] Two.
      One and one more.
    ```

It writes nested boxes only, readable as they stand; `book/assets/book.js` makes buttons of the answers.
"""

from itertools import pairwise

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

WRONG, RIGHT = "- [ ] ", "- [x] "


def split_answers(lines):
    """Return the lines of the question, and for each answer whether it is right, its line, and why.

    Examples
    --------
    >>> split_answers(["One?", "", "- [x] Yes.", "  It is.", "- [ ] No.", "  It is not."])
    (['One?', ''], [(True, 'Yes.', ['It is.']), (False, 'No.', ['It is not.'])])
    """
    bounds = [number for number, line in enumerate(lines) if line.startswith((WRONG, RIGHT))] + [len(lines)]
    answers = [
        (
            lines[a].startswith(RIGHT),
            lines[a].removeprefix(WRONG).removeprefix(RIGHT),
            [x.strip() for x in lines[a + 1 : b]],
        )
        for a, b in pairwise(bounds)
    ]
    return lines[: bounds[0]], answers


class Quiz(SphinxDirective):
    """A question with two or more answers, one of them right, each with an explanation."""

    has_content = True

    def run(self):
        """Return a box of class `quiz` with the question and one box for each answer."""
        question, answers = split_answers(list(self.content))
        if len(answers) < 2 or sum(right for right, _, _ in answers) != 1:
            raise self.error("a quiz needs at least two answers, one of them marked [x]")
        if not all(any(why) for _, _, why in answers):
            raise self.error("every answer of a quiz needs an explanation on the lines below it")
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
    """Register the directive."""
    app.add_directive("quiz", Quiz)
    return {"parallel_read_safe": True}
