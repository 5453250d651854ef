"""Verdicts under `python -O` and `-OO`: neither the kit nor the grader may depend on `assert`."""

import ast
import csv
import subprocess
import sys
from pathlib import Path

import pytest
from grading_samples import GRADING, RIGHT, WRONG

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

# A submission whose own assert is what finds a mistake of its author.
CAREFUL = RIGHT.replace("def penalty(self, X, r):", "def penalty(self, X, r):\n        assert False, 'not finished'")


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


def grade_class(folder, options):
    """Return the rows of the table of points, from a run of the grader with these options of Python."""
    out = folder / f"points{options}.csv"
    arguments = ["--assignment", "1", "--out", out, "--config", GRADING, "--seed", "5"]
    run_python(options, "-m", "amptutorial_course.grading", folder / "class", *arguments)
    with open(out, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the sandbox of the grader is tested on Linux")
def test_the_grader_gives_the_same_points_with_and_without_assertions(tmp_path):
    for student, text in {"right": RIGHT, "wrong": WRONG, "careful": CAREFUL}.items():
        place = tmp_path / "class" / student
        place.mkdir(parents=True)
        (place / "denoiser.py").write_text(text, encoding="utf-8")
    careful, right, wrong = grade_class(tmp_path, "")
    assert float(careful["penalty"]) == float(wrong["jacobian"]) == 0
    assert float(right["total"]) == 100
    assert grade_class(tmp_path, "-OO") == [careful, right, wrong]


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS)
def test_a_submission_keeps_its_own_assertions(options, tmp_path):
    (tmp_path / "denoiser.py").write_text("assert False, 'not finished'\n")
    script = f"""
from amptutorial_course.assignments import load_submission
try:
    load_submission({str(tmp_path / "denoiser.py")!r})
except AssertionError as failure:
    print(failure)
"""
    assert run_python(options, "-c", script) == "not finished\n"


def test_the_package_has_no_assert_statement():
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Assert)
    ]
    assert found == []
