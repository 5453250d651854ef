"""What explains a wrong answer: the question, or the formula, that gives it."""

from dataclasses import replace
from itertools import product

import numpy as np

from amptutorial.checks.oracle import answer

RIGHT = "right"
# what may have been put in the place of p, r and F
OTHERS = {
    "-p in place of p": lambda P, r, F: (-P, r, F),
    "the diagonal of F in place of F": lambda P, r, F: (P, r, np.diag(np.diag(F))),
    "the identity in place of F": lambda P, r, F: (P, r, np.eye(len(F))),
    "2 F in place of F": lambda P, r, F: (P, r, 2 * F),
    "F / 2 in place of F": lambda P, r, F: (P, r, F / 2),
    "no F at all": lambda P, r, F: (P, r, 1e-12 * F),
}
FACTORS = {"half of": 0.5, "twice": 2}


def _questions(trial):
    """Yield other questions in words, and as a trial and its problem."""
    problem, belief = trial.problem, trial.belief
    for text, change in OTHERS.items():
        yield text, trial, replace(problem, **dict(zip("PrF", change(*problem.copies()), strict=True)))
    for (name, value), (text, k) in product(vars(belief).items(), FACTORS.items()):
        if isinstance(value, float):
            yield f"{text} {name}", replace(trial, stated=replace(belief, **{name: k * value})), problem


def about_estimates(trial):
    """Return the question to which the estimates would be the answer."""
    X = trial.fresh.estimate()
    for text, other, problem in _questions(trial.fresh):
        right, allowed, *_, places = answer(other, problem, X)
        far, size = (np.linalg.norm(rows, axis=1) for rows in (X[places] - right, right))
        if X.any() and (far <= np.minimum(allowed, 1e-3 * size) + 1e-6 * size).all():
            return f"right with {text}"
    return ""


def about_jacobians(trial):
    """Return the formula that gives the Jacobian, in the slopes of the estimates that are right."""
    (P, r, F), X = trial.problem.copies(), trial.fresh.estimate()
    known = answer(trial.fresh, trial.problem, X)
    X, r, S = X[known.places], r[known.places], known.slopes
    # far from zero
    long = replace(trial.problem, P=np.full_like(P, 1e6) @ F)
    full, on = answer(trial.fresh, long, trial.fresh.estimate(long)).slopes, X != 0
    formulas = {
        RIGHT: S.mean(axis=0),
        "a mean over the rows that are not zero": S[X.any(axis=1)].mean(axis=0),
        "the inverse of F": np.linalg.inv(F),
        "that of u, and not of x": (S / r[:, None, None]).mean(axis=0),
        "a second moment: the mean is not subtracted": S.mean(axis=0) + X.T @ X / len(X),
        "without the entries off its diagonal": np.diag(np.diag(S.mean(axis=0))),
        "multiplied by F": S.mean(axis=0) @ F,
        "that of rows in which no entry is zero": full.mean(axis=0),
        "a part of the inverse of a matrix, and not the inverse of its part": np.where(
            on[:, :, None] & on[:, None, :], full, 0
        ).mean(axis=0),
    }
    J = trial.fresh.denoiser.mean_jacobian(P, trial.problem.r.copy(), F)
    return next((text for text, other in formulas.items() if np.allclose(J, other, rtol=1e-3, atol=0)), "")


def about_penalties(trial):
    """Return of what the penalty would be the value."""
    X, r = trial.fresh.estimate(), trial.problem.r.copy()
    of_u, of_x = (trial.belief.value(rows).sum() for rows in (X / np.sqrt(r)[:, None], X))
    value = trial.fresh.denoiser.penalty(X, r)
    sums = {
        RIGHT: of_u,
        "twice the sum": 2 * of_u,
        "half of the sum": of_u / 2,
        "the sum of g(x), and not of g(u)": of_x,
    }
    return next((text for text, other in sums.items() if np.isclose(value, other, rtol=1e-6, atol=0)), "")


HINTS = {
    "optimality": about_estimates,
    "tweedie": about_estimates,
    "jacobian": about_jacobians,
    "penalty": about_penalties,
}


def with_hint(check, trial, error):
    """Return the message of a failed check, with what explains it."""
    try:
        hint = HINTS[check.name](trial)
    # whatever a student's code raises
    except Exception:  # noqa: BLE001
        hint = ""
    if hint in ("", RIGHT):
        return str(error)
    return f"{error}{'' if str(error).endswith('?') else '.'} For the rows of this setting it is {hint}."
