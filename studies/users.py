"""Try what users of such tools bring: hundreds of inputs, each with what is wanted of it.

    python -m studies.users                  # every area: a quarter of an hour on one core
    python -m studies.users texts grader     # some of them

Wanted is an answer that is `right`; an error of the project's own, with a word (`refused`); a warning with a word
(`told`); or numbers that are finite, or an error of its own (`finite`). What comes is one of five kinds:

    right      what is wanted, without an error
    refused    an error of the project's own, or of scikit-learn's checks
    wrong      an answer that is not right
    obscure    an error that is nobody's, or lacks the word
    missing    no error or warning where one was wanted, or no such feature

The table is printed by area, then each trial that is not as it should be; the exit status is 1 if there is one.
"""

import argparse
import copy
import csv
import datetime
import functools
import importlib.util
import io
import json
import os
import pickle
import re
import sys
import tempfile
import time
import traceback
import unicodedata
import uuid
import warnings
import zipfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import scipy.sparse as sp
from grading_samples import RIGHT
from notebook_styles import NOTEBOOKS, answers
from page_kernel import run_cell
from platform_exports import EXPORTS, misplaced
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline, make_union

import amptutorial as amp
from amptutorial import heldout
from amptutorial.cluster.shards import open_shards, write_shards
from amptutorial.corpus import Corpus, archive, docstring_texts
from amptutorial.neighbours import nearest_words, rate_coordinates
from amptutorial_course.grading.notebooks import read_notebook
from amptutorial_course.grading.submissions import find_submissions, read_submission

KINDS = ("right", "refused", "wrong", "obscure", "missing")
MISSING = re.compile("unexpected keyword|has no attribute|cannot import|positional argument")


@dataclass(frozen=True)
class Trial:
    """What is tried, and what is wanted: "right", "refused", "told" or "finite"."""

    name: str
    wish: str
    run: object
    word: str


def trials(wish, items, run=None, word=""):
    """Yield a trial for each of the items: functions, or values for `run`; (item, word) has a word of its own."""
    for name, item in items.items() if isinstance(items, dict) else ((repr(item), item) for item in items):
        item, its_word = item if isinstance(item, tuple) and wish in ("refused", "told") else (item, word)
        yield Trial(name, wish, item if run is None else functools.partial(run, item), its_word)


right, refused, told, finite = (functools.partial(trials, wish) for wish in ("right", "refused", "told", "finite"))


def verdict(trial):
    """Return the kind of what comes, whether it is wanted, and what it says."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            answer = trial.run()
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - whatever comes is the answer
            return verdict_of_error(trial, error)
    said = "; ".join(str(each.message) for each in caught)
    if trial.wish == "refused":
        return "missing", False, "no error"
    if trial.wish == "told":
        answer = re.search(trial.word, said)
        return ("right" if answer else "missing"), bool(answer), said or "no warning"
    return ("right" if answer else "wrong"), bool(answer), said


def verdict_of_error(trial, error):
    """Return the same for an error: those of the project's own are raised in so many words."""
    text, frames = f"{type(error).__name__}: {error}", traceback.extract_tb(error.__traceback__)
    is_own = "amptutorial" in frames[-1].filename and (frames[-1].line or "").startswith("raise")
    if not is_own and not any("sklearn" in frame.filename for frame in frames[-4:]):
        return ("missing" if MISSING.search(text) else "obscure"), False, text
    has_word = re.search(trial.word, text) is not None
    return ("refused" if has_word else "obscure"), has_word and trial.wish in ("refused", "finite"), text


def table(m=60, n=40, seed=0):
    """Return counts of two kinds of rows and of columns, none of which is empty."""
    rng = np.random.default_rng(seed)
    u, v = (np.where(np.arange(size) % 2, 1.0, -1.0) for size in (m, n))
    return rng.poisson(2 * np.exp(0.8 * np.outer(u, v) + rng.normal(0, 0.3, n))) + np.eye(m, n, dtype=int)


def model(d=1, **options):
    """Return an embedding of few iterations."""
    return amp.AMPEmbedding(d, **{"n_iter": 8, "channel": "counts", "random_state": 0} | options)


def embedding(X, **options):
    """Return the embedding of the rows of a table."""
    return model(**options).fit(X).embedding_


def is_finite(X, **options):
    """Return whether all that a fit gives is finite."""
    fit = model(**options).fit(X)
    parts = fit.embedding_, fit.components_, fit.row_bias_, fit.column_bias_, fit.heldout_gain_
    return all(np.isfinite(part).all() for part in parts)


def changed(Z, place, value):
    """Return a table with other entries in one place."""
    Z = np.array(Z, dtype=float)
    Z[place] = value
    return Z


def dense(X):
    """Return an array, of one or of a sparse one."""
    return X.toarray() if sp.issparse(X) else np.asarray(X)


def corpus(Z):
    """Return a Corpus of a dense table."""
    return Corpus(Z, np.array([f"w{k}" for k in range(Z.shape[1])]), names=np.arange(len(Z)))


def cells(Z):
    """Return what AnnData offers."""
    names = [pd.Index([f"{letter}{k}" for k in range(size)]) for letter, size in zip("rw", table().shape, strict=True)]
    return SimpleNamespace(X=Z, obs_names=names[0], var_names=names[1])


class Lazy:
    """A frame that is still to be computed, as those of Polars."""

    columns = property(lambda self: [f"w{k}" for k in range(40)])

    def collect(self):
        """Return the table."""
        return table()


class Eager(Lazy):
    """A frame that is computed, and has no index."""

    def __array__(self, dtype=None, copy=None):
        """Return the table."""
        return np.array(table(), dtype=dtype)


def shards_of(Z):
    """Write a table as shards, and return them."""
    folder = tempfile.mkdtemp()
    write_shards(Z, folder, rows=20)
    return open_shards(folder)


def files(contents):
    """Return a new folder with these files."""
    folder = Path(tempfile.mkdtemp())
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def mapped(Z):
    """Return a table as a read-only map of a file."""
    np.save(path := Path(tempfile.mkdtemp()) / "Z.npy", Z)
    return np.load(path, mmap_mode="r")


def seconds(function, *arguments):
    """Return how long a call takes."""
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def repeated(*parts):
    """Return the sum of tables as a sparse array that stores each pair once for each of them."""
    indices = np.indices(parts[0].shape).reshape(2, -1)
    return sp.coo_array((np.ravel(parts).astype(float), np.tile(indices, len(parts))), parts[0].shape)


def turned(Z):
    """Return a sparse table whose indices are out of order."""
    order = np.concatenate([np.arange(b - 1, a - 1, -1) for a, b in zip(Z.indptr, Z.indptr[1:], strict=False)])
    return sp.csr_array((Z.data[order], Z.indices[order], Z.indptr), Z.shape)


SPARSE = [f"{name}_{kind}" for name in "csr csc coo lil dok dia bsr".split() for kind in ("array", "matrix")]
FRAMES = {
    "a list of lists": lambda Z: Z.tolist(), "a frame": pd.DataFrame, "twice": lambda Z: repeated(Z / 2, Z / 2),
    "a nullable frame": lambda Z: pd.DataFrame(Z).astype("Int64"), "cancels": lambda Z: repeated(Z + 1, 0 * Z - 1),
}  # fmt: skip
LAYOUTS = FRAMES | {
    "Fortran order": np.asfortranarray, "negative strides": lambda Z: Z[::-1, ::-1].copy()[::-1, ::-1],
    "gaps": lambda Z: np.repeat(np.repeat(Z, 2, axis=0), 3, axis=1)[::2, ::3], "a read-only map": mapped,
    "no mask": np.ma.masked_array, "a tuple": lambda Z: tuple(map(tuple, Z.tolist())),
    "nullable floats": lambda Z: pd.DataFrame(Z).astype("Float64"), "order": lambda Z: turned(sp.csr_array(Z)),
    "a sparse frame": lambda Z: pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(Z)),
    "zeros": lambda Z: repeated(Z, 0 * Z), "mixed dtypes": lambda Z: pd.DataFrame(Z).astype({0: "int8", 1: "float32"}),
    "indices of 64 bits": lambda Z: sp.coo_array((Z.ravel(), np.indices(Z.shape, np.int64).reshape(2, -1)), Z.shape),
}  # fmt: skip
NO_TABLES = {
    "complex": (lambda Z: Z + 0j, "omplex"), "masked": (lambda Z: np.ma.masked_equal(Z, 1), "mask"),
    "objects": (lambda Z: np.array([["a", None]] * 5, dtype=object), "number|counts"),
    "one dimension": (lambda Z: Z[0], "1D|matrix|dimension"), "three dimensions": (lambda Z: Z[None], "3|dim"),
    "no rows": (lambda Z: Z[:0], "at least one|minimum"), "no columns": (lambda Z: Z[:, :0], "at least one|minimum"),
    "a matrix": (np.asmatrix, "matrix"), "zeros": (lambda Z: 0 * Z, "count"),
    "infinite": (lambda Z: np.where(Z == 1, np.inf, Z), "inf"),
    "negative": (lambda Z: -Z, "egative"), "sparse, negative": (lambda Z: -sp.csr_array(Z), "egative"),
    "None": (lambda Z: None, "None|array|table"), "a text": (lambda Z: "film", "array|table|number|float"),
    "a dictionary": (lambda Z: {"a": 1}, "array|table|number|dict"), "ragged": (lambda Z: [[1, 2], [3]], "array|inhom"),
    "texts in a frame": (lambda Z: pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}), "number|float|column"),
}  # fmt: skip


