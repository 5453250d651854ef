"""Every number in the prose of a chapter, with the line of output or code that it comes from.

    python -m studies.numbers                      # every chapter and appendix
    python -m studies.numbers book/04_*.ipynb      # one of them

Numbers are decimals, percentages, and those of three digits or more, outside mathematics and code. Captions and
alternative texts count; quizzes do not: they may ask about cases of their own. What is printed is searched before
what is written in code, the nearest cell first. That the number says what the sentence says is for a reader to judge.
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

import nbformat
from execute_book import PAGES

QUIZ = re.compile(r"^(:{4,})\{admonition\} \w+\n:class: quiz\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
MATHEMATICS = r"\$\$.*?\$\$|\$[^$]*\$|```\{(?:math|literalinclude)\}.*?```|(?<!`)`(?!`)[^`]*`"
LINKS = r"\]\([^)]*\)|<https?:[^>]*>|\{\w[\w:]*\}|^:\w+:.*$|^\(.*\)=$|^#.*$"
NUMBER = r"\d+(?:\.\d+)? ?%|\d+\.\d+|\d{3,}"
VALUE = r"\d+(?:\.\d+)?(?:e[+-]?\d+)?"


class Stated(NamedTuple):
    """A number in prose: in which cell, as written, and the words around it."""

    cell: int
    number: str
    around: str


def stated_numbers(notebook):
    """Return the numbers that the prose of a notebook states, in its order."""
    found = []
    for place, cell in enumerate(notebook.cells):
        figure = cell.metadata.get("mystnb", {})
        shown = [figure.get("figure", {}).get("caption"), figure.get("image", {}).get("alt")]
        text = QUIZ.sub(" ", cell.source) if cell.cell_type == "markdown" else ""
        for part in (text, *filter(None, shown)):
            plain = re.sub(MATHEMATICS, " ", part, flags=re.DOTALL)
            plain = re.sub(r"(?<=\d),(?=\d{3})", "", re.sub(LINKS, " ", plain, flags=re.MULTILINE))
            for match in re.finditer(NUMBER, plain):
                around = " ".join(plain[max(0, match.start() - 60) : match.end() + 40].split())
                found.append(Stated(place, match[0], around))
    return found


def text_of(cell):
    """Return all that a cell of code prints, as one text."""
    return "\n".join(each.get("text") or each.get("data", {}).get("text/plain", "") for each in cell.outputs)


def known_lines(notebook, folder):
    """Return (cell, kind, line) for every line that is printed or included, and then for every line of code."""
    printed, written = [], []
    for place, cell in enumerate(notebook.cells):
        for name in re.findall(r"\{include\} (\S+)", cell.source):
            printed += [(place, "includes", line) for line in (folder / name).read_text().splitlines()]
        if cell.cell_type == "code":
            printed += [(place, "prints", line) for line in text_of(cell).splitlines()]
            written += [(place, "code", line) for line in cell.source.splitlines()]
    return printed + written


def is_one_of(values, number):
    """Return whether `number`, as written, is one of the `values`, rounded to its digits; 7 % is 0.07 too."""
    digits = number.rstrip(" %")
    decimals = len(digits.partition(".")[2])
    scales = (1, 100) if number.endswith("%") else (1,)
    return any(f"{scale * value:.{decimals}f}" == digits for value in values for scale in scales)


def source_of(stated, lines):
    """Return the (cell, kind, line) that a stated number comes from, or None: printed before code, then the nearest."""
    fit = [line for line in lines if is_one_of(line[-1], stated.number)]
    return min(fit, key=lambda line: (line[1] == "code", abs(line[0] - stated.cell)), default=None)


def sources(path):
    """Return pairs of each `Stated` number of a page and its source; see `source_of`."""
    notebook = nbformat.read(path, as_version=4)
    lines = []
    for place, kind, line in known_lines(notebook, path.parent):
        bare = re.sub(r"(?<=\d)[,_](?=\d{3})", "", line)
        lines.append((place, kind, line.strip(), [float(value) for value in re.findall(VALUE, bare)]))
    return [(stated, source_of(stated, lines)) for stated in stated_numbers(notebook)]


def main():
    """Print the numbers of each page; end with 1 if one of them has no source."""
    missing = 0
    for path in [Path(name).resolve() for name in sys.argv[1:]] or PAGES:
        print(f"\n{path.stem}")
        for stated, source in sources(path):
            place = f"cell {source[0]} {source[1]}: {source[2][:70]}" if source else "NOWHERE"
            print(f"  {stated.number:>8}  cell {stated.cell}: ...{stated.around}...\n            {place}")
            missing += source is None
    return int(missing > 0)


if __name__ == "__main__":
    sys.exit(main())
