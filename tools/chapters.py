"""What the pages say of all chapters: two tables and the map, made from what each chapter says of itself.

The text of a chapter has its label and its minutes, the table of contents its place. The rest stands in the metadata of
its notebook, under ``chapter``; `KEYS` lists it.
"""

import re
from functools import cache
from math import ceil
from pathlib import Path

import nbformat
import yaml
from chapter_foot import CHAPTER

ROOT = Path(__file__).parents[1]
KEYS = {
    "needs",  # what to know before: other chapters by their labels in braces, and what no chapter teaches
    "goal",  # its row in the lecturer's guide: the goal,
    "expect",  # what students get wrong,
    "board",  # and what to write on the blackboard, with minutes
    "map",  # its name on the map, a list of lines
    "description",  # what search engines and other sites say of it: one sentence of at most 160 letters
}
STATED = re.compile(r"^\((?P<label>ch-[\w-]+)\)=$.*?\*Time:\* about (?P<minutes>\d+) minutes", re.DOTALL | re.MULTILINE)

# what a reader does who works a chapter through, beside reading it; an evening has two hours
SOLUTION = re.compile(r"\{solution-start\}.*?\{solution-end\}", re.DOTALL)
FORMULA = re.compile(r"\$\$.*?\$\$|^`{3,}\{math\}.*?^`{3,}", re.DOTALL | re.MULTILINE)
PROOF = re.compile(r"^:{3,}\{dropdown\} (?:Proof|Derivation|Details)[^\n]*\n(.*?)^:{3,}\s*$", re.DOTALL | re.MULTILINE)
EXERCISE = re.compile(r"\{exercise\} (★+)")
MINUTES_A_FORMULA, WORDS_OF_PROOF_A_MINUTE, MINUTES_BY_STARS = 3, 25, {1: 15, 2: 30, 3: 120}
APPENDIX = {"ch-proofs": "book/more/proofs"}  # without which a chapter cannot be worked through

NEEDS = "| Chapter | Needs | Read, minutes | Work through, hours |\n|---|---|---|---|\n"
BOARD = "| Chapter | Goal | Expect | Board |\n|---|---|---|---|\n"

WIDTH, MARGIN, TOP, STEP = 720, 14, 56, 116  # of the map, whose rows are the parts
MAP = """<div class="map-frame" tabindex="0" role="region" aria-label="Map of the chapters"><svg class="map" \
viewBox="0 0 {width} {height}" role="group" aria-labelledby="map-title">
<title id="map-title">Map of the chapters in four parts: 1 to {last} follow each other, from counts through AMP to its \
prediction and to real text; {first} to {end} can be read each for itself.</title>
<path class="map-main" d="{line}"/>
{rows}
</svg></div>
"""


def read(file):
    """Return the text of a notebook, and what its metadata say of it as a chapter."""
    notebook = nbformat.read(ROOT / f"{file}.ipynb", as_version=4)
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    return text, notebook.metadata.get("chapter", {})


def added_minutes(text):
    r"""Return the minutes that working through adds to reading: formulas, proofs and exercises, no solutions.

    Examples
    --------
    >>> proof = ":::{dropdown} Proof\n" + 49 * "Word " + "and $x$.\n$$\ny\n$$\n:::\n"
    >>> added_minutes(proof + "```{exercise} ★★ Name\n```")
    35.04
    """
    text = SOLUTION.sub("", text)
    proofs = FORMULA.sub("", "\n".join(PROOF.findall(text)))
    words = len(re.sub(r"\$[^$]*\$", "word", proofs).split())
    exercises = sum(MINUTES_BY_STARS[len(stars)] for stars in EXERCISE.findall(text))
    return MINUTES_A_FORMULA * len(FORMULA.findall(text)) + words / WORDS_OF_PROOF_A_MINUTE + exercises


