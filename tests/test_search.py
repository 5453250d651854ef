"""The search of the pages: what is asked for in newcomers' words, in those of headings and in names of code."""

import json
import re

import pytest
from playwright.sync_api import expect
from questions import js
from search_pages import KEYWORDS, improve, weights
from sphinx.search.en import SearchEnglish
from test_browser import PHONE, ROOT, address, browser, opened, site  # noqa: F401

from amptutorial.corpus.words import words

# What is asked for, and the pages that answer. The second table was written before any keyword of book/keywords.yml.
KNOWN = {
    "canvas": "instructors", "moodle": "instructors", "marchenko pastur": "04_", "fisher information": "03_",
    "proof of state evolution": "13_", "donoho": "04_", "misprint": "errata", "svd": "04_|01_",
    "how many dimensions": "15_|your_counts", "syllabus": "lecturers", "plagiarism": "instructors|assignment_notes",
    "download pdf": "intro|howto", "cosine similarity": "your_counts|01_|02_|api/neighbours",
    "bethe": "08_|11_|glossary", "sign ambiguity": "02_", "cross validation": "your_counts|12_|api/heldout",
    "recommender": "16_|your_counts", "single cell": "your_counts", "save the model": "your_counts|api/estimator",
    "out of memory": "at_scale", "information-theoretic limit": "11_", "gradient descent": "18_|08_",
    "overdispersion": "14_|16_", "AMPEmbedding": "api/estimator", "check_denoiser": "api/checks",
}  # fmt: skip
NEWCOMERS = {
    "google colab": "howto", "error bars for a word": "10_", "rare words": "10_", "topic model": "14_|more/text",
    "glove": "14_|more/text", "sparse matrix": "your_counts|at_scale", "phase transition": "04_|11_",
    "nearest neighbors": "your_counts|01_|api/neighbours", "random matrix theory": "04_|more/spectrum",
    "early stopping": "your_counts|api/heldout|14_", "homework": "assignments|instructors|lecturers",
    "exam": "lecturers", "missing values": "your_counts", "movie ratings": "16_|your_counts", "yes or no data": "16_",
    "parallel computing": "at_scale", "big data": "at_scale", "belief propagation": "06_|13_|glossary",
    "initialization": "07_", "does the algorithm converge": "08_", "overfitting": "15_|your_counts",
    "regularization": "05_|12_", "expectation maximization": "17_", "symbols": "notation",
    "add new documents": "your_counts|more/text|api/estimator",
}  # fmt: skip
FIRST = {  # these first
    "word2vec": "your_counts|14_", "onsager": "06_", "threshold": "04_|12_", "zipf": "07_|02_", "dask": "at_scale",
    "bias": "02_", "pearson residuals": "03_", "choose d": "15_|your_counts", "grade": "instructors",
    "install": "howto", "state evolution": "09_", "assignment 3": "03_non_negative", "lasso": "12_|05_",
    "denoiser": "05_", "svd": "04_|01_", "bayes optimal": "11_", "my own counts": "your_counts", "poisson": "02_",
    "errata": "errata", "notation": "notation",
}  # fmt: skip


@pytest.fixture(scope="module")
def index(site):  # noqa: F811
    return json.loads((site / "searchindex.js").read_text().removeprefix("Search.setIndex(").removesuffix(")"))


@pytest.fixture
def found(opened):  # noqa: F811
    """Return a function that searches: for each question the addresses that are found, the best first."""
    page = opened("search.html")
    page.wait_for_function("Search.hasIndex()")
    return lambda asked: page.evaluate(js("found"), list(asked))


def missed(wanted, found, places):
    """Return the questions that no page answers among the first places."""
    pairs = zip(wanted.items(), found(wanted), strict=True)
    return [asked for (asked, page), pages in pairs if not any(re.search(page, one) for one in pages[:places])]


def test_of_fifty_questions_forty_five_are_answered_among_the_first_three_and_most_of_twenty_at_first(found):
    assert len(KNOWN) == len(NEWCOMERS) == 25
    assert len(missed(KNOWN, found, 3)) + len(missed(NEWCOMERS, found, 3)) <= 5
    assert len(missed(FIRST, found, 1)) <= 2


def test_names_that_cannot_be_meant_as_words_lead_to_their_objects(found, index):
    objects = {name for objects in index["objects"].values() for *_, name in objects}
    names = [name for name in objects if re.search("_|[a-z][A-Z]|[A-Z]{2}", name)]
    assert len(names) > 100
    first = {name: (pages or [""])[0] for name, pages in zip(names, found(names), strict=True)}
    assert not {name: page for name, page in first.items() if not page.lower().endswith(f".{name}".lower())}


