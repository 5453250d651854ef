"""Methods compared on counts of real words: how well they predict, what they know of sentiment, how long they take.

A method takes `kept`, a sparse array (m, n) of counts without empty rows or columns,
the dimension `d` and a generator for what it draws; it returns `Exponential` or
`Mixture` rates. Its free parameter is chosen by counts that it sets aside from `kept`
(`chosen`; `AMPEmbedding` does the same to stop), then it is fitted to all of them.
`lbfgs` alone chooses nothing: its ridge and its number of steps were set by hand, and
its seconds are those of one fit.
"""

import time
import warnings
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import NMF, TruncatedSVD
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.preprocessing import scale

from .amp import biased_low_rank_amp
from .baselines import NotConvergedWarning, poisson_lbfgs, singular_values
from .bias import drop_empty, estimate_bias
from .corpus import load_movie_reviews
from .denoisers import GaussianPosterior
from .estimator import AMPEmbedding
from .experiments import nearest_words
from .heldout import heldout_gain, split_counts
from .model import PoissonEmbedding
from .poisson import refit_biases
from .reexpansion import leading_directions, start
from .score import FisherScore

HELD_OUT = 0.2  # the fraction of the counts that judges the methods
VALIDATION = 0.1  # the fraction of the others that chooses their free parameters
DIMENSIONS = (10, 50)
MORE_DIMENSIONS = (2, 5, 20, 100)  # for `AMPEmbedding` alone
WORDS = ("awful", "horror", "detective", "song", "soldier", "cartoon")

# of quadratic AMP: when to stop, and a factor for M
ITERATIONS, OWN_SCALES = (1, 3, 10), (0.03, 0.1, 0.3, 0.5, 1.0)
# of singular vectors: the root mean square of M
SCALES = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4)
SHARES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)  # of independence in a mixture
NMF_STEPS = 100
N_SINGULAR = 60
LBFGS_STEPS = (40, 60)  # before and after the biases are refitted
# of the ridge, times d / sqrt(m): for d = 50, half of it overfits and twice of it
# underfits
LBFGS_STRENGTH = 0.25


@dataclass(frozen=True)
class Exponential:
    """Rates r_u_i r_v_j exp(u_i . v_j / sqrt(m)).

    Attributes
    ----------
    U, V : arrays (m, d), (n, d)
    r_u, r_v : arrays (m,), (n,)
        Bias factors.
    """

    U: np.ndarray
    V: np.ndarray
    r_u: np.ndarray
    r_v: np.ndarray

    def gain(self, kept, held_out):
        """Return the held-out gain over independence, in nats per count."""
        return heldout_gain(kept, held_out, self.U, self.V, self.r_u, self.r_v)


@dataclass(frozen=True)
class Mixture:
    """Rates (1 - share) W H + share row_i col_j / Z_tot: topics, and independence for the pairs that they rule out.

    Attributes
    ----------
    U, V : arrays (m, d), (n, d)
        The shares of the topics in each row and in each column.
    weights : array (d,)
        The shares of the topics in all counts; the rates of W H over those of
        independence are U diag(1 / weights) V^T.
    share : float
        Of independence.
    """

    U: np.ndarray
    V: np.ndarray
    weights: np.ndarray
    share: float

    def gain(self, kept, held_out):
        """Return the held-out gain over independence, in nats per count."""
        held_out = sp.coo_array(held_out)
        i, j = held_out.coords
        seen = (kept.sum(axis=1)[i] > 0) & (kept.sum(axis=0)[j] > 0)
        i, j, z = i[seen], j[seen], held_out.data[seen]
        ratios = np.einsum("kd,kd->k", self.U[i] / self.weights, self.V[j])
        # a pair that is ruled out, without any share of independence
        with np.errstate(divide="ignore"):
            return float(
                z @ np.log((1 - self.share) * ratios + self.share) / max(z.sum(), 1)
            )


def chosen(fit, values, kept, rng):
    """Return the rates fitted to `kept`, with the free parameter that best predicts counts set aside from them.

    Parameters
    ----------
    fit : callable
        ``fit(counts, turns)`` returns a function from the parameter to rates, their
        biases refitted in so many turns.
    values : sequence
        The parameters to choose from.
    kept : sparse array (m, n)
    rng : numpy.random.Generator

    Returns
    -------
    Exponential or Mixture
    """
    training, validation = split_counts(kept, VALIDATION, rng)
    training, rows, columns = drop_empty(training)
    validation, rates = validation[rows][:, columns], fit(training, 2)
    best = max(values, key=lambda value: rates(value).gain(training, validation))
    return fit(kept, 20)(best)


