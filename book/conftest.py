"""Notebooks under test run in the environment that stored their outputs."""

import pytest
from execute_book import KERNEL_ENVIRONMENT

PICTURES = {
    "image/svg+xml",
    "text/html",
}  # like PNG not compared: what they show, words say too


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    """Start the kernel, on the way to the first cell, with the settings of the book."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in KERNEL_ENVIRONMENT.items():
            patch.setenv(name, value)
        item.parent.skip_compare = {*item.parent.skip_compare, *PICTURES}
        return (yield)
