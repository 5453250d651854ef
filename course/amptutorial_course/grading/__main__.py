"""The command line of the grader."""

import argparse
import contextlib
import os
import signal
import sys
import time
from pathlib import Path

# One thread per process, decided before the judges load NumPy: the processes are what
# runs in parallel.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

from tqdm import tqdm  # noqa: E402

from amptutorial._files import write_atomically  # noqa: E402
from amptutorial._validation import check_integer  # noqa: E402

from ..assignments import assignment  # noqa: E402
from . import classroom, gradebook, isolation, judge, pages  # noqa: E402
from .gradescope import write_autograder  # noqa: E402
from .rules import SEED_VARIABLE, default_path, load_rules, public_rules  # noqa: E402
from .submissions import collect_submissions, read_submission  # noqa: E402


def main(arguments=None):
    """Run the grader and return its exit status."""
    options = _parser().parse_args(arguments)
    if not hasattr(os, "killpg"):
        print("the grader needs Linux or macOS; on Windows: WSL", file=sys.stderr)
        return 1
    try:
        if options.nbgrader:
            return _write_course(options)
        if options.assignment is None:
            raise ValueError("name the assignment: --assignment N")
        if options.dry_run:
            return _dry_run(options)
        if options.gradescope:
            return _write_autograder(options)
        with _signals_interrupt():
            return _grade(options)
    except KeyboardInterrupt:
        print("Interrupted: the same command goes on from here.", file=sys.stderr)
        return 130
    except (OSError, ValueError, TypeError) as error:
        print(error, file=sys.stderr)
        return 1


def _write_course(options):
    """Write the assignments as a course for nbgrader."""
    from .nbgrader import export_course  # takes seconds to be imported

    names = export_course(options.nbgrader, options.config or default_path())
    print(f"{len(names)} assignments: {options.nbgrader / 'README.md'} says how to go on")
    return 0


def _write_autograder(options):
    """Write the archive that Gradescope is given for one assignment."""
    rules = _rules(options)
    write_autograder(options.gradescope, rules)
    print(f"for Gradescope, assignment {rules.number}: {options.gradescope}")
    return 0


def _dry_run(options):
    """Print the report of one file on the public settings, run as the grader does."""
    task, rules = assignment(options.assignment), public_rules(options.assignment)
    size = rules.limits["file_kilobytes"]
    submission = read_submission(options.dry_run, task.class_names, size)
    isolate = _isolation(options)
    record = judge.grade_submission(submission.source, rules, isolate, submission.helpers)
    if submission.note:
        print(submission.note)
    print(judge.as_report(record, f"Assignment {task.number}, {task.title}"))
    if record.printed:
        print(f"The end of what was printed:\n{record.printed}")
    print(f"{record.total:g} of 100 points on the public settings, isolated: {isolate}")
    return 0 if all(mark.passed for mark in record.marks) else 1


def _rules(options):
    """Return the rules of a class, and warn if students could know its seed."""
    path = options.config or default_path()
    rules = load_rules(path, options.assignment, options.seed)
    if rules.seed_is_public:
        print(
            f"the seed in {path} is public, and students can try the hidden settings: "
            "write a secret into a file and name it there as seed_file, or set "
            f"{SEED_VARIABLE}",
            file=sys.stderr,
        )
    return rules


def _isolation(options):
    """Return the kind of isolation, and warn if it is none."""
    isolate, warning = isolation.choose(options.isolate)
    if warning:
        print(warning, file=sys.stderr)
    return isolate


def _grade(options):
    """Grade a class and write all files, also those of an unfinished run."""
    check_integer(options.jobs, "--jobs", minimum=1)
    _check_places(options)
    rules, isolate = _rules(options), _isolation(options)
    size = rules.limits["file_kilobytes"]
    class_names = rules.task.class_names
    submissions = collect_submissions(options.submissions, class_names, size)
    folder = options.out.parent / f"{options.out.stem}_files"
    graded = classroom.grade_class(submissions, rules, folder / "results", options.jobs, isolate)
    records = {each.student: classroom.waiting(each, rules) for each in submissions}
    try:
        _follow(graded, records, options.out, rules.task)
    finally:
        _write_results(records.values(), options.out, folder, rules.task)
    print(f"{len(records)} submissions graded: {options.out}")
    print(f"a page for each student: {folder / 'feedback'}")
    notes = [f"{each.student}: {each.note}" for each in submissions if each.note]
    print(*notes, sep="\n", end="\n" if notes else "")
    complete = _fill_in(records.values(), options)
    # whatever a submission does, its record has a key
    failed = [record.student for record in records.values() if not record.key]
    if failed:
        print(
            f"the grader itself failed for {', '.join(failed)}: 0 points for now. "
            f"{folder / 'results'} says why, and the same command tries again.",
            file=sys.stderr,
        )
    return 0 if complete and not failed else 1


