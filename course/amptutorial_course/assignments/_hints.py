"""What explains a wrong answer: the question, or the formula, that gives it.

Each explanation is tried on the rows of the setting, and said only if it gives what the denoiser gives.
"""

from contextlib import suppress
from dataclasses import replace
from itertools import product

import numpy as np

from amptutorial.checks import Problem
from amptutorial.checks.oracle import answer

RIGHT = "right"
# what may have been put in the place of p, r and F
OTHERS = {
    RIGHT: lambda P, r, F: (P, r, F),
    "what -p in place of p gives": lambda P, r, F: (-P, r, F),
    "what the diagonal of F in place of F gives": lambda P, r, F: (P, r, np.diag(np.diag(F))),
    "what the identity in place of F gives": lambda P, r, F: (P, r, np.eye(len(F))),
    "what 2 F in place of F gives": lambda P, r, F: (P, r, 2 * F),
    "what no F at all gives": lambda P, r, F: (P, r, 1e-12 * F),
}
FACTORS = {"half of": 0.5, "twice": 2}


def _questions(trial):
    """Yield other questions in words, and as a trial and its problem."""
    problem, belief = trial.problem, trial.belief
    for text, change in OTHERS.items():
        yield text, trial, Problem(*change(*problem.copies()))
    for (name, value), (text, k) in product(vars(belief).items(), FACTORS.items()):
        if isinstance(value, float):
            yield f"what {text} {name} gives", replace(trial, stated=replace(belief, **{name: k * value})), problem


def _is_answer(X, trial, problem):
    """Say whether estimates are the right ones."""
    right, allowed, places, *_ = answer(trial, problem, X)
    far, size = (np.linalg.norm(rows, axis=1) for rows in (X[places] - right, right))
    return X.any() and (far <= np.minimum(allowed, 1e-3 * size) + 1e-6 * size).all()


def _same(found, other, rtol=1e-3):
    return found.any() and np.allclose(found, other, rtol, atol=0)


def _on(entries, matrices):
    """Return those parts of matrices that belong to these entries of each row, and zeros."""
    return matrices * (entries[:, :, None] & entries[:, None, :])


def _parts(belief, problem):
    """Return the sum of F and the curvature of the penalty for each row, and what else the penalty leaves of p."""
    (P, r, F), c = problem.copies(), belief.convexity or 0
    root = np.sqrt(r)[:, None]
    return F + c / r[:, None, None] * np.eye(len(F)), root * belief.prox(P / root, 1 / root**2) * (1 + c / root**2)


def about_estimates(trial):
    """Yield what estimates may be, and whether they are."""
    problem, X = trial.problem, trial.estimate()
    for text, *other in _questions(trial):
        yield text, _is_answer(X, *other)
    known = answer(trial, problem, X)
    some, X, right = problem.rows(known.places), X[known.places], known.right
    if trial.states("prox"):
        (G, cut), P = _parts(trial.belief, some), some.P[:, None]
        free = (P @ np.linalg.inv(G))[:, 0]
        near = trial.belief.nearest(free, some.r)
        yield "the minimiser without threshold or constraint", _same(X, free)
        yield "the minimiser without a constraint, which is cut afterwards", _same(X, near)
        yield "zero in the right places, and otherwise not shrunk", _same(X, free * (right != 0))
        yield "p F^-1, but of a p that is cut or shortened before", _same(X, (cut[:, None] @ np.linalg.inv(G))[:, 0])
        yield "on the support of the unconstrained minimiser", _same(X, (P @ np.linalg.pinv(_on(near != 0, G)))[:, 0])
    lengths, right_lengths = (np.linalg.norm(rows, axis=1) for rows in (X, right))
    of_u = lengths / np.sqrt(some.r)
    yield (
        "of one length, but for sqrt(r): a mode, and not a mean",
        trial.states("log_partition") and _same(of_u, of_u[:1]),
    )
    yield "right in length, not in direction", _same(lengths, right_lengths, 1e-6) and not _same(X, right)
    alone = np.vstack([trial.estimate(problem.rows([i])) for i in range(len(problem.r))])
    yield "right where each row is asked alone", _is_answer(alone, trial, problem)
    even = replace(problem, F=np.trace(problem.F) / trial.d * np.eye(trial.d))
    text = "right where F is a multiple of the identity: a formula for that, or too few steps"
    yield text, trial.d > 1 and _is_answer(trial.estimate(even), trial, even)


def about_jacobians(trial):
    """Yield what Jacobians may be in terms of the slopes of the estimates that are right, and whether they are."""
    (P, r, F), asked = trial.problem.copies(), trial.make()
    J, X = trial.denoiser.mean_jacobian(P, r, F), trial.estimate()
    known = answer(trial, trial.problem, X)
    X, S, some = X[known.places], known.slopes, trial.problem.rows(known.places)
    slopes, of_u, on = S.mean(axis=0), (S / some.r[:, None, None]).mean(axis=0), X != 0
    yield RIGHT, _same(J, slopes)
    asked.estimate(P, r, F)
    yield "right after a call of estimate, by what that has left", _same(asked.mean_jacobian(P, r, F), slopes)
    yield "that of estimates of which none is exactly zero, as some should be", on.all() and not known.right.all()
    yield "a mean over the rows that are not zero", _same(J, S[X.any(axis=1)].mean(axis=0))
    yield "the inverse of F", _same(J, np.linalg.inv(F))
    yield "that of u, and not of x", _same(J, of_u)
    yield "a multiple of that of u, and not that of x", len(F) > 1 and _same(J, of_u * np.trace(J) / np.trace(of_u))
    yield "a second moment: the mean is not subtracted", _same(J, slopes + X.T @ X / len(X))
    yield "without the entries off its diagonal", _same(J, np.diag(np.diag(slopes)))
    yield "multiplied by F", _same(J, slopes @ F)
    if trial.states("prox"):
        G, cut = _parts(trial.belief, some)
        yield "that of rows in which no entry is zero", _same(J, np.linalg.inv(G).mean(axis=0))
        yield "the inverse of F on the entries that are not zero", _same(J, np.linalg.pinv(_on(on, F)).mean(axis=0))
        yield "a part of the inverse, and not the inverse of a part", _same(J, _on(on, np.linalg.inv(G)).mean(axis=0))
        yield "that of the entries where p is not cut off", _same(J, np.linalg.pinv(_on(cut != 0, G)).mean(axis=0))


def about_penalties(trial):
    """Yield of what the penalty may be the value, and whether it is."""
    X, r = trial.estimate(), trial.problem.r.copy()
    of_u, of_x = (trial.belief.value(rows).sum() for rows in (X / np.sqrt(r)[:, None], X))
    sums = {RIGHT: of_u, "the sum of g(x), and not of g(u)": of_x}
    sums |= {f"{text} the sum": k * of_u for text, k in FACTORS.items()}
    for text, other in sums.items():
        yield text, np.isclose(trial.denoiser.penalty(X, r), other, rtol=1e-6, atol=0)


HINTS = dict.fromkeys(("optimality", "tweedie", "row_independence"), about_estimates)
HINTS |= {"jacobian": about_jacobians, "penalty": about_penalties}


def with_hint(check, trial, error):
    """Return the message of a failed check, with what explains it."""
    hint = RIGHT
    with suppress(Exception):  # whatever a student's code raises
        hint = next((text for text, is_so in HINTS[check.name](trial) if is_so), RIGHT)
    if hint == RIGHT:
        return str(error)
    return f"{error}{'' if str(error).endswith('?') else '.'} For the rows of this setting it is {hint}."
