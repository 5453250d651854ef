"""Tables of users: gaps, names, weights, few pairs, no signal, new rows and columns, and how many components."""

import io
import pickle
import re
import sys
import time
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from synthetic import without_margins
from tqdm.notebook import tqdm as tqdm_notebook

from amptutorial import AMPEmbedding, AMPWarning, FisherScore, drop_empty, estimate_bias, fitting
from amptutorial._progress import progress
from amptutorial.bias import fill_gaps, margins
from amptutorial.heldout import heldout_gain, hold_out, split_counts, split_pairs
from amptutorial.neighbours import principal_coordinates

# of tables so small that their hidden counts hardly tell
pytestmark = pytest.mark.filterwarnings("ignore:heldout_gain_ =")

quiet = pytest.mark.filterwarnings("ignore::amptutorial.AMPWarning")


def strong(m=300, n=100, d=3, seed=1):
    """Counts of mean about one with M of order one, and M."""
    rng = np.random.default_rng(seed)
    U, V = rng.standard_normal((m, d)), rng.standard_normal((n, d))
    M = 0.5 * U @ V.T
    return rng.poisson(np.exp(M)).astype(float), M, rng


def with_gaps(Z, share, rng):
    return np.where(rng.random(Z.shape) < share, np.nan, Z)


def associations(model):
    return model.embedding_ @ model.components_ / np.sqrt(len(model.embedding_))


@pytest.fixture(scope="module")
def fitted():
    Z, M, _ = strong()
    return Z, M, AMPEmbedding(3, random_state=0).fit(Z)


# Pairs that were not observed


def test_gaps_count_what_independence_expects():
    """Biases of independent counts are found whatever part of the table was observed; without gaps nothing changes."""
    rng = np.random.default_rng(0)
    r_u, r_v = rng.gamma(5, 1, 40), rng.gamma(5, 1, 30)
    rates = np.outer(r_u, r_v)
    holes = with_gaps(rates, 0.6, rng)
    for make in (np.asarray, sp.csr_array, pd.DataFrame):
        assert np.allclose(margins(make(holes))[0], rates.sum(axis=1))
        assert np.allclose(np.outer(*estimate_bias(make(holes))), rates)
    assert np.allclose(fill_gaps(holes), rates)
    assert np.abs(FisherScore(holes, *estimate_bias(holes)).toarray()).max() < 1e-6
    assert np.array_equal(drop_empty(holes)[1], np.arange(40))


@pytest.mark.parametrize(("share", "level"), [(0.3, 0.87), (0.7, 0.75)])
def test_a_row_knows_what_it_has(share, level, fitted):
    """The error is at most 1.6 times what fewer counts explain, and intervals of level 90 % know it nearly."""
    Z, M, model = fitted
    holes = with_gaps(Z, share, np.random.default_rng(2))
    found = AMPEmbedding(3, random_state=0).fit(holes)
    whole, error = (without_margins(associations(fit) - M, *map(np.ones, M.shape)) for fit in (model, found))
    assert error.std() < 1.6 * whole.std() / np.sqrt(1 - share)
    assert (np.abs(error) < 1.645 * found.standard_errors()).mean() > level
    rates = np.where(np.isnan(holes), 0, found.predict_rates())
    assert np.allclose(rates.sum(axis=1), np.nansum(holes, axis=1), rtol=1e-3)
    again = found.transform(holes) @ found.components_ / np.sqrt(len(Z))
    assert np.abs(again - associations(found)).max() < 0.05


def zeros_stored(Z):
    """Return a csr_array that stores every pair."""
    m, n = Z.shape
    return sp.csr_array((Z.ravel(), np.indices(Z.shape)[1].ravel(), np.arange(0, m * n + 1, n)), Z.shape)


FORMS = [sp.csr_array, sp.coo_array, sp.bsr_array, sp.dia_array, zeros_stored]


