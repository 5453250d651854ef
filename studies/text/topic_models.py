"""Rivals of AMP whose rates are sums of topics (`studies.text.rivals`)."""

import warnings
from functools import cache

import numpy as np
import scipy.sparse as sp
from scipy.special import digamma
from sklearn.decomposition import NMF, LatentDirichletAllocation
from sklearn.exceptions import ConvergenceWarning

from amptutorial.bias import margins, same_pairs, without_gaps
from amptutorial.sums import products_of_pairs

from .rates import EITHER, choose, mixture_of_topics

# of independence in a mixture
SHARES = (
    0.001,
    0.003,
    0.01,
    0.02,
    0.05,
    0.1,
    0.15,
    0.2,
    0.3,
    0.4,
    0.5,
    0.6,
    0.7,
    0.8,
    0.9,
    0.99,
)
NMF_STEPS = (10, 20, 40, 80, 160, 320, 640, 1280, 2560)
# of topics in a document and of words in a topic; passes over the documents
LDA_PRIORS, LDA_PASSES = (0.0005, 0.002, 0.01, 0.05, 0.2, 1.0), (10, 30)
SHAPES, SWEEPS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0), 60


def nmf(kept, d, rng):
    """Fit scikit-learn's non-negative factors; choose the number of their updates.

    The multiplicative updates minimise the Poisson loss, and are stopped early.
    """
    seed = int(rng.integers(2**31))

    def fit(counts, table, _):
        @cache
        def factors(steps):
            before = [k for k in NMF_STEPS if k < steps][-1:]
            W, H = factors(*before) if before else (None, None)
            options = {"solver": "mu", "beta_loss": "kullback-leibler", "tol": 0}
            model = NMF(
                d,
                init="custom" if before else "nndsvda",
                max_iter=steps - sum(before),
                random_state=seed,
                **options,
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                # copies: the updates work in place
                start = {"W": np.copy(W), "H": np.copy(H)} if before else {}
                return model.fit_transform(table, **start), model.components_

        return lambda steps, share: mixture_of_topics(counts, *factors(steps), share)

    return choose(fit, {"steps": NMF_STEPS, "share": SHARES}, kept, rng, EITHER)


def lda(kept, d, rng):
    """Fit scikit-learn's latent Dirichlet allocation; choose the size of its priors."""
    seed = int(rng.integers(2**31))

    def fit(counts, table, _):
        @cache
        def factors(prior, passes):
            model = LatentDirichletAllocation(
                d,
                doc_topic_prior=prior,
                topic_word_prior=prior,
                max_iter=passes,
                random_state=seed,
            )
            topics_of_rows = model.fit_transform(table)
            weights = model.components_.sum(axis=1, keepdims=True)
            return topics_of_rows, model.components_ / weights

        return lambda share, **of: mixture_of_topics(counts, *factors(**of), share)

    settings = {"prior": LDA_PRIORS, "passes": LDA_PASSES, "share": SHARES}
    return choose(fit, settings, kept, rng, EITHER)


def gamma_poisson(kept, d, rng):
    """Fit Poisson factors with gamma priors; choose their shape.

    The rates are those of independence times theta_i . beta_j. By variational Bayes,
    one side given the other in turn, as in hierarchical Poisson factorisation.
    """
    seed = int(rng.integers(2**31))

    def fit(counts, table, _):
        rows, columns = margins(table)

        @cache
        def factors(shape):
            own_rng = np.random.default_rng(seed)
            theta, beta = _variational_factors(table, d, shape, own_rng)
            return rows[:, None] * theta, (columns[:, None] * beta).T

        return lambda shape, share: mixture_of_topics(counts, *factors(shape), share)

    return choose(fit, {"shape": SHAPES, "share": SHARES}, kept, rng)


def _variational_factors(Z, d, shape, rng):
    """Return the means of theta (m, d) and beta (n, d) by `SWEEPS` sweeps.

    Z_ij is Poisson of mean row_i col_j / Z_tot theta_i . beta_j; all factors are gamma
    of the given shape and of mean 1 / sqrt(d), so that the ratios have mean 1. No row
    and no column of `Z` may be empty. Pairs that are NaN have no part in it.
    """
    rows, columns = margins(Z)
    rows = rows / rows.sum()  # with the columns: the rates of independence
    Z, gaps = without_gaps(Z)
    gaps = sp.csr_array(Z.shape) if gaps is None else gaps
    Zt, rate = Z.T.tocsr(), shape * np.sqrt(d)
    theta, beta = (rng.gamma(100, 0.01, (size, d)) / np.sqrt(d) for size in Z.shape)
    geometric_theta, geometric_beta = theta, beta  # exp(E log) of the gamma variables
    for _ in range(SWEEPS):
        shapes = shape + geometric_theta * _shared(Z, geometric_theta, geometric_beta)
        mass = columns[:, None] * beta
        rates = rate + rows[:, None] * (mass.sum(axis=0) - gaps @ mass)
        theta, geometric_theta = shapes / rates, np.exp(digamma(shapes)) / rates
        shapes = shape + geometric_beta * _shared(Zt, geometric_beta, geometric_theta)
        mass = rows[:, None] * theta
        rates = rate + columns[:, None] * (mass.sum(axis=0) - gaps.T @ mass)
        beta, geometric_beta = shapes / rates, np.exp(digamma(shapes)) / rates
    return theta, beta


def _shared(Z, X, Y):
    """Return (Z / (X Y^T)) Y, where Z is not zero: counts shared out by topic."""
    products = products_of_pairs(X, Y, *Z.tocoo(copy=False).coords)
    return same_pairs(Z, Z.data / np.maximum(products, np.finfo(float).tiny)) @ Y
