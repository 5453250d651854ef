"""The command line of the grader."""

import argparse
import contextlib
import os
import signal
import sys
from pathlib import Path

# One thread per process, decided before the judges load NumPy: the processes are what
# runs in parallel.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

from tqdm import tqdm  # noqa: E402

from .._files import write_atomically  # noqa: E402
from .._validation import check_integer  # noqa: E402
from . import classroom, config, feedback, isolation  # noqa: E402


def main(arguments=None):
    """Run the grader and return its exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["export-nbgrader"]:
        from .nbgrader import main as export_nbgrader

        return export_nbgrader(arguments[1:])
    options = _parser().parse_args(arguments)
    if not hasattr(os, "killpg"):
        print(
            "the grader needs Linux or macOS: on Windows, run it in WSL",
            file=sys.stderr,
        )
        return 1
    try:
        check_integer(options.jobs, "--jobs", minimum=1)
        path = options.config or config.default_path()
        rules = config.load_rules(path, options.assignment, options.seed)
        kilobytes = rules.limits["file_kilobytes"]
        submissions = classroom.collect_submissions(options.submissions, kilobytes)
        _check_place(options.out, options.submissions)
        isolate, warning = isolation.choose(options.isolate)
    except (OSError, ValueError, TypeError) as error:
        print(error, file=sys.stderr)
        return 1
    if warning:
        print(warning, file=sys.stderr)
    try:
        return _grade(submissions, rules, options.out, options.jobs, isolate)
    except OSError as error:
        print(
            f"the results cannot be written: {error}. What is graded is kept: the same "
            "command goes on from here.",
            file=sys.stderr,
        )
        return 1


def _check_place(out, submissions):
    """Raise a ValueError if the results would lie among the submissions."""
    if out.resolve().is_relative_to(submissions.resolve()):
        raise ValueError(
            f"--out {out} lies in {submissions}, where every entry is taken for a "
            "student: choose another folder"
        )


def _grade(submissions, rules, out, jobs, isolate):
    """Grade the class and write all files, also those of an unfinished run.

    The table is written anew after each submission.
    """
    folder = out.parent / f"{out.stem}_files"
    isolation.sweep()
    graded = classroom.grade_class(
        submissions, rules, folder / "results", jobs, isolate
    )
    records, interrupted = [], False
    # closing ends the judges that are still at work
    with contextlib.closing(graded), _signals_interrupt():
        try:
            for record in tqdm(
                graded, total=len(submissions), unit="submission", disable=None
            ):
                records.append(record)
                feedback.write_feedback(folder / "feedback", record, rules)
                write_atomically(out, classroom.class_table(records, rules))
        except KeyboardInterrupt:
            interrupted = True
    write_atomically(out, classroom.class_table(records, rules))
    feedback.write_summary(folder, records, rules)
    done = f"{len(records)} of {len(submissions)} submissions"
    if interrupted:
        print(
            f"Interrupted: {out} has {done}. The same command goes on from here.",
            file=sys.stderr,
        )
        return 130
    print(f"{done} graded: {out}")
    print(f"feedback: {folder / 'feedback'}")
    print(f"the class: {folder / 'summary.html'}")
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
        prog="python -m amptutorial.grading",
        description="Grade a class. Stored results are kept, and only what has changed "
        "is graded again.",
        epilog="python -m amptutorial.grading export-nbgrader --help: the assignments "
        "as an nbgrader course.",
    )
    parser.add_argument(
        "submissions",
        type=Path,
        help="folder with <student>/denoiser.py or <student>.py",
    )
    parser.add_argument(
        "--assignment", type=int, required=True, metavar="N", help="its number"
    )
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        help="the CSV; <out>_files/ beside it holds the rest",
    )
    parser.add_argument(
        "--config",
        type=Path,
        help="points, limits and seed (default: assignments/grading.yml)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        help="of the hidden settings, instead of the one in the configuration",
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
    return parser


if __name__ == "__main__":
    sys.exit(main())
