"""Serve a site, and run all cells of a page in Chromium or Chrome, as its reader may.

No debugger watches, which would keep a copy of all that a page loads: a script, sent with the page, presses the button
and posts what it has found.
"""

import json
import os
import shutil
import subprocess
from collections import namedtuple
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from tempfile import TemporaryDirectory
from threading import Thread

from live_cells import HIDDEN

ROOT = Path(__file__).parents[1]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-dev-shm-usage", "--no-first-run")
LONGEST = 1_800_000  # milliseconds that a page may take
DRAWN = "nbval-ignore-output"  # the tag of cells whose draws depend on the processor

Run = namedtuple("Run", "page cells printing equal seconds first megabytes said failed")

# Press "Run this page", and wait until no cell waits or runs.
PRESS = """() => {
    document.querySelectorAll("details").forEach(fold => { fold.open = true; });
    const tools = [...document.querySelectorAll(".live-tools")];
    window.pressed = performance.now();
    const watch = () => {
        const states = tools.map(tool => tool.querySelector(".live-state").textContent);
        window.first ??= states.some(state => /^ran/.test(state)) ? performance.now() : undefined;
    };
    new MutationObserver(watch).observe(document.body, { childList: true, characterData: true, subtree: true });
    document.querySelector(".live-run-page").click();
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
SCRIPT = f"""<script type="module">
async function until(done) {{
    while (!done()) await new Promise(go => setTimeout(go, 200));
}}
await until(() => document.querySelector(".live-tools"));
({PRESS})();
const latest = performance.now() + {LONGEST};
await until(() => ({ENDED})() || performance.now() > latest);
fetch("/found", {{ method: "POST", body: JSON.stringify(({FOUND})()) }});
</script>"""


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and says nothing of it."""

    def log_message(self, *_):
        """Say nothing."""


class Visited(Quiet):
    """Sends one page with a script that runs its cells, and hands over what the script posts."""

    def __init__(self, *request, name, answers, **options):
        self.name, self.answers = name, answers
        super().__init__(*request, **options)

    def do_GET(self):
        """Send a file."""
        if self.path != f"/{self.name}.html":
            return super().do_GET()
        page = Path(self.directory, f"{self.name}.html").read_text() + SCRIPT
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(page.encode())

    def do_POST(self):
        """Take what the script has found."""
        self.answers.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()


@contextmanager
def served(site, handler=Quiet, **options):
    """Serve a folder on a free port, and give its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=site, **options)) as server:
        Thread(target=server.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def stored_prints(name):
    """Return what each code cell of a page has printed; None where draws depend on the processor."""
    cells = json.loads((ROOT / f"{name}.ipynb").read_text())["cells"]
    shown = [cell for cell in cells if "outputs" in cell and HIDDEN.isdisjoint(cell["metadata"].get("tags", []))]
    return [None if DRAWN in cell["metadata"].get("tags", []) else printed(cell) for cell in shown]


def printed(cell):
    """Return what a code cell has printed."""
    return "".join("".join(output["text"]) for output in cell["outputs"] if output.get("name") == "stdout")


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


def run_page(site, name):
    """Run all cells of a page from its last one, in a browser of its own, and return a Run."""
    answers = Queue()
    # the last of the browser's processes may still write while the folder goes
    profile = TemporaryDirectory(ignore_cleanup_errors=True)
    with served(site, Visited, name=name, answers=answers) as address, profile as folder:
        command = [CHROMIUM, *OPTIONS, f"--user-data-dir={folder}", f"{address}/{name}.html"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as browser:
            try:
                found = answers.get(timeout=LONGEST / 1000 + 60)
                megabytes = peak_megabytes()
            finally:
                browser.terminate()
    stored = stored_prints(name)
    pairs = [(old, new) for old, new in zip(stored, found["printed"], strict=True) if old or (new and old is not None)]
    return Run(
        name,
        len(stored),
        len(pairs),
        sum(old == new for old, new in pairs),
        found["seconds"],
        found["first"],
        megabytes,
        found["said"],
        len(stored) - found["ran"],
    )
