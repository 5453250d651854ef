"""How the book draws: one style for all figures.

Matplotlib comes with ``pip install amptutorial[run]``.
"""

import sys
from typing import NamedTuple

import matplotlib.pyplot as plt

# After the palette of Okabe and Ito, which colour-blind readers can distinguish;
# darkened until text in it stands out on white
COLOURS = ("#0072B2", "#BF5000", "#007A5A", "#A0457F", "#5B5B5B", "#1B6E91")
MARKERS = "osD^vP"


class _Look(NamedTuple):
    """How a method is drawn, wherever it is drawn."""

    colour: str
    mark: str


# Where there is one prediction it is a black line; what was measured has marks.
_METHODS = "ridge", "lasso", "posterior mean", "SVD", "least squares"
METHOD_LOOKS = dict(zip(_METHODS, map(_Look, COLOURS, MARKERS), strict=False))

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
