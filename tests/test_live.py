"""Cells that run in the page, in a browser that reaches no other host.

The wheels of Pyodide are large and lie outside the repository: without them these tests are skipped, and fail in
continuous integration. `python -m studies.live_report` runs every page in this way.
"""

import json
import os
import re
from types import SimpleNamespace

import live_cells
import pytest
from chromium import run_page
from fetch_wheels import URL
from live_cells import MEGABYTES, ON_DEMAND
from playwright.sync_api import expect
from test_browser import CONTRAST, DESK, TEXTS, address, browser, dress, every_theme, site  # noqa: F401

WHOLE = ("book/more/05_spectrum", "book/more/07_onsager")
SMALL = "book/more/07_onsager"
MOST_MEGABYTES = 700  # in memory, of a page with little data
SLOW = 600_000  # milliseconds that Python may take to load where much else runs


@pytest.fixture(scope="module")
def live_site(site):  # noqa: F811
    """Return the folder of the pages, if Python lies beside them."""
    if not (site / "_static/offline/pyodide").is_dir():
        reason = "the site has no Pyodide: AMPTUTORIAL_WHEELS names no folder of its wheels"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    return site


@pytest.fixture
def open_page(live_site, browser, address):  # noqa: F811
    """Return a function that opens a page in a context of its own, and the addresses it asks for."""
    contexts = []

    def open_page(name, **options):
        contexts.append(browser.new_context(viewport=DESK, **options))
        page = contexts[-1].new_page()
        page.set_default_timeout(SLOW)
        asked = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{address}/{name}.html")
        expect(page.locator(".live-tools").first).to_be_attached()
        page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
        return page, asked

    yield open_page
    for context in contexts:
        context.close()


def parts(page, number):
    """Return the code of a cell, its buttons by name, its state and its outputs."""
    cell = page.locator("div.cell:has(.live-tools)").nth(number - 1)
    tools = cell.locator(".live-tools")
    return cell.locator(".cell_input pre"), tools, cell.locator(".live-state"), cell.locator(".cell_output")


def write(code, text):
    """Put `text` in place of the code of a cell, as a reader types."""
    code.focus()
    code.press("ControlOrMeta+a")
    code.page.keyboard.insert_text(text)


def press(tools, name):
    tools.get_by_role("button", name=name, exact=True).press("Enter")


def said(page, pattern):
    """Wait until the live region says something."""
    expect(page.get_by_role("status")).to_have_text(re.compile(pattern), timeout=SLOW)


def test_nothing_is_loaded_before_the_first_press(open_page):
    page, asked = open_page(SMALL)
    page.wait_for_load_state("networkidle")
    live = [url.split("/_static/")[-1].split("?")[0] for url in asked if "pyodide" in url or "/live/" in url]
    assert live == ["live/cells.js"]  # the style sheet is one for all


def test_the_page_says_how_much_it_loads(live_site):
    runtime, own = live_site / "_static/offline/pyodide", live_site / "_static/live"
    later = ("mpmath", *(name.replace("-", "_") for name in ON_DEMAND.values()))
    files = [file for file in runtime.iterdir() if not file.name.startswith(later)]
    files += [own / "amptutorial.zip", own / "docstrings.counts"]
    assert abs(sum(file.stat().st_size for file in files) / 1e6 - MEGABYTES) < 1


@pytest.mark.parametrize("name", WHOLE, ids=lambda name: name.split("/")[-1])
def test_a_page_run_whole_prints_what_is_stored(live_site, name):
    run = run_page(live_site, name)
    assert not run.failed, run.said
    assert run.printing > 0 and run.equal == run.printing
    assert (run.megabytes or 0) < MOST_MEGABYTES


def test_a_reader_edits_runs_errs_and_stops(open_page, address):  # noqa: F811
    page, asked = open_page(SMALL)
    code, tools, state, output = parts(page, 1)
    stored = code.inner_text()
    reset = tools.get_by_role("button", name="Reset")
    expect(reset).to_be_hidden()

    write(code, "kept = 6 * 7\nprint(kept)")
    expect(reset).to_be_visible()
    code.press("Shift+Enter")
    expect(parts(page, 2)[0]).to_be_focused()
    said(page, r"^Python is loading: \d+ MB, once\.")
    expect(page.locator(".live-bytes")).to_have_text(re.compile(r"^\d+ of \d+ MB$"))
    said(page, r"^Cell 1 has run\.$")
    expect(state).to_have_text(re.compile(r"^ran in \d+\.\d s$"))
    expect(output).to_have_text("42")

    press(tools, "Reset")
    assert code.inner_text() == stored
    expect(reset).to_be_hidden()
    expect(tools.get_by_role("button", name="Run", exact=True)).to_be_focused()

    code, tools, state, output = parts(page, 2)
    write(code, "def f(x):\n    return x / 0\n\n\nf(kept)")
    press(tools, "Run")
    said(page, r"^Cell 2 failed\.$")
    expect(state).to_have_text("failed")
    expect(output.locator(".live-error")).to_have_text(re.compile("Traceback.*line 5.*ZeroDivisionError", re.DOTALL))
    expect(tools.get_by_role("button", name="Run", exact=True)).to_be_focused()

    write(code, "print('begins', flush=True)\nwhile True:\n    pass")
    press(tools, "Run")
    expect(output).to_have_text("begins")
    assert page.evaluate("new Promise(done => setTimeout(() => done(6 * 7), 0))") == 42, "the page is frozen"
    press(tools, "Stop")
    said(page, "^Stopped. All variables are lost")
    expect(tools.get_by_role("button", name="Run", exact=True)).to_be_focused()
    assert not page.evaluate("window.ampLive.running")

    write(code, "print(kept)")
    press(tools, "Run")
    said(page, r"^Cell 2 failed\.$")
    expect(output).to_have_text(re.compile("NameError.*“Run all above” runs them first", re.DOTALL))
    assert page.evaluate("window.ampLive.call('1 + 1')") == "2"
    code.press("Escape")
    expect(tools.get_by_role("button", name="Run", exact=True)).to_be_focused()
    assert not [url for url in asked if not url.startswith((f"{address}/", "data:", "blob:"))]


