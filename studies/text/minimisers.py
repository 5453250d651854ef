"""Rivals of AMP with rates like its own, found by descent."""

import warnings
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from amptutorial._extras import extra
from amptutorial._validation import AMPWarning
from amptutorial.bias import estimate_bias, margins, without_gaps
from amptutorial.denoisers import GaussianPosterior
from amptutorial.estimator import AMPEmbedding
from amptutorial.reexpansion import starting_sides
from amptutorial.score import blocks
from amptutorial.sums import BLOCK_ENTRIES
from amptutorial.table import Table

from .rates import EMPTY, TABLES, choose, fit_exponential

# grids tuned for L-BFGS: prior standard deviation of M_ij (the ridge); iterations
DEVIATIONS = (0.015, 0.03, 0.06, 0.12, 0.25, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0)
LBFGS_STEPS = (5, 10, 20, 40, 80, 160, 320)
# of frequency in it
WEIGHTS = (0.0, 0.18, 0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 2.8, 4.0, 5.6, 8.0)
BURST_SHAPES = (0.03, 0.1, 0.3, 1.0, 3.0)
# grids tuned for skip-gram: learning rate, epochs, negative samples per positive, the
# power of frequency with which these are drawn; scale of M
RATES, EPOCHS = (0.0125, 0.025, 0.05, 0.1, 0.2, 0.4), (1, 2, 5, 10, 20, 40, 80)
NEGATIVES, POWERS = (1, 2, 5, 15, 50), (0.25, 0.5, 0.75, 1.0)
FACTORS = (0.25, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0)
GENSIM_WORDS = 10_000  # in one document; it leaves out what is beyond


def embedding_start(table, d, rng):
    """Return U, which is zero, and V where `AMPEmbedding` starts, and its prior."""
    directions, variance = Table(table).leading_directions(d, rng)
    size = np.sqrt(variance * table.shape[0] / d)
    posterior = GaussianPosterior(size, learn=True)
    sides = starting_sides(*estimate_bias(table), posterior, directions, size)
    return [side.X.astype(np.float64) for side in sides], posterior


def minimise_poisson_loss(kept, d, rng, *, weights=WEIGHTS, tables=TABLES):
    """Minimise the Poisson loss with a ridge by L-BFGS, stopped early.

    Chosen are the ridge, how it grows with frequency (from `weights`), the start (small
    and random, or that of `AMPEmbedding`), the number of steps, and one of `tables`.
    """
    seed = int(rng.integers(2**31))

    def fit(counts, table, n_sweeps):
        def descent(deviation, weight, start):
            own_rng = np.random.default_rng(seed)
            if start == "spectral":
                sides, _ = embedding_start(table, d, own_rng)
                X, Y = (X / table.shape[0] ** 0.25 for X in sides)
            else:
                X, Y = (0.1 * own_rng.standard_normal((n, d)) for n in table.shape)
            ridge = _by_frequency(table, np.sqrt(d) / deviation, np.sqrt(d) * weight, d)
            return _lbfgs_path(table, X, Y, *ridge)

        return _rates_along(descent, counts, n_sweeps)

    # the ridge first: few steps would make up for one that is too weak
    settings = {"deviation": DEVIATIONS, "weight": weights}
    settings |= {"start": ("random", "spectral"), "steps": LBFGS_STEPS}
    return choose(fit, settings, kept, rng, tables)


def minimise_burst_loss(kept, d, rng):
    """Minimise the loss of negative binomial counts, as `minimise_poisson_loss` does.

    Their mean is r_u_i r_v_j exp(M_ij), and their shape one number, which is chosen.
    The descent begins where `AMPEmbedding` does.
    """
    seed = int(rng.integers(2**31))

    def fit(counts, table, n_sweeps):
        def descent(deviation, weight, shape):
            sides, _ = embedding_start(table, d, np.random.default_rng(seed))
            X, Y = (X / table.shape[0] ** 0.25 for X in sides)
            ridge = _by_frequency(table, np.sqrt(d) / deviation, np.sqrt(d) * weight, d)
            return _lbfgs_path(table, X, Y, *ridge, shape)

        return _rates_along(descent, counts, n_sweeps)

    settings = {"deviation": DEVIATIONS, "weight": WEIGHTS, "shape": BURST_SHAPES}
    counts = {"counts": TABLES["counts"]}
    return choose(fit, settings | {"steps": LBFGS_STEPS}, kept, rng, counts)


