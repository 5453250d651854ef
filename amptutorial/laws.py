"""Distributions of biases and of embedding rows (Sections 4.2, 4.3 and 6.2).

A *bias law* describes the scalar s, a *row law* the vector u. State evolution needs
their product, the law of the pair (r, x) = (exp(s), sqrt(r) u): that is `ScaledRows`,
or `EmpiricalRows` for the rows of one given instance.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import ndtri

from . import _validation as door


class RowLaw(Protocol):
    """What a law of unscaled rows u must have; `GaussianRows` is one."""

    def draw(self, size: tuple[int, int], *, rng: np.random.Generator) -> np.ndarray:
        """Return rows of shape `size` = (N, d)."""


class ScaledRowLaw(Protocol):
    """What a law of scaled rows must have; `ScaledRows` and `EmpiricalRows` are two."""

    def draw(
        self, N: int, *, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return `(r, X)`: bias factors (N,) and scaled rows sqrt(r) u (N, d)."""


class BiasLaw(ABC):
    """Law of a bias s = log r. A subclass gives one method, `isf`.

    All biases are written as functions of a uniform U in (0, 1], the relative rank of a
    term: U near 0 is the most frequent one. The long tail of r = exp(s) then sits at U
    = 0, where floating-point numbers are dense.
    """

    @abstractmethod
    def isf(self, q):
        """Return the bias that is exceeded with probability `q` in (0, 1]."""

    def draw(self, size, *, rng):
        """Return `size` independent biases s, drawn with the generator `rng`."""
        sizes = size if isinstance(size, tuple) else (size,)
        shape = tuple(door.check_integer(length, "size") for length in sizes)
        return self.isf(1.0 - door.check_rng(rng).random(shape))

    def atoms(self):
        """Return `(r, weights)` such that E f(r) is near `weights @ f(r)` for smooth f.

        The quadrature is tanh-sinh in U: it converges exponentially although r may be
        infinite at U = 0.
        """
        t = np.arange(-5.5, 4.0, 0.04)
        q = 1 / (1 + np.exp(-np.pi * np.sinh(t)))
        weights = np.cosh(t) * q * (1 - q)
        keep = q * (1 - q) > 0
        r = door.check_factors(self.isf(q[keep]), "s")
        return r, weights[keep] / weights[keep].sum()

    def moment(self, p):
        """Return E(r^p), where r = exp(s); infinity where it does not exist."""
        r, weights = self.atoms()
        return float(weights @ r ** door.check_number(p, "p"))


def _check_rank(q):
    """Return the relative ranks `q` as an array in (0, 1]."""
    q = door.check_values(q, "q")
    if not ((q > 0) & (q <= 1)).all():
        raise ValueError("q must be above 0 and at most 1")
    return q


@dataclass(frozen=True)
class ConstantBias(BiasLaw):
    """The same bias for all terms.

    Parameters
    ----------
    value : float
        The bias s.

    Examples
    --------
    >>> ConstantBias(2.0).draw(3, rng=np.random.default_rng(0))
    array([2., 2., 2.])
    """

    value: float = 0.0

    def __post_init__(self):
        door.keep(self, value=door.check_number(self.value, "value"))

    def isf(self, q):
        """Return `value` in the shape of `q`."""
        return np.full(_check_rank(q).shape, self.value)

    def atoms(self):
        """Return the one atom."""
        return door.check_factors([self.value], "value"), np.ones(1)


@dataclass(frozen=True)
class DiscreteBias(BiasLaw):
    """Finitely many biases.

    Parameters
    ----------
    values : sequence of float, length K
        The biases s.
    probabilities : sequence of float, length K, optional
        Their probabilities; equal if left out.

    Examples
    --------
    >>> DiscreteBias([4.5, 5.5]).draw(4, rng=np.random.default_rng(0))
    array([5.5, 4.5, 4.5, 4.5])
    """

    values: Sequence[float]
    probabilities: Sequence[float] | None = None

    def __post_init__(self):
        values = np.atleast_1d(door.check_values(self.values, "values"))
        if values.ndim != 1 or not values.size:
            raise ValueError("values must be a sequence of at least one bias")
        p = door.check_probabilities(self.probabilities, "probabilities", len(values))
        order = np.argsort(values)
        values, p = values[order].tolist(), p[order].tolist()
        door.keep(self, values=tuple(values), probabilities=tuple(p))

    def isf(self, q):
        """Return the value exceeded with probability `q`."""
        from_top = np.cumsum(np.flip(self.probabilities))
        k = np.searchsorted(from_top, _check_rank(q) * from_top[-1], side="left")
        return np.asarray(self.values)[::-1][k]

    def atoms(self):
        """Return the values themselves: the expectation is exact."""
        return door.check_factors(self.values, "values"), np.asarray(self.probabilities)


