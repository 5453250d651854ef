"""How well can embeddings be learned? Biased low-rank AMP and its state evolution, verified formula by formula."""

from ._validation import AMPWarning
from .amp import (
    AMPIterate,
    AMPRun,
    IndefinitePrecisionWarning,
    biased_low_rank_amp,
    random_start,
)
from .baselines import spectral_start
from .bias import drop_empty, estimate_bias
from .checks import check_denoiser
from .corpus import Corpus, corpus_from_texts, load_docstrings, load_movie_reviews
from .denoisers import Denoiser, GaussianPosterior, Lasso, Ridge
from .estimator import AMPEmbedding
from .laws import (
    ConstantBias,
    DiscreteBias,
    EmpiricalRows,
    GaussianRows,
    ScaledRows,
    ShiftedExponential,
    SparseGaussianRows,
    Zipf,
    scaled_rows,
)
from .metrics import normalised_mse
from .model import PoissonEmbedding, draw_embedding
from .score import FisherScore
from .state_evolution import (
    SEIterate,
    SERun,
    gaussian_state_evolution,
    has_closed_form,
    start_overlap,
    state_evolution,
)

__version__ = "0.1.0"

__all__ = [
    "load_movie_reviews",
    "load_docstrings",
    "corpus_from_texts",
    "check_denoiser",
    "Corpus",
    "AMPEmbedding",
    "AMPIterate",
    "AMPRun",
    "AMPWarning",
    "ConstantBias",
    "Denoiser",
    "DiscreteBias",
    "EmpiricalRows",
    "FisherScore",
    "GaussianPosterior",
    "GaussianRows",
    "IndefinitePrecisionWarning",
    "Lasso",
    "PoissonEmbedding",
    "Ridge",
    "SEIterate",
    "SERun",
    "ScaledRows",
    "ShiftedExponential",
    "SparseGaussianRows",
    "Zipf",
    "biased_low_rank_amp",
    "draw_embedding",
    "drop_empty",
    "estimate_bias",
    "gaussian_state_evolution",
    "has_closed_form",
    "normalised_mse",
    "random_start",
    "scaled_rows",
    "spectral_start",
    "start_overlap",
    "state_evolution",
]
