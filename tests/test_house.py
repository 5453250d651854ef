"""The house: versions, licences and citation stand in one place; what is imported is declared; the wheel is clean.

And what importing the package loads, and what it offers.
"""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from functools import cache
from importlib.metadata import packages_distributions
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
import yaml
from execute_book import NOTEBOOKS
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import amptutorial
from amptutorial.paper.reproduce import load_results

ROOT = Path(__file__).parents[1]
VERSION = amptutorial.__version__
PROJECT, COURSE = (tomllib.loads((ROOT / path / "pyproject.toml").read_text())["project"] for path in (".", "course"))
CONSTRAINTS = {
    canonicalize_name(name): Version(version)
    for name, version in (line.split("==") for line in (ROOT / "constraints.txt").read_text().split())
}
MAKEFILE = (ROOT / "Makefile").read_text()
# What a distribution needs, and what each extra of the package adds; the course needs the package.
EXTRAS = PROJECT["optional-dependencies"] | COURSE["optional-dependencies"]
EXTRAS |= {"course": [each for each in COURSE["dependencies"] if "==" not in each]}
# Without a Makefile, after make setup, and what publishes a release.
PROGRAMS = ("python", ".venv/bin/python", "gh")
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
# Which extras the files of a folder may import from. What is of others is imported in a block `with extra(NAME)`.
MAY_IMPORT = {"amptutorial": (), "benchmarks": (), "book": ("run",), "tools": ("book",), "studies": ("book", "test")}
MAY_IMPORT |= {"course": ("run", "test", "course"), "tests": ("book", "course", "test")}


def requirements(*extras):
    """Return what the package and these extras need; an extra may bring another."""
    lines = [*PROJECT["dependencies"], *(line for extra in extras for line in EXTRAS[extra])]
    found = [Requirement(line) for line in lines]
    brought = {extra for each in found if each.name == PROJECT["name"] for extra in each.extras}
    others = [each for each in found if each.name != PROJECT["name"]]
    return others + (requirements(*sorted(brought)) if brought else [])


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


def imported(node, extras):
    """Yield each top-level package that is imported below a node, with the extras that it may be of."""
    for child in ast.iter_child_nodes(node):
        named = re.match(r"with extra\('(\w+)'", ast.unparse(child))
        if isinstance(child, ast.Import):
            yield from ((alias.name.split(".")[0], extras) for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and not child.level:
            yield child.module.split(".")[0], extras
        yield from imported(child, (*extras, named[1]) if named else extras)


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
        for name, extras in imported(ast.parse(source_of(path)), MAY_IMPORT[place])
        if name not in known and not distributions().get(name, set()) & declared(extras)
    }
    assert not undeclared


@cache
def declared(extras):
    """Return the names of what the package and these extras need."""
    return {canonicalize_name(requirement.name) for requirement in requirements(*extras)}


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
    assert tags == [f"v{VERSION}"] * (2 + len(notebooks))
    assert re.search(rf"^## {re.escape(VERSION)}\b", pages["CHANGELOG.md"], re.MULTILINE)
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (citation["version"], citation["license"]) == (VERSION, PROJECT["license"])
    assert COURSE["version"] == VERSION and f"amptutorial=={VERSION}" in COURSE["dependencies"]
    assert citation["preferred-citation"]["title"] == "Estimation of Embedding Vectors in High Dimensions"


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_make_or_do_without_it_where_there_may_be_none(workflow):
    jobs = yaml.safe_load(workflow.read_text())["jobs"].values()
    commands = [step["run"] for job in jobs for step in job["steps"] if "run" in step]
    assert commands
    for program, *arguments in map(str.split, commands):
        assert program == "make" and re.search(rf"^{arguments[0]}:", MAKEFILE, re.MULTILINE) or program in PROGRAMS


