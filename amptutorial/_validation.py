"""The checks at the door: every public function calls these before it computes.

Each message says what is wrong, where, and what to do about it.
"""

import numbers
import sys

import numpy as np
import scipy.sparse as sp

from .names import coordinates, named


class AMPWarning(UserWarning):
    """The mathematics degrades: the result is finite, but read the message first."""


def _all_finite(X):
    """Return whether an array or a number holds neither NaN nor infinity.

    The sum shows that at a third of the cost, unless the sum itself overflows.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(np.sum(X)) or np.isfinite(X).all())


def check_rng(rng):
    """Return `rng` if it is a `numpy.random.Generator`.

    Raises
    ------
    TypeError
        For a bare seed or a legacy ``RandomState``.
    """
    if not isinstance(rng, np.random.Generator):
        found = f"{type(rng).__name__}: make one with numpy.random.default_rng(0)"
        raise TypeError(f"rng must be a numpy.random.Generator, got {found}")
    return rng


def check_integer(value, name, *, minimum=0):
    """Return `value` as an int that is at least `minimum`, and that an index can be."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    number = int(value)
    if number < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {number}")
    if number > sys.maxsize:
        raise ValueError(f"{name} must be at most {sys.maxsize}")
    return number


def _real(value, name):
    """Return the number `value` as a float, infinite where it is too large for one."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {value!r}")
    try:
        return float(value)
    except OverflowError:
        return np.inf


def check_number(value, name):
    """Return `value` as a finite float of any sign."""
    number = _real(value, name)
    if not np.isfinite(number):
        raise ValueError(f"{name} must be finite, got {number}")
    return number


def check_positive(value, name, *, zero=False, below=np.inf):
    """Return `value` as a finite positive float (or zero, if `zero`), below a bound."""
    number = _real(value, name)
    if not np.isfinite(number) or number < 0 or (number == 0 and not zero):
        wanted = "non-negative" if zero else "positive"
        raise ValueError(f"{name} must be {wanted} and finite, got {number:g}")
    if number >= below:
        raise ValueError(f"{name} must be below {below}, got {number:g}")
    return number


def check_callback(value, name):
    """Return `value` if it is callable; for None, what never asks for an end."""
    if value is None:
        return lambda progress: False
    if not callable(value):
        raise TypeError(f"{name} must be callable, got {value!r}")
    return value


def check_choice(value, name, choices):
    """Return `value` if it is one of the `choices`, which are strings."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {sorted(choices)}, got {value!r}")
    return value


def refuse_masked(X, name):
    """Raise a TypeError if some entries of `X` are masked."""
    if np.ma.is_masked(X):
        raise TypeError(f"{name} has masked entries: pass X.filled(0) if they are zero")


def check_array(X, name):
    """Return `X` as a dense array of real numbers, in a precision that can be used.

    Integers, float32 and float64 stay as they are; other precisions, such as float16,
    become float64.

    Parameters
    ----------
    X : array-like
        An array, a list of lists, a DataFrame.
    name : str
        For the message.

    Raises
    ------
    TypeError
        If `X` is sparse, or some of its entries are masked.
    ValueError
        If `X` has rows of different lengths, or holds anything but real numbers.
    """
    if sp.issparse(X):
        raise TypeError(f"{name} must be dense, got a sparse array: pass X.toarray()")
    refuse_masked(X, name)
    try:
        X = _as_array(X)
    except ValueError as error:  # rows of different lengths
        raise ValueError(f"{name} cannot be read as an array: {error}") from None
    return _cast(X, _usable(X.dtype, name))


def _as_array(X):
    """Return `X` as an array; of pandas' nullable numbers, floats with NaN."""
    found = np.asarray(X)
    types = np.atleast_1d(getattr(X, "dtypes", getattr(X, "dtype", None)))
    if found.dtype == object and all(getattr(t, "_is_numeric", False) for t in types):
        return X.to_numpy(dtype=np.float64, na_value=np.nan)
    return found


def _cast(X, dtype):
    """Return the array `X` in another precision; what is too large becomes infinite."""
    with np.errstate(over="ignore"):
        return X.astype(dtype, copy=False)


def _usable(dtype, name):
    """Return the dtype in which to compute with numbers that come as `dtype`."""
    if dtype.kind not in "biuf":
        real = "X.real, if no imaginary parts would be lost"
        how = real if dtype.kind == "c" else "X.astype(float)"
        raise ValueError(
            f"{name} must hold real numbers, got dtype {dtype}: pass {how}"
        )
    usual = dtype.kind in "biu" or dtype in (np.float32, np.float64)
    return dtype if usual and dtype.isnative else np.dtype(np.float64)


