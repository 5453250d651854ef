"""The checks at the door: what they accept, what they refuse, and that they leave the caller's arrays alone."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp

from amptutorial import _validation as door
from amptutorial._validation import (
    check_counts,
    check_covariance,
    check_embedding,
    check_symmetric,
    check_values,
    quiet,
)

Z = np.array([[1, 0, 2], [0, 3, 0]])


def test_precisions_that_sums_would_overflow_or_libraries_refuse_become_double():
    for dtype in "int8 bool uint64 float32 float64 float16 longdouble >f8 >i4".split():
        kept = "float64" if dtype in ("float16", "longdouble", ">f8", ">i4") else dtype
        assert door.check_array(Z.astype(dtype), "X").dtype == kept
        assert door.check_matrix(Z.astype(dtype), "X").dtype == (dtype if dtype == "float32" else "float64")


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
    checked = check_counts(repeated(form, dtype, value, times))
    assert checked.toarray() == [[int(value) * times]] and checked.has_canonical_format


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
    door.check_methods("upper", "lower", x="text", y="word")
    with pytest.raises(TypeError, match="y must have a method lower, got 2"):
        door.check_methods("lower", x="text", y=2)
    for wrong, method in ((str, "upper"), ("text", "draw"), (None, "draw")):
        with pytest.raises(TypeError, match=f"x must have a method {method}, got"):
            door.check_methods(method, x=wrong)


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


def test_what_is_right_comes_back_as_numbers_of_one_kind():
    U, V = check_embedding(np.ones((2, 1), dtype=np.float32), [[1], [2], [3]], 2, 3)
    assert U.dtype == V.dtype == check_values([1, 2], "x").dtype == np.float64 and check_values(3, "x").shape == ()
    assert door.check_rates([0, 1], 2, "r", zero=True).tolist() == [0, 1]
    assert check_values([1, 2], "x", shape=(2,)).tolist() == [1, 2]
    assert door.check_factors(np.array([0.0, 400.0]), "s").tolist() == [1.0, np.exp(400.0)]
    assert [door.check_integer(k, "k") for k in (0, np.int8(3), sys.maxsize)] == [0, 3, sys.maxsize]
    assert door.check_integer(2, "k", minimum=2) == 2 and door.check_number(-1, "x") == -1
    assert door.check_positive(1, "x") == 1 and door.check_positive(0, "x", zero=True) == 0
    assert door.check_choice("b", "init", ("b", "a")) == "b"
    door.check_finite(x=np.ones(2), y=0.0)


def deep(*shape):
    return lambda: check_counts(np.ones(shape))


# What is refused by one check alone; what every function refuses is in test_door.py
REFUSED = {
    **{f"counts of shape {shape}": (deep(*shape), "a matrix with at least one row") for shape in ((3,), (1, 2, 3), ())},
    "U of other rows": (lambda: check_embedding(np.ones((3, 1)), np.ones((3, 1)), 2, 3), r"\(2, any\), got \(3, 1\)"),
    "V of other columns": (lambda: check_embedding(np.ones((2, 1)), np.ones((3, 2)), 2, 3), r"\(3, 1\), got \(3, 2\)"),
    "a factor of zero": (lambda: door.check_rates([0, 1], 2, "r"), r"positive and finite: r\[0\] is 0"),
    "a factor below": (lambda: door.check_rates([0, -1], 2, "r", zero=True), r"non-negative and finite: r\[1\] is -1"),
    "a factor too many": (lambda: door.check_rates([1, 1, 1], 2, "r"), r"r must have shape \(2,\), got \(3,\)"),
    "two values in one row": (lambda: check_values([[1, 2]], "x", shape=(2,)), r"x must have shape \(2,\), got"),
    "one value for two": (lambda: check_values(1, "x", shape=(2,)), r"x must have shape \(2,\), got"),
    "NaN": (lambda: door.check_finite(good=1.0, x=np.array([1.0, np.nan])), "x is not finite: the iteration diverges"),
    "one infinity": (lambda: door.check_finite(good=1.0, x=[1.0, np.inf]), "x is not finite: the iteration diverges"),
    "a bias too large": (lambda: door.check_factors(np.array([0.0, 800.0]), "s"), r"exp\(s\) is zero or infinite"),
    "a bias too small": (lambda: door.check_factors(np.array([0.0, -800.0]), "s"), r"exp\(s\) is zero or infinite"),
    "an integer below zero": (lambda: door.check_integer(-1, "k"), "k must be at least 0, got -1"),
    "no index": (lambda: door.check_integer(sys.maxsize + 1, "k"), f"k must be at most {sys.maxsize}"),
    "no end": (lambda: door.check_number(np.inf, "x"), "x must be finite, got inf"),
    "zero": (lambda: door.check_positive(0, "x"), "x must be positive and finite, got 0"),
    "the bound": (lambda: door.check_positive(1, "x", below=1), "x must be below 1, got 1"),
    "no number": (lambda: door.check_positive(np.nan, "x", below=2), "x must be positive and finite, got nan"),
    "below zero": (lambda: door.check_positive(-1, "x", zero=True), "x must be non-negative and finite, got -1"),
    "another name": (lambda: door.check_choice("c", "init", ("b", "a")), r"init must be one of \['a', 'b'\], got 'c'"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_refusal_says_what_is_wrong_and_where(what):
    call, message = REFUSED[what]
    with pytest.raises((ValueError, FloatingPointError, OverflowError), match=message):
        call()
