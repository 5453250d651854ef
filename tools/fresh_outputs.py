"""Sphinx extension: pages show what their notebooks printed here, in `make book`, in place of what is stored.

`AMPTUTORIAL_RUN` names the folder into which `tools/execute_book.py` ran them.
"""

import os
from pathlib import Path

import nbformat
from execute_book import run_of, with_outputs


def take_outputs(app, docname, source):
    """Give the notebook that is read the outputs of its last run."""
    path = Path(app.env.doc2path(docname))
    run = run_of(path, Path(os.environ["AMPTUTORIAL_RUN"]))
    if path.suffix == ".ipynb" and run.is_file():
        notebook = nbformat.reads(source[0], as_version=4)
        source[0] = nbformat.writes(with_outputs(notebook, nbformat.read(run, as_version=4)))


def setup(app):
    """Look into the folder, if one is named."""
    if os.environ.get("AMPTUTORIAL_RUN"):
        app.connect("source-read", take_outputs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
