"""The phases of a fit of `amptutorial.AMPEmbedding`: `search`, `refine`, `settle`.

The search iterates while a tenth of the pairs is hidden. All that it fits is judged by
the same hidden pairs: every iterate, both channels, and every number of components.
The best estimate is refined with all counts; then each row settles, with the columns
held fixed.
"""

from dataclasses import replace
from itertools import takewhile
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from . import _validation as door
from ._progress import LATE, progress
from .bias import bias_of_margins
from .biases import Gaps, biases_of_margins, margin_biases
from .denoisers import GaussianPosterior, Lasso, Ridge, as_pair, check_is_denoiser
from .heldout import Chosen, Judged
from .reexpansion import balanced_sides, next_sides, sample_of, starting_sides
from .sampling import Sampler
from .table import SWEEPS, VALIDATION, independent_sides

AUTOMATIC = ("counts", "damped")
SIZES = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1000)  # tried by "auto"
COMPARED_AFTER = 3  # iterations: a channel that is far behind then is given up
FAR = 3  # paired standard errors
GIVEN_UP = 2  # numbers of components that are no better than one before
REFINEMENTS = 5  # iterations with all counts, from the best estimate on
# sample-size multipliers of the phases: while an estimate moves, errors average out
SEARCHING, REFINING, SETTLING = 0.5, 1.5, 2

# for priors under which an entry of U or V has the given variance
DENOISERS = {
    "posterior": lambda variance: GaussianPosterior(variance, learn=True),
    "ridge": lambda variance: Ridge(1 / variance),
    "lasso": lambda variance: Lasso(np.sqrt(2 / variance)),  # of a Laplace prior
}


def denoisers_for(chosen, variance):
    """Return the denoisers of the rows and of the columns, given them or their names.

    Parameters
    ----------
    chosen : str, Denoiser, or a pair of these
        As for `amptutorial.AMPEmbedding`.
    variance : float
        Of each entry of U and V.

    Raises
    ------
    TypeError, ValueError
        For a name that is not known, or as `amptutorial.denoisers.as_pair`.

    Examples
    --------
    >>> denoisers_for(("ridge", Lasso(3.0)), variance=0.5)
    (Ridge(2), Lasso(3))
    """

    def made(one, name):
        if isinstance(one, str):
            return DENOISERS[door.check_choice(one, name, DENOISERS)](variance)
        return check_is_denoiser(one, name)

    return as_pair(chosen, made)


class Progress(NamedTuple):
    """How far a fit has come: the best iterate so far with so many components.

    Attributes
    ----------
    n_components : int
    channel : str
    n_iter : int
        Iterations so far.
    gain, error : float
        Of the best of them on hidden pairs, in nats per count.
    seconds : float
        Since the fit began.
    """

    n_components: int
    channel: str
    n_iter: int
    gain: float
    error: float
    seconds: float


class Report:
    """Tells of the progress of a fit: by a bar after five seconds, and a callback."""

    def __init__(self, verbose, callback):
        hidden = {} if verbose else {"disable": True}
        self.bar = progress(desc="AMPEmbedding", unit=" iterations", **LATE, **hidden)
        self.callback = door.check_callback(callback, "callback")
        self.stopped, self.begun = False, perf_counter()

    def __call__(self, run):
        """Tell of an iteration; return whether the callback asks for an end."""
        found = f"d = {run.d}, gain {run.best.gain:.3f} +- {run.best.error:.3f}"
        self.bar.set_postfix_str(found, False)
        self.bar.update()
        self.stopped = bool(self.callback(self.progress(run))) or self.stopped
        return self.stopped

    def progress(self, run):
        """Return the `Progress` of a run."""
        best, seconds = run.best, perf_counter() - self.begun
        found = run.d, run.name, best.patience.k, best.gain, best.error
        return Progress(*found, seconds)


