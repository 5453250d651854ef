"""Sphinx extension: what the cells of a page need to run in the reader's browser.

A page with code gets buttons. At the first press they fetch Python for WebAssembly (Pyodide), the cells of the page and
this package, all of which lie in `_static/live` or, Pyodide, on another host. With OFFLINE=1 Pyodide lies beside the
pages too, if `tools/fetch_wheels.py` could fetch all of it.
"""

import json
import os
import shutil
from importlib.metadata import distribution
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from fetch_wheels import LIBRARIES, RUNTIME, URL, WHEELS, wheels_of
from page_action import PRIORITY, add_action

ROOT = Path(__file__).parents[1]
SECONDS = ROOT / "tools/live_seconds.json"  # of each page as a whole, as studies/live_report.py measured them

# What a page fetches at the first press: a test compares. The rest comes when a cell imports it.
MEGABYTES = 41
ON_DEMAND = {"sklearn": "scikit-learn", "sympy": "sympy", "fontTools": "fonttools"}  # the last is for PDF
AT_ONCE = [*(name for name in LIBRARIES if name not in ON_DEMAND.values()), "joblib", "threadpoolctl"]
RUNTIME_FILES = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")

# Pure Python that Pyodide does not have.
DISTRIBUTIONS = ("platformdirs", "pooch", "simplemma", "tqdm")
HIDDEN = {"remove-cell", "remove-input", "remove_cell", "remove_input"}


def cells_of(notebook):
    r"""Return the source of each code cell, and whether its code is on the page.

    Cells that a tag removes run with the others.

    Examples
    --------
    >>> cells = [
    ...     {"cell_type": "markdown", "source": ["text"]},
    ...     {"cell_type": "code", "source": ["x = 1\n", "x"], "metadata": {"tags": ["remove-cell"]}},
    ... ]
    >>> cells_of({"cells": cells})
    [{'source': 'x = 1\nx', 'shown': False}]
    """
    return [
        {"source": "".join(cell["source"]), "shown": HIDDEN.isdisjoint(cell["metadata"].get("tags", []))}
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


def notebooks(env):
    """Return the notebook of each page that is one, by the name of the page."""
    files = {name: Path(env.doc2path(name)) for name in env.found_docs}
    return {name: json.loads(file.read_text()) for name, file in files.items() if file.suffix == ".ipynb"}


def archive_members():
    """Yield the name and the path of each file that Python on a page reads: `lib` is where it looks for modules."""
    for root, pattern in (
        (ROOT, "amptutorial/**/*.py"),
        (ROOT, "amptutorial/paper/results/*.json"),
        (ROOT, "amptutorial/corpus/*.counts"),
        (ROOT, "amptutorial/book/*.npz"),
        (ROOT / "course", "amptutorial_course/**/*.py"),
    ):
        for file in root.glob(pattern):
            yield f"lib/{file.relative_to(root)}", file
    for name in ("page_kernel.py", "page_figures.py"):
        yield f"lib/{name}", ROOT / "tools" / name
    for name in DISTRIBUTIONS:
        for member in distribution(name).files:
            if is_needed(member):
                yield f"lib/{member}", member.locate()
    for pattern in ("book/assets/shards.svg", "course/assignments/*/denoiser.py"):
        for file in ROOT.glob(pattern):
            yield str(file.relative_to(ROOT)), file


def is_needed(member):
    """Return whether Python on a page needs this file of a distribution: modules, licences, English."""
    if ".." in member.parts or {"tests", "__pycache__"} & set(member.parts):
        return False
    about = ".dist-info" in member.parts[0] and (member.name == "METADATA" or "licenses" in member.parts)
    return about or member.suffix == ".py" or member.name == "en.plzma"


def write_archive(path):
    """Write the archive of `archive_members`; the same files give the same bytes."""
    with ZipFile(path, "w") as archive:
        for name, file in sorted(archive_members()):
            archive.writestr(ZipInfo(name), Path(file).read_bytes(), ZIP_DEFLATED)


def copy_runtime(folder):
    """Copy Pyodide and its wheels; return whether all of them were there."""
    wheels = [WHEELS / name for name in wheels_of(LIBRARIES)] if RUNTIME.is_dir() else []
    if not wheels or not all(wheel.is_file() for wheel in wheels):
        return False
    folder.mkdir(parents=True, exist_ok=True)
    for file in [*(RUNTIME / name for name in RUNTIME_FILES), *wheels]:
        shutil.copyfile(file, folder / file.name)
    return True


def write_files(app, error):
    """Write what the buttons fetch, beside the scripts that Sphinx has copied from book/assets/live."""
    if error or app.builder.name != "html":
        return
    static = Path(app.outdir, "_static")
    runtime = URL
    if os.environ.get("OFFLINE") == "1":
        runtime = "../offline/pyodide/" if copy_runtime(static / "offline/pyodide") else None
    write_archive(static / "live/amptutorial.zip")
    seconds = json.loads(SECONDS.read_text())
    for name, notebook in notebooks(app.env).items():
        settings = {
            "runtime": runtime,
            "megabytes": MEGABYTES,
            "packages": AT_ONCE,
            "onDemand": ON_DEMAND,
            "folder": str(Path(name).parent),
            "seconds": seconds.get(name),
            "cells": cells_of(notebook),
        }
        file = static / f"live/cells/{name}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(settings))


def add_buttons(app, pagename, templatename, context, doctree):
    """Load the buttons on a page that is a notebook, and let its head begin with the one that runs all of it."""
    if doctree is not None and Path(app.env.doc2path(pagename)).suffix == ".ipynb":
        app.add_css_file("live/cells.css")
        app.add_js_file("live/cells.js", type="module", **{"data-page": pagename})
        tooltip = f"Python in this page: {MEGABYTES} MB, the first result after half a minute, nothing to install"
        add_action(context, "live-run-page", "Run this page", tooltip)


def setup(app):
    """Put buttons on the pages, and their files beside them."""
    app.connect("html-page-context", add_buttons, priority=PRIORITY)
    app.connect("build-finished", write_files)
    return {"parallel_read_safe": True}
