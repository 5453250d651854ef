"""`AMPEmbedding`: from counts to embeddings behind scikit-learn's fit and transform."""

import sys
import warnings
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import compress
from typing import Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, check_non_negative, validate_data

from . import __version__
from . import _validation as door
from ._extras import extra
from .bias import drop_empty, without_gaps
from .biases import observed_biases
from .channels import CHANNELS
from .denoisers import Denoiser, GaussianPosterior
from .doubts import doubts
from .fitting import SETTLING, Progress, Report, denoisers_for, refine, search, settle
from .heldout import HeldOut
from .names import named, names_of, write_projector, write_word2vec
from .neighbours import principal_coordinates
from .reexpansion import new_side, posterior_covariances, prior_covariance, sample_of
from .sampling import Sampler
from .table import SWEEPS, Table, hidden_tenth

LARGEST_TOTAL = 1e30  # of all counts, that single precision iterates with
DOUBTFUL = 3  # standard errors: a gain within them is said to be within those of none
WORTH = 0.02  # nats per count: more than that may be hidden in too few counts

LIBRARIES = "amptutorial.", "sklearn."  # whose lines no warning is about


class AMPEmbedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Embed the rows and the columns of a matrix of counts by biased low-rank AMP.

    The model is Z_ij ~ Poisson(r_u_i r_v_j exp(u_i . v_j / sqrt(m))) (`eq:Pij`,
    `eq:z_ij`), or one of counts that come in bursts at these rates. `fit` hides a tenth
    of the pairs of a row and a column, iterates until it no longer predicts their
    counts better, and goes on from the best iterate with all counts.

    Parameters
    ----------
    n_components : int or "auto"
        Embedding dimension d, at most min(m, n). "auto" tries 1, 2, 3, 5, 10, 20, ...
        until two in a row do not predict hidden pairs better than the best one before
        by more than the standard error of the difference. The fit is that of the best.
    denoiser : {"posterior", "ridge", "lasso"}, Denoiser, or a pair of these
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
        Where all counts are zeros and ones it takes "presence", whose law is theirs.
    n_iter : int
        The largest number of iterations.
    tol : float
        An iteration must lower the held-out cross-entropy by more than this fraction of
        it. After the first ten, the first one that does not is the last.
    init : {"spectral", "random"}
    random_state : int, Generator, RandomState or None
    verbose : bool
        Whether a fit that takes more than five seconds shows a bar.
    callback : callable, optional
        Called with an `amptutorial.fitting.Progress` after each iteration; if it
        returns a true value, the fit goes on from the best iterate so far. So a long
        fit ends with a result; one that is interrupted (Ctrl-C), or fails, leaves the
        model as it was.

    Attributes
    ----------
    embedding_ : array (m, d)
        U. Rows without counts are zero.
    components_ : array (d, n)
        V^T. Columns without counts are zero: nothing was learned about them, and
        `transform` ignores them.
    row_bias_, column_bias_ : arrays (m,), (n,)
        Bias factors r_u, r_v, refitted to the counts given the embedding; zero where
        there are no counts. Of zeros and ones, to the events behind them.
    channel_ : str
        The channel used.
    n_iter_ : int
        Number of iterations of the estimate kept, the one that predicts hidden pairs
        best; zero, with an embedding of zeros, if none beats independence.
    heldout_gain_ : float
        By how many nats per count hidden pairs are predicted better than by
        independence (`amptutorial.heldout.heldout_gain`). Each half of them is judged
        by the iterate, channel and number of components that the other half would
        choose, so that a choice among what is nothing but noise gains nothing.
    heldout_error_ : float
        The standard error of `heldout_gain_`, two-way: over rows and over columns;
        infinite if all hidden counts are of one row or of one column.
    path_ : record array
        A `amptutorial.fitting.Progress` for each number of components tried: their
        gain, judged as `heldout_gain_`, its error, the seconds. `pandas.DataFrame`
        makes a table of it.
    row_names_, column_names_ : pandas.Index, array or list, or None
        Of the DataFrame, `Corpus` or AnnData that was fitted, as they are there.

    Raises
    ------
    ValueError
        For negative or infinite counts, less than one count in all or more than 1e30,
        or n_components above min(m, n).
    FloatingPointError
        If the iteration diverges.

    Warns
    -----
    AMPWarning
        If rows or columns have no counts, if counts are fractions or look like no
        counts of events (`amptutorial.doubts`), if the gain on hidden pairs is not
        three standard errors above that of independence, or if `n_iter` was too small
        to tell.

    Notes
    -----
    Whole pairs are hidden, because in real tables counts of one pair often come
    together, without any embedding: half of the repetitions of a word in a document
    tell of the other half. `heldout_gain_` counts no such repetition. It errs on the
    low side, as it is that of a fit without the hidden pairs. A hidden pair of which a
    tenth of a count or more is expected is a gap for the fit, like one that was not
    observed; others look empty (`amptutorial.heldout.split_pairs`). In tables of fewer
    than 400 pairs a tenth of the single counts is held out instead.

    NaN is a pair that was not observed. It tells nothing, and the information on a row
    or a column is that of the pairs that were.

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

    column_names_: Any

    def __init__(
        self,
        n_components: int | Literal["auto"] = 10,
        *,
        denoiser: str | Denoiser | tuple = "posterior",
        channel: Literal["auto", "counts", "damped"] = "auto",
        n_iter: int = 50,
        tol: float = 1e-4,
        init: str = "spectral",
        random_state: int | np.random.Generator | None = None,
        verbose: bool = True,
        callback: Callable | None = None,
    ):
        self.n_components = n_components
        self.denoiser = denoiser
        self.channel = channel
        self.n_iter = n_iter
        self.tol = tol
        self.init = init
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def fit(self, X, y=None) -> Self:
        """Fit the embedding to counts.

        Parameters
        ----------
        X : array, sparse array, DataFrame, Corpus or AnnData (m, n)
            Counts, the Z of the paper; NaN where a pair was not observed.
        y : None
            Ignored.

        Returns
        -------
        AMPEmbedding
            Itself.
        """
        self._check_parameters()
        with all_or_nothing(self):
            Z = self._check_counts(X, reset=True)
            shape = Z.shape
            Z, rows, columns = drop_empty(Z)
            decided = self._fit(Table(Z), rows, columns, shape)
            for doubt in doubts(Z, self._channel.saturates):
                _warn(doubt)
            self._warn_of_doubts(*decided)
        return self

    def _fit(self, table, row_index, column_index, shape):
        """Fit to a table without empty rows or columns; return what decided."""
        margins = table.margins()
        self._check_size(table.shape, margins[0].sum(), shape)
        rng, report = self._generator(), Report(self.verbose, self.callback)
        with report.bar:
            run, judged, path = search(table, self, rng, report)
            report.bar.set_description("AMPEmbedding, with all counts", False)
            fit = settle(table, run, *refine(table, run, rng), rng)

        rows, columns, self._sample, r_u, r_v = fit
        self._rows, self._columns = rows.in_double(), columns.in_double()
        self.heldout_gain_, self.heldout_error_, _ = judged
        self.path_ = np.rec.fromrecords([*map(tuple, path)], names=Progress._fields)
        self.n_iter_, self.channel_, self._channel = run.best.k, run.name, run.channel
        self._row_index, self._column_index = row_index, column_index
        self._totals, m = margins[1], len(row_index)
        if run.channel.saturates:
            self._totals = table.margins_under(run.channel)[1]
        observed, self._gaps = table.observed
        self._mean_row = table.rare(run.channel).total() / m
        # sqrt(m) in the model counts all rows, in the fit those with counts
        self._unit = (shape[0] / m) ** 0.25
        counted = observed.margins()
        of_rows = partial(_spread, index=row_index, size=shape[0])
        of_columns = partial(_spread, index=column_index, size=shape[1])
        self.embedding_ = of_rows(self._unit * rows.X)
        self.components_ = of_columns(self._unit * columns.X).T
        self.row_bias_, self.column_bias_ = of_rows(r_u), of_columns(r_v)
        self._counts = of_rows(counted[0]), of_columns(counted[1])
        return run.best, judged

    def fit_transform(self, X, y=None) -> np.ndarray:
        """Fit the embedding to the counts `X` (m, n) and return `embedding_`."""
        return self.fit(X).embedding_

    def transform(self, X) -> np.ndarray:
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
        if lost := np.sum((Z > 0).sum(axis=1) == 0):
            _warn(f"{lost} rows have no counts in the fitted columns: embedded as zero")
        return self._embedded(Z)[0]

    def _embedded(self, Z):
        """Return embeddings (m_new, d) of new rows of counts, as `_settled`."""
        given = self._rows.denoiser, self._mean_row, self._columns
        return self._settled(Table(Z), *given, self._sample)

    def _settled(self, table, denoiser, mean, other, sample):
        """Return embeddings of what is new given the fitted other side.

        Returns
        -------
        X : array (m_new, d)
        some : array of int
            Which rows have counts.
        side : Side
            Those that do.
        """
        m = len(self._row_index)
        totals = table.rare(self._channel).observed[0].totals
        some = np.flatnonzero(totals)
        X = np.zeros((len(totals), len(self.components_)))
        side = new_side(X[some], totals[some] / mean, denoiser)
        if some.size:
            sample = sample.copy()  # what is drawn here stays here
            given, table = (other, m, self._channel, sample), table[some]
            for _ in range(1 + sample.sampled):  # long rows have larger samples
                side = table.settled(side, *given)
            X[some] = self._unit * side.X
        return X, some, side

    def transform_columns(self, X) -> np.ndarray:
        """Embed new columns, given the fitted rows.

        Parameters
        ----------
        X : array or sparse array (m, n_new)
            Counts of new columns in the fitted rows.

        Returns
        -------
        array (d, n_new)
            As `components_`; zero for a column without counts in the fitted rows.

        Raises
        ------
        ValueError
            For invalid counts, or rows of another number or of other names.
        """
        check_is_fitted(self)
        table, names, _ = named(X)
        self._check_names("rows", names, self.row_names_)
        Z = sp.csc_array(door.check_counts(table, gaps=True, name="X"), dtype=float)
        found, known = Z.shape[0], len(self.embedding_)
        if found != known:
            raise ValueError(f"X has {found} rows, but the model was fitted to {known}")
        m, table = len(self._row_index), Table(Z[self._row_index].T.tocsr())
        V, ones = np.zeros((Z.shape[1], len(self.components_))), np.ones(Z.shape[1])
        sampler = Sampler(np.random.default_rng(0), SETTLING)
        sample = sample_of(new_side(V, ones, None), self._rows, m, sampler)
        return self._settled(table, self._columns.denoiser, m, self._rows, sample)[0].T

    def predict_rates(self, rows=None) -> np.ndarray:
        """Return the expected counts of fitted rows, or of new ones.

        Parameters
        ----------
        rows : slice, vector of int or bool, None, or counts (m_new, n)
            Which of the fitted rows; None for all of them, an array as large as the
            dense counts. A table is one of new rows, which are embedded by `transform`.

        Returns
        -------
        array (len(rows), n)
            r_u_i r_v_j exp(u_i . v_j / sqrt(m)). Its rows add up to those of the
            counts, over the pairs that were observed. Of zeros and ones: probabilities,
            1 - exp(-rate), whose sums are those of the counts within some per cent.
        """
        check_is_fitted(self)
        if _is_table(named(rows)[0]):
            Z = self._check_counts(rows, reset=False)[:, self._column_index]
            U, *_ = self._embedded(Z)
            return self._rates(U, self._row_biases(Z, U, *self._known_columns()))
        rows = _selection(rows)
        return self._rates(self.embedding_[rows], self.row_bias_[rows])

    def _known_columns(self):
        """Return the embeddings and the biases of the columns that have counts."""
        known = self._column_index
        return self.components_.T[known], self.column_bias_[known]

    def _row_biases(self, Z, U, V, r_v):
        """Return the biases of new rows with which the rates add up to their counts.

        Those of a law that saturates add up to the bursts expected.
        """
        m = len(self.embedding_)
        given = U, V / np.sqrt(m), r_v
        r_u, columns = observed_biases(Z, *given), new_side(V, r_v, None)

        def swept(r_u):
            sides = new_side(U, r_u, None), columns, m
            bursts = Table(Z).seen_bursts(self._channel, *sides)
            return observed_biases(bursts.Z, *given)

        for _ in range(SWEEPS * self._channel.saturates):
            # where most pairs have a one, sweeps are slow: Aitken's extrapolation
            first = swept(r_u)
            second = swept(first)
            with door.quiet():
                steps = np.nan_to_num(np.log([first / r_u, second / first]))
                shrunk = np.nan_to_num(steps[1] / steps[0]).clip(0, 0.99)
            r_u = second * np.exp(steps[1] * shrunk / (1 - shrunk))
        return r_u

    def _rates(self, U, r_u):
        rates = U @ self.components_
        # in place: this array may be the largest there is
        rates /= np.sqrt(len(self.embedding_))
        np.exp(rates, out=rates)
        rates *= r_u[:, None]
        rates *= self.column_bias_
        return self._channel.mean(rates)

    def score(self, X=None, y=None) -> float:
        """Return how well hidden pairs are predicted, in nats per count.

        So `GridSearchCV` and `cross_val_score` need no scorer: what they fit to some
        rows is judged by the others.

        Parameters
        ----------
        X : array or sparse array (m_new, n), optional
            Counts of rows that were not fitted. A tenth of their pairs, the same for
            every model, is hidden; the rows are embedded by the rest.
        y : None
            Ignored.

        Returns
        -------
        float
            The mean over the hidden counts of log(rate / rate under independence), the
            latter from the row's other counts and the columns of the fit. Without `X`,
            `heldout_gain_`.

        Raises
        ------
        ValueError
            As `transform`, or if no counts are left to embed or to hide.
        """
        return self.gain(X)[0]

    def gain(self, X=None) -> tuple[float, float]:
        """Return the `score` and its standard error, two-way as `heldout_error_`.

        Parameters
        ----------
        X : array or sparse array (m_new, n), optional
            As for `score`.

        Returns
        -------
        gain, error : float

        Raises
        ------
        ValueError
            As `score`.
        """
        check_is_fitted(self)
        if X is None:
            return self.heldout_gain_, self.heldout_error_
        Z, known = self._check_counts(X, reset=False), self._column_index
        Z = Z[drop_empty(Z)[1]]
        parts = hidden_tenth(Z, np.random.default_rng(0))
        kept, hidden = (part[:, known] for part in parts)
        totals, nothing = self._totals, [np.zeros((size, 1)) for size in kept.shape]
        rows = self._row_biases(kept, *nothing, totals) * totals.sum()
        totals = totals * (rows.sum() / totals.sum())
        pairs = HeldOut.of(rows, totals, hidden, without_gaps(kept)[1])
        pairs = replace(pairs, law=self._channel, total=np.nansum(kept.data))
        if not len(pairs.z):
            raise ValueError("X has too few counts: none of the hidden pairs has one")
        (U, *_), (V, r_v) = self._embedded(kept), self._known_columns()
        r_u = self._row_biases(kept, U, V, r_v)
        U *= np.sqrt(len(U) / len(self.embedding_))  # of which M has the root in it
        log_ratios = pairs.log_ratios(U, V, r_u, r_v)
        return pairs.mean(log_ratios), pairs.standard_error(log_ratios)

    def principal_coordinates(self):
        """Return coordinates of rows and of columns as in correspondence analysis.

        See `amptutorial.neighbours.principal_coordinates`.

        Returns
        -------
        rows, columns : arrays (m, d), (n, d)
        shares : array (d,)
            Of each coordinate in what they explain together, largest first.
        """
        check_is_fitted(self)
        given = self.embedding_, self.components_.T, self.row_bias_, self.column_bias_
        return principal_coordinates(*given)

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
        gaps, m, n = self._gaps, len(self.embedding_), self.n_features_in_
        C_u = self._spread(self._rows, self._columns, gaps, self._row_index, m)
        gaps = None if gaps is None else gaps.T.tocsr()  # read row by row
        return C_u, self._spread(self._columns, self._rows, gaps, self._column_index, n)

    def _spread(self, this, other, gaps, index, size):
        """Return posterior covariances at `index`, and those of the prior elsewhere."""
        if not isinstance(this.denoiser, GaussianPosterior):
            how = "fit with denoiser='posterior'"
            raise ValueError(f"only a Gaussian prior has posterior covariances: {how}")
        full = np.tile(prior_covariance(this), (size, 1, 1))
        given = len(self._row_index), gaps, self._channel
        full[index] = posterior_covariances(this, other, *given)
        return self._unit**2 * full

    def standard_errors(self, rows=None):
        """Return the standard errors of M_ij = u_i . v_j / sqrt(m).

        M_ij is known up to what the biases absorb: a constant for each row and each
        column.

        Parameters
        ----------
        rows : slice, array of int or bool, None, or counts (m_new, n)
            Which of the fitted rows; None for all of them. A table is one of new rows,
            which are embedded by `transform`.

        Returns
        -------
        array (len(rows), n)
        """
        (C_u, C_v), U, V = self.covariances(), self.embedding_, self.components_.T
        if _is_table(named(rows)[0]):
            Z = self._check_counts(rows, reset=False)[:, self._column_index]
            U, some, side = self._embedded(Z)
            given = self._columns, without_gaps(Z[some])[1], some, len(U)
            C_u = self._spread(side.in_double(), *given)
        else:
            U, C_u = (X[_selection(rows)] for X in (U, C_u))
        squares_u, squares_v = (X[:, :, None] * X[:, None] for X in (U, V))
        # u^T C_v u + v^T C_u v + tr(C_u C_v), each a sum over the entries of C
        variances = np.einsum("ikl,jkl->ij", squares_u + C_u, C_v, optimize=True)
        variances += np.einsum("ikl,jkl->ij", C_u, squares_v, optimize=True)
        variances /= len(self.embedding_)
        return np.sqrt(variances, out=variances)

    def frames(self, rows=None, columns=None):
        """Return the embeddings of rows and of columns as DataFrames, with their names.

        Parameters
        ----------
        rows, columns : sequences (m,), (n,), optional
            Names of any type, such as a vectoriser's `get_feature_names_out()`; without
            them, those of the table that was fitted, or numbers.

        Returns
        -------
        rows, columns : pandas.DataFrame
            A line for each row, or column: its embedding, its bias factor and its
            number of counts. The index of a DataFrame that was fitted is theirs.

        Raises
        ------
        TypeError, ValueError
            For names that have no order, or another number of names.

        Examples
        --------
        >>> from amptutorial import AMPEmbedding, corpus_from_texts
        >>> texts = ["red wine", "white wine", "red car", "white car"] * 9
        >>> corpus = corpus_from_texts([f"{k:b} {t}" for k, t in enumerate(texts)])
        >>> with warnings.catch_warnings(action="ignore"):
        ...     documents, words = AMPEmbedding(1, random_state=0).fit(corpus).frames()
        >>> words.index.tolist(), words.columns.tolist()
        (['car', 'red', 'white', 'wine'], ['ampembedding0', 'bias', 'counts'])
        """
        with extra("frames"):
            import pandas as pd

        check_is_fitted(self)
        U, V, axes = self.embedding_, self.components_.T, self.get_feature_names_out()
        rows = names_of(len(U), rows, self.row_names_)
        columns = names_of(len(V), columns, self.column_names_)
        parts = (U, V), (rows, columns), (self.row_bias_, self.column_bias_)
        return tuple(
            pd.DataFrame(X, names, axes).assign(bias=bias, counts=counts)
            for X, names, bias, counts in zip(*parts, self._counts, strict=True)
        )

    def to_word2vec(self, path, columns=None):
        """Write the embeddings of the columns in the text format of word2vec.

        `gensim.models.KeyedVectors.load_word2vec_format(path)` reads it. Columns
        without counts are left out; spaces in names become underscores.

        Parameters
        ----------
        path : path
            Compressed, if it ends in .gz, .bz2 or .xz. It is written all at once.
        columns : sequence (n,), optional
            As for `frames`.

        Raises
        ------
        TypeError, ValueError
            As `frames`; for names that are empty or equal in the file, or that UTF-8
            cannot hold; for another compression.
        """
        write_word2vec(path, *self._counted_columns(columns))

    def to_projector(self, folder, columns=None):
        """Write the columns as TensorFlow's embedding projector reads them.

        That is two tables, `vectors.tsv` and `metadata.tsv`, in a folder.

        Parameters
        ----------
        folder : path
            Made if it is not there.
        columns : sequence (n,), optional
            As for `frames`. Tabs and ends of lines in names become spaces.

        Raises
        ------
        TypeError, ValueError
            As `to_word2vec`.
        """
        write_projector(folder, *self._counted_columns(columns))

    def _counted_columns(self, columns):
        """Return the names and the embeddings of the columns that have counts."""
        check_is_fitted(self)
        V, some = self.components_.T, self._counts[1] > 0
        names = names_of(len(V), columns, self.column_names_)
        return list(compress(names, some)), V[some]

    def __getstate__(self):
        return dict(super().__getstate__(), _version=__version__)

    def __setstate__(self, state):
        version = state.pop("_version", "an older one")
        if version != __version__:
            read = f"read by {__version__}: fit again if results look wrong"
            _warn(f"pickled by version {version} of amptutorial, {read}")
        super().__setstate__(state)

    @property
    def _n_features_out(self):
        return len(self.components_)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.input_tags.allow_nan = True
        return tags

    def _check_parameters(self):
        d = self.n_components
        if not isinstance(d, str):
            door.check_integer(d, "n_components", minimum=1)
        elif d != "auto":
            raise ValueError(f'n_components must be an integer or "auto", got {d!r}')
        door.check_integer(self.n_iter, "n_iter", minimum=1)
        door.check_positive(self.tol, "tol", zero=True)
        door.check_choice(self.init, "init", ("spectral", "random"))
        door.check_choice(self.channel, "channel", ("auto", *CHANNELS))
        denoisers_for(self.denoiser, variance=1.0)

    def _check_counts(self, Z, *, reset):
        door.refuse_masked(Z, "X")
        Z, rows, columns = named(Z)
        # in the formats in which a pair may be stored twice: its counts are added after
        # they are float64, and cannot wrap
        given = {"accept_sparse": ("csr", "csc", "coo", "bsr"), "dtype": np.float64}
        given["ensure_all_finite"] = "allow-nan"
        if not reset and not hasattr(self, "feature_names_in_"):
            # before scikit-learn counts the columns, whose names it knows as texts only
            self._check_names("columns", columns, self.column_names_)
        try:
            Z = validate_data(self, Z, reset=reset, **given)
        except ValueError as error:
            if "convert string" not in str(error):
                raise
            raise ValueError(
                "X holds strings, and counts are expected. Texts: count their words "
                "first (CountVectorizer, corpus_from_texts). A long table of events: "
                "pandas.crosstab(frame.user, frame.item). A column of names: set_index"
            ) from None
        if reset:
            self.row_names_, self.column_names_ = rows, columns
        else:
            self._check_names("columns", columns, self.column_names_)
        # events may cancel: -1 is none once they are added
        Z = door.pairs_once(Z, "X") if sp.issparse(Z) else sp.csr_array(Z)
        check_non_negative(Z, "AMPEmbedding (counts are at least zero)")
        Z = sp.csr_array(door.check_counts(Z, gaps=True, name="X"))
        if (Z.data % 1 > 0).any():
            lost = "heldout_error_ and standard_errors() mean nothing"
            _warn(f"X holds fractions, not counts: of tf-idf, log1p or such, {lost}")
        return Z

    def _check_names(self, side, names, known):
        if names is None or known is None:
            return
        # as texts: a name may be NaN, which differs from itself
        here, fitted = (list(map(str, some)) for some in (names, known))
        if here != fitted:
            lost = sorted(set(fitted) - set(here))
            lacks = f"; it lacks {', '.join(lost[:5])}" if lost else ""
            other = f"{side} of other names, or in another order, than the fitted table"
            raise ValueError(f"X has {other}{lacks}")

    def _check_size(self, kept, total, shape):
        if not 1 <= total <= LARGEST_TOTAL:
            why = "too much for single precision: divide them all by the same number"
            if total < 1:
                why = "less than one count: pass numbers of occurrences, not shares"
            raise ValueError(f"the counts add up to {total:.1e}, {why}")
        if self.n_components != "auto" and self.n_components > min(kept):
            most = f"n_components={self.n_components} must be at most {min(kept)}"
            found = f"Z has {kept[0]} rows and {kept[1]} columns with counts"
            size = f"n_samples={shape[0]}, n_features={shape[1]}"
            raise ValueError(f"{most}: {found} ({size})")
        lost = zip(np.subtract(shape, kept), ("rows", "columns"), strict=True)
        if empty := " and ".join(f"{number} {word}" for number, word in lost if number):
            _warn(f"{empty} without counts: their embeddings and rates are zero")

    def _generator(self):
        """Return a generator for this fit; None means one with fresh entropy."""
        seed = self.random_state  # None is not NumPy's global generator
        if not (seed is None or isinstance(seed, np.random.Generator)):
            seed = check_random_state(seed).randint(2**31)
        return np.random.default_rng(seed)

    def _warn_of_doubts(self, best, judged):
        if best.patience.progress and best.patience.k >= self.n_iter:
            _warn(f"still improving after n_iter={self.n_iter} iterations: allow more")
        gain, error, errors = judged
        if errors >= DOUBTFUL:
            return
        if not np.isfinite(error):
            _warn("hidden counts of one row or one column cannot judge heldout_gain_")
            return
        most = max(gain, 0.0) + DOUBTFUL * error
        why = "too few to tell independent rows and columns from a gain of"
        if error and most <= WORTH:
            why = "enough to say: rows and columns are independent, but for a gain of"
        found = f"heldout_gain_ = {gain:.2g} +- {error:.2g}"
        zero = "zero" if best.k else "zero, and the embedding is zero"
        told = f"The hidden counts are {why} {most:.2g} nats a count at most"
        _warn(f"{found} is within three standard errors of {zero}. {told}")


@contextmanager
def all_or_nothing(model):
    """Return a context in which a fit that does not end leaves the model as it was."""
    before = dict(vars(model))
    try:
        yield
    except BaseException as error:
        model.__dict__ = before
        if isinstance(error, KeyboardInterrupt):
            how = "give the model a callback that returns True"
            error.add_note(f"The model is as before. To keep the best iterate, {how}")
        raise


def _warn(message):
    """Warn at the line that called the estimator, directly or through scikit-learn."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(LIBRARIES):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, door.AMPWarning, stacklevel=level)


def _selection(rows):
    """Return an index of rows that keeps their axis; None stands for all of them."""
    if rows is None or isinstance(rows, slice):
        return rows or slice(None)
    index = np.atleast_1d(rows)
    if index.size and index.dtype.kind not in "biu":
        raise ValueError("rows must be a slice or a vector of row numbers")
    return index if index.size else slice(0)


def _is_table(rows):
    return sp.issparse(rows) or np.ndim(rows) > 1


def _spread(values, index, size):
    """Return float64 rows that are `values` at `index` and zero elsewhere."""
    full = np.zeros((size, *values.shape[1:]))
    full[index] = values
    return full
