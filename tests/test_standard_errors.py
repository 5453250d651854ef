"""When held-out counts tell two embeddings apart: beyond two standard errors of their mean difference per count."""

import numpy as np
import pytest

from amptutorial.heldout import is_worse


@pytest.mark.parametrize(("z", "signs"), [([1, 1, 1, 1], [1, -1, 1, -1]), ([2, 2], [1, -1]), ([2, 1, 1], [1, -1, -1])])
@pytest.mark.parametrize(("mean", "worse"), [(1.01, True), (0.99, False), (-1.01, False)])
def test_the_error_of_four_counts_is_half_their_spread(z, signs, mean, worse, rng):
    """Differences of `mean` +- 1, each for half of the counts: two errors of the mean over 4 counts are 1."""
    best = rng.standard_normal(len(z))
    assert is_worse(np.array(z), best - (mean + np.array(signs)), best) == worse


def test_equal_differences_have_no_error():
    assert is_worse(np.ones(2), np.zeros(2), np.full(2, 0.125))
    assert not is_worse(np.ones(2), np.zeros(2), np.zeros(2))