def _as_float(X):
    return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)


def check_matrix(X, name, *, shape=(None, None), empty=True):
    """Return `X` as a finite float array of `shape` (None: any size).

    float32 stays float32; everything else becomes float64.

    Raises
    ------
    TypeError
        If `X` is sparse, or some of its entries are masked.
    ValueError
        If `X` is not two-dimensional, has another shape, or holds NaN or infinity, or
        anything but real numbers; (without `empty`) if it has no entries.
    """
    return _finite(_as_float(check_array(X, name)), name, shape, empty)


def _finite(X, name, shape, empty):
    """Return the array `X` if it has this shape (None: any size) and is finite.

    Without `empty`, some entries are asked for.
    """
    sizes = zip(shape, X.shape, strict=False)
    if X.ndim != len(shape) or any(s not in (None, size) for s, size in sizes):
        wanted = str(tuple(s and int(s) for s in shape)).replace("None", "any")
        raise ValueError(f"{name} must have shape {wanted}, got {X.shape}")
    if not (X.size or empty):
        raise ValueError(f"{name} must not be empty, got shape {X.shape}")
    if not _all_finite(X):
        raise ValueError(f"{name} holds NaN or infinite values")
    return X


def check_embedding(U, V, m, n):
    """Return the embeddings `U` (m, d) and `V` (n, d), in the same precision."""
    U = check_matrix(coordinates(U), "U", shape=(m, None))
    V = check_matrix(coordinates(V), "V", shape=(n, U.shape[1]))
    dtype = np.result_type(U, V)
    return U.astype(dtype, copy=False), V.astype(dtype, copy=False)


def check_rates(r, size, name, *, zero=False):
    """Return the bias factors `r` = exp(s), a vector of `size` finite positive numbers.

    With `zero`, a factor may be zero as well: that of a row without counts. They come
    back read-only, because a denoiser that writes into them would change the caller's.
    """
    r = _as_float(check_array(r, name))
    if r.shape != (size,):
        raise ValueError(f"{name} must have shape ({size},), got {r.shape}")
    bad = np.flatnonzero(~(np.isfinite(r) & ((r >= 0) if zero else (r > 0))))
    if bad.size:
        k, wanted = bad[0], "non-negative" if zero else "positive"
        raise ValueError(f"{name} must be {wanted} and finite: {name}[{k}] is {r[k]}")
    return read_only(r)


def read_only(x):
    """Return a view of an array through which nothing can be written.

    Examples
    --------
    >>> read_only(np.ones(2)).flags.writeable
    False
    """
    view = x.view()
    view.flags.writeable = False
    return view


def check_symmetric(F, d, name="F"):
    """Return `F` as a symmetric float64 matrix (d, d)."""
    F = check_matrix(F, name, shape=(d, d)).astype(np.float64)
    if np.abs(F - F.T).max(initial=0.0) > 1e-6 * np.abs(F).max(initial=0.0):
        raise ValueError(f"{name} must be symmetric, as ({name} + {name}.T) / 2 is")
    return F


def check_counts(Z, *, integers=False, gaps=False, name="Z"):
    """Return the counts `Z` as a finite non-negative array, or as a CSR array.

    Sparse counts come back as a CSR array that stores each pair once, with sorted
    indices, and no zeros: what is drawn for stored pairs is then the same in every
    format. The caller's arrays stay as they are.

    Parameters
    ----------
    Z : array-like, sparse array, DataFrame, Corpus or AnnData, shape (m, n)
    integers : bool
        Whether fractional entries are an error.
    gaps : bool
        Whether pairs may be NaN, not observed.
    name : str
        For the message.

    Raises
    ------
    TypeError
        If some entries of `Z` are masked.
    ValueError
        If `Z` is empty, not two-dimensional, or has infinite, negative, (without
        `gaps`) NaN or (with `integers`) fractional entries, or anything but real
        numbers.
    """
    Z = named(Z)[0]
    Z = Z if sp.issparse(Z) else check_array(Z, name)
    if Z.ndim != 2 or 0 in Z.shape:
        wanted = "a matrix with at least one row and one column"
        raise ValueError(f"{name} must be {wanted}, got shape {Z.shape}")
    Z = pairs_once(Z, name) if sp.issparse(Z) else Z
    if sp.issparse(Z) and not Z.data.all():
        Z = Z.copy()
        Z.eliminate_zeros()
    values = Z.data if sp.issparse(Z) else Z
    if np.isinf(values).any() or not gaps and np.isnan(values).any():
        held = "infinite" if gaps else "NaN or infinite"
        raise ValueError(f"{name} holds {held} values: counts are finite")
    if (values < 0).any():
        raise ValueError(f"{name} holds negative values: counts are at least zero")
    if integers and (values != np.floor(values)).any():
        raise ValueError(f"{name} holds fractional values: pass counts, not weights")
    return Z


