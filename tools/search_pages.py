"""Sphinx extension: the search shows the page that teaches a word before those that mention it, and excerpts of text.

Sphinx knows of a word only whether a page has it, and whether a title on it has. Here the pages of a word stand in the
order of how much they say of it, and `search.js` ranks them by that. Newcomers' words for a page, which its text does
not use, are in book/keywords.yml.
"""

import json
import re
from collections import Counter, defaultdict
from itertools import chain
from math import sqrt
from pathlib import Path

import yaml
from docutils import nodes
from sphinx.errors import ExtensionError

BEGIN, END = "Search.setIndex(", ")"
NUMBER = re.compile(r"<[^>]*>")
KEYWORDS = yaml.safe_load(Path(__file__).parents[1].joinpath("book/keywords.yml").read_text(encoding="utf-8"))
START = "_ready(Search.init);"
# What a word counts: in the text of a page, in a heading, in its title, among its keywords. The last two do not
# depend on the length of the page.
HEADING, TITLE, KEYWORD = 3, 0.8, 0.6
# What pages are for: those that teach come before what is looked up.
WORTH = {
    r"book/(\d\d_\w+|your_counts|at_scale|howto)$": 1,
    r"book/(instructors|assignments|assignment_notes|lecturers|notation|errata|intro)$": 0.5,
    r"book/more/|course/": 0.3,
    r"": 0.1,
}


def weights(title, headings, prose, keywords, stem):
    """Return how much a page says of every word.

    Parameters
    ----------
    title, headings, prose, keywords : str
        The words of the page.
    stem : callable
        What the search makes of a word: nothing of *the*.

    Examples
    --------
    >>> found = weights("Noise", "", "A signal in noise has an edge.", "threshold", str.lower)
    >>> sorted(found, key=found.get)[-2:]
    ['threshold', 'noise']
    """
    title, headings, prose, keywords = (
        Counter(filter(None, map(stem, re.findall(r"\w+", text)))) for text in (title, headings, prose, keywords)
    )
    length = sqrt(50 + prose.total())  # a short page is not the better for it
    return {
        word: (prose[word] + HEADING * headings[word]) / length + TITLE * (word in title) + KEYWORD * keywords[word]
        for word in title | headings | prose | keywords
    }


def improve(index, said):
    """Change a search index in place: `said` has the `weights` of each page.

    What else a page has, as code, follows at the end.
    """
    numbers = {page: number for number, page in enumerate(index["docnames"])}
    worth = [next(WORTH[kind] for kind in WORTH if re.match(kind, page)) for page in numbers]
    index["titles"] = [NUMBER.sub("", title) for title in index["titles"]]
    for title, places in list(index["alltitles"].items()):  # a page is found by its own title once, with its number
        for page, anchor in list(places):
            if anchor is None and index["titles"][page] != title:
                places.remove([page, anchor])
                index["alltitles"].setdefault(index["titles"][page], []).append([page, anchor])
    index["indexentries"] = {}  # a word of the glossary would come before the page that teaches it
    found = defaultdict(dict)
    for word, pages in chain(index["terms"].items(), index["titleterms"].items()):
        found[word] |= dict.fromkeys([pages] if isinstance(pages, int) else pages, 0)
    for page, words in said.items():
        for word, weight in words.items():
            found[word][numbers[page]] = weight
    index["terms"] = {
        word: sorted(pages, key=lambda page, pages=pages: (-pages[page] * worth[page], -worth[page], page))
        for word, pages in found.items()
    }
    index["titleterms"] = {}


def words_of(document):
    """Return the title, the headings and the text of a page without its code."""
    title, *headings = [node.astext() for node in document.findall(nodes.title)] or [""]
    prose = document.findall(lambda node: isinstance(node, nodes.paragraph | nodes.term))
    return title, " ".join(headings), " ".join(node.astext() for node in prose)


def write(app, error):
    """Rewrite the index and the script of a site."""
    if error or app.builder.name != "html":
        return
    folder = Path(app.outdir)
    script = folder / "_static/searchtools.js"
    text = script.read_text(encoding="utf-8")
    if text.count(START) != 1:
        raise ExtensionError("Sphinx's search has changed: see tools/search_pages.py")
    own = Path(__file__).with_name("search.js").read_text(encoding="utf-8")
    script.write_text(text.replace(START, own + START), encoding="utf-8")
    path = folder / "searchindex.js"
    index = json.loads(path.read_text(encoding="utf-8").removeprefix(BEGIN).removesuffix(END))
    language = app.builder.indexer.lang

    def stem(word):
        """Return what the index has of a word, as Sphinx chooses it."""
        kept = filter(language.word_filter, (language.stem(word.lower()), word.lower()))
        return next(kept, "")

    said = {
        page: weights(*words_of(app.env.get_doctree(page)), KEYWORDS.get(page.removeprefix("book/"), ""), stem)
        for page in index["docnames"]
    }
    improve(index, said)
    path.write_text(f"{BEGIN}{json.dumps(index, separators=(',', ':'))}{END}", encoding="utf-8")


def setup(app):
    """Connect it, before scripts are bundled."""
    app.connect("build-finished", write, priority=800)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
