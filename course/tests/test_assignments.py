"""The assignments against their solutions and against a bank of mistakes: the kit must tell one from the other.

A mistake is a change of the reference solution, kept with it in ``solutions/NN_name/wrong.yml``.
"""

import ast
import re
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import nbformat
import numpy as np
import pytest
import yaml
from sample_class import changed

from amptutorial.checks import CHECKS, CheckReport, CheckResult, Trial, draw_problem
from amptutorial.checks.problems import LONG, SHORT
from amptutorial.checks.report import run_checks
from amptutorial.denoisers import GaussianPosterior, Ridge
from amptutorial_course.assignments import (
    ASSIGNMENTS,
    check_assignment,
    load_submission,
    maker,
    require_check,
    reviews,
    run_experiment,
)
from amptutorial_course.grading.worker.by_hand import ready_made

ROOT = Path(__file__).parents[1]
SOLUTIONS = ROOT / "solutions"
HIDDEN_SEED = 11


def bank(task):
    path = SOLUTIONS / task.folder / "wrong.yml"
    return yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else []


def right_files(task):
    return [path.name for path in sorted((SOLUTIONS / task.folder).glob("*.py"))]


@pytest.fixture
def reference():
    """Return a function from an assignment to the file of its reference solution."""
    if not SOLUTIONS.is_dir():
        pytest.skip("the reference solutions are kept elsewhere")
    return lambda task: SOLUTIONS / task.folder / "denoiser.py"


@pytest.fixture
def right(reference):
    """Return the reference solution of the first assignment."""
    return reference(ASSIGNMENTS[1]).read_text(encoding="utf-8")


@pytest.fixture
def handed_in(tmp_path):
    """Return a function that writes what a student hands in, and returns the file."""

    def handed_in(text, encoding="utf-8"):
        (tmp_path / "denoiser.py").write_text(text, encoding=encoding)
        return tmp_path / "denoiser.py"

    return handed_in


def points(task, report):
    passed = {result.name for result in report.results if result.passed}
    return sum(task.points[name] for name in passed) if passed.intersection(task.essential) else 0


def result_of(task, path, name):
    """Return what one check says of a submission."""
    module = load_submission(path)
    if name == "prediction":
        return task.check_prediction(maker(module), module.PREDICTION)
    (check,) = (each for each in task._checks() if each.name == name)
    (result,) = run_checks(task.title, task.trials(maker(module), seed=HIDDEN_SEED), [check]).results
    return result


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
def test_right_solutions_of_every_style_get_all_points(task, name, seed):
    module = load_submission(SOLUTIONS / task.folder / name)
    report = task.check(maker(module), module.PREDICTION, seed=seed, n_problems=SHORT)
    assert report.passed, str(report)
    assert points(task, report) == pytest.approx(100)


@pytest.mark.slow
def test_the_reference_answers_all_problems_of_a_class(task, reference):
    module = load_submission(reference(task))
    trials = task.trials(maker(module), seed=HIDDEN_SEED + 1, n_problems=LONG)
    (result,) = run_checks(task.title, trials, [CHECKS["right_answers"]]).results
    asked = re.search(r"(\d+) problems", result.message)
    assert result.passed and int(asked[1]) > LONG


def slow_but_first(cases, key):
    """Return the cases of a test, of which all but the first of each key are slow."""
    first = {key(*case): case for case in reversed(cases)}
    return [pytest.param(*case, marks=() if first[key(*case)] is case else pytest.mark.slow) for case in cases]


BANK = [(task, wrong) for task in ASSIGNMENTS.values() for wrong in bank(task)]
by_name = {"ids": lambda value: value["mistake"] if isinstance(value, dict) else value.folder}


@pytest.mark.parametrize(
    ("task", "wrong"), slow_but_first(BANK, lambda task, wrong: (task.folder, wrong["check"])), **by_name
)
def test_each_mistake_fails_the_check_that_names_it(task, wrong, reference, handed_in):
    path = handed_in(changed(reference(task).read_text(encoding="utf-8"), wrong["changes"]))
    assert not result_of(task, path, wrong["check"]).passed and task.points[wrong["check"]] > 0


