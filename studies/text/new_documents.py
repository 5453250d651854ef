"""Programs compared on documents that were hidden as a whole.

Every program is fitted to some rows of a table of counts. Of a new row it is shown four
fifths of the pairs, by which the row is folded in, and predicts the counts of the
others. What the program learned of the columns stays as it is.
"""

import time
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer

from amptutorial._validation import AMPWarning
from amptutorial.bias import drop_empty, margins, same_pairs, without_gaps
from amptutorial.biases import observed_biases
from amptutorial.denoisers import GaussianPosterior
from amptutorial.estimator import AMPEmbedding
from amptutorial.heldout import HeldOut, contrasted, hide_pairs, surprising_pairs, with_gaps
from amptutorial.reexpansion import new_side, settle_rows
from amptutorial.smoothing import balanced, cosines_of_rows, neighbour_ratios
from amptutorial.sums import products_of_pairs
from amptutorial.table import Table

from .corpora import CORPORA
from .minimisers import minimise_poisson_loss
from .rates import EITHER, FILLED, TABLES, TUNING_SHARE, Ratios, climb, gain_of, judged, starred
from .rivals import amp, correspondence_analysis, lsa, svd_pmi
from .smoothers import LEAST_SHARE, amp_and_neighbours, row_neighbours
from .topic_models import SHARES, gamma_poisson, lda, nmf

NEW, HIDDEN = 0.2, 0.2  # the fraction of the rows; of their pairs
DIMENSION = 10
PRIORS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)  # sizes of the covariance
EM_STEPS = 300


def hide_documents(counts, rng):
    """Return the rows to fit, what is shown of new rows, and the pairs hidden there.

    Columns that the fitted rows lack are left out. A hidden pair is NaN where a zero
    would be a surprise, as in `split_pairs`, given the column's frequency in the fitted
    rows.

    Parameters
    ----------
    counts : sparse array (m, n)
    rng : numpy.random.Generator

    Returns
    -------
    fitted : csr_array (m_fitted, n_fitted)
        Without empty rows and columns.
    shown : csr_array (m_new, n_fitted)
        Without rows that are empty.
    pairs : HeldOut
        Their independence is the total of the new row, with gaps filled, times the
        frequency of the column in the fitted rows.
    """
    counts = sp.csr_array(counts, dtype=np.float64)
    order = rng.permutation(counts.shape[0])
    new, old = np.split(order, [round(NEW * len(order))])
    fitted, _, columns = drop_empty(counts[old])
    return fitted, *_hide(counts[new][:, columns], _shares(fitted), HIDDEN, rng)


def _hide(new, shares, fraction, rng):
    """Return what is shown of new rows and the pairs hidden, given shares of columns.

    Rows of which nothing is shown are left out; pairs that are NaN stay so.
    """
    shown, hidden = hide_pairs(new, fraction, rng)
    some = without_gaps(shown)[0].sum(axis=1) > 0
    new, shown, hidden = new[some], shown[some], hidden[some]
    sums = _margins(shown, shares)
    zeros = surprising_pairs(*sums, fraction, rng)
    shown = with_gaps(shown, hidden, zeros, *sums)
    gaps, own = without_gaps(shown)[1], without_gaps(new)[1]
    contrast = None
    if gaps is not None:
        contrast = contrasted(surprising_pairs(*sums), gaps, own)
    return shown, HeldOut.of(*_margins(shown, shares), hidden, gaps, contrast)


def _margins(shown, shares):
    """Return the sums of new rows, gaps filled, and those of columns with shares."""
    nothing = (np.zeros((size, 1)) for size in shown.shape)
    rows = observed_biases(shown, *nothing, shares)
    return rows, shares * rows.sum()


def _shares(counts):
    columns = margins(counts)[1]
    return columns / columns.sum()


def _tables(tables, chosen, fitted, shown):
    """Return what a method that chose one of the `tables` makes of old and new rows."""
    both = tables[chosen["table"]](sp.vstack([fitted, shown], format="csr"))
    return both[: fitted.shape[0]], both[fitted.shape[0] :]


