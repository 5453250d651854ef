"""The house: versions, licences and citation stand in one place; what is imported is declared; the wheel is clean.

And what importing the package loads, and what it offers.
"""

import ast
import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml
from execute_book import NOTEBOOKS
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import amptutorial
from amptutorial.corpus import docstring_texts

ROOT = Path(__file__).parents[1]
PROJECT, COURSE = (tomllib.loads((ROOT / path / "pyproject.toml").read_text())["project"] for path in (".", "course"))
CONSTRAINTS = {
    canonicalize_name(name): Version(version)
    for name, version in (line.split("==") for line in (ROOT / "constraints.txt").read_text().split())
}
MAKEFILE = (ROOT / "Makefile").read_text()
# What a distribution needs, and what each extra of the package adds; the course needs the package.
EXTRAS = PROJECT["optional-dependencies"] | {"course": [each for each in COURSE["dependencies"] if "==" not in each]}
PYTHONS = ("python", ".venv/bin/python")  # without a Makefile, and after make setup
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
# Which extras the files of a folder may import from. One that imports from others tells its reader what to install.
MAY_IMPORT = {
    "amptutorial": ("frames",),
    "benchmarks": (),
    "book": ("run",),
    "course": ("run", "test", "course"),
    "studies": ("book", "test"),
    "tests": ("book", "course", "test"),
    "tools": ("book",),
}


def requirements(*extras):
    """Return what the package and these extras need; an extra may bring another."""
    lines = [*PROJECT["dependencies"], *(line for extra in extras for line in EXTRAS[extra])]
    found = [Requirement(line) for line in lines]
    brought = {extra for each in found if each.name == PROJECT["name"] for extra in each.extras}
    others = [each for each in found if each.name != PROJECT["name"]]
    return others + (requirements(*brought) if brought else [])


@pytest.mark.parametrize("requirement", requirements(*EXTRAS), ids=str)
def test_the_tested_version_lies_in_the_declared_range(requirement):
    assert CONSTRAINTS[canonicalize_name(requirement.name)] in requirement.specifier


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_the_lowest_versions_are_those_of_every_dependency(tmp_path):
    for folder in (".", "course"):
        (tmp_path / folder).mkdir(exist_ok=True)
        shutil.copy(ROOT / folder / "pyproject.toml", tmp_path / folder)
    subprocess.run(["make", "-s", "-f", ROOT / "Makefile", "lowest.txt"], cwd=tmp_path, check=True)
    lowest = dict(line.split("==") for line in (tmp_path / "lowest.txt").read_text().split())
    assert set(lowest) == {requirement.name for requirement in requirements(*EXTRAS)}
    assert all(Version(lowest[each.name]) in each.specifier for each in requirements(*EXTRAS))


