"""What the counts show of the embedding: channels for words that come in bursts.

A word that occurs once in a document tends to occur again, for reasons that no
embedding knows. So let N_ij ~ Poisson(rate_ij) count the *bursts*, where log rate_ij =
s_i + s_j + M_ij, and let the table show a count Z_ij that they cause. Of every such
channel three things are wanted. With log rate as the parameter (Fisher's identity),

- the score is E[N_ij | Z_ij] - rate_ij: the expected bursts take the place of the
  counts, and nothing else changes, neither the re-expansion nor AMP;
- the Fisher information is the variance of E[N_ij | Z_ij], that is, the Poisson
  channel's, rate_ij, minus what the channel hides of N_ij;
- counts that are only expected, to a factor: E[Z_ij] is proportional to rate_ij, so
  that biases refitted to the counts give the rates of the counts. `Presence` alone
  saturates: its rates are those of the bursts.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, exprel

from .bias import margins
from .sampling import ALL_UP_TO

MOST_ONES = 0.9  # of the pairs: more say hardly anything of their rates
LEAST_DISPERSION = 1e-6  # of counts that vary no more than Poisson counts


class Channel(ABC):
    """How bursts N ~ Poisson(rate) become a count Z."""

    # whether E[N | Z] depends on the rate, and must be formed anew as the rate changes
    follows_rate = True
    # whether E[Z] falls behind the rate, so that rates are those of bursts, and an
    # `information` that falls behind too is asked for
    saturates = False

    def refit(self, Z):
        """Return the channel with its dispersion estimated from counts; or itself."""
        return self

    def mean(self, rate):
        """Return the expected count: the rate, where biases are those of counts."""
        return rate

    @abstractmethod
    def bursts(self, z, rate):
        """Return E[N | Z = z], the expected bursts, for arrays of counts and rates."""


class Counts(Channel):
    """Every count is a burst of its own: Z = N, the Poisson channel (`eq:Pij`).

    Examples
    --------
    >>> Counts().bursts(np.array([1.0, 4.0]), np.array([0.1, 0.1]))
    array([1., 4.])
    """

    follows_rate = False

    def bursts(self, z, rate):
        """Return `z`."""
        return z


class Presence(Channel):
    """The table shows whether there is a burst, P(Z > 0) = 1 - exp(-rate).

    Counts above one are read as one. E[N | Z > 0] = rate / (1 - exp(-rate)), and the
    information is rate^2 / (exp(rate) - 1): nearly all of it where bursts are rare.

    Examples
    --------
    >>> Presence().bursts(np.array([1.0, 4.0]), np.array([1e-9, 1.0])).round(3)
    array([1.   , 1.582])
    """

    saturates = True

    def bursts(self, z, rate):
        """Return rate / (1 - exp(-rate)) where `z` is not zero."""
        rate = np.maximum(rate, 1e-12)  # the limit at zero is 1
        return np.where(z > 0, rate / -np.expm1(-rate), 0.0)

    def information(self, rate):
        """Return rate^2 / (exp(rate) - 1)."""
        rate = np.asarray(rate)
        return rate / exprel(rate)  # (exp(x) - 1) / x, also at zero

    def mean(self, rate):
        """Return P(Z > 0), the expected count."""
        return -np.expm1(-rate)


@dataclass(frozen=True)
class Bursts(Channel):
    """Bursts of logarithmic sizes: negative binomial counts, dispersion estimated.

    A burst of k counts has the probability p^k / (k L), where p = dispersion / (1 +
    dispersion) and L = log(1 + dispersion). Then Z is negative binomial with shape
    alpha = rate / L, mean dispersion * alpha and variance (1 + dispersion) times that;
    given the sum of a row, it is Dirichlet-compound multinomial. Given Z = z,

        E[N | z] = alpha (1 / alpha + 1 / (alpha + 1) + ... + 1 / (alpha + z - 1)):

    count number k + 1 opens a burst with probability alpha / (alpha + k). Rare pairs
    show their presence, frequent ones their counts.

    Parameters
    ----------
    dispersion : float
        Positive: the variance of a count, divided by its mean, minus 1.

    Examples
    --------
    >>> z, rate = np.array([1.0, 4.0, 4.0]), np.array([0.1, 1e-9, 1e9])
    >>> Bursts(1.0).bursts(z, rate).round(3)
    array([1., 1., 4.])
    """

    dispersion: float = 1.0

    def refit(self, Z):
        """Return the channel whose bursts have the mean size that the counts show.

        A burst has dispersion / log(1 + dispersion) counts in the mean. The bursts are
        those expected if rows and columns were independent, and the dispersion is that
        of the largest likelihood. An association counts as burst: the dispersion errs
        on the high side.

        Parameters
        ----------
        Z : csr_array (m, n)
            Counts without empty rows or columns.
        """
        rows, columns = margins(Z)
        i, j = Z.tocoo().coords
        mean = rows[i] * columns[j] / rows.sum()

        def surplus(log_dispersion):
            """Return how many counts too many the expected bursts have."""
            dispersion = np.exp(log_dispersion)
            n = _bursts_of(Z.data, mean / dispersion)
            return n.sum() * dispersion / np.log1p(dispersion) - Z.data.sum()

        least = np.log(LEAST_DISPERSION)
        if surplus(least) >= 0:
            return Bursts(LEAST_DISPERSION)
        # as log(1 + x^2) <= x, the mean size of bursts exceeds every count there
        most = 2 * np.log1p(Z.data.max())
        return Bursts(float(np.exp(brentq(surplus, least, most))))

    def bursts(self, z, rate):
        """Return alpha (digamma(z + alpha) - digamma(alpha)), 1 where `z` is 1."""
        return _bursts_of(z, rate / np.log1p(self.dispersion))


class Damped(Channel):
    """The k-th occurrence of a word in a document counts 1/k.

    E[N | Z = z] = 1 + 1/2 + ... + 1/z is that of `Bursts` with alpha = 1 for every
    pair, whatever its rate. It is an approximation: on real text, pairs that occur have
    rates far above those of independence, most of all the rare ones, and an alpha that
    follows the estimated rate takes repetitions for association.

    Examples
    --------
    >>> Damped().bursts(np.array([1.0, 2.0, 4.0]), 0.0).round(3)
    array([1.   , 1.5  , 2.083])
    """

    follows_rate = False

    def bursts(self, z, rate):
        """Return the harmonic number of `z`."""
        return _bursts_of(z, 1.0)


class Indicator(Channel):
    """A pair that occurs counts 1: what `Presence` says where bursts are rare.

    Where they are not, it understates them; but its bursts do not grow with the
    estimate.

    Examples
    --------
    >>> Indicator().bursts(np.array([0.0, 1.0, 4.0]), 0.0)
    array([0., 1., 1.])
    """

    follows_rate = False

    def bursts(self, z, rate):
        """Return 1 where there is a count."""
        return np.where(z > 0, 1.0, 0.0)


def _bursts_of(z, alpha):
    """Return alpha (digamma(z + alpha) - digamma(alpha)): see `Bursts`."""
    alpha = np.maximum(alpha, 1e-9)  # the limit at zero is 1
    return np.where(z == 1, 1.0, alpha * (digamma(z + alpha) - digamma(alpha)))


COUNTS = Counts()
CHANNELS = {
    "counts": COUNTS,
    "damped": Damped(),
    "presence": Indicator(),
    "bursts": Bursts(),
}


def channel_of(name, Z):
    """Return the channel of a name for a table, its dispersion estimated from counts.

    The law of zeros and ones is `Presence`. Where there are other counts the rates are
    theirs, and `Indicator` stands for it; so it does in tables of more than 2^26 pairs,
    of which nearly all are rare, and where hardly a zero is left to tell rates apart.

    Parameters
    ----------
    name : str
        A key of `CHANNELS`.
    Z : csr_array (m, n)
        Counts without empty rows or columns.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> type(channel_of("presence", sp.csr_array(np.eye(2)))).__name__
    'Presence'
    """
    n_pairs = Z.shape[0] * Z.shape[1]
    told = Z.nnz <= MOST_ONES * n_pairs and n_pairs <= ALL_UP_TO
    if name == "presence" and told and are_ones(Z):
        return Presence()
    return CHANNELS[name].refit(Z)


def are_ones(Z):
    """Return whether a csr_array stores nothing but ones."""
    return bool((Z.data == 1).all())
