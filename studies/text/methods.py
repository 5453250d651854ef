"""The methods compared on text, by name, and each at the size that it would choose."""

from dataclasses import replace
from functools import partial

import numpy as np

from .minimisers import (
    minimise_burst_loss,
    minimise_poisson_loss,
    minimise_with_the_ridge_of_amp,
    skip_gram,
)
from .rates import TABLES, starred
from .rivals import (
    amp,
    amp_of_ratios,
    amp_with_counted_biases,
    amp_with_given_prior,
    amp_without_onsager,
    correspondence_analysis,
    lsa,
    quadratic_amp,
    quartic_target,
    svd_of_ratios,
    svd_pmi,
)
from .smoothers import amp_and_neighbours, row_neighbours, word_walk
from .topic_models import gamma_poisson, lda, nmf

SIZES = (5, 10, 20, 30, 60, 100, 200, 400)

# what is switched off, one at a time
ABLATIONS = {
    "amp_without_onsager": amp_without_onsager,
    "amp_given_prior": amp_with_given_prior,
    "amp_counts": partial(amp, channel="counts"),
    "amp_bursts": partial(amp, channel="bursts"),
    "amp_counted_biases": amp_with_counted_biases,
    "quadratic": quadratic_amp,
    "lbfgs_one_ridge": partial(minimise_poisson_loss, weights=(0.0,)),
    "lbfgs_amp_ridge": partial(minimise_with_the_ridge_of_amp, term=True),
    "lbfgs_amp_prior": partial(minimise_with_the_ridge_of_amp, term=False),
    "lbfgs_counts": partial(minimise_poisson_loss, tables={"counts": TABLES["counts"]}),
}
SMOOTHERS = {"neighbours": row_neighbours, "word_walk": word_walk}  # without vectors
EMBEDDINGS = {
    "lbfgs": minimise_poisson_loss,
    "lbfgs_bursts": minimise_burst_loss,
    "skip_gram": skip_gram,
    "nmf": nmf,
    "gamma_poisson": gamma_poisson,
    "lda": lda,
    "svd_pmi": svd_pmi,
    "svd_of_ratios": svd_of_ratios,
    "lsa": lsa,
    "correspondence": correspondence_analysis,
    "quartic_target": quartic_target,
}
BOTH = {"amp_neighbours": amp_and_neighbours}
LINKED = {"amp_of_ratios": amp_of_ratios, "svd_of_ratios": svd_of_ratios}  # both read 1 + M
METHODS = {"amp": amp} | BOTH | SMOOTHERS | EMBEDDINGS | ABLATIONS


def at_best_size(method, kept, rng):
    """Fit a method in one of `SIZES`, of which its own hidden pairs choose.

    From the second size on, larger ones are tried as long as the pairs that choose its
    settings are predicted better; smaller ones, if the next larger one is worse.
    """
    seed = int(rng.integers(2**31))

    def fit(d):
        return method(kept, d, np.random.default_rng(seed))

    best, place = fit(SIZES[1]), 1
    for step in (1, -1):
        while 0 <= place + step < len(SIZES):
            rates = fit(SIZES[place + step])
            if not rates.own_gain > best.own_gain:
                break
            best, place = rates, place + step
        if place > 1:
            break
    return replace(best, chosen=starred({"d": SIZES[place]}, {"d": SIZES}) | best.chosen)