# what a line is in that makes one of these fail first
BESIDE = {*"jacobian penalty right_answers right_jacobian right_penalty no_mutation speed prediction".split()}
ESTIMATE = {"optimality", "tweedie"}
# Where a check beside the estimate is named, but the estimate itself is wrong, that of a new denoiser and of copies
# too. These leave 0, 57, 59, 0 and 74 points: the first and the last write over what they read next.
WRONG_ESTIMATES = {
    (2, "the sweeps start from P itself, and write into it"),
    (4, "the search for the lengths ends when the first row has its own"),
    (7, "p F^-1 is cut to the length of the ball, and the Jacobian of that is transposed"),
    (8, "the kinds are told apart by their means alone"),
    (8, "F is changed in place"),
}


@pytest.mark.parametrize(
    ("task", "wrong"), slow_but_first(BANK, lambda task, wrong: wrong["check"] in ESTIMATE), **by_name
)
def test_a_line_costs_at_most_twenty_points_and_half_of_a_formula_at_least_forty(task, wrong, reference, handed_in):
    path = handed_in(changed(reference(task).read_text(encoding="utf-8"), wrong["changes"]))
    earned = points(task, check_assignment(task.number, path, seed=HIDDEN_SEED))
    if wrong["check"] in BESIDE and (task.number, wrong["mistake"]) not in WRONG_ESTIMATES:
        assert earned >= 80
    if wrong["check"] in ESTIMATE and task.number != 7:  # which has two estimates
        assert earned <= 60


# What a method does in place of its own, or that it is not there, and the checks that this costs. A Jacobian that is
# inherited is right.
COSTS = [
    ("mean_jacobian", "return 1.0", "shapes jacobian right_jacobian"),
    ("mean_jacobian", "pass", "shapes jacobian right_jacobian"),
    ("mean_jacobian", "return F * np.nan", "shapes jacobian right_jacobian"),
    ("mean_jacobian", "raise KeyError('u')", "shapes jacobian right_jacobian"),
    ("mean_jacobian", "return len(P) * F", "jacobian right_jacobian"),
    ("denoise", "return estimate(self, P, r, F)", "shapes jacobian right_jacobian"),
    ("convexity", "return np.ones(3)", "shapes penalty right_penalty"),
    ("convexity", "return 7.0", "penalty right_penalty"),
    ("estimate", "return vars(self).setdefault(str(P.shape), estimate(self, P, r, F))", "right_answers"),
    ("estimate", "self.n = vars(self).get('n', 0) + 1; return estimate(self, P, r, F) * self.n",
     "deterministic right_answers"),
    ("estimate", "P *= 2; return estimate(self, P / 2, r, F)", "no_mutation"),
    ("mean_jacobian", None, ""),
    ("penalty", None, "penalty right_penalty"),
    ("convexity", None, "penalty right_penalty"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "body", "lost"), slow_but_first(COSTS, lambda method, body, lost: lost))
def test_a_mistake_costs_the_checks_that_judge_it(method, body, lost, right, handed_in):
    arguments = "self, r" if method == "convexity" else "self, P, r, F"
    change = f"del RidgeByHand.{method}\n"
    if body:
        change = f"def wrong({arguments}):\n    {body}\nRidgeByHand.{method} = wrong\n"
    path = handed_in(f"{right}\nestimate = RidgeByHand.estimate\n{change}")
    report = check_assignment(1, path)
    assert {result.name for result in report.failures} == {*lost.split()}
    assert {result.name for result in report.results} == set(ASSIGNMENTS[1].points)


def test_the_bank_is_large(reference):
    mistakes = [len(bank(task)) for task in ASSIGNMENTS.values()]
    assert sum(mistakes) >= 60 and min(mistakes) >= 6
    assert sum(len(right_files(task)) for task in ASSIGNMENTS.values()) >= 32  # the references and others


def test_a_check_counts_if_it_passes_and_one_of_the_gate_does():
    passed, failed = (CheckResult(str(verdict), verdict, "found") for verdict in (True, False))
    report = CheckReport("denoiser", (passed, failed))
    require_check(report, "True", gate=["True", "False"])
    with pytest.raises(AssertionError, match="counts as soon as one of these does: False"):
        require_check(report, "True", gate=["False"])
    # one that was not run waits for the one that failed
    for name in ("False", "another"):
        with pytest.raises(AssertionError, match="found"):
            require_check(report, name)


def test_a_starter_handed_in_unchanged_fails_every_check(task):
    report = check_assignment(task.number, ROOT / "assignments" / task.folder / "denoiser.py", seed=HIDDEN_SEED)
    assert [result.name for result in report.results] == task.check_names()
    assert not any(result.passed for result in report.results)
    starter = ROOT / "assignments" / task.folder / "denoiser.py"
    assert run_experiment(task.number, starter).startswith("Nothing was run")


