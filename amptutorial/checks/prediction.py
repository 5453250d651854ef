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
        vars(self).update(penalty=denoiser.penalty, convexity=denoiser.convexity)

    def estimate(self, P, r, F):
        return self.denoise(P, r, F)[0]

    def denoise(self, P, r, F):
        self.seen.append(P)
        return self.denoiser.denoise(P.copy(), r.copy(), F.copy())


def state_evolution(trial):
    """In AMP at m = 4n, the denoiser is given p = x M + N(0, Q), as predicted.

    The error of the estimates is the predicted one as well.
    """
    wanted, stated = trial.belief.precision, trial.denoiser.precision
    text = f'precision is "{stated}" and should be "{wanted}": AMP would hand over the '
    require(stated == wanted, text + "wrong F")
    (m, n), n_iter, rng = (2000, 500), 4, np.random.default_rng(2)
    law_u, law_v = _laws_that_amp_can_find(trial)
    (r_u, A), (r_v, B) = law_u.draw(m, rng=rng), law_v.draw(n, rng=rng)
    B0 = 0.5 * (B + B.std() * rng.standard_normal(B.shape))
    Y = A @ B.T / np.sqrt(m) + rng.standard_normal((m, n))

    denoiser = _Recorder(trial.denoiser)
    run = biased_low_rank_amp(Y, r_u, r_v, denoiser, B0=B0, n_iter=n_iter)
    _require_predicted_noise(run, denoiser.seen, (A, B), B0)
    laws = EmpiricalRows(r_u, A), EmpiricalRows(r_v, B)
    start = start_overlap(B, B0, m) | {"beta": m / n, "n_iter": n_iter}
    evolution = predict(*laws, denoiser, **start, n_samples=m, rng=rng)
    predicted = evolution.iterates[-1].nmse
    measured = normalised_mse(A, B, run.A, run.B)
    require(
        abs(measured - predicted) <= 0.25 * max(predicted, 0.2),
        f"m = {m}, n = {n}: after {n_iter} iterations state evolution predicts the "
        f"error {predicted:.3f}, AMP has {measured:.3f}: does the denoiser see "
        "anything but P, r and F?",
    )
    told = f"{predicted:.3f} predicted, {measured:.3f} measured"
    return f"error after {n_iter} iterations: {told}"


def _laws_that_amp_can_find(trial):
    """Return laws of scaled rows of both sides, frequent enough to be found at m = 4n.

    AMP finds a signal if E(r u_k^2)^2 > sqrt(m / n) = 2, and otherwise magnifies
    chance: rows that are weak are made frequent.
    """
    rows = trial.belief.rows
    strength = np.mean(rows.draw((4000, trial.d), rng=np.random.default_rng(3)) ** 2)
    level = max(0.0, np.log(2 / strength))
    bias = DiscreteBias([level - 0.5, level + 0.5])
    return scaled_rows(trial.d, rows_u=rows, rows_v=rows, bias_u=bias, bias_v=bias)


def _require_predicted_noise(run, seen, truth, B0):
    """Raise unless the rows `seen` in AMP are p = x M + N(0, Q).

    The denoisers of A and of B see them in turn; `truth` is the pair of the true A and
    B. What each sees is made from the last estimate of the other side.
    """
    m, n = map(len, truth)
    estimates = [B0, *(X for it in run.iterates for X in (it.A, it.B))]
    for k, (P, estimate) in enumerate(zip(seen, estimates, strict=False)):
        X, other = truth[k % 2], truth[1 - k % 2]
        if _number_of_rows(estimate) < FEWEST:
            continue
        noise = P - X @ (other.T @ estimate / m)
        far = _standard_errors(noise, estimate.T @ estimate / m)
        require(
            far < 6,
            f"m = {m}, n = {n}: in iteration {k // 2} the noise in the rows given to "
            f"the denoiser of {'AB'[k % 2]} has a covariance that is {far:.3g} "
            "standard errors away from Q. The Onsager term, which is made of "
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
