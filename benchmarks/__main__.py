"""Run all benchmarks and print one table.

With the word `scale` they are those of large tables, with `million` the largest table alone, which needs forty minutes,
with `shards` those of a cluster.

The sampler comes first, so that its peak memory is its own.
"""

import sys
from importlib import import_module

from .algorithm import (
    bench_dense,
    bench_estimator,
    bench_experiment,
    bench_reviews,
    bench_rivals,
    bench_sparse,
    bench_state_evolution,
)
from .lasso import bench_lasso
from .sampling import bench_sampling
from .scale import bench_cost, bench_million, bench_quadratic, bench_wide

BENCHMARKS = [
    bench_sampling,
    bench_dense,
    bench_sparse,
    bench_reviews,
    bench_state_evolution,
    bench_experiment,
    bench_lasso,
    bench_estimator,
    bench_rivals,
]


def main():
    """Print each row as soon as it is measured."""
    named = {"scale": [bench_quadratic, bench_wide, bench_cost], "million": [bench_million]}
    chosen = named.get(" ".join(sys.argv[1:]), BENCHMARKS)
    if sys.argv[1:] == ["shards"]:  # which needs Dask
        chosen = import_module("benchmarks.shards").BENCHMARKS
    for bench in chosen:
        for line in bench():
            print(f"{line['name']:<52} {line['ratio']:8.2f}   ({line['demanded']})\n    {line['at']}", flush=True)


if __name__ == "__main__":
    main()
