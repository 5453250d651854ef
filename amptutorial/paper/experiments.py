"""The paper's experiments, one instance at a time (Section 6).

`amptutorial.paper.reproduce` runs and stores them all.
An instance is drawn from its number alone, so that any of them can be computed again.
Each function returns a dictionary of arrays; `AMP` in a name means measured, `SE`
predicted by state evolution before any noise was drawn.
"""

from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from ..amp import biased_low_rank_amp, random_start
from ..baselines import singular_values, svd
from ..bias import drop_empty, estimate_bias
from ..corpus import load_movie_reviews
from ..denoisers import Denoiser, Lasso, Ridge
from ..laws import ConstantBias, EmpiricalRows, SparseGaussianRows
from ..metrics import QuadraticLoss, normalised_mse
from ..model import PoissonEmbedding
from ..score import FisherScore
from ..spectrum import signal_singular_values
from ..state_evolution import (
    gaussian_state_evolution,
    has_closed_form,
    start_overlap,
    state_evolution,
)
from .descent import minimise
from .setting import OBSERVATIONS, Setting, observe_score


@dataclass(frozen=True)
class Experiment(Setting):
    """A synthetic experiment of Section 6.2; the defaults are the paper's first.

    Attributes
    ----------
    rows, bias, m, n, d
        As for `amptutorial.paper.setting.Setting`.
    denoiser : Denoiser
        Of both sides.
    n_iter : int
    """

    denoiser: Denoiser = Ridge(1e-3)
    n_iter: int = 15


L2 = Experiment()
L1 = Experiment(rows=SparseGaussianRows(0.1, 0.5), denoiser=Lasso(1e-3))
SINGULAR = Experiment(m=1000, n=2000)
LOG_RATES = np.linspace(0.0, 16.0, 33)  # s_u + s_v of `fig:singular`


def amp_curves(embedding, score, denoiser, B0, n_iter):
    """Run AMP and return its curves, one entry an iteration.

    Parameters
    ----------
    embedding : PoissonEmbedding
        The truth.
    score : tuple (Y, r_u, r_v)
        As from `amptutorial.paper.setting.observe_score`.
    denoiser, B0, n_iter
        As for `amptutorial.biased_low_rank_amp`.

    Returns
    -------
    dict of arrays (n_iter,)
        ``mse``, the normalised MSE of A B^T; ``loss``, `eq:LAB` divided by that of the
        truth; ``excess``, (loss - |W|^2 / 2) / n, the part of it that state evolution
        predicts.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> e = replace(L2, m=60, n=90, d=2).draw(rng=rng)
    >>> score, B0 = observe_score(e, "true", rng=rng), random_start(90, 2, rng)
    >>> curves = amp_curves(e, score, Ridge(1e-3), B0, 8)
    >>> bool(curves["mse"][-1] < 0.05), curves["loss"].shape
    (True, (8,))
    """
    Y, r_u, r_v = score
    A, B = embedding.A, embedding.B
    run = biased_low_rank_amp(*score, denoiser, B0=B0, n_iter=n_iter)
    loss = QuadraticLoss(Y, r_u, r_v, denoiser)
    truth = loss(A, B)
    noise = truth - denoiser.penalty(A, r_u) - denoiser.penalty(B, r_v)
    values = np.array([loss(it.A, it.B) for it in run.iterates])
    return {
        "mse": np.array([normalised_mse(A, B, it.A, it.B) for it in run.iterates]),
        "loss": values / truth,
        "excess": (values - noise) / embedding.n,
    }


def predict(embedding, laws, denoiser, B0, n_iter, *, rng):
    """Return the predicted curves ``SE_mse`` and ``SE_excess`` of an instance.

    They begin at the overlap that its start `B0` has. Exact where a closed form exists.
    Started from the limit of that overlap, zero, the prediction would stay there for
    ever.
    """
    m, n = embedding.m, embedding.n
    start = start_overlap(embedding.B, B0, m) | {"beta": m / n, "n_iter": n_iter}
    if has_closed_form(*laws, denoiser):
        run = gaussian_state_evolution(*laws, denoiser, **start)
    else:
        run = state_evolution(*laws, denoiser, **start, n_samples=20_000, rng=rng)
    return {
        "SE_mse": np.array([it.nmse for it in run.iterates]),
        "SE_excess": np.array([it.excess_loss for it in run.iterates]),
    }


def _compare(embedding, laws, denoiser, n_iter, *, rng):
    """Return `predict`, and AMP's curves by all observations from one random start.

    The measured ones are named ``AMP_mse_counted`` and so on; see `amp_curves`.
    """
    B0 = random_start(embedding.n, embedding.d, rng)
    result = predict(embedding, laws, denoiser, B0, n_iter, rng=rng)
    for channel in OBSERVATIONS:
        score = observe_score(embedding, channel, rng=rng)
        curves = amp_curves(embedding, score, denoiser, B0, n_iter)
        result |= {f"AMP_{name}_{channel}": curve for name, curve in curves.items()}
    return result


