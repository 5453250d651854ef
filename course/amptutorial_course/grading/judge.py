"""Grade one submission: run the checks of its assignment against its process."""

import functools

from amptutorial.checks import CheckReport, CheckResult

from .record import make_record
from .session import Session, StudentError, count_remote_lines, remote_class


def grade_submission(source, rules, isolate="none", helpers=None):
    """Return the `Record` of one submission, on hidden settings.

    Parameters
    ----------
    source : bytes or str
        Of denoiser.py; a text says why there is none.
    rules : Rules
        Without a seed the settings are the public ones.
    isolate : str
        One of `isolation.KINDS`.
    helpers : dict, optional
        The modules beside it, bytes by their path.
    """
    if isinstance(source, str):
        return make_record(rules.task, source)
    with Session(source, rules.limits, isolate, helpers) as session:
        try:
            session.start()
        except StudentError as error:
            printed, lines = session.output(), error.traceback
            return make_record(rules.task, session.over, printed=printed, traceback=lines)
        return _check_session(session, rules)


def as_report(record, title):
    """Return what was found as the report that students know from their notebooks.

    Where nothing could be checked it says so once.
    """
    if not record.status.startswith("graded"):
        checks = f"{len(record.marks)} checks wait"
        lines = f"{title}: {record.status}; {checks}", record.traceback.strip()
        return "\n".join(filter(None, lines))
    fields = ("name", "passed", "message", "contract", "read")
    return CheckReport(
        title,
        tuple(CheckResult(*(getattr(mark, name) for name in fields)) for mark in record.marks),
    )


def _check_session(session, rules):
    """Return the record of a submission that has been imported."""

    @functools.cache
    def student_class(name):
        return remote_class(session, name)

    def make(name, **params):
        return student_class(name)(session, params)

    task = rules.task
    settings = task.public() if rules.seed is None else task.hidden(rules.seed)
    names = {setting.class_name for setting in settings}
    missing = [_error(student_class, name) for name in names]
    if all(missing):
        return make_record(rules.task, str(missing[0]), printed=session.output())
    report = task.check(make, session.prediction, seed=rules.seed, count_lines=count_remote_lines)
    return make_record(rules.task, "graded", report.results, session.output())


def _error(function, argument):
    """Return the `StudentError` that a call raises, or None."""
    try:
        function(argument)
    except StudentError as error:
        return error
