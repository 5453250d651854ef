"""The command line of the grader."""

import argparse
import contextlib
import importlib
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
from . import classroom, config, course, exports, isolation, judge# noqa: E402
from .gradebook import class_table  # noqa: E402
from .submissions import single_submission  # noqa: E402

COMMANDS = {"export-nbgrader": "nbgrader", "students-branch": "students_branch"}


def main(arguments=None):
    """Run the grader and return its exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments and arguments[0] in COMMANDS:
        module = importlib.import_module(f".{COMMANDS[arguments[0]]}", __package__)
        return module.main(arguments[1:])
    options = _parser().parse_args(arguments)
    if not hasattr(os, "killpg"):
        print(
            "the grader needs Linux or macOS: on Windows, run it in WSL",
            file=sys.stderr,
        )
        return 1
    try:
        if options.dry_run:
            return _dry_run(options)
        check_integer(options.jobs, "--jobs", minimum=1)
        if not (options.submissions and options.out):
            raise ValueError("name the folder of the submissions, and --out grades.csv")
        for folder in options.submissions:
            _check_place(options.out, folder)
        isolate, warning = isolation.choose(options.isolate)
        path = options.config or config.default_path()
        rules = config.load_rules(path, options.assignment, options.seed)
        found = course.load_course(
            options.submissions, rules, options.roster, options.marks, options.anonymous
        )
        if options.format == "canvas":
            options.column = exports.canvas_column(found.people, options.column)
        if options.format == "moodle":
            exports.check_moodle(found.people)
    except (OSError, ValueError, TypeError) as error:
        print(error, file=sys.stderr)
        return 1
    _warn(found, path, warning)
    folder = options.out.parent / f"{options.out.stem}_files"
    try:
        with _signals_interrupt():
            n_similar = course.write_similar(found, options.earlier, path, folder)
            return _grade(found, folder, n_similar, options, isolate)
    except KeyboardInterrupt:
        print("Interrupted: the same command goes on from here.", file=sys.stderr)
        return 130
    except OSError as error:
        # those of the system have a number; ours say already what to do
        told = (
            error
            if error.errno is None
            else (
                f"the results cannot be written: {error}. What is graded is kept: make "
                "room, and the same command goes on from here."
            )
        )
        print(told, file=sys.stderr)
        return 1


def _check_place(out, submissions):
    """Raise a ValueError if the results would lie among the submissions, or nowhere."""
    if out.exists() and not out.is_file():
        raise ValueError(f"--out {out} is no file: name a table, such as grades.csv")
    if out.resolve().is_relative_to(submissions.resolve()):
        raise ValueError(
            f"--out {out} lies in {submissions}, where every entry is taken for a "
            "student: choose another folder"
        )


def _dry_run(options):
    """Print the report of one file on the public settings, run as the grader does."""
    number = options.assignment
    rules = config.public_rules(number)
    submission = single_submission(options.dry_run, rules.limits["file_kilobytes"])
    isolate, warning = isolation.choose(options.isolate)
    if warning:
        print(warning, file=sys.stderr)
    record = judge.grade_submission(
        submission.source, rules, isolate, submission.helpers
    )
    if submission.note:
        print(submission.note)
    print(judge.as_report(record, f"Assignment {number}, {assignment(number).title}"))
    if record.printed:
        print(f"The end of what was printed:\n{record.printed}")
    return 0 if all(mark.passed for mark in record.marks) else 1


def _warn(found, path, warning):
    """Say what the lecturer should know before anything is graded."""
    if warning:
        print(warning, file=sys.stderr)
    if found.rules.seed_is_public:
        print(
            f"the seed in {path} is public, and students can try the hidden settings: "
            "write a secret into a file and name it there as seed_file, or set "
            f"{config.SEED_VARIABLE}",
            file=sys.stderr,
        )
    if found.strangers:
        print(
            f"not on the roster, and graded all the same: {', '.join(found.strangers)}",
            file=sys.stderr,
        )


def _grade(found, folder, n_similar, options, isolate):
    """Grade the class and write all files, also those of an unfinished run.

    The table is written anew as submissions are graded, once a second at most: a class
    of hundreds would wait for it.
    """
    out, to_grade = options.out, found.to_grade
    isolation.sweep()
    graded = classroom.grade_class(
        to_grade, found.rules, folder / "results", options.jobs, isolate
    )
    records, interrupted, written = [], False, 0.0
    # closing ends the judges that are still at work
    with contextlib.closing(graded):
        try:
            for record in tqdm(
                graded, total=len(to_grade), unit="submission", disable=None
            ):
                records.append(record)
                if time.monotonic() > written + 1:
                    write_atomically(out, class_table(found.rows(records), found.rules))
                    written = time.monotonic()
        except KeyboardInterrupt:
            interrupted = True
    course.write_course(found, records, out, folder)
    exported = course.write_exports(
        found, records, options.format, options.column, out, folder
    )
    done = f"{len(records)} of {len(to_grade)} submissions"
    if interrupted:
        print(
            f"Interrupted: {out} has {done}. The same command goes on from here.",
            file=sys.stderr,
        )
        return 130
    print(f"{done} graded: {out}")
    print(f"feedback: {folder / 'feedback'}")
    print(f"the class: {folder / 'summary.html'}")
    print(f"{n_similar} pairs to look at: {folder / 'similarity.csv'}")
    for path in exported:
        print(f"for {options.format.capitalize()}: {path}")
    # whatever a submission does, its record has a key
    failed = [record.student for record in records if not record.key]
    if failed:
        print(
            f"the grader itself failed for {', '.join(failed)}: 0 points for now. "
            f"{folder / 'results'} says why, and the same command tries again.",
            file=sys.stderr,
        )
        return 1
    return 0


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
        description="Grade a class. Stored results are kept, and only what has changed "
        "is graded again.",
        epilog="Other commands, each with --help: export-nbgrader, the assignments as "
        "an nbgrader course; students-branch, a repository without solutions.",
    )
    parser.add_argument(
        "submissions",
        type=Path,
        nargs="*",
        help="folder with <student>/denoiser.py or <student>.py, or as Canvas, Moodle "
        "or Gradescope hands it out; several folders are attempts, the first one first",
    )
    parser.add_argument(
        "--assignment", type=int, required=True, metavar="N", help="its number"
    )
    parser.add_argument(
        "--dry-run",
        type=Path,
        metavar="FILE",
        help="for students: report on one file, with the public settings",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="CSV",
        help="the table; <out>_files/ beside it holds the rest",
    )
    parser.add_argument(
        "--config",
        type=Path,
        metavar="YML",
        help="points, limits and seed (default: course/assignments/grading.yml)",
    )
    parser.add_argument(
        "--seed", help="of the hidden settings, instead of the one in the configuration"
    )
    parser.add_argument(
        "--jobs",
        type=int,
        default=2,
        help="submissions graded at the same time (default: 2)",
    )
    parser.add_argument(
        "--isolate",
        choices=isolation.KINDS,
        help="a machine of its own for each submission (default: bwrap, if bubblewrap "
        "works here, or else none)",
    )
    _add_tables(parser.add_argument_group("the class"))
    return parser


def _add_tables(group):
    """Add the options about the class as a whole."""
    group.add_argument(
        "--roster",
        type=Path,
        metavar="CSV",
        help="of your own with a column student, or from the platform",
    )
    group.add_argument(
        "--marks", type=Path, metavar="CSV", help="points for what is marked by hand"
    )
    group.add_argument(
        "--format",
        choices=exports.FORMATS,
        default="csv",
        help="write the file of a platform too",
    )
    group.add_argument("--column", help="of the assignment in Canvas: 'Ridge (1234)'")
    group.add_argument(
        "--earlier",
        type=Path,
        nargs="+",
        default=[],
        metavar="FOLDER",
        help="submissions of other years, for the list of similar files",
    )
    group.add_argument(
        "--anonymous", action="store_true", help="pseudonyms in tables and on pages"
    )


if __name__ == "__main__":
    sys.exit(main())
