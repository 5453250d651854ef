"""Write a sample class to try the grader on: `python course/tests/sample_class.py submissions/ --assignment 2`.

Right solutions, known mistakes, the untouched starter, and submissions that attack the grader. The hostile ones need no
knowledge of the assignment: they are pieces of code before or after a solution.
"""

import argparse
from pathlib import Path

import yaml

from amptutorial_course.assignments import assignment

ROOT = Path(__file__).parents[1]
SIZE = 30
# Appended to a solution: every denoiser of the file gets this estimate.
ATTACK = """

def _attack(self, P, r, F):
{body}


for _class in [value for value in list(globals().values()) if isinstance(value, type)]:
    if issubclass(_class, Denoiser) and _class is not Denoiser:
        _class.estimate = _attack
"""
# In front of a solution.
AT_IMPORT = {
    "a syntax error": "def broken(:\n",
    "an exception at import": "raise RuntimeError('not finished')\n",
    "an endless loop at import": "while True:\n    pass\n",
    "sys.exit at import": "import sys\n\nsys.exit(0)\n",
}
# In the place of the estimate. Those that return zeros would earn points only if the attack succeeded.
IN_ESTIMATE = {
    "an endless loop": "while True:\n    pass",
    "a print bomb": "while True:\n    print('x' * 10_000)",
    "sys.exit": "import sys\n\nsys.exit(0)",
    "os._exit": "import os\n\nos._exit(0)",
    "a memory bomb": "return [bytearray(2**28) for _ in range(200)]",
    "a huge answer": "import numpy\n\nreturn numpy.zeros((30_000, 3_000))",
    "a huge file": "with open('huge', 'wb') as file:\n    file.write(bytes(2**28))\nreturn 0 * P",
    "a deep recursion": "import sys\n\nsys.setrecursionlimit(10**9)\nreturn self.estimate(P, r, F)",
    "a subprocess": "import subprocess\n\nsubprocess.run(['true'], check=True)\nreturn 0 * P",
    "an attack on the parent": "import os, signal\n\nos.kill(os.getppid(), signal.SIGKILL)\nreturn 0 * P",
    "a look into the frames": """
import sys
frame = sys._getframe()
while frame is not None:
    for name, value in {**frame.f_globals, **frame.f_locals}.items():
        if hasattr(value, "passed") or "check" in name.lower() or "belief" in name.lower():
            raise RuntimeError(f"found {name}: {value!r}")
    frame = frame.f_back
return 0 * P""",
    "a patched NumPy": """
import numpy
for name in ("allclose", "isclose", "array_equal", "all", "isfinite"):
    setattr(numpy, name, lambda *args, **kwargs: True)
numpy.abs = numpy.linalg.norm = lambda *args, **kwargs: numpy.zeros(1)
numpy.linalg.solve = numpy.linalg.inv = None
return 0 * P""",
    "tampered checks": """
import builtins, sys
from dataclasses import replace
from amptutorial import checks
for name, each in checks.CHECKS.items():
    checks.CHECKS[name] = replace(each, run=lambda trial: None)
checks.run_checks = checks.check_denoiser = lambda *args, **kwargs: None
checks.CheckReport.passed = checks.CheckReport.failures = True
for module in list(sys.modules.values()):
    for name in ("require", "require_close"):
        if hasattr(module, name):
            setattr(module, name, lambda *args, **kwargs: None)
builtins.AssertionError = builtins.ZeroDivisionError
return 0 * P""",
    "a theft of the solutions": """
import os, sys
import amptutorial
for start in [os.getcwd(), *sys.path, *amptutorial.__path__]:
    while start and start != os.path.dirname(start):
        start = os.path.dirname(start)
        for folder, _, files in os.walk(os.path.join(start, "solutions")):
            for name in files:
                loot = {}
                exec(open(os.path.join(folder, name)).read(), loot)
                stolen = loot.get(type(self).__name__)
                if stolen is not None:
                    return stolen(**vars(self)).estimate(P, r, F)
return 0 * P""",
}


def hostile(solution):
    """Return the hostile submissions, text by name: each is `solution` with an attack on the grader."""
    first = {name: code + solution for name, code in AT_IMPORT.items()}
    inside = {
        f"{name} in estimate": solution + ATTACK.format(body="    " + body.strip("\n").replace("\n", "\n    "))
        for name, body in IN_ESTIMATE.items()
    }
    return {**first, **inside, "no denoiser": "PREDICTION = 0.5\n", "a file of a megabyte": solution + "#" * 2**20}


def mistakes(number):
    """Return the bank of mistakes of an assignment, text by name: the reference solution with a change."""
    folder = ROOT / "solutions" / assignment(number).folder
    reference = (folder / "denoiser.py").read_text(encoding="utf-8")
    bank = yaml.safe_load((folder / "wrong.yml").read_text(encoding="utf-8"))
    return {entry["mistake"]: changed(reference, entry["changes"]) for entry in bank}


def changed(text, changes):
    """Return `text` with every ``(old, new)`` carried out, or raise ValueError if an old text occurs not just once."""
    for old, new in changes:
        if text.count(old) != 1:
            raise ValueError(f"{old!r} occurs {text.count(old)} times, expected once")
        text = text.replace(old, new)
    return text


def sample(number):
    """Return the class, `SIZE` texts by what they are; None stands for a student who handed in nothing."""
    task = assignment(number)
    folder = ROOT / "solutions" / task.folder
    right = {f"right: {path.stem}": path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.py"))}
    reference = right["right: denoiser"]
    starter = (ROOT / "assignments" / task.folder / "denoiser.py").read_text(encoding="utf-8")
    rest = {**hostile(reference), "the starter": starter, "nothing": None}
    wrong = {f"mistake: {name}": text for name, text in mistakes(number).items()}
    room = max(0, SIZE - len(right) - len(rest))
    return {**right, **dict(list(wrong.items())[:room]), **rest}


def write_class(folder, number):
    """Write the class to `folder`, and return what each student handed in."""
    handed_in = {}
    for index, (name, text) in enumerate(sample(number).items(), 1):
        place = folder / f"student_{index:02d}"
        place.mkdir(parents=True, exist_ok=True)
        if text is not None:
            (place / "denoiser.py").write_text(text, encoding="utf-8")
        handed_in[place.name] = name
    return handed_in


def main():
    parser = argparse.ArgumentParser(description="Write a class of submissions, right, wrong and hostile.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--assignment", type=int, default=2, metavar="N")
    options = parser.parse_args()
    if not (ROOT / "solutions").is_dir():
        parser.error("the class is made of solutions/, which are elsewhere: run this in the lecturer's clone")
    for student, name in write_class(options.folder, options.assignment).items():
        print(f"{student}  {name}")


if __name__ == "__main__":
    main()
