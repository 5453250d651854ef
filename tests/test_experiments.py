"""What the paper's experiments show, on the stored results at full size, and how they are set up."""

from dataclasses import replace

import numpy as np
import pytest

from amptutorial.laws import EmpiricalRows
from amptutorial.paper.experiments import (
    L2,
    amp_curves,
    centre_and_scale,
    fisher_instance,
    lost_share,
    new_channel,
    predict,
)
from amptutorial.paper.reproduce import load_results
from amptutorial.paper.setting import OBSERVATIONS, observe_score

SETTLED = slice(2, None)  # from the third iteration on; the first two are dominated by nearly singular starts


def gap(name, channel):
    """Return AMP's normalised MSE less the predicted one, and the first of them, (instances, iterations)."""
    results = load_results(name)["instances"]
    return results[f"AMP_mse_{channel}"] - results["SE_mse"], results[f"AMP_mse_{channel}"]


@pytest.mark.parametrize("channel", ["gaussian", "true"])
@pytest.mark.parametrize("name", ["l2", "l1"])
def test_amp_follows_its_prediction_at_full_size(name, channel):
    """The median gap is smaller than the spread over the instances, from the second iteration on."""
    difference, measured = gap(name, channel)
    assert (np.median(np.abs(difference), axis=0)[1:] < measured.std(axis=0)[1:]).all()


@pytest.mark.parametrize("name", ["l2", "l1", "real"])
def test_counting_the_biases_leaves_a_gap(name):
    """With counted biases every instance ends above its run with the true ones, and nearly all above the prediction."""
    difference, measured = gap(name, "counted")
    assert np.mean(difference[:, -1] > 0) >= 0.9
    assert (measured[:, -1] > gap(name, "true")[1][:, -1]).all()


def test_the_excess_loss_is_predicted_within_two_percent():
    results = load_results("l2")["instances"]
    assert np.abs(results["AMP_excess_gaussian"] / results["SE_excess"] - 1)[:, SETTLED].max() < 0.02


def test_gradient_descent_ends_where_amp_does():
    """Both are at critical points; what is left is what one gains over the other by another draw of counts."""
    results = load_results("l2")["instances"]
    ratio = results["GD_mse"] / results["AMP_mse_counted"][:, -1]
    assert abs(ratio.mean() - 1) < 4 * ratio.std() / np.sqrt(len(ratio)) and ratio.std() < 0.01


@pytest.mark.parametrize("ending", ["", "_weighted"])
def test_on_rows_from_reviews_only_the_lost_share_parts_amp_from_its_prediction(ending):
    """At the printed scale, with biases at which every direction is found: as in the first experiment."""
    results = load_results("real")["instances"]
    assert (results[f"strength{ending}"][:, -1] > 1.5).all() and (results[f"largest{ending}"] < 0.1).all()
    last = {name: results[f"AMP_mse_{name}{ending}"][:, -1] for name in OBSERVATIONS}
    line, spread = results[f"SE_mse{ending}"][:, -1], np.sqrt(2 / (10 * 4990))
    for name in ("gaussian", "true"):
        assert np.abs(last[name] / line - 1).max() < 0.04
    assert np.abs(last["counted"] / (line + results[f"lost_share{ending}"]) - 1).max() < 0.04
    assert np.abs(last["true"] / last["gaussian"] - 1).max() < 4 * np.sqrt(2) * spread


def test_on_rows_from_reviews_the_mean_that_is_subtracted_decides():
    """Of the plain mean a tenth or more of what counting removes stays; of the weighted one next to nothing."""
    results = load_results("real")["instances"]
    plain, weighted = results["lost_share"], results["lost_share_weighted"]
    assert (plain > 0.02).all() and (weighted < plain / 10).all()
    assert (results["strength_text"] < 1e-3).all()  # without raised biases there is nothing to see


def test_counting_removes_what_lies_along_the_root_of_the_frequencies(rng):
    e = replace(L2, m=40, n=60, d=2).draw(rng=rng)
    signal, (p, q) = e.A @ e.B.T, (np.sqrt(r / r.sum()) for r in (e.r_u, e.r_v))
    removed = np.eye(40) - np.outer(p, p), np.eye(60) - np.outer(q, q)
    kept = removed[0] @ signal @ removed[1]
    assert lost_share(e) == pytest.approx(1 - (kept**2).sum() / (signal**2).sum()) and lost_share(e) > 0.001


