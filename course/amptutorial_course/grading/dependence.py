"""What some names of a program need of it: which statements, and in which order.

The program is what a notebook holds, as its author left it: with cells that ran in
another order, earlier attempts, and errors left in. Nothing of it runs here. `symtable`
says which names a statement binds and reads.
"""

import ast
import builtins
import inspect
import re
import symtable
from dataclasses import dataclass
from textwrap import indent

FUNCTIONS = ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda
IMPORTS = ast.Import, ast.ImportFrom
# Of these, all parts run.
SIMPLE = ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.Assign
# Functions that write into their first argument.
IN_PLACE = frozenset(
    "at copyto delattr fill_diagonal heapify heappush insort place put put_along_axis putmask setattr shuffle".split()
)
# Scopes that are functions to Python, but run at once.
COMPREHENSION = re.compile("<?((list|set|dict)comp|genexpr)>?")
# No names: what `import *` and __future__ bind, and what a function is given.
EVERYTHING, ARGUMENTS = "*", "()"


@dataclass(frozen=True)
class Statement:
    """A statement of a program.

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

    def as_module(self):
        """Return the text, with a function around an `await`."""
        code = compile(self.text, "cell", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        if not code.co_flags & inspect.CO_COROUTINE:
            return self.text
        names = f"global {', '.join(sorted(self.binds)) or '_'}"
        return f"async def _cell():\n    {names}\n{indent(self.text, '    ')}\n__import__('asyncio').run(_cell())"


def analyse(nodes):
    """Return the `Statement` of each node."""
    texts = [ast.unparse(node) for node in nodes]
    tables = [symtable.symtable(text, "cell", "exec") for text in texts]
    binds = [_bound(node, table) for node, table in zip(nodes, tables, strict=True)]
    pairs = list(zip(nodes, binds, strict=True))
    imported = {name for node, names in pairs if isinstance(node, IMPORTS) for name in names}
    effects = _effects(nodes, imported)
    changes = [names.union(_changed(parts(node), imported, effects)) for node, names in pairs]
    return [Statement(*each, *_read(table)) for *each, table in zip(nodes, texts, binds, changes, tables, strict=True)]


def needed(statements, names):
    """Return the statements that some names need, in an order in which they run.

    Left out is what is overwritten before anybody reads it.
    """
    names, before, statements = {*names, EVERYTHING}, [], _without_failures(statements)
    while len(before) != len(statements):
        before, (statements, live) = statements, _closure(statements, names)
        alive = []
        for each in reversed(statements):
            if each.changes & live:
                alive.append(each)
                live = live - _overwritten(each.node) | _closure(statements, each.reads)[1]
        statements = alive[::-1]
    return sorted(_in_order(statements), key=lambda each: not each.text.startswith("from __future__"))


def _without_failures(statements):
    """Leave out attempts that read what is nowhere defined, if their names are defined elsewhere."""
    bound = {name for each in statements for name in each.binds}
    known = bound | vars(builtins).keys()
    failed = [s for s in statements if isinstance(s.node, SIMPLE) and EVERYTHING not in bound and s.reads - known]
    sure = {name for each in statements if each not in failed for name in each.binds}
    return [each for each in statements if each not in failed or each.binds - sure]


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


def _overwritten(node):
    """Return the names to which a statement gives a value whatever they have."""
    targets = node.targets if isinstance(node, ast.Assign) else [node] if isinstance(node, SIMPLE) else []
    return {getattr(part, "id", getattr(part, "name", None)) for part in targets}


def _in_order(statements):
    """Return the statements in the order of the notebook, but each after those that bind what it reads.

    Students run cells in another order.
    """
    reads = [_closure(statements, each.reads)[1] - vars(builtins).keys() for each in statements]
    first = {name: k for k, each in reversed([*enumerate(statements)]) for name in each.binds}
    order, begun, waiting = {}, set(), [*range(len(statements))][::-1]
    while waiting:
        k = waiting[-1]
        above = {j for j in range(k) if statements[j].changes & reads[k]}
        below = {first[name] for name in reads[k] & first.keys()}
        others = above | {j for j in below if not statements[k].binds & reads[j]}
        missing = [] if k in begun else sorted(others - begun - {k})
        begun.add(k)
        if not missing:
            order[waiting.pop()] = statements[k]
        waiting += missing[::-1]
    return order.values()


def _bound(node, table):
    """Return the names that a statement binds."""
    names = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    names |= {part.target.id for part in parts(node) if isinstance(part, ast.NamedExpr)}
    origins = [part for part in parts(node) if isinstance(part, ast.ImportFrom)]
    is_open = any(part.module == "__future__" or part.names[0].name == "*" for part in origins)
    return names | ({EVERYTHING} if is_open else set())


def _effects(nodes, imported):
    """Return the variables that functions change, by function: `ARGUMENTS`, and global ones."""
    effects = {}
    outside = [part for node in nodes if not isinstance(node, ast.ClassDef) for part in ast.walk(node)]
    for function in (part for part in outside if isinstance(part, FUNCTIONS) and hasattr(part, "name")):
        inside = list(ast.walk(function))
        arguments = {part.arg for part in inside if isinstance(part, ast.arg)}
        own = {part.id for part in inside if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        bound = {name for part in inside if isinstance(part, ast.Global) for name in part.names}
        changed = set(_changed(inside, imported, effects))
        given = {ARGUMENTS} if changed & arguments else set()
        effects[function.name] = bound | changed - arguments - own | given
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


def parts(node):
    """Yield the parts of a statement that run with it: not the bodies of its functions."""
    yield node
    for name, value in ast.iter_fields(node):
        if name != "body" or not isinstance(node, FUNCTIONS):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from parts(child)


def _changed(inside, imported, effects):
    """Yield the variables that the parts of a statement change in place."""
    for part in inside:
        if isinstance(part, (ast.Attribute, ast.Subscript)) and not isinstance(part.ctx, ast.Load):
            yield _root(part)
        called = [getattr(part.value, "elt", part.value)] if isinstance(part, ast.Expr) else []
        methods = [each for each in called if isinstance(each, ast.Call)]
        methods += [each for each in getattr(part, "decorator_list", ()) if not isinstance(each, ast.Name)]
        yield from set(map(_root, methods)) - imported  # called for what they do; but not functions of a module
        if isinstance(part, ast.Call):
            name = getattr(part.func, "attr", None) or getattr(part.func, "id", None)
            effect = effects.get(getattr(part.func, "id", None), set())
            out = [word.value for word in part.keywords if ARGUMENTS in effect or word.arg == "out"]
            first = len(part.args) if ARGUMENTS in effect else name in IN_PLACE
            yield from map(_root, [*part.args[:first], *out])
            yield from effect - {ARGUMENTS}


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
