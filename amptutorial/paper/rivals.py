"""Methods that predict counts of words: AMP and its rivals.

A method takes `kept`, a sparse array (m, n) of counts without empty rows or columns,
the dimension `d` and a generator for what it draws; it returns
`rates.Exponential` or `rates.Mixture`. All its settings are chosen by pairs that it
sets aside from `kept` (`rates.choose`; `AMPEmbedding` does the same to stop), then it
is fitted to all of them. Every method may be fitted to the counts or to the damped
counts, as `AMPEmbedding` may.
"""

import warnings
from functools import partial

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer

from .._validation import AMPWarning
from ..amp import biased_low_rank_amp
from ..baselines import svd
from ..bias import estimate_bias
from ..estimator import AMPEmbedding
from ..score import FisherScore
from .minimisers import embedding_start, minimise_poisson_loss, skip_gram
from .rates import Exponential, choose, fit_exponential, root_mean_square
from .topic_models import gamma_poisson, lda, nmf

# grids tuned for quadratic AMP: iterations; scale of M
ITERATIONS = (1, 2, 4, 8, 16)
OWN_SCALES = (0.003, 0.01, 0.03, 0.1, 0.3, 0.5, 1.0, 2.0, 4.0)
# grid tuned for singular vectors: root mean square of M
SCALES = (0.05, 0.07, 0.1, 0.14, 0.2, 0.28, 0.4, 0.56, 0.8, 1.1, 1.6, 2.3, 3.2)


def amp(kept, d, rng, *, channel="auto"):
    """Fit `AMPEmbedding`, which chooses its channel and when to stop."""
    model = AMPEmbedding(d, channel=channel, random_state=int(rng.integers(2**31)))
    with warnings.catch_warnings():
        # an embedding of zeros is an answer, too
        warnings.simplefilter("ignore", AMPWarning)
        model.fit(kept)
    chosen = {"table": model.channel_, "steps": model.n_iter_}
    biases = model.row_bias_, model.column_bias_
    return Exponential(model.embedding_, model.components_.T, *biases, chosen)


def quadratic_amp(kept, d, rng, *, refit):
    """Fit AMP to the plain score; choose when to stop, and a scale of M.

    The start and the prior are those of `AMPEmbedding`. The biases of the rates are the
    counted ones, as in the score, or they are refitted given the embedding.
    """
    seed = int(rng.integers(2**31))

    def fit(counts, table, n_sweeps):
        biases = estimate_bias(table)
        start, posterior = embedding_start(table, d, np.random.default_rng(seed))
        B0 = np.sqrt(biases[1])[:, None] * start[1]
        Y = FisherScore(table, *biases)
        run = biased_low_rank_amp(Y, *biases, posterior, B0=B0, n_iter=max(ITERATIONS))

        def rates(steps, scale):
            A, B = run.iterates[steps - 1].A, run.iterates[steps - 1].B
            U, V = (
                np.sqrt(scale) * X / np.sqrt(r)[:, None]
                for X, r in zip((A, B), biases, strict=True)
            )
            if refit:
                return fit_exponential(counts, U, V, n_sweeps)
            return Exponential(U, V, *estimate_bias(counts))

        return rates

    return choose(fit, {"steps": ITERATIONS, "scale": OWN_SCALES}, kept, rng)


def singular_vectors(kept, d, rng, *, of):
    """Fit scikit-learn's truncated SVD to ``of(table)``; choose the scale of M.

    What `of` returns is a sparse array (m, n), as the table of counts is.
    """
    seed = int(rng.integers(2**31))

    def factors(table):
        decomposition = TruncatedSVD(d, algorithm="arpack", random_state=seed)
        left = decomposition.fit_transform(of(table))
        root = np.sqrt(decomposition.singular_values_)
        return left / root, decomposition.components_.T * root

    return _scaled(factors, kept, rng)


def correspondence_analysis(kept, d, rng):
    """Take M from the singular vectors of the standardised residuals; choose its scale.

    Those are the Fisher score with the counted biases, up to a factor. Divided by the
    square roots of the biases, its singular vectors are the standard coordinates of
    rows and columns.
    """
    seed = int(rng.integers(2**31))

    def factors(table):
        r_u, r_v = estimate_bias(table)
        own_rng = np.random.default_rng(seed)
        A, B = svd(FisherScore(table, r_u, r_v), d, rng=own_rng)
        return A / np.sqrt(r_u)[:, None], B / np.sqrt(r_v)[:, None]

    return _scaled(factors, kept, rng)


def _scaled(factors, kept, rng):
    """Return rates with the factors of a table, and the scale of M that is chosen."""

    def fit(counts, table, n_sweeps):
        U, V = factors(table)
        size = root_mean_square(counts, U, V)

        def rates(scale):
            root = np.sqrt(scale / size)
            return fit_exponential(counts, root * U, root * V, n_sweeps)

        return rates

    return choose(fit, {"scale": SCALES}, kept, rng)


def tf_idf(counts):
    """Return the usual weights of words in documents, in rows of length 1.

    They are 1 + log Z_ij times the logarithm of the inverse document frequency.
    """
    return TfidfTransformer(sublinear_tf=True).fit_transform(counts)


def positive_pmi(counts):
    """Return the pointwise mutual information of the pairs, or 0 where it is negative.

    It is in nats, in an array as sparse as `counts`.

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


METHODS = {
    "amp": amp,
    "amp_counts": partial(amp, channel="counts"),
    "quadratic_refitted": partial(quadratic_amp, refit=True),
    "quadratic": partial(quadratic_amp, refit=False),
    "svd_pmi": partial(singular_vectors, of=positive_pmi),
    "svd_tfidf": partial(singular_vectors, of=tf_idf),
    "svd_counts": partial(singular_vectors, of=lambda table: table),
    "correspondence": correspondence_analysis,
    "nmf": nmf,
    "gamma_poisson": gamma_poisson,
    "lbfgs": minimise_poisson_loss,
    "skip_gram": skip_gram,
    "lda": lda,
}
