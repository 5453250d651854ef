"""Rates that a method predicts for counts of words, and how its settings are chosen.

Every method is judged by the same likelihood, and its settings are chosen by it too:
by counts of pairs that were set aside (`choose`).
"""

from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from amptutorial.bias import (
    estimate_bias,
    fill_gaps,
    margins,
    same_pairs,
    with_values,
    without_gaps,
)
from amptutorial.biases import Gaps, biases_of_margins
from amptutorial.channels import Damped
from amptutorial.heldout import held_out_pairs, hold_out
from amptutorial.smoothing import balanced
from amptutorial.sums import products_of_pairs

TUNING_SHARE = 0.1  # of the kept pairs, held out to choose settings
TUNING_ROWS = 7000  # at most, to choose settings
PROGRESS = 1e-3  # nats per count: a setting that gains less is no better
BALANCED = 100  # sweeps that fit the margins of a mixture, each of them cheap

# what a method may be fitted to, hidden pairs being gaps: see `channels.Damped`
TABLES = {
    "counts": lambda counts: counts,
    "damped": lambda counts: same_pairs(counts, Damped().bursts(counts.data, 0.0)),
}


# and for methods that know no gaps: hidden pairs look empty, or as independence expects
def _each(done):
    return {name: lambda counts, of=of: done(of(counts)) for name, of in TABLES.items()}


EMPTY = _each(lambda table: with_values(table, np.nan_to_num(table.data)))
FILLED = _each(fill_gaps)
EITHER = {f"{name} with zeros": of for name, of in EMPTY.items()} | FILLED


class Rates:
    """Expected counts, to be judged by counts that a method has not seen."""

    def of_pairs(self, pairs):
        """Return log(rate / rate under independence) of each of the `HeldOut` pairs."""
        raise NotImplementedError

    def excess(self, pairs):
        """Return by which fraction rates exceed the kept counts, over the pairs seen.

        The default is for rates that add up to the margins of the kept counts, with
        gaps filled.
        """
        return -pairs.unseen.raised(self.of_pairs(pairs.unseen))

    def log_ratios(self, pairs):
        """Return the log ratios of the pairs, less what the rates exceed the counts by.

        So the mean over the counts is the gain, as in `heldout_gain`.
        """
        raised = pairs.compared.raised(self.of_pairs(pairs.compared))
        return self.of_pairs(pairs) - self.excess(pairs) - raised

    def gain(self, kept, held_out):
        """Return the held-out gain over independence, in nats per count."""
        pairs = held_out_pairs(kept, held_out)
        return pairs.mean(self.log_ratios(pairs))


@dataclass(frozen=True)
class Exponential(Rates):
    """Rates r_u_i r_v_j exp(u_i . v_j / sqrt(m))."""

    U: np.ndarray  # (m, d)
    V: np.ndarray  # (n, d)
    r_u: np.ndarray  # (m,): bias factors
    r_v: np.ndarray  # (n,)
    chosen: dict = field(default_factory=dict)  # the settings that hidden pairs chose
    own_gain: float = 0.0  # by these pairs

    def of_pairs(self, pairs):
        """See `Rates.of_pairs`."""
        return pairs.log_ratios(self.U, self.V, self.r_u, self.r_v)

    def excess(self, pairs):
        """See `Rates.excess`."""
        W = self.V / np.sqrt(len(self.U))
        return pairs.excess(self.U, W, self.r_u, self.r_v)


@dataclass(frozen=True)
class _Mixture(Rates):
    """Rates (1 - share) W H + share row_i col_j / Z_tot.

    W H are topics; independence gets its share for the pairs that they rule out. The
    rates of W H over those of independence are U diag(1 / weights) V^T.
    """

    U: np.ndarray  # (m, d): the shares of the topics in each row
    V: np.ndarray  # (n, d): and in each column
    weights: np.ndarray  # (d,): and in all counts
    share: float  # of independence
    chosen: dict = field(default_factory=dict)  # the settings that hidden pairs chose
    own_gain: float = 0.0  # by these pairs

    def of_pairs(self, pairs):
        """See `Rates.of_pairs`; minus infinity for a pair that is ruled out."""
        U = self.U / self.weights
        ratios = products_of_pairs(U, self.V, pairs.i, pairs.j)
        with np.errstate(divide="ignore"):
            return np.log((1 - self.share) * ratios + self.share)


