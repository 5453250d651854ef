"""Counting the biases (eq:rest): the corrected formula, its rate, and what it absorbs."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from synthetic import drawn_embedding

from amptutorial.bias import drop_empty, estimate_bias, margins
from amptutorial.laws import ConstantBias, GaussianRows
from amptutorial.model import draw_embedding

counts = arrays(np.int64, st.tuples(st.integers(1, 6), st.integers(1, 6)), elements=st.integers(1, 50))


@given(counts, st.sampled_from([np.asarray, sp.csr_array, sp.coo_array, sp.csc_array, np.ndarray.tolist]))
def test_margins_are_the_sums_of_rows_and_columns(Z, make):
    rows, columns = margins(make(Z))
    assert rows.tolist() == [sum(row) for row in Z.tolist()]
    assert columns.tolist() == [sum(column) for column in Z.T.tolist()]
    assert rows.dtype == columns.dtype == np.float64


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, sp.csc_array, sp.coo_array])
@pytest.mark.parametrize(
    ("value", "dtype"), [(127, "int8"), (255, "uint8"), (300, "float32"), (2**62, "int64"), (2**63, "uint64")]
)
def test_sums_do_not_wrap_around(value, dtype, make):
    """The sums of 512 times 4 equal values are exact in double precision, for every type of counts."""
    rows, columns = margins(make(np.full((512, 4), value, dtype=dtype)))
    assert (rows == 4 * value).all() and (columns == 512 * value).all()


def test_sums_beyond_double_precision_are_an_error():
    """Each sum by itself may still be finite."""
    for Z in (np.full((2, 2), 1e308), np.diag([1.2e308, 1.2e308]), sp.csr_array(np.full((2, 2), 1e308))):
        for function in (margins, estimate_bias, drop_empty):
            with pytest.raises(ValueError, match="more than a float64 can hold"):
                function(Z)


@given(counts)
def test_margins_and_normalisation(Z):
    """r_u_i r_v_j = row_i col_j / Z_tot, and mean(r_u) = 1 (eq:bias_norm)."""
    r_u, r_v = estimate_bias(Z)
    assert np.allclose(np.outer(r_u, r_v), np.outer(Z.sum(1), Z.sum(0)) / Z.sum())
    assert np.isclose(r_u.mean(), 1)


def test_erratum_1_the_printed_formula_loses_the_scale(rng):
    """Printed: r_v = n / Z_tot col. Corrected: r_v = col / m. The error of the first is total, of the second small."""
    model = drawn_embedding(400, 600, 3, rng, variance=0.1, shift=3)
    Z = model.sample(rng)
    r_u, r_v = estimate_bias(Z)
    printed = 600 / Z.sum() * Z.sum(axis=0)

    def error(estimate):
        return ((estimate - model.r_v) ** 2).sum() / (model.r_v**2).sum()

    assert error(printed) > 0.99
    assert error(r_v) < 1e-3
    # W has variance 1 with the corrected factors only
    signal = model.A @ model.B.T / np.sqrt(model.m)
    for r, low, high in ((r_v, 0.95, 1.05), (printed, 100, np.inf)):
        W = (Z - np.outer(r_u, r)) / np.sqrt(np.outer(r_u, r)) - signal
        assert low < W.var() < high


def test_consistency_and_its_rate(rng):
    """lem:biasconv: mean (r_u_hat - r_u)^2 -> 0. Poisson noise and embedding each give order 1/n: the slope is -1."""
    sizes = np.array([100, 200, 400, 800])

    def error(n):
        model = drawn_embedding(n, n, 3, rng, variance=0.1, shift=3)
        return np.mean((estimate_bias(model.sample(rng))[0] - model.r_u) ** 2)

    errors = [np.mean([error(n) for _ in range(8)]) for n in sizes]
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    # errors are averages of m squared terms times 8 instances: their spread puts the slope within 0.15
    assert slope == pytest.approx(-1, abs=0.15)


def test_row_sums_absorb_the_weighted_mean_of_the_other_side(rng):
    """At large rates log(r_u_hat / r_u) = u.mean / sqrt(m) + u^T S u / (2 m), with the moments of v weighted by r_v.

    Both terms are of order 1/m: the mean of n centred rows is itself of order 1/sqrt(n).
    """
    rows, bias = GaussianRows(0.5), ConstantBias(8.0)
    model = draw_embedding(300, 400, 2, rows_u=rows, rows_v=rows, bias_u=bias, bias_v=bias, rng=rng)
    r_u, _ = estimate_bias(model.sample(rng))
    weights = model.r_v / model.r_v.sum()
    second = np.einsum("ik,kl,il->i", model.U, (model.V * weights[:, None]).T @ model.V, model.U)
    absorbed = model.U @ (weights @ model.V) / np.sqrt(model.m) + second / (2 * model.m)
    measured = np.log(r_u / model.r_u)
    assert np.corrcoef(measured, absorbed)[0, 1] > 0.99
    assert np.polyfit(absorbed, measured, 1)[0] == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array, sp.coo_matrix])
def test_drop_empty_keeps_the_maps(make):
    Z = np.array([[0, 0, 0, 0], [1, 0, 2, 0], [0, 0, 0, 0], [0, 0, 3, 0]])
    kept, rows, columns = drop_empty(make(Z))
    kept = kept.toarray() if sp.issparse(kept) else kept
    assert rows.tolist() == [1, 3] and columns.tolist() == [0, 2]
    assert np.array_equal(kept, Z[np.ix_(rows, columns)])
    estimate_bias(kept)


def test_an_empty_row_is_named_alone_and_with_the_number_of_others():
    with pytest.raises(ValueError, match=r"^row 0 has no counts: its bias.*drop_empty\(Z\)"):
        estimate_bias([[0, 0], [1, 1]])
    with pytest.raises(ValueError, match=r"^column 0 \(and 2 more\) has no counts"):
        estimate_bias(sp.csr_array([[0, 0, 0, 1]]))
    with pytest.raises(ValueError, match="no counts at all"):
        drop_empty(np.zeros((2, 2)))
