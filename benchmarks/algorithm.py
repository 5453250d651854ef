"""AMP and state evolution beside the least that any such algorithm must do."""

from importlib.util import find_spec

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_info

from amptutorial import (
    AMPEmbedding,
    FisherScore,
    GaussianRows,
    Ridge,
    ShiftedExponential,
    biased_low_rank_amp,
    draw_embedding,
    drop_empty,
    estimate_bias,
    gaussian_state_evolution,
    random_start,
    scaled_rows,
    start_overlap,
)
from amptutorial.corpus import load_docstrings, load_movie_reviews
from amptutorial.heldout import heldout_gain, split_pairs
from studies.text.methods import METHODS

from .timing import ratio, row, seconds

M, N, D = 2000, 3000, 10
ROWS, BIAS, RIDGE = GaussianRows(0.1), ShiftedExponential(0.25, 5), Ridge(1e-3)  # the paper's first experiment
ITERATIONS = 10


def draw(rng):
    """Return an instance of the paper's first experiment."""
    return draw_embedding(M, N, D, rows_u=ROWS, rows_v=ROWS, bias_u=BIAS, bias_v=BIAS, rng=rng)


def run_amp(Y, r_u, r_v, B0, n_iter=ITERATIONS):
    """Run AMP with the paper's ridge."""
    return biased_low_rank_amp(Y, r_u, r_v, RIDGE, B0=B0, n_iter=n_iter)


def bare_products(Y, A, B, n_iter=ITERATIONS):
    """Do the two products of each iteration, and nothing else."""
    for _ in range(n_iter):
        Y @ B
        Y.T @ A


def compare_iteration(Y, r_u, r_v, bare, rng, repeats=15):
    """Return the time of AMP over that of the bare products with `bare`, and both."""
    A, B = random_start(Y.shape[0], D, rng), random_start(Y.shape[1], D, rng)
    return ratio(lambda: run_amp(Y, r_u, r_v, B), lambda: bare_products(bare, A, B), repeats)


def bench_dense():
    """AMP on a dense score against the bare products with that array."""
    rng = np.random.default_rng(0)
    Z = draw(rng).sample(rng)
    r_u, r_v = estimate_bias(Z)
    Y = FisherScore(Z, r_u, r_v)
    value, above, below = compare_iteration(Y, r_u, r_v, Y.toarray(), rng)
    at = f"m={M}, n={N}, d={D}: {1e3 * above / ITERATIONS:.1f} / {1e3 * below / ITERATIONS:.1f} ms"
    return [row("AMP iteration, dense / two bare products", at, value, "at most 1.2")]


def bench_sparse():
    """AMP on sparse counts, 1.1 % of them not zero, against the bare products, with the BLAS threads that there are."""
    rng = np.random.default_rng(0)
    m, n = 7000, 6500
    frequency = (rng.random((m, 1)) + 0.2) * (rng.exponential(size=n) + 0.05)
    Z = drop_empty(sp.csr_array(rng.poisson(0.0115 * frequency / frequency.mean())))[0]
    r_u, r_v = estimate_bias(Z)
    scaled = Z.multiply(1 / np.sqrt(r_u)[:, None]).multiply(1 / np.sqrt(r_v)).tocsr()
    value, above, below = compare_iteration(FisherScore(Z, r_u, r_v), r_u, r_v, scaled, rng)
    threads = max(library["num_threads"] for library in threadpool_info())
    at = f"{Z.shape[0]} x {Z.shape[1]}, {Z.nnz} non-zeros, d={D}, {threads} BLAS threads"
    times = f"{1e3 * above / ITERATIONS:.1f} / {1e3 * below / ITERATIONS:.1f} ms"
    return [row("AMP iteration, sparse / two bare sparse products", f"{at}: {times}", value, "at most 1.4")]