@dataclass(frozen=True)
class Ratios(Rates):
    """Rates of all pairs, with the margins of the kept counts."""

    ratios: np.ndarray  # (m, n): over those of independence
    U: np.ndarray | None = None  # vectors, where there are any
    V: np.ndarray | None = None
    chosen: dict = field(default_factory=dict)  # the settings that hidden pairs chose
    own_gain: float = 0.0  # by these pairs

    def of_pairs(self, pairs):
        """See `Rates.of_pairs`."""
        return np.log(self.ratios[pairs.i, pairs.j], dtype=np.float64)


def mixed(counts, *parts, **vectors):
    """Return `Ratios` of a mixture of (weight, ratios), with the margins of counts."""
    total = sum(np.float32(weight) * ratios for weight, ratios in parts)
    return Ratios(balanced(total, *margins(counts)), **vectors)


def judged(pairs, log_ratios, first, chosen):
    """Return what a comparison records of a method.

    Parameters
    ----------
    pairs : HeldOut
    log_ratios, first : array (n_pairs,)
        Of the method, and of the one that the others are compared with.
    chosen : dict
        The settings.

    Returns
    -------
    dict
        ``gain`` in nats per count and its two-way standard ``error``; ``lead``, by how
        much the first method gains more, and ``lead_error``, both of the differences
        pair by pair; ``chosen``, as a text.
    """
    behind = first - log_ratios
    return {
        **{"gain": pairs.mean(log_ratios), "error": pairs.standard_error(log_ratios)},
        **{"lead": pairs.mean(behind), "lead_error": pairs.standard_error(behind)},
        "chosen": ", ".join(f"{k} {v}" for k, v in chosen.items()),
    }


def choose(fit, settings, kept, rng, tables=TABLES):
    """Return the rates whose settings best predict counts of pairs set aside.

    A share `TUNING_SHARE` of the pairs is set aside to choose the settings, and whether
    to fit to the counts or to the damped counts; of a table with more than
    `TUNING_ROWS` rows, so many choose. The rates are then fitted to all of `kept`.

    Parameters
    ----------
    fit : callable
        ``fit(counts, table, n_sweeps)`` returns a function of the settings, by their
        names, to `Rates`: fitted to the table, with the margins of the counts (biases
        refitted in at most `n_sweeps` sweeps, see `refit_biases`).
    settings : dict of str to sequence
        The values of each setting.
    kept : sparse array (m, n)
    rng : numpy.random.Generator
    tables : dict of str to callable
        What the method may be fitted to.

    Returns
    -------
    Rates
        Its ``chosen`` says which ``table`` and which settings, with a star at those
        that stand at an end of their grid, where a longer search might gain more.
    """
    few = kept
    if kept.shape[0] > TUNING_ROWS:
        few = kept[rng.choice(kept.shape[0], TUNING_ROWS, replace=False)]
    training, validation, _, _ = hold_out(few, TUNING_SHARE, rng)
    pairs, found = held_out_pairs(training, validation), {}
    for name, of in tables.items():
        rates = fit(training, of(training), 2)
        found[name] = climb(gain_of(rates, pairs), settings)
    name = max(found, key=lambda name: found[name][1])
    best, gain = found[name]
    rates = fit(kept, tables[name](kept), 20)(**best)
    chosen = {"table": name} | starred(best, settings)
    return replace(rates, chosen=chosen, own_gain=gain)


def starred(chosen, settings):
    """Return chosen settings with a star at those that stand at an end of their grid.

    A first number of 0 or 1 does not count: for a weight or a number of steps there is
    nothing below.

    Examples
    --------
    >>> starred({"steps": 1, "size": 8}, {"steps": (1, 2, 4), "size": (2, 4, 8)})
    {'steps': 1, 'size': '8*'}
    """

    def at_an_end(value, grid):
        first = value == grid[0] and value not in (0, 1)
        return len(grid) > 1 and (first or value == grid[-1])

    return {
        name: f"{value}*" if not isinstance(value, str) and at_an_end(value, settings[name]) else value
        for name, value in chosen.items()
    }


