"""Cells that run in the page, in a browser that reaches no other host.

The wheels of Pyodide are large and lie outside the repository: without them these tests are skipped, and fail in
continuous integration. `python -m studies.live_report` runs every page in this way.

To load Python takes most of the time: the tests of what a reader does share one page, where a press loads it.
"""

import json
import os
import re
from types import SimpleNamespace

import live_cells
import pytest
from chromium import ENDED, FOUND, PRESS, run_page, stored_prints
from contrast import CONTRAST
from fetch_wheels import URL
from live_cells import MEGABYTES, ON_DEMAND
from playwright.sync_api import expect
from questions import js
from test_browser import BRIEF, DESK, address, browser, dress, site  # noqa: F401

SMALL = "book/more/spectrum"
MOST_MEGABYTES = 700  # in memory, of a page with little data
SLOW = 600_000  # milliseconds that Python may take to load where much else runs


@pytest.fixture(scope="module")
def live_site(site):  # noqa: F811
    """Return the folder of the pages, if Python lies beside them."""
    if not (site / "_static/offline/pyodide").is_dir():
        reason = "the site has no Pyodide: AMPTUTORIAL_WHEELS names no folder of its wheels"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(reason)
    return site


def open_page(browser, address, name):  # noqa: F811
    """Open a page in a context of its own, and return it with the addresses that it asks for."""
    page = browser.new_context(viewport=DESK).new_page()
    page.set_default_timeout(SLOW)
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{address}/{name}.html")
    expect(page.locator(".live-tools").first).to_be_attached()
    page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
    return page, asked


@pytest.fixture(scope="module")
def opened(live_site, browser, address):  # noqa: F811
    """Return the page that the tests share, and what it asked for."""
    page, asked = open_page(browser, address, SMALL)
    yield page, asked
    page.context.close()


def parts(page, number):
    """Return the code of a cell, its buttons by name, its state and its outputs."""
    cell = page.locator("div.cell:has(.live-tools)").nth(number - 1)
    tools = cell.locator(".live-tools")
    return cell.locator(".cell_input pre"), tools, cell.locator(".live-state"), cell.locator(".cell_output")


def write(code, text, tools=None):
    """Put `text` in place of the code of a cell, as a reader types, and run it, if `tools` are given."""
    code.focus()
    code.press("ControlOrMeta+a")
    code.page.keyboard.insert_text(text)
    if tools:
        press(tools, "Run")


def press(tools, name):
    tools.get_by_role("button", name=name, exact=True).press("Enter")


def run_is_focused(tools):
    expect(tools.get_by_role("button", name="Run", exact=True)).to_be_focused()


def said(page, pattern):
    expect(page.get_by_role("status")).to_have_text(re.compile(pattern), timeout=SLOW)


def test_the_page_says_how_much_it_loads(live_site):
    runtime, own = live_site / "_static/offline/pyodide", live_site / "_static/live"
    later = ("mpmath", *(name.replace("-", "_") for name in ON_DEMAND.values()))
    files = [file for file in runtime.iterdir() if not file.name.startswith(later)]
    files.append(own / "amptutorial.zip")
    assert abs(sum(file.stat().st_size for file in files) / 1e6 - MEGABYTES) < 1


def test_nothing_is_loaded_before_the_first_press(opened):
    page, asked = opened
    page.wait_for_load_state("networkidle")
    live = [url.split("/_static/")[-1].split("?")[0] for url in asked if "pyodide" in url or "/live/" in url]
    assert live == ["live/cells.js"]  # the style sheet is one for all


def test_where_python_cannot_be_reached_the_page_says_so(opened):
    page, _ = opened
    page.route("**/pyodide/**", lambda route: route.abort())
    _, tools, state, output = parts(page, 3)
    before = output.inner_text() if output.count() else ""
    press(tools, "Run")
    said(page, r"^Python could not be loaded from .*The stored outputs stay as they are\.$")
    expect(state).to_be_empty()
    assert (output.inner_text() if output.count() else "") == before
    page.unroute("**/pyodide/**")


