"""One right solution in the notebooks of many students: cells from notebook_styles.yml, files as tools write them."""

import contextlib
import io
import json
import re
from pathlib import Path
from textwrap import indent

import numpy as np
import yaml
from grading_samples import RIGHT

CLASS = RIGHT[RIGHT.index("class RidgeByHand") :].rstrip()
BEGINNING, METHODS = (part.rstrip() for part in re.split("(?=    def estimate)", CLASS))
STUB = "def estimate(self, P, r, F):\n    return 0 * P"
OTHERS = METHODS[METHODS.index("    def mean_jacobian") :]
PARTS = {
    "FILE": RIGHT,
    "IMPORTS": "import numpy as np\n\nfrom amptutorial import Denoiser",
    "PREDICTION": "PREDICTION = 0.216",
    "CLASS": CLASS,
    "SCALED": CLASS.replace("self.strength / r[", "SCALE * self.strength / r["),
    "HELPED": CLASS.replace("np.linalg.inv(", "inverse("),
    "BASE": CLASS.replace("RidgeByHand", "Base"),
    "MINE": CLASS.replace("RidgeByHand", "Mine"),
    "TYPO": CLASS.replace("(Denoiser)", "(Denoizer)"),
    "BROKEN": CLASS.replace("(Denoiser):", "(Denoiser)"),
    "WITH A COMMAND": CLASS.replace("        shifted =", "        %time 1\n        shifted ="),
    "BEGINNING": BEGINNING,
    "STUB": STUB,
    "METHODS": METHODS,
    "STUBBED": f"{BEGINNING}\n\n{indent(STUB, '    ')}\n\n{OTHERS}",
    "ESTIMATE": "def estimate(self, P, r, F):\n    return np.einsum('ik,ikl->il', P, self._inverses(r, F))",
    "CHECKS": "from amptutorial_course.assignments import check_assignment\nreport = check_assignment(1)\nreport",
}


def filled_in(cell):
    """Return a cell with the parts of the solution in the place of their names."""
    return re.sub(r"^( *)<([A-Z ]+)>$", lambda name: indent(PARTS[name[2]], name[1]), cell.rstrip("\n"), flags=re.M)


def notebook(cells, source="source"):
    """Return a notebook of some cells of code as its dictionary."""
    written = [{"cell_type": "code", "metadata": {}, "outputs": [], source: cell} for cell in cells]
    prose = [{"cell_type": "markdown", source: "# class RidgeByHand:\n!ls"}, {"cell_type": "raw", source: "1 +"}]
    return {"cells": [*prose, *written], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}


def styles():
    """Return the cells of each notebook of the bank, by its name."""
    bank = yaml.safe_load(Path(__file__).with_suffix(".yml").read_text(encoding="utf-8"))
    cells = {f"a constant: {name}": ["<IMPORTS>", cell, "<SCALED>"] for name, cell in bank["constants"].items()}
    for name, cell in bank["beside"].items():
        cells[f"beside it: {name}"] = ["import os, sys", "<IMPORTS>", cell, "<CLASS>", cell, "<CHECKS>"]
    cells |= bank["whole"]
    whole = {name: [*map(filled_in, each)] for name, each in cells.items()}
    return {
        name: each if "PREDICTION = 0.216" in "".join(each) else [*each, PARTS["PREDICTION"]]
        for name, each in whole.items()
    }


def answers(source):
    """Return what the class in a text answers on rows of its own, and what it predicts."""
    names = {"__name__": "denoiser"}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(source, "denoiser.py", "exec", dont_inherit=True), names)
    rng = np.random.default_rng(0)
    P, r, F = rng.standard_normal((5, 2)), rng.uniform(0.5, 2, 5), np.array([[2.0, 0.3], [0.3, 1.0]])
    by_hand = names["RidgeByHand"](0.7)
    found = by_hand.estimate(P, r, F), by_hand.mean_jacobian(P, r, F), by_hand.penalty(P, r), by_hand.convexity(r)
    return [*found, names["PREDICTION"]]


CELLS = [*map(filled_in, ("<IMPORTS>", "<PREDICTION>", "<CLASS>", "<CHECKS>"))]
LINES = [cell.splitlines(keepends=True) for cell in CELLS]
NOTEBOOKS = {name: json.dumps(notebook(cells)).encode() for name, cells in styles().items()} | {
    "lists of lines": json.dumps(notebook(LINES)).encode(),
    "format 3": json.dumps({"nbformat": 3, "worksheets": [notebook(LINES, "input")]}).encode(),
    "a mark of the encoding": json.dumps(notebook(CELLS)).encode("utf-8-sig"),
    "UTF-16": json.dumps(notebook([*CELLS, "größe = 3"]), ensure_ascii=False).encode("utf-16"),
    "UTF-16 without a mark": json.dumps(notebook(CELLS)).encode("utf-16-le"),
    "ends of line of Windows": json.dumps(notebook([cell.replace("\n", "\r\n") for cell in CELLS])).encode(),
    "ends of line of old systems": json.dumps(notebook([cell.replace("\n", "\r") for cell in CELLS])).encode(),
    "a mark in each cell": json.dumps(notebook([f"\ufeff{cell}" for cell in CELLS])).encode(),
    "indented": json.dumps(notebook([indent(cell, "    ") for cell in CELLS]), indent=4).encode(),
}
