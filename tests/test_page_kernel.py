"""Python in a page, without a browser: what a cell hands over, and what a page brings along."""

import itertools
import json
import os
import re
import subprocess
import sys
from base64 import b64decode
from itertools import groupby
from pathlib import Path
from zipfile import ZipFile

import pytest
from live_cells import write_archive
from page_kernel import OnDemand, Printed, evaluate, run_cell

ROOT = Path(__file__).parents[1]


def outputs_of(source):
    """Return whether a cell runs to its end, and its outputs."""
    outputs = []
    return run_cell(source, "cell 7", outputs.append), outputs


def in_new_python(code, **more):
    """Return what a fresh interpreter prints that finds the tools of the book."""
    path = os.pathsep.join([str(ROOT / "tools"), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path} | more
    command = [sys.executable, "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout


def test_a_cell_shows_its_last_line_only_and_keeps_its_names():
    import amptutorial  # noqa: F401

    assert outputs_of("kept = 41") == outputs_of("2;") == outputs_of("None") == outputs_of("") == (True, [])
    assert outputs_of("1\nkept + 1") == (True, [{"plain": "42"}])
    assert evaluate("kept") == "41"
    assert evaluate("amptutorial.Ridge.__name__") == "Ridge"  # a module that no cell has named


RICH = "class Rich:\n    def {}(self, **kw):\n        return {}\nRich()"
# What cells show: a cell that ends with a semicolon, or without an error, nothing of it.
SHOWN = [
    *((source, []) for source in ("1;  # why", "1 ;\n\n# why;\n", "(1\n);", "'a'; 2;", "x = [';']\nx;")),
    *((source, [{"plain": "1"}]) for source in ("1  # why;", "1\n# why;")),
    ("'a;'", [{"plain": "'a;'"}]),
    ("1; 2", [{"plain": "2"}]),
    *(
        (f"import sys\nprint('here')\n{end}\nprint('not here')", [{"stdout": "here\n"}])
        for end in ("sys.exit(0)", "sys.exit()", "exit()", "raise SystemExit")
    ),
    (
        "import sys\nprint('a')\ndisplay(1, 2)\nprint('b')\nprint('c', file=sys.stderr)",
        [{"stdout": "a\n"}, {"plain": "1"}, {"plain": "2"}, {"stdout": "b\n"}, {"stderr": "c\n"}],
    ),
    # the richest that an object has
    (RICH.format("_repr_html_", "'<b>2</b>'"), [{"html": "<b>2</b>"}]),
    (RICH.format("_repr_mimebundle_", "{'image/svg+xml': '<svg/>'}"), [{"svg": "<svg/>"}]),
    (RICH.format("_repr_mimebundle_", "{'text/html': '<b>2</b>'}, {'of': 'them'}"), [{"html": "<b>2</b>"}]),
    (RICH.format("_repr_png_", "b'12'"), [{"png": "MTI="}]),
    (RICH.format("_repr_svg_", "'<svg/>', {'width': 3}"), [{"svg": "<svg/>"}]),
    ("class Own:\n    @classmethod\n    def _repr_html_(cls):\n        return cls.__name__\nOwn", [{"html": "Own"}]),
]


@pytest.mark.parametrize(("source", "shown"), SHOWN)
def test_a_cell_shows_what_it_prints_and_its_last_line(source, shown):
    assert outputs_of(source) == (True, shown)


@pytest.fixture
def on_demand(tmp_path, monkeypatch):
    """Return the finder of a module, and a list of what happens when it is asked to fetch: an error, or None."""
    answers = []

    def fetch(module):
        if error := answers.pop(0):
            raise error
        (tmp_path / f"{module}.py").write_text("value = 42")

    finder = OnDemand(["come_lately"], fetch)
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    monkeypatch.syspath_prepend(tmp_path)
    yield answers
    sys.modules.pop("come_lately", None)


def test_a_package_comes_once_when_a_cell_imports_it(on_demand):
    on_demand.append(None)
    assert outputs_of("import json, come_lately\ncome_lately.value")[1] == [{"plain": "42"}]
    assert outputs_of("import sys\ndel sys.modules['come_lately']\nimport come_lately") == (True, [])


def test_a_package_that_does_not_come_is_missing_until_it_comes(on_demand):
    on_demand += [OSError("no network"), None]
    fine, [output] = outputs_of("import come_lately")
    assert not fine
    assert output["error"].endswith("ModuleNotFoundError: come_lately could not be fetched (no network)")
    assert outputs_of("import come_lately") == (True, [])


@pytest.mark.slow
def test_scipy_statistics_are_loaded_when_they_are_used():
    in_new_python("""import sys
from page_kernel import arrange_imports
arrange_imports([], None)
from amptutorial import AMPEmbedding
import scipy.stats
assert "scipy.stats._stats_py" not in sys.modules
from scipy.stats import norm
assert norm.cdf(0) == scipy.stats.norm.cdf(0) == 0.5""")


def test_a_long_run_hands_over_what_it_prints_before_it_ends():
    seen = []
    stream = Printed("stdout")
    stream.begin(seen.append)
    stream.handed -= 1
    stream.write("early")
    stream.write("late")
    assert seen == [{"stdout": "early"}]
    stream.flush()
    assert seen == [{"stdout": "early"}, {"stdout": "late"}]


def test_an_object_whose_pictures_are_none_shows_its_text():
    """As in IPython: of a class, of one that answers to every name, of a method that fails or gives something else."""
    methods = "_repr_html_", "_repr_svg_", "_repr_png_", "_repr_mimebundle_"
    for method, body in itertools.product(methods, ("return None", "return 3", "return []", "return ()", "1 / 0")):
        source = f"class Poor:\n    __repr__ = lambda self: 'text'\n    def {method}(self):\n        {body}\n"
        fine, outputs = outputs_of(f"{source}Poor()")
        assert fine and outputs[-1] == {"plain": "text"}
        told = [{"stderr": f"{method} failed: ZeroDivisionError: division by zero\n"}]
        assert method == "_repr_mimebundle_" or outputs[:-1] == (told if body == "1 / 0" else [])
        assert outputs_of(f"{source}Poor")[1] == [{"plain": "<class '__main__.Poor'>"}]
    for value in ("sklearn.linear_model.Ridge", "amptutorial.AMPEmbedding", "unittest.mock.MagicMock()"):
        module = value.rpartition(".")[0]
        _, [output] = outputs_of(f"import {module}\n{value}")
        assert output["plain"].startswith("<"), value


def test_streams_that_a_cell_keeps_write_where_a_later_cell_runs():
    kept = "import functools, logging, sys\nlog = logging.Logger('mine')\nlog.addHandler(logging.StreamHandler())"
    kept += "\nsay = functools.partial(print, file=sys.stderr)\nout = sys.stdout\nwith out:\n    pass"
    assert outputs_of(kept) == (True, [])
    for source, kind in (
        ("log.warning('late')", "stderr"),
        ("say('late')", "stderr"),
        ("print('late', file=out)", "stdout"),
    ):
        assert outputs_of(source) == (True, [{kind: "late\n"}])


@pytest.mark.parametrize("value", ["3", "b'bytes'", "None"])
def test_what_is_no_text_is_refused_where_a_cell_writes_it(value):
    fine, [said, output] = outputs_of(f"import sys\nprint('before')\nsys.stdout.write({value})")
    assert not fine and said == {"stdout": "before\n"}
    assert re.findall(r'File "([^"]+)", line (\d+)', output["error"]) == [("cell 7", "3")]
    assert "TypeError: write() takes a text, not " in output["error"]


def test_an_error_is_short_and_comes_after_what_was_printed():
    source = "import numpy as np\nprint('before')\n\n\ndef solve():\n    np.linalg.inv(np.zeros((2, 2)))\n\n\nsolve()"
    fine, (printed, error) = outputs_of(source)
    assert not fine and printed == {"stdout": "before\n"}
    files = re.findall(r'File "([^"]+)", line (\d+)', error["error"])
    assert files[:2] == [("cell 7", "9"), ("cell 7", "6")] and len(files) == 3
    assert error["error"].endswith("LinAlgError: Singular matrix")
    assert "np.linalg.inv(np.zeros((2, 2)))" in error["error"]


TOO_LONG = [
    ("list(range(10**6))", "plain"),
    ("for k in range(10**5):\n    print(k)", "stdout"),
    ("print('x' * 10**7)", "stdout"),
    ("import sys\nprint('x' * 10**6, file=sys.stderr)", "stderr"),
    ("for k in range(10**4):\n    display('x' * 100)", "plain"),
    ("raise ValueError('x' * 10**6)", "error"),
    ("class Long:\n    def _repr_html_(self):\n        return 'x' * 2 * 10**7\nLong()", "plain"),
]


@pytest.mark.parametrize(("source", "kind"), TOO_LONG)
def test_output_that_is_too_long_for_a_page_is_cut_and_says_so(source, kind):
    _, outputs = outputs_of(source)
    assert {key for output in outputs for key in output} == {kind}
    text = "".join(output[kind] for output in outputs)
    assert len(text) < 1.01e5
    assert text.count("too much for a page") == 1 and text.rstrip().endswith("too much for a page.]")


# How the error ends of cells that cannot run. `json.absent` brings no advice: no package brings it.
REFUSED = {
    "SyntaxError: .*commands of notebooks": [
        *("%matplotlib inline", "%%time", "  %time f()", "!pip install x", "x = !ls", "a = %who"),
    ],
    r"SyntaxError: .*help\(\.\.\.\)": ["np.linalg.inv?", "np??", "?print", "print? "],
    "SyntaxError: .*nothing can be installed": ["pip install polars", "conda install x"],
    "SyntaxError: .*leave out >>>": [">>> 1 + 1", "  >>> for k in x:\n...     print(k)"],
    "SyntaxError: .*async functions alone": ["await f()", "x = await f()", "async with f() as g:\n    pass"],
    "SyntaxError: invalid syntax$": ["x = = 2"],
    "SystemExit: 3$": ["sys.exit(3)"],
    "ZeroDivisionError: division by zero$": ["print('x' * 10**6); 1 / 0"],  # after output that was cut
    "EOFError: A page cannot ask: ": ["input('?')", "sys.stdin.read()", "[*sys.stdin]"],
    "ModuleNotFoundError: No module named 'absent'\nThis package does not come into the page: NumPy, SciPy": [
        *("import absent", "from absent import x", "import absent.part", "import absent as a"),
    ],
    "ModuleNotFoundError: No module named 'json.absent'$": ["import json.absent"],
}


@pytest.mark.parametrize("told", REFUSED)
def test_a_cell_that_cannot_run_says_at_the_end_what_to_do(told):
    for line in REFUSED[told]:
        fine, outputs = outputs_of(f"import sys\n{line}\nsys")
        error = outputs[-1]["error"]
        assert not fine and re.search(rf"\n{told}[^\n]*$", error), line
        assert "Syntax" not in told or error.splitlines()[0].strip() == 'File "cell 7", line 2', line


@pytest.mark.parametrize("source", ["rest = (7\n% 4)\nrest", "'!ls'\n'100 %?'", "async def f():\n    await g()\n\n1"])
def test_what_only_looks_like_a_habit_runs(source):
    assert outputs_of(source)[0]


FIGURES = """import json
from page_kernel import run_cell
shown, failed = [], []
fine = run_cell('''
import matplotlib.pyplot as plt
plt.figure(figsize=(2, 1), dpi=50).subplots().plot([1, 2])
print("one")
plt.show()
print("two")
last = plt.figure()
''', "cell 1", shown.append)
cells = (r"plt.figure().suptitle('$\\frac$');", "1")
print(json.dumps([shown, fine, *(run_cell(cell, "cell 2", failed.append) for cell in cells)]))"""


def test_figures_appear_where_they_are_shown_and_at_the_end_and_one_that_cannot_be_drawn_fails_its_own_cell_alone():
    outputs, *fine = json.loads(in_new_python(FIGURES, MPLBACKEND="module://page_figures"))
    assert fine == [True, False, True]
    kinds = [kind for kind, _ in groupby(next(iter(output)) for output in outputs)]  # text may come in pieces
    assert kinds == ["stdout", "png", "stdout", "png"]
    pictures = [b64decode(output["png"]) for output in outputs if "png" in output]
    assert len(pictures) == 2 and all(picture.startswith(b"\x89PNG") for picture in pictures)


@pytest.mark.slow
def test_the_archive_holds_what_a_page_imports(tmp_path):
    """Python finds there, without this machine's packages of the same names, the package and English."""
    write_archive(tmp_path / "page.zip")
    ZipFile(tmp_path / "page.zip").extractall(tmp_path)
    code = f"""import sys
sys.path[:0] = [{str(tmp_path / "lib")!r}]
import amptutorial, page_kernel, pooch, simplemma, tqdm
from importlib.metadata import version
for module in (amptutorial, page_kernel, pooch, simplemma, tqdm):
    assert module.__file__.startswith({str(tmp_path)!r}), module
assert version("simplemma") and (simplemma.lemmatize("matrices", lang="en") == "matrix")
from amptutorial.paper.reproduce import load_results
load_results("l2")"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
    assert (tmp_path / "course/assignments/01_ridge/denoiser.py").is_file()
    assert (tmp_path / "page.zip").stat().st_size < 2e6
    for name in ("platformdirs", "pooch", "simplemma", "tqdm"):
        assert [path for path in (tmp_path / "lib").glob(f"{name}-*/**/*") if "licen" in path.name.lower()], name
