"""Names in, names out: tables that name their rows and columns, and files of words."""

import warnings
from pathlib import Path

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted

from ._extras import extra
from ._validation import AMPWarning


def named(X):
    """Return a table, and the names of its rows and of its columns.

    Parameters
    ----------
    X : array, sparse array, DataFrame, Corpus or AnnData

    Returns
    -------
    table : array, sparse array or DataFrame
    rows, columns : arrays of str, or None
        None where `X` has no names.

    Examples
    --------
    >>> named(np.eye(2))[1:]
    (None, None)
    """
    if hasattr(X, "counts") and hasattr(X, "vocabulary"):  # a Corpus
        table, rows, columns = X.counts, X.names, X.vocabulary
    elif hasattr(X, "obs_names") and hasattr(X, "var_names"):  # AnnData
        table, rows, columns = X.X, X.obs_names, X.var_names
    else:
        table, columns = X, getattr(X, "columns", None)
        rows = None if columns is None else getattr(X, "index", None)
    both = (None if x is None else np.asarray(x).astype(str) for x in (rows, columns))
    return table, *both


class Names(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What `AMPEmbedding` knows of names: frames, files, and versions of pickles."""

    embedding_: np.ndarray
    components_: np.ndarray
    row_bias_: np.ndarray
    column_bias_: np.ndarray
    row_names_: np.ndarray | None
    column_names_: np.ndarray | None
    _counts: tuple  # of the rows and of the columns

    def frames(self, rows=None, columns=None):
        """Return the embeddings of rows and of columns as DataFrames, with their names.

        Parameters
        ----------
        rows, columns : sequences of str (m,), (n,), optional
            Names, such as a vectoriser's `get_feature_names_out()`; without them, those
            of the table that was fitted, or numbers.

        Returns
        -------
        rows, columns : pandas.DataFrame
            A line for each row, or column: its embedding, its bias factor and its
            number of counts.

        Raises
        ------
        ValueError
            For another number of names.

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
        parts = (
            (self.embedding_, self.components_.T),
            (self.row_bias_, self.column_bias_),
            self._counts,
            (rows, columns),
            (self.row_names_, self.column_names_),
        )
        found = []
        for X, bias, counts, given, known in zip(*parts, strict=True):
            index = known if given is None else np.asarray(given)
            if index is not None and index.shape != (len(X),):
                raise ValueError(f"{len(X)} names are needed, got shape {index.shape}")
            frame = pd.DataFrame(X, index, self.get_feature_names_out())
            found.append(frame.assign(bias=bias, counts=counts))
        return tuple(found)

    def to_word2vec(self, path, columns=None):
        """Write the embeddings of the columns in the text format of word2vec.

        `gensim.models.KeyedVectors.load_word2vec_format(path)` reads it. Columns
        without counts are left out; spaces in names become underscores.

        Parameters
        ----------
        path : path
        columns : sequence of str (n,), optional
            As for `frames`.
        """
        words = self._embedded_columns(columns)
        lines = [f"{len(words)} {words.shape[1]}"]
        for name, x in zip(words.index, words.to_numpy(), strict=True):
            name = "_".join(str(name).split())
            lines.append(" ".join([name, *map(repr, x.tolist())]))
        Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")

    def to_projector(self, folder, columns=None):
        """Write the columns as TensorFlow's embedding projector reads them.

        That is two tables, `vectors.tsv` and `metadata.tsv`, in a folder.

        Parameters
        ----------
        folder : path
            Made if it is not there.
        columns : sequence of str (n,), optional
            As for `frames`.
        """
        folder, words = Path(folder), self._embedded_columns(columns)
        folder.mkdir(parents=True, exist_ok=True)
        words.to_csv(folder / "vectors.tsv", sep="\t", header=False, index=False)
        words.index.to_frame().to_csv(
            folder / "metadata.tsv", sep="\t", header=False, index=False
        )

    def _embedded_columns(self, columns):
        words = self.frames(columns=columns)[1]
        return words.loc[words["counts"] > 0, list(self.get_feature_names_out())]

    def __getstate__(self):
        from . import __version__

        return dict(super().__getstate__(), _version=__version__)

    def __setstate__(self, state):
        from . import __version__

        version = state.pop("_version", "an older one")
        if version != __version__:
            warnings.warn(
                f"pickled by version {version} of amptutorial, read by {__version__}: "
                "fit again if results look wrong",
                AMPWarning,
                stacklevel=2,
            )
        super().__setstate__(state)
