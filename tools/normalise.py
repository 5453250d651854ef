"""One form for every stored notebook, so that a difference in version control is a difference in what a reader sees."""

import re
from hashlib import sha256

METADATA = {"chapter"}  # see tools/chapters.py
CELL_METADATA = {"tags", "mystnb"}
GATES = ("{solution-start}", "{solution-end}")
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
LANGUAGE = {"name": "python", "file_extension": ".py", "pygments_lexer": "ipython3"}
WIDGET = "application/vnd.jupyter.widget-view+json"  # nothing without the kernel that made it
SVG = "image/svg+xml"
COORDINATES = re.compile(r'(?<= )(?:d|x|y|width|height|viewBox)="[^"]*"|translate\([^)]*\)')
LONG_NUMBER = re.compile(r"-?\d+\.\d+")
# Matplotlib's names of what is drawn more than once: sums of coordinates before they are rounded.
NAME = re.compile(r"(?<=[\"#])([a-zA-Z]+)[0-9a-f]{10}(?=[\")])")


def normalise_cell(cell):
    """Keep of the metadata what the book uses, and of the outputs what can be shown without a kernel."""
    cell.metadata = {key: value for key, value in cell.metadata.items() if key in CELL_METADATA}
    for output in cell.get("outputs", ()):
        data = output.get("data", {})
        data.pop(WIDGET, None)
        if SVG in data:
            data[SVG] = round_coordinates(data[SVG])
    return cell


def round_coordinates(svg):
    """Return a drawing with coordinates of two decimals, a hundredth of a point: processors differ in later ones.

    Examples
    --------
    >>> print(round_coordinates('<path id="m0123456789" d="M 0.0012 -2.998" transform="scale(0.015625)"/>'))
    <path id="m0-980dbd10" d="M 0 -3" transform="scale(0.015625)"/>
    """
    rounded = COORDINATES.sub(lambda found: LONG_NUMBER.sub(_two_decimals, found[0]), "".join(svg))
    order = {name: k for k, name in enumerate(dict.fromkeys(found[0] for found in NAME.finditer(rounded)))}
    numbered = NAME.sub(lambda found: f"{found[1]}{order[found[0]]}", rounded)
    digest = sha256(numbered.encode()).hexdigest()[:8]  # two drawings of a page do not share a name
    return NAME.sub(lambda found: f"{found[1]}{order[found[0]]}-{digest}", rounded)


def _two_decimals(number):
    short = f"{float(number[0]):.2f}".rstrip("0").rstrip(".")
    return "0" if short == "-0" else short


def fold(cells):
    """Fold in JupyterLab what a page folds: code that only draws, checks, and the cells of a solution.

    Examples
    --------
    >>> from nbformat.v4 import new_code_cell, new_markdown_cell
    >>> parts = ["```{solution-start} ex-one", "Two.", "```{solution-end}"]
    >>> cells = [*map(new_markdown_cell, parts), new_code_cell("plot()", metadata={"tags": ["hide-input"]})]
    >>> [cell.metadata.get("jupyter") for cell in fold(cells)]
    [None, {'source_hidden': True}, None, {'source_hidden': True}]
    """
    solving = False
    for cell in cells:
        tags, gates = cell.metadata.get("tags", ()), [cell.source.rfind(gate) for gate in GATES]
        if max(gates) >= 0:  # the cell may close a solution and begin another
            solving = gates[0] > gates[1]
        elif solving or "hide-cell" in tags:
            cell.metadata["jupyter"] = {"source_hidden": True}
            if cell.cell_type == "code":
                cell.metadata["jupyter"]["outputs_hidden"] = True
        elif "hide-input" in tags:
            cell.metadata["jupyter"] = {"source_hidden": True}
    return cells


def normalise(notebook):
    """Return `notebook` without timings, editor state, interpreter version and widgets.

    Examples
    --------
    >>> from nbformat.v4 import new_code_cell, new_notebook
    >>> cell = new_code_cell("1 + 1", metadata={"tags": ["hide-input"], "collapsed": True})
    >>> normalise(new_notebook(cells=[cell])).cells[0].metadata
    {'tags': ['hide-input'], 'jupyter': {'source_hidden': True}}
    """
    kept = {key: value for key, value in notebook.metadata.items() if key in METADATA}
    notebook.metadata = {"kernelspec": KERNEL, "language_info": LANGUAGE} | kept
    notebook.cells = fold([normalise_cell(cell) for cell in notebook.cells])
    return notebook
