"""Settings of the whole suite."""

import os
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
