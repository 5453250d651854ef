"""Run the benchmarks that are named, or the usual ones, and print one table: each row as soon as it is measured."""

import argparse
from importlib import import_module

from amptutorial._extras import pip_install

# The module, about the seconds of one core, and what is measured. The sampler comes first: its peak memory is its own.
USUAL = {
    "sampling": ("sampling", 16, "drawing 10^7 counts of a table with 10^12 cells"),
    "dense": ("algorithm", 11, "an iteration of AMP on an array beside its two products"),
    "sparse": ("algorithm", 9, "the same on sparse counts"),
    "reviews": ("algorithm", 14, "the same on the movie reviews *"),
    "state_evolution": ("algorithm", 1, "an iteration of exact state evolution"),
    "experiment": ("algorithm", 8, "the paper's first experiment beside the drawing of its counts"),
    "lasso": ("lasso", 40, "the Lasso for many rows beside scikit-learn's, row by row"),
    "estimator": ("algorithm", 10, "a fit of AMPEmbedding to the movie reviews *"),
}
NAMED = {
    "rivals": ("algorithm", 1800, "the other programs of chapter 14 beside AMPEmbedding"),
    "wide": ("scale", 18, "AMPEmbedding on 4,000 documents and 100,000 words"),
    "quadratic": ("scale", 40, "an iteration of AMP on 8 million counts beside its two products"),
    "cost": ("scale", 120, "how the time of AMPEmbedding grows with the counts"),
    "million": ("scale", 2400, "AMPEmbedding on 10^8 counts in a million rows and columns: 12 GB of memory"),
    "weak_scaling": ("shards", 120, "AMP on two workers beside one +"),
    "cpu": ("shards", 32, "how busy the workers are +"),
    "bytes": ("shards", 15, "what workers send in an iteration +"),
    "memory": ("shards", 40, "the memory of workers +"),
    "thousand": ("shards", 2, "what a thousand workers would send, by the formulas +"),
}
ROWS = USUAL | NAMED
TEXT = """\
Print how fast everything is, as ratios of two times taken in the same run, each beside what is demanded.
Without a name these run, one after another; the time is about that of one core:

{}

These run if they are named:

{}

* reads the movie reviews, 84 MB, downloaded once; AMPTUTORIAL_DATA names a copy. Without a network it is left out.
+ needs Dask: {}"""


def listed(rows):
    """Return a line on each benchmark: its name, its time, and what it measures."""
    times = {name: f"{s} s" if s < 100 else f"{s / 60:.0f} min" for name, (_, s, _) in rows.items()}
    return "\n".join(f"  {name:<16}{times[name]:>6}  {text}" for name, (_, _, text) in rows.items())


def main(arguments=None):
    """Print the rows of each benchmark; one that lacks data or a package is left out with a sentence."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=TEXT.format(listed(USUAL), listed(NAMED), pip_install("dask")),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="a benchmark of the lists above")
    chosen = parser.parse_args(arguments).names or USUAL
    if unknown := set(chosen) - set(ROWS):
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}: choose from {', '.join(ROWS)}")
    for name in chosen:
        try:
            bench = getattr(import_module(f"benchmarks.{ROWS[name][0]}"), f"bench_{name}")
            for line in bench():
                print(f"{line['name']:<52} {line['ratio']:8.2f}   ({line['demanded']})\n    {line['at']}", flush=True)
        except (OSError, ImportError) as error:  # no network, or no Dask
            print(f"{name} is left out: {error}", flush=True)


if __name__ == "__main__":
    main()
