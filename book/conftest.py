"""Notebooks under test run in the environment that stored their outputs."""

import pytest
from execute_book import KERNEL_ENVIRONMENT


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    """Start the kernel, on the way to the first cell, with the settings of the book."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in KERNEL_ENVIRONMENT.items():
            patch.setenv(name, value)
        return (yield)
