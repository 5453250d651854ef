"""The check of what AMP makes of a denoiser: noise and error are those predicted."""

import numpy as np

from ..amp import biased_low_rank_amp
from ..denoisers import Denoiser
from ..laws import DiscreteBias, EmpiricalRows, scaled_rows
from ..metrics import normalised_mse
from ..state_evolution import start_overlap
from ..state_evolution import state_evolution as predict
from .verdict import require

FEWEST = 30  # rows of an estimate that make noise normal


class _Recorder(Denoiser):
    """A denoiser that keeps the rows it is given."""

    def __init__(self, denoiser):
        self.denoiser, self.precision, self.seen = denoiser, denoiser.precision, []

    def estimate(self, P, r, F):
        return self.denoiser.estimate(P, r, F)

    def denoise(self, P, r, F):
        self.seen.append(P)
        return self.denoiser.denoise(P.copy(), r.copy(), F.copy())

    def penalty(self, X, r):
        return self.denoiser.penalty(X, r)

    def convexity(self, r):
        return self.denoiser.convexity(r)


def state_evolution(trial):
    """In AMP at m = 4n, the denoiser is given p = x M + N(0, Q), as predicted.

    The error of the estimates is the predicted one as well.
    """
    wanted, stated = trial.belief.precision, trial.denoiser.precision
    text = f'precision is "{stated}" and should be "{wanted}": AMP would hand over the '
    require(stated == wanted, text + "wrong F")
    d, (m, n), n_iter = trial.problem.P.shape[1], (2000, 500), 4
    rng = np.random.default_rng(2)
    law_u, law_v = _laws_that_amp_can_find(trial, d)
    (r_u, A), (r_v, B) = law_u.draw(m, rng=rng), law_v.draw(n, rng=rng)
    B0 = 0.5 * (B + B.std() * rng.standard_normal(B.shape))
    Y = A @ B.T / np.sqrt(m) + rng.standard_normal((m, n))

    u, v = _Recorder(trial.denoiser), _Recorder(trial.denoiser)
    run = biased_low_rank_amp(Y, r_u, r_v, (u, v), B0=B0, n_iter=n_iter)
    _require_predicted_noise(run, (u.seen, v.seen), (A, B), B0)
    laws = EmpiricalRows(r_u, A), EmpiricalRows(r_v, B)
    start = start_overlap(B, B0, m) | {"beta": m / n, "n_iter": n_iter}
    evolution = predict(*laws, (u, v), **start, n_samples=m, rng=rng)
    predicted = evolution.iterates[-1].nmse
    measured = normalised_mse(A, B, run.A, run.B)
    require(
        abs(measured - predicted) <= 0.25 * max(predicted, 0.2),
        f"m = {m}, n = {n}: after {n_iter} iterations state evolution predicts the "
        f"error {predicted:.3f}, AMP has {measured:.3f}: does the denoiser see "
        "anything but P, r and F?",
    )
    text = f"error after {n_iter} iterations: {predicted:.3f} predicted"
    return f"{text}, {measured:.3f} measured"


def _laws_that_amp_can_find(trial, d):
    """Return laws of scaled rows of both sides, frequent enough to be found at m = 4n.

    AMP finds a signal if E(r u_k^2)^2 > sqrt(m / n) = 2, and otherwise magnifies
    chance: rows that are weak are made frequent.
    """
    rows = trial.belief.rows
    strength = np.mean(rows.draw((4000, d), rng=np.random.default_rng(3)) ** 2)
    level = max(0.0, np.log(2 / strength))
    bias = DiscreteBias([level - 0.5, level + 0.5])
    return scaled_rows(d, rows_u=rows, rows_v=rows, bias_u=bias, bias_v=bias)


def _require_predicted_noise(run, seen, truth, B0):
    """Raise unless the rows `seen` in each iteration of AMP are p = x M + N(0, Q).

    `seen` is what the denoisers of A and of B were given, `truth` the true A and B.
    """
    (A, B), (m, n) = truth, map(len, truth)
    starts = [B0, *(it.B for it in run.iterates)]
    for it, P_a, P_b, B_k in zip(run.iterates, *seen, starts, strict=False):
        sides = ("A", P_a, A, B, B_k), ("B", P_b, B, A, it.A)
        for side, P, X, other, estimate in sides:
            if _number_of_rows(estimate) < FEWEST:
                continue
            noise = P - X @ (other.T @ estimate / m)
            far = _standard_errors(noise, estimate.T @ estimate / m)
            require(
                far < 6,
                f"m = {m}, n = {n}: in iteration {it.k} the noise in the rows given to "
                f"the denoiser of {side} has a covariance that is {far:.3g} standard "
                "errors away from Q. The Onsager term, which is made of "
                "mean_jacobian, takes away too little or too much",
            )


def _number_of_rows(X):
    """Return how many rows of equal length would have the moments of those of `X`.

    The noise in a row of P is a sum over the rows of the other side's estimate, and
    normal where they are many.
    """
    squares = (X**2).sum(axis=1)
    return squares.sum() ** 2 / max((squares**2).sum(), 1e-300)


def _standard_errors(noise, Q):
    """Return how far the covariance of `noise` is from `Q`, in standard errors."""
    w, V = np.linalg.eigh(Q)
    # an estimate that is all zeros has Q = 0, and must have no noise
    scale = np.maximum(w, 1e-9 * w[-1] + 1e-300)
    white = noise @ V / np.sqrt(scale)
    far = np.abs(white.T @ white / len(white) - np.diag(w / scale)).max()
    return far / np.sqrt(2 / len(white))
