"""What every denoiser promises, whatever it believes: shapes, no writing, no memory.

The docstring of each function is the promise.
"""

import numpy as np

from .trials import METHODS
from .verdict import (
    noise,
    require,
    require_array,
    require_number,
    require_rows,
    require_same,
)


def shapes(trial):
    """The estimate is an array (N, d), the mean Jacobian (d, d), the penalty a number.

    They are of double precision, and the arrays are finite.
    """
    for name, answer, shape in _answers(trial, trial.problem):
        require_array(answer, name, shape)
        require(np.isfinite(answer).all(), f"{name} holds NaN or infinite values")
    P, r, _ = trial.problem.copies()
    for method, arguments in {"penalty": (P, r), "convexity": (r,)}.items():
        try:
            value = getattr(trial.denoiser, method)(*arguments)
        except Exception:  # noqa: BLE001, S112
            continue  # not written yet: said by the checks that need it
        require_number(value, method)


def _answers(trial, problem):
    """Yield each array that the denoiser itself computes: a name, it, its shape."""
    sizes = problem.P.shape, problem.F.shape
    for method in trial.own(*METHODS):
        answers = trial.ask(method, problem.copies())
        if method == "denoise":
            names = (f"denoise(P, r, F)[{k}]" for k in (0, 1))
            yield from zip(names, answers, sizes, strict=True)
        else:
            yield method, answers[0], sizes[method == "mean_jacobian"]


def hard_inputs(trial):
    """Estimate and Jacobian stay finite for every legal input, however extreme.

    Tried are tiny and huge r, a nearly singular F, P = 0, and a row of P that is a
    million times as large as the others.
    """
    for text, problem in trial.problem.hard().items():
        for name, answer, _ in _answers(trial, problem):
            found = f"{name} is not finite for {text}: got {np.ravel(answer)[:4]}"
            require(np.isfinite(answer).all(), found)


def no_mutation(trial):
    """P, r and F are left as they were."""
    P, r, F = trial.problem.copies()
    questions = dict.fromkeys(trial.own(*METHODS), {"P": P, "r": r, "F": F})
    questions |= {"penalty": {"X": P, "r": r}, "convexity": {"r": r}}
    for method, arguments in questions.items():
        for name in arguments:
            copies = {key: value.copy() for key, value in arguments.items()}
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
    P, r, F = trial.problem.copies()
    advice = (
        ": no randomness, no state that is kept between calls, no cache that forgets "
        "what it was computed from"
    )
    for method in trial.own(*METHODS):
        answers = trial.ask(method, trial.problem.copies())
        first = [answer.copy() for answer in answers]
        again = trial.ask(method, trial.problem.copies())
        text = f"asked twice for the same input, {method} gives two answers{advice}"
        require(all(map(np.array_equal, again, first)), text)
        for text, arrays in _layouts(trial.problem).items():
            text = f"{method} gives another answer for arrays {text}"
            require_same(trial.ask(method, arrays), first, text)
        trial.ask(method, (P[::-1] / 2, r[::-1].copy(), 2 * F))
        text = f"what {method} has returned is overwritten by the next call of {method}"
        is_kept = all(map(np.array_equal, answers, first))
        require(is_kept, f"{text}: return a new array each time")
        # what is kept of the same numbers in another order may differ by round-off
        again = trial.ask(method, trial.problem.copies())
        text = f"after a call with other rows and another F, {method} gives another "
        require_same(again, first, f"{text}answer for the same input{advice}", 1e-9)
    pair = trial.ask("denoise", trial.problem.copies())[:1], [trial.estimate()]
    text = "denoise and estimate give different estimates for the same input: AMP calls"
    require_same(*pair, f"{text} denoise")


def _layouts(problem):
    """Return the arrays of `problem` in other orders, by what is other."""
    P, r, F = problem.copies()
    wide, long = np.zeros((len(P), 2 * P.shape[1])), np.zeros(2 * len(r))
    wide[:, ::2], long[::2] = P, r
    return {
        "in the order of Fortran": (P.copy("F"), r, F.copy("F")),
        "that are views with gaps": (wide[:, ::2], long[::2], F.T),
    }


def row_independence(trial):
    """Each row of the estimate depends on its own row of P and on its own r only."""
    problem, together = trial.problem, trial.estimate()
    N = len(problem.r)
    for text, rows in (
        ("alone", [0]),
        ("alone", [N - 1]),
        ("reversed", range(N)[::-1]),
    ):
        some, right = problem.rows(rows), together[rows]
        name, advice = f"estimate, rows {text},", f" as among all {N} rows"
        require_rows(name, trial.estimate(some), some, right, noise(right), advice)


def speed(trial):
    """All rows are computed at once.

    The number of executed lines of Python does not grow with the rows.
    """
    require(not trial.loop, trial.loop)
