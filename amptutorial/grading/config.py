"""What ``grading.yml`` says about an assignment: points, limits, and the seed."""

import functools
import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import yaml

from .._validation import check_integer, check_positive
from ..assignments import assignment

LIMITS = (
    "seconds",
    "seconds_per_call",
    "megabytes",
    "file_kilobytes",
    "output_kilobytes",
)
PACKAGE = Path(__file__).parents[1]


@dataclass(frozen=True)
class Rules:
    """How the submissions of one assignment are graded.

    Attributes
    ----------
    number : int
        Of the assignment.
    seed : int
        Of the hidden settings: what students never see.
    weights : dict
        Points for each check; 100 in all.
    essential : tuple of str
        Where none of these checks passes, the others earn nothing: the estimate 0 keeps
        most promises.
    limits : dict
        See `LIMITS`; seconds, megabytes and kilobytes.
    """

    number: int
    seed: int
    weights: dict
    essential: tuple
    limits: dict

    def key(self, source):
        """Return what the points of a submission depend on, as a hash.

        They depend on the file, these rules, and the package.
        """
        return _digest(json.dumps(asdict(self)), repr(source), _package())


@functools.cache
def _package():
    """Return a hash of the source of the package: its checks decide what is found."""
    paths = sorted(PACKAGE.rglob("*.py"))
    return _digest(*(path.read_text(encoding="utf-8") for path in paths))


def _digest(*texts):
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def default_path():
    """Return ``assignments/grading.yml`` of this folder, or else of the repository.

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
        "there is no assignments/grading.yml here: name the file with --config"
    )


def load_rules(path, number, seed=None):
    """Return the `Rules` for assignment `number`; `seed` replaces the one of the file.

    Raises
    ------
    ValueError, TypeError
        If there is no such assignment, a name is unknown or missing, or the weights do
        not sum to 100.
    """
    task = assignment(number)
    try:
        data = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ValueError(f"{path} is not valid YAML: {error}") from None
    _same_names(data, ("seed", "limits", "essential", "weights"), str(path))
    _same_names(data["limits"], LIMITS, f"limits in {path}")
    weights = _weights(data["weights"] or {}, task, path)
    limits = {
        name: check_positive(value, f"the limit {name}")
        for name, value in data["limits"].items()
    }
    essential = tuple(name for name in data["essential"] if name in weights)
    seed = check_integer(data["seed"] if seed is None else seed, "seed")
    return Rules(number, seed, weights, essential, limits)


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


def _same_names(given, expected, where):
    listed = ", ".join(expected)
    if not isinstance(given, dict):
        raise ValueError(f"{where}: expected the names {listed}, each with a value")
    unknown, missing = set(given) - set(expected), set(expected) - set(given)
    for names, word in ((unknown, "unknown"), (missing, "missing")):
        if names:
            found = ", ".join(sorted(map(str, names)))
            raise ValueError(f"{where}: {word} {found}; expected are {listed}")
