"""The conformance kit: `check_denoiser` asks whether a denoiser keeps the contract of its base class.

Each check is a small function that raises `AssertionError` with the broken contract, the smallest example found, and
what to read. None of them knows the denoiser's formula.
"""

from dataclasses import dataclass

import numpy as np

from ._validation import check_integer, check_rng
from .denoisers import Denoiser, check_is_denoiser


@dataclass(frozen=True)
class Problem:
    """Rows on which a denoiser is tried: `P` (N, d), `r` (N,), a symmetric positive definite `F` (d, d)."""

    P: np.ndarray
    r: np.ndarray
    F: np.ndarray


@dataclass(frozen=True)
class CheckResult:
    """One check: its name, whether it passed, and if not, why."""

    name: str
    passed: bool
    message: str = ""


@dataclass(frozen=True)
class CheckReport:
    """All results of `check_denoiser`; print it to read it."""

    denoiser: str
    results: tuple

    passed = property(lambda self: all(result.passed for result in self.results), doc="Whether every check passed.")
    failures = property(
        lambda self: tuple(r for r in self.results if not r.passed), doc="The results that did not pass."
    )

    def __str__(self):
        lines = [
            f"{'pass' if r.passed else 'FAIL'}  {r.name}{': ' + r.message if r.message else ''}" for r in self.results
        ]
        return "\n".join(
            [f"{self.denoiser}: {len(self.results) - len(self.failures)} of {len(self.results)} checks passed", *lines]
        )

    __repr__ = __str__


def check_shapes(denoiser, problem):
    """The estimate is (N, d), the mean Jacobian (d, d), both finite floats."""
    N, d = problem.P.shape
    for name, value, shape in (
        ("estimate", denoiser.estimate(problem.P, problem.r, problem.F), (N, d)),
        ("mean_jacobian", denoiser.mean_jacobian(problem.P, problem.r, problem.F), (d, d)),
    ):
        value = np.asarray(value)
        assert value.shape == shape, f"{name} has shape {value.shape} for N = {N}, d = {d}; expected {shape}"
        assert value.dtype.kind == "f", f"{name} has dtype {value.dtype}; expected floats"
        assert np.isfinite(value).all(), f"{name} holds NaN or infinite values"


def check_no_mutation(denoiser, problem):
    """P, r and F are left as they were."""
    for method in ("estimate", "mean_jacobian"):
        copies = [value.copy() for value in (problem.P, problem.r, problem.F)]
        getattr(denoiser, method)(*copies)
        for name, copy, value in zip("PrF", copies, (problem.P, problem.r, problem.F), strict=True):
            assert np.array_equal(copy, value), f"{method} changes its argument {name}: work on a copy"


def check_deterministic(denoiser, problem):
    """The same input gives the same output."""
    first, second = (denoiser.estimate(problem.P, problem.r, problem.F) for _ in range(2))
    assert np.array_equal(first, second), "two calls with the same input differ: no randomness, no state between calls"


def check_row_independence(denoiser, problem):
    """Each row of the estimate depends on its own row of P and r only."""
    together = denoiser.estimate(problem.P, problem.r, problem.F)
    for i in (0, len(problem.r) - 1):
        alone = denoiser.estimate(problem.P[i : i + 1], problem.r[i : i + 1], problem.F)[0]
        _assert_close(alone, together[i], f"row {i} is estimated differently alone and among {len(problem.r)} rows")
    order = np.arange(len(problem.r))[::-1]
    permuted = denoiser.estimate(problem.P[order], problem.r[order], problem.F)
    _assert_close(permuted, together[order], "reversing the rows of P and r does not reverse the rows of the estimate")


