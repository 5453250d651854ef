"""Run an experiment in parallel, store its results, and read them back.

`python -m amptutorial reproduce NAME` does it from the command line. A stored result
says how it was made (seeds, versions, seconds) and carries a checksum, so that a number
changed by hand is found out. Every instance can be computed again by itself.
"""

import argparse
import hashlib
import json
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import version
from itertools import chain
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed, parallel_config
from tqdm import tqdm

from .._files import write_atomically
from .experiments import (
    LOG_RATES,
    fisher_instance,
    l1_instance,
    l2_instance,
    real_instance,
    singular_instance,
)

RESULTS = Path(__file__).parent / "results"  # installed with the package


@dataclass(frozen=True)
class Reproduction:
    """How to compute a stored result.

    Attributes
    ----------
    run : callable
        ``run(index)`` returns one instance as a dictionary, or several in a list, all
        with the same keys; the index is below `n_instances`.
    figures : tuple of str
        Of the paper.
    seeds : str
        What an instance draws from, in words; k is its index.
    """

    run: Callable
    n_instances: int
    figures: tuple = ()
    seeds: str = "instance k draws everything from numpy.random.default_rng([k, m])"


def _later(module, function, index):
    """Call a function of a module of `amptutorial.paper`.

    It is imported here: loading scikit-learn, of which those who read stored results
    need nothing, takes seconds and 100 MB in a reader's browser.
    """
    return getattr(import_module(f".{module}", __package__), function)(index)


DIGITS = 8  # significant ones that are stored
REPRODUCTIONS = {
    "l2": Reproduction(l2_instance, 20, ("fig:20runs-loss", "fig:mse", "fig:example")),
    "l1": Reproduction(
        l1_instance,
        20,
        ("fig:sparse20runs-loss", "fig:sparse20runs-mse", "fig:example2"),
    ),
    "fisher": Reproduction(fisher_instance, 3, ("fig:delta-mMSE", "fig:MSE-Fisher")),
    "singular": Reproduction(
        singular_instance, len(LOG_RATES), ("fig:singular", "fig:MSE-Fisher")
    ),
    "real": Reproduction(
        real_instance, 5, ("fig:real-loss", "fig:real-mse", "fig:real")
    ),
    # what the paper does not show
    "text": Reproduction(
        partial(_later, "comparison", "text_instance"),
        12,  # comparison.CASES: a test compares
        seeds="case k of amptutorial.paper.comparison.CASES draws everything from "
        "numpy.random.default_rng([its index, m])",
    ),
    "inflections": Reproduction(
        partial(_later, "meaning", "inflections_instance"),
        2,  # meaning.TABLES
        seeds="each method draws from numpy.random.default_rng(k) in table k of "
        "amptutorial.paper.meaning.TABLES",
    ),
    "reviews": Reproduction(
        partial(_later, "comparison", "reviews_instance"),
        1,
        seeds="instance k chooses the reviews, splits counts and fits with the seed k",
    ),
}


def reproduce(name, *, folder=None, n_jobs=2):
    """Run all instances of an experiment and store them in ``folder / name.json``.

    Parameters
    ----------
    name : str
        A key of `REPRODUCTIONS`.
    folder : path, optional
        The default is where `load_results` looks, in the package itself.
    n_jobs : int
        Processes, each with one thread.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    KeyError
        If there is no such experiment.
    FileNotFoundError
        If there is no such folder.
    """
    plan, path = _plan(name), _path(name, folder)
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"there is no folder {path.parent}: make it, or name another with --to"
        )
    start = time.perf_counter()
    with parallel_config(backend="loky", inner_max_num_threads=1):
        jobs = Parallel(n_jobs=n_jobs, return_as="generator")(
            delayed(plan.run)(k) for k in range(plan.n_instances)
        )
        watched = tqdm(jobs, total=plan.n_instances, desc=name, unit=" instances")
        results = [one if isinstance(one, list) else [one] for one in watched]
    seconds = time.perf_counter() - start
    indices = " ... ".join(map(str, sorted({0, plan.n_instances - 1})))
    record = {
        "experiment": name,
        "figures": plan.figures,
        "command": f"python -m amptutorial reproduce {name}",
        "seeds": f"{plan.seeds}, k = {indices}",
        "versions": {"python": platform.python_version()}
        | {p: version(p) for p in ("numpy", "scipy", "scikit-learn")},
        "seconds": round(seconds),
        "processes": n_jobs,
        "instances": [
            {key: _rounded(value) for key, value in instance.items()}
            for instance in chain.from_iterable(results)
        ],
    }
    record["checksum"] = checksum(record)
    write_atomically(path, json.dumps(record, separators=(",", ":")) + "\n")
    return path


