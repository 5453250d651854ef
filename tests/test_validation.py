"""The checks at the door: what they accept, what they refuse, and that they leave the caller's arrays alone."""

import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from amptutorial._validation import (
    check_array,
    check_choice,
    check_counts,
    check_covariance,
    check_embedding,
    check_factors,
    check_finite,
    check_integer,
    check_matrix,
    check_methods,
    check_number,
    check_positive,
    check_rates,
    check_symmetric,
    check_values,
    quiet,
)

Z = np.array([[1, 0, 2], [0, 3, 0]])
FORMATS = ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"]


@pytest.mark.parametrize("make", [list, tuple, np.array, np.asfortranarray, pd.DataFrame, np.ma.array])
def test_every_container_of_numbers_is_an_array(make):
    for X in (check_array(make(Z.tolist()), "X"), check_counts(make(Z.tolist()))):
        assert type(X) is np.ndarray and np.array_equal(X, Z)


@pytest.mark.parametrize(
    ("dtype", "kept"),
    [
        ("int8", "int8"),
        ("bool", "bool"),
        ("uint64", "uint64"),
        ("float32", "float32"),
        ("float64", "float64"),
        ("float16", "float64"),
        ("longdouble", "float64"),
        (">f8", "float64"),
        (">i4", "float64"),
    ],
)
def test_precisions_that_sums_would_overflow_or_libraries_refuse_become_double(dtype, kept):
    assert check_array(Z.astype(dtype), "X").dtype == kept
    assert check_matrix(Z.astype(dtype), "X").dtype == (np.float32 if dtype == "float32" else np.float64)


@pytest.mark.parametrize("check", [check_array, check_matrix, lambda X, name: check_counts(X, name=name)])
@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.ma.array(Z, mask=Z > 2), TypeError, "X has masked entries"),
        (Z + 1j, ValueError, "imaginary parts would be lost"),
        (Z.astype(object), ValueError, "X must hold numbers, got dtype object"),
        (Z.astype(str), ValueError, "X must hold numbers, got dtype <U"),
        (Z.astype("timedelta64[s]"), ValueError, "X must hold numbers"),
        ([[1, 2], [3]], ValueError, "X cannot be read as an array"),
        (None, ValueError, "X must hold numbers"),
    ],
)
def test_what_is_not_real_numbers_is_refused(check, X, error, message):
    with pytest.raises(error, match=message):
        check(X, "X")


@pytest.mark.parametrize("make", [sp.csr_array, sp.coo_matrix])
def test_sparse_where_dense_is_needed_is_refused(make):
    for check in (check_array, check_matrix):
        with pytest.raises(TypeError, match=r"U must be dense.*toarray"):
            check(make(Z), "U")
    with pytest.raises(TypeError, match="r must be dense"):
        check_rates(make(Z), 2, "r")


def test_what_overflows_double_precision_is_not_finite():
    for check in (check_counts, lambda X: check_matrix(X, "X")):
        with pytest.raises(ValueError, match="NaN or infinite"):
            check(np.array([[np.longdouble("1e4000")]]))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float32", "float64", "longdouble"])
def test_sparse_counts_come_back_as_ordered_rows(form, dtype):
    given = sp.csr_array(Z.astype(dtype)).asformat(form)
    checked = check_counts(given)
    assert isinstance(checked, sp.csr_array) and checked.has_canonical_format
    assert np.array_equal(checked.toarray(), Z.astype(dtype))


def repeated(form, dtype, value, times):
    """A 1 x 1 table that stores `value` at one pair `times` times."""
    data, index = np.full(times, value, dtype=dtype), np.zeros(times, dtype=np.int32)
    if form == "coo":
        return sp.coo_array((data, (index, index)), shape=(1, 1))
    if form == "bsr":
        return sp.bsr_array((data[:, None, None], index, np.array([0, times])), shape=(1, 1))
    make = {"csr": sp.csr_array, "csc": sp.csc_array}[form]
    return make((data, index, np.array([0, times])), shape=(1, 1))


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr"])
@pytest.mark.parametrize(
    ("dtype", "value", "times"),
    [("int8", 100, 3), ("uint8", 128, 2), ("bool", True, 2), ("int64", 2**62, 4), ("uint64", 2**63, 2)],
)
def test_counts_of_a_pair_that_is_stored_twice_do_not_wrap(form, dtype, value, times):
    """The sums are powers of two or small, exact in double precision."""
    assert check_counts(repeated(form, dtype, value, times)).toarray() == [[int(value) * times]]


