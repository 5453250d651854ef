"""The command line of the grader. What it imports, beside the parser, takes seconds."""

import argparse
import os
import sys
from importlib.metadata import version
from pathlib import Path

from . import KINDS


def main(arguments=None):
    """Run the grader and return its exit status."""
    options = _parser().parse_args(arguments)
    # One thread per process, decided before the judges load NumPy: the processes are what
    # runs in parallel.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from .commands import run

    return run(options)


def _parser():
    kept = "Grade a class. Stored results are kept, and only what has changed is graded again."
    parser = argparse.ArgumentParser(prog="python -m amptutorial_course.grading", description=kept)
    add = parser.add_argument
    add("--version", action="version", version=f"amptutorial-course {version('amptutorial-course')}")
    add("submissions", type=Path, nargs="?", help="folder with NAME.py, NAME.ipynb, NAME.zip or NAME/ for each student")
    add("--assignment", type=int, metavar="N", help="its number")
    add("--out", type=Path, metavar="CSV", help="the table; <out>_files/ beside it has a page for each student")
    add("--config", type=Path, metavar="YML", help="seed and limits (default: assignments/grading.yml)")
    add("--jobs", type=int, default=2, help="graded at the same time (default: 2)")
    add("--isolate", choices=KINDS, help="what keeps them in (default: the first that works, never none)")
    add = parser.add_argument_group("instead of grading a class").add_mutually_exclusive_group().add_argument
    add("--dry-run", type=Path, metavar="FILE", help="for students: report on one file, with the public settings")
    add("--gradescope", type=Path, metavar="ZIP", help="write the autograder of an assignment for Gradescope")
    add("--nbgrader", type=Path, metavar="FOLDER", help="write all assignments as a course for nbgrader")
    return parser


if __name__ == "__main__":
    sys.exit(main())