def source_of(path):
    """Return the Python of a module or of a notebook, without the commands that only a notebook knows."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return text
    cells = ["".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    return re.sub(r"^[%!].*$", "pass", "\n".join(cells), flags=re.MULTILINE)


def imported(path):
    """Return the names of the top-level packages that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(source_of(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.split(".")[0]


@cache
def distributions():
    """Return the distributions that bring each package: ``{"sklearn": {"scikit-learn"}, ...}``."""
    return {name: set(map(canonicalize_name, found)) for name, found in packages_distributions().items()}


@pytest.mark.slow
@pytest.mark.parametrize("place", MAY_IMPORT)
def test_what_is_imported_is_declared(place):
    helpers = [*(ROOT / "tools").glob("*.py"), *ROOT.glob("tests/*.py"), *ROOT.glob("course/**/*.py")]
    known = {"amptutorial", "amptutorial_course", "benchmarks", "studies", "__main__", *sys.stdlib_module_names}
    known |= {path.stem for path in helpers}
    undeclared = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in [*(ROOT / place).rglob("*.py"), *(ROOT / place).rglob("*.ipynb")]
        for name in imported(path)
        if name not in known and not distributions().get(name, set()) & declared(path, MAY_IMPORT[place])
    }
    assert not undeclared


def declared(path, extras):
    """Return the distributions that a file may import from: it or its package may name extras with pip install."""
    texts = [source_of(each) for each in (path, path.parent / "__init__.py") if each.is_file()]
    told = re.findall(r"pip install amptutorial\[(\w+)\]", "\n".join(texts))
    return {canonicalize_name(requirement.name) for requirement in requirements(*extras, *told)}


def test_binder_installs_what_runs_the_book_in_the_tested_versions():
    python, pip, packages = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    assert pip == "pip"
    assert packages == {"pip": ["-c constraints.txt", "-e .[run]", "-e ./course"]}
    assert Version(python.removeprefix("python=")) in Requirement(f"python{PROJECT['requires-python']}").specifier


def test_every_place_names_this_version():
    names = "README.md", "book/howto.md", "CHANGELOG.md"
    pages = {name: (ROOT / name).read_text() for name in names}
    binder = r"https://mybinder\.org/v2/gh/amptutorial/amptutorial/([^?]+)"
    tags = [tag for page in ("README.md", "book/howto.md") for tag in set(re.findall(binder, pages[page]))]
    notebooks = [*ROOT.glob("book/**/*.ipynb"), *ROOT.glob("course/assignments/*/brief.ipynb")]
    for notebook in notebooks:  # on Colab they begin by installing this version
        first = next(cell for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code")
        assert first["metadata"]["tags"] == ["remove-cell"]
        tags += re.findall(r'amptutorial/amptutorial@([^"]+)"', "".join(first["source"]))
    assert tags == [f"v{PROJECT['version']}"] * (2 + len(notebooks))
    assert re.search(rf"^## {re.escape(PROJECT['version'])}\b", pages["CHANGELOG.md"], re.MULTILINE)
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (citation["version"], citation["license"]) == (PROJECT["version"], PROJECT["license"])
    assert citation["preferred-citation"]["title"] == "Estimation of Embedding Vectors in High Dimensions"


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_make_or_do_without_it_where_there_may_be_none(workflow):
    jobs = yaml.safe_load(workflow.read_text())["jobs"].values()
    commands = [step["run"] for job in jobs for step in job["steps"] if "run" in step]
    assert commands
    for program, *arguments in map(str.split, commands):
        assert program == "make" and re.search(rf"^{arguments[0]}:", MAKEFILE, re.MULTILINE) or program in PYTHONS


def test_every_python_that_is_promised_is_tested():
    jobs = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())["jobs"]
    on_linux = {row["python"] for row in jobs["pythons"]["strategy"]["matrix"]["include"]}
    elsewhere = jobs["systems"]["strategy"]["matrix"]["python"]
    promised = [each.split(" :: ")[-1] for each in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", each)]
    assert set(promised) == on_linux
    assert elsewhere == [promised[0], promised[-1]]
    assert PROJECT["requires-python"] == f">={promised[0]}"


def test_the_package_has_no_assert_and_no_line_that_begins_with_a_matrix_product():
    """Python leaves asserts out where it optimises; Sphinx takes such a line for a decorator, and includes too much."""
    for path in (ROOT / "amptutorial").rglob("*.py"):
        text = path.read_text()
        assert not re.search("^ *@ ", text, re.MULTILINE), path
        assert not any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(text))), path


REPORTS = """
from amptutorial import Ridge, check_denoiser
from amptutorial.checks import CHECKS
class Sevenfold(Ridge):
    def denoise(self, P, r, F):
        P *= 7
        return P, 0 * F
    def mean_jacobian(self, P, r, F):
        return 0 * F
for denoiser in (Sevenfold(1.0), Ridge(1.0)):
    print(check_denoiser(denoiser))
for name in ("no_mutation", "jacobian"):
    try:
        CHECKS[name](Sevenfold(1.0))
    except AssertionError as failure:
        print(failure)
"""