def minimise_with_the_ridge_of_amp(kept, d, rng, *, term):
    """Minimise the Poisson loss with the ridge that `AMPEmbedding` has at rest.

    That is u^T (C^-1 + r_i Gamma) u / 2 for row i (`prop-text-rest`), where C and Gamma
    are those of its last iteration; without the `term`, u^T C^-1 u / 2. Nothing is
    chosen: the descent takes all steps.
    """
    seed = int(rng.integers(2**31))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AMPWarning)  # there may be nothing to find
        model = AMPEmbedding(d, random_state=seed).fit(kept)
    sides, table = (model._rows, model._columns), TABLES[model.channel_](kept)
    root = np.sqrt(kept.shape[0])  # x^T y = u^T v / root
    ridges = (
        _Ridge(root * np.linalg.inv(of.denoiser.covariance), root * term * to.Gamma, of.r)
        for of, to in (sides, sides[::-1])
    )
    start, _ = embedding_start(table, d, np.random.default_rng(seed))
    *_, (X, Y) = _lbfgs_path(table, *(X / np.sqrt(root) for X in start), *ridges)
    rates = fit_exponential(kept, np.sqrt(root) * X, np.sqrt(root) * Y, 20)
    return replace(rates, chosen={"table": model.channel_})


class _Ridge(NamedTuple):
    """The penalty x_i^T (A + f_i B) x_i / 2, added up over the rows of X (m, d)."""

    A: np.ndarray  # (d, d)
    B: np.ndarray  # (d, d)
    f: np.ndarray  # (m,)

    def pull(self, X):
        """Return its derivative by X; half of the product with X is the penalty."""
        return X @ self.A + self.f[:, None] * (X @ self.B)

    @property
    def diagonal(self):
        return np.diag(self.A) + self.f[:, None] * np.diag(self.B)


def _by_frequency(table, strength, weight, d):
    """Return the `_Ridge` (strength + weight f_i) |x_i|^2 / 2 of rows and of columns.

    The f_i are counts over their mean.
    """
    sums, unit = margins(without_gaps(table)[0]), np.eye(d)
    return [_Ridge(strength * unit, weight * unit, f / f.mean()) for f in sums]


def _rates_along(descent, counts, n_sweeps):
    """Return a function of settings and of a number of steps to `Rates`.

    ``descent(**settings)`` yields X, Y after each number of `LBFGS_STEPS`. It goes on
    where it stopped: no step is taken twice.
    """
    descent = cache(descent)

    @cache
    def iterate(steps, **settings):
        for before in [k for k in LBFGS_STEPS if k < steps][-1:]:
            iterate(before, **settings)
        return next(descent(**settings))

    def rates(steps, **settings):
        X, Y = iterate(steps, **settings)
        root = counts.shape[0] ** 0.25
        return fit_exponential(counts, root * X, root * Y, n_sweeps)

    return rates


