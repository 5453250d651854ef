"""Write a sample class to try the grader on: `python course/tests/sample_class.py submissions/ --assignment 2`.

Right solutions, known mistakes, the untouched starter, and submissions that attack the grader. The hostile ones need no
knowledge of the assignment: they are pieces of code before or after a solution.
"""

import argparse
from pathlib import Path
from textwrap import indent

import yaml

from amptutorial_course.assignments import assignment

ROOT = Path(__file__).parents[1]
SIZE = 30
BANK = yaml.safe_load(Path(__file__).with_name("attacks.yml").read_text(encoding="utf-8"))
# Appended to a solution: every denoiser of the file gets this estimate.
ATTACK = """

def _attack(self, P, r, F):
{body}


for _class in [value for value in list(globals().values()) if isinstance(value, type)]:
    if issubclass(_class, Denoiser) and _class is not Denoiser:
        _class.estimate = _attack
"""


def hostile(solution):
    """Return the hostile submissions, text by name: each is `solution` with an attack on the grader."""
    first = {name: f"{code}\n{solution}" for name, code in BANK["at_import"].items()}
    bodies = {name: indent(body, "    ") for name, body in BANK["in_estimate"].items()}
    inside = {f"{name} in estimate": solution + ATTACK.format(body=body) for name, body in bodies.items()}
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
