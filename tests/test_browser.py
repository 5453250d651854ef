"""The pages as a reader meets them: opened in a browser, and served from a folder that needs no other host.

`make test-all` builds the site with OFFLINE=1 and names its folder in AMPTUTORIAL_SITE. Each page is opened once and
asked every question; those not marked slow are a handful, one of each kind.
"""

import gzip
import json
import os
import re
from collections import namedtuple
from contextlib import contextmanager
from functools import cache, partial
from io import BytesIO
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import numpy as np
import pytest
import yaml
from chromium import CHROMIUM, served
from contrast import CONTRAST
from light_pages import pages_of
from PIL import Image, ImageColor
from playwright.sync_api import expect, sync_playwright
from questions import Tags, ask, js
from render_pages import data_flow
from synthetic import constant_laws
from test_texts import HTML

from amptutorial import GaussianPosterior, gaussian_state_evolution
from amptutorial.book.widgets import explore
from amptutorial.corpus.words import words

ROOT = Path(__file__).parents[1]
SITE = os.environ.get("AMPTUTORIAL_SITE") and Path(ROOT, os.environ["AMPTUTORIAL_SITE"])
PAGES = re.findall(r"(?:root|file): (\S+)", (ROOT / "_toc.yml").read_text())
PAGES += [f"book/api/{name}" for name in data_flow()]
REDIRECTS = yaml.safe_load((ROOT / "_config.yml").read_text())["sphinx"]["config"]["redirects"]
FIRST = next(name for name in PAGES if re.search("/[0-9]", name))
LANDING, CHAPTER, LEDGER = "book/intro", "book/09_state_evolution", "book/ledger"
BRIEF = "course/assignments/01_ridge/brief"
ONE_OF_EACH_KIND = (LANDING, CHAPTER, "book/api/metrics", LEDGER, BRIEF)
ADDRESS = "/amptutorial/"  # where the site is published: a link to "/" leaves it
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
MOST_LANDING, MOST_BYTES, MOST_FILES = 250_000, 1_200_000, 25  # before any click
AXE = ROOT / ".offline/node_modules/axe-core/axe.min.js"
Visit = namedtuple("Visit", "name page site address asked complaints loaded")
Parsed = namedtuple("Parsed", "names links")


@pytest.fixture(scope="module")
def site():
    """Return the folder of the pages. Where the tests run unattended nobody reads why they were skipped."""
    reason = None if CHROMIUM else "there is no Chromium and no Chrome"
    if not SITE:
        reason = "AMPTUTORIAL_SITE names no site: make test-all builds one, with npm"
    if reason:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    return SITE


@pytest.fixture(scope="module")
def address(site):
    with served(site) as address:
        yield address


@pytest.fixture(scope="module")
def browser(site):
    """Start a browser; it may be slow where much else runs."""
    expect.set_options(timeout=20_000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--disable-gpu", "--disable-quic"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def tab(browser):
    """Open the tab in which page after page is visited: a new one costs more seconds than most pages.

    It keeps no files: with those of other pages at hand, a page loads more fonts than it does for a new reader.
    """
    tab = browser.new_page(viewport=DESK)
    network = tab.context.new_cdp_session(tab)
    network.send("Network.enable")
    network.send("Network.setCacheDisabled", {"cacheDisabled": True})
    yield tab
    tab.close()


@contextmanager
def visited(tab, site, address, name):
    """Open a page, and keep what it asks for and complains of; `loaded` is what it asked for by itself."""
    asked, complaints = [], []
    heard = {
        "request": lambda request: asked.append(request.url),
        "requestfailed": lambda request: complaints.append(f"failed: {request.url}"),
        "response": lambda response: response.ok or complaints.append(f"{response.status}: {response.url}"),
        "pageerror": lambda error: complaints.append(str(error)),
        "console": lambda message: message.type == "error" and complaints.append(message.text),
    }
    tab.set_viewport_size(DESK)
    for event, listener in heard.items():
        tab.on(event, listener)
    try:
        tab.goto(f"{address}/{name}.html", wait_until="networkidle")
        tab.evaluate("document.fonts.ready")
        loaded = [unquote(urlsplit(url).path) for url in asked if url.startswith(address)]
        yield Visit(name, tab, site, address, asked, complaints, loaded)
    finally:
        for event, listener in heard.items():
            tab.remove_listener(event, listener)
        tab.evaluate("localStorage.clear(), sessionStorage.clear()")  # the next reader has never been here


def dress(page, theme, viewport):
    """Show `page` in a theme, at a size."""
    page.set_viewport_size(viewport)
    page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)


