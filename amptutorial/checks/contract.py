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

from ..denoisers import Denoiser
from .trials import Problem, Trial, trial_of
from .verdict import require, require_close

SITE = "https://amptutorial.github.io/amptutorial/book/"
METHODS = ("estimate", "mean_jacobian")


@dataclass(frozen=True)
class Check:
    """A promise with a name, and a function that tries it on a denoiser.

    Attributes
    ----------
    name, contract : str
        What is promised, in a word and in a sentence or two.
    read : str
        Where the book explains it.
    applies : callable (Trial) -> bool
    run : callable (Trial) -> str or None
    """

    name: str
    contract: str
    read: str
    applies: Callable[[Trial], bool]
    run: Callable[[Trial], str | None]

    def measure(self, trial):
        """Run the check without numerical warnings.

        Some places turn warnings into errors, and a verdict must not depend on the
        place.
        """
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
            where = f"{trial.title}: " if trial.title else ""
            raise AssertionError(
                f"{where}{failure}\nThe promise: {self.contract}\nRead: {self.read}"
            ) from None


def check(read, applies=lambda trial: True):
    """Make a `Check` of a function ``promise_NAME(trial)``.

    The docstring of the function is the contract.

    Parameters
    ----------
    read : str
        Page and anchor of the book.
    applies : callable (Trial) -> bool

    Examples
    --------
    >>> @check("06_denoisers.html#denoisers-own")
    ... def promise_name(trial):
    ...     '''The class has a name of more than one letter.'''
    ...     require(len(type(trial.denoiser).__name__) > 1, "its name is a letter")
    >>> promise_name.name, promise_name.contract
    ('name', 'The class has a name of more than one letter.')
    """

    def decorate(function):
        name = function.__name__.removeprefix("promise_")
        return Check(name, _docstring(function), SITE + read, applies, function)

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


@check("06_denoisers.html#denoisers-rows")
def promise_shapes(trial):
    """The estimate is an array (N, d), the mean Jacobian (d, d).

    Both hold finite floats.
    """
    N, d = trial.problem.P.shape
    for name, answer, shape in (
        ("estimate", trial.estimate, (N, d)),
        ("mean_jacobian", trial.mean_jacobian, (d, d)),
        ("the estimate of denoise", lambda: trial.denoise()[0], (N, d)),
        ("the Jacobian of denoise", lambda: trial.denoise()[1], (d, d)),
    ):
        value = answer()
        require(
            value.shape == shape,
            f"{name} has shape {value.shape} for N = {N}, d = {d}; expected {shape}",
        )
        require(
            value.dtype.kind == "f",
            f"{name} has dtype {value.dtype}; expected floats",
        )
        require(np.isfinite(value).all(), f"{name} holds NaN or infinite values")


@check("06_denoisers.html#denoisers-own")
def promise_no_mutation(trial):
    """P, r and F are left as they were."""
    P, r, F = trial.problem.copies()
    rows = {"P": P, "r": r, "F": F}
    questions = dict.fromkeys((*METHODS, "denoise"), rows)
    questions |= {"penalty": {"X": P, "r": r}, "convexity": {"r": r}}
    for method, arguments in questions.items():
        copies = {name: value.copy() for name, value in arguments.items()}
        getattr(trial.denoiser, method)(*copies.values())
        for name, value in arguments.items():
            _require_unchanged(method, name, value, copies[name])


def _require_unchanged(method, name, before, after):
    """Raise, with the first entry that differs, if `method` changed its argument."""
    i = np.unravel_index(np.argmax(after != before), before.shape)
    require(
        not (after != before).any(),
        f"{method} changes its argument: {name}{list(map(int, i))} was {before[i]:.4g} "
        f"before and is {after[i]:.4g} after the call. Work on a copy: "
        f"{name} = {name}.copy()",
    )


@check("06_denoisers.html#denoisers-own")
def promise_deterministic(trial):
    """The same input gives the same output, after any other questions."""
    advice = (
        "no randomness, no state that is kept between calls, no cache that forgets "
        "what it was computed from"
    )
    first, J_first = trial.estimate(), trial.mean_jacobian()
    require(
        np.array_equal(first, trial.estimate()),
        f"two calls of estimate with the same input differ: {advice}",
    )
    require_close(
        trial.denoise()[0],
        first,
        "denoise and estimate give different estimates for the same input: "
        "AMP calls denoise",
    )
    _require_no_memory(trial, advice)
    require(
        np.array_equal(first, trial.estimate()),
        "after a call with other rows and another F, estimate gives another answer "
        f"for the same input: {advice}",
    )
    require(
        np.array_equal(J_first, trial.mean_jacobian()),
        f"two calls of mean_jacobian with the same input differ: {advice}",
    )


