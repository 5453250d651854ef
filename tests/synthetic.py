"""Laws of known strength and a function without symmetry, on which AMP and state evolution are tried."""

import numpy as np

from amptutorial.denoisers import Denoiser
from amptutorial.laws import ConstantBias, GaussianRows, scaled_rows

BETA = 2 / 3


def constant_laws(d, strength, *, rows=None):
    """Return laws whose signal is `strength` times the spectral threshold: r_u r_v = strength sqrt(beta)."""
    rows = GaussianRows(1.0) if rows is None else rows
    bias_v = ConstantBias(np.log(strength * np.sqrt(BETA)))
    return scaled_rows(d, rows_u=rows, rows_v=rows, bias_u=ConstantBias(0.0), bias_v=bias_v)


class Linear(Denoiser):
    """A linear function of the rows, the gradient of none, which doubles whenever it learns."""

    precision = "posterior"
    MIX = np.array([[0.5, 0.3], [-0.2, 0.4]])

    def __init__(self, size=1.0):
        self.size = size

    def estimate(self, P, r, F):
        return self.size * P @ self.MIX

    def refit(self, P, r, F):
        return Linear(2 * self.size)