@quiet
@pytest.mark.parametrize("make", [*FORMS, lambda Z: pd.DataFrame(Z).astype("Float64")])
def test_gaps_are_the_same_in_every_kind_of_table(make):
    """The seed decides which pairs are hidden, whatever the table stores."""
    Z, _, rng = strong(60, 40, 1)
    holes = with_gaps(Z, 0.2, rng)
    holes[3], holes[:, 5] = np.nan, np.nan  # nothing at all is known of these
    model, other = (AMPEmbedding(1, random_state=0).fit(table) for table in (holes, make(holes)))
    assert np.array_equal(model.embedding_, other.embedding_)
    assert not model.embedding_[3].any() and not model.components_[:, 5].any() and model.embedding_.any()
    assert all(np.allclose(frame["counts"], np.nansum(holes, axis=1 - k)) for k, frame in enumerate(other.frames()))
    assert np.isfinite(model.predict_rates()).all() and np.isfinite(model.standard_errors()).all()
    parts = [split_pairs(X, 0.1, np.random.default_rng(0))[0].toarray() for X in (Z, make(Z))]
    assert np.array_equal(*parts, equal_nan=True)


def test_gains_of_tables_with_few_zeros_are_those_that_the_fit_expects():
    """By hidden pairs, and by thinned counts: all three agree within four of their errors."""
    rng = np.random.default_rng(3)
    u, v = rng.standard_normal(200), rng.standard_normal(150)
    Z = rng.poisson(20 * np.exp(rng.normal(0, 1.2, 150) + 0.3 * np.outer(u, v)))
    own = AMPEmbedding(1, random_state=0).fit(Z)
    assert own.heldout_gain_ > 3 * own.heldout_error_
    for split in (split_pairs, split_counts):
        kept, hidden, *_ = hold_out(Z, 0.1, np.random.default_rng(1), split)
        fit = AMPEmbedding(1, random_state=0).fit(kept)
        gain = heldout_gain(kept, hidden, fit.embedding_, fit.components_.T, fit.row_bias_, fit.column_bias_)
        assert abs(gain - own.heldout_gain_) < 4 * np.hypot(own.heldout_error_, fit.heldout_error_)


# No signal, few pairs, weights


@pytest.mark.parametrize(
    "shape", [(150, 12), *(pytest.param(shape, marks=pytest.mark.slow) for shape in ((60, 40), (4, 5)))]
)
def test_independent_tables_are_said_to_be_within_the_error_of_none(shape):
    """Ten tables with counts in most pairs: at most one embedding passes for real; above 0.02 counts are too few."""
    passed = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        Z = rng.poisson(20 * np.outer(rng.gamma(2, 0.5, shape[0]), rng.gamma(1, 1, shape[1])))
        with warnings.catch_warnings(record=True, action="always") as caught:
            AMPEmbedding(1, random_state=seed).fit(Z)
        told = " ".join(str(warning.message) for warning in caught)
        passed += "independen" not in told
        most = re.search(r"gain of (\S+) nats", told)
        assert most is None or ("enough to say" in told) == (float(most[1]) <= 0.02), told
    assert passed <= 1


def test_counts_of_one_row_or_one_column_do_not_judge():
    with pytest.warns(AMPWarning, match="^hidden counts of one row or one column cannot judge heldout_gain_$"):
        assert AMPEmbedding(1, random_state=0).fit([[9, 3, 5, 8, 20]]).heldout_error_ == np.inf


@quiet
def test_a_small_table_with_an_association_is_embedded_whatever_the_seed():
    diagonal = 5 * np.array([[40, 10, 2, 1], [8, 50, 9, 2], [3, 9, 45, 11], [1, 2, 12, 38]])
    hair_and_eyes = 9 * np.array([[68, 20, 15, 5], [119, 84, 54, 29], [26, 17, 14, 14], [7, 94, 10, 16]])
    for table in (diagonal, hair_and_eyes, np.array([[90, 10], [5, 80], [70, 20]])):
        gains = [AMPEmbedding(1, random_state=seed).fit(table).heldout_gain_ for seed in range(4)]
        assert min(gains) > 0, table


