"""The conformance kit against wrong denoisers: each must fail the check that names its mistake, and right ones pass."""

import numpy as np
import pytest

from amptutorial.checks import CHECKS, check_denoiser
from amptutorial.denoisers import Denoiser, GaussianPosterior, Lasso, Ridge


class NonNegative(Denoiser):
    """A right denoiser of another kind, by coordinate descent, with the numerical Jacobian: u >= 0 plus a ridge of
    1."""

    def estimate(self, P, r, F):
        X = np.zeros(P.shape)
        for _ in range(400):
            for k in range(P.shape[1]):
                rest = P[:, k] - X @ F[:, k] + X[:, k] * F[k, k]
                X[:, k] = np.maximum(rest, 0) / (F[k, k] + 1 / r)
        return X

    def penalty(self, X, r):
        return float((X**2 / r[:, None]).sum() / 2) if (X >= 0).all() else np.inf


def variant(**methods):
    """Return a Ridge with some methods replaced."""
    return type("Wrong", (Ridge,), methods)(1.0)


def estimate(P, r, F):
    return np.array([np.linalg.solve(F + np.eye(len(F)) / s, p) for p, s in zip(P, r, strict=True)])


def jacobian(P, r, F):
    return np.mean([np.linalg.inv(F + np.eye(len(F)) / s) for s in r], axis=0)


class Remembers(Ridge):
    """Adds its call count."""

    calls = 0

    def estimate(self, P, r, F):
        self.calls += 1
        return estimate(P, r, F) + 1e-3 * self.calls


class InPlace(Ridge):
    """Overwrites P."""

    def estimate(self, P, r, F):
        P *= 1.5
        return estimate(P / 1.5, r, F)


class Rotated(Denoiser):
    """Linear with a non-symmetric matrix and the transposed Jacobian."""

    precision = "posterior"
    G = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.2], [0.3, 0.0, 1.0]])

    def estimate(self, P, r, F):
        return P @ self.G

    def mean_jacobian(self, P, r, F):
        return self.G.T


WRONG = {
    "shapes": [
        variant(estimate=lambda self, P, r, F: estimate(P, r, F)[:, :1]),
        variant(estimate=lambda self, P, r, F: np.full(P.shape, np.nan)),
        variant(mean_jacobian=lambda self, P, r, F: np.diag(jacobian(P, r, F))),
        variant(estimate=lambda self, P, r, F: estimate(P, r, F).round().astype(int)),
    ],
    "no_mutation": [InPlace(1.0)],
    "deterministic": [
        Remembers(1.0),
        variant(estimate=lambda self, P, r, F: estimate(P, r, F) + np.random.default_rng().standard_normal(P.shape)),
    ],
    "row_independence": [
        variant(estimate=lambda self, P, r, F: estimate(P, r, F) - estimate(P, r, F).mean(axis=0)),
        variant(estimate=lambda self, P, r, F: estimate(P, np.full(len(r), r.mean()), F)),
    ],
    "frequency_scaling": [
        variant(estimate=lambda self, P, r, F: estimate(P, 1 / r, F)),
        variant(estimate=lambda self, P, r, F: estimate(P, np.sqrt(r), F)),
        variant(estimate=lambda self, P, r, F: estimate(P, np.ones_like(r), F)),
    ],
    "jacobian": [
        variant(mean_jacobian=lambda self, P, r, F: len(P) * jacobian(P, r, F)),
        variant(mean_jacobian=lambda self, P, r, F: np.linalg.inv(F)),
        variant(mean_jacobian=lambda self, P, r, F: -jacobian(P, r, F)),
        variant(mean_jacobian=lambda self, P, r, F: np.zeros((P.shape[1],) * 2)),
        Rotated(),
    ],
    "jacobian_symmetric": [Rotated(), variant(mean_jacobian=lambda self, P, r, F: -jacobian(P, r, F))],
    "optimality": [
        variant(estimate=lambda self, P, r, F: estimate(P, r / 2, F)),
        variant(estimate=lambda self, P, r, F: P),
        variant(estimate=lambda self, P, r, F: -estimate(P, r, F)),
        variant(penalty=lambda self, X, r: float((X**2).sum() / 2)),
    ],
}


@pytest.mark.parametrize(("name", "denoiser"), [(name, wrong) for name, bank in WRONG.items() for wrong in bank])
def test_each_mistake_fails_the_check_that_names_it(name, denoiser):
    report = check_denoiser(denoiser)
    assert not report.passed
    messages = {failure.name: failure.message for failure in report.failures}
    assert messages.get(name)
    assert f"FAIL  {name}: " in str(report)


def test_the_bank_covers_every_check():
    assert {check.__name__.removeprefix("check_") for check in CHECKS} == set(WRONG)


@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize("denoiser", [Ridge(2.0), Lasso(1.0), GaussianPosterior(0.3), NonNegative()], ids=repr)
def test_right_denoisers_pass_in_every_dimension(denoiser, d):
    report = check_denoiser(denoiser, d=d, rng=np.random.default_rng(d))
    assert report.passed, str(report)
    assert "8 of 8" in str(report) or "7 of 7" in str(report)


def test_a_transposed_jacobian_is_told_so():
    message = {f.name: f.message for f in check_denoiser(Rotated()).failures}["jacobian"]
    assert "its transpose fits: [k, l] is d estimate_l / d P_k" in message


def test_an_exception_in_a_students_code_is_reported():
    def broken(self, P, r, F):
        raise KeyError("u")

    report = check_denoiser(variant(estimate=broken))
    assert "raised KeyError: 'u'" in str(report)


def test_what_is_no_denoiser_is_refused():
    with pytest.raises(TypeError, match="derive its class from amptutorial.Denoiser"):
        check_denoiser(Ridge)
    odd = variant()
    odd.precision = "map"
    with pytest.raises(ValueError, match='precision must be "argmin" or "posterior"'):
        check_denoiser(odd)
