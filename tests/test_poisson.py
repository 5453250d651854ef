"""The Poisson likelihood in blocks: sums, means, and biases refitted to the margins (counts are not biases)."""

import threading

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from amptutorial import sums
from amptutorial._validation import AMPWarning
from amptutorial.bias import estimate_bias
from amptutorial.biases import fit_margins, margin_biases, observed_biases, refit_biases
from amptutorial.sums import AllColumns, largest_changes, log_partition, tilted_means

counts = arrays(np.int64, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=st.integers(1, 50))


@pytest.fixture
def instance(rng):
    m, n, d = 40, 30, 3
    U, W, r_v = rng.standard_normal((m, d)), rng.standard_normal((n, d)), rng.uniform(0.1, 3, n)
    return U, W, r_v, r_v * np.exp(U @ W.T)


def test_sums_and_means_are_those_of_the_dense_rates(instance):
    U, W, r_v, rates = instance
    log_sums, means = tilted_means(U, W, r_v)
    assert np.allclose(log_sums, np.log(rates.sum(axis=1)), rtol=1e-12)
    assert np.allclose(means, rates @ W / rates.sum(axis=1, keepdims=True), rtol=1e-12)
    assert np.allclose(log_partition(U, W, r_v), log_sums, rtol=1e-13)


def test_columns_without_bias_do_not_count(instance):
    U, W, r_v, _ = instance
    without = np.where(np.arange(len(r_v)) < 10, 0, r_v)
    assert np.allclose(log_partition(U, W, without), log_partition(U, W[10:], r_v[10:]), rtol=1e-12)


def test_single_precision_is_kept_and_close(instance):
    U, W, r_v, _ = instance
    _, means = tilted_means(U.astype(np.float32), W, r_v)
    assert means.dtype == np.float32
    assert np.allclose(means, tilted_means(U, W, r_v)[1], atol=100 * np.finfo(np.float32).eps)


def test_largest_changes_are_exact_where_it_matters():
    """The largest change of an M_ij, or |step| times the largest |w| where even that is not beyond the limit."""
    W = np.array([[0.0, 2.0], [0.3, 0.0], [-0.4, 0.0]])
    step = np.array([[0.1, 0.0], [0.0, 0.5], [0.6, 0.0], [10.0, 0.0], [0.0, -3.0], [0.0, 0.0]])
    #                bound 0.2    bound 1.0    bound 1.2: 0.24 is exact
    assert np.allclose(largest_changes(step, W, beyond=1.0), [0.2, 1.0, 0.24, 4.0, 6.0, 0.0])
    assert np.allclose(largest_changes(step, W), np.abs(step @ W.T).max(axis=1))
    assert np.allclose(AllColumns(W, np.ones(3)).reach(step, 1.0), largest_changes(step, W, 1.0), rtol=1e-15)


@given(counts)
def test_without_an_embedding_they_are_the_counted_biases(Z):
    m, n = Z.shape
    for refitted, counted in zip(refit_biases(Z, np.zeros((m, 1)), np.zeros((n, 1))), estimate_bias(Z), strict=True):
        assert np.allclose(refitted, counted)


def test_it_runs_in_blocks_of_any_size_and_where_no_thread_can_be_started(instance, monkeypatch):
    """As in WebAssembly; also where the system refuses only the second one."""
    U, W, r_v, _ = instance
    whole = tilted_means(U, W, r_v)
    monkeypatch.setattr(sums, "BLOCK_ENTRIES", 7 * len(W))
    monkeypatch.setattr(sums, "cpu_count", lambda: 4)
    threaded, started, start = tilted_means(U, W, r_v), [], threading.Thread.start
    assert all(np.allclose(a, b, rtol=1e-13) for a, b in zip(whole, threaded, strict=True))

    def refuse(thread):
        if len(started) >= allowed:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    for allowed in (0, 1):
        started.clear()
        for a, b in zip(threaded, tilted_means(U, W, r_v), strict=True):
            assert np.array_equal(a, b)
        assert len(started) == allowed


def test_an_error_in_a_block_is_not_taken_for_a_lack_of_threads():
    calls = []

    def fail(rows):
        calls.append(rows)
        raise RuntimeError("in the block")

    with pytest.raises(RuntimeError, match="in the block"):
        sums.map_blocks(fail, 1, 1)
    assert len(calls) == 1


def test_no_rows_at_all_have_no_sums():
    log_sums, means = tilted_means(np.zeros((0, 2)), np.zeros((3, 2)), np.ones(3))
    assert log_sums.shape == (0,) and means.shape == (0, 2)


def test_one_bias_that_overflows_is_enough():
    with pytest.raises(FloatingPointError, match="biases overflow"):
        margin_biases(np.ones(2), np.array([[0.0], [-1e4]]), AllColumns(np.ones((1, 1)), np.ones(1)))


def off(Z, U, V, r_u, r_v):
    """By how much the rates miss the sums of the rows, and of the columns, as fractions of all counts."""
    rates = r_u[:, None] * r_v * np.exp(U @ V.T / np.sqrt(len(U)))
    return [np.abs(rates.sum(axis=k) - Z.sum(axis=k)).sum() / Z.sum() for k in (1, 0)]


