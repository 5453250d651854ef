"""The house: one source of truth for versions, licences and citation, and a wheel that holds the package alone."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CONSTRAINTS = {
    canonicalize_name(name): Version(version)
    for name, version in (line.split("==") for line in (ROOT / "constraints.txt").read_text().split())
}
MAKEFILE = (ROOT / "Makefile").read_text()


def load(name):
    return yaml.safe_load((ROOT / name).read_text())


def requirements():
    groups = PROJECT["optional-dependencies"].values()
    return [Requirement(line) for line in [*PROJECT["dependencies"], *(line for group in groups for line in group)]]


@pytest.mark.parametrize("requirement", requirements(), ids=str)
def test_the_tested_version_lies_in_the_declared_range(requirement):
    assert CONSTRAINTS[canonicalize_name(requirement.name)] in requirement.specifier


def test_binder_installs_the_book_with_the_tested_versions():
    python, pip, packages = load("environment.yml")["dependencies"]
    assert pip == "pip"
    assert packages == {"pip": ["-c constraints.txt", "-e .[book]"]}
    assert Version(python.removeprefix("python=")) in Requirement(f"python{PROJECT['requires-python']}").specifier


def test_the_citation_names_this_version_and_licence():
    citation = load("CITATION.cff")
    assert (citation["version"], citation["license"]) == (PROJECT["version"], PROJECT["license"])
    assert citation["preferred-citation"]["title"] == "Estimation of Embedding Vectors in High Dimensions"


def test_the_changelog_describes_this_version():
    assert re.search(rf"^## {re.escape(PROJECT['version'])}\b", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)


@pytest.mark.parametrize("workflow", sorted((ROOT / ".github/workflows").glob("*.yml")), ids=lambda path: path.stem)
def test_workflows_call_targets_of_the_makefile(workflow):
    steps = [step for job in yaml.safe_load(workflow.read_text())["jobs"].values() for step in job["steps"]]
    commands = [step["run"] for step in steps if "run" in step]
    assert commands
    for command in commands:
        make, target, *_ = command.split()
        assert make == "make" and re.search(rf"^{target}:", MAKEFILE, re.MULTILINE)


def test_continuous_integration_runs_make_test():
    script = ROOT / ".ci/run"
    assert os.access(script, os.X_OK)
    assert script.read_text().split("\n")[-2] == "make test"


def test_make_help_names_every_target():
    targets = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)[1].split()
    assert set(re.findall(r'"make (\w+) ', MAKEFILE)) == set(targets) - {"help"}


def test_the_wheel_holds_the_package_alone(tmp_path):
    source = shutil.copytree(
        ROOT, tmp_path / "source", ignore=shutil.ignore_patterns(".*", "_build", "build", "*.egg-info")
    )
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, source]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    info = f"amptutorial-{PROJECT['version']}.dist-info/"
    package = ROOT / "amptutorial"
    expected = {str(path.relative_to(ROOT)) for path in (*package.rglob("*.py"), *package.glob("results/*.json"))}
    assert {name for name in names if not name.startswith(info)} == expected


def test_the_example_in_the_readme_runs(capsys):
    example = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[1]
    exec(compile(example, "README.md", "exec"), {})
    assert "nats better than by frequency alone" in capsys.readouterr().out
    assert sum(bool(line.strip()) for line in example.splitlines()) <= 10
