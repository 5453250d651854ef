"""Notebooks under test run in the environment in which their outputs were stored."""

import pytest
from execute_book import KERNEL_ENVIRONMENT


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    """Start the kernel, which happens on the way to a notebook's first cell, with the book's settings."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in KERNEL_ENVIRONMENT.items():
            patch.setenv(name, value)
        return (yield)
