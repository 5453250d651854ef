"""When AMPEmbedding stops, and which iterate it keeps."""

from types import SimpleNamespace

import numpy as np
import pytest

from amptutorial.estimator import Patience, best_iterate


def test_patience_ends_with_the_first_iteration_without_progress():
    """But not before the tenth. Progress lowers the cross-entropy, here 3 - gain, by more than a hundredth."""
    patience, ended = Patience(entropy=3.0, tol=0.01), []
    for k in range(1, 13):
        patience.record(0.1 * k if k not in (4, 12) else -1.0)
        ended.append(patience.exhausted)
    assert ended == 11 * [False] + [True]
    assert patience.k == 12 and patience.highest == pytest.approx(1.1)


@pytest.mark.parametrize(("gain", "progress"), [(1.0199, False), (1.0201, True), (0.9, False), (1.0, False)])
def test_progress_is_measured_by_what_is_left_of_the_cross_entropy(gain, progress):
    """After a gain of 1 with an entropy of 3 + 1/50: a hundredth of what is left at 1.02 is 0.02."""
    patience = Patience(entropy=3.02, tol=0.01)
    patience.record(1.0)
    patience.record(gain)
    assert patience.progress == progress
    assert patience.highest == max(gain, 1)


def test_the_first_iteration_always_makes_progress():
    patience = Patience(entropy=1.0, tol=0.5)
    patience.record(-1e9)
    assert patience.progress and not patience.exhausted


class Gains:
    """In the place of `HeldOut`: an iterate is its own log-ratio, and every pair has one count."""

    z = np.ones(100)

    def log_ratios(self, X, _, bias, __):
        spread = np.where(np.arange(100) % 2, 1.0, -1.0)  # standard error of a mean: 0.1 `bias`
        return X + bias * spread

    def mean(self, values):
        return float(values.mean())

    def entropy(self):
        return 5.0


def sides(gain, spread=0.0):
    return SimpleNamespace(X=gain, bias=spread), SimpleNamespace(X=0.0, bias=0.0)


def test_the_last_iterate_that_is_not_worse_than_the_best_is_kept():
    """The ninth iterate is best; the tenth is worse by less than two standard errors, the eleventh by more."""
    iterates = [sides(0.1 * k) for k in range(9)] + [sides(0.75, 1.0), sides(0.5)]
    (rows, _), gain, k, improving = best_iterate(iter(iterates[:10]), Gains(), 1e-4)
    assert (rows.X, k, improving) == (0.75, 10, False) and gain == pytest.approx(0.75)
    (rows, _), gain, k, improving = best_iterate(iter([*iterates[:9], iterates[10]]), Gains(), 1e-4)
    assert (k, improving) == (9, False) and gain == pytest.approx(0.8)


def test_no_iterate_is_asked_for_after_the_end():
    iterates = iter([sides(1.0)] * 20)
    _, _, k, improving = best_iterate(iterates, Gains(), 1e-4)
    assert k == 10 and not improving  # all are equally good: the last one is kept
    assert len(list(iterates)) == 10


def test_iterates_that_run_out_while_improving_are_reported():
    *_, k, improving = best_iterate(iter([sides(0.1), sides(0.2)]), Gains(), 1e-4)
    assert k == 2 and improving


@pytest.mark.parametrize("gain", [np.nan, -np.inf])
def test_a_gain_that_is_not_finite_is_an_error(gain):
    with pytest.raises(FloatingPointError, match="heldout_gain is not finite"):
        best_iterate(iter([sides(gain)]), Gains(), 1e-4)
