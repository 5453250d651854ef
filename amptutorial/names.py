"""Names in, names out: tables that name their rows and columns, and files of words."""

import csv
from pathlib import Path

import numpy as np


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


def names_of(number, given, known):
    """Return names for so many rows or columns: those given, or known, or numbers.

    Parameters
    ----------
    number : int
    given, known : sequences of str (number,), or None

    Returns
    -------
    array of str (number,), or range

    Raises
    ------
    ValueError
        For another number of names.

    Examples
    --------
    >>> names_of(2, None, None), names_of(1, None, np.array(["red"]))
    (range(0, 2), array(['red'], dtype='<U3'))
    """
    names = known if given is None else np.asarray(given)
    if names is None:
        return range(number)
    if names.shape != (number,):
        raise ValueError(f"{number} names are needed, got shape {names.shape}")
    return names


def write_word2vec(path, names, X):
    """Write named rows in the text format of word2vec; spaces become underscores.

    Parameters
    ----------
    path : path
    names : sequence (N,)
    X : array (N, d)

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
    lines = [f"{len(X)} {X.shape[1]}"]
    for name, x in zip(names, X.tolist(), strict=True):
        lines.append(" ".join(["_".join(str(name).split()), *map(repr, x)]))
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_projector(folder, names, X):
    """Write named rows as TensorFlow's embedding projector reads them.

    Parameters
    ----------
    folder : path
        Of `vectors.tsv` and `metadata.tsv`; made if it is not there.
    names : sequence (N,)
    X : array (N, d)

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_projector(folder, ["red", "car"], np.array([[0.5, 2.0], [1.0, 0.0]]))
    >>> (folder / "metadata.tsv").read_text().split()
    ['red', 'car']
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("vectors", X.tolist()), ("metadata", ([x] for x in names))):
        with open(folder / f"{name}.tsv", "w", encoding="utf-8", newline="") as file:
            csv.writer(file, "excel-tab", lineterminator="\n").writerows(rows)