@pytest.mark.slow
def test_what_could_not_be_fetched_comes_at_the_next_press(browser, address):  # noqa: F811
    """A browser remembers a module that did not come, and each module that it imports."""
    page, asked = open_page(browser, address, SMALL)
    _, tools, _, _ = parts(page, 1)
    for module in ("runner", "kernel", "output", "cells/"):
        page.route(f"**/live/{module}**", lambda route: route.abort())
        press(tools, "Run")
        reason = "The list of this page’s cells" if module == "cells/" else "No connection: .*Press again"
        said(page, rf"^{reason}.*\. The stored outputs stay as they are\.$")
        page.unroute(f"**/live/{module}**")
        page.get_by_role("button", name="Close this bar").press("Enter")
    press(tools, "Run")
    said(page, r"^Python is loading|^This copy of the book has no Python beside its pages")
    page.context.close()


def test_a_page_run_whole_prints_what_is_stored(opened):
    page, _ = opened
    page.evaluate(PRESS)
    said(page, r"^Python is loading: \d+ MB, once\.")
    expect(page.locator(".live-bytes")).to_have_text(re.compile(r"^\d+ of \d+ MB$"))
    said(page, r"^Cells 1 to 4 have run\.$")
    found, stored = page.evaluate(FOUND), stored_prints(SMALL)
    assert page.evaluate(ENDED) and found["errors"] == [] and found["ran"] == len(stored)
    assert any(found["printed"])
    assert all(old in (None, new) for old, new in zip(stored, found["printed"], strict=True))


@pytest.mark.slow
def test_a_page_that_no_debugger_watches_prints_what_is_stored_in_little_memory(live_site):
    run = run_page(live_site, SMALL)
    assert not run.failed, run.said
    assert run.printing > 0 and run.equal == run.printing
    assert (run.megabytes or 0) < MOST_MEGABYTES


def test_what_few_cells_import_comes_when_one_does(opened):
    page, asked = opened
    code, tools, _, output = parts(page, 1)
    for name, source, result in (
        ("sympy", "import sympy\nprint(sympy.factor(sympy.Symbol('x') ** 2 - 1))", "(x - 1)*(x + 1)"),
        ("scikit_learn", "from sklearn.preprocessing import scale\nprint(*scale([1, 3]))", "-1.0 1.0"),
    ):
        assert not [url for url in asked if f"/{name}-" in url]
        write(code, source, tools)
        expect(output).to_have_text(result, timeout=SLOW)
        said(page, r"^Cell 1 has run\.$")
        assert len([url for url in asked if f"/{name}-" in url]) == 1
    press(tools, "Reset")


def test_what_a_run_adds_stands_out_from_its_ground(opened):
    page, _ = opened
    code, tools, _, output = parts(page, 1)
    write(code, "import sys\nprint('printed', file=sys.stderr)\nprint('more')\nmissing", tools)
    said(page, r"^Cell 1 failed\.$")
    expect(output.locator(".live-error, .live-stderr")).to_have_count(2)
    still = page.add_style_tag(content="* { animation: none !important; transition: none !important }")
    for theme in ("dark", "light"):
        dress(page, theme, DESK)
        assert not page.evaluate(js("faintTexts"), CONTRAST)[1], theme
    still.evaluate("style => style.remove()")
    press(tools, "Reset")


