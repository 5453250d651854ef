"""A repository for students: this one without solutions, and without its history.

It is a repository of its own, so that a push from it cannot take the solutions along.
Both repositories get a hook that refuses to push private files to the students' remote.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

BRANCH = "students"
# what students must not see
PRIVATE = ("solutions", "course/assignments/grading.yml")
REMOTE_KEY = "amptutorial.students"

# Its arguments: the remote's name and address. Its input: a line for every branch. One
# place has many addresses, and only their last two parts are the same in all of them.
HOOK = r"""#!/bin/sh
# Written by `python -m amptutorial_course.grading students-branch`: keeps the solutions away
# from the remote of the students.
place() {{
  if [ -d "$1" ]; then (cd "$1" && pwd -P); else echo "$1"; fi |
    sed -e 's,/*$,,' -e 's,\.git$,,' -e 's,^.*[:/]\([^:/]*/[^:/]*\)$,\1,' |
    tr '[:upper:]' '[:lower:]'
}}
if [ "$(place "$2")" != "$(place "$(git config --get {key})")" ]; then exit 0; fi
while read -r _ commit _ _; do
  case "$commit" in *[!0]*) ;; *) continue ;; esac
  for each in $(git rev-list "$commit"); do
    found=$(git ls-tree -r --name-only "$each" -- {private} | head -3)
    if [ -n "$found" ]; then
      echo "not pushed to the students: commit $each has" $found >&2
      echo "push from the folder that students-branch has made" >&2
      exit 1
    fi
  done
done
"""


def write_branch(source, folder, remote=None):
    """Write the students' repository, a commit on top of what it has.

    Parameters
    ----------
    source : Path
        The lecturer's clone; what is committed there is taken.
    folder : Path
        A new or empty folder, or one that this function has written before.
    remote : str, optional
        The address of the students' repository, empty or a copy of this one.

    Returns
    -------
    str
        What was committed: "new", "changed" or "unchanged".

    Raises
    ------
    ValueError
        If the folder holds anything else, git fails, or a hook is in the way.
    """
    head = _git(source, "rev-parse", "HEAD")
    if folder.exists() and any(folder.iterdir()) and not (folder / ".git").is_dir():
        raise ValueError(f"{folder} is not empty: name a new folder for the students")
    if folder.resolve() == source.resolve():
        raise ValueError(f"{folder} has the solutions: name a new folder")
    state = "changed" if (folder / ".git").is_dir() else "new"
    if state == "new":
        folder.mkdir(parents=True, exist_ok=True)
        _git(folder, "init", "--quiet", "--initial-branch", BRANCH)
    elif _git(folder, "rev-list", "--all", "--", *PRIVATE):
        raise ValueError(f"{folder} has solutions in its history: name a new folder")
    _copy(source, head, folder)
    _git(folder, "add", "--all", "--force")
    if state == "changed" and not _git(folder, "status", "--porcelain"):
        state = "unchanged"
    else:
        _git(folder, *_author(source), "commit", "--quiet", "-m", "Course material")
    if remote:
        _link(source, folder, remote)
    return state


def _copy(source, head, folder):
    """Exchange all files of the folder for those of a commit that are not private."""
    for entry in folder.iterdir():
        if entry.name != ".git":
            is_folder = entry.is_dir() and not entry.is_symlink()
            shutil.rmtree(entry) if is_folder else entry.unlink()
    hidden = [f":(exclude){path}" for path in PRIVATE]
    packed = subprocess.run(
        ["git", "-C", source, "archive", head, "--", ".", *hidden],
        check=True,
        capture_output=True,
    )
    subprocess.run(["tar", "-x", "-C", folder], input=packed.stdout, check=True)


def _author(source):
    """Return options of git that name the author of the lecturer's last commit."""
    name, email = _git(source, "log", "-1", "--format=%an%n%ae").split("\n")
    return "-c", f"user.name={name}", "-c", f"user.email={email}"


def _link(source, folder, remote):
    """Let both repositories know the students' remote, and refuse it the solutions."""
    for place in (source, folder):
        hook = Path(_git(place, "rev-parse", "--absolute-git-dir"), "hooks", "pre-push")
        text = HOOK.format(key=REMOTE_KEY, private=" ".join(PRIVATE))
        if hook.exists() and hook.read_text(encoding="utf-8") != text:
            raise ValueError(
                f"there is a hook in the way: {hook}. Move it, run this again, and add "
                "your own lines to the new one"
            )
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(text, encoding="utf-8")
        hook.chmod(0o755)
        _git(place, "config", REMOTE_KEY, remote)
    if "origin" in _git(folder, "remote").split():
        _git(folder, "remote", "set-url", "origin", remote)
    else:
        _git(folder, "remote", "add", "origin", remote)


def _git(folder, *arguments):
    """Return what git prints.

    Raises
    ------
    ValueError
        With what git says, if it fails.
    """
    # where a hook or an alias has called this, git would work on another repository
    own = {name: v for name, v in os.environ.items() if not name.startswith("GIT_DIR")}
    done = subprocess.run(
        ["git", "-C", folder, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=own,
    )
    if done.returncode:
        raise ValueError(f"git {arguments[0]} in {folder}: {done.stderr.strip()}")
    return done.stdout.strip()


def main(arguments):
    """Run ``students-branch`` and return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m amptutorial_course.grading students-branch",
        description="Write a repository for students: what is committed here, without "
        f"{' and '.join(PRIVATE)}, and without history. Run it again after changes.",
    )
    parser.add_argument("folder", type=Path, help="a new folder, or that of last time")
    parser.add_argument(
        "--remote",
        help="the address of the students' repository: git push will take the folder "
        "there, and hooks refuse it whatever has solutions",
    )
    options = parser.parse_args(arguments)
    try:
        source = Path(_git(Path.cwd(), "rev-parse", "--show-toplevel"))
        state = write_branch(source, options.folder, options.remote)
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{options.folder} is {state}, on the branch {BRANCH}, without solutions")
    if options.remote:
        print(f"next: git -C {options.folder} push -u origin {BRANCH}")
    return 0
