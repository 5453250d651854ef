"""How well can embeddings be learned? Biased low-rank AMP and its state evolution.

The formulas are verified one by one. What needs scikit-learn and pandas is loaded when
it is first asked for: they take longer to load than all the rest.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from ._validation import AMPWarning
from .amp import biased_low_rank_amp, random_start
from .baselines import spectral_start
from .bias import drop_empty, estimate_bias
from .denoisers import Denoiser, GaussianPosterior, Lasso, Ridge
from .laws import (
    ConstantBias,
    DiscreteBias,
    GaussianRows,
    ShiftedExponential,
    Zipf,
    scaled_rows,
)
from .metrics import normalised_mse
from .model import PoissonEmbedding, draw_embedding, draw_example
from .score import FisherScore
from .state_evolution import gaussian_state_evolution, start_overlap, state_evolution

if TYPE_CHECKING:
    from .checks import check_denoiser
    from .corpus import (
        cooccurrence,
        corpus_from_texts,
        load_docstrings,
        load_movie_reviews,
    )
    from .estimator import AMPEmbedding

__version__ = "1.0.0"

__all__ = [
    "AMPEmbedding", "AMPWarning", "ConstantBias", "Denoiser", "DiscreteBias",
    "FisherScore", "GaussianPosterior", "GaussianRows", "Lasso",
    "PoissonEmbedding", "Ridge", "ShiftedExponential", "Zipf", "biased_low_rank_amp",
    "check_denoiser", "cooccurrence", "corpus_from_texts", "draw_embedding",
    "draw_example", "drop_empty", "estimate_bias", "gaussian_state_evolution",
    "load_docstrings", "load_movie_reviews", "normalised_mse", "random_start",
    "scaled_rows", "spectral_start", "start_overlap", "state_evolution",
]  # fmt: skip

_ON_DEMAND = {"AMPEmbedding": "estimator", "check_denoiser": "checks"}
_ON_DEMAND |= dict.fromkeys(("cooccurrence", "corpus_from_texts"), "corpus")
_ON_DEMAND |= dict.fromkeys(("load_docstrings", "load_movie_reviews"), "corpus")


def __getattr__(name):
    if name not in _ON_DEMAND:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_ON_DEMAND[name]}", __name__), name)


def __dir__():
    return sorted({*globals(), *__all__})