def vectors_of_rows(shown, U, V, r_v, size=1.0):
    """Return vectors of new rows, most likely given the columns and a normal prior.

    The likelihood is that of Poisson counts, whatever the method maximised; the prior
    has the mean and the covariance of the vectors of the fitted rows, times a size.

    Parameters
    ----------
    shown : csr_array (m_new, n)
        Counts of new rows, none of them empty. Pairs that are NaN have no part in it.
    U, V : arrays (m, d), (n, d)
        M = U V^T / sqrt(m) of the fitted rows.
    r_v : array (n,)
        Bias factors of the columns.
    size : float
        Of the prior's covariance.

    Returns
    -------
    array (m_new, d)
    """
    m, d = U.shape
    V, mean = V.astype(np.float64), U.mean(axis=0, dtype=np.float64)
    columns = new_side(V, r_v * np.exp(V @ mean / np.sqrt(m)), None)
    # an embedding of zeros has no covariance
    prior = GaussianPosterior(size * np.atleast_2d(np.cov(U.T)) + 1e-9 * np.eye(d))
    r_u = without_gaps(shown)[0].sum(axis=1) / columns.r.sum()
    rows = new_side(np.zeros((len(r_u), d)), r_u, prior)
    return mean + settle_rows(Table(shown), rows, columns, m).X


