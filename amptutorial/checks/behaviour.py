"""What every denoiser promises, whatever it believes.

Shapes, no writing, no memory, each row by itself, and all rows at once: the denoiser is
compared with what it answers itself when it is asked in another way. Docstrings are
what is promised.
"""

from dataclasses import replace
from functools import partial

import numpy as np

from .trials import JACOBIANS, ask, own_methods
from .verdict import require, require_number, require_rows, row_of, short

KEPT = " (a new denoiser is right: what is kept between calls?)."


def shapes(trial):
    """The estimate is an array (N, d), the mean Jacobian (d, d), the penalty a number.

    They are of double precision, and the arrays are finite.
    """
    _require_finite(trial, trial.problem)
    P, r, _ = trial.problem.copies()
    for method, arguments in {"penalty": (P, r), "convexity": (r,)}.items():
        try:
            value = getattr(trial.denoiser, method)(*arguments)
        except Exception:  # noqa: BLE001, S112
            continue  # not written yet: said by the checks that need it
        require_number(value, method)


def _answers(denoiser, problem, laid_out=np.copy):
    """Return the arrays that the denoiser itself computes, by their names."""
    answers = {}
    for method in own_methods(denoiser):
        answers |= ask(denoiser, method, map(laid_out, problem.copies()))
    return answers


def no_mutation(trial):
    """P, r and F are left as they were."""
    (P, r, F), one = trial.problem.copies(), trial.make()
    asked = dict.fromkeys(own_methods(one), {"P": P, "r": r, "F": F})
    asked |= {"penalty": {"X": P, "r": r}, "convexity": {"r": r}}
    for method, given in asked.items():
        for name in given:
            copies = {key: value.copy() for key, value in given.items()}
            copies[name].flags.writeable = False
            try:
                getattr(one, method)(*copies.values())
            except Exception as error:  # of another process it may have another class
                if "read-only" not in str(error):
                    raise
                text = f"{method} changes its argument {name}: {error}. Work on a copy"
                raise AssertionError(f"{text}: {name} = {name}.copy()") from error


def deterministic(trial):
    """The same input gives the same output, in any layout and after other questions."""
    problem, one = trial.problem, trial.make()
    others = problem.rows(slice(None, None, -1)).in_units(2.0)
    right, *again = (
        _answers(trial.make(), problem, laid_out)
        for laid_out in (np.copy, np.copy, np.asfortranarray, _with_gaps)
    )
    asked = [
        _answers(one, each) for each in (problem, problem, others, problem, others)
    ]
    texts = {
        "differs when two new denoisers are asked: is anything random?": 0,
        "is another array for arrays in the order of Fortran.": 1e-6,
        "is another array for arrays that are views with gaps.": 1e-6,
        f"is overwritten by the next call: return a new array each time{KEPT}": 0,
        f"is another array if it is asked for twice{KEPT}": 0,
        # what is kept of the same numbers in another order may differ by round-off
        f"is another array after other rows and another F{KEPT}": 1e-9,
    }
    found = *again, asked[0], asked[1], asked[3]
    for answers, (text, tolerance) in zip(found, texts.items(), strict=True):
        for name, answer in right.items():
            gap = np.abs(answers[name] - answer).max(initial=0.0)
            small = tolerance / 100 * (1 + np.abs(answer).max(initial=0.0))
            agree = np.allclose(answers[name], answer, tolerance, small)
            require(agree, f"{name} {text} It changes by up to {gap:.2g}")
    X, _ = ask(trial.denoiser, "denoise", problem.copies()).values()
    advice = " as by estimate: AMP calls denoise"
    require_rows("denoise(P, r, F)[0]", X, problem, trial.estimate(), advice=advice)


def _with_gaps(array):
    return np.repeat(array, 2, axis=-1)[..., ::2]


def row_independence(trial):
    """Each row of the estimate depends on its own row of P and on its own r only."""
    together, N = trial.estimate(), len(trial.problem.r)
    advice = f" as among all {N} rows: both should be equal"
    for rows in ([0], [N - 1], np.arange(N)[::-1]):
        some = trial.problem.rows(rows)
        name = f"estimate, rows {'alone' if len(rows) == 1 else 'reversed'},"
        require_rows(name, trial.estimate(some), some, together[rows], advice=advice)


def hard_inputs(trial):
    """Estimate and Jacobian stay finite for every legal input, however extreme.

    Tried are tiny and huge r, a nearly singular F, P = 0, and a row of P that is a
    million times as large as the others.
    """
    for text, problem in trial.problem.hard().items():
        _require_finite(trial, problem, f" for {text}")


def _require_finite(trial, problem, text=""):
    """Raise unless all answers are finite."""
    for name, found in _answers(trial.denoiser, problem).items():
        i = np.isfinite(found).all(axis=1).argmin()
        row = "" if name in JACOBIANS else f" in row {i}, {row_of(problem, i)}"
        told = f"{name} is not finite{text}{row}: got {short(found[i])}"
        require(np.isfinite(found).all(), told)


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
POWERS = {"sqrt(r)": 0.5, "r": 1, "r^2": 2, "1 / r": -1, "1 / sqrt(r)": -0.5}


def _about_rates(trial, row, X, right, size):
    """Return what to look for where the answer to a row does not scale with its r."""
    told = ", which is sqrt(r) estimate(sqrt(r) p, 1, r F): both should be equal"

    def agree(answer, other):
        return np.linalg.norm(answer - other) <= 1e-6 * np.linalg.norm(other)

    for text, k in POWERS.items():
        if agree(X / row.r[0] ** k, right):
            return f"{told}, times {text}: it has that factor too much"
        if agree(trial.estimate(replace(row, r=row.r**k)), right):
            where = "sqrt(r) stood where r" if k == 2 else f"r stood where {text}"
            return f"{told}. It is as if {where} should"
    return f"{told}. Is r used wherever it matters? If it iterates, has it arrived?"


def speed(trial):
    """All rows are computed at once.

    The number of executed lines of Python does not grow with the rows.
    """
    require(not trial.loop, trial.loop)
