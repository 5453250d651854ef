"""Checks of the mathematics: the right minimiser or posterior mean, the right Jacobian, the error that is predicted."""

import copy

import numpy as np

from ._contract_checks import check
from ._trials import Problem
from .amp import biased_low_rank_amp
from .beliefs import Penalty, Prior
from .denoisers import Denoiser
from .laws import DiscreteBias, EmpiricalRows, GaussianRows, scaled_rows
from .metrics import normalised_mse
from .state_evolution import start_overlap, state_evolution


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
    return bool(trial.limits) or (
        _has_penalty(trial) and isinstance(strength, float | int)
    )


def _penalties(trial, X, r):
    """Return g(x_i / sqrt(r_i)) for each row: by the belief, or else by the denoiser itself."""
    if trial.belief is not None:
        return np.asarray(trial.belief.value(X / np.sqrt(r)[:, None]))
    return np.array(
        [
            trial.denoiser.penalty(x[None], np.array([s]))
            for x, s in zip(X, r, strict=True)
        ]
    )


def _objectives(trial, X):
    """Return `eq:Gadef-row` for each row of `X`."""
    P, r, F = trial.problem.copies()
    return (
        np.einsum("ik,kl,il->i", X, F, X) / 2
        - (P * X).sum(axis=1)
        + _penalties(trial, X, r)
    )


@check("06_denoisers.html#denoisers-rows", _has_penalty)
def check_optimality(trial):
    """The estimate minimises x F x^T / 2 - p x^T + g(x / sqrt(r)): no small step lowers it."""
    P, r, F = trial.problem.copies()
    X = trial.estimate()
    d = X.shape[1]
    here, scale = (
        _objectives(trial, X),
        np.abs(X).max(axis=1) + np.abs(P).max(axis=1) + 1e-12,
    )
    assert np.isfinite(here).all(), (
        f"row {np.argmin(np.isfinite(here))}: the penalty of the estimate {X[np.argmin(np.isfinite(here))].round(4)} "
        "is infinite: it is not allowed"
    )
    signs = np.sign(np.random.default_rng(0).standard_normal((4, d)))
    root, project = (
        np.sqrt(r)[:, None],
        trial.belief.project if trial.belief is not None else lambda U: U,
    )
    for step in (1e-4, 1e-3, 0.1):
        for direction in (*np.eye(d), *-np.eye(d), *signs, "to zero"):
            move = -X if isinstance(direction, str) else scale[:, None] * direction
            there = project((X + step * move) / root) * root
            drop = here - _objectives(trial, there)
            worst = np.argmax(drop - 1e-9 * (np.abs(here) + scale**2))
            assert drop[worst] <= 1e-9 * (abs(here[worst]) + scale[worst] ** 2), (
                f"row {worst}, p = {P[worst].round(3)}, r = {r[worst]:.3g}: the objective is {here[worst]:.6g} at the "
                f"estimate {X[worst].round(4)}, but {here[worst] - drop[worst]:.6g} at {there[worst].round(4)}. "
                "Is every factor of the penalty right, and does penalty() agree with estimate()?"
            )


@check("06_denoisers.html#denoisers-own", _has_penalty)
def check_penalty(trial):
    """penalty(X, r) is the sum over the rows of g(x_i / sqrt(r_i)), for the g that estimate() minimises."""
    P, r, F = trial.problem.copies()
    X = trial.estimate()
    _check_convexity(trial)
    if trial.belief is not None:
        # among the latter, some are not allowed
        for text, rows in (("the estimates", X), ("the noisy rows P", P)):
            each = _penalties(trial, rows, r)
            value, first = (
                trial.denoiser.penalty(rows[:n].copy(), r[:n].copy()) for n in (None, 1)
            )
            assert np.isclose(value, each.sum(), rtol=1e-8, atol=1e-12), (
                f"penalty is {value:.6g} for {text}, the sum of g(x_i / sqrt(r_i)) is {each.sum():.6g}; for the first "
                f"row alone, x = {rows[0].round(4)}, r = {r[0]:.3g}, it is {first:.6g} and g = {each[0]:.6g}"
            )
        return
    value = trial.denoiser.penalty(X.copy(), r.copy())
    alone = _penalties(trial, X, r).sum()
    assert np.isclose(value, alone), (
        f"penalty is {value:.6g} for all rows, {alone:.6g} as the sum over single rows"
    )
    stretched = trial.denoiser.penalty(2 * X, 4 * r)
    assert np.isclose(value, stretched), (
        f"penalty(X, r) = {value:.6g}, but penalty(2 X, 4 r) = {stretched:.6g}: the rows u = x / sqrt(r) are the same"
    )


