"""The check that asks everywhere: hundreds of problems, and the belief's answers.

Named checks ask at settings that can be read. This one draws dimension, rows, rates, F
and parameters together. What it compares with is the belief: a minimiser is a fixed
point of gradient and proximal map, a posterior mean the derivative of a log partition
function. Where no belief says what is right, each row must get the answer that it gets
alone. A problem that fails is made smaller.
"""

from dataclasses import dataclass, replace

import numpy as np

from ..laws import GaussianRows
from .beliefs import Penalty, Prior, Unstated
from .contract import check, loops_over_rows
from .minimisers import require_jacobian, round_off
from .trials import Problem, observe
from .verdict import (
    Malformed,
    WrongRow,
    require,
    require_array,
    require_number,
    require_pair,
    short,
    short_pair,
)

N_PROBLEMS, MORE = 60, 8  # for a denoiser, and for each relative
# what is new in the next problem: all, as many rows, a part of it, next to nothing,
# order or axes alone (for caches that know rows and F by their sums), the denoiser, or
# all with many rows
MOVES = tuple(
    "all all all P r F nearly order axes parameters parameters many many".split()
)
THOUSANDS = 2, 25  # so many problems, and one of so many, have thousands of rows
# the logarithms of the numbers of rows
ROWS = 0, 1.6
SIZES = {"many": (1.6, 3.3), "thousands": (3.3, 4.4), "most": (4.0, 4.4)}
# in more than three dimensions, and of a posterior mean: 64 supports of 6 x 6, or
# thousands of points of a prior, take memory
FEWER = 12_000
COMPARED, ALONE = 100, 30  # of many rows: of integrals, and of answers one by one
SLOPES = 5  # of those, for slopes take time
# of F whose axes are turned, at most: coordinate descent, a right solution, takes as
# many steps
CONDITION = 101
UNITS = 8  # so many decades of r, up and down
SIMPLER = 15  # of the family are tried for a simpler failure
METHODS = ("estimate", "mean_jacobian", "denoise", "penalty")
SLOPE_TOLERANCE, MEAN_TOLERANCE = 1e-3, 1e-5
STEPS = 1e-4, 1e-3  # of differences
# times the length of x, the error of a coarse integral: at p = 0 it is symmetric
COARSE, SYMMETRIC = 2.0, 0.5
MEMORY = ". A new denoiser answers as it should: what is kept between calls?"


@dataclass(frozen=True)
class Answer:
    """What a belief says of rows: estimates, their errors allowed, slopes by p.

    Where differences of the estimate may meet a kink, `is_smooth` is False.
    """

    estimate: np.ndarray  # (N, d)
    allowed: np.ndarray  # (N,)
    slopes: np.ndarray  # (N, d, d), d x_l / d p_k at [k, l]
    is_smooth: np.ndarray  # (N,)

    def rows(self, index):
        """Return the answer for some of the rows."""
        return Answer(*(part[index] for part in vars(self).values()))


