"""Checks of a minimiser, and of the Jacobian and the slope of any estimate."""

import numpy as np

from .beliefs import Penalty
from .contract import check
from .priors import has_prior, require_one_prior
from .trials import ILL, Problem, is_own
from .verdict import require, short, short_pair

FACTORS = (
    "Is every factor of the penalty right, and does penalty() agree with estimate()?"
)
EARLY = f"That is little: has an iteration ended too early? Otherwise: {FACTORS}"


def _has_penalty(trial):
    return isinstance(trial.belief, Penalty) or (
        trial.belief is None
        and trial.denoiser.precision == "argmin"
        and is_own(trial.denoiser, "penalty")
    )


def _terms(trial, problem, X):
    """Return the three terms of `eq:Gadef-row` for each row of `X`, shape (3, N)."""
    P, r, F = problem.copies()
    quadratic = np.einsum("ik,kl,il->i", X, F, X) / 2
    return np.array([quadratic, -(P * X).sum(axis=1), trial.penalties(X, r)])


@check("05_denoisers.html#denoisers-rows", _has_penalty)
def promise_optimality(trial):
    """The estimate minimises x F x^T / 2 - p x^T + g(x / sqrt(r)).

    No small step lowers it.
    """
    for text, problem in _problems(trial).items():
        _require_minima(trial, problem, text)


def _problems(trial):
    """Return the trial's problem, and what `promise_everywhere` does not ask.

    That is an F which is nearly singular, and one in which the penalty alone makes the
    minimum. A convexity that is round-off beside F makes none.
    """
    problem = trial.problem
    few, c = problem.rows(slice(12)), _convexity(trial) if _has_penalty(trial) else 0.0
    problems = {"": problem, f"{ILL}: ": few.hard()[ILL]}
    if abs(c) >= 1e-9 * np.linalg.norm(problem.F):
        text = f"F with the eigenvalue {-c / 2:.2g}, convexity {c:.2g}: "
        problems[text] = few.indefinite(c)
    return problems


def _convexity(trial):
    """Return the c of `Denoiser.convexity` that holds for the trial's rows.

    The belief knows it; where there is none, or it does not say, the denoiser is asked.
    """
    r = trial.problem.r
    stated = getattr(trial.belief, "convexity", None)
    return trial.convexity(r) if stated is None else stated / r.max()


def _require_minima(trial, problem, where):
    """Raise if some step lowers the objective of a row by more than round-off."""
    P, r, _ = problem.copies()
    X = trial.estimate(problem)
    terms = _terms(trial, problem, X)
    here = terms.sum(axis=0)
    i = np.argmin(np.isfinite(here))
    require(
        np.isfinite(here).all(),
        f"{where}row {i}: the penalty of the estimate {short(X[i])} is infinite: "
        "such a row is not allowed",
    )
    # a solver may end when steps are small beside p
    slack = (1e-6 if where else 1e-9) * np.abs(terms).sum(axis=0)
    slack += 1e-12 * (P**2).sum(axis=1) / np.linalg.norm(problem.F)
    for there in _neighbours(trial, problem, X):
        drop = here - _terms(trial, problem, there).sum(axis=0)
        i = np.argmax(drop - slack)
        if drop[i] <= slack[i]:
            continue  # to write the text below would take longer than to ask
        estimate, better = short_pair(X[i], there[i])
        raise AssertionError(
            f"{where}row {i}, p = {short(P[i])}, r = {r[i]:.3g}: the objective is "
            f"{here[i]:.6g} at the estimate {estimate}, but "
            f"{here[i] - drop[i]:.6g} at {better}. "
            + (EARLY if drop[i] < 1e-4 * abs(here[i]) else FACTORS)
        )


def _lengths(X, P):
    """Return a length for each row that is comparable to the estimate and to p."""
    return np.abs(X).max(axis=1) + np.abs(P).max(axis=1) + 1e-12


def _neighbours(trial, problem, X):
    """Yield rows near the estimates `X`: along an axis, a diagonal, a mode, to zero."""
    P, r, F = problem.copies()
    d = X.shape[1]
    root = np.sqrt(r)[:, None]
    signs = np.sign(np.random.default_rng(0).standard_normal((4, d)))
    mode = np.linalg.eigh(F)[1][:, 0]  # the flattest
    directions = np.vstack([np.eye(d), -np.eye(d), signs, mode, -mode])
    # an estimate at a tiny r is much shorter than p
    short_ones = np.abs(X).max(axis=1) < 0.01 * _lengths(X, P)
    sizes = np.where(short_ones, np.abs(X).max(axis=1), _lengths(X, P))
    moves = [
        np.outer(size, direction)
        for size in (_lengths(X, P), sizes)[: 1 + short_ones.any()]
        for direction in directions
    ]
    for step in (1e-4, 1e-3, 0.1):
        for move in (*moves, -X):
            U = (X + step * move) / root
            yield (U if trial.belief is None else trial.belief.project(U)) * root


