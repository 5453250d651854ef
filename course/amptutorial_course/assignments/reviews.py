"""Assignment 8, an open project: a prior for text that predicts better than a Gaussian.

No belief is prescribed. So the checks ask what every posterior mean must do, of the
denoiser as it is made and of the denoiser that has learned. Two checks of this
assignment alone ask how the denoiser learns, and whether that was worth the trouble.
"""

from dataclasses import dataclass, replace

import numpy as np

from amptutorial.checks import Check, Problem, draw_problem, observe, require
from amptutorial.checks.beliefs import Unstated
from amptutorial.checks.problems import draw_unit
from amptutorial.checks.promises import mean_log_partition
from amptutorial.denoisers import GaussianPosterior, check_is_denoiser
from amptutorial.estimator import AMPEmbedding
from amptutorial.heldout import heldout_gain, hold_out, split_counts

from ._core import Assignment, DenoiserSetting, Experiment, as_family, load_submission, maker

# how often a denoiser learns before it is checked once more, and from how many rows;
# on how many sets of rows the likelihood is followed
LESSONS, LEARNING_ROWS, N_CLASSES = 10, 500, 3
N_TABLES, SHAPE, N_COUNTS, HELD_OUT = 3, (400, 500), 20_000, 0.2
# times the gain of the Gaussian posterior mean: priors of the right shape reach 1.1 to
# 1.3, others 1.00
BETTER = 1.05
# the lengths of rows that are learned, beside the usual ones, and how much worse than
# a Gaussian that knows them a denoiser may be
SCALES, WORSE = (0.3, 3.0), 1.5
# by how many nats a row may become less probable in a step, and by how much of their
# size estimates may depend on the order of the rows: numbers of iterations may differ
FALL, ORDER = 1e-3, 1e-3


@dataclass(frozen=True)
class FewLongRows:
    """Embedding rows u in random directions, few of them long.

    A `share` of the rows has this `length`, the others have a tenth of it: most words
    say next to nothing about their documents, and some say much.

    Parameters
    ----------
    length : float
    share : float

    Examples
    --------
    >>> U = FewLongRows(6.0, share=0.5).draw((4, 2), rng=np.random.default_rng(0))
    >>> np.linalg.norm(U, axis=1).round(2)
    array([0.6, 0.6, 0.6, 6. ])
    """

    length: float
    share: float = 0.2

    def draw(self, size, rng):
        """Return rows of shape `size` = (N, d)."""
        directions = rng.standard_normal(size)
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        is_long = rng.random(size[0]) < self.share
        return np.where(is_long, self.length, self.length / 10)[:, None] * directions

    def variance(self, d):
        """Return the variance of an entry in d dimensions."""
        return self.length**2 * (self.share + (1 - self.share) / 100) / d


@dataclass(frozen=True)
class OwnBelief(Unstated):
    """The place of a prior that the student chooses.

    All that is stated is rows to try it on, and counts to be predicted.

    Attributes
    ----------
    rows : RowLaw
    seed : int or None
        Of what is learned from, and of the tables of `heldout`; None of a denoiser
        that has learned.
    """

    rows: FewLongRows
    seed: int | None = None


def draw_table(rows, rng):
    """Return `(kept, held_out)`, Poisson counts of `SHAPE`.

    Their rates are proportional to r_u_i r_v_j exp(u_i . v_j). Nothing is divided by
    sqrt(m) here: with rows of length 1.7 the associations are of order one, as in text.

    Parameters
    ----------
    rows : FewLongRows
        Of both sides, in three dimensions.
    rng : numpy.random.Generator
    """
    U, V = (rows.draw((size, 3), rng=rng) for size in SHAPE)
    r_u, r_v = (np.exp(rng.choice([-1.0, 0.0, 1.0], size)) for size in SHAPE)
    rates = np.outer(r_u, r_v) * np.exp(U @ V.T)
    counts = rng.poisson(N_COUNTS * rates / rates.sum())
    kept, held_out, _, _ = hold_out(counts, HELD_OUT, rng, split_counts)
    return kept, held_out


