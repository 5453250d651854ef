"""The check that draws its problems: the answers are those of the belief.

First the ladder (`ladder`) is climbed from the simplest problem on, by denoisers that
are new each time they are asked, and what they answer is compared with what the belief
does (`amptutorial.checks.oracle`). Then one denoiser answers all problems once more, in
the order in which they were drawn, where every third is like the one before, in arrays
that are used again and with its methods shuffled: what is wrong now, it has kept.
"""

from contextlib import contextmanager
from itertools import chain

import numpy as np

from .oracle import answer, require_mean, require_slopes, spread
from .problems import FEW, MANY, ladder, rounded
from .trials import JACOBIANS, METHODS, ask, own_methods
from .verdict import count, require_penalty, require_rows

# a mistake that is seen at a glance is looked for on so many rungs more
GLANCE, FURTHER = 0.1, 10
AGAIN = (*METHODS, "penalty")  # what is asked once more
FEWER = 30  # times as few rows has one part of many as the other
KEPT = ": asked again (a new denoiser is right: what is kept between calls?)"


def right_answers(trial):
    """Estimate, Jacobian and penalty are those of the belief, whatever is asked.

    Dimension, number of rows, rates, F, parameters and the order are drawn together.
    Where no belief says what is right, each row gets the answer that it gets alone.
    """
    rng = np.random.default_rng(trial.seed)
    questions = ladder(rng, [trial, *trial.relatives], trial.n_problems)
    if trial.loop:  # with hundreds of rows it would take minutes
        questions = [one for one in questions if len(one[1].r) <= FEW]
    _repeat(rng, questions, _climb(questions))
    return f"{len(questions)} problems"


def _climb(questions):
    """Return what new denoisers answer to each problem, the simplest one first."""
    # fewest numbers, and fewest digits, first
    sizes = {id(one[1]): (one[1].P.size, len(_digits(one[1]))) for one in questions}
    answers, order = {}, sorted(questions, key=lambda one: sizes[id(one[1])])
    for rung, question in enumerate(order):
        try:
            answers[id(question[1])] = _first_answers(*question)
        except AssertionError as failure:
            raise _clearest(failure, order[rung:]) from None
    return answers


def _digits(problem):
    return str(rounded(problem.F, 7).tolist())


def _clearest(failure, questions):
    """Return the failure of the first question, or another that is seen at a glance.

    It is told in a row that fails alone, if one does. Other questions are some of those
    further up the ladder.
    """
    first, *others = (questions[i] for i in spread(len(questions), FURTHER))
    simplest = _failure_alone(*first, getattr(failure, "row", 0)) or failure
    further = (_failure_alone(*question, 0) for question in others)
    told = filter(None, chain([simplest], further))
    # an estimate that is near by is all that may escape a glance
    return next((one for one in told if getattr(one, "size", 1) >= GLANCE), simplest)


def _failure_alone(trial, problem, row):
    """Return how a row alone fails, told with few digits if that does, or None."""
    one = problem.rows([row])
    for each in (one.at_one().rounded(2), one.at_one(), one):
        try:
            _first_answers(trial, each)
        except AssertionError as failure:
            return failure
        except Exception:  # noqa: BLE001, S110  whatever else it raises of one row
            pass


@contextmanager
def _named(trial, problem, kept=""):
    """Give an error a note that names the problem, and what it takes to ask it again.

    If memory is at fault, the note says so too: to ask again would not show that.
    """
    try:
        yield
    except Exception as error:
        name, rows = trial.title or repr(trial.make()), count(len(problem.r))
        error.add_note(f"{name}, {rows}, F = {_digits(problem)}{kept}")
        asked = None if kept else getattr(error, "problem", problem)
        vars(error).update(trial=trial, problem=asked)
        raise


def _first_answers(trial, problem):
    """Return what is known of a problem: the answer, the estimates and the Jacobian.

    Raise if new denoisers, one for each method, get it wrong. The Jacobian is None
    where it is not asked.
    """
    with _named(trial, problem):
        new, X, J = trial.denoiser, trial.estimate(problem), None
        known = answer(trial, problem, X)
        require_rows("estimate", X, problem, *known[:3])
        # of the most rows a right solver may take seconds for each answer
        if own_methods(new, JACOBIANS.values()) and len(problem.r) <= MANY[-1]:
            J = new.mean_jacobian(*problem.copies())
            _require_jacobian(new, problem, known, J)
        for method in ("denoise", "penalty"):
            one, arrays = trial.make(), problem.copies()
            _require(one, trial, method, problem, arrays, known, X, J)
    return known, X, J


def _repeat(rng, questions, answers):
    """Raise unless one denoiser of each trial answers all questions once more."""
    held, kept = {}, {}
    for trial, problem in questions:
        if id(trial) not in kept:
            kept[id(trial)] = trial.make()
        arrays = held.setdefault(problem.P.shape, problem.copies())
        # thousands of rows take most of the time
        n_asked = 1 if len(problem.r) > MANY[-1] else len(AGAIN)
        for method in rng.permutation(AGAIN)[:n_asked]:
            # what is kept by the array, and not by what it holds, shows
            for array, value in zip(arrays, problem.copies(), strict=True):
                array[...] = value
            first = answers[id(problem)]
            with _named(trial, problem, KEPT):
                _require(kept[id(trial)], trial, method, problem, arrays, *first)


def _require(denoiser, trial, method, problem, arrays, known, X, J):
    """Raise unless a method, given the arrays of a problem, answers as is known."""
    if method == "penalty":
        if trial.states("prox"):
            require_penalty(trial.belief, denoiser, X, problem)
    elif method == "estimate" or J is not None:
        for name, found in ask(denoiser, method, arrays).items():
            if name in JACOBIANS:
                source = "mean_jacobian of a new denoiser gives"
                require_mean(name, found, J, source, problem)
            else:
                require_rows(name, found, problem, *known[:3])


def _require_jacobian(denoiser, problem, known, J):
    """Raise unless `J` is a mean over rows, and has the slopes that are known."""
    require_slopes("mean_jacobian", denoiser, problem, known)
    if (N := len(problem.r)) > 1:
        few = np.isin(np.arange(N), spread(N, 1 + N // FEWER))
        parts = problem.rows(few), problem.rows(~few)
        sums = (len(one.r) * denoiser.mean_jacobian(*one.copies()) for one in parts)
        source = "the mean of those of two parts is"
        require_mean("mean_jacobian", J, sum(sums) / N, source, problem)
