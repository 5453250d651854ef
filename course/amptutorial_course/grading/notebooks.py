r"""The denoiser in a notebook, as the text of denoiser.py.

Nothing runs here: IPython says what its commands are, and `dependence` what the classes
need of the notebook. Cells that call the checks or run AMP stay out.
"""

import ast
import json
import re
import warnings

from .dependence import IMPORTS, analyse, needed, parts

CELL_MAGIC = re.compile(r"\s*%%[ \t]*(\S+)[ \t]*(.*)\n?")
# Of these, what is below them is in another language, process or scope.
ELSEWHERE = frozenset(
    "! bash cmd cython file html HTML javascript js latex markdown perl pypy python python2 python3 R ruby script sh"
    " sql svg SVG sx system timeit writefile".split()
)
# What %pylab does, as far as the sandbox has it.
PYLAB = "import numpy as np\nfrom numpy import *"
# Lines that are meant for IPython, and are left out even where it does not know them.
COMMAND = re.compile(r"\s*([%!?]|get_ipython\(\)|pass$)|.*\?[\s;]*(#.*)?$")
# Characters of code in a notebook: its syntax tree takes a thousand bytes for each.
MOST_CODE = 2**20
# Attempts at a cell that is not Python: each leaves out a line.
MOST_LINES = 8


def read_notebook(data, classes=()):
    r"""Return denoiser.py from a notebook, or why there is none, and the modules beside it.

    It is what the cells that write the file leave in it. Where there is none, it is the
    classes, ``PREDICTION``, and of the rest what these use. Modules are what other cells
    write.

    Parameters
    ----------
    data : bytes
        The notebook.
    classes : iterable of str
        The names that are asked for. If the notebook has none, it is all its classes.

    Returns
    -------
    bytes or str
    dict
        Bytes by name.

    Examples
    --------
    >>> texts = ["import numpy as np\nprint(1)", "k = 2", "class A:\n    n = np.pi * k"]
    >>> cells = [{"cell_type": "code", "source": text} for text in texts]
    >>> read_notebook(json.dumps({"cells": cells}).encode())
    (b'import numpy as np\nk = 2\nclass A:\n    n = np.pi * k\n', {})
    """
    try:
        opened = _opened_cells(data)
    except UnicodeDecodeError:
        return "the notebook is not encoded in UTF-8: save it with that encoding", {}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return f"the notebook cannot be read: {type(error).__name__}", {}
    cells = [code for magics, code in opened if ELSEWHERE.isdisjoint(magics)]
    if sum(map(len, cells)) > MOST_CODE:
        return "the cells of the notebook hold more than a megabyte of code", {}
    modules = {name: text.encode("utf-8", "replace") for name, text in _written(opened).items()}
    source = modules.pop("denoiser.py", b"") or _text_of(cells, classes).encode("utf-8", "replace")
    return source or "the notebook has no class: write the denoiser in a cell of its own", modules


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
        for name in re.findall(r"(?:\A|[\s/\\\"'])(\w+\.py)\b", " ".join(words)):
            files[name] = code if {"-a", "--append"}.isdisjoint(words) else files.get(name, "") + code
    return files


def _text_of(cells, classes):
    """Return the text of the classes, PREDICTION, and what these use."""
    nodes, broken = [], {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of a compiler are for the author
        for cell in cells:
            if (found := _nodes(cell)) is None:
                broken |= dict.fromkeys(re.findall(r"^class[ \t]+(\w+)", cell, re.MULTILINE), cell)
            nodes += found or ()
        statements = analyse(nodes)
    bound = {name for each in statements for name in each.binds}
    defined = {part.name for node in nodes for part in parts(node) if isinstance(part, ast.ClassDef)}
    wanted = set(classes) & (bound | set(broken)) or defined | set(broken)
    if not wanted:
        return ""
    texts = [each.as_module() for each in needed(statements, {*wanted, "PREDICTION"})]
    # of a class that is nowhere without a syntax error: its author reads the error
    texts += {broken[name] for name in wanted - bound if name in broken}
    return "".join(f"{text}\n" for text in texts)


def _nodes(cell):
    """Return the statements of a cell in plain Python, or None if there is a class and a syntax error.

    Lines that are no Python are left out: what the cell imports is kept.
    """
    from IPython.core.inputtransformer2 import TransformerManager  # for notebooks alone

    for _ in range(MOST_LINES):
        try:
            cell = TransformerManager().transform_cell(cell)
            compile(cell, "cell", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            tree = _Plain().visit(ast.parse(cell))
            ast.unparse(tree)  # which has an error where a tree is too deep
            return [one for node in tree.body for one in _each_import(node)]
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