def test_single_precision_stays_single():
    assert check_counts(repeated("coo", "float32", 1.5, 2)).dtype == np.float32
    with pytest.raises(ValueError, match="infinite"):
        check_counts(repeated("coo", "float32", 3e38, 2))


@pytest.mark.parametrize(
    ("entry", "message"),
    [(np.nan, "NaN or infinite"), (np.inf, "NaN or infinite"), (-1.0, "negative"), (0.5, "fractional")],
)
@pytest.mark.parametrize("make", [np.array, sp.csr_array])
def test_one_bad_count_among_good_ones_is_enough(make, entry, message):
    with pytest.raises(ValueError, match=f"counts holds {message} values"):
        check_counts(make([[1.0, 2.0], [entry, 0.0]]), integers=True, name="counts")
    assert check_counts(make([[1.0, 2.0], [3.0, 0.0]]), integers=True).sum() == 6
    assert check_counts(make([[1.0, 2.0], [0.5, 0.0]])).sum() == 3.5


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (3,), (1, 2, 3), ()])
def test_counts_are_a_matrix_that_is_not_empty(shape):
    with pytest.raises(ValueError, match="Z must be a matrix with at least one row and one column, got shape"):
        check_counts(np.ones(shape))


@pytest.mark.parametrize("entry", [np.nan, np.inf])
@pytest.mark.parametrize("check", [check_matrix, check_values])
def test_one_entry_that_is_not_finite_among_others_is_enough(check, entry):
    with pytest.raises(ValueError, match="X holds NaN or infinite values"):
        check(np.array([[1.0, entry]]), "X")


def test_embeddings_must_fit_each_other_and_have_one_precision():
    U, V = check_embedding(np.ones((2, 1), dtype=np.float32), [[1], [2], [3]], 2, 3)
    assert U.dtype == V.dtype == np.float64
    with pytest.raises(ValueError, match=r"U must have shape \(2, any\), got \(3, 1\)"):
        check_embedding(np.ones((3, 1)), np.ones((3, 1)), 2, 3)
    with pytest.raises(ValueError, match=r"V must have shape \(3, 1\), got \(3, 2\)"):
        check_embedding(np.ones((2, 1)), np.ones((3, 2)), 2, 3)


def test_bias_factors_may_be_zero_only_where_that_is_asked_for():
    assert check_rates([0, 1], 2, "r", zero=True).tolist() == [0, 1]
    with pytest.raises(ValueError, match=r"positive and finite: r\[0\] is 0"):
        check_rates([0, 1], 2, "r")
    with pytest.raises(ValueError, match=r"non-negative and finite: r\[1\] is -1"):
        check_rates([0, -1], 2, "r", zero=True)


@pytest.mark.parametrize("scale", [1e-10, 1.0, 1e10])
def test_asymmetry_is_measured_by_the_scale_of_the_matrix(scale):
    F = scale * np.array([[2.0, 1.0], [1.0, 3.0]])
    assert (check_symmetric(F * [[1, 1 + 1e-9], [1, 1]], 2) == F * [[1, 1 + 1e-9], [1, 1]]).all()
    with pytest.raises(ValueError, match="F must be symmetric"):
        check_symmetric(F * [[1, 1 + 1e-3], [1, 1]], 2)
    assert not check_symmetric(0 * F, 2).any() and check_symmetric(np.empty((0, 0)), 0).shape == (0, 0)


@pytest.mark.parametrize("scale", [1e-10, 1.0, 1e10])
def test_a_covariance_may_be_singular_and_round_off_is_measured_by_its_scale(scale):
    for smallest in (0.0, -1e-14):
        assert check_covariance(scale * np.diag([1.0, smallest]), "C").shape == (2, 2)
    with pytest.raises(ValueError, match="C must be positive semidefinite, its smallest eigenvalue is -"):
        check_covariance(scale * np.diag([1.0, -1e-3]), "C")
    assert check_covariance(scale * np.diag([1.0, 0.5]), "C", definite=True).shape == (2, 2)
    assert not check_covariance(np.zeros((2, 2)), "C").any()
    with pytest.raises(ValueError, match="C must be positive definite"):
        check_covariance(scale * np.diag([1.0, 0.0]), "C", definite=True)


