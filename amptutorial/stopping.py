"""When an iteration on real counts should stop: as soon as hidden pairs say so."""

import numpy as np

from ._validation import check_finite
from .poisson import exact, fit_margins
from .reexpansion import scaled_rows

AT_LEAST = 10  # iterations that AMP gets before it may be stopped


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


class Chosen:
    """The iterate that predicts hidden pairs best, of all that have been judged.

    Parameters
    ----------
    held_out : HeldOut
        The hidden pairs, and the margins of the counts that were seen.
    tol : float
        For `Patience`, which says when to stop.

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

    sides, gain, error, k = None, 0.0, 0.0, 0

    def __init__(self, held_out, tol):
        self.patience = Patience(held_out.entropy(), tol)
        self.r_v = held_out.columns

    def judge(self, rows, columns, held_out, sampler=exact):
        """Judge one more iterate, two `Side`; return whether it is the last.

        The biases are refitted to the counts seen, whatever the embedding is fitted to.

        Raises
        ------
        FloatingPointError
            If the gain is not finite.
        """
        W, margins = (
            scaled_rows(columns, len(rows.X)),
            (held_out.rows, held_out.columns),
        )
        r_u, self.r_v = fit_margins(*margins, rows.X, W, self.r_v, sampler)
        log_ratios = held_out.log_ratios(rows.X, columns.X, r_u, self.r_v)
        gain = held_out.mean(log_ratios)
        check_finite(heldout_gain=gain)
        self.patience.record(gain)
        if gain > self.gain:
            self.sides, self.gain, self.k = (rows, columns), gain, self.patience.k
            self.error = held_out.standard_error(log_ratios)
        return self.patience.exhausted
