"""Which modules of the package a piece of Python imports: read from its text, and nothing is run.

What stands under `if TYPE_CHECKING:` says where a name is defined, and imports nothing. A name that the package loads
when it is asked for, as `from amptutorial import AMPEmbedding` or as `amptutorial.AMPEmbedding`, counts as imported.
"""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = "amptutorial"
PACKAGES = {PACKAGE: ROOT, "amptutorial_course": ROOT / "course"}


def modules_of(source):
    """Return the files of the package that a source, perhaps a notebook's, imports by itself and through others.

    >>> found = modules_of("from amptutorial.bias import drop_empty")
    >>> [name for name in ("__init__.py", "bias.py", "score.py", "estimator.py") if ROOT / PACKAGE / name in found]
    ['__init__.py', 'bias.py', 'score.py']
    >>> ROOT / PACKAGE / "estimator.py" in modules_of("import amptutorial as amp; amp.AMPEmbedding()")
    True
    """
    return {file_of(name) for name in closure(imported(source))}


def closure(names, without=()):
    """Return the modules of the package that have been imported when these are: names with dots, as those given.

    Of the modules `without` it is not asked what they import.
    """
    found, left = set(), set(names)
    while left:
        name = left.pop()
        found.add(name)
        left |= (imports_of(name) | {*_packages(name)}) - found - {*without}
    return found


@cache
def imports_of(module):
    """Return the modules of the package that one of them imports itself."""
    return imported(file_of(module).read_text(encoding="utf-8"), module)


def imported(source, module=""):
    """Return the modules that a source imports itself, each name by the module that defines it.

    >>> sorted(imported("from amptutorial import Ridge, bias"))
    ['amptutorial', 'amptutorial.bias', 'amptutorial.denoisers']
    """
    names = _bound(source, module, typed=False)
    asked = set(names.values())
    for node in _nodes(source):
        if isinstance(node, ast.Attribute):
            first, _, rest = _dotted(node).partition(".")
            asked |= {f"{names[first]}.{rest}"} if first in names else set()
    homes = {home_of(name) for name in asked}
    return homes | {package for name in asked for package in _packages(name)}


@cache
def _nodes(source):
    """Return the nodes of the tree of a source; a notebook's may have lines that are commands of IPython."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        tree = ast.parse(re.sub(r"^(\s*)[%!].*$", r"\1pass", source, flags=re.MULTILINE))
    return tuple(ast.walk(tree))


def _dotted(node):
    """Return a name with its attributes as it is written, and what begins with a dot for those of anything else."""
    return f"{_dotted(node.value)}.{node.attr}" if isinstance(node, ast.Attribute) else getattr(node, "id", "")


@cache
def home_of(name):
    """Return the module that defines a name with dots, or that it is.

    >>> home_of("amptutorial.Ridge"), home_of("amptutorial.checks.Check"), home_of("amptutorial.bias")
    ('amptutorial.denoisers', 'amptutorial.checks.report', 'amptutorial.bias')
    """
    if file_of(name):
        return name
    module, _, attribute = name.rpartition(".")
    if not file_of(module):
        return home_of(module)
    further = _bound(file_of(module).read_text(encoding="utf-8"), module).get(attribute, module)
    return module if further == module else home_of(further)


@cache
def file_of(module):
    """Return the file of one of our modules, or None."""
    if not is_ours(module):
        return None
    path = PACKAGES[module.split(".")[0]] / module.replace(".", "/")
    found = (each for each in (path / "__init__.py", path.with_suffix(".py")) if each.is_file())
    return next(found, None)


def is_ours(name):
    """Return whether a name with dots is, or lies in, a package of this repository."""
    return name.split(".")[0] in PACKAGES


def all_modules():
    """Return the names of all modules of the package."""
    paths = (path.relative_to(ROOT).with_suffix("") for path in sorted((ROOT / PACKAGE).rglob("*.py")))
    return [".".join(path.parts).removesuffix(".__init__") for path in paths]


def _packages(name):
    """Yield the packages in which what has this name lies; they are imported before it."""
    while name := name.rpartition(".")[0]:
        if file_of(name):
            yield name


@cache
def _bound(source, module, typed=True):
    """Return what imports of the package bind: the whole name of each name in the source."""
    typing = [node for node in _nodes(source) if isinstance(node, ast.If) and _dotted(node.test) == "TYPE_CHECKING"]
    skipped = set() if typed else {child for node in typing for child in ast.walk(node)}
    names = {}
    for node in _nodes(source):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            for alias in node.names:
                if is_ours(alias.name):
                    first = alias.name.split(".")[0]
                    names[alias.asname or alias.name] = alias.name
                    names |= {first: first} if alias.asname is None else {}
        if isinstance(node, ast.ImportFrom):
            start = _origin(node, module)
            if is_ours(start):
                names |= {alias.asname or alias.name: f"{start}.{alias.name}" for alias in node.names}
    return names


def _origin(node, module):
    """Return the whole name of what `from ... import` takes from."""
    if not node.level:
        return node.module
    depth = node.level - (file_of(module).name == "__init__.py")
    return ".".join([*module.split(".")[: len(module.split(".")) - depth], *filter(None, [node.module])])
