"""When AMPEmbedding stops, and which iterate it keeps."""

import pickle
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from amptutorial import heldout
from amptutorial.heldout import Chosen, Patience
from amptutorial.table import Table


def test_patience_ends_with_the_first_iteration_without_progress():
    """But not before the tenth. Progress lowers the cross-entropy, here 3 - gain, by more than a hundredth."""
    patience, ended = Patience(entropy=3.0, tol=0.01), []
    for k in range(1, 13):
        patience = patience.after(0.1 * k if k not in (4, 12) else -1.0)
        ended.append(patience.exhausted)
    assert ended == 11 * [False] + [True]
    assert patience.k == 12 and patience.highest == pytest.approx(1.1)


@pytest.mark.parametrize(
    ("tol", "gains", "progress"),
    [
        (0.01, [1.0, 1.0201], [True, True]),
        *((0.01, [1.0, gain], [True, False]) for gain in (1.0199, 0.9, 1.0)),
        (0.0, [-1e9, -1e9, 1.0, 1.0, 1.5], [True, False, True, False, True]),
    ],
)
def test_progress_is_measured_by_what_is_left_of_the_cross_entropy(tol, gains, progress):
    """With an entropy of 3 + 1/50: a hundredth of what is left at 1.02 is 0.02; without a tolerance any gain counts."""
    patience = Patience(entropy=3.02, tol=tol)
    assert patience.progress is False and patience.k == 0
    for k, (gain, some) in enumerate(zip(gains, progress, strict=True), 1):
        patience = patience.after(gain)
        assert patience.progress is some and patience.highest == max(gains[:k])


class Gains:
    """In the place of `HeldOut`: an iterate is its own log-ratio, and every pair has one count."""

    rows = columns = z = np.ones(100)
    observed, gaps, halves = (rows, columns), None, (z, z)

    def log_ratios(self, X, _, __, ___):
        return X[:, 0]

    def mean(self, values, z=None):
        return float(values.mean())

    def standard_error(self, values):
        return 7.0 * float(values.mean())

    def entropy(self):
        return 5.0


@pytest.fixture(autouse=True)
def biases(monkeypatch):
    """Of these iterates nothing is refitted."""
    monkeypatch.setattr(heldout, "fit_margins", lambda *_: (np.ones(100), np.ones(100)))


def sides(gain):
    return SimpleNamespace(X=np.full((100, 1), gain)), SimpleNamespace(X=np.zeros((100, 1)))


def judged(iterates, best=None):
    """Return what is chosen of iterates, which end after the last one."""
    best = best or Chosen(Gains(), 1e-4)
    for rows, columns in iterates:
        if best.judge(rows, columns, Gains()):
            break
    return best


def test_the_best_iterate_is_kept_with_its_gain_and_error():
    gains = [0.1, 0.5, 0.3, *[0.2] * 7]
    best = judged(sides(gain) for gain in gains)
    assert best.sides[0].X[0, 0] == 0.5 and best.k == 2 and not best.patience.progress
    assert best.gain == pytest.approx(0.5) and best.error == pytest.approx(3.5)


@pytest.mark.parametrize("number", [1, 2, 9, 10])
def test_a_judgement_goes_on_where_it_was(number, monkeypatch):
    """Stored and loaded, it knows the column biases of the last one judged, where the next refit starts."""
    monkeypatch.setattr(heldout, "fit_margins", lambda _, __, U, ___, r_v, *____: (r_v, r_v + U[0]))
    iterates = [sides(gain) for gain in [0.1, 0.5, 0.3, *[0.2] * 17]]
    expected, best = judged(iterates), pickle.loads(pickle.dumps(judged(iterates[:number])))
    found = judged(iterates[number:10], best)
    assert found.patience.k == expected.patience.k == 10 and found.k == expected.k == 2
    assert np.array_equal(found.sides[0].X, iterates[1][0].X) and np.array_equal(found.r_v, expected.r_v)
    assert vars(found.patience) == vars(expected.patience)


def test_independence_is_kept_where_no_iterate_beats_it():
    best = judged([sides(-0.1)] * 10)
    assert best.sides is None and (best.gain, best.k, best.patience.progress) == (0.0, 0, False)
    assert best.error == pytest.approx(-0.7)  # of the best of them, for what is said of it


def test_the_last_iterate_is_announced():
    iterates = iter([sides(1.0)] * 20)
    best = judged(iterates)
    assert best.k == 1 and not best.patience.progress  # all are equally good: the first one is kept
    assert len(list(iterates)) == 10


def test_iterates_that_run_out_while_improving_are_reported():
    best = judged([sides(0.1), sides(0.2)])
    assert best.k == 2 and best.patience.progress


@pytest.mark.parametrize("gain", [np.nan, -np.inf])
def test_a_gain_that_is_not_finite_is_an_error(gain):
    with pytest.raises(FloatingPointError, match="heldout_gain is not finite"):
        judged([sides(gain)])


def test_hidden_pairs_are_marked_where_counts_are_expected_and_look_empty_elsewhere(rng):
    """Of columns with 0.02 counts in a pair all do, of columns with one count none, whether they have counts or not."""
    Z = rng.poisson(np.repeat([0.02, 1.0], [90, 100]), (200, 190)).astype(float)
    seen, held_out = Table(sp.csr_array(Z)).hide(np.random.default_rng(0))
    gaps, kept = np.isnan(seen.Z.toarray()), np.nan_to_num(seen.Z.toarray())
    rest = sp.coo_array((held_out.z, (held_out.i, held_out.j)), shape=Z.shape).toarray()
    assert (kept + rest <= Z).all() and np.array_equal((kept + rest)[:, 90:], Z[:, 90:])
    rare, frequent = np.split(gaps, [90], axis=1)
    assert not rare.any() and frequent[rest[:, 90:] > 0].all()
    assert abs(frequent.mean() - 0.1) < 4 * np.sqrt(0.09 / frequent.size)
    assert abs((Z[gaps] == 0).mean() - np.exp(-1)) < 4 * np.sqrt(0.25 / gaps.sum())
    independent = np.outer(held_out.rows, held_out.columns) / held_out.rows.sum()
    for axis in (0, 1):  # of the pairs seen
        assert np.allclose(np.where(gaps, 0, independent).sum(axis=axis), kept.sum(axis=axis))
