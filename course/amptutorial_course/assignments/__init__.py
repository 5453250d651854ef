"""The assignments of the book: what is asked, how it is checked, and what is predicted.

A student works in a folder ``assignments/NN_name`` with a brief, a file ``denoiser.py``
to be completed, and tests:

    check_assignment(1, "denoiser.py")  # a report on every promise
    run_experiment(1, "denoiser.py")    # AMP on counts, once PREDICTION is a number
"""

from amptutorial._validation import check_integer
from ._core import Assignment, DenoiserSetting, Experiment, load_submission, maker
from .ball import BALL
from .clusters import CLUSTERS
from .elastic_net import ELASTIC_NET
from .gauss_bernoulli import GAUSS_BERNOULLI
from .group_lasso import GROUP_LASSO
from .non_negative import NON_NEGATIVE
from .reviews import REVIEWS
from .ridge import RIDGE

__all__ = [
    "ASSIGNMENTS",
    "Assignment",
    "DenoiserSetting",
    "Experiment",
    "assignment",
    "assignment_trials",
    "check_assignment",
    "check_prediction",
    "load_submission",
    "run_experiment",
]

ASSIGNMENTS = {
    each.number: each
    for each in (
        RIDGE,
        ELASTIC_NET,
        NON_NEGATIVE,
        GROUP_LASSO,
        GAUSS_BERNOULLI,
        CLUSTERS,
        BALL,
        REVIEWS,
    )
}


def assignment(number):
    """Return the assignment with this number.

    Raises
    ------
    ValueError
        If there is none.

    Examples
    --------
    >>> assignment(1).folder
    '01_ridge'
    """
    if check_integer(number, "number") not in ASSIGNMENTS:
        numbers = ", ".join(map(str, ASSIGNMENTS))
        raise ValueError(f"there is no assignment {number}: the numbers are {numbers}")
    return ASSIGNMENTS[number]


def check_assignment(number, path="denoiser.py", *, seed=None):
    """Return the `CheckReport` of a file on the settings of an assignment.

    The file at `path` is read anew on every call.

    Parameters
    ----------
    number : int
    path : str or Path
    seed : int, optional
        Of hidden settings; public ones if left out.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, or no such assignment.
    """
    task, module = assignment(number), load_submission(path)
    return task.check(maker(module), getattr(module, "PREDICTION", None), seed=seed)


def assignment_trials(number, path="denoiser.py"):
    """Return the public trials of an assignment.

    They are meant for `parametrize_with_denoiser_checks`. The file is read when the
    first test runs, so that a mistake in it fails the tests and not their collection.
    """
    return assignment(number).trials(
        lambda name, **params: maker(load_submission(path))(name, **params)
    )


def check_prediction(number, path="denoiser.py"):
    """Return the `CheckResult` of the ``PREDICTION`` in the file at `path`."""
    module = load_submission(path)
    return assignment(number).check_prediction(
        maker(module), getattr(module, "PREDICTION", None)
    )


def run_experiment(number, path="denoiser.py", n_instances=3):
    """Return a text that compares the prediction of an experiment with its outcome.

    Nothing is run before ``PREDICTION`` in the file is a number: an experiment whose
    outcome nobody predicted teaches little.

    Parameters
    ----------
    number : int
    path : str or Path
    n_instances : int
        How many tables of counts are drawn.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, or no such assignment.
    """
    task, module = assignment(number), load_submission(path)
    if getattr(module, "PREDICTION", None) is None:
        return (
            f"Nothing was run: PREDICTION in {path} is None. Predict the outcome by "
            "state evolution first."
        )
    denoiser = maker(module)(task.experiment.class_name, **task.experiment.params)
    measured = [task.experiment.measure(denoiser, seed) for seed in range(n_instances)]
    values = "  ".join(f"{value:.4f}" for value in measured)
    return (
        f"your prediction:              {module.PREDICTION:.4f}\n"
        f"AMP on {n_instances} tables of counts:    {values}"
    )
