"""Find how wrong a formula may be before a chapter's check notices.

    python -m studies.power                           # every chapter, one after the other, as long as running them
    python -m studies.power book/10_*.ipynb           # some of them

Runs the cells of a chapter, and at every assert multiplies one operand by a factor: how far down and how far up may the
factor go before the assert fails? Printed are both ends and e, half the width of the interval, which does not depend on
where chance put the measurement. Of several operands, and of several passes of a loop, the smallest e counts.

The operands of `abs(x - y) < bar` are x and y, those of `np.isclose(x, y)` and of a chapter's own `within(x, y)` too. A
name such as `gap` is looked up: its definition takes its place if it gives the same value again. These are the checks
called "close". Listed apart are "zero", distances from nothing and those that cannot be looked up, which have no
relative error; "order", a comparison `x < y`, where e is the margin; and "other", where no operand is a number.
"""

import ast
import contextlib
import copy
import io
import linecache
import os
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import nbformat
import numpy as np
from execute_book import KERNEL_ENVIRONMENT, PAGES

SMALLEST, LARGEST = 1e-6, 16.0  # the errors that are tried
SECONDS = 5.0  # for one assert, all its passes together
KINDS = "close", "zero", "order", "other"
# what may be called again: it neither draws at random, nor changes anything, nor takes long
HARMLESS = set("abs all any astype copy dict enumerate float items len list max mean min range".split())
HARMLESS |= set("ravel reshape round sorted std sum tolist values var zip".split())


class Power(NamedTuple):
    """What one assert notices: how far down and up the factor of an operand may go, None for any distance."""

    cell: str
    condition: str
    kind: str = "other"
    operand: str = ""
    down: float | None = None
    up: float | None = None

    @property
    def e(self):
        """Half the width of the interval of factors that pass, or its one end."""
        ends = [end for end in (self.down, self.up) if end is not None]
        return sum(ends) / len(ends) if ends and self.kind in ("close", "order") else np.inf

    @property
    def rank(self):
        """What results are sorted by: the kind, then e."""
        return KINDS.index(self.kind), self.e


def called(node):
    """Return the last name of what a call calls, None for other nodes."""
    function = getattr(node, "func", None) if isinstance(node, ast.Call) else None
    return getattr(function, "attr", getattr(function, "id", None))


def replaced(node, old, new):
    """Return the tree with one node exchanged; the old tree stays as it is."""
    if node is old or isinstance(node, list):
        return new if node is old else [replaced(item, old, new) for item in node]
    twin = copy.copy(node)
    for field, value in ast.iter_fields(node) if isinstance(node, ast.AST) else ():
        setattr(twin, field, replaced(value, old, new))
    return twin


def evaluate(node, namespace):
    """Return the value of an expression."""
    whole = ast.fix_missing_locations(ast.Expression(copy.deepcopy(node)))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return eval(compile(whole, "<assert>", "eval"), namespace)


def passing(condition, operand, namespace):
    """Return how far down and up the factor of an operand may go before the condition fails.

    Examples
    --------
    >>> condition = ast.parse("abs(x - 1) < 0.1", mode="eval").body
    >>> down, up = passing(condition, condition.left.args[0].left, {"x": 1.05})
    >>> f"{down:.2f} {up:.2f}"
    '0.14 0.05'
    """
    scaled = replaced(condition, operand, ast.Call(ast.Name("_scale", ast.Load()), [operand], []))

    def holds(error):
        def scale(value):
            return (1 + error) * np.asarray(value) if np.asarray(value).dtype.kind in "fiu" else value

        return evaluate(scaled, namespace | {"_scale": scale})

    def end(sign, largest):
        low, high = 0.0, SMALLEST
        while high <= largest and holds(sign * high):
            low, high = high, 2 * high
        while high <= largest and high - low > 0.01 * high:
            middle = (low + high) / 2
            low, high = (middle, high) if holds(sign * middle) else (low, middle)
        return high if high <= largest else None

    return end(-1, 1.0), end(1, LARGEST)


def sides(node):
    """Return both sides of the outermost sums and differences in a tree, but for constants."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub | ast.Add):
        return [part for part in (node.left, node.right) if any(isinstance(n, ast.Name) for n in ast.walk(part))]
    return [side for child in ast.iter_child_nodes(node) for side in sides(child)]


def defined(tree):
    """Yield names and the expressions that define them; of a list, that its items are differences."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield f"def {node.name}", node
        for target in node.targets if isinstance(node, ast.Assign) else ():
            if isinstance(target, ast.Tuple):
                for place, part in enumerate(target.elts):
                    yield ast.unparse(part), ast.Subscript(node.value, ast.Constant(place), ast.Load())
            else:
                yield ast.unparse(target), node.value
        if called(node) == "append" and isinstance(node.args[0], ast.BinOp) and len(sides(node.args[0])) == 2:
            name, side = ast.unparse(node.func.value), ast.unparse(sides(node.args[0])[1])
            yield name, ast.parse(f"np.add({name}, {side}) - {side}", mode="eval").body


def assert_same(first, second):
    """Raise an exception unless two values are equal but for rounding."""
    try:
        np.testing.assert_allclose(first, second, rtol=1e-9, atol=1e-12)
    except TypeError:  # no numbers
        np.testing.assert_equal(first, second)


