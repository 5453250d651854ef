"""The assignments against their solutions and against a bank of mistakes: the kit must tell one from the other.

A mistake is a change of the reference solution, kept with it in ``solutions/NN_name/wrong.yml``. The run of the tests
ends with how many were told apart.
"""

import ast
import re
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
import yaml

from amptutorial.checks import CHECKS
from amptutorial.checks.report import run_checks
from amptutorial.denoisers import Ridge
from amptutorial_course.assignments import (
    ASSIGNMENTS,
    assignment,
    check_assignment,
    load_submission,
    maker,
    run_experiment,
)

ROOT = Path(__file__).parents[1]
SOLUTIONS = ROOT / "solutions"
HIDDEN_SEED = 11

needs_solutions = pytest.mark.skipif(not SOLUTIONS.is_dir(), reason="the reference solutions are kept elsewhere")
every_assignment = pytest.mark.parametrize("task", ASSIGNMENTS.values(), ids=lambda task: task.folder)


def bank(task):
    path = SOLUTIONS / task.folder / "wrong.yml"
    return yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else []


def right_files(task):
    return [path.name for path in sorted((SOLUTIONS / task.folder).glob("*.py"))]


def points(task, report):
    """Return the points of a report."""
    passed = {result.name for result in report.results if result.passed}
    return sum(task.points[name] for name in passed) if passed.intersection(task.essential) else 0


def report_on(task, path, seed=HIDDEN_SEED):
    return check_assignment(task.number, path, seed=seed)


def result_of(task, path, name):
    """Return what one check says of a submission."""
    module = load_submission(path)
    if name == "prediction":
        return task.check_prediction(maker(module), module.PREDICTION)
    (check,) = (each for each in task._checks() if each.name == name)
    (result,) = run_checks(task.title, task.trials(maker(module), seed=HIDDEN_SEED), [check]).results
    return result


@needs_solutions
@pytest.mark.parametrize(
    ("task", "name", "seed"),
    [
        pytest.param(task, name, seed, marks=() if (name, seed) == ("denoiser.py", HIDDEN_SEED) else pytest.mark.slow)
        for task in ASSIGNMENTS.values()
        for name in right_files(task)
        for seed in ([None, HIDDEN_SEED] if name == "denoiser.py" else [HIDDEN_SEED])
    ],
    ids=lambda value: "public" if value is None else getattr(value, "folder", str(value)),
)
def test_right_solutions_of_every_style_get_all_points(task, name, seed, record_property):
    report = report_on(task, SOLUTIONS / task.folder / name, seed)
    record_property("bank", (task.folder, f"right: {name}", "all", report.passed))
    assert report.passed, str(report)
    assert points(task, report) == pytest.approx(100)


@needs_solutions
@pytest.mark.parametrize(
    ("task", "wrong"),
    [(task, wrong) for task in ASSIGNMENTS.values() for wrong in bank(task)],
    ids=lambda value: value["mistake"] if isinstance(value, dict) else value.folder,
)
def test_each_mistake_fails_the_check_that_names_it(task, wrong, tmp_path, record_property):
    source = (SOLUTIONS / task.folder / "denoiser.py").read_text(encoding="utf-8")
    for old, new in wrong["changes"]:
        assert source.count(old) == 1, f"found {source.count(old)} times: {old}"
        source = source.replace(old, new)
    path = tmp_path / "denoiser.py"
    path.write_text(source, encoding="utf-8")
    result = result_of(task, path, wrong["check"])
    record_property("bank", (task.folder, wrong["mistake"], wrong["check"], not result.passed))
    assert not result.passed and task.points[wrong["check"]] > 0


@needs_solutions
def test_the_bank_is_large_and_every_check_has_its_mistake():
    mistakes = {task.number: bank(task) for task in ASSIGNMENTS.values()}
    assert sum(map(len, mistakes.values())) >= 60
    assert all(len(each) >= 6 for each in mistakes.values())
    assert sum(len(right_files(task)) for task in ASSIGNMENTS.values()) >= 32  # the references and others
    for task in ASSIGNMENTS.values():
        assert {wrong["check"] for wrong in mistakes[task.number]} <= set(task.check_names())


@every_assignment
def test_a_starter_handed_in_unchanged_fails_every_check(task):
    report = report_on(task, ROOT / "assignments" / task.folder / "denoiser.py")
    assert [result.name for result in report.results] == task.check_names()
    assert not any(result.passed for result in report.results)


@every_assignment
def test_the_starter_has_every_class_that_is_graded_and_no_answer(task):
    tree = ast.parse((ROOT / "assignments" / task.folder / "denoiser.py").read_text(encoding="utf-8"))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    assert {setting.class_name for setting in task.public()} == set(classes)
    for node in classes.values():
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and method.name != "__init__":
                assert isinstance(method.body[-1], ast.Raise), f"{node.name}.{method.name}"
                assert ast.get_docstring(method)


@every_assignment
def test_the_points_in_the_brief_are_those_of_the_assignment(task):
    task.require_points()
    weights = task.points
    notebook = nbformat.read(ROOT / "assignments" / task.folder / "brief.ipynb", as_version=4)
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    rows = re.findall(r"^\|[^|]*\|([^|]*`[^|]*)\|\s*([\d.]+)\s*\|$", prose, re.MULTILINE)
    named = [re.findall(r"`(\w+)`", checks) for checks, _ in rows]
    assert sorted(sum(named, [])) == sorted(weights)
    assert [sum(weights[name] for name in names) for names in named] == [float(total) for _, total in rows]


