"""Run an experiment in parallel, store its results, and read them back.

`python -m amptutorial reproduce NAME` does it from the command line, in a folder of its
own: what is installed stays. A stored result says how it was made (seeds, versions,
seconds) and carries a checksum, so that a number changed by hand is found out. Every
instance can be computed again by itself.

The comparisons of programs on texts are stored here too; a study of the repository
computes them (`STUDIED`).
"""

import argparse
import hashlib
import json
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from itertools import chain
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed, parallel_config

from .. import __version__
from .._files import write_atomically
from .._progress import progress
from . import experiments

RESULTS = Path(__file__).parent / "results"  # installed with the package
OWN = Path("reproduced")  # where the command line stores


@dataclass(frozen=True)
class _Reproduction:
    """How to compute a stored result.

    Attributes
    ----------
    run : callable
        ``run(index)`` returns one instance as a dictionary, or several in a list, all
        with the same keys; the index is below `n_instances`.
    shows : str
        What it is for, in a line.
    figures : tuple of str
        Their labels in the paper.
    seeds : str
        What an instance draws from, in words; k is its index.
    """

    run: Callable
    n_instances: int
    shows: str
    figures: tuple = ()
    seeds: str = "instance k draws everything from numpy.random.default_rng([k, m])"


def _reviews_instance(index):
    """Call `reviews.reviews_instance`.

    It is imported here: loading scikit-learn, of which those who read stored results
    need nothing, takes seconds and 100 MB in a reader's browser.
    """
    from .reviews import reviews_instance

    return reviews_instance(index)


DIGITS = 8  # significant ones that are stored
REPRODUCTIONS = {
    "l2": _Reproduction(
        experiments.l2_instance,
        20,
        "figures 1a, 1b: loss and error with a ridge (chapter 18)",
        ("fig:20runs-loss", "fig:mse", "fig:example"),
    ),
    "l1": _Reproduction(
        experiments.l1_instance,
        20,
        "figures 2a, 2b: loss and error with a lasso (chapter 18)",
        ("fig:sparse20runs-loss", "fig:sparse20runs-mse", "fig:example2"),
    ),
    "fisher": _Reproduction(
        experiments.fisher_instance,
        3,
        "figure 3a: errors of pairs by their Fisher information (chapter 18)",
        ("fig:delta-mMSE", "fig:MSE-Fisher"),
    ),
    "singular": _Reproduction(
        experiments.singular_instance,
        len(experiments.LOG_RATES),
        "figure 3b: singular values around the threshold (chapter 18)",
        ("fig:singular", "fig:MSE-Fisher"),
    ),
    "real": _Reproduction(
        experiments.real_instance,
        5,
        "figures 4a, 4b: rows learned from movie reviews * (chapter 18)",
        ("fig:real-loss", "fig:real-mse", "fig:real"),
    ),
    "reviews": _Reproduction(
        _reviews_instance,
        1,
        "table 1: 7000 movie reviews * (chapter 18, appendix on text)",
        seeds="instance k chooses the reviews, splits counts and fits with the seed k",
    ),
}
STUDIED = "text", "documents", "inflections"  # programs compared, in the repository


