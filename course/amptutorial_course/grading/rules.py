"""How a class is graded: the secret behind its hidden settings, and its limits.

Points are not here: they belong to each assignment.
"""

import ast
import functools
import hashlib
import json
import os
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

import amptutorial
from amptutorial._validation import check_integer, check_positive

from .. import assignments

# seconds for all answers and for one, by the clock on the wall; memory beyond that of
# Python and its libraries; the largest denoiser.py; the most that is printed, which is
# also the largest file that a submission may write
LIMITS = {
    "seconds": 180,
    "seconds_per_call": 15,
    "megabytes": 1024,
    "file_kilobytes": 256,
    "output_kilobytes": 256,
}
NAMES = ("seed", "seed_file", "limits")
PUBLIC_SEED = "20240"
SEED_VARIABLE = "AMPTUTORIAL_SEED"
COURSE = Path(__file__).parents[2]


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
    seed_is_public : bool
        Whether the seed is the one that comes with the course.
    """

    number: int
    seed: int | None
    limits: dict
    seed_is_public: bool = False

    @property
    def task(self):
        """The assignment."""
        return assignments.assignment(self.number)

    def key(self, source, helpers=None):
        """Return, as a hash, what the checks of a submission depend on.

        These are the files, the seed, the limits, and the code of the checks. Points
        do not come in: others need no other run.
        """
        rules = json.dumps([self.number, self.seed, self.limits])
        return _digest(rules, repr(source), repr(helpers or {}), _checks())

    def for_student(self, student):
        """Return these rules with the seed of one student."""
        return replace(self, seed=derive_seed(self.seed, student))

    def fingerprint(self):
        """Return what tells two seeds apart and does not tell the seed."""
        return _digest("fingerprint", str(self.seed))[:8]


def derive_seed(secret, *parts):
    """Return the seed of a part of the course, a number from which no other follows.

    Examples
    --------
    >>> derive_seed("secret", 1) == derive_seed("secret", 2)
    False
    """
    return int(_digest("seed", str(secret), *map(str, parts))[:15], 16)


@functools.cache
def _checks():
    """Return a hash of the code that decides what is found."""
    package = Path(amptutorial.__file__).parent
    paths = [*package.glob("*.py"), *package.glob("checks/*.py")]
    paths += [package / "paper" / "experiments.py"]
    tasks = Path(assignments.__file__).parent.glob("[!_]*.py")
    core = Path(assignments.__file__).with_name("_core.py")
    return _digest(*map(_code, sorted([*paths, *tasks, core])))


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
    """Return ``assignments/grading.yml`` of this folder, or of the course's clone.

    Raises
    ------
    FileNotFoundError
        If there is neither.
    """
    for folder in (Path.cwd(), COURSE):
        path = folder / "assignments" / "grading.yml"
        if path.is_file():
            return path
    raise FileNotFoundError("there is no assignments/grading.yml here: name the file with --config")


def load_rules(path, number, seed=None):
    """Return the `Rules` for assignment `number`.

    The secret that all seeds are derived from is `seed`, or else what the environment
    has as AMPTUTORIAL_SEED, or else the text of the ``seed_file`` that the file names,
    or else its ``seed``.

    Raises
    ------
    OSError, ValueError, TypeError
        If there is no such assignment or file, a name is unknown, a value is none, or
        the points of the assignment are not a hundred.
    """
    task = assignments.assignment(number)
    task.require_points()
    data = _known(_read_yaml(path), NAMES, path)
    given = _known(data.get("limits") or {}, LIMITS, f"limits in {path}")
    limits = {name: check_positive(value, f"the limit {name}") for name, value in {**LIMITS, **given}.items()}
    secret = _secret(data, path) if seed is None else str(seed)
    return Rules(number, derive_seed(secret, number), limits, secret == PUBLIC_SEED)


def public_rules(number):
    """Return the `Rules` of a dry run: public settings, and the limits of the course.

    Where there is no ``grading.yml``, as on the students' side, they are `LIMITS`.
    """
    try:
        limits = load_rules(default_path(), number).limits
    except FileNotFoundError:
        limits = LIMITS
    return Rules(assignments.assignment(number).number, None, limits)


def _read_yaml(path):
    try:
        return yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no file {path}: name your grading.yml with --config") from None
    except OSError as error:
        problem = f"{path} cannot be read ({error.strerror})"
    except UnicodeDecodeError:
        problem = f"{path} is not encoded in UTF-8"
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = f"{path}{line}, is not valid YAML: {getattr(error, 'problem', error)}"
    raise ValueError(f"{problem}. Correct it, or name another file with --config")


def _known(data, names, where):
    """Return `data` if it is a dict with none but these names."""
    unknown = set(data) - set(names) if isinstance(data, dict) else {str(data)[:40]}
    if unknown:
        found, listed = ", ".join(sorted(map(str, unknown))), ", ".join(names)
        raise ValueError(f"{where}: unknown {found}; it may have {listed}")
    return data


def _secret(data, path):
    """Return the secret of the course as a text."""
    from_environment = os.environ.get(SEED_VARIABLE, "").strip()
    if from_environment:
        return from_environment
    if data.get("seed_file"):
        file = Path(path).parent / str(data["seed_file"])
        try:
            secret = file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"seed_file in {path} cannot be read ({error}): write a secret into it") from None
        if secret:
            return secret
        raise ValueError(f"{file} is empty: write a secret into it")
    if "seed" not in data:
        raise ValueError(f"{path} has no seed: name a seed_file that holds a secret")
    return str(check_integer(data["seed"], "seed"))
