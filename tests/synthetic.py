"""What several tests of the core try it on: laws of known strength, instances, a function without symmetry."""

import numpy as np

from amptutorial.bias import estimate_bias
from amptutorial.denoisers import Denoiser
from amptutorial.laws import ConstantBias, GaussianRows, ShiftedExponential, scaled_rows
from amptutorial.model import draw_embedding

BETA = 2 / 3


def constant_laws(d, strength, *, rows=None):
    """Return laws whose signal is `strength` times the spectral threshold: r_u r_v = strength sqrt(beta)."""
    rows = GaussianRows(1.0) if rows is None else rows
    bias_v = ConstantBias(np.log(strength * np.sqrt(BETA)))
    return scaled_rows(d, rows_u=rows, rows_v=rows, bias_u=ConstantBias(0.0), bias_v=bias_v)


def drawn_embedding(m, n, d, rng, *, variance=0.5, shift=1.5, spread=0.25):
    """Return an embedding with Gaussian rows and exponential biases, alike on both sides."""
    rows, bias = GaussianRows(variance), ShiftedExponential(spread, shift)
    return draw_embedding(m, n, d, rows_u=rows, rows_v=rows, bias_u=bias, bias_v=bias, rng=rng)


def instance(m, n, d, rng, **laws):
    """Return an embedding and a Gaussian score Y~ (eq:YGauss)."""
    model = drawn_embedding(m, n, d, rng, **laws)
    return model, model.A @ model.B.T / np.sqrt(m) + rng.standard_normal((m, n))


def small_problem(seed, m=6, n=8, d=2):
    """Return counts above zero, their biases, rows on both sides, and the generator."""
    rng = np.random.default_rng(seed)
    Z = rng.poisson(2.0, (m, n)) + 1
    return Z, *estimate_bias(Z), rng.standard_normal((m, d)), rng.standard_normal((n, d)), rng


def without_margins(M, rows, columns):
    """Subtract weighted means of rows and columns, which biases absorb."""
    rows, columns = rows / rows.sum(), columns / columns.sum()
    return M - (M @ columns)[:, None] - rows @ M + rows @ M @ columns


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