def test_every_python_that_is_promised_is_tested():
    jobs = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())["jobs"]
    matrices = {name: job["strategy"]["matrix"] for name, job in jobs.items() if "strategy" in job}
    on_linux, of_wheels = ({row["python"] for row in matrices[job]["include"]} for job in ("pythons", "wheels"))
    elsewhere = matrices["systems"]["python"]
    promised = [each.split(" :: ")[-1] for each in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", each)]
    assert set(promised) == on_linux == of_wheels
    assert elsewhere == [promised[0], promised[-1]]
    assert PROJECT["requires-python"] == f">={promised[0]}"


def test_the_package_has_no_assert_and_no_line_that_begins_with_a_matrix_product():
    """Python leaves asserts out where it optimises; Sphinx takes such a line for a decorator, and includes too much."""
    for path in (ROOT / "amptutorial").rglob("*.py"):
        text = path.read_text()
        assert not re.search("^ *@ ", text, re.MULTILINE), path
        assert not any(isinstance(node, ast.Assert) for node in ast.walk(ast.parse(text))), path


@pytest.mark.slow
def test_the_kit_says_the_same_without_assertions_and_docstrings():
    wrong = "type('Wrong', (Ridge,), {'mean_jacobian': lambda self, P, r, F: 0 * F})(1.0)"
    code = f"from amptutorial import Ridge, check_denoiser\nprint(check_denoiser({wrong}))"
    command = [sys.executable, "-c", code]
    report, other = (subprocess.check_output([*command[:1], *more, *command[1:]], text=True) for more in ([], ["-OO"]))
    assert report == other and "FAIL  jacobian: " in report and "the promise: mean_jacobian" in report


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_make_compares_each_notebook_once_runs_all_tests_and_opens_pages_when_they_are_built():
    planned = subprocess.check_output(["make", "-n", "of-the-package", "of-the-course", "rest"], cwd=ROOT, text=True)
    first, others = (names.split() for names in re.findall('compare NAME="(.*)"', planned))
    assert len(first) == 2 and sorted(first + others) == sorted(path.relative_to(ROOT).as_posix() for path in NOTEBOOKS)
    package, course, rest = re.findall('-m "([a-z ]*)" (.*)', planned)
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert {*package[1].split(), *course[1].split()} >= set(settings["testpaths"])
    assert (package[0], course[0], rest[0]) == ("not slow and not pages", "not slow", "slow or pages")
    asking = re.compile(r"^def \w+\(.*\bsite\b", re.MULTILINE)
    assert not [path for path in ROOT.glob("course/tests/test_*.py") if asking.search(path.read_text())]  # no pages
    assert planned.index(" pages OFFLINE=") < planned.index(f'-m "{rest[0]}"')
    targets = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)[1].split()
    assert set(re.findall(r'"make ([\w-]+) ', MAKEFILE)) < set(targets)  # what make help names


def built(folder, tmp_path):
    """Return the wheel that is made of the source distribution of a folder."""
    left_out = shutil.ignore_patterns(".*", "_build", "build", "*.egg-info")
    source = shutil.copytree(ROOT / folder, tmp_path / "source", ignore=left_out)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path, source]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    return zipfile.ZipFile(wheel)


def files(wheel):
    return {name for name in wheel.namelist() if ".dist-info/" not in name}


@pytest.mark.slow
def test_the_wheel_holds_the_package_alone(tmp_path):
    held = ("**/*.py", "paper/results/*.json", "corpus/*.counts", "book/*.npz", "py.typed")
    expected = chain.from_iterable(map((ROOT / "amptutorial").glob, held))
    assert files(built(".", tmp_path)) == {path.relative_to(ROOT).as_posix() for path in expected}


