"""What a failed check asks its author: on the right trail, and with what it takes to see the failure again."""

import re

import numpy as np
import pytest
from grading_samples import RIGHT, SOLUTIONS
from sample_class import mistakes

from amptutorial import Denoiser, check_denoiser
from amptutorial.checks import CHECKS, run_checks
from amptutorial.checks.oracle import answer
from amptutorial.checks.trials import trial_of
from amptutorial_course.assignments import ASSIGNMENTS, load_submission, maker

FACTOR = ": it has that factor too much"
EARLY = "has an iteration ended too early?"


def told(report, name):
    (result,) = (each for each in report.results if each.name == name)
    assert not result.passed
    return result.message


def mistake(number, name):
    """Return the text of a mistake of the bank, by how its name begins."""
    (text,) = (text for each, text in mistakes(number).items() if each.startswith(name))
    return text


@pytest.fixture
def submitted(tmp_path):
    """Return what makes a module of the text of a submission."""

    def load(text):
        (tmp_path / "denoiser.py").write_text(text, encoding="utf-8")
        return load_submission(tmp_path / "denoiser.py")

    return load


def asked(number, module, name, seed=None):
    """Return what one check of an assignment says of a submission, which it fails."""
    task = ASSIGNMENTS[number]
    checks = [check for check in task._checks() if check.name == name]
    return told(run_checks("", task.trials(maker(module), seed=seed), checks), name)


class Shrinks(Denoiser):
    """Ridge in which the rate enters by a power of its own."""

    precision = "argmin"

    def __init__(self, power=1.0, times=0.0):
        self.power, self.times = power, times

    def estimate(self, P, r, F):
        shifted = F + np.eye(len(F)) / (r**self.power)[:, None, None]
        return np.linalg.solve(shifted, P[:, :, None])[:, :, 0] * (r**self.times)[:, None]

    def penalty(self, X, r):
        return float((X**2 / r[:, None]).sum() / 2)


class Steps(Shrinks):
    """Gradient steps from p, of which there are few."""

    def __init__(self, steps):
        self.steps = steps

    def estimate(self, P, r, F):
        X, size = P, 1 / (np.linalg.norm(F, 2) + 1 / r)[:, None]
        for _ in range(self.steps):
            X = X + size * (P - X @ F - X / r[:, None])
        return X


@pytest.mark.parametrize(
    ("denoiser", "asks", "asks_not"),
    [
        (Shrinks(times=0.5), f"times sqrt(r){FACTOR}", "iterates"),
        (Shrinks(times=-1), f"times 1 / r{FACTOR}", "iterates"),
        (Shrinks(power=2), "It is as if r stood where sqrt(r) should", "iterates"),
        (Shrinks(power=0.5), "It is as if sqrt(r) stood where r should", "iterates"),
        (Shrinks(power=-1), "It is as if r stood where 1 / r should", "iterates"),
        (Steps(30), "If it iterates, has it arrived?", "as if"),
    ],
)
def test_a_rate_is_suspected_where_a_power_of_it_explains_the_answer(denoiser, asks, asks_not):
    message = told(run_checks("", [trial_of(denoiser)], [CHECKS["frequency_scaling"]]), "frequency_scaling")
    assert asks in message and asks_not not in message


@pytest.mark.parametrize(("steps", "is_near"), [(130, True), (2, False)])
def test_an_iteration_is_suspected_near_the_minimiser_alone_and_the_distance_is_told(steps, is_near):
    """Of one's own penalty; its minimiser is known here."""
    message = told(check_denoiser(Steps(steps)), "optimality")
    assert (EARLY in message) == is_near
    if is_near:
        (distance,) = map(float, re.findall(r"It is (\S+) of its length away", message))
        (row,) = map(int, re.findall(r"row (\d+)", message))
        problem = trial_of(Steps(steps)).problem
        one, right = Steps(steps).estimate(*problem.copies())[row], Shrinks().estimate(*problem.copies())[row]
        ill = "eigenvalue" in message
        assert ill or distance == pytest.approx(np.linalg.norm(one - right) / np.linalg.norm(right), rel=0.1)


SOFT = """
def estimate(self, P, r, F):
    soft = np.sign(P) * np.maximum(np.abs(P) - self.l1 / np.sqrt(r)[:, None], 0)
    return np.linalg.solve(F + self.l2 * np.eye(len(F)) / r[:, None, None], soft[:, :, None])[:, :, 0]
ElasticNet.estimate = estimate
"""


def test_who_has_no_iteration_is_not_asked_for_one(submitted):
    text = (SOLUTIONS / "02_elastic_net/denoiser.py").read_text(encoding="utf-8")
    message = asked(2, submitted(text + SOFT), "optimality")
    assert EARLY not in message and "p F^-1, but of a p that is cut or shortened before" in message


@pytest.mark.parametrize(("start", "is_random"), [("np.random.randn()", True), ("getattr(self, 'asked', 0.0)", False)])
def test_chance_and_memory_are_told_apart(start, is_random, submitted):
    attack = f"\nclass RidgeByHand(RidgeByHand):\n    def estimate(self, P, r, F):\n        start = {start}\n"
    attack += "        self.asked = start + 1.0\n        return super().estimate(P, r, F) + 1e-3 * start\n"
    message = asked(1, submitted(RIGHT + attack), "deterministic")
    assert ("is anything random?" in message) == is_random
    assert ("what is kept between calls?" in message) != is_random


