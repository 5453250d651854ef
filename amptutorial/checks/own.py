"""What is asked of a denoiser whose belief nobody has stated: that it has one.

A minimiser has to minimise its own penalty; the estimates and Jacobians of a posterior
mean have to belong to one prior.
"""

import itertools
from dataclasses import replace

import numpy as np

from .verdict import require, row_of, short, short_pair

ONE_PRIOR = 1e-5  # how far log partition functions may differ
F_POWERS = 1, 0.85, 0.5  # of F, for other condition numbers
FACTORS = (
    "Is every factor of the penalty right, and does penalty() agree with estimate()?"
)
EARLY = f"That is little: has an iteration ended too early? Otherwise: {FACTORS}"


def require_minima(trial, problem, where):
    """Raise if some step lowers the objective of a row by more than round-off."""
    P, X = problem.P, trial.estimate(problem)
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
            f"{where}row {i}, {row_of(problem, i)}: the objective is {here[i]:.6g} at "
            f"the estimate {estimate}, but {here[i] - drop[i]:.6g} at {better}. "
            + (EARLY if drop[i] < 1e-4 * abs(here[i]) else FACTORS)
        )


def _terms(trial, problem, X):
    """Return the three terms of `eq:Gadef-row` for each row of `X`, shape (3, N)."""
    P, r, F = problem.copies()
    quadratic = np.einsum("ik,kl,il->i", X, F, X) / 2
    return np.array([quadratic, -(P * X).sum(axis=1), trial.penalties(X, r)])


def _neighbours(trial, problem, X):
    """Yield rows near the estimates `X`: along an axis, a diagonal, a mode, to zero."""
    P, r, F = problem.copies()
    d, root = X.shape[1], np.sqrt(r)[:, None]
    signs = np.sign(np.random.default_rng(0).standard_normal((4, d)))
    mode = np.linalg.eigh(F)[1][:, 0]  # the flattest
    ways = np.vstack([np.eye(d), -np.eye(d), signs, mode, -mode])
    size = np.abs(X).max(axis=1)
    far = size + np.abs(P).max(axis=1) + 1e-12
    # an estimate at a tiny r is much shorter than p
    lengths = far, np.where(size < 0.01 * far, size, far)
    moves = [np.outer(length, way) for length in lengths for way in ways]
    for step in (1e-4, 1e-3, 0.1):
        for move in (*moves, -X):
            U = (X + step * move) / root
            yield (U if trial.belief is None else trial.belief.project(U)) * root


def require_own_penalty(trial):
    """Raise unless `penalty` is a sum over rows u = x / sqrt(r), and as convex as said.

    For the convexity each row is tried from p to 2p, where g is finite.
    """
    (P, r, _), X = trial.problem.copies(), trial.estimate()
    ask, alone = trial.denoiser.penalty, trial.penalties(X, r).sum()
    for text, value in {
        "penalty(X, r)": ask(X.copy(), r.copy()),
        "of the same rows u = x / sqrt(r), penalty(2 X, 4 r)": ask(2 * X, 4 * r),
    }.items():
        text = f"{text} is {value:.6g}, and the sum over single rows {alone:.6g}"
        require(np.isclose(value, alone), text)
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


def mean_log_partition(denoiser, P, r, F, power=1, n_nodes=96):
    """Return the mean over rows of log E exp(p x^T - x F x^T / 2), by the denoiser.

    It is an integral over the way from (0, 0) to (p, F): by p its derivative is the
    posterior mean x, by F it is -E(x^T x | p) / 2, in which the Jacobian is the
    covariance of x. On the way p is multiplied by a `power` of what F is multiplied by.

    Examples
    --------
    >>> from amptutorial.denoisers import GaussianPosterior
    >>> P, r, F = np.ones((1, 1)), np.ones(1), np.eye(1)
    >>> value = mean_log_partition(GaussianPosterior(1.0), P, r, F)
    >>> bool(np.isclose(value, (1 / 2 - np.log(2)) / 2))
    True
    """
    nodes, weights = np.polynomial.legendre.leggauss(n_nodes)
    nodes, total = (nodes + 1) / 2, 0.0
    # most of it happens near zero, where F begins to tell rows apart
    for t, dt in zip(nodes**3, 3 * nodes**2 * weights / 2, strict=True):
        X, J = denoiser.denoise(t**power * P, r.copy(), t * F)
        by_p = power * t ** (power - 1) * np.vdot(P, X)
        by_F = -(len(P) * np.vdot(F, J) + np.vdot(X @ F, X)) / 2
        total += dt * (by_p + by_F) / len(P)
    return total


def one_prior(trial):
    """Estimates and Jacobians at different F belong to one prior.

    A Jacobian is then a covariance, and the log partition function has the same value
    on every way.
    """
    J = trial.mean_jacobian()
    is_covariance = np.allclose(J, J.T, 1e-4, 1e-5 * np.abs(J).max())
    require(is_covariance, f"the mean Jacobian is not symmetric: {J.round(4).tolist()}")
    P, r, F = trial.problem.rows(slice(16)).copies()
    P *= np.linspace(0.05, 1, len(P))[:, None]  # the parts of a prior compete near zero
    middle = len(P) // 2
    some = (slice(None), slice(0, 1), slice(middle, middle + 1))
    w, V = np.linalg.eigh(F)
    for rows, power in itertools.product(some, F_POWERS):
        problem = P[rows], r[rows], (V * w**power) @ V.T
        one, other = (mean_log_partition(trial.denoiser, *problem, k) for k in (1, 2))
        require(
            abs(one - other) <= ONE_PRIOR * (1 + abs(one)),
            "the log partition function, integrated from the answers for "
            f"{len(r[rows])} rows, is {one:.7g} if p grows as F does, and if it grows "
            f"as the square of that, {other:.7g}; p = {short(P[rows][0])} and "
            f"r = {r[rows][0]:.3g} in the first row. It is the same on every way for "
            "the posterior mean of one prior, with its covariance as Jacobian. Does F "
            "enter the evidence of each part of the prior as it should?",
        )


def lipschitz(trial):
    """The estimate is a Lipschitz function of p: it has no jumps.

    Where p moves far, the estimate moves by the sum of its slopes on the way.
    """
    (P, _, F), n, h = trial.problem.copies(), 100, 1e-5
    ways = np.linalg.qr(np.random.default_rng(0).standard_normal(F.shape))[0][:3]
    for way in 2 * P.std() * ways:

        def mean(t, way=way):
            at = replace(trial.problem, P=P + t * way)
            return trial.estimate(at).mean(axis=0)

        places, moved = (np.arange(n) + 0.5) / n, mean(1) - mean(0)
        slopes = np.mean([mean(t + h) - mean(t - h) for t in places], axis=0) / (2 * h)
        require(
            np.abs(moved - slopes).max() <= 0.02 * np.abs(moved).max() + 1e-9,
            f"while p moves by {short(way)} the estimate moves by {short(moved)} in "
            f"the mean over rows, and by its slopes {short(slopes)}: it jumps",
        )
