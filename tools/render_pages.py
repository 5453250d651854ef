"""Write the pages of the book that follow from something else: the ledger, the API reference, and what pages include.

The Makefile does it before each build: Jupyter Book looks for the pages of its table of contents first of all. They are
not committed.
"""

import re
import shutil
from collections import Counter
from functools import cache
from importlib import import_module
from pathlib import Path

import nbformat
import yaml
from chapters import made
from imports import PACKAGE, all_modules, closure, file_of

import amptutorial

ROOT = Path(__file__).parents[1]
BOOK = ROOT / "book"
STATUSES = ("as printed", "corrected", "not decided", "not reproduced", "no claim", "stated")
GENERATED = "% Written by tools/render_pages.py.\n\n"

LEDGER_HEAD = """(ledger)=
# The ledger

Every labelled statement of the paper {cite}`azar2023estimation`, in the paper's order: where this book teaches it,
what computes it, which tests verify it, and whether it stands as printed. *Stated* means: used without a proof here.
Of a figure or table, *corrected* means that a match or a formula of the paper fails in our runs; *not decided*, that
its claim depends on something that the paper leaves open; *not reproduced*, that no choice that we tried gives its
number; *no claim*, that the paper shows it and claims no match. The verdicts are explained in {ref}`ch-paper`.
A test `bias::margins_and_normalisation` is the function `test_margins_and_normalisation` in `tests/test_bias.py`.
Numbers and labels belong to the text that the {ref}`errata <errata>` name: (17) in 3.3 is equation 17, in Section 3.3.

"""

LEDGER_CONTROLS = """```{{raw}} html
<div class="ledger-controls">
<label>Find <input type="search" aria-label="Find"></label>
<label>Status <select aria-label="Status"><option value="">any</option>{statuses}</select></label>
<label>Order <select aria-label="Order"><option value="">of the paper</option>{orders}</select></label>
<output>{count} of {count} statements</output>
</div>
```"""

COLUMNS = ("statement", "status", "taught in", "computed by", "verified by")

LEDGER_FOOT = """
```{raw} html
<script type="module" src="../_static/filter.js"></script>
```
"""

API_HEAD = """(api)=
# API reference

What `amptutorial` offers at its door comes first, by what it is for.

{groups}
```{{eval-rst}}
.. autoclass:: amptutorial.AMPWarning
```

## The modules

Everything else stands in a module. Data flows one way through these modules, and they are listed in that order: each
imports only from those above it. A name with a dot lies in a folder: `corpus` and `checks`, which stand here as one
module each, `cluster` for counts that one process does not hold, `paper` for the paper's experiments and stored
results, `book` for figures and sliders.

| module | what it does |
|---|---|
"""

# What the package offers at its door, as a reader looks for it; the page of a module begins with it, in this order.
DOOR = {
    "Your own counts": ["AMPEmbedding"],
    "Texts": ["corpus_from_texts", "cooccurrence", "load_docstrings", "load_movie_reviews"],
    "The algorithm": [
        "biased_low_rank_amp", "FisherScore", "estimate_bias", "drop_empty", "spectral_start", "random_start",
        "normalised_mse", "AMPWarning",
    ],
    "Denoisers": ["Ridge", "Lasso", "GaussianPosterior", "Denoiser", "check_denoiser"],
    "Tables to try it on": [
        "draw_embedding", "draw_example", "PoissonEmbedding", "GaussianRows",
        "ConstantBias", "ShiftedExponential", "Zipf", "DiscreteBias",
    ],
    "The error, before there are counts": [
        "state_evolution", "gaussian_state_evolution", "start_overlap", "scaled_rows",
    ],
}  # fmt: skip

SUMMARY = """```{{eval-rst}}
.. autosummary::
   :nosignatures:

   {names}
```
"""

STEPS = "\nWhat other modules of the package call:\n\n"

