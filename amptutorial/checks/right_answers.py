"""The check that draws its problems: the answers are those of the belief.

A new denoiser for each climbs a ladder of problems, and what it answers is compared
with what the belief does: the first failure is the simplest one. Then one denoiser
answers all of them once more, in the order in which they were drawn, where every third
is like the one before, in arrays that are used again and with its methods shuffled.
"""

from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from .oracle import (
    COMPARED,
    Answer,
    answer,
    compared_rows,
    spread,
    states_minimum,
)
from .problems import FEW, MANY, ladder, rounded
from .verdict import (
    require,
    require_array,
    require_jacobian,
    require_number,
    require_pair,
    require_rows,
    row_of,
    short,
)

# a mistake that is seen at a glance is looked for on so many rungs more
GLANCE, FURTHER = 0.1, 10
METHODS = ("estimate", "mean_jacobian", "denoise", "penalty")
FEWER = 30  # times as few rows has one part of many as the other
SLOPE_TOLERANCE, MEAN_TOLERANCE = 1e-3, 1e-5
MEMORY = ". A new denoiser answers as it should: what is kept between calls?"


def right_answers(trial):
    """Estimate, Jacobian and penalty are those of the belief, whatever is asked.

    Dimension, number of rows, rates, F, parameters and the order are drawn together.
    Where no belief says what is right, each row gets the answer that it gets alone.
    """
    family = [trial, *trial.relatives]
    rng = np.random.default_rng(trial.seed)
    questions = ladder(rng, family, trial.n_problems)
    if trial.loop:  # with hundreds of rows it would take minutes
        questions = [one for one in questions if len(one[1].r) <= FEW]
    _repeat(rng, family, questions, _climb(family, questions))
    return f"{len(questions)} problems"


@dataclass(frozen=True)
class _Told:
    """What is right in some rows, and what a new denoiser has answered."""

    places: np.ndarray  # of rows that are compared
    answer: Answer
    X: np.ndarray
    J: np.ndarray | None


def _climb(family, questions):
    """Return what is `_Told` of each question, the simplest of which is asked first."""
    told = {}
    order = sorted(range(len(questions)), key=lambda k: _simplicity(questions[k][1]))
    for rung, k in enumerate(order):
        try:
            told[k] = _first_answers(family[questions[k][0]], questions[k][1])
        except AssertionError as failure:
            further = [questions[i] for i in order[rung:]]
            raise _clearest(family, further, failure) from None
    return told


def _clearest(family, questions, failure):
    """Return a failure, or one further up the ladder that is seen at a glance.

    It is told in a row that fails as well alone, with few digits at best.
    """
    best = failure
    for i in spread(len(questions), FURTHER):
        one, problem = family[questions[i][0]], questions[i][1]
        row = problem.rows([0 if i else getattr(failure, "row", 0)])
        for smaller in (row.at_one().rounded(2), row.at_one(), row):
            try:
                _first_answers(one, smaller)
            except AssertionError as alone:
                if _size(alone) >= (GLANCE if i else _size(failure) / 10):
                    best = alone
                    break
            except Exception:  # noqa: BLE001, S110
                pass  # another fault than the one to be told
        if _size(best) >= GLANCE:
            break
    return best


def _simplicity(problem):
    """Return what problems are sorted by: how many numbers, and how many digits."""
    return problem.P.size, len(_matrix(problem.F))


def _size(failure):
    """Return how far off an estimate is, relatively; other failures are infinite."""
    return getattr(failure, "size", np.inf)


@contextmanager
def _named(trial, problem, ending=""):
    """Give an error a note that names the problem, and its message an ending."""
    try:
        yield
    except Exception as error:
        F, rows = _matrix(problem.F), _count(len(problem.r))
        error.add_note(f"{trial.title or trial.denoiser}, {rows}, F = {F}")
        if isinstance(error, AssertionError):
            error.args = (f"{error}{ending}",)
        raise


def _matrix(F):
    return str(rounded(F, 7).tolist())


def _count(N):
    return "1 row" if N == 1 else f"{N} rows"


def _first_answers(trial, problem):
    """Return what is `_Told` of a problem, or raise if a new denoiser gets it wrong."""
    with _named(trial, problem):
        denoiser, J = trial.make(), None
        X = denoiser.estimate(*problem.copies())
        require_array(X, "estimate", problem.P.shape)
        places = compared_rows(trial, problem)
        known = answer(trial, problem.rows(places), X[places])
        require_rows("estimate", X, problem, *known[:2], places=places)
        # of the most rows a right solver may take seconds for each answer
        is_largest = len(problem.r) > MANY[-1]
        if not (is_largest or trial.inherits("mean_jacobian")):
            J = denoiser.mean_jacobian(*problem.copies())
            _require_jacobian(denoiser, problem, places, known, J)
        told = _Told(places, known, X, J)
        for method in ("denoise", "penalty"):
            _require_told(trial, denoiser, method, problem, problem.copies, told)
    return told


def _repeat(rng, family, questions, told):
    """Raise unless one denoiser for each of the family answers all questions again."""
    kept, held = [one.make() for one in family], {}
    for k, (which, problem) in enumerate(questions):
        # what is kept by the array, and not by what it holds, shows
        arrays = held.setdefault(problem.P.shape, problem.copies())

        def again(arrays=arrays, problem=problem):
            for array, value in zip(arrays, problem.copies(), strict=True):
                array[...] = value
            return arrays

        with _named(family[which], problem, MEMORY):
            # thousands of rows take most of the time
            n_asked = 1 if len(problem.r) > MANY[-1] else len(METHODS)
            for method in rng.permutation(METHODS)[:n_asked]:
                one = family[which], kept[which]
                _require_told(*one, method, problem, again, told[k])