@pytest.mark.slow
@needs_solutions
@every_assignment
def test_the_experiment_comes_out_as_state_evolution_predicts(task):
    module = load_submission(SOLUTIONS / task.folder / "denoiser.py")
    experiment = task.experiment
    denoiser = maker(module)(experiment.class_name, **experiment.params)
    measured = [experiment.measure(denoiser, seed) for seed in (20, 21, 22)]
    assert abs(experiment._predict(denoiser) - sum(measured) / 3) < 1.5 * experiment.tolerance


def test_the_first_iteration_of_an_experiment_is_predicted_from_its_noisy_start():
    """After ten iterations the start is forgotten: only the first shows whether its overlaps are right."""
    experiment = replace(ASSIGNMENTS[1].experiment, n_iter=1, start_noise=2.0)
    measured = [experiment.measure(Ridge(3.0), seed) for seed in (20, 21, 22)]
    assert abs(experiment._predict(Ridge(3.0)) - sum(measured) / 3) < 1.5 * experiment.tolerance


def test_every_module_is_an_assignment_by_its_number():
    names = {path.stem for path in (ROOT / "amptutorial_course/assignments").glob("[!_]*.py")}
    assert names == {task.name for task in ASSIGNMENTS.values()}
    assert all(number == task.number for number, task in ASSIGNMENTS.items())


@every_assignment
def test_an_assignment_is_five_files_and_further_right_solutions(task):
    folder, solutions = ROOT / "assignments" / task.folder, SOLUTIONS / task.folder
    assert {path.name for path in folder.iterdir() if path.name[0] not in "._"} == {"brief.ipynb", "denoiser.py"}
    assert (ROOT / "amptutorial_course/assignments" / f"{task.name}.py").is_file()
    if solutions.is_dir():
        others = {path.name for path in solutions.glob("right_*.py")}
        assert {path.name for path in solutions.iterdir() if path.name[0] not in "._"} == others | {
            "denoiser.py",
            "wrong.yml",
        }


def check_prediction(task, path):
    module = load_submission(path)
    return task.check_prediction(maker(module), module.PREDICTION)


def test_nothing_is_run_before_a_prediction_has_been_written_down():
    starter = ROOT / "assignments" / "01_ridge" / "denoiser.py"
    assert run_experiment(1, starter).startswith("Nothing was run")
    assert "PREDICTION is None" in check_prediction(assignment(1), starter).message


def test_no_public_call_predicts_for_the_student():
    public = [name for name in dir(ASSIGNMENTS[2].experiment) if not name.startswith("_")]
    assert "measure" in public and not [name for name in public if "predict" in name]


@needs_solutions
def test_a_wrong_prediction_is_told_so(tmp_path):
    text = (SOLUTIONS / "01_ridge" / "denoiser.py").read_text()
    path = tmp_path / "denoiser.py"
    for value in ("0.9", "float('nan')", "'small'", "-0.1"):
        path.write_text(re.sub(r"^PREDICTION = .*$", f"PREDICTION = {value}", text, flags=re.MULTILINE))
        assert not check_prediction(assignment(1), path).passed
    assert "your prediction" in run_experiment(1, SOLUTIONS / "01_ridge" / "denoiser.py", n_instances=1)


def test_a_file_with_a_mistake_in_its_syntax_fails_the_checks_with_the_line(tmp_path):
    (tmp_path / "denoiser.py").write_text("class RidgeByHand(\n")
    with pytest.raises(SyntaxError):
        check_assignment(1, tmp_path / "denoiser.py")


def test_a_missing_class_is_named(tmp_path):
    (tmp_path / "denoiser.py").write_text("PREDICTION = 0.5\n")
    report = check_assignment(1, tmp_path / "denoiser.py")
    assert not any(result.passed for result in report.results)
    assert "has no class RidgeByHand" in str(report)


@pytest.mark.parametrize(
    "source",
    [
        "from amptutorial import Ridge\n\nclass RidgeByHand(Ridge):\n    pass\n",
        "from amptutorial import Denoiser, Ridge\n\nclass RidgeByHand(Denoiser):\n"
        "    def __init__(self, strength):\n        self.estimate = Ridge(strength).estimate\n"
        "    def estimate(self, P, r, F):\n        return P\n",
    ],
    ids=["inherits", "imports"],
)
def test_a_denoiser_of_the_package_is_not_ones_own_work(source, tmp_path):
    (tmp_path / "denoiser.py").write_text(source)
    report = check_assignment(1, tmp_path / "denoiser.py")
    assert not any(result.passed for result in report.results if result.name != "prediction")
    assert "Ridge: derive RidgeByHand from Denoiser alone" in str(report)


def test_a_file_may_have_dataclasses_with_postponed_annotations_and_a_byte_order_mark(tmp_path):
    lines = [
        "from __future__ import annotations",
        "from dataclasses import dataclass",
        "from amptutorial import Denoiser",
        "@dataclass(frozen=True)",
        "class RidgeByHand(Denoiser):",
        "    strength: float",
        "    def estimate(self, P, r, F):",
        "        return self.strength * P",
    ]
    path = tmp_path / "denoiser.py"
    path.write_text("\n".join(lines), encoding="utf-8-sig")
    denoiser = maker(load_submission(path))("RidgeByHand", strength=2.0)
    assert denoiser.estimate(3.0, None, None) == 6.0


@needs_solutions
@pytest.mark.parametrize("seed", [12, 34, 1058])
def test_amp_that_collapses_fails_no_right_group_lasso(seed):
    """A penalty so strong that few rows are left: their noise is not normal."""
    module = load_submission(SOLUTIONS / "04_group_lasso" / "denoiser.py")
    trials = assignment(4).trials(maker(module), seed=seed)
    notes = [CHECKS["state_evolution"].measure(trial) for trial in trials]
    assert all("measured" in note for note in notes)


def test_an_unknown_assignment_is_refused():
    with pytest.raises(ValueError, match="there is no assignment 99: the numbers are 1, 2"):
        assignment(99)
