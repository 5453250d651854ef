"""Run from the wheels what their READMEs say, in environments that have nothing else.

    python -m studies.wheels                          # with this Python
    python -m studies.wheels python3.12 python3.13    # with others
    python -m studies.wheels --lowest                 # each dependency in the lowest version that its range allows

Makes both source distributions, from them both wheels, and for each Python an empty environment: first the package
comes into it, then the course, at last the extra for nbgrader. Every command runs in a folder that holds nothing but
what students hand in. Printed are the sizes, how many distributions each step brings, the seconds of an import, and
command by command whether it did what it should. It needs `build`, and pip finds the dependencies.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
README, COURSE_README = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "course/README.md"))
LEFT_OUT = shutil.ignore_patterns(".*", "_build", "build", "dist", "__pycache__", "*.egg-info")
WEIGH = """
from importlib.metadata import distributions
found = [each for each in distributions() if each.name not in ("pip", "setuptools")]
paths = [file.locate() for each in found for file in each.files]
print(f"{len(found)} distributions, {sum(path.stat().st_size for path in paths if path.exists()) / 1e6:.0f} MB")
"""
IMPORT = "import time; start = time.perf_counter(); import amptutorial; print(time.perf_counter() - start)"


class Command(NamedTuple):
    """What Python is given, and what it must print; with an error, if `fails`."""

    arguments: list
    printed: str
    fails: bool = False

    def title(self):
        """Return the command in a line."""
        return "README's eight lines" if self.arguments[0] == "-c" else f"python {' '.join(self.arguments)}"


def commands_of_package():
    """Return the first example of README, which prints what stands below it, and the command line."""
    example, printed = (re.search(rf"```{kind}\n(.*?)```", README, re.DOTALL)[1] for kind in ("python", "text"))
    reproduce = ["reproduce", "fisher"]
    lines = {"--help": "reproduce", "--version": "amptutorial ", " ".join(reproduce): "It equals the stored result"}
    return [
        Command(["-c", example], printed),
        *(Command(["-m", "amptutorial", *line.split()], told) for line, told in lines.items()),
    ]


def commands_of_course():
    """Return the commands of the course's README: those that need no extra, and the one that does."""
    told = {
        "--dry-run": "100 of 100 points",
        "submissions/": "2 submissions graded",
        "--nbgrader": "how to go on",
        "--gradescope": "for Gradescope",
        "new": "3 assignments in 10 weeks",
    }
    found = [line.split() for line in re.findall(r"^    python (.*)$", COURSE_README, re.MULTILINE)]
    commands = [Command(line, next(text for word, text in told.items() if word in line)) for line in found]
    alone = [each for each in commands if "--nbgrader" not in each.arguments]
    (nbgrader,) = (each for each in commands if each not in alone)
    return [Command([*alone[0].arguments[:2], "--version"], "amptutorial-course "), *alone], nbgrader


def built(folder):
    """Return the two wheels; print what each distribution weighs."""
    source = shutil.copytree(ROOT, folder / "source", ignore=LEFT_OUT)
    for place in (source, source / "course"):
        subprocess.run([sys.executable, "-m", "build", "--outdir", folder, place], check=True, capture_output=True)
    for path in sorted(folder.glob("amptutorial*.*")):
        print(f"{path.stat().st_size / 1e3:6.0f} kB  {path.name}")
    return [next(folder.glob(f"{name}-*.whl")) for name in ("amptutorial", "amptutorial_course")]


def lowest(folder):
    """Return the file that pins each dependency to the lowest version that its range allows."""
    subprocess.run(["make", "-s", "lowest.txt"], cwd=folder / "source", check=True)
    return folder / "source" / "lowest.txt"


def passes(python, command, desk):
    """Run a command at the desk; print its seconds, and all that it said if that is not what it should."""
    start = time.perf_counter()
    done = subprocess.run([python, *command.arguments], cwd=desk, capture_output=True, text=True)
    passed = command.printed in done.stdout + done.stderr and bool(done.returncode) == command.fails
    print(f"    {'pass' if passed else 'FAIL'} {time.perf_counter() - start:6.1f} s  {command.title()}", flush=True)
    if not passed:
        print(f"expected: {command.printed}\n{done.stdout}{done.stderr}", flush=True)
    return passed


def desk_of(folder):
    """Return a folder with a right denoiser, and a class of two: one handed it in, the other the starter."""
    desk, course = folder / "desk", ROOT / "course"
    (desk / "submissions").mkdir(parents=True)
    for target in ("denoiser.py", "submissions/ada.py"):
        shutil.copy(course / "solutions/01_ridge/denoiser.py", desk / target)
    shutil.copy(course / "assignments/01_ridge/denoiser.py", desk / "submissions/bob.py")
    return desk


def tried(python, wheels, folder, constraints):
    """Return whether every command passes in an empty environment."""
    subprocess.run([python, "-m", "venv", folder / "venv"], check=True)
    python, desk = folder / "venv/bin/python", desk_of(folder)

    def ask(code):
        return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()

    alone, nbgrader = commands_of_course()
    asked = nbgrader._replace(printed='pip install "amptutorial-course[nbgrader] @ git+https', fails=True)
    package, course = map(str, wheels)
    steps = {package: commands_of_package(), course: [*alone, asked], f"{course}[nbgrader]": [nbgrader]}
    print(ask("import platform; print('Python', platform.python_version())"), "lowest versions" if constraints else "")
    passed = []
    for what, commands in steps.items():
        command = [python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", what]
        subprocess.run([*command, *(["--constraint", constraints] if constraints else [])], check=True)
        seconds = min(float(ask(IMPORT)) for _ in range(3))
        print(f"  {Path(what).name}: {ask(WEIGH)}, import amptutorial takes {seconds:.2f} s")
        passed += [passes(python, each, desk) for each in commands]
    return all(passed)


def all_pass(pythons, wheels, folder, constraints=None):
    """Return whether every command passes with each Python."""
    return all([tried(python, wheels, folder / str(number), constraints) for number, python in enumerate(pythons)])


def main(arguments=None):
    """Return 1 if some command fails, else 0."""
    parser = argparse.ArgumentParser(prog="python -m studies.wheels", description=__doc__.partition("\n")[0])
    parser.add_argument("pythons", nargs="*", default=[sys.executable], metavar="PYTHON", help="default: this one")
    parser.add_argument("--lowest", action="store_true", help="each dependency in the lowest version of its range")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheels = built(folder)
        passed = all_pass(options.pythons, wheels, folder, lowest(folder) if options.lowest else None)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