def _check_convexity(trial):
    """Ask whether g(x / sqrt(r)) - c |x|^2 / 2 is convex from p to 2p, where it is finite, if convexity(r) = c > 0."""
    P, r, _ = trial.problem.copies()
    c = trial.denoiser.convexity(r.copy())
    start, middle, end = (
        _penalties(trial, factor * P, r) for factor in (1.0, 1.5, 2.0)
    )
    bend = (start + end) / 2 - middle - c / 8 * (P**2).sum(axis=1)
    i = np.where(np.isfinite(bend), bend, 0).argmin()
    assert c == 0 or not bend[i] < -1e-9 * middle[i], (
        f"convexity(r) = {c:.4g} is too large for row {i}, r = {r[i]:.3g}: g(x / sqrt(r)) - {c:.4g} |x|^2 / 2 is not "
        "convex in x. One number has to hold for every row"
    )


@check("06_denoisers.html#denoisers-ridge", _has_limits)
def check_limits(trial):
    """The estimate becomes what it must when a parameter goes to an end of its range."""
    if not trial.limits:
        return _check_strength(trial)
    P, r, F = trial.problem.copies()
    plain = np.linalg.solve(F, P.T).T
    for limit in trial.limits:
        X = np.asarray(trial.make(**limit.changes).estimate(*trial.problem.copies()))
        expected = limit.expected(*trial.problem.copies())
        scale = np.abs(expected).max() or np.abs(plain).max()
        i = np.abs(X - expected).max(axis=1).argmax()
        assert np.abs(X - expected).max() <= limit.tolerance * scale, (
            f"{limit.text}. With {limit.changes}, row {i} (p = {P[i].round(3)}, r = {r[i]:.3g}) is estimated as "
            f"{X[i].round(4)}, expected {expected[i].round(4)}"
        )


def _check_strength(trial):
    """Without a stated belief: a larger strength means a smaller penalty and a worse fit; a huge one, the smallest."""
    P, r, F = trial.problem.copies()
    fits, values = [], []
    for factor in (1e-6, 1.0, 1e6):
        changed = copy.copy(trial.denoiser)
        changed.strength = factor * trial.denoiser.strength
        X = changed.estimate(*trial.problem.copies())
        values.append(trial.denoiser.penalty(X.copy(), r.copy()))
        fits.append(np.vdot(X @ F, X) / 2 - np.vdot(P, X))
    slack = 1e-6 * (np.abs(fits).max() + values[1])
    assert values[2] <= values[1] + slack and values[1] <= values[0] + slack, (
        f"the penalty at strengths 1e-6, 1 and 1e6 times the given one is {', '.join(f'{v:.4g}' for v in values)}: "
        "it should fall as the strength grows"
    )
    assert fits[0] <= fits[1] + slack and fits[1] <= fits[2] + slack, (
        f"x F x / 2 - p x at strengths 1e-6, 1 and 1e6 times the given one is {', '.join(f'{v:.4g}' for v in fits)}: "
        "it should rise as the strength grows"
    )
    assert values[2] <= 1e-3 * values[1] + slack, (
        f"at a million times the strength the penalty is still {values[2]:.4g}, at the given one {values[1]:.4g}"
    )


