"""What an assignment is: denoisers to write, the beliefs they should hold, and an experiment to predict."""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from .. import experiments
from .._contract_checks import SITE
from .._trials import count_lines
from .._validation import check_integer, check_positive
from ..amp import biased_low_rank_amp
from ..beliefs import Belief
from ..checks import (
    CHECKS,
    CheckReport,
    CheckResult,
    Trial,
    describe_error,
    draw_problem,
    run_checks,
)
from ..denoisers import check_is_denoiser
from ..laws import BiasLaw, DiscreteBias, RowLaw
from ..metrics import normalised_mse
from ..state_evolution import state_evolution

N_ROWS = 40  # of each setting, as in `check_denoiser`


@dataclass(frozen=True)
class Setting:
    """A denoiser to write, with parameters to try it with.

    Attributes
    ----------
    class_name : str
    params : dict
        Keywords of its constructor.
    belief : Belief or None
        What it should believe with these parameters.
    d : int
    limits : tuple of Limit
    """

    class_name: str
    params: dict
    belief: Belief | None
    d: int
    limits: tuple = ()

    @property
    def title(self):
        """The setting in words, such as ``ElasticNet(l1=0.5, l2=1.2), d = 3``."""
        texts = {
            k: np.array2string(np.asarray(v), precision=3).split()
            for k, v in self.params.items()
        }
        shown = ", ".join(f"{k}={' '.join(words)}" for k, words in texts.items())
        return f"{self.class_name}({shown}), d = {self.d}"


@dataclass(frozen=True, repr=False)
class Experiment:
    """A table of counts to be analysed by AMP, and a number that state evolution can predict before it is drawn.

    Attributes
    ----------
    class_name, params : str, dict
        The denoiser of both sides.
    rows : RowLaw
        Of U and V.
    d, m, n, n_iter : int
    bias : BiasLaw
        Of both sides.
    start_noise : float
        AMP starts from B0 = B + noise whose entries have `start_noise` times the root
        mean square of those of B.
    statistic : callable (X, X_hat) -> float, optional
        The number in question, from the rows of A and their last estimates; if left
        out, the normalised error of A B^T.
    tolerance : float
        By how much a prediction may be off, absolutely: a few times the scatter of
        instances.
    """

    class_name: str
    params: dict
    rows: RowLaw
    d: int
    m: int = 1500
    n: int = 1000
    n_iter: int = 10
    bias: BiasLaw = DiscreteBias([-0.7, 0.7])
    start_noise: float = 1.0
    statistic: Callable | None = None
    tolerance: float = 0.02

    def __repr__(self):
        return "\n".join(f"{name:<10} = {value}" for name, value in vars(self).items())

    def predict(self, denoiser, n_samples=20_000):
        """Return the number in question by state evolution."""
        rng = np.random.default_rng(0)
        law_u, law_v = self._synthetic().scaled_rows()
        X = law_v.draw(200_000, rng)[1]
        beta, S = self.m / self.n, X.T @ X / len(X)
        run = state_evolution(
            law_u,
            law_v,
            denoiser,
            beta=beta,
            M0=S / beta,
            Q0=(S + self.start_noise**2 * np.mean(X**2) * np.eye(self.d)) / beta,
            n_iter=self.n_iter,
            n_samples=n_samples,
            rng=rng,
        )
        return (
            run.iterates[-1].nmse
            if self.statistic is None
            else float(self.statistic(*run.rows_a[1:]))
        )

    def measure(self, denoiser, seed):
        """Return the number in question after AMP on counts drawn with this seed."""
        rng = np.random.default_rng([seed, 4])
        e = self._synthetic().draw(rng)
        noise = (
            self.start_noise * np.sqrt(np.mean(e.B**2)) * rng.standard_normal(e.B.shape)
        )
        score = experiments.observe(e, "true", rng)
        run = biased_low_rank_amp(*score, denoiser, B0=e.B + noise, n_iter=self.n_iter)
        return (
            normalised_mse(e.A, e.B, run.A, run.B)
            if self.statistic is None
            else float(self.statistic(e.A, run.A))
        )

    def _synthetic(self):
        return experiments.Setting(
            rows=self.rows, bias=self.bias, m=self.m, n=self.n, d=self.d
        )


