"""The check of right answers, method by method: who has one of them wrong keeps the points of the others."""

import re
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from amptutorial.checks import CHECKS, Check, Trial
from amptutorial.checks.answers import is_own
from amptutorial.checks.oracle import states_minimum
from amptutorial.denoisers import Denoiser

WHOLE = CHECKS["right_answers"]
# the methods that each part asks beside the estimate
PARTS = {
    "right_answers": (),
    "right_jacobian": ("mean_jacobian", "denoise"),
    "right_penalty": ("penalty", "convexity"),
}
# which checks judge them
JUDGES = {
    ("mean_jacobian", "denoise"): ("jacobian", "right_jacobian"),
    ("penalty", "convexity"): ("penalty", "right_penalty"),
}
METHODS = (*(method for methods in JUDGES for method in methods), "refit", "frozen")


class Part(Denoiser):
    """Some methods of a denoiser; of the others the Jacobian is inherited, and the penalty that of the belief."""

    def __init__(self, whole, belief, methods):
        self.whole, self.precision = whole, whole.precision
        if hasattr(belief, "value"):
            c = belief.convexity or 0.0
            stated = {"penalty": lambda X, r: float(belief.value(X / np.sqrt(r)[:, None]).sum())}
            vars(self).update(stated, convexity=lambda r: float(c / r.max()))
        vars(self).update({name: getattr(whole, name) for name in methods if is_own(whole, name)})

    def estimate(self, P, r, F):
        """Return the estimate."""
        return self.whole.estimate(P, r, F)


@dataclass(frozen=True)
class TrialInParts(Trial):
    """A `Trial` that knows which of the `PARTS` of right answers it gives."""

    @cached_property
    def answers(self):
        """What is said of each part: a note, or the error of one that is wrong."""
        whole = _said(self)
        if not isinstance(whole, Exception):
            return dict.fromkeys(PARTS, whole)
        said = {name: _said(in_part(self, methods)) for name, methods in PARTS.items()}
        # what is wrong when all are asked in turn, and none is alone
        return said if any(isinstance(one, Exception) for one in said.values()) else said | {WHOLE.name: whole}


def in_part(trial, methods):
    """Return a trial, and its relatives, in which a denoiser is asked for the estimate and these methods."""

    def part(trial):
        return replace(
            trial,
            make=lambda **changes: Part(trial.make(**changes), trial.belief, methods),
            count_lines=lambda denoiser, *arguments: trial.count_lines(denoiser.whole, *arguments),
        )

    return replace(part(trial), relatives=tuple(map(part, trial.relatives)))


def malformed(message):
    """Return the other methods and the checks that are lost, if it is told that an answer is malformed, or None.

    Examples
    --------
    >>> malformed("d = 3: penalty returns None; return a float")[1]
    ('penalty', 'right_penalty')
    """
    found = re.search(r"(?:\A|: )(\w+)\S* returns ", message)
    for methods, judges in JUDGES.items():
        if found and found[1] in methods:
            return [each for each in METHODS if each not in methods], judges
    return None


def _said(trial):
    """Return the note of the whole check, or its error."""
    try:
        return WHOLE.measure(trial)
    # whatever a student's code raises
    except Exception as error:  # noqa: BLE001
        return error


def _say(trial, name):
    if isinstance(trial.answers[name], Exception):
        raise trial.answers[name]
    return trial.answers[name]


def right_answers(trial):
    """Estimates are those of the belief, whatever is asked.

    Dimension, number of rows, rates, F, parameters and the order are drawn together. Where no belief says what is
    right, each row gets the answer that it gets alone.
    """
    return _say(trial, "right_answers")


def right_jacobian(trial):
    """Jacobians are those of the right estimates, whatever is asked."""
    return _say(trial, "right_jacobian")


def right_penalty(trial):
    """Penalty and convexity are those of the belief, whatever is asked, and at right estimates."""
    return _say(trial, "right_penalty")


BY_PART = (
    Check(right_answers, WHOLE.page, WHOLE.applies),
    Check(right_jacobian, WHOLE.page, WHOLE.applies),
    Check(right_penalty, WHOLE.page, lambda trial: WHOLE.applies(trial) and states_minimum(trial)),
)