def reproduce(name, *, folder, n_jobs=2, plans=REPRODUCTIONS):
    """Run all instances of an experiment and store them in ``folder / name.json``.

    Parameters
    ----------
    name : str
        A key of `plans`.
    folder : path
        It is made if need be.
    n_jobs : int
        Processes, each with one thread.
    plans : dict of str to _Reproduction

    Returns
    -------
    Path
        The file.

    Raises
    ------
    KeyError
        If there is no such experiment.
    OSError
        If the folder cannot be made.
    """
    plan, path = _plan(name, plans), _path(name, folder)
    path.parent.mkdir(parents=True, exist_ok=True)  # now, and not after an hour
    start = time.perf_counter()
    with parallel_config(backend="loky", inner_max_num_threads=1):
        jobs = Parallel(n_jobs=n_jobs, return_as="generator")(
            delayed(plan.run)(k) for k in range(plan.n_instances)
        )
        watched = progress(jobs, total=plan.n_instances, desc=name, unit=" instances")
        results = [one if isinstance(one, list) else [one] for one in watched]
    seconds = time.perf_counter() - start
    indices = " ... ".join(map(str, sorted({0, plan.n_instances - 1})))
    record = {
        "experiment": name,
        "figures": plan.figures,
        "command": _command(name),
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
    if name not in STUDIED:
        _plan(name, REPRODUCTIONS)
    path = _path(name, folder)
    anew = f"{_command(name)} --to {path.parent}"
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: {anew} computes it")
    record = json.loads(path.read_text())
    stored = record.pop("checksum", None)
    if stored != checksum(record):
        raise ValueError(f"{path} is not as it was stored: {anew} computes it anew")
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


def _plan(name, plans):
    if name not in plans:
        known = f"there is no experiment {name!r}: choose from {', '.join(plans)}"
        moved = f"a clone of the repository computes {name!r}: {_command(name)}"
        raise KeyError(moved if name in STUDIED else known)
    return plans[name]


def _path(name, folder):
    return Path(folder or RESULTS) / f"{name}.json"


def _command(name):
    program = "studies.text" if name in STUDIED else "amptutorial reproduce"
    return f"python -m {program} {name}"


def _rounded(value):
    """Return numbers as JSON holds them, to `DIGITS` digits; strings stay."""
    if isinstance(value, str):
        return value
    if np.ndim(value):
        return [_rounded(v) for v in value]
    number = float(f"{value:.{DIGITS}g}")
    return int(number) if number.is_integer() else number


def _differing(found, stored):
    """Return the fields in which two results differ beyond round-off; seconds may.

    Examples
    --------
    >>> _differing({"a": 1.0, "seconds": 3}, {"a": 1.0 + 1e-9, "b": 2})
    ['b']
    """

    def same(one, other):
        one, other = np.asarray(one), np.asarray(other)
        are_numbers = {one.dtype.kind, other.dtype.kind} <= {*"fi"}
        if one.shape != other.shape or not are_numbers:
            return np.array_equal(one, other)
        return np.allclose(one, other, rtol=1e-5, atol=1e-8, equal_nan=True)

    fields = sorted({*found, *stored} - {"seconds"})
    return [key for key in fields if not same(found.get(key), stored.get(key))]


def _known(name):
    """Return the stored result of an experiment, or an empty one if none is read."""
    try:
        return load_results(name)
    except (FileNotFoundError, ValueError):
        return {"seconds": 0, "instances": {}}


def _compared(found, stored):
    """Return a sentence on the instances of a result and of the stored one."""
    if not stored:
        return "There is no stored result to compare it with."
    if fields := _differing(found, stored):
        return f"It differs from the stored result in: {', '.join(fields)}."
    return "It equals the stored result, but for round-off."


def _drawn(plans):
    return [name for name, plan in plans.items() if plan.figures]


def _line(name, seconds, shows):
    time = f"{seconds} s" if seconds < 100 else f"{seconds / 60:.0f} min"
    return f"  {name:<12}{time:>6}  {shows}"


HELP = """
Compute a stored result of the book anew, at full size, and compare the two. Figures
and tables have the numbers of the paper. The time is what the stored result took, in
two processes.

{}

* reads the movie reviews, 84 MB, downloaded once; AMPTUTORIAL_DATA names a copy"""


def _described(plans):
    """Return what the command line says of experiments: a line on each.

    That is its name, its time, and what it shows.
    """
    seconds = {name: _known(name)["seconds"] for name in plans}
    lines = [_line(name, seconds[name], plan.shows) for name, plan in plans.items()]
    if drawn := _drawn(plans):
        total = sum(seconds[name] for name in drawn)
        lines.append(_line("all", total, "every figure of the paper"))
    return HELP.format("\n".join(lines))


def _add_arguments(parser):
    """Give a parser what `_run` asks for."""
    parser.add_argument("experiment", metavar="NAME")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    text = f"where NAME.json is written (default: {OWN}, in the working directory)"
    parser.add_argument("--to", type=Path, metavar="FOLDER", default=OWN, help=text)


def _run(parser, options, plans):
    """Compute what the command line asks for, and compare it with what is stored."""
    drawn = _drawn(plans) if options.experiment == "all" else []
    names = drawn or [options.experiment]
    try:
        for name in names:
            _plan(name, plans)
    except KeyError as error:
        parser.error(error.args[0])
    try:
        for name in names:
            stored = _known(name)["instances"]  # now: --to may be where it lies
            path = reproduce(name, folder=options.to, n_jobs=options.jobs, plans=plans)
            found = load_results(name, path.parent)["instances"]
            print(f"Wrote {path}. {_compared(found, stored)}", flush=True)
    except (OSError, ImportError) as error:  # no network, or no gensim
        parser.exit(1, f"{error}\n")


def main(arguments=None):
    """Run the command line; see `python -m amptutorial --help`."""
    parser = argparse.ArgumentParser(
        prog="python -m amptutorial", description="Compute the stored results anew."
    )
    text = f"amptutorial {__version__}"
    parser.add_argument("--version", action="version", version=text)
    command = parser.add_subparsers(dest="command", required=True).add_parser(
        "reproduce",
        help="the stored results of the book, at full size",
        description=_described(REPRODUCTIONS),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_arguments(command)
    _run(command, parser.parse_args(arguments), REPRODUCTIONS)