@dataclass(frozen=True)
class ShiftedExponential(BiasLaw):
    """Biases s = shift + an exponential variable of mean `scale`, as in the paper.

    Parameters
    ----------
    scale, shift : float
        The paper has scale 0.25 and shift 5. E(r^p) is finite for p * scale < 1.

    Examples
    --------
    >>> law = ShiftedExponential(scale=0.25, shift=5)
    >>> bool(law.draw(1000, rng=np.random.default_rng(0)).min() >= 5)
    True
    """

    scale: float = 0.25
    shift: float = 5.0

    def __post_init__(self):
        scale = door.check_positive(self.scale, "scale")
        door.keep(self, scale=scale, shift=door.check_number(self.shift, "shift"))

    def isf(self, q):
        """Return shift - scale log q."""
        return self.shift - self.scale * np.log(_check_rank(q))

    def moment(self, p):
        """Return exp(p shift) / (1 - p scale), or infinity where p scale >= 1."""
        if door.check_number(p, "p") * self.scale >= 1:
            return np.inf
        return float(np.exp(p * self.shift) / (1 - p * self.scale))


@dataclass(frozen=True)
class Zipf(BiasLaw):
    """Zipf's law of frequencies, r = C0 / U^alpha with U uniform (`eq:Ruzipf`).

    The biases are s = log C0 - alpha log U.

    Parameters
    ----------
    alpha : float
        The exponent. E(r^p) exists only for p alpha < 1: from alpha = 1/2 on the second
        moment is infinite, at alpha = 1 the mean too, and the large system limit of the
        paper no longer applies.
    C0 : float
        The scale.

    Examples
    --------
    >>> Zipf(0.4).moment(2), Zipf(1.0).moment(1)
    (5.000000000000001, inf)
    """

    alpha: float = 1.0
    C0: float = 1.0

    def __post_init__(self):
        alpha = door.check_positive(self.alpha, "alpha")
        door.keep(self, alpha=alpha, C0=door.check_positive(self.C0, "C0"))

    def isf(self, q):
        """Return log C0 - alpha log q."""
        return np.log(self.C0) - self.alpha * np.log(_check_rank(q))

    def moment(self, p):
        """Return C0^p / (1 - p alpha), or infinity where p alpha >= 1."""
        if door.check_number(p, "p") * self.alpha >= 1:
            return np.inf
        return float(np.power(self.C0, p) / (1 - p * self.alpha))


@dataclass(frozen=True)
class LogNormal(BiasLaw):
    """Normal biases: frequencies r = exp(s) that are lognormal.

    Parameters
    ----------
    spread, mean : float
        Standard deviation and mean of the bias s. All moments of r exist.

    Examples
    --------
    >>> law = LogNormal(spread=0.5)
    >>> law.isf(0.5), round(law.moment(2), 3)
    (np.float64(0.0), 1.649)
    """

    spread: float = 1.0
    mean: float = 0.0

    def __post_init__(self):
        spread = door.check_positive(self.spread, "spread")
        door.keep(self, spread=spread, mean=door.check_number(self.mean, "mean"))

    def isf(self, q):
        """Return the quantile of the normal distribution; minus infinity at 1."""
        return self.mean - self.spread * ndtri(_check_rank(q))


@dataclass(frozen=True)
class GaussianRows:
    """Embedding rows u ~ N(0, covariance) (`eq:sim-true` has covariance 0.1).

    Parameters
    ----------
    covariance : float or array (d, d)
        A number stands for that multiple of the identity.

    Examples
    --------
    >>> GaussianRows(0.1).draw((2, 3), rng=np.random.default_rng(0)).shape
    (2, 3)
    """

    covariance: float | np.ndarray | tuple = 1.0

    def __post_init__(self):
        C = door.check_variance(self.covariance, "covariance")
        # of tuples, so that equal laws are equal
        door.keep(self, covariance=tuple(map(tuple, C.tolist())) if np.ndim(C) else C)

    def second_moment(self, d):
        """Return E(u u^T), shape (d, d)."""
        return door.covariance_matrix(self.covariance, d)

    def draw(self, size, *, rng):
        """Return rows of shape `size` = (N, d)."""
        N, d = _check_rows_shape(size)
        w, V = np.linalg.eigh(self.second_moment(d))
        root = V * np.sqrt(np.maximum(w, 0))
        return door.check_rng(rng).standard_normal((N, d)) @ root.T


def _check_rows_shape(size):
    """Return `size` = (N, d), with d >= 1."""
    if np.shape(size) != (2,):
        raise ValueError(f"size must be a pair (N, d), got {size!r}")
    return door.check_integer(size[0], "N"), door.check_integer(size[1], "d", minimum=1)


