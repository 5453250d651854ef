"""The autograder for Gradescope: built by one command, and run as Gradescope's harness runs it.

The harness unpacks the archive into source/, runs setup.sh once, copies run_autograder beside source/, and for each
submission fills submission/ and runs run_autograder in the folder above, which leaves results/results.json.
"""

import ctypes
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from grading_samples import FORGER, GRADING, LOST, RIGHT, STARTER, WRONG

from amptutorial_course.assignments import ASSIGNMENTS
from amptutorial_course.grading import gradescope, isolation
from amptutorial_course.grading.__main__ import main
from amptutorial_course.grading.record import Record
from amptutorial_course.grading.rules import LIMITS, SEED_VARIABLE, Rules, load_rules

TASK = ASSIGNMENTS[1]
needs_bwrap = pytest.mark.skipif(bool(isolation.bwrap_problem()), reason="bubblewrap makes the folder /autograder")


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
    root.chmod(0o755)
    return root


# What the container there has: the system, Python, and places where everybody writes.
PYTHON = sys.base_prefix, sys.prefix
CONTAINER = (
    *"bwrap --die-with-parent --cap-add ALL --dev /dev".split(),
    *(word for path in ("/usr", "/lib", "/lib64", "/bin", "/etc") for word in ("--ro-bind-try", path, path)),
    *(word for path in ("/tmp", "/var/tmp") for word in ("--perms", "1777", "--tmpfs", path)),
    *(
        word
        for path in PYTHON
        for parent in [*Path(path).parents][-2::-1]
        for word in ("--perms", "755", "--dir", str(parent))
    ),
    *(word for path in PYTHON for word in ("--ro-bind", path, path)),
)
# What is inside: bubblewrap works there; it does not, as with Docker's usual profile; nor has the kernel Landlock.
OPEN, SHUT = ("--dev-bind", "/proc", "/proc"), ("--unshare-pid", "--proc", "/proc")
INSIDE = {"bwrap": (OPEN, False), "user": (SHUT, False), "user without Landlock": (SHUT, True)}
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="a user can be changed by root alone")
inside = [pytest.param(kind, marks=() if kind == "bwrap" else root_only) for kind in INSIDE]


def without_landlock():
    """Let the kernel say, to this process and what it starts, that it has no Landlock: a filter with ENOSYS for 444."""
    lines = [(0x20, 0, 0, 0), (0x15, 0, 1, 444), (0x06, 0, 0, 0x00050026), (0x06, 0, 0, 0x7FFF0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in lines))
    libc = ctypes.CDLL(None)
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, struct.pack("@HP", len(lines), ctypes.addressof(code)), 0, 0) == 0


def harness(root, files, kind="bwrap"):
    for folder in ("submission", "results"):
        shutil.rmtree(root / folder, ignore_errors=True)
    (root / "results").mkdir()
    for name, text in files.items():
        (root / "submission" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "submission" / name).write_text(text)
    options, closed = INSIDE[kind]
    done = subprocess.run(
        [*CONTAINER, *options, "--bind", str(root), "/autograder", "--chdir", "/autograder",
         "bash", "/autograder/run_autograder"],
        env={"PATH": os.environ["PATH"], "PYTHON": sys.executable}, capture_output=True, text=True,
        preexec_fn=without_landlock if closed else None,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads((root / "results/results.json").read_text())


@needs_bwrap
@pytest.mark.parametrize("kind", inside)
def test_a_forger_has_what_was_earned_and_leaves_nothing(autograder, kind):
    (autograder / "submission_metadata.json").write_text('{"users": ["ada"]}')
    found = harness(autograder, {"denoiser.py": FORGER}, kind)
    assert found["score"] == 0 and found["extra_data"]["isolation"] == kind.split()[0]
    messages = "\n".join(test["output"] for test in found["tests"])
    # a container has places of its own under these names
    own = ["write into /tmp", "write into /dev/shm"] if kind == "bwrap" else []
    assert f"I can {own}, as {'root' if kind == 'bwrap' and os.geteuid() == 0 else 'another'}" in messages
    assert str(load_rules(GRADING, 1, "hush").seed) not in json.dumps(found)
    left = "source submission results run_autograder submission_metadata.json autograder.zip".split()
    assert {path.name for path in autograder.iterdir()} == {*left}


@root_only
@needs_bwrap
@pytest.mark.slow
def test_where_bubblewrap_does_not_work_another_user_runs_what_is_right(autograder):
    for kind in ("user", "user without Landlock"):
        right = harness(autograder, {"denoiser.py": RIGHT}, kind)
        assert right["score"] == 100 and right["extra_data"] == {"isolation": "user"}


def test_where_nothing_isolates_nothing_is_graded_and_everybody_is_told(autograder, monkeypatch):
    """Unless the settings name `none`; and until the end the results say that there is none."""
    seen, results = [], autograder / "results/results.json"
    (autograder / "submission").mkdir(exist_ok=True)
    (autograder / "submission/denoiser.py").write_text(RIGHT)
    for kind in ("bwrap", "user", "landlock"):
        monkeypatch.setattr(isolation, f"{kind}_problem", lambda: seen.append(results.read_text()) or "not here")
    gradescope.main(autograder)
    found = json.loads(results.read_text())
    assert found["score"] == 0 and "Nothing was graded, which is not the submission's fault" in found["output"]
    assert json.loads(seen[0])["output"].startswith("The grader was stopped before it had finished")
    monkeypatch.setattr(gradescope.judge, "grade_submission", lambda submission, rules, isolate: Record(isolate))
    rules = json.loads((autograder / "source/rules.json").read_text())
    monkeypatch.setattr(gradescope, "Rules", lambda **values: Rules(**rules | {"isolate": "none"}))
    gradescope.main(autograder)
    assert json.loads(results.read_text())["output"] == "none"


def test_the_limits_of_the_archive_are_below_those_of_gradescope(autograder):
    """768 MB for judge and submission together, and ten minutes on half a processor."""
    limits = json.loads((autograder / "source/rules.json").read_text())["limits"]
    judge_and_python = 320  # megabytes: the most that both took for a right file of any assignment
    assert limits["megabytes"] + judge_and_python <= 768
    assert limits["seconds_on_the_wall"] <= 400 and 2 * limits["seconds"] <= 400
    assert {name: limits[name] for name in LIMITS} | gradescope.LIMITS == limits


@pytest.mark.slow
@needs_bwrap
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
    assert both["score"] == 100 and both["output"] == "graded; old/denoiser.py was left aside"
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
    subprocess.run(["bash", "-n", autograder / "run_autograder"], check=True)