class Chapter(ast.NodeTransformer):
    """Runs cells and measures at every assert; `definitions` has the last one first, `seconds` what asserts cost."""

    def __init__(self):
        self.powers, self.seconds, self.definitions, self.cell = {}, {}, {}, None

    def visit_Assert(self, node):  # noqa: N802
        """Measure before the assert, each part of a conjunction by itself."""
        probes = []
        for condition in node.test.values if isinstance(getattr(node.test, "op", None), ast.And) else [node.test]:
            probes += ast.parse(f"_probe({len(self.powers)}, {{**globals(), **locals()}})").body
            self.powers[condition] = Power(self.cell, ast.unparse(condition))
        return [*probes, node]

    def probe(self, number, namespace):
        """Measure one condition as it is now."""
        condition, start = list(self.powers)[number], time.perf_counter()
        if self.seconds.get(condition, 0) < SECONDS and evaluate(condition, namespace):
            for kind, whole, operand in self.candidates(condition, namespace):
                ends = passing(whole, operand, namespace)
                new = self.powers[condition]._replace(kind=kind, operand=ast.unparse(operand), down=ends[0], up=ends[1])
                if any(ends):
                    self.powers[condition] = min(new, self.powers[condition], key=lambda power: power.rank)
        self.seconds[condition] = self.seconds.get(condition, 0) + time.perf_counter() - start

    def candidates(self, condition, namespace):
        """Yield kind, condition and operand for everything that may be scaled."""
        for node in ast.walk(condition):
            own = node is condition and f"def {called(node)}" in self.definitions
            if own or called(node) in ("isclose", "allclose"):
                parts = node.args if own else node.args[:2]
                yield from (("close", condition, part) for part in parts if not isinstance(part, ast.Starred))
            terms = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
            for operator, *pair in zip(getattr(node, "ops", ()), terms[:-1], terms[1:], strict=True):
                if isinstance(operator, ast.Lt | ast.LtE):
                    yield from self.of_inequality(condition, *pair, namespace)
                if isinstance(operator, ast.Gt | ast.GtE):
                    yield from self.of_inequality(condition, *pair[::-1], namespace)

    def of_inequality(self, condition, small, large, namespace):
        """Yield the same for `small < large`, where the small side may be a distance."""
        whole, side = condition, small
        for _ in range(4):
            distances = [part for part in ast.walk(side) if called(part) == "abs"]
            if distances and sides(distances[0]):
                yield from (("close", whole, part) for part in sides(distances[0]))
                return
            further = self.look_up(side, namespace)
            whole, side = replaced(whole, side, further), further
        yield from (("zero" if distances else "order", condition, part) for part in (small, large))

    def look_up(self, node, namespace):
        """Return `node` with its names replaced by their definitions, where these still give the same values."""
        for name in [part for part in ast.walk(node) if isinstance(part, ast.Name | ast.Subscript)]:
            for value in filter(self.harmless, self.definitions.get(ast.unparse(name), [])):
                with contextlib.suppress(Exception):  # a definition may speak of what is no longer there
                    assert_same(evaluate(value, namespace), evaluate(name, namespace))
                    node = replaced(node, name, value)
                    break
        return node

    def harmless(self, node, depth=3):
        """Say whether an expression may be evaluated again."""
        for call in (part for part in ast.walk(node) if isinstance(part, ast.Call)):
            module = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else None
            own = self.definitions.get(f"def {called(call)}", []) if module is None else []
            known = module in ("np", "np.linalg") or called(call) in HARMLESS
            if not known and not (own and depth and self.harmless(own[0], depth - 1)):
                return False
        return True

    def run(self, cells):
        """Run cells, pairs of a name and a source, in one namespace; return what the asserts notice, sorted."""
        space = {"__name__": "__main__", "_probe": self.probe}
        for self.cell, source in cells:
            tree = ast.parse(source)
            for name, value in defined(tree):
                self.definitions[name] = [value, *self.definitions.get(name, [])]
            linecache.cache[self.cell] = len(source), None, source.splitlines(keepends=True), self.cell
            exec(compile(ast.fix_missing_locations(self.visit(tree)), self.cell, "exec"), space)
        return sorted(self.powers.values(), key=lambda power: power.rank)


def table(path):
    """Run a chapter and return a table of what its asserts notice."""
    os.chdir(path.parent)
    cells = nbformat.read(path, as_version=4).cells
    with contextlib.redirect_stdout(io.StringIO()):
        found = Chapter().run([(cell.id, cell.source) for cell in cells if cell.cell_type == "code"])
    lines = [f"\n## {path.stem}\n", "| cell | kind | e | down | up | operand | assertion |", "|---" * 7 + "|"]
    for power in found:
        ends = (power.e, power.down, power.up) if power.e < np.inf else (None, None, None)
        ends = ["" if end is None else f"{100 * end:.2g} %" for end in ends]
        texts = [text.replace("|", "\\|") for text in (power.operand[:40], power.condition[:90])]
        lines.append("| " + " | ".join([power.cell, power.kind, *ends, *texts]) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    os.environ.update(KERNEL_ENVIRONMENT, MPLBACKEND="agg")
    paths = [Path(name).resolve() for name in sys.argv[1:]] or PAGES
    with ProcessPoolExecutor(1, max_tasks_per_child=1) as pool:
        for result in pool.map(table, paths):
            print(result, flush=True)