def test_the_prediction_comes_before_the_noise(rng):
    """`predict` knows the truth and the start, not the observation: the order of the calls does not matter."""
    setting = replace(L2, m=80, n=120, d=2)
    e, B0 = setting.draw(rng=rng), rng.standard_normal((120, 2))
    exact = predict(e, setting.scaled_rows(), L2.denoiser, B0, 5, rng=np.random.default_rng(1))
    again = predict(e, setting.scaled_rows(), L2.denoiser, B0, 5, rng=np.random.default_rng(2))
    assert np.array_equal(exact["SE_mse"], again["SE_mse"])
    empirical = (EmpiricalRows(e.r_u, e.A), EmpiricalRows(e.r_v, e.B))
    sampled = predict(e, empirical, L2.denoiser, B0, 5, rng=np.random.default_rng(1))
    assert sampled["SE_mse"][-1] == pytest.approx(exact["SE_mse"][-1], rel=0.2)


def test_channels_differ_in_what_they_should(rng):
    e = replace(L2, m=200, n=300, d=2).draw(rng=rng)
    scores = {channel: observe_score(e, channel, rng=rng) for channel in OBSERVATIONS}
    assert np.array_equal(scores["true"][1], e.r_u) and not np.array_equal(scores["counted"][1], e.r_u)
    signal = e.A @ e.B.T / np.sqrt(e.m)
    for channel in ("true", "gaussian"):
        Y = scores[channel][0]
        noise = (Y if channel == "gaussian" else Y.toarray()) - signal
        assert noise.var() == pytest.approx(1, abs=4 * np.sqrt(2 / noise.size) + 0.02)


def test_rows_are_centred_and_scaled_as_the_paper_says(rng):
    X, r = 1 + rng.standard_normal((40, 3)), np.exp(rng.normal(size=40))
    for weights in (None, r):
        centred = centre_and_scale(X, weights)
        assert np.allclose((np.ones(40) if weights is None else r) @ centred, 0)
        assert centred.max() == pytest.approx(1)  # the most negative entry becomes 1
        assert np.linalg.matrix_rank(np.stack([(X - X[0]).ravel(), (centred - centred[0]).ravel()])) == 1


def test_the_new_channel_raises_the_biases_to_a_mean_count(rng):
    """Whatever the rates are, the product of their means is that number; the embedding stays."""
    U, V = rng.standard_normal((40, 3)), rng.standard_normal((60, 3))
    e = new_channel(U, V, rng.uniform(0.5, 1.5, 40), 0.01 * rng.uniform(0.5, 1.5, 60), mean_count=1e6)
    assert e.r_u.mean() * e.r_v.mean() == pytest.approx(1e6)
    assert np.array_equal(e.U, U) and np.array_equal(e.V, V)


def test_a_prediction_meets_the_instance_that_it_was_made_for(rng):
    """With the law of the instance's own rows the error is off by the noise's chi-squared, of d (m + n - d) degrees."""
    e = replace(L2, m=200, n=600, d=2).draw(rng=rng)
    laws, B0 = (EmpiricalRows(e.r_u, e.A), EmpiricalRows(e.r_v, e.B)), e.B
    predicted = predict(e, laws, L2.denoiser, B0, 6, rng=rng)
    measured = amp_curves(e, observe_score(e, "gaussian", rng=rng), L2.denoiser, B0, 6)
    spread = np.sqrt(2 / (2 * (200 + 600 - 2)))
    assert 0.9 < measured["loss"][-1] < 1  # as a share of that of the truth
    assert measured["mse"][-1] == pytest.approx(predicted["SE_mse"][-1], rel=4 * spread)
    assert measured["excess"][-1] == pytest.approx(predicted["SE_excess"][-1], rel=4 * spread)


def test_an_instance_depends_on_its_number_alone():
    small = replace(L2, m=60, n=90, d=2)
    first, again, other = (fisher_instance(k, small, n_pairs=20) for k in (3, 3, 4))
    assert all(np.array_equal(first[key], again[key]) for key in first)
    assert not np.intersect1d(first["AMP_error"], other["AMP_error"]).size