def _check_places(options):
    """Raise a ValueError unless it is plain what is graded and where results go."""
    out, submissions = options.out, options.submissions
    if not (submissions and out):
        raise ValueError("name the folder of the submissions, and --out grades.csv")
    if out.exists() and not out.is_file():
        raise ValueError(f"--out {out} is no file: name a table, such as grades.csv")
    if out.resolve().is_relative_to(submissions.resolve()):
        raise ValueError(
            f"--out {out} lies in {submissions}, where every entry is taken for a student: choose another folder"
        )
    if options.into:
        if not options.column:
            raise ValueError("--into needs --column, the heading of what is filled in")
        gradebook.fill_in(_text(options.into), options.column, {})


def _follow(graded, records, out, task):
    """Take up records as they come, and write the table once a second at most."""
    written = 0.0
    # closing ends the judges that are still at work
    with contextlib.closing(graded):
        for record in tqdm(graded, total=len(records), unit="submission", disable=None):
            records[record.student] = record
            if time.monotonic() > written + 1:
                write_atomically(out, gradebook.class_table(records.values(), task))
                written = time.monotonic()


def _write_results(records, out, folder, task):
    """Write the table, and a page for each student."""
    write_atomically(out, gradebook.class_table(records, task))
    for record in records:
        path = folder / "feedback" / f"{classroom.file_name(record.student)}.html"
        write_atomically(path, pages.student_page(record, task))


def _fill_in(records, options):
    """Write the table of a platform with the points; say whether all are in it."""
    if not options.into:
        return True
    totals = {record.student: record.total for record in records}
    text, left_out = gradebook.fill_in(_text(options.into), options.column, totals)
    path = options.out.with_name(f"{options.out.stem}_{options.into.name}")
    write_atomically(path, text)
    print(f"with the points of {len(totals) - len(left_out)}: {path}")
    if left_out:
        print(
            f"left out, since {options.into} has no line for them, or more than one: {', '.join(left_out)}",
            file=sys.stderr,
        )
    return not left_out


def _text(path):
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not encoded in UTF-8: export it so") from None


@contextlib.contextmanager
def _signals_interrupt():
    """Let the signals by which a system or a closed terminal ends us be interrupts."""
    signals = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(each, signal.default_int_handler) for each in signals]
    try:
        yield
    finally:
        for each, handler in zip(signals, before, strict=True):
            signal.signal(each, handler)


def _parser():
    parser = argparse.ArgumentParser(
        prog="python -m amptutorial_course.grading",
        description="Grade a class. Stored results are kept, and only what has changed is graded again.",
    )
    add = parser.add_argument
    add("submissions", type=Path, nargs="?", help="folder with NAME.py, NAME.ipynb, NAME.zip or NAME/ for each student")
    add("--assignment", type=int, metavar="N", help="its number")
    add("--out", type=Path, metavar="CSV", help="the table; <out>_files/ beside it has a page for each student")
    add("--into", type=Path, metavar="CSV", help="a table that a platform exports: it comes back with the points")
    add("--column", help="with --into: the heading of the column that is filled in")
    add("--config", type=Path, metavar="YML", help="seed and limits (default: assignments/grading.yml)")
    add("--seed", help="of the hidden settings, instead of the one in the configuration")
    add("--jobs", type=int, default=2, help="graded at the same time (default: 2)")
    add(
        "--isolate",
        choices=isolation.KINDS,
        help="a container for each submission (default: bwrap, if bubblewrap works here, or else none)",
    )
    instead = parser.add_argument_group("instead of grading a class")
    only = instead.add_mutually_exclusive_group()
    only.add_argument(
        "--dry-run", type=Path, metavar="FILE", help="for students: report on one file, with the public settings"
    )
    only.add_argument(
        "--gradescope", type=Path, metavar="ZIP", help="write the autograder of an assignment for Gradescope"
    )
    only.add_argument("--nbgrader", type=Path, metavar="FOLDER", help="write all assignments as a course for nbgrader")
    return parser


if __name__ == "__main__":
    sys.exit(main())