def inputs():
    """Tables of every type, layout and format; what is no table."""
    Z = table()
    R, gaps = embedding(Z), np.where(np.random.default_rng(1).random(Z.shape) < 0.1, np.nan, Z)

    def same(X):
        return np.allclose(embedding(X), R, atol=1e-3 * np.abs(R).max())

    def pairs(Z):
        parts = heldout.split_pairs(Z, 0.1, np.random.default_rng(0))[:2]
        return np.nansum([part.toarray() if sp.issparse(part) else part for part in parts], axis=0)

    def agree(function, X):
        found, wanted = (dense(function(each)) for each in (X, Z))
        return np.allclose(found, wanted, atol=1e-3 * np.nanmax(np.abs(wanted)), equal_nan=True)

    def held(split, Z):
        return split(Z, 0.1, np.random.default_rng(0))[0]

    fitted = model().fit(Z)
    others = {"estimate_bias": lambda Z: np.concatenate(amp.estimate_bias(Z)), "split_pairs": pairs}
    others["FisherScore"] = lambda Z: amp.FisherScore(Z, *amp.estimate_bias(table())) @ np.ones((40, 1))
    yield from right("i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 g >i4 >f8".split(), lambda kind: same(Z.astype(kind)))
    yield from right(SPARSE, lambda name: same(getattr(sp, name)(Z.astype(float))))
    yield from right(LAYOUTS, lambda change: same(change(Z)))
    own = {"a Corpus": corpus(Z), "AnnData": cells(Z), "a frame": pd.DataFrame(Z)}
    others |= {"drop_empty": lambda Z: amp.drop_empty(Z)[0], "hold_out": lambda Z: held(heldout.hold_out, Z)}
    others |= {"split_counts": lambda Z: held(heldout.split_counts, Z), "gain": lambda Z: np.array(fitted.gain(Z))}
    others |= {f"{name} of a fit": getattr(fitted, name) for name in ("predict_rates", "standard_errors", "transform")}
    others["fit"] = embedding
    for name, function in others.items():
        tried = {f"{name} of {how}": (function, X) for how, X in own.items()}
        yield from right(tried, lambda pair: agree(*pair))
    yield from right({"bool": lambda: np.array_equal(embedding(Z > 0), embedding((Z > 0) * 1))})
    yield from right({"NaN": gaps, "missing": pd.DataFrame(gaps).astype("Int64")}, is_finite)
    yield from refused(NO_TABLES, lambda change: embedding(change(Z)))
    yield from told({"fractions": (lambda: embedding(Z / 3), "raction")})
    for name, function in others.items():
        tried = {f"{name} of {how}": (function, change) for how, change in FRAMES.items()}
        yield from right(tried, lambda pair: agree(pair[0], pair[1](Z)))


def containers():
    """Tables of other libraries, where these are installed."""
    Z = table()
    makers = {
        "polars": lambda polars: polars.DataFrame(Z), "anndata": lambda anndata: anndata.AnnData(Z.astype(float)),
        "pyarrow": lambda _: pd.DataFrame(Z).astype("int64[pyarrow]"), "xarray": lambda xarray: xarray.DataArray(Z),
        "dask.array": lambda dask: dask.from_array(Z, chunks=(20, 40)),
    }  # fmt: skip
    there = [name for name in makers if importlib.util.find_spec(name.partition(".")[0])]
    made = {name: makers[name](importlib.import_module(name)) for name in there}
    yield from right(made, lambda X: np.allclose(embedding(X), embedding(Z)))
    made |= {"a Corpus": corpus(Z), "AnnData": cells(Z), "a frame without an index": Eager()}
    yield from right({f"{name}, shards": X for name, X in made.items()}, lambda X: shards_of(X).shape == Z.shape)
    yield from right({f"{name}, names": X for name, X in made.items()}, lambda X: len(model().fit(X).frames()[1]) == 40)
    doors = {"fit": embedding, "estimate_bias": amp.estimate_bias, "drop_empty": amp.drop_empty, "shards": shards_of}
    for name, door in doors.items():
        yield from refused({f"{name} of what is lazy": (functools.partial(door, Lazy()), "collect")})
        yield from refused({f"{name} of AnnData without X": (functools.partial(door, cells(None)), "layers|raw")})
    yield from right({"a length": lambda: len(corpus(Z)) == 60, "a text": lambda: "60 documents" in repr(corpus(Z))})


def interrupt(progress):
    """Do as Ctrl-C does."""
    raise KeyboardInterrupt


FAILURES = {  # parameters and a table with which a fit does not end
    "too many components": ({"n_components": 50}, table()), "negative": ({}, -table()), "nothing": ({}, 0 * table()),
    "objects": ({}, np.full((60, 40), None)), "another width": ({"n_components": 50}, table(60, 30)),
    "no such channel": ({"channel": "poisson"}, table()), "no such denoiser": ({"denoiser": "ols"}, table()),
    "an error of a callback": ({"callback": lambda progress: 1 / 0}, table()),
    "Ctrl-C": ({"callback": interrupt}, table()), "complex": ({}, table() * 1j),
    "a denoiser that fails": ({"denoiser": amp.GaussianPosterior(np.eye(3))}, table()),
}  # fmt: skip


def failed(fit, failure):
    """Return what a model knows after a fit that failed, of a frame where the table can be one."""
    parameters, Z = failure
    frame = pd.DataFrame(Z)
    try:
        fit.set_params(**parameters).fit(frame.set_axis([f"b{k}" for k in frame.columns], axis=1))
    except (Exception, KeyboardInterrupt):  # noqa: BLE001 - as it should
        return {name: value for name, value in vars(fit).items() if name not in parameters}
    raise AssertionError("the fit ended")


def stays_fitted(failure):
    """Return whether a fitted model is that of its own table after a fit that failed."""
    first = pd.DataFrame(table()).rename(columns="a{}".format)
    fit = model().fit(first)
    before, vectors = dict(vars(fit)), fit.transform(first)
    after = failed(fit, failure)
    same = all(after[name] is before[name] for name in before if name in after and name not in failure[0])
    named = fit.frames()[1].index[0] == "a0" and fit.frames()[1].iloc[0, 0] == fit.components_[0, 0]
    return same and named and np.array_equal(fit.transform(first), vectors)


def stays_unfitted(failure):
    """Return whether a model that was not fitted knows nothing after a fit that failed."""
    return not any(name.endswith("_") for name in failed(model(), failure))


def said_by_an_interrupt():
    """Raise what Ctrl-C says, as an error."""
    try:
        model(callback=interrupt).fit(table())
    except KeyboardInterrupt as error:
        note = " ".join(getattr(error, "__notes__", ["nothing"]))
    nearest_words(np.eye(1), [note], note + " - not in it")


