"""What goes in comes out: names of every type, files that other programs read back, a model that a fit left alone."""

import csv
import datetime
import gzip
import os
import pickle
import re
import uuid
import warnings
from pathlib import Path
from types import SimpleNamespace

import nbformat
import numpy as np
import pandas as pd
import pytest
import scipy.io

import amptutorial as amp
from amptutorial import AMPEmbedding
from amptutorial._files import REFUSED
from amptutorial.cluster.shards import write_shards
from amptutorial.corpus import Corpus
from amptutorial.heldout import hold_out, split_pairs
from amptutorial.names import write_projector, write_word2vec
from amptutorial.neighbours import nearest_words, rate_coordinates

pytestmark = pytest.mark.filterwarnings("ignore::amptutorial.AMPWarning")  # of tables so small, and fits so short

RNG = np.random.default_rng(0)
Z = RNG.poisson(np.exp(0.6 * np.outer(RNG.standard_normal(60), RNG.standard_normal(40)))) + np.eye(60, 40, dtype=int)


def short(d=1, **options):
    return AMPEmbedding(d, **{"n_iter": 2, "channel": "counts", "random_state": 0} | options)


@pytest.fixture(scope="module")
def fitted():
    return short(2).fit(Z)


def day(k):
    return datetime.date(2024, 1, 1) + datetime.timedelta(k)


