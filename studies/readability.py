"""How long and how dense the chapters are: what a reader sees with all folds closed.

    python -m studies.readability                      # every chapter, and the appendices
    python -m studies.readability book/04_*.ipynb      # one of them, with its long sentences

Folded are solutions, proofs, hints, checks, and cells whose input is hidden. A formula in a line is one word, and one
that is displayed is none. A piece of the package that a page includes counts as code of the page.
"""

import ast
import re
import statistics
import sys
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from execute_book import PAGES

HIDDEN = {"hide-input", "hide-cell", "remove-input", "remove-cell"}
WORDS_A_MINUTE, SECONDS_A_LINE, MINUTES_A_FIGURE = 200, 10, 1
LONG = 35  # words in a sentence
LINE_OF_PROSE, WORDS_IN_A_LINE, LINE_OF_CODE, TITLE = 28, 13, 22, 150  # px, at 1440 x 900
FENCE = re.compile(r"^(`{3,}|:{3,})\{([\w:-]+)\}([^\n]*)\n(.*?)^\1[ \t]*$", re.DOTALL | re.MULTILINE)
SHOWN = {
    "prf:definition",
    "prf:proposition",
    "prf:lemma",
    "prf:theorem",
    "prf:corollary",
    "prf:algorithm",
    "prf:remark",
}
SHOWN |= {"admonition", "note", "tip", "warning", "important", "exercise", "seealso", "glossary", "list-table", "table"}


