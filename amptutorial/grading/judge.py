"""Grade one submission: run the checks of its assignment against its process."""

import functools

from ..assignments import assignment
from .record import make_record
from .remote import Session, StudentError, count_remote_lines, remote_class


def grade_submission(source, rules, isolate="none"):
    """Return the `Record` of one submission, on hidden settings.

    Parameters
    ----------
    source : bytes or str
        Of denoiser.py; a text says why there is none.
    rules : Rules
    isolate : str
        One of `isolation.KINDS`.
    """
    if isinstance(source, str):
        return make_record(rules, source)
    with Session(source, rules.limits, isolate) as session:
        try:
            session.start()
        except StudentError as error:
            printed, lines = session.output(), error.traceback
            return make_record(rules, session.over, printed=printed, traceback=lines)
        return _check_session(session, rules)


def _check_session(session, rules):
    """Return the record of a submission that has been imported."""

    @functools.cache
    def student_class(name):
        return remote_class(session, name)

    def make(name, **params):
        return student_class(name)(session, params)

    task = assignment(rules.number)
    names = {setting.class_name for setting in task.hidden(rules.seed)}
    missing = [_error(student_class, name) for name in names]
    if all(missing):
        return make_record(rules, str(missing[0]), printed=session.output())
    report = task.check(
        make, session.prediction, seed=rules.seed, count_lines=count_remote_lines
    )
    return make_record(rules, "graded", report.results, session.output())


def _error(function, argument):
    """Return the `StudentError` that a call raises, or None."""
    try:
        function(argument)
    except StudentError as error:
        return error
