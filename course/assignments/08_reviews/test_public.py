"""The public checks of assignment 8, a test for each: python -m pytest test_public.py."""

from pathlib import Path

from amptutorial_course.assignments import assignment_trials, check_prediction
from amptutorial_course.assignments.reviews import promise_heldout
from amptutorial.checks import parametrize_with_denoiser_checks

SUBMISSION = Path(__file__).with_name("denoiser.py")
TRIALS = assignment_trials(8, SUBMISSION)


@parametrize_with_denoiser_checks(TRIALS)
def test_contract(denoiser, check):
    check(denoiser)


def test_heldout():
    for trial in filter(promise_heldout.applies, TRIALS):
        promise_heldout(trial)


def test_prediction():
    result = check_prediction(8, SUBMISSION)
    assert result.passed, result.message