class Run:
    """The iterations of one channel, while a tenth of the pairs is hidden.

    All runs with the same seed start alike, and are judged by the same hidden pairs.

    Parameters
    ----------
    table, seen : amptutorial.table.Table
        With all pairs, and without those that are hidden.
    held_out : amptutorial.heldout.HeldOut
    model : AMPEmbedding
        Its parameters.
    seed : int
    report : Report
    name : str
        Of the channel.
    d : int

    Attributes
    ----------
    channel : Channel
    start : pair of Side
        With the counted biases of all pairs.
    state : tuple
        Both sides, what the rows become in the next iteration, and the `Chosen`.
    """

    def __init__(self, table, seen, held_out, model, seed, report, name, d):
        self.name, self.d, self.channel = name, d, table.channel(name)
        self.seen, self.held_out, self.report = seen, held_out, report
        self.rng = rng = np.random.default_rng(seed)
        self.searching, self.judging = Sampler(rng, SEARCHING), Sampler(rng)
        m = table.shape[0]
        r_u, r_v = bias_of_margins(*table.information(self.channel))
        nothing = independent_sides(*seen.margins_under(self.channel))
        bursts = seen.bursts(self.channel, *nothing, m)
        V, variance = bursts.leading_directions(d, rng)
        # of the entries of U and V, such that M_ij has the variance found
        variance = np.sqrt(variance * m / d)
        if model.init == "random":
            V = rng.standard_normal(V.shape)
        denoiser = denoisers_for(model.denoiser, variance)
        sides = starting_sides(r_u, r_v, denoiser, V, variance)
        # the information is that of all pairs, the rates are those of what is seen
        both = zip(sides, nothing, strict=True)
        rows, columns = (replace(side, bias=other.bias) for side, other in both)
        self.start = rows, columns
        fewer = replace(columns, r=(1 - VALIDATION) * r_v)
        self.state = rows, fewer, None, Chosen(held_out, model.tol)

    @property
    def best(self):
        """The iterates judged so far."""
        return self.state[-1]

    def go(self, table, number):
        """Iterate, so many times at most."""
        self.state = table.repeat(self._step, self.state, number, self.rng)

    def _step(self, rows, columns, ahead, best):
        """Return the state after one more iteration, and whether it is the last."""
        seen, held_out, law = self.seen, self.held_out, self.channel
        m = len(rows.X)
        bursts = seen.bursts(law, rows, columns, m)
        sides = next_sides(bursts, rows, columns, ahead, m, self.searching)
        sums = None
        if law.saturates:
            bursts = seen.seen_bursts(law, *sides[:2], m)
            sums = bursts.observed[0].margins()
        last = best.judge(*sides[:2], held_out, self.judging, sums)
        return (*sides, best), self.report(self) or last


def search(table, model, rng, report):
    """Return the `Run` that predicts hidden pairs best, and what they say of it.

    Parameters
    ----------
    table : amptutorial.table.Table
    model : AMPEmbedding
        Its parameters.
    rng : numpy.random.Generator
    report : Report

    Returns
    -------
    run : Run
    judged : amptutorial.heldout.Judged
        By hidden pairs that did not choose it.
    path : list of Progress
        By the number of components.
    """
    seen, held_out = table.hide(rng)
    names = [model.channel]
    if model.channel == "auto":  # without repetitions both are the same
        names = list(AUTOMATIC if table.largest() > 1 else AUTOMATIC[:1])
        names = ["presence"] if table.channel("presence").saturates else names
    law = table.channel(names[0])
    if law.saturates:
        rows, columns = seen.margins_under(law)
        total = seen.total()
        held_out = replace(held_out, rows=rows, columns=columns, law=law, total=total)
    given = table, seen, held_out, model, int(rng.integers(2**31)), report
    auto, path, halves = model.n_components == "auto", [], []
    best: Any = None
    sizes = takewhile(lambda d: d <= min(table.shape), SIZES)
    for d in sizes if auto else (model.n_components,):
        started = [Run(*given, name, d) for name in names]
        runs = _raced(table, started, model.n_iter, held_out)
        run = max(runs, key=lambda run: run.best.gain)
        judges = [run.best.halves for run in started]
        gain, error, _ = held_out.judged(judges)
        path.append(report.progress(run)._replace(gain=gain, error=error))
        halves += judges
        if not best or _lead(held_out, run, best) > 1:
            best, behind, names = run, 0, [run.name for run in runs]
        else:
            behind += 1
        if report.stopped or not best.best.k or behind == GIVEN_UP:
            break
    judged = held_out.judged(halves)
    if not best.best.k:
        judged = Judged(0.0, best.best.error, 0.0)
    return best, judged, path


def _lead(held_out, run, other):
    """Return by how many paired standard errors a run is ahead of another."""
    ahead = np.zeros(len(held_out.z)) + run.best.log_ratios - other.best.log_ratios
    return held_out.mean(ahead) / (held_out.standard_error(ahead) or 1)


