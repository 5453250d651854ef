"""The checks at the door: every public function calls these before it computes.

Each message says what is wrong, where, and what to do about it.
"""

import numbers

import numpy as np
import scipy.sparse as sp


class AMPWarning(UserWarning):
    """The mathematics degrades: the result is finite, but read the message before trusting it."""


def check_rng(rng):
    """Return `rng` if it is a `numpy.random.Generator`.

    Raises
    ------
    TypeError
        For a bare seed or a legacy ``RandomState``.
    """
    if not isinstance(rng, np.random.Generator):
        raise TypeError(
            f"rng must be a numpy.random.Generator, got {type(rng).__name__}: make one with numpy.random.default_rng(0)"
        )
    return rng


def check_integer(value, name, *, minimum=0):
    """Return `value` as an int that is at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {value}")
    return int(value)


def check_positive(value, name, *, zero=False):
    """Return `value` as a float that is finite and positive (or zero, if `zero`)."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {value!r}")
    if not np.isfinite(value) or value < 0 or (value == 0 and not zero):
        raise ValueError(
            f"{name} must be {'non-negative' if zero else 'positive'} and finite, got {value}"
        )
    return float(value)


def check_matrix(X, name, *, shape=(None, None)):
    """Return `X` as a finite float array of `shape` (None: any size); float32 stays float32.

    Raises
    ------
    ValueError
        If it is not two-dimensional, has another shape, or holds NaN or infinity.
    """
    X = np.asarray(X)
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    wanted = tuple("any" if s is None else s for s in shape)
    if X.ndim != 2 or any(
        s is not None and s != t for s, t in zip(shape, X.shape, strict=True)
    ):
        raise ValueError(
            f"{name} must have shape ({wanted[0]}, {wanted[1]}), got {X.shape}"
        )
    if not np.isfinite(X).all():
        raise ValueError(f"{name} holds NaN or infinite values")
    return X


def check_rates(r, size, name):
    """Return the bias factors `r` = exp(s) as a vector of `size` finite positive numbers."""
    r = np.asarray(r)
    if r.dtype not in (np.float32, np.float64):
        r = r.astype(np.float64)
    if r.shape != (size,):
        raise ValueError(f"{name} must have shape ({size},), got {r.shape}")
    bad = np.flatnonzero(~(np.isfinite(r) & (r > 0)))
    if bad.size:
        raise ValueError(
            f"{name} must be positive and finite: {name}[{bad[0]}] is {r[bad[0]]}"
        )
    return r


def check_symmetric(F, d, name="F"):
    """Return `F` as a symmetric float64 matrix (d, d)."""
    F = check_matrix(np.asarray(F, dtype=np.float64), name, shape=(d, d))
    if np.abs(F - F.T).max(initial=0.0) > 1e-6 * np.abs(F).max(initial=0.0):
        raise ValueError(
            f"{name} must be symmetric: pass ({name} + {name}.T) / 2 if the asymmetry is round-off"
        )
    return F


def check_counts(Z, *, integers=False, name="Z"):
    """Return the counts `Z` as a finite non-negative array, or as a CSR array where it is sparse.

    Parameters
    ----------
    Z : array or sparse array, shape (m, n)
    integers : bool
        Whether fractional entries are an error (splitting counts needs whole ones).

    Raises
    ------
    ValueError
        If `Z` is empty, not two-dimensional, or has NaN, infinite, negative or (with
        `integers`) fractional entries.
    """
    if sp.issparse(Z):
        Z = sp.csr_array(Z)
        # scores and squares need each pair stored once; the caller's arrays stay as
        # they are
        if not Z.has_canonical_format:
            Z = Z.copy()
            Z.sum_duplicates()
        values = Z.data
    else:
        Z = values = np.asarray(Z)
    if Z.ndim != 2 or 0 in Z.shape:
        raise ValueError(
            f"{name} must be a matrix with at least one row and one column, got shape {Z.shape}"
        )
    if values.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold numbers, got dtype {values.dtype}")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} holds NaN or infinite values: counts are finite")
    if (values < 0).any():
        raise ValueError(f"{name} holds negative values: counts are at least zero")
    if integers and (values != np.floor(values)).any():
        raise ValueError(
            f"{name} holds fractional values: whole counts are needed here, not weights such as tf-idf"
        )
    return Z


def check_finite(**values):
    """Refuse to go on with what an iteration made if it is not finite.

    Raises
    ------
    FloatingPointError
        Naming the first of the `values` with a NaN or an infinity.
    """
    for name, value in values.items():
        if not np.isfinite(value).all():
            raise FloatingPointError(
                f"{name} is not finite: the iteration diverges. Try a start nearer to "
                "the signal (amptutorial.spectral_start), a larger strength, a smaller "
                "prior covariance, or a bias law with a finite second moment"
            )


def check_values(x, name, *, shape=None):
    """Return `x` as a finite float64 array, of any shape or of this one.

    Raises
    ------
    ValueError
        If it has another shape, or holds NaN or infinity.
    """
    x = np.asarray(x).astype(np.float64)
    if shape is not None and x.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {x.shape}")
    if not np.isfinite(x).all():
        raise ValueError(f"{name} holds NaN or infinite values")
    return x


# for what checks its results: one error takes the place of NumPy's warnings
quiet = np.errstate(over="ignore", divide="ignore", invalid="ignore")


def check_result(value, name, remedy):
    """Return the result `value` if it is finite.

    Raises
    ------
    FloatingPointError
        Which says that `name` is too large, and the `remedy`.
    """
    if not np.isfinite(value).all():
        raise FloatingPointError(f"{name} is too large for a float: {remedy}")
    return value


def check_covariance(C, name, *, definite=False):
    """Return `C` as a symmetric positive semidefinite float64 matrix (d, d), d >= 1.

    Raises
    ------
    ValueError
        If it is empty, not symmetric, or has a negative eigenvalue beyond round-off, or
        (with `definite`) one that is not positive.
    """
    d = len(check_matrix(C, name))
    if d == 0:
        raise ValueError(f"{name} must not be empty")
    C = check_symmetric(C, d, name)
    smallest = np.linalg.eigvalsh(C)[0]
    if definite and smallest <= 0 or smallest < -1e-12 * np.trace(C):
        wanted = "definite" if definite else "semidefinite"
        raise ValueError(
            f"{name} must be positive {wanted}, its smallest eigenvalue is "
            f"{smallest:.3g}"
        )
    return C


def check_number(value, name):
    """Return `value` as a finite float of any sign."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {value!r}")
    if not np.isfinite(value):
        raise ValueError(f"{name} must be finite, got {value}")
    return float(value)


def check_methods(value, name, *methods):
    """Return `value` if it has all of the `methods`."""
    for method in methods:
        if not callable(getattr(value, method, None)):
            raise TypeError(f"{name} must have a method {method}, got {value!r}")
    return value


def check_factors(s, name):
    """Return the bias factors r = exp(s) of the biases `s`, as positive floats.

    Raises
    ------
    OverflowError
        If a factor is zero or infinite.
    """
    with np.errstate(over="ignore", under="ignore"):
        r = np.exp(s)
    if not (np.isfinite(r).all() and (r > 0).all()):
        raise OverflowError(
            f"exp({name}) is zero or infinite: the biases are too small or too large, "
            "or differ too much"
        )
    return r