def embedding_gain(kept, held_out, denoiser, d, channel="counts"):
    """Return the held-out gain of `AMPEmbedding` with a denoiser, in nats per count.

    Examples
    --------
    >>> table = draw_table(FewLongRows(3**0.5), np.random.default_rng(0))
    >>> round(embedding_gain(*table, "posterior", 3), 1)
    0.1
    """
    model = AMPEmbedding(d, denoiser=denoiser, channel=channel, random_state=0)
    model.fit(kept)
    return heldout_gain(kept, held_out, model.embedding_, model.components_.T, model.row_bias_, model.column_bias_)


def compare_on_text(path="denoiser.py", corpus="reviews", n_documents=7000, choices=3, d=10):
    """Return a table of held-out gains on text, of a file's `ReviewDenoiser` and a Gaussian.

    A fifth of the counts is held out, the same one for both, and repetitions are
    damped. What is asked is the lead, choice by choice.

    Parameters
    ----------
    path : str or Path
    corpus : "reviews" or "docstrings"
    n_documents : int
        Of reviews.
    choices : int
        How often reviews and held-out counts are chosen anew, at least 2.
    d : int
        The dimension of the embedding.
    """
    from amptutorial.corpus import load_docstrings, load_movie_reviews

    make, leads, lines = maker(load_submission(path)), [], ["choice   Gaussian      yours       lead"]
    for choice in range(choices):
        reviews = {"n_documents": n_documents, "random_state": choice}
        found = load_docstrings() if corpus == "docstrings" else load_movie_reviews(**reviews)
        kept, held_out, _, _ = hold_out(found.counts, HELD_OUT, np.random.default_rng(choice))
        denoisers = "posterior", make("ReviewDenoiser")
        gaussian, own = (embedding_gain(kept, held_out, each, d, "damped") for each in denoisers)
        leads.append(own - gaussian)
        lines.append(f"{choice:>6} {gaussian:10.4f} {own:10.4f} {leads[-1]:+10.4f}")
    error = np.std(leads, ddof=1) / np.sqrt(choices)
    return "\n".join([*lines, f"lead in nats per count: {np.mean(leads):+.4f} +- {error:.4f}"])


def _is_new(trial):
    return trial.belief.seed is not None


def _has_tables(trial):
    return _is_new(trial) and trial.d == 3


def refit(trial):
    """Learning by refit leaves the denoiser itself as it was.

    What frozen returns has learned the same, and learns no more. A step does not lower
    the likelihood of its rows, and their order does not matter.
    """
    one = trial.make()
    (before,) = _estimates([one], trial.problem)
    learned = one.refit(*trial.problem.copies())
    require(
        np.array_equal(before, *_estimates([one], trial.problem)),
        "refit changes the denoiser itself. Rows and columns begin with the same one, "
        "and each must learn a prior of its own: return a new denoiser",
    )
    frozen = check_is_denoiser(learned, "what refit returns").frozen()
    now, then, again = _estimates((learned, frozen, frozen.refit(*trial.problem.copies())), trial.problem)
    require(
        np.allclose(now, then, rtol=1e-9),
        "what frozen returns estimates otherwise than the denoiser that has learned: it should have the same prior",
    )
    require(np.array_equal(then, again), "what frozen returns goes on learning: its refit should return itself")
    if _is_new(trial):
        rng = np.random.default_rng(trial.belief.seed)
        for _ in range(N_CLASSES):
            rows = FewLongRows(5 * np.exp(rng.uniform(-4, 4)))
            lessons = _lessons(trial, rows, rng, int(10 ** rng.uniform(0.7, 2.7)))
            _require_likelihood(trial, lessons.in_units(draw_unit(rng)))
        _require_no_order(trial, _lessons(trial, FewLongRows(5.0), rng, int(10 ** rng.uniform(3, 4))))
    if _has_tables(trial):
        for scale in SCALES:
            _require_learned_scale(trial, scale)


