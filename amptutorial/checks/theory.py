"""Checks of the mathematics: the minimiser or posterior mean, and its Jacobian."""

import copy

import numpy as np

from ..beliefs import Penalty, Prior
from ..denoisers import Denoiser
from .contract import check
from .trials import Problem
from .verdict import require


def _has_penalty(trial):
    return isinstance(trial.belief, Penalty) or (
        trial.belief is None
        and trial.denoiser.precision == "argmin"
        and type(trial.denoiser).penalty is not Denoiser.penalty
    )


def _has_prior(trial):
    return isinstance(trial.belief, Prior)


def _has_limits(trial):
    strength = vars(trial.denoiser).get("strength") if trial.belief is None else None
    is_number = isinstance(strength, float | int)
    return bool(trial.limits) or (_has_penalty(trial) and is_number)


def _penalties(trial, X, r):
    """Return g(x_i / sqrt(r_i)) of each row, shape (N,).

    The belief knows g; where there is none, the denoiser is asked.
    """
    if trial.belief is not None:
        return np.asarray(trial.belief.value(X / np.sqrt(r)[:, None]))
    rows = zip(X[:, None], r[:, None], strict=True)
    return np.array([trial.penalty(x, s) for x, s in rows])


def _objectives(trial, X):
    """Return `eq:Gadef-row` for each row of `X`."""
    P, r, F = trial.problem.copies()
    quadratic = np.einsum("ik,kl,il->i", X, F, X) / 2
    return quadratic - (P * X).sum(axis=1) + _penalties(trial, X, r)


@check("06_denoisers.html#denoisers-rows", _has_penalty)
def promise_optimality(trial):
    """The estimate minimises x F x^T / 2 - p x^T + g(x / sqrt(r)).

    No small step lowers it.
    """
    P, r, _ = trial.problem.copies()
    X = trial.estimate()
    here = _objectives(trial, X)
    i = np.argmin(np.isfinite(here))
    require(
        np.isfinite(here).all(),
        f"row {i}: the penalty of the estimate {X[i].round(4)} is infinite: "
        "such a row is not allowed",
    )
    slack = 1e-9 * (np.abs(here) + _lengths(X, P) ** 2)
    for there in _neighbours(trial, X):
        drop = here - _objectives(trial, there)
        i = np.argmax(drop - slack)
        require(
            drop[i] <= slack[i],
            f"row {i}, p = {P[i].round(3)}, r = {r[i]:.3g}: the objective is "
            f"{here[i]:.6g} at the estimate {X[i].round(4)}, but "
            f"{here[i] - drop[i]:.6g} at {there[i].round(4)}. Is every factor of the "
            "penalty right, and does penalty() agree with estimate()?",
        )


def _lengths(X, P):
    """Return a length for each row that is comparable to the estimate and to p."""
    return np.abs(X).max(axis=1) + np.abs(P).max(axis=1) + 1e-12


def _neighbours(trial, X):
    """Yield rows near the estimates `X`: a step along an axis, a diagonal, to zero."""
    P, r, _ = trial.problem.copies()
    d = X.shape[1]
    root = np.sqrt(r)[:, None]
    signs = np.sign(np.random.default_rng(0).standard_normal((4, d)))
    directions = np.vstack([np.eye(d), -np.eye(d), signs])
    moves = [*(_lengths(X, P)[:, None] * direction for direction in directions), -X]
    for step in (1e-4, 1e-3, 0.1):
        for move in moves:
            U = (X + step * move) / root
            yield (U if trial.belief is None else trial.belief.project(U)) * root


@check("06_denoisers.html#denoisers-own", _has_penalty)
def promise_penalty(trial):
    """penalty(X, r) is the sum over the rows of g(x_i / sqrt(r_i)).

    It is the same g that estimate() minimises.
    """
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
        each = _penalties(trial, rows, r)
        value, first = (trial.penalty(rows[:n], r[:n]) for n in (None, 1))
        require(
            np.isclose(value, each.sum(), rtol=1e-8, atol=1e-12),
            f"penalty is {value:.6g} for {text}, the sum of g(x_i / sqrt(r_i)) is "
            f"{each.sum():.6g}; for the first row alone, x = {rows[0].round(4)}, "
            f"r = {r[0]:.3g}, it is {first:.6g} and g = {each[0]:.6g}",
        )


