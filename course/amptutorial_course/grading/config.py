"""What ``grading.yml`` says about an assignment: points, limits, and the seed."""

import functools
import hashlib
import json
import os
from dataclasses import dataclass, field, replace
from pathlib import Path

import yaml

from amptutorial._validation import check_integer, check_positive
from ..assignments import assignment
from .lateness import Lateness, as_names, read_lateness

# of a dry run where there is no grading.yml; that of the course has the same
PUBLIC_LIMITS = {
    "seconds": 180,
    "seconds_per_call": 15,
    "megabytes": 1024,
    "file_kilobytes": 256,
    "output_kilobytes": 256,
}
LIMITS = tuple(PUBLIC_LIMITS)
PUBLIC_SEED = "20240"
SEED_VARIABLE = "AMPTUTORIAL_SEED"
ATTEMPTS = ("best", "last")
PACKAGE = Path(__file__).parents[1]


@dataclass(frozen=True)
class Rules:
    """How the submissions of one assignment are graded.

    Attributes
    ----------
    number : int
        Of the assignment.
    seed : int or None
        Of the hidden settings, which students never see; None for the public ones.
    weights : dict
        Points for each check; 100 in all.
    essential : tuple of str
        Where none of these checks passes, the others earn nothing: the estimate 0 keeps
        most promises.
    limits : dict
        See `LIMITS`; seconds, megabytes and kilobytes.
    inherit : float
        The share of its points that a check earns where the method that it tries is
        inherited.
    attempts : str
        Which attempt counts, "best" or "last".
    lateness : Lateness
    by_hand : dict
        The most points for each part that is marked by hand.
    seed_is_public : bool
        Whether the seed is the one that comes with the kit.
    """

    number: int
    seed: int | None
    weights: dict
    essential: tuple
    limits: dict
    inherit: float = 1.0
    attempts: str = "last"
    lateness: Lateness = Lateness()
    by_hand: dict = field(default_factory=dict)
    seed_is_public: bool = False

    def key(self, source, helpers=None):
        """Return, as a hash, what the checks of a submission depend on.

        It depends on the files, the seed, the limits, and the package. Points do not
        come in: other weights need no other run.
        """
        rules = json.dumps([self.number, self.seed, self.limits])
        return _digest(rules, repr(source), repr(helpers or {}), _package())

    def for_student(self, student):
        """Return these rules with the seed of one student."""
        return replace(self, seed=derive_seed(self.seed, student))

    def pseudonym(self, student):
        """Return a name that does not tell who it is without the seed."""
        return f"anonymous_{_digest('name', str(self.seed), student)[:8]}"

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
def _package():
    """Return a hash of the source of the package: its checks decide what is found."""
    paths = sorted(PACKAGE.rglob("*.py"))
    return _digest(*(path.read_text(encoding="utf-8") for path in paths))


def _digest(*texts):
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def default_path():
    """Return ``course/assignments/grading.yml`` of this folder, or else of the repository.

    The repository is the folder that this package lies in.

    Raises
    ------
    FileNotFoundError
        If there is neither.
    """
    for folder in (Path.cwd(), PACKAGE.parent):
        path = folder / "assignments" / "grading.yml"
        if path.is_file():
            return path
    raise FileNotFoundError(
        "there is no course/assignments/grading.yml here: name the file with --config"
    )


