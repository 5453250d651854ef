"""Methods that predict counts of words: AMP, its parts, and singular vectors.

A method takes `kept`, a sparse array (m, n) of counts without empty rows or columns,
the dimension `d` and a generator for what it draws; it returns
`rates.Exponential` or `rates.Mixture`. All its settings are chosen by pairs that it
sets aside from `kept` (`rates.choose`; `AMPEmbedding` does the same to stop), then it
is fitted to all of them. Every method may be fitted to the counts or to the damped
counts, as `AMPEmbedding` may.
"""

import warnings
from functools import cache, partial

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfTransformer

from amptutorial._validation import AMPWarning
from amptutorial.amp import biased_low_rank_amp
from amptutorial.baselines import svd
from amptutorial.bias import estimate_bias, same_pairs
from amptutorial.denoisers import GaussianPosterior
from amptutorial.estimator import AMPEmbedding
from amptutorial.score import FisherScore

from .minimisers import embedding_start
from .rates import (
    FILLED,
    TABLES,
    Exponential,
    choose,
    climb,
    fit_exponential,
    mixed,
    root_mean_square,
    starred,
)

# grids tuned for quadratic AMP: iterations; scale of M
ITERATIONS = (1, 2, 4, 8, 16)
OWN_SCALES = (0.003, 0.01, 0.03, 0.1, 0.3, 0.5, 1.0, 2.0, 4.0)
# grids tuned for singular vectors: root mean square of M; power of singular values
SCALES = (0.05, 0.07, 0.1, 0.14, 0.2, 0.28, 0.4, 0.56, 0.8, 1.1, 1.6, 2.3, 3.2)
POWERS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5)
# of PMI: what it is lessened by; the power of the frequencies of columns
SHIFTS, SMOOTHING = (0.0, 0.35, 0.7, 1.1, 1.6, 2.3), (0.5, 0.75, 1.0, 1.25)
# of LSA: what it decomposes
WEIGHTS = {
    "log": lambda counts: counts.log1p(),
    "root": lambda counts: counts.sqrt(),
    "tf-idf": lambda counts: TfidfTransformer().fit_transform(counts),
}
CAPS = (2.0, 4.0, 8.0, 16.0, 32.0, np.inf)  # of the entries of the score
FLOORS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7)  # the least of the ratios
EXPONENTS = (0.7, 1.0, 1.4, 2.0, 2.8, 4.0)
RATIO_SCALES = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.4, 2.0, 4.0)  # of M, where 1 + M is a ratio
ROOTS = {"roots": lambda counts: same_pairs(counts, np.sqrt(counts.data))}
# of M under a prior that is not learned
DEVIATIONS = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0, 11.0, 16.0)


def amp(kept, d, rng, *, channel="auto", denoiser="posterior"):
    """Fit `AMPEmbedding`, which chooses its channel and when to stop."""
    return _rates(_fitted(kept, d, rng, channel=channel, denoiser=denoiser))


def _fitted(kept, d, rng, **options):
    seed = int(rng.integers(2**31))
    with warnings.catch_warnings():
        # an embedding of zeros is an answer, too
        warnings.simplefilter("ignore", AMPWarning)
        return AMPEmbedding(d, random_state=seed, **options).fit(kept)


def _rates(model, **chosen):
    chosen = {"table": model.channel_, "steps": model.n_iter_} | chosen
    rest = model.row_bias_, model.column_bias_, chosen, model.heldout_gain_
    return Exponential(model.embedding_, model.components_.T, *rest)


class _WithoutOnsager(GaussianPosterior):
    """The posterior mean with its learned prior, for AMP without the Onsager term.

    It says of its estimate that no input moves it, so that nothing is subtracted.
    """

    def denoise(self, P, r, F):
        """Return the posterior mean, and zero for its mean Jacobian."""
        estimate, jacobian = super().denoise(P, r, F)
        return estimate, np.zeros_like(jacobian)

    def refit(self, P, r, F):
        """Return a copy whose covariance is learned as before."""
        return _WithoutOnsager(super().refit(P, r, F).covariance, learn=True)


def amp_without_onsager(kept, d, rng):
    """Fit `AMPEmbedding` with the Onsager term left out, and nothing else changed."""
    _, prior = embedding_start(kept, d, np.random.default_rng(int(rng.integers(2**31))))
    denoiser = _WithoutOnsager(prior.covariance, learn=True)
    return amp(kept, d, rng, denoiser=denoiser)


def amp_with_given_prior(kept, d, rng):
    """Fit `AMPEmbedding` with a prior that is not learned: its size is chosen."""
    seed = int(rng.integers(2**31))

    @cache
    def fit(deviation):  # that of M, if U and V have the variance of the prior
        prior = GaussianPosterior(deviation * np.sqrt(kept.shape[0] / d))
        return _fitted(kept, d, np.random.default_rng(seed), denoiser=prior)

    def gain(deviation):
        return fit(deviation).heldout_gain_

    best, _ = climb(gain, {"deviation": DEVIATIONS})
    return _rates(fit(**best), **starred(best, {"deviation": DEVIATIONS}))


