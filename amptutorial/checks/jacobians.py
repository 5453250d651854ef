"""What a Jacobian is compared with: slopes of estimates, or what is known of them."""

from collections import namedtuple

import numpy as np

from .answers import JACOBIANS, ask, require_array
from .verdict import count, row_of

SLOPE_TOLERANCE, MEAN_TOLERANCE = 1e-3, 1e-5
REACH = 1e-4, 1e-3  # of differences, in sizes of p

# of the rows at some places of a problem: the right estimate (N, d), its error allowed
# (N,), slopes d x_l / d p_k at [i, k, l], and whether differences meet no kink (N,)
Answer = namedtuple("Answer", "right allowed slopes is_smooth places")


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
    return Answer(X[-1], None, slopes, is_smooth & has_no_kink, np.arange(len(P)))
