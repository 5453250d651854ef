"""Settings of the tests of the course."""

import sys
from dataclasses import replace

import pytest


@pytest.fixture
def rules():
    """Return the rules of assignment 1 with a seed and limits for tests."""
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
    """Skip the grader where the system lacks the limits that the tests try to break."""
    if sys.platform == "linux":
        return
    for item in items:
        if item.path.stem.startswith("test_grading"):
            item.add_marker(pytest.mark.skip(reason="the grader is tested on Linux"))


def pytest_terminal_summary(terminalreporter):
    """Print how many right solutions and mistakes of the bank the kit has told apart, and which it has not."""
    reports = [report for status in ("passed", "failed") for report in terminalreporter.stats.get(status, [])]
    rows = [
        tuple(value) for report in reports for name, value in getattr(report, "user_properties", ()) if name == "bank"
    ]
    if rows:
        terminalreporter.section("right and wrong denoisers")
    for folder in sorted({row[0] for row in rows}):
        asked = [row for row in rows if row[0] == folder]
        right = sum(what.startswith("right: ") for _, what, *_ in asked)
        terminalreporter.write_line(f"{folder:<18} {right} right solutions, {len(asked) - right} mistakes")
        for _, what, check, as_expected in asked:
            if not as_expected:
                terminalreporter.write_line(f"{'':<18} not as expected: {what} ({check})")
