"""The door: a public function refuses hard arguments by name, or returns numbers; it changes none of them.

What overflows becomes infinite, or NumPy warns of it; without a warning nothing becomes NaN.

One argument comes in another container or precision, which must not change the result, or one or two are spoiled. Good
arguments are multiples of 1/8, so that every precision down to float16 holds them.
"""

import copy
import dataclasses
import inspect
import re
import warnings
from fractions import Fraction
from functools import cache, partial
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from imports import PACKAGE, all_modules, closure, file_of
from scipy.sparse.linalg import aslinearoperator

import amptutorial as amp
from amptutorial import amp as loop
from amptutorial import baselines, laws, metrics, neighbours, planning
from amptutorial.bayes_optimal import GaussianMixture, MatchedEvolution, SeenRows
from amptutorial.channels import Channel
from amptutorial.corpus import Corpus
from amptutorial.paper import descent

DOORS = {f"amptutorial.{name}" for name in ("estimator", "spectrum", "planning", "bayes_optimal", "baselines")}
DOORS |= {"amptutorial.paper.descent", "amptutorial.paper.setting"}
CORE = sorted(name for name in closure(DOORS) - {PACKAGE} if "._" not in name)  # they, and all that they import
WITH_GAPS = {"drop_empty", "hold_out", "split_pairs", "split_counts"}  # NaN is a pair that is not observed, or hidden
EXAMPLES = 12  # of each function, spoiled
# scikit-learn's own door, and what has no norm
REFUSED_FORMS = {"AMPEmbedding": "matrix"} | dict.fromkeys(("QuadraticLoss", "minimise", "squared_norm"), "operator")

# What each function is called with: "name:kind", see `value_of`
CASES = {
    "AMPEmbedding": "Z:Zmn n_components:I1 n_iter:I2 tol:N0.01",
    "ConstantBias": "value:N0.5",
    "DiscreteBias": "values:V3 probabilities:P3",
    "EmpiricalRows": "r:Rm X:Amd N:I4",
    "FisherScore": "Z:Zmn r_u:Rm r_v:Rn",
    "GaussianMixture": "weights:P3 means:V3 variances:R3",
    "GaussianPosterior": "covariance:Sdd P:Amd r:Rm F:Sdd",
    "GaussianRows": "covariance:Sdd",
    "Lasso": "strength:N0.5 P:Amd r:Rm F:Sdd",
    "LogNormal": "spread:N0.5 mean:N0.25",
    "MatchedEvolution": "beta:N0.5",
    "PoissonLoss": "Z:Zmn r_u:Rm r_v:Rn strength:N0.5 U:Amd V:And",
    "PoissonEmbedding": "U:Amd V:And s_u:Vm s_v:Vn",
    "QuadraticLoss": "Y:Ymn r_u:Rm r_v:Rn denoiser:D A:Amd B:And",
    "Ridge": "strength:N0.5 P:Amd r:Rm F:Sdd",
    "ScaledRows": "rows:L bias:L d:I2 log_scale:N0.5",
    "SeenRows": "rates:R3 probabilities:P3",
    "ShiftedExponential": "scale:N0.25 shift:N1.5",
    "SparseGaussianRows": "variance:N0.5 density:N0.5",
    "Zipf": "alpha:N0.25 C0:N0.5",
    "align": "X_hat:Amd X:Amd",
    "as_operator": "Y:Ymn",
    "as_pair": "denoiser:D",
    "biased_low_rank_amp": "Y:Ymn r_u:Rm r_v:Rn denoiser:D B0:And n_iter:I2 damping:N0.25",
    "bulk_edge": "m:I3 n:I4",
    "check_is_denoiser": "denoiser:D name:X",
    "check_start": "B0:And m:X n:X",
    "counts_needed": "error:N0.5 law_u:W law_v:W denoiser:D m:I4 n:I8 n_iter:I4",
    "critical_delta": "covariance_u:Sdd covariance_v:Sdd beta:N0.5",
    "detection_weights": "r_u:Rm r_v:Rn",
    "detection_ratio": "rates_u:Rm rates_v:Rn variance_u:N0.5 variance_v:N0.25 beta:N0.5",
    "draw_embedding": "m:I3 n:I4 d:I2 rows_u:L rows_v:L bias_u:L bias_v:L rng:G",
    "draw_example": "m:I3 d:I2 variance:N0.5 rate:N2.0 spread:N0.25 rng:G",
    "drop_empty": "Z:Zmn",
    "estimate_bias": "Z:Zmn",
    "gaussian_state_evolution": "law_u:W law_v:W denoiser:D beta:N0.5 M0:Sdd Q0:Qdd n_iter:I3",
    "heldout_gain": "kept:Zmn held_out:Zmn U:Amd V:And r_u:Rm r_v:Rn",
    "held_out_pairs": "kept:Zmn held_out:Zmn",
    "hold_out": "Z:Zmn fraction:N0.25 rng:G",
    "margins": "Z:Zmn",
    "minimise": "Y:Ymn r_u:Rm r_v:Rn strength:N0.5 A0:Amd B0:And n_iter:I200 tol:N0.25",
    "normalised_mse": "A:Amd B:And A_hat:Amd B_hat:And",
    "outlier": "theta:T m:I3 n:I4",
    "overlap": "X:Amd X_hat:Amd",
    "overlaps": "theta:T m:I3 n:I4",
    "random_start": "n:I3 d:I2 rng:G",
    "rate_coordinates": "U:Amd V:And r_u:Rm r_v:Rn",
    "refit_biases": "Z:Zmn U:Amd V:And n_sweeps:I3 tol:N0.01",
    "rows_needed": "error:N0.75 law_u:W law_v:W denoiser:D m:I4 n:I8 n_iter:I4",
    "row_errors": "X:Amd X_hat:Amd",
    "scaled_rows": "d:I2 rows_u:L rows_v:L bias_u:L bias_v:L",
    "shrink": "sigma:T m:I3 n:I4",
    "signal_singular_values": "A:Amd B:And",
    "singular_values": "Y:Ymn k:I1 rng:G",
    "spectral_start": "Y:Ymn d:I1 r_u:Rm r_v:Rn rng:G",
    "split_counts": "Z:Zmn fraction:N0.25 rng:G",
    "split_pairs": "Z:Zmn fraction:N0.25 rng:G",
    "squared_norm": "Y:Ymn",
    "start_overlap": "B:And B0:And m:I3",
    "state_evolution": "law_u:W law_v:W denoiser:D beta:N0.5 M0:Sdd Q0:Qdd n_iter:I2 n_samples:I50 rng:G",
    "svd": "Y:Ymn d:I1 rng:G",
}


