"""How many counts, or rows, are needed: state evolution solved for them (Section 4.3).

State evolution says to which error given counts lead. Here the error is given. All
rates, or the number of rows, are multiplied by one factor, which makes the signal of
the embedding stronger in the score, until the predicted error is the wanted one.

The laws may be those of a first, smaller study: `laws_of` reads them off its fit. The
prediction holds for large tables and weak associations. What it is worth for the table
that is planned is measured by `Plan.check`, on tables drawn from the laws.
"""

import warnings
from copy import copy
from dataclasses import dataclass, field, replace
from math import ceil

import numpy as np
from scipy.optimize import brentq

from . import _validation as door
from ._progress import LATE, progress
from .amp import biased_low_rank_amp
from .bias import drop_empty, estimate_bias
from .denoisers import Denoiser, GaussianPosterior, as_pair
from .laws import DiscreteBias, EmpiricalRows, GaussianRows, ScaledRowLaw, scaled_rows
from .metrics import normalised_mse
from .model import PoissonEmbedding
from .score import FisherScore
from .state_evolution import gaussian_state_evolution, has_closed_form, state_evolution

_HINT = 0.5  # of the truth, in the start; from less, a weak ridge may go in a circle
_STEP, _STEPS = np.log(4), 10  # how far a factor is looked for, in each direction
OFF = 0.1  # of the wanted error: a plan that misses it by more is said to


@dataclass(frozen=True)
class Plan:
    """A table for which the wanted error is predicted.

    Attributes
    ----------
    error : float
        The one that was wanted.
    m, n : int
        Rows and columns.
    counts : int
        Expected in the whole table, m n E(R^u) E(R^v), as for weak associations.
    more : {"counts", "rows"}
        What the plan has more of than the given laws.
    factor : float
        How many times as many.
    law_u, law_v, denoiser, rarest, n_iter
        As they were given.
    """

    error: float
    m: int
    n: int
    counts: int
    more: str
    factor: float
    law_u: ScaledRowLaw = field(repr=False)
    law_v: ScaledRowLaw = field(repr=False)
    denoiser: Denoiser | tuple = field(repr=False)
    rarest: tuple = field(repr=False)
    n_iter: int = field(repr=False)

    def check(self, n_tables=8, *, rng):
        """Return the error that tables of this plan have, and its standard error.

        The tables are drawn from the laws. AMP runs on their counts, with counted
        biases, from a start as in the prediction. The prediction is for large tables
        and weak associations, and the measured error for those of the plan. Where it is
        too large, plan for an error that is smaller by the same factor.

        Parameters
        ----------
        n_tables : int
            At least two.
        rng : numpy.random.Generator

        Returns
        -------
        measured, standard_error : float

        Warns
        -----
        AMPWarning
            If the measured error is more than a tenth off the wanted one.
        """
        n_tables = door.check_integer(n_tables, "n_tables", minimum=2)
        tables = progress(range(n_tables), desc="Tables of the plan", **LATE)
        errors = [self._error_of_table(door.check_rng(rng)) for _ in tables]
        measured, bar = np.mean(errors), np.std(errors, ddof=1) / np.sqrt(n_tables)
        if abs(measured / self.error - 1) > OFF:
            found = f"tables of this plan have the error {measured:.3g} +- {bar:.2g}"
            how = f"plan for {self.error**2 / measured:.2g}"
            message = f"{found}, and {self.error:g} was wanted: {how}"
            warnings.warn(message, door.AMPWarning, stacklevel=2)
        return float(measured), float(bar)

    def _error_of_table(self, rng):
        """Return the error of AMP on one table that is drawn."""
        r, A = self.law_u.draw(self.m, rng=rng)
        b, B = self.law_v.draw(self.n, rng=rng)
        # with more rows, V grows as sqrt(m) does; so M = U V^T / sqrt(m) stays
        rates, stretch = (1.0, self.factor)[:: 1 if self.more == "rows" else -1]
        U, V = A / np.sqrt(r)[:, None], B * np.sqrt(stretch / b)[:, None]
        truth = PoissonEmbedding(U, V, np.log(r), np.log(b * rates))
        Z, rows, columns = drop_empty(truth.sample(rng, sparse=True))
        r_u, r_v = estimate_bias(Z)
        B = truth.B[columns]
        noise = rng.standard_normal(B.shape) @ np.linalg.qr(B / np.sqrt(len(B)))[1]
        # to a denoiser, a longer V is one with larger factors
        given = FisherScore(Z, r_u, r_v), r_u, r_v * stretch, self.denoiser
        run = biased_low_rank_amp(*given, B0=_HINT * B + noise, n_iter=self.n_iter)
        A_hat, B_hat = np.zeros_like(truth.A), np.zeros_like(truth.B)
        A_hat[rows], B_hat[columns] = run.A, run.B
        return _error_of_rarest((r, truth.A, A_hat), (b, truth.B, B_hat), self.rarest)