def test_a_reader_edits_runs_errs_and_stops(opened, address):  # noqa: F811
    page, asked = opened
    code, tools, state, output = parts(page, 1)
    stored = code.inner_text()
    reset = tools.get_by_role("button", name="Reset")
    expect(reset).to_be_hidden()
    write(code, "kept = 6 * 7\nprint(kept)")
    expect(reset).to_be_visible()
    code.press("Shift+Enter")
    expect(parts(page, 2)[0]).to_be_focused()
    said(page, r"^Cell 1 has run\.$")
    expect(state).to_have_text(re.compile(r"^ran in \d+\.\d s$"))
    expect(output).to_have_text("42")
    fresh = output.locator("xpath=following-sibling::p")
    expect(fresh).to_have_text(re.compile(r"^computed here, \d+\.\d s$"))
    expect(fresh).to_be_visible()
    press(tools, "Reset")
    assert code.inner_text() == stored
    expect(reset).to_be_hidden()
    run_is_focused(tools)
    code, tools, state, output = parts(page, 2)
    write(code, "def f(x):\n    return x / 0\n\n\nf(kept)", tools)
    said(page, r"^Cell 2 failed\.$")
    expect(state).to_have_text("failed")
    expect(output.locator(".live-error")).to_have_text(re.compile("Traceback.*line 5.*ZeroDivisionError", re.DOTALL))
    run_is_focused(tools)
    write(code, "print('begins', flush=True)\nwhile True:\n    pass", tools)
    expect(output).to_have_text("begins")
    assert page.evaluate("new Promise(done => setTimeout(() => done(6 * 7), 0))") == 42, "the page is frozen"
    press(tools, "Stop and forget")
    said(page, "^Stopped. All variables are lost")
    run_is_focused(tools)
    assert not page.evaluate("window.ampLive.running")
    write(code, "print(kept)", tools)
    said(page, r"^Cell 2 failed\.$")
    expect(output).to_have_text(re.compile("NameError.*“Run all above” runs them first", re.DOTALL))
    assert page.evaluate("window.ampLive.call('1 + 1')") == "2"
    code.press("Escape")
    run_is_focused(tools)
    page.get_by_role("button", name="Close this bar").press("Enter")
    expect(page.locator(".live-bar")).to_be_hidden()
    page.reload()
    expect(parts(page, 2)[0]).to_have_text("print(kept)")  # what was written is kept, and can be taken back
    press(parts(page, 2)[1], "Reset")
    page.reload()
    expect(parts(page, 2)[0]).not_to_have_text("print(kept)")
    assert not [url for url in asked if not url.startswith((f"{address}/", "data:", "blob:"))]


@pytest.fixture
def published(tmp_path, monkeypatch):
    """Return the folder of what buttons fetch, written as for the published pages."""
    monkeypatch.delenv("OFFLINE", raising=False)
    env = SimpleNamespace(found_docs=[BRIEF], doc2path=lambda name: live_cells.ROOT / f"{name}.ipynb")
    builder = SimpleNamespace(name="html")
    (tmp_path / "_static/live").mkdir(parents=True)
    live_cells.write_files(SimpleNamespace(builder=builder, outdir=tmp_path, env=env), None)
    return tmp_path / "_static/live"


@pytest.mark.slow
def test_published_pages_take_python_from_its_own_host(browser, address, live_site, published):  # noqa: F811
    """That host is played by the copies beside the pages, which have the hashes of its files; a brief has its own."""
    page, asked = open_page(browser, address, BRIEF)
    settings = published / f"cells/{BRIEF}.json"
    assert json.loads(settings.read_text())["runtime"] == URL

    def answer(route):
        copy = live_site / "_static/offline/pyodide" / route.request.url.removeprefix(URL)
        route.fulfill(path=copy, headers={"Access-Control-Allow-Origin": "*"})  # as jsDelivr answers

    page.route("**/_static/live/cells/**", lambda route: route.fulfill(path=settings))
    page.route(f"{URL}**", answer)
    _, tools, _, output = parts(page, 1)
    press(tools, "Run")
    said(page, r"^Cell 1 has run\.$")
    expect(output).to_contain_text("rare words")
    code, tools, _, output = parts(page, 2)
    write(code, "import os, scipy, amptutorial\nprint(os.path.isfile('denoiser.py'), N)", tools)
    said(page, r"^Cell 2 has run\.$")
    expect(output).to_have_text("True 4000")
    python = [url for url in asked if "pyodide" in url]
    assert len(python) > 10 and all(url.startswith(URL) for url in python)
    page.context.close()
