"""When an iteration on real counts should stop: as soon as hidden pairs say so."""

from dataclasses import dataclass
from itertools import islice

import numpy as np
import scipy.sparse as sp

from ._counts import split_pairs, sums
from ._validation import check_finite
from .heldout import HeldOut
from .poisson import fit_margins
from .reexpansion import Side, scaled_rows

VALIDATION = 0.1  # the fraction of the pairs that decides when to stop
AT_LEAST = 10  # iterations that AMP gets before it may be stopped


def set_aside(Z, rng):
    """Hide a tenth of the pairs, and return what is seen and what is held out.

    Where most pairs are empty, a hidden pair is left out of what is seen, and reads as
    a pair without counts (`amptutorial.heldout.split_pairs`). Where more than a tenth
    of the pairs have counts, a hidden zero would be an outlier: there all pairs, empty
    ones too, are hidden by the same coin, and marked.

    Parameters
    ----------
    Z : csr_array (m, n)
        Counts.
    rng : numpy.random.Generator

    Returns
    -------
    seen : csr_array (m, n)
        Counts, and -1 for hidden pairs that are marked: see
        `amptutorial.channels.WithGaps`.
    held_out : HeldOut

    Raises
    ------
    ValueError
        If no count is left.
    """
    seen, kept, held_out = hide_pairs(Z, rng, marked=is_crowded(Z))
    return seen, checked_held_out(*sums(kept), held_out)


def is_crowded(Z):
    """Return whether a hidden zero of this table would be an outlier."""
    return Z.nnz > VALIDATION * np.prod(Z.shape)


def hide_pairs(Z, rng, marked):
    """Hide a tenth of the pairs: of those with counts, or of all if they are `marked`.

    Returns
    -------
    seen, kept, held_out : csr_arrays (m, n)
        `seen` as from `set_aside`; the others add up to `Z`.
    """
    if not marked:
        kept, held_out = split_pairs(Z, VALIDATION, rng)
        return kept, kept, held_out
    dense, hidden = Z.toarray(), rng.random(Z.shape) < VALIDATION
    tables = (-1.0, dense), (0, dense), (dense, 0)
    return tuple(sp.csr_array(np.where(hidden, *table)) for table in tables)


def checked_held_out(rows, columns, held_out):
    """Return the `HeldOut`, if some counts were kept."""
    if not rows.any():
        raise ValueError("too few counts: none is left when a tenth is set aside")
    return HeldOut.of_sums(rows, columns, held_out)


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


@dataclass
class Chosen:
    """The iterate that predicts hidden pairs best.

    Attributes
    ----------
    patience : Patience
        Which has counted the iterates judged so far.
    r_v : array (n,)
        Biases of the columns, refitted to the last iterate.
    sides : pair of Side, or None
        None if no iterate beats independence.
    gain : float
        In nats per held-out count; zero for independence.
    error : float
        The two-way standard error of the gain.
    k : int
        The number of the iterate, from 1 on; 0 for independence.
    """

    patience: Patience
    r_v: np.ndarray
    sides: tuple[Side, Side] | None = None
    gain: float = 0.0
    error: float = 0.0
    k: int = 0

    @property
    def improving(self):
        """Whether the last iteration still made progress."""
        return self.patience.progress

    @classmethod
    def at_first(cls, held_out, tol):
        """Return independence, before any iterate is judged by a `HeldOut`."""
        return cls(Patience(held_out.entropy(), tol), held_out.columns)


def best_iterate(iterates, held_out, tol, rng=None, best=None):
    """Return the iterate that predicts hidden counts best, if any beats independence.

    The biases are refitted to the counts seen, whatever the embedding is fitted to.

    Parameters
    ----------
    iterates : iterable of pairs of Side
        As from `amptutorial.reexpansion.iterated_sides`.
    held_out : HeldOut
    tol : float
        For `Patience`, which ends the iteration.
    rng : numpy.random.Generator, optional
        As for `amptutorial.sampling.Columns`.
    best : Chosen, optional
        Of the first iterates, which are then passed over; the others change it.

    Returns
    -------
    Chosen

    Raises
    ------
    FloatingPointError
        If a gain is not finite.
    """
    best = best or Chosen.at_first(held_out, tol)
    patience, margins = best.patience, (held_out.rows, held_out.columns)
    for rows, columns in islice(iterates, patience.k, None):
        W = scaled_rows(columns, len(rows.X))
        r_u, best.r_v = fit_margins(*margins, rows.X, W, best.r_v, rng)
        log_ratios = held_out.log_ratios(rows.X, columns.X, r_u, best.r_v)
        gain = held_out.mean(log_ratios)
        check_finite(heldout_gain=gain)
        patience.record(gain)
        if gain > best.gain:
            best.sides, best.gain, best.k = (rows, columns), gain, patience.k
            best.error = held_out.standard_error(log_ratios)
        if patience.exhausted:
            break
    return best
