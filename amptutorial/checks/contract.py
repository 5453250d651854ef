"""Checks of what every denoiser promises, whatever it believes: see `amptutorial.checks`.

Each function asks one question, raises `AssertionError` with an example that breaks the
promise, and returns None or a measurement worth reading.
"""

import inspect
import warnings
from dataclasses import dataclass

import numpy as np

from ._trials import Problem, Trial, draw_problem
from .denoisers import Denoiser

SITE = "https://amptutorial.github.io/amptutorial/book/"
METHODS = ("estimate", "mean_jacobian")


@dataclass(frozen=True)
class Check:
    """A named question to a denoiser.

    Attributes
    ----------
    name, contract : str
        What is checked, in a word and in a sentence.
    read : str
        Where the book explains it.
    applies : callable (Trial) -> bool
    run : callable (Trial) -> str or None
    """

    name: str
    contract: str
    read: str
    applies: callable
    run: callable

    def measure(self, trial):
        """Run the check; numerical warnings, which are errors in some places and not in others, are no failures."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.run(trial)

    def __call__(self, denoiser):
        """Run the check on a denoiser or a `Trial`; a failure says what was promised and what to read."""
        try:
            self.measure(
                denoiser if isinstance(denoiser, Trial) else trial_of(denoiser)
            )
        except AssertionError as failure:
            where = (
                f"{denoiser.title}: "
                if isinstance(denoiser, Trial) and denoiser.title
                else ""
            )
            raise AssertionError(
                f"{where}{failure}\nThe promise: {self.contract}\nRead: {self.read}"
            ) from None


def check(read, applies=lambda trial: True):
    """Make a `Check` of a function ``check_NAME(trial)``; its docstring is the contract."""

    def decorate(function):
        contract = inspect.getdoc(function).splitlines()[0]
        return Check(
            function.__name__.removeprefix("check_"),
            contract,
            SITE + read,
            applies,
            function,
        )

    return decorate


def trial_of(denoiser, *, belief=None, d=3, n_rows=40, rng=None):
    """Return a `Trial` of an instance."""
    rng = np.random.default_rng(0) if rng is None else rng
    problem = draw_problem(n_rows, d, rng, belief and belief.rows)
    return Trial(lambda: denoiser, problem, belief)


def assert_close(a, b, message, rtol=1e-6):
    """Raise unless `a` and `b` agree, relative to the largest entry of `b`."""
    assert np.allclose(
        a, b, rtol=rtol, atol=rtol / 100 * (1 + np.abs(b).max(initial=0.0))
    ), message


@check("06_denoisers.html#denoisers-rows")
def check_shapes(trial):
    """The estimate is an array of floats (N, d), the mean Jacobian one of (d, d), both finite."""
    N, d = trial.problem.P.shape
    for name, answer, shape in (
        ("estimate", trial.estimate, (N, d)),
        ("mean_jacobian", trial.mean_jacobian, (d, d)),
        ("the estimate of denoise", lambda: trial.denoise()[0], (N, d)),
        ("the Jacobian of denoise", lambda: trial.denoise()[1], (d, d)),
    ):
        value = answer()
        assert value.shape == shape, (
            f"{name} has shape {value.shape} for N = {N}, d = {d}; expected {shape}"
        )
        assert value.dtype.kind == "f", (
            f"{name} has dtype {value.dtype}; expected floats"
        )
        assert np.isfinite(value).all(), f"{name} holds NaN or infinite values"


@check("06_denoisers.html#denoisers-own")
def check_no_mutation(trial):
    """P, r and F are left as they were."""
    P, r, F = trial.problem.copies()
    rows, questions = (
        {"P": P, "r": r, "F": F},
        {"penalty": {"X": P, "r": r}, "convexity": {"r": r}},
    )
    for method, arguments in (
        dict.fromkeys((*METHODS, "denoise"), rows) | questions
    ).items():
        copies = {name: value.copy() for name, value in arguments.items()}
        getattr(trial.denoiser, method)(*copies.values())
        for name, value in arguments.items():
            copy = copies[name]
            where = (
                tuple(int(k) for k in np.argwhere(copy != value)[0])
                if (copy != value).any()
                else None
            )
            assert where is None, (
                f"{method} changes its argument: {name}{list(where)} was {value[where]:.4g} before and is "
                f"{copy[where]:.4g} after the call. Work on a copy: {name} = {name}.copy()"
            )


@check("06_denoisers.html#denoisers-own")
def check_deterministic(trial):
    """The same input gives the same output, whatever was asked before."""
    first, J_first = trial.estimate(), trial.mean_jacobian()
    advice = "no randomness, no state that is kept between calls, no cache that forgets what it was computed from"
    assert np.array_equal(first, trial.estimate()), (
        f"two calls of estimate with the same input differ: {advice}"
    )
    assert_close(
        trial.denoise()[0],
        first,
        "denoise and estimate give different estimates for the same input: AMP calls denoise",
    )
    P, r, F = trial.problem.copies()
    other = Problem(P[::-1] / 2, r[::-1], 2 * F + np.eye(len(F)))
    # the Jacobian first: an estimate of the same rows must not be needed for it
    for method in reversed(METHODS):
        used, fresh = (
            np.asarray(getattr(each, method)(*other.copies()))
            for each in (trial.denoiser, trial.make())
        )
        assert_close(
            used,
            fresh,
            f"{method} with another F: a new instance and one that has been used before differ: {advice}",
        )
    again = trial.estimate()
    assert np.array_equal(first, again), (
        f"after a call with other rows and another F, estimate gives another answer for the same input: {advice}"
    )
    assert np.array_equal(J_first, trial.mean_jacobian()), (
        f"two calls of mean_jacobian with the same input differ: {advice}"
    )


@check("06_denoisers.html#denoisers-rows")
def check_row_independence(trial):
    """Each row of the estimate depends on its own row of P and on its own r only."""
    N = len(trial.problem.r)
    together = trial.estimate()
    for i in (0, N - 1):
        alone = trial.estimate(trial.problem.rows([i]))[0]
        assert_close(
            alone,
            together[i],
            f"row {i} is estimated as {alone.round(4)} alone and as {together[i].round(4)} among {N} rows",
        )
    order = np.arange(N)[::-1]
    permuted = trial.estimate(trial.problem.rows(order))
    assert_close(
        permuted,
        together[order],
        "reversing the rows of P and r does not reverse the rows of the estimate",
    )


@check("06_denoisers.html#denoisers-own")
def check_hard_inputs(trial):
    """Estimate and Jacobian stay finite for tiny and huge r, a nearly singular F, P = 0, large P and a single row."""
    P, r, F = trial.problem.copies()
    d = len(F)
    V = np.linalg.eigh(F)[1]
    # not worse: coordinate descent, a right solution, needs as many steps as the
    # condition number
    ill = (V * np.geomspace(1e-4, 1, d)) @ V.T if d > 1 else 1e-4 * F
    one = np.ones(1)
    for text, problem in (
        ("a tiny r = 1e-10", Problem(P[:1], 1e-10 * one, F)),
        (
            "a huge r = 1e10, and p 1e5 times as large",
            Problem(1e5 * P[:1], 1e10 * one, F),
        ),
        ("an F with the eigenvalue 1e-4", Problem(P, r, (ill + ill.T) / 2)),
        ("P = 0", Problem(0 * P, r, F)),
        (
            "a row of P that is 1e6 times as large as others",
            Problem(np.vstack([1e6 * P[:1], P[1:]]), r, F),
        ),
        ("a single row", trial.problem.rows([0])),
    ):
        for name, value in (
            ("estimate", trial.estimate(problem)),
            ("mean_jacobian", trial.mean_jacobian(problem)),
        ):
            assert np.isfinite(value).all(), (
                f"{name} is not finite for {text}: got {value.ravel()[:4]}"
            )


@check("06_denoisers.html#denoisers-frequency")
def check_frequency_scaling(trial):
    """estimate(p, r, F) = sqrt(r) estimate(sqrt(r) p, 1, r F): the row is x = sqrt(r) u and the belief is about u."""
    by_frequency = np.argsort(trial.problem.r)
    # a wrong power of r shows far from r = 1
    for i in by_frequency[[0, len(by_frequency) // 2, -1]]:
        one = trial.problem.rows([i])
        root = np.sqrt(one.r)
        direct = trial.estimate(one)
        scaled = root * trial.estimate(
            Problem(root * one.P, np.ones(1), one.r[0] * one.F)
        )
        assert_close(
            direct,
            scaled,
            f"at r = {one.r[0]:.3g}, p = {one.P[0].round(3)}: estimate(p, r, F) = {direct[0].round(4)}, but "
            f"sqrt(r) estimate(sqrt(r) p, 1, r F) = {scaled[0].round(4)}. The belief is about u = x / sqrt(r): "
            "is r where sqrt(r) should be, or the other way round?",
        )


@check("06_denoisers.html#denoisers-own")
def check_speed(trial):
    """All rows are computed at once: the number of executed lines of Python does not grow with the rows."""
    few, copies = trial.problem.rows(slice(100)), 11
    # the same rows: as many iterations
    many = Problem(np.tile(few.P, (copies, 1)), np.tile(few.r, copies), few.F)
    added = len(many.r) - len(few.r)
    for method in (*METHODS, "denoise"):
        if getattr(type(trial.denoiser), method) is getattr(Denoiser, method):
            continue  # the base class only calls the other methods
        lines = [
            trial.count_lines(trial.denoiser, method, *problem.copies())
            for problem in (few, many)
        ]
        growth = (lines[1][0] - lines[0][0]) / added
        assert growth < 0.5, (
            f"{method} executes {growth:.1f} lines of Python for every row: a loop over the rows. {len(many.r)} rows "
            f"took {lines[1][1]:.2g} s, {len(few.r)} rows {lines[0][1]:.2g} s. Use operations on whole arrays, such as "
            "np.einsum, broadcasting, or one decomposition of F for all rows"
        )


CONTRACT_CHECKS = (
    check_shapes,
    check_no_mutation,
    check_deterministic,
    check_row_independence,
    check_hard_inputs,
    check_frequency_scaling,
    check_speed,
)