@check("05_denoisers.html#denoisers-rows", lambda trial: trial.seed is not None)
def promise_everywhere(trial):
    """Estimate and Jacobian are those of the belief, whatever is asked, in any order.

    Dimension, number of rows, rates, F and parameters are drawn together. Where no
    belief says what is right, each row gets the answer that it gets alone.
    """
    family = [_with_belief(one) for one in (trial, *trial.relatives)]
    used, held = [one.make() for one in family], {}
    rng = np.random.default_rng(trial.seed)
    which, problem, unit = 0, draw(rng, family[0], 1), 1.0
    slow = loops_over_rows(trial)  # with thousands of rows it would take minutes
    n_problems = N_PROBLEMS + MORE * len(trial.relatives)
    n_thousands = THOUSANDS[0] + n_problems // THOUSANDS[1]
    for k in rng.permutation(n_problems):
        move = MOVES[k % len(MOVES)]
        if k < n_thousands:
            move = ("thousands", "most")[k % 2]
        if slow and move in SIZES:
            move = "all"
        which, problem = _move(rng, move, family, which, problem)
        one, methods, asked = family[which], rng.permutation(METHODS), problem
        if move in SIZES:
            asked = _many(rng, one, move)
        if move in ("thousands", "most"):
            # the Jacobian and one more: they take half of the time
            some = "mean_jacobian", methods[0]
            methods = [name for name in methods if name in some]
        if move == "all" or move in SIZES:
            unit = draw_unit(rng)
        asked = asked.in_units(unit)
        try:
            _require_answers(one, asked, methods, _again(held, asked), used[which])
        except Malformed:
            raise
        except AssertionError as failure:
            # a new denoiser may answer as it should
            kept = _with_title(AssertionError(f"{failure}{MEMORY}"), one, asked)
            raise _simplest(rng, family, one, asked) or kept from None
        except Exception as error:
            _with_title(error, one, asked)
            raise
    return f"{n_problems} problems"


def _with_belief(trial):
    """Return the trial, with a belief that says on what to try it."""
    if isinstance(trial.belief, Penalty | Prior | Unstated):
        return trial
    rows = trial.belief and trial.belief.rows
    return replace(trial, belief=Unstated(rows or GaussianRows(1.0)))


def _again(held, problem):
    """Return a function that gives the problem, in the arrays of the last of its size.

    What is kept by the array, and not by what it holds, shows.
    """
    arrays = held.setdefault(problem.P.shape, problem.copies())

    def copies():
        for array, value in zip(arrays, problem.copies(), strict=True):
            array[...] = value
        return arrays

    return copies


def _move(rng, move, family, which, problem):
    """Return the next denoiser of the family, and its problem."""
    if move == "parameters":
        # neighbours may share all parameters but one
        near = [k for k in (which - 1, which + 1) if 0 <= k < len(family)]
        others = [k for k in near if family[k].d == family[which].d]
        return rng.choice(others or [which]), problem
    if move in ("P", "r", "F"):
        new = draw(rng, family[which], len(problem.r))
        return which, replace(problem, **{move: getattr(new, move)})
    if move == "nearly":
        # F by a number: with noise it might not be positive definite
        shapes = (problem.P.shape, problem.r.shape, ())
        factors = (_near_one(rng, shape) for shape in shapes)
        return which, Problem(*map(np.multiply, problem.copies(), factors))
    if move == "order":
        return which, problem.rows(rng.permutation(len(problem.r)))
    if move == "axes" and np.linalg.cond(problem.F) <= CONDITION:
        # half of the time with the same corner
        d, same = family[which].d, rng.integers(2)
        basis = np.eye(d)
        basis[same:, same:] = _basis(rng, d - same) if d > same else 1
        return which, problem.with_F(_symmetric(basis @ problem.F @ basis.T))
    # in more dimensions more is to be done
    fit = [k for k, one in enumerate(family) if move != "most" or one.d >= 3]
    which = rng.choice(fit or len(family))
    return which, draw(rng, family[which], int(10 ** rng.uniform(*ROWS)))


def draw_unit(rng):
    """Return a unit of x in which an absolute threshold shows, or one."""
    return 10 ** (rng.integers(2) * rng.uniform(-UNITS, UNITS))


def _near_one(rng, shape):
    """Return factors near one, or one."""
    size = rng.choice([0, 1]) * 10 ** rng.uniform(-6, -2)
    return 1 + size * rng.uniform(-1, 1, shape)


