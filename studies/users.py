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
import warnings
import zipfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

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
from amptutorial.corpus import archive, docstring_texts
from amptutorial.neighbours import nearest_words
from amptutorial_course.grading.notebooks import notebook_source
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
        except Exception as error:  # noqa: BLE001 - whatever comes is the answer
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
    "objects": (lambda Z: np.array([["a", None]] * 5, dtype=object), "number|numeric|float"),
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

    others = {"estimate_bias": lambda Z: np.concatenate(amp.estimate_bias(Z)), "split_pairs": pairs}
    others["FisherScore"] = lambda Z: amp.FisherScore(Z, *amp.estimate_bias(table())) @ np.ones((40, 1))
    yield from right("i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 g >i4 >f8".split(), lambda kind: same(Z.astype(kind)))
    yield from right(SPARSE, lambda name: same(getattr(sp, name)(Z.astype(float))))
    yield from right(LAYOUTS, lambda change: same(change(Z)))
    yield from right({"bool": lambda: np.array_equal(embedding(Z > 0), embedding((Z > 0) * 1))})
    yield from right({"NaN": gaps, "missing": pd.DataFrame(gaps).astype("Int64")}, is_finite)
    yield from refused(NO_TABLES, lambda change: embedding(change(Z)))
    yield from told({"fractions": (lambda: embedding(Z / 3), "raction")})
    for name, function in others.items():
        tried = {f"{name} of {how}": (function, change) for how, change in FRAMES.items()}
        yield from right(tried, lambda pair: np.allclose(pair[0](pair[1](Z)), pair[0](Z)))


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
    yield from right({f"{name}, shards": X for name, X in made.items()}, lambda X: shards_of(X).shape == Z.shape)


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
    bare = amp.AMPEmbedding(2)
    unfitted = {"transform": bare.transform, "fitted": lambda Z: bare.predict_rates(), "score": lambda Z: bare.score(Z)}
    unfitted |= {"errors": lambda Z: bare.standard_errors(), "covariances": lambda Z: bare.covariances()}
    yield from refused(unfitted, lambda method: method(Z), "not fitted")
    yield from refused({
        "other columns": (lambda: fitted.transform(Z[:, :5]), "features"),
        "columns in another order": (lambda: model().fit(frame).transform(frame.iloc[:, ::-1]), "name"),
        "negative new rows": (lambda: fitted.transform(-Z), "egative"),
    })  # fmt: skip
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
}  # fmt: skip
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
    yield from refused({"NaN": (lambda: nearest_words(X * np.nan, words, "film"), "NaN")})


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
        return b"import numpy" in notebook_source(notebook(f"import numpy as np\n{line}", f"{CLASS}    x = np"))

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
    "1 / 0": "error ZeroDivisionError", "exit()": "error SystemExit",
    "import absent": "error absent", "x = = 2": "error invalid syntax",
    "list(range(10**6))": "plain too much", "print('x' * 10**7)": "stdout too much", "len?": "error help(",
    "for k in range(10**5): print(k)": "stdout too much", "raise ValueError('x' * 10**7)": "error too much",
    "?len": "error help(", "await f()": "error async functions", "pip install x": "error nothing can be installed",
    "import pandas as pd\npd.DataFrame({'a': [1]})": "html <table",
} | {line: "error leave this line out" for line in ("%matplotlib inline", "!pip install x", "%%time\n1")}  # fmt: skip


def live_cells():
    """Cells of a page: outputs of any size, errors, habits from notebooks."""

    def outputs(source):
        run_cell(source, "cell 1", (found := []).append)
        return found

    def as_expected(pair):
        kind, _, part = pair[1].partition(" ")
        return part in outputs(pair[0])[-1][kind]

    yield from right({repr(source): (source, last) for source, last in CELLS.items()}, as_expected)
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
AREAS = {area.__name__: area for area in (*AREAS, shards, live_cells, kit, packages)}


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
