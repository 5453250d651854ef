"""The denoiser in a notebook, as the text of denoiser.py."""

import ast
import json
import re

WRITES = re.compile(r"\A\s*%%writefile\s+(?:\S*/)?denoiser\.py\s*\n")
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
# Attempts at a cell that is not Python, and has no class: each leaves out a line.
MOST_LINES = 8


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
        if b'"worksheets"' in data:
            return "the notebook has a format before 4: open it in Jupyter, and save it again"
        return f"the notebook cannot be read: {type(error).__name__}"
    written = [WRITES.sub("", cell) for cell in cells if WRITES.match(cell)]
    if written:
        return written[-1].encode("utf-8", "replace")
    if sum(map(len, cells)) > MOST_CODE:
        return "the cells of the notebook hold more than a megabyte of code"
    pieces = [piece for cell in cells for piece in _pieces(cell)]
    kept = sorted(_needed([node for node, _ in pieces]))
    text = "".join(f"{pieces[number][1]}\n" for number in kept)
    return text.encode("utf-8", "replace") or "the notebook has no class: write the denoiser in a cell of its own"


def _pieces(cell):
    """Return the statements of a cell with their text, without IPython's commands.

    A cell that is not Python and holds a class is kept as a whole: so its author reads
    the syntax error. Another one loses the lines that are not: what it imports is kept.
    """
    pieces, _ = _statements(cell)
    lines = [] if pieces else COMMANDS.sub(lambda found: found[1] or "", cell).split("\n")
    for _ in range(MOST_LINES):
        if pieces or not any(lines):
            break
        pieces, wrong = _statements("\n".join(lines))
        if re.search(r"^class ", cell, re.MULTILINE):
            return pieces or [(ast.ClassDef("", [], [], [], []), cell)]
        del lines[wrong - 1 : wrong]
    return pieces


def _statements(text):
    """Return the statements of a text with their text, and the number of a line that is not Python."""
    try:
        return [(node, ast.unparse(node)) for node in ast.parse(text).body], 0
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return [], getattr(error, "lineno", None) or 1


def _needed(statements):
    """Return the numbers of the statements with classes, PREDICTION, and what these use.

    There are none where there is no class. No statement is looked at twice, however long
    the chain of uses.
    """
    binders = {}
    for number, node in enumerate(statements):
        for name in _bound(node):
            binders.setdefault(name, []).append(number)
    kept, wanted = set(), []
    if A_CLASS in binders:
        wanted = [A_CLASS, EVERYTHING, "PREDICTION"]
    while wanted:
        more = set(binders.pop(wanted.pop(), ())) - kept
        kept |= more
        wanted += (name for k in more for name in _used(statements[k]))
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
