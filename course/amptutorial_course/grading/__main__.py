"""The command line of the grader."""

import argparse
import contextlib
import os
import sys
from pathlib import Path

# One thread per process, decided before the judges load NumPy: the processes are what
# runs in parallel.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

from amptutorial import __version__  # noqa: E402
from amptutorial._files import write_atomically  # noqa: E402
from amptutorial._progress import progress  # noqa: E402
from amptutorial._validation import check_integer  # noqa: E402

from . import classroom, gradebook, isolation, judge, pages  # noqa: E402
from .gradescope import write_autograder  # noqa: E402
from .record import Record  # noqa: E402
from .rules import LIMITS, SEED_VARIABLE, Rules, default_path, load_rules  # noqa: E402
from .submissions import find_submissions  # noqa: E402


def warn(text):
    """Print a text where errors are printed."""
    print(text, file=sys.stderr)


def main(arguments=None):
    """Run the grader and return its exit status."""
    options = _parser().parse_args(arguments)
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

    export_course(options.nbgrader, options.config or default_path())
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
    record = judge.grade_submission(rules.read(options.dry_run), rules, isolate)
    print(judge.as_report(record, task))
    if record.told(task) != record.status:
        print(record.told(task))
    if record.printed:
        print(f"The end of what was printed:\n{record.printed}")
    print(f"{record.total(task):g} of 100 points on the public settings, isolated: {isolate}")
    return 0 if all(mark.result.passed for mark in record.marks(task)) else 1


def _rules(options):
    """Return the rules of a class, and warn if students could know its seed."""
    path = options.config or default_path()
    rules = load_rules(path, options.assignment)
    if rules.seed_is_public:
        advice = f"set {SEED_VARIABLE} to a secret, or name a file with one as seed_file, in a copy for --config"
        warn(f"the seed in {path} is public, and students can try the hidden settings: {advice}")
    return rules


def _grade(options):
    """Grade a class and write all files, also those of an unfinished run."""
    check_integer(options.jobs, "--jobs", minimum=1)
    _check_places(options)
    rules = _rules(options)
    isolate = isolation.choose(options.isolate or rules.isolate, warn)
    entries = find_submissions(options.submissions)
    folder = options.out.parent / f"{options.out.stem}_files"
    graded = classroom.grade_class(entries, rules, folder / "results", options.jobs, isolate)
    records = {student: Record("not graded yet", student=student) for student in entries}
    try:
        with contextlib.closing(graded):  # which ends the judges that are still at work
            for record in progress(graded, total=len(records), unit="submission"):
                records[record.student] = record
    finally:
        _write_results(records.values(), options.out, folder, rules.task)
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


def _write_results(records, out, folder, task):
    """Write the table, and a page for each student."""
    write_atomically(out, gradebook.class_table(records, task))
    for record in records:
        path = folder / "feedback" / f"{classroom.file_name(record.student)}.html"
        write_atomically(path, pages.student_page(record, task))


def _parser():
    kept = "Grade a class. Stored results are kept, and only what has changed is graded again."
    parser = argparse.ArgumentParser(prog="python -m amptutorial_course.grading", description=kept)
    add = parser.add_argument
    add("--version", action="version", version=f"amptutorial-course {__version__}")
    add("submissions", type=Path, nargs="?", help="folder with NAME.py, NAME.ipynb, NAME.zip or NAME/ for each student")
    add("--assignment", type=int, metavar="N", help="its number")
    add("--out", type=Path, metavar="CSV", help="the table; <out>_files/ beside it has a page for each student")
    add("--config", type=Path, metavar="YML", help="seed and limits (default: assignments/grading.yml)")
    add("--jobs", type=int, default=2, help="graded at the same time (default: 2)")
    add(
        "--isolate",
        choices=isolation.KINDS,
        help="what keeps them in (default: the first that works, never none)",
    )
    add = parser.add_argument_group("instead of grading a class").add_mutually_exclusive_group().add_argument
    add("--dry-run", type=Path, metavar="FILE", help="for students: report on one file, with the public settings")
    add("--gradescope", type=Path, metavar="ZIP", help="write the autograder of an assignment for Gradescope")
    add("--nbgrader", type=Path, metavar="FOLDER", help="write all assignments as a course for nbgrader")
    return parser


if __name__ == "__main__":
    sys.exit(main())
