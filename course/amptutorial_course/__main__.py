"""The command line of the course: a folder to teach from."""

import argparse
import sys
from pathlib import Path

from .new import FEWEST, MOST, write_course


def main(arguments=None):
    """Run the command line and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m amptutorial_course", description="Begin a course.")
    commands = parser.add_subparsers(dest="command", required=True)
    add = commands.add_parser("new", help="write a folder to teach from, with a secret of its own").add_argument
    add("folder", type=Path, metavar="FOLDER", help="new or empty")
    add("--weeks", type=int, default=10, help=f"{FEWEST} to {MOST} (default: 10)")
    options = parser.parse_args(arguments)
    try:
        tasks = write_course(options.folder, options.weeks)
    except (OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{len(tasks)} assignments in {options.weeks} weeks. Read {options.folder / 'README.md'} first")
    return 0


if __name__ == "__main__":
    sys.exit(main())