def _lessons(trial, rows, rng, n_rows):
    """Return rows to learn from, rare and frequent."""
    r, F = np.exp(rng.uniform(-4.6, 4.6, n_rows)), trial.problem.F
    return _long_last(Problem(observe(rows.draw((n_rows, trial.d), rng=rng), r, F, rng=rng)[1], r, F))


def _long_last(lessons):
    """Return the same rows, the long ones last: for those who look at the first only."""
    return lessons.rows(np.argsort(np.linalg.norm(lessons.P, axis=1) / np.sqrt(lessons.r)))


def _require_likelihood(trial, lessons):
    """Raise if a call of refit lowers the likelihood of the rows it was given."""
    denoiser, values = trial.make(), []
    for _ in range(LESSONS + 2):
        values.append(mean_log_partition(denoiser.frozen(), *lessons.copies(), n_nodes=48))
        denoiser = check_is_denoiser(denoiser.refit(*lessons.copies()), "what refit returns")
    require(
        np.diff(values).min() >= -FALL,
        f"the log-likelihood of {len(lessons.r)} rows, up to a constant and in nats per row, is "
        f"{', '.join(f'{value:.4f}' for value in values)} before and after {LESSONS + 1} calls of refit on them: a "
        "step of learning must not lower it",
    )


def _require_no_order(trial, lessons):
    """Raise if what is learned depends on the order of the rows."""
    shuffled = lessons.rows(np.random.default_rng(0).permutation(len(lessons.r)))
    learned = (_learned(trial.make(), rows).frozen() for rows in (lessons, shuffled))
    X, Y = _estimates(learned, trial.problem)
    require(
        np.abs(X - Y).max() <= ORDER * np.abs(X).max(),
        f"{LESSONS} calls of refit on the same rows in another order lead to other estimates: {X[0].round(4)} became "
        f"{Y[0].round(4)}. Does learning look at every row?",
    )


def _require_learned_scale(trial, scale):
    """Raise unless what has learned knows the scale of the rows it was given."""
    rows, rng = FewLongRows(scale * 5.0), np.random.default_rng(1)
    d, F = trial.d, trial.problem.F
    lessons = _long_last(draw_problem(LEARNING_ROWS, d, rng=rng, rows=rows))
    learned = _learned(_learned(trial.make(), lessons), lessons)
    r = np.exp(rng.uniform(-1.0, 1.0, 2000))
    X, P = observe(rows.draw((len(r), d), rng=rng), r, F, rng=rng)
    tried = _estimates((learned, GaussianPosterior(rows.variance(d)), trial.make()), Problem(P, r, F))
    own, gaussian, new = (np.mean((found - X) ** 2) for found in tried)
    asks = "does each step of learning raise the likelihood?" if own != new else "refit changes nothing"
    require(
        own <= WORSE * gaussian,
        f"after {2 * LESSONS} calls of refit on rows of length {rows.length:g} and {rows.length / 10:g} the mean "
        f"square error is {own:.4g} for further such rows; the Gaussian posterior mean that knows their variance has "
        f"{gaussian:.4g}: {asks}",
    )


def _estimates(denoisers, problem):
    """Return what each denoiser estimates, given arrays of its own."""
    return [np.asarray(one.estimate(*problem.copies())) for one in denoisers]


def _learned(denoiser, lessons):
    """Return a denoiser after `LESSONS` calls of refit on the same rows."""
    for _ in range(LESSONS):
        denoiser = check_is_denoiser(denoiser.refit(*lessons.copies()), "what refit returns")
    return denoiser