@check("06_denoisers.html#def-denoisers-jacobian")
def check_jacobian(trial):
    """mean_jacobian[k, l] is the mean of d estimate_l / d P_k, as central differences find it."""
    fine, kinks = _difference_jacobian(trial, trial.problem)
    tolerance = 1e-4 * (np.abs(fine).max() + 1e-12) + kinks
    _compare_jacobian(
        "mean_jacobian", trial.mean_jacobian(), fine, tolerance, len(trial.problem.r)
    )
    _compare_jacobian(
        "denoise(P, r, F)[1]", trial.denoise()[1], fine, tolerance, len(trial.problem.r)
    )


def _compare_jacobian(name, given, fine, tolerance, N):
    """Raise unless `given`, the answer of the method `name` for N rows, is `fine`."""
    assert given.shape == fine.shape, (
        f"{name} has shape {given.shape}, expected {fine.shape}"
    )
    error = np.abs(given - fine)
    k, l = np.unravel_index(
        np.where(np.isfinite(error), error, np.inf).argmax(), given.shape
    )  # noqa: E741
    hints = {
        "its transpose fits: [k, l] is d estimate_l / d P_k": given.T,
        "its negative fits": -given,
        "it fits after division by N: the Jacobian is a mean over the rows, not a sum": given
        / N,
        "it fits after multiplication by N: it was divided by N twice": given * N,
    }
    fitting = [
        hint
        for hint, value in hints.items()
        if (np.abs(value - fine) <= tolerance).all()
    ]
    assert (error <= tolerance).all(), (
        f"{name}[{k}, {l}] is {given[k, l]:.6g}, central differences of estimate give {fine[k, l]:.6g}"
        + "".join(f"; {hint}" for hint in fitting[:1])
    )


def _difference_jacobian(trial, problem):
    """Return `(jacobian, kinks)` from two step sizes: where they disagree, a kink of the estimate is within reach."""
    size = np.abs(problem.P).max()
    fine, coarse = (
        Denoiser.difference_jacobian(trial.denoiser, *problem.copies(), step)
        for step in (1e-6 * size, 1e-5 * size)
    )
    return fine, 2 * np.abs(fine - coarse).max()


@check("06_denoisers.html#denoisers-jacobian")
def check_jacobian_symmetric(trial):
    """Minimisers and posterior means are gradients of convex functions of p: symmetric Jacobians, eigenvalues >= 0."""
    # a row known for certain has a Jacobian of round-off alone
    typical = np.abs(trial.mean_jacobian()).max()
    for text, problem in (
        ("mean", trial.problem),
        *(
            (f"row {i}'s", trial.problem.rows([i]))
            for i in range(len(trial.problem.r))[:3]
        ),
    ):
        J = trial.mean_jacobian(problem)
        scale = np.abs(J).max() + 1e-3 * typical + 1e-12
        # J may come from differences across a kink
        slack = 1e-5 * scale + _difference_jacobian(trial, problem)[1]
        assert np.abs(J - J.T).max() <= slack, (
            f"the {text} Jacobian is not symmetric: {J.round(4).tolist()}"
        )
        smallest = np.linalg.eigvalsh((J + J.T) / 2)[0]
        assert smallest >= -slack, (
            f"the {text} Jacobian has the negative eigenvalue {smallest:.3g}"
        )