SIZES = {"m": 4, "n": 5, "d": 2}  # of good arguments


def generator():
    return np.random.default_rng(0)


def law_of(name, d=2):
    """Return a law to be called `name`."""
    rows, bias = amp.GaussianRows(0.5), amp.DiscreteBias([0.0, 1.0])
    if name.startswith("law"):
        return laws.ScaledRows(rows, bias, d)
    return rows if name.startswith("rows") else bias


def value_of(kind, name, sizes, rng):
    """Return a good argument of a kind: a letter, and the shape or the value.

    Z, Y: counts and scores (dense or sparse); A: a dense matrix; S, Q: symmetric positive definite ones; R: rates;
    V: a vector; P: probabilities; T: singular values; I, N: a number; D, L, W, G: denoiser, laws, generator; X: as is.
    """
    letter, rest = kind[0], kind[1:]
    if letter in "IN":
        return (int if letter == "I" else float)(rest)
    if letter in "DLWGX":
        other = {"D": amp.Ridge(0.5), "G": generator(), "X": sizes.get(name, name)}
        return other[letter] if letter in other else law_of(name, sizes["d"])
    shape = tuple(sizes[size] if size in sizes else int(size) for size in rest)
    if letter in "SQ":
        root = rng.integers(-2, 3, shape) / 4
        return root @ root.T + (np.eye(len(root)) if letter == "S" else 4 * np.eye(len(root)))
    return {
        "Z": lambda: rng.integers(1, 6, shape),
        "Y": lambda: rng.integers(-12, 13, shape) / 4 + 2 * np.eye(*shape),
        "A": lambda: rng.integers(-8, 9, shape) / 8 + np.eye(*shape),
        "R": lambda: rng.integers(1, 9, shape) / 4,
        "V": lambda: rng.integers(-4, 5, shape) / 4,
        "P": lambda: np.array([0.25, 0.5, 0.25]),
        "T": lambda: rng.integers(0, 20, 3) / 2,
    }[letter]()


