"""What ``grading.yml`` says about an assignment: the points of each check, the limits, and the seed."""

import functools
import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import yaml

import amptutorial
from amptutorial._validation import check_integer, check_positive
from amptutorial.assignments import assignment

LIMITS = (
    "seconds",
    "seconds_per_call",
    "megabytes",
    "file_kilobytes",
    "output_kilobytes",
)
PACKAGE = Path(amptutorial.__file__).parent


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
        """Return what the points of a submission depend on, as a hash: the file, these rules, and the package."""
        return _digest(json.dumps(asdict(self)), repr(source), _package())


@functools.cache
def _package():
    """Return a hash of the source of the package: other checks may find something else."""
    return _digest(
        *(path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py")))
    )


def _digest(*texts):
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def default_path():
    """Return ``assignments/grading.yml`` of the current folder, or of the repository that this package lies in.

    Raises
    ------
    FileNotFoundError
        If there is neither.
    """
    places = [
        folder / "assignments" / "grading.yml"
        for folder in (Path.cwd(), PACKAGE.parent)
    ]
    for path in places:
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
    data = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    _same_names(data, ("seed", "limits", "essential", "weights"), str(path))
    _same_names(data["limits"], LIMITS, f"limits in {path}")
    if number not in (data["weights"] or ()):
        raise ValueError(
            f"{path} has no weights for assignment {number}: add them under weights"
        )
    weights = data["weights"][number]
    _same_names(
        weights, task.check_names(), f"the weights of assignment {number} in {path}"
    )
    weights = {
        name: check_positive(points, f"the weight of {name}", zero=True)
        for name, points in weights.items()
    }
    if abs(sum(weights.values()) - 100) > 1e-9:
        raise ValueError(
            f"the weights of assignment {number} in {path} sum to {sum(weights.values()):g}, expected 100"
        )
    limits = {
        name: check_positive(value, f"the limit {name}")
        for name, value in data["limits"].items()
    }
    essential = tuple(name for name in data["essential"] if name in weights)
    return Rules(
        number,
        check_integer(data["seed"] if seed is None else seed, "seed"),
        weights,
        essential,
        limits,
    )


def _same_names(given, expected, where):
    if not isinstance(given, dict):
        raise ValueError(
            f"{where}: expected the names {', '.join(expected)}, each with a value"
        )
    unknown, missing = (
        sorted(map(str, set(given) - set(expected))),
        sorted(set(expected) - set(given)),
    )
    for names, word in ((unknown, "unknown"), (missing, "missing")):
        if names:
            raise ValueError(
                f"{where}: {word} {', '.join(names)}; expected are {', '.join(expected)}"
            )