def test_every_word_of_every_heading_finds_its_page(index):
    language = SearchEnglish({})
    lost = [
        (index["docnames"][page], word)
        for title, places in index["alltitles"].items()
        for page, _ in places
        for word in re.findall(r"\w+", re.sub("<.*?>", "", title).lower())
        if language.word_filter(word) and page not in index["terms"].get(language.stem(word), [])
        if page not in index["terms"].get(word, [])
    ]
    assert len(index["alltitles"]) > 500 and not lost


def test_pages_stand_by_what_they_say_of_a_word_and_none_is_lost():
    """Sphinx keeps what is in a heading apart from the rest; here a word has one list."""
    names = ["book/01_a", "book/02_b", "book/glossary"]
    texts = {"book/01_a": ("Bells", "", "noise " * 3), "book/02_b": ("Noise", "", "bells"), names[2]: ("", "", "tower")}
    index = {"docnames": names, "titles": ["1. Bells", "2. Noise", "Glossary"], "alltitles": {}}
    index |= {"terms": {"nois": [0, 2], "code": 2, "bell": 1}, "titleterms": {"nois": [1], "tower": [0, 2], "bell": 0}}
    stem = SearchEnglish({}).stem
    improve(index, {name: weights(*text, "", stem) for name, text in texts.items()})
    assert index["terms"] == {"nois": [1, 0, 2], "code": [2], "bell": [0, 1], "tower": [2, 0]}


def test_keywords_are_of_pages_and_every_chapter_and_guide_has_some():
    pages = set(re.findall(r"(?:root|file): book/(\S+)", (ROOT / "_toc.yml").read_text()))
    assert {page for page in pages if not page.startswith("slides/")} <= set(KEYWORDS)
    modules = [ROOT / "amptutorial" / page.removeprefix("api/") for page in set(KEYWORDS) - pages]
    assert all(module.with_suffix(".py").is_file() or module.is_dir() for module in modules)
    assert all(len(set(words(line))) > 3 for line in KEYWORDS.values())


def test_excerpts_are_sentences_that_have_a_word_or_what_the_page_says_of_itself(opened):  # noqa: F811
    for asked, page, said in (
        ("onsager", "13_the_proofs", "Onsager"),
        ("svd", "06_why_the_onsager_term", "SVD"),
        ("syllabus", "lecturers", "a syllabus whose dates you fill in"),
        ("fisher information", "03_the_fisher_score", "information"),
    ):
        results = opened(f"search.html?q={asked}").locator("#search-results li")
        excerpt = results.filter(has=results.page.locator(f"a[href*='{page}']")).locator(".context").first
        expect(excerpt).to_contain_text(said)
        text = excerpt.inner_text()
        assert len(text) < 300 and not re.search(r'"""|@|\bdef |author ?=|  | [,.]|\b(is|for|with|the) \.', text), text


def test_a_search_fits_a_phone_and_chapters_come_before_appendices_and_modules(opened, found):  # noqa: F811
    page = opened("search.html?q=onsager", viewport=PHONE)
    expect(page.locator("#search-results .search-summary")).to_contain_text("found")
    expect(page.locator("#search-results .context").nth(9)).to_be_attached()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate("typeof asked + typeof cut") == "undefinedundefined"  # the book's other scripts are beside it
    (pages,) = found(["onsager"])
    kinds = "book/06_", "book/more/", "book/api/"
    chapter, appendix, module = (next(k for k, path in enumerate(pages) if kind in path) for kind in kinds)
    assert chapter < appendix < module


def test_the_search_answers_as_one_types_in_the_colours_and_letters_of_the_book(opened):  # noqa: F811
    page = opened("search.html?q=onsager")
    glass, field = page.locator("form.bd-search :is(i, input):visible").all()
    inner = field.evaluate("field => field.getBoundingClientRect().x + parseFloat(getComputedStyle(field).paddingLeft)")
    box = glass.bounding_box()
    assert box["x"] + box["width"] <= inner
    page = opened("book/howto.html")
    page.keyboard.press("Control+k")
    expect(page.locator("#pst-search-dialog input")).to_be_focused()
    page.keyboard.type("state evol", delay=30)
    expect(page.locator("#search-results ul.search a").first).to_contain_text("State evolution")
    ring = page.locator("#pst-search-dialog form").evaluate("form => getComputedStyle(form).boxShadow")
    assert "168, 70, 0" in ring  # vermilion
    fonts = "all => new Set(all.map(one => getComputedStyle(one).fontFamily)).size"
    assert page.locator("#search-results :is(h2, p, a)").evaluate_all(fonts) == 1
