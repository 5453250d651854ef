"""What the best estimate reaches, for any frequencies (chapter 11).

With matched posterior means AMP keeps M = Q. If the priors are isotropic too, Q^a = s I
and Q^b = t I: state evolution is two numbers. A potential tells which of its fixed
points is that of the best estimate. The paper leaves this out. For equal frequencies
see Lesieur, Krzakala and Zdeborova (2017), for finitely many Behne and Reeves (2022).
"""

from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from scipy.interpolate import CubicSpline

from . import _validation as door

# Nodes of the trapezoidal rule for a signed length; dense at 0, where a posterior may
# switch.
_STRETCHED = np.linspace(-6, 6, 401)
_NODES = np.sinh(_STRETCHED) / 20
_LARGEST = 1e8  # the largest precision of a table


class IsotropicPrior(Hashable, Protocol):
    """An isotropic law of rows u with d entries, seen as p = t u + N(0, t I)."""

    @property
    def d(self) -> int:
        """Entries of a row."""

    @property
    def second_moment(self) -> float:
        """E|u|^2 / d."""

    def known_share(self, t):
        """Return E|E(u | p)|^2 / d for an array of precisions t >= 0."""

    def information(self, t):
        """Return the mutual information of u and p in nats, likewise."""


@dataclass(frozen=True)
class GaussianMixture:
    """Rows that are N(mean, variance I), with a component drawn for each row.

    Signs are two components of variance 0; a spike and a slab are two of mean 0.

    Parameters
    ----------
    weights, means, variances : sequences of float, length K
        Probability, mean and variance of each component.
    d : int
        Entries of a row. If d > 1 all means must be zero: the law is to be isotropic.

    Examples
    --------
    >>> gaussian = GaussianMixture([1.0], [0.0], [1.0])
    >>> gaussian.known_share([1.0, 3.0]), gaussian.information(np.e - 1).round(6)
    (array([0.5 , 0.75]), np.float64(0.5))
    """

    weights: tuple
    means: tuple
    variances: tuple
    d: int = 1

    def __post_init__(self):
        d = door.check_integer(self.d, "d", minimum=1)
        w = door.check_values(self.weights, "weights")
        w = door.check_probabilities(w, "weights", w.size)
        mu = door.check_values(self.means, "means", shape=w.shape)
        v = door.check_values(self.variances, "variances", shape=w.shape)
        if (v < 0).any() or max(v.max(), np.abs(mu).max()) > 1e10:
            raise ValueError("variances must be from 0 to 1e10, means up to that size")
        if not (w * (mu**2 + v)).any():
            raise ValueError("means and variances must not all be zero: no row differs")
        if d > 1 and mu.any():
            raise ValueError("means must be zero for d > 1: the law is not isotropic")
        w, mu, v = (tuple(x[w > 0].tolist()) for x in (w, mu, v))
        door.keep(self, weights=w, means=mu, variances=v, d=d)

    @property
    def second_moment(self):
        """E|u|^2 / d."""
        return float(np.dot(self.weights, np.square(self.means) + self.variances))

    def _expect(self, t):
        """Return E|E(u | p)|^2 and E log f(y), for y = p / sqrt(t).

        The density f is relative to (2 pi)^(-d/2). For means of zero only |y| counts;
        its sign is drawn, so that d = 1 is no special case.
        """
        w, mu, v = (np.array(x) for x in (self.weights, self.means, self.variances))
        t = door.check_values(t, "t")[..., None, None, None]
        if not ((t >= 0) & (t <= _LARGEST)).all():
            raise ValueError(f"t must be from 0 to {_LARGEST:g}")
        # axes: that of t, the component of u, the component considered, the node
        y = np.sqrt(t) * mu[:, None, None] + np.sqrt(1 + t * v[:, None, None]) * _NODES
        mu, v = mu[:, None], v[:, None]
        scale = np.sqrt(1 + t * v)
        z = (y - np.sqrt(t) * mu) / scale
        log_parts = np.log(w)[:, None] - self.d * np.log(scale) - z**2 / 2
        log_f = np.logaddexp.reduce(log_parts, axis=-2)
        chances = np.exp(log_parts - log_f[..., None, :])
        mean = (chances * (mu + np.sqrt(t) * v / scale * z)).sum(axis=-2)
        nodes = np.abs(_NODES) ** (self.d - 1) * np.exp(-(_NODES**2) / 2)
        nodes = nodes * np.cosh(_STRETCHED)
        return [(x @ (nodes / nodes.sum())) @ w for x in (mean**2, log_f)]

    def known_share(self, t):
        """Return E|E(u | p)|^2 / d, where p = t u + N(0, t I), for an array t."""
        return self._expect(t)[0] / self.d

    def information(self, t):
        """Return the mutual information of u and p in nats, for an array t."""
        return -self._expect(t)[1] - self.d / 2


@lru_cache(maxsize=32)
def _table(prior):
    """Return h and I as a spline in log(1 + 1000 t), for all rates and iterations."""
    x = np.linspace(0, np.log1p(1e3 * _LARGEST), 1000)
    t = np.minimum(np.expm1(x) / 1e3, _LARGEST)
    return CubicSpline(x, np.stack([prior.known_share(t), prior.information(t)], -1))


