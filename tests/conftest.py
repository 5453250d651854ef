"""Settings of the whole suite."""

import gc
import os
import socket
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

# Counted corpora are kept here, not in the cache of whoever runs the tests.
os.environ.setdefault("AMPTUTORIAL_CACHE", str(Path(__file__).parents[1] / ".pytest_cache" / "corpora"))

# Derandomised: the suite says the same thing twice. No deadline: no test times anything.
settings.register_profile("amptutorial", deadline=None, derandomize=True)
settings.load_profile("amptutorial")
gc.disable()  # while tests are collected, nearly all that is made stays


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


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


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark what needs the site: what opens pages of its own is slow. Skip what needs reviews that are not here."""
    for item in items:
        asked = getattr(item, "fixturenames", ())
        marks = ["pages"] * ("site" in asked) + ["slow"] * ("opened" in asked)
        if item.get_closest_marker("reviews") and not os.environ.get("AMPTUTORIAL_DATA"):
            marks.append(pytest.mark.skip(reason="AMPTUTORIAL_DATA names no movie reviews"))
        for mark in marks:
            item.add_marker(mark)
