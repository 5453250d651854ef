"""Formulas of docstrings, set on the pages of the API."""

import inspect
import re
from importlib import import_module

import pytest
from api_formulas import FORMULAS, FOUND, set_formulas, written
from imports import all_modules


@pytest.fixture(scope="module")
def docstrings():
    """Return what stands in the modules of the package between triple quotes."""
    sources = (inspect.getsource(import_module(name)) for name in all_modules())
    return "\n".join(text for source in sources for text in re.findall(r'"""(.*?)"""', source, re.DOTALL))


def test_every_formula_stands_in_a_docstring(docstrings):
    assert [formula for formula in FORMULAS if not re.search(written(formula), docstrings)] == []


def test_a_longer_formula_goes_before_its_parts_and_code_stays(docstrings):
    text, expected = "M = U V^T /\n    sqrt(m), and A B^T.", r":math:`M = U V^\top / \sqrt m`, and :math:`A B^\top`."
    assert set_formulas(text) == expected
    assert set_formulas("`sqrt(r) u` in my_A B^T") == "`sqrt(r) u` in my_A B^T"
    assert len(FOUND.findall(docstrings)) > 100