def chapter(file):
    """Return what a chapter says of itself, by `KEYS`; its ``name``, ``number``, ``label``; ``minutes`` and ``hours``.

    Raises
    ------
    ValueError
        If its metadata lack a key, or have another one.
    """
    text, said = read(file)
    if set(said) != KEYS:
        raise ValueError(f"{file}.ipynb, entry `chapter` of its metadata: needs {sorted(KEYS)}, has {sorted(said)}")
    stated = STATED.search(text).groupdict()
    appendix = APPENDIX.get(stated["label"])
    more = added_minutes(text) + (added_minutes(read(appendix)[0]) if appendix else 0)
    stated["hours"] = ceil((int(stated["minutes"]) + more) / 30) / 2
    place = {"name": file.removeprefix("book/"), "number": int(CHAPTER.match(file)[1])}
    return place | stated | said


@cache
def parts():
    """Return the captions of the parts that have chapters, each with its chapters.

    Examples
    --------
    >>> [chapter["label"] for chapter in parts()["Counts"]]
    ['ch-documents', 'ch-counts', 'ch-score', 'ch-spectrum']
    """
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))["parts"]
    files = {part["caption"]: [each["file"] for each in part["chapters"]] for part in contents}
    found = {caption: [chapter(file) for file in files[caption] if CHAPTER.match(file)] for caption in files}
    return {caption: chapters for caption, chapters in found.items() if chapters}


def chapters():
    """Return all chapters in their order."""
    return [each for part in parts().values() for each in part]


def needs_table(chapters):
    """Return the table of what each chapter needs and of its minutes, as MyST text."""
    numbers = {each["label"]: each["number"] for each in chapters}
    row = "| {number}. {{ref}}`{label}` | {needs} | {minutes} | {hours:g} |\n".format
    return NEEDS + "".join(row(**each | {"needs": each["needs"].format_map(numbers)}) for each in chapters)


def board_table(chapters):
    """Return the table of the lecturer's guide, as MyST text."""
    row = "| {{ref}}`{label}` | {goal} | {expect} | {board} |\n".format
    return BOARD + "".join(row(**each) for each in chapters)


def columns(part):
    """Return how far to the right the chapters of a part stand on the map."""
    return [WIDTH * (2 * k + 1) // (2 * len(part)) for k in range(len(part))]


def map_row(caption, part, y):
    """Return a part on the map: its caption, and a link for each chapter at the height `y`."""
    lines = [f'<text class="map-part" x="24" y="{y - 30}">{caption}</text>']
    for each, x in zip(part, columns(part), strict=True):
        words = "".join(f'<tspan x="{x}" dy="{15 * (k > 0)}">{line}</tspan>' for k, line in enumerate(each["map"]))
        number = f'<text class="map-number" x="{x}" y="{y + 5.5}">{each["number"]}</text>'
        label = f'<text class="map-label" x="{x}" y="{y + 33}">{words}</text>'
        lines.append(f'<a href="{each["name"]}.html"><circle cx="{x}" cy="{y}" r="17"/>{number}{label}</a>')
    return "\n".join(lines)


def map_of(parts):
    """Return the map as HTML: a row for each part, and a line through all but the last, which no other part needs."""
    *main, (caption, rest) = parts.items()
    heights = [TOP + STEP * row for row in range(len(parts))]
    turns = "".join(f"H{WIDTH - MARGIN}V{y - 54}H{MARGIN}V{y}" for y in heights[1:-1])
    rows = [*main, (f"{caption}, each for itself", rest)]
    return MAP.format(
        width=WIDTH,
        height=heights[-1] + 52,
        last=main[-1][1][-1]["number"],
        first=rest[0]["number"],
        end=rest[-1]["number"],
        line=f"M{columns(main[0][1])[0]} {TOP}{turns}H{columns(main[-1][1])[-1]}",
        rows="\n".join(map_row(*row, y) for row, y in zip(rows, heights, strict=True)),
    )


def made():
    """Return what pages include, by the names of the files in book/chapters."""
    return {"needs.md": needs_table(chapters()), "board.md": board_table(chapters()), "map.html": map_of(parts())}
