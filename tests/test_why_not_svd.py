"""Why not an SVD? The table of chapter 6, what README says of it, and what it claims."""

import re

import draw_prediction
import numpy as np
import pytest
from draw_prediction import ROOT, TABLE, compare, gaussian, predict, predict_svd, signs


def test_the_table_stands_in_chapter_6_and_the_readme_says_what_it_shows():
    assert f"{{include}} assets/{TABLE.name}" in (TABLE.parents[1] / "06_why_the_onsager_term.ipynb").read_text()
    rows = {name: values for name, *values in re.findall(r"\| ([\w ,]+) " + 4 * r"\| ([\d.]+)[^|]*", TABLE.read_text())}
    names = "AMP, right prior", "weighted, shrunken SVD"
    (normal, _, signs_, _), (rival, _, rival_of_signs, _) = (np.array(rows[name], float) for name in names)
    readme = (ROOT / "README.md").read_text().replace("\n", " ")
    assert abs(normal - rival) < 0.015
    assert "is level, to a hundredth, with the best singular value decomposition" in readme
    assert abs(signs_ / rival_of_signs - 5 / 6) < 0.02
    assert "error is a sixth lower at twice" in readme


@pytest.mark.slow
def test_the_stored_table_is_computed_again(monkeypatch):
    monkeypatch.setattr(draw_prediction, "tqdm", iter)
    assert draw_prediction.table() == TABLE.read_text()


def test_for_gaussian_rows_amp_is_a_well_weighted_svd_and_needs_no_factor():
    errors = np.array([compare(gaussian(), seed) for seed in range(2)])
    _, shrunken, weighted, forgetful, rescaled, amp, _ = errors.T
    assert np.abs(weighted - amp).max() < 0.05 < 0.15 < (shrunken - amp).min()
    assert np.abs(rescaled - amp).max() < 0.02 < 0.1 < (forgetful - amp).min()


def test_for_signs_amp_leads_every_svd_by_as_much_as_predicted():
    errors = np.array([compare(signs(2.0), seed) for seed in range(4)])
    lead = errors[:, 1] - errors[:, -1]
    bar = lead.std(ddof=1) / np.sqrt(len(lead))
    predicted = predict_svd(signs(2.0))[1] - predict(signs(2.0), signs(2.0).prior)
    assert lead.min() > 0 and abs(lead.mean() - predicted) < 4 * bar
    assert (errors[:, 4] > errors[:, -1]).all()  # the direction is better too, where AMP does not echo


def test_shrunken_singular_vectors_are_amp_with_a_gaussian_prior_where_frequencies_are_equal():
    assert predict_svd(signs(2.0))[1] == pytest.approx(predict(signs(2.0), draw_prediction.GAUSSIAN), abs=1e-5)
