"""Which check a mistake costs: what judges a method has its points, and what asks again has those of state.

All other checks ask a new denoiser each time, with arrays of its own. Where a method is wrong, they ask without it.
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
# what a wrong method costs, and what asks the same denoiser more than once
COSTS = {"shapes", *JUDGES, *PARTS}
AGAIN = {"no_mutation", "deterministic", "refit", *PARTS}


def others(wrong):
    """Return the methods that are not wrong."""
    return [name for name in METHODS if name not in wrong]


def as_it_is(denoiser, method, arguments):
    """Ask a denoiser, with these arrays."""
    return getattr(denoiser, method)(*arguments)


def anew(denoiser, method, arguments):
    """Ask a copy of a denoiser, with copies of the arrays."""
    return as_it_is(copied(denoiser), method, [np.copy(array) for array in arguments])


class Part(Denoiser):
    """Some methods of a denoiser; of the others the Jacobian is inherited, and the penalty that of the belief."""

    def __init__(self, whole, belief, methods=METHODS, ask=anew):
        self.whole, self.precision, self.ask = whole, whole.precision, ask
        self.again = functools.partial(Part, belief=belief, methods=methods, ask=ask)
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
        answer = self.ask(self.whole, method, arguments)
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
        asked = {name: self.part(methods, as_it_is if name == WHOLE.name else anew) for name, methods in PARTS.items()}
        said = {name: _error(WHOLE, part) for name, part in asked.items()}
        # what is wrong when all are asked in turn, and none is alone
        return said if any(said.values()) else said | {WHOLE.name: whole}

    @cached_property
    def judgements(self):
        """What each of the judges says: a note, or an error, kept since a method that ends Python is asked twice."""
        return {name: _said(CHECKS[name], self.fresh) for name in JUDGES if CHECKS[name].applies(self)}

    @cached_property
    def wrong(self):
        """The methods that those who judge them find wrong."""
        wrong = (JUDGES[name] for name, said in self.judgements.items() if isinstance(said, Exception))
        return set().union(*wrong)

    @cached_property
    def fresh(self):
        """The trial in which a new denoiser is asked each time."""
        return self.part(METHODS)

    def part(self, methods, ask=anew):
        """Return a trial, and its relatives, in which a denoiser is asked for the estimate and these methods."""

        def part(trial):
            return replace(
                trial,
                make=lambda **changes: Part(trial.make(**changes), trial.belief, methods, ask),
                count_lines=lambda denoiser, *arguments: trial.count_lines(copied(denoiser.whole), *arguments),
            )

        return replace(part(self), relatives=tuple(map(part, self.relatives)))


def judged(check):
    """Return a check that a wrong method does not fail, unless it is one that this `COSTS`."""
    ask = as_it_is if check.name in AGAIN else anew

    @functools.wraps(check.run)
    def run(trial):
        try:
            if check.name in JUDGES:
                return _say(trial.judgements[check.name])
            return check.run(trial if check.name in AGAIN else trial.fresh)
        # whatever a student's code raises
        except Exception as error:
            if check.name in HINTS and isinstance(error, AssertionError):
                error.args = (with_hint(check, trial, error),)
            if check.name in COSTS or not trial.wrong or _error(check, trial.part(others(trial.wrong), ask)):
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