def amp_with_counted_biases(kept, d, rng):
    """Fit `AMPEmbedding`; take counted biases for its rates; choose the scale of M."""
    seed = int(rng.integers(2**31))

    def factors(table):
        own_rng = np.random.default_rng(seed)
        model = _fitted(table, d, own_rng, channel="counts")
        return model.embedding_, np.ones(d), model.components_.T

    def with_counted_biases(counts, U, V, n_sweeps):
        return Exponential(U, V, *estimate_bias(counts))

    return _scaled(factors, kept, rng, {}, with_counted_biases, tables=TABLES)


def quadratic_amp(kept, d, rng):
    """Fit AMP to the plain score; choose when to stop, and a scale of M.

    The start and the prior are those of `AMPEmbedding`. The biases of the rates are
    refitted given the embedding.
    """
    seed = int(rng.integers(2**31))

    def fit(counts, table, n_sweeps):
        factors_at = _quadratic(table, d, seed)

        def rates(steps, scale):
            U, V = (np.sqrt(scale) * X for X in factors_at(steps))
            return fit_exponential(counts, U, V, n_sweeps)

        return rates

    return choose(fit, {"steps": ITERATIONS, "scale": OWN_SCALES}, kept, rng)


def _quadratic(table, d, seed):
    """Run AMP on the plain score; return a function of the steps to U and V."""
    biases = estimate_bias(table)
    start, posterior = embedding_start(table, d, np.random.default_rng(seed))
    B0 = np.sqrt(biases[1])[:, None] * start[1]
    Y = FisherScore(table, *biases)
    run = biased_low_rank_amp(Y, *biases, posterior, B0=B0, n_iter=max(ITERATIONS))

    def factors_at(steps):
        found = run.iterates[steps - 1]
        return [X / np.sqrt(r)[:, None] for X, r in zip((found.A, found.B), biases, strict=True)]

    return factors_at


def amp_of_ratios(kept, d, rng):
    """Fit AMP to the plain score; take 1 + M for ratios to independence.

    The fit is that of `quadratic_amp`, the rates and what is chosen are as in
    `svd_of_ratios`.
    """
    seed = int(rng.integers(2**31))

    def fit(counts, table, _):
        factors_at = _quadratic(table, d, seed)

        def rates(steps, scale, floor, exponent):
            U, V = factors_at(steps)
            return _of_ratios(counts, scale / np.sqrt(len(U)) * U, V, floor, exponent)

        return rates

    settings = {"steps": ITERATIONS, "scale": RATIO_SCALES, "floor": FLOORS, "exponent": EXPONENTS}
    return choose(fit, settings, kept, rng, TABLES | ROOTS)


def _of_ratios(counts, U, V, floor, exponent):
    """Return rates in proportion to (1 + U V^T)^exponent, with the margins of counts."""
    ratios = np.maximum(1 + U @ V.T, floor) ** exponent
    return mixed(counts, (1, ratios.astype(np.float32)), U=U, V=V)


def svd_pmi(kept, d, rng):
    """Fit scikit-learn's truncated SVD to the positive PMI; choose how it is made.

    Chosen are the shift of the PMI, the power of the frequencies of the columns in it,
    the power of the singular values, and the scale of M.
    """
    seed = int(rng.integers(2**31))

    def decompose(table, shift, smoothing):
        return _truncated(_positive_pmi(table, shift, smoothing), d, seed)

    settings = {"shift": SHIFTS, "smoothing": SMOOTHING, "power": POWERS}
    return _scaled(decompose, kept, rng, settings)


def lsa(kept, d, rng):
    """Fit latent semantic analysis: a truncated SVD of weighted counts.

    Chosen are the weights, log(1 + count), root or tf-idf, the power of the singular
    values, and the scale of M.
    """
    seed = int(rng.integers(2**31))

    def decompose(table, weights):
        return _truncated(WEIGHTS[weights](table), d, seed)

    return _scaled(decompose, kept, rng, {"weights": tuple(WEIGHTS), "power": POWERS})


def _truncated(table, d, seed):
    """Return the truncated SVD of a table: U (m, d), sigma (d,), V (n, d)."""
    m, n = table.shape
    if not table.data.any():  # no PMI exceeds the shift
        return np.zeros((m, d)), np.ones(d), np.zeros((n, d))
    decomposition = TruncatedSVD(d, algorithm="arpack", random_state=seed)
    left = decomposition.fit_transform(table)
    sigma = decomposition.singular_values_
    sigma = np.maximum(sigma, 1e-9 * sigma[0])  # a PMI may have a rank below d
    return left / sigma, sigma, decomposition.components_.T


