"""Why not an SVD? The table of chapter 6, in brief in README and chapter 1, and what it claims."""

import draw_prediction
import numpy as np
import pytest
from draw_prediction import BRIEF, IN_README, README, TABLE, brief, compare, gaussian, predict, predict_svd, signs

PLACES = {"01_documents_to_embeddings": BRIEF, "06_why_the_onsager_term": TABLE}


def test_the_table_stands_once_and_in_brief_in_readme_and_chapter_1():
    assert IN_README.search(README.read_text())[0] == BRIEF.read_text() == brief(TABLE.read_text())
    assert BRIEF.read_text().count("\n| ") == 4  # the line below the head, the best SVD, AMP, their difference
    for name, table in PLACES.items():
        assert f"{{include}} assets/{table.name}" in (TABLE.parents[1] / f"{name}.ipynb").read_text()


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
