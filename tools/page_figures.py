"""A backend of Matplotlib for `page_kernel`: ``MPLBACKEND=module://page_figures`` shows figures below their cell."""

import builtins

from matplotlib import pyplot
from matplotlib.backends.backend_agg import FigureCanvasAgg as FigureCanvas

__all__ = ["FigureCanvas", "show"]


def show(*args, **kwargs):
    """Show all open figures in the order they were made, and close them."""
    builtins.display(*map(pyplot.figure, pyplot.get_fignums()))
    pyplot.close("all")