def gain_of(rates, pairs):
    """Return a function of the settings to their gain; what overflows gains nothing."""

    def gain(**values):
        try:
            return pairs.mean(rates(**values).log_ratios(pairs))
        except FloatingPointError:
            return -np.inf

    return gain


def climb(gain, settings):
    """Return the settings that gain most, and the gain, without trying all of them.

    One setting is changed at a time, from the middle of its values on, to the next one
    as long as that gains more. Where the middle overflows, begin with the first values.

    Examples
    --------
    >>> climb(lambda x: -abs(x - 3), {"x": range(10)})
    ({'x': 3}, 0)
    >>> climb(lambda x: x if x < 2 else -np.inf, {"x": range(10)})
    ({'x': 1}, 1)
    """
    place = {name: len(values) // 2 for name, values in settings.items()}

    def values_at(place):
        return {name: settings[name][k] for name, k in place.items()}

    @lru_cache(None)
    def gain_at(*ks):
        return gain(**values_at(dict(zip(place, ks, strict=True))))

    if gain_at(*place.values()) == -np.inf:
        place = dict.fromkeys(place, 0)
    best, before = gain_at(*place.values()), None
    while place != before:
        before = place
        for name, values in settings.items():
            for step in (1, -1):
                while 0 <= place[name] + step < len(values):
                    there = place | {name: place[name] + step}
                    new = gain_at(*there.values())
                    if not new > best + PROGRESS:
                        break
                    place, best = there, new
    return values_at(place), best


def fit_exponential(counts, U, V, n_sweeps):
    """Return `Exponential` rates whose biases are refitted to the margins of `counts`.

    There are at most `n_sweeps` sweeps. Single precision makes this twice as fast.
    """
    U, V = U.astype(np.float32), V.astype(np.float32)
    W, (observed, gaps) = V / np.sqrt(len(U)), without_gaps(counts)
    given = *margins(observed), U, W, margins(counts)[1], n_sweeps
    r_u, r_v, _ = biases_of_margins(*given, tol=1e-4, gaps=Gaps.of(gaps, U, W))
    return Exponential(U, V, r_u, r_v)


def root_mean_square(counts, U, V):
    """Return the root mean square of M_ij = u_i . v_j / sqrt(m).

    The mean is weighted by the rates of independence of `counts`.

    Examples
    --------
    >>> U, V = np.array([[3.0], [-3.0]]), np.ones((2, 1))
    >>> root_mean_square(np.array([[1, 2], [3, 4]]), U, V) * np.sqrt(2)
    np.float64(3.0)
    """
    r_u, r_v = estimate_bias(counts)
    A, B = np.sqrt(r_u)[:, None] * U, np.sqrt(r_v)[:, None] * V
    return np.sqrt(np.vdot(A.T @ A, B.T @ B) / len(U) / (r_u.sum() * r_v.sum()))


def mixture_of_topics(counts, W, H, share):
    """Return the `_Mixture` of W H and a `share` of independence.

    Rows of W (m, d) and columns of H (d, n), which are not negative, are scaled until
    W H has the margins of the counts (m, n), none of them zero. Topics that are empty
    on either side are left out.

    Examples
    --------
    >>> W, H = np.array([[3.0], [9.0]]), np.array([[0.5, 1.0]])
    >>> one = mixture_of_topics(np.array([[1, 2], [3, 6]]), W, H, 0.5)
    >>> one.U.ravel(), one.V.ravel(), one.weights
    (array([1., 1.]), array([1., 1.]), array([1.]))
    """
    rows, columns = margins(counts)
    some = (W.sum(axis=0) > 0) & (H.sum(axis=1) > 0)
    W, H = W[:, some], H[some]
    for _ in range(BALANCED):
        W = W * _factors(rows, W @ H.sum(axis=1))[:, None]
        factors = _factors(columns, W.sum(axis=0) @ H)
        H = H * factors
        if np.abs(factors - 1).max() < 1e-6:
            break
    joint = W.sum(axis=0) * H.sum(axis=1)  # counts by topic
    U = W * H.sum(axis=1) / rows[:, None]
    V = H.T * W.sum(axis=0) / columns[:, None]
    return _Mixture(U, V, joint / joint.sum(), share)


def _factors(wanted, found):
    """Return wanted / found; 1 where nothing was found, and no factor helps."""
    return np.divide(wanted, found, out=np.ones_like(wanted), where=found > 0)
