"""How bright colours are, for the tests that ask whether they can be read."""

import numpy as np
from matplotlib.colors import to_rgb

CONTRAST = 4.5  # of WCAG 2 at level AA, asked in pages of large text too


def luminance(colour):
    """Return the relative luminance of WCAG 2."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]