@quiet
@pytest.mark.parametrize("dtype", [int, float, np.float32])
def test_events_that_cancel_are_added_before_signs_are_looked_at(dtype):
    events = [3, -1, 2, 4], ([0, 0, 1, 1], [0, 0, 0, 1])
    twice = sp.coo_array(events, shape=(2, 2), dtype=dtype)
    models = [AMPEmbedding(1, random_state=0).fit(Z) for Z in (twice, twice.toarray())]
    assert np.array_equal(*(model.embedding_ for model in models))
    with pytest.raises(ValueError, match="Negative values"):
        models[0].transform(-twice)


@pytest.mark.parametrize("factor", [1e30, 1e36, 1e300])
def test_counts_beyond_single_precision_are_refused_with_what_to_do(factor):
    with pytest.raises(ValueError, match="divide them all by the same number"):
        AMPEmbedding(1, random_state=0).fit(strong(20, 20, 1)[0] * factor)


@pytest.mark.parametrize("dtype", ["Int64", "UInt8", "Float32", "Int64[missing]"])
def test_nullable_numbers_are_taken_everywhere(dtype):
    frame = pd.DataFrame({"a": [1, 2], "b": [3, 4]}).astype(dtype.split("[")[0])
    plain = frame.to_numpy(dtype=float)
    if "missing" in dtype:
        frame.iloc[0, 0], plain[0, 0] = pd.NA, np.nan
    assert np.array_equal(estimate_bias(frame), estimate_bias(plain))
    ones = np.ones(2)
    assert np.array_equal(FisherScore(frame, ones, ones).toarray(), FisherScore(plain, ones, ones).toarray())
    parts = [split_pairs(Z, 0.5, np.random.default_rng(0))[0].toarray() for Z in (frame, plain)]
    assert np.array_equal(*parts, equal_nan=True)


# How many components


@pytest.mark.parametrize("d", [1, 3])
def test_the_number_of_components_is_found(d):
    Z, _, _ = strong(d=d)
    model = AMPEmbedding("auto", random_state=0).fit(Z)
    same = AMPEmbedding(d, random_state=0).fit(Z)
    assert len(model.components_) == d and np.array_equal(model.embedding_, same.embedding_)
    assert [step.n_components for step in model.path_] == {1: [1, 2, 3], 3: [1, 2, 3, 5, 10]}[d]
    chosen = model.path_[-3]
    gains = [(step.gain, step.error) for step in (chosen, same.path_[0])]
    assert gains[0] == gains[1] == (same.heldout_gain_, same.heldout_error_)
    assert abs(model.heldout_gain_ - chosen.gain) < chosen.error


def test_where_there_is_nothing_no_number_of_components_passes():
    """Whichever is chosen of noise, pairs that did not choose it say so: in five tables."""
    for seed in range(5):
        Z = np.random.default_rng(seed).poisson(1.0, (100, 80))
        with pytest.warns(AMPWarning, match="independent"):
            AMPEmbedding("auto", random_state=0).fit(Z)


@pytest.mark.slow
def test_sizes_are_compared_by_scikit_learn_without_a_scorer():
    Z, _, _ = strong()
    search = GridSearchCV(AMPEmbedding(random_state=0), {"n_components": [1, 3]}, cv=3).fit(sp.csr_array(Z))
    assert search.best_params_ == {"n_components": 3}
    scores = cross_val_score(AMPEmbedding(3, random_state=0), Z, cv=3)
    gain, error = search.best_estimator_.gain()
    assert search.best_estimator_.score() == gain and abs(np.mean(scores) - gain) < 2 * error


@quiet
def test_the_score_of_new_rows_is_zero_without_an_embedding(fitted):
    rng = np.random.default_rng(0)
    Z = rng.poisson(np.outer(rng.gamma(5, 1, 200), rng.gamma(1, 0.1, 50)))
    nothing = AMPEmbedding(1, denoiser="ridge", random_state=0).fit(Z[:100])
    nothing.embedding_[:], nothing.components_[:] = 0, 0
    nothing._rows.X[:], nothing._columns.X[:] = 0, 0
    assert abs(nothing.score(Z[100:])) < 0.02
    model = fitted[2]
    for few in (fitted[0][:5], with_gaps(fitted[0][:50], 0.5, rng), np.where(fitted[0] > 3, fitted[0], 0)):
        assert np.isfinite(model.score(few))
    with pytest.raises(ValueError, match="too few counts|no counts"):
        model.score(np.eye(1, 100))


