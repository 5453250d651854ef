"""An autograder for Gradescope: an archive that its harness unpacks and runs.

Gradescope unpacks the archive into ``/autograder/source``, runs ``setup.sh`` once, and
for each submission ``run_autograder``, which leaves ``results/results.json``. Rosters,
deadlines, attempts, marks by hand and the release of grades are Gradescope's.
"""

import importlib.metadata
import importlib.util
import json
import os
import re
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

from amptutorial._files import write_atomically

from . import isolation, judge
from .rules import Rules

# Below what Gradescope allows where nothing is set: 768 MB for judge and submission, half a processor, ten minutes.
LIMITS = {"seconds": 200, "seconds_on_the_wall": 400, "megabytes": 384}
UNFINISHED = (
    "The grader was stopped before it had finished: the file may need too much memory or time. In a terminal, "
    "python -m amptutorial_course.grading --dry-run denoiser.py --assignment {number} shows more."
)
TEMPLATES = Path(__file__).with_name("templates")
ROOT = Path("/autograder")


def write_autograder(path, rules):
    """Write the archive for one assignment.

    It holds both packages, the versions of the libraries that are installed here, and
    the seed: who has it knows the hidden settings.

    Parameters
    ----------
    path : Path
    rules : Rules
    """
    limits = rules.limits | {name: min(value, rules.limits.get(name, value)) for name, value in LIMITS.items()}
    setup, run = ((TEMPLATES / name).read_text() for name in ("setup.sh", "run_autograder"))
    texts = {
        "setup.sh": setup.format(python=f"{sys.version_info.major}.{sys.version_info.minor}"),
        "run_autograder": run,
        "rules.json": json.dumps(vars(replace(rules, limits=limits))),
        "requirements.txt": "\n".join(requirements()),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in texts.items():
            archive.writestr(name, text)
        for package in ("amptutorial", "amptutorial_course"):
            folder = Path(sys.modules[package].__path__[0])
            for file in sorted([*folder.rglob("*.py"), *folder.glob("grading/worker/*.csv")]):
                archive.write(file, f"package/{package}/{file.relative_to(folder)}")


def requirements():
    """Return what the grader needs, and what students import, in the versions installed here."""
    lines = (line for line in importlib.metadata.requires("amptutorial") or () if "extra ==" not in line)
    names = [*(re.sub(r"[^\w.-].*", "", line) for line in lines), "PyYAML", "ipython"]
    # a file that draws at its end, or reads a table, earns the same here and there
    names += [name for name in ("matplotlib", "pandas") if importlib.util.find_spec(name)]
    return [f"{name}=={importlib.metadata.version(name)}" for name in names]


def results(record, task, isolate):
    """Return ``results.json`` of a record, as a dict: a test for each check.

    Students see it when grades are published.
    """
    tests = [
        {
            "name": mark.result.name,
            "score": mark.points,
            "max_score": mark.most,
            "status": "passed" if mark.result.passed else "failed",
            "output": f"{mark.result.message}\n{mark.result.contract}\n{mark.result.read}".strip(),
        }
        for mark in record.marks(task)
    ]
    output = f"{record.told(task)}\n{record.traceback}".strip()
    shared = {"visibility": "after_published", "extra_data": {"isolation": isolate}}
    return {"score": record.total(task), "output": output, "tests": tests, **shared}


def main(root=ROOT):
    """Grade what lies in ``submission`` and write ``results/results.json``."""
    rules = Rules(**json.loads((root / "source" / "rules.json").read_text()))
    path, found = root / "results" / "results.json", {"score": 0, "visibility": "visible"}
    write_atomically(path, json.dumps(found | {"output": UNFINISHED.format(number=rules.number)}))
    _close(root)
    try:
        isolate = isolation.choose(rules.isolate, alone=True)
    except ValueError as error:
        found["output"] = f"Nothing was graded, which is not the submission's fault. {error}"
    else:
        record = judge.grade_submission(rules.read(root / "submission"), rules, isolate)
        found = results(record, rules.task, isolate)
    # by now no process of the submission is left
    write_atomically(path, json.dumps(found, indent=1))


def _close(root):
    """Let no other user read what lies here, but for Python, its libraries, and the package of the book."""
    closed = [path for path in root.iterdir() if path.name not in ("source", "venv")]
    closed += [root / "source/rules.json", root / "source/package/amptutorial_course"]
    for path in closed if os.geteuid() == 0 else ():
        path.chmod(path.stat().st_mode & 0o700)


if __name__ == "__main__":
    main()
