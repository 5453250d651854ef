"""The autograder for Gradescope: built by one command, and run as Gradescope's harness runs it.

The harness unpacks the archive into source/, runs setup.sh once, copies run_autograder beside source/, and for each
submission fills submission/ and runs run_autograder in the folder above, which leaves results/results.json.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile

import pytest
from grading_samples import GRADING, LOST, RIGHT, STARTER, WRONG

from amptutorial_course.assignments import ASSIGNMENTS
from amptutorial_course.grading import isolation
from amptutorial_course.grading.__main__ import main
from amptutorial_course.grading.rules import SEED_VARIABLE, load_rules

TASK = ASSIGNMENTS[1]


@pytest.fixture(scope="module")
def autograder(tmp_path_factory):
    """Return the folder that is /autograder there, after the archive has been unpacked."""
    root = tmp_path_factory.mktemp("gradescope")
    path = root / "autograder.zip"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(SEED_VARIABLE, "hush")
        assert main(["--gradescope", str(path), "--assignment", "1", "--config", str(GRADING)]) == 0
    with zipfile.ZipFile(path) as archive:
        archive.extractall(root / "source")
    shutil.copy(root / "source/run_autograder", root / "run_autograder")
    return root


def harness(root, files):
    for folder in ("submission", "results"):
        shutil.rmtree(root / folder, ignore_errors=True)
    (root / "results").mkdir()
    for name, text in files.items():
        (root / "submission" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "submission" / name).write_text(text)
    command = ["bwrap", "--dev-bind", "/", "/", "--bind", str(root), "/autograder", "--chdir", "/autograder"]
    done = subprocess.run(
        [*command, "bash", "/autograder/run_autograder"],
        env={"PATH": os.environ["PATH"], "PYTHON": sys.executable}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads((root / "results/results.json").read_text())


@pytest.mark.slow
@pytest.mark.skipif(bool(isolation.bwrap_problem()), reason="bubblewrap makes the folder /autograder")
def test_gradescope_s_harness_gets_a_result_for_each_check(autograder):
    right = harness(autograder, {"denoiser.py": RIGHT})
    assert right["score"] == 100 and right["output"] == "graded"
    assert {test["name"]: test["max_score"] for test in right["tests"]} == TASK.points
    assert right["extra_data"] == {"isolation": "bwrap"}
    wrong = harness(autograder, {"work/mine.py": WRONG, "work/notes.txt": "", "._mine.py": ""})
    failed = {test["name"] for test in wrong["tests"] if test["status"] == "failed"}
    assert failed == set(LOST)
    assert wrong["score"] == 100 - sum(TASK.points[name] for name in failed)
    beside = harness(autograder, {"denoiser.py": STARTER, "mine.py": RIGHT})
    assert beside["score"] == 100 and "denoiser.py is as it was handed out, and was left aside" in beside["output"]
    both = harness(autograder, {"denoiser.py": RIGHT, "old/denoiser.py": WRONG})
    assert both["score"] == 0 and both["output"].startswith("which file is denoiser.py")
    assert both["visibility"] == "after_published"
    assert "hush" not in json.dumps([right, wrong, both])


def test_the_archive_has_rules_and_requirements_and_no_solution(autograder):
    source = autograder / "source"
    assert not [path for path in source.rglob("*") if "solutions" in path.parts or path.suffix == ".ipynb"]
    assert str(load_rules(GRADING, 1, "hush").seed) in (source / "rules.json").read_text()
    lines = (source / "requirements.txt").read_text().splitlines()
    assert {"numpy", "scipy", "PyYAML", "ipython", "matplotlib", "pandas"} <= {line.split("==")[0] for line in lines}


@pytest.mark.slow
def test_what_is_installed_suffices_for_the_judge(autograder):
    """It imports nothing but its requirements: neither pages nor notebooks are made there."""
    script = "import sys, amptutorial_course.grading.gradescope; print(*sys.modules)"
    environment = {"PYTHONPATH": str(autograder / "source/package"), "PATH": os.environ["PATH"]}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert not {"jinja2", "nbformat", "nbgrader", "IPython"} & set(done.stdout.split())


def test_the_image_is_set_up_with_the_python_of_here(autograder):
    script = autograder / "source/setup.sh"
    subprocess.run(["bash", "-n", script], check=True)
    text = script.read_text()
    for part in (f"--python {sys.version_info.major}.{sys.version_info.minor} ", "bubblewrap", "requirements.txt"):
        assert part in text
    assert re.search(r"^chmod 600 \S*rules\.json$", text, re.MULTILINE)