def exponential(counts, U, V, turns):
    """Return the `Exponential` rates of U (m, d) and V (n, d), their biases refitted to the margins of `counts` (m, n).

    In single precision, twice as fast, and in so many `turns` at most.
    """
    U, V = U.astype(np.float32), V.astype(np.float32)
    return Exponential(U, V, *refit_biases(counts, U, V, n_sweeps=turns, tol=1e-4))


def root_mean_square(counts, U, V):
    """Return that of the M_ij = u_i . v_j / sqrt(m), weighted by the rates of independence of `counts` (m, n).

    Examples
    --------
    >>> U, V = np.array([[3.0], [-3.0]]), np.ones((2, 1))
    >>> bool(np.isclose(root_mean_square(np.array([[1, 2], [3, 4]]), U, V), 3 / np.sqrt(2)))
    True
    """
    A, B = (
        np.sqrt(r)[:, None] * X
        for X, r in zip((U, V), estimate_bias(counts), strict=True)
    )
    return np.sqrt(np.vdot(A.T @ A, B.T @ B) / len(U) / counts.sum())


def amp(kept, d, rng):
    """Fit `AMPEmbedding`, which chooses when to stop."""
    model = AMPEmbedding(d, random_state=int(rng.integers(2**31))).fit(kept)
    return Exponential(
        model.embedding_, model.components_.T, model.row_bias_, model.column_bias_
    )


def quadratic_amp(kept, d, rng, *, refit):
    """Fit AMP to the plain score, from the start and the prior of `AMPEmbedding`; choose when to stop and a scale of M.

    The biases of the rates are the counted ones, as those of the score are, or refitted
    given the embedding.
    """
    seed = int(rng.integers(2**31))

    def fit(counts, turns):
        m, biases = counts.shape[0], estimate_bias(counts)
        directions, variance = leading_directions(
            counts, d, np.random.default_rng(seed)
        )
        size = np.sqrt(variance * m / d)
        posterior = GaussianPosterior(size, learn=True)
        _, columns = start(counts, posterior, posterior, directions, size)
        run = biased_low_rank_amp(
            FisherScore(counts, *biases), *biases, posterior,
            B0=np.sqrt(biases[1])[:, None] * columns.X.astype(np.float64), n_iter=max(ITERATIONS),
        )  # fmt: skip

        def rates(value):
            k, scale = value
            factors = run.iterates[k - 1].A, run.iterates[k - 1].B
            U, V = (
                np.sqrt(scale) * X / np.sqrt(r)[:, None]
                for X, r in zip(factors, biases, strict=True)
            )
            return (
                exponential(counts, U, V, turns)
                if refit
                else Exponential(U, V, *biases)
            )

        return rates

    return chosen(fit, list(product(ITERATIONS, OWN_SCALES)), kept, rng)


def singular_vectors(kept, d, rng, *, of):
    """Fit scikit-learn's truncated SVD to what ``of(counts)`` returns, sparse (m, n); choose the scale of M."""
    seed = int(rng.integers(2**31))

    def fit(counts, turns):
        svd = TruncatedSVD(d, algorithm="arpack", random_state=seed)
        left = svd.fit_transform(of(counts))
        root = np.sqrt(svd.singular_values_)
        U, V = left / root, svd.components_.T * root
        size = root_mean_square(counts, U, V)
        return lambda scale: exponential(
            counts, np.sqrt(scale / size) * U, np.sqrt(scale / size) * V, turns
        )

    return chosen(fit, SCALES, kept, rng)


def tf_idf(counts):
    """Return the usual weights of words in documents: 1 + log Z, times the inverse document frequency, of length 1."""
    return TfidfTransformer(sublinear_tf=True).fit_transform(counts)


def positive_pmi(counts):
    """Return the pointwise mutual information of the pairs, in nats, where it is positive, else 0: sparse as `counts`.

    Examples
    --------
    >>> positive_pmi(sp.csr_array([[3.0, 0.0], [1.0, 4.0]])).toarray().round(3)
    array([[0.693, 0.   ],
           [0.   , 0.47 ]])
    """
    pairs = sp.coo_array(counts)
    r_u, r_v = estimate_bias(counts)
    i, j = pairs.coords
    values = np.maximum(np.log(pairs.data / (r_u[i] * r_v[j])), 0)
    return sp.csr_array((values, (i, j)), shape=pairs.shape)


def nmf(kept, d, rng):
    """Fit scikit-learn's non-negative factors with the Poisson loss; choose the share of independence."""
    seed = int(rng.integers(2**31))

    def fit(counts, _):
        factors = NMF(
            d,
            init="nndsvda",
            solver="mu",
            beta_loss="kullback-leibler",
            max_iter=NMF_STEPS,
            random_state=seed,
        )
        with warnings.catch_warnings():
            # more steps change the gain by less than a hundredth
            warnings.simplefilter("ignore", ConvergenceWarning)
            W = factors.fit_transform(counts)
        return partial(mixture, counts, W, factors.components_)

    return chosen(fit, SHARES, kept, rng)