def counts_needed(
    error, law_u, law_v, denoiser, *, m, n, rarest=(1.0, 1.0), n_iter=50,
    n_samples=20_000, rng=None,
):  # fmt: skip
    """Return the plan of a table with so many counts that A B^T has the wanted error.

    The error is that of `normalised_mse`, predicted by state evolution in the limit of
    large tables. AMP starts from half of B, in noise as long as B.

    Parameters
    ----------
    error : float
        Wanted, between 0 and 1; estimating zero has the error 1.
    law_u, law_v : ScaledRowLaw
        Laws of rows and frequencies; all frequencies are multiplied by the same factor.
    denoiser : Denoiser, or a pair of them
        As for AMP.
    m, n : int
        The size of the table.
    rarest : pair of float
        Fractions of the rows and of the columns, those with the smallest frequencies:
        the error is that of A B^T over this block. With (1, 0.1) it is the error of the
        rarest tenth of the columns, with (0.1, 0.1) that of pairs of rare rows and rare
        columns.
    n_iter : int
        Iterations of AMP. Near the threshold, where errors are nearly 1, it takes many.
    n_samples : int
        Rows to be sampled where there is no closed form, see `has_closed_form`, and for
        the rarest rows or columns.
    rng : numpy.random.Generator, optional
        Needed there. All factors are tried on the same draws.

    Returns
    -------
    Plan
        If the error jumps across the wanted one, that of the jump; one such plan, if
        the error does not fall steadily.

    Raises
    ------
    ValueError
        If the wanted error is not between 0 and 1, or is not reached with a millionth
        to a million times the counts.

    Examples
    --------
    Equal frequencies, one count a pair: a square table is at the threshold, and nothing
    is learned. About six counts a pair are needed.

    >>> from amptutorial.laws import ConstantBias
    >>> rows, bias = GaussianRows(1.0), ConstantBias(0.0)
    >>> laws = scaled_rows(1, rows_u=rows, rows_v=rows, bias_u=bias, bias_v=bias)
    >>> counts_needed(0.3, *laws, GaussianPosterior(1.0), m=100, n=100).counts
    61223
    """
    given = law_u, law_v, denoiser, m, n, rarest, n_iter, n_samples, rng
    return _plan("counts", error, *given)


