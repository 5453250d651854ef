"""What the commands of the grader do."""

import contextlib
import os
import sys

from amptutorial._files import write_atomically
from amptutorial._progress import progress
from amptutorial._validation import check_integer

from . import classroom, gradebook, isolation, judge, pages
from .gradescope import write_autograder
from .record import Record
from .rules import LIMITS, Rules, default_path, load_rules
from .submissions import find_submissions


def warn(text):
    """Print a text where errors are printed."""
    print(text, file=sys.stderr)


def run(options):
    """Run the grader with options of the command line, and return its exit status."""
    if not hasattr(os, "killpg"):
        warn("the grader needs Linux or macOS; on Windows: WSL")
        return 1
    try:
        if options.nbgrader:
            return _write_course(options)
        if options.assignment is None:
            raise ValueError("name the assignment: --assignment N")
        if options.gradescope:
            return _write_autograder(options)
        return _dry_run(options) if options.dry_run else _grade(options)
    except KeyboardInterrupt:
        warn("Interrupted: the same command goes on from here.")
        return 130
    except (OSError, ValueError, TypeError, ModuleNotFoundError) as error:
        warn(error)
        return 1


def _write_course(options):
    """Write the assignments as a course for nbgrader."""
    from .nbgrader import export_course  # takes seconds to be imported

    path = options.config or default_path()
    load_rules(path, 1, warn=warn)
    export_course(options.nbgrader, path)
    print(f"how to go on: {options.nbgrader / 'README.md'}")
    return 0


def _write_autograder(options):
    """Write the archive that Gradescope is given for one assignment."""
    write_autograder(options.gradescope, _rules(options))
    print(f"for Gradescope: {options.gradescope}")
    return 0


def _dry_run(options):
    """Print the report of one file on the public settings, run as the grader does."""
    rules = Rules(options.assignment, None, LIMITS)
    task, isolate = rules.task, options.isolate or isolation.best()

    def told(result, seconds):
        warn(f"{seconds:6.1f} s  {'pass' if result.passed else 'FAIL'}  {result.name}")

    record = judge.grade_submission(rules.read(options.dry_run), rules, isolate, told)
    print(judge.as_report(record, task))
    if record.told(task) != record.status:
        print(record.told(task))
    if record.printed:
        print(f"The end of what was printed:\n{record.printed}")
    print(f"{record.total(task):g} of 100 points on the public settings, isolated: {isolate}")
    return 0 if all(mark.result.passed for mark in record.marks(task)) else 1


def _rules(options):
    """Return the rules of a class, and warn if students could know its seed."""
    return load_rules(options.config or default_path(), options.assignment, warn=warn)


def _grade(options):
    """Grade a class and write all files, also those of an unfinished run."""
    check_integer(options.jobs, "--jobs", minimum=1)
    _check_places(options)
    rules = _rules(options)
    isolate = isolation.choose(options.isolate or rules.isolate, warn)
    entries = find_submissions(options.submissions)
    folder = options.out.parent / f"{options.out.stem}_files"
    minutes = len(entries) * rules.task.seconds / options.jobs / 60
    warn(f"{len(entries)} submissions, {options.jobs} at a time: about {minutes:.1f} min, more where files hang")
    graded, records = classroom.grade_class(entries, rules, folder / "results", options.jobs, isolate), {}

    def keep(record):
        records[record.student] = record
        page = folder / "feedback" / f"{classroom.file_name(record.student)}.html"
        write_atomically(page, pages.student_page(record, rules.task))

    try:
        with contextlib.closing(graded):  # which ends the judges that are still at work
            for record in progress(graded, total=len(entries), unit="submission"):
                keep(record)
    finally:
        for student in entries:
            if student not in records:
                keep(Record("not graded yet", student=student))
        write_atomically(options.out, gradebook.class_table(records.values(), rules.task))
    print(f"{len(records)} submissions graded: {options.out}\na page for each student: {folder / 'feedback'}")
    late = [record.student for record in records.values() if record.timed_out]
    if late:
        warn(f"time ran out for {', '.join(late)}: the same command grades them again, best on a quiet machine")
    failed = [record.student for record in records.values() if record.fault]
    if failed:
        warn(f"the grader itself failed for {', '.join(failed)}; {folder / 'results'} says why. Run it again.")
    (path, *_), *more = entries.values()
    if path.is_dir() and not more and not any(record.results for record in records.values()):
        warn(f"if {path.name} holds a whole class, name {path} as the folder")
    return 1 if failed else 0


def _check_places(options):
    """Raise a ValueError unless it is plain what is graded and where results go."""
    out, submissions = options.out, options.submissions
    if not (submissions and out):
        raise ValueError("name the folder of the submissions, and --out grades.csv")
    if out.exists() and not out.is_file():
        raise ValueError(f"--out {out} is no file: name a table, such as grades.csv")
    if out.resolve().is_relative_to(submissions.resolve()):
        raise ValueError(f"--out {out} lies among the submissions, {submissions}: choose another folder")
