"""The table of promises, and those of right answers in a few settings.

Docstrings are what is promised. What every denoiser promises has a file of its own
(`amptutorial.checks.behaviour`). Here estimates, Jacobians and penalties are compared
with the answer of the belief (`amptutorial.checks.oracle`), or, where nobody has stated
one, with the denoiser's own (`amptutorial.checks.own`).
"""

import numpy as np

from .._validation import check_integer
from ..denoisers import Denoiser
from . import behaviour, own
from .beliefs import Belief
from .oracle import answer, own_slopes, require_slopes
from .prediction import state_evolution
from .problems import ILL
from .report import Check, CheckReport, run_checks
from .right_answers import right_answers
from .trials import JACOBIANS, is_own, name_of, own_methods, trial_of
from .verdict import require, require_penalty, require_rows


def _usual(trial):
    """Return the trial's problem, and what random problems are not: nearly singular.

    Where the penalty alone makes the minimum, an F that is not positive definite is one
    of them. A convexity that is round-off beside F makes none.
    """
    problem, few, r = trial.problem, trial.problem.rows(slice(12)), trial.problem.r
    problems = {"": problem, f"{ILL}: ": few.hard()[ILL]}
    if trial.states("value"):
        stated = trial.belief.convexity
        c = trial.denoiser.convexity(r.copy()) if stated is None else stated / r.max()
        if abs(c) >= 1e-9 * np.linalg.norm(problem.F):
            text = f"F with the eigenvalue {-c / 2:.2g}, convexity {c:.2g}: "
            problems[text] = few.indefinite(c)
    return problems


def optimality(trial):
    """The estimate minimises x F x^T / 2 - p x^T + g(x / sqrt(r))."""
    _require_right(trial, own.advice)


def tweedie(trial):
    """The estimate is the gradient by p of the log partition function of the prior.

    This is Tweedie's formula for the posterior mean.
    """
    _require_right(trial)


def _require_right(trial, advice=""):
    """Raise unless estimates are those of the belief, or minimise its penalty."""
    for where, problem in _usual(trial).items():
        X = trial.estimate(problem)
        if trial.states("log_partition") or trial.states("prox"):
            known, name = answer(trial, problem, X), f"{where}estimate"
            require_rows(name, X, problem, *known[:3], advice)
        else:
            own.require_minima(trial.belief, problem, X, where)


def jacobian(trial):
    """mean_jacobian[k, l] is the mean of d estimate_l / d P_k.

    Central differences of the estimate find the same. If it is inherited, it is made of
    them.
    """
    for where, problem in _usual(trial).items():
        known = own_slopes(trial.denoiser, problem)
        for name in JACOBIANS:
            require_slopes(name, trial.denoiser, problem, known, where)
    is_inherited = not own_methods(trial.denoiser, JACOBIANS.values())
    return "mean_jacobian is inherited" if is_inherited else None


def penalty(trial):
    """penalty(X, r) is the sum over the rows of g(x_i / sqrt(r_i)).

    It is the same g that estimate() minimises.
    """
    text = "penalty is inherited: that of the base class is 0, as if there were none"
    require(is_own(trial.denoiser, "penalty"), text)
    require_penalty(trial.belief, trial.denoiser, trial.estimate(), trial.problem)


def _has_own_prior(trial):
    return trial.belief.precision == "posterior" and not trial.states("log_partition")


ROWS, OWN = "05_denoisers.html#denoisers-rows", "05_denoisers.html#denoisers-own"
TWEEDIE = "05_denoisers.html#thm-denoisers-tweedie"
_TABLE = (
    Check(behaviour.shapes, ROWS),
    Check(behaviour.no_mutation, OWN),
    Check(behaviour.deterministic, OWN),
    Check(behaviour.row_independence, ROWS),
    Check(behaviour.hard_inputs, OWN),
    Check(behaviour.frequency_scaling, "05_denoisers.html#denoisers-frequency"),
    Check(behaviour.speed, OWN),
    Check(optimality, ROWS, lambda trial: trial.states("value")),
    Check(penalty, OWN, lambda trial: trial.states("value")),
    Check(tweedie, TWEEDIE, lambda trial: trial.states("log_partition")),
    Check(jacobian, "05_denoisers.html#def-denoisers-jacobian"),
    Check(own.one_prior, "05_denoisers.html#denoisers-jacobian", _has_own_prior),
    Check(right_answers, ROWS, lambda trial: trial.seed is not None),
    Check(state_evolution, "09_state_evolution.html#thm-se-noise"),
)
CHECKS = {check.name: check for check in _TABLE}


def check_denoiser(
    denoiser: Denoiser,
    *,
    belief: Belief | None = None,
    d: int = 3,
    n_rows: int = 40,
    rng: np.random.Generator | None = None,
) -> CheckReport:
    """Try every check that applies on random rows.

    Parameters
    ----------
    denoiser : Denoiser
    belief : amptutorial.checks.beliefs.Penalty or Prior, optional
        What the denoiser should believe. Without it a minimiser is checked against its
        own `penalty`, and a posterior mean only for what all of them have in common.
    d, n_rows : int
        Size of the rows tried; pass the d of a denoiser that works for one dimension
        only.
    rng : numpy.random.Generator, optional
        For the rows tried; the same rows on every call if left out.

    Returns
    -------
    CheckReport
        ``.passed``, ``.failures``, and a text to print.

    Raises
    ------
    TypeError
        If `denoiser` is not a `Denoiser`: derive the class from it.

    Examples
    --------
    >>> import numpy as np
    >>> from amptutorial.denoisers import Ridge
    >>> class Forgetful(Ridge):
    ...     def denoise(self, P, r, F):
    ...         return self.estimate(P, r, F), np.eye(P.shape[1])
    ...     def estimate(self, P, r, F):
    ...         return Ridge.denoise(self, P, r, F)[0]
    >>> [result.name for result in check_denoiser(Forgetful(1.0)).failures]
    ['jacobian', 'right_answers', 'state_evolution']
    """
    d = check_integer(d, "d", minimum=1)
    n_rows = check_integer(n_rows, "n_rows", minimum=2)
    trial = trial_of(denoiser, belief=belief, d=d, n_rows=n_rows, rng=rng)
    return run_checks(name_of(denoiser), [trial], CHECKS.values())
