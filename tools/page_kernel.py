"""What a notebook's kernel does, for a page: run its cells, and hand over what they print, show and raise.

The worker of a page calls `run_cell` and `evaluate` in WebAssembly. Nothing here needs a browser: the tests call them
in any Python. Cells share the namespace of ``__main__``, as they do in a notebook.

An output is a dictionary with one kind of content: ``stdout`` or ``stderr``, text as it is printed; ``html``, ``svg``,
``png`` (base64) or ``plain``, an object that is shown; ``error``, a short traceback.
"""

import ast
import builtins
import importlib
import io
import linecache
import re
import sys
import time
import tokenize
import traceback
import warnings
from base64 import b64encode
from collections import ChainMap
from contextlib import redirect_stderr, redirect_stdout
from importlib.machinery import PathFinder
from types import MethodType, ModuleType

# Of threadpoolctl, in Pyodide: nothing that a reader could do about.
warnings.filterwarnings("ignore", message="JsProxy.as_object_map", category=RuntimeWarning)

NAMES = vars(sys.modules["__main__"])  # of all cells
# Characters that a cell may hand over, of each kind: much more would stop the page, and nobody reads it.
MOST = {"text": 10**5, "error": 10**5, "html": 10**7, "svg": 10**7, "png": 10**7}
LEFT_OUT = "[The rest is left out: it is too much for a page.]"
WAIT = 0.1  # seconds between two handovers of text: a loop may print thousands of lines

# What an object offers of itself, the richest first: the key of its type in a bundle of types, and the types of Python.
RICH = {"html": ("text/html", str), "svg": ("image/svg+xml", str), "png": ("image/png", (bytes, str))}

# What follows the last expression of a cell, if anything does.
COMMENTS = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER}

# What notebooks understand beside Python, and what to do about it.
HABITS = {
    r"\s*([\w ,]+=)?\s*[%!]": "commands of notebooks do not work in pages: leave this line out",
    r"\s*\?|[^#\"']*\?\s*$": "question marks do not work in pages: write help(...), with the name that you ask about",
    r"\s*(pip|conda|mamba) ": "nothing can be installed in a page: import the package, and leave this line out",
    r"[^#]*\b(await|async)\b": "await works inside of async functions alone: leave it out here",
    r"\s*>>>": "prompts are no part of Python: leave out >>> and ..., and the lines without them",
}
NOT_HERE = "This package does not come into the page: NumPy, SciPy, scikit-learn, Matplotlib and SymPy do."


class OnDemand:
    """Where Python looks first for a module: a package that most cells do without comes when a cell imports it.

    Parameters
    ----------
    modules : iterable of str
    fetch : callable
        Takes a module, and puts its package where Python looks next.
    """

    def __init__(self, modules, fetch):
        self.modules, self.fetch = set(modules), fetch

    def find_spec(self, name, path=None, target=None):
        """Fetch the package of a module that has not come, and leave the rest to the others."""
        if name in self.modules:
            try:
                self.fetch(name)
            except Exception as error:
                raise ModuleNotFoundError(f"{name} could not be fetched ({error})") from None
            self.modules.remove(name)
            importlib.invalidate_caches()


class Late(ModuleType):
    """A module that is loaded when a name is asked of it, and not when it is imported.

    `importlib.util.LazyLoader` would load it at its second import.
    """

    def __getattr__(self, name):
        if name.startswith("__"):  # Python asks for some of these at the import
            raise AttributeError(name)
        self.__class__ = ModuleType
        self.__spec__.loader.loader.exec_module(self)
        return getattr(self, name)


class LateLoader:
    """Finds one module before others can, and makes it `Late`.

    Parameters
    ----------
    name : str
    """

    def __init__(self, name):
        self.name = name

    def find_spec(self, name, path=None, target=None):
        """Find the module, and leave the rest to the others."""
        if name == self.name:
            spec = PathFinder.find_spec(name, path)
            self.loader, spec.loader = spec.loader, self
            return spec

    def create_module(self, spec):
        """Return the module, empty."""
        return Late(spec.name)

    def exec_module(self, module):
        """Load nothing yet."""