def test_the_starter_has_every_class_that_is_graded_and_no_answer(task):
    tree = ast.parse((ROOT / "assignments" / task.folder / "denoiser.py").read_text(encoding="utf-8"))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    assert {setting.class_name for setting in task.public()} == set(classes)
    for node in classes.values():
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and method.name != "__init__":
                assert isinstance(method.body[-1], ast.Raise), f"{node.name}.{method.name}"
                assert ast.get_docstring(method)


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
def test_the_experiment_comes_out_as_state_evolution_predicts(task, reference):
    experiment = task.experiment
    denoiser = maker(load_submission(reference(task)))(experiment.class_name, **experiment.params)
    measured = [experiment.measure(denoiser, seed) for seed in (20, 21, 22)]
    assert abs(experiment._predict(denoiser) - sum(measured) / 3) < 1.5 * experiment.tolerance


def test_the_first_iteration_of_an_experiment_is_predicted_from_its_noisy_start():
    """After ten iterations the start is forgotten: only the first shows whether its overlaps are right."""
    experiment = replace(ASSIGNMENTS[1].experiment, n_iter=1, start_noise=2.0)
    measured = [experiment.measure(Ridge(3.0), seed) for seed in (20, 21, 22)]
    assert abs(experiment._predict(Ridge(3.0)) - sum(measured) / 3) < 1.5 * experiment.tolerance


def test_every_folder_of_assignments_is_one_of_them():
    folders = [path.name for path in sorted((ROOT / "assignments").glob("[0-9]*"))]
    assert [f"{number:02}_{task.name}" for number, task in ASSIGNMENTS.items()] == folders


def test_no_public_call_predicts_for_the_student():
    public = [name for name in dir(ASSIGNMENTS[2].experiment) if not name.startswith("_")]
    assert "measure" in public and not [name for name in public if "predict" in name]


def test_a_wrong_prediction_is_told_so(right, handed_in):
    for value in ("0.9", "float('nan')", "'small'", "-0.1"):
        path = handed_in(re.sub(r"^PREDICTION = .*$", f"PREDICTION = {value}", right, flags=re.MULTILINE))
        assert not result_of(ASSIGNMENTS[1], path, "prediction").passed
    assert "your prediction" in run_experiment(1, handed_in(right), n_instances=1)


BY_HAND = """from amptutorial import *
class RidgeByHand(Denoiser):
    def __init__(self, strength):
        {}
    def estimate(self, P, r, F):
        return {}
"""
NOT_ONES_OWN = {
    "inherits": "from amptutorial import Ridge\nclass RidgeByHand(Ridge):\n    pass\n",
    "keeps": BY_HAND.format("self.estimate = Ridge(strength).estimate", "P"),
    "names": BY_HAND.format("pass", "Ridge(1.0).estimate(P, r, F)"),
}


@pytest.mark.parametrize("source", ["PREDICTION = 0.5\n", *NOT_ONES_OWN.values()], ids=["missing", *NOT_ONES_OWN])
def test_a_denoiser_must_be_ones_own_work(source, handed_in):
    told = "Ridge: derive RidgeByHand from Denoiser alone" if "class" in source else "has no class RidgeByHand"
    report = check_assignment(1, handed_in(source))
    assert told in str(report) and not any(result.passed for result in report.results)


def test_a_star_import_brings_denoisers_that_a_file_may_leave_alone(right, handed_in):
    assert ready_made(load_submission(handed_in(f"from amptutorial import *\n{right}")).RidgeByHand) == []


def test_a_file_may_have_dataclasses_with_postponed_annotations_and_a_byte_order_mark(handed_in):
    start = "from __future__ import annotations\nfrom dataclasses import dataclass\nfrom amptutorial import Denoiser\n"
    body = "    strength: float\n    def estimate(self, P, r, F):\n        return self.strength * P\n"
    path = handed_in(f"{start}@dataclass(frozen=True)\nclass RidgeByHand(Denoiser):\n{body}", encoding="utf-8-sig")
    denoiser = maker(load_submission(path))("RidgeByHand", strength=2.0)
    assert denoiser.estimate(3.0, None, None) == 6.0


