"""The pages as a reader meets them: opened in a browser, and served from a folder that needs no other host.

`make test` builds the site with OFFLINE=1 and names its folder in AMPTUTORIAL_SITE.
"""

import json
import os
import re
from collections import Counter, namedtuple
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin

import numpy as np
import pytest
from chromium import CHROMIUM, served
from light_pages import pages_of
from playwright.sync_api import expect, sync_playwright

from amptutorial import ConstantBias, GaussianRows, Ridge, gaussian_state_evolution, scaled_rows, widgets
from amptutorial.widgets import explore

ROOT = Path(__file__).parents[1]
SITE = os.environ.get("AMPTUTORIAL_SITE") and Path(ROOT, os.environ["AMPTUTORIAL_SITE"])
PAGES = re.findall(r"(?:root|file): (\S+)", (ROOT / "_toc.yml").read_text())
PAGES += sorted(f"book/api/{path.stem}" for path in (ROOT / "book/api").glob("*.md"))
ADDRESS = "/amptutorial/"  # where the site is published: a link to "/" leaves it
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
CONTRAST = 4.5  # of WCAG 2 at level AA, asked here of large text too

# Wait for fonts and pictures; then stop what moves and open what is folded: all of it is to be read.
SETTLE = """async () => {
    await document.fonts.ready;
    for (const image of document.images) image.loading = "eager";
    await Promise.allSettled([...document.images].map(image => image.decode()));
    const still = document.createElement("style");
    still.textContent = "* { animation: none !important; transition: none !important }";
    document.head.append(still);
    for (const folded of document.querySelectorAll("details")) folded.open = true;
    for (const folded of document.querySelectorAll(".toggle-hidden")) folded.classList.remove("toggle-hidden");
}"""
FORMULAS = """() => [...document.querySelectorAll(".math")].map(formula => ({
    source: formula.textContent.trim(),
    typeset: !!formula.querySelector("mjx-container"),
}))"""

PICTURES = """() => [...document.images].map(image => ({
    source: image.currentSrc.slice(0, 100),
    shown: image.naturalWidth > 0,
    described: !!image.alt.trim() || !image.closest("article"),
}))"""

# What is seen of a colour painted on an element: it lies over the grounds of all that the element lies in.
TEXTS = """least => {
    const context = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    const known = new Map();
    function parse(css) {
        if (!known.has(css)) {
            context.clearRect(0, 0, 1, 1);
            context.fillStyle = css;
            context.fillRect(0, 0, 1, 1);
            const [r, g, b, alpha] = context.getImageData(0, 0, 1, 1).data;
            known.set(css, { rgb: [r, g, b], alpha: alpha / 255 });
        }
        return known.get(css);
    }
    function over(top, ground) {
        const alpha = top.alpha + ground.alpha * (1 - top.alpha);
        const mix = (a, b) => alpha && (a * top.alpha + b * ground.alpha * (1 - top.alpha)) / alpha;
        return { rgb: top.rgb.map((value, k) => mix(value, ground.rgb[k])), alpha };
    }
    function seen(element, colour) {
        for (; element; element = element.parentElement) {
            const style = getComputedStyle(element);
            colour = over(colour, parse(style.backgroundColor));
            colour = { rgb: colour.rgb, alpha: colour.alpha * style.opacity };
        }
        return over(colour, parse("white")).rgb;
    }
    function luminance(rgb) {
        const linear = x => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4;
        const [r, g, b] = rgb.map(value => linear(value / 255));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    }
    function contrast(element) {
        const colours = [parse(getComputedStyle(element).color), parse("transparent")];
        const [dark, light] = colours.map(colour => luminance(seen(element, colour))).sort((a, b) => a - b);
        return (light + 0.05) / (dark + 0.05);
    }
    function visible(element) {
        const { width, height } = element.getBoundingClientRect();
        const shown = element.checkVisibility({ opacityProperty: true, visibilityProperty: true });
        return shown && width > 1 && height > 1;
    }
    function tags(element, levels) {
        return element && levels ? tags(element.parentElement, levels - 1) + element.cloneNode().outerHTML : "";
    }
    const elements = new Set(document.querySelectorAll("mjx-math"));
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) if (walker.currentNode.data.trim()) elements.add(walker.currentNode.parentElement);
    const texts = [...elements].filter(element => !element.closest("mjx-assistive-mml") && visible(element));
    const faint = texts.map(element => [contrast(element), element]).filter(([value]) => value < least);
    return [texts.length, faint.map(([value, element]) => `${value.toFixed(2)}: ${tags(element, 3)}`)];
}"""