def scikit_learn():
    """Pipelines, search, names of columns, copies; what is not fitted, or does not fit."""
    Z, fitted, frame = table(), model().fit(table()), pd.DataFrame(table()).rename(columns="word{}".format)
    texts = ["red wine glass", "white wine glass", "red car road", "blue car road"] * 10
    piped, search = make_pipeline(CountVectorizer(), model()), GridSearchCV(model(), {"n_components": [1, 2]}, cv=2)
    duplicates = {"pickle": lambda x: pickle.loads(pickle.dumps(x)), "copy": copy.deepcopy}
    seeds = {"int": 0, "None": None, "RandomState": np.random.RandomState(0), "Generator": np.random.default_rng(0)}
    yield from right(seeds, lambda seed: is_finite(Z, random_state=seed))
    yield from right(duplicates, lambda duplicate: np.allclose(duplicate(fitted).transform(Z), fitted.transform(Z)))
    yield from right({
        "a pipeline": lambda: clone(piped).fit_transform(texts).shape == (40, 1),
        "a union": lambda: make_union(model(), model(2)).fit_transform(Z).shape == (60, 3),
        "clone": lambda: clone(model(3)).get_params() == model(3).get_params(),
        "fit_transform": lambda: np.array_equal(model().fit_transform(Z), embedding(Z)),
        "set_output": lambda: isinstance(model().set_output(transform="pandas").fit_transform(Z), pd.DataFrame),
        "names": lambda: list(fitted.get_feature_names_out()) == ["ampembedding0"],
        "a search": lambda: search.fit(Z).best_score_ > 0,
        "cross validation": lambda: np.mean(cross_val_score(model(), Z, cv=3)) > 0,
        "score": lambda: fitted.score(table(seed=5)) > 0,
        "auto": lambda: model("auto").fit(Z).embedding_.shape[1] == 1,
        "one new row": lambda: fitted.transform(Z[:1]).shape == (1, 1),
        "rates": lambda: fitted.predict_rates(slice(3)).shape == (3, 40),
        "rates of new rows": lambda: fitted.predict_rates(Z[:3]).shape == (3, 40),
        "new columns": lambda: fitted.transform_columns(Z[:, :5]).shape == (1, 5),
        "frames": lambda: all(isinstance(each, pd.DataFrame) for each in model().fit(frame).frames()[:2]),
    })  # fmt: skip
    rows = [(0, 1), [0, 1], range(2), np.arange(60) < 2, pd.Index([0, 1]), np.array([0, 1], "u1"), slice(2), (), 0]
    yield from right(rows, lambda rows: len(fitted.predict_rates(rows)) == len(fitted.standard_errors(rows)) <= 2)
    none = [(0.5, 1.0), ("ada",), {0, 1}, (slice(2), 0), ..., 1.5]
    yield from refused({repr(rows): [rows] for rows in none}, lambda rows: fitted.predict_rates(*rows), "rows must")
    yield from right(FAILURES, stays_fitted)
    yield from right({f"unfitted: {name}": each for name, each in FAILURES.items()}, stays_unfitted)
    yield from refused({"Ctrl-C says what to do": (lambda: said_by_an_interrupt(), "callback")})
    bare = amp.AMPEmbedding(2)
    unfitted = {"transform": bare.transform, "fitted": lambda Z: bare.predict_rates(), "score": lambda Z: bare.score(Z)}
    unfitted |= {"errors": lambda Z: bare.standard_errors(), "covariances": lambda Z: bare.covariances()}
    yield from refused(unfitted, lambda method: method(Z), "not fitted")
    yield from refused({
        "other columns": (lambda: fitted.transform(Z[:, :5]), "features"),
        "columns in another order": (lambda: model().fit(frame).transform(frame.iloc[:, ::-1]), "name"),
        "negative new rows": (lambda: fitted.transform(-Z), "egative"),
    })  # fmt: skip
    array = np.array(["counts", "damped"])
    words = {"init": (array, ["spectral"]), "channel": (array, ["counts"], np.eye(2)), "denoiser": (array, np.eye(2))}
    words |= {"n_components": ("2", "Auto", array, [1])}
    for name, values in words.items():
        yield from refused(
            values, lambda value, name=name: model().set_params(**{name: value}).fit(Z), f"^\\w+: {name}"
        )
    yield from refused(["2", "many"], lambda value: model(value).fit(Z), 'integer or "auto"')
    wrong = {"n_components": (0, 1.5, "many", 10**6), "channel": ("poisson", None), "denoiser": ("ols", amp.Ridge, 3)}
    wrong |= {"n_iter": (-1, 2.5, "all"), "tol": (-1, np.nan, "x"), "init": ("zero",)}
    yield from refused(["a", -1, 1.5], lambda seed: embedding(Z, random_state=seed), "[Ss]eed|random_state")
    for name, values in wrong.items():
        yield from refused(values, lambda value, name=name: model().set_params(**{name: value}).fit(Z), name)


def numerics():
    """Huge, tiny, dominated, duplicate and degenerate tables: all finite, or refused."""
    Z, blank = table(), 0 * table()
    places = {"entry": (0, 0), "column": np.s_[:, 0], "row": 0}
    sizes = {f"{name} of {s:g}": changed(Z, at, s) for name, at in places.items() for s in (1e3, 1e6, 1e9, 1e12)}
    yield from finite(
        {f"times 1e{e}": Z * 10.0**e for e in (-300, -30, -6, 6, 30, 36, 38, 100, 300)} | sizes, is_finite
    )
    degenerate = {
        "one row": Z[:1], "one column": Z[:, :1], "one entry": Z[:1, :1], "two rows": Z[:2], "ones": blank + 1,
        "equal rows": np.tile(Z[:1], (60, 1)), "equal columns": np.tile(Z[:, :1], 40), "the identity": np.eye(40),
        "one count": changed(blank, (0, 0), 1), "few counts": np.eye(60, 40) + np.eye(60, 40, -40),
        "empty rows": changed(Z, np.s_[::2], 0), "empty columns": changed(Z, np.s_[:, ::3], 0), "wide": table(3, 900),
        "one row counts": changed(blank, 0, 5), "blocks": np.kron(np.eye(2), np.ones((20, 20))), "tall": table(900, 3),
        "a product": np.outer(np.arange(1, 9), np.arange(1, 7)),
    }  # fmt: skip
    yield from finite(degenerate, is_finite)
    yield from finite({f"sparse, {name}": X for name, X in degenerate.items()}, lambda X: is_finite(sp.csr_array(X)))
    again = np.vstack([Z, Z[:1], Z[:1]])
    yield from right(
        {"duplicates are alike": lambda: np.ptp(embedding(again)[[0, -1, -2]]) < 0.1 * np.ptp(embedding(again))}
    )


def no_signal():
    """Chance is called chance, and small tables are no lottery."""

    def independent(seed):
        rng = np.random.default_rng(seed)
        Z = rng.poisson(2 * np.outer(rng.gamma(2, 0.5, 60), rng.gamma(1, 1, 40)))
        return amp.AMPEmbedding(2, random_state=0).fit(Z)

    def gain(split):
        kept, hidden, *_ = heldout.hold_out(crowded, 0.1, np.random.default_rng(1), split)
        fit = amp.AMPEmbedding(1, random_state=0).fit(kept)
        biases = fit.row_bias_, fit.column_bias_
        return heldout.heldout_gain(kept, hidden, fit.embedding_, fit.components_.T, *biases)

    rng = np.random.default_rng(3)
    signal = np.outer(rng.standard_normal(200), rng.standard_normal(150))
    crowded = rng.poisson(20 * np.exp(rng.normal(0, 1.2, 150) + 0.15 * signal))
    small = 5 * np.array([[40, 10, 2, 1], [8, 50, 9, 2], [3, 9, 45, 11], [1, 2, 12, 38]])
    pair = heldout.held_out_pairs(np.array([[9, 1], [2, 8]]), np.array([[0, 3], [0, 0]]))
    yield from told(range(10), independent, "independence|error|predict")
    yield from right(range(8), lambda seed: amp.AMPEmbedding(1, random_state=seed).fit(small).n_iter_ > 0)
    yield from right({"one hidden pair": lambda: not np.isfinite(pair.standard_error(np.array([0.7])))})
    splits = {"hidden pairs": heldout.split_pairs, "hidden counts": heldout.split_counts}
    yield from right(splits, lambda split: gain(split) > 0.005)


