"""`AMPEmbedding`: from counts to embeddings behind scikit-learn's fit and transform."""

import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
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

from ._validation import (
    AMPWarning,
    check_choice,
    check_counts,
    check_integer,
    check_positive,
    refuse_masked,
)
from .bias import bias_of_margins, drop_empty
from .channels import CHANNELS, Channel, WithGaps
from .denoisers import GaussianPosterior, Lasso, Ridge, as_pair
from .heldout import Chosen
from .poisson import biases_of_margins, margin_biases
from .reexpansion import (
    balanced_sides,
    new_side,
    next_sides,
    posterior_covariances,
    prior_covariance,
    sample_of,
    scaled_rows,
    starting_sides,
)
from .sampling import Sampler
from .table import VALIDATION, Table

AUTOMATIC = ("counts", "damped")
COMPARED_AFTER = 3  # iterations: a channel that is far behind then is given up
FAR = 3  # paired standard errors
REFINEMENTS = 5  # iterations with all counts, from the best estimate on
SWEEPS = 30  # in which the final biases are refitted, at most
# sample-size multipliers of the phases: while an estimate moves, errors average out
MOVING, REFINING, SETTLING = 0.5, 1.5, 2

LIBRARIES = "amptutorial.", "sklearn."  # whose lines no warning is about

# for priors under which an entry of U or V has the given variance
DENOISERS = {
    "posterior": lambda variance: GaussianPosterior(variance, learn=True),
    "ridge": lambda variance: Ridge(1 / variance),
    "lasso": lambda variance: Lasso(np.sqrt(2 / variance)),  # of a Laplace prior
}


class AMPEmbedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Embed the rows and the columns of a matrix of counts by biased low-rank AMP.

    The model is Z_ij ~ Poisson(r_u_i r_v_j exp(u_i . v_j / sqrt(m))) (`eq:Pij`,
    `eq:z_ij`), or one of counts that come in bursts at these rates. `fit` hides a tenth
    of the pairs of a row and a column, iterates until it no longer predicts their
    counts better, and goes on from the best iterate with all counts.

    Parameters
    ----------
    n_components : int
        Embedding dimension d, at most min(m, n).
    denoiser : {"posterior", "ridge", "lasso"}, Denoiser, or a pair of Denoiser
        "posterior": the posterior mean under a Gaussian prior whose covariance is
        learned. "ridge" and "lasso": minimisers for priors with which M_ij has the
        variance that the spectrum of the score shows. A pair is for the rows and the
        columns.
    channel : {"auto", "counts", "damped", "presence", "bursts"}
        What of a count bears on the embedding (`amptutorial.channels`): all of it, as
        for Poisson counts; the k-th occurrence of a word in a document one k-th of the
        first; whether there is a count; or bursts whose sizes are estimated. "auto"
        fits "counts" and "damped", and keeps what predicts hidden pairs better; one
        that is three standard errors behind after three iterations goes no further.
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
        Bias factors r_u, r_v, refitted to the counts given the embedding; zero where
        there are no counts.
    channel_ : str
        The channel used.
    n_iter_ : int
        Number of iterations of the estimate kept, the one that predicts hidden pairs
        best; zero, with an embedding of zeros, if none beats independence.
    heldout_gain_ : float
        By how many nats per count that estimate predicted the counts of the hidden
        pairs better than independence (`amptutorial.heldout.heldout_gain`).
    heldout_error_ : float
        The standard error of `heldout_gain_`, two-way: over rows and over columns.

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
        If rows or columns have no counts, if no iterate predicts hidden pairs better
        than independence, or if `n_iter` was too small to tell.

    Notes
    -----
    Whole pairs are hidden, because in real tables counts of one pair often come
    together, without any embedding: half of the repetitions of a word in a document
    tell of the other half. `heldout_gain_` counts no such repetition. It errs on the
    low side, for a fit that has seen a zero where a pair was hidden, and on the high
    side by the choice of the best iterate; both are small beside its error.

    The counts determine M, not U and V: `AMPEmbedding` chooses coordinates in which the
    scaled rows have the same diagonal covariance on both sides, largest first. A
    Gaussian prior for each side prefers them, up to a rotation. Cosines of rows depend
    on the choice. In each coordinate the largest entry of the scaled U is positive.

    Where M has more than 2^26 (67 million) entries, sums over its rows and columns are
    estimated from samples that grow with the counts (`amptutorial.sampling`). The cost
    then grows with rows, columns and counts, and not with all pairs; rows and columns
    of the rates add up to those of the counts within about one per cent.

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
        channel="auto",
        n_iter=50,
        tol=1e-4,
        init="spectral",
        random_state=None,
    ):
        self.n_components = n_components
        self.denoiser = denoiser
        self.channel = channel
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
        Z, row_index, column_index = drop_empty(Z)
        best = self._fit(Table(Z), row_index, column_index, shape)
        self._warn_of_doubts(best)
        return self

    def _fit(self, table, row_index, column_index, shape):
        """Fit to a table without empty rows or columns; return the best iterate."""
        margins = table.margins()
        self._check_size(table.shape, margins[0].sum(), shape)
        m, rng = len(row_index), self._generator()
        best, self._channel, rows, columns = self._choose(table, rng)
        if best.k:
            rows, columns = self._refined(table, rows, columns, rng)
        rows, columns = balanced_sides(rows, columns)
        settling = Sampler(rng, SETTLING)
        bursts = table.bursts(self._channel, rows, columns, m)
        sample = sample_of(columns, rows, m, settling)
        r_v = margin_biases(bursts.margins()[1], columns.X, sample)
        self._columns = replace(columns, X=columns.X.astype(np.float64), bias=r_v)
        self._sample = sample_of(rows, self._columns, m, settling)
        given = self._columns, m, self._channel, self._sample
        rows = table.settled(rows, *given)
        self._rows = replace(rows, X=rows.X.astype(np.float64))
        sampler = Sampler(rng)
        W = scaled_rows(self._columns, m)
        # all counts of a column may have been hidden
        r_v = np.where(best.r_v > 0, best.r_v, margins[1] / m)
        # most sweeps in the faster precision; without an embedding one is exact
        for precision in (np.float32, np.float64) if best.k else (np.float64,):
            given = *margins, self._rows.X.astype(precision), W, r_v
            r_u, r_v, _ = biases_of_margins(*given, SWEEPS, sampler=sampler)

        self.heldout_gain_, self.heldout_error_ = best.gain, best.error
        self.n_iter_ = best.k
        self._row_index, self._column_index = row_index, column_index
        self._mean_row = table.rare(self._channel).total() / m
        # sqrt(m) in the model counts all rows, in the fit those with counts
        self._unit = (shape[0] / m) ** 0.25
        self.embedding_ = _spread(self._unit * rows.X, row_index, shape[0])
        self.components_ = _spread(self._unit * columns.X, column_index, shape[1]).T
        self.row_bias_ = _spread(r_u, row_index, shape[0])
        self.column_bias_ = _spread(r_v, column_index, shape[1])
        return best

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
        table = Table(self._check_counts(X, reset=False)[:, self._column_index])
        totals = table.rare(self._channel).totals
        some = np.flatnonzero(totals)
        U = np.zeros((len(totals), len(self.components_)))
        if some.size:
            rows = new_side(U[some], totals[some] / self._mean_row, self._rows.denoiser)
            m = len(self.embedding_) / self._unit**4  # of the rows with counts
            sample = self._sample.copy()  # what is drawn here stays here
            given, table = (self._columns, m, self._channel, sample), table[some]
            rows = table.settled(rows, *given)
            if sample.sampled:  # long rows have larger samples
                rows = table.settled(rows, *given)
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
        rows = _selection(rows)
        rates = self.embedding_[rows] @ self.components_
        # in place: this array may be the largest there is
        rates /= np.sqrt(len(self.embedding_))
        np.exp(rates, out=rates)
        rates *= self.row_bias_[rows, None]
        rates *= self.column_bias_
        return rates

    def covariances(self):
        """Return how uncertain the embeddings are: their posterior covariances.

        Returns
        -------
        rows : array (m, d, d)
            Of the rows of `embedding_`.
        columns : array (n, d, d)
            Of the columns of `components_`. What has no counts has the prior's.

        Raises
        ------
        ValueError
            If a denoiser is not a `GaussianPosterior`.

        Notes
        -----
        The posterior is taken as Gaussian, given the other side: the prior's precision
        and the Fisher information at the fitted rates add up. On Poisson counts drawn
        from the model, intervals for M_ij of level 90 % cover 88 to 92 % if M_ij has a
        standard deviation of at most 0.85; at 1.3 they covered 82 %. Where counts come
        in bursts, the bursts are taken as known. What is not linear, such as a cosine,
        takes draws: that of two estimates is too large.
        """
        check_is_fitted(self)
        sides, m = (self._rows, self._columns), len(self._row_index)
        if not all(isinstance(side.denoiser, GaussianPosterior) for side in sides):
            raise ValueError(
                "only a Gaussian prior has posterior covariances: fit with "
                "denoiser='posterior'"
            )
        sizes = len(self.embedding_), self.components_.shape[1]
        index = self._row_index, self._column_index
        found = []
        for side, other, size, some in zip(
            sides, sides[::-1], sizes, index, strict=True
        ):
            full = np.tile(prior_covariance(side), (size, 1, 1))
            full[some] = posterior_covariances(side, other, m)
            found.append(self._unit**2 * full)
        return tuple(found)

    def standard_errors(self, rows=None):
        """Return the standard errors of M_ij = u_i . v_j / sqrt(m).

        M_ij is known up to what the biases absorb: a constant for each row and each
        column.

        Parameters
        ----------
        rows : slice, array of int or bool, or None
            Which rows; None for all of them.

        Returns
        -------
        array (len(rows), n)
        """
        U, V = self.embedding_, self.components_.T
        C_u, C_v = self.covariances()
        U, C_u = (X[_selection(rows)] for X in (U, C_u))
        squares_u, squares_v = (X[:, :, None] * X[:, None] for X in (U, V))
        # u^T C_v u + v^T C_u v + tr(C_u C_v), each a sum over the entries of C
        variances = np.einsum("ikl,jkl->ij", squares_u + C_u, C_v, optimize=True)
        variances += np.einsum("ikl,jkl->ij", C_u, squares_v, optimize=True)
        variances /= len(self.embedding_)
        return np.sqrt(variances, out=variances)

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
        check_choice(self.channel, "channel", ("auto", *CHANNELS))
        if isinstance(self.denoiser, str):
            check_choice(self.denoiser, "denoiser", DENOISERS)
        else:
            as_pair(self.denoiser)

    def _check_counts(self, Z, *, reset):
        refuse_masked(Z, "X")
        # in the formats in which a pair may be stored twice: `check_counts` adds its
        # counts after they are float64, and cannot wrap
        formats = ("csr", "csc", "coo", "bsr")
        Z = validate_data(self, Z, reset=reset, accept_sparse=formats, dtype=np.float64)
        check_non_negative(Z, "AMPEmbedding (counts are at least zero)")
        return sp.csr_array(check_counts(Z))

    def _check_size(self, kept, total, shape):
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

    def _choose(self, table, rng):
        """Return the best iterate of all channels asked for, its channel and sides.

        All of them start alike and are judged by the same hidden pairs.
        """
        seen, held_out = table.hide(rng)
        seed = int(rng.integers(2**31))
        names = AUTOMATIC if self.channel == "auto" else (self.channel,)
        if table.largest() <= 1:  # without repetitions they are the same
            names = names[:1]
        runs = [self._start(table, seen, held_out, name, seed) for name in names]

        def go(number):
            for run in runs:
                run.state = table.repeat(run.step, run.state, number, run.rng)

        several = len(runs) > 1 and self.n_iter > COMPARED_AFTER
        if several:
            go(COMPARED_AFTER)
            runs = [run for run in runs if not run.far_behind(runs, held_out)]
        go(self.n_iter - several * COMPARED_AFTER)
        best = max(runs, key=lambda run: run.best.gain)
        self.channel_ = best.name
        return best.best, best.channel, *best.sides()

    def _start(self, table, seen, held_out, name, seed):
        """Return the run of a channel, before its first iteration."""
        channel = table.dispersed(CHANNELS[name])
        rng = np.random.default_rng(seed)
        m, d = table.shape[0], self.n_components
        r_u, r_v = bias_of_margins(*table.rare(channel).margins())
        gaps = WithGaps(channel) if table.crowded else channel
        nothing = [new_side(np.zeros((len(r), d)), r, None) for r in (r_u, r_v)]
        bursts = seen.bursts(gaps, *nothing, m)
        V, variance = bursts.leading_directions(d, rng)
        # of the entries of U and V, such that M_ij has the variance found
        variance = np.sqrt(variance * m / d)
        if self.init == "random":
            V = rng.standard_normal(V.shape)
        denoiser = self.denoiser
        if isinstance(denoiser, str):
            denoiser = DENOISERS[denoiser](variance)
        rows, columns = starting_sides(r_u, r_v, denoiser, V, variance)

        moving, judging = Sampler(rng, MOVING), Sampler(rng)
        sampled = moving.samples(*table.shape)

        def step(rows, columns, ahead, best):
            bursts = seen.bursts(gaps, rows, columns, m)
            # the half-step that is ahead fits the margins too, if it sees all pairs
            fitting = None if sampled else best.fitting(held_out)
            sides = next_sides(bursts, rows, columns, ahead, m, moving, fitting)
            fitted = fitting and fitting.fitted
            last = best.judge(*sides[:2], held_out, judging, fitted)
            return (*sides, best), last

        fewer = replace(columns, r=(1 - VALIDATION) * r_v)
        state = rows, fewer, None, Chosen(held_out, self.tol)
        return _Run(name, channel, (rows, columns), rng, step, state)

    def _refined(self, table, rows, columns, rng):
        """Return both sides after some iterations with all counts."""
        m, channel, sampler = table.shape[0], self._channel, Sampler(rng, REFINING)

        def step(rows, columns, ahead):
            bursts = table.bursts(channel, rows, columns, m)
            return next_sides(bursts, rows, columns, ahead, m, sampler), False

        return table.repeat(step, (rows, columns, None), REFINEMENTS, rng)[:2]

    def _warn_of_doubts(self, best):
        if best.patience.progress:
            _warn(f"still improving after n_iter={self.n_iter} iterations: allow more")
        if not best.k:
            _warn(
                "no iterate predicts hidden pairs better than row and column sums "
                "do, so the embedding is zero: the counts are too few for "
                f"n_components={self.n_components}, or rows and columns are independent"
            )


