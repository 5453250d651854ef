"""Draw the picture of README.md: the error of AMP, measured and predicted, against the strength of the signal.

The same picture under the book's title is the card that other sites show beside a link to it.

python tools/draw_prediction.py
"""

import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from tqdm import tqdm

from amptutorial import (
    ConstantBias,
    FisherScore,
    GaussianPosterior,
    GaussianRows,
    biased_low_rank_amp,
    draw_embedding,
    estimate_bias,
    gaussian_state_evolution,
    normalised_mse,
    scaled_rows,
    spectral_start,
)
from amptutorial.baselines import BelowThresholdWarning, svd
from amptutorial.book.figures import COLOURS, use_style

PICTURE = Path(__file__).parents[1] / "book/assets/prediction.svg"
DARK, CARD = PICTURE.with_name("prediction-dark.svg"), PICTURE.with_name("social.png")
ON_DARK = ("#56B4E9", "#E69F00")  # of Okabe and Ito, too, and bright
M, N, D, INSTANCES, ITERATIONS = 400, 600, 2, 10, 40
MEASURED = np.array([0.5, 0.8, 1.2, 1.6, 2.0, 3.0, 4.0, 6.0])  # signal strength, in units of the spectral threshold
STRENGTHS = np.linspace(0.4, 6.3, 120)
ROWS, POSTERIOR, BETA = GaussianRows(1.0), GaussianPosterior(1.0), M / N


def laws(strength):
    """Return the laws whose signal is `strength` times the spectral threshold."""
    bias_v = ConstantBias(np.log(strength * np.sqrt(BETA)))
    return {"rows_u": ROWS, "rows_v": ROWS, "bias_u": ConstantBias(), "bias_v": bias_v}


def predict(strength):
    """Return the error at the fixed point of state evolution."""
    start = 0.1 * np.eye(1)
    law_u, law_v = scaled_rows(1, **laws(strength))
    run = gaussian_state_evolution(law_u, law_v, POSTERIOR, beta=BETA, M0=start, Q0=start, n_iter=400)
    return run.iterates[-1].nmse


def measure(strength, seed):
    """Return the errors of AMP and of the plain SVD on the counts of one instance."""
    rng = np.random.default_rng(seed)
    truth = draw_embedding(M, N, D, **laws(strength), rng=rng)
    Z = truth.sample(rng)
    r_u, r_v = estimate_bias(Z)
    Y = FisherScore(Z, r_u, r_v)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BelowThresholdWarning)  # the first two points are meant to be there
        B0 = spectral_start(Y, D, rng=rng)
    run = biased_low_rank_amp(
        Y,
        r_u,
        r_v,
        POSTERIOR,
        B0=B0,
        n_iter=ITERATIONS,
    )
    return [normalised_mse(truth.A, truth.B, *factors) for factors in ((run.A, run.B), svd(Y, D, rng=rng))]


def plot(ax, predicted, errors, ink, colours):
    """Draw the measured errors over the predicted line."""
    ax.plot(STRENGTHS, predicted, color=ink, label="predicted, before any data is seen")
    for k, (label, marker) in enumerate((("AMP, 10 instances", "o"), ("singular value decomposition", "s"))):
        median, spread = np.median(errors[:, :, k], axis=1), errors[:, :, k].std(axis=1)
        ax.errorbar(MEASURED, median, spread, fmt=marker, color=colours[k], capsize=3, label=label)
    ax.set(xlabel="signal strength, in units of the spectral threshold", ylabel="normalised error", ylim=(0, 2.1))
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
    predicted = [predict(x) for x in STRENGTHS]
    draw(predicted, errors, "black", COLOURS, PICTURE)
    draw(predicted, errors, "#E6E9EE", ON_DARK, DARK)
    draw_card(predicted, errors)


if __name__ == "__main__":
    main()