def shares_of_topics(shown, topics, share, frequencies, n_steps=EM_STEPS):
    """Return the most likely shares of topics in new rows, by EM.

    The rates of a row are in proportion to those of independence, times (1 - share)
    shares . topics_j + share.

    Parameters
    ----------
    shown : csr_array (m_new, n)
        Counts of new rows, none of them empty. Pairs that are NaN have no part in it.
    topics : array (n, d)
        Ratios of each topic to the frequencies.
    share : float
        Of independence.
    frequencies : array (n,)
        Of the columns; they add up to one.
    n_steps : int

    Returns
    -------
    array (m_new, d)
        Its rows add up to one.
    """
    (i, j), gaps = shown.tocoo().coords, np.isnan(shown.data)
    totals = without_gaps(shown)[0].sum(axis=1)
    theta = np.full((len(totals), topics.shape[1]), 1 / topics.shape[1])
    for _ in range(n_steps):
        ratios = (1 - share) * products_of_pairs(theta, topics, i, j) + share
        expected = np.where(gaps, frequencies[j] * ratios, 0)
        seen = 1 - np.bincount(i, expected, len(totals))
        filled = np.where(gaps, expected * (totals / seen)[i], shown.data)
        theta = theta * (same_pairs(shown, filled / ratios) @ topics)
        theta /= np.maximum(theta.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    return theta


def _by_vectors(method, tables, fitted, shown, d, rng):
    rates, shares = method(fitted, d, rng), _shares(fitted)

    def ratios(rows, prior):
        _, table = _tables(tables, rates.chosen, fitted, rows)
        U = vectors_of_rows(table, rates.U, rates.V, rates.r_v, prior)
        return np.exp(U @ rates.V.T / np.sqrt(len(rates.U))) * rates.r_v / shares

    return _at_best(ratios, {"prior": PRIORS}, rates, shown, shares, rng)


def _by_topics(method, tables, fitted, shown, d, rng):
    rates, shares = method(fitted, d, rng), _shares(fitted)
    topics = rates.V / rates.weights

    def ratios(rows, share):
        _, table = _tables(tables, rates.chosen, fitted, rows)
        theta = shares_of_topics(table, topics, share, shares)
        return (1 - share) * theta @ topics.T + share

    return _at_best(ratios, {"share": SHARES}, rates, shown, shares, rng)


def _at_best(ratios, settings, rates, shown, shares, rng):
    """Return ratios of new rows, with what to fold in by chosen, and all that is.

    It is chosen like all other settings, by a tenth of the pairs that are shown. What
    is best for rows that were fitted with the columns may be too little for new ones.
    """
    seen, pairs = _hide(shown, shares, TUNING_SHARE, rng)

    def rates_of(**values):
        return _with_totals(ratios(seen, **values), shares)

    best, _ = climb(gain_of(rates_of, pairs), settings)
    return ratios(shown, **best), rates.chosen | starred(best, settings)


def _with_totals(ratios, shares):
    """Return ratios to independence scaled until every row has its total."""
    return Ratios(ratios / (ratios @ shares)[:, None])


def _amp(fitted, shown, d, rng):
    model = _model(fitted, d, rng)
    chosen = {"table": model.channel_, "steps": model.n_iter_}
    return model.predict_rates(shown) / _shares(fitted), chosen


def _model(fitted, d, rng):
    return AMPEmbedding(d, random_state=int(rng.integers(2**31))).fit(fitted)


def _neighbours(fitted, shown, d, rng):
    chosen = row_neighbours(fitted, d, rng).chosen
    share = _number(chosen["share"])
    ratios = [(1 - share) * near + share for near in _near(chosen, fitted, shown)]
    return _with_factors(fitted, *ratios), chosen


def _amp_and_neighbours(fitted, shown, d, rng):
    """Mix what AMP, fitted anew, and the neighbours say of rows."""
    chosen = amp_and_neighbours(fitted, d, rng).chosen
    model, shares = _model(fitted, d, rng), _shares(fitted)
    share = _number(chosen["amp_share"])
    of_amp = (model.predict_rates(rows) / shares for rows in (None, shown))
    ratios = [
        share * _with_totals(own, shares).ratios + (1 - share) * near + LEAST_SHARE
        for own, near in zip(of_amp, _near(chosen, fitted, shown), strict=True)
    ]
    return _with_factors(fitted, *ratios), chosen


def _near(chosen, fitted, shown):
    """Return the `neighbour_ratios` of fitted rows and of new ones, to fitted rows."""
    table, new = _tables(TABLES, chosen, fitted, shown)
    weights = TfidfTransformer().fit(table)
    unit, of_new = (weights.transform(each) for each in (table, without_gaps(new)[0]))
    both = cosines_of_rows(table), (unit @ of_new.T).toarray().astype(np.float32)
    power = _number(chosen["power"])
    return [neighbour_ratios(table, power, cosines) for cosines in both]


def _number(value):
    """Return a chosen number without the star of the end of a grid."""
    return float(str(value).rstrip("*"))


def _with_factors(fitted, ratios, new):
    """Return new ratios times the factors that fit the columns of fitted rows."""
    return new * (balanced(ratios, *margins(fitted))[0] / ratios[0])


# how each method folds in: the first is compared with all others
FOLDED: dict[str, Callable] = {
    "amp": _amp,
    "amp_neighbours": _amp_and_neighbours,
    "neighbours": _neighbours,
    "svd_pmi": partial(_by_vectors, svd_pmi, FILLED),
    "gamma_poisson": partial(_by_topics, gamma_poisson, TABLES),
    "amp_vectors": partial(_by_vectors, amp, TABLES),  # folded in like the others
    "correspondence": partial(_by_vectors, correspondence_analysis, FILLED),
    "lsa": partial(_by_vectors, lsa, FILLED),
    "lbfgs": partial(_by_vectors, minimise_poisson_loss, TABLES),
    "nmf": partial(_by_topics, nmf, EITHER),
    "lda": partial(_by_topics, lda, EITHER),
}
FAST = tuple(FOLDED)[:5]
TEXTS = "docstrings", "standard library", "reviews", "news", "speeches"
# slow methods meet few corpora, and two splits only the small corpora
SLOW: dict[str, tuple[str, ...]] = {
    "nmf": ("standard library",),
    "lda": ("standard library",),
    "lbfgs": ("docstrings", "standard library", "reviews", "speeches"),
}
CASES = (  # split, corpus
    *((0, name) for name in TEXTS),
    *((1, name) for name in ("standard library", "reviews", "speeches")),
)


def _compare(counts, rng, methods, d=DIMENSION):
    """Fold new rows of a table into fits of every method to the others.

    Returns
    -------
    list of dict
        For each method ``gain``, ``error``, ``lead``, ``lead_error``, ``chosen`` and
        ``seconds`` as `studies.text.comparison` has them; ``documents`` and
        ``counts``, the number of new rows and that of their hidden counts.
    """
    fitted, shown, pairs = hide_documents(counts, rng)
    seed, first, records = int(rng.integers(2**31)), None, []
    for name in methods:
        begin, own_rng = time.process_time(), np.random.default_rng(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AMPWarning)  # there may be nothing to find
            ratios, chosen = FOLDED[name](fitted, shown, d, own_rng)
        log_ratios = _with_totals(ratios, _shares(fitted)).log_ratios(pairs)
        first = log_ratios if first is None else first
        records.append(
            {
                **{"method": name, "seconds": time.process_time() - begin},
                **{"documents": shown.shape[0], "counts": pairs.z.sum()},
                **judged(pairs, log_ratios, first, chosen),
            }
        )
    return records


def methods_of(split, name):
    """Return the methods that meet a case: all of them, slow ones only where few."""
    methods = FAST if split else FOLDED
    return [method for method in methods if name in SLOW.get(method, TEXTS)]


def documents_instance(index):
    """Return the records of one of the `CASES`, a list of dict."""
    split, name = CASES[index]
    counts = CORPORA[name](split).counts
    rng = np.random.default_rng([split, counts.shape[0]])
    where = {"corpus": name, "split": split}
    return [where | record for record in _compare(counts, rng, methods_of(*CASES[index]))]
