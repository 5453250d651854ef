"""The Lasso for many rows against scikit-learn's Lasso looped over the rows, the paper's way (``eq:l1-denoiserA``)."""

import numpy as np
from sklearn.linear_model import Lasso

from amptutorial.lasso_rows import solve_lasso_rows

from .timing import row, seconds

N, D, CONDITIONS = 5000, 10, (10, 1e3, 1e5)
ZEROS = {"few": 0.05, "half": 0.5, "most": 0.9}  # the fraction of zero entries
SAMPLE = 250  # rows of the loop that are timed, and counted up to all, except in the middle case, where all are


def lasso_problem(condition, zeros, rng):
    """Return `(P, t, F)`: noisy sparse rows, unequal thresholds with that fraction of zeros in the solution."""
    rotation = np.linalg.qr(rng.standard_normal((D, D)))[0]
    F = rotation * np.geomspace(1, 1 / condition, D) @ rotation.T
    F = (F + F.T) / 2
    truth = rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.5)
    P = truth @ F + rng.standard_normal((N, D)) @ np.linalg.cholesky(F).T
    t = 1 / np.sqrt(0.2 + rng.exponential(size=N))
    low, high = 1e-6, 10.0
    for _ in range(30):
        strength = np.sqrt(low * high)
        too_few = (solve_lasso_rows(P[::10], strength * t[::10], F) == 0).mean() < zeros
        low, high = (strength, high) if too_few else (low, strength)
    return P, strength * t, F


def lasso_loop(P, t, F):
    """Solve the rows one after another with scikit-learn, each started at the solution before it."""
    values, vectors = np.linalg.eigh(F)
    W = np.asfortranarray(vectors * np.sqrt(values) @ vectors.T)
    Q = P @ (vectors / np.sqrt(values) @ vectors.T)
    model, A = Lasso(fit_intercept=False, warm_start=True, tol=1e-12, max_iter=10**6), np.empty_like(P)
    for a, q, threshold in zip(A, Q, t, strict=True):
        model.alpha = threshold / len(F)
        a[:] = model.fit(W, q).coef_
    return A


def worst_kkt(A, P, t, F):
    """The largest KKT violation of the rows, relative to max(|p|_inf, t)."""
    residual, t = P - A @ F, t[:, None]
    violation = np.where(A == 0, np.abs(residual) - t, np.abs(residual - t * np.sign(A)))
    return (violation / np.maximum(np.abs(P).max(1, keepdims=True), t)).max()


def bench_lasso():
    """Return one row (name, at, ratio, demanded) for each condition number and sparsity."""
    rng = np.random.default_rng(0)
    return [_compare(condition, name, rng) for condition in CONDITIONS for name in ZEROS]


def _compare(condition, name, rng):
    P, t, F = lasso_problem(condition, ZEROS[name], rng)
    ours = np.median([seconds(solve_lasso_rows, P, t, F)[0] for _ in range(5)])
    n = N if name == "half" else SAMPLE
    loop, A_loop = seconds(lasso_loop, P[:n], t[:n], F)
    A = solve_lasso_rows(P, t, F)
    at = (
        f"{N} rows, d={D}, condition {condition:.0e}, {np.mean(A == 0):.0%} zeros, {1e3 * ours:.0f} ms, "
        f"KKT {worst_kkt(A, P, t, F):.0e} (loop, {n} rows timed: {worst_kkt(A_loop, P[:n], t[:n], F):.0e})"
    )
    return row("Lasso denoiser: scikit-learn's loop / ours", at, loop * N / n / ours, "at least 50")
