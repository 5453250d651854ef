"""Why not an SVD? The picture of README.md, and the table of chapter 6.

The picture shows two estimates and their predicted errors, against the strength of the signal. The rows of both sides
are signs, and AMP knows it. The rival is the best that singular vectors can do. The same picture under the book's title
is the card that other sites show beside a link. The table compares seven estimates, on rows of signs and on Gaussian
rows of unequal frequencies.

python tools/draw_prediction.py
"""

import warnings
from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from tqdm import tqdm

from amptutorial import (
    Denoiser,
    DiscreteBias,
    FisherScore,
    GaussianPosterior,
    PoissonEmbedding,
    biased_low_rank_amp,
    estimate_bias,
    normalised_mse,
    spectral_start,
)
from amptutorial.baselines import BelowThresholdWarning, svd
from amptutorial.bayes_optimal import GaussianMixture, MatchedEvolution, SeenRows
from amptutorial.book.figures import COLOURS, use_style
from amptutorial.spectrum import outlier, overlaps

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "book/assets/prediction.svg"
DARK, CARD = PICTURE.with_name("prediction-dark.svg"), PICTURE.with_name("social.png")
TABLE = PICTURE.with_name("why_not_svd.md")
ON_DARK = ("#56B4E9", "#E69F00")  # of Okabe and Ito, too, and bright
M, N, INSTANCES, ITERATIONS = 800, 1200, 20, 40
MEASURED = np.array([0.75, 1.25, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0])  # signal strength, in units of the spectral threshold
STRENGTHS = np.linspace(0.5, 4.2, 120)
BETA = M / N
SIGNS = GaussianMixture([0.5, 0.5], [-1, 1], [0, 0])
GAUSSIAN = GaussianMixture([1], [0], [1])
ESTIMATES = (
    "plain SVD", "shrunken SVD", "weighted, shrunken SVD", "AMP without its Onsager term", "the same, best factor",
    "AMP, Gaussian prior", "AMP, right prior",
)  # fmt: skip
LEGEND = (
    "*Best factor*: chosen with the truth. *Weighted*: lengths from state evolution. *Theory* saw no data. "
    f"Means of {INSTANCES} tables. In the last line ± is the standard error of the mean, in the others that of the "
    "difference from the last line."
)


PLUS_MINUS = "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}"


class SignPosterior(Denoiser):
    """Posterior mean of a row +-sqrt(r), both signs equally likely (d = 1)."""

    precision = "posterior"

    def estimate(self, P, r, F):
        """Return sqrt(r) tanh(sqrt(r) p); F = Q does not occur in it."""
        size = np.sqrt(r)[:, None]
        return size * np.tanh(size * P)


class Setting(NamedTuple):
    """A law of tables: of rows, with the posterior mean, and of the frequencies of rows and columns."""

    prior: GaussianMixture
    posterior: Denoiser
    rates_u: DiscreteBias
    rates_v: DiscreteBias


def signs(strength):
    """Return rows of signs, all equally frequent, at a signal strength in units of the spectral threshold."""
    return Setting(SIGNS, SignPosterior(), DiscreteBias([0.0]), DiscreteBias([np.log(strength * np.sqrt(BETA))]))


def gaussian(kappa=8.0, ratio=8.0):
    """Return Gaussian rows, a fifth of them `ratio` times as frequent as the rest, at a detection ratio."""
    shares, r = np.array([0.8, 0.2]), np.array([1.0, ratio]) / (0.8 + 0.2 * ratio)
    level = np.sqrt(kappa * BETA) / (shares @ r**2)
    rates = (DiscreteBias(np.log(scale * r), shares) for scale in (1.0, level))
    return Setting(GAUSSIAN, GaussianPosterior(1.0), *rates)


def evolution(setting, prior):
    """Return the state evolution of AMP with the posterior mean of a prior."""
    rows = (SeenRows(prior, *rates.atoms()) for rates in setting[2:])
    return MatchedEvolution(*rows, beta=BETA)


