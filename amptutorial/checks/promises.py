"""The table of promises, and those that compare estimates and Jacobians.

A promise about estimates compares rows with what is expected of them: the answer of the
belief (`amptutorial.checks.oracle`), or what the denoiser itself answers when it is
asked in another way. Docstrings are what is promised.
"""

import numpy as np

from . import behaviour, own
from .check import Check
from .oracle import answer, own_slopes, states_minimum
from .prediction import state_evolution
from .problems import ILL
from .right_answers import require_penalty, require_slopes, right_answers
from .trials import is_own
from .verdict import noise, require, require_rows


def _usual(trial):
    """Return the trial's problem, and what random problems are not: nearly singular.

    Where the penalty alone makes the minimum, an F that is not positive definite is one
    of them. A convexity that is round-off beside F makes none.
    """
    problem, c = trial.problem, 0.0
    few = problem.rows(slice(12))
    problems = {"": problem, f"{ILL}: ": few.hard()[ILL]}
    if trial.has_penalty:
        stated, r = trial.belief.convexity, problem.r
        c = trial.denoiser.convexity(r.copy()) if stated is None else stated / r.max()
    if abs(c) >= 1e-9 * np.linalg.norm(problem.F):
        text = f"F with the eigenvalue {-c / 2:.2g}, convexity {c:.2g}: "
        problems[text] = few.indefinite(c)
    return problems


def optimality(trial):
    """The estimate minimises x F x^T / 2 - p x^T + g(x / sqrt(r))."""
    for where, problem in _usual(trial).items():
        if states_minimum(trial):
            _require_right(trial, where, problem, f". {own.FACTORS}")
        else:
            own.require_minima(trial, problem, where)


def tweedie(trial):
    """The estimate is the gradient by p of the log partition function of the prior.

    This is Tweedie's formula for the posterior mean.
    """
    for where, problem in _usual(trial).items():
        _require_right(trial, where, problem)


def _require_right(trial, where, problem, advice=""):
    """Raise unless estimates are those of the belief."""
    X = trial.estimate(problem)
    right, allowed, *_ = answer(trial, problem, X)
    require_rows(f"{where}estimate", X, problem, right, allowed, advice)


def jacobian(trial):
    """mean_jacobian[k, l] is the mean of d estimate_l / d P_k.

    Central differences of the estimate find the same. If it is inherited, it is made of
    them.
    """
    methods = {"mean_jacobian": "mean_jacobian", "denoise": "denoise(P, r, F)[1]"}
    is_inherited = trial.inherits("mean_jacobian")
    for where, problem in _usual(trial).items():
        known = own_slopes(trial.denoiser, problem)
        for method in list(methods)[: 1 if is_inherited else 2]:

            def ask(*arrays, method=method):
                return trial.ask(method, arrays)[-1]

            require_slopes(f"{where}{methods[method]}", ask, problem, *known)
    return "mean_jacobian is inherited" if is_inherited else None


def frequency_scaling(trial):
    """estimate(p, r, F) = sqrt(r) estimate(sqrt(r) p, 1, r F).

    The row is x = sqrt(r) u, and the belief is about u.
    """
    advice = (
        ", which is sqrt(r) estimate(sqrt(r) p, 1, r F). The belief is about "
        "u = x / sqrt(r): is r where sqrt(r) should be, or the other way round?"
    )
    by_frequency = np.argsort(trial.problem.r)
    # a wrong power of r shows far from r = 1
    for i in by_frequency[[0, len(by_frequency) // 2, -1]]:
        row = trial.problem.rows([i])
        right = np.sqrt(row.r) * trial.estimate(row.at_one())
        X = trial.estimate(row)
        require_rows("estimate(p, r, F)", X, row, right, noise(right), advice)


def penalty(trial):
    """penalty(X, r) is the sum over the rows of g(x_i / sqrt(r_i)).

    It is the same g that estimate() minimises.
    """
    require(
        is_own(trial.denoiser, "penalty"),
        "penalty is inherited, and that of the base class is 0, as if there were none",
    )
    require_penalty(trial.belief, trial.denoiser, trial.estimate(), trial.problem)


def _has_own_prior(trial):
    return trial.belief.precision == "posterior" and not trial.has_prior


ROWS, OWN = "05_denoisers.html#denoisers-rows", "05_denoisers.html#denoisers-own"
TWEEDIE = "05_denoisers.html#thm-denoisers-tweedie"
SLOPES = "05_denoisers.html#def-denoisers-jacobian"
_TABLE = (
    Check(behaviour.shapes, ROWS),
    Check(behaviour.no_mutation, OWN),
    Check(behaviour.deterministic, OWN),
    Check(behaviour.row_independence, ROWS),
    Check(behaviour.hard_inputs, OWN),
    Check(frequency_scaling, "05_denoisers.html#denoisers-frequency"),
    Check(behaviour.speed, OWN),
    Check(optimality, ROWS, lambda trial: trial.has_penalty),
    Check(penalty, OWN, lambda trial: trial.has_penalty),
    Check(tweedie, TWEEDIE, lambda trial: trial.has_prior),
    Check(jacobian, SLOPES),
    Check(own.one_prior, "05_denoisers.html#denoisers-jacobian", _has_own_prior),
    Check(right_answers, ROWS, lambda trial: trial.seed is not None),
    Check(state_evolution, "09_state_evolution.html#thm-se-noise"),
)
CHECKS = {check.name: check for check in _TABLE}
