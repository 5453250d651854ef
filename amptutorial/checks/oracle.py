"""What a belief answers to a problem, and how exact a denoiser has to be.

A minimiser is a fixed point of gradient and proximal map, a posterior mean the
derivative of a log partition function. Where no belief says what is right, each row
must get the answer that it gets alone, at r = 1. Where slopes are not stated either,
they are differences of estimates that are known to be right. With slopes a Jacobian is
compared here, with all else in `amptutorial.checks.verdict`.
"""

from collections import namedtuple

import numpy as np

from .trials import JACOBIANS, ask
from .verdict import count, row_of

COMPARED, ALONE = 100, 30  # rows at most: of integrals, and of answers one by one
DESCENT = 3000  # steps from zero to the minimiser
# times the length of x, the error of a coarse integral: at p = 0 it is symmetric
COARSE, SYMMETRIC = 2.0, 0.5
SLOPE_TOLERANCE, MEAN_TOLERANCE = 1e-3, 1e-5
REACH = 1e-4, 1e-3  # of differences, in sizes of p

# the right estimate (N, d), its error allowed (N,), the places of these rows in a
# problem, slopes d x_l / d p_k at [i, k, l], and whether differences meet no kink (N,)
Answer = namedtuple("Answer", "right allowed places slopes is_smooth")


def spread(N, most):
    """Return the places of all of N rows, or of as many as `most`, evenly spread."""
    return np.unique(np.linspace(0, N - 1, most).astype(int))


def answer(trial, problem, X):
    """Return the `Answer` to a problem, given the estimates `X` of a denoiser.

    A proximal map answers for all rows. Otherwise an integral, or each row alone, does
    for some of them, evenly spread, where the slopes are the denoiser's own.
    """
    if trial.states("prox"):
        return _minimum(trial.belief, problem, X)
    is_mean = trial.states("log_partition")
    places = spread(len(X), COMPARED if is_mean else ALONE)
    some = problem.rows(places)
    right, allowed = (_posterior_mean if is_mean else _alone)(trial, some)
    own = own_slopes(trial.denoiser, some)
    return own._replace(right=right, allowed=allowed, places=places)


def _minimum(belief, problem, X):
    """Return the `Answer` of a penalty (`eq:Gadef-row`).

    From a wrong estimate a step of Newton's method may lead elsewhere: there the answer
    is found from zero, for the first of such rows, and not known for the others.
    """
    found = _newton(belief, problem, X)
    far = np.linalg.norm(X - found.right, axis=1)
    wrong, unknown = np.split(np.flatnonzero(~(far <= found.allowed)), [ALONE])
    if len(wrong):
        some = problem.rows(wrong)
        found.right[wrong] = _newton(belief, some, 0 * some.P, DESCENT).right
    known = np.setdiff1d(found.places, unknown)
    return Answer(*(part[known] for part in found))


def _newton(belief, problem, X, n_steps=0):
    """Return the `Answer` to which a step of Newton's method leads from `X`.

    The minimiser is the fixed point of a gradient step of length t and the proximal
    map of t g, of which there are `n_steps` first. The matrix of Newton's step has the
    slopes.
    """
    (P, r, F), root = problem.copies(), np.sqrt(problem.r)[:, None]
    t, one = 1 / np.linalg.norm(F, 2), np.eye(len(F))

    def prox(Z):
        return root * belief.prox(Z / root, t / root**2)

    def slopes(Z, steps):
        """Return the derivatives of prox, by differences to the side of the steps."""
        moved = (prox(Z + steps[:, None] * axis) - prox(Z) for axis in one)
        return np.stack(list(moved), axis=1) / steps[:, None, None]

    for _ in range(n_steps):
        X = prox(X + t * (P - X @ F))
    Z = X + t * (P - X @ F)
    least = 1e-9 * (np.abs(Z).max(axis=1) + t * np.abs(P).max(axis=1) + 1e-300)
    D = slopes(Z, least)
    inverse = np.linalg.inv(one - (one - t * F) @ D)
    right = X - np.einsum("ik,ikl->il", X - prox(Z), inverse)
    allowed = belief.tolerance * np.linalg.norm(right, axis=1) + 1e-300
    curvature = np.linalg.eigvalsh(F)[0] + (belief.convexity or 0) / r
    allowed += 2e-9 * np.linalg.norm(P, axis=1) / curvature
    # a kink is as near as differences of the estimate would reach
    reach = 1e-4 * (np.abs(Z).max(axis=1) + t * np.abs(P).max(axis=1) + 1e-300)
    bends = [slopes(Z, steps) - D for steps in (reach, -reach, least * 1e-3)]
    is_smooth = np.abs(bends).max(axis=(0, 2, 3)) <= 1e-2 * np.abs(D).max(axis=(1, 2))
    return Answer(right, allowed, np.arange(len(X)), t * D @ inverse, is_smooth)


def _posterior_mean(trial, problem):
    """Return the answer of a prior: the gradient by p of its log partition function.

    It is taken by complex steps, and exact.
    """
    (P, r, F), belief = problem.copies(), trial.belief
    d, scale = len(F), trial.entry_size * np.sqrt(r)[:, None]
    moved = (P + 1e-20j * np.eye(d)[:, None] / scale).reshape(-1, d)
    logs = belief.log_partition(moved, np.tile(r, d), F)
    if not np.iscomplexobj(logs):
        raise TypeError(f"log_partition of {belief} has to take complex entries of P")
    right = logs.imag.reshape(d, -1).T * scale / 1e-20
    lengths, noise = (np.linalg.norm(rows, axis=1) for rows in (right, P))
    length = np.sqrt(d) * scale[:, 0]
    exponents = noise * length + np.linalg.norm(F, 2) * length**2
    is_coarse = exponents > belief.sharpest
    forgiven = is_coarse * np.where(P.any(axis=1), COARSE, SYMMETRIC)
    # what densities of p lose, and weights that are exponentials of p x
    lost = 1e-15 * (P * np.linalg.solve(F, P.T).T).sum(axis=1) + 1e-14 * exponents
    allowed = belief.tolerance * lengths + 1e-15 * noise * lengths**2
    return right, allowed + (1e-9 + lost + forgiven) * length