def is_chapter(name):
    return bool(re.match(r"book/\d\d_\w+$", name))


def written(name):
    """Return the source of a chapter up to its quizzes, and from there."""
    cells = json.loads((ROOT / f"{name}.ipynb").read_text())["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells).split("## Test yourself")


@cache
def weight(path):
    content = path.read_bytes()
    return min(len(content), len(gzip.compress(content)))


def it_is_light(visit):
    """Before any click: what it loads when somebody reaches for a slider is not counted."""
    assert len(visit.loaded) <= MOST_FILES
    most = MOST_LANDING if visit.name == LANDING else MOST_BYTES
    assert sum(weight(visit.site / path[1:]) for path in set(visit.loaded)) <= most


def all_of_it_settles(visit):
    """Its fonts and pictures come, nothing moves any more, nothing is folded: so the next questions want it."""
    visit.page.evaluate(js("settle"))


def mathematics_is_typeset(visit):
    assert not visit.page.evaluate(js("unset"))
    assert visit.page.locator("mjx-container[tabindex='0']").count() == 0  # no stops of the keyboard


def pictures_are_shown_and_described(visit):
    assert not visit.page.evaluate(js("badPictures"))


def sliders_turn_pictures_and_links_beside_them_lead_somewhere(visit):
    experiments = visit.page.locator(".amp-explore").all()
    assert experiments or not is_chapter(visit.name), "a chapter without an experiment"
    for experiment in experiments:
        links = experiment.locator("a").evaluate_all("links => links.map(link => link.getAttribute('href'))")
        assert not [link for link in links if not leads_somewhere(visit.site, f"{visit.name}.html", link)]
        sliders = experiment.locator("input[type=range]").all()
        assert sliders
        for slider in sliders:
            turn(experiment, slider)


def turn(experiment, slider):
    """Move `slider`, which has a name, by a key: another picture and sentence appear, and back again the first."""
    expect(slider).to_have_accessible_name(re.compile(r"\w"))
    pictures, value, at_the_end = slider.evaluate(js("shown"))
    assert len(pictures) == 1
    there, back = ("ArrowLeft", "ArrowRight") if at_the_end else ("ArrowRight", "ArrowLeft")
    slider.press(there)
    expect(experiment.locator("img:visible")).not_to_have_attribute("src", pictures[0])
    others, other_value, _ = slider.evaluate(js("shown"))
    slider.press(back)
    expect(experiment.locator("img:visible")).to_have_attribute("src", pictures[0])
    assert len(others) == 1 and value != other_value


def answers_have_their_formulas_in_their_names(visit):
    if not is_chapter(visit.name):
        return
    answers = re.findall(r"^:::\{dropdown\} (.*)$", written(visit.name)[1], re.MULTILINE)
    names = [re.sub(r"[$`*]", "", answer) for answer in answers]
    for button, name in zip(visit.page.locator(".quiz").get_by_role("button").all(), names, strict=True):
        curly = re.sub(r"['\"]", ".", re.escape(name))  # as the page makes straight quotes
        expect(button).to_have_accessible_name(re.compile(f"^{curly}$"))


def quizzes_answer_the_keyboard(visit):
    quizzes = visit.page.locator(".quiz").all()
    assert quizzes or not is_chapter(visit.name), "a chapter without a quiz"
    for quiz in quizzes:
        assert quiz.evaluate(js("answered"))["said"] == "", "there is a verdict before the first answer"
        quiz.locator("button").first.focus()
        said, answers = [], quiz.locator("button").count()
        for answer in range(answers):
            visit.page.keyboard.press("Enter")
            found = quiz.evaluate(js("answered"))
            assert found["focused"] == answer and not found["reasons"]
            said += re.findall(r"^\s*(Right|Not so)\.\s+\S", found["said"])
            visit.page.keyboard.press("Tab")
        assert sorted(said) == ["Not so"] * (answers - 1) + ["Right"]
        assert sorted(quiz.evaluate(js("answered"))["marks"]) == ["false"] * (answers - 1) + ["true"]


def folds_are_few(visit):
    """A closed solution stands in the line of its hint, and the code of a drawing beside the drawing."""
    assert not is_chapter(visit.name) or visit.page.evaluate(js("linesOfFolds")) <= 15


def pictures_have_their_size(visit):
    assert visit.page.locator("article img:not([width])").count() == 0


# As it is stored, on white; as the page shows it.
STORED = "({ style }) => Object.assign(style, { filter: 'none', mixBlendMode: 'normal', background: 'white' })"
SHOWN_AGAIN = "({ style }) => Object.assign(style, { filter: '', mixBlendMode: '', background: '' })"


def pictures_are_seen_in_the_dark(visit):
    """Where a picture is white it has the colour of the page, and what stands out from white does so from the dark."""
    dress(visit.page, "dark", DESK)
    ground = ImageColor.getrgb(visit.page.evaluate("getComputedStyle(document.body).backgroundColor"))
    for picture in visit.page.locator("article img:visible").all():
        shown = contrast(picture, ground)
        picture.evaluate(STORED)
        stored = contrast(picture, (255, 255, 255))
        picture.evaluate(SHOWN_AGAIN)
        assert (shown[stored < 2] < 5).mean() > 0.98, picture.get_attribute("alt")
        assert (shown[stored > 128] > 64).mean() > 0.95, picture.get_attribute("alt")


def contrast(picture, ground):
    """Return how far each pixel is from a colour, in levels of 255; round corners and cut pixels at the rim aside."""
    pixels = np.array(Image.open(BytesIO(picture.screenshot())).convert("RGB"), dtype=int)
    return np.abs(pixels - ground).mean(axis=-1)[4:-4, 4:-4]


def a_phone_scrolls_in_one_direction(visit):
    """Drawings and tables are whole there."""
    for theme in ("light", "dark"):
        dress(visit.page, theme, PHONE)
        assert visit.page.evaluate("document.scrollingElement.scrollWidth") <= PHONE["width"], theme
    ends = "cells => cells.map(cell => { const { left, right } = cell.getBoundingClientRect(); return [left, right]; })"
    edges = visit.page.locator("table.autosummary td, img.drawn").evaluate_all(ends)
    assert all(0 <= left <= right <= PHONE["width"] for left, right in edges)


def text_stands_out_from_its_ground(visit):
    for theme in ("dark", "light"):
        dress(visit.page, theme, DESK)
        _, faint = visit.page.evaluate(js("faintTexts"), CONTRAST)
        assert not set(faint), theme


def formulas_are_spelled_out(visit):
    """From here on a letter stands for each: where they are wide or high was asked before."""
    dress(visit.page, "dark", DESK)
    visit.page.evaluate(js("spell"))


def code_is_reached_by_the_keyboard(visit):
    """Also where it is not scrolled, and after the page took other sizes."""
    assert visit.page.locator("[contenteditable]:not([tabindex='0'])").count() == 0


def nothing_fails_and_no_other_host_is_asked(visit):
    """Neither at first, nor when its sliders were turned and its quizzes answered."""
    foreign = [url for url in visit.asked if not url.startswith((f"{visit.address}/", "data:", "blob:"))]
    assert (foreign, visit.complaints) == ([], [])


def axe_finds_nothing_but_trifles(visit):
    """The last question, for it thins the page. In the dark, it is asked again what depends on colours."""
    visit.page.evaluate(js("thin"))
    visit.page.evaluate(AXE.read_text())
    found = {}
    for theme, options in (
        ("light", {"rules": {"color-contrast": {"enabled": False}}}),
        ("dark", {"runOnly": {"type": "rule", "values": ["link-in-text-block"]}}),
    ):
        dress(visit.page, theme, DESK)
        found[theme] = visit.page.evaluate(js("violations"), options)
    assert found == {"light": [], "dark": []}


QUESTIONS = [
    it_is_light, all_of_it_settles, folds_are_few, mathematics_is_typeset, pictures_are_shown_and_described,
    pictures_have_their_size, pictures_are_seen_in_the_dark, a_phone_scrolls_in_one_direction,
    formulas_are_spelled_out,
    sliders_turn_pictures_and_links_beside_them_lead_somewhere, answers_have_their_formulas_in_their_names,
    quizzes_answer_the_keyboard, code_is_reached_by_the_keyboard, text_stands_out_from_its_ground,
    nothing_fails_and_no_other_host_is_asked, axe_finds_nothing_but_trifles,
]  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in ONE_OF_EACH_KIND else pytest.mark.slow) for name in PAGES]
)
def test_a_page_keeps_its_promises(tab, site, address, name):
    with visited(tab, site, address, name) as visit:
        ask(QUESTIONS, visit)


