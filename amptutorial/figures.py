"""How the book draws: one style, and the figures that more than one place needs (matplotlib is in the `book` extra)."""

import matplotlib.pyplot as plt
import numpy as np

from .experiments import normalise_rows

# Okabe and Ito's palette, told apart by colour-blind readers, without its yellow, which is too light on white
COLOURS = ("#0072B2", "#D55E00", "#007A5A", "#A0457F", "#5B5B5B", "#1B6E91")
MARKERS = "osD^vP"

STYLE = {
    "figure.figsize": (6.4, 3.8),
    "figure.dpi": 110,
    "figure.constrained_layout.use": True,
    "font.size": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": plt.cycler(color=COLOURS),
    "legend.frameon": False,
}


def use_style():
    """Set the style of the book for all figures to come."""
    plt.rcParams.update(STYLE)


def word_map(ax, X, vocabulary, groups):
    """Draw the words of `groups` in the plane that shows the directions of their embeddings best.

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
    left, sigma, _ = np.linalg.svd(directions - directions.mean(axis=0), full_matrices=False)
    plane = left[:, :2] * sigma[:2]
    start = 0
    for (topic, group), colour, marker in zip(groups.items(), COLOURS, MARKERS, strict=False):
        points = plane[start : start + len(group)]
        ax.scatter(*points.T, color=colour, marker=marker, s=36, label=topic)
        for word, point in zip(group, points, strict=True):
            ax.annotate(word, point, xytext=(5, 3), textcoords="offset points", color=colour, fontsize=10)
        start += len(group)
    ax.margins(0.12)
    ax.set(xticks=[], yticks=[], xlabel="first direction", ylabel="second direction")
    return plane