def l2_instance(index, setting=L2):
    """One instance of the first experiment (`fig:20runs-loss`, `fig:mse`).

    Returns
    -------
    dict
        ``AMP_mse_*``, ``AMP_loss_*``, ``AMP_excess_*`` (n_iter,) for each of the
        observations, see `amp_curves`; ``SE_mse``, ``SE_excess`` (n_iter,);
        ``GD_mse``, ``GD_loss`` (normalised) and ``GD_iterations``, where gradient
        descent from a random start ends, on counts of the same embedding with counted
        biases.

    Examples
    --------
    >>> result = l2_instance(0, replace(L2, m=60, n=90, d=1))
    >>> bool(abs(result["AMP_mse_gaussian"][-1] / result["SE_mse"][-1] - 1) < 0.5)
    True
    """
    rng = np.random.default_rng([index, setting.m])
    e, laws = setting.draw(rng=rng), setting.scaled_rows()
    result = _compare(e, laws, setting.denoiser, setting.n_iter, rng=rng)
    loss = QuadraticLoss(*observe_score(e, "counted", rng=rng), setting.denoiser)
    start = {"A0": random_start(e.m, e.d, rng), "B0": random_start(e.n, e.d, rng)}
    fit = minimise(loss, **start, n_iter=5000, tol=1e-8)
    return result | {
        "GD_mse": normalised_mse(e.A, e.B, fit.A, fit.B),
        "GD_loss": fit.losses[-1] / loss(e.A, e.B),
        "GD_iterations": len(fit.losses),
    }


def l1_instance(index, setting=L1):
    """One instance of the sparse experiment (`fig:sparse20runs-loss`, `-mse`).

    Returns
    -------
    dict
        As `l2_instance`, without gradient descent.

    Examples
    --------
    >>> sorted(l1_instance(0, replace(L1, m=60, n=90, d=2)))[-2:]
    ['SE_excess', 'SE_mse']
    """
    rng = np.random.default_rng([index, setting.m])
    e, laws = setting.draw(rng=rng), setting.scaled_rows()
    return _compare(e, laws, setting.denoiser, setting.n_iter, rng=rng)


def fisher_instance(index, setting=L2, n_pairs=2000):
    """One instance of the scatter plot of errors against Delta (`fig:delta-mMSE`).

    Returns
    -------
    dict
        For pairs at random: ``r_u``, ``r_v`` (n_pairs,), with Delta = 1 / (r_u r_v);
        ``AMP_error``, ``SVD_error`` (n_pairs,), the squared error of u_i . v_j /
        sqrt(m) divided by its mean square over all pairs.

    Examples
    --------
    >>> result = fisher_instance(0, replace(L2, m=60, n=90, d=2), n_pairs=500)
    >>> bool(np.median(result["AMP_error"]) < 0.1)
    True
    """
    rng = np.random.default_rng([index, setting.m])
    e = setting.draw(rng=rng)
    Y, r_u, r_v = observe_score(e, "counted", rng=rng)
    options = {"B0": random_start(e.n, e.d, rng), "n_iter": setting.n_iter}
    run = biased_low_rank_amp(Y, r_u, r_v, setting.denoiser, **options)
    i, j = rng.integers(e.m, size=n_pairs), rng.integers(e.n, size=n_pairs)
    truth = np.einsum("kd,kd->k", e.U[i], e.V[j])
    mean_square = np.vdot(e.U.T @ e.U, e.V.T @ e.V) / (e.m * e.n)

    def error(A, B):
        estimate = np.einsum("kd,kd->k", A[i], B[j]) / np.sqrt(r_u[i] * r_v[j])
        return (estimate - truth) ** 2 / mean_square

    errors = {"AMP_error": error(run.A, run.B)}
    errors["SVD_error"] = error(*svd(Y, e.d, rng=rng))
    return {"r_u": e.r_u[i], "r_v": e.r_v[j]} | errors


def singular_instance(index, setting=SINGULAR):
    """One instance of the spectrum at s_u + s_v = LOG_RATES[index] (`fig:singular`).

    Returns
    -------
    dict
        ``delta``, and of Y~ with counted biases the singular values ``s_1``, ``s_d``
        and ``s_d+1``; ``theta`` (d,), those of A B^T / sqrt(m).

    Examples
    --------
    >>> result = singular_instance(32, replace(SINGULAR, m=60, n=90, d=2))
    >>> bool(result["s_d"] > 10 * result["s_d+1"])
    True
    """
    rng = np.random.default_rng([index, setting.m])
    half = ConstantBias(LOG_RATES[index] / 2)
    e = replace(setting, bias=half).draw(rng=rng)
    Y, _, _ = observe_score(e, "counted", rng=rng)
    s = singular_values(Y, e.d + 1, rng=rng)
    delta, theta = np.exp(-LOG_RATES[index]), signal_singular_values(e.A, e.B)
    return {"delta": delta, "s_1": s[0], "s_d": s[-2], "s_d+1": s[-1], "theta": theta}


