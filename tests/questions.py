"""Many questions of one thing, asked in one visit: a page is opened once, and all that is wrong with it is said."""

import pytest


def ask(questions, *subject):
    """Ask every question about the subject; one that fails does not hide what the next ones find."""
    failed = []
    for question in questions:
        try:
            question(*subject)
        except Exception as error:
            failed.append(f"{question.__name__.replace('_', ' ')}: {error}")
    if failed:
        pytest.fail("\n\n".join(failed), pytrace=False)