def check_frequency_scaling(denoiser, problem):
    """estimate(p, r, F) = sqrt(r) estimate(sqrt(r) p, 1, r F): the row is x = sqrt(r) u and the prior is on u."""
    for i in (0, len(problem.r) // 2):
        p, r = problem.P[i : i + 1], problem.r[i : i + 1]
        direct = denoiser.estimate(p, r, problem.F)
        scaled = np.sqrt(r) * denoiser.estimate(np.sqrt(r) * p, np.ones(1), r[0] * problem.F)
        _assert_close(
            direct,
            scaled,
            f"at r = {r[0]:.3g}, p = {p[0].round(3)}: estimate(p, r, F) = {direct[0].round(4)}, but "
            f"sqrt(r) estimate(sqrt(r) p, 1, r F) = {scaled[0].round(4)}. The penalty acts on u = x / sqrt(r): "
            "is r where sqrt(r) should be, or the other way round? Read eq:Gadef-row",
        )


def check_jacobian(denoiser, problem):
    """mean_jacobian[k, l] is the mean of d estimate_l / d P_k, by central differences."""
    given = denoiser.mean_jacobian(problem.P, problem.r, problem.F)
    # two step sizes: where they disagree the estimate has a kink within reach, and the tolerance says so
    size = np.abs(problem.P).max()
    steps = (1e-6 * size, 1e-5 * size)  # by the base class: a student's class may have replaced its method
    fine, coarse = (Denoiser.difference_jacobian(denoiser, problem.P, problem.r, problem.F, step) for step in steps)
    tolerance = 1e-4 * (np.abs(fine).max() + 1e-12) + 2 * np.abs(fine - coarse).max()
    worst = np.unravel_index(np.abs(given - fine).argmax(), given.shape)
    hint = (
        "its transpose fits: [k, l] is d estimate_l / d P_k"
        if np.abs(given.T - fine).max() <= tolerance
        else "read eq:Gamma_abdef"
    )
    assert np.abs(given - fine).max() <= tolerance, (
        f"mean_jacobian[{worst[0]}, {worst[1]}] is {given[worst]:.6g}, finite differences: {fine[worst]:.6g}; {hint}"
    )


def check_jacobian_symmetric(denoiser, problem):
    """Minimisers and posterior means are gradients of convex functions of p: symmetric Jacobian, eigenvalues >= 0."""
    J = denoiser.mean_jacobian(problem.P, problem.r, problem.F)
    scale = np.abs(J).max() + 1e-12
    assert np.abs(J - J.T).max() <= 1e-6 * scale, f"the mean Jacobian is not symmetric: {J.round(4).tolist()}"
    smallest = np.linalg.eigvalsh((J + J.T) / 2)[0]
    assert smallest >= -1e-6 * scale, f"the mean Jacobian has the negative eigenvalue {smallest:.3g}"


def check_optimality(denoiser, problem):
    """For "argmin": no small step lowers a^T F a / 2 - p^T a + g(a / sqrt(r))."""
    X = denoiser.estimate(problem.P, problem.r, problem.F)
    directions = np.vstack(
        [np.eye(X.shape[1]), -np.eye(X.shape[1]), np.sign(np.random.default_rng(0).standard_normal((4, X.shape[1])))]
    )
    for i, (x, p) in enumerate(zip(X, problem.P, strict=True)):
        here, scale = _objective(denoiser, x, p, problem, i), np.abs(x).max() + np.abs(p).max() + 1e-12
        for step in (1e-3, 0.1):
            for direction in directions:
                there = _objective(denoiser, x + step * scale * direction, p, problem, i)
                assert there >= here - 1e-9 * (abs(here) + scale**2), (
                    f"row {i}: at the estimate {x.round(4)} the objective is {here:.6g}, a step away {there:.6g}. "
                    "Is the factor of the penalty right, and does penalty() agree with estimate()? Read eq:Gadef-row"
                )


CHECKS = (
    check_shapes,
    check_no_mutation,
    check_deterministic,
    check_row_independence,
    check_frequency_scaling,
    check_jacobian,
    check_jacobian_symmetric,
    check_optimality,
)


def check_denoiser(denoiser, *, d=3, n_rows=40, rng=None):
    """Try every check on random rows.

    Parameters
    ----------
    denoiser : Denoiser
    d, n_rows : int
        Size of the rows tried; pass the d of a denoiser that works for one dimension only.
    rng : numpy.random.Generator, optional
        For the rows tried; the same rows on every call if left out.

    Returns
    -------
    CheckReport
        ``.passed``, ``.failures``, and a text to print.

    Raises
    ------
    TypeError
        If `denoiser` is no `Denoiser`: derive the class from it.

    Examples
    --------
    >>> from amptutorial.denoisers import Ridge
    >>> class Forgetful(Ridge):
    ...     def mean_jacobian(self, P, r, F):
    ...         return np.eye(P.shape[1])
    >>> [result.name for result in check_denoiser(Forgetful(1.0)).failures]
    ['jacobian']
    """
    check_is_denoiser(denoiser, "denoiser")
    rng = np.random.default_rng(0) if rng is None else check_rng(rng)
    problem = draw_problem(check_integer(n_rows, "n_rows", minimum=2), check_integer(d, "d", minimum=1), rng)
    return CheckReport(
        repr(denoiser), tuple(_run(check, denoiser, problem) for check in CHECKS if _applies(check, denoiser))
    )


def draw_problem(n_rows, d, rng):
    """Return a `Problem`: an F with condition number 30, rates over two decades, rows of the size AMP would meet.

    Examples
    --------
    >>> draw_problem(5, 2, np.random.default_rng(0)).P.shape
    (5, 2)
    """
    basis = np.linalg.qr(rng.standard_normal((d, d)))[0]
    F = (basis * np.geomspace(0.3, 9.0, d)) @ basis.T
    r = np.exp(rng.uniform(-2.3, 2.3, n_rows))
    X = np.sqrt(r)[:, None] * rng.standard_normal((n_rows, d))
    noise = rng.standard_normal((n_rows, d)) @ np.linalg.cholesky(F).T
    return Problem(X @ F + noise, r, (F + F.T) / 2)


def _applies(check, denoiser):
    has_penalty = type(denoiser).penalty is not Denoiser.penalty
    return check is not check_optimality or (denoiser.precision == "argmin" and has_penalty)


def _run(check, denoiser, problem):
    name = check.__name__.removeprefix("check_")
    try:
        check(denoiser, problem)
    except AssertionError as failure:
        return CheckResult(name, False, str(failure))
    except Exception as error:  # noqa: BLE001 - the report must survive any student's code
        return CheckResult(name, False, f"raised {type(error).__name__}: {error}")
    return CheckResult(name, True)


def _assert_close(a, b, message):
    assert np.allclose(a, b, rtol=1e-6, atol=1e-8 * (1 + np.abs(b).max())), message


def _objective(denoiser, x, p, problem, i):
    return x @ problem.F @ x / 2 - p @ x + denoiser.penalty(x[None], problem.r[i : i + 1])
