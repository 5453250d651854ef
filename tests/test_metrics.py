"""Losses and errors against their definitions, with the m x n arrays that the package avoids."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from synthetic import small_problem

from amptutorial.denoisers import GaussianPosterior, Lasso, Ridge
from amptutorial.metrics import QuadraticLoss, align, normalised_mse, overlap, row_errors, squared_norm
from amptutorial.score import FisherScore

seeds = st.integers(0, 1000)


@given(seeds, st.booleans())
def test_quadratic_loss_equals_its_definition(seed, sparse):
    """eq:LAB with the residual formed."""
    Z, r_u, r_v, A, B, _ = small_problem(seed)
    Y = FisherScore(sp.csr_array(Z) if sparse else Z, r_u, r_v)
    loss = QuadraticLoss(Y, r_u, r_v, (Ridge(0.3), Lasso(0.7)))
    U, V = A / np.sqrt(r_u)[:, None], B / np.sqrt(r_v)[:, None]
    direct = ((Y.toarray() - A @ B.T / np.sqrt(6)) ** 2).sum() / 2 + 0.15 * (U**2).sum() + 0.7 * np.abs(V).sum()
    assert loss(A, B) == pytest.approx(direct)


@pytest.mark.parametrize("denoiser", [Ridge(0.3), GaussianPosterior([[1.0, 0.4], [0.4, 0.5]])], ids=repr)
def test_gradients_are_finite_differences(denoiser):
    Z, r_u, r_v, A, B, rng = small_problem(1)
    loss = QuadraticLoss(FisherScore(Z, r_u, r_v), r_u, r_v, denoiser)
    step_A, step_B, h = rng.standard_normal(A.shape), rng.standard_normal(B.shape), 1e-5
    slope = (loss(A + h * step_A, B + h * step_B) - loss(A - h * step_A, B - h * step_B)) / (2 * h)
    by_A, by_B = loss.gradient(A, B)
    assert slope == pytest.approx(np.vdot(by_A, step_A) + np.vdot(by_B, step_B), rel=1e-6)


def test_a_penalty_without_a_derivative_is_named():
    Z, r_u, r_v, A, B, _ = small_problem(1)
    loss = QuadraticLoss(FisherScore(Z, r_u, r_v), r_u, r_v, (Ridge(1.0), Lasso(0.5)))
    with pytest.raises(NotImplementedError, match=r"Lasso\(0.5\) has no derivative of its penalty.*penalty_gradient"):
        loss.gradient(A, B)


@given(seeds)
def test_normalised_mse_equals_its_definition(seed):
    """MSE_k after eq:mmhat; estimates of another rank allowed; small errors without cancellation."""
    _, _, _, A, B, rng = small_problem(seed)
    A_hat, B_hat = rng.standard_normal((6, 3)), rng.standard_normal((8, 3))
    X = A @ B.T
    assert normalised_mse(A, B, A_hat, B_hat) == pytest.approx(((A_hat @ B_hat.T - X) ** 2).sum() / (X**2).sum())
    near = normalised_mse(A, B, A * (1 + 1e-9), B)
    assert near == pytest.approx(1e-18, rel=1e-3)


def test_erratum_14_two_definitions_of_m(rng):
    """The error of A B^T (eq:mmhat) and that of u.v / sqrt(m) differ as soon as the biases vary."""
    U, V = rng.standard_normal((50, 2)), rng.standard_normal((60, 2))
    r = np.exp(rng.standard_normal(50))[:, None]
    U_hat = U + rng.standard_normal(U.shape) / np.sqrt(r)  # frequent rows are known better
    by_a = normalised_mse(np.sqrt(r) * U, V, np.sqrt(r) * U_hat, V)
    by_u = normalised_mse(U, V, U_hat, V)
    assert by_u > 1.3 * by_a


@given(seeds)
def test_alignment_is_the_best_rotation(seed):
    _, _, _, A, _, rng = small_problem(seed, d=3)
    R = np.linalg.qr(rng.standard_normal((3, 3)))[0]  # with two columns, a reflection: its own inverse
    assert np.allclose(align(A @ R, A), A)
    noisy = A @ R + 0.1 * rng.standard_normal(A.shape)
    best = row_errors(A, align(noisy, A)).sum()
    for _ in range(5):
        other = np.linalg.qr(rng.standard_normal((3, 3)))[0]
        assert best <= row_errors(A, noisy @ other).sum() + 1e-9


def test_overlap_and_row_errors(rng):
    X, X_hat = rng.standard_normal((50, 2)), rng.standard_normal((50, 2))
    assert overlap(X, X_hat) == pytest.approx(np.mean([abs(a @ b) for a, b in zip(X, X_hat, strict=True)]))
    assert row_errors(X, X_hat) == pytest.approx([((a - b) ** 2).sum() for a, b in zip(X, X_hat, strict=True)])


def test_the_norm_of_small_integers_and_of_pairs_stored_twice():
    small = np.array([[100, 100]], dtype=np.int8)
    assert squared_norm(small) == squared_norm(sp.csr_array(small)) == squared_norm([[100, 100]]) == 20_000
    twice = sp.csr_array((np.array([1.0, 2.0]), np.array([1, 1]), np.array([0, 2])), shape=(1, 2))
    assert squared_norm(twice) == 9 and twice.nnz == 2
    with pytest.raises(TypeError, match="pass a FisherScore, an array or a sparse array"):
        squared_norm(sp.linalg.aslinearoperator(np.eye(2)))


@pytest.mark.parametrize("scale_A", [1e-60, 1e60])
@pytest.mark.parametrize("scale_B", [1e-60, 1e60])
def test_the_normalised_error_does_not_depend_on_the_units(scale_A, scale_B, rng):
    A, A_hat, B, B_hat = (rng.standard_normal((5, 2)) for _ in range(4))
    scaled = normalised_mse(scale_A * A, scale_B * B, scale_A * A_hat, scale_B * B_hat)
    assert scaled == pytest.approx(normalised_mse(A, B, A_hat, B_hat))
