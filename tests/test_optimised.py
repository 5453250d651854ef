"""Verdicts under `python -O` and `-OO`: the kit may not depend on `assert`."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "amptutorial"
OPTIONS = ["-O", "-OO"]

# The wrong denoiser of the docstring of check_denoiser, and one that fails a check of every kind.
REPORTS = """
import numpy as np
from amptutorial import Ridge, check_denoiser
from amptutorial.checks import CHECKS


class Forgetful(Ridge):
    def denoise(self, P, r, F):
        return self.estimate(P, r, F), np.eye(P.shape[1])

    def estimate(self, P, r, F):
        return Ridge.denoise(self, P, r, F)[0]


class Sevenfold(Ridge):
    def denoise(self, P, r, F):
        P *= 7
        return P, 0 * F

    def mean_jacobian(self, P, r, F):
        return 0 * F


for denoiser in (Forgetful(1.0), Sevenfold(1.0), Ridge(1.0)):
    print(check_denoiser(denoiser))
for name in ("no_mutation", "jacobian"):
    try:
        CHECKS[name](Sevenfold(1.0))
    except AssertionError as failure:
        print(failure)
"""


def run_python(options, *arguments):
    command = [sys.executable, *filter(None, [options]), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def report():
    return run_python("", "-c", REPORTS)


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS)
def test_the_kit_says_the_same_with_and_without_assertions(options, report):
    assert report.count("FAIL  ") > 6 and "14 of 14 checks passed" in report
    assert "FAIL  jacobian: " in report and "FAIL  state_evolution: " in report and "The promise: P, r and F" in report
    assert run_python(options, "-c", REPORTS) == report


def test_the_package_has_no_assert_statement():
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Assert)
    ]
    assert found == []