def bench_reviews():
    """AMP on the movie reviews, sparse, against the bare sparse products, and against the dense score."""
    Z = load_movie_reviews().counts
    rng = np.random.default_rng(0)
    r_u, r_v = estimate_bias(Z)
    Y = FisherScore(Z, r_u, r_v)
    scaled = Z.multiply(1 / np.sqrt(r_u)[:, None]).multiply(1 / np.sqrt(r_v)).tocsr()
    value, above, below = compare_iteration(Y, r_u, r_v, scaled, rng)
    dense = FisherScore(Z.toarray(), r_u, r_v)
    B = random_start(Z.shape[1], D, rng)
    gain, slow, fast = ratio(lambda: run_amp(dense, r_u, r_v, B), lambda: run_amp(Y, r_u, r_v, B), repeats=3)
    at = f"reviews {Z.shape[0]} x {Z.shape[1]}, {Z.nnz} non-zeros, d={D}"
    times = f"{1e3 * above / ITERATIONS:.1f} / {1e3 * below / ITERATIONS:.1f} ms"
    dense_times = f"{1e3 * slow / ITERATIONS:.0f} / {1e3 * fast / ITERATIONS:.1f} ms"
    return [
        row("AMP iteration, sparse / two bare sparse products", f"{at}: {times}", value, "at most 1.5"),
        row("AMP iteration, dense / sparse", f"{at}: {dense_times}", gain, "at least 10"),
    ]


def evolve(B, B0, n_iter):
    """Run the closed-form state evolution of the paper's first experiment."""
    laws = scaled_rows(D, rows_u=ROWS, rows_v=ROWS, bias_u=BIAS, bias_v=BIAS)
    return gaussian_state_evolution(*laws, RIDGE, beta=M / N, n_iter=n_iter, **start_overlap(B, B0, M))


def bench_state_evolution():
    """Milliseconds an iteration of the closed form: the unit is a time, because there is nothing to compare it with."""
    rng = np.random.default_rng(0)
    model, B0 = draw(rng), random_start(N, D, rng)
    milliseconds = 1e3 * np.median([seconds(evolve, model.B, B0, 50)[0] / 50 for _ in range(7)])
    return [row("Exact state evolution, ms an iteration", f"d={D}, any m and n", milliseconds, "at most 5")]


def bench_experiment():
    """The whole first experiment, against 1.5 times the sampling of Z alone plus half a second."""
    rng = np.random.default_rng(0)
    model = draw(rng)

    def whole():
        Z = model.sample(rng)
        r_u, r_v = estimate_bias(Z)
        B0 = random_start(N, D, rng)
        run_amp(FisherScore(Z, r_u, r_v), r_u, r_v, B0)
        evolve(model.B, B0, ITERATIONS)

    _, above, below = ratio(whole, lambda: model.sample(rng), repeats=5)
    at = f"m={M}, n={N}: sample, fit, 10 iterations, prediction {above:.2f} s; sample {below:.2f} s"
    return [row("Whole experiment / (1.5 samplings + 0.5 s)", at, above / (1.5 * below + 0.5), "at most 1")]


def bench_estimator():
    """`AMPEmbedding` on the movie reviews: seconds of a fit, and what it predicts of hidden pairs."""
    kept, held_out = split_pairs(load_movie_reviews().counts, 0.2, np.random.default_rng(0))
    taken, model = seconds(AMPEmbedding(D, random_state=0).fit, kept)
    biases = model.row_bias_, model.column_bias_
    gain = heldout_gain(kept, held_out, model.embedding_, model.components_.T, *biases)
    at = f"reviews, four fifths of the pairs, d={D}, {model.n_iter_} iterations"
    return [
        row("AMPEmbedding, seconds", at, taken, "at most 12"),
        row("AMPEmbedding, gain on hidden pairs, nats per count", at, gain, "at least 0.17"),
    ]


def bench_rivals():
    """How much longer every rival takes than `AMPEmbedding`; each chooses its own settings by hidden pairs."""
    counts = load_docstrings().counts
    ours, _ = seconds(METHODS["amp"], counts, D, np.random.default_rng(0))
    rows = []
    for name, method in METHODS.items():
        if name == "skip_gram" and find_spec("gensim") is None:
            continue
        taken, rates = seconds(method, counts, D, np.random.default_rng(0))
        at = f"docstrings, d={D}, {taken:.1f} s with the search of its settings: {rates.chosen}"
        rows.append(row(f"{name} / AMPEmbedding", at, taken / ours, "no limit"))
    return rows