def rows_needed(
    error, law_u, law_v, denoiser, *, m, n, rarest=(1.0, 1.0), n_iter=50,
    n_samples=20_000, rng=None,
):  # fmt: skip
    """Return the plan of a table with so many rows that A B^T has the wanted error.

    New rows are like those at hand: they have the same law of frequencies, and the
    same associations M = U V^T / sqrt(m) with the columns. As the first m in this
    formula grows, so does V.

    Parameters
    ----------
    error, law_u, law_v, denoiser, n, rarest, n_iter, n_samples, rng
        As for `counts_needed`.
    m : int
        The number of rows that the laws refer to, such as those of a pilot.

    Returns
    -------
    Plan

    Raises
    ------
    ValueError
        As for `counts_needed`. More rows teach what the columns are, and rows that have
        few counts stay unknown: their error may not fall below a bound.

    Examples
    --------
    >>> from amptutorial.laws import ConstantBias
    >>> rows, five = GaussianRows(1.0), ConstantBias(np.log(5.0))
    >>> one = {"rows_u": rows, "rows_v": rows, "bias_u": ConstantBias(0.0)}
    >>> laws = scaled_rows(1, **one, bias_v=five)
    >>> rows_needed(0.3, *laws, GaussianPosterior(1.0), m=100, n=100).m
    155
    """
    given = law_u, law_v, denoiser, m, n, rarest, n_iter, n_samples, rng
    return _plan("rows", error, *given)


def laws_of(model):
    """Return what a plan asks of a pilot, from its fit: keywords of `counts_needed`.

    Embeddings are shrunken, so that their spread is too small. To it is added the mean
    of their posterior covariances. The frequencies are those fitted to the pilot.

    Parameters
    ----------
    model : amptutorial.AMPEmbedding
        Fitted with ``channel="counts"`` and the Gaussian prior.

    Returns
    -------
    dict
        ``law_u``, ``law_v``, ``denoiser``, ``m`` and ``n``, for rows and columns that
        have counts.

    Raises
    ------
    ValueError
        For another channel or prior, or an embedding of zeros.

    Examples
    --------
    >>> from amptutorial import AMPEmbedding, draw_example
    >>> truth = draw_example(200, 1, variance=3.0, rng=np.random.default_rng(0))
    >>> Z = truth.sample(np.random.default_rng(1))
    >>> pilot = laws_of(AMPEmbedding(1, channel="counts", random_state=0).fit(Z))
    >>> [counts_needed(error, **pilot).factor > 1 for error in (0.05, 0.5)]
    [True, False]
    """
    if model.channel_ != "counts":
        raise ValueError(f'channel_ is {model.channel_!r}: fit with channel="counts"')
    if not model.n_iter_:
        raise ValueError("the embedding of the pilot is zero: there is nothing to plan")
    C_u, C_v = model.covariances()
    S_u, s_u = _side_of(model.embedding_, C_u, model.row_bias_)
    S_v, s_v = _side_of(model.components_.T, C_v, model.column_bias_)
    S_u *= len(s_u) / len(C_u)  # sqrt(m) in M counts rows without counts too
    rows = {"rows_u": GaussianRows(S_u), "rows_v": GaussianRows(S_v)}
    biases = {"bias_u": DiscreteBias(s_u), "bias_v": DiscreteBias(s_v)}
    law_u, law_v = scaled_rows(len(S_u), **rows, **biases)
    pilot = {"law_u": law_u, "law_v": law_v, "m": len(s_u), "n": len(s_v)}
    return pilot | {"denoiser": (GaussianPosterior(S_u), GaussianPosterior(S_v))}


def _side_of(X, C, r):
    """Return E(u u^T) and the biases of the rows, or columns, that have counts."""
    some = np.flatnonzero(r)
    second_moment = X[some].T @ X[some] / len(some) + C[some].mean(axis=0)
    return second_moment, np.log(r[some])


