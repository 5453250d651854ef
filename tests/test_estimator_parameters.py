"""What AMPEmbedding begins with: priors of the right variance, seeds that differ, nine tenths of the pairs."""

import numpy as np
import pytest
from scipy.integrate import quad

from amptutorial import AMPWarning, estimator
from amptutorial.channels import CHANNELS
from amptutorial.estimator import DENOISERS, AMPEmbedding
from amptutorial.table import Table


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


@pytest.mark.parametrize("init", ["spectral", "random"])
def test_a_fit_begins_with_nine_tenths_of_the_pairs_and_ends_with_all(init, rng, monkeypatch):
    """The information r_v is that of the counts in use, and the prior gives M_ij the variance of the spectrum."""
    found, calls = [], []

    def spy(owner, name, record):
        compute = getattr(owner, name)

        def called(*arguments):
            record.append((arguments, compute(*arguments)))
            return record[-1][1]

        monkeypatch.setattr(owner, name, called)

    spy(Table, "leading_directions", found)
    spy(estimator, "next_sides", calls)
    U, V = rng.standard_normal((60, 2)), rng.standard_normal((40, 2))
    Z = rng.poisson(5 * np.exp(U @ V.T / np.sqrt(60)))
    AMPEmbedding(2, init=init, channel="counts", random_state=0).fit(Z)
    ((fewer, rows, columns, _, m, *_), _), *_, ((every, _, last, *_), _) = calls
    hidden = ~np.isclose(fewer.Z.toarray(), Z, rtol=1e-9)  # there the expected counts are
    assert abs(hidden.mean() - 0.1) < 4 * np.sqrt(0.09 / Z.size) and every.total() == Z.sum()
    assert m == 60 and np.allclose(columns.r, 0.9 * Z.sum(axis=0) / 60) and np.allclose(last.r, Z.sum(axis=0) / 60)
    variance = found[0][1][1]
    assert rows.denoiser.covariance * columns.denoiser.covariance * 2 / 60 == pytest.approx(variance, rel=1e-12)


@pytest.mark.filterwarnings("ignore::amptutorial.AMPWarning")
@pytest.mark.parametrize(("largest", "tried"), [(1, ["counts"]), (2, ["counts", "damped"])])
def test_two_channels_are_tried_where_a_count_is_repeated(largest, tried, rng, monkeypatch):
    channels, iterate = [], AMPEmbedding._until_best

    def spy(self, Z, seen, held_out, channel, *rest):
        channels.append(channel)
        return iterate(self, Z, seen, held_out, channel, *rest)

    monkeypatch.setattr(AMPEmbedding, "_until_best", spy)
    Z = 1 * (rng.random((30, 20)) < 0.5)
    Z[3, 4] = largest
    AMPEmbedding(1, random_state=0).fit(Z)
    assert channels == [CHANNELS[name] for name in tried]


def test_among_many_rows_without_counts_the_others_are_embedded_again(rng):
    """To ten times the tolerance at which a row has converged, 1e-3 in M; sqrt(m) in M counts the empty rows too."""
    U, V = 3 * rng.standard_normal((60, 1)), 3 * rng.standard_normal((40, 1))
    Z = np.vstack([rng.poisson(5 * np.exp(U @ V.T / np.sqrt(60))), np.zeros((60, 40))])
    with pytest.warns(AMPWarning, match="60 rows without counts"):
        fitted = AMPEmbedding(1, random_state=0).fit(Z)
    M = fitted.embedding_ @ fitted.components_ / np.sqrt(120)
    assert M.std() > 0.5
    assert np.abs(fitted.transform(Z) @ fitted.components_ / np.sqrt(120) - M).max() < 1e-2
