"""Docstrings read from the source of installed packages, without importing them.

Importing every submodule would run code, print and warn, and find other objects on
other machines. The source is the same text every time.
"""

import ast
import importlib.util
import inspect
import os.path
import re
import warnings
from pathlib import Path

from .words import APOSTROPHES

# Tests; other people's code that travels inside a package; what newer versions of
# Python no longer have
_LEFT_OUT = {"tests", "externals", "_lib", "distutils"}

_SECTIONS = re.compile(
    r"^(References|Examples?|See Also)\n-{3,}\n.*?(?=^\S.*\n-{3,}\n|\Z)",
    re.DOTALL | re.MULTILINE,
)
_LINES = re.compile(
    r"^.*\n[-=~^]{3,}$"  # a heading
    r"|^\s*(?:>>>|\.\.\.|\.\. ).*$"  # doctest, directive, footnote
    r"|^\s*[\w*, ]+ : .*$",  # the line "name : type" of a parameter
    re.MULTILINE,
)
# Not for this version of Python, nested too deeply, or out of reach
_UNREADABLE = (SyntaxError, ValueError, TypeError, RecursionError, MemoryError, OSError)
# formulas, literals, the names of roles
_MARKUP = re.compile(r":math:`[^`]*`|``[^`]*``|:\w+:")
_QUOTES = str.maketrans(dict.fromkeys(APOSTROPHES, " "))
_CODE = re.compile(
    r"[_=\\^{}<>|@#$%/]|\w[.(]\w"  # in n_samples, axis=0, <class>, scipy.sparse, fit(X)
    r"|^\W*\w{1,2}\W*$"  # letters that stand for variables
)


def docstrings(package):
    """Yield (dotted name, docstring) of what is public in `package`.

    These are modules, classes, functions and methods. Private steps of the dotted name
    are left out (``sklearn.linear_model._ridge.Ridge`` is found as
    ``sklearn.linear_model.Ridge``), since packages often keep public objects in private
    modules.
    """
    for file, steps in _sources(package):
        named = [step for step in steps if step != "__init__"]
        yield from _in_file(file, package, named)


def fingerprint(package):
    """Return names, sizes and times of change of the files that `docstrings` reads."""
    facts = ((steps, file.stat()) for file, steps in _sources(package))
    return [["/".join(steps), stat.st_size, stat.st_mtime_ns] for steps, stat in facts]


def prose(docstring):
    """Return a docstring without code, formulas, headings, references and types."""
    text = _MARKUP.sub(" ", _LINES.sub(" ", _SECTIONS.sub(" ", docstring)))
    spoken = " ".join(word for word in text.split() if not _CODE.search(word))
    # an apostrophe is a quotation mark more often than not
    return spoken.translate(_QUOTES)


def _sources(package):
    """Yield (file, steps of its dotted name) of the source files of a package."""
    root = source(package)
    if root is None:
        raise ModuleNotFoundError(
            f"packages names {package!r}, which is not an installed top-level package"
            " or module in Python: install it, or leave it out"
        )
    if root.is_file():
        yield root, ()
    for file in sorted(root.rglob("*.py")):
        steps = file.relative_to(root).with_suffix("").parts
        is_test = steps[-1].startswith(("test_", "conftest"))
        # a link may lead nowhere, a folder may be named x.py
        if _LEFT_OUT.isdisjoint(steps) and not is_test and os.path.isfile(file):
            yield file, steps


def source(package):
    """Return the folder of a package, the file of a module, or None without source."""
    spec = importlib.util.find_spec(package) if package.isidentifier() else None
    if spec and spec.submodule_search_locations:
        return Path(spec.submodule_search_locations[0])
    if spec and spec.has_location and spec.origin and spec.origin.endswith(".py"):
        return Path(spec.origin)
    return None


def _parse(file):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # odd escapes in someone else's source
        try:
            return ast.parse(file.read_bytes())
        except _UNREADABLE:
            return ast.parse("")


def _in_file(file, package, steps):
    tree = _parse(file)
    public = [step for step in steps if not step.startswith("_")]
    module = ".".join([package, *public])
    if public == steps and (text := ast.get_docstring(tree)):
        yield module, text
    yield from _public(tree, module)
    for node in tree.body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield from _added(node.value, module)


def _public(node, name):
    """Yield the docstrings of public functions and classes in a module or class."""
    for child in node.body:
        defined = isinstance(child, ast.FunctionDef | ast.ClassDef)
        if defined and not child.name.startswith("_"):
            path = f"{name}.{child.name}"
            if text := ast.get_docstring(child):
                yield path, text
            if isinstance(child, ast.ClassDef):
                yield from _public(child, path)


def _added(call, module):
    """Yield the docstring that a call of ``add_newdoc(..., name, text)`` carries.

    NumPy and SciPy document compiled objects in this way.
    """
    if getattr(call.func, "id", None) != "add_newdoc" or len(call.args) < 2:
        return
    name, text = map(_literal, call.args[-2:])
    if isinstance(text, tuple):  # (method, text)
        name, text = f"{name}.{text[0]}", text[1]
    literal = isinstance(name, str) and isinstance(text, str)
    if literal and not re.search(r"(^|\.)_", name):
        yield f"{module}.{name}", inspect.cleandoc(text)


def _literal(node):
    try:
        return ast.literal_eval(node)
    # a name or a formatted string: its value is known only when the module runs
    except _UNREADABLE:
        return None
