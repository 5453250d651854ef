"""`AMPEmbedding`: from counts to embeddings behind scikit-learn's fit and transform."""

import warnings
from dataclasses import replace
from itertools import islice
from numbers import Integral

import numpy as np
import scipy.sparse as sp
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, check_non_negative, validate_data

from ._counts import split, without_empty
from ._validation import (
    AMPWarning,
    check_choice,
    check_counts,
    check_finite,
    check_integer,
    check_positive,
    quiet,
    refuse_masked,
)
from .bias import estimate_bias
from .denoisers import GaussianPosterior, Lasso, Ridge, as_pair
from .heldout import HeldOut, is_worse
from .poisson import margin_biases
from .reexpansion import (
    balanced_sides,
    iterated_sides,
    leading_directions,
    new_side,
    settle_rows,
    starting_sides,
)

VALIDATION = 0.1  # the fraction of the counts that decides when to stop
AT_LEAST = 10  # iterations that AMP gets before it may be stopped
REFINEMENTS = 2  # iterations with all counts, from the best estimate on

# for priors under which an entry of U or V has the given variance
DENOISERS = {
    "posterior": lambda variance: GaussianPosterior(variance, learn=True),
    "ridge": lambda variance: Ridge(1 / variance),
    "lasso": lambda variance: Lasso(np.sqrt(2 / variance)),  # of a Laplace prior
}


class Patience:
    """When to stop: after an iteration without progress, but not in the first ten.

    An iteration makes progress if it lowers the held-out cross-entropy, entropy - gain,
    below the lowest so far by more than the fraction `tol` of it.

    Parameters
    ----------
    entropy : float
        The held-out cross-entropy of independence, in nats per count.
    tol : float

    Attributes
    ----------
    k : int
        The number of iterations so far.
    highest : float
        The highest gain so far.
    progress : bool
        Whether the last iteration made progress.

    Examples
    --------
    >>> patience = Patience(entropy=5.0, tol=0.01)
    >>> for gain in [1.0, 1.5, 1.51]:
    ...     patience.record(gain)
    >>> patience.k, patience.progress, patience.exhausted
    (3, False, False)
    """

    def __init__(self, entropy, tol):
        self.entropy, self.tol = entropy, tol
        self.k, self.highest, self.progress = 0, -np.inf, False

    def record(self, gain):
        """Count one more iteration, with this held-out gain."""
        self.k += 1
        self.progress = gain > self.highest + self.tol * (self.entropy - gain)
        self.highest = max(self.highest, gain)

    @property
    def exhausted(self):
        """Whether to stop."""
        return self.k >= AT_LEAST and not self.progress


def best_iterate(iterates, held_out, tol):
    """Return the last iterate that predicts held-out counts no worse than the best.

    Parameters
    ----------
    iterates : iterable of pairs of Side
        As from `amptutorial.reexpansion.iterated_sides`.
    held_out : HeldOut
    tol : float
        For `Patience`, which ends the iteration.

    Returns
    -------
    sides : pair of Side
    gain : float
        In nats per held-out count.
    k : int
        The number of the iterate, from 1 on.
    improving : bool
        Whether the last iteration still made progress.

    Raises
    ------
    FloatingPointError
        If a gain is not finite.
    """
    patience = Patience(held_out.entropy(), tol)
    for rows, columns in iterates:
        biases = rows.bias, columns.bias
        log_ratios = held_out.log_ratios(rows.X, columns.X, *biases)
        gain = held_out.mean(log_ratios)
        check_finite(heldout_gain=gain)
        if gain > patience.highest:
            best = log_ratios
        patience.record(gain)
        # AMP gets better from iteration to iteration until it overfits: chance alone is
        # no reason to stop early
        if not is_worse(held_out.z, log_ratios, best):
            chosen = (rows, columns), gain, patience.k
        if patience.exhausted:
            break
    return *chosen, patience.progress


class AMPEmbedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Embed the rows and the columns of a matrix of counts by biased low-rank AMP.

    The model is Z_ij ~ Poisson(r_u_i r_v_j exp(u_i . v_j / sqrt(m))) (`eq:Pij`,
    `eq:z_ij`). `fit` holds out a tenth of the counts, iterates until it no longer
    predicts them better, and goes on from the best iterate with all counts.

    Parameters
    ----------
    n_components : int
        Embedding dimension d, at most min(m, n).
    denoiser : {"posterior", "ridge", "lasso"}, Denoiser, or a pair of Denoiser
        "posterior": the posterior mean under a Gaussian prior whose covariance is
        learned. "ridge" and "lasso": minimisers for priors with which M_ij has the
        variance that the spectrum of the score shows. A pair is for the rows and the
        columns.
    n_iter : int
        The largest number of iterations.
    tol : float
        An iteration must lower the held-out cross-entropy by more than this fraction of
        it. After the first ten, the first one that does not is the last.
    init : {"spectral", "random"}
    random_state : int, RandomState or None

    Attributes
    ----------
    embedding_ : array (m, d)
        U. Rows without counts are zero.
    components_ : array (d, n)
        V^T. Columns without counts are zero: nothing was learned about them, and
        `transform` ignores them.
    row_bias_, column_bias_ : arrays (m,), (n,)
        Bias factors r_u, r_v, refitted given the embedding; zero where there are no
        counts.
    n_iter_ : int
        Number of iterations of the estimate kept: the last one that does not predict
        held-out counts worse than the best, by two standard errors.
    heldout_gain_ : float
        By how many nats per count the estimate predicts held-out counts better than
        independence does (`amptutorial.heldout.heldout_gain`).

    Raises
    ------
    ValueError
        For negative, infinite or missing counts, less than one count in all, or
        n_components above min(m, n).
    FloatingPointError
        If the iteration diverges.

    Warns
    -----
    AMPWarning
        If rows or columns have no counts, if no iterate beats independence, or if
        `n_iter` was too small to tell.

    Notes
    -----
    `heldout_gain_` is honest for Poisson counts, whose random halves are independent.
    Counts that vary less than Poisson ones, such as zeros and ones, have dependent
    halves, and a small gain without any structure.

    `n_components` above the number of rows or columns is an error, so that
    scikit-learn's `check_estimator`, whose data have two to five features, is passed by
    `AMPEmbedding(1)` and `AMPEmbedding(2)`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> topics = np.repeat([[1.0, -1.0]], 20, axis=0).ravel()
    >>> Z = rng.poisson(np.exp(1 + np.outer(topics, topics[:30])))
    >>> model = AMPEmbedding(1, random_state=0).fit(Z)
    >>> model.embedding_.shape, model.components_.shape
    ((40, 1), (1, 30))
    >>> bool(abs(np.corrcoef(model.embedding_[:, 0], topics)[0, 1]) > 0.95)
    True
    """

    def __init__(
        self,
        n_components=10,
        *,
        denoiser="posterior",
        n_iter=50,
        tol=1e-4,
        init="spectral",
        random_state=None,
    ):
        self.n_components = n_components
        self.denoiser = denoiser
        self.n_iter = n_iter
        self.tol = tol
        self.init = init
        self.random_state = random_state

    def fit(self, X, y=None):
        """Fit the embedding to counts.

        Parameters
        ----------
        X : array or sparse array (m, n)
            Counts, the Z of the paper.
        y : None
            Ignored.

        Returns
        -------
        AMPEmbedding
            Itself.
        """
        self._check_parameters()
        Z = self._check_counts(X, reset=True)
        shape = Z.shape
        Z, row_index, column_index = without_empty(Z)
        self._check_size(Z, shape)
        m = len(row_index)

        sides, gain, k, improving = self._iterate_until_best(Z)
        self._warn_of_doubts(gain, improving)
        *_, (rows, columns) = islice(iterated_sides(Z, *sides, m), REFINEMENTS)
        rows, columns = balanced_sides(rows, columns)
        r_v = margin_biases(Z.sum(axis=0), columns.X, rows.X / np.sqrt(m), rows.bias)
        rows = settle_rows(Z, rows, replace(columns, bias=r_v), m)
        scale = rows.bias.mean()

        self.heldout_gain_, self.n_iter_ = gain, k
        self._columns = replace(columns, X=columns.X.astype(np.float64), bias=r_v)
        self._column_index = column_index
        self._denoiser, self._mean_row = rows.denoiser, Z.sum() / m
        # sqrt(m) in the model counts all rows, in the fit those with counts
        self._unit = (shape[0] / m) ** 0.25
        self.embedding_ = _spread(self._unit * rows.X, row_index, shape[0])
        self.components_ = _spread(self._unit * columns.X, column_index, shape[1]).T
        self.row_bias_ = _spread(rows.bias / scale, row_index, shape[0])
        self.column_bias_ = _spread(r_v * scale, column_index, shape[1])
        return self

    def fit_transform(self, X, y=None):
        """Fit the embedding to the counts `X` (m, n) and return `embedding_`."""
        return self.fit(X).embedding_

    def transform(self, X):
        """Embed new rows, given the fitted columns.

        Parameters
        ----------
        X : array or sparse array (m_new, n)
            Counts.

        Returns
        -------
        array (m_new, d)
            Each row by itself; zero for one without counts in the fitted columns. Rows
            that were fitted get their `embedding_` again, up to the tolerance of the
            iteration; in directions that neither counts nor prior determine (very large
            counts, more components than structure) the two may differ by more.
        """
        check_is_fitted(self)
        Z = self._check_counts(X, reset=False)[:, self._column_index]
        totals = Z.sum(axis=1)
        some = np.flatnonzero(totals)
        U = np.zeros((Z.shape[0], len(self.components_)))
        if some.size:
            rows = new_side(U[some], totals[some] / self._mean_row, self._denoiser)
            m = len(self.embedding_) / self._unit**4  # of the rows with counts
            rows = settle_rows(Z[some], rows, self._columns, m)
            U[some] = self._unit * rows.X
        return U

    def predict_rates(self, rows=None):
        """Return the expected counts of fitted rows.

        Parameters
        ----------
        rows : slice, array of int or bool, or None
            Which rows; None for all of them, an array as large as the dense counts.

        Returns
        -------
        array (len(rows), n)
            r_u_i r_v_j exp(u_i . v_j / sqrt(m)). Its rows add up to those of the
            counts.
        """
        check_is_fitted(self)
        if rows is None:
            rows = slice(None)
        if isinstance(rows, Integral):
            rows = [rows]
        M = self.embedding_[rows] @ self.components_ / np.sqrt(len(self.embedding_))
        return self.row_bias_[rows, None] * np.exp(M) * self.column_bias_

    @property
    def _n_features_out(self):
        return len(self.components_)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    def _check_parameters(self):
        check_integer(self.n_components, "n_components", minimum=1)
        check_integer(self.n_iter, "n_iter", minimum=1)
        check_positive(self.tol, "tol", zero=True)
        check_choice(self.init, "init", ("spectral", "random"))
        if isinstance(self.denoiser, str):
            check_choice(self.denoiser, "denoiser", DENOISERS)
        else:
            as_pair(self.denoiser)

    @quiet
    def _check_counts(self, Z, *, reset):
        refuse_masked(Z, "X")
        # in the formats in which a pair may be stored twice: `check_counts` adds its
        # counts after they are float64, and cannot wrap
        formats = ("csr", "csc", "coo", "bsr")
        Z = validate_data(self, Z, reset=reset, accept_sparse=formats, dtype=np.float64)
        check_non_negative(Z, "AMPEmbedding (counts are at least zero)")
        return sp.csr_array(check_counts(Z))

    def _check_size(self, Z, shape):
        kept, total = Z.shape, Z.sum()
        if total < 1:
            raise ValueError(
                f"the counts add up to {total:.1e}, less than one count: pass numbers "
                "of occurrences, not shares"
            )
        if self.n_components > min(kept):
            raise ValueError(
                f"n_components={self.n_components} must be at most {min(kept)}: Z has "
                f"{kept[0]} rows and {kept[1]} columns with counts "
                f"(n_samples={shape[0]}, n_features={shape[1]})"
            )
        empty = [
            f"{a - b} {word}"
            for a, b, word in zip(shape, kept, ("rows", "columns"), strict=True)
            if a > b
        ]
        if empty:
            _warn(
                f"{' and '.join(empty)} without counts: their embeddings and rates are "
                "zero"
            )

    def _generator(self):
        """Return a generator for this fit; None means one with fresh entropy."""
        if self.random_state is None:  # not NumPy's global generator
            return np.random.default_rng()
        seed = check_random_state(self.random_state).randint(2**31)
        return np.random.default_rng(seed)

    def _iterate_until_best(self, Z):
        """Return what `best_iterate` chooses in a fit to nine tenths of the counts."""
        rng, m, d = self._generator(), Z.shape[0], self.n_components
        kept, held_out = split(Z, VALIDATION, rng)
        if not kept.nnz:
            raise ValueError("too few counts: none is left when a tenth is set aside")
        V, variance = leading_directions(kept, d, rng)
        # of the entries of U and V, such that M_ij has the variance found
        variance = np.sqrt(variance * m / d)
        if self.init == "random":
            V = rng.standard_normal(V.shape)
        denoiser = self.denoiser
        if isinstance(denoiser, str):
            denoiser = DENOISERS[denoiser](variance)
        r_u, r_v = estimate_bias(Z)
        rows, columns = starting_sides(r_u, r_v, denoiser, V, variance)

        fewer = replace(columns, r=(1 - VALIDATION) * r_v)
        iterates = islice(iterated_sides(kept, rows, fewer, m), self.n_iter)
        pairs = HeldOut.of(kept, held_out)
        (rows, columns), *found = best_iterate(iterates, pairs, self.tol)
        return (rows, replace(columns, r=r_v)), *found

    def _warn_of_doubts(self, gain, improving):
        if improving:
            _warn(f"still improving after n_iter={self.n_iter} iterations: allow more")
        if gain <= 0:
            _warn(
                "no iterate predicts held-out counts better than row and column sums "
                f"do: the counts are too few for n_components={self.n_components}, or "
                "rows and columns are independent"
            )


def _warn(message):
    warnings.warn(message, AMPWarning, stacklevel=4)  # where `fit` is called


def _spread(values, index, size):
    """Return float64 rows that are `values` at `index` and zero elsewhere."""
    full = np.zeros((size, *values.shape[1:]))
    full[index] = values
    return full
