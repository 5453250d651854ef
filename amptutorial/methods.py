"""Methods that predict counts of words: AMP and its rivals.

A method takes `kept`, a sparse array (m, n) of counts without empty rows or columns,
the dimension `d` and a generator for what it draws; it returns
`amptutorial.rates.Exponential` or `Mixture` rates. All its settings are chosen by pairs
that it sets aside from `kept` (`amptutorial.rates.choose`; `AMPEmbedding` does the same
to stop), then it is fitted to all of them. Every method may be fitted to the counts or
to the damped counts, as `AMPEmbedding` may.
"""

import warnings
from functools import cache, partial

import numpy as np
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import digamma
from sklearn.decomposition import NMF, LatentDirichletAllocation, TruncatedSVD
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer

from ._blocks import blocks
from ._counts import sums
from ._validation import AMPWarning
from .amp import biased_low_rank_amp
from .baselines import svd
from .bias import estimate_bias
from .denoisers import GaussianPosterior
from .estimator import AMPEmbedding
from .poisson import BLOCK_ENTRIES, products_of_pairs
from .rates import (
    Exponential,
    choose,
    fit_exponential,
    mixture_of_topics,
    root_mean_square,
)
from .reexpansion import leading_directions, same_pairs, starting_sides
from .score import FisherScore

# of quadratic AMP: when to stop, and a factor for M
ITERATIONS = (1, 2, 4, 8, 16)
OWN_SCALES = (0.003, 0.01, 0.03, 0.1, 0.3, 0.5, 1.0, 2.0, 4.0)
# of singular vectors: the root mean square of M
SCALES = (0.05, 0.07, 0.1, 0.14, 0.2, 0.28, 0.4, 0.56, 0.8, 1.1, 1.6, 2.3, 3.2)
# of independence in a mixture
SHARES = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99)
NMF_STEPS = (10, 20, 40, 80, 160, 320, 640)
# of topics in a document and of words in a topic
LDA_PRIORS, LDA_PASSES = (0.002, 0.01, 0.05, 0.2, 1.0), 10
SHAPES, SWEEPS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0), 60
# of L-BFGS: the standard deviation of M_ij under the prior that is the ridge
DEVIATIONS = (0.03, 0.06, 0.12, 0.25, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)
LBFGS_STEPS = (10, 20, 40, 80, 160, 320, 640)


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
        start, posterior = spectral_start(table, d, np.random.default_rng(seed))
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


def spectral_start(table, d, rng):
    """Return U, which is zero, and V where `AMPEmbedding` starts, and its prior."""
    directions, variance = leading_directions(table, d, rng)
    size = np.sqrt(variance * table.shape[0] / d)
    posterior = GaussianPosterior(size, learn=True)
    sides = starting_sides(*estimate_bias(table), posterior, directions, size)
    return [side.X.astype(np.float64) for side in sides], posterior


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
                start = {"W": W.copy(), "H": H.copy()} if before else {}
                return model.fit_transform(table, **start), model.components_

        return lambda steps, share: mixture_of_topics(counts, *factors(steps), share)

    return choose(fit, {"steps": NMF_STEPS, "share": SHARES}, kept, rng)


def lda(kept, d, rng):
    """Fit scikit-learn's latent Dirichlet allocation; choose the size of its priors."""
    seed = int(rng.integers(2**31))

    def fit(counts, table, _):
        @cache
        def factors(prior):
            model = LatentDirichletAllocation(
                d,
                doc_topic_prior=prior,
                topic_word_prior=prior,
                max_iter=LDA_PASSES,
                random_state=seed,
            )
            topics_of_rows = model.fit_transform(table)
            words = model.components_ / model.components_.sum(axis=1, keepdims=True)
            return topics_of_rows, words

        return lambda prior, share: mixture_of_topics(counts, *factors(prior), share)

    return choose(fit, {"prior": LDA_PRIORS, "share": SHARES}, kept, rng)


def gamma_poisson(kept, d, rng):
    """Fit Poisson factors with gamma priors; choose their shape.

    The rates are those of independence times theta_i . beta_j. By variational Bayes,
    one side given the other in turn, as in hierarchical Poisson factorisation.
    """
    seed = int(rng.integers(2**31))

    def fit(counts, table, _):
        rows, columns = sums(table)

        @cache
        def factors(shape):
            own_rng = np.random.default_rng(seed)
            theta, beta = variational_factors(table, d, shape, own_rng)
            return rows[:, None] * theta, (columns[:, None] * beta).T

        return lambda shape, share: mixture_of_topics(counts, *factors(shape), share)

    return choose(fit, {"shape": SHAPES, "share": SHARES}, kept, rng)


def variational_factors(Z, d, shape, rng):
    """Return the means of theta (m, d) and beta (n, d) by `SWEEPS` sweeps.

    Z_ij is Poisson of mean row_i col_j / Z_tot theta_i . beta_j; all factors are gamma
    of the given shape and of mean 1 / sqrt(d), so that the ratios have mean 1.

    Parameters
    ----------
    Z : csr_array (m, n)
        Counts without empty rows or columns.
    d : int
    shape : float
    rng : numpy.random.Generator
    """
    rows, columns = sums(Z)
    rows = rows / rows.sum()  # with the columns: the rates of independence
    Zt, rate = Z.T.tocsr(), shape * np.sqrt(d)
    theta, beta = (rng.gamma(100, 0.01, (size, d)) / np.sqrt(d) for size in Z.shape)
    geometric_theta, geometric_beta = theta, beta  # exp(E log) of the gamma variables
    for _ in range(SWEEPS):
        shapes = shape + geometric_theta * _shared(Z, geometric_theta, geometric_beta)
        rates = rate + rows[:, None] * (columns @ beta)
        theta, geometric_theta = shapes / rates, np.exp(digamma(shapes)) / rates
        shapes = shape + geometric_beta * _shared(Zt, geometric_beta, geometric_theta)
        rates = rate + columns[:, None] * (rows @ theta)
        beta, geometric_beta = shapes / rates, np.exp(digamma(shapes)) / rates
    return theta, beta


