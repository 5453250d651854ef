"""The check of what AMP makes of a denoiser: the error is the predicted one."""

import numpy as np

from ..amp import biased_low_rank_amp
from ..denoisers import Denoiser
from ..laws import DiscreteBias, EmpiricalRows, scaled_rows
from ..metrics import normalised_mse
from ..state_evolution import start_overlap
from ..state_evolution import state_evolution as predict
from .verdict import require


class _Unlearned(Denoiser):
    """A denoiser as it is now, which gets arrays of its own."""

    def __init__(self, denoiser):
        self.denoiser, self.precision = denoiser, denoiser.precision
        vars(self).update(penalty=denoiser.penalty, convexity=denoiser.convexity)

    def estimate(self, P, r, F):
        return self.denoise(P, r, F)[0]

    def denoise(self, P, r, F):
        return self.denoiser.denoise(P.copy(), r.copy(), F.copy())


def state_evolution(trial):
    """In AMP at m = 4n, the error of the estimates is the one that is predicted.

    State evolution takes it that the denoiser is given p = x M + N(0, Q).
    """
    wanted, stated = trial.belief.precision, trial.denoiser.precision
    text = f'precision is "{stated}" and should be "{wanted}": AMP would hand over the '
    require(stated == wanted, text + "wrong F")
    (m, n), n_iter, rng = (2000, 500), 4, np.random.default_rng(2)
    law_u, law_v = _laws_that_amp_can_find(trial)
    (r_u, A), (r_v, B) = law_u.draw(m, rng=rng), law_v.draw(n, rng=rng)
    B0 = 0.5 * (B + B.std() * rng.standard_normal(B.shape))
    Y = A @ B.T / np.sqrt(m) + rng.standard_normal((m, n))

    denoiser = _Unlearned(trial.denoiser)
    run = biased_low_rank_amp(Y, r_u, r_v, denoiser, B0=B0, n_iter=n_iter)
    laws = EmpiricalRows(r_u, A), EmpiricalRows(r_v, B)
    start = start_overlap(B, B0, m) | {"beta": m / n, "n_iter": n_iter}
    evolution = predict(*laws, denoiser, **start, n_samples=m, rng=rng)
    predicted = evolution.iterates[-1].nmse
    measured = normalised_mse(A, B, run.A, run.B)
    require(
        abs(measured - predicted) <= 0.25 * max(predicted, 0.2),
        f"m = {m}, n = {n}: after {n_iter} iterations state evolution predicts the "
        f"error {predicted:.3f}, AMP has {measured:.3f}. Is mean_jacobian right, of "
        "which the Onsager term is made? Does it see anything but P, r and F?",
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
