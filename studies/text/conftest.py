"""Settings of the tests of this study."""

import numpy as np
import pytest


@pytest.fixture
def rng():
    """Return a generator with a fixed seed, the same for every test."""
    return np.random.default_rng(2024)