def test_every_page_of_the_book_is_asked(site):
    built = {path.relative_to(site).with_suffix("").as_posix() for path in pages_of(site)}
    assert {name for name in built if name.startswith(("book/", "course/"))} == set(PAGES) | set(REDIRECTS)


# What needs no browser. What formulas are made of: most of a page, with neither names nor links.
PARTS = re.compile(r"</?(?:mjx-[\w-]+|m[ino]|mrow|mstyle|mspace|mtext|msu[bp]|msubsup)\b[^>]*>")


@cache
def parse(path):
    """Return where a page can be entered, and where it leads."""
    tags = Tags(PARTS.sub("", path.read_text())).tags
    names = {values.get(key) for _, values in tags for key in ("id", "name")}
    return Parsed(names, [values[key] for _, values in tags for key in ("href", "src") if values.get(key)])


def leads_somewhere(site, page, link):
    """Return whether `link` on `page` leaves the site or reaches a file of it, and its fragment."""
    target, fragment = urldefrag(urljoin(ADDRESS + page, link))
    if not target.startswith("/") or target.startswith("//"):
        return True
    path = site / unquote(target.removeprefix(ADDRESS).split("?")[0])
    return target.startswith(ADDRESS) and path.is_file() and (not fragment or unquote(fragment) in parse(path).names)


