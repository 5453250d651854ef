"""Grade one submission: run the checks of its assignment, on hidden settings, against the process that holds it."""

import functools

from amptutorial.assignments import assignment

from .remote import Session, StudentError, count_remote_lines, remote_class


def grade(source, rules):
    """Return the record of one submission, ready for JSON.

    Parameters
    ----------
    source : bytes or str
        Of denoiser.py; a text says why there is none.
    rules : Rules

    Returns
    -------
    dict
        ``status`` is "graded", or why nothing could be checked; ``checks`` lists what
        was found.
    """
    if isinstance(source, str):
        return record(rules, source)
    with Session(source, rules.limits) as session:
        try:
            session.start()
        except StudentError as error:
            return record(
                rules, session.over, printed=session.output(), traceback=error.traceback
            )

        @functools.cache
        def student_class(name):
            return remote_class(session, name)

        def make(name, **params):
            return student_class(name)(session, params)

        task = assignment(rules.number)
        missing = [
            _error(student_class, name)
            for name in {setting.class_name for setting in task.hidden(rules.seed)}
        ]
        if all(missing):
            return record(rules, str(missing[0]), printed=session.output())
        report = task.check(
            make, session.prediction, seed=rules.seed, count_lines=count_remote_lines
        )
        return record(rules, "graded", report.results, session.output())


def _error(function, argument):
    """Return the `StudentError` that a call raises, or None."""
    try:
        function(argument)
    except StudentError as error:
        return error


def record(rules, status, results=(), printed="", traceback=""):
    """Return a record: every check of the rules with its points, a failed one where there is no result."""
    found = {result.name: result for result in results}
    passed = {name for name, result in found.items() if result.passed}
    if found and rules.essential and not passed.intersection(rules.essential):
        status, passed = (
            f"graded; without {' or '.join(rules.essential)} nothing else earns points",
            set(),
        )
    checks = [
        {
            "name": name,
            "points": most if name in passed else 0.0,
            "most": most,
            "passed": name in found and found[name].passed,
            "message": found[name].message[:4000] if name in found else "not run",
            "contract": found[name].contract if name in found else "",
            "read": found[name].read if name in found else "",
        }
        for name, most in rules.weights.items()
    ]
    total = round(sum(check["points"] for check in checks), 2)
    return {
        "status": status,
        "checks": checks,
        "total": total,
        "printed": printed,
        "traceback": traceback,
    }
