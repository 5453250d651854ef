"""Laws of known strength, on which state evolution is tried."""

import numpy as np

from amptutorial.laws import ConstantBias, GaussianRows, scaled_rows

BETA = 2 / 3


def constant_laws(d, strength, *, rows=None):
    """Return laws whose signal is `strength` times the spectral threshold: r_u r_v = strength sqrt(beta)."""
    rows = GaussianRows(1.0) if rows is None else rows
    bias_v = ConstantBias(np.log(strength * np.sqrt(BETA)))
    return scaled_rows(d, rows_u=rows, rows_v=rows, bias_u=ConstantBias(0.0), bias_v=bias_v)