@check("05_denoisers.html#denoisers-own", _has_penalty)
def promise_penalty(trial):
    """penalty(X, r) is the sum over the rows of g(x_i / sqrt(r_i)).

    It is the same g that estimate() minimises.
    """
    require(
        is_own(trial.denoiser, "penalty"),
        "penalty is inherited, and that of the base class is 0, as if there were none",
    )
    _require_convexity(trial)
    if trial.belief is None:
        _require_a_sum_over_rows(trial)
    else:
        _require_the_belief(trial)


def _require_the_belief(trial):
    """Raise unless `penalty` is the g of the belief."""
    P, r, _ = trial.problem.copies()
    # among the noisy rows, some are not allowed
    for text, rows in (("the estimates", trial.estimate()), ("the noisy rows P", P)):
        by_row = trial.penalties(rows, r)
        value, first = (trial.penalty(rows[:n], r[:n]) for n in (None, 1))
        right = [by_row.sum(), by_row[0]]
        require(
            np.allclose([value, first], right, rtol=1e-8, atol=1e-12),
            f"penalty is {value:.6g} for {text}, the sum of g(x_i / sqrt(r_i)) is "
            f"{by_row.sum():.6g}; for the first row alone, x = {short(rows[0])}, "
            f"r = {r[0]:.3g}, it is {first:.6g} and g = {by_row[0]:.6g}",
        )
    _require_a_sharp_bound(trial)