def kinds_of(case):
    return dict(item.split(":") for item in CASES[case].split())


def good_arguments(case, sizes, seed=0):
    rng = np.random.default_rng(seed)
    return {name: value_of(kind, name, sizes, rng) for name, kind in kinds_of(case).items()}


def fit(**arguments):
    Z = arguments.pop("Z")
    model = amp.AMPEmbedding(random_state=0, **arguments).fit(Z)
    return model.embedding_, model.components_, model.predict_rates([0]), model.transform(Z)


def bias_law(name, **arguments):
    law = getattr(laws, name)(**arguments)
    return law.draw((2, 3), rng=generator()), law.isf([0.25, 1.0]), law.atoms(), law.moment(0.5)


def row_law(law):
    return law.draw((4, 2), rng=generator()), law.second_moment(2)


def scaled_law(law):
    return law.draw(4, rng=generator()), law.atoms()


def mixture(**arguments):
    prior = GaussianMixture(**arguments)
    return prior.known_share([0.5, 2.0]), prior.information([0.5, 2.0])


def matched(beta=1.0, **arguments):
    rows = SeenRows(GaussianMixture([1], [0], [1]), **arguments or {"rates": [0.5]})
    evolution = MatchedEvolution(rows, rows, beta)
    return evolution.limit(), evolution.optimum(), evolution.potential(0.5, 0.25), evolution.error(0.0, 0.0)


def score(**arguments):
    Y = amp.FisherScore(**arguments)
    return Y.toarray(), Y.squared_norm(), Y @ np.ones((Y.shape[1], 0))


def denoised(denoiser, P, r, F):
    results = [denoiser.denoise(P, r, F), denoiser.penalty(P, r), denoiser.difference_jacobian(P, r, F, 1e-3)]
    if not isinstance(denoiser, amp.Lasso):
        results += [denoiser.penalty_gradient(P, r), denoiser.modes(F), denoiser.refit(P, r, F).denoise(P, r, F)]
    return results


def sampled(model):
    counts = [model.sample(generator(), sparse=sparse).sum(axis=0) for sparse in (False, True)]
    return model.r_u, model.A, model.B, model.rates(), model.log_rates(), model.joint_pmf(), counts


def loss(A, B, **arguments):
    loss = metrics.QuadraticLoss(**arguments)
    return loss(A, B), loss.gradient(A, B)


def minimised(Y, r_u, r_v, strength, A0, B0, **options):
    loss, start = metrics.QuadraticLoss(Y, r_u, r_v, amp.Ridge(strength)), {"A0": A0, "B0": B0}
    methods = "gradient_descent", "least_squares"
    return [descent.minimise(loss, **start, method=method, **options) for method in methods]


def poisson_minimised(U, V, **arguments):
    loss = descent.PoissonLoss(**arguments)
    return loss.value_and_gradient(U, V), descent.minimise(loss, A0=U, B0=V, n_iter=40, tol=0.25)


BIAS_LAWS = "ConstantBias", "DiscreteBias", "LogNormal", "ShiftedExponential", "Zipf"
# What is called where it is not the function of that name alone
CALLS = {
    "AMPEmbedding": fit,
    **{name: partial(bias_law, name) for name in BIAS_LAWS},
    "EmpiricalRows": lambda N, **a: laws.EmpiricalRows(**a).draw(N, rng=generator()),
    "FisherScore": score,
    "GaussianMixture": mixture,
    "GaussianPosterior": lambda covariance, **a: denoised(amp.GaussianPosterior(covariance, learn=True), **a),
    "GaussianRows": lambda **a: row_law(amp.GaussianRows(**a)),
    "Lasso": lambda strength, **a: denoised(amp.Lasso(strength), **a),
    "MatchedEvolution": matched,
    "PoissonEmbedding": lambda **a: sampled(amp.PoissonEmbedding(**a)),
    "QuadraticLoss": loss,
    "Ridge": lambda strength, **a: denoised(amp.Ridge(strength), **a),
    "ScaledRows": lambda **a: scaled_law(laws.ScaledRows(**a)),
    "SeenRows": matched,
    "SparseGaussianRows": lambda **a: row_law(laws.SparseGaussianRows(**a)),
    "counts_needed": lambda **a: planning.counts_needed(**a).factor,
    "rows_needed": lambda **a: planning.rows_needed(**a).factor,
    "as_operator": lambda Y: loop.as_operator(Y) @ np.eye(np.shape(Y)[1]),
    "draw_embedding": lambda **a: sampled(amp.draw_embedding(**a)),
    "PoissonLoss": poisson_minimised,
    "draw_example": lambda **a: sampled(amp.draw_example(**a)),
    "minimise": minimised,
    "rate_coordinates": neighbours.rate_coordinates,
    "scaled_rows": lambda **a: [scaled_law(law) for law in amp.scaled_rows(**a)],
    "svd": lambda **a: np.inner(*baselines.svd(**a)),
}


