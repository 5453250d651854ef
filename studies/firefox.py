"""Run pages whole in Firefox too, and compare what they print with what is stored.

    pip install marionette_driver
    python -m studies.firefox                            # two short pages, a minute
    python -m studies.firefox book/13_the_proofs         # others

Debian calls Firefox firefox-esr. The site is that of `make site OFFLINE=1`.
"""

import shutil
import socket
import subprocess
import sys
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

from chromium import ENDED, FOUND, PRESS, ROOT, served, stored_prints

SITE = ROOT / "_build/html"
PAGES = ("book/more/spectrum", "book/06_why_the_onsager_term")
FIREFOX = next(filter(None, map(shutil.which, ("firefox-esr", "firefox"))), None)
LONGEST = 600  # seconds that a page may take


@contextmanager
def firefox(marionette):
    """Start a Firefox with a profile of its own, and give what drives it."""
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    with TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        Path(profile, "user.js").write_text(f'user_pref("marionette.port", {port});\n')
        command = [FIREFOX, "--headless", "--marionette", "--no-remote", "--profile", profile]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                driver = marionette.marionette.Marionette("127.0.0.1", port=port)
                driver.start_session(timeout=120)
                yield driver
            finally:
                process.terminate()


def run_page(marionette, driver, address, name):
    """Run a page from its last cell; return what is wrong with it, or None."""

    def evaluate(function):
        return driver.execute_script(f"return ({function})()", sandbox=None)

    driver.navigate(f"{address}/{name}.html")
    wait = marionette.Wait(driver, timeout=LONGEST, interval=1)
    wait.until(lambda _: evaluate("() => document.querySelector('.live-tools') !== null"))
    evaluate(PRESS)
    wait.until(lambda _: evaluate(ENDED))
    found, stored = evaluate(FOUND), stored_prints(name)
    if found["errors"] or found["ran"] < len(stored):
        return f"{found['ran']} of {len(stored)} cells ran: {found['said']} {found['errors']}"
    pairs = enumerate(zip(stored, found["printed"], strict=True), 1)
    other = [number for number, (old, new) in pairs if old not in (None, new)]
    return f"other prints in cells {other}" if other else None


def main(names):
    """Run the pages, and return the exit status."""
    if FIREFOX is None:
        sys.exit("Firefox is not installed")
    marionette = import_module("marionette_driver")
    with served(SITE) as address, firefox(marionette) as driver:
        problems = {name: run_page(marionette, driver, address, name) for name in names}
    for name, problem in problems.items():
        print(f"{name}: {problem or 'as stored'}")
    return int(any(problems.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or PAGES))