def predict(setting, prior):
    """Return the error of AMP with the posterior mean of this prior; with the Gaussian one, of singular vectors."""
    law = evolution(setting, prior)
    return float(law.error(*law.limit()))


def predict_svd(setting):
    """Return the errors of the plain and of the shrunken singular value decomposition."""
    theta = np.sqrt(M * np.prod(evolution(setting, GAUSSIAN).sizes))
    cosines = np.sqrt(np.prod(overlaps(theta, M, N)))
    ratio = outlier(theta, M, N) / theta
    return [1 + ratio**2 - 2 * ratio * cosines, 1 - cosines**2]


def draw_counts(setting, rng):
    """Return an instance, its score with counted biases, and these."""
    sides = (rates.draw(size, rng=rng) for rates, size in ((setting.rates_u, M), (setting.rates_v, N)))
    if setting.prior is SIGNS:
        U, V = (rng.choice([-1.0, 1.0], (size, 1)) for size in (M, N))
    else:
        U, V = (rng.standard_normal((size, 1)) for size in (M, N))
    truth = PoissonEmbedding(U, V, *sides)
    Z = truth.sample(rng)
    biases = estimate_bias(Z)
    return truth, FisherScore(Z, *biases), biases


def weighted_svd(Y, r_u, r_v, setting, rng):
    """Return the factors of the weighted score that chapter 4 names, of the lengths that state evolution predicts."""
    S_a, S_b = (np.mean(r_u), np.sum(r_v) / M)
    weights = r_u / (1 + S_b * r_u), r_v / (1 + S_a * r_v)
    left, right = (np.sqrt(w)[:, None] for w in weights)
    factors = svd(left * Y.toarray() * right.T, 1, rng=rng)
    limit = evolution(setting, GAUSSIAN).limit()
    pairs = zip(factors, (left, right), limit, strict=True)
    return [root * X * np.sqrt(M * size) / np.linalg.norm(root * X) for X, root, size in pairs]


def without_term(Y, r_u, r_v, posterior, B):
    """Return where AMP's loop ends if nothing is subtracted."""
    for _ in range(ITERATIONS):
        A = posterior.estimate(Y @ B / np.sqrt(M), r_u, B.T @ B / M)
        B = posterior.estimate(Y.T @ A / np.sqrt(M), r_v, A.T @ A / M)
    return A, B


def best_factor(truth, A, B):
    """Return the factors with the product multiplied by the number for which its error is least."""
    return A * np.vdot(A.T @ truth.A, B.T @ truth.B) / np.vdot(A.T @ A, B.T @ B), B


def compare(setting, seed):
    """Return the errors of the seven `ESTIMATES` on the counts of one instance."""
    rng = np.random.default_rng(seed)
    truth, Y, biases = draw_counts(setting, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BelowThresholdWarning)
        B0 = spectral_start(Y, 1, *biases, rng=rng)
        plain, shrunken = (svd(Y, 1, rng=rng, shrink=shrink) for shrink in (False, True))
    forgetful = without_term(Y, *biases, setting.posterior, B0)
    runs = [
        biased_low_rank_amp(Y, *biases, posterior, B0=B0, n_iter=ITERATIONS)
        for posterior in (GaussianPosterior(1.0), setting.posterior)
    ]
    weighted = weighted_svd(Y, *biases, setting, rng)
    found = [plain, shrunken, weighted, forgetful, best_factor(truth, *forgetful), *((run.A, run.B) for run in runs)]
    return [normalised_mse(truth.A, truth.B, *factors) for factors in found]


def predictions(setting):
    """Return what is predicted of the `ESTIMATES` without data; the loop without its term is not."""
    with_gauss = predict(setting, GAUSSIAN)
    return [*predict_svd(setting), with_gauss, None, None, with_gauss, predict(setting, setting.prior)]