# New rows and columns


def test_new_rows_have_rates_and_those_of_fitted_ones_are_theirs(fitted):
    Z, _, model = fitted
    rates = model.predict_rates(sp.csr_array(Z[:7]))
    assert np.allclose(rates, model.predict_rates(slice(7)), rtol=0.05)
    assert np.allclose(rates.sum(axis=1), Z[:7].sum(axis=1))
    assert np.array_equal(model.predict_rates(pd.DataFrame(Z[:7])), model.predict_rates(Z[:7].tolist()))
    assert model.predict_rates([0, 2]).shape == (2, 100)
    assert np.allclose(model.standard_errors(sp.csr_array(Z[:7])), model.standard_errors(slice(7)), rtol=0.05)
    fewer = model.standard_errors(np.where(np.arange(100) < 50, Z[:7], np.nan))
    assert (fewer > model.standard_errors(slice(7))).mean() > 0.9
    empty = np.zeros((1, 100))
    assert (model.standard_errors(empty) > fewer.mean(axis=0)).mean() > 0.9


def test_fitted_columns_are_embedded_again(fitted):
    Z, _, model = fitted
    new = np.column_stack([Z[:, :20], np.zeros(len(Z))])
    V = model.transform_columns(new)
    assert np.abs(model.embedding_ @ (V[:, :-1] - model.components_[:, :20])).max() / np.sqrt(len(Z)) < 0.05
    assert not V[:, -1].any()
    with pytest.raises(ValueError, match="X has 3 rows, but the model was fitted to 300"):
        model.transform_columns(new[:3])


# Names in, names out


def test_rows_and_columns_have_the_numbers_of_their_names_and_no_name_without_a_fit(fitted):
    Z, _, model = fitted
    rows, columns = model.frames(columns=[f"word {k}" for k in range(100)])
    assert columns.columns.tolist() == ["ampembedding0", "ampembedding1", "ampembedding2", "bias", "counts"]
    assert np.array_equal(rows.iloc[:, :3], model.embedding_) and np.array_equal(columns["counts"], Z.sum(axis=0))
    assert columns.index[3] == "word 3" and rows.index.tolist() == list(range(300))
    with pytest.raises(ValueError, match="100 names are needed"):
        model.frames(columns=["one"])
    for unfitted in (AMPEmbedding().frames, AMPEmbedding().standard_errors, AMPEmbedding().score):
        with pytest.raises(NotFittedError):
            unfitted()


@quiet
def test_words_that_have_an_embedding_are_written_for_other_programs(tmp_path, monkeypatch):
    Z, _, _ = strong(60, 40, 2)
    Z[:, 7] = 0
    model = AMPEmbedding(2, random_state=0).fit(Z)
    monkeypatch.setitem(sys.modules, "pandas", None)  # files of words do without
    names = [f"word{k}" for k in range(40)]
    model.to_word2vec(tmp_path / "words.txt", names)
    model.to_projector(tmp_path, names)
    expected = np.delete(model.components_.T, 7, axis=0)
    assert np.array_equal(np.loadtxt(tmp_path / "words.txt", skiprows=1, usecols=(1, 2)), expected)
    assert np.array_equal(np.loadtxt(tmp_path / "vectors.tsv", delimiter="\t"), expected)
    assert (tmp_path / "metadata.tsv").read_text().splitlines() == np.delete(names, 7).tolist()


def test_a_pickle_of_another_version_is_said_to_be_one(fitted, monkeypatch):
    model = fitted[2]
    kept = pickle.dumps(model)
    assert np.array_equal(pickle.loads(kept).embedding_, model.embedding_)
    monkeypatch.setattr("amptutorial.estimator.__version__", "9.9")
    with pytest.warns(AMPWarning, match="pickled by version .* of amptutorial, read by 9.9"):
        pickle.loads(kept)


# Progress