def draw(rng, trial, N):
    """Return a problem with N rows."""
    d, belief = trial.d, trial.belief
    r = _draw_rates(rng, N, *belief.decades)
    F = _draw_F(rng, d)
    P = observe(belief.rows.draw((N, d), rng=rng), r, F, rng=rng)[1]
    # densities of p, a right solution, lose digits where p is far from any x F
    most = 3 if isinstance(belief, Penalty) else 1
    P *= rng.choice([1, 1, 10 ** rng.uniform(-1, most)])
    P[(slice(0), rng.random(P.shape) < 0.4, r.argmax())[rng.integers(3)]] = 0
    if rng.integers(2):
        P[-1] *= 10**most
    if rng.integers(4) == 0:
        P[0], r[0] = P[-1], r[-1]
    return Problem(P, r, F)


def _draw_rates(rng, N, low, high):
    """Return N rates: equal, few, nearly equal, or between any two of these decades."""
    width = (high - low) * rng.choice([0, 1, 10 ** rng.uniform(-3, 0)])
    start = low + (high - low - width) * rng.beta(2, 2)
    r = 10 ** rng.uniform(start, start + width, N)
    few = r[: int(10 ** rng.uniform(0, 2))]
    return rng.choice(few, N) if rng.integers(3) == 0 else r


def _draw_F(rng, d):
    """Return a matrix F: badly conditioned or well, turned, diagonal or c I."""
    size, kind = 10 ** rng.uniform(-2, 2), rng.integers(5)
    if kind == 0:
        return size * np.eye(d)
    if kind == 1:
        return size * np.diag(_spectrum(rng, d, 10 ** rng.uniform(0, 3)))
    condition = 1 + (CONDITION - 1) * 10 ** rng.uniform(-5, 0)
    return _turned(rng, size * _spectrum(rng, d, condition))


def _spectrum(rng, d, condition):
    """Return d eigenvalues, some of them equal at times, with this condition number."""
    powers = np.r_[0, 1, rng.random(d)][:d]
    if rng.integers(3) == 0:
        powers = powers.round()
    return condition ** -rng.permutation(powers)


def _turned(rng, spectrum):
    """Return a matrix with these eigenvalues whose axes are turned, or hardly."""
    basis = _basis(rng, len(spectrum))
    return _symmetric((basis * spectrum) @ basis.T)


def _basis(rng, d):
    """Return an orthogonal matrix, half of the time near to the identity."""
    near = rng.choice([0, 10 ** rng.uniform(0, 3)]) * np.eye(d)
    return np.linalg.qr(near + rng.standard_normal((d, d)))[0]


def _symmetric(F):
    return (F + F.T) / 2


def _many(rng, trial, size):
    """Return a problem with many rows, easy ones first, or last.

    With the most rows, and at times, F is badly conditioned: what stops when the first
    rows are done shows.
    """
    d, N = trial.d, int(10 ** rng.uniform(*SIZES[size]))
    takes_memory = d > 3 or isinstance(trial.belief, Prior)
    problem = draw(rng, trial, min(N, FEWER) if takes_memory else N)
    if size == "most" or rng.integers(3) == 0:
        spectrum = 10 ** rng.uniform(-1, 1) * _spectrum(rng, d, rng.uniform(30, 100))
        problem = problem.with_F(_turned(rng, spectrum))
    order = np.argsort(np.linalg.norm(problem.P, axis=1) / np.sqrt(problem.r))
    return problem.rows(order[:: rng.choice([1, -1])])


def _require_answers(trial, problem, methods=METHODS, again=None, used=None):
    """Raise unless the answers to a problem are those of the belief.

    A new denoiser is asked first, and then one that may have been `used` before, in the
    arrays that `again` returns.
    """
    used, again = used or trial.make(), again or problem.copies
    new = trial.make()
    X = require_array(new.estimate(*problem.copies()), "estimate", problem.P.shape)
    told = _answer(trial, problem, X, new)
    _require_estimate(trial, "estimate", problem, told, X)
    own = not trial.inherits("mean_jacobian")
    for method in methods:
        if method == "penalty":
            _require_penalty(trial.belief, used, X, problem)
        elif method == "estimate":
            Y = used.estimate(*again())
            _require_estimate(trial, "estimate, asked again,", problem, told, Y)
        elif not own:
            continue  # what the base class makes of estimates
        elif method == "denoise":
            Y, J = require_pair(used.denoise(*again()))
            _require_estimate(trial, method, problem, told, Y)
            right = used.mean_jacobian(*again())
            _require_same("denoise(P, r, F)[1]", J, right, "and mean_jacobian", problem)
        else:
            _require_jacobians(used, problem, told, again)