def public_names():
    """Return the public functions and classes of the package and of the modules of its core, by name."""
    found = {name: getattr(amp, name) for name in amp.__all__}
    for module in map(import_module, CORE):
        for name, value in vars(module).items():
            own = getattr(value, "__module__", None) == module.__name__
            if own and not name.startswith("_") and (inspect.isclass(value) or inspect.isroutine(value)):
                found[name] = value
    return found


PUBLIC = public_names()


@cache
def words_of(module):
    return set(re.findall(r"\w+", file_of(module).read_text()))


def is_at_the_door(name, value):
    """Say whether users bring arguments to a public name, and not other parts of the package.

    They do to what the package itself offers, but for records, base classes and warnings; and to a function that says
    what it refuses, unless another module calls it, as a step of its own.
    """
    if inspect.isclass(value):
        record = dataclasses.is_dataclass(value) and not hasattr(value, "__post_init__")
        return name in amp.__all__ and not (record or inspect.isabstract(value) or issubclass(value, Warning))
    others = set(all_modules()) - {value.__module__, PACKAGE}
    called = any(name in words_of(module) for module in others)
    return name in amp.__all__ or "Raises\n" in inspect.getdoc(value) and not called


def test_everything_at_the_door_is_driven():
    found = {name for name, value in PUBLIC.items() if value.__module__ in CORE and is_at_the_door(name, value)}
    assert not found - set(CASES) - {"laws_of"}  # which takes a fitted model, and no numbers


# Forms: the same values


def strided(x):
    return np.repeat(x, 2, axis=-1)[..., ::2]


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


def unsorted(x):
    """Return `x` as a csr_array with its columns backwards."""
    m, n = x.shape
    indices = np.tile(np.arange(n)[::-1], m)
    return sp.csr_array((x[:, ::-1].ravel(), indices, np.arange(0, m * n + 1, n)), shape=x.shape)


def twice(x):
    """Return `x` as a csr_array that stores each entry in two parts."""
    m, n = x.shape
    parts = np.stack([np.ones_like(x), x - 1], axis=2).ravel()
    indices, starts = np.tile(np.repeat(np.arange(n), 2), m), np.arange(0, 2 * m * n + 1, 2 * n)
    return sp.csr_array((parts, indices, starts), shape=x.shape)


def frozen(x):
    """Return `x` as a csr_array whose arrays cannot be written to, as from a memory map."""
    x = twice(x)
    for array in (x.data, x.indices, x.indptr):
        array.flags.writeable = False
    return x


def casts(*kinds):
    return {kind: lambda x, kind=kind: x.astype(kind) for kind in kinds}


DENSE = {
    "list": lambda x: x.tolist(),
    "Fortran order": np.asfortranarray,
    "strided": strided,
    "backwards": lambda x: x[::-1].copy()[::-1],
    "read-only": read_only,
    "no entry masked": lambda x: np.ma.array(x, mask=False),
    "other byte order": lambda x: x.astype(x.dtype.newbyteorder()),
    **casts("float16", "float32", "longdouble"),
    "frame": lambda x: pd.DataFrame(x) if x.ndim == 2 else pd.Series(x),
    "matrix": lambda x: np.asmatrix(x) if x.ndim == 2 else x,
}
SMALL = casts("int8", "uint8", "uint64")
SPARSE = {
    **{form: getattr(sp, f"{form}_array") for form in ("csr", "csc", "coo", "dok", "lil", "dia")},
    "csr_matrix": sp.csr_matrix,
    "unsorted": unsorted,
    "stored twice": twice,
    "coo stored twice": lambda x: twice(x).tocoo(),
    "read-only and stored twice": frozen,
    "int8 csc": lambda x: sp.csc_array(x.astype(np.int8)) if x.dtype.kind == "i" else sp.csc_array(x),
}
OPERATOR = {"operator": aslinearoperator}
NAMED = {
    "Corpus": lambda x: Corpus(x, np.arange(x.shape[1]).astype(str)),
    "AnnData": lambda x: SimpleNamespace(X=x, obs_names=range(len(x)), var_names=range(x.shape[1])),
}


