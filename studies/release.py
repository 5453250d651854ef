"""Make what a release publishes, from the commit at hand, into dist. The same commit gives the same files.

    python -m studies.release                          # both distributions, checked, and their checksums
    python -m studies.release python3.11 python3.13    # and tried in empty environments, the oldest first
    python -m studies.release --list                   # what they hold has changed: write studies/contents.txt anew
    python -m studies.release --name X.Y.Z             # write another version into every place that names it

`pip install twine` comes before, and `make pdf` if the checksums are to have the book.
"""

import argparse
import difflib
import gzip
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from hashlib import sha256
from io import BytesIO
from operator import attrgetter
from pathlib import Path

from amptutorial import __version__

from . import wheels

ROOT = Path(__file__).parents[1]
DIST, CONTENTS, SUMS = ROOT / "dist", ROOT / "studies/contents.txt", "SHA256SUMS"
COLAB = "amptutorial/amptutorial@v{}"
# Each place that names the version, and how.
PLACES = {
    "amptutorial/__init__.py": ['__version__ = "{}"'],
    "course/pyproject.toml": ['version = "{}"', '"amptutorial=={}"'],
    "CITATION.cff": ["version: {}"],
    "recipe/recipe.yaml": ['version: "{}"'],
    "README.md": ["amptutorial/v{}?"],
    "book/howto.md": ["amptutorial/v{}?"],
    "book/**/*.ipynb": [COLAB],
    "course/assignments/*/brief.ipynb": [COLAB],
}


def git(*arguments):
    """Return what git prints."""
    return subprocess.check_output(["git", "-c", f"safe.directory={ROOT}", *arguments], cwd=ROOT, text=True)


def rename(root, version):
    """Write the version into every place below `root` that names the present one."""
    for pattern, phrases in PLACES.items():
        for path in root.glob(pattern):
            text = path.read_bytes()
            for phrase in phrases:
                text = text.replace(phrase.format(__version__).encode(), phrase.format(version).encode())
            path.write_bytes(text)


def copy_source(folder):
    """Copy the files that git knows, all with the same rights."""
    for name in git("ls-files", "-z").split("\0")[:-1]:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
        target.chmod(0o644)


def settle(path, moment):
    """Write a source distribution again: neither when nor by whom it was made changes a byte."""
    plain = BytesIO()
    with tarfile.open(path) as old, tarfile.open(fileobj=plain, mode="w") as new:
        for member in sorted(old, key=attrgetter("name")):
            member.mtime, member.uid, member.gid, member.uname, member.gname = moment, 0, 0, "", ""
            member.mode, member.pax_headers = 0o755 if member.isdir() else 0o644, {}
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
    path.write_bytes(gzip.compress(plain.getvalue(), mtime=moment))


def make(folder):
    """Make both distributions in a folder, from its folder `source`, and return their paths."""
    copy_source(folder / "source")
    moment = git("log", "-1", "--format=%ct").strip()
    for place in (folder / "source", folder / "source/course"):
        command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, place]
        environment = os.environ | {"SOURCE_DATE_EPOCH": moment}
        subprocess.run(command, env=environment, umask=0o022, check=True, capture_output=True)
    for path in folder.glob("*.tar.gz"):
        settle(path, int(moment))
    return sorted(folder.glob("amptutorial*.*"))


def contents(paths):
    """Return what the distributions hold, one name a line, whatever their version."""
    lines = []
    for path in paths:
        if path.suffix == ".whl":
            names = zipfile.ZipFile(path).namelist()
        else:
            names = [each.name for each in tarfile.open(path) if each.isfile()]
        lines += [path.name, *(f"    {name}" for name in sorted(names)), ""]
    return "\n".join(lines).replace(__version__, "VERSION")


def checksums(folder):
    """Return a line for each file, as `sha256sum --check` reads it."""
    paths = [path for path in sorted(folder.iterdir()) if path.is_file() and path.name != SUMS]
    return "".join(f"{sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in paths)


def refused(tag, changelog):
    """Return why a tag is none of a release, or nothing."""
    if tag != f"v{__version__}":
        return f"{tag} is not v{__version__}: python -m studies.release --name VERSION, and commit"
    if not re.search(rf"^## {re.escape(__version__)} \(\d{{4}}-\d\d-\d\d\)$", changelog, re.MULTILINE):
        return f"{__version__} has no date in CHANGELOG.md: ## {__version__} (YYYY-MM-DD)"
    return None


def main(arguments=None):
    """Return 1 if something is not as it should be, else 0."""
    parser = argparse.ArgumentParser(prog="python -m studies.release", description=__doc__.partition("\n")[0])
    parser.add_argument(
        "pythons",
        nargs="*",
        metavar="PYTHON",
        help="try the wheels with them; the first, which is the oldest, takes the lowest versions too",
    )
    parser.add_argument("--list", action="store_true", help="list anew what the distributions hold")
    parser.add_argument("--name", metavar="VERSION", help="write it into every place that names the version")
    parser.add_argument("--tag", help="refuse one that is not of this version, or whose version has no date")
    options = parser.parse_args(arguments)
    if options.name:
        rename(ROOT, options.name)
        return 0
    if not options.list and git("status", "--porcelain"):
        print("commit first: a release is made of a commit", file=sys.stderr)
        return 1
    if options.tag and (problem := refused(options.tag, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))):
        print(problem, file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = make(folder)
        if options.list:
            CONTENTS.write_text(contents(made))
            return 0
        listed, found = CONTENTS.read_text().splitlines(), contents(made).splitlines()
        if differing := list(difflib.unified_diff(listed, found, "listed", "found", lineterm="", n=0)):
            print(*differing, "if this is right: python -m studies.release --list", sep="\n", file=sys.stderr)
            return 1
        subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *made], check=True)
        DIST.mkdir(exist_ok=True)
        for path in DIST.glob("amptutorial*.*"):
            path.unlink()
        for path in made:
            (DIST / path.name).write_bytes(path.read_bytes())
        (DIST / SUMS).write_text(checksums(DIST))
        print((DIST / SUMS).read_text(), end="")
        pair, pythons = [path for path in made if path.suffix == ".whl"], options.pythons
        passed = wheels.all_pass(pythons, pair, folder / "newest")
        passed &= wheels.all_pass(pythons[:1], pair, folder / "lowest", wheels.lowest(folder))
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
