"""`AMPEmbedding`: from counts to embeddings behind scikit-learn's fit and transform."""

import warnings
from dataclasses import replace
from itertools import islice
from numbers import Integral, Real

import numpy as np
import scipy.sparse as sp
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    _fit_context,
)
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, check_non_negative, validate_data

from ._validation import AMPWarning
from .bias import drop_empty
from .denoisers import Denoiser, GaussianPosterior, Lasso, Ridge
from .heldout import heldout_log_ratios, independence_entropy, is_worse, split_counts
from .poisson import margin_biases
from .reexpansion import balance, iterate, leading_directions, new_side, settle, start

VALIDATION = 0.1  # the fraction of the counts that decides when to stop
AT_LEAST = 10  # iterations that AMP gets to settle
PATIENCE = 1  # iterations without progress before stopping
REFINEMENTS = 2  # iterations from the best estimate on, with all counts


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
        An iteration that lowers the held-out cross-entropy by less than this fraction
        of it is no progress; two such iterations in a row are the end.
    init : {"spectral", "random"}
    random_state : int, RandomState or None

    Attributes
    ----------
    embedding_ : array (m, d)
        U. Rows without counts are zero.
    components_ : array (d, n)
        V^T. Columns without counts are zero: about them nothing was learned, and
        `transform` ignores them.
    row_bias_, column_bias_ : arrays (m,), (n,)
        Bias factors r_u, r_v, refitted given the embedding; zero where there are no
        counts.
    n_iter_ : int
        Number of iterations of the estimate kept: the last one that predicts held-out
        counts not worse than the best, by two standard errors.
    heldout_gain_ : float
        By how many nats per count better than by independence
        (`amptutorial.heldout.heldout_gain`).

    Raises
    ------
    ValueError
        For negative, infinite or missing counts, no counts at all, or n_components
        above min(m, n).

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

    _parameter_constraints = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "denoiser": [
            StrOptions({"posterior", "ridge", "lasso"}),
            Denoiser,
            tuple,
            list,
        ],
        "n_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "init": [StrOptions({"spectral", "random"})],
        "random_state": ["random_state"],
    }

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

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None):
        """Fit the embedding to the counts `X` (m, n), the Z of the paper, dense or sparse; `y` is ignored."""
        Z = self._check_counts(X, reset=True)
        shape = Z.shape
        Z, row_index, column_index = drop_empty(Z)
        self._check_size(shape, Z.shape)
        m = len(row_index)

        rows, columns = self._iterate_until_best(Z, m)
        *_, (rows, columns) = islice(iterate(Z, rows, columns, m), REFINEMENTS)
        rows, columns = balance(rows, columns)
        r_v = margin_biases(Z.sum(axis=0), columns.X, rows.X / np.sqrt(m), rows.bias)
        rows = settle(Z, rows, replace(columns, bias=r_v), m)
        scale = rows.bias.mean()

        self._columns = replace(columns, X=columns.X.astype(np.float64), bias=r_v)
        self._column_index, self._denoiser, self._mean_row = (
            column_index,
            rows.denoiser,
            Z.sum() / m,
        )
        # sqrt(m) in the model counts all rows, in the fit those with counts
        self._unit = (shape[0] / m) ** 0.25
        self.embedding_ = _spread(self._unit * rows.X, row_index, shape[0])
        self.components_ = _spread(self._unit * columns.X, column_index, shape[1]).T
        self.row_bias_ = _spread(rows.bias / scale, row_index, shape[0])
        self.column_bias_ = _spread(r_v * scale, column_index, shape[1])
        return self

    def fit_transform(self, X, y=None):
        """Fit the embedding to the counts `X` (m, n) and return `embedding_`; `y` is ignored."""
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
        totals = np.asarray(Z.sum(axis=1), dtype=np.float64)
        some = np.flatnonzero(totals)
        U = np.zeros((Z.shape[0], len(self.components_)))
        if some.size:
            rows = new_side(U[some], totals[some] / self._mean_row, self._denoiser)
            U[some] = (
                self._unit
                * settle(
                    Z[some], rows, self._columns, len(self.embedding_) / self._unit**4
                ).X
            )
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
        rows = (
            slice(None)
            if rows is None
            else [rows]
            if isinstance(rows, Integral)
            else rows
        )
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

    def _check_counts(self, Z, *, reset):
        Z = validate_data(self, Z, reset=reset, accept_sparse="csr", dtype=np.float64)
        check_non_negative(Z, "AMPEmbedding (counts are at least zero)")
        return sp.csr_array(Z)

    def _check_size(self, shape, kept):
        if self.n_components > min(kept):
            raise ValueError(
                f"n_components={self.n_components} must be at most {min(kept)}: Z has {kept[0]} rows and {kept[1]} "
                f"columns with counts (n_samples={shape[0]}, n_features={shape[1]})"
            )
        empty = [
            f"{a - b} {word}"
            for a, b, word in zip(shape, kept, ("rows", "columns"), strict=True)
            if a > b
        ]
        if empty:
            _warn(
                f"{' and '.join(empty)} without counts: their embeddings and rates are zero"
            )

    def _denoisers(self, variance):
        """Return the pair of denoisers; the named ones for priors under which an entry of U or V has that variance."""
        named = {
            "posterior": GaussianPosterior(variance, learn=True),
            "ridge": Ridge(1 / variance),
            # of a Laplace prior with this variance
            "lasso": Lasso(np.sqrt(2 / variance)),
        }
        denoiser = (
            named[self.denoiser] if isinstance(self.denoiser, str) else self.denoiser
        )
        pair = (
            (denoiser, denoiser) if isinstance(denoiser, Denoiser) else tuple(denoiser)
        )
        if len(pair) != 2 or not all(isinstance(one, Denoiser) for one in pair):
            raise ValueError(
                f"denoiser must be one of {sorted(named)}, a Denoiser or a pair of them, got {denoiser!r}"
            )
        return pair

    def _iterate_until_best(self, Z, m):
        """Return the iterate, fitted to nine tenths of the counts, that predicts the rest best."""
        # None means fresh entropy, not NumPy's global generator
        seed = (
            None
            if self.random_state is None
            else check_random_state(self.random_state).randint(2**31)
        )
        rng = np.random.default_rng(seed)
        d = self.n_components
        kept, held_out = split_counts(Z, VALIDATION, rng)
        V, variance = leading_directions(kept, d, rng)
        # of the entries of U and V, such that M_ij has the variance found
        variance = np.sqrt(variance * m / d)
        V = V if self.init == "spectral" else rng.standard_normal(V.shape)
        rows, columns = start(Z, *self._denoisers(variance), V, variance)
        fewer = replace(columns, r=(1 - VALIDATION) * columns.r)
        entropy, highest, progress = independence_entropy(kept, held_out), -np.inf, 0
        for k, (u, v) in enumerate(
            islice(iterate(kept, rows, fewer, m), self.n_iter), start=1
        ):
            z, log_ratios = heldout_log_ratios(kept, held_out, u.X, v.X, u.bias, v.bias)
            gain = float(z @ log_ratios / max(z.sum(), 1))
            if gain > highest + self.tol * (entropy - gain):
                progress = k
            if gain > highest:
                highest, best = gain, log_ratios
            # AMP gets better from iteration to iteration until it overfits: chance
            # alone is no reason to stop early
            if not is_worse(z, log_ratios, best):
                chosen, self.heldout_gain_, self.n_iter_ = (u, v), gain, k
            if k >= AT_LEAST and k - progress >= PATIENCE:
                break
        else:
            if k - progress < PATIENCE:
                _warn(
                    f"still improving after n_iter={self.n_iter} iterations: allow more"
                )
        if self.heldout_gain_ <= 0:
            _warn(
                "no iterate predicts held-out counts better than row and column sums do: the counts are too few for "
                f"n_components={self.n_components}, or rows and columns are independent"
            )
        return chosen[0], replace(chosen[1], r=columns.r)


def _warn(message):
    warnings.warn(message, AMPWarning, stacklevel=5)


def _spread(values, index, size):
    """Return an array of `size` rows that holds `values` at `index` and zeros elsewhere, in double precision."""
    full = np.zeros((size, *values.shape[1:]))
    full[index] = values
    return full
