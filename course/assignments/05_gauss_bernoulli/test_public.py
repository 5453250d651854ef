"""The public checks of assignment 5, a test for each: python -m pytest test_public.py."""

from pathlib import Path

from amptutorial_course.assignments import assignment_trials, check_prediction
from amptutorial.checks import parametrize_with_denoiser_checks

SUBMISSION = Path(__file__).with_name("denoiser.py")


@parametrize_with_denoiser_checks(assignment_trials(5, SUBMISSION))
def test_contract(denoiser, check):
    check(denoiser)


def test_prediction():
    result = check_prediction(5, SUBMISSION)
    assert result.passed, result.message