def test_a_callback_sees_every_iteration_and_may_end_the_fit():
    Z, _, _ = strong()
    seen = []
    model = AMPEmbedding(3, channel="counts", random_state=0, callback=seen.append).fit(Z)
    assert [step.n_iter for step in seen] == list(range(1, len(seen) + 1)) and len(seen) >= model.n_iter_
    assert abs(seen[-1].gain - model.heldout_gain_) < model.heldout_error_ and seen[-1].n_components == 3
    ended = []
    stop = lambda progress: ended.append(progress) or progress.n_iter == 2  # noqa: E731
    with warnings.catch_warnings(action="ignore", category=AMPWarning):
        short = AMPEmbedding("auto", channel="counts", random_state=0, callback=stop).fit(Z)
    assert len(ended) == 2 and short.n_iter_ <= 2 and len(short.components_) == 1
    with pytest.raises(TypeError, match="callback must be callable"):
        AMPEmbedding(callback=3).fit(Z)


def slow(progress):
    """One slow iteration, whatever the machine: a bar is drawn again after a tenth of a second."""
    if progress.n_iter == 2:
        time.sleep(0.15)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@quiet
def test_in_a_terminal_a_long_fit_shows_a_bar_and_a_log_has_none(monkeypatch):
    """A fit is long where a bar waits for nothing."""
    Z, delay = strong(60, 40, 1)[0], fitting.LATE["delay"]

    def shown(stderr, delay, verbose):
        monkeypatch.setattr(sys, "stderr", stderr)
        monkeypatch.setitem(fitting.LATE, "delay", delay)
        AMPEmbedding(1, random_state=0, callback=slow, verbose=verbose).fit(Z)
        return stderr.getvalue().strip()

    assert "gain 0." in shown(Terminal(), 0, verbose=True)
    for stderr, seconds, verbose in ((Terminal(), delay, True), (Terminal(), 0, False), (io.StringIO(), 0, True)):
        assert not shown(stderr, seconds, verbose)


def test_no_bar_of_a_notebook_is_drawn_where_bars_are_disabled(monkeypatch):
    monkeypatch.setattr("amptutorial._progress.tqdm", tqdm_notebook)
    monkeypatch.setenv("TQDM_DISABLE", "1")
    assert progress(range(3)).disable


# Correspondence analysis


def test_principal_coordinates_are_those_of_what_was_fitted(fitted):
    _, _, model = fitted
    expected = principal_coordinates(model.embedding_, model.components_.T, model.row_bias_, model.column_bias_)
    assert all(map(np.array_equal, model.principal_coordinates(), expected))


def test_what_is_no_table_of_counts_is_refused_with_what_makes_one():
    texts, long = (
        ["red wine", "white wine"],
        pd.DataFrame({"user": ["ada", "bob"], "item": ["wine", "car"], "n": [1, 2]}),
    )
    for table in (texts, pd.Series(texts), long):
        with pytest.raises(ValueError, match="CountVectorizer|2D array"):
            AMPEmbedding(1).fit(table)


def test_weights_of_new_rows_and_unknown_rows_are_named(fitted):
    Z, _, model = fitted
    for method in (model.transform, AMPEmbedding(1).fit):
        with pytest.warns(AMPWarning, match="X holds fractions"):
            method(Z[:90] / 3)
    with pytest.warns(AMPWarning, match="1 rows have no counts in the fitted columns"):
        assert not model.transform(np.vstack([Z[:2], 0 * Z[:1]]))[2].any()
    with pytest.raises(ValueError, match="vector of row numbers"):
        model.predict_rates(["ada"])


@quiet
@pytest.mark.parametrize("call", ["fit", "transform", "score", "predict_rates"])
def test_tables_that_are_not_in_order_stay_as_they_are(call):
    """Pairs stored twice and in any order are added up in a copy."""
    Z, _, rng = strong(60, 40, 1)
    model = AMPEmbedding(1, random_state=0).fit(Z)
    indices = np.tile([7, 3, 3, 0], 60)
    given = sp.csr_array((rng.poisson(3.0, 240).astype(float), indices, np.arange(0, 241, 4)), shape=(60, 40))
    before = [part.copy() for part in (given.data, given.indices, given.indptr)]
    getattr(AMPEmbedding(1, random_state=0) if call == "fit" else model, call)(given)
    assert all(map(np.array_equal, before, (given.data, given.indices, given.indptr)))