def _require_a_sum_over_rows(trial):
    """Raise unless `penalty` is a sum over rows u = x / sqrt(r)."""
    r, X = trial.problem.r, trial.estimate()
    value = trial.penalty(X, r)
    alone = _penalties(trial, X, r).sum()
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
    """Raise if convexity(r) = c > 0 and g(x / sqrt(r)) - c |x|^2 / 2 is not convex.

    Each row is tried from p to 2p, where g is finite.
    """
    P, r, _ = trial.problem.copies()
    c = trial.convexity(r)
    start, middle, end = (_penalties(trial, t * P, r) for t in (1.0, 1.5, 2.0))
    bend = (start + end) / 2 - middle - c / 8 * (P**2).sum(axis=1)
    i = np.where(np.isfinite(bend), bend, 0).argmin()
    require(
        c == 0 or not bend[i] < -1e-9 * middle[i],
        f"convexity(r) = {c:.4g} is too large for row {i}, r = {r[i]:.3g}: "
        f"g(x / sqrt(r)) - {c:.4g} |x|^2 / 2 is not convex in x. One number has to "
        "hold for every row",
    )


@check("06_denoisers.html#denoisers-ridge", _has_limits)
def promise_limits(trial):
    """The estimate becomes what it must as a parameter goes to an end of its range."""
    for limit in trial.limits:
        _require_limit(trial, limit)
    if not trial.limits:
        _require_order_in_strength(trial)


def _require_limit(trial, limit):
    """Raise unless the estimate near the end of a parameter's range is as expected."""
    P, r, F = trial.problem.copies()
    X = np.asarray(trial.make(**limit.changes).estimate(*trial.problem.copies()))
    expected = limit.expected(*trial.problem.copies())
    scale = np.abs(expected).max() or np.abs(np.linalg.solve(F, P.T)).max()
    off = np.abs(X - expected)
    i = off.max(axis=1).argmax()
    require(
        off.max() <= limit.tolerance * scale,
        f"{limit.text}. With {limit.changes}, row {i} (p = {P[i].round(3)}, "
        f"r = {r[i]:.3g}) is estimated as {X[i].round(4)}, expected "
        f"{expected[i].round(4)}",
    )


def _require_order_in_strength(trial):
    """Raise unless a larger strength gives a smaller penalty and a worse fit.

    This is what can be known where no limits are stated; a huge strength must give the
    smallest penalty that there is.
    """
    P, r, F = trial.problem.copies()
    fits, values = [], []
    for factor in (1e-6, 1.0, 1e6):
        changed = copy.copy(trial.denoiser)
        changed.strength = factor * trial.denoiser.strength
        X = changed.estimate(*trial.problem.copies())
        values.append(trial.penalty(X, r))
        fits.append(np.vdot(X @ F, X) / 2 - np.vdot(P, X))
    slack = 1e-6 * (np.abs(fits).max() + values[1])
    where = "at strengths 1e-6, 1 and 1e6 times the given one is"
    shown_values, shown_fits = (
        ", ".join(f"{number:.4g}" for number in numbers) for numbers in (values, fits)
    )
    require(
        values[2] <= values[1] + slack and values[1] <= values[0] + slack,
        f"the penalty {where} {shown_values}: it should fall as the strength grows",
    )
    require(
        fits[0] <= fits[1] + slack and fits[1] <= fits[2] + slack,
        f"x F x / 2 - p x {where} {shown_fits}: it should rise as the strength grows",
    )
    require(
        values[2] <= 1e-3 * values[1] + slack,
        f"at a million times the strength the penalty is still {values[2]:.4g}, at the "
        f"given one {values[1]:.4g}",
    )


@check("06_denoisers.html#def-denoisers-jacobian")
def promise_jacobian(trial):
    """mean_jacobian[k, l] is the mean of d estimate_l / d P_k.

    Central differences of the estimate find the same.
    """
    fine, kinks = _difference_jacobian(trial, trial.problem)
    tolerance = 1e-4 * (np.abs(fine).max() + 1e-12) + kinks
    for name, answer in (
        ("mean_jacobian", trial.mean_jacobian),
        ("denoise(P, r, F)[1]", lambda: trial.denoise()[1]),
    ):
        _require_jacobian(name, answer(), fine, tolerance, len(trial.problem.r))


def _require_jacobian(name, given, fine, tolerance, N):
    """Raise unless `given`, the answer of the method `name` for N rows, is `fine`."""
    require(
        given.shape == fine.shape,
        f"{name} has shape {given.shape}, expected {fine.shape}",
    )
    error = np.abs(given - fine)
    largest = np.where(np.isfinite(error), error, np.inf).argmax()
    entry = k, l = np.unravel_index(largest, given.shape)  # noqa: E741
    require(
        (error <= tolerance).all(),
        f"{name}[{k}, {l}] is {given[entry]:.6g}, central differences of estimate give "
        f"{fine[entry]:.6g}" + _hint(given, fine, tolerance, N),
    )


def _hint(given, fine, tolerance, N):
    """Return the common mistake that explains a wrong Jacobian, or an empty text."""
    hints = {
        "its transpose fits: [k, l] is d estimate_l / d P_k": given.T,
        "its negative fits": -given,
        "it fits after division by N: the Jacobian is a mean over the rows, not a sum":
            given / N,
        "it fits after multiplication by N: it was divided by N twice": given * N,
    }  # fmt: skip
    for hint, value in hints.items():
        if (np.abs(value - fine) <= tolerance).all():
            return f"; {hint}"
    return ""


