"""Write the two pages of the book that follow from something else: the ledger and the API reference."""

import pkgutil
from collections import Counter
from pathlib import Path

import nbformat
import yaml

ROOT = Path(__file__).parents[1]
BOOK = ROOT / "book"
STATUSES = ("as printed", "corrected", "stated")
DATA_FLOW = (
    *("laws", "model", "bias", "score", "denoisers", "amp", "state_evolution"),
    *("metrics", "baselines", "spectrum", "bayes_optimal"),
    *("corpus", "sampling", "poisson", "heldout", "reexpansion", "estimator"),
    *("shards", "sharded", "sharded_embedding"),
    *(
        "experiments",
        "neighbours",
        "topic_models",
        "minimisers",
        "methods",
        "comparison",
        "race",
        "reproduce",
        "figures",
        "widgets",
    ),
    *("beliefs", "checks", "assignments", "grading"),
)
GENERATED = "% Written by tools/render_pages.py.\n\n"

LEDGER_HEAD = """(ledger)=
# The ledger

Every labelled statement of the paper {cite}`azar2023estimation`, in the paper's order: where this book teaches it,
what computes it, which tests verify it, and whether it stands as printed. *Stated* means: used without a proof here.
A test `bias::margins_and_normalisation` is the function `test_margins_and_normalisation` in `tests/test_bias.py`.
Numbers and labels belong to the text that the {ref}`errata <errata>` name: (17) in 3.3 is equation 17, in Section 3.3.

"""

TABLE_HEAD = """| statement | status | taught in | computed by | verified by |
|---|---|---|---|---|"""

API_HEAD = """(api)=
# API reference

Data flows one way through these modules, and they are listed in that order.

"""

API_SECTION = """## `{module}`

```{{eval-rst}}
.. automodule:: {module}
   :members:
   :member-order: bysource
```
"""


def title_of(page):
    """Return the text of the first heading of a chapter, page or notebook."""
    lines = page.read_text(encoding="utf-8").splitlines()
    if page.suffix == ".ipynb":
        cells = nbformat.read(page, as_version=4).cells
        lines = [line for cell in cells if cell.cell_type == "markdown" for line in cell.source.splitlines()]
    return next(line.removeprefix("# ") for line in lines if line.startswith("# "))


def taught(entry):
    """Return the link to the place in the book that teaches `entry`."""
    file, anchor = entry["chapter"].split("#")
    return f"{{ref}}`{title_of(BOOK / file)} <{anchor}>`"


def computed(entry):
    """Return links to the objects that compute `entry`; private ones are named only."""
    shown = [(name, name.split(".", 2)[2]) for name in entry["code"]]
    return "<br>".join(f"`{short}`" if "._" in name else f"{{py:obj}}`{short} <{name}>`" for name, short in shown)


def verified(entry):
    """Return the tests of `entry` as code, without what all their names share."""
    tests = [test.removeprefix("tests/test_").split(".py::test_") for test in entry["tests"]]
    return "<br>".join(f"`{file}::{name}`" for file, name in tests)


def stands(entry):
    """Return the status of `entry`, with its erratum and note."""
    erratum = f" ({{ref}}`no. {entry['erratum']} <erratum-{entry['erratum']}>`)" if entry["erratum"] else ""
    note = f"<br>{entry['note']}" if entry["note"] else ""
    return entry["status"] + erratum + note


def row(entry):
    """Return the line of the table for `entry`."""
    statement = f"{entry['title']}<br>{entry['number']} in {entry['section']}, `{entry['label']}`"
    cells = (statement, stands(entry), taught(entry), computed(entry), verified(entry))
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def ledger_page(entries):
    """Return the ledger's page as MyST text."""
    counts = Counter(entry["status"] for entry in entries)
    shares = ", ".join(f"{counts[status]} {status}" for status in STATUSES if counts[status])
    table = "\n".join([TABLE_HEAD, *map(row, entries)])
    return f"{GENERATED}{LEDGER_HEAD}Of {len(entries)} statements: {shares}.\n\n{table}\n"


def public_modules():
    """Return the names of the package's public modules, in the order in which data flows."""
    modules = pkgutil.iter_modules([ROOT / "amptutorial"])
    names = {module.name for module in modules if not module.name.startswith("_")}
    return [name for name in DATA_FLOW if name in names] + sorted(names.difference(DATA_FLOW))


def api_page():
    """Return the API reference as MyST text."""
    sections = (API_SECTION.format(module=f"amptutorial.{name}") for name in public_modules())
    return GENERATED + API_HEAD + "\n".join(sections)


def pages():
    """Return each generated page's path and text."""
    entries = yaml.safe_load((BOOK / "ledger.yml").read_text(encoding="utf-8"))
    return {BOOK / "ledger.md": ledger_page(entries), BOOK / "api.md": api_page()}


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
