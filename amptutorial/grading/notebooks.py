"""The denoiser in a notebook, as the text of denoiser.py."""

import ast
import json
import re

WRITES = re.compile(r"\s*%%writefile\s+(?:\S*/)?denoiser\.py\s*\n")


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
        cells = [
            "".join(cell["source"])
            for cell in json.loads(data)["cells"]
            if cell["cell_type"] == "code"
        ]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        return f"the notebook cannot be read: {type(error).__name__}"
    written = [match for match in map(WRITES.match, cells) if match]
    if written:
        return written[-1].string[written[-1].end() :].encode("utf-8", "replace")
    statements = [each for cell in cells for each in _statements(cell)]
    if not any(isinstance(node, ast.ClassDef) for node, _ in statements):
        return "the notebook has no class: write the denoiser in a cell of its own"
    kept = _needed([node for node, _ in statements])
    text = "".join(f"{text}\n" for node, text in statements if node in kept)
    return text.encode("utf-8", "replace")


def _statements(cell):
    """Return `(node, text)` of the statements in a cell, without IPython's commands.

    A cell that is not Python and holds a class is kept as a whole: so its author reads
    the syntax error.
    """
    text = re.sub(r"^[%!?].*$", "", cell, flags=re.MULTILINE)
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        whole = ast.ClassDef("", [], [], [], [])
        return [(whole, cell)] if re.search(r"^class ", cell, re.MULTILINE) else []
    lines = text.split("\n")
    return [
        (node, "\n".join(lines[_first(node) - 1 : node.end_lineno])) for node in body
    ]


def _first(node):
    decorators = getattr(node, "decorator_list", ())
    return min([node.lineno, *(each.lineno for each in decorators)])


def _needed(nodes):
    """Return the classes, PREDICTION, and all that binds a name that these use."""
    binds = {node: _bound(node) for node in nodes}
    kept = {
        node
        for node in nodes
        if isinstance(node, ast.ClassDef) or "PREDICTION" in binds[node]
    }
    while True:
        used = {name for node in kept for name in _used(node)}
        more = {node for node in nodes if binds[node] & used or "*" in binds[node]}
        if more <= kept:
            return kept
        kept |= more


def _bound(node):
    """Return the names that a statement binds at the top level."""
    if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        return {node.name}
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        names = {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        return names | ({"*"} if getattr(node, "module", "") == "__future__" else set())
    return {
        name.id
        for name in ast.walk(node)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
    }


def _used(node):
    return {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