@cache
def _learn_from_reviews():
    """Return `(U, V, r_u, r_v)`: rows that AMP learns from 7,000 movie reviews.

    The bias factors are the counted ones. This is the paper's way to "true" embeddings
    of real text. So weak a ridge overfits rare words: a few rows are a hundred times as
    long as the others.
    """
    Z, _, _ = drop_empty(load_movie_reviews().counts)
    r_u, r_v = estimate_bias(Z)
    B0 = random_start(len(r_v), 10, np.random.default_rng(0))
    Y = FisherScore(Z, r_u, r_v)
    run = biased_low_rank_amp(Y, r_u, r_v, Ridge(1e-3), B0=B0, n_iter=10)
    return run.A / np.sqrt(r_u)[:, None], run.B / np.sqrt(r_v)[:, None], r_u, r_v


def centre_and_scale(X, r=None):
    """Return X less its mean row, divided by its most negative entry.

    So the paper prepares each matrix, in one reading of "the row mean" and of "the
    smallest element" (erratum 15). `r` (m,), if given, are the weights of the rows in
    the mean.

    Examples
    --------
    >>> centre_and_scale(np.array([[0.0], [1.0], [5.0]])).ravel().tolist()
    [1.0, 0.5, -1.5]
    """
    X = X - np.average(X, axis=0, weights=r)
    return X / X.min()


def new_channel(U, V, r_u, r_v, *, mean_count=1e9):
    """Return the `PoissonEmbedding` of given rows, with biases made frequent.

    The paper does not give the biases of its new channel (erratum 16). The scale of its
    rows makes signals so small that billions of counts must be seen: the default finds
    all ten directions in rows of the movie reviews.

    Parameters
    ----------
    U, V : arrays (m, d), (n, d)
    r_u, r_v : arrays (m,), (n,)
    mean_count : float
        The product of the mean factors of rows and columns after r_v was raised.

    Examples
    --------
    >>> e = new_channel(np.zeros((20, 2)), np.zeros((30, 2)), np.ones(20), np.ones(30))
    >>> round(float(e.rates().mean()) / 1e9, 6)
    1.0
    """
    raised = mean_count / (r_u.mean() * r_v.mean())
    return PoissonEmbedding(U, V, np.log(r_u), np.log(r_v * raised))


def lost_share(e):
    """Return the share of the squared signal that counting the biases of `e` removes.

    It lies along the root of the frequencies, on either side.
    """
    p, q = (np.sqrt(r / r.sum()) for r in (e.r_u, e.r_v))
    kept = e.A - np.outer(p, p @ e.A), e.B - np.outer(q, q @ e.B)
    squares = [(signal_singular_values(*X) ** 2).sum() for X in (kept, (e.A, e.B))]
    return 1 - squares[0] / squares[1]


def real_instance(index, m=2000, n=3000, n_iter=15):
    """One instance of the experiment on reviews (`fig:real-loss`, `fig:real-mse`).

    Rows of the learned embeddings, prepared by `centre_and_scale` and drawn at random,
    are the truth of a `new_channel`, with the biases counted in the reviews. The paper
    does not say by which mean it centres them, so both are run.

    Returns
    -------
    dict
        As `l1_instance`; and ``strength``, ``strength_text`` (d,), the singular values
        of A B^T / sqrt(m) over the spectral threshold (m n)^(1/4), with the biases
        raised and as they are in the text; ``lost_share``, the share of the signal
        along the margins, which counting removes; ``largest``, the largest |M_ij|. All
        this for rows centred by their plain mean, and under names that end in
        ``_weighted`` for the weighted one; and ``mean_count_text``.
    """
    U, V, r_u, r_v = _learn_from_reviews()
    rng = np.random.default_rng([index, m])
    i, j = rng.choice(len(U), m, replace=False), rng.choice(len(V), n, replace=False)
    mean_count = r_u[i].mean() * r_v[j].mean()
    result = {"mean_count_text": mean_count}
    for ending, source in zip(("", "_weighted"), (rng, deepcopy(rng)), strict=True):
        weights = (r_u, r_v) if ending else (None, None)
        U_0, V_0 = map(centre_and_scale, (U, V), weights)
        e = new_channel(U_0[i], V_0[j], r_u[i], r_v[j])
        laws = EmpiricalRows(e.r_u, e.A), EmpiricalRows(e.r_v, e.B)
        strength = signal_singular_values(e.A, e.B) / (m * n) ** 0.25
        raised = np.sqrt(e.r_u.mean() * e.r_v.mean() / mean_count)
        curves = _compare(e, laws, Ridge(1e-3), n_iter, rng=source)
        curves |= {"strength": strength, "strength_text": strength / raised}
        curves["lost_share"] = lost_share(e)
        curves["largest"] = np.abs(e.U @ e.V.T).max() / np.sqrt(m)
        result |= {name + ending: curve for name, curve in curves.items()}
    return result
