"""AMPEmbedding: scikit-learn's own checks, what it recovers, and what it says when it cannot."""

import os
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks
from synthetic import drawn_embedding, without_margins

from amptutorial import fitting, reexpansion
from amptutorial._validation import AMPWarning
from amptutorial.amp import biased_low_rank_amp, half_step
from amptutorial.baselines import spectral_start
from amptutorial.bias import drop_empty, estimate_bias
from amptutorial.denoisers import GaussianPosterior, Lasso, Ridge
from amptutorial.estimator import AMPEmbedding
from amptutorial.fitting import DENOISERS
from amptutorial.heldout import heldout_gain, split_pairs
from amptutorial.metrics import normalised_mse
from amptutorial.score import FisherScore

# of tables so small that their hidden counts hardly tell
pytestmark = pytest.mark.filterwarnings("ignore:heldout_gain_ =")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::amptutorial._validation.AMPWarning")  # the checks' data are tiny and not counts
@parametrize_with_checks([AMPEmbedding(d, random_state=0) for d in (1, 2)])  # the checks have two features
def test_scikit_learn_conventions(estimator, check):
    """All of check_estimator, with no expected failure."""
    check(estimator)


@pytest.fixture(scope="module")
def model():
    """300 x 200, d = 2, M of order one, about 3 counts a cell."""
    return drawn_embedding(300, 200, 2, np.random.default_rng(7), variance=np.sqrt(300 / 2), shift=3)


@pytest.fixture(scope="module")
def counts(model):
    rates = model.rates()
    return np.random.default_rng(8).poisson(3 * rates / rates.mean())


@pytest.fixture(scope="module")
def fitted(counts):
    return AMPEmbedding(2, random_state=0).fit(counts)


def test_it_recovers_the_embedding(model, counts, fitted):
    """The error of M is near what the Fisher information allows.

    M has 2 (300 + 200) parameters. Its squared error, each entry weighted by its information r_u_i r_v_j exp(M_ij), is
    about their number when all of them are well determined: asserted within a factor of two.
    """
    rates = 3 * model.rates() / model.rates().mean()
    error = fitted.embedding_ @ fitted.components_ / np.sqrt(300) - model.U @ model.V.T / np.sqrt(300)
    error = without_margins(error, rates.sum(axis=1), rates.sum(axis=0))  # shifts of rows and columns are biases
    assert (rates * error**2).sum() < 2 * 2 * (300 + 200)


def test_it_beats_independence_on_new_counts_and_knows_by_how_much(model, counts, fitted):
    """On a fresh sample the gain is within a tenth of that of the true rates; its own forecast knows it.

    A tenth of the pairs is a small sample here: 25 pairs hold an eighth of the counts.
    """
    rates = 3 * model.rates() / model.rates().mean()
    fresh = np.random.default_rng(9).poisson(rates)
    gain = heldout_gain(counts, fresh, fitted.embedding_, fitted.components_.T, fitted.row_bias_, fitted.column_bias_)
    scale = counts.sum() / rates.sum()
    true = heldout_gain(counts, fresh, model.U, model.V, scale * model.r_u, 3 * model.r_v / model.rates().mean())
    assert 0.9 * true < gain
    forecasts = [
        fitted.heldout_gain_,
        *(AMPEmbedding(2, random_state=seed).fit(counts).heldout_gain_ for seed in (1, 2)),
    ]
    assert abs(np.mean(forecasts) - gain) < 0.1 * gain


@pytest.mark.filterwarnings("ignore:still improving")
@pytest.mark.parametrize("denoiser", ["posterior", "ridge", "lasso"])
@pytest.mark.parametrize("init", ["spectral", "random"])
def test_every_denoiser_and_start_beats_independence(counts, denoiser, init):
    assert AMPEmbedding(2, n_iter=10, denoiser=denoiser, init=init, random_state=0).fit(counts).heldout_gain_ > 0.2


