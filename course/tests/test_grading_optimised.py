"""Verdicts under `python -O` and `-OO`: the grader may not depend on `assert`, and a submission keeps its own."""

import csv
import subprocess
import sys

import pytest
from grading_samples import GRADING, RIGHT, WRONG

OPTIONS = ["-O", "-OO"]

# A submission whose own assert is what finds a mistake of its author.
CAREFUL = RIGHT.replace("def penalty(self, X, r):", "def penalty(self, X, r):\n        assert False, 'not finished'")


def run_python(options, *arguments):
    command = [sys.executable, *filter(None, [options]), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def grade_class(folder, options):
    """Return the rows of the table of points, from a run of the grader with these options of Python."""
    out = folder / f"points{options}.csv"
    arguments = ["--assignment", "1", "--out", out, "--config", GRADING, "--seed", "5"]
    run_python(options, "-m", "amptutorial_course.grading", folder / "class", *arguments)
    with open(out, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
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
