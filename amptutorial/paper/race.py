"""The race of chapter 9: four minimisers of one loss, from one start.

Seconds differ from run to run, while a chapter must print the same each time: it shows
stored results.
"""

import time
import warnings
from functools import partial

import numpy as np
from threadpoolctl import threadpool_limits

from ..amp import biased_low_rank_amp, random_start
from ..baselines import NotConvergedWarning, minimise
from ..bias import estimate_bias
from ..denoisers import Ridge
from ..laws import GaussianRows, ShiftedExponential
from ..metrics import QuadraticLoss
from ..model import draw_embedding
from ..score import FisherScore

STRENGTH = 3.0  # of the ridge
ACCURACY = 1e-8  # of the loss, relative to the best one found
ENOUGH = 1000  # iterations, for every program


def draw_race(m, n, d, *, rng):
    """Return the score of counts with unequal frequencies, and a start of each side.

    Returns
    -------
    dict
        ``Y`` (m, n), ``r_u`` (m,), ``r_v`` (n,), ``A0`` (m, d) and ``B0`` (n, d).
    """
    rows, bias = GaussianRows(0.5), ShiftedExponential(0.25, 1.5)
    laws = {"rows_u": rows, "rows_v": rows, "bias_u": bias, "bias_v": bias}
    Z = draw_embedding(m, n, d, **laws, rng=rng).sample(rng)
    r_u, r_v = estimate_bias(Z)
    starts = {"A0": random_start(m, d, rng), "B0": random_start(n, d, rng)}
    return {"Y": FisherScore(Z, r_u, r_v), "r_u": r_u, "r_v": r_v, **starts}


def minimisers(problem):
    """Return the programs by name, each a function of `n_iter`, for a `draw_race`."""
    score, ridge = [problem[key] for key in ("Y", "r_u", "r_v")], Ridge(STRENGTH)
    A0, B0 = problem["A0"], problem["B0"]
    loss = QuadraticLoss(*score, ridge)
    others = partial(minimise, loss, A0=A0, B0=B0, tol=1e-12)
    return {
        "AMP": partial(biased_low_rank_amp, *score, ridge, B0=B0),
        "alternating least squares": partial(others, method="least_squares"),
        "L-BFGS": partial(others, method="lbfgs"),
        "gradient descent": partial(others, method="gradient_descent"),
    }


def losses(fit, loss):
    """Return the loss after each iteration of a run of AMP or of a `Fit`."""
    if hasattr(fit, "losses"):
        return fit.losses
    return [loss(iterate.A, iterate.B) for iterate in fit.iterates]


def fastest(program, n_iter, repeats):
    """Return the milliseconds of the fastest of some runs of `n_iter` iterations.

    Other work on the machine only adds to them.
    """
    seconds = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConvergedWarning)  # stopped on purpose
        for _ in range(repeats):
            start = time.perf_counter()
            program(n_iter=n_iter)
            seconds.append(time.perf_counter() - start)
    return round(1e3 * min(seconds), 1)


def race_instance(index, m=400, n=600, d=3, repeats=30):
    """Race the minimisers on one draw of counts and starts, each timed `repeats` times.

    Returns
    -------
    dict
        By program: ``programs``, their names; ``iterations`` until the loss is within
        ``accuracy`` of the best one; the final ``loss``; the ``milliseconds`` of these
        iterations, on one thread. And ``m``, ``n``, ``d``.

    Examples
    --------
    >>> race = race_instance(0, m=40, n=60, d=2, repeats=1)
    >>> dict(zip(race["programs"], race["iterations"]))["AMP"] < max(race["iterations"])
    True
    """
    problem = draw_race(m, n, d, rng=np.random.default_rng(index))
    score = (problem[key] for key in ("Y", "r_u", "r_v"))
    loss, programs = QuadraticLoss(*score, Ridge(STRENGTH)), minimisers(problem)
    curves = [losses(program(n_iter=ENOUGH), loss) for program in programs.values()]
    target = min(curve[-1] for curve in curves) * (1 + ACCURACY)
    needed = [int(np.argmax(np.array(curve) <= target)) + 1 for curve in curves]
    pairs = zip(programs.values(), needed, strict=True)
    return {
        **{"m": m, "n": n, "d": d, "accuracy": ACCURACY},
        **{"programs": list(programs), "iterations": needed},
        "loss": [curve[-1] for curve in curves],
        "milliseconds": [fastest(*pair, repeats) for pair in pairs],
    }
