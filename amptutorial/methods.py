"""Methods that predict counts of words: AMP, its rivals, and the rates they return.

A method takes `kept`, a sparse array (m, n) of counts without empty rows or columns,
the dimension `d` and a generator for what it draws; it returns `Exponential` or
`Mixture` rates. Its free parameter is chosen by counts that it sets aside from `kept`
(`choose_by_validation`; `AMPEmbedding` does the same to stop), then it is fitted to all
of them. `minimise_poisson_loss` alone chooses nothing: its ridge and its number of
steps were set by hand, so it is fitted only once.
"""

import warnings
from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import NMF, TruncatedSVD
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer

from .amp import biased_low_rank_amp
from .baselines import NotConvergedWarning, poisson_lbfgs
from .bias import estimate_bias, margins
from .denoisers import GaussianPosterior
from .estimator import AMPEmbedding
from .heldout import held_out_pairs, heldout_gain, hold_out
from .poisson import refit_biases
from .reexpansion import leading_directions, starting_sides
from .score import FisherScore

VALIDATION = 0.1  # the fraction of the kept counts that chooses a free parameter

# of quadratic AMP: when to stop, and a factor for M
ITERATIONS, OWN_SCALES = (1, 3, 10), (0.03, 0.1, 0.3, 0.5, 1.0)
# of singular vectors: the root mean square of M
SCALES = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4)
SHARES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)  # of independence in a mixture
NMF_STEPS = 100
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
    """Rates (1 - share) W H + share row_i col_j / Z_tot.

    W H are topics; independence gets its share for the pairs that they rule out.

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
        pairs = held_out_pairs(kept, held_out)
        U, V = self.U[pairs.i] / self.weights, self.V[pairs.j]
        ratios = np.einsum("kd,kd->k", U, V)
        # a pair that is ruled out, without any share of independence
        with np.errstate(divide="ignore"):
            return pairs.mean(np.log((1 - self.share) * ratios + self.share))


def choose_by_validation(fit, values, kept, rng):
    """Return the rates whose free parameter best predicts counts set aside.

    A share `VALIDATION` of the counts is set aside to choose the parameter; the rates
    are then fitted to all of `kept`.

    Parameters
    ----------
    fit : callable
        ``fit(counts, n_sweeps)`` returns a function from the parameter to rates, their
        biases refitted in at most `n_sweeps` sweeps (see `refit_biases`).
    values : sequence
        The parameters to choose from.
    kept : sparse array (m, n)
    rng : numpy.random.Generator

    Returns
    -------
    Exponential or Mixture
    """
    training, validation, _, _ = hold_out(kept, VALIDATION, rng)
    rates = fit(training, 2)
    best = max(values, key=lambda value: rates(value).gain(training, validation))
    return fit(kept, 20)(best)


def fit_exponential(counts, U, V, n_sweeps):
    """Return `Exponential` rates whose biases are refitted to the margins of `counts`.

    Single precision makes this twice as fast.

    Parameters
    ----------
    counts : sparse array (m, n)
    U, V : arrays (m, d), (n, d)
    n_sweeps : int
        The largest number of sweeps.
    """
    U, V = U.astype(np.float32), V.astype(np.float32)
    return Exponential(U, V, *refit_biases(counts, U, V, n_sweeps=n_sweeps, tol=1e-4))


def root_mean_square(counts, U, V):
    """Return the root mean square of M_ij = u_i . v_j / sqrt(m).

    The mean is weighted by the rates of independence of `counts`.

    Parameters
    ----------
    counts : array or sparse array (m, n)
    U, V : arrays (m, d), (n, d)

    Examples
    --------
    >>> U, V = np.array([[3.0], [-3.0]]), np.ones((2, 1))
    >>> root_mean_square(np.array([[1, 2], [3, 4]]), U, V) * np.sqrt(2)
    np.float64(3.0)
    """
    r_u, r_v = estimate_bias(counts)
    A, B = np.sqrt(r_u)[:, None] * U, np.sqrt(r_v)[:, None] * V
    return np.sqrt(np.vdot(A.T @ A, B.T @ B) / len(U) / counts.sum())


def amp(kept, d, rng):
    """Fit `AMPEmbedding`, which chooses when to stop."""
    model = AMPEmbedding(d, random_state=int(rng.integers(2**31))).fit(kept)
    return Exponential(
        model.embedding_, model.components_.T, model.row_bias_, model.column_bias_
    )


def quadratic_amp(kept, d, rng, *, refit):
    """Fit AMP to the plain score; choose when to stop, and a scale of M.

    The start and the prior are those of `AMPEmbedding`. The biases of the rates are the
    counted ones, as in the score, or they are refitted given the embedding.
    """
    seed = int(rng.integers(2**31))

    def fit(counts, n_sweeps):
        m, biases = counts.shape[0], estimate_bias(counts)
        own_rng = np.random.default_rng(seed)
        directions, variance = leading_directions(counts, d, own_rng)
        size = np.sqrt(variance * m / d)
        posterior = GaussianPosterior(size, learn=True)
        _, columns = starting_sides(*biases, posterior, directions, size)
        B0 = np.sqrt(biases[1])[:, None] * columns.X.astype(np.float64)
        Y = FisherScore(counts, *biases)
        run = biased_low_rank_amp(Y, *biases, posterior, B0=B0, n_iter=max(ITERATIONS))

        def rates(value):
            k, scale = value
            A, B = run.iterates[k - 1].A, run.iterates[k - 1].B
            U, V = (
                np.sqrt(scale) * X / np.sqrt(r)[:, None]
                for X, r in zip((A, B), biases, strict=True)
            )
            if refit:
                return fit_exponential(counts, U, V, n_sweeps)
            return Exponential(U, V, *biases)

        return rates

    return choose_by_validation(fit, list(product(ITERATIONS, OWN_SCALES)), kept, rng)


def singular_vectors(kept, d, rng, *, of):
    """Fit scikit-learn's truncated SVD to ``of(counts)``; choose the scale of M.

    What `of` returns is a sparse array (m, n), as `counts` is.
    """
    seed = int(rng.integers(2**31))

    def fit(counts, n_sweeps):
        svd = TruncatedSVD(d, algorithm="arpack", random_state=seed)
        left = svd.fit_transform(of(counts))
        root = np.sqrt(svd.singular_values_)
        U, V = left / root, svd.components_.T * root
        size = root_mean_square(counts, U, V)

        def rates(scale):
            root = np.sqrt(scale / size)
            return fit_exponential(counts, root * U, root * V, n_sweeps)

        return rates

    return choose_by_validation(fit, SCALES, kept, rng)


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
    """Fit scikit-learn's non-negative factors; choose the share of independence.

    The factors minimise the Poisson loss.
    """
    seed = int(rng.integers(2**31))

    def fit(counts, _):
        poisson = {"solver": "mu", "beta_loss": "kullback-leibler"}
        factors = NMF(
            d, init="nndsvda", max_iter=NMF_STEPS, random_state=seed, **poisson
        )
        with warnings.catch_warnings():
            # more steps change the gain by less than a hundredth
            warnings.simplefilter("ignore", ConvergenceWarning)
            W = factors.fit_transform(counts)
        return partial(mixture_of_topics, counts, W, factors.components_)

    return choose_by_validation(fit, SHARES, kept, rng)


def mixture_of_topics(counts, W, H, share):
    """Return the `Mixture` of W H and a `share` of independence.

    W H is scaled to the total of the counts.

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
    >>> W, H = np.array([[3.0], [9.0]]), np.array([[0.5, 1.0]])
    >>> one = mixture_of_topics(np.array([[1, 2], [3, 6]]), W, H, 0.5)
    >>> one.U.ravel(), one.V.ravel(), one.weights
    (array([1., 1.]), array([1., 1.]), array([1.]))
    """
    rows, columns = margins(counts)
    some = (W.sum(axis=0) > 0) & (H.sum(axis=1) > 0)
    W, H = W[:, some], H[some]
    joint = W.sum(axis=0) * H.sum(axis=1)  # counts by topic
    total = joint.sum()
    U = W * H.sum(axis=1) / rows[:, None] * (rows.sum() / total)
    V = H.T * W.sum(axis=0) / columns[:, None] * (rows.sum() / total)
    return Mixture(U, V, joint / total, share)


def minimise_poisson_loss(kept, d, rng):
    """Minimise the Poisson loss with a ridge by L-BFGS, in two runs.

    The biases are refitted after each run.
    """
    m = kept.shape[0]
    strength = LBFGS_STRENGTH * d / np.sqrt(m)
    U, V = (m**0.25 * 0.1 * rng.standard_normal((size, d)) for size in kept.shape)
    r_u, r_v = estimate_bias(kept)
    for steps in LBFGS_STEPS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotConvergedWarning)  # a budget of steps
            fit = poisson_lbfgs(
                kept, r_u, r_v, strength=strength, U0=U, V0=V, n_iter=steps
            )
        U, V = fit.A, fit.B
        r_u, r_v = refit_biases(kept, U, V, tol=1e-4)
    return Exponential(U, V, r_u, r_v)


METHODS = {
    "amp": amp,
    "lbfgs": minimise_poisson_loss,
    "quadratic_refitted": partial(quadratic_amp, refit=True),
    "quadratic": partial(quadratic_amp, refit=False),
    "nmf": nmf,
    "svd_pmi": partial(singular_vectors, of=positive_pmi),
    "svd_tfidf": partial(singular_vectors, of=tf_idf),
    "svd_counts": partial(singular_vectors, of=lambda counts: counts),
}
