"""What is asked of a denoiser whose belief nobody has stated: that it has one.

A minimiser has to minimise its own penalty; the estimates and Jacobians of a posterior
mean have to belong to one prior.
"""

import itertools
from functools import partial

import numpy as np
from scipy.optimize import minimize

from .verdict import require, require_rows, short

SHARES = 1e-4, 1e-3, 0.1, -1e-4, -1e-3, -0.1  # of a step, that may lead to less
ONE_PRIOR = 1e-5  # how far log partition functions may differ
# so far from the minimiser, in its own length, an iteration may have ended, or is what
# single precision leaves
NEAR, SINGLE = 1e-2, 1e-6
FACTORS = ". Has penalty() every factor of the penalty that estimate() minimises?"


def advice(size, told="", far=""):
    """Return what to look for if a minimiser is off by `size` times its length.

    It follows what is `told`; where the minimiser is too far for it, `far` does.

    Examples
    --------
    >>> advice(0.00012)
    '. It is 0.00012 of its length away: has an iteration ended too early?'
    """
    single = " Is a number of single precision?" if size < SINGLE else ""
    near = f". It is {size:.2g} of its length away: has an iteration ended too early?"
    return told + (near + single if size < NEAR else far)


def require_minima(belief, problem, X, where):
    """Raise if some step lowers the objective of a row by more than round-off."""
    terms = _terms(belief, problem, X)
    here = terms.sum(axis=0)
    i = np.argmin(np.isfinite(here))
    text = f"{where}row {i}: the penalty of the estimate {short(X[i])} is infinite"
    require(np.isfinite(here[i]), f"{text}: such a row is not allowed")
    # a solver may end when steps are small beside p
    slack = (1e-6 if where else 1e-9) * np.abs(terms).sum(axis=0)
    slack += 1e-12 * (problem.P**2).sum(axis=1) / np.linalg.norm(problem.F)
    for share, step in itertools.product(SHARES, _steps(problem, X)):
        there = belief.nearest(X + share * step, problem.r)
        drop = here - _terms(belief, problem, there).sum(axis=0)
        i = np.argmax(drop - slack)
        if drop[i] > slack[i]:
            best, lowest = _lowest(belief, problem.rows([i]), (X[i], there[i]))
            told = f", where the objective is {lowest:.8g} and not {here[i]:.8g}"
            hint = partial(advice, told=told, far=FACTORS)
            require_rows(f"{where}estimate", X, problem, best, np.zeros(1), [i], hint)


def _lowest(belief, problem, starts):
    """Return the row (1, d) that a search finds lowest, and its objective.

    The search needs no derivative.
    """

    def objective(x):
        return _terms(belief, problem, belief.nearest(x[None], problem.r)).sum()

    precise = {"method": "Powell", "options": {"xtol": 1e-9, "ftol": 1e-13}}
    with np.errstate(all="ignore"):
        found = [minimize(objective, x, **precise).x for x in starts]
    best = min([*starts, *found], key=objective)
    return belief.nearest(best[None], problem.r), objective(best)


def _terms(belief, problem, X):
    """Return the three terms of `eq:Gadef-row` for each row of `X`, shape (3, N)."""
    P, r, F = problem.copies()
    penalty = belief.value(X / np.sqrt(r)[:, None])
    return np.array([((X @ F) * X).sum(axis=1) / 2, -(P * X).sum(axis=1), penalty])


def _steps(problem, X):
    """Return steps of all rows: to zero, along an axis, a diagonal, a mode of F."""
    signs = np.sign(np.random.default_rng(0).standard_normal((4, X.shape[1])))
    ways = [*np.eye(X.shape[1]), *signs, np.linalg.eigh(problem.F)[1][:, 0]]
    size = np.abs(X).max(axis=1)
    # an estimate at a tiny r is much shorter than p
    lengths = size + np.abs(problem.P).max(axis=1) + 1e-12, size
    return [-X, *(np.outer(length, way) for length in lengths for way in ways)]


def mean_log_partition(denoiser, P, r, F, power=1, n_nodes=64):
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
    J = trial.denoiser.mean_jacobian(*trial.problem.copies())
    is_covariance = np.allclose(J, J.T, 1e-4, 1e-5 * np.abs(J).max())
    require(is_covariance, f"the mean Jacobian is not symmetric: {J.round(4).tolist()}")
    P, r, F = trial.problem.rows(slice(16)).copies()
    P *= np.linspace(0.05, 1, len(P))[:, None]  # the parts of a prior compete near zero
    middle, (w, V) = len(P) // 2, np.linalg.eigh(F)
    # a mean would hide what is small in one row
    for some, other in ((slice(None), w), (slice(middle, middle + 1), np.sqrt(w))):
        p, s, G = P[some], r[some], (V * other) @ V.T
        ways = [mean_log_partition(trial.denoiser, p, s, G, power) for power in (1, 2)]
        require(
            abs(ways[0] - ways[1]) <= ONE_PRIOR * (1 + abs(ways[0])),
            f"the log partition function, integrated from the answers for {len(s)} "
            f"rows, is {ways[0]:.7g} if p grows as F does, and {ways[1]:.7g} if as the "
            f"square; p = {short(p[0])}, r = {s[0]:.3g} in the first row. Both are one "
            "for the posterior mean of one prior. Has the evidence of each part half a "
            "log determinant, and m F m^T / 2 of a mean m? Is a share 0 or 1?",
        )
