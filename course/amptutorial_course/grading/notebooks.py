r"""The denoiser in a notebook, as the text of denoiser.py.

Nothing runs here: IPython says what its commands are, and `symtable` which names a
statement binds and reads. What is kept is what the classes need of the notebook as its
author left it: neither cells that call the checks or run AMP, nor earlier attempts.
"""

import ast
import builtins
import inspect
import json
import re
import symtable
import warnings
from dataclasses import dataclass
from textwrap import indent

CELL_MAGIC = re.compile(r"\s*%%[ \t]*(\S+)[ \t]*(.*)\n?")
# Of these, what is below them is in another language, process or scope.
ELSEWHERE = frozenset(
    "! bash cmd cython file html HTML javascript js latex markdown perl pypy python python2 python3 R ruby script sh"
    " sql svg SVG sx system timeit writefile".split()
)
# Lines that are meant for IPython, if it does not know them.
COMMAND = re.compile(r"\s*([%!?]|get_ipython\(\)|pass$)|.*\?[\s;]*(#.*)?$")
# What %pylab does, as far as the sandbox has it.
PYLAB = "import numpy as np\nfrom numpy import *"
# Functions that write into their first argument.
IN_PLACE = frozenset(
    "at copyto delattr fill_diagonal heapify heappush insort place put put_along_axis putmask setattr shuffle".split()
)
FUNCTIONS = ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda
IMPORTS = ast.Import, ast.ImportFrom
# Of these, all parts run.
SIMPLE = ast.ClassDef, ast.FunctionDef, ast.Assign, ast.AnnAssign
# Scopes that are functions to Python, but run at once.
COMPREHENSION = re.compile("<?((list|set|dict)comp|genexpr)>?")
# No name: what `import *` and __future__ bind.
EVERYTHING = "*"
# Characters of code in a notebook: its syntax tree takes a thousand bytes for each.
MOST_CODE = 2**20
# Attempts at a cell that is not Python, and has no class: each leaves out a line.
MOST_LINES = 8


@dataclass(frozen=True)
class Statement:
    """A statement of a notebook.

    Attributes
    ----------
    node : ast.stmt
    text : str
    binds, changes : set of str
        The names that it gives a value; these, and the variables that it changes.
    reads, later : set of str
        The global names that it reads, and those that its functions read when called.
    """

    node: ast.stmt
    text: str
    binds: set
    changes: set
    reads: set
    later: set


def notebook_source(data, classes=()):
    r"""Return denoiser.py from a notebook, or why there is none.

    It is what the cells that write the file leave in it. Where there is none, it is the
    classes, ``PREDICTION``, and of the rest what these use.

    Parameters
    ----------
    data : bytes
        The notebook.
    classes : iterable of str
        The names that are asked for. If the notebook has none, it is all its classes.

    Returns
    -------
    bytes or str

    Examples
    --------
    >>> texts = ["import numpy as np\nprint(1)", "k = 2", "class A:\n    n = np.pi * k"]
    >>> cells = [{"cell_type": "code", "source": text} for text in texts]
    >>> notebook_source(json.dumps({"cells": cells}).encode())
    b'import numpy as np\nk = 2\nclass A:\n    n = np.pi * k\n'
    """
    try:
        opened = _opened_cells(data)
    except UnicodeDecodeError:
        return "the notebook is not encoded in UTF-8: save it with that encoding"
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return f"the notebook cannot be read: {type(error).__name__}"
    cells = [code for magics, code in opened if ELSEWHERE.isdisjoint(magics)]
    if sum(map(len, cells)) > MOST_CODE:
        return "the cells of the notebook hold more than a megabyte of code"
    text = _written(opened).get("denoiser.py") or _needed(cells, classes)
    return text.encode("utf-8", "replace") or "the notebook has no class: write the denoiser in a cell of its own"


def notebook_modules(data):
    """Return the modules beside denoiser.py that the cells of a notebook write, bytes by name."""
    written = _written(_opened_cells(data))
    return {name: text.encode("utf-8", "replace") for name, text in written.items() if name != "denoiser.py"}


def _opened_cells(data):
    """Return, for each cell with code, the commands for the whole of it, by name, and what is below them."""
    notebook = json.loads(data)
    sheets = [notebook] if "cells" in notebook else notebook["worksheets"]  # in a format before 4
    cells = [cell for sheet in sheets for cell in sheet["cells"] if cell["cell_type"] == "code"]
    opened = []
    for cell in cells:
        text = "".join(cell["source" if "source" in cell else "input"]).lstrip("\ufeff")
        text = text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n") + "\n"
        magics = {}
        while found := CELL_MAGIC.match(text):
            magics[found[1]], text = found[2], text[found.end() :]
        opened.append((magics, text))
    return opened


def _written(opened):
    """Return the modules that cells write, texts by name."""
    files = {}
    for magics, code in opened:
        words = (magics.get("writefile") or magics.get("file") or "").split()
        for name in re.findall(r"(?:\A|[\s/\"'])(\w+\.py)\b", " ".join(words)):
            files[name] = code if {"-a", "--append"}.isdisjoint(words) else files.get(name, "") + code
    return files