def arrange_imports(modules, fetch):
    """Have the packages of `modules` fetched when they are first imported, and the largest part of SciPy loaded late.

    scikit-learn imports SciPy's statistics and hardly ever uses them: 20 MB and a second of a page.
    """
    sys.meta_path[:0] = [OnDemand(modules, fetch), LateLoader("scipy.stats")]


class Printed(io.TextIOBase):
    """A stream that hands over what is printed, in pieces, as outputs of one kind.

    It is one for all cells: handlers of `logging`, for one, keep the stream of the cell that made them.
    """

    encoding = "utf-8"

    def __init__(self, kind):
        self.kind = kind

    def begin(self, emit):
        """Hand over to another cell. What was printed between the two is lost."""
        self.emit, self.pieces, self.handed = emit, [], time.monotonic()

    def write(self, text):
        """Keep `text`, and hand everything over if the last time was long ago."""
        if not isinstance(text, str):
            raise TypeError(f"write() takes a text, not {type(text).__name__}: print shows other objects")
        self.pieces.append(text)
        if time.monotonic() - self.handed > WAIT:
            self.flush()
        return len(text)

    def flush(self):
        """Hand over what is kept."""
        text = "".join(self.pieces)
        self.pieces, self.handed = [], time.monotonic()
        if text:
            self.emit({self.kind: text})

    close = flush  # later cells print too


class Nobody(io.TextIOBase):
    """Where `input` reads."""

    def readline(self, size=-1):
        """Say that nothing comes."""
        raise EOFError("A page cannot ask: write the answer into the cell, in place of input().")

    read = readline


STREAMS = Printed("stdout"), Printed("stderr")


class Limited:
    """Hands over outputs until they are too long, and says then that more is left out.

    Parameters
    ----------
    emit : callable
        Takes an output.
    """

    def __init__(self, emit):
        self.emit, self.left = emit, dict(MOST)

    def __call__(self, output):
        """Hand over an output, or the beginning of a text."""
        ((kind, content),) = output.items()
        account = kind if kind in MOST else "text"
        left = self.left[account]
        self.left[account] -= len(content)
        if len(content) <= left:
            self.emit(output)
        elif left >= 0 and account in ("text", "error"):
            self.emit({kind: f"{content[:left]}\n{LEFT_OUT}\n"})
        elif left >= 0:
            self.emit({"plain": LEFT_OUT})


def run_cell(source, name, emit):
    r"""Run the cell `source` and show the value of its last expression, and its figures.

    Parameters
    ----------
    source : str
    name : str
        What tracebacks call the cell.
    emit : callable
        Takes each output as soon as there is one.

    Returns
    -------
    bool
        Whether the cell ran to its end.

    Examples
    --------
    >>> outputs = []
    >>> run_cell("print('two'); 1 + 1", "cell 1", outputs.append), outputs
    (True, [{'stdout': 'two\n'}, {'plain': '2'}])
    """
    emit = Limited(emit)
    for stream in STREAMS:
        stream.begin(emit)

    def display(*values):
        """Show objects as the last line of a cell is shown."""
        for value in values:
            output = shown(value)
            for stream in STREAMS:
                stream.flush()
            emit(output)

    def attempt(action):
        """Return whether `action` ended without an error, which is shown."""
        try:
            action()
        except BaseException as error:  # a cell may also exit: the page lives on
            is_end = isinstance(error, SystemExit) and error.code in (None, 0)
            trouble = None if is_end else {"error": short_traceback(error, name)}
        else:
            trouble = None
        for stream in STREAMS:
            stream.flush()
        if trouble:
            emit(trouble)
        return not trouble

    def run():
        value = execute(source, name)
        if value is not None:
            display(value)

    builtins.display, sys.stdin = display, Nobody()
    with redirect_stdout(STREAMS[0]), redirect_stderr(STREAMS[1]):
        return all([attempt(run), attempt(show_figures)])


def execute(source, name):
    """Run `source` and return the value of its last line, if that is an expression without a semicolon."""
    # where tracebacks and `inspect` look for the lines of a cell
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    first, last = compiled(source, name)
    exec(first, NAMES)
    return last and eval(last, NAMES)