@pytest.mark.slow
def test_the_wheel_of_the_course_holds_what_students_get_and_grades_a_class_in_an_empty_folder(tmp_path):
    wheel, place = built("course", tmp_path), tmp_path / "installed"
    package, given = ROOT / "course/amptutorial_course", ROOT / "course/assignments"
    held = ("**/*.py", "**/templates/*", "py.typed", "grading/worker/calls.csv")
    expected = chain.from_iterable(map(package.glob, held))
    handouts = (path.relative_to(given) for path in [given / "grading.yml", *given.glob("*/*.*")])
    assert files(wheel) == {
        *(path.relative_to(ROOT / "course").as_posix() for path in expected),
        *(f"amptutorial_course/handouts/{path.as_posix()}" for path in handouts),
    }
    wheel.extractall(place)
    (tmp_path / "submissions").mkdir()
    shutil.copy(given / "01_ridge/denoiser.py", tmp_path / "submissions/ada.py")
    grader = [sys.executable, "-m", "amptutorial_course.grading", "--assignment", "1"]
    for arguments in (["submissions", "--out", "grades.csv"], ["--gradescope", "autograder.zip"]):
        environment = {**os.environ, "PYTHONPATH": str(place)}
        done = subprocess.run([*grader, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0 and f"the seed in {place}" in done.stderr, done.stderr
    assert "ada" in (tmp_path / "grades.csv").read_text()


def run(code):
    answer = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return answer.stdout.strip()


# As if no extra were installed.
ALONE = """
import sys
class Absent:
    def find_spec(name, path=None, target=None):
        if name in ("distributed", "gensim", "matplotlib", "nbgrader", "pandas", "pooch", "simplemma"):
            raise ModuleNotFoundError(name=name)
sys.meta_path.insert(0, Absent)
"""


@pytest.mark.slow
def test_the_examples_in_the_readme_run_without_any_extra():
    readme = (ROOT / "README.md").read_text()
    first, table, second = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    texts = "from amptutorial.corpus import docstring_texts\nmy_texts = docstring_texts(['numpy'])\n"
    fresh = "model = AMPEmbedding(n_components='auto', random_state=0)\n"  # as the lines for a table make it
    assert 'AMPEmbedding(n_components="auto", random_state=0)' in table
    printed = run(ALONE + first + "print(model.channel_)\n" + texts + fresh + second)
    said = re.search(r"prints, after some seconds,\n\n```text\n(.*?)```", readme, re.DOTALL)[1]
    assert said + "damped\n" in printed
    assert "nats better than by frequency alone" in printed and "error -> " in printed
    assert all(sum(bool(line.strip()) for line in each.splitlines()) <= 10 for each in (first, table, second))


@pytest.mark.slow
def test_the_lines_of_the_readme_for_a_table_name_its_sites_and_species(tmp_path, monkeypatch):
    pandas = pytest.importorskip("pandas")
    lines = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]
    rng = np.random.default_rng(0)
    rates = np.exp(rng.standard_normal((80, 2)) @ rng.standard_normal((2, 60)))
    names = [f"pond {i}" for i in range(80)], [f"bird {j}" for j in range(60)]
    pandas.DataFrame(rng.poisson(rates), *names).to_csv(tmp_path / "my_table.csv")
    monkeypatch.chdir(tmp_path)
    printed = run(lines + "print(*sites.index[:2], *species.index[:2], sep=',')\n")
    gain, error = map(float, re.match(r"gain (\S+) ± (\S+) nats per count", printed).groups())
    assert gain > 3 * error and printed.endswith("\npond 0,pond 1,bird 0,bird 1")


def test_the_word_of_thirty_counts_has_the_error_of_its_chapter():
    chapter = (ROOT / "book/10_one_words_error.ipynb").read_text()
    measured, predicted = re.search(
        r"thirty counts has an error of about (.{4}) \(predicted (.{4})\)", chapter
    ).groups()
    assert f"30 counts: error {predicted}" in chapter
    for page in ("README.md", "book/intro.md"):
        said = " ".join((ROOT / page).read_text().split())
        assert f"{predicted}, where knowing nothing is 1. Measured on twelve" in said
        assert f"drawn from the model, it is {measured}" in said


def test_what_the_readme_says_of_real_texts_is_stored():
    stored = load_results("text")["instances"]
    rows = zip(*(stored[name] for name in ("corpus", "method", "d", "split", "hidden", "gain")), strict=True)
    gains = {tuple(key): gain for *key, split, hidden, gain in rows if (split, hidden) == (0, "pairs")}
    readme = (ROOT / "README.md").read_text()
    rows = {"SVD | 10": ("svd_of_ratios", 10), "AMP | 10": ("amp", 10), "AMP | 30": ("amp", 0)}  # 0: the best size
    rows["skip-gram (word2vec) | 10"] = "skip_gram", 10
    rows |= {"SVD | 200": ("svd_of_ratios", 0), "the most similar documents | none": ("neighbours", 0)}
    rows["AMP mixed with the most similar documents | 10"] = "amp_neighbours", 10
    for row, of in rows.items():
        assert f"\n| {row} | {gains['docstrings', *of]:.2f} |\n" in readme
    said = " ".join(readme.split())
    minimised = f"gains as much as AMP, here {gains['docstrings', 'lbfgs', 10]:.2f}."
    assert f"A plain minimiser of AMP's Poisson loss with two ridges that it chooses {minimised}" in said
    chapter = (ROOT / "book/14_real_text.ipynb").read_text()
    fastest, slowest = re.search(r"\"a minimiser takes (\d+) to (\d+) times the seconds", chapter).groups()
    assert f"minimisers take {fastest} to {slowest} times as long." in said
    where = (stored["corpus"] == "docstrings") & (stored["hidden"] == "pairs") & (stored["split"] == 0)
    for method, table in (("amp", "damped"), ("lbfgs", "damped"), ("neighbours", "damped"), ("svd_of_ratios", "roots")):
        assert all(f"table {table}" in str(chosen) for chosen in stored["chosen"][where & (stored["method"] == method)])
    vectors = {key: gain for key, gain in gains.items() if key[0] == "docstrings" and "neighbours" not in key[1]}
    assert max(vectors.values()) < gains["docstrings", "neighbours", 10] - 0.1
    for (method, d), ahead in {("svd_of_ratios", 0): 4, ("lbfgs", 10): 3}.items():
        of = (stored["method"] == method) & (stored["d"] == d) & (stored["against"] == "amp")
        of &= (stored["hidden"] == "pairs") & (stored["split"] == 0)
        leads = stored["lead"][of] / stored["lead_error"][of]
        assert ((leads < -2).sum(), (leads > 2).sum()) == (ahead, 2)
    assert "(ahead on four of the book's eight texts, behind on two)" in said
    assert "it is ahead of AMP on three and behind on two" in said
    for corpus in ("reviews", "speeches"):
        assert max(gains[corpus, "svd_of_ratios", d] for d in (0, 10)) < gains[corpus, "amp", 10]


NEEDS = {
    "amptutorial.AMPEmbedding().frames()": "pandas, amptutorial[frames]",
    "amptutorial.corpus_from_texts(['words'])": "simplemma, amptutorial[texts]",
    "amptutorial.load_docstrings(['numpy'])": "simplemma, amptutorial[texts]",
    "import amptutorial.corpus.archive as archive; archive._download()": "pooch, amptutorial[texts]",
    "import amptutorial.book.figures": "matplotlib, amptutorial[run]",
    "import amptutorial.book.widgets": "matplotlib, amptutorial[run]",
    "import amptutorial.cluster.tasks as tasks; tasks.check_client(None)": "distributed, amptutorial[dask]",
    "import studies.text.minimisers as fits; fits._sampled_factors(None, 1, None, epochs=1, negative=1)":
        "gensim, amptutorial[rivals]",
    "import amptutorial_course.grading.nbgrader": "nbgrader, amptutorial-course[nbgrader]",
}  # fmt: skip
ASK = """
import amptutorial
for statement in {}:
    try:
        exec(statement)
        print(statement)
    except ModuleNotFoundError as error:
        print(error)
"""


@pytest.mark.slow
def test_what_an_extra_brings_is_asked_for_with_a_command_that_installs_it():
    found = run(f"{ALONE}sys.path.append({str(ROOT)!r})\n{ASK.format(list(NEEDS))}").splitlines()
    place = "git+https://github.com/amptutorial/amptutorial"
    for line, (statement, needed) in zip(found, NEEDS.items(), strict=True):
        name, extra = needed.split(", ")
        where = f"{place}#subdirectory=course" if "course" in extra else place
        told = f'{name} is not installed. It comes with an extra: pip install "{extra} @ {where}"'
        assert line == told, statement
        distribution, key = extra.removesuffix("]").split("[")
        brought = requirements(key) if distribution == "amptutorial" else map(Requirement, EXTRAS[key])
        assert name in {requirement.name for requirement in brought}


LATER = "scipy.stats sklearn pandas joblib matplotlib pooch simplemma".split()
ON_DEMAND = "AMPEmbedding check_denoiser cooccurrence corpus_from_texts load_docstrings load_movie_reviews".split()


def test_what_is_loaded_on_demand_is_there_when_asked_for_and_not_before_and_a_star_brings_it():
    """Nor does the core load statistics or scikit-learn, and stored results are read without the latter."""
    names = ", ".join(ON_DEMAND)
    code = "import amptutorial, sys; dir(amptutorial); import amptutorial.spectrum, amptutorial.checks"
    code += "\nfrom amptutorial import Ridge, biased_low_rank_amp, state_evolution, neighbours"
    code += f"\nassert not {{*sys.modules}} & {{*{LATER}}}"
    code += "\nfrom amptutorial.paper.reproduce import load_results; assert load_results('l2')"
    code += "\nassert 'sklearn' not in sys.modules"
    code += f"\nfrom amptutorial import {names}; print(*(found.__name__ for found in ({names})))\ndel {names}"
    code += "\nfrom amptutorial import *; print(*sorted(set(amptutorial.__all__) - set(globals())))"
    assert run(code).split() == ON_DEMAND
    assert set(ON_DEMAND) <= set(dir(amptutorial)) and set(ON_DEMAND) <= set(amptutorial.__all__)


def test_what_is_not_there_is_named():
    with pytest.raises(AttributeError, match="module 'amptutorial' has no attribute 'Posterior'"):
        amptutorial.Posterior  # noqa: B018


def test_a_type_checker_sees_what_is_loaded_on_demand():
    """The imports that only it reads name the objects that are returned."""
    tree = ast.parse((ROOT / "amptutorial/__init__.py").read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name: node.module for node in block.body for alias in node.names}
    assert seen == amptutorial._ON_DEMAND and set(seen) == set(ON_DEMAND)
