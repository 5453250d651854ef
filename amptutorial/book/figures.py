"""How the book draws: one style, and the figures that more than one place needs.

Matplotlib comes with ``pip install amptutorial[run]``.
"""

import sys
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np

from ..neighbours import normalise_rows

# After the palette of Okabe and Ito, which colour-blind readers can distinguish;
# darkened until text in it stands out on white
COLOURS = ("#0072B2", "#BF5000", "#007A5A", "#A0457F", "#5B5B5B", "#1B6E91")
MARKERS = "osD^vP"


class Look(NamedTuple):
    """How a method is drawn, wherever it is drawn."""

    colour: str
    mark: str


# Where there is one prediction it is a black line; what was measured has marks.
_METHODS = "ridge", "lasso", "posterior mean", "SVD", "least squares"
METHOD_LOOKS = dict(zip(_METHODS, map(Look, COLOURS, MARKERS), strict=False))

INCH = 96  # pixels of a page; a fine screen has two for each

STYLE = {
    "figure.figsize": (5.6, 3.6),
    "figure.dpi": INCH,
    "figure.constrained_layout.use": True,
    "font.size": 13,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": plt.cycler(color=COLOURS),
    "image.cmap": "cividis",
    "legend.frameon": False,
    "svg.hashsalt": "amptutorial",  # the same figure is the same file
}


def use_style():
    """Set the style of the book for all figures to come.

    In a notebook they become SVG, sharp on every screen. What is drawn `rasterized` in
    them has two pixels for each of the page.
    """
    plt.rcParams.update(STYLE)
    if "IPython" in sys.modules and sys.modules["IPython"].get_ipython():
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        undated = {"Date": None, "Creator": None}
        set_matplotlib_formats("svg", dpi=2 * INCH, metadata=undated)


def word_map(ax, X, vocabulary, groups):
    """Draw the words of `groups` in a plane, by the directions of their embeddings.

    The plane is the one that shows these directions best.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    X : array (n, d)
    vocabulary : array of str (n,)
    groups : dict of str to list of str
        Words by topic; each topic gets a colour and a marker.

    Returns
    -------
    array (number of words, 2)
        The coordinates drawn, in the order of the groups.
    """
    index = {word: j for j, word in enumerate(vocabulary)}
    words = [word for group in groups.values() for word in group]
    directions = normalise_rows(X[[index[word] for word in words]])
    directions -= directions.mean(axis=0)
    left, sigma, _ = np.linalg.svd(directions, full_matrices=False)
    plane = left[:, :2] * sigma[:2]
    labels = spread_labels(plane)
    ends = np.cumsum([len(group) for group in groups.values()])[:-1]
    for topic, colour, marker, own in zip(
        groups, COLOURS, MARKERS, np.split(np.arange(len(words)), ends), strict=False
    ):
        ax.scatter(*plane[own].T, color=colour, marker=marker, s=36, label=topic)
        line = {"arrowstyle": "-", "color": colour, "linewidth": 0.5}
        written = {"color": colour, "fontsize": 12, "va": "center", "arrowprops": line}
        for k in own:
            ax.annotate(words[k], plane[k], xytext=labels[k], **written)
    ax.margins(0.12)
    ax.set(xticks=[], yticks=[], xlabel="first direction", ylabel="second direction")
    return plane


def spread_labels(points, width=0.27, height=0.06):
    """Return places right of the `points` (N, 2) for labels that do not overlap.

    The size of a label is relative to the extent of the points.

    Examples
    --------
    >>> spread_labels(np.array([[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]])).round(2)
    array([[ 0.02,  0.  ],
           [ 0.02, -0.06],
           [ 1.02,  1.  ]])
    """
    extent = np.ptp(points, axis=0)
    width, height = width * extent[0], height * extent[1]
    labels = points + [0.02 * extent[0], 0]
    order = np.argsort(-points[:, 1], kind="stable")
    # from the top: a label moves down until it is free
    for rank, k in enumerate(order):
        above = labels[order[:rank]]
        near = above[np.abs(above[:, 0] - labels[k, 0]) < width]
        for y in -np.sort(-near[:, 1]):
            if abs(y - labels[k, 1]) < height:
                labels[k, 1] = y - height
    return labels