def test_an_object_has_methods_and_its_class_is_no_object():
    assert check_methods("text", "x", "upper", "lower") == "text"
    for wrong, method in ((str, "upper"), ("text", "draw"), (None, "draw")):
        with pytest.raises(TypeError, match=f"x must have a method {method}, got"):
            check_methods(wrong, "x", method)


def test_values_may_have_any_shape_or_a_given_one():
    assert check_values([1, 2], "x").dtype == np.float64 and check_values(3, "x").shape == ()
    assert check_values([1, 2], "x", shape=(2,)).tolist() == [1, 2]
    for wrong in ([[1, 2]], [1], 1):
        with pytest.raises(ValueError, match=r"x must have shape \(2,\), got"):
            check_values(wrong, "x", shape=(2,))


def test_one_result_that_is_not_finite_is_enough():
    for value in (np.array([1.0, np.nan]), [1.0, np.inf]):
        with pytest.raises(FloatingPointError, match="x is not finite: the iteration diverges"):
            check_finite(good=1.0, x=value)
    check_finite(x=np.ones(2), y=0.0)


@pytest.mark.parametrize("s", [-800.0, 800.0])
def test_one_bias_whose_exponential_is_no_float_is_enough(s):
    with pytest.raises(OverflowError, match=r"exp\(s\) is zero or infinite"):
        check_factors(np.array([0.0, s]), "s")
    assert check_factors(np.array([0.0, s / 2]), "s").tolist() == [1.0, np.exp(s / 2)]


def test_integers_are_those_that_an_index_can_be():
    assert [check_integer(k, "k") for k in (0, np.int8(3), sys.maxsize)] == [0, 3, sys.maxsize]
    assert check_integer(2, "k", minimum=2) == 2
    for k, message in ((-1, "at least 0, got -1"), (sys.maxsize + 1, f"at most {sys.maxsize}")):
        with pytest.raises(ValueError, match=f"k must be {message}"):
            check_integer(k, "k")
    for k in (True, 1.0, "1"):
        with pytest.raises(TypeError, match="k must be an integer"):
            check_integer(k, "k")


def test_numbers_may_have_any_sign_or_be_positive_or_not_negative():
    assert check_number(-1, "x") == -1 and check_positive(1, "x") == 1 and check_positive(0, "x", zero=True) == 0
    for value, zero, message in ((0, False, "positive"), (-1, False, "positive"), (-1, True, "non-negative")):
        with pytest.raises(ValueError, match=f"x must be {message} and finite, got {value}"):
            check_positive(value, "x", zero=zero)
    for value in (np.inf, -np.inf, np.nan, 10**400):
        with pytest.raises(ValueError, match="x must be finite"):
            check_number(value, "x")
        with pytest.raises(ValueError, match="x must be positive and finite"):
            check_positive(value, "x")
    for value in (True, "1", 1j):
        with pytest.raises(TypeError, match="x must be a number"):
            check_number(value, "x")


def test_quiet_contexts_nest_and_decorate_and_leave_numpy_as_it_was():
    @quiet()
    def overflow(depth):
        with quiet():
            return overflow(depth - 1) if depth else np.float64(1e300) * 1e300

    before = np.geterr()
    with quiet():
        with quiet():
            assert np.isinf(overflow(3)) and np.geterr() != before
        assert np.isnan(np.float64(np.inf) - np.inf)
    assert np.geterr() == before
    with pytest.warns(RuntimeWarning, match="overflow"):
        np.float64(1e300) * 1e300


def test_a_choice_is_one_of_the_names():
    assert check_choice("b", "init", ("b", "a")) == "b"
    with pytest.raises(ValueError, match=r"init must be one of \['a', 'b'\], got 'c'"):
        check_choice("c", "init", ("b", "a"))