def forms_of(kind):
    """Return the forms in which an argument of this kind must give the same answer."""
    if kind[0] in OTHERS:
        return {}
    if kind[0] in "IN":
        return {
            "NumPy": lambda x: np.asarray(x)[()],
            "small": lambda x: (np.int16 if isinstance(x, int) else np.float16)(x),
            "fraction": lambda x: x if isinstance(x, int) else Fraction(x),
        }
    sparse = SPARSE if kind[0] in "ZY" else {}
    return DENSE | sparse | (SMALL | NAMED if kind[0] == "Z" else {}) | (OPERATOR if kind[0] == "Y" else {})


# Spoiled: other values


def put(value):
    """Return how to put `value` into the last entry of an array."""

    def spoil(x):
        x = np.array(x, dtype=np.result_type(x.dtype, type(value)))
        x.flat[-1:] = value
        return x

    return spoil


SPOILED = {
    **{f"one entry {value}": put(value) for value in (np.nan, np.inf, -np.inf, -1.0, 0.0, 1e300, 1e-300, 2j)},
    **{f"times {s}": lambda x, s=s: x * s for s in (0, -1.0, 1e300, 1e160, 1e80, 1e20, 1e-20, 1e-80, 1e-160, 1e-300)},
    "float32 times 1e30": lambda x: np.float32(1e30) * x.astype(np.float32),
    "longdouble times 1e4000": lambda x: x * np.longdouble("1e4000"),
    "as large as int64": lambda x: np.full(x.shape, 2**62),
    "as large as uint64": lambda x: np.full(x.shape, 2**64 - 1, dtype=np.uint64),
    **casts("bool", "complex", "object", "str", "datetime64[s]"),
    "masked": lambda x: np.ma.array(x, mask=np.arange(x.size).reshape(x.shape) == 0),
    "ragged": lambda x: [[1.0], [1.0, 2.0]],
    "None": lambda x: None,
    "text": lambda x: "ridge",
    "a number": lambda x: 1.0,
    "one row fewer": lambda x: x[:-1],
    "one row more": lambda x: np.concatenate([x, x[:1]]),
    "no rows": lambda x: x[:0],
    "no columns": lambda x: x[..., :0],
    "flat": np.ravel,
    "deep": lambda x: x[None],
    "transposed": np.transpose,
    "sparse": lambda x: sp.csr_array(np.atleast_2d(x)),
    "sparse with NaN": lambda x: sp.csr_array(put(np.nan)(np.atleast_2d(x))),
    "sparse and complex": lambda x: sp.coo_array(np.atleast_2d(x) * 1j),
    "sparse and empty": lambda x: sp.csr_array(np.atleast_2d(x).shape),
    "sparse and large": lambda x: 1e160 * sp.csc_array(np.atleast_2d(x)),
}
NUMBERS = (0, -1, 2.5, 1e300, 1e-300, -1e300, 10**400, np.nan, np.inf, -np.inf, 1j, True, "2", None, [1], np.ones(1))
OTHERS = {
    "D": (None, "ridge", amp.Ridge, (amp.Ridge(1.0),), (amp.Ridge(1.0), None), amp.GaussianRows(), 1.0),
    "L": (None, 0.5, "gaussian", amp.GaussianRows, amp.Ridge(1.0)),
    "W": (None, 0.5, laws.ScaledRows, amp.Ridge(1.0)),
    "G": (None, 0, np.random, np.random.RandomState(0)),
    "X": (),
}


def spoiled_of(kind):
    if kind[0] in "IN":
        return {repr(value)[:20]: lambda _, value=value: value for value in NUMBERS}
    if kind[0] in OTHERS:
        return {repr(value)[:20]: lambda _, value=value: value for value in OTHERS[kind[0]]}
    return SPOILED


