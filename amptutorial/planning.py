"""How many counts are needed: state evolution solved for the counts (Section 4.3).

State evolution says to which error given counts lead. Here the error is given. All
rates are multiplied by one factor, which leaves the embedding as it is and makes its
signal in the score stronger, until the predicted error is the wanted one.
"""

from dataclasses import replace

import numpy as np
from scipy.optimize import brentq

from ._validation import check_integer, check_methods, check_positive, check_rng
from .bayes_optimal import MatchedEvolution, SeenRows
from .laws import ScaledRows
from .state_evolution import gaussian_state_evolution, has_closed_form, state_evolution

_HINT = 0.5  # of the truth, in the start; from less, a weak ridge may go in a circle
_STEP, _STEPS = np.log(4), 10  # how far a factor is looked for, in each direction


class _RaisedRows:
    """A law of (r, x) with more counts: r times exp(`shift`)."""

    def __init__(self, law, shift):
        self.law, self.shift = law, shift

    def draw(self, N, *, rng):
        r, X = self.law.draw(N, rng=rng)
        return r * np.exp(self.shift), X * np.exp(self.shift / 2)


def _raised(law, shift):
    """Return a law of rows with exp(`shift`) times the counts."""
    if isinstance(law, SeenRows):
        return SeenRows(law.prior, law.rates * np.exp(shift), law.probabilities)
    if isinstance(law, ScaledRows):
        return replace(law, log_scale=law.log_scale + shift)
    return _RaisedRows(law, shift)


def counts_needed(
    error, law_u, law_v, denoiser=None, *, beta, n_iter=50, n_samples=20_000, rng=None
):
    """Return by which factor all rates must be multiplied to reach an error of A B^T.

    The error is that of `normalised_mse`, predicted by state evolution in the limit of
    large tables. The expected number of counts that is needed is the factor times
    m n E(R^u) E(R^v).

    Parameters
    ----------
    error : float
        Wanted, between 0 and 1; estimating zero has the error 1.
    law_u, law_v : ScaledRowLaw or SeenRows
        Laws of rows and frequencies. With `SeenRows`, of one problem each, the error is
        that of matched posterior means, after many iterations from almost nothing.
        Else AMP starts from half of B, in noise as long as B.
    denoiser : Denoiser, or a pair of them
        As for AMP; none for `SeenRows`, whose prior says it.
    beta : float
        m / n.
    n_iter : int
        Iterations of AMP. Near the threshold, where errors are nearly 1, it takes many.
    n_samples : int
        Rows to be sampled where there is no closed form, see `has_closed_form`.
    rng : numpy.random.Generator, optional
        Needed there. All factors are tried on the same draws.

    Returns
    -------
    float
        If the error jumps across the wanted one, the factor of the jump; one such
        factor, if the error does not fall steadily.

    Raises
    ------
    ValueError
        If the wanted error is not between 0 and 1, is missed with a million times the
        counts, or is reached with a millionth of them.

    Examples
    --------
    With one count a pair a square table is at the threshold: nothing is learned.

    >>> from amptutorial.bayes_optimal import GaussianMixture
    >>> rows = SeenRows(GaussianMixture([1.0], [0.0], [1.0]), [1.0])
    >>> round(counts_needed(0.3, rows, rows, beta=1.0), 2)
    6.12
    """
    error, beta = check_positive(error, "error"), check_positive(beta, "beta")
    if error >= 1:
        raise ValueError(f"error must be below 1, that of estimating zero, got {error}")
    if isinstance(law_u, SeenRows) and isinstance(law_v, SeenRows):
        if denoiser is not None:
            raise ValueError("SeenRows have the denoiser of their prior: leave it out")
        if law_u.rates.ndim + law_v.rates.ndim > 2:
            raise ValueError("rates must be of one problem, of shape (K,)")

        def predicted(shift):
            evolution = MatchedEvolution(law_u, _raised(law_v, shift), beta)
            return float(evolution.error(*evolution.limit()))

    else:
        given = law_u, law_v, denoiser, beta, n_iter, n_samples, rng
        predicted = _state_evolution_error(*given)
    return _solve(error, predicted)


def _state_evolution_error(law_u, law_v, denoiser, beta, n_iter, n_samples, rng):
    """Return the function of the shift of log r^v that predicts the error."""
    for law, name in ((law_u, "law_u"), (law_v, "law_v")):
        check_methods(law, name, "draw")
    closed = has_closed_form(law_u, law_v, denoiser)
    if closed:
        r, weights = law_v.atoms()
        S = weights @ r * law_v.rows.second_moment(law_v.d)
    else:
        seed = check_rng(rng).integers(2**32)
        _, X = law_v.draw(check_integer(n_samples, "n_samples", minimum=1), rng=rng)
        S = X.T @ X / len(X)

    def predicted(shift):
        size = S * np.exp(shift) / beta
        options = {"beta": beta, "n_iter": n_iter}
        options |= {"M0": _HINT * size, "Q0": (_HINT**2 + 1) * size}
        laws = law_u, _raised(law_v, shift)
        if closed:
            run = gaussian_state_evolution(*laws, denoiser, **options)
        else:
            own = {"n_samples": n_samples, "rng": np.random.default_rng(seed)}
            run = state_evolution(*laws, denoiser, **options, **own)
        return run.iterates[-1].nmse

    return predicted


def _solve(error, predicted):
    """Return the factor at which `predicted` of its logarithm falls to `error`."""
    is_reached = predicted(0.0) <= error
    step, before = -_STEP if is_reached else _STEP, 0.0
    for k in range(1, _STEPS + 1):
        after = k * step
        if (predicted(after) <= error) != is_reached:
            break
        before = after
    else:
        how = ("missed with a million times", "reached with a millionth of")[is_reached]
        raise ValueError(f"the error {error:g} is {how} the counts of these laws")
    ends, width = sorted((before, after)), 1e-6  # of the logarithm
    root = brentq(lambda x: predicted(x) - error, *ends, xtol=width)
    # where the error jumps the root may lie on the wrong side of it
    return float(np.exp(min(root + 2 * width, ends[1])))
