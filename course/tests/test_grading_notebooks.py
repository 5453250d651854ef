"""A right solution earns its points in whatever notebook it stands."""

import ast
import json
import sys

import nbformat
import numpy as np
import pytest
from grading_samples import RIGHT, SOLUTIONS
from notebook_styles import NOTEBOOKS, answers, notebook

from amptutorial_course.grading.notebooks import read_notebook
from amptutorial_course.grading.rules import HANDOUTS
from amptutorial_course.grading.submissions import read_submission

OUTSIDE = "amptutorial_course torch google seaborn marimo ipywidgets IPython matplotlib matplotlib.pyplot".split()


@pytest.mark.parametrize("data", NOTEBOOKS.values(), ids=NOTEBOOKS)
def test_a_right_solution_is_read_whole_and_alone(tmp_path, monkeypatch, data):
    """The class computes the same to the last digit, where nothing of a desk is at hand."""
    (tmp_path / "mine.ipynb").write_bytes(data)
    source = read_submission([tmp_path / "mine.ipynb"], ["RidgeByHand"], 64).source
    assert isinstance(source, bytes), source
    expected = answers(RIGHT)
    for name in OUTSIDE:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr("builtins.input", None)
    for one, other in zip(answers(source), expected, strict=True):
        np.testing.assert_array_equal(one, other)


def statements(text):
    """Return the statements of a text, without docstrings, each import by itself."""
    nodes = [node for node in ast.parse(text).body if not isinstance(node, ast.Expr)]
    single = [
        [type(node)(**vars(node) | {"names": [n]}) for n in getattr(node, "names", ())] or [node] for node in nodes
    ]
    return {ast.unparse(each) for one in single for each in one}


def test_every_right_solution_comes_out_of_its_brief_whole_and_alone(task):
    """Its statements stand among the cells of the brief, in any order; nothing else of the brief comes along."""
    cells = nbformat.read(HANDOUTS / task.folder / "brief.ipynb", 4).cells
    brief = [cell.source for cell in cells if cell.cell_type == "code"]
    rng = np.random.default_rng(0)
    for path in (SOLUTIONS / task.folder).glob("*.py"):
        text = path.read_text(encoding="utf-8")
        cells = [*brief, *(ast.unparse(node) for node in ast.parse(text).body)]
        for order in (np.arange(len(cells)), rng.permutation(len(cells)), rng.permutation(len(cells))):
            source = read_notebook(json.dumps(notebook([cells[k] for k in order])).encode(), task.class_names)[0]
            assert statements(source) == statements(text), path
            exec(source, {"__name__": "denoiser"})


def test_modules_that_cells_write_lie_beside_the_denoiser(tmp_path):
    helper = "%%writefile work/helper.py\nfrom parts import half\n", "%%writefile -a helper.py\nONE = 2 * half"
    cells = [*helper, "%%file parts.py\nhalf = 0.5", "%%bash\necho class RidgeByHand", "from helper import ONE"]
    for last in ("class RidgeByHand:\n    one = ONE", "%%writefile denoiser.py\nclass RidgeByHand:\n    one = 1.0"):
        (tmp_path / "mine.ipynb").write_text(json.dumps(notebook([*cells, last])))
        found = read_submission([tmp_path / "mine.ipynb"], ["RidgeByHand"], 64)
        assert found.helpers == {"helper.py": b"from parts import half\nONE = 2 * half\n", "parts.py": b"half = 0.5\n"}
        assert found.source.endswith(last.removeprefix("%%writefile denoiser.py\n").encode() + b"\n")