def _require_jacobians(denoiser, problem, told, again):
    """Raise unless mean Jacobians are those of the answer, and means over rows."""
    J = denoiser.mean_jacobian(*again())

    def ask(rows):
        return denoiser.mean_jacobian(*rows.copies())

    smooth, slopes = problem.rows(told.is_smooth), told.rows(told.is_smooth)
    if len(smooth.r):
        # one row alone too: a mean would hide a small slope
        for some in (slice(None), [len(smooth.r) // 2]):
            few = smooth.rows(some)
            of_few = J if len(few.r) == len(problem.r) else ask(few)
            _require_slopes(few, slopes.rows(some), of_few)
    if len(problem.r) > 1:
        halves = [problem.rows(slice(k, None, 2)) for k in (0, 1)]
        right = sum(len(half.r) * ask(half) for half in halves) / len(problem.r)
        source = "and the mean of those of two halves"
        _require_same("mean_jacobian", J, right, source, problem)


def _require_estimate(trial, name, problem, told, X):
    require_array(X, name, problem.P.shape)
    far = np.linalg.norm(X - told.estimate, axis=1)
    off = far / told.allowed
    i = np.where(np.isnan(off), np.inf, off).argmax()
    if off[i] <= 1:
        return  # to write the text below would take longer than to ask
    right = _settled(trial, problem.rows([i]))
    found, right = short_pair(X[i], right)
    raise WrongRow(
        f"row {i}, {_row(problem, i)}: {name} gives {found}, expected {right}",
        far[i] / (np.linalg.norm(told.estimate[i]) + told.allowed[i]),
        i,
    )


def _row(problem, i):
    return f"p = {short(problem.P[i])}, r = {problem.r[i]:.4g}"


def _require_slopes(problem, told, J):
    right = told.slopes.mean(axis=0)
    require_array(J, "mean_jacobian", right.shape)
    # of rows that are known for certain differences find round-off
    tolerance = SLOPE_TOLERANCE * np.abs(right).max()
    sizes = np.abs(told.estimate).max() + told.allowed.max()
    tolerance += 1e-6 * sizes / max(np.abs(problem.P).max(), 1e-300)
    tolerance += round_off(problem)
    N = len(problem.r)
    rows = "at" if N == 1 else f"for {_count(N)}, of which the first has"
    source = f"{rows} {_row(problem, 0)}, and should be"
    require_jacobian("mean_jacobian", J, right, tolerance, N, source)


def _require_same(name, J, right, source, problem):
    """Raise unless two ways to a mean Jacobian lead to the same."""
    require_array(J, name, right.shape)
    tolerance = MEAN_TOLERANCE * np.abs(right).max() + 1e-8 / np.linalg.norm(
        problem.F, 2
    )
    N = len(problem.r)
    source = f"for {_count(N)}, {source} should be"
    require_jacobian(name, J, right, tolerance, N, source)


def _require_penalty(belief, denoiser, X, problem):
    if not isinstance(belief, Penalty):
        return
    r = problem.r
    if belief.convexity is not None:
        c, right = denoiser.convexity(r.copy()), belief.convexity / r.max()
        about = f"{_count(len(r))} with r up to {r.max():.4g}"
        require(
            np.isclose(c, right, atol=0), f"convexity is {c} for {about}, not {right}"
        )
    # the estimates, and with a row that may not be allowed
    for i in (None, r.argmin(), len(r) // 2):
        rows = X.copy()
        if i is not None:
            rows[i] = problem.P[i]
        value = require_number(denoiser.penalty(rows.copy(), r.copy()), "penalty")
        right = belief.value(rows / np.sqrt(r)[:, None]).sum()
        k = i or 0
        require(
            np.isclose(value, right, rtol=1e-8, atol=1e-12),
            f"penalty of {_count(len(r))} is {value:.9g}, and g of them sums to "
            f"{right:.9g}; row {k} is x = {short(rows[k])}, r = {r[k]:.4g}",
        )


def _simplest(rng, family, trial, problem):
    """Return the failure of the simplest problem found, or None if there is no failure.

    Fewer dimensions and shorter parameters are tried, and then fewer rows and digits.
    """
    first = _failure(trial, problem)
    if first is None:
        return None
    ordered = sorted(family, key=lambda one: (one.d, len(one.title)))
    some = [ordered[i] for i in _spread(len(ordered), SIMPLER)]
    # a mistake that is seen at a glance, or as well as in this problem
    for least in (0.1, first.size / 10):
        for other in some:
            found = other.d <= trial.d and _smallest(other, draw(rng, other, 5), least)
            if found:
                return found
    return _smallest(trial, problem, least)


def _smallest(trial, problem, least):
    """Return the failure of the smallest problem that is off by `least`, or None."""
    failure = _failure(trial, problem)
    if failure is None or failure.size < least:
        return None
    for smaller in _smaller(problem, failure.row):
        found = _smallest(trial, smaller, least)
        if found:
            return found
    return failure


def _failure(trial, problem):
    """Return what new denoisers get wrong, or None."""
    try:
        _require_answers(trial, problem)
    except WrongRow as failure:
        return _with_title(failure, trial, problem)
    except AssertionError as failure:
        return _with_title(WrongRow(str(failure)), trial, problem)
    except Exception:  # noqa: BLE001
        return None  # another fault than the one to be told
    return None


def _smaller(problem, row):
    """Yield a row alone, this one first; or the only row at r = 1, with few digits."""
    if len(problem.r) > 1:
        places = np.unique(_distinct(problem)[0])
        some = places[_spread(len(places), 20)]
        yield from (problem.rows([i]) for i in (row, *some))
        return
    if problem.r[0] != 1:
        yield problem.at_one()
    for digits in (1, 2, 3):
        few = Problem(*(_rounded(array, digits) for array in problem.copies()))
        if np.linalg.eigvalsh(few.F)[0] > 0 and not np.array_equal(few.F, problem.F):
            yield few


def _rounded(array, digits):
    return np.reshape([float(f"{x:.{digits}g}") for x in array.ravel()], array.shape)


def _with_title(error, trial, problem):
    """Return the error with a note that names the problem."""
    F, rows = _rounded(problem.F, 7).tolist(), _count(len(problem.r))
    error.add_note(f"{trial.title or trial.denoiser}, {rows}, F = {F}")
    return error


def _count(N):
    return "1 row" if N == 1 else f"{N} rows"


def _spread(N, most):
    """Return the places of all of N rows, or of as many as `most`, evenly spread."""
    return np.unique(np.linspace(0, N - 1, most).astype(int))


def _distinct(problem):
    """Return the first places of different rows, and which of those each row is."""
    rows = np.column_stack([problem.P, problem.r])
    return np.unique(rows, axis=0, return_index=True, return_inverse=True)[1:]


def _answer(trial, problem, X, denoiser=None):
    """Return the `Answer` for a problem, given estimates; equal rows are asked once."""
    first, index = _distinct(problem)
    rows = problem.rows(first)
    if trial.has_answer and isinstance(trial.belief, Penalty):
        return _minimiser(trial.belief, rows, X[first]).rows(index.ravel())
    some = _spread(len(first), COMPARED if trial.has_answer else ALONE)
    if trial.has_answer:
        told = _posterior_mean(trial, rows.rows(some))
    else:
        told = _alone(trial, denoiser or trial.make(), rows.rows(some))
    # nothing is asked of the other rows
    N, d = rows.P.shape
    every = Answer(
        np.zeros((N, d)), np.full(N, np.inf), np.zeros((N, d, d)), np.zeros(N, bool)
    )
    for part, values in zip(vars(every).values(), vars(told).values(), strict=True):
        part[some] = values
    return every.rows(index.ravel())


def _alone(trial, denoiser, problem):
    """Return what a denoiser answers to each row alone, as a question about u.

    So a prior of u answers at every rate (`sec:denoiser`). Slopes are differences.
    """
    (N, d), root, belief = problem.P.shape, np.sqrt(problem.r), trial.belief
    estimate, J, is_smooth = problem.P.copy(), np.zeros((N, d, d)), np.zeros(N, bool)
    some = [] if trial.inherits("mean_jacobian") else _spread(N, SLOPES)
    for i in range(N):
        one = problem.rows([i]).at_one()
        estimate[i] = root[i] * denoiser.estimate(*one.copies())[0]
        if i in some:
            pairs = [_differences(denoiser, one, step) for step in STEPS]
            (slopes, bend), (wide_slopes, wide_bend) = pairs
            # differences meet no kink, and the row lies on none: a minimiser may have
            # its kinks closer to zero than any step
            far = np.abs([slopes - wide_slopes, bend - wide_bend * STEPS[0] / STEPS[1]])
            has_no_kink = denoiser.precision == "posterior" or one.P.all()
            is_smooth[i] = has_no_kink and far.max() <= 1e-4 * np.abs(slopes).max()
            J[i] = problem.r[i] * slopes
    lengths, noise = (np.linalg.norm(X, axis=1) for X in (estimate, problem.P))
    allowed = belief.tolerance * lengths + 1e-9 * trial.entry_size * root
    # a solver may end when steps are small beside p
    allowed += 2e-9 * noise / np.linalg.eigvalsh(problem.F)[0]
    return Answer(estimate, allowed, J, is_smooth)


def _differences(denoiser, one, step):
    """Return d estimate_l / d p_k of a row at [k, l], and its change across the row."""
    d = len(one.F)
    h = step * max(np.abs(one.P).max(), np.sqrt(np.linalg.norm(one.F, 2)))
    P = one.P + h * np.vstack([np.eye(d), -np.eye(d), np.zeros((1, d))])
    X = denoiser.estimate(P, np.ones(2 * d + 1), one.F.copy())
    ahead, back = (X[:d] - X[-1]) / h, (X[-1] - X[d:-1]) / h
    return (ahead + back) / 2, ahead - back


def _minimiser(belief, problem, X):
    """Return the answer of a penalty (`eq:Gadef-row`).

    The minimiser is the fixed point of a gradient step of length t and the proximal
    map of t g. A step of Newton's method leads to it from the estimate, and the same
    matrix has the slopes.
    """
    P, r, F = problem.copies()
    t, one = 1 / np.linalg.norm(F, 2), np.eye(len(F))

    def prox(Z):
        return _prox(belief, Z, r, t)

    def slopes(Z, steps):
        """Return the derivatives of prox, by differences to the side of the steps."""
        moved = (prox(Z + steps[:, None] * axis) - prox(Z) for axis in one)
        return np.stack(list(moved), axis=1) / steps[:, None, None]

    Z = X + t * (P - X @ F)
    least = 1e-9 * (np.abs(Z).max(axis=1) + t * np.abs(P).max(axis=1) + 1e-300)
    D = slopes(Z, least)
    inverse = np.linalg.inv(one - (one - t * F) @ D)
    right = X - np.einsum("ik,ikl->il", X - prox(Z), inverse)
    J = t * D @ inverse
    allowed = belief.tolerance * np.linalg.norm(right, axis=1) + 1e-300
    curvature = np.linalg.eigvalsh(F)[0] + (belief.convexity or 0) / r
    allowed += 2e-9 * np.linalg.norm(P, axis=1) / curvature
    # how far Z goes where differences of the estimate move P
    reach = np.abs(J @ (one - t * F)).max(axis=(1, 2)) + t
    reach *= 1e-4 * np.abs(P).max() + 1e-6 * np.sqrt(np.linalg.norm(F, 2))
    bends = [slopes(Z, steps) - D for steps in (reach, -reach, least * 1e-3)]
    is_smooth = np.abs(bends).max(axis=(0, 2, 3)) <= 1e-2 * np.abs(D).max(axis=(1, 2))
    return Answer(right, allowed, J, is_smooth)


def _prox(belief, Z, r, t):
    """Return the proximal map of t g(x / sqrt(r)) at each row of `Z`."""
    root = np.sqrt(r)[:, None]
    return root * belief.prox(Z / root, t / root**2)


def _settled(trial, row):
    """Return the estimate of a single row, by proximal gradient descent if need be."""
    belief, (P, r, F) = trial.belief, row.copies()
    X, t = 0 * P, 1 / np.linalg.norm(F, 2)
    is_minimiser = trial.has_answer and isinstance(belief, Penalty)
    for _ in range(3000 if is_minimiser else 0):
        X = _prox(belief, X + t * (P - X @ F), r, t)
    return _answer(trial, row, X).estimate[0]


def _posterior_mean(trial, problem):
    """Return the answer of a prior: derivatives of its log partition function by p.

    The first is taken by complex steps and exact, the second by differences of it.
    """
    (P, r, F), belief = problem.copies(), trial.belief
    N, d = P.shape
    scale = trial.entry_size * np.sqrt(r)[:, None]

    def mean(P, few):
        """Return the means for `P` at the places `few`, k of them, shape (k, d)."""
        axes = 1e-20 / scale[few] * np.eye(d)[:, None]  # (d, k, d)
        moved, rates = (P + 1j * axes).reshape(-1, d), np.tile(r[few], d)
        values = belief.log_partition(moved, rates, F).imag.reshape(d, -1)
        return values.T * scale[few] / 1e-20

    def slopes(step, few):
        rows, ways = np.tile(few, 2 * d), np.vstack([np.eye(d), -np.eye(d)])
        moved = P[rows] + step / scale[rows] * np.repeat(ways, len(few), axis=0)
        ahead, back = mean(moved, rows).reshape(2, d, len(few), d)
        return (ahead - back).swapaxes(0, 1) * scale[few, None] / (2 * step)

    right = mean(P, slice(None))
    length = np.sqrt(d) * scale[:, 0]
    exponents = np.linalg.norm(P, axis=1) * length + np.linalg.norm(F, 2) * length**2
    coarse = exponents > belief.sharpest
    allowed = belief.tolerance * np.linalg.norm(right, axis=1)
    forgiven = coarse * np.where(P.any(axis=1), COARSE, SYMMETRIC)
    # what densities of p lose, and weights that are exponentials of p x
    lost = 1e-15 * (P * np.linalg.solve(F, P.T).T).sum(axis=1)
    allowed += (1e-9 + 1e-14 * exponents + lost + forgiven) * length
    allowed += 1e-15 * np.linalg.norm(P, axis=1) * np.linalg.norm(right, axis=1) ** 2
    few = _spread(N, SLOPES)
    J, is_smooth = np.zeros((N, d, d)), np.zeros(N, bool)
    J[few], wide = (slopes(step, few) for step in STEPS)
    sizes = np.abs(J[few]).max(axis=(1, 2))
    is_smooth[few] = np.abs(J[few] - wide).max(axis=(1, 2)) <= 1e-4 * sizes
    # differences of the estimate move P by as much
    is_smooth &= (1e-4 * np.abs(P).max() * length < 0.02) & ~coarse
    return Answer(right, allowed, J, is_smooth)
