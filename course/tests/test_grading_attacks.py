"""Attacks on the grader from a sample class: each earns nothing, and its author is told why."""

import re

import pytest
import sample_class
from grading_samples import CHEATS, HOSTILE, RIGHT, WRONG, grade, isolated, messages, passed, total

from amptutorial_course.grading import isolation

pytestmark = pytest.mark.skipif(bool(isolation.bwrap_problem()), reason="bubblewrap does not work here")
OUTCOMES = sample_class.BANK["told"]


assert set(HOSTILE) == {*OUTCOMES, "a file of a megabyte"}
SOME = {"a syntax error", "sys.exit in estimate", "a patched NumPy in estimate", "a look into the frames in estimate"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in SOME else pytest.mark.slow) for name in OUTCOMES]
)
def test_a_hostile_submission_earns_nothing_and_is_told_why(name, rules, impatient):
    endless = "gave no answer" in OUTCOMES[name]
    found = grade(HOSTILE[name], impatient if endless else rules, "bwrap")
    assert total(found) == 0
    assert not passed(found) & {"optimality", "limits"}
    assert re.search(OUTCOMES[name], f"{found.status}\n{messages(found)}"), messages(found)


DELEGATES = """
import amptutorial as a
class RidgeByHand(a.Denoiser):
    def __init__(self, strength):
        self.ridge = a.Ridge(strength)
    def estimate(self, P, r, F):
        return self.ridge.estimate(P, r, F)
"""


@pytest.mark.parametrize("isolate", ["none", isolated("landlock"), "bwrap"])
def test_the_package_does_no_work_that_is_to_be_written_by_hand(rules, isolate):
    """Nor where its denoisers were reached while the file was imported; before that, they work."""
    early = DELEGATES.replace("a.Ridge(strength)", "RIDGE").replace("class", "RIDGE = a.Ridge(1.0)\nclass", 1)
    for source in (DELEGATES, early):
        found = grade(source, rules, isolate)
        assert total(found) == 0 and "a denoiser of the package was asked, but" in messages(found)


def test_a_second_process_is_refused_in_words(rules):
    body = "    from concurrent.futures import ProcessPoolExecutor\n    return ProcessPoolExecutor().map(len, P)"
    found = grade(RIGHT + sample_class.ATTACK.format(body=body), rules, "bwrap")
    assert "a submission that is graded can start threads, and has no other process" in messages(found)


@pytest.mark.slow
def test_a_patched_numpy_hides_no_mistake(rules):
    found = grade(RIGHT + CHEATS, rules)
    assert "no_mutation" not in passed(found)
    assert "estimate changes its argument P" in messages(found)
    assert "jacobian" not in passed(grade(WRONG + CHEATS.split("right =")[0], rules))