@dataclass(frozen=True)
class SparseGaussianRows:
    """Gaussian rows that keep a fraction `density` of their entries, the others zero.

    The paper sets half of each row to zero. Here each row keeps density * d entries at
    random places; where that is no whole number it is rounded up or down at random, so
    that the mean is density * d.

    Parameters
    ----------
    variance : float
        Variance of an entry that is kept.
    density : float
        Between 0 and 1.

    Examples
    --------
    >>> law = SparseGaussianRows(0.1, density=0.5)
    >>> u = law.draw((100, 10), rng=np.random.default_rng(0))
    >>> bool(((u != 0).sum(axis=1) == 5).all())
    True
    """

    variance: float = 1.0
    density: float = 0.5

    def __post_init__(self):
        variance = door.check_positive(self.variance, "variance", zero=True)
        density = door.check_positive(self.density, "density", zero=True)
        if density > 1:
            raise ValueError(f"density must be between 0 and 1, got {density}")
        door.keep(self, variance=variance, density=density)

    def second_moment(self, d):
        """Return E(u u^T), shape (d, d)."""
        return self.density * self.variance * np.eye(d)

    def draw(self, size, *, rng):
        """Return rows of shape `size` = (N, d)."""
        N, d = _check_rows_shape(size)
        n_kept = np.floor(self.density * d + door.check_rng(rng).random((N, 1)))
        ranks = np.argsort(np.argsort(rng.random((N, d)), axis=1), axis=1)
        return np.sqrt(self.variance) * rng.standard_normal((N, d)) * (ranks < n_kept)


@dataclass(frozen=True)
class ScaledRows:
    """The law of (r, x) = (exp(s + log_scale), sqrt(r) u): what state evolution draws.

    Parameters
    ----------
    rows : RowLaw
    bias : BiasLaw
    d : int
        Embedding dimension.
    log_scale : float
        Added to every bias; `scaled_rows` uses it for the normalisation `eq:bias_norm`.
    """

    rows: RowLaw
    bias: BiasLaw
    d: int
    log_scale: float = 0.0

    def __post_init__(self):
        door.check_methods("draw", rows=self.rows, bias=self.bias)
        d = door.check_integer(self.d, "d", minimum=1)
        door.keep(self, d=d, log_scale=door.check_number(self.log_scale, "log_scale"))

    def draw(self, N, *, rng):
        """Return `(r, X)`: r of shape (N,), X of shape (N, d)."""
        r = door.check_factors(self.bias.draw(N, rng=rng) + self.log_scale, "s")
        return r, np.sqrt(r)[:, None] * self.rows.draw((N, self.d), rng=rng)

    def atoms(self):
        """Return `(r, weights)` for expectations over the bias alone."""
        r, weights = self.bias.atoms()
        r = r * np.exp(self.log_scale)
        return door.check_rates(r, len(r), "exp(s + log_scale)"), weights


def scaled_rows(d, *, rows_u, rows_v, bias_u, bias_v):
    """Return the laws of the rows of A and B, with E(R^u) = 1 (`eq:bias_norm`).

    Parameters
    ----------
    d : int
        Embedding dimension.
    rows_u, rows_v : RowLaw
    bias_u, bias_v : BiasLaw

    Returns
    -------
    law_u, law_v : ScaledRows

    Raises
    ------
    ValueError
        If E(exp(s_u)) or E(exp(s_v)) is infinite, or so small that it is zero.

    Examples
    --------
    >>> law_u, law_v = scaled_rows(2, rows_u=GaussianRows(), rows_v=GaussianRows(),
    ...                            bias_u=ConstantBias(3.0), bias_v=ConstantBias(1.0))
    >>> law_u.atoms()[0], bool(np.isclose(law_v.atoms()[0][0], np.exp(4.0)))
    (array([1.]), True)
    """
    door.check_methods("draw", rows_u=rows_u, rows_v=rows_v)
    door.check_methods("moment", bias_u=bias_u, bias_v=bias_v)
    for name, bias in (("bias_u", bias_u), ("bias_v", bias_v)):
        # else E(R^u) = 1 (eq:bias_norm) or E(B^T B) does not exist
        if not 0 < bias.moment(1) < np.inf:
            raise ValueError(f"{name} = {bias} has no finite mean rate above zero")
    mean = bias_u.moment(1)
    law_u = ScaledRows(rows_u, bias_u, d, -np.log(mean))
    return law_u, ScaledRows(rows_v, bias_v, d, np.log(mean))


class EmpiricalRows:
    """The rows of one instance as a law.

    A draw takes every row equally often, and the remainder at random.

    Parameters
    ----------
    r : array (N,)
        Bias factors.
    X : array (N, d)
        Scaled rows sqrt(r) u.

    Examples
    --------
    >>> law = EmpiricalRows(np.ones(2), np.array([[0.0], [1.0]]))
    >>> r, X = law.draw(5, rng=np.random.default_rng(0))
    >>> X.ravel()
    array([0., 1., 0., 1., 0.])
    """

    def __init__(self, r, X):
        self.X = door.check_matrix(X, "X", empty=False).copy()
        self.r = door.check_rates(r, len(self.X), "r").copy()

    def draw(self, N, *, rng):
        """Return `(r, X)` of `N` rows."""
        whole, rest = divmod(door.check_integer(N, "N"), len(self.r))
        random = door.check_rng(rng).permutation(len(self.r))[:rest]
        index = np.append(np.tile(np.arange(len(self.r)), whole), random)
        return self.r[index], self.X[index]
