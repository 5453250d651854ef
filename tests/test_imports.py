"""What importing the package loads, and what it offers."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import amptutorial

LATER = ("scipy.stats", "sklearn", "pandas", "joblib", "matplotlib", "pooch", "simplemma")
ON_DEMAND = (
    *("AMPEmbedding", "Corpus", "check_denoiser", "cooccurrence", "corpus_from_texts"),
    *("load_docstrings", "load_movie_reviews"),
)


def run(code):
    answer = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return answer.stdout.strip()


def test_the_core_loads_neither_statistics_nor_scikit_learn():
    statement = (
        "from amptutorial import Ridge, biased_low_rank_amp, state_evolution; import amptutorial; dir(amptutorial)"
    )
    statement += "; import amptutorial.neighbours, amptutorial.spectrum, amptutorial.checks"
    assert run(f"{statement}; import sys; print([name for name in {LATER} if name in sys.modules])") == "[]"


def test_what_is_loaded_on_demand_is_there_when_asked_for_and_a_star_brings_it():
    names = ", ".join(ON_DEMAND)
    code = f"from amptutorial import {names}; print(*(found.__name__ for found in ({names})))"
    assert run(code).split() == list(ON_DEMAND)
    code = "from amptutorial import *; import amptutorial; print(*sorted(set(amptutorial.__all__) - set(globals())))"
    assert run(code) == ""
    assert set(ON_DEMAND) <= set(dir(amptutorial)) and set(ON_DEMAND) <= set(amptutorial.__all__)


def test_what_is_not_there_is_named():
    with pytest.raises(AttributeError, match="module 'amptutorial' has no attribute 'Posterior'"):
        amptutorial.Posterior  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'Posterior'"):
        from amptutorial import Posterior  # noqa: F401


def test_a_type_checker_sees_what_is_loaded_on_demand():
    """The imports that only it reads name the objects that are returned."""
    tree = ast.parse(Path(amptutorial.__file__).read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name: node.module for node in block.body for alias in node.names}
    assert seen == amptutorial._ON_DEMAND and set(seen) == set(ON_DEMAND)