def _lbfgs_path(table, X, Y, ridge_X, ridge_Y, shape=None):
    """Yield X, Y after each number of `LBFGS_STEPS` of SciPy's L-BFGS.

    It minimises the loss of Poisson counts with the rates r_u_i exp(b_j + x_i . y_j),
    with the r_u for which their rows add up to those of the table; b is fitted with X
    and Y. Given a shape, it is that of negative binomial counts with these means, and
    log r_u is fitted too. After each number of steps it begins anew. Pairs of `table`
    that are NaN have no part in it.
    """
    table, gaps = without_gaps(table)
    (rows, columns), d = margins(table), X.shape[1]
    # the unknowns are scaled by the roots of their curvatures: with the variance of
    # the other side under its prior, a quarter of the steps without it are enough
    ridges = ridge_X.diagonal, ridge_Y.diagonal
    scales = [
        np.sqrt(own + counts[:, None] / other.mean()).ravel()
        for own, other, counts in zip(ridges, ridges[::-1], (rows, columns), strict=True)
    ]
    scale = np.concatenate([*scales, np.sqrt(columns), np.sqrt(rows)])
    cuts = np.cumsum([X.size, Y.size, len(columns)])

    def unflatten(x):
        X, Y, b, a = np.split(x / scale, cuts)
        return X.reshape(-1, d), Y.reshape(-1, d), b, a

    def objective(x):
        X, Y, b, a = unflatten(x)
        if shape is None:
            found = _poisson_loss(table, rows, columns, X, Y, b, gaps)
        else:
            found = _burst_loss(table, X, Y, b, a, gaps, shape)
        loss, by_X, by_Y, by_b, by_a = found
        for by, ridge, E in ((by_X, ridge_X, X), (by_Y, ridge_Y, Y)):
            pull = ridge.pull(E)
            by += pull
            loss += np.vdot(pull, E) / 2
        return loss, np.concatenate([by_X.ravel(), by_Y.ravel(), by_b, by_a]) / scale

    a, b = np.log(rows), np.log(columns / columns.sum())
    x = scale * np.concatenate([X.ravel(), Y.ravel(), b, a])
    for steps in np.diff(LBFGS_STEPS, prepend=0):
        options = {"maxiter": steps, "ftol": 0, "gtol": 0, "maxfun": 2 * steps}
        x = minimize(objective, x, jac=True, method="L-BFGS-B", options=options).x
        X, Y, _, _ = unflatten(x)
        yield X.astype(np.float32), Y.astype(np.float32)


def _poisson_loss(table, rows, columns, X, Y, b, gaps):
    """Return the loss of `_lbfgs_path`, and its derivatives by X, Y, b; 0 by log r_u.

    The loss is the largest likelihood over r_u.
    """
    log_rows, mean_Y, fitted, sum_X = _summed(rows, X, Y, b, gaps)
    products = table @ Y
    by_X = rows[:, None] * mean_Y - products
    by_Y = sum_X - table.T @ X
    loss = rows @ log_rows - np.vdot(X, products) - columns @ b
    return loss, by_X, by_Y, fitted - columns, np.zeros(len(rows))


