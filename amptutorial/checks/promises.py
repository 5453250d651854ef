"""The table of promises, and each of them but for a few that have a file of their own.

Docstrings are what is promised. First comes what every denoiser promises, whatever it
believes: shapes, no writing, no memory, each row by itself. Then estimates and
Jacobians are compared with what is expected of them: the answer of the belief
(`amptutorial.checks.oracle`), or what the denoiser itself answers when it is asked in
another way.
"""

from dataclasses import replace
from functools import partial

import numpy as np

from .._validation import check_integer, check_rng
from ..denoisers import Denoiser, check_is_denoiser
from . import own
from .answers import JACOBIANS, METHODS, ask, is_own, require_array, require_number
from .beliefs import Belief
from .compare import require_penalty, require_slopes
from .oracle import answer, own_slopes, states_minimum
from .prediction import state_evolution
from .problems import ILL
from .report import Check, CheckReport, run_checks
from .right_answers import right_answers
from .trials import trial_of
from .verdict import require, require_rows

STATE = ": no randomness, no state between calls, no cache whose key is too weak"


def _with_gaps(array):
    return np.repeat(array, 2, axis=-1)[..., ::2]


# how the same is asked again, and how exact the answer is: what is kept of the same
# numbers in another order may differ by round-off
LAYOUTS = {
    f"if it is asked for twice{STATE}": (np.copy, 0),
    f"after other rows and another F{STATE}": (np.copy, 1e-9),
    "for arrays in the order of Fortran": (np.asfortranarray, 1e-6),
    "for arrays that are views with gaps": (_with_gaps, 1e-6),
}


def shapes(trial):
    """The estimate is an array (N, d), the mean Jacobian (d, d), the penalty a number.

    They are of double precision, and the arrays are finite.
    """
    P, r, F = trial.problem.copies()
    for name, found in _answers(trial, trial.problem).items():
        require_array(found, name, (F if name in JACOBIANS else P).shape)
        require(np.isfinite(found).all(), f"{name} holds NaN or infinite values")
    for method, arguments in {"penalty": (P, r), "convexity": (r,)}.items():
        try:
            value = getattr(trial.denoiser, method)(*arguments)
        except Exception:  # noqa: BLE001, S112
            continue  # not written yet: said by the checks that need it
        require_number(value, method)


def _answers(trial, problem, laid_out=np.copy):
    """Return the arrays that the denoiser itself computes, by their names."""
    answers = {}
    for method in trial.own(*METHODS):
        answers |= ask(trial.denoiser, method, map(laid_out, problem.copies()))
    return answers


def hard_inputs(trial):
    """Estimate and Jacobian stay finite for every legal input, however extreme.

    Tried are tiny and huge r, a nearly singular F, P = 0, and a row of P that is a
    million times as large as the others.
    """
    for text, problem in trial.problem.hard().items():
        for name, found in _answers(trial, problem).items():
            told = f"{name} is not finite for {text}: got {np.ravel(found)[:4]}"
            require(np.isfinite(found).all(), told)


def no_mutation(trial):
    """P, r and F are left as they were."""
    P, r, F = trial.problem.copies()
    asked = dict.fromkeys(trial.own(*METHODS), {"P": P, "r": r, "F": F})
    asked |= {"penalty": {"X": P, "r": r}, "convexity": {"r": r}}
    for method, given in asked.items():
        for name in given:
            copies = {key: value.copy() for key, value in given.items()}
            copies[name].flags.writeable = False
            try:
                getattr(trial.denoiser, method)(*copies.values())
            except Exception as error:  # of another process it may have another class
                if "read-only" not in str(error):
                    raise
                text = f"{method} changes its argument {name}: {error}. Work on a copy"
                raise AssertionError(f"{text}: {name} = {name}.copy()") from error


def deterministic(trial):
    """The same input gives the same output, in any layout and after other questions."""
    problem, backwards = trial.problem, trial.problem.rows(slice(None, None, -1))
    answers = _answers(trial, problem)
    first = {name: answer.copy() for name, answer in answers.items()}
    for text, (laid_out, tolerance) in LAYOUTS.items():
        again = _answers(trial, problem, laid_out)
        _require_same(again, first, f"is another array {text}", tolerance)
        _answers(trial, backwards.in_units(2.0))
    text = "is overwritten by the next call: return a new array each time"
    _require_same(answers, first, text, 0)
    X, _ = ask(trial.denoiser, "denoise", problem.copies()).values()
    advice = " as by estimate: AMP calls denoise"
    require_rows("denoise(P, r, F)[0]", X, problem, trial.estimate(), advice=advice)


def _require_same(answers, others, text, tolerance):
    """Raise unless arrays agree with others, relative to the largest entries."""
    for name, other in others.items():
        scale = 1 + np.abs(other).max(initial=0.0)
        agree = np.allclose(answers[name], other, tolerance, tolerance / 100 * scale)
        require(agree, f"{name} {text}")