# What no function takes, and what each says of it
ARRAYS_SAY = {
    "masked": "masked entries",
    "complex": "imaginary parts would be lost",
    "sparse and complex": "imaginary parts would be lost|must be dense",
    **dict.fromkeys(("object", "str", "datetime64[s]"), "must hold real numbers, got dtype"),
    **dict.fromkeys(("None", "text"), "must hold real numbers"),
    "ragged": "cannot be read as an array",
    **dict.fromkeys(("one entry inf", "one entry -inf", "longdouble times 1e4000"), "finite"),
}
NUMBERS_SAY = {
    **dict.fromkeys(("1j", "True", "'2'", "None", "[1]", "array([1.])"), "must be (a number|an integer), got"),
    **dict.fromkeys(("nan", "inf", "-inf"), "finite|must be an integer"),
    repr(10**400)[:20]: "finite|must be at most",
}


def refused_of(kind):
    """Return what an argument of this kind is never, with what is said of it."""
    if kind[0] in OTHERS:
        return {}
    if kind[0] in "IN":
        return NUMBERS_SAY
    only_dense = {"sparse": r"must be dense.*toarray", "one entry nan": "finite"}
    says = ARRAYS_SAY | (only_dense if kind[0] not in "ZY" else {})
    return {how: said for how, said in says.items() if (kind[0], how) != ("P", "None")}  # probabilities may be left out


# What must hold