def far_apart(rng):
    """90 x 130 counts whose M has a standard deviation of 1.7."""
    U, V = 1.7 * rng.standard_normal((90, 4)) * np.sqrt(90 / 4), rng.standard_normal((130, 4))
    return rng.poisson(3 * np.exp(U @ V.T / np.sqrt(90) - 1.7**2 / 2)), U, V


@pytest.mark.parametrize("tol", [0.1, 1e-2, 1e-3, 1e-6])
def test_column_sums_are_right_within_the_tolerance_and_row_sums_are_exact(tol, rng):
    Z, U, V = far_apart(rng)
    r_u, r_v = refit_biases(Z, U, V, tol=tol)
    rows, columns = off(Z, U, V, r_u, r_v)
    assert np.isclose(r_u.mean(), 1) and rows < 1e-12 and 1e-3 * tol < columns <= tol * (1 + 1e-9)


@pytest.mark.parametrize("scale", [1, 2, 4])
def test_slow_sweeps_are_extrapolated_to_the_tolerance(scale, rng):
    """By themselves, about 70 sweeps are needed at the least scale, and thousands at the largest; in any unit of Z."""
    Z, U, V = far_apart(rng)
    Z = Z / Z.sum()
    assert max(off(Z, scale * U, V, *refit_biases(Z, scale * U, V))) <= 1e-6 * (1 + 1e-9)


def test_an_embedding_out_of_all_bounds_is_refused_and_not_extrapolated(rng):
    Z = rng.poisson(0.5, (40, 60))
    U, V = (300 * rng.standard_normal((n, 2)) for n in Z.shape)
    with pytest.raises(FloatingPointError, match="scale U or V down"):
        refit_biases(Z, U, V)


def test_a_refit_that_stops_short_says_so_at_the_line_that_called_it(rng):
    Z, U, V = far_apart(rng)
    with pytest.warns(AMPWarning, match="column sums are off by .* allow more sweeps than n_sweeps=3") as caught:
        rows, columns = off(Z, U, V, *refit_biases(Z, U, V, n_sweeps=3))
    assert caught[0].filename == __file__
    assert f"{columns:.1e}" in str(caught[0].message) and rows < 1e-12


@pytest.mark.parametrize("scale", [1.0, 40.0])
def test_both_margins_are_fitted_one_after_the_other(scale, instance):
    """With entries of M so large that exponentials must be scaled, and without."""
    U, W, r_v, _ = instance
    rows, columns = np.arange(1.0, 41), np.arange(30.0)
    r_u, fitted = fit_margins(rows, columns, scale * U, W, r_v)
    assert np.allclose(r_u, margin_biases(rows, scale * U, AllColumns(W, r_v)), rtol=1e-12)
    assert np.allclose(fitted, margin_biases(columns, W, AllColumns(scale * U, r_u)), rtol=1e-12)


def test_rates_add_up_to_the_counts_over_the_pairs_that_were_observed(rng):
    U, V, Z = rng.standard_normal((20, 2)), rng.standard_normal((15, 2)), rng.poisson(5.0, (20, 15))
    seen, M = rng.random(Z.shape) < 0.7, 2 * U @ V.T / np.sqrt(20)
    holes = np.where(seen, Z, np.nan)
    r_u, r_v = refit_biases(holes, 2 * U, V, n_sweeps=1000, tol=1e-12)
    for axis in (0, 1):
        assert np.allclose((r_u[:, None] * r_v * np.exp(M) * seen).sum(axis=axis), np.nansum(holes, axis=axis))
    rows = observed_biases(sp.csr_array(holes), 2 * U, V / np.sqrt(20), np.ones(15))
    assert np.allclose(rows * (np.exp(M) * seen).sum(axis=1), np.nansum(holes, axis=1))


def test_biases_of_any_scale_are_one_pass(instance):
    """In single precision, in which 1e60 is infinite."""
    U, W, r_v, rates = instance
    for unit in (1e-60, 1e60):
        log_sums, _ = tilted_means(U.astype(np.float32), W, unit * r_v)
        assert np.allclose(log_sums, np.log(rates.sum(axis=1)) + np.log(unit), rtol=1e-5)


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_products_of_any_size_are_summed(precision):
    """On both sides of the bound below which exponentials are not scaled, to round-off of the product."""
    for size in np.geomspace(1, 1e3, 40):
        U, W = np.array([[size], [-size]], dtype=precision), np.array([[1.0], [-1.0], [0.5]])
        log_sums, means = tilted_means(U, W, np.array([1.0, 1.0, 1e-9]))
        assert np.allclose(log_sums, np.logaddexp(size, -size), rtol=1e-6)
        assert np.allclose(means, [[np.tanh(size)], [-np.tanh(size)]], rtol=1e-5)


def test_empty_rows_and_columns_get_no_bias(rng):
    Z = np.array([[2, 0, 1], [0, 0, 0], [1, 0, 4]])
    U, V = rng.standard_normal((3, 1)), rng.standard_normal((3, 1))
    r_u, r_v = refit_biases(sp.csr_array(Z), U, V)
    assert r_u[1] == 0 and r_v[1] == 0
    assert np.isfinite(r_u).all() and np.isfinite(r_v).all()
