"""Break the formulas of the core one at a time, and ask whether a unit test notices.

    python -m studies.mutate                          # 300 mutants drawn anew, on two processes: an hour
    python -m studies.mutate --sample 40 --seed 7     # fewer, and the same ones again
    python -m studies.mutate --module amp bias        # of these modules alone
    python -m studies.mutate --slow                   # what survives meets the slow tests too

A mutant is a copy of the package with one operator, constant or function exchanged. Its module's own tests and doctests
run first, then those of the core that import from it, then those that import from a module that does, small files
before large ones; a mutant with which one takes five times as long counts as killed. What no test kills has survived,
and is printed: it needs a test, or computes the same, or moves a tolerance.

Left alone is what can alter speed only, the rows in one block and a copy that astype does not need, and what computes
nothing: texts, errors, warnings, and `strict=True` in zip, a guard against mistakes in the code.
"""

import argparse
import ast
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pandas  # noqa: F401  imported once, for all children
import pytest
import scipy.stats  # noqa: F401
import sklearn.linear_model  # noqa: F401
from imports import PACKAGE, closure, file_of, imported, imports_of
from tqdm import tqdm

ROOT = Path(__file__).parents[1]
# Of 2,248 mutants 6.6 % were found to compute the same or to move a tolerance, when each survivor was looked at, and
# some more may be; in a sample of 300 that share has a standard error of 1.5 %.
DEMANDED = 0.89
DOORS = "amp planning estimator spectrum baselines bayes_optimal cluster.shards"  # what they import is the core
BESIDE = "checks corpus paper.experiments"  # tests of the core may use them


def reached(names):
    """Return the modules that are imported with these, and the package itself."""
    return closure({f"{PACKAGE}.{name}" for name in names.split()})


MODULES = sorted(name.removeprefix(f"{PACKAGE}.") for name in reached(DOORS) - {PACKAGE})

OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Pow: ast.Mult,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
PAIRS = [
    ("max", "min"),
    ("maximum", "minimum"),
    ("sum", "mean"),
    ("any", "all"),
    ("argmax", "argmin"),
    ("ones", "zeros"),
]
NAMES = dict(PAIRS) | {b: a for a, b in PAIRS} | {"sqrt": "square", "exp": "expm1", "log": "log1p"}
SILENT = ("warnings.warn", "_warn")  # what is said is not a formula
GUARDS = ("strict", "copy")  # of zip and astype
BLOCK_SIZES = ("_BLOCK", "BLOCK_ENTRIES", "LOSS_ROWS", "PAIRS_AT_ONCE", "PROPOSALS_AT_ONCE", "ROWS_AT_ONCE")


@dataclass(frozen=True)
class Mutant:
    """One change of one module: where it stands, what it was and what it becomes."""

    module: str
    function: str
    change: str
    start: int
    end: int
    text: str

    @property
    def key(self):
        """What the mutant changes, and where."""
        return self.module, self.function, self.change

    def apply(self, source):
        """Return the source with the change."""
        return source[: self.start] + self.text + source[self.end :]