def _alone(trial, problem):
    """Return what a new denoiser answers to each row alone, as a question about u.

    So a prior of u answers at every rate (`sec:denoiser`).
    """
    new, ones = trial.denoiser, map(problem.rows, np.arange(len(problem.r))[:, None])
    alone = (np.sqrt(one.r) * new.estimate(*one.at_one().copies()) for one in ones)
    right = np.vstack(list(alone))
    lengths, noise = (np.linalg.norm(rows, axis=1) for rows in (right, problem.P))
    allowed = trial.belief.tolerance * lengths
    allowed += 1e-9 * trial.entry_size * np.sqrt(problem.r)
    # a solver may end when steps are small beside p
    return right, allowed + 2e-9 * noise / np.linalg.eigvalsh(problem.F)[0]


def require_jacobian(name, J, right, tolerance, N, source):
    """Raise unless `J`, the answer of the method `name` for N rows, is `right`.

    The message names the entry that is farthest off, the `source` of what is right, and
    the common mistake that explains the difference.
    """
    error = np.abs(J - right)
    if (error <= tolerance).all():
        return
    k, l = np.unravel_index(np.nan_to_num(error, nan=np.inf).argmax(), J.shape)  # noqa: E741
    hints = {
        "; its transpose fits: [k, l] is d estimate_l / d P_k": J.T,
        "; its negative fits": -J,
        "; J / N fits: the Jacobian is a mean over the rows, not a sum": J / N,
        "; J * N fits: it was divided by N twice": J * N,
    }
    fits = (h for h, value in hints.items() if np.abs(value - right).max() <= tolerance)
    text = f"{name}[{k}, {l}] is {J[k, l]:.6g}, {source} {right[k, l]:.6g}"
    raise AssertionError(text + next(fits, ""))


def require_mean(name, J, right, source, problem):
    """Raise unless two ways to a mean Jacobian lead to the same."""
    N, tolerance = len(problem.r), MEAN_TOLERANCE * np.abs(right).max()
    tolerance += 1e-8 / np.linalg.norm(problem.F, 2)
    require_jacobian(name, J, right, tolerance, N, f"for {count(N)}, and {source}")


def require_slopes(name, denoiser, problem, known, where=""):
    """Raise unless mean Jacobians have the slopes that are known.

    Parameters
    ----------
    name : str
        One of `JACOBIANS`.
    denoiser : Denoiser
    problem : Problem
        Rows at or near a kink of the estimate are left out.
    known : Answer
        Estimates and their slopes.
    where : str
        To begin the message with.
    """
    smooth = np.flatnonzero(known.is_smooth)
    # one row alone too: a mean would hide a small slope
    for some in (smooth, smooth[len(smooth) // 2 :][:1]) if len(smooth) else ():
        few, N = problem.rows(known.places[some]), len(some)
        X, right = known.right[some], known.slopes[some].mean(axis=0)
        tolerance = SLOPE_TOLERANCE * np.abs(right).max()
        # of rows that are known for certain there is round-off alone
        tolerance += 1e-6 * np.abs(X).max() / max(np.abs(few.P).max(), 1e-300)
        tolerance += 1e-12 / np.linalg.norm(problem.F, 2)
        rows = "at" if N == 1 else f"for {count(N)}, of which the first has"
        source = f"{rows} {row_of(few, 0)}, and the slopes of the estimate are"
        J = ask(denoiser, JACOBIANS[name], few.copies())[name]
        require_jacobian(f"{where}{name}", J, right, tolerance, N, source)


def own_slopes(denoiser, problem):
    """Return a denoiser's estimates as an `Answer`, with slopes where they have any.

    Slopes are central differences. A row is smooth if two steps find the same, without
    a kink between or on it: a minimiser may have its kinks closer to zero than any
    step.
    """
    P, r, F = problem.copies()
    d, large = len(F), np.abs(P).max(axis=1, keepdims=True)
    # an entry that is small beside another one may matter where it is
    size = np.maximum(np.abs(P), np.maximum(large / 100, np.sqrt(np.linalg.norm(F, 2))))
    ways = np.vstack([np.eye(d), -np.eye(d), np.zeros((1, d))])[:, None]
    found = []
    for step in (size * reach for reach in REACH):
        # all at once: an estimate may take long for however few rows
        moved = (P + step * ways).reshape(-1, d)
        X = denoiser.estimate(moved, np.tile(r, len(ways)), F.copy())
        X = X.reshape(len(ways), *P.shape)
        ahead, back = X[:d] - X[-1], X[-1] - X[d:-1]
        found.append(np.array([ahead + back, ahead - back]) / 2 / step.T[:, :, None])
    (slopes, bend), (wide_slopes, wide_bend) = np.swapaxes(found, 2, 3)
    far = np.abs([slopes - wide_slopes, bend - wide_bend * REACH[0] / REACH[1]])
    is_smooth = far.max(axis=(0, 2, 3)) <= 1e-4 * np.abs(slopes).max(axis=(1, 2))
    has_no_kink = denoiser.precision == "posterior" or P.all(axis=1)
    return Answer(X[-1], None, np.arange(len(P)), slopes, is_smooth & has_no_kink)