@pytest.mark.slow
def test_the_kit_says_the_same_with_and_without_assertions():
    report, *others = (
        subprocess.run([sys.executable, *options, "-c", REPORTS], check=True, capture_output=True, text=True).stdout
        for options in ([], ["-O"], ["-OO"])
    )
    assert others == [report, report]
    assert report.count("FAIL  ") > 5 and "13 of 13 checks passed" in report
    assert "FAIL  jacobian: " in report and "FAIL  state_evolution: " in report and "The promise: P, r and F" in report


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_make_compares_each_notebook_once_runs_all_tests_and_opens_pages_when_they_are_built():
    planned = subprocess.check_output(["make", "-n", "of-the-package", "of-the-site", "rest"], cwd=ROOT, text=True)
    first, others = (names.split() for names in re.findall('compare NAME="(.*)"', planned))
    assert len(first) == 2 and sorted(first + others) == sorted(path.relative_to(ROOT).as_posix() for path in NOTEBOOKS)
    package, site = (set(words.split()) for words in re.findall('-m "not slow" (.*)', planned))
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert package | site > set(settings["testpaths"])
    tests = [*ROOT.glob("tests/test_*.py"), *ROOT.glob("course/tests/test_*.py")]
    asking = [path for path in tests if re.search(r"^def \w+\(.*\bsite\b", path.read_text(), re.MULTILINE)]
    opening = {path.relative_to(ROOT).as_posix() for path in asking}
    assert opening < site and {f"--ignore={path}" for path in opening} < package


def test_make_help_names_targets_that_there_are():
    targets = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)[1].split()
    named = re.findall(r'"make ([\w-]+) ', MAKEFILE)
    assert set(named) < set(targets) and len(named) > 5


def test_the_wheel_holds_the_package_alone(tmp_path):
    left_out = shutil.ignore_patterns(".*", "_build", "build", "*.egg-info")
    source = shutil.copytree(ROOT, tmp_path / "source", ignore=left_out)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, source]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    info = f"amptutorial-{PROJECT['version']}.dist-info/"
    names = {name for name in zipfile.ZipFile(wheel).namelist() if not name.startswith(info)}
    package = ROOT / "amptutorial"
    expected = [*package.rglob("*.py"), *package.glob("paper/results/*.json"), *package.glob("corpus/*.counts")]
    assert names == {path.relative_to(ROOT).as_posix() for path in expected}


@pytest.mark.slow
def test_the_examples_in_the_readme_run(capsys):
    first, second, *_ = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    names = {"my_texts": docstring_texts(["numpy"])}
    for example, printed in ((first, "nats better than by frequency alone"), (second, "error -> ")):
        exec(compile(example, "README.md", "exec"), names)
        assert printed in capsys.readouterr().out
        assert sum(bool(line.strip()) for line in example.splitlines()) <= 10


LATER = ("scipy.stats", "sklearn", "pandas", "joblib", "matplotlib", "pooch", "simplemma")
ON_DEMAND = (
    *("AMPEmbedding", "check_denoiser", "cooccurrence", "corpus_from_texts"),
    *("load_docstrings", "load_movie_reviews"),
)


def run(code):
    answer = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return answer.stdout.strip()


def test_the_core_loads_neither_statistics_nor_scikit_learn():
    statement = (
        "import amptutorial; dir(amptutorial); from amptutorial import Ridge, biased_low_rank_amp, state_evolution"
    )
    statement += "; import amptutorial.neighbours, amptutorial.spectrum, amptutorial.checks"
    assert run(f"{statement}; import sys; print([name for name in {LATER} if name in sys.modules])") == "[]"


def test_what_is_loaded_on_demand_is_there_when_asked_for_and_a_star_brings_it():
    names = ", ".join(ON_DEMAND)
    code = f"from amptutorial import {names}; print(*(found.__name__ for found in ({names})))\ndel {names}"
    code += "\nfrom amptutorial import *; import amptutorial; print(*sorted(set(amptutorial.__all__) - set(globals())))"
    assert run(code).split() == list(ON_DEMAND)
    assert set(ON_DEMAND) <= set(dir(amptutorial)) and set(ON_DEMAND) <= set(amptutorial.__all__)


def test_what_is_not_there_is_named():
    with pytest.raises(AttributeError, match="module 'amptutorial' has no attribute 'Posterior'"):
        amptutorial.Posterior  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'Posterior'"):
        from amptutorial import Posterior  # noqa: F401


def test_a_type_checker_sees_what_is_loaded_on_demand():
    """The imports that only it reads name the objects that are returned."""
    tree = ast.parse((ROOT / "amptutorial/__init__.py").read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name: node.module for node in block.body for alias in node.names}
    assert seen == amptutorial._ON_DEMAND and set(seen) == set(ON_DEMAND)
