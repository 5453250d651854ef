"""What parameters of AMPEmbedding stand for: priors with the variance that is asked for, and seeds that differ."""

import numpy as np
import pytest
from scipy.integrate import quad

from amptutorial.estimator import DENOISERS, AMPEmbedding


@pytest.mark.parametrize("variance", [0.25, 1.0, 3.0])
@pytest.mark.parametrize("name", ["ridge", "lasso"])
def test_the_penalty_is_that_of_a_prior_of_this_variance(name, variance):
    """exp(-penalty), normalised, is the density of an entry."""
    denoiser = DENOISERS[name](variance)

    def moment(p):
        return quad(lambda u: u**p * np.exp(-denoiser.penalty([[u]], [1.0])), 0, np.inf)[0]

    assert moment(2) / moment(0) == pytest.approx(variance, rel=1e-6)


def test_the_gaussian_prior_begins_with_this_variance_and_learns():
    denoiser = DENOISERS["posterior"](3.0)
    assert denoiser.covariance == 3.0 and denoiser.learn


def test_every_seed_has_random_numbers_of_its_own():
    first = [AMPEmbedding(random_state=seed)._generator().random() for seed in (*range(100), 0)]
    assert len(set(first)) == 100 and first[0] == first[100]