def load_results(name, folder=None):
    """Return what `reproduce` stored of an experiment.

    Parameters
    ----------
    name : str
    folder : path, optional
        Where it is stored. The default is the package itself, which comes with the
        results that the book shows.

    Returns
    -------
    dict
        The record. Its ``"instances"`` is a dictionary of arrays, whose first axis
        counts the instances.

    Raises
    ------
    KeyError
        If there is no such experiment.
    FileNotFoundError
        If the results are not there.
    ValueError
        If they were changed after they had been stored.

    Examples
    --------
    >>> load_results("l2")["instances"]["SE_mse"].shape
    (20, 15)
    """
    _plan(name)
    path = _path(name, folder)
    if not path.exists():
        raise FileNotFoundError(
            f"{path} is missing: python -m amptutorial reproduce {name} computes it"
        )
    record = json.loads(path.read_text())
    stored = record.pop("checksum", None)
    if stored != checksum(record):
        raise ValueError(
            f"{path} is not as it was stored:"
            f" python -m amptutorial reproduce {name} computes it anew"
        )
    instances = record["instances"]
    arrays = {key: np.array([x[key] for x in instances]) for key in instances[0]}
    return record | {"instances": arrays, "checksum": stored}


def checksum(record):
    """Return the SHA-256 of a record; the order of its keys does not matter.

    Examples
    --------
    >>> checksum({"a": 1, "b": [2]}) == checksum({"b": [2], "a": 1})
    True
    """
    text = json.dumps(record, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _plan(name):
    if name not in REPRODUCTIONS:
        raise KeyError(
            f"there is no experiment {name!r}: choose from {', '.join(REPRODUCTIONS)}"
        )
    return REPRODUCTIONS[name]


def _path(name, folder):
    return Path(folder or RESULTS) / f"{name}.json"


def _rounded(value):
    """Return numbers as JSON holds them, to `DIGITS` digits; strings stay."""
    if isinstance(value, str):
        return value
    if np.ndim(value):
        return [_rounded(v) for v in value]
    number = float(f"{value:.{DIGITS}g}")
    return int(number) if number.is_integer() else number


def main(arguments=None):
    """Run the command line; see `python -m amptutorial --help`."""
    parser = argparse.ArgumentParser(
        prog="python -m amptutorial", description="Compute the stored results anew."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    text = "the stored results of the book, at full size"
    add = commands.add_parser("reproduce", help=text).add_argument
    choices, text = [*REPRODUCTIONS, "all"], "all: every figure of the paper"
    add("experiment", choices=choices, help=text)
    add("--jobs", type=int, default=2, help="processes (default: 2)")
    text = "default: where load_results looks"
    add("--to", type=Path, metavar="FOLDER", help=text)
    options = parser.parse_args(arguments)
    drawn = [name for name, plan in REPRODUCTIONS.items() if plan.figures]
    names = drawn if options.experiment == "all" else [options.experiment]
    try:
        for name in names:
            path = reproduce(name, folder=options.to, n_jobs=options.jobs)
            print(f"Stored in {path}", flush=True)
    except (FileNotFoundError, ConnectionError) as error:
        parser.exit(1, f"{error}\n")