@pytest.mark.filterwarnings("ignore:still improving")
def test_a_denoiser_or_a_pair_is_given_as_it_is_or_by_name(model, counts):
    """The fit is that of the denoisers that the names stand for, and a wrong name is told with its place."""
    few = {"n_iter": 3, "channel": "counts", "random_state": 0}
    named = AMPEmbedding(2, denoiser="ridge", **few).fit(counts)
    ridge = named._rows.denoiser  # with the strength that the spectrum suggests, up to what noise hides of M
    assert ridge.strength == pytest.approx(np.sqrt(2 / 300 / np.var(model.U @ model.V.T / np.sqrt(300))), rel=0.2)
    mixed = AMPEmbedding(2, denoiser=("ridge", "lasso"), **few).fit(counts)
    pair = Ridge(mixed._rows.denoiser.strength), Lasso(mixed._columns.denoiser.strength)
    for denoiser, expected in ((ridge, named), ([ridge, ridge], named), (pair, mixed)):
        again = AMPEmbedding(2, denoiser=denoiser, **few).fit(counts)
        assert np.array_equal(again.embedding_, expected.embedding_)
    for denoiser, place in ((("ridge", "ols"), r"denoiser\[1\]"), ("ols", "denoiser")):
        with pytest.raises(ValueError, match=f"{place} must be one of .*'ridge'.*, got 'ols'"):
            AMPEmbedding(2, denoiser=denoiser).fit(counts)


def rare_counts(seed, d, mean):
    """300 x 200 with M of order one, and fewer counts than cells."""
    rng = np.random.default_rng(seed)
    M = 1.2 * rng.standard_normal((300, d)) @ rng.standard_normal((d, 200)) / np.sqrt(d)
    rates = np.exp(M + 0.5 * rng.standard_normal((300, 1)) + rng.standard_normal(200))
    return drop_empty(rng.poisson(mean * rates / rates.mean()))[0]


def test_where_counts_are_few_the_onsager_term_is_half_of_the_gain(monkeypatch):
    """Two tables, with the term and without: about 0.20 and 0.10 nats a count."""
    tables, gains = [rare_counts(seed, d=20, mean=0.3) for seed in range(2)], []

    def without(*args):
        return replace(half_step(*args), jacobian=0.0)

    for step in (half_step, without):
        monkeypatch.setattr(reexpansion, "half_step", step)
        fits = [AMPEmbedding(20, channel="counts", random_state=0).fit(Z) for Z in tables]
        gains.append(np.mean([fit.heldout_gain_ for fit in fits]))
    assert gains[0] > 1.5 * gains[1]


def test_while_a_tenth_is_hidden_the_rates_are_those_of_the_rest(monkeypatch):
    """The counted biases add up to the counts that an iteration sees: with pairs hidden, and with all counts."""
    seen, iterate = [], fitting.next_sides

    def recorded(table, rows, columns, *args):
        seen.append((rows.r.sum() * columns.r.sum(), table.totals[table.totals % 1 == 0].sum()))
        return iterate(table, rows, columns, *args)

    monkeypatch.setattr(fitting, "next_sides", recorded)
    Z = rare_counts(0, d=2, mean=0.1)
    AMPEmbedding(2, channel="counts", random_state=0).fit(Z)
    rates, counts = np.array(seen).T  # the latter in rows without gaps, which are filled in others
    assert set(np.round(rates / Z.sum(), 2)) == {0.9, 1.0}
    assert np.allclose(counts[rates > 0.95 * Z.sum()], Z.sum()) and (counts <= Z.sum()).all()