@pytest.mark.slow
def test_links_lead_somewhere(site):
    links = {(path.relative_to(site).as_posix(), link) for path in pages_of(site) for link in parse(path).links}
    assert not [(page, link) for page, link in links if not leads_somewhere(site, page, link)]


def test_no_script_holds_up_a_page(site):
    for path in pages_of(site):
        loaded = re.findall(r"<script\b[^>]*\bsrc=[^>]*>", path.read_text())
        assert not [tag for tag in loaded if not re.search(r"\b(defer|async|module)\b", tag)], path


@pytest.fixture
def opened(browser, address):
    """Return a function that opens a page in a context of its own, prepared first, until the test ends."""
    contexts = []

    def opened(name, prepare=lambda page: None, **options):
        contexts.append(browser.new_context(**{"viewport": DESK, **options}))
        page = contexts[-1].new_page()
        page.set_default_timeout(120_000)
        prepare(page)
        page.goto(f"{address}/{name}")
        return page

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture
def open_chapter(opened):
    return partial(opened, f"{FIRST}.html")


def test_first_answers_count_and_are_kept(open_chapter):
    page = open_chapter()
    quizzes = page.locator(".quiz").all()
    score = page.locator(".quiz-score")
    expect(score).to_be_empty()
    for quiz in quizzes[:2]:
        for answer in quiz.get_by_role("button").all():
            answer.press("Enter")
    expect(score).to_have_text(re.compile(r"^Right at the first try: [012] of 2\.$"))
    said = score.inner_text()
    page.reload()
    expect(score).to_have_text(said)
    expect(quizzes[0].locator("[aria-pressed=true]")).to_have_count(1)


@pytest.mark.parametrize("refusal", ["null", "{ setItem() { throw new DOMException('full', 'QuotaExceededError'); } }"])
def test_without_storage_the_colours_change_and_no_script_fails(open_chapter, refusal):
    failures = []

    def prepare(page):
        page.on("pageerror", lambda error: failures.append(error))
        refused = "Object.defineProperty(window, name, {{ get() {{ return {0}; }}, configurable: true }})"
        page.add_init_script(f'for (const name of ["localStorage", "sessionStorage"]) {refused.format(refusal)}')

    page = open_chapter(prepare)
    theme = page.locator("html")
    themes = set()
    for _ in range(3):
        page.locator(".theme-switch-button:visible").first.press("Enter")
        themes.add((theme.get_attribute("data-mode"), theme.get_attribute("data-theme")))
    assert len(themes) == 3 and not failures


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_has_the_focus_in_the_head_of_a_page_has_a_ring(open_chapter, theme):
    page, seen = open_chapter(), set()
    dress(page, theme, DESK)
    vermilion = {"light": "rgb(168, 70, 0)", "dark": "rgb(255, 157, 87)"}[theme]
    page.locator("main").first.evaluate("main => { main.tabIndex = -1; main.focus(); }")
    for _ in range(12):
        page.keyboard.press("Tab")
        ring = page.evaluate(js("ring"))
        if ring is None:
            break
        name, style, width, colour = ring
        seen.add(name)
        assert (style, colour) == ("solid", vermilion) and width >= 3, name
    assert len(seen) >= 5


