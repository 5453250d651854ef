"""State evolution at its door: bad input is named, and which of its two forms applies is asked."""

from dataclasses import replace

import numpy as np
import pytest
from synthetic import BETA, constant_laws

from amptutorial.amp import random_start
from amptutorial.denoisers import GaussianPosterior, Lasso, Ridge
from amptutorial.laws import EmpiricalRows, SparseGaussianRows
from amptutorial.paper.experiments import L2, predict
from amptutorial.state_evolution import (
    gaussian_state_evolution,
    has_closed_form,
    state_evolution,
)


def test_bad_input_is_named(rng):
    start = {"beta": BETA, "M0": np.eye(2), "Q0": 2 * np.eye(2), "n_iter": 2, "n_samples": 100, "rng": rng}
    zero = EmpiricalRows(np.ones(50), np.zeros((50, 1)))
    laws, no_signal = constant_laws(2, 3.0), start | {"M0": [[0.0]], "Q0": [[1.0]]}
    for law_u, law_v, given, message in (
        (*laws, start | {"M0": 9 * np.eye(2)}, "no start has these M0 and Q0"),
        (*laws, start | {"n_samples": 10}, "n_samples must be at least 10 d = 20"),
        (constant_laws(1, 2.0)[0], laws[1], start, "law_u has dimension 1, law_v has 2"),
        (zero, zero, no_signal, "there is no A B.T whose error could be predicted"),
    ):
        with pytest.raises(ValueError, match=message):
            state_evolution(law_u, law_v, GaussianPosterior(1.0), **given)


@pytest.mark.parametrize("scale", [1.0, 1e10])
def test_a_start_may_have_lost_a_dimension_but_for_round_off(scale):
    """B_0 with a column of zeros: its moments are singular. Round-off is measured by their scale."""
    laws, M0 = constant_laws(2, 3.0), np.sqrt(scale) * np.diag([1.0, 0.0])
    for smallest in (0.0, -1e-12):
        start = {"M0": M0, "Q0": scale * np.diag([2.0, smallest])}
        run = gaussian_state_evolution(*laws, Ridge(1.0), beta=BETA, n_iter=1, **start)
        assert np.isfinite(run.iterates[-1].nmse)
    with pytest.raises(ValueError, match="no start has these M0 and Q0"):
        gaussian_state_evolution(*laws, Ridge(1.0), beta=BETA, n_iter=1, M0=M0, Q0=scale * np.diag([2.0, -1e-3]))


def test_a_start_may_miss_its_law_by_a_tenth():
    """B_0 = B has Q0 = beta M0 S^-1 M0 exactly; an instance differs a little from its law, but not by half."""
    law_u, law_v = constant_laws(1, 3.0)
    S = law_v.atoms()[0][0]  # E(B^2) of rows of variance one
    M0 = [[S / BETA]]
    for share, fits in ((1.0, True), (0.95, True), (0.85, False), (0.5, False)):
        start = {"beta": BETA, "M0": M0, "Q0": [[share * S / BETA]], "n_iter": 1}
        if fits:
            assert gaussian_state_evolution(law_u, law_v, Ridge(1.0), **start).iterates
        else:
            with pytest.raises(ValueError, match="no start has these M0 and Q0"):
                gaussian_state_evolution(law_u, law_v, Ridge(1.0), **start)


def test_the_closed_form_serves_gaussian_rows_with_fixed_linear_denoisers_only():
    gaussian, sparse = constant_laws(1, 2.0), constant_laws(1, 2.0, rows=SparseGaussianRows(1.0, 0.5))
    assert has_closed_form(*gaussian, (Ridge(1.0), GaussianPosterior(1.0)))
    assert not has_closed_form(*sparse, Ridge(1.0)) and not has_closed_form(gaussian[0], sparse[1], Ridge(1.0))
    assert not has_closed_form(*gaussian, (Ridge(1.0), Lasso(1.0)))
    assert not has_closed_form(*gaussian, GaussianPosterior(1.0, learn=True))
    with pytest.raises(TypeError, match="ScaledRows of GaussianRows.*use state_evolution"):
        gaussian_state_evolution(*sparse, Ridge(1.0), beta=1.0, M0=[[1.0]], Q0=[[1.0]], n_iter=1)


def test_a_bug_inside_a_denoiser_is_not_answered_by_the_other_form():
    """`predict` once took a TypeError of the denoiser's own for the closed form's refusal, and sampled instead."""

    class Broken(Ridge):
        def modes(self, F):
            raise TypeError("a bug in the denoiser")

    setting = replace(L2, m=30, n=45, d=2)
    rng = np.random.default_rng(0)
    e = setting.draw(rng=rng)
    with pytest.raises(TypeError, match="a bug in the denoiser"):
        predict(e, setting.scaled_rows(), Broken(1.0), random_start(45, 2, rng), 2, rng=rng)