INDEXES = {
    "numbers": lambda n: pd.Index(np.arange(1000, 1000 + n), name="id"),
    "a range": lambda n: pd.RangeIndex(5, 5 + n, name="k"),
    "fractions": lambda n: pd.Index([np.nan, *(k / 2 for k in range(1, n))]),
    "nullable": lambda n: pd.Index(pd.array([None, *range(1, n)], dtype="Int64")),
    "moments": lambda n: pd.date_range("2024", periods=n, freq="h", tz="Europe/Berlin", name="hour"),
    "no moment": lambda n: pd.DatetimeIndex([pd.NaT, *pd.date_range("2024", periods=n - 1)]),
    "days": lambda n: pd.Index(list(map(day, range(n)))),
    "periods": lambda n: pd.period_range("2024", periods=n, freq="M"),
    "lengths": lambda n: pd.to_timedelta(np.arange(n), "h"),
    "intervals": lambda n: pd.interval_range(0, n),
    "bins": lambda n: pd.CategoricalIndex(pd.cut(np.arange(n) + 0.5, np.arange(n + 1))),
    "categories": lambda n: pd.CategoricalIndex([f"c{k}" for k in range(n)], ordered=True, name="class"),
    "identifiers": lambda n: pd.Index([uuid.UUID(int=k) for k in range(n)], name="uuid"),
    "bytes": lambda n: pd.Index([b"%d" % k for k in range(n)]),
    "two keys": lambda n: pd.MultiIndex.from_product([["a", None], range(n // 2)], names=["x", "y"]),
    "tuples": lambda n: pd.Index([(1, k) for k in range(n)], tupleize_cols=False),
    "texts": lambda n: pd.Index([f"w{k}" for k in range(n)], name="word"),
}


@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
@pytest.mark.parametrize("kind", INDEXES)
def test_an_index_that_goes_in_comes_out(kind, fitted):
    """Its type, its values, its name; the table is known again, and another order of it is refused."""
    rows, columns = map(INDEXES[kind], Z.shape)
    frame = pd.DataFrame(Z, rows, columns)
    model = short().fit(frame)
    frame.index = frame.index.set_names(["other"] * frame.index.nlevels)
    for known in (pickle.loads(pickle.dumps(model)).frames(), fitted.frames(rows, columns)):
        for found, index in zip(known, (rows, columns), strict=True):
            pd.testing.assert_index_equal(found.index, index, exact=True)
            assert found.columns.tolist()[-2:] == ["bias", "counts"]
    assert hasattr(model, "feature_names_in_") == (kind in ("texts", "categories"))  # as scikit-learn has it
    assert model.transform(frame).shape == (60, 1)
    assert model.transform_columns(frame.iloc[:, :3]).shape == (1, 3)
    with pytest.raises(ValueError, match="names"):
        model.transform(frame.iloc[:, ::-1])
    with pytest.raises(ValueError, match="columns of other names"):  # which scikit-learn does not read there
        model.transform(SimpleNamespace(X=Z[:, ::-1], obs_names=rows, var_names=columns[::-1]))
    with pytest.raises(ValueError, match=re.escape(str(frame.columns[2]))):  # says which column is missing
        model.transform(frame.iloc[:, [k for k in range(frame.shape[1]) if k != 2]])
    with pytest.raises(ValueError, match="rows of other names"):
        model.transform_columns(frame.iloc[::-1])


def test_a_date_may_be_asked_for_as_text():
    days, X = pd.date_range("2024-01-30", periods=4), np.array([[1.0, 0], [1, 0.1], [0, 1], [0.1, 1]])
    assert nearest_words(X, days, "2024-01-31", 1) == nearest_words(X, days, days[1], 1) == [days[0]]
    for unknown in ("2024-01", "2024-03-01", "soon"):  # several days, none, no day
        with pytest.raises(KeyError, match="not in the vocabulary"):
            nearest_words(X, days, unknown)


@pytest.mark.parametrize(
    "words", [["counts", "vocabulary", "word"], ["obs_names", "var_names", "X"], ["index", "columns", "names"]]
)
def test_a_frame_is_a_frame_whatever_its_columns_are_called(words):
    frame = pd.DataFrame(RNG.poisson(3.0, (60, 3)) + 1, columns=words)
    model = short().fit(frame)
    assert model.frames()[1].index.tolist() == words and model.predict_rates(frame.iloc[:2]).shape == (2, 3)
    assert np.array_equal(amp.estimate_bias(frame)[1], amp.estimate_bias(frame.to_numpy())[1])


class Polars:
    """A frame without an index, as that of Polars."""

    columns = property(lambda self: [f"w{k}" for k in range(40)])

    def __array__(self, dtype=None, copy=None):
        return np.array(Z, dtype=dtype)


class LazyFrame:
    """What is still to be computed."""

    columns = property(lambda self: [])

    def collect(self):
        return Polars()


def cells(X):
    names = [INDEXES[kind](size) for kind, size in zip(("numbers", "texts"), Z.shape, strict=True)]
    return SimpleNamespace(X=X, obs_names=names[0], var_names=names[1])


CORPUS = Corpus(Z, np.array([f"w{k}" for k in range(40)]), names=np.arange(60))
NAMED = {"a Corpus": CORPUS, "AnnData": cells(Z), "Polars": Polars(), "a frame": pd.DataFrame(Z)}


@pytest.mark.parametrize("kind", NAMED)
def test_what_has_counts_is_taken_at_every_door(kind, tmp_path):
    X, (r_u, r_v), rng = NAMED[kind], amp.estimate_bias(Z), np.random.default_rng
    assert np.array_equal(np.concatenate(amp.estimate_bias(X)), np.concatenate([r_u, r_v]))
    assert np.allclose(amp.FisherScore(X, r_u, r_v).toarray(), amp.FisherScore(Z, r_u, r_v).toarray())
    assert np.array_equal(amp.drop_empty(X)[1], np.arange(60)) and write_shards(X, tmp_path).shape == (60, 40)
    for split in (split_pairs, hold_out):
        kept, *_ = split(X, 0.1, rng(0))
        assert np.array_equal(kept.toarray(), split(Z, 0.1, rng(0))[0].toarray(), equal_nan=True)
    model = short().fit(X)
    names = {"AnnData": [1003, "w3"], "a frame": [3, 3]}.get(kind, [3, "w3"])
    assert [frame.index[3] for frame in model.frames()] == names
    rows = model.transform(X), model.predict_rates(X), model.standard_errors(X), model.transform_columns(X).T
    assert [len(each) for each in rows] == [60, 60, 60, 40] and np.isfinite(model.score(X))


def test_what_holds_no_counts_is_refused_with_what_to_do():
    for door in (short().fit, amp.estimate_bias, amp.drop_empty):
        with pytest.raises(TypeError, match=r"a LazyFrame holds no counts yet: pass X.collect\(\)"):
            door(LazyFrame())
        with pytest.raises(ValueError, match="X of the AnnData is None: .* adata.layers or adata.raw"):
            door(cells(None))


def test_a_corpus_has_a_length_and_its_counts_are_sparse():
    assert len(CORPUS) == 60 and CORPUS.counts.nnz == (Z > 0).sum() and "60 documents x 40 words" in repr(CORPUS)


# Own output as input


def test_frames_are_taken_by_their_coordinates():
    model = short(2).fit(pd.DataFrame(Z, INDEXES["numbers"](60), INDEXES["texts"](40)))
    (rows, words), V = model.frames(), model.components_.T
    expected = nearest_words(V, words.index, "w3", 9)
    for frame in (words, words.drop(columns="bias"), words.assign(age=1e9), words.iloc[:, :2], words.iloc[:, ::-1]):
        assert nearest_words(frame, words.index, "w3", 9) == expected
    found = nearest_words(rows, rows.index, 1003, 9)
    assert found == [1000 + int(k) for k in nearest_words(model.embedding_, [*map(str, range(60))], "3", 9)]
    biases = rows["bias"], words["bias"]
    assert np.allclose(rate_coordinates(rows, words, *biases), rate_coordinates(model.embedding_, V, *biases))
    with pytest.raises(ValueError, match="X has the columns x, bias: pass those that are coordinates, without bias"):
        nearest_words(words[["bias"]].assign(x=1)[["x", "bias"]], words.index, "w3")
    with pytest.raises(KeyError, match="is not in the vocabulary of 60 words"):
        nearest_words(rows, rows.index, "1003")
    with pytest.raises(TypeError, match="ask for one at a time"):
        nearest_words(rows, rows.index, [1003])


@pytest.mark.parametrize("names", [{"w": 0}, set("wxyz"), "wxyz", pd.DataFrame(np.eye(4)), 4])
def test_names_without_an_order_are_refused(names, fitted):
    with pytest.raises(TypeError, match="names is of type .*; a sequence of names in their order is needed"):
        fitted.frames(columns=names)
    assert fitted.frames(columns=iter(range(40)))[1].index.tolist() == list(range(40))


# Files


NAMES = [
    *('5" nail', "two\nlines", "tab\there", "d", "old\r\nends", "NA", "nan", "1,5", "#x", "'q'", "\\n", "ünï 😀"),
    *("page\u2028end", "next\x85line", "no\xa0break", "a  b", "-1", "</s>", "nul\0", '"', "\ufeffmark", "=1+1"),
]
X = RNG.standard_normal((len(NAMES), 3))
X[0] = 1e-300, -0.0, 1e300
PLAIN = {"header": None, "quoting": csv.QUOTE_NONE, "keep_default_na": False, "dtype": {0: str}}


@pytest.mark.parametrize("suffix", ["", ".gz", ".BZ2", ".xz"])
def test_gensim_and_pandas_read_words_back(suffix, tmp_path):
    path, words = tmp_path / f"words.txt{suffix}", ["_".join(name.split()) for name in NAMES]
    write_word2vec(path, NAMES, X)
    found = pd.read_csv(path, sep=" ", skiprows=1, index_col=0, **PLAIN)
    assert found.index.tolist() == words and np.allclose(found, X, rtol=1e-12, atol=0)
    vectors = pytest.importorskip("gensim.models").KeyedVectors.load_word2vec_format(path, datatype=np.float64)
    assert vectors.index_to_key == words and np.array_equal(vectors.vectors, X)


def test_the_projector_and_pandas_read_one_line_for_each_vector(tmp_path):
    """The projector splits at line feeds and tabs, passes over blank lines, and takes quotes as they are."""
    write_projector(tmp_path / "new", NAMES, X)
    vectors, metadata = ((tmp_path / "new" / f"{name}.tsv").read_bytes() for name in ("vectors", "metadata"))
    lines = [line for line in metadata.decode("utf-8-sig").split("\n") if line.strip("\ufeff \xa0\u2028")]
    ends = re.compile("\r\n|[\t\n\u2028\x85\ufeff]")
    assert lines == [ends.sub(" ", name) for name in NAMES] and not any("\t" in line for line in lines)
    assert [[float(x) for x in line.split("\t")] for line in vectors.decode().splitlines()] == X.tolist()
    found = pd.read_csv(tmp_path / "new" / "metadata.tsv", sep="\t", **PLAIN)
    assert found[0].tolist() == lines


BAD = [
    (write_word2vec, ["red wine", "red_wine"], "'red wine' and 'red_wine' are both 'red_wine'"),
    (write_projector, ["two\nlines", "two lines"], r"'two\\nlines' and 'two lines' are both 'two lines'"),
    (write_projector, ["\ufeff", "\u3000"], r"the name '\\ufeff' is empty"),
    *((write, ["a", "b", "a"], "'a' and 'a' are both 'a'") for write in (write_word2vec, write_projector)),
    *((write, ["a", ""], "the name '' is empty") for write in (write_word2vec, write_projector)),
    *((write, ["a", "\u3000 "], "is empty") for write in (write_word2vec, write_projector)),
    *((write, ["a", "b\ud83d"], "holds half of a pair of surrogates") for write in (write_word2vec, write_projector)),
]


@pytest.mark.parametrize(("write", "names", "message"), BAD)
def test_names_that_a_file_cannot_hold_are_refused_before_the_old_file_is_touched(write, names, message, tmp_path):
    write(tmp_path / "w", ["a", "b", "c"], X[:3])
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    with pytest.raises(ValueError, match=message):
        write(tmp_path / "w", names, X[: len(names)])
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before


def test_a_suffix_that_would_lie_is_refused(tmp_path, fitted):
    for suffix in (*REFUSED, ".tar.gz", ".ZIP"):
        with pytest.raises(ValueError, match=f"w{suffix} would not be what its name says"):
            write_word2vec(tmp_path / f"w{suffix}", ["a"], X[:1])
    fitted.to_word2vec(tmp_path / "w.vec.gz")
    assert gzip.decompress((tmp_path / "w.vec.gz").read_bytes()).startswith(b"40 2\n0 ")
    assert os.listdir(tmp_path) == ["w.vec.gz"]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_an_export_that_is_interrupted_leaves_the_old_files(error, tmp_path, monkeypatch, fitted):
    fitted.to_word2vec(tmp_path / "w.txt")
    fitted.to_projector(tmp_path)
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}

    def interrupted(*args):
        raise error

    monkeypatch.setattr(os, "replace", interrupted)
    other = short().fit(Z)
    for export in (lambda: other.to_word2vec(tmp_path / "w.txt"), lambda: other.to_projector(tmp_path)):
        with pytest.raises(error):
            export()
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_the_lines_of_the_guide_read_the_files_that_they_name(tmp_path, monkeypatch):
    """Those of Matrix Market and CSV, which no cell runs: a browser has neither threads nor pandas."""
    monkeypatch.chdir(tmp_path)
    guide = nbformat.read(Path(__file__).parents[1] / "book/your_counts.ipynb", as_version=4)
    text = "".join(cell.source for cell in guide.cells)
    block = re.search(r"```python\n(counts = scipy.io.mmread.*?)```", text, re.DOTALL)[1]
    table, header = np.array([[5, 0, 2], [0, 1, 0]]), "%%MatrixMarket matrix coordinate integer general\n"
    Path("matrix.mtx").write_text(f"{header}3 2 3\n1 1 5\n3 1 2\n2 2 1\n")
    Path("table.csv").write_text("name,red,car,wine\nfirst,5,0,2\nsecond,0,1,0\n")
    names = {"scipy": scipy, "pandas": pd}
    for line in block.splitlines()[:2]:
        exec(line, names)
        assert np.array_equal(names["counts"] @ np.eye(3), table)


# A fit that fails or is interrupted


def state_of(model):
    return {name: value for name, value in vars(model).items() if name not in ("callback", "n_components", "channel")}


def interrupt(progress):
    raise KeyboardInterrupt


OTHER = pd.DataFrame(Z, columns=[f"b{k}" for k in range(40)])
FAILURES = {
    "too many components": ({"n_components": 50}, OTHER),
    "negative counts": ({}, OTHER - 9),
    "nothing at all": ({}, OTHER * 0),
    "infinite counts": ({}, OTHER * np.inf),
    "texts": ({}, OTHER.astype(str) + "x"),
    "Ctrl-C": ({"callback": interrupt}, OTHER),
    "an error of a callback": ({"callback": lambda progress: 1 / 0}, OTHER),
    "an array of another width": ({"n_components": 50}, Z[:, :30]),
    "a word as a number": ({"channel": "poisson"}, OTHER),
}


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # zero times infinity
@pytest.mark.parametrize("method", ["fit", "fit_transform"])
@pytest.mark.parametrize("failure", FAILURES)
def test_a_fit_that_fails_leaves_the_model_as_it_was(failure, method):
    first = pd.DataFrame(Z, columns=[f"a{k}" for k in range(40)])
    parameters, table = FAILURES[failure]
    for model in (short().fit(first), short()):
        was_fitted = hasattr(model, "components_")
        before, expected = state_of(model), model.transform(first) if was_fitted else None
        model.set_params(**parameters)
        with pytest.raises((ValueError, KeyboardInterrupt, ZeroDivisionError)) as caught:
            getattr(model, method)(table)
        after = state_of(model)
        assert after.keys() == before.keys() and all(after[name] is before[name] for name in before)
        if was_fitted:
            assert model.frames()[1].index[0] == "a0" and np.array_equal(model.transform(first), expected)
    if failure == "Ctrl-C":
        assert "give the model a callback that returns True" in caught.value.__notes__[0]


def test_a_warning_that_is_an_error_is_a_fit_that_failed():
    model = short()
    with warnings.catch_warnings(action="error"), pytest.raises(amp.AMPWarning):
        model.fit(np.random.default_rng(0).poisson(1.0, (60, 40)))
    assert not hasattr(model, "components_") and not hasattr(model, "n_features_in_")


def test_a_model_that_is_fitted_again_forgets_the_names():
    model = short().fit(OTHER).fit(Z)
    assert model.row_names_ is None and model.column_names_ is None and not hasattr(model, "feature_names_in_")


# Rows that are asked for


ROWS = (0, 2), [5, 2], range(0, 3, 2), pd.Index([0, 2]), np.arange(60) < 2, (True,) * 60, slice(3, 8)


@pytest.mark.parametrize("rows", ROWS)
def test_rows_are_chosen_by_any_vector_a_slice_or_a_number(rows, fitted):
    chosen = np.arange(60)[rows if isinstance(rows, slice) else np.asarray(rows)]
    assert np.array_equal(fitted.predict_rates(rows), fitted.predict_rates()[chosen])
    assert np.array_equal(fitted.standard_errors(rows), fitted.standard_errors()[chosen])
    assert fitted.predict_rates(()).shape == fitted.predict_rates([]).shape == (0, 40)
    assert fitted.predict_rates(3).shape == (1, 40)


@pytest.mark.parametrize("rows", [(0.0, 1.0), ("ada",), (slice(3), 1), ..., {0, 1}, 1.5])
def test_what_is_no_vector_of_rows_is_refused(rows, fitted):
    with pytest.raises(ValueError, match="rows must be a slice or a vector of row numbers"):
        fitted.predict_rates(rows)