def test_a_channel_that_is_far_behind_is_given_up_and_the_other_one_does_not_notice(model, monkeypatch):
    """Many counts, of which damped ones tell less: after three iterations they end."""
    rates, calls, iterate = model.rates(), [], fitting.next_sides
    Z = np.random.default_rng(3).poisson(10 * rates / rates.mean())
    monkeypatch.setattr(fitting, "next_sides", lambda *args: calls.append(args) or iterate(*args))
    found = AMPEmbedding(2, random_state=0).fit(Z)
    number = len(calls)
    monkeypatch.setattr(fitting, "FAR", np.inf)
    both = AMPEmbedding(2, random_state=0).fit(Z)
    assert found.channel_ == both.channel_ == "counts" and found.heldout_gain_ > 0
    assert np.array_equal(found.embedding_, both.embedding_)
    assert len(calls) - number >= number + 10 - fitting.COMPARED_AFTER


def test_transform_of_the_fitted_rows_is_their_embedding(counts, fitted):
    """To ten times the tolerance at which a row has converged, 1e-3 in M; so with as many dimensions as counts."""
    rare = rare_counts(0, d=20, mean=0.3)
    many = AMPEmbedding(20, channel="counts", random_state=0).fit(rare)
    for Z, fit in ((counts, fitted), (rare, many)):
        M = (fit.transform(Z) - fit.embedding_) @ fit.components_ / np.sqrt(len(Z))
        assert np.abs(M).max() < 1e-2


def test_transform_embeds_new_rows(model, counts):
    """Fitted to two thirds of the rows; the others are embedded nearly as well as the fitted ones."""
    estimator = AMPEmbedding(2, random_state=0).fit(counts[:200])
    found = np.vstack([estimator.embedding_, estimator.transform(counts[200:])]) @ estimator.components_
    truth = model.U @ model.V.T * np.sqrt(200 / 300)
    of_columns = counts.sum(axis=0) / counts.sum()
    truth, error = (M - (M @ of_columns)[:, None] for M in (truth, truth - found))
    # column shifts of M are column biases: estimated from the fitted rows, and the same for the new ones
    error -= np.average(error[:200], axis=0, weights=counts[:200].sum(axis=1))
    assert (error[200:] ** 2).sum() < 0.2 * (truth[200:] ** 2).sum()


def test_rows_and_columns_without_counts_are_zero_and_do_not_change_the_rest(counts, fitted):
    """Many empty rows and a column put in between: the same fit, in the unit that sqrt(m) gives M, and transformation.

    To ten times the tolerance at which a row has converged, 1e-3 in M; sqrt(m) in M counts the empty rows too.
    """
    wide = np.insert(np.insert(counts, 10, 0, axis=1), np.repeat([3, 50], 150), 0, axis=0)
    with pytest.warns(AMPWarning, match="300 rows and 1 columns without counts"):
        estimator = AMPEmbedding(2, random_state=0).fit(wide)
    full, rates = wide.any(axis=1), estimator.predict_rates()
    assert not estimator.embedding_[~full].any() and not estimator.components_[:, 10].any()
    assert not estimator.row_bias_[~full].any() and estimator.column_bias_[10] == 0
    assert not rates[~full].any() and not rates[:, 10].any()
    assert np.allclose(rates.sum(axis=1), wide.sum(axis=1), rtol=1e-5)
    assert np.allclose(np.delete(rates[full], 10, axis=1), fitted.predict_rates())
    with_new_words = wide.copy()
    with_new_words[:, 10] = 3
    with pytest.warns(AMPWarning, match="300 rows have no counts in the fitted columns"):
        U, same = estimator.transform(wide), estimator.transform(with_new_words)
    assert np.array_equal(U, same) and not U[~full].any()
    assert np.abs((U - estimator.embedding_) @ estimator.components_).max() / np.sqrt(600) < 1e-2


@pytest.mark.parametrize("variance", [0.25, 1.0, 3.0])
@pytest.mark.parametrize("name", ["ridge", "lasso"])
def test_the_penalty_is_that_of_a_prior_of_this_variance(name, variance):
    """exp(-penalty), normalised, is the density of an entry."""
    denoiser = DENOISERS[name](variance)

    def moment(p):
        return quad(lambda u: u**p * np.exp(-denoiser.penalty([[u]], [1.0])), 0, np.inf)[0]

    assert moment(2) / moment(0) == pytest.approx(variance, rel=1e-6)