def mixture(counts, W, H, share):
    """Return the `Mixture` of W H, scaled to the total of `counts` (m, n), and a `share` of independence.

    Parameters
    ----------
    counts : array or sparse array (m, n)
        Without empty rows or columns.
    W, H : arrays (m, d), (d, n)
        Zero or more; topics that are empty on either side are left out.
    share : float
        Between 0 and 1.

    Examples
    --------
    >>> one = mixture(np.array([[1, 2], [3, 6]]), np.array([[3.0], [9.0]]), np.array([[0.5, 1.0]]), 0.5)
    >>> one.U.ravel(), one.V.ravel(), one.weights
    (array([1., 1.]), array([1., 1.]), array([1.]))
    """
    rows, columns = (np.asarray(counts.sum(axis=k), dtype=np.float64) for k in (1, 0))
    some = (W.sum(axis=0) > 0) & (H.sum(axis=1) > 0)
    W, H = W[:, some], H[some]
    joint = W.sum(axis=0) * H.sum(axis=1)  # counts by topic
    total = joint.sum()
    U = W * H.sum(axis=1) / rows[:, None] * (rows.sum() / total)
    V = H.T * W.sum(axis=0) / columns[:, None] * (rows.sum() / total)
    return Mixture(U, V, joint / total, share)


def lbfgs(kept, d, rng):
    """Minimise the Poisson loss with a ridge by L-BFGS, in two runs; the biases are refitted after each."""
    m = kept.shape[0]
    U, V = (m**0.25 * 0.1 * rng.standard_normal((size, d)) for size in kept.shape)
    r_u, r_v = estimate_bias(kept)
    for steps in LBFGS_STEPS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConvergedWarning)  # a budget of steps
            fit = poisson_lbfgs(
                kept,
                r_u,
                r_v,
                strength=LBFGS_STRENGTH * d / np.sqrt(m),
                U0=U,
                V0=V,
                n_iter=steps,
            )
        U, V = fit.A, fit.B
        r_u, r_v = refit_biases(kept, U, V, tol=1e-4)
    return Exponential(U, V, r_u, r_v)


METHODS = {
    "amp": amp,
    "lbfgs": lbfgs,
    "quadratic_refitted": partial(quadratic_amp, refit=True),
    "quadratic": partial(quadratic_amp, refit=False),
    "nmf": nmf,
    "svd_pmi": partial(singular_vectors, of=positive_pmi),
    "svd_tfidf": partial(singular_vectors, of=tf_idf),
    "svd_counts": partial(singular_vectors, of=lambda counts: counts),
}


def sentiment_accuracy(features, labels, rng):
    """Return the share of documents whose label logistic regression finds from their features, in five-fold validation.

    Parameters
    ----------
    features : array or sparse array (m, k)
    labels : array (m,)
    rng : numpy.random.Generator
        For the folds.

    Examples
    --------
    >>> labels = np.tile([0, 1], 50)
    >>> sentiment_accuracy(labels[:, None] * [1.0, -1.0], labels, np.random.default_rng(0))
    1.0
    """
    folds = StratifiedKFold(5, shuffle=True, random_state=int(rng.integers(2**31)))
    return float(
        cross_val_score(
            LogisticRegression(max_iter=1000), features, labels, cv=folds
        ).mean()
    )


def score_moments(Z):
    """Return variance and kurtosis of all entries of Y~, without forming them; 1 and 3 for Gaussian noise.

    No row and no column of the counts `Z`, an array or sparse array (m, n), may be
    empty.

    Examples
    --------
    >>> [round(moment, 6) for moment in score_moments(np.array([[8, 2], [2, 8]]))]
    [1.8, 1.0]
    """
    Z = sp.coo_array(Z)
    r_u, r_v = estimate_bias(Z)
    rate = r_u[Z.coords[0]] * r_v[Z.coords[1]]
    here, zero = (Z.data - rate) / np.sqrt(rate), -np.sqrt(rate)
    mean, *higher = (
        (
            (-1) ** p * (r_u ** (p / 2)).sum() * (r_v ** (p / 2)).sum()
            + (here**p - zero**p).sum()
        )
        / np.prod(Z.shape)
        for p in (1, 2, 3, 4)
    )
    second, third, fourth = higher
    variance = second - mean**2
    return float(variance), float(
        (fourth - 4 * mean * third + 6 * mean**2 * second - 3 * mean**4) / variance**2
    )


