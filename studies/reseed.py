"""Run the chapters with every seed replaced, and see which assertions fail and how far printed numbers move.

    python -m studies.reseed                                   # ten shifts of all chapters and guides
    python -m studies.reseed --shifts 3 --first 20 book/09_*.ipynb

A shift s puts s before whatever `numpy.random.default_rng` is given as its seed, in the cells and in the package, so
that seeds which were equal stay equal and all draws are new. What lies in files stays as it is: texts, stored results
and their random choices of documents. scikit-learn's own seeds stay too. A cell with the tag `one-draw` keeps its
seeds: it shows one instance, or compares with one that is stored, and the text says so.

An assertion that fails is noted, and its cell goes on. A cell that stops is a failure too. A number is one that is
printed with its error, as `0.62 ± 0.02`; it moves by its difference from the stored one over the error of the
difference, the root of the sum of both squares, where an error counts at least half a digit. A number whose error is
right moves by more than two in one of twenty shifts.
"""

import argparse
import ast
import json
import os
import re
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from copy import deepcopy
from multiprocessing import get_context
from pathlib import Path

import nbformat
import numpy as np
from execute_book import KERNEL_ENVIRONMENT, PAGES, ROOT, client_of, code_of, name_of
from tqdm import tqdm

from .numbers import text_of

NUMBER = re.compile(r"(?<![\de.-])(-?\d+(?:\.\d+)?) ?(?:±|\+-) ?(\d*\.\d+|\d+)")
ONE_DRAW = "one-draw"
# in a kernel: the assertions that failed, as they are written, and the shift of the cell that runs
FAILED, SHIFT = [], []


class NoteFailures(ast.NodeTransformer):
    """Let a cell go on after an assertion that fails, and note which it was."""

    def visit_Assert(self, node):  # noqa: N802, the name that `ast` asks for
        """Return the assertion inside a `try`."""
        noted = ast.parse(f"studies.reseed.FAILED.append({ast.unparse(node.test)!r})").body
        handler = ast.ExceptHandler(ast.Name("AssertionError", ast.Load()), None, noted)
        return ast.fix_missing_locations(ast.copy_location(ast.Try([node], [handler], [], []), node))


def install():
    """Replace the seeds of this kernel by the shift, and note failures instead of stopping at the first."""
    drawn = np.random.default_rng

    def shifted(seed=None):
        caller = sys._getframe(1).f_globals.get("__name__", "")
        is_seed = isinstance(seed, (int, np.integer, list, tuple, np.ndarray))
        # a choice of documents belongs to a file: what is made of it is kept under its seed
        return drawn([*SHIFT, *np.atleast_1d(seed)] if is_seed and "amptutorial.corpus" not in caller else seed)

    np.random.default_rng = shifted
    get_ipython().ast_transformers.append(NoteFailures())  # noqa: F821, of the kernel


def run(path, shift):
    """Return what failed in a run with shifted seeds, how far each number moved, and where it stands."""
    stored = nbformat.read(path, as_version=4)
    notebook = deepcopy(stored)
    first = nbformat.v4.new_code_cell("import studies.reseed\nstudies.reseed.install()")
    last = nbformat.v4.new_code_cell("import json\nprint(json.dumps(studies.reseed.FAILED))")
    for cell in code_of(notebook):
        cell.source = f"studies.reseed.SHIFT[:] = {[] if is_one_draw(cell) else [shift]}\n{cell.source}"
    notebook.cells = [first, *notebook.cells, last]
    found = os.pathsep.join([str(ROOT), str(ROOT / "tools"), os.environ.get("PYTHONPATH", "")])
    client = client_of(notebook, path.parent, allow_errors=True)
    client.execute(env=os.environ | KERNEL_ENVIRONMENT | {"PYTHONPATH": found})
    stops = [f"{each.ename}: {each.evalue}" for cell in code_of(notebook) for each in cell.outputs if "ename" in each]
    failed = json.loads(text_of(last)) + stops
    moves = [
        (moved(was, now), f"{' ± '.join(was)} is {' ± '.join(now)}")
        for before, after in zip(code_of(stored), code_of(notebook)[1:-1], strict=True)
        for was, now in zip(NUMBER.findall(text_of(before)), NUMBER.findall(text_of(after)), strict=False)
        if not is_one_draw(before)
    ]
    return sorted(set(failed)), moves


def is_one_draw(cell):
    """Say whether a cell keeps its seeds."""
    return ONE_DRAW in cell.metadata.get("tags", [])


def moved(was, now):
    """Return the difference of two numbers with errors, both as (number, error) in text, over its error."""
    errors = [max(float(error), 0.5 * 10.0 ** -len(number.partition(".")[2])) for number, error in (was, now)]
    return abs(float(was[0]) - float(now[0])) / np.hypot(*errors)


def n_assertions(path):
    """Return how many assertions a notebook makes of new draws."""
    cells = [cell for cell in code_of(nbformat.read(path, as_version=4)) if not is_one_draw(cell)]
    return sum(isinstance(node, ast.Assert) for cell in cells for node in ast.walk(ast.parse(cell.source)))


def main(paths, shifts, jobs):
    """Run all, and print a table and, for each notebook, what failed and what moved most."""
    failures, moves = {path: Counter() for path in paths}, {path: [] for path in paths}
    with ProcessPoolExecutor(jobs, get_context("forkserver"), max_tasks_per_child=1) as pool:
        runs = {pool.submit(run, path, shift): path for path in paths for shift in shifts}
        for done in tqdm(as_completed(runs), total=len(runs), unit="run"):
            failed, ways = done.result()
            failures[runs[done]].update(failed)
            moves[runs[done]] += ways
    asked = {path: len(shifts) * n_assertions(path) for path in paths}
    print("| notebook | assertions failed | numbers that moved by more than two |\n|---|---|---|")
    for path in paths:
        print(row(name_of(path), failures[path].total(), asked[path], moves[path]))
    every = [one for path in paths for one in moves[path]]
    print(row("all", sum(each.total() for each in failures.values()), sum(asked.values()), every))
    for path in paths:
        print(f"\n{name_of(path)}")
        for source, times in failures[path].most_common():
            print(f"  failed {times} of {len(shifts)}: {source[:200]}")
        for size, words in sorted(moves[path], reverse=True)[:5]:
            if size > 2:
                print(f"  moved by {size:.1f}: {words}")


def row(name, failed, asked, moves):
    """Return a line of the table."""
    far, every = sum(size > 2 for size, _ in moves), len(moves)
    return (
        f"| {name} | {failed} of {asked}, {failed / max(asked, 1):.1%} | {far} of {every}, {far / max(every, 1):.1%} |"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("notebooks", nargs="*", type=Path, help="all of them, if none is named")
    parser.add_argument("--shifts", type=int, default=10, help="how many (default: 10)")
    parser.add_argument("--first", type=int, default=1, help="the first of them (default: 1)")
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    chosen = [path.resolve() for path in asked.notebooks] or PAGES
    main(chosen, range(asked.first, asked.first + asked.shifts), asked.jobs)