def _require_no_memory(trial, advice):
    """Raise unless a used denoiser answers as a new one where rows and F are others."""
    P, r, F = trial.problem.copies()
    other = Problem(P[::-1] / 2, r[::-1], 2 * F + np.eye(len(F)))
    # the Jacobian first: an estimate of the same rows must not be needed for it
    for method in reversed(METHODS):
        used, fresh = (
            np.asarray(getattr(each, method)(*other.copies()))
            for each in (trial.denoiser, trial.make())
        )
        require_close(
            used,
            fresh,
            f"{method} with another F: a new instance and one that has been used "
            f"before differ: {advice}",
        )


@check("06_denoisers.html#denoisers-rows")
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


@check("06_denoisers.html#denoisers-own")
def promise_hard_inputs(trial):
    """Estimate and Jacobian stay finite for every legal input, however extreme.

    Tried are tiny and huge r, a nearly singular F, P = 0, large P and a single row.
    """
    for text, problem in _hard_problems(trial.problem).items():
        for name, value in (
            ("estimate", trial.estimate(problem)),
            ("mean_jacobian", trial.mean_jacobian(problem)),
        ):
            require(
                np.isfinite(value).all(),
                f"{name} is not finite for {text}: got {value.ravel()[:4]}",
            )


def _hard_problems(problem):
    """Return extreme problems made from `problem`, by what is extreme in each."""
    P, r, F = problem.copies()
    d = len(F)
    V = np.linalg.eigh(F)[1]
    # not worse: coordinate descent, a right solution, needs as many steps as the
    # condition number
    ill = (V * np.geomspace(1e-4, 1, d)) @ V.T if d > 1 else 1e-4 * F
    tiny, huge = np.array([1e-10]), np.array([1e10])
    larger = np.vstack([1e6 * P[:1], P[1:]])
    return {
        "a tiny r = 1e-10": Problem(P[:1], tiny, F),
        "a huge r = 1e10, and p 1e5 times as large": Problem(1e5 * P[:1], huge, F),
        "an F with the eigenvalue 1e-4": Problem(P, r, (ill + ill.T) / 2),
        "P = 0": Problem(0 * P, r, F),
        "a row of P that is 1e6 times as large as others": Problem(larger, r, F),
        "a single row": problem.rows([0]),
    }


@check("06_denoisers.html#denoisers-frequency")
def promise_frequency_scaling(trial):
    """estimate(p, r, F) = sqrt(r) estimate(sqrt(r) p, 1, r F).

    The row is x = sqrt(r) u, and the belief is about u.
    """
    by_frequency = np.argsort(trial.problem.r)
    # a wrong power of r shows far from r = 1
    for i in by_frequency[[0, len(by_frequency) // 2, -1]]:
        one = trial.problem.rows([i])
        root = np.sqrt(one.r)
        scaled_problem = Problem(root * one.P, np.ones(1), one.r[0] * one.F)
        direct, scaled = trial.estimate(one), root * trial.estimate(scaled_problem)
        require_close(
            direct,
            scaled,
            f"at r = {one.r[0]:.3g}, p = {one.P[0].round(3)}: estimate(p, r, F) = "
            f"{direct[0].round(4)}, but sqrt(r) estimate(sqrt(r) p, 1, r F) = "
            f"{scaled[0].round(4)}. The belief is about u = x / sqrt(r): is r where "
            "sqrt(r) should be, or the other way round?",
        )


@check("06_denoisers.html#denoisers-own")
def promise_speed(trial):
    """All rows are computed at once.

    The number of executed lines of Python does not grow with the rows.
    """
    few, copies = trial.problem.rows(slice(100)), 11
    # the same rows: as many iterations
    many = Problem(np.tile(few.P, (copies, 1)), np.tile(few.r, copies), few.F)
    for method in (*METHODS, "denoise"):
        if getattr(type(trial.denoiser), method) is getattr(Denoiser, method):
            continue  # the base class only calls the other methods
        (less, fast), (more, slow) = (
            trial.count_lines(trial.denoiser, method, *problem.copies())
            for problem in (few, many)
        )
        growth = (more - less) / (len(many.r) - len(few.r))
        require(
            growth < 0.5,
            f"{method} executes {growth:.1f} lines of Python for every row: a loop "
            f"over the rows. {len(many.r)} rows took {slow:.2g} s, {len(few.r)} rows "
            f"{fast:.2g} s. Use operations on whole arrays, such as np.einsum, "
            "broadcasting, or one decomposition of F for all rows",
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
