"""The check that draws its problems: the answers are those of the belief.

A new denoiser for each climbs a ladder of problems (`ladder`), and what it answers is
compared with what the belief does (`amptutorial.checks.oracle`): the first failure is
the simplest one. Then one denoiser answers all of them once more, in the order in which
they were drawn, where every third is like the one before, in arrays that are used again
and with its methods shuffled.
"""

from contextlib import contextmanager

import numpy as np

from .answers import JACOBIANS, ask
from .compare import require_mean, require_penalty, require_slopes
from .oracle import COMPARED, answer, spread, states_minimum
from .problems import FEW, MANY, ladder, rounded
from .verdict import count, require_rows

# a mistake that is seen at a glance is looked for on so many rungs more
GLANCE, FURTHER = 0.1, 10
METHODS = ("estimate", "mean_jacobian", "denoise", "penalty")
FEWER = 30  # times as few rows has one part of many as the other
MEMORY = ", asked again (a new denoiser is right: what is kept between calls?)"


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
    _repeat(rng, family, questions, _climb(questions))
    return f"{len(questions)} problems"


def _climb(questions):
    """Return what is told of each problem, the simplest of which is asked first."""
    told, order = {}, sorted(questions, key=_simplicity)
    for rung, (trial, problem) in enumerate(order):
        try:
            told[id(problem)] = _first_answers(trial, problem)
        except AssertionError as failure:
            raise _clearest(failure, order[rung:]) from None
    return told


def _simplicity(question):
    """Return what questions are sorted by: how many numbers, and how many digits."""
    return question[1].P.size, len(_digits(question[1].F))


def _clearest(failure, questions):
    """Return a failure, or one further up the ladder that is seen at a glance.

    It is told in a row that fails as well alone, with few digits at best.
    """
    row, told = getattr(failure, "row", 0), []
    for i in spread(len(questions), FURTHER):
        trial, problem = questions[i]
        one = problem.rows([0 if i else row])
        smaller = one.at_one().rounded(2), one.at_one(), one
        alone = filter(None, (_failure(trial, problem) for problem in smaller))
        told += [next(alone, None)]
    told.insert(1, failure)
    return max(filter(None, told), key=_is_clear)


def _failure(trial, problem):
    """Return the error with which a denoiser fails a problem, if it is of this kind."""
    try:
        _first_answers(trial, problem)
    except Exception as error:  # noqa: BLE001
        return error if isinstance(error, AssertionError) else None


def _is_clear(failure):
    """Say whether a failure is seen at a glance: all are but of estimates near by."""
    return getattr(failure, "size", GLANCE) >= GLANCE


@contextmanager
def _named(trial, problem, how=""):
    """Give an error a note that names the problem, and how it was asked."""
    try:
        yield
    except Exception as error:
        rows, F = count(len(problem.r)), _digits(problem.F)
        error.add_note(f"{trial.title or trial.denoiser}, {rows}, F = {F}{how}")
        if not how and isinstance(error, AssertionError):
            error.asked = trial, getattr(error, "problem", problem)  # type: ignore[attr-defined]
        raise


def _digits(F):
    return str(rounded(F, 7).tolist())


def _first_answers(trial, problem):
    """Return what is told of a problem: the answer, the estimates and the Jacobian.

    Raise if a new denoiser gets it wrong. The Jacobian is None where it is not asked.
    """
    with _named(trial, problem):
        denoiser, J = trial.make(), None
        X = denoiser.estimate(*problem.copies())
        known = answer(trial, problem, X)
        require_rows("estimate", X, problem, *known[:2], places=known.places)
        # of the most rows a right solver may take seconds for each answer
        is_largest = len(problem.r) > MANY[-1]
        if trial.own("denoise", "mean_jacobian") and not is_largest:
            J = denoiser.mean_jacobian(*problem.copies())
            _require_jacobian(denoiser, problem, known, J)
        for method in ("denoise", "penalty"):
            _require(trial, denoiser, method, problem, problem.copies(), known, X, J)
    return known, X, J


def _repeat(rng, family, questions, told):
    """Raise unless one denoiser for each of the family answers all questions again."""
    kept, held = {id(one): one.make() for one in family}, {}
    for trial, problem in questions:
        arrays = held.setdefault(problem.P.shape, problem.copies())
        # thousands of rows take most of the time
        n_asked = 1 if len(problem.r) > MANY[-1] else len(METHODS)
        with _named(trial, problem, MEMORY):
            for method in rng.permutation(METHODS)[:n_asked]:
                # what is kept by the array, and not by what it holds, shows
                for array, value in zip(arrays, problem.copies(), strict=True):
                    array[...] = value
                answers = told[id(problem)]
                _require(trial, kept[id(trial)], method, problem, arrays, *answers)


def _require(trial, denoiser, method, problem, arrays, known, X, J):
    """Raise unless a method, given the arrays of a problem, answers as is told."""
    if method == "penalty":
        if states_minimum(trial):
            require_penalty(trial.belief, denoiser, X, problem)
    elif method == "estimate" or J is not None:
        for name, found in ask(denoiser, method, arrays).items():
            if name in JACOBIANS:
                source = "mean_jacobian of a new denoiser gives"
                require_mean(name, found, J, source, problem)
            else:
                require_rows(name, found, problem, *known[:2], places=known.places)


def _require_jacobian(denoiser, problem, known, J):
    """Raise unless `J` is a mean over rows, and has the slopes that are known."""
    N, some = len(problem.r), spread(len(known.places), COMPARED)
    X, _, *slopes, places = (part[some] for part in known)
    require_slopes("mean_jacobian", denoiser, problem.rows(places), X, *slopes)
    if N > 1:
        every, few = np.arange(N), spread(N, 1 + N // FEWER)
        parts = [problem.rows(rows) for rows in (few, np.setdiff1d(every, few))]
        sums = (len(one.r) * denoiser.mean_jacobian(*one.copies()) for one in parts)
        source = "the mean of those of two parts is"
        require_mean("mean_jacobian", J, sum(sums) / N, source, problem)
