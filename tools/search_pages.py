"""Sphinx extension: the search shows the page that teaches a word before those that mention it, and excerpts of text.

Sphinx knows of a word only whether a page has it, and whether a title on it has. Here the title of a page counts, and
the page whose prose has a word most densely counts as if its title had it.
"""

import json
import re
from collections import Counter, defaultdict
from math import sqrt
from pathlib import Path

from docutils import nodes
from sphinx.errors import ExtensionError

BEGIN, END = "Search.setIndex(", ")"
NUMBER = re.compile(r"<[^>]*>")
TEACHES = re.compile(r"book/(\d\d_\w+|your_counts|at_scale|howto|instructors)$")
# What Sphinx takes for text of a page, and what is none; of several words it counts the best only.
TOOLS = '".headerlink", "script", "style"'
NO_TEXT = ', ".bd-header-article", "#jb-print-docs-body", ".cell_input", "summary", ".amp-words", "mjx-container"'
NO_TEXT += ', ".letters", ".ledger-controls"'
BEST = "Math.max(...wordList.map((w) => scoreMap.get(file)[w]))"
SUM = "wordList.reduce((sum, w) => sum + scoreMap.get(file)[w], 0)"


def densest(texts, stem):
    """Return for every stem the page on which it is densest.

    Parameters
    ----------
    texts : dict of str to str
        The text of each page.
    stem : callable
        What the search makes of a word.

    Examples
    --------
    >>> densest({"a": "Noise has noise.", "b": "Noise, and words."}, str.lower)["noise"]
    'a'
    """
    best = defaultdict(lambda: (0.0, ""))
    for page, text in texts.items():
        words = Counter(stem(word) for word in re.findall(r"\w+", text))
        length = sqrt(sum(words.values()))
        for word, count in words.items():
            best[word] = max(best[word], (count / length, page))
    return {word: page for word, (_, page) in best.items()}


def improve(index, texts, stem):
    """Change a search index in place: `texts` are those of the pages that may teach."""
    numbers = {page: number for number, page in enumerate(index["docnames"])}
    index["titles"] = [NUMBER.sub("", title) for title in index["titles"]]
    for title, places in list(index["alltitles"].items()):  # a page is found by its own title once, with its number
        for page, anchor in list(places):
            if anchor is None and index["titles"][page] != title:
                places.remove([page, anchor])
                index["alltitles"].setdefault(index["titles"][page], []).append([page, anchor])
    index["indexentries"] = {}  # a word of the glossary would come before the page that teaches it
    entitled = defaultdict(list)
    for page, title in enumerate(index["titles"]):
        for word in {stem(word) for word in re.findall(r"\w+", title)}:
            entitled[word].append(page)
    for word, page in densest(texts, stem).items():
        if word in index["terms"] and numbers[page] not in entitled[word]:
            entitled[word].append(numbers[page])
    index["titleterms"] = entitled


def prose(document):
    """Return the text of a page without its code."""
    return " ".join(node.astext() for node in document.findall(nodes.paragraph))


def write(app, error):
    """Rewrite the index and the script of a site."""
    if error or app.builder.name != "html":
        return
    folder = Path(app.outdir)
    script = folder / "_static/searchtools.js"
    text = script.read_text(encoding="utf-8")
    if text.count(TOOLS) != 1 or text.count(BEST) != 1:
        raise ExtensionError("Sphinx's search has changed: see tools/search_pages.py")
    script.write_text(text.replace(TOOLS, TOOLS + NO_TEXT).replace(BEST, SUM), encoding="utf-8")
    path = folder / "searchindex.js"
    index = json.loads(path.read_text(encoding="utf-8").removeprefix(BEGIN).removesuffix(END))
    texts = {page: prose(app.env.get_doctree(page)) for page in index["docnames"] if TEACHES.match(page)}
    improve(index, texts, lambda word: app.builder.indexer.lang.stem(word.lower()))
    path.write_text(f"{BEGIN}{json.dumps(index, separators=(',', ':'))}{END}", encoding="utf-8")


def setup(app):
    """Connect it, before scripts are bundled."""
    app.connect("build-finished", write, priority=800)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