def _burst_loss(table, X, Y, b, a, gaps, shape):
    """Return the loss of counts of this shape, and its derivatives by X, Y, b and a.

    The means are exp(a_i + b_j + x_i . y_j); single precision, a block of rows at a
    time.
    """
    X1, Y1 = (np.column_stack([np.ones(len(E)), E]).astype(np.float32) for E in (X, Y))
    loss, by_X1, by_Y1 = 0.0, np.empty(X1.shape), np.zeros(Y1.shape)
    for some in blocks(len(X), BLOCK_ENTRIES // len(Y)):
        eta = X1[some, 1:] @ Y1[:, 1:].T + b.astype(np.float32)
        eta += a[some, None].astype(np.float32)
        part = table[some].tocoo()
        i, j = part.coords
        more = np.logaddexp(0, eta - np.float32(np.log(shape)))  # log(1 + mean / shape)
        slope = shape * -np.expm1(-more)
        loss += part.data @ (more[i, j] - eta[i, j])
        slope[i, j] -= part.data * np.exp(-more[i, j])
        if gaps is not None:
            hidden = gaps[some].nonzero()
            more[hidden] = slope[hidden] = 0
        loss += shape * more.sum(dtype=np.float64)
        by_X1[some] = slope @ Y1
        by_Y1 += slope.T @ X1[some]
    return loss, by_X1[:, 1:], by_Y1[:, 1:], by_Y1[:, 0], by_X1[:, 0]


def _summed(rows, X, Y, b, gaps):
    """Return what the loss needs of the rates r_u_i exp(b_j + x_i . y_j).

    Their rows, without `gaps`, add up to `rows`. In single precision, a block of rows
    at a time: the log sum_j exp(b_j + x_i . y_j) (m,); the means (m, d) of y_j with the
    rates of row i as weights; the sums of the columns (n,); the sums (n, d) of the x_i
    with the rates of column j as weights.
    """
    X1, Y1 = (np.column_stack([np.ones(len(E)), E]).astype(np.float32) for E in (X, Y))
    b = b.astype(np.float32)
    log_rows, means, total = np.empty(len(X)), np.empty(X.shape), np.zeros(Y1.shape)
    for some in blocks(len(X), BLOCK_ENTRIES // len(Y)):
        rates = X1[some, 1:] @ Y1[:, 1:].T + b
        if gaps is not None:
            rates[gaps[some].nonzero()] = -np.inf
        largest = rates.max(axis=1)
        np.exp(rates - largest[:, None], out=rates)
        sums_Y = rates @ Y1
        log_rows[some] = np.log(sums_Y[:, 0]) + largest
        means[some] = sums_Y[:, 1:] / sums_Y[:, :1]
        scaled = X1[some] * (rows[some] / sums_Y[:, 0])[:, None].astype(np.float32)
        total += rates.T @ scaled
    return log_rows, means, total[:, 0], total[:, 1:]


def skip_gram(kept, d, rng):
    """Fit gensim's skip-gram with negative sampling; choose its settings and a scale.

    A row is a document, and its columns are the words that it predicts: the model that
    gensim calls the distributed bag of words. Where the rows are words too, their
    columns are the words around them, and the model is that of word2vec. Damped counts
    are rounded up.
    """
    seed = int(rng.integers(2**31))

    def fit(counts, table, n_sweeps):
        @cache
        def factors(**settings):
            return _sampled_factors(table, d, np.random.default_rng(seed), **settings)

        def rates(scale, **settings):
            root = np.sqrt(scale) * counts.shape[0] ** 0.25
            U, V = (root * E for E in factors(**settings))
            return fit_exponential(counts, U, V, n_sweeps)

        return rates

    settings = {"rate": RATES, "epochs": EPOCHS, "negative": NEGATIVES}
    settings |= {"power": POWERS, "scale": FACTORS}
    return choose(fit, settings, kept, rng, EMPTY)


def _sampled_factors(table, d, rng, *, epochs, negative, rate=0.025, power=0.75):
    """Return the factors X (m, d), Y (n, d) that gensim's negative sampling finds.

    x_i . y_j is a logarithm of Z_ij over what is expected, up to terms of i or j;
    `negative` columns are drawn for each count, with their frequencies to the `power`;
    `rate` is the learning rate. The extra ``rivals`` brings gensim.
    """
    with extra("rivals"):
        from gensim.models.doc2vec import Doc2Vec, TaggedDocument

    documents = []
    for i in range(table.shape[0]):
        row = slice(table.indptr[i], table.indptr[i + 1])
        times = np.ceil(table.data[row]).astype(np.intp)
        words = rng.permutation(np.repeat(table.indices[row], times)).astype(str)
        parts = np.array_split(words, -(-len(words) // GENSIM_WORDS))
        documents += [TaggedDocument(part.tolist(), [i]) for part in parts]
    model = Doc2Vec(
        documents,
        **{"dm": 0, "vector_size": d, "epochs": epochs, "negative": negative},
        **{"alpha": rate, "ns_exponent": power},
        **{"sample": 0, "min_count": 1, "workers": 1, "seed": int(rng.integers(2**31))},
    )
    place = [model.wv.key_to_index[str(j)] for j in range(table.shape[1])]
    return model.dv.vectors, model.syn1neg[place]