def column(setting):
    """Return the cells of the table for one law of tables: measured, and predicted.

    The standard errors are those of the difference from the last estimate, table by table; of the last one, its own.
    """
    errors = np.array([compare(setting, seed) for seed in tqdm(range(INSTANCES))])
    paired = np.hstack([errors[:, :-1] - errors[:, -1:], errors[:, -1:]])
    bars = paired.std(axis=0, ddof=1) / np.sqrt(INSTANCES)
    predicted = ["no" if value is None else f"{value:.3f}" for value in predictions(setting)]
    pairs = zip(errors.mean(axis=0), bars, strict=True)
    measured = [f"{mean:.3f}{PLUS_MINUS}{bar:.3f}" for mean, bar in pairs]
    return measured, predicted


def table():
    """Return the table in Markdown, and its legend."""
    columns = [*column(gaussian()), *column(signs(2.0))]
    head = ["error of", "Gaussian rows", "theory", "signs", "theory"]
    rows = [head, ["---"] * 5, *zip(ESTIMATES, *columns, strict=True)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows) + f"\n{LEGEND}\n"


def measure(strength, seed):
    """Return the errors of AMP and of the shrunken singular vectors on the counts of one instance."""
    errors = compare(signs(strength), seed)
    return [errors[-1], errors[1]]


def plot(ax, predicted, errors, ink, colours):
    """Draw the measured errors over the predicted lines."""
    kinds = (
        ("AMP, which knows that rows are signs", "o", "-", "predicted, before any data is seen"),
        ("the best singular vectors", "s", "--", "predicted for singular vectors"),
    )
    for k, (label, marker, style, foretold) in enumerate(kinds):
        ax.plot(STRENGTHS, predicted[k], style, color=ink, label=foretold)
        mean, bar = errors[:, :, k].mean(axis=1), errors[:, :, k].std(axis=1, ddof=1) / np.sqrt(INSTANCES)
        ax.errorbar(MEASURED, mean, 2 * bar, fmt=marker, color=colours[k], capsize=3, label=label)
    ax.set(xlabel="signal strength, in units of the spectral threshold", ylabel="normalised error", ylim=(0, 1.08))
    ax.legend()


def draw(predicted, errors, ink, colours, picture):
    """Draw on nothing, so that the page shows through."""
    kinds = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    with plt.rc_context(dict.fromkeys(kinds, ink) | {"svg.hashsalt": "prediction"}):
        fig, ax = plt.subplots(figsize=(7.2, 3.8))
        plot(ax, predicted, errors, ink, colours)
        fig.savefig(picture, transparent=True, metadata={"Date": None, "Creator": None})
    print(f"Drawn: {picture}")


def draw_card(predicted, errors):
    """Draw 1200 x 630 pixels, the size that cards have."""
    with plt.rc_context({"font.size": 20, "lines.markersize": 9, "lines.linewidth": 2.5}):
        fig, ax = plt.subplots(figsize=(12, 6.3))
        fig.get_layout_engine().set(rect=(0.03, 0.04, 0.94, 0.92))
        fig.suptitle("How well can embeddings be learned?", fontsize=34, fontweight="bold")
        plot(ax, predicted, errors, "black", COLOURS)
        fig.savefig(CARD, dpi=100, bbox_inches=None)
    print(f"Drawn: {CARD}")


def main():
    """Measure, predict and draw, for light and for dark ground; write the table."""
    use_style()
    errors = np.array([[measure(x, seed) for seed in range(INSTANCES)] for x in tqdm(MEASURED)])
    predicted = [[predict(signs(x), prior) for x in STRENGTHS] for prior in (SIGNS, GAUSSIAN)]
    draw(predicted, errors, "black", COLOURS, PICTURE)
    draw(predicted, errors, "#E6E9EE", ON_DARK, DARK)
    draw_card(predicted, errors)
    TABLE.write_text(table())
    print(f"Written: {TABLE}")


if __name__ == "__main__":
    main()
