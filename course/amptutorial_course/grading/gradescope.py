"""An autograder for Gradescope: an archive that its harness unpacks and runs.

Gradescope unpacks the archive into ``/autograder/source``, runs ``setup.sh`` once, and
for each submission ``run_autograder``, which leaves ``results/results.json``. Rosters,
deadlines, attempts, marks by hand and the release of grades are Gradescope's.
"""

import importlib.metadata
import importlib.util
import json
import re
import sys
import zipfile
from pathlib import Path

from amptutorial._files import write_atomically

from . import isolation, judge
from .rules import Rules

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
    setup, run = ((TEMPLATES / name).read_text() for name in ("setup.sh", "run_autograder"))
    texts = {
        "setup.sh": setup.format(python=f"{sys.version_info.major}.{sys.version_info.minor}"),
        "run_autograder": run,
        "rules.json": json.dumps(vars(rules)),
        "requirements.txt": "\n".join(requirements()),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in texts.items():
            archive.writestr(name, text)
        for package in ("amptutorial", "amptutorial_course"):
            folder = Path(sys.modules[package].__path__[0])
            for file in sorted(folder.rglob("*.py")):
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
    isolate = isolation.choose()
    record = judge.grade_submission(rules.read(root / "submission"), rules, isolate)
    write_atomically(root / "results" / "results.json", json.dumps(results(record, rules.task, isolate), indent=1))


if __name__ == "__main__":
    main()
