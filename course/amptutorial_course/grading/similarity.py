"""Submissions that resemble each other, for somebody to look at.

Every file is read as a sequence of pieces of syntax, in which names of variables,
numbers, comments and order of definitions leave no trace. What two files share and the
starter has not is counted in runs of pieces.
"""

import ast
from itertools import combinations, product

# Of runs shared, as a share of those of the shorter file. Right solutions that were
# written independently share 0.00 to 0.08, copies with other names all.
THRESHOLD = 0.5
# of pieces in a run: about a line and a half
LENGTH = 12
# Files with fewer runs are too short to say anything.
FEWEST = 30


def fingerprint(source):
    r"""Return the runs of syntax in a file, a set; empty if it is not Python.

    Examples
    --------
    >>> one = fingerprint("def f(a):\n    return [a * x + 1 for x in range(9)]")
    >>> two = fingerprint("def g(b):  # new\n    return [b * y + 2 for y in range(7)]")
    >>> one == two
    True
    """
    try:
        functions = [
            [piece for part in node.body for piece in _pieces(part)]
            for node in ast.walk(ast.parse(source))
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        ]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    return frozenset(
        tuple(pieces[k : k + LENGTH])
        for pieces in functions
        for k in range(max(1, len(pieces) - LENGTH + 1))
    )


def _pieces(node):
    """Yield the pieces of a statement; a docstring has none."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    kind = type(node).__name__
    own = isinstance(node, ast.Attribute) and not (
        isinstance(node.value, ast.Name) and node.value.id == "self"
    )
    yield f"{kind}.{node.attr}" if own else kind
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.Load, ast.Store, ast.arguments)):
            yield from _pieces(child)


def similarity(one, other):
    """Return the share of the shorter file's runs that the longer one has too."""
    fewer = min(len(one), len(other))
    return len(one & other) / fewer if fewer >= FEWEST else 0.0


def similar_pairs(sources, others, starter=""):
    """Return `(name, name, similarity)` of all pairs above `THRESHOLD`, largest first.

    Parameters
    ----------
    sources : dict
        The class, bytes or texts by name.
    others : dict
        Solutions and earlier years: compared with the class and not with each other.
    starter : str
        What all have been given, and share.
    """
    given = fingerprint(starter)
    prints = {name: fingerprint(source) - given for name, source in sources.items()}
    known = {name: fingerprint(source) - given for name, source in others.items()}
    pairs = [
        *((a, b, similarity(prints[a], prints[b])) for a, b in combinations(prints, 2)),
        *((a, b, similarity(prints[a], known[b])) for a, b in product(prints, known)),
    ]
    found = [pair for pair in pairs if pair[2] >= THRESHOLD]
    return sorted(found, key=lambda pair: -pair[2])
