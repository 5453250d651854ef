"""Documents hidden as a whole: what is shown of them, how they are folded in, and the stored comparison."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from amptutorial.heldout import SURPRISING
from amptutorial.paper.reproduce import _differing, load_results
from studies.text import new_documents
from studies.text.new_documents import CASES, FAST, FOLDED, hide_documents, shares_of_topics, vectors_of_rows
from studies.text.rates import TABLES, Exponential, Ratios

QUICK = [name for name in FAST if name not in ("amp_neighbours", "gamma_poisson")]  # each of which takes a second
some_methods = pytest.mark.parametrize("methods", [QUICK, pytest.param(FAST, marks=pytest.mark.slow)], ids=len)


def test_of_new_rows_a_fifth_is_hidden_and_is_a_gap_where_a_zero_would_be_a_surprise(rng):
    frequencies = rng.permutation(np.geomspace(0.002, 1, 60))
    counts = sp.csr_array(rng.poisson(np.outer(rng.uniform(0.5, 2, 1000), frequencies)))
    fitted, shown, pairs = hide_documents(counts, rng)
    n_new = shown.shape[0]
    assert fitted.shape[1] == shown.shape[1] == len(pairs.columns) and fitted.sum(axis=0).all()
    assert len(fitted.toarray()) + n_new == pytest.approx(1000, abs=10) and n_new == pytest.approx(200, abs=10)
    hidden = sp.csr_array((pairs.z, (pairs.i, pairs.j)), shape=shown.shape).toarray()
    shown = shown.toarray()
    gaps, share = np.isnan(shown), hidden.sum() / (hidden.sum() + np.nansum(shown))
    assert abs(share - 0.2) < 4 * np.sqrt(0.2 * 0.8 * 2 / (hidden.sum() + np.nansum(shown)))
    assert not (hidden * np.nan_to_num(shown)).any()
    frequencies = fitted.sum(axis=0) / fitted.sum()
    expected = np.outer(np.nansum(shown, axis=1), frequencies)
    assert (expected[gaps] > SURPRISING * (1 - 1e-9)).all()
    assert gaps[(hidden > 0) & (expected > SURPRISING * (1 + 1e-9))].all()
    assert abs(gaps.sum() / (expected > SURPRISING).sum() - 0.2) < 4 * np.sqrt(0.16 / (expected > SURPRISING).sum())
    seen = pairs.rows[:, None] * frequencies
    assert np.where(gaps, 0, seen).sum(axis=1) == pytest.approx(np.nansum(shown, axis=1))
    assert pairs.columns / pairs.columns.sum() == pytest.approx(frequencies)
    assert Ratios(np.ones(shown.shape)).log_ratios(pairs) == pytest.approx(0, abs=1e-12)


@pytest.fixture
def few_rows(rng):
    """Counts of 5 rows in 30 columns with gaps, and vectors and biases of 40 fitted rows and of the columns."""
    U, V = 3 + 4 * rng.standard_normal((40, 2)), rng.standard_normal((30, 2))
    Z = rng.poisson(3.0, (5, 30)).astype(float)
    Z[rng.random(Z.shape) < 0.1] = np.nan
    return Z, U, V, rng.uniform(0.5, 2, 30)


def test_vectors_of_new_rows_are_where_a_direct_minimisation_ends(few_rows):
    Z, U, V, r_v = few_rows
    W, precision = V / np.sqrt(len(U)), np.linalg.inv(np.cov(U.T))

    def loss(u, z):
        seen, away = ~np.isnan(z), u - U.mean(axis=0)
        log_rates = np.log(r_v) + W @ u
        log_rates = log_rates[seen] - logsumexp(log_rates[seen])
        return away @ precision @ away / 2 - z[seen] @ log_rates

    best = [minimize(loss, U.mean(axis=0), args=(z,), options={"gtol": 1e-8}).x for z in Z]
    found = vectors_of_rows(sp.csr_array(Z), U, V, r_v)
    assert np.abs((found - best) @ W.T).max() < 1e-3 < 0.1 < np.abs((best - U.mean(axis=0)) @ W.T).max()


def test_shares_of_topics_are_where_a_direct_minimisation_of_the_likelihood_ends(few_rows, rng):
    Z, _, _, r_v = few_rows
    frequencies, share = r_v / r_v.sum(), 0.3
    topics = rng.dirichlet(np.full(30, 0.3), 3).T / frequencies[:, None]

    def loss(a, z):
        seen = ~np.isnan(z)
        rates = (frequencies * ((1 - share) * topics @ softmax(a) + share))[seen]
        return -z[seen] @ np.log(rates / rates.sum())

    found = shares_of_topics(sp.csr_array(Z), topics, share, frequencies, n_steps=3000)
    assert found.sum(axis=1) == pytest.approx(1)
    for z, theta in zip(Z, found, strict=True):
        best = minimize(loss, np.zeros(3), args=(z,), options={"gtol": 1e-8})
        assert loss(np.log(np.maximum(theta, 1e-300)), z) == pytest.approx(best.fun, abs=1e-4)
        assert theta == pytest.approx(softmax(best.x), abs=0.01)


@some_methods
def test_folding_in_finds_nearly_what_the_truth_gains(methods, monkeypatch):
    """With hundreds of counts a row vectors find it, and nothing finds more."""
    rng, m = np.random.default_rng(3), 400
    U, V = (0.8 * (m / 2) ** 0.25 * rng.standard_normal((size, 2)) for size in (m, 150))
    rates = np.exp(U @ V.T / np.sqrt(m) + rng.normal(0.5, 0.7, 150))
    new = np.random.default_rng(4).permutation(m)[: m // 5]
    monkeypatch.setitem(FOLDED, "truth", lambda fitted, *_: (rates[new] / fitted.sum(axis=0), {}))
    counts = sp.csr_array(rng.poisson(rates))
    records = new_documents._compare(counts, np.random.default_rng(4), ("truth", *methods, "amp_vectors"), d=2)
    gains = {record["method"]: record["gain"] for record in records}
    truth = gains.pop("truth")
    assert min(gains["amp"], gains["amp_vectors"]) > 0.9 * truth
    for record in records[1:]:
        assert record["gain"] > 0.2 * truth, record
        assert record["lead"] > -4 * record["lead_error"], record


@some_methods
def test_nothing_is_gained_in_new_rows_where_nothing_is(methods, rng):
    counts = sp.csr_array(rng.poisson(1.0, (300, 100)))
    for record in new_documents._compare(counts, rng, (*methods, "amp_vectors"), d=2):
        assert -0.05 < record["gain"] < 4 * record["error"] + 1e-12, record


def test_a_prior_too_narrow_is_widened_by_the_pairs_that_are_shown(monkeypatch):
    """Vectors of fitted rows that are shrunk tenfold cost next to nothing: the size of the prior is chosen."""
    rng, m = np.random.default_rng(5), 400
    U, V = (0.8 * (m / 2) ** 0.25 * rng.standard_normal((size, 2)) for size in (m, 150))
    r_v = np.exp(rng.normal(0.5, 0.7, 150))
    counts = sp.csr_array(rng.poisson(np.exp(U @ V.T / np.sqrt(m)) * r_v))
    for name, size in (("as they are", 1.0), ("shrunk", 0.1)):
        rates = Exponential(size * U, V, np.ones(m), r_v, {"table": "counts"})
        method = partial(new_documents._by_vectors, lambda *_, rates=rates: rates, TABLES)
        monkeypatch.setitem(FOLDED, name, method)
    one, other = new_documents._compare(counts, rng, ("as they are", "shrunk"), d=2)
    assert float(other["chosen"].split()[-1]) >= 2 * float(one["chosen"].split()[-1])
    assert other["gain"] == pytest.approx(one["gain"], rel=0.03) and one["gain"] > 4 * one["error"]


@pytest.mark.slow
def test_a_stored_case_is_computed_again():
    """The second split of the smallest corpus, with the fast methods: but for the seconds, every number and setting."""
    index = CASES.index((1, "standard library"))
    stored = load_results("documents")["instances"]
    some = (stored["corpus"] == "standard library") & (stored["split"] == 1)
    for k, found in zip(np.flatnonzero(some), new_documents.documents_instance(index), strict=True):
        assert not _differing(found, {key: values[k] for key, values in stored.items()})


def test_every_case_is_stored():
    stored = load_results("documents")["instances"]
    found = list(zip(*(stored[key].tolist() for key in ("split", "corpus", "method")), strict=True))
    wanted = [(*case, name) for case in CASES for name in new_documents.methods_of(*case)]
    assert found == wanted