Visit = namedtuple("Visit", "page address asked complaints")
Parsed = namedtuple("Parsed", "names links")
every_theme = pytest.mark.parametrize("theme", ["light", "dark"])


@pytest.fixture(scope="module")
def site():
    """Return the folder of the pages. Where the tests run unattended nobody reads why they were skipped."""
    reason = None if CHROMIUM else "there is no Chromium and no Chrome"
    if not SITE:
        reason = "AMPTUTORIAL_SITE names no site: make test builds one, with npm"
    if reason:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    return SITE


@pytest.fixture(scope="module")
def report(site):
    """Return a counter, and write beside the site what was counted."""
    counts = Counter()
    yield counts
    lines = [f"{count:7d} {what}" for what, count in counts.items()]
    (site.parent / "browser.txt").write_text("\n".join(["What passed in the browser:", *lines, ""]))


@pytest.fixture(scope="module")
def address(site):
    """Serve the site on a free port."""
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


@pytest.fixture(scope="module", params=PAGES, ids=lambda page: page.split("/")[-1])
def visit(request, browser, address, report):
    """Open a page, once for all its tests, and keep what it asks for and complains of."""
    page = browser.new_page(viewport=DESK)
    asked, complaints = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("requestfailed", lambda request: complaints.append(f"failed: {request.url}"))
    page.on("response", lambda response: response.ok or complaints.append(f"{response.status}: {response.url}"))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: message.type == "error" and complaints.append(message.text))
    page.goto(f"{address}/{request.param}.html")
    page.evaluate(SETTLE)
    report["pages opened"] += 1
    yield Visit(page, address, asked, complaints)
    page.close()


def is_chapter(visit):
    """Return whether the page is a chapter: these have experiments and quizzes."""
    return bool(re.search(r"/book/\d\d_\w+\.html$", visit.page.url))


def test_nothing_fails_and_no_other_host_is_asked(visit):
    foreign = [url for url in visit.asked if not url.startswith((f"{visit.address}/", "data:", "blob:"))]
    assert not foreign
    assert not visit.complaints


def test_mathematics_is_typeset(visit, report):
    formulas = visit.page.evaluate(FORMULAS)
    assert not [formula["source"] for formula in formulas if not formula["typeset"]]
    report["formulas typeset"] += len(formulas)


def test_pictures_are_shown_and_described(visit, report):
    pictures = visit.page.evaluate(PICTURES)
    assert not [picture for picture in pictures if not (picture["shown"] and picture["described"])]
    report["pictures shown and described"] += len(pictures)


def test_sliders_turn_pictures(visit, report):
    experiments = visit.page.locator(".amp-explore").all()
    assert experiments or not is_chapter(visit), "a chapter without an experiment"
    for experiment in experiments:
        sliders = experiment.get_by_role("slider").all()
        assert sliders
        for slider in sliders:
            turn(slider, experiment.locator("img:visible"), experiment.locator("figcaption:visible"))
        report["sliders moved there and back"] += len(sliders)


def turn(slider, picture, sentence):
    """Move `slider`, which has a name, by a key: another picture and sentence appear, and back again the first."""
    expect(slider).to_have_accessible_name(re.compile(r"\w"))
    expect(picture).to_have_count(1)
    first, value = picture.get_attribute("src"), slider.get_attribute("aria-valuetext")
    keys = ("ArrowRight", "ArrowLeft")
    there, back = reversed(keys) if slider.input_value() == slider.get_attribute("max") else keys
    slider.press(there)
    expect(picture).not_to_have_attribute("src", first)
    expect(picture).to_have_js_property("complete", True)
    expect(slider).not_to_have_attribute("aria-valuetext", value)
    expect(sentence).to_have_count(1)
    slider.press(back)
    expect(picture).to_have_attribute("src", first)


