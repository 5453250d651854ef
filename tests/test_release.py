"""What is published: how to cite, the paper of the project, the recipe, the files of a release."""

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

import amptutorial
from studies import release

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def entries(path):
    """Return the entries of a .bib file by their keys."""
    text = path.read_text(encoding="utf-8")
    return {found[1]: found[0] for found in re.finditer(r"^@\w+\{(\w+),.*?^\}", text, re.DOTALL | re.MULTILINE)}


def test_the_paper_of_the_model_is_cited_as_the_book_cites_it():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())["preferred-citation"]
    entry = entries(ROOT / "book/references.bib")["azar2023estimation"]
    names = [f"{each['family-names']}, {each['given-names']}" for each in cited["authors"]]
    assert re.search(r"author += \{(.*)\}", entry)[1].split(" and ") == names
    for field in ("title", "year", "doi"):
        assert re.search(rf"\b{field} += \{{(.*)\}}", entry)[1] == str(cited[field])
    assert not (ROOT / ".zenodo.json").exists()  # Zenodo would read nothing of CITATION.cff


def test_the_paper_of_the_project_has_the_parts_that_are_asked_for_and_references_that_are_the_books():
    _, front, text = (ROOT / "paper/paper.md").read_text(encoding="utf-8").split("---\n", 2)
    front = yaml.safe_load(front)
    assert {"title", "tags", "authors", "affiliations", "date", "bibliography"} <= set(front)
    assert [each["name"] for each in front["authors"]] == ["The amptutorial developers"]
    headings = re.findall("^# (.*)$", text, re.MULTILINE)
    assert headings[:3] == ["Summary", "Statement of need", "Learning objectives"] and headings[-1] == "References"
    assert len(text.split()) <= 1200
    known, book = entries(ROOT / "paper" / front["bibliography"]), entries(ROOT / "book/references.bib")
    assert set(re.findall(r"@(\w+)", text)) == set(known)
    assert all(book[key] == entry for key, entry in known.items())


def rendered(value, context):
    """Return what a recipe says with the names of its context filled in."""
    if isinstance(value, dict):
        return {key: rendered(each, context) for key, each in value.items()}
    if isinstance(value, list):
        return [rendered(each, context) for each in value]
    return re.sub(r"\$\{\{ (\w+) \}\}", lambda name: context.get(name[1], name[0]), str(value))


def test_the_recipe_for_conda_asks_for_what_pip_is_asked_for():
    project, build = (PYPROJECT[name] for name in ("project", "build-system"))
    recipe = yaml.safe_load((ROOT / "recipe/recipe.yaml").read_text())
    recipe = rendered(recipe, recipe["context"])
    python, *run = recipe["requirements"]["run"]
    assert [*map(Requirement, run)] == [*map(Requirement, project["dependencies"])]
    assert Requirement(python) == Requirement(f"python{project['requires-python']}")
    assert [*map(Requirement, recipe["requirements"]["host"][2:])] == [*map(Requirement, build["requires"])]
    assert recipe["package"] == {"name": project["name"], "version": amptutorial.__version__}
    assert recipe["build"]["noarch"] == "python"
    about = {"summary": "description", "license": "license"}
    assert all(recipe["about"][name] == project[field] for name, field in about.items())
    assert [recipe["about"][name] for name in ("homepage", "repository")] == list(project["urls"].values())
    assert [recipe["about"]["license_file"]] == project["license-files"]


HISTORY = shutil.which("git") and (ROOT / ".git").exists()
needs_history = pytest.mark.skipif(not HISTORY, reason="a copy without its history")


@needs_history
def test_a_version_is_written_into_every_place_that_names_it(tmp_path):
    release.copy_source(tmp_path)
    release.rename(tmp_path, "9.8.7")
    old = re.compile(rf"(?<![\d.])(?<!>=){re.escape(amptutorial.__version__)}(?![.\d])")
    kept = {"CHANGELOG.md", "constraints.txt"}  # whose heading takes a date too; which names others
    elsewhere = ("tests/formats/", "tools/offline/")
    files = {path.relative_to(tmp_path).as_posix(): path for path in tmp_path.rglob("*.*") if path.is_file()}
    asked = {name: path for name, path in files.items() if name not in kept and not name.startswith(elsewhere)}
    assert not [name for name, path in asked.items() if old.search(path.read_text("utf-8", errors="ignore"))]
    assert '"9.8.7"' in (tmp_path / "amptutorial/__init__.py").read_text()


def test_a_tag_is_of_this_version_and_its_heading_has_a_date():
    version = amptutorial.__version__
    assert release.refused(f"v{version}", f"# Changelog\n\n## {version} (2027-01-05)\n") is None
    assert "has no date" in release.refused(f"v{version}", f"## {version} (unreleased)")
    assert "is not v" in release.refused(version, f"## {version} (2027-01-05)")


@needs_history
@pytest.mark.slow
def test_the_same_commit_gives_the_same_files_with_the_contents_that_are_listed(tmp_path):
    first, second = (release.make(tmp_path / name) for name in ("first", "second"))
    sums = [release.checksums(tmp_path / name) for name in ("first", "second")]
    assert len(first) == 4 and sums[0] == sums[1]
    assert release.contents(first) == release.CONTENTS.read_text()
    (tmp_path / "second" / release.SUMS).write_text(sums[0])
    if shutil.which("sha256sum"):
        subprocess.run(["sha256sum", "--check", release.SUMS], cwd=tmp_path / "second", check=True)


def test_what_a_contributor_is_sent_to_is_there():
    for page in [ROOT / "CONTRIBUTING.md", *(ROOT / ".github").glob("*.md"), ROOT / "paper/paper.md"]:
        text = re.sub("`[^`]*`", "code", page.read_text(encoding="utf-8"))
        places = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
        assert not [place for place in places if not (page.parent / place).exists()], page
        titles = re.findall("^#+ (.*)$", text, re.MULTILINE)
        headings = {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}
        assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= headings, page
    for form in (ROOT / ".github/ISSUE_TEMPLATE").glob("[!c]*.yml"):
        form = yaml.safe_load(form.read_text())
        assert form["name"] and form["description"] and form["body"][0]["validations"]["required"], form["name"]