def load_rules(path, number, seed=None):
    """Return the `Rules` for assignment `number`.

    The secret that all seeds are derived from is `seed`, or else what the environment
    has as AMPTUTORIAL_SEED, or else the text of the ``seed_file`` that the file names,
    or else its ``seed``.

    Raises
    ------
    ValueError, TypeError
        If there is no such assignment, a name is unknown or missing, or the weights do
        not sum to 100.
    """
    task = assignment(number)
    data = _read_yaml(path)
    optional = ("seed", "seed_file", "inherit", "attempts", "lateness", "by_hand")
    _same_names(data, ("limits", "essential", "weights"), str(path), optional)
    _same_names(data["limits"], LIMITS, f"limits in {path}")
    every = as_names(data["weights"], f"weights in {path}")
    weights = _weights(every, task, path)
    limits = {
        name: check_positive(value, f"the limit {name}")
        for name, value in data["limits"].items()
    }
    listed = _essential(data["essential"], every, path)
    essential = tuple(name for name in listed if name in weights)
    secret = _secret(data, path) if seed is None else str(seed)
    inherit = check_positive(data.get("inherit", 1.0), "inherit", zero=True)
    if inherit > 1:
        raise ValueError(f"inherit in {path} is {inherit:g}, expected at most 1")
    attempts = data.get("attempts", "last")
    if attempts not in ATTEMPTS:
        raise ValueError(f"attempts in {path} is {attempts!r}, expected best or last")
    return Rules(
        number,
        derive_seed(secret, number),
        weights,
        essential,
        limits,
        inherit,
        attempts,
        read_lateness(data.get("lateness"), number, path),
        _by_hand(data.get("by_hand"), path),
        secret == PUBLIC_SEED,
    )


def public_rules(number):
    """Return the `Rules` of a dry run: public settings, and the limits of the course.

    Where there is no ``grading.yml``, as on the students' side, the limits are those of
    the kit.
    """
    try:
        limits = load_rules(default_path(), number).limits
    except FileNotFoundError:
        limits = PUBLIC_LIMITS
    names = assignment(number).check_names()
    return Rules(number, None, dict.fromkeys(names, 0.0), (), limits)


def _read_yaml(path):
    try:
        return yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(
            f"there is no file {path}: name your grading.yml with --config"
        ) from None
    except OSError as error:
        problem = f"{path} cannot be read ({error.strerror})"
    except UnicodeDecodeError:
        problem = f"{path} is not encoded in UTF-8"
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = f"{path}{line}, is not valid YAML: {getattr(error, 'problem', error)}"
    raise ValueError(f"{problem}. Correct it, or name another file with --config")


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
            raise ValueError(
                f"seed_file in {path} cannot be read ({error}): write a secret into it"
            ) from None
        if secret:
            return secret
        raise ValueError(f"{file} is empty: write a secret into it")
    if "seed" not in data:
        raise ValueError(f"{path} has no seed: name a seed_file that holds a secret")
    return str(check_integer(data["seed"], "seed"))


def _by_hand(parts, path):
    return {
        str(name): check_positive(most, f"the points of {name} in {path}")
        for name, most in as_names(parts, f"by_hand in {path}").items()
    }


def _essential(names, every, path):
    """Return the names under ``essential``: each is a check of some assignment."""
    known = {name for number in every for name in as_names(every[number], path)}
    if not isinstance(names, list) or not known.issuperset(map(str, names)):
        raise ValueError(
            f"essential in {path} is {names!r}: list names of checks, as in "
            "[optimality, limits]"
        )
    return names


def _weights(every, task, path):
    """Return the points of each check of an assignment, out of ``weights``."""
    if task.number not in every:
        raise ValueError(
            f"{path} has no weights for assignment {task.number}: add them under "
            "weights"
        )
    where = f"the weights of assignment {task.number} in {path}"
    _same_names(every[task.number], task.check_names(), where)
    weights = {
        name: check_positive(points, f"the weight of {name}", zero=True)
        for name, points in every[task.number].items()
    }
    total = sum(weights.values())
    if abs(total - 100) > 1e-9:
        raise ValueError(f"{where} sum to {total:g}, expected 100")
    return weights


def _same_names(given, expected, where, optional=()):
    listed = ", ".join(expected)
    if not isinstance(given, dict):
        raise ValueError(f"{where}: expected the names {listed}, each with a value")
    unknown = set(given) - {*expected, *optional}
    missing = set(expected) - set(given)
    for names, word in ((unknown, "unknown"), (missing, "missing")):
        if names:
            found = ", ".join(sorted(map(str, names)))
            raise ValueError(f"{where}: {word} {found}; expected are {listed}")
