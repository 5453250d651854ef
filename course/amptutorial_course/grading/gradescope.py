"""An autograder for Gradescope: an archive that its harness unpacks and runs.

Gradescope unpacks the archive into ``/autograder/source``, runs ``setup.sh`` once, and
for each submission ``run_autograder``, which leaves ``results/results.json``. Rosters,
deadlines, attempts, marks by hand and the release of grades are Gradescope's.
"""

import importlib.metadata
import json
import re
import sys
import zipfile
from pathlib import Path

import yaml

from amptutorial._files import write_atomically

from . import isolation, judge
from .rules import Rules
from .submissions import read_submission

TEMPLATES = Path(__file__).with_name("templates")
ROOT = Path("/autograder")
PACKAGES = ("amptutorial", "amptutorial_course")


def write_autograder(path, rules):
    """Write the archive for one assignment.

    It holds both packages, the versions of the libraries that are installed here, and
    the seed: who has it knows the hidden settings.

    Parameters
    ----------
    path : Path
    rules : Rules
    """
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    known = {"number": rules.number, "seed": rules.seed, "limits": rules.limits}
    texts = {
        "setup.sh": (TEMPLATES / "setup.sh").read_text().format(python=python),
        "run_autograder": (TEMPLATES / "run_autograder").read_text(),
        "rules.yml": yaml.safe_dump(known),
        "requirements.txt": "".join(f"{each}\n" for each in requirements()),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in texts.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o755 << 16
            archive.writestr(entry, text)
        for package in PACKAGES:
            folder = Path(sys.modules[package].__file__).parent
            for file in sorted(folder.rglob("*.py")):
                archive.write(file, f"package/{package}/{file.relative_to(folder)}")


def requirements():
    """Return the libraries that the grader needs, in the versions installed here."""
    lines = importlib.metadata.requires("amptutorial")
    names = [re.match(r"[\w.-]+", line)[0] for line in lines if "extra ==" not in line]
    versions = {name: importlib.metadata.version(name) for name in (*names, "PyYAML")}
    return [f"{name}=={version}" for name, version in versions.items()]


def results(record, isolate):
    """Return ``results.json`` of a record, as a dict: a test for each check.

    Students see it when grades are published.
    """
    tests = [
        {
            "name": mark.name,
            "score": mark.points,
            "max_score": mark.most,
            "status": "passed" if mark.passed else "failed",
            "output": "\n".join(filter(None, (mark.message, mark.contract, mark.read))),
            "visibility": "after_published",
        }
        for mark in record.marks
    ]
    return {
        "score": record.total,
        "output": f"{record.status}\n{record.traceback}".strip(),
        "visibility": "after_published",
        "extra_data": {"isolation": isolate},
        "tests": tests,
    }


def main(root=ROOT):
    """Grade what lies in ``submission`` and write ``results/results.json``."""
    rules = Rules(**yaml.safe_load((root / "source" / "rules.yml").read_text()))
    own = rules.for_student(_student(root / "submission_metadata.json"))
    size = rules.limits["file_kilobytes"]
    submission = read_submission(root / "submission", rules.task.class_names, size)
    isolate, warning = isolation.choose()
    print(warning or f"isolated: {isolate}", submission.note, sep="\n")
    record = judge.grade_submission(submission.source, own, isolate, submission.helpers)
    text = json.dumps(results(record, isolate), indent=1)
    write_atomically(root / "results" / "results.json", text)


def _student(path):
    """Return who handed in, by the addresses that Gradescope knows."""
    users = json.loads(path.read_text())["users"] if path.is_file() else []
    return " and ".join(sorted(str(user.get("email", "")) for user in users))


if __name__ == "__main__":
    main()
