"""Grade one submission: run the checks of its assignment against its process."""

from dataclasses import replace
from functools import cache

from amptutorial.checks import CheckReport
from amptutorial.checks.problems import LONG, SHORT

from .record import Record
from .session import Session, StudentError, count_remote_lines, remote_class


def grade_submission(submission, rules, isolate="none", told=lambda result, seconds: None):
    """Return the `Record` of one submission, on hidden settings.

    Parameters
    ----------
    submission : Submission
    rules : Rules
        Without a seed the settings are the public ones.
    isolate : str
        One of `grading.KINDS`.
    told : callable (CheckResult, float)
        Called with each result, and the seconds that it took, as soon as it is known.
    """
    source, note = submission.source, submission.note
    if isinstance(source, str):
        return Record(source[:2000])
    with Session(source, rules.limits, isolate, submission.helpers, rules.task.by_hand) as session:
        try:
            session.start()
        except StudentError as error:
            found = Record(session.over, traceback=error.traceback)
        else:
            found = _check(session, rules, told)
        return replace(found, printed=session.output(), timed_out=session.timed_out, note=note)


def as_report(record, task):
    """Return what was found as the report that students know from their notebooks.

    Where nothing could be checked it says so once.
    """
    title = f"Assignment {task.number}, {task.title}"
    if record.results:
        return CheckReport(title, record.results)
    return f"{title}: {record.status}; {len(task.points)} checks wait\n{record.traceback}".strip()


def _check(session, rules, told):
    """Return the record of a submission that has been imported."""
    seconds = {}

    def keep(result):
        seconds[result.name] = session.seconds - sum(seconds.values())
        told(result, seconds[result.name])

    @cache
    def student_class(name):
        return remote_class(session, name)

    def make(name, **params):
        return student_class(name)(session, params)

    task = rules.task
    missing = []
    for name in task.class_names:
        try:
            student_class(name)
        except StudentError as error:
            missing.append(str(error))
    if len(missing) == len(task.class_names):
        return Record(missing[0])
    # a dry run on public settings is a student's
    n_problems = SHORT if rules.seed is None else LONG
    options = {"seed": rules.seed, "n_problems": n_problems, "count_lines": count_remote_lines, "told": keep}
    report = task.check(make, session.prediction, **options)
    results = tuple(replace(result, message=result.message[:4000]) for result in report.results)
    return Record("graded", results, {name: round(value, 1) for name, value in seconds.items()})