def correspondence_analysis(kept, d, rng):
    """Take M from the singular vectors of the standardised residuals; choose its scale.

    Those are the Fisher score with the counted biases, up to a factor. Divided by the
    square roots of the biases, its singular vectors are the standard coordinates of
    rows and columns. Chosen are also the largest entry of the score that is not cut
    off, and the power of the singular values.
    """
    seed = int(rng.integers(2**31))

    def decompose(table, cap):
        r_u, r_v = estimate_bias(table)
        Y = FisherScore(_capped(table, r_u, r_v, cap), r_u, r_v)
        left, sigma, right = _singular(svd(Y, d, rng=np.random.default_rng(seed)))
        return left / np.sqrt(r_u)[:, None], sigma, right / np.sqrt(r_v)[:, None]

    return _scaled(decompose, kept, rng, {"cap": CAPS, "power": POWERS})


def svd_of_ratios(kept, d, rng):
    """Take 1 + M for ratios to independence, M from singular vectors of the score.

    Chosen are the least ratio, the power of all of them, the power of the singular
    values, and of what the score is: the counts, damped counts, or the roots of the
    counts.
    """
    seed = int(rng.integers(2**31))

    def fit(counts, table, _):
        r_u, r_v = estimate_bias(table)
        Y = FisherScore(table, r_u, r_v)
        left, sigma, right = _singular(svd(Y, d, rng=np.random.default_rng(seed)))
        U, V = left / np.sqrt(r_u)[:, None], right / np.sqrt(r_v)[:, None]
        sigma = sigma * np.vdot(left[:, 0], Y @ right[:, 0]) / sigma[0]

        def rates(power, floor, exponent):
            scaled = U * sigma * (sigma / sigma[0]) ** power
            return _of_ratios(counts, scaled, V, floor, exponent)

        return rates

    settings = {"power": POWERS, "floor": FLOORS, "exponent": EXPONENTS}
    return choose(fit, settings, kept, rng, TABLES | ROOTS)


def _capped(Z, r_u, r_v, cap):
    """Return the table whose Fisher score is that of `Z` with large entries cut off.

    Examples
    --------
    >>> _capped(sp.csr_array([[9.0, 0.0]]), np.ones(1), np.array([4.0, 1.0]), 2.0).data
    array([8.])
    """
    i, j = sp.coo_array(Z).coords
    rates = r_u[i] * r_v[j]
    return same_pairs(Z, np.minimum(Z.data, rates + cap * np.sqrt(rates)))


def quartic_target(kept, d, rng):
    """Take M from singular vectors of the target of word2vec's loss, expanded at zero.

    Where negative samples balance the positive ones, the loss expanded to fourth order
    in the factors is |M - target|^2 [Karkada, Simon, Bahri and DeWeese 2025], with
    target 2 (x - 1) / (x + 1) for x = Z_ij over its expectation under independence.
    """
    seed = int(rng.integers(2**31))

    def decompose(table):
        r_u, r_v = estimate_bias(table)
        i, j = sp.coo_array(table).coords
        x = table.data / (r_u[i] * r_v[j])
        above = aslinearoperator(same_pairs(table, 4 * x / (x + 1)))  # -2 where x = 0
        ones, row = (np.ones(shape) for shape in ((len(r_u), 1), (1, len(r_v))))
        target = above + aslinearoperator(-2 * ones) @ aslinearoperator(row)
        return _singular(svd(target, d, rng=np.random.default_rng(seed)))

    return _scaled(decompose, kept, rng, {"power": POWERS})


def _singular(factors):
    """Return singular vectors, and what singular values are in proportion to."""
    A, B = factors
    roots = np.linalg.norm(A, axis=0)
    return A / roots, roots**2, B / roots


def _scaled(decompose, kept, rng, settings, rates_of=fit_exponential, tables=FILLED):
    """Return rates with the factors of a table; choose `settings` and the scale of M.

    ``decompose(table, **settings)`` returns U (m, d), singular values (d,) and V
    (n, d); the setting ``power``, if there is one, is that of the singular values in M.
    """

    def fit(counts, table, n_sweeps):
        decomposed = cache(partial(decompose, table))

        def rates(scale, power=0.0, **own):
            U, sigma, V = decomposed(**own)
            U = U * (sigma / sigma[0]) ** power
            size = root_mean_square(counts, U, V)  # zero where nothing was found
            root = np.sqrt(scale / size) if size else 0.0
            return rates_of(counts, root * U, root * V, n_sweeps)

        return rates

    return choose(fit, settings | {"scale": SCALES}, kept, rng, tables)


def _positive_pmi(counts, shift=0.0, smoothing=1.0):
    """Return the pointwise mutual information of the pairs, or 0 where it is negative.

    It is in nats, in an array as sparse as `counts`, and lessened by `shift`. The
    frequencies of the columns are taken to the power `smoothing`.

    Examples
    --------
    >>> _positive_pmi(sp.csr_array([[3.0, 0.0], [1.0, 4.0]])).toarray().round(3)
    array([[0.693, 0.   ],
           [0.   , 0.47 ]])
    """
    pairs = sp.coo_array(counts)
    r_u, r_v = estimate_bias(counts)
    i, j = pairs.coords
    smooth = r_v**smoothing
    r_v = smooth * (r_v.sum() / smooth.sum())
    values = np.maximum(np.log(pairs.data / (r_u[i] * r_v[j])) - shift, 0)
    return sp.csr_array((values, (i, j)), shape=pairs.shape)
