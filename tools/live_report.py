"""Run all cells of the pages in a browser, as a reader does, and say how it went.

    python tools/live_report.py                        # every page that has cells: make live-test
    python tools/live_report.py book/16_the_proofs     # some of them

The site is that of `make site OFFLINE=1`. The report is printed and kept in _build/live.txt; the seconds of each page
that ran to its end are kept in tools/live_seconds.json, from where the next build takes them to tell readers.
"""

import json
import os
import shutil
import sys
from collections import namedtuple
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from math import ceil
from pathlib import Path
from threading import Thread

from playwright.sync_api import TimeoutError, sync_playwright

ROOT = Path(__file__).parents[1]
SITE = ROOT / "_build/html"
SECONDS = ROOT / "tools/live_seconds.json"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
LONGEST = 1_800_000  # milliseconds that a page may take

Run = namedtuple("Run", "page cells printing equal seconds first megabytes said failed")

# Press "Run all above" at the last cell, and wait until no cell waits or runs.
PRESS = """() => {
    document.querySelectorAll("details").forEach(fold => { fold.open = true; });
    const tools = [...document.querySelectorAll(".live-tools")];
    const last = [...tools.at(-1).querySelectorAll("button:not([hidden])")].at(-1);
    window.pressed = performance.now();
    const watch = () => {
        const states = tools.map(tool => tool.querySelector(".live-state").textContent);
        window.first ??= states.some(state => /^ran/.test(state)) ? performance.now() : undefined;
    };
    new MutationObserver(watch).observe(document.body, { childList: true, characterData: true, subtree: true });
    last.click();
}"""
ENDED = (
    r"() => / (has|have) run\.$| failed| stay as they are\.$/.test(document.querySelector('.live-said').textContent)"
)
FOUND = """() => ({
    said: document.querySelector(".live-said").textContent,
    seconds: (performance.now() - window.pressed) / 1000,
    first: window.first ? (window.first - window.pressed) / 1000 : null,
    ran: [...document.querySelectorAll(".live-state")].filter(state => /^ran/.test(state.textContent)).length,
    printed: [...document.querySelectorAll("div.cell:has(.live-tools)")].map(cell =>
        [...cell.querySelectorAll("[data-kind=stdout] pre")].map(pre => pre.textContent).join("")),
    errors: [...document.querySelectorAll(".live-error pre")].map(pre => pre.textContent),
})"""


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and says nothing of it."""

    def log_message(self, *_):
        """Say nothing."""


@contextmanager
def served(site):
    """Serve a folder on a free port, and give its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=site)) as server:
        Thread(target=server.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def launch(playwright):
    """Start a browser."""
    return playwright.chromium.launch(executable_path=CHROMIUM, args=["--disable-gpu", "--disable-quic"])


def stored_prints(name):
    """Return what each cell of a notebook has printed."""
    cells = json.loads((ROOT / f"{name}.ipynb").read_text())["cells"]
    outputs = [cell["outputs"] for cell in cells if cell["cell_type"] == "code"]
    return ["".join("".join(one["text"]) for one in cell if one.get("name") == "stdout") for cell in outputs]


def peak_megabytes():
    """Return what the largest of the browser's pages held at most, on Linux; else None.

    The browser's own files count for nothing: it has them once, however many pages are open.
    """
    if not Path("/proc/self/status").is_file():
        return None
    facts = {}
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
            sizes = [int(lines[key].split()[0]) for key in ("VmHWM", "RssFile") if key in lines]
            facts[int(lines["Pid"])] = int(lines["PPid"]), sizes, status.parent / "cmdline"
        except OSError:  # it has ended meanwhile
            continue

    def is_ours(pid):
        return pid == os.getpid() or (pid in facts and is_ours(facts[pid][0]))

    renderers = [sizes for pid, (_, sizes, line) in facts.items() if is_ours(pid) and b"=renderer" in line.read_bytes()]
    return max(((high - files) // 1000 for high, files in renderers), default=None)


def run_page(browser, address, name):
    """Run all cells of a page from its last one, and return a Run."""
    page = browser.new_page()
    page.set_default_timeout(LONGEST)
    page.goto(f"{address}/{name}.html", wait_until="domcontentloaded")
    page.wait_for_selector(".live-tools", state="attached")
    page.evaluate(PRESS)
    try:
        page.wait_for_function(ENDED)
    except TimeoutError:
        pass  # what has run until now is reported
    found = page.evaluate(FOUND)
    megabytes = peak_megabytes()
    page.close()
    stored = stored_prints(name)
    pairs = [(old, new) for old, new in zip(stored, found["printed"], strict=True) if old or new]
    equal = sum(old == new for old, new in pairs)
    return Run(
        name,
        len(stored),
        len(pairs),
        equal,
        found["seconds"],
        found["first"],
        megabytes,
        found["said"],
        len(stored) - found["ran"],
    )


def line(run):
    """Return a row of the report."""
    first = f"{run.first:6.1f}" if run.first else "     -"
    prints = f"{run.equal}/{run.printing}"
    return f"{run.page:<38} {run.cells:5d} {prints:>7} {run.seconds:7.0f} {first} {run.megabytes or 0:5d}  {run.said}"


def main(names):
    """Run the pages, report, and return the exit status."""
    known = json.loads(SECONDS.read_text())
    pages = sorted(
        str(path.relative_to(SITE / "_static/live/cells")) for path in SITE.glob("_static/live/cells/**/*.json")
    )
    names = names or [page.removesuffix(".json") for page in pages]
    rows = [f"{'page':<38} {'cells':>5} {'equal':>7} {'seconds':>7} {'first':>6} {'MB':>5}"]
    print(*rows, flush=True)
    failed = 0
    with served(SITE) as address, sync_playwright() as playwright:
        for name in names:
            # a browser for each page: its memory is that of this page alone
            browser = launch(playwright)
            run = run_page(browser, address, name)
            browser.close()
            rows.append(line(run))
            print(rows[-1], flush=True)
            failed += bool(run.failed or run.equal < run.printing)
            if not run.failed:
                known[name] = 10 * ceil((run.seconds - run.first) / 10)
    SECONDS.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n")
    (ROOT / "_build/live.txt").write_text("\n".join(rows) + "\n")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