@pytest.mark.slow
def test_a_submission_keeps_its_assertions_where_python_leaves_them_out(tmp_path):
    (tmp_path / "denoiser.py").write_text("assert False, 'not finished'\n")
    script = "from amptutorial_course.assignments import load_submission; load_submission('denoiser.py')"
    done = subprocess.run([sys.executable, "-OO", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.stderr.endswith("AssertionError: not finished\n")


@pytest.mark.parametrize("seed", [12, 34, 1058])
def test_amp_that_collapses_fails_no_right_group_lasso(seed, reference):
    """A penalty so strong that few rows are left: their noise is not normal."""
    trials = ASSIGNMENTS[4].trials(maker(load_submission(reference(ASSIGNMENTS[4]))), seed=seed)
    notes = [CHECKS["state_evolution"].measure(trial) for trial in trials]
    assert all("measured" in note for note in notes)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 4))
def test_a_sharp_circle_whose_peak_was_chosen_is_noticed(seed, reference, handed_in):
    """At p = 0 two peaks are as high, and by round-off one of them is higher."""
    source = reference(ASSIGNMENTS[7]).read_text(encoding="utf-8")
    line = "        weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))\n"
    best = "log_weights == log_weights.max(axis=1, keepdims=True)"
    sharp = "        sharp = (length * np.linalg.norm(P, axis=1) + length**2 * np.ptp(w))[:, None] > 2e4\n"
    chosen = f"{line}{sharp}        weights = np.where(sharp, {best}, weights)\n"
    path = handed_in(changed(source, [(line, chosen)]))
    trials = ASSIGNMENTS[7].trials(maker(load_submission(path)), seed=seed, n_problems=LONG)
    with pytest.raises(AssertionError):
        CHECKS["right_answers"].measure([one for one in trials if one.denoiser.precision == "posterior"][0])


def test_every_chapter_has_two_exam_questions_with_solutions(reference):
    parts = re.split(r"^## ", (ROOT / "solutions/exam.md").read_text(), flags=re.MULTILINE)[1:]
    chapters = sorted((ROOT.parent / "book").glob("[0-9]*.ipynb"))
    for number, (part, path) in enumerate(zip(parts, chapters, strict=True), start=1):
        title = re.search(r"^# (.*)$", nbformat.read(path, as_version=4).cells[0].source, re.MULTILINE)[1]
        assert part.startswith(f"{number}. {title}\n")
        assert [f"**{number}{letter}.**" in part for letter in "abc"] == [True, True, False]
        assert part.count("*Solution.*") == 2


def test_the_answers_of_variants_are_what_their_code_computes(reference):
    """Each asserts its numbers; and each names an exercise of the book."""
    text, names = (ROOT / "solutions/variants.md").read_text(), {}
    book = "".join(path.read_text() for path in (ROOT.parent / "book").glob("[0-9]*.ipynb"))
    variants = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert len(variants) >= 12
    for variant in variants:
        assert f":label: {re.match(r'.*`(ex-[a-z-]+)`', variant)[1]}" in book
        (code,) = re.findall(r"```python\n(.*?)```", variant, re.DOTALL)
        assert "assert " in code and "*Solution.*" in variant
        exec(code, names)


START = GaussianPosterior(1.0, learn=True)


class Misjudged(GaussianPosterior):
    """Learns a Gaussian prior, and takes its covariance to be some times what it has learned."""

    def __init__(self, times, learned=START):
        super().__init__(times * np.asarray(learned.covariance))
        self.times, self.learned = times, learned

    def refit(self, P, r, F):
        return Misjudged(self.times, self.learned.refit(P, r, F))


@pytest.mark.parametrize(("times", "scale", "fails"), [(3, 0.3, 0), (4, 0.3, 1), (0.3, 3.0, 0), (0.1, 3.0, 1)])
def test_what_learns_rows_of_another_length_is_found(times, scale, fails):
    # short rows are estimated worse by a wide prior, long ones by a narrow prior: the errors of those that fail are 1.6
    # and 2.9 times, of those that pass 1.47 and 1.43 times that of the Gaussian
    problem = draw_problem(40, 3, rng=np.random.default_rng(0), rows=reviews.FewLongRows(5.0))
    trial = Trial(lambda: Misjudged(times), problem)
    with pytest.raises(AssertionError, match="raise the likelihood") if fails else nullcontext():
        reviews._require_learned_scale(trial, scale)