@check("06_denoisers.html#prop-denoisers-lipschitz")
def check_lipschitz(trial):
    """The estimate is a Lipschitz function of p: it has no jumps, and a convex penalty bounds its slope."""
    P, r, F = trial.problem.copies()
    root = np.linalg.cholesky(F)
    ends = P, np.roll(P, 1, axis=0)
    size = np.linalg.norm(ends[1] - ends[0], axis=1)

    def change(s, t):
        """Return |x_t - x_s| in the norm of F between two points of each segment."""
        points = (
            trial.estimate(Problem(ends[0] + u[:, None] * (ends[1] - ends[0]), r, F))
            for u in (s, t)
        )
        return np.linalg.norm(np.subtract(*points) @ root, axis=1)

    grid = np.linspace(0, 1, 17)
    changes = np.array(
        [
            change(np.full(len(P), s), np.full(len(P), t))
            for s, t in zip(grid, grid[1:], strict=False)
        ]
    )
    # |p - p'| in the norm of F^-1
    lengths = np.linalg.norm(np.linalg.solve(root, (ends[1] - ends[0]).T), axis=0)
    slope = (changes * 16 / lengths).max()
    low = grid[changes.argmax(axis=0)]
    high = low + 1 / 16
    # a jump stays in one of the two halves for ever; a slope is halved each time
    for _ in range(26):
        middle = (low + high) / 2
        first = change(low, middle) > change(middle, high)
        low, high = np.where(first, low, middle), np.where(first, middle, high)
    left = change(low, high)
    i = left.argmax()
    # of an estimate that does not move at all
    round_off = 1e-9 * np.linalg.norm(trial.estimate() @ root, axis=1).max()
    assert left[i] <= 1e-3 * changes.max() + round_off, (
        f"row {i}, r = {r[i]:.3g}: the estimate jumps by {left[i]:.3g} (in the norm of F) while p moves by "
        f"{(high - low)[i] * size[i]:.1g}, near p = {(ends[0] + low[:, None] * (ends[1] - ends[0]))[i].round(4)}"
    )
    if isinstance(trial.belief, Penalty) and trial.belief.convex:
        assert slope <= 1 + 1e-6, (
            f"the slope |x - x'|_F / |p - p'|_(F^-1) reaches {slope:.4g}; for a convex penalty it is at most 1"
        )
    return f"largest slope |x - x'|_F / |p - p'|_(F^-1): {slope:.3g}"


@check("06_denoisers.html#thm-denoisers-tweedie", _has_prior)
def check_tweedie(trial):
    """The estimate is the gradient of the log partition function of the prior by p (Tweedie's formula)."""
    P, r, F = trial.problem.copies()
    X, step = trial.estimate(), 1e-5 * np.abs(P).max()
    gradient = np.stack(
        [
            (
                trial.belief.log_partition(P + h, r, F)
                - trial.belief.log_partition(P - h, r, F)
            )
            / (2 * step)
            for h in step * np.eye(P.shape[1])
        ],
        axis=1,
    )
    error = np.abs(X - gradient).max(axis=1)
    i = np.where(np.isfinite(error), error, np.inf).argmax()
    assert error[i] <= 1e-5 * (1 + np.abs(gradient).max()), (
        f"row {i}, p = {P[i].round(3)}, r = {r[i]:.3g}: the estimate is {X[i].round(5)}, the posterior mean "
        f"{gradient[i].round(5)}"
    )


@check("17_the_posterior_mean.html#posterior-nishimori", _has_prior)
def check_nishimori(trial):
    """Over rows drawn from the prior, the error x - E(x | p) is uncorrelated with the estimate and with p."""
    d = trial.problem.P.shape[1]
    rng = np.random.default_rng(1)
    r = np.exp(rng.uniform(-1.0, 1.0, 4000))
    F = trial.problem.F
    X = np.sqrt(r)[:, None] * trial.belief.rows.draw((len(r), d), rng)
    P = X @ F + rng.standard_normal(X.shape) @ np.linalg.cholesky(F).T
    X_hat = trial.estimate(Problem(P, r, F))
    for name, value in (("estimate", X_hat), ("p", P)):
        products = np.einsum("ik,il->ikl", X - X_hat, value)
        z = products.mean(axis=0) / (products.std(axis=0) / np.sqrt(len(r)) + 1e-300)
        k, l = np.unravel_index(np.abs(z).argmax(), z.shape)  # noqa: E741
        assert np.abs(z).max() < 5, (
            f"over {len(r)} rows from the prior, the mean of (x - x_hat)_{k} times {name}_{l} is "
            f"{products.mean(axis=0)[k, l]:.3g}, {abs(z[k, l]):.3g} standard errors from zero: information "
            "is left unused, or believed that is not there"
        )


class _Recorder(Denoiser):
    """A denoiser that keeps the rows it is given."""

    def __init__(self, denoiser):
        self.denoiser, self.precision, self.seen = denoiser, denoiser.precision, []

    def estimate(self, P, r, F):
        return self.denoiser.estimate(P, r, F)

    def denoise(self, P, r, F):
        self.seen.append(P)
        return self.denoiser.denoise(P.copy(), r.copy(), F.copy())

    def penalty(self, X, r):
        return self.denoiser.penalty(X, r)

    def convexity(self, r):
        return self.denoiser.convexity(r)


