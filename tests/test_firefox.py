"""Pages that run whole in Firefox too: make firefox. Debian's firefox-esr and pip's marionette_driver are needed."""

import shutil
import socket
import subprocess
from contextlib import closing

import pytest
from live_report import ENDED, FOUND, PRESS, stored_prints
from test_live import SLOW, WHOLE, address, live_site, site  # noqa: F401

marionette = pytest.importorskip("marionette_driver", reason="Firefox is driven by marionette_driver")
# the driver leaves sockets open with which it has knocked
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
FIREFOX = next(filter(None, map(shutil.which, ("firefox-esr", "firefox"))), None)


@pytest.fixture(scope="module")
def firefox(tmp_path_factory):
    """Start a Firefox with a profile of its own."""
    if FIREFOX is None:
        pytest.skip("Firefox is not installed")
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    profile = tmp_path_factory.mktemp("profile")
    (profile / "user.js").write_text(f'user_pref("marionette.port", {port});\n')
    command = [FIREFOX, "--headless", "--marionette", "--no-remote", "--profile", profile]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            driver = marionette.marionette.Marionette("127.0.0.1", port=port)
            driver.start_session(timeout=120)
            yield driver
        finally:
            process.terminate()


@pytest.mark.parametrize("name", WHOLE, ids=lambda name: name.split("/")[-1])
def test_a_page_run_whole_in_firefox_prints_what_is_stored(live_site, address, firefox, name):  # noqa: F811
    def evaluate(function):
        return firefox.execute_script(f"return ({function})()", sandbox=None)

    firefox.navigate(f"{address}/{name}.html")
    wait = marionette.Wait(firefox, timeout=SLOW / 1000, interval=1)
    wait.until(lambda _: evaluate("() => document.querySelector('.live-tools') !== null"))
    evaluate(PRESS)
    wait.until(lambda _: evaluate(ENDED))
    found, stored = evaluate(FOUND), stored_prints(name)
    assert found["errors"] == [] and found["ran"] == len(stored), found["said"]
    pairs = zip(stored, found["printed"], strict=True)
    assert all(old in (None, new) for old, new in pairs)