def test_quizzes_answer_the_keyboard(visit, report):
    quizzes = visit.page.locator(".quiz").all()
    assert quizzes or not is_chapter(visit), "a chapter without a quiz"
    for quiz in quizzes:
        answers, verdict = quiz.get_by_role("button").all(), quiz.locator("[aria-live=polite]")
        expect(verdict).to_be_empty()
        answers[0].focus()
        right = 0
        for answer in answers:
            expect(answer).to_be_focused()
            visit.page.keyboard.press("Enter")
            expect(verdict).to_be_visible()
            expect(verdict).to_have_text(re.compile(r"^\s*(Right|Not so)\.\s+\S"))
            right += verdict.inner_text().startswith("Right")
            expect(quiz.locator(".quiz-right:visible, .quiz-wrong:visible")).to_have_count(0)
            visit.page.keyboard.press("Tab")
        assert right == 1
        expect(quiz.locator("button[data-right=true]")).to_have_count(1)
        expect(quiz.locator("button[data-right=false]")).to_have_count(len(answers) - 1)
        report["answers of quizzes pressed"] += len(answers)


def test_first_answers_count(open_chapter):
    page = open_chapter()
    quizzes = page.locator(".quiz").all()
    score = page.locator(".quiz-score")
    expect(score).to_be_empty()
    for quiz in quizzes[:2]:
        for answer in quiz.get_by_role("button").all():
            answer.press("Enter")
    expect(score).to_have_text(re.compile(r"^Right at the first try: [012] of 2\.$"))


def test_answers_have_their_formulas_in_their_names(visit):
    """A button's name is what a screen reader reads of it."""
    if not is_chapter(visit):
        return
    source = ROOT / visit.page.url.removeprefix(f"{visit.address}/").replace(".html", ".ipynb")
    prose = "\n".join("".join(cell["source"]) for cell in json.loads(source.read_text())["cells"])
    answers = re.findall(r"^:::\{dropdown\} (.*)$", prose.split("## Test yourself")[1], re.MULTILINE)
    written = [re.sub(r"[$`*]", "", answer) for answer in answers]
    for button, name in zip(visit.page.locator(".quiz").get_by_role("button").all(), written, strict=True):
        curly = re.sub(r"['\"]", ".", re.escape(name))  # as the page makes straight quotes
        expect(button).to_have_accessible_name(re.compile(f"^{curly}$"))


@pytest.fixture
def open_chapter(browser, address):
    """Return a function that opens a chapter in a context of its own, prepared first, until the test ends."""
    contexts = []

    def open_chapter(prepare=lambda page: None, **options):
        contexts.append(browser.new_context(**options))
        page = contexts[-1].new_page()
        prepare(page)
        page.goto(f"{address}/{next(name for name in PAGES if re.search('/[0-9]', name))}.html")
        return page

    yield open_chapter
    for context in contexts:
        context.close()


SETTINGS = {"level": 3, "strength": 0.3, "hint": 0.5}
HERO = """async settings => {
    const hero = await import(new URL("../_static/hero.js", document.baseURI));
    const mean = lists => lists[0].map((_, k) => lists.reduce((sum, list) => sum + list[k] / lists.length, 0));
    const runs = Array.from({ length: 40 }, () => hero.run(hero.draw(), settings));
    return [hero.forecast(settings), mean(runs), mean(runs.map(run => run.map(error => error ** 2)))];
}"""


