"""The limits of time: on a processor three times as slow as this one every right file ends in half of them."""

import pytest
from grading_samples import SOLUTIONS, total

from amptutorial_course.assignments import ASSIGNMENTS
from amptutorial_course.grading import gradescope, isolation, judge
from amptutorial_course.grading.rules import LIMITS, Rules, derive_seed
from amptutorial_course.grading.submissions import Submission

FAST = "06_clusters/denoiser.py"
FILES = [path for task in ASSIGNMENTS.values() for path in sorted((SOLUTIONS / task.folder).glob("*.py"))]


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=() if f"{path.parent.name}/{path.name}" == FAST else pytest.mark.slow) for path in FILES],
    ids=lambda path: f"{path.parent.name}-{path.stem}",
)
def test_a_right_file_needs_a_sixth_of_its_seconds(path):
    number = int(path.parent.name[:2])
    rules = Rules(number, derive_seed("hush", number), LIMITS)
    record = judge.grade_submission(Submission(path.read_bytes()), rules, isolation.best())
    assert total(record, number) == 100 and set(record.seconds) == set(rules.task.points)
    assert 6 * sum(record.seconds.values()) <= LIMITS["seconds"]


def test_what_is_told_of_a_class_is_what_its_files_need():
    """And the archive for Gradescope leaves as much as that for ten minutes of half a processor."""
    assert {task.seconds for task in ASSIGNMENTS.values() if task.number != 8} == {8.0}
    assert ASSIGNMENTS[8].seconds * 2 * 3 <= gradescope.LIMITS["seconds_on_the_wall"]
