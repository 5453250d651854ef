"""Which check a mistake costs: what judges a method has its points, and what asks again has those of state.

All other checks ask a copy of a denoiser, with arrays of its own. Where a method is wrong, they ask without it.
"""

import functools
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from amptutorial.checks import CHECKS, Check, Trial
from amptutorial.checks.trials import copied, is_own
from amptutorial.denoisers import Denoiser

from ._hints import HINTS, with_hint

WHOLE = CHECKS["right_answers"]
JACOBIAN, PENALTY = ("mean_jacobian", "denoise"), ("penalty", "convexity")
METHODS = (*JACOBIAN, *PENALTY, "refit", "frozen")
# the methods that each part asks beside the estimate, and who says that they are wrong
PARTS = {"right_answers": (), "right_jacobian": JACOBIAN, "right_penalty": PENALTY}
JUDGES = {"jacobian": JACOBIAN, "penalty": PENALTY}
# what a wrong method costs
COSTS = {"shapes", *JUDGES, *PARTS}


def others(wrong):
    """Return the methods that are not wrong."""
    return [name for name in METHODS if name not in wrong]


class Part(Denoiser):
    """Some methods of a denoiser; of the others the Jacobian is inherited, and the penalty that of the belief.

    One that `forgets` asks a copy each time, with copies of the arrays.
    """

    def __init__(self, whole, belief, methods=METHODS, forgets=True):
        self.whole, self.precision, self.forgets = whole, whole.precision, forgets
        self.again = functools.partial(Part, belief=belief, methods=methods, forgets=forgets)
        if "penalty" not in methods and hasattr(belief, "value"):
            c = belief.convexity or 0.0
            stated = {"penalty": lambda X, r: float(belief.value(X / np.sqrt(r)[:, None]).sum())}
            vars(self).update(stated, convexity=lambda r: float(c / r.max()))
        own = [name for name in methods if is_own(whole, name)]
        vars(self).update({name: functools.partial(self._answer, name) for name in own})

    def estimate(self, P, r, F):
        """Return the estimate."""
        return self._answer("estimate", P, r, F)

    def _answer(self, method, *arguments):
        whole = copied(self.whole) if self.forgets else self.whole
        answer = getattr(whole, method)(*(map(np.copy, arguments) if self.forgets else arguments))
        return self.again(answer) if isinstance(answer, Denoiser) else answer


@dataclass(frozen=True)
class TrialInParts(Trial):
    """A `Trial` that knows which methods are wrong, and which of the `PARTS` of right answers."""

    @cached_property
    def answers(self):
        """What is said of each part: a note, or the error of one that is wrong."""
        whole = _said(WHOLE, self)
        if not isinstance(whole, Exception):
            return dict.fromkeys(PARTS, whole)
        said = {name: _error(WHOLE, self.part(methods, name != WHOLE.name)) for name, methods in PARTS.items()}
        # what is wrong when all are asked in turn, and none is alone
        return said if any(said.values()) else said | {WHOLE.name: whole}

    @cached_property
    def judgements(self):
        """What each of the judges says: a note, or an error, kept since a method that ends Python is asked twice."""
        return {name: _said(CHECKS[name], self) for name in JUDGES if CHECKS[name].applies(self)}

    @cached_property
    def wrong(self):
        """The methods that those who judge them find wrong."""
        wrong = (JUDGES[name] for name, said in self.judgements.items() if isinstance(said, Exception))
        return set().union(*wrong)

    def part(self, methods, forgets=False):
        """Return a trial, and its relatives, in which a denoiser is asked for the estimate and these methods."""

        def part(trial):
            def make(**changes):
                return Part(trial.make(**changes), trial.belief, methods, forgets)

            def count_lines(denoiser, *arguments):
                return trial.count_lines(trial.make(), *arguments)

            return replace(trial, make=make, count_lines=count_lines)

        return replace(part(self), relatives=tuple(map(part, self.relatives)))


def judged(check):
    """Return a check that a wrong method does not fail, unless it is one that this `COSTS`."""

    @functools.wraps(check.run)
    def run(trial):
        try:
            if check.name in JUDGES:
                return _say(trial.judgements[check.name])
            return check.run(trial)
        # whatever a student's code raises
        except Exception as error:
            if check.name in HINTS and isinstance(error, AssertionError):
                error.args = (with_hint(check, trial, error),)
            if check.name in COSTS or not trial.wrong or _error(check, trial.part(others(trial.wrong))):
                raise
        return f"asked without {', '.join(sorted(trial.wrong))}, for which other checks have the points"

    return replace(check, run=run)


def _said(check, trial):
    """Return what a check says: a note, or the error that it raises."""
    try:
        return check.measure(trial)
    # whatever a student's code raises
    except Exception as error:  # noqa: BLE001
        return error


def _error(check, trial):
    """Return the error of a check, or None."""
    said = _said(check, trial)
    return said if isinstance(said, Exception) else None


def _say(said):
    if isinstance(said, Exception):
        raise said
    return said


def right_answers(trial):
    """Estimates are those of the belief, whatever is asked.

    Dimension, number of rows, rates, F, parameters and the order are drawn together. Where no belief says what is
    right, each row gets the answer that it gets alone.
    """
    return _say(trial.answers["right_answers"])


def right_jacobian(trial):
    """Jacobians are those of the right estimates, whatever is asked."""
    return _say(trial.answers["right_jacobian"])


def right_penalty(trial):
    """Penalty and convexity are those of the belief, whatever is asked, and at right estimates."""
    return _say(trial.answers["right_penalty"])


BY_PART = (
    Check(right_answers, WHOLE.page, WHOLE.applies),
    Check(right_jacobian, WHOLE.page, WHOLE.applies),
    Check(right_penalty, WHOLE.page, lambda trial: WHOLE.applies(trial) and trial.states("prox")),
)
