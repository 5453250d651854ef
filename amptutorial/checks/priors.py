"""Checks of a posterior mean against its prior, or against any prior at all."""

import numpy as np

from .beliefs import Prior
from .contract import check
from .trials import Problem, observe
from .verdict import require, short


def has_prior(trial):
    """Return whether the belief of a trial is a `Prior`."""
    return isinstance(trial.belief, Prior)


def require_one_prior(trial):
    """Raise unless estimates at different F are posterior means under one prior.

    The partition function Z(p, F) = E exp(p x^T - x F x^T / 2) solves a heat equation.
    Its gradient by p says for every vector g that the derivative of E(x | p) by F in
    the direction g^T g is that of -E((x g^T)^2 | p) / 2 by p.
    """
    P, r, F = trial.problem.rows(slice(16)).copies()
    P *= np.linspace(0.05, 1, len(P))[:, None]  # the parts of a prior compete near zero
    d = len(F)
    g = np.random.default_rng(7).standard_normal(d)
    g /= np.linalg.norm(g)

    def square(p, r_i):
        """Return E((x g^T)^2 | p) for a single row."""
        row = Problem(p[None], np.array([r_i]), F)
        return g @ trial.mean_jacobian(row) @ g + (trial.estimate(row)[0] @ g) ** 2

    def both(step):
        """Return the two derivatives by central differences, each (N, d)."""
        turn = step * F.max() * np.outer(g, g)
        left, right = (trial.estimate(Problem(P, r, F + s * turn)) for s in (-1, 1))
        h = step * (np.abs(P).max(axis=1) + np.sqrt(F.max()))
        by_p = [
            [(square(p + k * e, s) - square(p - k * e, s)) / (2 * k) for e in np.eye(d)]
            for p, s, k in zip(P, r, h, strict=True)
        ]
        return (right - left) / (2 * step * F.max()), -np.array(by_p) / 2

    fine, coarse = np.array(both(1e-3)), np.array(both(2e-3))
    # an estimate that does not depend on F at all has round-off left
    size = np.abs(trial.estimate(Problem(P, r, F))).max(axis=1) / F.max()
    scale = np.abs(fine).max(axis=(0, 2)) + 0.01 * size
    error = np.abs(fine[0] - fine[1]).max(axis=1)
    tolerance = 1e-3 * scale + 2 * np.abs(fine - coarse).max(axis=(0, 2)) + 1e-12
    i = (error / tolerance).argmax()
    require(
        error[i] <= tolerance[i],
        f"row {i}, p = {short(P[i])}, r = {r[i]:.3g}: as F grows along {short(g)} the "
        f"estimate changes by {short(fine[0, i])}; the posterior mean of one prior, "
        f"with this Jacobian, by {short(fine[1, i])}. Does F enter the evidence of "
        "each part of the prior as it should?",
    )


@check("05_denoisers.html#thm-denoisers-tweedie", has_prior)
def promise_tweedie(trial):
    """The estimate is the gradient by p of the log partition function of the prior.

    This is Tweedie's formula for the posterior mean.
    """
    problem = trial.problem
    P, r, _ = problem.copies()
    X = trial.estimate(problem)
    size = np.abs(P).max(axis=1) + np.sqrt(np.abs(problem.F).max())
    gradient, coarse = (
        _gradient(trial.belief.log_partition, problem, step * size)
        for step in (1e-5, 1e-4)
    )
    error = np.abs(X - gradient).max(axis=1)
    # where differences disagree they cannot tell
    tolerance = 1e-5 * (np.sqrt(r) + np.abs(gradient).max(axis=1))
    tolerance += np.abs(gradient - coarse).max(axis=1)
    i = np.where(np.isfinite(error), error / tolerance, np.inf).argmax()
    require(
        error[i] <= tolerance[i],
        f"row {i}, p = {short(P[i])}, r = {r[i]:.3g}: the estimate is "
        f"{short(X[i])}, the posterior mean {short(gradient[i])}",
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