def variants(node):
    """Yield the nodes that this one may be exchanged for."""
    match node:
        case ast.BinOp(left, op, right) if type(op) in OPERATORS:
            yield ast.BinOp(left, OPERATORS[type(op)](), right)
            yield from [left] * isinstance(op, ast.Add | ast.Sub)  # a term is dropped
        case ast.BoolOp(op, values):
            yield ast.BoolOp(OPERATORS[type(op)](), values)
        case ast.Compare(left, [op], right) if type(op) in OPERATORS:
            yield ast.Compare(left, [OPERATORS[type(op)]()], right)
        case ast.UnaryOp(ast.Not() | ast.USub(), operand):
            yield operand
        case ast.IfExp(test, body, orelse):
            yield ast.IfExp(test, orelse, body)
        case ast.Constant(bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(int() as value):
            yield ast.Constant(value + 1)
        case ast.Constant(float() as value):
            yield ast.Constant(2 * value if value else 1.0)
        case ast.Attribute(value, "T"):
            yield value
        case ast.Attribute(value, name) if name in NAMES:
            yield ast.Attribute(value, NAMES[name])


def formulas(tree):
    """Yield (enclosing function, node) for every expression that computes; texts, errors and annotations do not."""
    stack = [(child, "") for child in ast.iter_child_nodes(tree)]
    while stack:
        node, function = stack.pop()
        if isinstance(node, (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom)) or _is_text(node):
            continue
        if isinstance(node, ast.Call) and ast.unparse(node.func) in SILENT:
            continue
        if isinstance(node, ast.keyword) and node.arg in GUARDS:
            continue
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in BLOCK_SIZES:
            continue
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "blocks":
            node.args = node.args[:1]
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            function = f"{function}.{node.name}".lstrip(".")
            if node.name == "__repr__":
                continue
            node.decorator_list = []
        if isinstance(node, ast.FunctionDef):
            node.returns = None
            for argument in (*node.args.args, *node.args.kwonlyargs):
                argument.annotation = None
        if isinstance(node, ast.AnnAssign):
            stack += [(node.value, function)] * (node.value is not None)
            continue
        yield function, node
        stack += [(child, function) for child in ast.iter_child_nodes(node)]


def _is_text(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def mutants(module, source):
    """Return all mutants of a module, in the order of its text; where one change occurs again it gets a number.

    >>> [one.change for one in mutants("toy", "scale = x.T / m + x.T")]
    ['x.T -> x', 'x.T / m + x.T -> x.T / m', 'x.T / m + x.T -> x.T / m - x.T', 'x.T / m -> x.T * m', 'x.T -> x (2)']
    """
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for function, node in formulas(ast.parse(source)):
        for new in variants(node):
            start = starts[node.lineno - 1] + _characters(source, starts, node.lineno, node.col_offset)
            end = starts[node.end_lineno - 1] + _characters(source, starts, node.end_lineno, node.end_col_offset)
            change = f"{ast.unparse(node)} -> {ast.unparse(new)}"
            found.append(Mutant(module, function, change, start, end, f"({ast.unparse(new)})"))
    times, numbered = Counter(), []
    for one in sorted(found, key=lambda one: (one.start, one.change)):
        times[one.key] += 1
        number = f" ({times[one.key]})" * (times[one.key] > 1)
        numbered.append(replace(one, change=one.change + number))
    return numbered


def _characters(source, starts, line, offset):
    """Return an offset in characters: the parser counts bytes."""
    return len(source[starts[line - 1] : starts[line]].encode()[:offset].decode())


def run_tests(folder, tests, marked, seconds):
    """Return whether some of the tests that are so `marked` fail, or do not end, in this copy of the repository.

    They run in a child of this process, which has imported the libraries already: a mutant that the first test kills
    takes less than a second.
    """
    child = multiprocessing.get_context("fork").Process(target=_run_pytest, args=(folder, tests, marked))
    child.start()
    child.join(seconds)
    if child.is_alive():
        child.kill()
        child.join()
        return True
    if child.exitcode not in (0, 1, 2, 5):  # 2: the module cannot be imported any more; 5: none is so marked
        raise RuntimeError(f"pytest ended with {child.exitcode} on {' '.join(tests)}")
    return child.exitcode in (1, 2)


def _run_pytest(folder, tests, marked):
    """Run pytest on the package in this folder, silently, and end this process with its exit code.

    Plugins and rewritten assertions, which would say more about a failure, take three quarters of the time.
    """
    tqdm.set_lock(threading.RLock())  # that of the parent may have been held when this process was forked
    os.chdir(folder)
    os.environ |= {"PYTHONPATH": str(folder), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    sys.stdout = sys.stderr = open(os.devnull, "w")
    addopts = "addopts=--doctest-modules --import-mode=importlib"  # without that of a plugin
    options = ["-x", "-q", "-m", marked, "-p", "no:cacheprovider", "--assert=plain", "-o", addopts]
    os._exit(pytest.main([*options, *tests]))


def is_killed(mutant, marked, limits, scratch):
    """Return whether some unit test notices the mutant, in a copy of the repository of its own."""
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        folder = Path(folder)
        copy_repository(folder)
        path = folder / PACKAGE / f"{mutant.module.replace('.', '/')}.py"
        path.write_text(mutant.apply(path.read_text()))
        return any(run_tests(folder, batch, marked, limits[batch]) for batch in batches_of(mutant.module))


@cache
def core_tests():
    """Return the modules that each test of the core imports from, the small files first; by name, it may be any."""
    allowed, found = reached(f"{DOORS} {BESIDE}"), {}
    for path in sorted((ROOT / "tests").glob("test_*.py"), key=lambda path: path.stat().st_size):
        source = path.read_text(encoding="utf-8")
        if (modules := imported(source)) and modules <= allowed:
            found[f"tests/{path.name}"] = allowed if "import_module" in source else modules
    return found


def batches_of(module):
    """Return what is run on a mutant of this module, one tuple of files after another.

    The tests come before the doctests: they import the module as part of its package.

    >>> own, *others = batches_of("bias")
    >>> own, ("tests/test_score.py",) in others, ("tests/test_laws.py",) in others
    (('tests/test_bias.py', 'amptutorial/bias.py'), True, False)
    """
    whole = f"{PACKAGE}.{module}"
    users = {name for name in reached(DOORS) - {PACKAGE} if whole in imports_of(name)}
    own = [test for test in [f"tests/test_{module.rpartition('.')[2].removeprefix('_')}.py"] if test in core_tests()]
    direct = [test for test, modules in core_tests().items() if whole in modules and test not in own]
    further = [test for test, modules in core_tests().items() if modules & users and test not in own + direct]
    return [(*own, f"{PACKAGE}/{module.replace('.', '/')}.py"), *((test,) for test in direct + further)]


def time_limits(modules, marked, scratch, pool):
    """Return the seconds that each batch may take: five times as long as without a mutant, and half a minute.

    End here where a test fails without any mutant: it would kill them all.
    """
    batches = sorted({batch for module in modules for batch in batches_of(module)})
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        copy_repository(Path(folder))

        def limit(batch):
            start = time.perf_counter()
            if run_tests(Path(folder), batch, marked, 3600):
                sys.exit(f"these fail without any mutant: {' '.join(batch)}")
            return 5 * (time.perf_counter() - start) + 30

        return dict(zip(batches, tqdm(pool.map(limit, batches), "without a mutant", len(batches)), strict=True))


def copy_repository(folder):
    """Copy what the unit tests read."""
    for name in (PACKAGE, "tests", "tools"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)  # where it is, pytest takes the root to be
    for name in ("book", "course", "README.md"):
        (folder / name).symlink_to(ROOT / name)


def survivors(asked, marked, scratch, pool):
    """Return the mutants that no test kills which is so `marked`, and print them as they are found."""
    limits = time_limits({one.module for one in asked}, marked, scratch, pool)
    verdicts = pool.map(lambda one: is_killed(one, marked, limits, scratch), asked)
    left = []
    for one, killed in zip(asked, tqdm(verdicts, marked, len(asked)), strict=True):
        if not killed:
            left.append(one)
            tqdm.write(f"SURVIVED  {one.module} | {one.function} | {one.change}")
    return left


def main():
    """Draw mutants, run the tests on each, print who survives; exit with 1 below what is demanded."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sample", type=int, default=300, metavar="N")
    parser.add_argument("--seed", type=int, default=None, help="default: another one each time")
    parser.add_argument("--module", nargs="+", choices=MODULES, default=MODULES, metavar="NAME")
    parser.add_argument("--slow", action="store_true", help="run the slow tests on what survives the others")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    seed = int(time.time()) if options.seed is None else options.seed
    sources = {name: file_of(f"{PACKAGE}.{name}").read_text() for name in options.module}
    everything = [one for name, source in sources.items() for one in mutants(name, source)]
    drawn = random.Random(seed).sample(everything, min(options.sample, len(everything)))
    print(f"seed {seed}: {len(drawn)} of {len(everything)} mutants", flush=True)
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(options.jobs) as pool:
        left = survivors(drawn, "not slow", scratch, pool)
        if options.slow:
            left = survivors(left, "slow", scratch, pool)
    share = 1 - len(left) / max(len(drawn), 1)
    print(f"killed {len(drawn) - len(left)} of {len(drawn)}: {share:.1%} (demanded {DEMANDED:.0%})")
    sys.exit(share < DEMANDED)


if __name__ == "__main__":
    main()