def _difference_jacobian(trial, problem):
    """Return `(jacobian, kinks)`, central differences with two step sizes.

    Where the two disagree, a kink of the estimate is within reach: `kinks` is twice the
    largest disagreement.
    """
    size = np.abs(problem.P).max()
    fine, coarse = (
        Denoiser.difference_jacobian(trial.denoiser, *problem.copies(), step)
        for step in (1e-6 * size, 1e-5 * size)
    )
    return fine, 2 * np.abs(fine - coarse).max()


@check("06_denoisers.html#denoisers-jacobian")
def promise_jacobian_symmetric(trial):
    """The Jacobian is symmetric and has no negative eigenvalue.

    Minimisers and posterior means are gradients of convex functions of p.
    """
    # a row known for certain has a Jacobian of round-off alone
    typical = np.abs(trial.mean_jacobian()).max()
    first = range(len(trial.problem.r))[:3]
    problems = {f"row {i}'s": trial.problem.rows([i]) for i in first}
    for text, problem in ({"mean": trial.problem} | problems).items():
        J = trial.mean_jacobian(problem)
        scale = np.abs(J).max() + 1e-3 * typical + 1e-12
        # J may come from differences across a kink
        slack = 1e-5 * scale + _difference_jacobian(trial, problem)[1]
        require(
            np.abs(J - J.T).max() <= slack,
            f"the {text} Jacobian is not symmetric: {J.round(4).tolist()}",
        )
        smallest = np.linalg.eigvalsh((J + J.T) / 2)[0]
        require(
            smallest >= -slack,
            f"the {text} Jacobian has the negative eigenvalue {smallest:.3g}",
        )


@check("06_denoisers.html#prop-denoisers-lipschitz")
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
        points = (
            trial.estimate(Problem(ends[0] + u[:, None] * segments, r, F))
            for u in (s, t)
        )
        return np.linalg.norm(np.subtract(*points) @ root, axis=1)

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


@check("06_denoisers.html#thm-denoisers-tweedie", _has_prior)
def promise_tweedie(trial):
    """The estimate is the gradient by p of the log partition function of the prior.

    This is Tweedie's formula for the posterior mean.
    """
    P, r, F = trial.problem.copies()
    X, step = trial.estimate(), 1e-5 * np.abs(P).max()
    log_partition = trial.belief.log_partition
    gradient = np.stack(
        [
            (log_partition(P + h, r, F) - log_partition(P - h, r, F)) / (2 * step)
            for h in step * np.eye(P.shape[1])
        ],
        axis=1,
    )
    error = np.abs(X - gradient).max(axis=1)
    i = np.where(np.isfinite(error), error, np.inf).argmax()
    require(
        error[i] <= 1e-5 * (1 + np.abs(gradient).max()),
        f"row {i}, p = {P[i].round(3)}, r = {r[i]:.3g}: the estimate is "
        f"{X[i].round(5)}, the posterior mean {gradient[i].round(5)}",
    )


@check("17_the_posterior_mean.html#posterior-nishimori", _has_prior)
def promise_nishimori(trial):
    """Over rows drawn from the prior, the estimate uses all that p says about x.

    The error x - E(x | p) is uncorrelated with the estimate and with p.
    """
    d = trial.problem.P.shape[1]
    rng = np.random.default_rng(1)
    r = np.exp(rng.uniform(-1.0, 1.0, 4000))
    F = trial.problem.F
    X = np.sqrt(r)[:, None] * trial.belief.rows.draw((len(r), d), rng)
    P = X @ F + rng.standard_normal(X.shape) @ np.linalg.cholesky(F).T
    X_hat = trial.estimate(Problem(P, r, F))
    for name, value in (("estimate", X_hat), ("p", P)):
        products = np.einsum("ik,il->ikl", X - X_hat, value)
        means, spread = products.mean(axis=0), products.std(axis=0)
        z = np.abs(means / (spread / np.sqrt(len(r)) + 1e-300))
        entry = k, l = np.unravel_index(z.argmax(), z.shape)  # noqa: E741
        require(
            z.max() < 5,
            f"over {len(r)} rows from the prior, the mean of (x - x_hat)_{k} times "
            f"{name}_{l} is {means[entry]:.3g}, {z[entry]:.3g} standard errors from "
            "zero: information is left unused, or believed that is not there",
        )


THEORY_CHECKS = (
    promise_optimality,
    promise_penalty,
    promise_limits,
    promise_jacobian,
    promise_jacobian_symmetric,
    promise_lipschitz,
    promise_tweedie,
    promise_nishimori,
)
