"""Which pairs of held-out counts are judged, and what becomes of rates that are no numbers."""

import numpy as np
import pytest
import scipy.sparse as sp

from amptutorial.heldout import HeldOut, held_out_pairs


def test_pairs_without_held_out_counts_are_left_out_even_if_they_are_stored():
    held_out = sp.csr_array((np.array([0.0, 2.0]), np.array([0, 1]), np.array([0, 1, 2])), shape=(2, 2))
    pairs = HeldOut.of(np.ones(2), np.ones(2), held_out)
    assert (pairs.i.tolist(), pairs.j.tolist(), pairs.z.tolist()) == ([1], [1], [2.0])


def test_one_rate_that_overflows_among_others_is_enough():
    eye, zero = np.eye(2), np.zeros((2, 1))
    with pytest.raises(FloatingPointError, match="the rates overflow"):
        held_out_pairs(1e-300 * eye, eye).log_ratios(zero, zero, np.array([1.0, 1e300]), np.full(2, 0.5))


def test_without_held_out_counts_there_is_no_error():
    assert HeldOut.of(np.ones(2), np.ones(2), np.zeros((2, 2))).standard_error(np.zeros(0)) == 0


def test_what_rows_and_columns_both_count_is_counted_once():
    """By hand: deviations +-1/4 by rows: the sums of rows squared are 2/4, those of columns 0, the squares 4/16."""
    pairs = HeldOut.of(np.ones(2), np.ones(2), np.ones((2, 2)))
    assert pairs.standard_error(np.array([1.0, 1.0, -1.0, -1.0])) == pytest.approx(np.sqrt(1 / 2 - 1 / 4), rel=1e-14)