@check("10_state_evolution.html#thm-se-noise")
def check_state_evolution(trial):
    """In AMP at m = 4n, what the denoiser is given is p = x M + N(0, Q), and the error is the one predicted."""
    wanted, given = (trial.belief or trial.denoiser).precision, trial.denoiser.precision
    assert given == wanted, (
        f'precision is "{given}" and should be "{wanted}": AMP would hand over the wrong F'
    )
    d, (m, n), n_iter = trial.problem.P.shape[1], (2000, 500), 4
    rng = np.random.default_rng(2)
    law = trial.belief.rows if trial.belief is not None else GaussianRows(4.0)
    # weak rows are made frequent: AMP finds a signal if E(r u_k^2)^2 > sqrt(m / n) = 2,
    # and otherwise magnifies chance
    level = max(
        0.0, np.log(2 / np.mean(law.draw((4000, d), np.random.default_rng(3)) ** 2))
    )
    bias = DiscreteBias([level - 0.5, level + 0.5])
    laws = scaled_rows(d, rows_u=law, rows_v=law, bias_u=bias, bias_v=bias)
    (r_u, A), (r_v, B) = laws[0].draw(m, rng), laws[1].draw(n, rng)
    B0 = 0.5 * (B + B.std() * rng.standard_normal(B.shape))
    Y = A @ B.T / np.sqrt(m) + rng.standard_normal((m, n))

    u, v = _Recorder(trial.denoiser), _Recorder(trial.denoiser)
    run = biased_low_rank_amp(Y, r_u, r_v, (u, v), B0=B0, n_iter=n_iter)
    starts = [B0, *(it.B for it in run.iterates)]
    for it, P_a, P_b, B_k in zip(run.iterates, u.seen, v.seen, starts, strict=False):
        for side, P, X, other, estimate in (
            ("A", P_a, A, B, B_k),
            ("B", P_b, B, A, it.A),
        ):
            far = _standard_errors(
                P - X @ (other.T @ estimate / m), estimate.T @ estimate / m
            )
            assert far < 6, (
                f"m = {m}, n = {n}: in iteration {it.k} the noise in the rows given to the denoiser of {side} has a "
                f"covariance that is {far:.3g} standard errors away from Q. The Onsager term, which is made of "
                "mean_jacobian, takes away too little or too much"
            )
    evolution = state_evolution(
        EmpiricalRows(r_u, A),
        EmpiricalRows(r_v, B),
        (u, v),
        beta=m / n,
        **start_overlap(B, B0, m),
        n_iter=n_iter,
        n_samples=4 * m,
        rng=rng,
    )
    predicted = evolution.iterates[-1].nmse
    measured = normalised_mse(A, B, run.A, run.B)
    assert abs(measured - predicted) <= 0.25 * max(predicted, 0.2), (
        f"m = {m}, n = {n}: after {n_iter} iterations state evolution predicts the error {predicted:.3f}, AMP has "
        f"{measured:.3f}: does the denoiser see anything but P, r and F?"
    )
    return f"error after {n_iter} iterations: {predicted:.3f} predicted, {measured:.3f} measured"


def _standard_errors(noise, Q):
    """Return how far the covariance of the rows of `noise` is from `Q`, in standard errors of an entry."""
    w, V = np.linalg.eigh(Q)
    # an estimate that is all zeros has Q = 0, and must have no noise
    scale = np.maximum(w, 1e-9 * w[-1] + 1e-300)
    white = noise @ V / np.sqrt(scale)
    return np.abs(white.T @ white / len(white) - np.diag(w / scale)).max() / np.sqrt(
        2 / len(white)
    )


THEORY_CHECKS = (
    check_optimality,
    check_penalty,
    check_limits,
    check_jacobian,
    check_jacobian_symmetric,
    check_lipschitz,
    check_tweedie,
    check_nishimori,
    check_state_evolution,
)