def row_independence(trial):
    """Each row of the estimate depends on its own row of P and on its own r only."""
    together, N = trial.estimate(), len(trial.problem.r)
    for rows in ([0], [N - 1], np.arange(N)[::-1]):
        some, advice = trial.problem.rows(rows), f" as among all {N} rows"
        name = f"estimate, rows {'alone' if len(rows) == 1 else 'reversed'},"
        require_rows(name, trial.estimate(some), some, together[rows], advice=advice)


def speed(trial):
    """All rows are computed at once.

    The number of executed lines of Python does not grow with the rows.
    """
    require(not trial.loop, trial.loop)


def _usual(trial):
    """Return the trial's problem, and what random problems are not: nearly singular.

    Where the penalty alone makes the minimum, an F that is not positive definite is one
    of them. A convexity that is round-off beside F makes none.
    """
    problem, few, r = trial.problem, trial.problem.rows(slice(12)), trial.problem.r
    problems = {"": problem, f"{ILL}: ": few.hard()[ILL]}
    if trial.has_penalty:
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
        if trial.has_prior or states_minimum(trial):
            known, name = answer(trial, problem, X), f"{where}estimate"
            require_rows(name, X, problem, *known[:2], advice, known.places)
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
            require_slopes(name, trial.denoiser, problem, *known, where)
    is_inherited = not trial.own("denoise", "mean_jacobian")
    return "mean_jacobian is inherited" if is_inherited else None


def frequency_scaling(trial):
    """estimate(p, r, F) = sqrt(r) estimate(sqrt(r) p, 1, r F).

    The row is x = sqrt(r) u, and the belief is about u.
    """
    by_frequency = np.argsort(trial.problem.r)
    # a wrong power of r shows far from r = 1
    for i in by_frequency[[0, len(by_frequency) // 2, -1]]:
        row = trial.problem.rows([i])
        X, right = trial.estimate(row), np.sqrt(row.r) * trial.estimate(row.at_one())
        advice = partial(_about_rates, trial, row, X, right)
        require_rows("estimate(p, r, F)", X, row, right, advice=advice)


# that may stand where another should
POWERS = {"sqrt(r)": 0.5, "r^2": 2, "1 / r": -1, "r^(3/2)": 1.5, "1 / sqrt(r)": -0.5}


def _about_rates(trial, row, X, right, size):
    """Return what to look for where the answer to a row does not scale with its r."""
    told = ", which is sqrt(r) estimate(sqrt(r) p, 1, r F)"

    def agree(answer, other):
        return np.linalg.norm(answer - other) <= 1e-6 * np.linalg.norm(other)

    one, other = (trial.make().estimate(*each.copies()) for each in (row, row.at_one()))
    if agree(one, np.sqrt(row.r) * other):
        return f"{told}. Of a new denoiser they agree: what is kept between calls?"
    ask = "is r where sqrt(r) should be, or the other way round?"
    for text, k in (POWERS | {"r": 1}).items():
        if agree(X / row.r[0] ** k, right):
            return f"{told}, times {text}: {ask}"
    for text, k in POWERS.items():
        if agree(trial.estimate(replace(row, r=row.r**k)), right):
            return f"{told}. With {text} in place of r they agree: {ask}"
    return (
        f"{told}. Both ask for the same: the belief is about u = x / sqrt(r). Is r "
        "used wherever it matters? If the method iterates, has it arrived?"
    )


def penalty(trial):
    """penalty(X, r) is the sum over the rows of g(x_i / sqrt(r_i)).

    It is the same g that estimate() minimises.
    """
    text = "penalty is inherited: that of the base class is 0, as if there were none"
    require(is_own(trial.denoiser, "penalty"), text)
    require_penalty(trial.belief, trial.denoiser, trial.estimate(), trial.problem)


def _has_own_prior(trial):
    return trial.belief.precision == "posterior" and not trial.has_prior


ROWS, OWN = "05_denoisers.html#denoisers-rows", "05_denoisers.html#denoisers-own"
TWEEDIE = "05_denoisers.html#thm-denoisers-tweedie"
_TABLE = (
    Check(shapes, ROWS),
    Check(no_mutation, OWN),
    Check(deterministic, OWN),
    Check(row_independence, ROWS),
    Check(hard_inputs, OWN),
    Check(frequency_scaling, "05_denoisers.html#denoisers-frequency"),
    Check(speed, OWN),
    Check(optimality, ROWS, lambda trial: trial.has_penalty),
    Check(penalty, OWN, lambda trial: trial.has_penalty),
    Check(tweedie, TWEEDIE, lambda trial: trial.has_prior),
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
    check_is_denoiser(denoiser, "denoiser")
    d = check_integer(d, "d", minimum=1)
    n_rows = check_integer(n_rows, "n_rows", minimum=2)
    rng = None if rng is None else check_rng(rng)
    trial = trial_of(denoiser, belief=belief, d=d, n_rows=n_rows, rng=rng)
    return run_checks(repr(denoiser), [trial], CHECKS.values())