def _shared(Z, X, Y):
    """Return (Z / (X Y^T)) Y, where Z is not zero: counts shared out by topic."""
    i = np.repeat(np.arange(Z.shape[0]), np.diff(Z.indptr))
    products = products_of_pairs(X, Y, i, Z.indices)
    return same_pairs(Z, Z.data / np.maximum(products, np.finfo(float).tiny)) @ Y


def minimise_poisson_loss(kept, d, rng):
    """Minimise the Poisson loss with a ridge by L-BFGS, stopped early.

    Chosen are the ridge, the start (small and random, or that of `AMPEmbedding`) and
    the number of steps.
    """
    seed = int(rng.integers(2**31))

    def fit(counts, table, n_sweeps):
        @cache
        def path(deviation, start):
            own_rng = np.random.default_rng(seed)
            if start == "spectral":
                sides, _ = spectral_start(table, d, own_rng)
                X, Y = (X / table.shape[0] ** 0.25 for X in sides)
            else:
                X, Y = (0.1 * own_rng.standard_normal((n, d)) for n in table.shape)
            return lbfgs_path(table, X, Y, np.sqrt(d) / deviation)

        @cache
        def iterate(deviation, start, steps):
            for before in [k for k in LBFGS_STEPS if k < steps][-1:]:
                iterate(deviation, start, before)
            return next(path(deviation, start))

        def rates(deviation, start, steps):
            X, Y = iterate(deviation, start, steps)
            root = counts.shape[0] ** 0.25
            return fit_exponential(counts, root * X, root * Y, n_sweeps)

        return rates

    settings = {"start": ("random", "spectral"), "steps": LBFGS_STEPS}
    return choose(fit, settings | {"deviation": DEVIATIONS}, kept, rng)


def lbfgs_path(table, X, Y, strength):
    """Yield X, Y after each number of `LBFGS_STEPS` of SciPy's L-BFGS.

    It minimises the Poisson loss of the rates r_u_i exp(b_j + x_i . y_j), with the r_u
    for which their rows add up to those of the table; b is fitted with X and Y. After
    each number of steps it begins anew.

    Parameters
    ----------
    table : csr_array (m, n)
    X, Y : arrays (m, d), (n, d)
    strength : float
        Of the ridge, half of it times the squared norms of X and Y.
    """
    rows, columns = sums(table)
    transposed, d = table.T.tocsr(), X.shape[1]
    cuts = np.cumsum([X.size, Y.size])

    def unflatten(x):
        X, Y, b = np.split(x, cuts)
        return X.reshape(-1, d), Y.reshape(-1, d), b

    def objective(x):
        X, Y, b = unflatten(x)
        log_rows, mean_Y, fitted, sum_X = _summed(rows, X, Y, b)
        products = table @ Y
        by_X = strength * X + rows[:, None] * mean_Y - products
        by_Y = strength * Y + sum_X - transposed @ X
        loss = rows @ log_rows - np.vdot(X, products) - columns @ b
        loss += strength / 2 * (np.vdot(X, X) + np.vdot(Y, Y))
        return loss, np.concatenate([by_X.ravel(), by_Y.ravel(), fitted - columns])

    x = np.concatenate([X.ravel(), Y.ravel(), np.log(columns / columns.sum())])
    for steps in np.diff(LBFGS_STEPS, prepend=0):
        options = {"maxiter": steps, "ftol": 0, "gtol": 0, "maxfun": 2 * steps}
        x = minimize(objective, x, jac=True, method="L-BFGS-B", options=options).x
        X, Y, _ = unflatten(x)
        yield X.astype(np.float32), Y.astype(np.float32)


def _summed(rows, X, Y, b):
    """Return what the loss needs of the rates r_u_i exp(b_j + x_i . y_j).

    Their rows add up to `rows`. In single precision, a block of rows at a time.

    Returns
    -------
    log_rows : array (m,)
        log sum_j exp(b_j + x_i . y_j).
    mean_Y : array (m, d)
        The mean of y_j with the rates of row i as weights.
    fitted : array (n,)
        The sums of the columns.
    sum_X : array (n, d)
        The sum of the x_i with the rates of column j as weights.
    """
    X1, Y1 = (np.column_stack([np.ones(len(E)), E]).astype(np.float32) for E in (X, Y))
    b = b.astype(np.float32)
    log_rows, means, total = np.empty(len(X)), np.empty(X.shape), np.zeros(Y1.shape)
    for some in blocks(len(X), BLOCK_ENTRIES // len(Y)):
        rates = X1[some, 1:] @ Y1[:, 1:].T + b
        largest = rates.max(axis=1)
        np.exp(rates - largest[:, None], out=rates)
        sums_Y = rates @ Y1
        log_rows[some] = np.log(sums_Y[:, 0]) + largest
        means[some] = sums_Y[:, 1:] / sums_Y[:, :1]
        scaled = X1[some] * (rows[some] / sums_Y[:, 0])[:, None].astype(np.float32)
        total += rates.T @ scaled
    return log_rows, means, total[:, 0], total[:, 1:]


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
    "lda": lda,
}