def test_a_field_names_the_neighbours_of_any_word_and_another_reads_sentences(open_chapter):
    page = open_chapter()
    field, said = page.locator(".amp-words input"), page.locator(".amp-words p").first
    field.fill("Fourier")
    expect(said).to_have_text(re.compile(r"^fourier: ([a-z]+ ){5}[a-z]+$"))
    field.fill("fouri")
    expect(said).to_have_text(re.compile(r"^fouri…: .*fourier"))
    field.fill("zzzz")
    expect(said).to_have_text(re.compile("^No such word"))
    texts, judged = page.get_by_role("textbox", name="Your own sentences"), page.locator(".amp-words p").last
    expect(judged).to_have_text(re.compile(r"There is something to learn\. ?Each .* gain of \d\.\d\d ± "))
    texts.fill("axis tree kernel\nfourier color leaf")
    expect(judged).to_have_text(re.compile("^Known: axis tree kernel. Near them: .*Nothing is learned"))
    texts.fill("Grandmother bakes bread")
    expect(judged).to_have_text(re.compile("^No known word in this line.*Too few known words"))


SETTINGS = {"counts": 2, "known": 0.05}


def test_the_first_page_predicts_what_the_package_predicts(opened):
    page = opened("book/intro.html")
    forecast, mean, bar = map(np.array, page.evaluate(js("hero"), SETTINGS))
    beta, counts, posterior = 2 / 3, SETTINGS["counts"], GaussianPosterior(1.0)
    moment = np.array([[SETTINGS["known"] * counts / beta]])
    laws = constant_laws(1, counts / np.sqrt(beta))
    run = gaussian_state_evolution(*laws, posterior, beta=beta, n_iter=8, M0=moment, Q0=moment)
    assert np.allclose(forecast, [iterate.nmse for iterate in run.iterates], atol=1e-9)
    assert (np.abs(mean - forecast) < 2 * bar).all()


def test_the_first_picture_opens_on_a_line_that_falls_and_is_the_same_at_every_visit(opened):
    said = opened("book/intro.html").locator("#hero figcaption").inner_text()
    numbers = re.search(r"at the end (\d\.\d+) ± (\d\.\d+) .*predicted (\d\.\d+)", said).groups()
    measured, bar, predicted = map(float, numbers)
    assert predicted < 0.7 and abs(measured - predicted) <= bar < 0.05
    again = opened("book/intro.html")
    caption, points = again.locator("#hero figcaption"), again.locator("#hero .hero-measured")
    expect(caption).to_have_text(said)
    before = points.inner_html()
    again.get_by_role("button", name="Draw other tables").click()
    assert points.inner_html() != before
    again.get_by_role("slider", name="mean count").press("ArrowRight")
    expect(caption).not_to_have_text(said)


def test_a_deck_shows_one_slide_at_a_time(opened):
    page = opened("book/slides/part_1.html")
    slides = page.locator(".slide")
    assert slides.count() > 9
    page.get_by_role("button", name="Present").click()
    covering = page.locator(".slide.shown")
    for key, number in (("ArrowRight", 1), ("End", slides.count() - 1), ("PageUp", slides.count() - 2), ("Home", 0)):
        page.keyboard.press(key)
        expect(covering).to_have_count(1)
        expect(covering.locator("h2")).to_contain_text(slides.nth(number).locator("h2").inner_text())
    assert covering.bounding_box() == {"x": 0, "y": 0, **DESK}
    page.keyboard.press("Escape")
    expect(page.locator("html")).not_to_have_class(re.compile("presenting"))


@pytest.mark.parametrize("width", [390, 820, 1440])
def test_the_menus_open_and_close(open_chapter, width):
    page = open_chapter(viewport={"width": width, "height": 900})
    menu, chapters = page.locator(".primary-toggle:visible"), page.locator(".bd-sidebar-primary")
    seen = chapters.is_visible()
    menu.click()
    expect(chapters).to_be_visible(visible=not seen)
    if width < 1200:  # beside the text there is no room for the contents of the page
        page.keyboard.press("Escape")
        page.locator(".secondary-toggle:visible").click()
        expect(page.locator(".bd-sidebar-secondary")).to_be_visible()


def test_the_first_picture_has_words_of_the_size_of_its_text_on_a_phone(opened):
    page = opened("book/intro.html", viewport=PHONE)
    expect(page.locator("#hero svg text").first).to_be_visible()
    height = "words => words.map(word => word.getScreenCTM().a * parseFloat(getComputedStyle(word).fontSize))"
    heights = page.locator("#hero svg text").evaluate_all(height)
    assert min(heights) >= 12
    widths = page.locator("#hero input").evaluate_all("sliders => sliders.map(slider => slider.clientWidth)")
    assert len(widths) == 3 and min(widths) > 200