def _raced(table, runs, n_iter, held_out):
    """Return those of runs, iterated side by side, that are not far behind another."""
    stages = [n_iter]
    if len(runs) > 1 and n_iter > COMPARED_AFTER:
        stages = [COMPARED_AFTER, n_iter - COMPARED_AFTER]
    for number in stages:
        for run in runs:
            run.go(table, number)
        leads = [[_lead(held_out, other, run) for other in runs] for run in runs]
        runs = [run for run, each in zip(runs, leads, strict=True) if max(each) <= FAR]
    return runs


def refine(table, run, rng):
    """Return both sides after some iterations with all counts, from the best iterate.

    Parameters
    ----------
    table : amptutorial.table.Table
    run : Run
        If none of its iterates beats independence, both sides are zero.
    rng : numpy.random.Generator

    Returns
    -------
    rows, columns : Side
    """
    rows, columns = run.start
    if not run.best.k:
        return rows, replace(columns, X=np.zeros_like(columns.X))
    r_v, (rows, columns) = columns.r, run.best.sides
    columns = replace(columns, r=r_v)  # counted in all pairs again
    m, sampler = table.shape[0], Sampler(rng, REFINING)

    def step(rows, columns, ahead):
        bursts = table.bursts(run.channel, rows, columns, m)
        return next_sides(bursts, rows, columns, ahead, m, sampler), False

    return table.repeat(step, (rows, columns, None), REFINEMENTS, rng)[:2]


def settle(table, run, rows, columns, rng):
    """Return both sides where a fit ends: each row has converged, given the columns.

    The columns take the coordinates of `amptutorial.reexpansion.balanced_sides` and
    the biases that belong to them, and stay there.

    Parameters
    ----------
    table : amptutorial.table.Table
    run : Run
    rows, columns : Side
        As from `refine`.
    rng : numpy.random.Generator

    Returns
    -------
    rows, columns : Side
        With biases refitted to the bursts.
    sample : AllColumns or amptutorial.sampling.ColumnSample
        Of the columns, over which sums of rows run: those of new rows too.
    r_u, r_v : arrays (m,), (n,)
        Biases with which the rates have the margins of the counts; of the bursts behind
        them, if the channel saturates.
    """
    m, channel, sampler = table.shape[0], run.channel, Sampler(rng, SETTLING)
    rows, columns = balanced_sides(rows, columns)
    totals = table.bursts(channel, rows, columns, m).margins()[1]
    bias = margin_biases(totals, columns.X, sample_of(columns, rows, m, sampler))
    columns = replace(columns, bias=bias)
    held = columns.in_double()
    sample = sample_of(rows, held, m, sampler)
    rows = table.settled(rows, held, m, channel, sample)
    U, W = rows.in_double().X, sample.W
    gaps = Gaps.of(table.observed[1], U, W)
    if channel.saturates:
        biases = _biases_of_bursts(table, channel, rows, columns, U, W, gaps)
    else:
        biases = _biases(table, U, W, gaps, run.best, Sampler(rng))
    return rows, columns, sample, *biases


def _biases_of_bursts(table, channel, rows, columns, U, W, gaps):
    """Return biases with which the rates have the margins of the bursts expected."""
    for _ in range(SWEEPS):
        bursts = table.seen_bursts(channel, rows, columns, len(U))
        given = *bursts.observed[0].margins(), U, W, columns.bias, 1
        r_u, r_v, _ = biases_of_margins(*given, gaps=gaps)
        rows, columns = replace(rows, bias=r_u), replace(columns, bias=r_v)
    return r_u, r_v


def _biases(table, U, W, gaps, best, sampler):
    """Return biases with which the rates have the margins of the counts."""
    rows, columns = table.observed[0].margins()
    # all counts of a column may have been hidden
    r_v = np.where(best.r_v > 0, best.r_v, columns / len(rows))
    # most sweeps in the faster precision; without an embedding one is exact
    for precision in (np.float32, np.float64) if best.k else (np.float64,):
        given = rows, columns, U.astype(precision), W.astype(precision), r_v
        r_u, r_v, _ = biases_of_margins(*given, SWEEPS, sampler=sampler, gaps=gaps)
    return r_u, r_v
