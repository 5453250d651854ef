"""What a Jacobian and a penalty are compared with, and what is told if they differ."""

from itertools import product

import numpy as np

from .answers import JACOBIANS, ask, require_array, require_number
from .verdict import count, require, row_of, short

SLOPE_TOLERANCE, MEAN_TOLERANCE = 1e-3, 1e-5


def require_jacobian(name, J, right, tolerance, N, source):
    """Raise unless `J`, the answer of the method `name` for N rows, is `right`.

    The message names the entry that is farthest off, the `source` of what is right, and
    the common mistake that explains the difference.
    """
    require_array(J, name, right.shape)
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


def require_slopes(name, denoiser, problem, X, slopes, is_smooth, where=""):
    """Raise unless mean Jacobians have the slopes that are known.

    Parameters
    ----------
    name : str
        One of `JACOBIANS`.
    denoiser : Denoiser
    problem : Problem
        Rows at or near a kink of the estimate are left out.
    X, slopes, is_smooth : array (N, d), array (N, d, d), array (N,)
        Estimates, their slopes, and whether a row is smooth.
    where : str
        To begin the message with.
    """
    smooth = np.flatnonzero(is_smooth)
    # one row alone too: a mean would hide a small slope
    for some in (smooth, smooth[len(smooth) // 2 :][:1]) if len(smooth) else ():
        few, right, N = problem.rows(some), slopes[some].mean(axis=0), len(some)
        tolerance = SLOPE_TOLERANCE * np.abs(right).max()
        # of rows that are known for certain there is round-off alone
        tolerance += 1e-6 * np.abs(X[some]).max() / max(np.abs(few.P).max(), 1e-300)
        tolerance += 1e-12 / np.linalg.norm(problem.F, 2)
        rows = "at" if N == 1 else f"for {count(N)}, of which the first has"
        source = f"{rows} {row_of(few, 0)}, and the slopes of the estimate are"
        J = ask(denoiser, JACOBIANS[name], few.copies())[name]
        require_jacobian(f"{where}{name}", J, right, tolerance, N, source)


def require_penalty(belief, denoiser, X, problem):
    """Raise unless the penalty of the estimates `X` is the belief's, and its convexity.

    Rows that may not be allowed are tried among them: p, and the nearest that is
    allowed, each entry moved out by a millionth of the largest.
    """
    P, r, root = problem.P, problem.r, np.sqrt(problem.r)[:, None]
    c = require_number(denoiser.convexity(r.copy()), "convexity")
    stated = belief.convexity
    right = min(c, _bend(belief, P, root)) if stated is None else stated / r.max()
    require(
        np.isclose(c, right, rtol=1e-6, atol=0),
        f"convexity(r) = {c:.6g} is too {'small' if c < right else 'large'} for "
        f"{count(len(r))} with r from {r.min():.6g} to {r.max():.6g}: the largest c "
        f"for which g(x / sqrt(r)) - c |x|^2 / 2 is convex in every row is {right:.6g}."
        " AMP lets eigenvalues of F fall to -c, and raises those below",
    )
    nearest = belief.project(P / root) * root
    lengths = np.abs(nearest).max(axis=1, keepdims=True)
    outside = nearest + 1e-6 * np.sign(P - nearest) * lengths
    for some, i in product((X, P, outside), (r.argmin(), len(r) // 2)):
        rows = X.copy()
        rows[i] = some[i]
        value = require_number(denoiser.penalty(rows.copy(), r.copy()), "penalty")
        right = belief.value(rows / root).sum()
        require(
            np.isclose(value, right, rtol=1e-8, atol=1e-12),
            f"penalty is {value:.9g} for {count(len(r))}, and the sum of "
            f"g(x_i / sqrt(r_i)) is {right:.9g}; row {i} is x = {short(rows[i], 9)}, "
            f"r = {r[i]:.4g}",
        )


def _bend(belief, P, root):
    """Return the least bend of g from p to 2 p, where g is finite, or infinity.

    No c for which g(x / sqrt(r)) - c |x|^2 / 2 is convex is larger.
    """
    start, middle, end = (belief.value(t * P / root) for t in (1, 1.5, 2))
    bends = 8 * ((start + end) / 2 - (1 - 1e-9) * middle) / (P**2).sum(axis=1)
    return np.maximum(bends, 0)[np.isfinite(bends)].min(initial=np.inf)