def compiled(source, name):
    r"""Return the code of a cell, and that of its last line if its value is shown, or None.

    Examples
    --------
    >>> compiled("%matplotlib inline\n1 + 1", "cell 1")
    Traceback (most recent call last):
        ...
      File "cell 1", line 1
        %matplotlib inline
        ^
    SyntaxError: commands of notebooks do not work in pages: leave this line out
    """
    try:
        tree, last = ast.parse(source, name), None
        if tree.body and isinstance(tree.body[-1], ast.Expr) and not is_quiet(source):
            last = compile(ast.Expression(tree.body.pop().value), name, "eval")
        return compile(tree, name, "exec"), last
    except SyntaxError as error:
        line = "".join(source.splitlines()[(error.lineno or 1) - 1 :][:1])
        for habit, advice in HABITS.items():
            if re.match(habit, line):
                raise SyntaxError(advice, (name, error.lineno, error.offset, line)) from None
        raise


def is_quiet(source):
    """Return whether a semicolon ends the code of a cell.

    Examples
    --------
    >>> is_quiet("x;  # what is left out"), is_quiet("x  # more;")
    (True, False)
    """
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return [token.string for token in tokens if token.type not in COMMENTS][-1:] == [";"]


def offer(value, name, **options):
    """Return what the method of an object gives; None if it has none, or one that fails.

    As in IPython, methods of a class's objects are not the class's own, and an object that answers to every name is not
    believed.
    """
    try:
        method = None if hasattr(value, "_nobody_has_a_method_of_this_name") else getattr(value, name, None)
        if callable(method) and (isinstance(method, MethodType) or not isinstance(value, type)):
            content = method(**options)
            return content[0] if isinstance(content, tuple) and content else content  # data, and what is said of them
    except Exception as error:
        print(f"{name} failed: {type(error).__name__}: {error}", file=sys.stderr)


def shown(value):
    """Return the output that shows `value`.

    Examples
    --------
    >>> shown([1, 2])
    {'plain': '[1, 2]'}
    >>> class Heading:
    ...     def _repr_html_(self):
    ...         return "<h1>Title</h1>"
    >>> shown(Heading())
    {'html': '<h1>Title</h1>'}
    """
    if figure_type := getattr(sys.modules.get("matplotlib.figure"), "Figure", None):
        if isinstance(value, figure_type):
            return {"png": picture(value)}
    bundle = offer(value, "_repr_mimebundle_", include=None, exclude=None)
    bundle = bundle if isinstance(bundle, dict) else {}
    for kind, (content_type, types) in RICH.items():
        content = bundle[content_type] if content_type in bundle else offer(value, f"_repr_{kind}_")
        if isinstance(content, types):
            return {kind: b64encode(content).decode() if isinstance(content, bytes) else content}
    return {"plain": repr(value)}


def picture(figure):
    """Return a figure as Jupyter's inline backend draws it: PNG, cut to what is drawn, in base64."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=figure.dpi, bbox_inches="tight")
    return b64encode(buffer.getvalue()).decode()


def show_figures():
    """Show and close the figures that a cell has left open."""
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.show()


def short_traceback(error, name):
    r"""Return what a reader needs of a traceback: the lines of cells, and the line that raised.

    Examples
    --------
    >>> try:
    ...     execute("import json\njson.loads('?')", "cell 3")
    ... except ValueError as error:
    ...     print(short_traceback(error, "cell 3"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
      File "cell 3", line 2, in <module>
        json.loads('?')
      ...
    json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)
    """
    if isinstance(error, ModuleNotFoundError) and error.name and "." not in error.name:
        error.add_note(NOT_HERE)
    short = traceback.TracebackException.from_exception(error)
    first = next((k for k, frame in enumerate(short.stack) if frame.filename == name), len(short.stack))
    frames = short.stack[first:]
    kept = [frame for frame in frames[:-1] if frame.filename.startswith("cell ")] + frames[-1:]
    short.stack = traceback.StackSummary.from_list(frame for frame in kept if frame.filename != __file__)
    return "".join(short.format(chain=False)).rstrip()


def evaluate(expression):
    """Return the text of an expression's value, among the names of the cells and of loaded modules.

    Examples
    --------
    >>> evaluate("sys.maxsize > 0")
    'True'
    """
    return str(eval(expression, NAMES, ChainMap(NAMES, sys.modules)))
