"""One form for every stored notebook, so that a difference in version control is a difference in what a reader sees."""

import json

import nbformat

CELL_METADATA = {"tags", "mystnb"}
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
LANGUAGE = {"name": "python", "file_extension": ".py", "pygments_lexer": "ipython3"}
WIDGETS = "application/vnd.jupyter.widget-state+json"


def rename_widgets(notebook):
    """Number the widgets in the order of their creation: their own names are random."""
    state = notebook.metadata.get("widgets", {}).get(WIDGETS, {}).get("state", {})
    text = json.dumps(notebook)
    for number, name in enumerate(state):
        text = text.replace(name, f"{number:032x}")
    return nbformat.from_dict(json.loads(text))


def normalise_cell(cell):
    """Keep of the metadata what the book uses."""
    cell.metadata = {key: value for key, value in cell.metadata.items() if key in CELL_METADATA}
    return cell


def normalise(notebook):
    """Return `notebook` without timings, editor state, interpreter version and random widget names.

    Examples
    --------
    >>> from nbformat.v4 import new_code_cell, new_notebook
    >>> cell = new_code_cell("1 + 1", metadata={"tags": ["hide-input"], "collapsed": True})
    >>> normalise(new_notebook(cells=[cell])).cells[0].metadata
    {'tags': ['hide-input']}
    """
    notebook = rename_widgets(notebook)
    widgets = {key: value for key, value in notebook.metadata.items() if key == "widgets"}
    notebook.metadata = {"kernelspec": KERNEL, "language_info": LANGUAGE, **widgets}
    notebook.cells = [normalise_cell(cell) for cell in notebook.cells]
    return notebook
