"""The race of the minimisers: what it counts is counted here in another way."""

import numpy as np
import pytest
from scipy.optimize import minimize

from amptutorial import Ridge
from amptutorial.metrics import QuadraticLoss
from amptutorial.paper.race import STRENGTH, draw_race, losses, minimisers, race_instance

SMALL = {"m": 40, "n": 60, "d": 2}


@pytest.fixture(scope="module")
def race():
    """Return one race; the programs are timed once, for their times are not compared."""
    return race_instance(0, **SMALL, repeats=1)


def test_every_program_reaches_the_minimum_that_scipy_finds(race):
    problem = draw_race(*SMALL.values(), rng=np.random.default_rng(0))
    m, n, d = SMALL.values()
    Y, r_u, r_v = problem["Y"].toarray(), problem["r_u"], problem["r_v"]

    def loss_and_gradient(x):
        A, B = x[: m * d].reshape(m, d), x[m * d :].reshape(n, d)
        residual = Y - A @ B.T / np.sqrt(m)
        a, b = STRENGTH / r_u[:, None] * A, STRENGTH / r_v[:, None] * B
        gradients = a - residual @ B / np.sqrt(m), b - residual.T @ A / np.sqrt(m)
        value = (np.vdot(residual, residual) + np.vdot(a, A) + np.vdot(b, B)) / 2
        return value, np.concatenate([g.ravel() for g in gradients])

    start = np.concatenate([problem["A0"].ravel(), problem["B0"].ravel()])
    found = minimize(loss_and_gradient, start, jac=True, method="CG", options={"gtol": 1e-6, "maxiter": 10**4})
    assert race["loss"] == pytest.approx([found.fun] * 4, rel=1e-9)


def test_the_iterations_are_the_first_within_the_accuracy(race):
    """A run that is stopped there has reached the target, and one that is stopped an iteration earlier has not."""
    problem = draw_race(*SMALL.values(), rng=np.random.default_rng(0))
    loss = QuadraticLoss(problem["Y"], problem["r_u"], problem["r_v"], Ridge(STRENGTH))
    target = min(race["loss"]) * (1 + race["accuracy"])
    for program, needed in zip(minimisers(problem).values(), race["iterations"], strict=True):
        curve = np.array(losses(program(n_iter=1000), loss))
        assert curve[needed - 1] <= target and (curve[: needed - 1] > target).all()


def test_each_program_is_timed(race):
    assert race["programs"] == list(minimisers(draw_race(*SMALL.values(), rng=np.random.default_rng(0))))
    assert len(race["milliseconds"]) == len(race["programs"]) == 4
