"""The denoiser in a notebook, as the text of denoiser.py."""

import ast
import json
import re

WRITES = re.compile(r"\s*%%writefile\s+(?:\S*/)?denoiser\.py\s*\n")
# IPython's commands, after what may hold lines that only look like them: comments, and
# strings, which end with their line or, of three quotes, with the cell if not before.
COMMANDS = re.compile(
    r"""
    (  \#[^\n]*
    |  (?P<quotes>\"{3}|'{3})(?:\\.|(?!(?P=quotes)).)*+(?P=quotes)?
    |  (?P<quote>["'])(?:\\.|(?!(?P=quote))[^\\\n])*+(?P=quote)?
    )
    |  ^[ \t]*(?:\w[\w ,]*=[ \t]*)?[%!?](?:\\\n|[^\n])*
    |  ^[^\n"'\#]*\?[ \t]*$
    """,
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
DEFINITIONS = ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef
# No names: what every piece with a class, and what `import *` and __future__, bind.
A_CLASS, EVERYTHING = "class", "*"
# Characters of code in a notebook: its syntax tree takes a thousand bytes for each.
MOST_CODE = 2**20


def notebook_source(data):
    r"""Return denoiser.py from a notebook, or why there is none.

    It is the last cell that writes the file. Where there is none, it is every class,
    ``PREDICTION``, and of the rest what these use: the cells that call the checks or
    run AMP stay out.

    Parameters
    ----------
    data : bytes
        The notebook.

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
        cells = ["".join(cell["source"]) for cell in json.loads(data)["cells"] if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        return f"the notebook cannot be read: {type(error).__name__}"
    written = [match for match in map(WRITES.match, cells) if match]
    if written:
        return written[-1].string[written[-1].end() :].encode("utf-8", "replace")
    if sum(map(len, cells)) > MOST_CODE:
        return "the cells of the notebook hold more than a megabyte of code"
    pieces = [piece for cell in cells for piece in _pieces(cell)]
    kept = _needed([nodes for nodes, _ in pieces])
    if not kept:
        return "the notebook has no class: write the denoiser in a cell of its own"
    text = "".join(f"{pieces[number][1]}\n" for number in sorted(kept))
    return text.encode("utf-8", "replace")


def _pieces(cell):
    """Return `(statements, text)` of the pieces of a cell, without IPython's commands.

    Statements that share a line are one piece. A cell that is not Python and holds a
    class is kept as a whole: so its author reads the syntax error.
    """
    text, body = cell, _statements(cell)
    if body is None:
        text = COMMANDS.sub(lambda found: found[1] or "", cell)
        body = _statements(text)
    if body is None:
        whole = ast.ClassDef("", [], [], [], [])
        return [([whole], cell)] if re.search(r"^class ", cell, re.MULTILINE) else []
    lines, groups = text.split("\n"), []
    for node in body:
        if groups and _first(node) <= groups[-1][-1].end_lineno:
            groups[-1].append(node)
        else:
            groups.append([node])
    return [(nodes, "\n".join(lines[_first(nodes[0]) - 1 : nodes[-1].end_lineno])) for nodes in groups]


def _statements(text):
    """Return the statements of a text, or None where it is not Python."""
    try:
        return ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _first(node):
    decorators = getattr(node, "decorator_list", ())
    return min([node.lineno, *(each.lineno for each in decorators)])


def _needed(pieces):
    """Return the numbers of the pieces with classes, PREDICTION, and what these use.

    There are none where there is no class. No piece is looked at twice, however long
    the chain of uses.
    """
    binders = {}
    for number, nodes in enumerate(pieces):
        for name in set().union(*map(_bound, nodes)):
            binders.setdefault(name, []).append(number)
    kept, wanted = set(), []
    if A_CLASS in binders:
        wanted = [A_CLASS, EVERYTHING, "PREDICTION"]
    while wanted:
        more = set(binders.pop(wanted.pop(), ())) - kept
        kept |= more
        wanted += (name for k in more for node in pieces[k] for name in _used(node))
    return kept


def _bound(node):
    """Return the names that a statement binds, or changes, at the top level."""
    if isinstance(node, DEFINITIONS):
        return {node.name} | ({A_CLASS} if isinstance(node, ast.ClassDef) else set())
    names = {EVERYTHING} if getattr(node, "module", "") == "__future__" else set()
    for part in ast.walk(node):
        if isinstance(part, ast.alias):
            names.add((part.asname or part.name).split(".")[0])
        elif isinstance(part, DEFINITIONS):  # in an `if` or a `try`
            names.add(part.name)
        elif isinstance(getattr(part, "ctx", None), ast.Store):
            names |= _variable(part)
    return names


def _variable(target):
    """Return the name of the variable that an assignment to `target` changes, a set."""
    while isinstance(target, (ast.Attribute, ast.Subscript)):
        target = target.value
    return {target.id} if isinstance(target, ast.Name) else set()


def _used(node):
    """Return the names in a statement, that of a class or a function among them."""
    own = {node.name} if isinstance(node, DEFINITIONS) else set()
    return own | {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