def outcome_of(case, arguments):
    """Return what a call returns or the refusal that it raises, and whether NumPy warned; anything else is an error."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", amp.AMPWarning)
        warnings.filterwarnings("always", ".* encountered in ", RuntimeWarning)
        try:
            outcome = (CALLS.get(case) or PUBLIC[case])(**arguments)
        except (ValueError, TypeError, OverflowError, FloatingPointError) as refusal:
            outcome = refusal
    return outcome, bool(warned)


def numbers_of(value):
    """Yield the numbers in a result as dense arrays, through tuples, records and objects."""
    if sp.issparse(value):
        yield value.toarray()
    elif isinstance(value, (np.ndarray, float, int, np.generic)):
        yield np.asarray(value)
    elif isinstance(value, (tuple, list, dict)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from numbers_of(one)
    elif dataclasses.is_dataclass(value) or isinstance(value, amp.Denoiser):
        yield from numbers_of(list(vars(value).values()))
    elif value is not None and not isinstance(value, (str, Channel)):
        raise AssertionError(f"a result of unknown type {type(value)}")


def print_of(value):
    """Return the bytes of an argument, whatever it is, to see whether a call changed it."""
    if sp.issparse(value) and value.format in ("csr", "csc"):
        return [print_of(part) for part in (value.data, value.indices, value.indptr)]
    if sp.issparse(value):
        return value.toarray().tobytes(), value.nnz
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape, value.tolist() if value.dtype == object else value.tobytes()
    return repr(value)


def checked_outcome(case, arguments):
    """Return the outcome of a call that changes no argument: numbers, a refusal that helps, or what NumPy warns of."""
    before = {name: print_of(value) for name, value in arguments.items()}
    outcome, warned = outcome_of(case, arguments)
    assert before == {name: print_of(value) for name, value in arguments.items()}, "an argument has changed"
    if warned:
        return outcome
    if isinstance(outcome, ArithmeticError):
        assert re.search(r"scale|lower|Try", str(outcome)), f"names no remedy: {outcome!r}"
    elif isinstance(outcome, Exception):
        named = re.search(rf"\b({'|'.join(arguments)})\b", str(outcome))
        assert named or case == "AMPEmbedding", f"names no argument: {outcome!r}"
    elif case not in WITH_GAPS:
        assert not any(np.isnan(x).any() for x in numbers_of(outcome)), f"NaN without a warning: {outcome}"
    return outcome


@pytest.mark.parametrize("case", sorted(set(CASES) - {"as_pair", "check_is_denoiser"}))
@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_the_same_values_in_another_form_give_the_same_answer(case):
    """Every argument in every form, in turn in two problems."""
    problems = [good_arguments(case, sizes, seed) for seed, sizes in enumerate((SIZES, {"m": 5, "n": 3, "d": 1}))]
    answers = [(good, outcome_of(case, copy.deepcopy(good))[0]) for good in problems]
    answers = [each for each in answers if not isinstance(each[1], Exception)]  # one dimension may be too few
    forms = [(name, how, form) for name, kind in kinds_of(case).items() for how, form in forms_of(kind).items()]
    for k, (name, how, form) in enumerate(forms):
        good, expected = copy.deepcopy(answers[k % len(answers)])
        outcome = checked_outcome(case, good | {name: form(good[name])})
        assert isinstance(outcome, Exception) == (REFUSED_FORMS.get(case) == how), (name, how, outcome)
        if isinstance(outcome, Exception):
            continue
        tolerance = 1e-2 if how == "float32" else 1e-6
        for x, y in zip(numbers_of(outcome), numbers_of(expected), strict=True):
            x, y = np.nan_to_num(x, nan=-1), np.nan_to_num(y, nan=-1)
            same = x.shape == y.shape and np.allclose(x, y, rtol=tolerance, atol=tolerance * np.abs(y).max(initial=0))
            assert same, (name, how)


@st.composite
def spoiled_problems(draw, case):
    """Draw arguments of a case after spoiling one or two of them."""
    sizes = {"m": draw(st.integers(3, 5)), "n": draw(st.integers(3, 5)), "d": draw(st.integers(1, 2))}
    kinds, arguments = kinds_of(case), good_arguments(case, sizes, draw(st.integers(0, 99)))
    names = [name for name, kind in kinds.items() if spoiled_of(kind)]
    for name in draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True)):
        ways = spoiled_of(kinds[name])
        arguments[name] = ways[draw(st.sampled_from(sorted(ways)))](arguments[name])
    return arguments


@pytest.mark.parametrize("case", sorted(CASES))
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_hard_arguments_are_refused_by_name_or_give_numbers_or_a_warning(case, data):
    checked_outcome(case, data.draw(spoiled_problems(case)))


@pytest.mark.parametrize("case", sorted(set(CASES) - {"AMPEmbedding"}))
def test_what_is_no_argument_is_refused_by_name_and_with_a_reason(case):
    good = good_arguments(case, SIZES)
    for name, kind in kinds_of(case).items():
        for how, said in refused_of(kind).items():
            outcome = checked_outcome(case, good | {name: spoiled_of(kind)[how](copy.deepcopy(good[name]))})
            assert isinstance(outcome, Exception) and re.search(said, str(outcome)), (name, how, outcome)


# Sizes of which none is an answer too, and those of which one is not enough: SciPy leaves out the last singular value
NONE_IS_FINE = {
    "m": "GaussianPosterior Lasso QuadraticLoss Ridge align as_operator row_errors squared_norm",
    "n": "QuadraticLoss as_operator squared_norm start_overlap",
    "d": "QuadraticLoss align heldout_gain overlap rate_coordinates refit_biases row_errors start_overlap",
    "N": "EmpiricalRows",
}
ONE_IS_FEW = {(case, size) for case in ("singular_values", "spectral_start", "svd") for size in "mn"}
ONE_IS_FEW |= {("GaussianRows", "d")}  # which draws rows of two entries above
ONE_IS_FEW |= {("rows_needed", "n"), ("rows_needed", "n_iter")}  # one column, one iteration: no number of rows will do


def sizes_of(case):
    """Return the arguments of a case that are numbers of something, and the sizes of its arrays."""
    kinds = kinds_of(case)
    shapes = "".join(kind[1:] for kind in kinds.values() if kind[0] in ("ZYAR" if "W" in CASES[case] else "ZYARS"))
    numbers = [name for name, kind in kinds.items() if kind[0] == "I" and name != "n_samples"]
    return numbers + sorted({*shapes} & {*"mnd"})


@pytest.mark.filterwarnings("ignore")  # what so little data gives is not asked
@pytest.mark.parametrize(("case", "size"), [(case, size) for case in CASES for size in sizes_of(case)])
def test_one_is_allowed_and_none_is_refused(case, size):
    def outcome(k):
        good = good_arguments(case, SIZES | {"d": 1, size: k})
        return outcome_of(case, good | ({size: k} if size in good else {}))[0]

    assert isinstance(outcome(1), Exception) == ((case, size) in ONE_IS_FEW), outcome(1)
    if case not in NONE_IS_FINE.get(size, "").split():
        refused = outcome(0)
        said = "at least 1|at least one|between 1|not be empty|minimum of 1|is zero|below min"
        assert isinstance(refused, ValueError) and re.search(said, str(refused)), refused