def reproducibility():
    """The same seed gives the same embedding, and nothing touches what is not its own."""
    Z, states = table(), lambda: np.random.get_state()[1].copy()  # noqa: NPY002
    R, before, state = embedding(Z), Z.copy(), states()
    turned = np.abs(np.abs(embedding(Z[::-1])[::-1]) - np.abs(R)).mean()
    yield from right({
        "the same seed": lambda: np.array_equal(embedding(Z), R),
        "the table is left alone": lambda: np.array_equal(Z, before),
        "the global state is left alone": lambda: np.array_equal(states(), state),
        "the order of rows": lambda: turned < 0.1 * np.abs(R).mean(),
    })  # fmt: skip


WORDS = {
    "I <3 this film, great plot, 10 > 9": "this film great plot", "a < b and c > d in code": "and in code",
    "<p>red</p><br/>wine<!-- no -->": "red wine", "Tom &amp; Jerry&nbsp;film &lt;br&gt;": "tom jerry film",
    "caf&eacute; &#233;t&eacute;": "café été", "आधुनिक हिन्दी": "आधुनिक हिन्दी", "naïve café": "naïve café",
    unicodedata.normalize("NFD", "naïve café"): "naïve café", "soft\u00adware": "software",
    "العَرَبِيَّة": "العَرَبِيَّة", "Straße GROSS": "straße gross", "Ünïcödé, wörds!": "ünïcödé wörds",
    "snake_case": "snake case", "e-mail 1st": "mail st", "http://example.org/page": "http example org page",
    "km² H₂O ① ½ 2½h": "km", "l'homme o’clock rock'n'roll": "homme clock rock roll",
    "'red' «wine» ·film· ״יין״": "red wine film יין", "red·wine 张三·李四": "red·wine 张三 李四", "cʼhoar": "cʼhoar",
    "the <title> of a page": "the of page", "a <video> of red wine": "of red wine",
    "&lt;script&gt; is a tag": "is tag", "<3 wine <b>red</b>": "wine red", "<p hidden>never ended": "never ended",
}  # fmt: skip
UNSEEN = {  # of HTML: a browser shows "red wine"
    f"red {markup} wine" for markup in (
        "<script>var x1 = 'hidden'</script>", "<SCRIPT src='a.js'>\n// <!--\nif (a < b) tell('</div>')\n</SCRIPT >",
        "<style media=all>p > b {color: blue}</style>", "<!-- <b>secret</b> -->", "<!-- a > b --!>", "<!--->",
        "<!-- a\n-->",
        "<title>Tab</title>", "<template><p>secret</p></template>", "<noscript>secret <b>text</b></noscript>",
        "<iframe>secret</iframe>", "<canvas>secret</canvas>", "<video controls><p>secret</p></video>",
        "<audio>no</audio>",
        "<datalist><option>secret</datalist>", "<dialog>secret</dialog>", "<svg><title>secret</title></svg>",
        "<p hidden>secret</p>", "<div HIDDEN=''>secret <div>more</div> secret</div>",
        "<b id=a\nhidden\nclass=c>secret</b>",
        "<i style='display:none'>secret</i>", '<i style="color: red; Display : None !important">secret</i>',
        "<i style='visibility: hidden'>secret</i>", "<p hidden>secret<p>", "<input type=hidden value='a > secret'>",
        "<input hidden>", "<br hidden>", "<img hidden src=a>", "<img alt='a > secret'>",
        '<a title="it\'s > secret"></a>',
        "<math><annotation>secret</annotation></math>", "<?php secret() ?>", "<!doctype html>", "<![CDATA[secret]]>",
        "<meta content='secret > text'>", "<head><style>a</style><title>b</title></head>",
        "<object data='secret'></object>",
    )
} | {"red wine <script>secret()", "red wine <!-- secret", "red wine <style>secret"}  # fmt: skip
SEEN = {  # a browser shows "secret" too
    "<p aria-hidden=true>secret</p>", "<p class='a hidden b'>secret</p>", "<p title=hidden>secret</p>",
    "<p data-hidden>secret</p>", "<dialog open>secret</dialog>", "<scripts>secret</scripts>", "<titles>secret</titles>",
    "<i style='display: block'>secret</i>", "<i style='backface-visibility:hidden'>secret</i>",
    "<i style='overflow: hidden'>secret</i>", "<p onclick='if (a > b) tell()'>secret</p>", "<div>secret</div hidden>",
}  # fmt: skip
SPELLINGS = (
    "м'ята м’ята мʼята м‘ята м`ята М’ЯТА", "пʼять п'ять", "об'єкт об’єкт", "сям’я сям'я", "ג'ירף ג׳ירף ג’ירף",
    'צה״ל צה"ל צה”ל', 'ארה״ב ארה"ב', "col·legi COL·LEGI coŀlegi col‧legi", "paral·lel paraŀlel",
    "كتاب كتـــاب ﻛﺘﺎب", "سلام ﺳﻼم ســلام", "ガイド ｶﾞｲﾄﾞ", "パリ ﾊﾟﾘ", "한글 한\u00ad글", "wine ｗｉｎｅ 𝐰𝐢𝐧𝐞 ＷＩＮＥ",
    "film ﬁlm ﬁ\u00adlm",
    "istanbul İstanbul I\u0307stanbul", "diyarbakir DİYARBAKİR", "ինչու ինչո՞ւ", "שלום ﬩שלום", "džep ǆep Ǆep",
    "café cafe\u0301 CAFÉ",
    "didn't didn’t didnʼt didn＇t didn`t", "strasse ſtraſſe", "μs µs",
)  # fmt: skip
CONTRACTIONS = "mustn won needn ain ve don hasn haven couldn wouldn isn didn doesn ll re".split()
NO_TEXTS = {
    "a text": ("red wine", "list"), "bytes": ([b"red wine"], "str"), "numbers": ([1, 2], "str"),
    "nothing": ([], "empty"), "None": (["red", None], "str"),
    "no words": (["1 2", "3"], "word"), "a dictionary": ({"a": "red"}, "dict|values"),
    "two dimensions": (np.array([["red", "car"]]), "column|dim|str"),
    "a frame": (pd.DataFrame({"review": ["red wine"], "stars": [1]}), "column"),
}  # fmt: skip


def texts():
    """Words as readers see them; callables of one's own; what are no texts."""
    plain = {"min_df": 1, "stop_words": None, "lemmatize": False}

    def vocabulary(*texts, **options):
        return sorted(amp.corpus_from_texts(texts, **plain | options).vocabulary)

    def as_expected(pair):
        return vocabulary(pair[0]) == sorted(unicodedata.normalize("NFC", pair[1]).split())

    said = "wine; we mustn{0}t, needn{0}t, ain{0}t, won{0}t, they{0}ve, don{0}t, hasn{0}t, she{0}ll, we{0}re, isn{0}t"
    quoted = {f"{w}{q}": (w, said.format(q)) for q in "'’" for w in CONTRACTIONS}
    yield from right({text: (text, expected) for text, expected in WORDS.items()}, as_expected)
    yield from right(UNSEEN, lambda text: vocabulary(text) == ["red", "wine"])
    yield from right(SEEN, lambda text: vocabulary(f"red {text} wine") == ["red", "secret", "wine"])
    yield from right(SPELLINGS, lambda text: len(vocabulary(text)) == 1)
    in_html = ["<script>", "<p hidden>", "<title>", "<!-- ", "<div hidden><div>", '="<a "', "<a b='", "</", "·", "ʼ"]
    yield from right(in_html, lambda filling: seconds(vocabulary, "wine <a " + filling * 20_000) < 1)
    yield from right(quoted, lambda pair: pair[0] not in vocabulary(pair[1], stop_words="english"))
    yield from right(
        ["<", "a < b ", "&", "<a", "'"], lambda filling: seconds(vocabulary, "wine " + filling * 20_000) < 1
    )
    yield from refused(NO_TEXTS, lambda given: amp.corpus_from_texts(given, **plain))
    in_windows = {f"windows: {name}": each for name, each in NO_TEXTS.items()}
    yield from refused(in_windows, lambda given: amp.cooccurrence(given, **plain))
    both, lemma = ["red", "car"], {"films": "film"}.get
    series = [pd.Series(both, [5, 2]), np.array(both), iter(both)]
    yield from right(series, lambda given: len(amp.corpus_from_texts(given, **plain).vocabulary) == 2)
    yield from right({
        "an unknown word": lambda: vocabulary("films xyzzy", lemmatize=lemma) == ["film", "xyzzy"],
        "tokens": lambda: vocabulary("红酒 红车", tokenize=str.split) == ["红车", "红酒"],
    })  # fmt: skip
    nothing = [[], (), set(), np.array([], dtype=str), iter([]), pd.Series([], dtype=str)]
    yield from right(nothing, lambda stop_words: vocabulary("the film", stop_words=stop_words) == ["film", "the"])
    arrays = {"lemmatize": np.array([True, False]), "context": np.array(["before"]), "weights": np.array(["flat"])}
    yield from refused({
        name: (functools.partial(amp.cooccurrence, ["red wine", "red car"], **{name: value}), f"^\\w+: {name} must")
        for name, value in arrays.items()
    })  # fmt: skip
    yield from refused(["", ["film"], 3], lambda x: vocabulary("films", lemmatize=lambda word: x), "lemmati")
    yield from refused([None, 3, [None]], lambda x: vocabulary("films", tokenize=lambda text: x), "tokeni")


