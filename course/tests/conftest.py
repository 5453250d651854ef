"""Settings of the tests of the course."""

import sys
from dataclasses import replace

import pytest

from amptutorial_course.assignments import ASSIGNMENTS


@pytest.fixture(params=ASSIGNMENTS.values(), ids=lambda task: task.folder)
def task(request):
    """Return each assignment in turn."""
    return request.param


@pytest.fixture
def rules():
    from grading_samples import GRADING, LIMITS

    from amptutorial_course.grading.rules import load_rules

    return replace(load_rules(GRADING, 1, seed=5), limits=LIMITS)


@pytest.fixture
def impatient(monkeypatch, rules):
    """Return rules with short limits and no restarts: what is asked is how an attack ends."""
    from amptutorial_course.grading import session

    monkeypatch.setattr(session, "RESTARTS", 0)
    return replace(rules, limits=rules.limits | {"seconds_per_call": 2})


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark what grades a class as slow; skip the grader where the system lacks the limits that tests try to break."""
    for item in items:
        if {"course", "graded"}.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("slow")
        if sys.platform != "linux" and item.path.stem.startswith("test_grading"):
            item.add_marker(pytest.mark.skip(reason="the grader is tested on Linux"))
