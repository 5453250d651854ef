"""What a submission may do, and what it may not: thefts, and attacks on the grader."""

import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from grading_samples import (
    ALLOWED,
    CHEATS,
    HOSTILE,
    LIMITS,
    RIGHT,
    ROOT,
    THEFTS,
    THIEF,
    WRONG,
    grade,
    messages,
    passed,
)

from amptutorial_course.grading import remote


@pytest.fixture(scope="module")
def treasure(tmp_path_factory):
    """Return a folder as that of the solutions might be, with something in it that must not be read."""
    folder = tmp_path_factory.mktemp("solutions")
    (folder / "secret.py").write_text("WORD = 'SECRET'\n")
    (folder / "secret.py.copy").write_text("WORD = 'SECRET'\n")
    (folder / "secret.py.old").write_text("WORD = 'SECRET'\n")
    np.save(folder / "secret.npy", np.array("SECRET"))
    return folder


@pytest.fixture(scope="module")
def thief(treasure):
    source = THIEF.format(folder=str(treasure)) + f"\n\nTHEFTS = {list(THEFTS.values())!r}\n"
    with remote.Session(source.encode(), LIMITS) as session:
        yield remote.remote_class(session, "Thief")(session, {})


@pytest.mark.parametrize("name", THEFTS)
def test_a_submission_reaches_nothing_outside_its_folder(thief, name):
    number = list(THEFTS).index(name)
    try:
        answer = thief.estimate(np.full((1, 1), number), np.ones(1), np.eye(1))
    except remote.StudentError as error:
        assert type(error).__name__ in {"PermissionError", "ImportError", "ModuleNotFoundError"}, repr(error)
    else:
        assert answer == number, "the secret was found"
    assert thief._session.generation == 1


def test_the_same_thefts_succeed_where_nothing_is_confined(treasure, tmp_path):
    """The list above proves something only if its entries work elsewhere."""
    folder = shutil.copytree(treasure, tmp_path / "solutions")
    skipped = ("another shell", "patched helpers")  # Tcl may be missing; a patch would spoil what follows
    attempts = {name: text for name, text in THEFTS.items() if name not in skipped}
    script = f"""
import sys, json
sys.path.insert(0, {str(ROOT)!r})
exec(compile({THIEF.format(folder=str(folder))!r}, "thief", "exec"))
failed = {{}}
for name, text in {attempts!r}.items():
    try:
        if "SECRET" not in eval(text):
            failed[name] = "not found"
    except BaseException as error:
        failed[name] = repr(error)
    os.chdir({str(tmp_path)!r})
print(json.dumps(failed))
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {}


def test_what_an_honest_denoiser_may_do(monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "for nobody's eyes")
    with remote.Session(ALLOWED.encode(), LIMITS) as session:
        session.start()
        assert session.prediction == 0.25
        assert session.output() == "y" * 2000


OUTCOMES = {
    "a syntax error": "SyntaxError: .* line 1",
    "an exception at import": "RuntimeError: not finished",
    "an endless loop at import": "the import gave no answer within 2",
    "sys.exit at import": "SystemExit",
    "an endless loop in estimate": "estimate gave no answer within 2",
    "a print bomb in estimate": "estimate gave no answer within 2",
    "sys.exit in estimate": "SystemExit",
    "os._exit in estimate": r"estimate ended Python itself \(exit code 0\)",
    "a memory bomb in estimate": "MemoryError",
    "a huge answer in estimate": "MemoryError|too large",
    "a huge file in estimate": "File too large",
    "a deep recursion in estimate": "MemoryError|RecursionError|gave no answer|ended Python",
    "a subprocess in estimate": "PermissionError: not allowed while graded: subprocess",
    "an attack on the parent in estimate": "PermissionError: not allowed while graded: os.kill",
    "a look into the frames in estimate": "the objective is",
    "a patched NumPy in estimate": "",
    "tampered checks in estimate": "the objective is",
    "a theft of the solutions in estimate": "the objective is",
    "no denoiser": "no class RidgeByHand",
}


def test_every_hostile_submission_of_the_sample_is_tried():
    assert set(HOSTILE) == {*OUTCOMES, "a file of a megabyte"}


SOME = {"a syntax error", "sys.exit in estimate", "a patched NumPy in estimate", "a look into the frames in estimate"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in SOME else pytest.mark.slow) for name in OUTCOMES]
)
def test_a_hostile_submission_earns_nothing_and_is_told_why(name, rules, impatient):
    endless = "gave no answer" in OUTCOMES[name]
    found = grade(HOSTILE[name], impatient if endless else rules)
    assert found.total == 0
    assert not passed(found) & {"optimality", "limits"}
    assert re.search(OUTCOMES[name], f"{found.status}\n{messages(found)}"), messages(found)


@pytest.mark.slow
def test_a_patched_numpy_hides_no_mistake(rules):
    found = grade(RIGHT + CHEATS, rules)
    assert "no_mutation" not in passed(found)
    assert "estimate changes its argument: P" in messages(found)
    assert "jacobian" not in passed(grade(WRONG + CHEATS.split("right =")[0], rules))
