"""Draw the picture of README.md: two estimates and their predicted errors, against the strength of the signal.

The rows of both sides are signs, and AMP knows it. The rival is the best that singular vectors can do: each is shrunk
by the factor that costs least. The same picture under the book's title is the card that other sites show beside a link.

python tools/draw_prediction.py
"""

import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from tqdm import tqdm

from amptutorial import (
    Denoiser,
    FisherScore,
    PoissonEmbedding,
    biased_low_rank_amp,
    estimate_bias,
    normalised_mse,
    spectral_start,
)
from amptutorial.baselines import BelowThresholdWarning, svd
from amptutorial.bayes_optimal import GaussianMixture, MatchedEvolution, SeenRows
from amptutorial.book.figures import COLOURS, use_style

PICTURE = Path(__file__).parents[1] / "book/assets/prediction.svg"
DARK, CARD = PICTURE.with_name("prediction-dark.svg"), PICTURE.with_name("social.png")
ON_DARK = ("#56B4E9", "#E69F00")  # of Okabe and Ito, too, and bright
M, N, INSTANCES, ITERATIONS = 800, 1200, 10, 40
MEASURED = np.array([1.25, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0])  # signal strength, in units of the spectral threshold
STRENGTHS = np.linspace(0.5, 4.2, 120)
BETA = M / N
SIGNS = GaussianMixture([0.5, 0.5], [-1, 1], [0, 0])
GAUSSIAN = GaussianMixture([1], [0], [1])


class SignPosterior(Denoiser):
    """Posterior mean of a row +-sqrt(r), both signs equally likely (d = 1)."""

    precision = "posterior"

    def estimate(self, P, r, F):
        """Return sqrt(r) tanh(sqrt(r) p); F = Q does not occur in it."""
        size = np.sqrt(r)[:, None]
        return size * np.tanh(size * P)


def predict(strength, prior):
    """Return the error of AMP with the posterior mean of this prior; with the Gaussian one, of singular vectors."""
    sides = SeenRows(prior, [1.0]), SeenRows(prior, [strength * np.sqrt(BETA)])
    evolution = MatchedEvolution(*sides, beta=BETA)
    return evolution.error(*evolution.limit())


def measure(strength, seed):
    """Return the errors of AMP and of the shrunken singular vectors on the counts of one instance."""
    rng = np.random.default_rng(seed)
    U, V = (rng.choice([-1.0, 1.0], (size, 1)) for size in (M, N))
    truth = PoissonEmbedding(U, V, np.zeros(M), np.full(N, np.log(strength * np.sqrt(BETA))))
    Z = truth.sample(rng)
    r_u, r_v = estimate_bias(Z)
    Y = FisherScore(Z, r_u, r_v)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BelowThresholdWarning)
        B0 = spectral_start(Y, 1, rng=rng)
        rival = svd(Y, 1, rng=rng, shrink=True)
    run = biased_low_rank_amp(Y, r_u, r_v, SignPosterior(), B0=B0, n_iter=ITERATIONS)
    return [normalised_mse(truth.A, truth.B, *factors) for factors in ((run.A, run.B), rival)]


def plot(ax, predicted, errors, ink, colours):
    """Draw the measured errors over the predicted lines."""
    kinds = (("AMP, which knows that rows are signs", "o", "-"), ("the best singular vectors", "s", "--"))
    for k, (label, marker, style) in enumerate(kinds):
        ax.plot(STRENGTHS, predicted[k], style, color=ink, label=None if k else "predicted, before any data is seen")
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
        fig.suptitle("How well can embeddings be learned?", fontsize=34, fontweight="bold")
        plot(ax, predicted, errors, "black", COLOURS)
        fig.savefig(CARD, dpi=100, bbox_inches=None)
    print(f"Drawn: {CARD}")


def main():
    """Measure, predict and draw, for light and for dark ground."""
    use_style()
    errors = np.array([[measure(x, seed) for seed in range(INSTANCES)] for x in tqdm(MEASURED)])
    predicted = [[predict(x, prior) for x in STRENGTHS] for prior in (SIGNS, GAUSSIAN)]
    draw(predicted, errors, "black", COLOURS, PICTURE)
    draw(predicted, errors, "#E6E9EE", ON_DARK, DARK)
    draw_card(predicted, errors)


if __name__ == "__main__":
    main()