def _plan(more, error, law_u, law_v, denoiser, m, n, rarest, n_iter, n_samples, rng):
    """Return the plan of a table with more counts, or with more rows."""
    error = door.check_positive(error, "error", below=1)  # that of estimating zero
    m, n = door.check_integer(m, "m", minimum=1), door.check_integer(n, "n", minimum=1)
    if np.shape(rarest) != (2,) or not all(0 < share <= 1 for share in rarest):
        raise ValueError(f"rarest must be two fractions, at most 1, got {rarest}")
    door.check_methods("draw", law_u=law_u, law_v=law_v)
    laws: tuple = law_u, law_v
    pair, evolve = as_pair(denoiser), gaussian_state_evolution
    if tuple(rarest) != (1, 1) or not has_closed_form(*laws, denoiser):
        door.check_rng(rng)
        n_samples = door.check_integer(n_samples, "n_samples", minimum=1)
        laws = tuple(EmpiricalRows(*law.draw(n_samples, rng=rng)) for law in laws)
        seed = rng.integers(2**32)
        if all(own.precision == "posterior" for own in pair):
            pair = tuple(map(_without_jacobian, pair))

        def evolve(*given, **options):
            own = {"n_samples": n_samples, "rng": np.random.default_rng(seed)}
            return state_evolution(*given, **options, **own)

    (rate_u, _), (rate_v, S) = map(_means, laws)

    def predicted(factor):
        beta = m / n * (factor if more == "rows" else 1)
        size = S * factor / beta
        start = {"M0": _HINT * size, "Q0": (_HINT**2 + 1) * size}
        given = laws[0], _raised(laws[1], factor), pair
        run = evolve(*given, beta=beta, n_iter=n_iter, **start)
        if run.rows_a is None:
            return run.iterates[-1].nmse
        return _error_of_rarest(run.rows_a, run.rows_b, rarest)

    factor = _solve(error, predicted, more)
    rows = ceil(factor * m) if more == "rows" else m
    counts = ceil(factor * m * n * rate_u * rate_v)
    given = law_u, law_v, denoiser, tuple(rarest), n_iter
    return Plan(error, rows, n, counts, more, factor, *given)


def _error_of_rarest(rows_u, rows_v, rarest):
    """Return the error of A B^T over the rarest of rows and columns (r, X, X_hat)."""
    block = []
    for (r, *pair), share in zip((rows_u, rows_v), rarest, strict=True):
        some = np.argsort(r)[: ceil(share * len(r))]
        block.append([X[some] for X in pair])
    (A, A_hat), (B, B_hat) = block
    return normalised_mse(A, B, A_hat, B_hat)


def _without_jacobian(denoiser):
    """Return a copy of a posterior mean without a Jacobian: with F = Q none is used."""
    denoiser = copy(denoiser)
    door.keep(denoiser, mean_jacobian=lambda P, r, F: np.zeros_like(F))
    return denoiser


def _raised(law, factor):
    """Return a law of rows with so many times the counts."""
    if isinstance(law, EmpiricalRows):
        return EmpiricalRows(law.r * factor, law.X * np.sqrt(factor))
    return replace(law, log_scale=law.log_scale + np.log(factor))


def _means(law):
    """Return E(R) and E(x x^T)."""
    if isinstance(law, EmpiricalRows):
        return law.r.mean(), law.X.T @ law.X / len(law.X)
    r, weights = law.atoms()
    return weights @ r, weights @ r * law.rows.second_moment(law.d)


def _solve(error, predicted, more):
    """Return the factor at which `predicted` falls to `error`."""
    with progress(desc="Planning", unit=" tries", **LATE) as bar:

        def reached(shift):
            bar.update()
            return predicted(np.exp(shift)) - error

        is_reached = reached(0.0) <= 0
        step = -_STEP if is_reached else _STEP
        shifts = step * np.arange(1, _STEPS + 1)
        after = next((x for x in shifts if (reached(x) <= 0) != is_reached), None)
        if after is None:
            what = f"a millionth to a million times the {more} of these laws"
            stays = "it stays below" if is_reached else "it stays above"
            raise ValueError(f"the error {error:g} is not reached: with {what} {stays}")
        ends, width = sorted((after - step, after)), 1e-6  # of the logarithm
        root = brentq(reached, *ends, xtol=width)
    # where the error jumps the root may lie on the wrong side of it
    return float(np.exp(min(root + 2 * width, ends[1])))