def test_the_first_page_predicts_what_the_package_predicts(browser, address):
    page = browser.new_page(viewport=DESK)
    page.add_init_script("let seed = 1; Math.random = () => (seed = (seed * 48271) % 2147483647) / 2147483647")
    page.goto(f"{address}/book/intro.html")
    forecast, mean, square = map(np.array, page.evaluate(HERO, SETTINGS))
    beta, level, hint = 2 / 3, SETTINGS["level"], SETTINGS["hint"]
    law_u, law_v = scaled_rows(
        1,
        **{"rows_u": GaussianRows(1.0), "rows_v": GaussianRows(1.0)},
        **{"bias_u": ConstantBias(), "bias_v": ConstantBias(np.log(level))},
    )
    start = {"M0": np.array([[hint * level / beta]]), "Q0": np.array([[(hint**2 + 1) * level / beta]])}
    run = gaussian_state_evolution(law_u, law_v, Ridge(SETTINGS["strength"]), beta=beta, n_iter=12, **start)
    assert np.allclose(forecast, [iterate.nmse for iterate in run.iterates], atol=1e-9)
    assert (np.abs(mean - forecast) < 4 * np.sqrt((square - mean**2) / 39)).all()
    slider = page.get_by_role("slider", name="strength of the ridge")
    said = page.locator("#hero figcaption")
    before = said.inner_text()
    slider.press("ArrowRight")
    expect(said).not_to_have_text(before)
    page.close()


def test_a_deck_shows_one_slide_at_a_time(browser, address):
    page = browser.new_page(viewport=DESK)
    page.goto(f"{address}/book/slides/part_1.html")
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
    page.close()


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


def test_formulas_are_no_tab_stops(open_chapter):
    page = open_chapter()
    assert page.locator("mjx-container").count() > 50
    assert page.locator("mjx-container[tabindex='0']").count() == 0


def test_the_search_answers_as_one_types(open_chapter):
    page = open_chapter()
    page.keyboard.press("Control+k")
    page.keyboard.type("onsager")
    expect(page.locator(".search-results a, ul.search a, #search-results a").first).to_be_visible()


def test_of_equal_pages_the_search_shows_chapters_before_what_belongs_to_them(browser, address):
    page = browser.new_page(viewport=DESK)
    page.goto(f"{address}/search.html?q=onsager")
    expect(page.locator("#search-results .search-summary")).to_contain_text("found")
    found = page.locator("#search-results li > a").all_inner_texts()
    chapter, appendix, module = (
        next(place for place, title in enumerate(found) if re.search(pattern, title))
        for pattern in (r"^7\. ", r"^\d+\. More on", r"^amptutorial\.\w+$")
    )
    assert chapter < appendix < module
    glass, words = page.locator("form.bd-search :is(i, input):visible").all()
    inner = words.evaluate("field => field.getBoundingClientRect().x + parseFloat(getComputedStyle(field).paddingLeft)")
    box = glass.bounding_box()
    assert box["x"] + box["width"] <= inner
    page.close()


def test_the_list_of_appendices_is_folded_except_on_a_page_of_theirs(browser, address):
    page = browser.new_page(viewport=DESK)
    for name in (name for name in PAGES if name in ("book/intro", "book/more/07_onsager")):
        page.goto(f"{address}/{name}.html")
        fold = page.locator(".bd-links details:has(> summary.caption)")
        expect(fold.locator("summary").first).to_have_text("Appendices")
        expect(fold.locator("a").first).to_be_visible(visible="more" in name)
        fold.locator("summary").first.press("Enter")
        expect(fold.locator("a").first).to_be_visible(visible="more" not in name)
    page.close()


def test_a_summary_of_the_reference_fits_a_phone(browser, address):
    page = browser.new_page(viewport=PHONE)
    page.goto(f"{address}/book/api/amp.html")
    boxes = page.locator("table.autosummary td").evaluate_all(
        "cells => cells.map(cell => { const { left, right } = cell.getBoundingClientRect(); return [left, right]; })"
    )
    assert boxes and all(0 <= left <= right <= PHONE["width"] for left, right in boxes)
    page.close()


def test_the_first_picture_has_words_of_the_size_of_its_text_on_a_phone(browser, address):
    page = browser.new_page(viewport=PHONE)
    page.goto(f"{address}/book/intro.html")
    expect(page.locator("#hero svg text").first).to_be_visible()
    heights = page.locator("#hero svg text").evaluate_all(
        "words => words.map(word => word.getScreenCTM().a * parseFloat(getComputedStyle(word).fontSize))"
    )
    assert min(heights) >= 12
    widths = page.locator("#hero input").evaluate_all("sliders => sliders.map(slider => slider.clientWidth)")
    assert len(widths) == 3 and min(widths) > 200
    page.close()