@pytest.mark.parametrize(("number", "k"), [(2, 15), (3, 1), (4, 10), (4, 11)])
def test_what_a_wrong_estimate_is_compared_with_is_right(number, k, submitted):
    """Of forty rows that are all wrong too: the reference solution answers the same where an answer is known."""
    task, right = ASSIGNMENTS[number], SOLUTIONS / ASSIGNMENTS[number].folder / "denoiser.py"
    modules = load_submission(right), submitted(list(mistakes(number).values())[k])
    trials = [task.trials(maker(module), seed=11)[1] for module in modules]
    X, wrong = (trial.estimate() for trial in trials)
    known = answer(trials[1], trials[1].problem, wrong)
    assert not np.allclose(wrong, X, rtol=1e-2) and len(known.places) > 25
    np.testing.assert_allclose(known.right, X[known.places], rtol=1e-5, atol=1e-9)


HINTS = [
    (1, "the sign of p", "optimality", "what -p in place of p gives"),
    (1, "a formula for one dimension", "optimality", "what the diagonal of F in place of F gives"),
    (1, "the factor 1/2 is forgotten", "optimality", "what twice strength gives"),
    (1, "the penalty acts on x instead of u", "penalty", "the sum of g(x), and not of g(u)"),
    (1, "the penalty lacks its factor 1/2", "penalty", "twice the sum"),
    (1, "the Jacobian is that of the estimate without", "jacobian", "the inverse of F"),
    (2, "half of the threshold", "optimality", "what half of l1 gives"),
    (2, "the Jacobian is that of the lasso", "jacobian", "the inverse of F on the entries"),
    (2, "the Jacobian takes the support that estimate left", "jacobian", "right after a call of estimate"),
    (2, "the Jacobian takes the support that the thresholded", "jacobian", "that of the entries where"),
    (3, "the Jacobian is that of ridge", "jacobian", "that of rows in which no"),
    (3, "the constraint is forgotten", "optimality", "the minimiser without threshold or constraint"),
    (3, "p is clipped, and the ridge solved", "optimality", "p F^-1, but of a p that is cut"),
    (3, "the support of the ridge solution", "optimality", "on the support of the unconstrained"),
    (3, "ridge, clipped at zero", "optimality", "the minimiser without a constraint, which is cut afterwards"),
    (3, "negative entries are removed until", "optimality", "right where F is"),
    (4, "the Jacobian is averaged over the rows", "jacobian", "a mean over the rows that are not"),
    (4, "p is shortened first", "optimality", "p F^-1, but of a p that is cut or short"),
    (4, "rows that are not zero are not shrunk", "optimality", "zero in the right places"),
    (4, "the answer is left in the coordinates", "optimality", "right in length, not in direct"),
    (4, "the length is that for an F that is a", "optimality", "right where F is a mult"),
    (4, "the search for the lengths ends when", "optimality", "right where each row is"),
    (4, "rows that should be zero are only nearly", "jacobian", "that of estimates of which none is exactly"),
    (5, "the Jacobian is the posterior covariance of u", "jacobian", "that of u, and not of x"),
    (5, "the Jacobian holds the posterior variances", "jacobian", "without the entries off"),
    (6, "the term -x F x / 2 is forgotten", "tweedie", "what no F at all gives"),
    (6, "the posterior second moment instead", "jacobian", "a second moment"),
    (7, "the most likely phase instead", "row_independence", "of one length, but for sqrt(r)"),
    (7, "the covariance of the unit vector", "jacobian", "a multiple of that of u"),
    (7, "the phases 0 and 2 pi are both", "row_independence", ""),
    (7, "the iteration for mu is stopped", "optimality", "right where F is a multiple of the identity"),
    (7, "the penalty is zero everywhere", "penalty", ""),
]


@pytest.mark.parametrize(("number", "name", "check", "hint"), HINTS)
def test_what_explains_a_wrong_answer_is_said_and_nothing_else(number, name, check, hint, submitted):
    message = asked(number, submitted(mistake(number, name)), check, seed=11)
    _, start, said = message.partition("For the rows of this setting it is ")
    assert said.startswith(hint) and bool(start) == bool(hint)


@pytest.mark.parametrize(
    ("number", "value", "says"),
    [
        (4, 0.418, ". It is that after one iteration"),
        (8, 0.2, ". It is the error of A B^T"),
        (4, 0.5, ""),
        (2, 0.35, ""),
    ],
)
def test_a_prediction_of_something_else_is_named_and_a_chance_is_not(number, value, says):
    task = ASSIGNMENTS[number]
    make = maker(load_submission(SOLUTIONS / task.folder / "denoiser.py"))
    message = task.check_prediction(make, value).message
    assert message.partition(" (to 0.0")[2][2:] == says


def test_a_number_of_single_precision_is_suspected(submitted):
    einsum = 'np.einsum("ik,ikl->il", P'
    module = submitted(RIGHT.replace(einsum, f'{einsum}.astype("f4").astype(float)'))
    assert "single precision?" in asked(1, module, "optimality")


@pytest.mark.parametrize("number", [1, 4, 6])
def test_what_failed_can_be_copied_and_fails_again(number, submitted, capsys):
    """The lines print what the message says that the denoiser gives, with the parameters in all their digits."""
    task = ASSIGNMENTS[number]
    text = (SOLUTIONS / task.folder / "denoiser.py").read_text(encoding="utf-8")
    for name in task.class_names:
        text += f"\nright_{name} = {name}.estimate\n"
        text += f"{name}.estimate = lambda self, P, r, F: right_{name}(self, P, r, F) * (1 + 1e-3 * (len(F) > 1))\n"
    module = submitted(text)
    message = asked(number, module, "right_answers")
    (given,) = re.findall(r"estimate gives (\[.*?\])", message)
    code = message.partition("To ask it again:\n")[2]
    assert len(code.splitlines()) == 4
    exec(code, {"np": np, **vars(module)})
    shown = np.fromstring(capsys.readouterr().out.strip(" []\n"), sep=" ")
    np.testing.assert_allclose(shown, np.fromstring(given.strip("[]"), sep=" "), rtol=1e-3)
