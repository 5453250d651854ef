"""The assignments of the book: what is asked, how it is checked, and what is predicted.

A student works in a folder ``assignments/NN_name`` with a brief and a file
``denoiser.py`` to be completed:

    check_assignment(1, "denoiser.py")  # a report on every promise
    run_experiment(1, "denoiser.py")    # AMP on counts, once PREDICTION is a number

Each module here without an underscore is an assignment, its `ASSIGNMENT`.
"""

from amptutorial._validation import check_integer

from . import ball, clusters, elastic_net, gauss_bernoulli, group_lasso, non_negative, reviews, ridge
from ._core import Assignment, DenoiserSetting, Experiment, load_submission, maker, require_check

__all__ = ["ASSIGNMENTS", "Assignment", "DenoiserSetting", "Experiment", "assignment", "check_assignment"]
__all__ += ["load_submission", "maker", "require_check", "run_experiment"]

_MODULES = (ridge, elastic_net, non_negative, group_lasso, gauss_bernoulli, clusters, ball, reviews)
ASSIGNMENTS = {number: each.ASSIGNMENT for number, each in enumerate(_MODULES, start=1)}


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
        return f"Nothing was run: PREDICTION in {path} is None. Predict the outcome by state evolution first."
    denoiser = maker(module)(task.experiment.class_name, **task.experiment.params)
    measured = [task.experiment.measure(denoiser, seed) for seed in range(n_instances)]
    values = "  ".join(f"{value:.4f}" for value in measured)
    return f"your prediction:              {module.PREDICTION:.4f}\nAMP on {n_instances} tables of counts:    {values}"
