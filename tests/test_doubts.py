"""What a fit doubts of its table before it begins."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from amptutorial import AMPEmbedding, AMPWarning
from amptutorial.doubts import doubts


def drawn(rng, m=200, n=60, level=2.0):
    """Return Poisson counts of unequal columns with an association."""
    M = 0.5 * np.outer(rng.standard_normal(m), rng.standard_normal(n))
    return rng.poisson(level * np.exp(0.5 * rng.standard_normal(n) + M)).astype(float)


def said(Z, law=False):
    return list(doubts(sp.csr_array(Z), law))


@pytest.mark.parametrize("level", [0.1, 2.0, 50.0])
def test_counts_of_the_model_are_not_doubted(level, rng):
    Z = drawn(rng, level=level)
    assert said(Z) == said(Z.T) == []
    holes = np.where(rng.random(Z.shape) < 0.3, np.nan, Z)
    assert said(holes) == []


def with_totals(Z):
    return np.column_stack([Z, Z.sum(axis=1)])


def numbered(Z):
    return np.column_stack([1 + np.arange(len(Z)), Z])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (with_totals, "column 60 is the sum of the others"),
        (lambda Z: with_totals(Z.T).T, "row 200 is the sum of the others"),
        (numbered, "column 0 holds the numbers from 1 on"),
        (lambda Z: np.round(1e6 * Z / Z.sum(axis=1, keepdims=True)), r"all rows add up to 1e\+06"),
        (lambda Z: np.where(Z > 0, Z, np.nan), "X has NaN and no zero"),
        (lambda Z: np.column_stack([Z, Z[:, 5]]), "counts of columns decide one another, such as those of (60|5)"),
        (lambda Z: np.column_stack([Z, Z[:, 3] + Z[:, 4]]), "counts of columns decide one another"),
    ],
)
def test_what_is_no_count_of_events_is_said_when_it_is_fitted(change, words, rng):
    Z = change(drawn(rng))
    with warnings.catch_warnings(record=True, action="always", category=AMPWarning) as caught:
        AMPEmbedding(1, channel="counts", n_iter=2, random_state=0).fit(pd.DataFrame(Z))
    assert sum(bool(re.match(words, str(warning.message))) for warning in caught) == 1


@pytest.mark.parametrize(("shape", "told"), [((3, 4), 0), ((4, 3), 0), ((4, 4), 1)])
def test_in_three_rows_or_columns_sums_and_numbers_are_chance(shape, told):
    """The first column numbers three rows, the last is the sum of the others."""
    counts = np.array([[1.0, 2, 4], [2, 1, 0], [3, 5, 2], [9, 2, 7]])[: shape[0], : shape[1] - 1]
    assert len(said(with_totals(counts))) == told


def test_no_zero_beside_more_gaps_than_counts_is_told_however_large_the_counts_are(rng):
    Z = rng.poisson(30.0, (40, 30)) + 1.0
    for share, told in ((0.7, True), (0.3, False)):
        table = sp.csr_array(np.where(rng.random(Z.shape) < share, np.nan, Z))
        assert any("NaN and no zero" in doubt for doubt in doubts(table)) == told


def test_overlapping_windows_are_noticed_and_separate_ones_are_not(rng):
    """Words of three letters in random sequences: every position, or every third one."""
    letters = rng.integers(4, size=(300, 240))
    words = np.lib.stride_tricks.sliding_window_view(letters, 3, axis=1) @ [1, 4, 16]
    for step, number in ((1, 1), (3, 0)):
        Z = np.array([np.bincount(row[::step], minlength=64) for row in words]).astype(float)
        assert len(said(Z)) == number


def test_zeros_and_ones_are_doubted_only_where_they_are_to_be_poisson(rng):
    Z = np.minimum(drawn(rng), 1)
    assert said(Z, law=True) == []
    assert "channel='auto' takes their law" in said(Z)[0]
    rare = (rng.random((300, 200)) < 0.01).astype(float)
    assert said(rare[rare.any(axis=1)][:, rare.any(axis=0)]) == []


def test_columns_that_vary_less_than_poisson_counts_are_not_said_to_decide_one_another(rng):
    """Trials by themselves; and a small heavy group of rows, of which more columns than rows are frequent."""
    assert said(rng.binomial(2, rng.uniform(0.05, 0.95, 30), (300, 30)).astype(float)) == []
    rates = np.full((300, 100), 0.3)
    rates[:10, :30], rates[10:, :30] = 15, 0.02
    Z = rng.poisson(rates).astype(float)
    assert said(Z[Z.any(axis=1)][:, Z.any(axis=0)]) == []
