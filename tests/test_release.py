"""What is published: how to cite, the paper of the project, the recipe, the files of a release."""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]


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