@dataclass
class _Run:
    """The iterations of one channel, while a tenth of the pairs is hidden.

    Attributes
    ----------
    name : str
    channel : Channel
    start : pair of Side
        With the counted biases of all pairs.
    rng : numpy.random.Generator
    step : callable
        As for `amptutorial.table.Table.repeat`.
    state : tuple
        Both sides, what the rows become in the next iteration, and the `Chosen`.
    """

    name: str
    channel: Channel
    start: tuple
    rng: np.random.Generator
    step: Callable
    state: tuple

    @property
    def best(self):
        """The iterates judged so far."""
        return self.state[-1]

    def far_behind(self, others, held_out):
        """Return whether another run predicts the hidden pairs much better by now."""
        leads = (other.best.log_ratios - self.best.log_ratios for other in others)
        return any(
            held_out.mean(lead) > FAR * held_out.standard_error(lead) for lead in leads
        )

    def sides(self):
        """Return both sides of the best iterate, to go on from with all pairs."""
        rows, columns = self.start
        if not self.best.k:
            return rows, replace(columns, X=np.zeros_like(columns.X))
        r_v, (rows, columns) = columns.r, self.best.sides
        return rows, replace(columns, r=r_v)


def _warn(message):
    """Warn at the line that called the estimator, directly or through scikit-learn."""
    frame, level = inspect.currentframe().f_back, 2
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(LIBRARIES):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, AMPWarning, stacklevel=level)


def _selection(rows):
    """Return an index of rows that keeps their axis; None stands for all of them."""
    if rows is None:
        return slice(None)
    return [rows] if isinstance(rows, Integral) else rows


def _spread(values, index, size):
    """Return float64 rows that are `values` at `index` and zero elsewhere."""
    full = np.zeros((size, *values.shape[1:]))
    full[index] = values
    return full
