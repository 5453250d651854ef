"""Settings of the whole suite."""

import os
import socket
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

# Counted corpora are kept here, not in the cache of whoever runs the tests.
os.environ.setdefault("AMPTUTORIAL_CACHE", str(Path(__file__).parents[1] / ".pytest_cache" / "corpora"))

# Derandomised: the suite says the same thing twice. No deadline: no test times anything.
settings.register_profile("amptutorial", deadline=None, derandomize=True)
settings.load_profile("amptutorial")


@pytest.fixture
def rng():
    """Return a generator with a fixed seed, the same for every test."""
    return np.random.default_rng(2024)


@pytest.fixture(autouse=True, scope="module")
def same_limits():
    """A limit that a test leaves on its process kills the browsers that later tests start."""
    if sys.platform == "win32":
        yield
        return
    import resource

    before = resource.getrlimit(resource.RLIMIT_AS)
    yield
    assert resource.getrlimit(resource.RLIMIT_AS) == before


@pytest.fixture
def offline(tmp_path, monkeypatch):
    """No network, no data of the machine, no cache but an empty one."""

    def blocked(*args, **kwargs):
        raise OSError("the network is blocked in this test")

    monkeypatch.setattr(socket, "getaddrinfo", blocked)
    monkeypatch.setattr(socket.socket, "connect", blocked)
    monkeypatch.setenv("AMPTUTORIAL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("AMPTUTORIAL_DATA", raising=False)


@pytest.fixture
def rules():
    """Return the rules of assignment 1 with a seed and limits for tests."""
    from amptutorial_course.grading import config
    from grading_samples import GRADING, LIMITS

    return replace(config.load_rules(GRADING, 1, seed=5), limits=LIMITS)


@pytest.fixture
def impatient(monkeypatch, rules):
    """Return rules with short limits and no restarts: what is asked is how an attack ends."""
    from amptutorial_course.grading import remote

    monkeypatch.setattr(remote, "RESTARTS", 0)
    return replace(rules, limits=rules.limits | {"seconds_per_call": 2})


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark what needs the site, and skip the grader where its sandbox lacks the limits that the tests try to break."""
    for item in items:
        if "site" in getattr(item, "fixturenames", ()):
            item.add_marker("pages")
    if sys.platform == "linux":
        return
    for item in items:
        if item.path.stem.startswith(("test_grading", "test_nbgrader")):
            item.add_marker(pytest.mark.skip(reason="the sandbox of the grader is tested on Linux"))


def pytest_terminal_summary(terminalreporter):
    """Print how many right solutions and mistakes of the bank the kit has told apart, and which it has not."""
    reports = [report for status in ("passed", "failed") for report in terminalreporter.stats.get(status, [])]
    rows = [
        tuple(value) for report in reports for name, value in getattr(report, "user_properties", ()) if name == "bank"
    ]
    if rows:
        terminalreporter.section("right and wrong denoisers")
    for folder in sorted({row[0] for row in rows}):
        asked = [row for row in rows if row[0] == folder]
        right = sum(what.startswith("right: ") for _, what, *_ in asked)
        terminalreporter.write_line(f"{folder:<18} {right} right solutions, {len(asked) - right} mistakes")
        for _, what, check, as_expected in asked:
            if not as_expected:
                terminalreporter.write_line(f"{'':<18} not as expected: {what} ({check})")
