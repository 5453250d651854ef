"""Time the four minimisers of chapter 9 and store what it shows of them.

    python tools/store_race.py

Seconds differ from run to run, while a chapter must print the same each time: it shows these results instead. The
problem and the programs are the chapter's own cells, those tagged "race".
"""

import json
import os
import time
import warnings

from execute_book import BOOK, KERNEL_ENVIRONMENT

RESULTS = BOOK / "results/race.json"
ACCURACY = 1e-8  # of the loss, relative to the best one found
REPEATS = 30  # the fastest counts: other work on the machine only adds


def race_cells(path=BOOK / "09_fixed_points.ipynb"):
    """Return the names that the tagged cells of the chapter define."""
    names = {}
    for cell in json.loads(path.read_text())["cells"]:
        if "race" in cell["metadata"].get("tags", ()):
            exec("".join(cell["source"]), names)
    return names


def losses(fit, loss):
    """Return the loss after each iteration of a run of AMP or of a `Fit`."""
    return fit.losses if hasattr(fit, "losses") else [loss(it.A, it.B) for it in fit.iterates]


def fastest(program, n_iter):
    """Return the seconds of the fastest of some runs that stop after `n_iter` iterations."""
    seconds = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        program(n_iter=n_iter)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def run_race(names):
    """Return the iterations that each program needs, its final loss, and its time relative to that of AMP."""
    loss = names["loss"]
    curves = {name: losses(program(n_iter=1000), loss) for name, program in names["programs"].items()}
    target = min(curve[-1] for curve in curves.values()) * (1 + ACCURACY)
    rows = {}
    for name, curve in curves.items():
        needed = next(k for k, value in enumerate(curve, 1) if value <= target)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # stopped early on purpose
            seconds = fastest(names["programs"][name], needed)
        rows[name] = {"iterations": needed, "loss": curve[-1], "milliseconds": round(1e3 * seconds, 1)}
    for row in rows.values():
        row["ratio"] = round(row["milliseconds"] / rows["AMP"]["milliseconds"], 1)
    return {"m": loss.m, "n": loss.n, "d": names["d"], "accuracy": ACCURACY, "programs": rows}


if __name__ == "__main__":
    os.environ.update(KERNEL_ENVIRONMENT)  # before the cells import NumPy
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(run_race(race_cells()), indent=1) + "\n")
    print(f"Stored in {RESULTS}")
