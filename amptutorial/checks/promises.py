"""The table of promises, and those of right answers in a few settings and in AMP.

Docstrings are what is promised. What every denoiser promises has a file of its own
(`amptutorial.checks.behaviour`). Here estimates, Jacobians and penalties are compared
with the answer of the belief (`amptutorial.checks.oracle`). Where nobody has stated
one, a minimiser has to minimise its own penalty, and the estimates and Jacobians of a
posterior mean have to belong to one prior.
"""

import itertools
from functools import partial

import numpy as np
from scipy.optimize import minimize

from .._validation import check_integer
from ..amp import biased_low_rank_amp, denoiser_input
from ..denoisers import Denoiser
from ..laws import DiscreteBias, EmpiricalRows, scaled_rows
from ..metrics import normalised_mse
from ..state_evolution import start_overlap
from ..state_evolution import state_evolution as predict
from . import behaviour
from .beliefs import Belief
from .oracle import answer, own_slopes, require_slopes
from .problems import ILL
from .report import Check, CheckReport, run_checks
from .right_answers import right_answers
from .trials import JACOBIANS, is_own, own_methods, trial_of
from .verdict import require, require_penalty, require_rows, short

SHARES = 1e-4, 1e-3, 0.1, -1e-4, -1e-3, -0.1  # of a step, that may lead to less
ONE_PRIOR = 1e-5  # how far log partition functions may differ
# so far from the minimiser, in its own length, an iteration may have ended, or is what
# single precision leaves
NEAR, SINGLE = 1e-2, 1e-6
FEWEST = 30  # rows of an estimate that make noise normal
FACTORS = ". Has penalty() every factor of the penalty that estimate() minimises?"


def _usual(trial):
    """Return the trial's problem, and what random problems are not: nearly singular.

    Where the penalty alone makes the minimum, an F that is not positive definite is one
    of them. A convexity that is round-off beside F makes none.
    """
    problem, few, r = trial.problem, trial.problem.rows(slice(12)), trial.problem.r
    problems = {"": problem, f"{ILL}: ": few.hard()[ILL]}
    if trial.states("value"):
        stated = trial.belief.convexity
        c = trial.denoiser.convexity(r.copy()) if stated is None else stated / r.max()
        if abs(c) >= 1e-9 * np.linalg.norm(problem.F):
            text = f"F with the eigenvalue {-c / 2:.2g}, convexity {c:.2g}: "
            problems[text] = few.indefinite(c)
    return problems


def optimality(trial):
    """The estimate minimises x F x^T / 2 - p x^T + g(x / sqrt(r))."""
    _require_right(trial, advice)


def tweedie(trial):
    """The estimate is the gradient by p of the log partition function of the prior.

    This is Tweedie's formula for the posterior mean.
    """
    _require_right(trial)


def _require_right(trial, hint=""):
    """Raise unless estimates are those of the belief, or minimise its penalty."""
    for where, problem in _usual(trial).items():
        X = trial.estimate(problem)
        if trial.states("log_partition") or trial.states("prox"):
            known, name = answer(trial, problem, X), f"{where}estimate"
            require_rows(name, X, problem, *known[:3], hint)
        else:
            _require_minima(trial.belief, problem, X, where)


def jacobian(trial):
    """mean_jacobian[k, l] is the mean of d estimate_l / d P_k.

    Central differences of the estimate find the same. If it is inherited, it is made of
    them.
    """
    for where, problem in _usual(trial).items():
        known = own_slopes(trial.denoiser, problem)
        for name in JACOBIANS:
            require_slopes(name, trial.denoiser, problem, known, where)
    is_inherited = not own_methods(trial.denoiser, JACOBIANS.values())
    return "mean_jacobian is inherited" if is_inherited else None


def penalty(trial):
    """penalty(X, r) is the sum over the rows of g(x_i / sqrt(r_i)).

    It is the same g that estimate() minimises.
    """
    text = "penalty is inherited: that of the base class is 0, as if there were none"
    require(is_own(trial.denoiser, "penalty"), text)
    require_penalty(trial.belief, trial.denoiser, trial.estimate(), trial.problem)


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