def _require_told(trial, denoiser, method, problem, arrays, told):
    """Raise unless a method answers as is `told`; `arrays` returns what it is given."""
    right = *told.answer[:2], "", told.places
    own = told.J is not None  # or what the base class makes of estimates
    if method == "penalty" and states_minimum(trial):
        require_penalty(trial.belief, denoiser, told.X, problem)
    elif method == "estimate":
        require_rows(method, denoiser.estimate(*arrays()), problem, *right)
    elif method == "mean_jacobian" and own:
        J, source = denoiser.mean_jacobian(*arrays()), "a new denoiser gives"
        _require_same(method, J, told.J, source, problem)
    elif method == "denoise" and own:
        X, J = require_pair(denoiser.denoise(*arrays()))
        require_rows("denoise(P, r, F)[0]", X, problem, *right)
        _require_same("denoise(P, r, F)[1]", J, told.J, "mean_jacobian gives", problem)


def _require_jacobian(denoiser, problem, places, known, J):
    """Raise unless `J` is a mean over rows, and has the slopes that are known."""
    N, ask = len(problem.r), denoiser.mean_jacobian
    some = spread(len(places), COMPARED)
    X, _, *slopes = (part[some] for part in known)
    require_slopes("mean_jacobian", ask, problem.rows(places[some]), X, *slopes)
    if N > 1:
        every, few = np.arange(N), spread(N, 1 + N // FEWER)
        parts = [problem.rows(rows) for rows in (few, np.setdiff1d(every, few))]
        sums = (len(part.r) * ask(*part.copies()) for part in parts)
        source = "the mean of those of two parts is"
        _require_same("mean_jacobian", J, sum(sums) / N, source, problem)


def _require_same(name, J, right, source, problem):
    """Raise unless two ways to a mean Jacobian lead to the same."""
    tolerance = MEAN_TOLERANCE * np.abs(right).max()
    tolerance += 1e-8 / np.linalg.norm(problem.F, 2)
    N = len(problem.r)
    require_jacobian(name, J, right, tolerance, N, f"for {_count(N)}, and {source}")


def require_slopes(name, ask, problem, X, slopes, is_smooth):
    """Raise unless mean Jacobians have the slopes that are known.

    Parameters
    ----------
    name : str
        What is asked, to begin the message with.
    ask : callable (P, r, F) -> array (d, d)
    problem : Problem
        Rows at or near a kink of the estimate are left out.
    X, slopes, is_smooth : array (N, d), array (N, d, d), array (N,)
        Estimates, their slopes, and whether a row is smooth.
    """
    smooth = np.flatnonzero(is_smooth)
    # one row alone too: a mean would hide a small slope
    for some in (smooth, smooth[len(smooth) // 2 :][:1]) if len(smooth) else ():
        few, right, N = problem.rows(some), slopes[some].mean(axis=0), len(some)
        tolerance = SLOPE_TOLERANCE * np.abs(right).max()
        # of rows that are known for certain there is round-off alone
        tolerance += 1e-6 * np.abs(X[some]).max() / max(np.abs(few.P).max(), 1e-300)
        tolerance += 1e-12 / np.linalg.norm(problem.F, 2)
        rows = "at" if N == 1 else f"for {_count(N)}, of which the first has"
        source = f"{rows} {row_of(few, 0)}, and the slopes of the estimate are"
        require_jacobian(name, ask(*few.copies()), right, tolerance, N, source)


def require_penalty(belief, denoiser, X, problem):
    """Raise unless the penalty of the estimates `X` is the belief's, and its convexity.

    Rows that may not be allowed are tried among them: p, and the nearest that is
    allowed, each entry moved out by a millionth of the largest.
    """
    P, r, root = problem.P, problem.r, np.sqrt(problem.r)[:, None]
    c = require_number(denoiser.convexity(r.copy()), "convexity")
    if belief.convexity is None:
        # it is no larger than the bends of g from p to 2 p, where g is finite
        start, middle, end = (belief.value(t * P / root) for t in (1, 1.5, 2))
        bends = 8 * ((start + end) / 2 - (1 - 1e-9) * middle) / (P**2).sum(axis=1)
        right = min(c, np.where(bends > 0, bends, 0)[np.isfinite(bends)].min(initial=c))
    else:
        right = belief.convexity / r.max()
    require(
        np.isclose(c, right, rtol=1e-6, atol=0),
        f"convexity(r) = {c:.6g} is too {'small' if c < right else 'large'} for "
        f"{_count(len(r))} with r from {r.min():.3g} to {r.max():.3g}: the largest c "
        f"for which g(x / sqrt(r)) - c |x|^2 / 2 is convex in every row is {right:.6g}."
        " AMP lets eigenvalues of F fall to -c, and raises those below",
    )
    nearest = belief.project(P / root) * root
    outside = (
        nearest + 1e-6 * np.sign(P - nearest) * np.abs(nearest).max(axis=1)[:, None]
    )
    places = r.argmin(), len(r) // 2
    tried = [(i, rows[i]) for rows in (X, P, outside) for i in places]
    for i, x in tried:
        rows = X.copy()
        rows[i] = x
        value = require_number(denoiser.penalty(rows.copy(), r.copy()), "penalty")
        right = belief.value(rows / root).sum()
        require(
            np.isclose(value, right, rtol=1e-8, atol=1e-12),
            f"penalty is {value:.9g} for {_count(len(r))}, and the sum of "
            f"g(x_i / sqrt(r_i)) is {right:.9g}; row {i} is x = {short(x, 9)}, "
            f"r = {r[i]:.4g}",
        )
