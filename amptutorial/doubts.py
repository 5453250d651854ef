"""What a table is not: reasons to doubt that its entries are counts of events.

`AMPEmbedding.fit` warns of each. A table that the model is wrong for looks like one
that it is right for, and an embedding comes out all the same.
"""

import numpy as np

from .bias import margins, without_gaps
from .channels import are_ones

FREQUENT = 0.3  # counts expected of a pair that can have one at most
# the share of counts of one, from which on zeros should occur too; where more than
# half of a table is NaN, no zero at all is told in any case
ONES = 0.05
FEWEST, MOST = 20, 500  # columns of which some may force each other
FEW = 4  # rows or columns, in fewer of which chance does much
RATES_ADD_UP_TO = 1000  # at least, where rates are scaled to the same total


def doubts(Z, law=False):
    """Yield what is doubtful about a table of counts, each as a sentence.

    Parameters
    ----------
    Z : csr_array (m, n)
        Without empty rows or columns; NaN where a pair was not observed.
    law : bool
        Whether zeros and ones are fitted by their law.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> list(doubts(sp.csr_array([[1.0, 2.0], [3.0, 0.0]])))
    []
    >>> Z = np.array([[1.0, 2, 0], [3, 0, 1], [0, 5, 1], [2, 2, 2]])
    >>> for doubt in doubts(sp.csr_array(np.column_stack([Z, Z.sum(axis=1)]))):
    ...     print(doubt)
    column 3 is the sum of the others: leave out totals
    """
    observed, gaps = without_gaps(Z)
    rows, columns = margins(observed)
    yield from _sums_and_numbers("column", observed.tocsc(), columns, rows)
    yield from _sums_and_numbers("row", observed.T.tocsc(), rows, columns)
    level, spread = rows.mean(), np.ptp(rows)
    if len(rows) >= FEW and level >= RATES_ADD_UP_TO and spread < 0.5 * np.sqrt(level):
        how = "pass the counts themselves, whose errors are others"
        yield f"all rows add up to {level:.3g}: if they were scaled to one total, {how}"
    ones = (observed.data == 1).sum()
    full = gaps is not None and observed.nnz + gaps.nnz == len(rows) * len(columns)
    if full and (ones > ONES * observed.nnz or gaps.nnz > observed.nnz):
        what = "NaN is a pair that was not observed, and is left out"
        yield f"X has NaN and no zero. {what}: where nothing happened, fillna(0)"
    most, once = rows.max() * columns.max() / rows.sum(), are_ones(observed)
    if once and not law and most > FREQUENT:
        what = f"taken for Poisson counts of up to {most:.2g}"
        why = "associations of frequent pairs are understated"
        how = "channel='auto' takes their law in tables of up to 67 million pairs"
        yield f"X holds zeros and ones, {what}: {why}. {how}"
    if gaps is None and not once:
        yield from _forced("columns", observed)
        yield from _forced("rows", observed.T.tocsr())


def _forced(word, Z):
    """Yield whether counts of columns force each other.

    Of events that come by themselves, sums of frequent columns, whatever their signs
    and weights, scatter like Poisson counts or more: the eigenvalues of the covariance
    are above the lower edge of Marchenko and Pastur's law. Columns that scatter less by
    themselves, as trials do, are measured by their own variance. The sums of the rows
    are counted, and scatter less.
    """
    rows, columns = margins(Z)
    k = int(min(len(columns), rows.sum() ** 2 / (2 * rows @ rows), MOST))
    some = np.argsort(-columns)[:k]
    # of how many rows a column has its counts: those of few rows are no sample
    again = Z.multiply(Z).sum(axis=0) - columns
    some = some[columns[some] ** 2 >= k * again[some]]
    k = len(some)
    if k < FEWEST:
        return
    c, X = columns[some], Z[:, some]
    cross, root = np.outer(rows @ X, c / rows.sum()), np.sqrt(c)
    square = rows @ rows / rows.sum() ** 2
    residual = (X.T @ X).toarray() - cross - cross.T + square * np.outer(c, c)
    root /= np.linalg.norm(root)
    counted = np.eye(k) - np.outer(root, root)
    scale = np.sqrt(np.minimum(c, np.maximum(np.diag(residual), 1e-9 * c)))
    covariance = counted @ (residual / np.outer(scale, scale)) @ counted
    values, vectors = np.linalg.eigh(covariance + np.outer(root, root))
    edge = (1 - np.sqrt(k * (rows @ rows)) / rows.sum()) ** 2
    if values[0] < edge / 4:
        i, j = some[np.argsort(-np.abs(vectors[:, 0]))[:2]]
        which = f"counts of {word} decide one another, such as those of {i} and {j}"
        why = "parts that overlap, copies or sums gain without any embedding"
        yield f"{which}: {why}. Count each event once"


def _sums_and_numbers(word, Z, sums, others):
    """Yield which columns are no counts of their own, given the sums of both sides."""
    m = len(others)
    if m < FEW:
        return
    numbers = np.arange(m), np.arange(1, m + 1)
    known = [sums.sum() / 2, *(each.sum() for each in numbers)]
    for k in np.flatnonzero(np.isin(sums, known)):
        column = Z[:, [k]].toarray()[:, 0]
        if len(sums) >= FEW and np.array_equal(2 * column, others):
            yield f"{word} {k} is the sum of the others: leave out totals"
        if any(np.array_equal(column, each) for each in numbers):
            yield f"{word} {k} holds the numbers from {column[0]:.0f} on: leave it out"