class SeenRows:
    """Rows sqrt(R) u of one side, u from a prior, R from a law of frequencies.

    Parameters
    ----------
    prior : IsotropicPrior
    rates : array (..., K)
        Values of R. Leading axes stand for separate problems, solved together.
    probabilities : array (K,), optional
        Their probabilities; equal if left out, as for a sample of R.

    Attributes
    ----------
    size : array (...)
        E(R) E|u|^2 / d; S^a is this multiple of I.

    Examples
    --------
    >>> rows = SeenRows(GaussianMixture([1], [0], [1]), [0.5, 1.5])
    >>> round(float(rows.known(1.0)), 6) == round((0.5 / 3 + 1.5 * 0.6) / 2, 6)
    True
    """

    def __init__(self, prior: IsotropicPrior, rates, probabilities=None):
        door.check_methods("known_share", "information", prior=prior)
        rates = np.atleast_1d(door.check_values(rates, "rates", empty=False))
        door.check_rates(rates.ravel(), rates.size, "rates")
        p = door.check_probabilities(probabilities, "probabilities", rates.shape[-1])
        self.prior, self.rates, self.probabilities = prior, rates, p
        self.size = self.rates @ self.probabilities * prior.second_moment

    def _look_up(self, t):
        precisions = self.rates * np.asarray(t)[..., None]
        if not precisions.max() <= _LARGEST:
            raise ValueError(
                f"rates times t exceed {_LARGEST:g}: scale down rates, or raise beta"
            )
        return _table(self.prior)(np.log1p(1e3 * precisions))

    def known(self, t):
        """Return E[R h(R t)], h the known share, for t (...): Q is that times I."""
        return (self.rates * self._look_up(t)[..., 0]) @ self.probabilities

    def information(self, t):
        """Return E I(R t), I the mutual information of one row, for t (...)."""
        return self._look_up(t)[..., 1] @ self.probabilities


@dataclass(frozen=True)
class MatchedEvolution:
    """State evolution of matched posterior means: Q^a = s I, Q^b = t I.

    Parameters
    ----------
    rows_u, rows_v : SeenRows
        With priors of the same dimension.
    beta : float
        m / n.

    Examples
    --------
    One row in twenty is present: AMP finds nothing from nothing, and something exists.

    >>> sparse = GaussianMixture([0.95, 0.05], [0, 0], [0, 20])
    >>> rows = SeenRows(sparse, [0.5, 1.2])
    >>> evolution = MatchedEvolution(rows, rows, beta=1.0)
    >>> ends = evolution.limit(), evolution.limit(informed=True), evolution.optimum()
    >>> [bool(evolution.error(*end) < 0.5) for end in ends]
    [False, True, True]
    """

    rows_u: SeenRows
    rows_v: SeenRows
    beta: float

    def __post_init__(self):
        rows = {"rows_u": self.rows_u, "rows_v": self.rows_v}
        door.check_methods("known", "information", **rows)
        if self.rows_u.prior.d != self.rows_v.prior.d:
            raise ValueError("both priors must have the same d")
        door.keep(self, beta=door.check_positive(self.beta, "beta"))

    @property
    def sizes(self):
        """The multiples of I that S^a and S^b are: all there is to know."""
        return self.rows_u.size, self.rows_v.size / self.beta

    def step(self, t):
        """Return s of Q^a, and the next t of Q^b: one iteration from Q^b = t I."""
        s = self.rows_u.known(t)
        return s, self.rows_v.known(s) / self.beta

    def error(self, s, t):
        """Return the normalised error of A B^T, 1 - s t / (S^a S^b)."""
        S_a, S_b = self.sizes
        return 1 - (s / S_a) * (t / S_b)

    def _settle(self, t):
        """Return (s, t) where the iteration from `t` ends, or stands after 10,000."""
        for _ in range(10_000):
            before, (s, t) = t, self.step(t)
            if (np.abs(t - before) <= 1e-9 * t + 1e-12 * self.sizes[1]).all():
                break
        return s, t

    def limit(self, *, informed=False):
        """Return (s, t) in the limit of many iterations.

        Parameters
        ----------
        informed : bool
            Start from the truth, t = S^b, instead of a millionth of that.
        """
        return self._settle((1.0 if informed else 1e-6) * self.sizes[1])

    def potential(self, s, t):
        """Return phi(s, t), whose critical points are the fixed points.

        phi = E I_u(R^u t) + E I_v(R^v s) / beta + (d/2) (S^a - s) (S^b - t), in nats
        for each row of A. The least value at a fixed point is the limit of the mutual
        information of (A, B) and Y~, divided by m: a theorem for d = 1.
        """
        S_a, S_b = self.sizes
        views = self.rows_u.information(t) + self.rows_v.information(s) / self.beta
        return views + self.rows_u.prior.d / 2 * (S_a - s) * (S_b - t)

    def optimum(self):
        """Return (s, t) of the fixed point with the least potential.

        One iteration never raises phi(s(t), t), where s(t) is that of `step`: from the
        least value on a grid of t, iterating leads to that fixed point.
        """
        shape = np.broadcast_shapes(*map(np.shape, self.sizes))
        fractions = np.geomspace(1e-6, 1, 500).reshape(-1, *(1,) * len(shape))
        t = fractions * np.broadcast_to(self.sizes[1], shape)
        best = self.potential(self.step(t)[0], t).argmin(axis=0)
        return self._settle(np.take_along_axis(t, best[None], axis=0)[0])
