"""Names in, names out: tables that name their rows and columns, and files of words."""

import re
from collections.abc import Iterable, KeysView, Mapping, Set
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np

from ._files import compressed, write_atomically


class NamedCounts:
    """Counts with the names of their rows and columns: an `amptutorial.corpus.Corpus`.

    What takes counts asks for this class and not for attributes, because the columns of
    a DataFrame are attributes, too.
    """

    counts: Any
    names: Any
    vocabulary: Any


def named(X):
    """Return a table, and the names of its rows and of its columns.

    Parameters
    ----------
    X : array, sparse array, DataFrame, Corpus or AnnData

    Returns
    -------
    table : array, sparse array or DataFrame
    rows, columns : pandas.Index, array or list, or None
        As they are in `X`; None where it has no names.

    Raises
    ------
    TypeError
        For a table that is still to be computed.
    ValueError
        For an AnnData without X.

    Examples
    --------
    >>> named(np.eye(2))[1:]
    (None, None)
    """
    kind, rows, columns = type(X), None, None
    if isinstance(X, NamedCounts):
        X, rows, columns = X.counts, X.names, X.vocabulary
    elif is_frame(X):
        if hasattr(kind, "collect") and not hasattr(kind, "__array__"):
            raise TypeError(f"a {kind.__name__} holds no counts yet: pass X.collect()")
        rows = X.index if hasattr(kind, "index") else None
        # those of pyarrow.Table.columns are data
        columns = X.column_names if hasattr(kind, "column_names") else X.columns
    elif all(hasattr(X, name) for name in ("X", "obs_names", "var_names")):  # AnnData
        X, rows, columns = X.X, X.obs_names, X.var_names
        if X is None:
            how = "put the counts there, from adata.layers or adata.raw"
            raise ValueError(f"X of the AnnData is None: {how}")
    return X, _kept(rows), _kept(columns)


def _kept(names):
    """Return names that stay as they are, whatever becomes of the table."""
    if names is None or is_index(names) or isinstance(names, np.ndarray):
        return copy(names)
    return list(names)


def is_frame(X):
    """Return whether `X` is a DataFrame, of pandas or of another library.

    Examples
    --------
    >>> is_frame(np.eye(2))
    False
    """
    return hasattr(type(X), "columns")


def is_index(names):
    """Return whether `names` are the index of a DataFrame.

    Examples
    --------
    >>> is_index(["red", "car"])
    False
    """
    return hasattr(type(names), "get_indexer")


def check_in_order(names, name):
    """Return `names` if they have an order, and one axis.

    Raises
    ------
    TypeError
        For a set, a dictionary, a text or a table.

    Examples
    --------
    >>> check_in_order(["red", "car"], "vocabulary")
    ['red', 'car']
    """
    has_no_order = isinstance(names, str | bytes | Set | Mapping)
    has_no_order = has_no_order and not isinstance(names, KeysView)
    is_flat = isinstance(names, Iterable) and getattr(names, "ndim", 1) == 1
    if has_no_order or not is_flat:
        kind, wanted = type(names).__name__, "a sequence of names in their order"
        how = "of a vectoriser, get_feature_names_out()"
        raise TypeError(f"{name} is of type {kind}; {wanted} is needed: {how}")
    return names


def names_of(number, given, known):
    """Return names for so many rows or columns: those given, or known, or numbers.

    Parameters
    ----------
    number : int
    given, known : sequences (number,), or None
        Names of any type; an index stays one.

    Returns
    -------
    pandas.Index, array, list or range (number,)

    Raises
    ------
    TypeError
        For names that have no order.
    ValueError
        For another number of names.

    Examples
    --------
    >>> names_of(2, None, None), names_of(1, None, ["red"]), names_of(1, [3], ["red"])
    (range(0, 2), ['red'], [3])
    """
    names = known if given is None else check_in_order(given, "names")
    if names is None:
        return range(number)
    names = names if hasattr(names, "dtype") else list(names)
    if len(names) != number:
        raise ValueError(f"{number} names are needed, got {len(names)}")
    return names


def coordinates(X):
    """Return the coordinates in a frame of `AMPEmbedding.frames`; all else as it is.

    Raises
    ------
    ValueError
        For a frame with biases or counts, and no numbered columns.

    Examples
    --------
    >>> coordinates(np.eye(1))
    array([[1.]])
    """
    columns = list(map(str, X.columns)) if is_frame(X) else []
    others = [name for name in ("bias", "counts") if name in columns]
    if not others:
        return X
    numbered = [name for name in columns if re.search(r"\D\d+$", name)]
    if not numbered:
        found, lost = ", ".join(columns), " and ".join(others)
        how = f"pass those that are coordinates, without {lost}"
        raise ValueError(f"X has the columns {found}: {how}")
    return X[numbered]


def write_word2vec(path, names, X):
    """Write named rows in the text format of word2vec; spaces become underscores.

    Parameters
    ----------
    path : path
        Compressed, if it ends in .gz, .bz2 or .xz.
    names : sequence (N,)
    X : array (N, d)

    Raises
    ------
    ValueError
        For names that the file cannot hold, or another compression.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "words.txt"
    >>> write_word2vec(path, ["red wine", "car"], np.array([[0.5, 2.0], [1.0, 0.0]]))
    >>> print(path.read_text())
    2 2
    red_wine 0.5 2.0
    car 1.0 0.0
    <BLANKLINE>
    """
    words = _texts(names, lambda name: "_".join(name.split()))
    rows = ([word, *map(repr, x)] for word, x in zip(words, X.tolist(), strict=True))
    write_atomically(path, compressed(path, _lines([map(str, X.shape), *rows], " ")))


def write_projector(folder, names, X):
    """Write named rows as TensorFlow's embedding projector reads them.

    Parameters
    ----------
    folder : path
        Of `vectors.tsv` and `metadata.tsv`; made if it is not there.
    names : sequence (N,)
        Tabs and ends of lines in them become spaces.
    X : array (N, d)

    Raises
    ------
    ValueError
        For names that the file cannot hold.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_projector(folder, ["red", "car"], np.array([[0.5, 2.0], [1.0, 0.0]]))
    >>> (folder / "metadata.tsv").read_text().split()
    ['red', 'car']
    """
    # a mark of byte order at the beginning of a file is no part of its text
    words = _texts(
        names, lambda name: " ".join(re.sub("[\t\ufeff]", " ", name).splitlines())
    )
    metadata = _lines(([word] for word in words), "\t")
    vectors = _lines((map(repr, x) for x in X.tolist()), "\t")
    write_atomically(Path(folder, "vectors.tsv"), vectors)
    write_atomically(Path(folder, "metadata.tsv"), metadata)


def _lines(rows, separator):
    return "".join(separator.join(row) + "\n" for row in rows).encode()


def _texts(names, cleaned):
    """Return names as a file holds them: texts that are different and not empty."""
    known = {}
    for name in names:
        text = cleaned(str(name))
        if re.fullmatch(r"[\s\ufeff]*", text):
            raise ValueError(f"the name {name!r} is empty in the file: give another")
        if text in known:
            both = f"{known[text]!r} and {name!r} are both {text!r} in the file"
            raise ValueError(f"{both}: give names that differ")
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            raise ValueError(f"the name {name!r} holds half of a pair of surrogates")
        known[text] = name
    return list(known)
