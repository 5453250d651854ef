"""How a class is graded: the secret behind its hidden settings, and its limits.

Points are not here: they belong to each assignment.
"""

import ast
import functools
import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path

import yaml

import amptutorial
from amptutorial._validation import check_integer, check_positive

from .. import assignments
from . import KINDS
from .session import WALL
from .submissions import read_submission

# seconds of the processor for all answers and for one; memory beyond that of Python and
# its libraries; the largest denoiser.py; the most that is printed, which is also the
# largest file that a submission may write
LIMITS = {"seconds": 300, "seconds_per_call": 15, "megabytes": 1024, "file_kilobytes": 256, "output_kilobytes": 256}
NAMES = ("seed", "seed_file", "limits", "isolate")
PUBLIC_SEED = "20240"
SEED_VARIABLE = "AMPTUTORIAL_SEED"
# What students get, and how they are graded: a wheel has it in the package, a clone beside it.
HANDOUTS = Path(__file__).parents[1] / "handouts"
if not HANDOUTS.is_dir():
    HANDOUTS = Path(__file__).parents[2] / "assignments"


@dataclass(frozen=True)
class Rules:
    """How the submissions of one assignment are graded.

    Attributes
    ----------
    number : int
        Of the assignment.
    seed : int or None
        Of the hidden settings, which students never see; None for the public ones.
    limits : dict
        See `LIMITS`.
    starter : str
        What students were given to complete, where that is known.
    code : str
        A hash of what decides what is found, made once for a class.
    isolate : str or None
        One of `isolation.KINDS`, if the lecturer has named one.
    """

    number: int
    seed: int | None
    limits: dict
    starter: str = ""
    code: str = ""
    isolate: str | None = None

    @property
    def task(self):
        """The assignment."""
        return assignments.assignment(self.number)

    def read(self, *paths):
        """Return the `Submission` in a file or a folder."""
        return read_submission(paths, self.task.class_names, self.limits["file_kilobytes"], self.starter)

    def key(self, submission):
        """Return, as a hash, what the checks of a submission depend on.

        These are the files, the seed, the limits, and the code of the checks. Points
        do not come in: others need no other run.
        """
        rules = json.dumps([self.number, self.seed, self.limits])
        return _digest(rules, repr(submission.source), repr(submission.helpers), self.code)


def derive_seed(secret, number):
    """Return the seed of an assignment, a number from which no other follows.

    Examples
    --------
    >>> derive_seed("secret", 1) == derive_seed("secret", 2)
    False
    """
    return int(_digest("seed", str(secret), str(number))[:15], 16)


@functools.cache
def _checks():
    """Return a hash of the code that decides what is found."""
    package = Path(amptutorial.__file__).parent
    paths = [*package.glob("*.py"), *package.glob("checks/*.py")]
    paths += Path(assignments.__file__).parent.glob("*.py")
    return _digest(*(_code(path) for path in sorted(paths) if path.name != "_points.py"))


def _code(path):
    """Return the statements of a file but for the points of an assignment."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            node.keywords = [word for word in node.keywords if word.arg != "points"]
    return ast.dump(tree)


def _digest(*texts):
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def default_path():
    """Return ``assignments/grading.yml`` of this folder, or the file that comes with the course."""
    own = Path.cwd() / "assignments" / "grading.yml"
    return own if own.is_file() else HANDOUTS / "grading.yml"


def load_rules(path, number, seed=None, warn=None):
    """Return the `Rules` for assignment `number`.

    The secret that all seeds are derived from is `seed`, or else what the environment
    has as AMPTUTORIAL_SEED, or else the text of the ``seed_file`` that the file names,
    or else its ``seed``. The callable `warn` is told if students could know it.

    Raises
    ------
    OSError, ValueError, TypeError
        If there is no such assignment or file, a name is unknown, a value is none, or
        the points of the assignment are not a hundred.
    """
    task = assignments.assignment(number)
    task.require_points()
    data = _known(_read_yaml(path), NAMES, path)
    given = _known(data.get("limits") or {}, (*LIMITS, WALL), f"limits in {path}")
    limits = {name: check_positive(value, f"the limit {name}") for name, value in {**LIMITS, **given}.items()}
    secret = _secret(data, path) if seed is None else str(seed)
    if warn and secret == PUBLIC_SEED:
        advice = f"set {SEED_VARIABLE} to a secret, or name a file with one as seed_file, in a copy for --config"
        warn(f"the seed in {path} is public, and students can try the hidden settings: {advice}")
    isolate = data.get("isolate")
    if isolate not in (None, *KINDS):
        raise ValueError(f"isolate in {path} is {isolate!r}: it may be {', '.join(KINDS)}")
    starter = HANDOUTS / task.folder / "denoiser.py"
    text = starter.read_text(encoding="utf-8") if starter.is_file() else ""
    return Rules(number, derive_seed(secret, number), limits, text, _checks(), isolate)


def _read_yaml(path):
    try:
        return yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        why = " ".join(str(error).split())
        raise ValueError(f"{path} cannot be read: {why}. Name your grading.yml with --config") from None


def _known(data, names, where):
    """Return `data` if it is a dict with none but these names."""
    unknown = set(data) - set(names) if isinstance(data, dict) else {str(data)[:40]}
    if unknown:
        found, listed = ", ".join(sorted(map(str, unknown))), ", ".join(names)
        raise ValueError(f"{where}: unknown {found}; it may have {listed}")
    return data


def _secret(data, path):
    """Return the secret of the course as a text."""
    secret = os.environ.get(SEED_VARIABLE, "").strip()
    if not secret and data.get("seed_file"):
        file = Path(path).parent / str(data["seed_file"])
        secret = file.read_text(encoding="utf-8").strip() if file.is_file() else ""
        if not secret:
            raise ValueError(f"{file}, the seed_file of {path}, is empty or missing: write a secret into it")
    if not secret and "seed" not in data:
        raise ValueError(f"{path} has no seed: name a seed_file that holds a secret")
    return secret or str(check_integer(data["seed"], "seed"))