def largest_singular_values(Z, k):
    """Return the `k` largest singular values of Y~, largest first; rows and columns without counts are left out.

    Examples
    --------
    >>> largest_singular_values(np.array([[8, 2, 0], [2, 8, 0]]), 1).round(6)
    array([2.683282])
    """
    Z, _, _ = drop_empty(Z)
    return singular_values(
        FisherScore(Z, *estimate_bias(Z)), k, rng=np.random.default_rng(0)
    )


def without_embedding(Z, rng):
    """Return Poisson counts, a sparse array (m, n), with the margins of `Z` in expectation and nothing else."""
    (m, n), (r_u, r_v) = Z.shape, estimate_bias(Z)
    return PoissonEmbedding(
        np.zeros((m, 1)), np.zeros((n, 1)), np.log(r_u), np.log(r_v)
    ).sample(rng, sparse=True)


def compare_methods(
    corpus, rng, *, methods=METHODS, dimensions=DIMENSIONS, words=WORDS
):
    """Fit every method to four fifths of the counts of a corpus.

    Parameters
    ----------
    corpus : Corpus
        With labels.
    rng : numpy.random.Generator
        For the split; every method gets a generator of its own.
    methods : dict of str to callable
        ``method(kept, d, rng)`` returns rates.
    dimensions : sequence of int
    words : sequence of str
        Whose nearest words are to be told.

    Returns
    -------
    dict
        For each method, by dimension: ``<method>_gain`` in nats per count;
        ``<method>_sentiment``, the accuracy of a logistic regression on the rows'
        embeddings; ``<method>_words``, the five words nearest to each of `words`;
        ``<method>_seconds`` of all processors together, the choice of the free
        parameter included.

    Raises
    ------
    ValueError
        If the corpus has no labels.
    """
    if corpus.labels is None:
        raise ValueError(
            "the corpus has no labels, and the comparison asks what embeddings know of them"
        )
    kept, held_out = split_counts(corpus.counts, HELD_OUT, rng)
    kept, rows, columns = drop_empty(kept)
    held_out, labels, vocabulary = (
        held_out[rows][:, columns],
        corpus.labels[rows],
        corpus.vocabulary[columns],
    )
    seed = int(rng.integers(2**31))
    results = {}
    for name, method in methods.items():
        for d in dimensions:
            begin = time.process_time()
            rates = method(kept, d, np.random.default_rng([seed, d]))
            found = {
                "seconds": time.process_time() - begin,
                "gain": rates.gain(kept, held_out),
                "sentiment": sentiment_accuracy(
                    scale(rates.U.astype(np.float64)),
                    labels,
                    np.random.default_rng(seed),
                ),
                "words": [nearest_words(rates.V, vocabulary, word) for word in words],
            }
            for key, value in found.items():
                results.setdefault(f"{name}_{key}", []).append(value)
    return results


def text_instance(index):
    """Return the comparison on one choice of 7,000 movie reviews and one split of their counts.

    Returns
    -------
    dict
        As `compare_methods`, by the dimensions in ``d``; ``all_words_sentiment``, the
        accuracy with every word as a feature, from all counts, of which the embeddings
        have seen four fifths; ``more_d`` and ``more_gain``, the gain of `AMPEmbedding`
        by dimension; ``singular`` and ``control_singular``, the largest singular values
        of Y~ and of that of `without_embedding`; ``variance``, ``kurtosis``,
        ``control_variance`` and ``control_kurtosis`` of the entries; ``m``, ``n``,
        ``nonzeros``, ``counts``.
    """
    corpus = load_movie_reviews(random_state=index)
    Z = corpus.counts
    m, n = Z.shape
    generator = partial(np.random.default_rng, [index, m])  # the same for every part
    results = compare_methods(corpus, generator())
    more = compare_methods(
        corpus, generator(), methods={"amp": amp}, dimensions=MORE_DIMENSIONS, words=()
    )
    more_d, more_gain = zip(
        *sorted(
            zip(
                (*DIMENSIONS, *MORE_DIMENSIONS),
                results["amp_gain"] + more["amp_gain"],
                strict=True,
            )
        ),
        strict=True,
    )
    rng = generator()
    control = without_embedding(Z, rng)
    results |= {
        "d": DIMENSIONS,
        "all_words_sentiment": sentiment_accuracy(tf_idf(Z), corpus.labels, rng),
    }
    results |= {"more_d": more_d, "more_gain": more_gain}
    for prefix, counts in (("", Z), ("control_", control)):
        results[f"{prefix}singular"] = largest_singular_values(counts, N_SINGULAR)
        results[f"{prefix}variance"], results[f"{prefix}kurtosis"] = score_moments(
            drop_empty(counts)[0]
        )
    return results | {"m": m, "n": n, "nonzeros": Z.nnz, "counts": int(Z.sum())}