@dataclass(frozen=True)
class Assignment:
    """A task for students; `ASSIGNMENTS` has them by number.

    Attributes
    ----------
    number : int
    name : str
        Of its folder, ``assignments/NN_name``.
    title : str
    draw_settings : callable (rng) -> list of Setting
        The public settings come from one seed, those of the grader from another.
    experiment : Experiment
    own_checks : tuple of Check
        Asked after those of the kit.
    """

    number: int
    name: str
    title: str
    draw_settings: Callable = field(repr=False)
    experiment: Experiment = field(repr=False)
    own_checks: tuple = field(default=(), repr=False)

    @property
    def folder(self):
        """The name of the assignment's folder."""
        return f"{self.number:02d}_{self.name}"

    def _rng(self, seed):
        # a list of seeds is padded with zeros, so that [1] and [1, 0] are the same:
        # hence the 1 before the seed
        return np.random.default_rng(
            [self.number] if seed is None else [self.number, 1, seed]
        )

    def public(self):
        """Return the settings that students see."""
        return self.draw_settings(self._rng(None))

    def hidden(self, seed):
        """Return the settings that the grader draws from `seed`."""
        return self.draw_settings(self._rng(check_integer(seed, "seed")))

    def trials(self, make, *, seed=None, count_lines=count_lines):
        """Return a `Trial` for each setting, public or hidden.

        Parameters
        ----------
        make : callable
            ``make(class_name, **params)`` returns a denoiser.
        seed : int, optional
            Of the hidden settings and rows; public ones if left out.
        count_lines : callable
            See `Trial`.
        """
        rng = self._rng(seed)
        return [
            self._trial(setting, make, count_lines, rng)
            for setting in self.draw_settings(rng)
        ]

    def _trial(self, setting, make, count_lines, rng):
        def make_denoiser(**changes):
            return check_is_denoiser(
                make(setting.class_name, **setting.params | changes), setting.class_name
            )

        problem = draw_problem(
            N_ROWS, setting.d, rng, setting.belief and setting.belief.rows
        )
        return Trial(
            make_denoiser,
            problem,
            setting.belief,
            setting.limits,
            setting.title,
            count_lines,
        )

    def check_names(self):
        """Return the names of the checks that are graded, the prediction last."""
        trials = self.trials(_nothing)
        return [
            *(
                check.name
                for check in self._checks()
                if any(map(check.applies, trials))
            ),
            "prediction",
        ]

    def _checks(self):
        return *CHECKS.values(), *self.own_checks

    def check(self, make, prediction, *, seed=None, count_lines=count_lines):
        """Return the `CheckReport` of a submission.

        Parameters
        ----------
        make, seed, count_lines
            As for `trials`.
        prediction : float or None
            The student's ``PREDICTION``.
        """
        trials = self.trials(make, seed=seed, count_lines=count_lines)
        report = run_checks(
            f"Assignment {self.number}, {self.title}", trials, self._checks()
        )
        return CheckReport(
            report.denoiser, (*report.results, self.check_prediction(make, prediction))
        )

    def check_prediction(self, make, prediction):
        """Return the result of comparing ``PREDICTION`` with the state evolution of the student's own denoiser."""
        about = (
            "prediction",
            "PREDICTION is the number that state evolution predicts for the experiment at the end of the brief.",
            SITE + "10_state_evolution.html#se-algorithm",
        )

        def result(passed, message):
            return CheckResult(about[0], passed, message, *about[1:])

        if prediction is None:
            return result(
                False,
                "PREDICTION is None: predict the outcome of the experiment, then run it",
            )
        try:
            value = check_positive(prediction, "PREDICTION", zero=True)
            denoiser = check_is_denoiser(
                make(self.experiment.class_name, **self.experiment.params),
                "the denoiser",
            )
            predicted = self.experiment.predict(denoiser)
        except Exception as error:  # noqa: BLE001 - the report must survive any student's code
            return result(False, describe_error(error))
        off = abs(value - predicted)
        return result(
            off <= self.experiment.tolerance,
            f"PREDICTION is {value:.4g}, "
            + ("as" if off <= self.experiment.tolerance else "not what")
            + f" state evolution gives with this denoiser (to {self.experiment.tolerance:g})",
        )


def _nothing(class_name, **params):
    raise NotImplementedError(class_name)


def load_submission(path):
    """Run the Python file at `path` and return it as a module, read anew on every call.

    Raises
    ------
    FileNotFoundError
        If there is none.

    Examples
    --------
    >>> load_submission("no/such/denoiser.py")
    Traceback (most recent call last):
        ...
    FileNotFoundError: there is no file no/such/denoiser.py: copy the starter of the assignment there
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            f"there is no file {path}: copy the starter of the assignment there"
        )
    spec = importlib.util.spec_from_loader("submission", loader=None, origin=str(path))
    module = importlib.util.module_from_spec(spec)
    module.__file__ = str(path)
    # no bytecode cache: always anew
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), vars(module))
    return module


def maker(module):
    """Return ``make(class_name, **params)`` for the classes of a submission."""

    def make(class_name, **params):
        if not hasattr(module, class_name):
            raise AttributeError(
                f"{module.__file__} has no class {class_name}: keep the name that the starter has"
            )
        return getattr(module, class_name)(**params)

    return make