def pairs_once(Z, name):
    """Return the sparse `Z` as a CSR array that stores each pair once, in order."""
    dtype = _usable(Z.dtype, name)
    if getattr(Z, "has_canonical_format", Z.format in ("lil", "dok", "dia")):
        return sp.csr_array(_cast(Z, dtype))
    # counts of one pair are added here: small integers would wrap around
    with np.errstate(over="ignore"):
        Z = sp.csr_array(Z.astype(np.float64))
        Z.sum_duplicates()
    return _cast(Z, dtype) if dtype == np.float32 else Z


def check_finite(**values):
    """Refuse to go on with what an iteration made if it is not finite.

    Raises
    ------
    FloatingPointError
        Naming the first of the `values` with a NaN or an infinity.
    """
    for name, value in values.items():
        if not _all_finite(value):
            raise FloatingPointError(
                f"{name} is not finite: the iteration diverges. Try a start nearer to "
                "the signal (amptutorial.spectral_start), a larger strength, a smaller "
                "prior covariance, or a bias law with a finite second moment"
            )


def check_values(x, name, *, shape=None, empty=True):
    """Return `x` as a finite float64 array, of any shape or of this one.

    Raises
    ------
    ValueError
        If it has another shape, or holds NaN or infinity; (without `empty`) if it has
        no entries.
    """
    x = _cast(check_array(x, name), np.float64)
    return _finite(x, name, x.shape if shape is None else shape, empty)


def quiet():
    """Return a context, or decorator, without NumPy's warnings of results not finite.

    For what checks its results: one error takes the place of the warnings.

    Examples
    --------
    >>> with quiet(), quiet():
    ...     bool(np.isinf(np.float64(1.0) / 0))
    True
    """
    return np.errstate(over="ignore", divide="ignore", invalid="ignore")


def keep(record, **values):
    """Set attributes of a frozen record, as it is made, to what the checks return."""
    for name, value in values.items():
        object.__setattr__(record, name, value)


def check_covariance(C, name, *, definite=False):
    """Return `C` as a symmetric positive semidefinite float64 matrix (d, d), d >= 1.

    Raises
    ------
    ValueError
        If it is empty, not symmetric, or has a negative eigenvalue beyond round-off, or
        (with `definite`) one that is not positive.
    """
    C = check_symmetric(C, len(check_matrix(C, name, empty=False)), name)
    least = np.linalg.eigvalsh(C)[0]
    if definite and least <= 0 or least < -1e-12 * np.trace(C):
        wanted = "definite" if definite else "semidefinite"
        found = f"its smallest eigenvalue is {least:.3g}"
        raise ValueError(f"{name} must be positive {wanted}, {found}")
    return C


def check_variance(C, name, *, definite=False):
    """Return `C` as a number, for that multiple of the identity, or as a covariance.

    An array without axes is a number, as `numpy.cov` returns it for one variable.

    Raises
    ------
    TypeError, ValueError
        If it is negative, (with `definite`) zero, or as `check_covariance`.
    """
    if isinstance(C, numbers.Real) or getattr(C, "shape", None) == ():
        return check_positive(np.asarray(C).item(), name, zero=not definite)
    return check_covariance(C, name, definite=definite).copy()


def covariance_matrix(C, d):
    """Return the matrix (d, d) that `check_variance` stands for.

    Raises
    ------
    ValueError
        If it has another shape.
    """
    if np.ndim(C) == 0:
        return C * np.eye(d)
    if np.shape(C) != (d, d):
        raise ValueError(f"covariance has shape {np.shape(C)}, rows have {d} entries")
    return np.array(C)


def check_probabilities(p, name, size):
    """Return probabilities (size,) that sum to one; equal ones for None.

    Raises
    ------
    ValueError
        If they have another shape, are negative, or do not sum to one.
    """
    p = np.full(size, 1 / size) if p is None else check_values(p, name, shape=(size,))
    if (p < 0).any() or not np.isclose(p.sum(), 1):
        raise ValueError(f"{name} must be non-negative and sum to 1")
    return p / p.sum()


def check_methods(*methods, **values):
    """Refuse any of the `values` that is no object with all of the `methods`."""
    for name, value in values.items():
        for method in methods:
            if isinstance(value, type) or not callable(getattr(value, method, None)):
                raise TypeError(f"{name} must have a method {method}, got {value!r}")


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
        how = "the biases are too far from zero: scale them down"
        raise OverflowError(f"exp({name}) is zero or infinite: {how}")
    return r
