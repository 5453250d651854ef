"""How many counts are needed: the inverse of the predictions, against a formula, themselves and each other."""

import numpy as np
import pytest

from amptutorial import ConstantBias, GaussianPosterior, GaussianRows, Lasso, Ridge, scaled_rows
from amptutorial.bayes_optimal import GaussianMixture, MatchedEvolution, SeenRows
from amptutorial.laws import EmpiricalRows
from amptutorial.planning import counts_needed
from amptutorial.state_evolution import gaussian_state_evolution

BETA = 2 / 3
GAUSSIAN, POSTERIOR = GaussianMixture([1.0], [0.0], [1.0]), GaussianPosterior(1.0)


def flat(counts, d=1):
    """Return the laws of equal frequencies with so many counts a pair."""
    rows = GaussianRows(1.0)
    return scaled_rows(d, rows_u=rows, rows_v=rows, bias_u=ConstantBias(0.0), bias_v=ConstantBias(np.log(counts)))


def limit_error(c):
    """Return the error of the posterior mean of Gaussian rows, one dimension, c counts a pair (chapter 9)."""
    kappa = c**2 / BETA
    return 1 - (kappa - 1) / (c / BETA * (1 + c)) * (kappa - 1) / (kappa + c)


@pytest.mark.parametrize("counts", [3.0, 12.0])
@pytest.mark.parametrize("given", [1.0, 300.0])
def test_the_counts_lead_to_the_error(counts, given):
    """From fewer counts and from more, by state evolution and by the matched one."""
    factor = counts_needed(limit_error(counts), *flat(given), POSTERIOR, beta=BETA)
    assert given * factor == pytest.approx(counts, rel=1e-4)
    rows, words = SeenRows(GAUSSIAN, [1.0]), SeenRows(GAUSSIAN, [given])
    assert counts_needed(limit_error(counts), rows, words, beta=BETA) == pytest.approx(factor, rel=1e-4)


def test_one_iteration_begins_at_half_of_the_truth_in_noise_as_long():
    """B_0 = B / 2 + noise: M = S / 2 and Q = (1/4 + 1) S, S = c / BETA; then a posterior mean of each side, by hand."""
    c = 5.0
    M, Q = c / BETA / 2, 1.25 * c / BETA
    M_a, Q_a = M / (Q + 1), (M**2 + Q) / (Q + 1) ** 2
    M_b, Q_b = c * M_a / (Q_a + 1 / c), (c * M_a**2 + Q_a) / (Q_a + 1 / c) ** 2
    error = 1 - (2 * M_a * M_b - Q_a * Q_b) / c
    assert 2 * counts_needed(error, *flat(2.0), POSTERIOR, beta=BETA, n_iter=1) == pytest.approx(c, rel=1e-4)


def test_a_ridge_needs_more_counts_than_the_posterior_mean():
    laws = flat(1.0, d=3)
    assert counts_needed(0.3, *laws, Ridge(0.2), beta=BETA) > 1.02 * counts_needed(0.3, *laws, POSTERIOR, beta=BETA)


def test_where_there_is_no_closed_form_rows_are_sampled(rng):
    """Rows of an instance, as a law: the same counts, up to the samples. All factors are tried on the same draws."""
    states = set()

    class Watched(EmpiricalRows):
        def draw(self, N, *, rng):
            states.add(rng.bit_generator.state["state"]["state"])
            return super().draw(N, rng=rng)

    r, X = flat(1.0)[0].draw(5000, rng=rng)
    laws = (Watched(r, X / X.std()),) * 2
    factor = counts_needed(0.3, *laws, POSTERIOR, beta=BETA, n_iter=20, n_samples=5000, rng=rng)
    assert len(states) == 3  # for the start, and each time for the rows of either side
    assert factor == pytest.approx(counts_needed(0.3, *flat(1.0), POSTERIOR, beta=BETA), rel=0.1)
    with pytest.raises(TypeError, match="rng must be"):
        counts_needed(0.3, *flat(1.0), Lasso(0.5), beta=BETA)


@pytest.mark.slow
def test_where_the_error_jumps_the_counts_are_on_the_side_that_reaches_it():
    """One row in twenty is present: once anything is found, nearly all is."""
    sparse = SeenRows(GaussianMixture([0.95, 0.05], [0, 0], [0, 20]), [2.0])
    factor = counts_needed(0.4, sparse, sparse, beta=1.0)
    raised = MatchedEvolution(sparse, SeenRows(sparse.prior, factor * sparse.rates), 1.0)
    assert raised.error(*raised.limit()) <= 0.4
    assert raised.sizes[0] * raised.sizes[1] == pytest.approx(1.0, rel=0.01)  # the threshold of AMP


def test_what_cannot_be_had_is_refused():
    laws, known = flat(1.0), SeenRows(GaussianMixture([1.0], [1.0], [0.1]), [1.0])
    several = SeenRows(GAUSSIAN, [[1.0], [2.0]])
    for error, *given, message in (
        (0.0, *laws, POSTERIOR, "error must be positive"),
        (1.0, *laws, POSTERIOR, "error must be below 1"),
        (1e-8, *laws, POSTERIOR, "missed with a million times the counts"),
        (0.5, known, known, "reached with a millionth of the counts"),
        (0.5, known, known, POSTERIOR, "leave it out"),
        (0.5, several, several, "one problem"),
    ):
        with pytest.raises(ValueError, match=message):
            counts_needed(error, *given, beta=BETA)


def test_the_factor_multiplies_all_counts():
    """The error returns at so many counts, from another start."""
    factor = counts_needed(0.4, *flat(2.0, d=2), Ridge(1.0), beta=BETA)
    law_u, law_v = flat(2.0 * factor, d=2)
    size = 2.0 * factor / BETA * np.eye(2)
    run = gaussian_state_evolution(law_u, law_v, Ridge(1.0), beta=BETA, M0=size, Q0=size, n_iter=100)
    assert run.iterates[-1].nmse == pytest.approx(0.4, abs=1e-4)
