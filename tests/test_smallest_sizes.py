"""The smallest sizes: one row, one column, one dimension, one iteration are allowed, and none of them is an error."""

import numpy as np
import pytest

from amptutorial import AMPEmbedding
from amptutorial.amp import biased_low_rank_amp, check_start, random_start
from amptutorial.baselines import PoissonLoss, minimise, singular_values, spectral_start, svd
from amptutorial.biases import refit_biases
from amptutorial.denoisers import Ridge
from amptutorial.laws import ConstantBias, GaussianRows, ScaledRows, SparseGaussianRows, scaled_rows
from amptutorial.metrics import overlap
from amptutorial.model import draw_embedding
from amptutorial.spectrum import bulk_edge
from amptutorial.state_evolution import gaussian_state_evolution, start_overlap, state_evolution

ONE = np.ones((1, 1))
Y = np.array([[3.0, 1.0], [1.0, 2.0]])
POISSON = PoissonLoss([[4, 1], [1, 4]], [1, 1], [2, 2], 1.0)
LAWS = {"rows_u": GaussianRows(), "rows_v": GaussianRows(), "bias_u": ConstantBias(), "bias_v": ConstantBias()}
SCALED, START, TEN = scaled_rows(1, **LAWS), {"beta": 1.0, "M0": 0.5 * ONE, "Q0": ONE}, {"n_samples": 10}


def seed():
    return np.random.default_rng(0)


SIZES = {
    "rows of a start": lambda k: random_start(k, 1, seed()),
    "columns of a start": lambda k: random_start(1, k, seed()),
    "columns of B0": lambda k: check_start(np.ones((1, k)), 1, 1),
    "iterations of AMP": lambda k: biased_low_rank_amp(Y, [1, 1], [1, 1], Ridge(9.0), B0=[[1], [1]], n_iter=k),
    "directions of the SVD": lambda k: svd(Y, k, rng=seed()),
    "singular values": lambda k: singular_values(Y, k, rng=seed()),
    "directions of the spectral start": lambda k: spectral_start(9 * Y, k, rng=seed()),
    "iterations of a minimiser": lambda k: minimise(POISSON, A0=np.ones((2, 1)), B0=np.ones((2, 1)), n_iter=k),
    "columns of a minimiser": lambda k: minimise(POISSON, A0=np.ones((2, k)), B0=np.ones((2, k))),
    "rows of an embedding": lambda k: draw_embedding(k, 1, 1, **LAWS, rng=seed()),
    "columns of an embedding": lambda k: draw_embedding(1, k, 1, **LAWS, rng=seed()),
    "dimension of an embedding": lambda k: draw_embedding(1, 1, k, **LAWS, rng=seed()),
    "dimension of a law": lambda k: ScaledRows(GaussianRows(), ConstantBias(), k),
    "dimension of Gaussian rows": lambda k: GaussianRows().draw((2, k), rng=seed()),
    "dimension of sparse rows": lambda k: SparseGaussianRows().draw((2, k), rng=seed()),
    "sweeps of a refit": lambda k: refit_biases([[1, 2], [3, 6]], np.zeros((2, 1)), np.zeros((2, 1)), n_sweeps=k),
    "rows of the noise": lambda k: bulk_edge(k, 4),
    "columns of the noise": lambda k: bulk_edge(4, k),
    "rows of an overlap": lambda k: overlap(np.ones((k, 1)), np.ones((k, 1))),
    "rows of A": lambda k: start_overlap(ONE, ONE, k),
    "iterations of state evolution": lambda k: gaussian_state_evolution(*SCALED, Ridge(1.0), n_iter=k, **START),
    "iterations on random rows": lambda k: state_evolution(*SCALED, Ridge(1.0), n_iter=k, rng=seed(), **START, **TEN),
    "components of a fit": lambda k: AMPEmbedding(k, random_state=0).fit(3 + 3 * np.eye(4)),
    "iterations of a fit": lambda k: AMPEmbedding(1, n_iter=k, random_state=0).fit(3 + 3 * np.eye(4)),
}


@pytest.mark.filterwarnings("ignore")  # what so little data gives is not asked
@pytest.mark.parametrize("what", SIZES)
def test_one_is_allowed_and_none_is_not(what):
    assert SIZES[what](1) is not None
    with pytest.raises(ValueError, match="must be at least 1|must have at least one|must be between 1"):
        SIZES[what](0)