@pytest.mark.parametrize("denoiser", ["posterior", "ridge"])
def test_no_structure_is_reported(denoiser):
    rng = np.random.default_rng(0)
    Z = rng.poisson(rng.gamma(0.1, 10.0, size=(200, 150)))  # bursts, without any embedding
    with pytest.warns(AMPWarning, match="the embedding is zero. The hidden counts are too few to tell"):
        nothing = AMPEmbedding(3, denoiser=denoiser, random_state=0).fit(Z)
    assert nothing.n_iter_ == nothing.heldout_gain_ == 0 < nothing.heldout_error_
    assert not nothing.embedding_.any() and not nothing.components_.any() and not nothing.transform(Z).any()
    independent = np.outer(Z.sum(axis=1), Z.sum(axis=0)) / Z.sum()
    assert np.allclose(nothing.predict_rates(), independent, rtol=1e-9)


def test_a_callback_that_ends_a_fit_is_not_told_to_allow_more_and_its_seconds_are_those_of_the_fit(counts, recwarn):
    seen = []
    AMPEmbedding(2, callback=lambda step: step.n_iter > 1, random_state=0).fit(counts)
    assert not [each for each in recwarn if "allow more" in str(each.message)]
    AMPEmbedding("auto", n_iter=3, callback=lambda step: seen.append(step), random_state=0).fit(counts)
    assert len({step.n_components for step in seen}) > 1
    assert [step.seconds for step in seen] == sorted(step.seconds for step in seen)


@pytest.mark.slow
@pytest.mark.parametrize(("variance", "shift"), [(0.5, 1.0), (1.0, 0.0)])
def test_where_the_theory_holds_it_is_as_good_as_bayes_optimal_amp(variance, shift):
    """M_ij of order 1/sqrt(m): AMP on the score with the true prior is the best there is; the estimator loses 3 %."""
    ratios = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        truth = drawn_embedding(400, 600, 3, rng, variance=variance, shift=shift)
        Z = truth.sample(rng)
        r_u, r_v = estimate_bias(Z)
        Y, posterior = FisherScore(Z, r_u, r_v), GaussianPosterior(variance)
        start = spectral_start(Y, 3, rng=rng)
        run = biased_low_rank_amp(Y, r_u, r_v, posterior, B0=start, n_iter=40)
        best = normalised_mse(truth.U, truth.V, run.A / np.sqrt(r_u)[:, None], run.B / np.sqrt(r_v)[:, None])
        fit = AMPEmbedding(3, random_state=seed).fit(Z)
        ratios.append(normalised_mse(truth.U, truth.V, fit.embedding_, fit.components_.T) / best)
    assert np.mean(ratios) < 1.03


def test_huge_counts_of_low_rank_are_fitted():
    """Hardly any noise, and more components than structure: round-off must not stop the fit."""
    blocks, one_large = np.kron(np.eye(3, dtype=int), np.full((10, 8), 10**6)), np.ones((30, 20), dtype=int)
    one_large[3, 17] = 10**4
    for Z in (blocks, one_large):
        with warnings.catch_warnings(action="ignore", category=AMPWarning):
            fit = AMPEmbedding(min(Z.shape), random_state=1).fit(Z)
        assert np.isfinite(fit.embedding_).all() and np.isfinite(fit.components_).all()


