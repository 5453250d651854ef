"""What readers expect of an online book, besides its text: a reference by module."""

import pkgutil
import re
from pathlib import Path

import pytest
from render_pages import DATA_FLOW
from test_browser import parse, site  # noqa: F401

import amptutorial

ROOT = Path(__file__).parents[1]
MODULES = [name for names in DATA_FLOW.values() for name in names]


def test_the_reference_has_a_page_for_every_public_module():
    public = [name for _, name, _ in pkgutil.iter_modules(amptutorial.__path__) if not name.startswith("_")]
    assert sorted(MODULES) == sorted(public)
    assert sorted(path.stem for path in (ROOT / "book/api").iterdir()) == sorted(public)


@pytest.mark.parametrize("module", MODULES)
def test_a_page_of_the_reference_sums_up_what_it_describes_and_links_its_source(site, module):
    text = (site / f"book/api/{module}.html").read_text()
    described = re.findall(rf'<dt class="[^"]*\bpy" id="(amptutorial\.{module}\.\w+)">', text)
    table = re.search(r'<table class="autosummary.*?</table>', text, re.DOTALL)
    assert "viewcode-link" in text if described else module == "grading"
    assert sorted(re.findall(r'href="#([\w.]+)"', table[0]) if table else described[:1]) == sorted(described)


def test_the_reference_links_every_name_at_the_door(site):
    table = re.search(r'<table class="autosummary.*?</table>', (site / "book/api.html").read_text(), re.DOTALL)[0]
    links = re.findall(r'href="([^"]*)#(amptutorial[\w.]*)"', table)
    assert sorted(name.rpartition(".")[2] for _, name in links) == sorted(amptutorial.__all__)
    assert all(not page or name in parse(site / "book" / page).names for page, name in links)
