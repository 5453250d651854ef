"""What a page costs before any click, in bytes and files, and whether it can be used by all who read it."""

import gzip
import re
from urllib.parse import unquote, urlsplit

import pytest
from light_pages import pages_of
from test_browser import DESK, PAGES, ROOT, address, browser, dress, site

__all__ = ["address", "browser", "site"]  # fixtures

LANDING, PAGE, FILES = 250_000, 1_200_000, 25  # bytes, bytes, number
AXE = ROOT / ".offline/node_modules/axe-core/axe.min.js"
# Formulas are MathJax's; contrast, and the names of answers, which hold the source of formulas, are tested elsewhere.
# What they are made of is taken away: it is most of a page, and takes most of the time.
THINNED = """() => {
    document.querySelectorAll("mjx-container > *").forEach(part => part.remove());
    document.querySelectorAll("pre").forEach(code => { code.textContent = code.textContent; });
}"""
VIOLATIONS = """async options => {
    const part = { exclude: [["mjx-container"], [".quiz button"]] };
    const { violations } = await axe.run(part, { resultTypes: ["violations"], ...options });
    return violations.filter(({ impact }) => impact !== "minor").map(({ id, nodes }) => `${id}: ${nodes[0].html}`);
}"""


@pytest.fixture(scope="module", params=PAGES, ids=lambda page: page.split("/")[-1])
def opened(request, browser, address):
    """Return the name of a page, the page, and the files that it asked for by itself."""
    page = browser.new_page(viewport=DESK)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{address}/{request.param}.html", wait_until="networkidle")
    page.evaluate("document.fonts.ready")
    yield request.param, page, [unquote(urlsplit(url).path) for url in asked if url.startswith(address)]
    page.close()


def weight(path):
    """Return the bytes of a file as a server sends them."""
    content = path.read_bytes()
    return min(len(content), len(gzip.compress(content)))


def test_a_page_is_light(site, opened):
    name, _, files = opened
    assert len(files) <= FILES
    assert sum(weight(site / file[1:]) for file in set(files)) <= (LANDING if name == PAGES[0] else PAGE)


def test_axe_finds_nothing_but_trifles(opened):
    """In the dark, it is asked again what depends on colours."""
    _, page, _ = opened
    page.evaluate(THINNED)
    page.evaluate(AXE.read_text())
    for theme, options in (
        ("light", {"rules": {"color-contrast": {"enabled": False}}}),
        ("dark", {"runOnly": {"type": "rule", "values": ["link-in-text-block"]}}),
    ):
        dress(page, theme, DESK)
        assert not page.evaluate(VIOLATIONS, options)


def test_no_script_holds_up_a_page(site):
    for path in pages_of(site):
        loaded = re.findall(r"<script\b[^>]*\bsrc=[^>]*>", path.read_text())
        assert not [tag for tag in loaded if not re.search(r"\b(defer|async|module)\b", tag)], path