@pytest.mark.filterwarnings("ignore:still improving")
def test_random_state_decides_everything(counts, fitted):
    """A number or a generator; without one, NumPy's global generator is left alone."""
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    few = {"n_iter": 2, "channel": "counts"}
    AMPEmbedding(2, **few).fit(counts)
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002
    again = AMPEmbedding(2, random_state=0).fit(counts)
    assert np.array_equal(again.embedding_, fitted.embedding_)
    first, second = (AMPEmbedding(2, **few, random_state=np.random.default_rng(5)).fit(counts) for _ in range(2))
    assert np.array_equal(first.embedding_, second.embedding_)
    other = AMPEmbedding(2, random_state=np.random.RandomState(1)).fit(counts)
    assert not np.array_equal(other.embedding_, fitted.embedding_)
    assert normalised_mse(other.embedding_, other.components_.T, fitted.embedding_, fitted.components_.T) < 0.05


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"denoiser": "svd"}, r"denoiser must be one of \['lasso', 'posterior', 'ridge'\], got 'svd'"),
        ({"n_components": 201}, r"n_components=201 must be at most 200.*300 rows and 200 columns"),
        ({"n_components": "2"}, "n_components must be an integer or \"auto\", got '2'"),
        ({"n_components": np.array([1, 2])}, "n_components must be an integer"),
        ({"denoiser": np.eye(2)}, "denoiser must be an instance of Denoiser"),
        ({"channel": np.array(["counts", "damped"])}, "channel must be one of"),
        ({"channel": ["counts"]}, "channel must be one of"),
        ({"init": np.eye(2)}, "init must be one of"),
        ({"n_iter": True}, "n_iter must be an integer"),
        ({"tol": -1.0}, "tol"),
        ({"tol": None}, "tol must be a number"),
    ],
)
def test_bad_parameters_are_errors(counts, parameters, message):
    with pytest.raises((ValueError, TypeError), match=message):
        AMPEmbedding(**{"n_components": 2, **parameters}).fit(counts)


@pytest.mark.filterwarnings("ignore:X holds fractions")
def test_bad_counts_are_errors(counts, fitted):
    masked = np.ma.array(counts, mask=counts > 5)
    for method, Z, message in (
        (AMPEmbedding(1).fit, np.zeros((3, 3)), "no counts at all"),
        (AMPEmbedding(1).fit, np.full((3, 3), 0.1), "add up to 9.0e-01, less than one count"),
        (AMPEmbedding(1).fit, np.full((3, 3), 1e308), "more than a float64 can hold"),
        (AMPEmbedding(2).fit, masked, "X has masked entries"),
        (fitted.transform, masked, "X has masked entries"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            method(Z)


def test_a_single_count_that_is_set_aside_leaves_none():
    """One in ten seeds sets it aside."""
    with (
        warnings.catch_warnings(action="ignore", category=AMPWarning),
        pytest.raises(ValueError, match="none is left when a tenth is set aside"),
    ):
        for seed in range(100):
            AMPEmbedding(1, random_state=seed).fit([[1]])


def test_warnings_point_at_the_line_of_the_caller(counts):
    holes = counts.copy()
    holes[4] = 0
    for call in (
        lambda model: model.fit(holes),
        lambda model: model.fit_transform(holes),
        lambda model: make_pipeline("passthrough", model).fit_transform(holes),
    ):
        with pytest.warns(AMPWarning) as caught:
            call(AMPEmbedding(2, n_iter=2, random_state=0))
        place = __file__, call.__code__.co_firstlineno
        assert [(warning.filename, warning.lineno) for warning in caught] == [place] * 2


@pytest.mark.slow
@pytest.mark.reviews
@pytest.mark.skipif(not os.environ.get("AMPTUTORIAL_DATA"), reason="AMPTUTORIAL_DATA does not name the movie reviews")
def test_held_out_gain_on_the_movie_reviews():
    """At least 0.17 nats per count at d = 10, on pairs that the fit has not seen in any way; the forecast agrees."""
    from amptutorial.corpus import load_movie_reviews

    kept, held_out = split_pairs(load_movie_reviews(n_documents=7000).counts, 0.2, np.random.default_rng(0))
    estimator = AMPEmbedding(10, random_state=0).fit(kept)
    U, V = estimator.embedding_, estimator.components_.T
    gain = heldout_gain(kept, held_out, U, V, estimator.row_bias_, estimator.column_bias_)
    assert gain >= 0.17 and abs(estimator.heldout_gain_ - gain) < 3 * estimator.heldout_error_