@every_theme
def test_what_a_run_adds_stands_out_from_its_ground(open_page, theme):
    page, _ = open_page(SMALL)
    code, tools, _, output = parts(page, 1)
    write(code, "import sys\nprint('printed', file=sys.stderr)\nprint('more')\nmissing")
    press(tools, "Run")
    said(page, r"^Cell 1 failed\.$")
    expect(output.locator(".live-error, .live-stderr")).to_have_count(2)
    dress(page, theme, DESK)
    page.add_style_tag(content="* { animation: none !important; transition: none !important }")
    assert not page.evaluate(TEXTS, CONTRAST)[1]


def test_every_page_has_a_python_of_its_own(open_page):
    page, _ = open_page("assignments/01_ridge/brief")
    _, tools, _, output = parts(page, 1)
    press(tools, "Run")
    said(page, r"^Cell 1 has run\.$")
    expect(output).to_contain_text("rare words")
    code, tools, _, output = parts(page, 2)
    write(code, "from pathlib import Path\nprint(Path('denoiser.py').is_file(), N)")
    press(tools, "Run")
    said(page, r"^Cell 2 has run\.$")
    expect(output).to_have_text("True 4000")


def test_what_few_cells_import_comes_when_one_does(open_page):
    page, asked = open_page(SMALL)
    code, tools, _, output = parts(page, 1)
    for name, source in (
        ("sympy", "import sympy\nprint(sympy.factor(sympy.Symbol('x') ** 2 - 1))"),
        ("scikit_learn", "from sklearn.preprocessing import scale\nprint(*scale([1, 3]))"),
    ):
        assert not [url for url in asked if f"/{name}-" in url]
        write(code, source)
        press(tools, "Run")
        said(page, r"^Cell 1 has run\.$")
        assert len([url for url in asked if f"/{name}-" in url]) == 1
    expect(output).to_have_text("-1.0 1.0")


def test_where_python_cannot_be_reached_the_page_says_so(open_page):
    page, _ = open_page(SMALL)
    page.route("**/pyodide/**", lambda route: route.abort())
    _, tools, state, output = parts(page, 5)
    before = output.inner_text() if output.count() else ""
    press(tools, "Run")
    said(page, r"^Python could not be loaded from .*The stored outputs stay as they are\.$")
    expect(state).to_be_empty()
    assert (output.inner_text() if output.count() else "") == before
    page.unroute("**/pyodide/**")
    press(tools, "Run all above")
    said(page, r"^Cells 1 to 5 have run\.$")


@pytest.fixture
def published(tmp_path, monkeypatch):
    """Return the folder of what buttons fetch, written as for the published pages."""
    monkeypatch.delenv("OFFLINE", raising=False)
    monkeypatch.setattr(live_cells, "write_counts", lambda path: None)  # those of the site will do
    env = SimpleNamespace(found_docs=[SMALL], doc2path=lambda name: live_cells.ROOT / f"{name}.ipynb")
    builder = SimpleNamespace(name="html")
    (tmp_path / "_static/live").mkdir(parents=True)
    live_cells.write_files(SimpleNamespace(builder=builder, outdir=tmp_path, env=env), None)
    return tmp_path / "_static/live"


def test_published_pages_take_python_from_its_own_host(open_page, live_site, published):
    """That host is played by the copies beside the pages, which have the hashes of its files."""
    page, asked = open_page(SMALL)
    settings = published / f"cells/{SMALL}.json"
    assert json.loads(settings.read_text())["runtime"] == URL

    def answer(route):
        copy = live_site / "_static/offline/pyodide" / route.request.url.removeprefix(URL)
        route.fulfill(path=copy, headers={"Access-Control-Allow-Origin": "*"})  # as jsDelivr answers

    page.route("**/_static/live/cells/**", lambda route: route.fulfill(path=settings))
    page.route(f"{URL}**", answer)
    code, tools, _, output = parts(page, 1)
    write(code, "import scipy\nimport amptutorial\nprint(6 * 7)")
    press(tools, "Run")
    said(page, r"^Cell 1 has run\.$")
    expect(output).to_have_text("42")
    python = [url for url in asked if "pyodide" in url]
    assert len(python) > 10 and all(url.startswith(URL) for url in python)
