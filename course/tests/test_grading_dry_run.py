"""At the desk as in the grader: a dry run, helper modules, and notebooks, in the sandbox."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import nbformat
import numpy as np
import pytest
import yaml
from grading_samples import GRADING, LOST, RIGHT, STARTER, WRONG, grade
from nbformat.v4 import new_code_cell, new_notebook

from amptutorial.denoisers import Ridge
from amptutorial_course.assignments import ASSIGNMENTS, check_assignment, load_submission, maker
from amptutorial_course.grading import isolation
from amptutorial_course.grading.__main__ import main
from amptutorial_course.grading.rules import LIMITS
from amptutorial_course.grading.session import Session, remote_class


def dry_run(path, capsys):
    code = main(["--dry-run", str(path), "--assignment", "1"])
    return code, capsys.readouterr().out


def test_a_dry_run_of_a_notebook_reports_what_the_desk_reports_of_its_class(tmp_path, capsys):
    cells = [*RIGHT.split("\n\n\n"), "from amptutorial_course.assignments import check_assignment\ncheck_assignment(1)"]
    nbformat.write(new_notebook(cells=[new_code_cell(cell) for cell in cells]), tmp_path / "mine.ipynb")
    code, text = dry_run(tmp_path / "mine.ipynb", capsys)
    assert code == 0 and text.splitlines()[0] == "Assignment 1, ridge by hand: 16 of 16 checks passed"
    (tmp_path / "denoiser.py").write_text(STARTER, encoding="utf-8")
    names = [result.name for result in check_assignment(1, tmp_path / "denoiser.py").results]
    assert sorted(line.split()[1].rstrip(":") for line in text.splitlines()[1:-1]) == sorted(names)
    assert text.splitlines()[-1].startswith("100 of 100 points on the public settings, isolated: ")


def test_students_find_the_command_where_they_read_how_to_work(capsys, monkeypatch):
    root = Path(__file__).parents[2]
    page = (root / "book/assignments.md").read_text(encoding="utf-8")
    work = page[page.index("(assignments-work)=") : page.index("(assignments-checks)=")]
    command = re.search(r"python -m amptutorial_course\.grading (.*)", work.replace("\\\n", " "))[1]
    assert yaml.safe_load(GRADING.read_text())["limits"] == LIMITS  # those of a dry run
    monkeypatch.chdir(root)
    assert main(shlex.split(command)) == 1  # the starter, as it lies there
    assert capsys.readouterr().out.startswith("Assignment 1, ridge by hand: 0 of 16 checks passed")
    for task in ASSIGNMENTS.values():  # and in every brief, with its number
        text = (root / f"course/assignments/{task.folder}/brief.ipynb").read_text(encoding="utf-8")
        assert f"`python -m amptutorial_course.grading --dry-run denoiser.py --assignment {task.number}`" in text


def test_what_is_not_written_is_said_once(tmp_path, capsys):
    path = tmp_path / "denoiser.py"
    path.write_text(STARTER, encoding="utf-8")
    code, text = dry_run(path, capsys)
    assert code == 1 and text.count("not written yet: write the estimate") == 1
    path.write_text("class Other:\n    pass\n")
    code, text = dry_run(path, capsys)
    assert code == 1 and text.count("denoiser.py has no class RidgeByHand") == 1 and "16 checks wait" in text


def test_a_dry_run_refuses_what_the_grader_refuses(tmp_path, capsys):
    path = tmp_path / "denoiser.py"
    path.write_text("from amptutorial_course.assignments import check_assignment\n" + RIGHT)
    if not isolation.bwrap_problem():
        assert "No module named 'amptutorial_course'" in dry_run(path, capsys)[1]
    assert main(["--dry-run", str(tmp_path / "none.py"), "--assignment", "1"]) == 1
    assert "copy the starter there" in capsys.readouterr().err


def test_a_module_beside_the_denoiser_is_found_and_replaces_no_library(rules):
    """What the module computes is what the session answers; test_grading_session.py has the judge that hands it on."""
    start, rest = RIGHT.split("class RidgeByHand")
    source = f"import parts.helper\nimport scipy.special\n{start}class RidgeByHand{rest}"
    source = source.replace("np.linalg.inv", "parts.helper.inverse")
    helpers = {"parts/helper.py": b"import numpy\ninverse = numpy.linalg.inv\n", "scipy.py": b"raise SystemExit\n"}
    P, r, F = np.ones((3, 2)), np.ones(3), np.eye(2)
    with Session(source.encode(), rules.limits, helpers=helpers) as session:
        by_hand = remote_class(session, "RidgeByHand")(session, {"strength": 2.0})
        np.testing.assert_allclose(by_hand.estimate(P, r, F), Ridge(2.0).estimate(P, r, F))
    assert "No module named 'parts'" in grade(source, rules).status


@pytest.mark.parametrize("written", ["0,2163", "'0.2163'", "[0.2163]"])
def test_a_prediction_that_is_no_number_is_told_how_to_write_it(rules, written, tmp_path):
    a_pair = r"PREDICTION is 0, 2163, a pair of numbers: write 0\.2163, with a point"
    told = a_pair if "," in written else "PREDICTION must be a number, got"
    source = re.sub(r"^PREDICTION = .*$", f"PREDICTION = {written}", RIGHT, flags=re.MULTILINE)
    (tmp_path / "denoiser.py").write_text(source)
    module = load_submission(tmp_path / "denoiser.py")
    at_the_desk = ASSIGNMENTS[1].check_prediction(maker(module), module.PREDICTION).message
    with Session(source.encode(), rules.limits) as session:
        session.start()
        graded = ASSIGNMENTS[1].check_prediction(maker(module), session.prediction).message
    assert re.search(told, at_the_desk) and re.search(told, graded)


def test_a_check_is_shown_as_soon_as_it_is_done_with_its_seconds(tmp_path, capsys):
    (tmp_path / "denoiser.py").write_text(WRONG)
    assert main(["--dry-run", str(tmp_path / "denoiser.py"), "--assignment", "1"]) == 1
    lines = [line.split() for line in capsys.readouterr().err.splitlines()]
    assert sorted(line[3] for line in lines) == sorted(set(ASSIGNMENTS[1].check_names()))
    assert {line[3] for line in lines if line[2] == "FAIL"} == set(LOST)
    assert all(float(line[0]) >= 0 and line[1] == "s" for line in lines)


def test_help_and_mistakes_in_options_need_no_judge():
    script = "import sys; from amptutorial_course.grading.__main__ import main\ntry:\n    main(['--help'])\n"
    script += "except SystemExit:\n    print(*sys.modules)"
    said = subprocess.check_output([sys.executable, "-c", script], text=True)
    assert "--dry-run" in said and not {"numpy", "yaml", "jinja2", "amptutorial"} & {*said.splitlines()[-1].split()}