def _require_minima(belief, problem, X, where):
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


def state_evolution(trial):
    """In AMP at m = 4n, the denoiser is given p = x M + N(0, Q), as predicted.

    The error of the estimates is the predicted one as well.
    """
    wanted, stated = trial.belief.precision, trial.denoiser.precision
    text = f'precision is "{stated}" and should be "{wanted}": AMP would hand over the '
    require(stated == wanted, text + "wrong F")
    (m, n), n_iter, rng = (2000, 500), 4, np.random.default_rng(2)
    law_u, law_v = _laws_that_amp_can_find(trial)
    (r_u, A), (r_v, B) = law_u.draw(m, rng=rng), law_v.draw(n, rng=rng)
    B0 = 0.5 * (B + B.std() * rng.standard_normal(B.shape))
    Y = A @ B.T / np.sqrt(m) + rng.standard_normal((m, n))

    run = biased_low_rank_amp(Y, r_u, r_v, trial.denoiser, B0=B0, n_iter=n_iter)
    _require_predicted_noise(run, Y, (A, B), B0)
    laws = EmpiricalRows(r_u, A), EmpiricalRows(r_v, B)
    start = start_overlap(B, B0, m) | {"beta": m / n, "n_iter": n_iter}
    evolution = predict(*laws, trial.denoiser, **start, n_samples=m, rng=rng)
    predicted = evolution.iterates[-1].nmse
    measured = normalised_mse(A, B, run.A, run.B)
    require(
        abs(measured - predicted) <= 0.1 * max(predicted, 0.4),
        f"m = {m}, n = {n}: after {n_iter} iterations state evolution predicts the "
        f"error {predicted:.3f}, AMP has {measured:.3f}: does the denoiser see "
        "anything but P, r and F?",
    )
    told = f"{predicted:.3f} predicted, {measured:.3f} measured"
    return f"error after {n_iter} iterations: {told}"


def _laws_that_amp_can_find(trial):
    """Return laws of scaled rows of both sides, frequent enough to be found at m = 4n.

    AMP finds a signal if E(r u_k^2)^2 > sqrt(m / n) = 2, and otherwise magnifies
    chance. Rows that are weak are made frequent, until E(r u_k^2) is at least 4: right
    denoisers then have errors well below 1, and a wrong prediction shows.
    """
    rows = trial.belief.rows
    strength = np.mean(rows.draw((4000, trial.d), rng=np.random.default_rng(3)) ** 2)
    level = max(0.0, np.log(4 / strength))
    bias = DiscreteBias([level - 0.5, level + 0.5])
    return scaled_rows(trial.d, rows_u=rows, rows_v=rows, bias_u=bias, bias_v=bias)


def _require_predicted_noise(run, Y, truth, B0):
    """Raise unless the rows that denoisers see in AMP are p = x M + N(0, Q).

    Those of A and of B see them in turn, made from the last estimate of the other side;
    `truth` is the pair of the true A and B.
    """
    m, n = Y.shape
    estimates = [0 * truth[0], B0, *(X for it in run.iterates for X in (it.A, it.B))]
    gammas = (Gamma for it in run.iterates for Gamma in (it.Gamma_a, it.Gamma_b))
    for k, Gamma in enumerate(gammas):
        last, estimate = estimates[k : k + 2]
        X, other = truth[k % 2], truth[1 - k % 2]
        if _number_of_rows(estimate) < FEWEST:
            continue
        P = denoiser_input(Y.T if k % 2 else Y, estimate, last, Gamma, m)
        noise = P - X @ (other.T @ estimate / m)
        far = _standard_errors(noise, estimate.T @ estimate / m)
        require(
            far < 6,
            f"m = {m}, n = {n}: in iteration {k // 2} the noise in the rows given to "
            f"the denoiser of {'AB'[k % 2]} has a covariance that is {far:.3g} "
            "standard errors away from Q. The Onsager term, which is made of "
            "mean_jacobian, takes away too little or too much",
        )


