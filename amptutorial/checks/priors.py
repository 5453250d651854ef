"""Checks of a posterior mean against its prior, or against any prior at all."""

import itertools

import numpy as np

from .beliefs import Prior
from .contract import check
from .trials import Problem, observe
from .verdict import require, short

ONE_PRIOR = 1e-5  # how far log partition functions may differ
F_POWERS = 1, 0.85, 0.5  # of F, for other condition numbers


def has_prior(trial):
    """Return whether the belief of a trial is a `Prior`."""
    return isinstance(trial.belief, Prior)


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


def require_one_prior(trial):
    """Raise unless estimates and Jacobians at different F belong to one prior.

    Only then has the log partition function the same value on every way.
    """
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


@check("05_denoisers.html#thm-denoisers-tweedie", has_prior)
def promise_tweedie(trial):
    """The estimate is the gradient by p of the log partition function of the prior.

    This is Tweedie's formula for the posterior mean.
    """
    P, r, F = trial.problem.copies()
    X = trial.estimate()
    size = np.abs(P).max(axis=1) + np.sqrt(np.abs(F).max())
    gradient, coarse = (
        _gradient(trial.belief.log_partition, trial.problem, step * size)
        for step in (1e-5, 1e-4)
    )
    error = np.abs(X - gradient).max(axis=1)
    # where differences disagree they cannot tell
    tolerance = 1e-5 * (np.sqrt(r) + np.abs(gradient).max(axis=1))
    tolerance += np.abs(gradient - coarse).max(axis=1)
    i = np.where(np.isfinite(error), error / tolerance, np.inf).argmax()
    require(
        error[i] <= tolerance[i],
        f"row {i}, p = {short(P[i])}, r = {r[i]:.3g}: the estimate is {short(X[i])}, "
        f"the posterior mean {short(gradient[i])}",
    )


def _gradient(log_partition, problem, steps):
    """Return the gradient by p of each row, by central differences with its step."""
    P, r, F = problem.copies()
    columns = [
        log_partition(P + np.outer(steps, axis), r, F)
        - log_partition(P - np.outer(steps, axis), r, F)
        for axis in np.eye(P.shape[1])
    ]
    return np.stack(columns, axis=1) / (2 * steps[:, None])


@check("05_denoisers.html#denoisers-nishimori", has_prior)
def promise_nishimori(trial):
    """Over rows drawn from the prior, the estimate uses all that p says about x.

    The error x - E(x | p) is uncorrelated with the estimate and with p.
    """
    d = trial.problem.P.shape[1]
    rng = np.random.default_rng(1)
    r = np.exp(rng.uniform(-1.0, 1.0, 4000))
    F = trial.problem.F
    X, P = observe(trial.belief.rows.draw((len(r), d), rng=rng), r, F, rng=rng)
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


PRIOR_CHECKS = (promise_tweedie, promise_nishimori)
