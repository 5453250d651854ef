"""Checks of what every denoiser promises, independently of its belief.

Each function ``promise_NAME`` tries one promise. It raises `AssertionError` with an
example that breaks the promise, or returns None or a measurement worth reading.
"""

import ast
import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from textwrap import dedent

import numpy as np

from .trials import Problem, Trial, trial_of
from .verdict import (
    require,
    require_array,
    require_close,
    require_number,
    require_pair,
    setting_of,
    short,
)

SITE = "https://amptutorial.github.io/amptutorial/book/"
ROW_METHODS = ("estimate", "mean_jacobian")


@dataclass(frozen=True)
class Check:
    """A promise with a name, and a function that tries it; `check` makes one."""

    name: str  # what is promised, in a word
    contract: str  # and in a sentence or two
    read: str  # where the book explains it
    applies: Callable[[Trial], bool]
    run: Callable[[Trial], str | None]
    last: bool = False
    method: str = ""

    def measure(self, trial):
        """Run the check; where warnings are errors, its verdict is the same."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.run(trial)

    def __call__(self, denoiser):
        """Run the check on a denoiser or a `Trial`.

        Raises
        ------
        AssertionError
            With what was found, what was promised, and what to read.
        """
        trial = denoiser if isinstance(denoiser, Trial) else trial_of(denoiser)
        try:
            self.measure(trial)
        except AssertionError as failure:
            text = f"{setting_of(failure, trial.title)}{failure}"
            raise AssertionError(
                f"{text}\nThe promise: {self.contract}\nRead: {self.read}"
            ) from None


def check(read, applies=lambda trial: True, *, last=False, method=""):
    """Make a `Check` of a function ``promise_NAME(trial)``.

    The docstring of the function is the contract.

    Parameters
    ----------
    read : str
        Page and anchor of the book.
    applies : callable (Trial) -> bool
    last : bool
        Whether it is run when all others have been.
    method : str
        The method that it tries, if the base class has that too: a report says where
        it is inherited.

    Examples
    --------
    >>> @check("05_denoisers.html#denoisers-own")
    ... def promise_name(trial):
    ...     '''The class has a name of more than one letter.'''
    ...     require(len(type(trial.denoiser).__name__) > 1, "its name is a letter")
    >>> promise_name.name, promise_name.contract
    ('name', 'The class has a name of more than one letter.')
    """

    def decorate(function):
        told = function.__name__.removeprefix("promise_"), _docstring(function)
        return Check(*told, SITE + read, applies, function, last, method)

    return decorate


def _docstring(function):
    """Return the docstring as one line; `python -OO` leaves it in the source alone."""
    text = inspect.getdoc(function)
    if text is None:
        tree = ast.walk(ast.parse(dedent(inspect.getsource(function))))
        text = ast.get_docstring(
            next(n for n in tree if isinstance(n, ast.FunctionDef))
        )
    return " ".join(text.split())


@check("05_denoisers.html#denoisers-rows")
def promise_shapes(trial):
    """The estimate is an array (N, d), the mean Jacobian (d, d), the penalty a number.

    They are of double precision, and the arrays are finite.
    """
    P, r, F = trial.problem.copies()
    parts = {"estimate": P.shape, "mean_jacobian": F.shape}
    for method in trial.own(*ROW_METHODS, "denoise"):
        answer = getattr(trial.denoiser, method)(*trial.problem.copies())
        answers = {method: answer}
        if method == "denoise":
            pair = enumerate(require_pair(answer))
            answers = {f"denoise(P, r, F)[{k}]": value for k, value in pair}
        shapes = parts.values() if method == "denoise" else [parts[method]]
        for (name, value), shape in zip(answers.items(), shapes, strict=True):
            require_array(value, name, shape)
            require(np.isfinite(value).all(), f"{name} holds NaN or infinite values")
    for method, arguments in {"penalty": (P, r), "convexity": (r,)}.items():
        try:
            value = getattr(trial.denoiser, method)(*arguments)
        except Exception:  # noqa: BLE001, S112
            continue  # not written yet: said by the checks that need it
        require_number(value, method)
    _ = trial.first  # for `promise_deterministic`, when all else has been asked


@check("05_denoisers.html#denoisers-own")
def promise_no_mutation(trial):
    """P, r and F are left as they were."""
    P, r, F = trial.problem.copies()
    rows = {"P": P, "r": r, "F": F}
    questions = dict.fromkeys(trial.own(*ROW_METHODS, "denoise"), rows)
    questions |= {"penalty": {"X": P, "r": r}, "convexity": {"r": r}}
    for method, arguments in questions.items():
        copies = {name: value.copy() for name, value in arguments.items()}
        getattr(trial.denoiser, method)(*copies.values())
        for name, value in arguments.items():
            _require_unchanged(method, name, value, copies[name])
    _require_no_writing(trial)


def _require_no_writing(trial):
    """Raise if arrays that are read-only are written into, if only for a moment."""
    for method in trial.own(*ROW_METHODS):
        arrays = trial.problem.copies()
        for array in arrays:
            array.flags.writeable = False
        try:
            getattr(trial.denoiser, method)(*arrays)
        except ValueError as error:
            if "read-only" not in str(error):
                raise
            text = f"{method} writes into its arguments: {error}. Work on copies"
            raise AssertionError(text) from error


def _require_unchanged(method, name, before, after):
    """Raise, with the first entry that differs, if `method` changed its argument."""
    i = np.unravel_index(np.argmax(after != before), before.shape)
    require(
        not (after != before).any(),
        f"{method} changes its argument: {name}{list(map(int, i))} was {before[i]:.4g} "
        f"before the call, which adds {after[i] - before[i]:.2g} to it. Work on a "
        f"copy: {name} = {name}.copy()",
    )


@check("05_denoisers.html#denoisers-own", last=True)
def promise_deterministic(trial):
    """The same input gives the same output, after any other questions."""
    advice = (
        "no randomness, no state that is kept between calls, no cache that forgets "
        "what it was computed from"
    )
    first, J_first = trial.first
    require(
        np.array_equal(first, trial.estimate()),
        "asked for the same input at first and after all other checks, estimate gives "
        f"two answers: {advice}",
    )
    if trial.own("denoise"):
        require_close(
            trial.denoise()[0],
            first,
            "denoise and estimate give different estimates for the same input: "
            "AMP calls denoise",
        )
    _require_answers_of_ones_own(trial)
    _require_any_layout(trial)
    # what is kept of the same numbers in another order may differ by round-off
    require_close(
        trial.estimate(),
        first,
        "after a call with other rows and another F, estimate gives another answer "
        f"for the same input: {advice}",
        rtol=1e-9,
    )
    require(
        not trial.own("mean_jacobian")
        or np.array_equal(J_first, trial.mean_jacobian()),
        f"two calls of mean_jacobian with the same input differ: {advice}",
    )


def _require_answers_of_ones_own(trial):
    """Raise if a second answer, for as many rows, overwrites the first."""
    P, r, F = trial.problem.copies()
    answers = {
        "estimate": trial.estimate,
        "mean_jacobian": trial.mean_jacobian,
        "denoise": lambda *problem: trial.denoise(*problem)[0],
    }
    for method in trial.own(*answers):
        answer = answers[method]
        first = answer()
        before = first.copy()
        answer(Problem(P[::-1] / 2, r[::-1], 2 * F))
        require(
            np.array_equal(first, before),
            f"what {method} has returned is overwritten by the next call of {method}: "
            "return a new array each time",
        )


def _require_any_layout(trial):
    """Raise unless arrays in another order, or with gaps, are understood."""
    methods = trial.own(*ROW_METHODS)  # the estimate, and often the Jacobian
    for method, expected in zip(methods, trial.first, strict=False):
        for text, arrays in _layouts(trial.problem):
            answer = np.asarray(getattr(trial.denoiser, method)(*arrays))
            text = f"{method} gives another answer for arrays {text}"
            require_close(answer, expected, text)


def _layouts(problem):
    """Return new arrays with the numbers of `problem`, in other orders."""
    P, r, F = problem.copies()
    wide, long = np.zeros((len(P), 2 * P.shape[1])), np.zeros(2 * len(r))
    wide[:, ::2], long[::2] = P, r
    return (
        ("in the order of Fortran", (P.copy("F"), r, F.copy("F"))),
        ("that are views with gaps", (wide[:, ::2], long[::2], F.T)),
    )


@check("05_denoisers.html#denoisers-rows")
def promise_row_independence(trial):
    """Each row of the estimate depends on its own row of P and on its own r only."""
    N = len(trial.problem.r)
    together = trial.estimate()
    for i in (0, N - 1):
        alone = trial.estimate(trial.problem.rows([i]))[0]
        require_close(
            alone,
            together[i],
            f"row {i} is estimated as {alone.round(4)} alone and as "
            f"{together[i].round(4)} among {N} rows",
        )
    order = np.arange(N)[::-1]
    permuted = trial.estimate(trial.problem.rows(order))
    require_close(
        permuted,
        together[order],
        "reversing the rows of P and r does not reverse the rows of the estimate",
    )


@check("05_denoisers.html#denoisers-own")
def promise_hard_inputs(trial):
    """Estimate and Jacobian stay finite for every legal input, however extreme.

    Tried are tiny and huge r, a nearly singular F, P = 0, zeros in P, large P and a
    single row.
    """
    for text, problem in trial.problem.hard().items():
        for name in trial.own(*ROW_METHODS):
            value = getattr(trial, name)(problem)
            require(
                np.isfinite(value).all(),
                f"{name} is not finite for {text}: got {value.ravel()[:4]}",
            )


@check("05_denoisers.html#denoisers-frequency")
def promise_frequency_scaling(trial):
    """estimate(p, r, F) = sqrt(r) estimate(sqrt(r) p, 1, r F).

    The row is x = sqrt(r) u, and the belief is about u.
    """
    by_frequency = np.argsort(trial.problem.r)
    # a wrong power of r shows far from r = 1
    for i in by_frequency[[0, len(by_frequency) // 2, -1]]:
        _require_frequency_scaling(trial, trial.problem.rows([i]))


def _require_frequency_scaling(trial, row):
    """Raise unless u = x / sqrt(r) of a single row is what it is at r = 1."""
    root = np.sqrt(row.r)
    direct, scaled = trial.estimate(row) / root, trial.estimate(row.at_one())
    require_close(
        direct,
        scaled,
        f"at r = {row.r[0]:.3g}, p = {short(row.P[0])}: estimate(p, r, F) = "
        f"{short((root * direct)[0])}, but sqrt(r) estimate(sqrt(r) p, 1, r F) = "
        f"{short((root * scaled)[0])}. The belief is about u = x / sqrt(r): is r where "
        "sqrt(r) should be, or the other way round?",
    )


@check("05_denoisers.html#denoisers-own")
def promise_speed(trial):
    """All rows are computed at once.

    The number of executed lines of Python does not grow with the rows.
    """
    for method in trial.own(*ROW_METHODS, "denoise"):
        _require_no_loop(trial, method)


def loops_over_rows(trial):
    """Say whether `promise_speed` finds that the denoiser takes one row at a time."""
    try:
        promise_speed.measure(trial)
    except AssertionError:
        return True
    except Exception:  # noqa: BLE001
        return False  # said where it is asked again
    return False


def _require_no_loop(trial, method):
    """Raise if each further row takes more lines, among a thousand and among four.

    A solver may take more iterations for more rows, up to a point; a loop goes on.
    """
    few, counts = trial.problem.rows(slice(40)), []
    for copies in (1, 26, 101):
        # the same rows: as many iterations
        tiled = np.tile(few.P, (copies, 1)), np.tile(few.r, copies), few.F.copy()
        lines, seconds = trial.count_lines(trial.denoiser, method, *tiled)
        counts.append((len(tiled[1]), lines, seconds))
        more_rows, more_lines, _ = np.diff(counts, axis=0).T
        growth = more_lines / more_rows
        if (growth < 0.5).any():
            return
    shown = "; ".join("{} rows: {} lines, {:.2g} s".format(*each) for each in counts)
    require(
        growth[1] < growth[0] / 2,
        f"{method} executes {growth[1]:.1f} lines of Python for every further row: a "
        f"loop over the rows. {shown}. Use operations on whole arrays, such as "
        "np.einsum, broadcasting, or one decomposition of F for all rows",
    )


CONTRACT_CHECKS = (
    promise_shapes,
    promise_no_mutation,
    promise_deterministic,
    promise_row_independence,
    promise_hard_inputs,
    promise_frequency_scaling,
    promise_speed,
)