def _require_a_sharp_bound(trial):
    """Raise unless a single row just outside of what is allowed makes g infinite."""
    P, r, _ = trial.problem.copies()
    X, root = trial.estimate(), np.sqrt(r)[:, None]
    far = P / root
    nearest = trial.belief.project(far)
    way = far - nearest
    distance = np.linalg.norm(way, axis=1, keepdims=True)
    size = np.linalg.norm(nearest, axis=1, keepdims=True)
    outside = nearest + 1e-6 * size * way / np.maximum(distance, 1e-300)
    beyond = np.flatnonzero(np.isinf(trial.belief.value(outside)))
    for i in (0, len(P) // 2, len(P) - 1) if len(beyond) else ():
        k = beyond[i % len(beyond)]
        rows, rates = X.copy(), r.copy()
        rows[i], rates[i] = outside[k] * root[k], r[k]
        value = trial.penalty(rows, rates)
        require(
            value == np.inf,
            f"penalty is {value:.6g} for rows of which row {i} alone, x = "
            f"{np.array2string(rows[i], precision=9)}, r = {rates[i]:.3g}, is not "
            "allowed, by a millionth of its length: it should be infinite",
        )


def _require_a_sum_over_rows(trial):
    """Raise unless `penalty` is a sum over rows u = x / sqrt(r)."""
    r, X = trial.problem.r, trial.estimate()
    value = trial.penalty(X, r)
    alone = trial.penalties(X, r).sum()
    require(
        np.isclose(value, alone),
        f"penalty is {value:.6g} for all rows, {alone:.6g} as the sum over single rows",
    )
    stretched = trial.penalty(2 * X, 4 * r)
    require(
        np.isclose(value, stretched),
        f"penalty(X, r) = {value:.6g}, but penalty(2 X, 4 r) = {stretched:.6g}: the "
        "rows u = x / sqrt(r) are the same",
    )


def _require_convexity(trial):
    """Raise unless convexity(r) is what the belief says, or at least not too large."""
    if getattr(trial.belief, "convexity", None) is None:
        _require_no_larger_convexity(trial)
        return
    r = trial.problem.r
    answer, right = trial.convexity(r), trial.belief.convexity / r.max()
    what = "small" if answer < right else "large"
    require(
        np.isclose(answer, right, rtol=1e-6, atol=0),
        f"convexity(r) = {answer:.6g} is too {what} for {len(r)} rows with r from "
        f"{r.min():.3g} to {r.max():.3g}: the largest c for which "
        f"g(x / sqrt(r)) - c |x|^2 / 2 is convex in every row is {right:.6g}. AMP "
        "lets eigenvalues of F fall to -c, and raises those below",
    )


def _require_no_larger_convexity(trial):
    """Raise if convexity(r) = c > 0 and g(x / sqrt(r)) - c |x|^2 / 2 is not convex.

    Each row is tried from p to 2p, where g is finite.
    """
    P, r, _ = trial.problem.copies()
    c = trial.convexity(r)
    start, middle, end = (trial.penalties(t * P, r) for t in (1.0, 1.5, 2.0))
    bend = (start + end) / 2 - middle - c / 8 * (P**2).sum(axis=1)
    i = np.where(np.isfinite(bend), bend, 0).argmin()
    require(
        c == 0 or not bend[i] < -1e-9 * middle[i],
        f"convexity(r) = {c:.4g} is too large for row {i}, r = {r[i]:.3g}: "
        f"g(x / sqrt(r)) - {c:.4g} |x|^2 / 2 is not convex in x. One number has to "
        "hold for every row",
    )


@check("05_denoisers.html#denoisers-rows", lambda trial: bool(trial.limits))
def promise_limits(trial):
    """The estimate becomes what it must as a parameter goes to an end of its range."""
    for limit in trial.limits:
        _require_limit(trial, limit)


def _require_limit(trial, limit):
    """Raise unless the estimate near the end of a parameter's range is as expected."""
    P, r, F = trial.problem.copies()
    X = np.asarray(trial.make(**limit.changes).estimate(*trial.problem.copies()))
    expected = limit.expected(*trial.problem.copies())
    scale = np.abs(expected).max() or np.abs(np.linalg.solve(F, P.T)).max()
    off = np.abs(X - expected)
    i = off.max(axis=1).argmax()
    estimate, right = short_pair(X[i], expected[i])
    require(
        off.max() <= limit.tolerance * scale,
        f"{limit.text}. With {limit.changes}, row {i} (p = {short(P[i])}, "
        f"r = {r[i]:.3g}) is estimated as {estimate}, expected {right}",
    )


@check("05_denoisers.html#def-denoisers-jacobian", method="mean_jacobian")
def promise_jacobian(trial):
    """mean_jacobian[k, l] is the mean of d estimate_l / d P_k.

    Central differences of the estimate find the same. If it is inherited, it is made of
    them.
    """
    for text, problem in _problems(trial).items():
        fine, kinks = _difference_jacobian(trial, problem)
        least = round_off(problem)  # of rows that do not move
        told = fine, 1e-4 * np.abs(fine).max() + least + kinks, len(problem.r)
        require_jacobian(f"{text}mean_jacobian", trial.mean_jacobian(problem), *told)
        if not trial.inherits("mean_jacobian"):
            J = trial.denoise(problem)[1]
            require_jacobian(f"{text}denoise(P, r, F)[1]", J, *told)


def round_off(problem):
    """Return the size of an error in a Jacobian of which nothing is left but that."""
    return 1e-12 / np.linalg.norm(problem.F, 2)


def require_jacobian(
    name, J, right, tolerance, N, source="central differences of estimate give"
):
    """Raise unless `J`, the answer of the method `name` for N rows, is `right`."""
    require(
        J.shape == right.shape, f"{name} has shape {J.shape}, expected {right.shape}"
    )
    error = np.abs(J - right)
    largest = np.where(np.isfinite(error), error, np.inf).argmax()
    entry = k, l = np.unravel_index(largest, J.shape)  # noqa: E741
    require(
        (error <= tolerance).all(),
        f"{name}[{k}, {l}] is {J[entry]:.6g}, {source} {right[entry]:.6g}"
        + _hint(J, right, tolerance, N),
    )


def _hint(J, fine, tolerance, N):
    """Return the common mistake that explains a wrong Jacobian, or an empty text."""
    hints = {
        "its transpose fits: [k, l] is d estimate_l / d P_k": J.T,
        "its negative fits": -J,
        "it fits after division by N: the Jacobian is a mean over the rows, not a sum":
            J / N,
        "it fits after multiplication by N: it was divided by N twice": J * N,
    }  # fmt: skip
    for hint, value in hints.items():
        if (np.abs(value - fine) <= tolerance).all():
            return f"; {hint}"
    return ""


def _difference_jacobian(trial, problem):
    """Return `(jacobian, kinks)`, central differences, and how far a kink moves them.

    Differences are taken with two step sizes. A kink of the estimate is within reach
    where the two disagree, and also where they agree but differ to the left and to the
    right: then P lies on the kink. A bend disagrees to the left and to the right too,
    in proportion to the step; that much is subtracted.
    """
    size = np.abs(problem.P).max()
    fine, bend = _differences(trial, problem, 1e-6 * size)
    coarse, wide_bend = _differences(trial, problem, 1e-5 * size)
    kinks = 2 * np.abs(fine - coarse) + np.abs(bend - wide_bend / 10)
    return fine, kinks.max()


def _differences(trial, problem, step):
    """Return the Jacobian by central differences, and by right less left ones."""
    (P, r, F), X = problem.copies(), trial.estimate(problem)

    d = len(F)
    steps = np.vstack([step * np.eye(d), -step * np.eye(d)])
    # all at once: an estimate may take many lines for however few rows
    moved = Problem(np.vstack([P + h for h in steps]), np.tile(r, 2 * d), F)
    changes = trial.estimate(moved).reshape(2 * d, *P.shape) - X
    right, left = np.split(changes.mean(axis=1), 2)
    return (right - left) / (2 * step), (right + left) / step


@check("05_denoisers.html#denoisers-jacobian", method="mean_jacobian")
def promise_jacobian_symmetric(trial):
    """The Jacobian is symmetric and has no negative eigenvalue.

    Minimisers and posterior means are gradients of convex functions of p. Posterior
    means at different F come from one prior.
    """
    # a row known for certain has a Jacobian of round-off alone
    typical = np.abs(trial.mean_jacobian()).max()
    first = range(len(trial.problem.r))[:3]
    problems = {f"row {i}'s": trial.problem.rows([i]) for i in first}
    for text, problem in ({"mean": trial.problem} | problems).items():
        J = trial.mean_jacobian(problem)
        slack = 1e-5 * (np.abs(J).max() + 1e-3 * typical) + round_off(problem)
        # J may come from differences across a kink
        slack += _difference_jacobian(trial, problem)[1]
        require(
            np.abs(J - J.T).max() <= slack,
            f"the {text} Jacobian is not symmetric: {J.round(4).tolist()}",
        )
        smallest = np.linalg.eigvalsh((J + J.T) / 2)[0]
        require(
            smallest >= -slack,
            f"the {text} Jacobian has the negative eigenvalue {smallest:.3g}",
        )
    if trial.denoiser.precision == "posterior" and not has_prior(trial):
        require_one_prior(trial)


@check("05_denoisers.html#prop-denoisers-lipschitz")
def promise_lipschitz(trial):
    """The estimate is a Lipschitz function of p: it has no jumps.

    A convex penalty bounds its slope as well.
    """
    P, r, F = trial.problem.copies()
    root = np.linalg.cholesky(F)
    ends = P, np.roll(P, 1, axis=0)
    segments = ends[1] - ends[0]

    def change(s, t):
        """Return |x_t - x_s| in the norm of F between two points of each segment."""
        points = (Problem(ends[0] + u[:, None] * segments, r, F) for u in (s, t))
        moved = np.subtract(*map(trial.estimate, points))
        return np.linalg.norm(moved @ root, axis=1)

    starts = np.tile(np.arange(16)[:, None] / 16, len(P))
    changes = np.array([change(start, start + 1 / 16) for start in starts])
    # |p - p'| in the norm of F^-1
    lengths = np.linalg.norm(np.linalg.solve(root, segments.T), axis=0)
    slope = (changes * 16 / lengths).max()
    low, high = _bisect(change, changes.argmax(axis=0) / 16)
    left = change(low, high)
    i = left.argmax()
    # of an estimate that does not move at all
    round_off = 1e-9 * np.linalg.norm(trial.estimate() @ root, axis=1).max()
    place, width = (ends[0] + low[:, None] * segments)[i], (high - low)[i]
    require(
        left[i] <= 1e-3 * changes.max() + round_off,
        f"row {i}, r = {r[i]:.3g}: the estimate jumps by {left[i]:.3g} (in the norm of "
        f"F) while p moves by {width * np.linalg.norm(segments[i]):.1g}, near "
        f"p = {place.round(4)}",
    )
    convex = isinstance(trial.belief, Penalty) and trial.belief.convex
    require(
        not convex or slope <= 1 + 1e-6,
        f"the slope |x - x'|_F / |p - p'|_(F^-1) reaches {slope:.4g}; for a convex "
        "penalty it is at most 1",
    )
    return f"largest slope |x - x'|_F / |p - p'|_(F^-1): {slope:.3g}"


def _bisect(change, low):
    """Return `(low, high)`, the ends of a tiny interval with a large change, per row.

    A jump stays in one of the two halves of an interval for ever; the change along a
    slope is halved each time.
    """
    high = low + 1 / 16
    for _ in range(26):
        middle = (low + high) / 2
        first = change(low, middle) > change(middle, high)
        low, high = np.where(first, low, middle), np.where(first, middle, high)
    return low, high


MINIMISER_CHECKS = (
    promise_optimality,
    promise_penalty,
    promise_limits,
    promise_jacobian,
    promise_jacobian_symmetric,
    promise_lipschitz,
)