def _needed(cells, classes):
    """Return the text of the classes, PREDICTION, and what these use."""
    found, broken = [], {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of a compiler are for the author
        for cell in cells:
            if (statements := _statements(cell)) is None:
                broken |= dict.fromkeys(re.findall(r"^class[ \t]+(\w+)", cell, re.MULTILINE), cell)
            found += statements or ()
    statements = _without_failures(_analysed(found))
    bound = {name for each in statements for name in each.binds}
    defined = {part.name for node, _ in found for part in _parts(node) if isinstance(part, ast.ClassDef)}
    wanted = set(classes) & (bound | set(broken)) or defined | set(broken)
    if not wanted:
        return ""
    kept = sorted(_in_order(_alive(statements, wanted)), key=lambda each: not each.text.startswith("from __future__"))
    # what is nowhere without a syntax error: so its author reads the error
    texts = [*map(_as_module, kept), *{broken[name] for name in wanted - bound if name in broken}]
    return "".join(f"{text}\n" for text in texts)


def _statements(cell):
    """Return the statements of a cell in plain Python and their texts, or None if a class has a syntax error.

    Lines that are no Python are left out: what the cell imports is kept.
    """
    from IPython.core.inputtransformer2 import TransformerManager  # for notebooks alone

    for _ in range(MOST_LINES):
        try:
            cell = TransformerManager().transform_cell(cell)
            compile(cell, "cell", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            nodes = [one for node in _Plain().visit(ast.parse(cell)).body for one in _each_import(node)]
            return [(node, ast.unparse(node)) for node in nodes]
        except (SyntaxError, ValueError, RecursionError, MemoryError, RuntimeError) as error:
            number = getattr(error, "lineno", None) or 1
        lines = [*cell.split("\n"), ""]
        line = lines[number - 1]
        if re.search("^class ", cell, re.MULTILINE) and not COMMAND.match(line):
            return None
        indentation = line[: len(line) - len(line.lstrip())]
        lines[number - 1] = "" if line == f"{indentation}pass" else f"{indentation}pass"
        cell = "\n".join(lines)
    return []


class _Plain(ast.NodeTransformer):
    """Puts `pass` in the place of IPython's commands, and of %time what is timed."""

    def visit_Expr(self, node):
        return self.generic_visit(node) if (code := _command(node.value)) is None else code or ast.Pass()

    def visit_Assign(self, node):
        if (code := _command(node.value)) is None:
            return self.generic_visit(node)
        node.value = code[0].value if code and isinstance(code[0], ast.Expr) else None
        return node if node.value else ast.Pass()

    def visit_Name(self, node):
        return ast.Constant("__main__") if node.id == "__name__" and isinstance(node.ctx, ast.Load) else node

    def visit_Call(self, node):
        return ast.Constant(None) if ast.unparse(node) == "get_ipython()" else self.generic_visit(node)


def _command(call):
    """Return the statements that a command of IPython runs here, or None if it is no command."""
    if not (isinstance(call, ast.Call) and ast.unparse(call.func).startswith("get_ipython().")):
        return None
    name, code, *_ = (*(getattr(word, "value", "") for word in call.args), "", "")
    try:
        return ast.parse({"time": code, "pylab": PYLAB}.get(name, "")).body
    except SyntaxError:
        return []


def _each_import(node):
    """Return a statement for each name that is imported: where nobody needs a module, it may be missing."""
    if not isinstance(node, IMPORTS):
        return [node]
    return [type(node)(**{**vars(node), "names": [name]}) for name in node.names]


def _analysed(found):
    """Return the `Statement` of each node with its text."""
    tables = [symtable.symtable(text, "cell", "exec") for _, text in found]
    binds = [_bound(node, table) for (node, _), table in zip(found, tables, strict=True)]
    imported = {
        name for (node, _), names in zip(found, binds, strict=True) if isinstance(node, IMPORTS) for name in names
    }
    effects = _effects([node for node, _ in found], imported)
    return [
        Statement(node, text, names, names.union(_changed(_parts(node), imported, effects)), *_read(table))
        for (node, text), names, table in zip(found, binds, tables, strict=True)
    ]


def _without_failures(statements):
    """Leave out attempts that read what is nowhere defined, if their names are defined elsewhere."""
    bound = {name for each in statements for name in each.binds}
    failed = [
        EVERYTHING not in bound and isinstance(each.node, SIMPLE) and not each.reads <= bound | vars(builtins).keys()
        for each in statements
    ]
    sure = {name for each, fails in zip(statements, failed, strict=True) if not fails for name in each.binds}
    return [each for each, fails in zip(statements, failed, strict=True) if not (fails and each.binds <= sure)]


def _bound(node, table):
    """Return the names that a statement binds."""
    names = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    names |= {part.target.id for part in _parts(node) if isinstance(part, ast.NamedExpr)}
    origins = [part for part in _parts(node) if isinstance(part, ast.ImportFrom)]
    is_open = any(part.module == "__future__" or part.names[0].name == "*" for part in origins)
    return names | ({EVERYTHING} if is_open else set())


def _effects(nodes, imported):
    """Return the global names that functions bind, by function, if it binds some or changes its arguments."""
    effects = {}
    outside = [part for node in nodes if not isinstance(node, ast.ClassDef) for part in ast.walk(node)]
    for function in (part for part in outside if isinstance(part, FUNCTIONS) and hasattr(part, "name")):
        parts = list(ast.walk(function))
        bound = {name for part in parts if isinstance(part, ast.Global) for name in part.names}
        arguments = {part.arg for part in parts if isinstance(part, ast.arg)}
        if bound or arguments.intersection(_changed(parts, imported, {})):
            effects[function.name] = bound
    return effects


def _read(table):
    """Return the global names that a scope reads, and those that its functions read when called."""
    is_class = table.get_type() == "class"
    used = (s for s in table.get_symbols() if s.is_referenced() or s.is_declared_global())
    reads = {symbol.get_name() for symbol in used if symbol.is_global() or is_class}
    later = set()
    for child in table.get_children():
        now, then = _read(child)
        is_called = child.get_type() == "function" and not COMPREHENSION.fullmatch(child.get_name())
        (later if is_called else reads).update(now)
        later |= then
    return reads, later


def _parts(node):
    """Yield the parts of a statement that run with it: not the bodies of its functions."""
    yield node
    for name, value in ast.iter_fields(node):
        if name != "body" or not isinstance(node, FUNCTIONS):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _parts(child)


def _changed(parts, imported, effects):
    """Yield the variables that the parts of a statement change in place."""
    for part in parts:
        if isinstance(part, (ast.Attribute, ast.Subscript)) and not isinstance(part.ctx, ast.Load):
            yield _root(part)
        called = [getattr(part.value, "elt", part.value)] if isinstance(part, ast.Expr) else []
        called += getattr(part, "decorator_list", [])
        # methods called for what they do, but not the functions of a module
        yield from {_root(each) for each in called if not isinstance(each, ast.Name)} - imported
        if isinstance(part, ast.Call):
            name = getattr(part.func, "attr", None) or getattr(part.func, "id", None)
            out = [word.value for word in part.keywords if name in effects or word.arg == "out"]
            first = len(part.args) if name in effects else name in IN_PLACE
            yield from map(_root, [*part.args[:first], *out])
            yield from effects.get(name, ())


def _root(node):
    """Return the name of the variable of which an expression is a part, or None."""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func
        elif isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        else:
            return None
    return node.id


def _alive(statements, wanted):
    """Return the statements that are needed, but for those that are overwritten before anybody reads them."""
    wanted, before = {*wanted, "PREDICTION", EVERYTHING}, []
    while len(before) != len(statements):
        before, (statements, live) = statements, _closure(statements, wanted)
        alive = []
        for each in reversed(statements):
            if each.changes & live:
                alive.append(each)
                targets = each.node.targets if isinstance(each.node, ast.Assign) else [each.node]
                fresh = {getattr(part, "id", getattr(part, "name", None)) for part in targets}
                live = live - fresh | _closure(statements, each.reads)[1]
        statements = alive[::-1]
    return statements


def _closure(statements, names):
    """Return the statements that bind or change the names, and the names that these read, and so on; and all names."""
    binders = {}
    for number, each in enumerate(statements):
        for name in each.changes:
            binders.setdefault(name, []).append(number)
    kept, found, waiting = set(), set(names), [*names]
    while waiting:
        more = set(binders.pop(waiting.pop(), ())) - kept
        kept |= more
        read = {name for k in more for name in statements[k].reads | statements[k].later} - found
        found |= read
        waiting += read
    return [statements[k] for k in sorted(kept)], found


def _in_order(statements):
    """Return the statements in the order of the notebook, but each after those that bind what it reads.

    Students run cells in another order.
    """
    reads = [_closure(statements, each.reads)[1] - vars(builtins).keys() for each in statements]
    first = {name: k for k, each in reversed([*enumerate(statements)]) for name in each.binds}
    order, begun, waiting = {}, set(), [*range(len(statements))][::-1]
    while waiting:
        k = waiting[-1]
        unbound = {first[name] for name in reads[k] & first.keys()} - begun - {k}
        before = sorted(j for j in unbound if k not in begun and not statements[k].binds & reads[j])
        begun.add(k)
        if not before:
            order[waiting.pop()] = statements[k]
        waiting += before[::-1]
    return order.values()


def _as_module(statement):
    """Return the text of a statement, with a function around an `await`."""
    code = compile(statement.text, "cell", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if not code.co_flags & inspect.CO_COROUTINE:
        return statement.text
    names = f"global {', '.join(sorted(statement.binds)) or '_'}"
    return f"async def _cell():\n    {names}\n{indent(statement.text, '    ')}\n__import__('asyncio').run(_cell())"