def test_no_line_begins_with_the_sign_behind_a_formula(open_chapter):
    page = open_chapter(viewport=PHONE)
    page.evaluate("document.fonts.ready")
    broken = page.locator("article .formula:visible").evaluate_all(
        """all => all.filter(one => {
            const [formula, sign] = [one.querySelector(".math"), document.createRange()];
            sign.selectNodeContents(one.lastChild);
            return one.lastChild !== formula && sign.getClientRects()[0].left < formula.getClientRects()[0].left;
        }).map(one => one.textContent)"""
    )
    assert page.locator("article .formula").count() > 20 and not broken


def test_without_scripts_quizzes_say_which_answer_is_right(open_chapter):
    page = open_chapter(java_script_enabled=False)
    for kind, word in (("right", "Right. "), ("wrong", "Not so. ")):
        reasons = page.locator(f".quiz-{kind} > p:first-child")
        marks = reasons.evaluate_all("all => all.map(reason => getComputedStyle(reason, '::before').content)")
        assert marks and set(marks) == {f'"{word}"'}
        expect(reasons.first).to_be_visible()


def test_without_scripts_an_experiment_shows_its_picture_and_no_slider(open_chapter):
    page = open_chapter(java_script_enabled=False)
    for experiment in page.locator(".amp-explore").all():
        expect(experiment.locator("img:visible")).to_have_count(1)
        expect(experiment.locator("figcaption:visible")).to_have_text(re.compile(r"\d"))
        expect(experiment.locator("input:visible")).to_have_count(0)


def test_without_scripts_formulas_are_set_as_high_as_the_letters_around_them(open_chapter):
    page = open_chapter(java_script_enabled=False)
    fonts, ratios = page.evaluate("""async () => {
        const seen = [...document.querySelectorAll("article p mjx-container")].filter(one => one.offsetParent);
        const ratios = seen.map(formula => {
            const probe = document.createElement("span");
            probe.style = "display: inline-block; width: 10ex";
            formula.parentElement.append(probe);
            const ex = probe.getBoundingClientRect().width / 10;
            probe.remove();
            return parseFloat(getComputedStyle(formula).fontSize) * 0.43 / ex;
        });
        await document.fonts.ready;
        return [[...document.fonts].filter(one => one.status === "loaded").map(one => one.family), ratios];
    }""")
    assert {"MJXTEX", "MJXTEX-I"} <= set(fonts)
    assert len(ratios) > 50 and all(0.98 < ratio < 1.02 for ratio in ratios)


# Python in the page, which is told when to answer; and a cell whose output has come.
LIVE = """html => {
    window.asked = [];
    const answered = command => (answer, refuse) => window.asked.push({ command, answer, refuse });
    window.ampLive = { call: command => new Promise(answered(command)) };
    const output = document.createElement("div");
    output.innerHTML = html;
    document.querySelector("article").prepend(output);
    output.dispatchEvent(new CustomEvent("amp:output", { bubbles: true }));
}"""


def test_where_python_runs_in_the_page_it_draws_what_the_sliders_choose(open_chapter, monkeypatch):
    def draw(figure, power=2, seed=0):
        """Draw a power."""
        return f"{power}, {seed}"

    monkeypatch.setattr(widgets, "EXPERIMENTS", [])
    experiment = explore(draw, stored={"power": [1, 2]}, live={"seed": range(9)})
    page = open_chapter()
    page.evaluate(LIVE, experiment.live_page())
    box = page.locator(".amp-explore").first
    power, seed = box.get_by_role("slider", name="power"), box.get_by_role("slider", name="seed")
    sentence = box.locator("figcaption")
    expect(sentence).to_have_text("2, 0")
    power.press("ArrowLeft")
    for _ in range(5):
        seed.press("ArrowRight")
    for chosen in ([0, 0], [0, 5]):  # what came while the first was drawn is asked for once
        calls = page.evaluate("window.asked.map(({ command }) => command)")
        assert calls[-1] == f"amptutorial.widgets.redraw(0, {chosen})"
        page.evaluate("html => window.asked.at(-1).answer(html)", widgets.redraw(0, chosen))
        expect(sentence).to_have_text(f"1, {chosen[1]}")
    assert len(calls) == 2
    seed.press("ArrowRight")
    page.evaluate("window.asked.at(-1).refuse(new Error('no seed 6'))")
    expect(box.locator("pre")).to_have_text("Error: no seed 6")