def test_no_line_begins_with_the_sign_behind_a_formula(open_chapter):
    page = open_chapter(viewport=PHONE)
    page.evaluate("document.fonts.ready")
    broken = page.locator("article .formula:visible").evaluate_all(js("brokenSigns"))
    assert page.locator("article .formula").count() > 20 and not broken


def test_without_scripts_quizzes_say_what_is_right_and_experiments_show_a_picture_and_no_slider(open_chapter):
    page = open_chapter(java_script_enabled=False)
    for kind, word in (("right", "Right. "), ("wrong", "Not so. ")):
        reasons = page.locator(f".quiz-{kind} > p:first-child")
        marks = reasons.evaluate_all("all => all.map(reason => getComputedStyle(reason, '::before').content)")
        assert marks and set(marks) == {f'"{word}"'}
        expect(reasons.first).to_be_visible()
    for experiment in page.locator(".amp-explore").all():
        expect(experiment.locator("img:visible")).to_have_count(1)
        expect(experiment.locator("figcaption:visible")).to_have_text(re.compile(r"\d"))
        expect(experiment.locator("input:visible")).to_have_count(0)


def test_without_scripts_formulas_are_set_as_high_as_the_letters_around_them(open_chapter):
    page = open_chapter(java_script_enabled=False)
    fonts, ratios = page.evaluate(js("formulaSizes"))
    assert {"MJXTEX", "MJXTEX-I"} <= set(fonts)
    assert len(ratios) > 50 and all(0.98 < ratio < 1.02 for ratio in ratios)


def test_where_python_runs_in_the_page_it_draws_what_the_sliders_choose(open_chapter):
    def draw(figure, power=2, seed=0):
        """Draw a power."""
        return f"{power}, {seed}"

    experiment = explore(draw, stored={"power": [1, 2]}, live={"seed": range(9)})
    page = open_chapter()
    page.evaluate(js("live"), experiment.live_page())
    box = page.locator(".amp-explore").first
    power, seed = box.get_by_role("slider", name="power"), box.get_by_role("slider", name="seed")
    sentence = box.locator("figcaption")
    expect(sentence).to_have_text("2, 0")
    power.press("ArrowLeft")
    for _ in range(5):
        seed.press("ArrowRight")
    for chosen in ([0, 0], [0, 5]):  # what came while the first was drawn is asked for once
        calls = page.evaluate("window.asked.map(({ command }) => command)")
        assert eval(calls[-1]) == experiment.figure(chosen)
        page.evaluate("html => window.asked.at(-1).answer(html)", eval(calls[-1]))
        expect(sentence).to_have_text(f"1, {chosen[1]}")
    assert len(calls) == 2
    seed.press("ArrowRight")
    page.evaluate("window.asked.at(-1).refuse(new Error('no seed 6'))")
    expect(box.locator("pre")).to_have_text("Error: no seed 6")


def test_on_paper_there_is_one_title_and_nothing_is_folded_but_code(open_chapter):
    page = open_chapter()
    page.emulate_media(media="print")
    expect(page.locator("h1:visible")).to_have_text(re.compile(r"^1\. "))
    for part in (".bd-sidebar-primary", ".bd-sidebar-secondary", ".live-tools", "details.hide > summary"):
        expect(page.locator(f"{part}:visible")).to_have_count(0)
    folds = re.findall(r"^:::\{dropdown\}|^`+\{solution-start\}", written(FIRST)[0], re.MULTILINE)
    assert folds and page.evaluate(js("fading")) == [len(folds), []]
    code = page.locator("article pre, article .highlight, article details.hide, article .solution")
    assert code.evaluate_all("all => all.every(part => getComputedStyle(part).breakInside === 'auto')")


@pytest.mark.parametrize("chapter", ["04_what_the_spectrum_sees", "13_the_proofs"])  # the longest
def test_a_chapter_has_at_most_fifteen_pages_on_paper(opened, chapter):
    pages = re.findall(rb"/Type\s*/Page\b", opened(f"book/{chapter}.html").pdf(format="A4"))
    assert 5 < len(pages) <= 15


@pytest.mark.slow
def test_a_browser_shows_the_words_that_are_counted(browser):
    page = browser.new_page()
    for text in HTML:
        page.set_content(text)
        assert words(page.locator("body").inner_text()) == words(text), text
    page.close()
