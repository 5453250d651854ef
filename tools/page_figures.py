"""A backend of Matplotlib for `page_kernel`: ``MPLBACKEND=module://page_figures`` shows figures below their cell."""

import builtins

from matplotlib import pyplot
from matplotlib.backends.backend_agg import FigureCanvasAgg as FigureCanvas

__all__ = ["FigureCanvas", "show"]


def show(*args, **kwargs):
    """Close all open figures, then show them as they were made: one that cannot be drawn does not come back."""
    figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
    pyplot.close("all")
    builtins.display(*figures)