# What would be missing on paper: the parts of folds that are still folded, or only begin to appear.
FADING = """() => {
    dispatchEvent(new Event("beforeprint"));
    const missing = part =>
        !part.checkVisibility() || getComputedStyle(part).opacity < 1 || part.getAnimations().length;
    const parts = [...document.querySelectorAll("article details > :not(summary)")];
    return [parts.length, parts.filter(missing).map(part => part.outerHTML.slice(0, 100))];
}"""


def test_on_paper_there_is_one_title_and_nothing_is_folded(open_chapter):
    page = open_chapter()
    page.emulate_media(media="print")
    expect(page.locator("h1:visible")).to_have_text(re.compile(r"^1\. "))
    for part in (".bd-sidebar-primary", ".bd-sidebar-secondary", ".live-tools", "details.hide > summary"):
        expect(page.locator(f"{part}:visible")).to_have_count(0)
    folds, missing = page.evaluate(FADING)
    assert folds > 10 and not missing
    code = page.locator("article pre, article .highlight, article details.hide, article .solution")
    assert code.evaluate_all("all => all.every(part => getComputedStyle(part).breakInside === 'auto')")


def dress(page, theme, viewport):
    """Show `page` in a theme, at a size."""
    page.set_viewport_size(viewport)
    page.evaluate("theme => { document.documentElement.dataset.theme = theme }", theme)


@every_theme
def test_a_phone_scrolls_in_one_direction(visit, theme):
    dress(visit.page, theme, PHONE)
    assert visit.page.evaluate("document.scrollingElement.scrollWidth") <= PHONE["width"]


def test_the_words_of_a_drawing_are_legible_on_a_phone(visit):
    """All are 720 units wide, with letters of 14 units and more: ten pixels."""
    dress(visit.page, "light", PHONE)
    widths = visit.page.evaluate("[...document.querySelectorAll('figure.drawing img')].map(one => one.width)")
    assert all(width * 14 / 720 > 10 for width in widths)


@every_theme
def test_text_stands_out_from_its_ground(visit, theme, report):
    dress(visit.page, theme, DESK)
    count, faint = visit.page.evaluate(TEXTS, CONTRAST)
    assert not set(faint)
    report[f"texts with a contrast of {CONTRAST} or more, {theme}"] += count


class Collector(HTMLParser):
    """Collects where a page can be entered, and where it leads."""

    def __init__(self):
        super().__init__()
        self.names, self.links = set(), []

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.names |= {values.get("id"), values.get("name")}
        self.links += [values[key] for key in ("href", "src") if values.get(key)]


@cache
def parse(path):
    """Return the names and the links of the page stored at `path`."""
    collector = Collector()
    collector.feed(path.read_text())
    return Parsed(collector.names, collector.links)


def leads_somewhere(site, page, link):
    """Return whether `link` on `page` leaves the site or reaches a file of it, and its fragment."""
    target, fragment = urldefrag(urljoin(ADDRESS + page, link))
    if not target.startswith("/") or target.startswith("//"):
        return True
    path = site / unquote(target.removeprefix(ADDRESS).split("?")[0])
    return target.startswith(ADDRESS) and path.is_file() and (not fragment or unquote(fragment) in parse(path).names)


def test_links_lead_somewhere(site, report):
    links = {(path.relative_to(site).as_posix(), link) for path in pages_of(site) for link in parse(path).links}
    assert not [(page, link) for page, link in links if not leads_somewhere(site, page, link)]
    report["links followed"] += len(links)


def test_links_of_experiments_lead_somewhere(site, visit):
    page = visit.page.url.removeprefix(f"{visit.address}/")
    links = visit.page.locator(".amp-explore a").evaluate_all("links => links.map(link => link.getAttribute('href'))")
    assert not [link for link in links if not leads_somewhere(site, page, link)]