def heldout(trial):
    """With it, AMPEmbedding predicts held-out counts better by a twentieth.

    The comparison is with the Gaussian posterior mean.
    """
    rng = np.random.default_rng(trial.belief.seed)
    tables = [draw_table(FewLongRows(3**0.5), rng) for _ in range(N_TABLES)]
    own, gaussian = (
        np.mean([embedding_gain(*table, denoiser, 3) for table in tables]) for denoiser in (trial.make(), "posterior")
    )
    gains = {"are all estimates zero, from a prior that is too narrow where learning starts?": 0.0}
    gains |= {"are all parts of the prior still equal after refit?": gaussian}
    asks = [text for text, gain in gains.items() if abs(own - gain) < 1e-3 * gaussian]
    require(
        own >= BETTER * gaussian,
        f"on {N_TABLES} tables in which one row of five is ten times as long as the others the held-out gain is "
        f"{own:.4f} nats per count, {gaussian:.4f} with the Gaussian posterior mean, and {BETTER * gaussian:.4f} is "
        f"asked for: {(*asks, 'can the prior that refit has learned tell long rows from short ones?')[0]}",
    )
    return f"held-out gain {own:.4f}, with the Gaussian posterior mean {gaussian:.4f}"


class OpenProject(Assignment):
    """An assignment whose denoiser learns: it is checked before and after."""

    def _settings(self, rng):
        """Return settings in one dimension, in three, and in another number."""
        rows = FewLongRows(5.0)
        dimensions = (1, 3, int(rng.choice([2, 4, 5, 6])))
        beliefs = [OwnBelief(rows, seed=int(rng.integers(2**31))) for _ in dimensions]
        return [DenoiserSetting("ReviewDenoiser", {}, *both) for both in zip(beliefs, dimensions, strict=True)]

    def trials(self, make, **options):
        """Return two `Trial` for each setting: as it is made, and after learning."""
        fresh = super().trials(make, **options)
        return as_family([*fresh, *map(_after_learning, fresh)])


def _after_learning(trial):
    d, rng = trial.problem.P.shape[1], np.random.default_rng(0)
    lessons = draw_problem(LEARNING_ROWS, d, rng=rng, rows=trial.belief.rows)

    def make(**changes):
        return _learned(trial.make(**changes), lessons).frozen()

    belief, title = replace(trial.belief, seed=None), f"{trial.title}, after learning"
    return replace(trial, make=make, stated=belief, title=title)


@dataclass(frozen=True, repr=False)
class AgainstGaussian(Experiment):
    """The error of A B^T, as a share of the error with the Gaussian posterior mean."""

    rows: FewLongRows

    def _predict(self, denoiser, n_samples=5000):
        """Return the share by state evolution."""
        gaussian = super()._predict(self._gaussian(), n_samples)
        return super()._predict(denoiser, n_samples) / gaussian

    def measure(self, denoiser, seed):
        """Return the share after AMP on counts drawn with this seed."""
        return super().measure(denoiser, seed) / super().measure(self._gaussian(), seed)

    def _gaussian(self):
        return GaussianPosterior(self.rows.variance(self.d), learn=True)


ASSIGNMENT = OpenProject(
    8,
    "reviews",
    "a better prior for text",
    (),
    AgainstGaussian("ReviewDenoiser", {}, FewLongRows(5.0), d=3, n_iter=20, tolerance=0.03),
    (
        Check(refit, "17_learned_priors.html#learned-prior"),
        Check(heldout, "14_real_text.html#text-fair", _has_tables),
    ),
    seconds=30.0,
    by_hand=False,
    points={
        # what it is for, and how it learns
        **{"heldout": 30, "refit": 8},
        # the contract of every denoiser
        **{"shapes": 4, "no_mutation": 5, "deterministic": 4, "row_independence": 4, "hard_inputs": 7, "speed": 8},
        # the estimate and the Jacobian
        **{"frequency_scaling": 4, "jacobian": 5, "one_prior": 4},
        # both of them, on problems of every kind
        **{"right_answers": 6, "right_jacobian": 3},
        # in AMP
        **{"state_evolution": 2, "prediction": 6},
    },
    written={"report": 100},
)