MODULE = """# `amptutorial.{module}`

```{{eval-rst}}
.. automodule:: amptutorial.{module}
```

{tables}
```{{eval-rst}}
{members}```
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
    """Return links to the tests of `entry`, without what all their names share."""
    tests = [test.removeprefix("tests/test_").split(".py::test_") for test in entry["tests"]]
    return "<br>".join(f"{{test}}`{file}::{name}`" for file, name in tests)


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
    controls = LEDGER_CONTROLS.format(
        statuses="".join(f"<option>{status}</option>" for status in STATUSES),
        orders="".join(f'<option value="{k}">by “{name}”</option>' for k, name in enumerate(COLUMNS) if k),
        count=len(entries),
    )
    table = "\n".join([f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|", *map(row, entries)])
    summary = f"Of {len(entries)} statements: {shares}."
    return f"{GENERATED}{LEDGER_HEAD}{summary}\n\n{controls}\n\n{table}\n{LEDGER_FOOT}"


def public_names(module):
    """Return the names that the reference of a module shows: its `__all__`, or what it defines with a docstring."""
    defined = (
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and hasattr(value, "__name__")  # an object has none
        if getattr(value, "__module__", None) == module.__name__ and value.__doc__
    )
    return getattr(module, "__all__", None) or list(defined)


def place_of(value):
    """Return the name of the module in whose reference a class or function stands."""
    page = page_of(value.__module__)
    return PACKAGE if page.startswith("_") else f"{PACKAGE}.{page}"


def at_the_door(title):
    """Return the names of a group of `DOOR` with their modules."""
    return [f"{place_of(getattr(amptutorial, name))}.{name}" for name in DOOR[title]]


@cache
def asked_for():
    """Return the names, with their modules, that the book's code asks for, and the ledger: readers meet them.

    >>> [f"amptutorial.amp.{name}" in asked_for() for name in ("half_step", "check_start")]
    [True, False]
    """
    folders = [ROOT / name for name in ("book", "course/assignments", "benchmarks", "studies")]
    sources = [path for folder in folders for kind in ("*.ipynb", "*.py") for path in folder.rglob(kind)]
    found = set()
    for path in [*sources, BOOK / "ledger.yml"]:
        text = path.read_text(encoding="utf-8")
        found.update(re.findall(rf"{PACKAGE}[.\w]+", text))
        for module, names in re.findall(rf"from ({PACKAGE}[.\w]*) import (\([^)]*\)|\w+(?:, \w+)*)", text):
            found.update(f"{module}.{name}" for name in re.findall(r"\w+", names))
    return found


def summary(names):
    """Return a table of names, each with the first line of its docstring."""
    return SUMMARY.format(names="\n   ".join(names))


def member(name, value):
    """Return the directive that describes a function, a class or an exception."""
    if not isinstance(value, type):
        return f".. autofunction:: {name}\n"
    kind = "exception" if issubclass(value, BaseException) else "class"
    return f".. auto{kind}:: {name}\n   :members:\n   :member-order: bysource\n"


def module_page(name):
    """Return the reference of one module as MyST text: what readers call comes first, then what other modules do."""
    module, door = import_module(f"{PACKAGE}.{name}"), [place for title in DOOR for place in at_the_door(title)]
    places = {f"{module.__name__}.{each}": each for each in public_names(module) if callable(getattr(module, each))}
    first = [places[place] for place in door if place in places]
    told = {word for each in first for word in re.findall(r"\w+", getattr(module, each).__doc__)}  # records, warnings
    first += [each for each in places.values() if each in told - {*first} and isinstance(getattr(module, each), type)]
    first += [each for place, each in places.items() if place in asked_for() and each not in first]
    rest = [each for each in places.values() if each not in first]
    tables = [summary(names) for names in (first, rest) if names and len(places) > 1]
    members = "\n".join(member(each, getattr(module, each)) for each in first + rest)
    return GENERATED + MODULE.format(module=name, tables=STEPS.join(tables), members=members)


def page_of(module):
    """Return the page of the reference on which a module stands: its own, or that of a folder that says what it offers.

    >>> page_of("amptutorial.amp"), page_of("amptutorial.corpus.words"), page_of("amptutorial.paper.descent")
    ('amp', 'corpus', 'paper.descent')
    """
    folder, *rest = module.split(".")[1:]
    is_folder = file_of(f"{PACKAGE}.{folder}").name == "__init__.py"
    if not is_folder or hasattr(import_module(f"{PACKAGE}.{folder}"), "__all__"):
        return folder
    return ".".join([folder, *rest]) if rest else ""


@cache
def data_flow():
    """Return the pages of the modules in an order in which each module imports only from those before it.

    >>> order = data_flow()
    >>> [order.index(name) < order.index("amp") < order.index("state_evolution") for name in ("denoisers", "score")]
    [True, True]
    """
    modules = {}
    for module in set(all_modules()) - {PACKAGE}:
        modules.setdefault(page_of(module), set()).add(module)
    public = (page for page in modules if page and not page.startswith("_"))
    return sorted(public, key=lambda page: (len(closure(modules[page], without={PACKAGE})), page))


def api_pages():
    """Return the path and the text of each page of the API reference."""
    order = data_flow()
    first_lines = [import_module(f"{PACKAGE}.{name}").__doc__.splitlines()[0] for name in order]
    rows = [f"| [`{name}`](api/{name}) | {line} |\n" for name, line in zip(order, first_lines, strict=True)]
    groups = "\n".join(f"## {title}\n\n{summary(f'~{place}' for place in at_the_door(title))}" for title in DOOR)
    index = GENERATED + API_HEAD.format(groups=groups) + "".join(rows)
    return {BOOK / "api.md": index} | {BOOK / f"api/{name}.md": module_page(name) for name in order}


def pages():
    """Return the path and the text of each page, and of what pages say of all chapters."""
    entries = yaml.safe_load((BOOK / "ledger.yml").read_text(encoding="utf-8"))
    included = {BOOK / "chapters" / name: text for name, text in made().items()}
    return {BOOK / "ledger.md": ledger_page(entries)} | api_pages() | included


def source_of(page):
    """Return the file from which a page is made, as both are called in the repository.

    >>> source_of("book/api/amp"), source_of("book/api/corpus"), source_of("book/ledger"), source_of("book/howto")
    ('amptutorial/amp.py', 'amptutorial/corpus/__init__.py', 'book/ledger.yml', 'book/howto.md')
    """
    if page.startswith("book/api/"):
        return file_of(f"amptutorial.{page.removeprefix('book/api/')}").relative_to(ROOT).as_posix()
    made = {"api": "amptutorial/__init__.py", "ledger": "book/ledger.yml", "changelog": "CHANGELOG.md"}
    return made.get(page.removeprefix("book/"), f"{page}.md")


if __name__ == "__main__":
    shutil.rmtree(BOOK / "api", ignore_errors=True)  # a module may have gone
    for folder in ("api", "chapters"):
        (BOOK / folder).mkdir(exist_ok=True)
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