def neighbours():
    """Neighbours are other words that have an embedding, by position."""
    X, words = np.array([[1, 0.1], [0, 1.0], [1, 0]]), ["film", "tree", "movie"]
    vocabularies = [words, tuple(words), np.array(words), pd.Index(words), pd.Series(words, [2, 1, 0]), iter(words)]
    vocabularies += [dict.fromkeys(words).keys(), pd.Categorical(words)]
    none = [
        "abc",
        set(words),
        CountVectorizer(),
        {"film": 0, "tree": 1, "movie": 2},
        None,
        [1, 2, 3],
        [b"a", b"b", b"c"],
    ]
    none += [np.array([words]).T, words[:2], ["film", "tree", "film"], pd.DataFrame([[1, 2, 3]], columns=words)]
    yield from right(vocabularies, lambda given: nearest_words(X, given, "film", 1) == ["movie"])
    yield from refused(none, lambda given: nearest_words(X, given, "film"), "vocabulary|shape")
    yield from right([1, 3, 10**9], lambda k: nearest_words(np.eye(3), words, "film", k) == ["tree", "movie"][:k])
    yield from right({"a zero row": lambda: nearest_words(changed(X, 1, 0), words, "film") == ["movie"]})
    yield from right({"a rare word": lambda: nearest_words(X, words, "film", counts=[9, 9, 1]) == ["tree"]})
    yield from told({"no embedding": (lambda: nearest_words(0 * X, words, "film"), "no embedding")})
    yield from refused([0, -1, 1.5, "all"], lambda k: nearest_words(X, words, "film", k), "k must")
    yield from refused(
        ["car", ["film"], 0, None], lambda word: nearest_words(X, words, word), "word|not in the vocabulary"
    )
    fit = model(2).fit(pd.DataFrame(table(), np.arange(100, 160), [f"w{k}" for k in range(40)]))
    (rows, terms), V = fit.frames(), fit.components_.T
    near = nearest_words(V, terms.index, "w3", 9)
    own = {"both": terms, "no bias": terms.drop(columns="bias"), "no counts": terms.drop(columns="counts")}
    own |= {"turned": terms.iloc[:, ::-1], "with more": terms.assign(age=1e6), "coordinates": terms.iloc[:, :2]}
    own |= {"with more before": terms.assign(age=1e6)[["age", *terms]]}
    yield from right(own, lambda frame: nearest_words(frame, frame.index, "w3", 9) == near)
    yield from right({
        "rows by their numbers": lambda: set(nearest_words(rows, rows.index, 103)) < set(range(100, 160)),
        "counts of a frame": lambda: len(nearest_words(terms, terms.index, "w3", counts=terms["counts"])) == 5,
        "coordinates of frames": lambda: np.allclose(
            rate_coordinates(rows, terms, rows["bias"], terms["bias"]),
            rate_coordinates(fit.embedding_, V, fit.row_bias_, fit.column_bias_)),
    })  # fmt: skip
    yield from refused({
        "biases and counts alone": (lambda: nearest_words(terms[["bias", "counts"]], terms.index, "w3"), "coordinates"),
        "a number as a text": (lambda: nearest_words(rows, rows.index, "103"), "not in the vocabulary"),
        "several numbers": (lambda: nearest_words(rows, rows.index, [103]), "one at a time"),
    })  # fmt: skip
    yield from refused({"NaN": (lambda: nearest_words(X * np.nan, words, "film"), "NaN")})