@dataclass
class Page:
    """What a reader sees of a page.

    Attributes
    ----------
    prose : str
        Without code, displayed formulas and folds.
    cells : list of int
        The numbers of lines of the visible code cells.
    included : int
        Lines of the package that are shown.
    figures : int
        Figures and experiments.
    pixels : int or None
        About how far down the first of them begins.
    """

    prose: str = ""
    cells: list = field(default_factory=list)
    included: int = 0
    figures: int = 0
    pixels: int | None = None

    @property
    def words(self):
        """Words of prose."""
        return count_words(self.prose)

    @property
    def lines(self):
        """Lines of code."""
        return sum(self.cells) + self.included

    @property
    def minutes(self):
        """What the page takes to read, rounded up to five minutes."""
        reading = self.words / WORDS_A_MINUTE + self.lines * SECONDS_A_LINE / 60
        return 5 * -int(-(reading + MINUTES_A_FIGURE * self.figures) // 5)

    @property
    def median(self):
        """The median of the lines of a visible cell."""
        return statistics.median(self.cells) if self.cells else 0

    @property
    def longest_of_most(self):
        """The 90th percentile of the lines of a visible cell."""
        return sorted(self.cells)[max(0, -(-9 * len(self.cells) // 10) - 1)] if self.cells else 0

    @property
    def long_sentences(self):
        """The sentences that are too long."""
        return [sentence for sentence in sentences(self.prose) if count_words(sentence) > LONG]

    @property
    def questions(self):
        """The most questions in one section, the exercises and the quiz aside."""
        sections = re.split(r"^## ", self.prose, flags=re.MULTILINE)
        asked = [part for part in sections if not part.startswith(("Exercises", "What to remember", "Test yourself"))]
        return max(sum(s.endswith("?") for s in sentences(part)) for part in asked)


def count_words(text):
    """Return how many words a text has; a formula, a link or a name in code is one."""
    text = re.sub(r"\{[\w:]+\}`[^`]*`|`[^`]*`|\$[^$]*\$", " word ", text)
    text = re.sub(r"\]\([^)]*\)|<https?:[^>]*>", " ", text)
    return len(re.findall(r"[^\W_][\w'’-]*", text))


def sentences(text):
    """Return the sentences of a text, as it stands."""
    text = re.sub(r"\{[\w:]+\}`[^`]*`|`[^`]*`|\$[^$]*\$", "word", text)
    blocks = re.split(r"\n\s*\n|^#.*$|^\s*[-*] |^\s*\d+\. |^\|.*\|$", text, flags=re.MULTILINE)
    found = [re.split(r"(?<=[.?!])[\"')*_]*\s+(?=[\"'(*_]*[A-Z\d])", " ".join(block.split())) for block in blocks]
    return [sentence.rstrip("*_) ") for block in found for sentence in block if sentence.strip()]


def included_lines(options, argument, folder):
    """Return the number of lines that a literalinclude shows."""
    source = (folder / argument.strip()).read_text(encoding="utf-8")
    name = re.search(r":pyobject: (\S+)", options)
    lines = re.search(r":lines: (\S+)", options)
    if name:
        body = ast.parse(source).body
        for part in name[1].split("."):
            node = next(node for node in body if getattr(node, "name", None) == part)
            body = node.body if hasattr(node, "body") else []
        total = node.end_lineno - node.lineno + 1 + len(node.decorator_list)
    else:
        total = source.count("\n")
    if not lines:
        return total
    spans = [part.partition("-") for part in lines[1].split(",")]
    return sum((int(end or (total if dash else start)) - int(start) + 1) for start, dash, end in spans)


def open_text(text, folder):
    """Return what is visible of a markdown text, and how many lines of the package it includes."""
    included = 0

    def shown(match):
        nonlocal included
        _, kind, argument, body = match.groups()
        if kind == "literalinclude":
            included += included_lines(body, argument, folder)
            return ""
        if kind not in SHOWN or re.search(r"^:class: .*dropdown", body, re.MULTILINE):
            return ""
        inner, lines = open_text(re.sub(r"^:[\w-]+:.*$", "", body, flags=re.MULTILINE), folder)
        included += lines
        return f"\n\n{inner}\n\n"

    text = FENCE.sub(shown, text)
    return re.sub(r"\$\$.*?\$\$|^\([\w-]+\)=$|<!--.*?-->", "", text, flags=re.DOTALL | re.MULTILINE), included


def measure(path):
    """Return the `Page` that a notebook becomes."""
    page, solving = Page(), False
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.cell_type == "markdown":
            source = cell.source
            if solving and "{solution-end}" in source:
                source, solving = source.split("{solution-end}")[-1].split("\n", 2)[-1], False
            if "{solution-start}" in source:  # the cell may close the one before and open another
                before, after = source.rsplit("{solution-start}", 1)
                solving = "{solution-end}" not in after
                source = before.rpartition("\n")[0] + (after.partition("{solution-end}")[2] if not solving else "")
            if not solving or "{solution-start}" in cell.source:
                text, included = open_text(source, path.parent)
                page.prose += f"\n\n{text}"
                page.included += included
                drawn = len(re.findall(r"\{(?:image|figure)\}|^!\[", source, re.MULTILINE))
                _count_figures(page, drawn)
        elif not solving:
            hidden = HIDDEN & set(cell.metadata.get("tags", []))
            if not hidden:
                page.cells.append(sum(bool(line.strip()) for line in cell.source.splitlines()))
            if "remove-cell" not in hidden:
                drawn = "figure" in cell.metadata.get("mystnb", {}) or "explore(" in cell.source
                _count_figures(page, int(drawn))
    return page


def _count_figures(page, drawn):
    if drawn and page.pixels is None:
        above = page.words / WORDS_IN_A_LINE * LINE_OF_PROSE + page.lines * LINE_OF_CODE
        page.pixels = round(TITLE + above)
    page.figures += drawn


def main():
    """Print a line for each page; for pages that were named, their long sentences too."""
    paths = [Path(name).resolve() for name in sys.argv[1:]]
    print("page                              words lines median  90 % figures  px  min  long  ?")
    for path in paths or PAGES:
        page = measure(path)
        numbers = f"{page.words:6}{page.lines:6}{page.median:7g}{page.longest_of_most:6}{page.figures:8}"
        last = f"{page.pixels or 0:6}{page.minutes:5}{len(page.long_sentences):6}{page.questions:3}"
        print(f"{path.stem[:33]:<33}{numbers}{last}")
        if paths:
            print(*(f"  {count_words(sentence)} words: {sentence}" for sentence in page.long_sentences), sep="\n")


if __name__ == "__main__":
    main()