def _number_of_rows(X):
    """Return how many rows of equal length would have the moments of those of `X`.

    The noise in a row of P is a sum over the rows of the other side's estimate, and
    normal where they are many.
    """
    squares = (X**2).sum(axis=1)
    return squares.sum() ** 2 / max((squares**2).sum(), 1e-300)


def _standard_errors(noise, Q):
    """Return how far the covariance of `noise` is from `Q`, in standard errors."""
    w, V = np.linalg.eigh(Q)
    # an estimate that is all zeros has Q = 0, and must have no noise
    scale = np.maximum(w, 1e-9 * w[-1] + 1e-300)
    white = noise @ V / np.sqrt(scale)
    far = np.abs(white.T @ white / len(white) - np.diag(w / scale)).max()
    return far / np.sqrt(2 / len(white))


def _has_own_prior(trial):
    return trial.belief.precision == "posterior" and not trial.states("log_partition")


ROWS, OWN = "05_denoisers.html#denoisers-rows", "05_denoisers.html#denoisers-own"
TWEEDIE = "05_denoisers.html#thm-denoisers-tweedie"
_TABLE = (
    Check(behaviour.shapes, ROWS),
    Check(behaviour.no_mutation, OWN),
    Check(behaviour.deterministic, OWN),
    Check(behaviour.row_independence, ROWS),
    Check(behaviour.hard_inputs, OWN),
    Check(behaviour.frequency_scaling, "05_denoisers.html#denoisers-frequency"),
    Check(behaviour.speed, OWN),
    Check(optimality, ROWS, lambda trial: trial.states("value")),
    Check(penalty, OWN, lambda trial: trial.states("value")),
    Check(tweedie, TWEEDIE, lambda trial: trial.states("log_partition")),
    Check(jacobian, "05_denoisers.html#def-denoisers-jacobian"),
    Check(one_prior, "05_denoisers.html#denoisers-jacobian", _has_own_prior),
    Check(right_answers, ROWS, lambda trial: trial.seed is not None),
    Check(state_evolution, "09_state_evolution.html#thm-se-noise"),
)
CHECKS = {check.name: check for check in _TABLE}


def check_denoiser(
    denoiser: Denoiser,
    *,
    belief: Belief | None = None,
    d: int = 3,
    n_rows: int = 40,
    rng: np.random.Generator | None = None,
) -> CheckReport:
    """Try every check that applies on random rows.

    Parameters
    ----------
    denoiser : Denoiser
    belief : amptutorial.checks.beliefs.Penalty or Prior, optional
        What the denoiser should believe. Without it a minimiser is checked against its
        own `penalty`, and a posterior mean only for what all of them have in common.
    d, n_rows : int
        Size of the rows tried; pass the d of a denoiser that works for one dimension
        only.
    rng : numpy.random.Generator, optional
        For the rows tried; the same rows on every call if left out.

    Returns
    -------
    CheckReport
        ``.passed``, ``.failures``, and a text to print.

    Raises
    ------
    TypeError
        If `denoiser` is not a `Denoiser`: derive the class from it.

    Examples
    --------
    >>> import numpy as np
    >>> from amptutorial.denoisers import Ridge
    >>> class Forgetful(Ridge):
    ...     def denoise(self, P, r, F):
    ...         return self.estimate(P, r, F), np.eye(P.shape[1])
    ...     def estimate(self, P, r, F):
    ...         return Ridge.denoise(self, P, r, F)[0]
    >>> [result.name for result in check_denoiser(Forgetful(1.0)).failures]
    ['jacobian', 'right_answers', 'state_evolution']
    """
    d = check_integer(d, "d", minimum=1)
    n_rows = check_integer(n_rows, "n_rows", minimum=2)
    trial = trial_of(denoiser, belief=belief, d=d, n_rows=n_rows, rng=rng)
    return run_checks(repr(denoiser), [trial], CHECKS.values())