INDEXES = {
    "numbers": lambda n: pd.Index(np.arange(1000, 1000 + n), name="id"),
    "a range": lambda n: pd.RangeIndex(5, 5 + n, name="k"),
    "fractions": lambda n: pd.Index(np.arange(n) / 2), "NaN": lambda n: pd.Index([np.nan, *map(float, range(1, n))]),
    "nullable": lambda n: pd.Index(pd.array([None, *range(1, n)], dtype="Int64")),
    "moments": lambda n: pd.date_range("2024", periods=n, freq="h", tz="Europe/Berlin", name="hour"),
    "no moment": lambda n: pd.DatetimeIndex([pd.NaT, *pd.date_range("2024", periods=n - 1)]),
    "days": lambda n: pd.Index([datetime.date(2024, 1, 1) + datetime.timedelta(k) for k in range(n)]),
    "periods": lambda n: pd.period_range("2024", periods=n, freq="M", name="month"),
    "lengths": lambda n: pd.to_timedelta(np.arange(n), "h"), "intervals": lambda n: pd.interval_range(0, n),
    "bins": lambda n: pd.CategoricalIndex(pd.cut(np.arange(n) + 0.5, np.arange(n + 1))),
    "categories": lambda n: pd.CategoricalIndex([f"c{k}" for k in range(n)], ordered=True, name="class"),
    "identifiers": lambda n: pd.Index([uuid.UUID(int=k) for k in range(n)]),
    "bytes": lambda n: pd.Index([b"%d" % k for k in range(n)]),
    "two keys": lambda n: pd.MultiIndex.from_product([["a", "b"], range(n // 2)], names=["x", "y"]),
    "three keys": lambda n: pd.MultiIndex.from_arrays([pd.date_range("2024", periods=n), ["a"] * n, [None] * n]),
    "tuples": lambda n: pd.Index([(1, k) for k in range(n)], tupleize_cols=False),
    "strings": lambda n: pd.Index([f"w{k}" for k in range(n)], dtype="string", name="word"),
    "texts": lambda n: pd.Index([f"w{k}" for k in range(n)], dtype=object),
}  # fmt: skip


def names():
    """An index that goes in comes out, in every way; columns may have any name."""
    Z = table()

    def same(frames, indexes):
        pairs = zip(frames, indexes, strict=True)
        return all(frame.index.identical(index) and type(frame.index) is type(index) for frame, index in pairs)

    def of_frame(make):
        frame = pd.DataFrame(Z, *map(make, Z.shape))
        fit = model().fit(frame)
        return same(fit.frames(), frame.axes) and len(fit.transform_columns(frame)) == len(fit.transform(frame)[0])

    def of_cells(make):
        names = list(map(make, Z.shape))
        return same(model().fit(SimpleNamespace(X=Z, obs_names=names[0], var_names=names[1])).frames(), names)

    def given(make):
        names = list(map(make, Z.shape))
        return same(model().fit(Z).frames(*names), names)

    def knows_the_order(make):
        frame = pd.DataFrame(Z, columns=make(40))
        return model().fit(frame).transform(frame.iloc[:, ::-1])

    for way in (of_frame, of_cells, given):
        yield from right({f"{way.__name__} {name}": make for name, make in INDEXES.items()}, way)
    yield from refused({f"turned {name}": make for name, make in INDEXES.items()}, knows_the_order, "name")
    rng = np.random.default_rng(0)
    a, b, c = (pd.Series(rng.integers(0, k, 3000), name=name) for k, name in ((5, "a"), (4, "b"), (12, "c")))
    tables = {
        "two keys in rows": pd.crosstab([a, b], c),
        "in columns": pd.crosstab(c, [a, b]),
        "bins": pd.crosstab(pd.cut(a, 3), c),
    }
    tables |= {
        "both": pd.crosstab([a, b], [c, b]),
        "unstacked": pd.concat([a, b, c], axis=1).groupby(["c", "a"]).size().unstack(),
    }
    yield from right(
        tables, lambda Z: same(model().fit(Z).frames(), Z.axes) and len(model().fit(Z).transform(Z)) == len(Z)
    )
    words = [
        ["counts", "vocabulary", "x"],
        ["obs_names", "var_names", "X"],
        ["index", "columns", "names"],
        ["T", "shape", "dtype"],
    ]
    yield from right(
        words, lambda words: list(model().fit(pd.DataFrame(Z[:, :3], columns=words)).frames()[1].index) == words
    )
    yield from right(words, lambda words: np.array_equal(
        amp.estimate_bias(pd.DataFrame(Z[:, :3], columns=words))[1], amp.estimate_bias(Z[:, :3])[1]
    ))  # fmt: skip
    own = pd.DataFrame({"age": 1}, np.arange(1000, 1060))
    fit, texts = model().fit(pd.DataFrame(Z, own.index)), pd.DataFrame(Z).rename(columns=str)
    yield from right({
        "a join with one's own table": lambda: fit.frames()[0].join(own)["age"].all(),
        "a number": lambda: fit.frames()[0].loc[1003].notna().all(),
        "scikit-learn's names": lambda: all(isinstance(name, str) for name in fit.get_feature_names_out()),
        "no feature_names_in_": lambda: not hasattr(fit, "feature_names_in_"),
        "feature_names_in_": lambda: list(model().fit(texts).feature_names_in_) == list(texts.columns),
        "a Corpus": lambda: model().fit(corpus(Z)).frames()[0].index.tolist() == list(range(60)),
        "a frame without an index": lambda: model().fit(Eager()).frames()[1].index[3] == "w3",
        "nothing": lambda: isinstance(model().fit(Z).frames()[0].index, pd.RangeIndex),
    })  # fmt: skip
    yield from refused(
        [{"w": 0}, set("wxyz"), "wxyz", np.eye(4), 4], lambda names: model().fit(Z[:, :4]).frames(None, names), "name"
    )
    yield from refused([["w"], range(5)], lambda names: model().fit(Z[:, :4]).frames(None, names), "4 names are needed")


HARD_NAMES = {  # each beside plain ones
    "a quote": '5" nail', "a tab": "tab\there", "a line": "two\nlines", "Windows": "two\r\nlines",
    "an old Mac": "two\rlines",
    "a page": "two\u2028lines", "next line": "two\x85lines", "a form feed": "two\x0clines", "a space": "red wine",
    "spaces": " red   wine ", "a wide space": "red\u3000wine", "a comma": "1,5", "a hash": "# red",
    "a backslash": "\\n",
    "a formula": "=1+1", "NA": "NA", "nan": "nan", "null": "null", "a number": "12", "emoji": "red 🍷",
    "joined": "e\u0301",
    "right to left": "\u202eabc", "a mark of byte order": "\ufeffred", "null byte": "a\0b",
    "a quote alone": '"', "end": "</s>",
}  # fmt: skip
NO_NAMES = {
    "twice": ["a", "a"], "empty": ["", "a"], "blank": ["a", "  "], "a wide blank": ["a", "\u3000"],
    "a tab": ["\t", "a"],
    "half a pair": ["\ud83d", "a"], "the other half": ["a", "b\udc00"],
}  # fmt: skip


def exported_files():
    """Files that gensim, pandas and the embedding projector read back; what they cannot hold leaves the old ones."""
    with warnings.catch_warnings(action="ignore"):  # of few columns
        fit = model(2).fit(table(200, 4))
    V = fit.components_.T
    read = {"header": None, "quoting": csv.QUOTE_NONE, "keep_default_na": False, "dtype": {0: str}}

    def by_pandas(path, columns):
        fit.to_word2vec(path, columns)
        found = pd.read_csv(path, sep=" ", skiprows=1, index_col=0, **read)
        return found.index.tolist() == ["_".join(str(name).split()) for name in columns] and np.allclose(found, V)

    def by_gensim(path, columns):
        fit.to_word2vec(path, columns)
        found = importlib.import_module("gensim.models").KeyedVectors.load_word2vec_format(path, datatype=np.float64)
        return found.index_to_key == ["_".join(str(name).split()) for name in columns] and np.array_equal(
            found.vectors, V
        )

    def by_projector(path, columns):
        """As its parser splits: at line feeds, blank lines passed over, then at tabs; no quotes."""
        fit.to_projector(path.parent, columns)
        lines = [(path.parent / f"{name}.tsv").read_text("utf-8-sig").split("\n") for name in ("vectors", "metadata")]
        vectors, labels = ([line for line in part if line.strip("\ufeff \t\r")] for part in lines)
        same = [
            re.sub(r"\s", "", label) == re.sub(r"[\s\ufeff]", "", str(name))
            for label, name in zip(labels, columns, strict=True)
        ]
        numbers = [[float(x) for x in line.split("\t")] for line in vectors]
        return all(same) and not any("\t" in label for label in labels) and np.array_equal(numbers, V)

    def into(reader, suffix=".txt"):
        return lambda columns: reader(Path(tempfile.mkdtemp()) / f"words{suffix}", columns)

    readers = {"pandas": by_pandas, "projector": by_projector}
    readers |= {"gensim": by_gensim} if importlib.util.find_spec("gensim") else {}
    for name, reader in readers.items():
        hard = {f"{name}: {how}": ["a", hard, "b", "c"] for how, hard in HARD_NAMES.items()}
        yield from right(
            hard | {f"{name}: first, {how}": [hard, "a", "b", "c"] for how, hard in HARD_NAMES.items()}, into(reader)
        )
        if name != "projector":
            suffixes = (".txt", ".gz", ".bz2", ".xz", ".txt.gz", ".GZ", ".vec", ".v1.2")
            yield from right(
                {f"{name}: {suffix}": suffix for suffix in suffixes}, lambda s, r=reader: into(r, s)(list("abcd"))
            )
        others = {f"{name}: {how}": make(4) for how, make in INDEXES.items()}
        yield from right(others, into(reader))

    def old(write, bad):
        folder = Path(tempfile.mkdtemp())
        write(fit, folder)
        before = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
        try:
            write(fit, folder, [*bad, "c", "d"])
        except ValueError as error:
            after = {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}
            return before == after and "name" in str(error)
        return False

    writers = {
        "word2vec": lambda fit, folder, names=None: fit.to_word2vec(folder / "w.txt", names),
        "projector": lambda fit, folder, names=None: fit.to_projector(folder / "projector", names),
    }
    for name, write in writers.items():
        yield from right(
            {f"{name}, old file, {how}": bad for how, bad in NO_NAMES.items()}, lambda bad, w=write: old(w, bad)
        )
        tried = {f"{name}, {how}": [*bad, "c", "d"] for how, bad in NO_NAMES.items()}
        yield from refused(tried, lambda names, w=write: w(fit, Path(tempfile.mkdtemp()), names), "name")
    once = {"spaces": ["red wine", "red_wine"], "around": ["red", " red "]}
    yield from refused(once, lambda bad: fit.to_word2vec(Path(tempfile.mkdtemp()) / "w", [*bad, "c", "d"]), "both")
    lines = {"lines": ["two lines", "two\nlines"], "tabs": ["two\tlines", "two lines"]}
    yield from refused(lines, lambda bad: fit.to_projector(tempfile.mkdtemp(), [*bad, "c", "d"]), "both")
    suffixes = [".zip", ".zst", ".tar.gz", ".tar", ".7z", ".lz4", ".ZIP"]
    yield from refused(suffixes, lambda suffix: fit.to_word2vec(Path(tempfile.mkdtemp()) / f"w{suffix}"), "name")
    yield from refused([["a"], "abcd", {"a": 0}], lambda names: fit.to_projector(tempfile.mkdtemp(), names), "names")


CLASS = "class Mine(Denoiser):\n    pass\n"
LITTER = "._a.py ~$a.docx .gitkeep a.py~ a.py.bak a.py.orig #a.py# .a.py.swp THUMBS.DB desktop.ini Icon\r".split(" ")
HANDED_IN = {  # files of an archive: denoiser.py, or why there is none
    "denoiser.py": CLASS, "work/denoiser.py work/helper.py": CLASS, "work\\denoiser.py work\\helper.py": CLASS,
    "mine.py": CLASS, "MINE.PY": CLASS, "__MACOSX/mine.py mine.py": CLASS, "mine.ipynb": CLASS,
    "a.py b.py": "which file", "mine/denoiser.py starter/denoiser.py": "which file",
    "../denoiser.py": "leaves its", "..\\denoiser.py": "leaves its",
    "/etc/denoiser.py": "leaves its", "work.docx": "only work.docx", "inner.zip": "only inner.zip",
} | {f"mine.py {name}": CLASS for name in LITTER}  # fmt: skip
LINES = "np.f?|?np|%matplotlib inline|!ls|x = !ls|x = %who|pip install x|>>> 1|await f()|/f a|f(1|%time 1".split("|")


def grader():
    """What students hand in, what platforms export."""

    def notebook(*cells):
        return json.dumps({"cells": [{"cell_type": "code", "source": cell} for cell in cells]}).encode()

    def packed(names):
        with zipfile.ZipFile(data := io.BytesIO(), "w") as file:
            for name in names.split(" "):
                text = notebook(CLASS) if name.endswith("ipynb") else "x = 1" if "helper" in name else CLASS
                file.writestr(name, text)
        return data.getvalue()

    def read(folder, classes):
        return [read_submission(paths, classes, 100) for paths in find_submissions(folder).values()]

    def collected(contents):
        return [each.source for each in read(files(contents), ["Mine"])]

    def as_expected(pair):
        source = collected({"ada.zip": packed(pair[0]), "bob.py": CLASS})[0]
        return pair[1] in (source if isinstance(source, str) else source.decode())

    def has_imports(line):
        return b"import numpy" in read_notebook(notebook(f"import numpy as np\n{line}", f"{CLASS}    x = np"))[0]

    yield from right({names: (names, expected) for names, expected in HANDED_IN.items()}, as_expected)
    yield from right(LITTER, lambda name: len(collected({"ada.py": CLASS, name: "x"})) == 1)

    def is_read_whole(data):
        (source,) = (each.source for each in read(files({"ada.ipynb": data}), ["RidgeByHand"]))
        return not isinstance(source, str) and all(map(np.array_equal, answers(source), answers(RIGHT)))

    yield from right(LINES, has_imports)
    yield from right(NOTEBOOKS, is_read_whole)
    yield from right(EXPORTS, lambda case: not misplaced(files({}), case))
    yield from right(["ada.rar", "ada.docx", "ada.py.txt", "ada"], lambda name: name in collected({name: "x"})[0])
    yield from right({
        "one folder deeper": lambda: "which file" in collected({"export/ada.py": CLASS, "export/bob.py": CLASS})[0],
        "odd names": lambda: len(collected({f"{name}.py": CLASS for name in ("李明", "O'Neil, Zoë", "=1+1")})) == 3,
    })  # fmt: skip


def shards():
    """Whatever is a table is written whole; blocks of rows are written one by one."""
    Z = table()
    formats = {name: getattr(sp, name) for name in SPARSE}
    yield from right(FRAMES | formats, lambda change: np.allclose(shards_of(change(Z)).rows, Z.sum(axis=1)))
    yield from right({"blocks": lambda: len(shards_of(iter([Z[:10], Z[10:]])).files) == 2})
    nothing = {"an array": Z[:0], "sparse": sp.csr_array(Z[:0]), "a frame": pd.DataFrame(Z[:0]), "a list": []}
    yield from right(nothing, lambda empty: shards_of(iter([empty, Z[:10], empty, Z[10:]])).shape == Z.shape)
    if importlib.util.find_spec("dask"):
        array = importlib.import_module("dask.array").from_array
        kept = {"no filter": Z[:, 0] >= 0, "a block": np.arange(60) > 20, "single rows": np.arange(60) == 30}
        for chunks in ((20, 40), (20, 15), (7, 40)):
            tried = {f"a filter that leaves {name}, {chunks}": (chunks, rows) for name, rows in kept.items()}
            yield from right(tried, lambda each: np.array_equal(
                shards_of(array(Z, chunks=each[0])[array(each[1], chunks=each[0][:1])]).rows, Z[each[1]].sum(axis=1)
            ))  # fmt: skip
    yield from refused({"only empty blocks": (lambda: shards_of(iter([Z[:0], Z[:0]])), "no rows")})
    wrong = {
        "two widths": [Z, Z[:, :3]],
        "a text": "Z",
        "nothing": [],
        "a number": 3,
        "negative": -Z,
        "complex": Z * 1j,
    }
    yield from refused(wrong, shards_of)
    yield from refused({"no shards": lambda: open_shards(tempfile.mkdtemp())})


CELLS = {  # a cell: the kind of its last output, and a part of it
    "1 + 1": "plain 2", "print(3)": "stdout 3", "'é'": "plain é", "'100 %?'": "plain 100",
    "1 / 0": "error ZeroDivisionError", "import sys; sys.exit(2)": "error SystemExit: 2",
    "print('here')\nexit()\n1": "stdout here", "print('here')\nimport sys\nsys.exit(0)": "stdout here",
    "raise SystemExit('no data')": "error no data", "import sys\nsys.stdout.write(3)": 'error "cell 1", line 2',
    "import sys\nsys.stderr.write(b'3')": "error TypeError: write() takes a text",
    "input('Name? ')": "error A page cannot ask",
    "import sys\nsys.stdin.readline()": "error A page cannot ask",
    "import sys\nlist(sys.stdin)": "error A page cannot ask",
    "import torch_of_mine": "error does not come into the page", "from absent.part import x": "error NumPy, SciPy",
    ">>> 1 + 1\n2": "error leave out >>>", "  >>> x = 1\n  >>> x": "error leave out >>>",
    "print(0)\n1;  # why": "stdout 0", "print(0)\n(1\n);": "stdout 0", "print(0)\n'a;';": "stdout 0",
    "1  # why;": "plain 1",
    "1\n# why;": "plain 1", "'a;'": "plain a;", "1; 2": "plain 2",
    "import sys\nsys.stdout.close()\nprint(1)": "stdout 1",
    "import absent": "error absent", "x = = 2": "error invalid syntax",
    "list(range(10**6))": "plain too much", "print('x' * 10**7)": "stdout too much", "len?": "error help(",
    "for k in range(10**5): print(k)": "stdout too much", "raise ValueError('x' * 10**7)": "error too much",
    "?len": "error help(", "await f()": "error async functions", "pip install x": "error nothing can be installed",
    "import pandas as pd\npd.DataFrame({'a': [1]})": "html <table", "import pandas as pd\npd.DataFrame": "plain <class",
    "from amptutorial import AMPEmbedding\nAMPEmbedding": "plain <class", "import sys\nsys": "plain <module",
    "from sklearn.linear_model import Ridge\nRidge": "plain <class",
    "from unittest import mock\nmock.MagicMock()": "plain <Mag",
    "from unittest import mock\nmock.call": "plain call",
} | {line: "error leave this line out" for line in ("%matplotlib inline", "!pip install x", "%%time\n1")}  # fmt: skip


GIVEN = {  # what an object gives as its picture: the kind that is shown
    "'<b>2</b>'": "html", "('<b>2</b>', {'isolated': True})": "html", "None": "plain", "3": "plain", "b'<b>'": "plain",
    "1 / 0": "plain", "[]": "plain", "()": "plain", "(None, {})": "plain", "object()": "plain",
}  # fmt: skip
KEPT = {  # what a cell makes, and a later one prints with
    "logging": ("import logging\nlog = logging.Logger('a')\nlog.addHandler(logging.StreamHandler())",
    "log.error('late')"),
    "partial": ("import sys, functools\nsay = functools.partial(print, file=sys.stderr)", "say('late')"),
    "default": ("import sys\ndef say(out=sys.stdout): print('late', file=out)", "say()"),
    "write": ("import sys\nsay = sys.stdout.write", "say('late');"), "with": ("import sys\nwith sys.stdout: 1",
    "print('late')"),
    "thread": ("import sys, threading\nt = threading.Thread(target=print, args=['late'], kwargs={'file': sys.stdout})",
               "t.start(); t.join()"),
    "warnings": ("import sys, warnings\nerr = sys.stderr", "print('late', file=err)"),
    "redirected": ("import io, sys\nsys.stdout = io.StringIO()", "print('late')"),
}  # fmt: skip


def live_cells():
    """Cells of a page: outputs of any size, errors, habits from notebooks."""

    def outputs(source):
        run_cell(source, "cell 1", (found := []).append)
        return found

    def as_expected(pair):
        kind, _, part = pair[1].partition(" ")
        return part in outputs(pair[0])[-1][kind]

    def picture(given, method="_repr_html_"):
        own = (
            f"    def {method}(self, **kw):\n        return {given[0]}\n    def __repr__(self):\n        return 'text'"
        )
        return outputs(f"class A:\n{own}\nA()")[-1] == {given[1]: "<b>2</b>" if given[1] == "html" else "text"}

    def late(pair):
        outputs(pair[0])
        return "late" in str(outputs(pair[1])[-1])

    yield from right({repr(source): (source, last) for source, last in CELLS.items()}, as_expected)
    yield from right({given: (given, kind) for given, kind in GIVEN.items()}, picture)
    bundles = {f"{{'text/html': {given}}}": kind for given, kind in GIVEN.items() if "{" not in given}
    yield from right(
        {given: (given, kind) for given, kind in bundles.items()}, lambda x: picture(x, "_repr_mimebundle_")
    )
    yield from right(KEPT, late)
    yield from right(list(CELLS), lambda source: len(str(outputs(source))) < 5e5)


ANSWERS = {
    "None": lambda x: None, "complex": lambda x: x + 0j, "objects": lambda x: np.array(x, dtype=object), "a text": str,
    "single precision": np.float32, "an axis more": lambda x: np.array([x]),
}  # fmt: skip
ARRAYS = {
    "a list": list,
    "a matrix": np.matrix,
    "integers": lambda X: X.astype(int),
    "one row": lambda X: X[0],
    "a frame": pd.DataFrame,
}


def kit():
    """Answers of a wrong kind are named, by 'shapes' alone; right denoisers pass."""

    def shapes_alone(pair):
        method, change = pair
        methods = {"convexity": amp.Ridge.convexity, "penalty": amp.Ridge.penalty}
        methods |= {"estimate": lambda self, *rows: amp.Ridge.denoise(self, *rows)[0], "denoise": amp.Denoiser.denoise}
        methods["mean_jacobian"] = lambda self, *rows: amp.Ridge.denoise(self, *rows)[1]
        answer = methods[method]
        methods[method] = lambda self, *arguments: change(answer(self, *arguments))
        (failure,) = amp.check_denoiser(type("Mine", (amp.Ridge,), methods)(1.0)).failures
        return failure.name == "shapes" and re.match(rf"{method} returns .*; return ", failure.message)

    for method in ("estimate", "mean_jacobian", "penalty", "convexity"):
        changes = ANSWERS if method in ("penalty", "convexity") else ANSWERS | ARRAYS
        yield from right({f"{method}: {name}": (method, change) for name, change in changes.items()}, shapes_alone)
    denoisers = [kind(strength) for kind in (amp.Ridge, amp.Lasso) for strength in (1e-12, 1e-3, 1e3, 1e12)]
    yield from right(denoisers, lambda denoiser: amp.check_denoiser(denoiser).passed)
    yield from right([1, 2, 10], lambda d: amp.check_denoiser(amp.Ridge(1.0), d=d).passed)
    yield from refused([amp.Ridge, None, "ridge"], amp.check_denoiser, "derive")


def denoisers():
    """A denoiser that fails is named, and cannot change what it is given."""

    class Mine(amp.Denoiser):
        precision = "posterior"

        def __init__(self, change):
            self.change = change

        def estimate(self, P, r, F):
            return self.change(P, r)

    def twice(P, r):
        r *= 2
        return P

    def ended(P, r):
        r[0] = 0
        return P

    Z, ones = table(), np.ones((60, 1))
    law = amp.scaled_rows(1, rows_u=amp.GaussianRows(1.0), rows_v=amp.GaussianRows(1.0),
                          bias_u=amp.ConstantBias(0.0), bias_v=amp.ConstantBias(0.0))  # fmt: skip
    start = {"beta": 1.5, "M0": np.eye(1), "Q0": 2 * np.eye(1), "n_iter": 2, "n_samples": 50}
    r_u, r_v = amp.estimate_bias(Z)
    ways = {
        "AMP": lambda one: amp.biased_low_rank_amp(amp.FisherScore(Z, r_u, r_v), r_u, r_v, one, B0=ones[:40]),
        "state evolution": lambda one: amp.state_evolution(*law, one, **start, rng=np.random.default_rng(0)),
        "fit": lambda one: model(denoiser=one).fit(Z),
    }
    bad = {"0 / 0": lambda P, r: P * np.nan, "infinite": lambda P, r: P + np.inf, "a logarithm": lambda P, r: np.log(P)}
    before = r_u.copy(), r_v.copy()

    def left_alone(pair):
        try:
            pair[0](Mine(pair[1]))
        except ValueError as error:
            return "read-only" in str(error) and np.array_equal(before[0], r_u) and np.array_equal(before[1], r_v)
        return False

    for name, way in ways.items():
        for side in ("both", "rows", "columns"):

            def pair(change, side=side):
                mine, other = Mine(change), amp.Ridge(1.0)
                return {"both": mine, "rows": (mine, other), "columns": (other, mine)}[side]

            tried = {
                f"{name}, {side}, {how}": (lambda c=change, p=pair, w=way: w(p(c)), "first .*Mine")
                for how, change in bad.items()
            }
            yield from refused(tried)
        yield from right(
            {f"{name}, {how}": (way, change) for how, change in (("*=", twice), ("[0]", ended))}, left_alone
        )


def packages():
    """Docstrings of packages with odd files; a folder named by the environment."""

    def found(pair):
        name, change = f"odd_package_{len(sys.modules)}_{pair[0]}", pair[1]
        folder = files({f"{name}/__init__.py": f'"""{"Words of this package. " * 20}"""'})
        (folder / name / "x.py").write_bytes(change) if isinstance(change, bytes) else change(folder / name)
        sys.path.insert(0, str(folder))
        try:
            return pair[2] in str(docstring_texts([name]))
        finally:
            sys.path.remove(str(folder))

    def home():
        before, os.environ["AMPTUTORIAL_CACHE"] = os.environ.get("AMPTUTORIAL_CACHE", ""), "~/x"
        try:
            return "~" not in str(archive.cache_folder())
        finally:
            os.environ["AMPTUTORIAL_CACHE"] = before

    body = b'def f():\n        """' + b"Wine and glass. " * 20 + b'"""\n'
    odd = {
        "a broken link": lambda folder: (folder / ".#notes.py").symlink_to("someone@host"), "null bytes": b"\0",
        "a folder": lambda folder: (folder / "x.py").mkdir(), "nested": b"x = " + b"+".join([b"1"] * 20_000),
        "no Python": b"def (", "Latin": b"# caf\xe9",
    }  # fmt: skip
    inner = {
        "async": b"async " + body,
        "in a try": b"try:\n    " + body + b"finally:\n    pass\n",
        "in an if": b"if 1:\n    " + body,
    }
    yield from right({name: (k, change, "Words") for k, (name, change) in enumerate(odd.items())}, found)
    yield from right({name: (k, source, "Wine") for k, (name, source) in enumerate(inner.items())}, found)
    yield from refused({"no such package": (lambda: docstring_texts(["no_such_package"]), "no_such_package")})
    yield from right({"AMPTUTORIAL_CACHE=~/x": home})


AREAS = (inputs, containers, scikit_learn, numerics, no_signal, reproducibility, texts, neighbours, grader)
AREAS = {area.__name__: area for area in (*AREAS, shards, live_cells, kit, packages, names, exported_files, denoisers)}


def main():
    """Try the areas named, or all, and return 1 if a trial is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("areas", nargs="*", choices=[[], *AREAS], metavar="area", help=", ".join(AREAS))
    failed, total = [], Counter()
    print(f"{'area':<16}", *(f"{kind:>8}" for kind in ("trials", *KINDS)))
    for area in parser.parse_args().areas or AREAS:
        found = Counter()
        for trial in AREAS[area]():
            kind, wanted, text = verdict(trial)
            found[kind] += 1
            if not wanted:
                failed.append(f"{area}: {trial.name}: {kind}, {trial.wish} wanted. {' '.join(text.split())[:160]}")
        total += found
        print(
            f"{area:<16}", *(f"{number:>8}" for number in (found.total(), *(found[kind] for kind in KINDS))), flush=True
        )
    print(f"{'all':<16}", *(f"{number:>8}" for number in (total.total(), *(total[kind] for kind in KINDS))))
    print(*failed, sep="\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
