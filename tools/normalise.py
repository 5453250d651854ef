"""One form for every stored notebook, so that a difference in version control is a difference in what a reader sees."""

CELL_METADATA = {"tags", "mystnb"}
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
LANGUAGE = {"name": "python", "file_extension": ".py", "pygments_lexer": "ipython3"}
WIDGET = "application/vnd.jupyter.widget-view+json"  # nothing without the kernel that made it


def normalise_cell(cell):
    """Keep of the metadata what the book uses, and of the outputs what can be shown without a kernel."""
    cell.metadata = {key: value for key, value in cell.metadata.items() if key in CELL_METADATA}
    for output in cell.get("outputs", ()):
        output.get("data", {}).pop(WIDGET, None)
    return cell


def normalise(notebook):
    """Return `notebook` without timings, editor state, interpreter version and widgets.

    Examples
    --------
    >>> from nbformat.v4 import new_code_cell, new_notebook
    >>> cell = new_code_cell("1 + 1", metadata={"tags": ["hide-input"], "collapsed": True})
    >>> normalise(new_notebook(cells=[cell])).cells[0].metadata
    {'tags': ['hide-input']}
    """
    notebook.metadata = {"kernelspec": KERNEL, "language_info": LANGUAGE}
    notebook.cells = [normalise_cell(cell) for cell in notebook.cells]
    return notebook
