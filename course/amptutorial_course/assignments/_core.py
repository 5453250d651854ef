"""What an assignment is: denoisers to write, their beliefs, an outcome to predict."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np

from amptutorial._validation import check_integer, check_positive
from amptutorial.amp import biased_low_rank_amp
from amptutorial.checks import CHECKS, Check, CheckReport, count_lines, draw_problem, require, run_checks
from amptutorial.checks.beliefs import Belief
from amptutorial.checks.problems import SHORT
from amptutorial.denoisers import check_is_denoiser
from amptutorial.laws import BiasLaw, DiscreteBias, RowLaw
from amptutorial.metrics import normalised_mse
from amptutorial.paper.setting import Setting, observe_score
from amptutorial.state_evolution import state_evolution

from ..grading.worker.by_hand import ready_made
from ._limits import LIMITS, Limit, SettingTrial
from ._parts import BY_PART, WHOLE, Part, judged, others
from ._points import ESSENTIAL

N_ROWS = 40  # of each setting, as in `check_denoiser`
NEAR, WIDE, FAR = range(3)  # the ranges of a parameter
# A method that ends Python is asked twice: who judges it must be among the first who ask. Shapes pass over the penalty.
FIRST = ("penalty", "shapes", "jacobian")


@dataclass(frozen=True)
class DenoiserSetting:
    """A denoiser to write, with parameters to try it with.

    Attributes
    ----------
    class_name : str
    params : dict
        Keywords of its constructor.
    belief : Belief
        What it should believe with these parameters.
    d : int
    limits : tuple of Limit
    """

    class_name: str
    params: dict
    belief: Belief
    d: int
    limits: tuple[Limit, ...] = ()

    @property
    def title(self):
        """The setting in words, such as ``ElasticNet(l1=0.5, l2=1.2), d = 3``."""
        return f"{self._call(_on_one_line)}, d = {self.d}"

    @property
    def code(self):
        """The code that makes the denoiser, with all digits."""
        return self._call(lambda value: f"np.array({value.tolist()})" if isinstance(value, np.ndarray) else repr(value))

    def _call(self, show):
        return f"{self.class_name}({', '.join(f'{k}={show(v)}' for k, v in self.params.items())})"


def _on_one_line(value):
    return " ".join(np.array2string(np.asarray(value), precision=3).split())


def log_uniform(**ranges):
    """Return a `Family.draw_params` that draws the logarithm of each parameter, from a range for each reach."""

    def draw_params(rng, d, reach=NEAR):
        return {name: float(np.exp(rng.uniform(*each[reach]))) for name, each in ranges.items()}

    return draw_params


@dataclass(frozen=True)
class Family:
    """Denoisers of one class.

    Attributes
    ----------
    class_name : str
    draw_params : callable (rng, d, reach=NEAR) -> dict
        From a range in which AMP finds the rows, from a wide one, or from one that
        reaches to where the parameter makes no difference.
    belief : callable (**params) -> Belief
    limits : callable (d, **params) -> iterable of Limit
    dimensions : tuple of int
        Those in which named checks ask, and students see the settings.
    asked : tuple of int
        Those in which `right_answers` asks too.
    """

    class_name: str
    draw_params: Callable
    belief: Callable
    limits: Callable
    dimensions: tuple[int, ...] = (1, 3)
    asked: tuple[int, ...] = (1, 2, 3, 4, 5, 6)

    def setting(self, d, params):
        """Return a setting in d dimensions."""
        return DenoiserSetting(self.class_name, params, self.belief(**params), d, tuple(self.limits(d, **params)))

    def draw(self, rng):
        """Return a setting in each of the `dimensions`."""
        return [self.setting(d, self.draw_params(rng, d)) for d in self.dimensions]

    def draw_others(self, rng):
        """Return settings for `right_answers`: pairs that share all parameters but one, and others that reach far."""
        settings = []
        for d in self.asked * 3:
            one, other = (self.draw_params(rng, d, WIDE) for _ in range(2))
            changed = str(rng.choice(list(one)))
            settings += [self.setting(d, one), self.setting(d, one | {changed: other[changed]})]
        return [*settings, *(self.setting(d, self.draw_params(rng, d, FAR)) for d in self.asked * 3)]


@dataclass(frozen=True, repr=False)
class Experiment:
    """Counts to be analysed by AMP, and a number to be predicted beforehand.

    State evolution predicts the number before the counts are drawn.

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
        shown = {name: getattr(value, "__name__", value) for name, value in vars(self).items()}
        return "\n".join(f"{name:<10} = {value}" for name, value in shown.items())

    def arguments(self, n_samples=20_000):
        """Return, as a dict, what `state_evolution` is called with beside the denoiser."""
        rng = np.random.default_rng(0)
        law_u, law_v = self._synthetic().scaled_rows()
        X = law_v.draw(200_000, rng=rng)[1]
        beta, S = self.m / self.n, X.T @ X / len(X)
        Q0 = (S + self.start_noise**2 * np.mean(X**2) * np.eye(self.d)) / beta
        overlaps = {"beta": beta, "M0": S / beta, "Q0": Q0}
        return {"law_u": law_u, "law_v": law_v, **overlaps, "n_iter": self.n_iter, "n_samples": n_samples, "rng": rng}

    def _predict(self, denoiser, n_samples=20_000):
        """Return the number in question by state evolution."""
        run = state_evolution(denoiser=denoiser, **self.arguments(n_samples))
        if self.statistic is None:
            return run.iterates[-1].nmse
        return float(self.statistic(*run.rows_a[1:]))

    def measure(self, denoiser, seed):
        """Return the number in question after AMP on counts drawn with this seed."""
        rng = np.random.default_rng([seed, 4])
        e = self._synthetic().draw(rng=rng)
        noise = np.sqrt(np.mean(e.B**2)) * rng.standard_normal(e.B.shape)
        B0 = e.B + self.start_noise * noise
        score = observe_score(e, "true", rng=rng)
        run = biased_low_rank_amp(*score, denoiser, B0=B0, n_iter=self.n_iter)
        if self.statistic is None:
            return normalised_mse(e.A, e.B, run.A, run.B)
        return float(self.statistic(e.A, run.A))

    def _synthetic(self):
        return Setting(rows=self.rows, bias=self.bias, m=self.m, n=self.n, d=self.d)


@dataclass(frozen=True)
class Assignment:
    """A task for students: all that is known about it but its brief and its starter.

    Attributes
    ----------
    number : int
    name : str
        Of its folder, ``assignments/NN_name``.
    title : str
    families : tuple of Family
        The public settings come from one seed, those of the grader from another.
    experiment : Experiment
    own_checks : tuple of Check
        Asked after those of the kit.
    seconds : float
        Of a processor, for a usual right file and its judge.
    by_hand : bool
        Whether the denoisers of the package may not be used.
    points : dict
        For each check that is graded, 100 in all.
    written : dict
        The most points for what is handed in beside the code and marked by a person.
    """

    number: int
    name: str
    title: str
    families: tuple[Family, ...] = field(repr=False)
    experiment: Experiment = field(repr=False)
    own_checks: tuple[Check, ...] = field(default=(), repr=False)
    seconds: float = 8.0
    by_hand: bool = True
    points: dict = field(default_factory=dict, repr=False)
    written: dict = field(default_factory=lambda: {"derivations": 20}, repr=False)

    @property
    def essential(self):
        """The checks of which one must pass before any other earns points."""
        return tuple(name for name in ESSENTIAL if name in self.points)

    def require_points(self):
        """Raise unless every check that is graded has points, 100 in all.

        Raises
        ------
        ValueError
            With the check, or the sum.
        """
        names, total = set(self.check_names()), sum(self.points.values())
        wrong = sorted(names.symmetric_difference(self.points))
        if wrong or total != 100:
            raise ValueError(
                f"the points of assignment {self.number} must name every check that is graded, and sum to 100: "
                f"the sum is {total:g}; missing or unknown: {', '.join(wrong) or 'none'}"
            )

    @property
    def class_names(self):
        """The names of the classes that a submission has."""
        return sorted({setting.class_name for setting in self.public()})

    @property
    def folder(self):
        """The name of the assignment's folder."""
        return f"{self.number:02d}_{self.name}"

    def _rng(self, seed):
        # a list of seeds is padded with zeros, so that [1] and [1, 0] are the same:
        # hence the 1 before the seed
        own = [] if seed is None else [1, check_integer(seed, "seed")]
        return np.random.default_rng([self.number, *own])

    def public(self):
        """Return the settings that students see."""
        return self._settings(self._rng(None))

    def _settings(self, rng):
        return [setting for family in self.families for setting in family.draw(rng)]

    def trials(self, make, *, seed=None, n_problems=SHORT, count_lines=count_lines):
        """Return a `Trial` for each setting, public or hidden.

        Parameters
        ----------
        make : callable
            ``make(class_name, **params)`` returns a denoiser.
        seed : int, optional
            Of the hidden settings and rows; public ones if left out.
        n_problems : int
            Of `right_answers`: `SHORT` for a student, `LONG` for a class.
        count_lines : callable
            See `Trial`.
        """
        rng = self._rng(seed)
        as_trial = partial(self._trial, rng, make, count_lines, n_problems)
        return self._with_relatives([*map(as_trial, self._settings(rng))], as_trial, rng)

    def _with_relatives(self, trials, as_trial, rng):
        """Return the trials, of which the first of each family asks for right answers, of all of them and more."""
        e, complete, waiting = self.experiment, [], iter(trials)
        for family in self.families:
            others = family.draw_others(rng)
            if family.class_name == e.class_name:
                others.append(family.setting(e.d, e.params))
            complete += as_family(islice(waiting, len(family.dimensions)), map(as_trial, others))
        return complete or trials

    def _trial(self, rng, make, count_lines, n_problems, setting):
        def make_denoiser(**changes):
            name = setting.class_name
            denoiser = check_is_denoiser(make(name, **setting.params | changes), name)
            if self.by_hand:
                _require_by_hand(type(denoiser), name)
            return denoiser

        return SettingTrial(
            make_denoiser,
            draw_problem(N_ROWS, setting.d, rng=rng, rows=setting.belief.rows),
            setting.belief,
            setting.title,
            count_lines,
            seed=int(rng.integers(2**31)),
            n_problems=n_problems,
            limits=setting.limits,
            call=setting.code,
        )

    def check_names(self):
        """Return the names of the checks that are graded, the prediction last."""
        trials = self.trials(make=None)  # which checks apply is known before any denoiser is made
        applying = [c.name for c in self._checks() if any(map(c.applies, trials))]
        return [*applying, "prediction"]

    def _checks(self):
        split = {WHOLE.name: BY_PART}
        named = (part for check in CHECKS.values() for part in split.get(check.name, (check,)))
        return tuple(map(judged, (*named, LIMITS, *self.own_checks)))

    def check(self, make, prediction, *, told=lambda result: None, **options):
        """Return the `CheckReport` of a submission.

        Parameters
        ----------
        make : callable
            As for `trials`, to which other options go.
        prediction : float or None
            The student's ``PREDICTION``.
        told : callable (CheckResult)
            Called with each result as soon as it is known.
        """
        title, trials = f"Assignment {self.number}, {self.title}", self.trials(make, **options)
        checks = {check.name: check for check in self._checks()}
        in_turn = {name: checks[name] for name in FIRST if name in checks} | checks
        # each by itself: what no check can make sense of ends a run, and here the others are asked
        results = [result for check in in_turn.values() for result in run_checks(title, trials, [check], told).results]
        results.sort(key=lambda result: list(checks).index(result.name))
        told(last := self.check_prediction(make, prediction, trials))
        return CheckReport(title, (*results, last))

    def check_prediction(self, make, prediction, trials=()):
        """Return the `CheckResult` of comparing ``PREDICTION`` with state evolution.

        It is the state evolution of the student's own denoiser, or of what is right in it, as the trials find.
        """

        def make_part(name, **params):
            return Part(make(name, **params), None, others(set().union(*(trial.wrong for trial in trials))))

        attempts = (SimpleNamespace(title="", task=self, make=each, value=prediction) for each in (make, make_part))
        results = (run_checks("", [attempt], [PREDICTION]).results[0] for attempt in attempts)
        first = next(results)
        return first if first.passed else next((result for result in results if result.passed), first)


def prediction(attempt):
    """PREDICTION is the number that state evolution predicts for the experiment at the end of the brief."""
    value, experiment = attempt.value, attempt.task.experiment
    require(value is not None, "PREDICTION is None: predict the outcome of the experiment, then run it")
    if isinstance(value, list | tuple) and len(value) == 2:
        whole, digits = value
        require(False, f"PREDICTION is {whole}, {digits}, a pair of numbers: write {whole}.{digits}, with a point")
    value = check_positive(value, "PREDICTION", zero=True)
    denoiser = check_is_denoiser(attempt.make(experiment.class_name, **experiment.params), "the denoiser")

    def is_predicted(experiment, share=1.0):
        return abs(value - experiment._predict(denoiser)) <= share * experiment.tolerance

    told = f"state evolution gives with this denoiser (to {experiment.tolerance:g})"
    if is_predicted(experiment):
        return f"PREDICTION is {value:.4g}, as {told}"
    error = Experiment(**vars(experiment) | {"statistic": None})
    others = {". It is that after one iteration": replace(experiment, n_iter=1), ". It is the error of A B^T": error}
    like = next((text for text, other in others.items() if is_predicted(other, 0.1)), "")  # no chance
    raise AssertionError(f"PREDICTION is {value:.4g}, not what {told}{like}")


PREDICTION = Check(prediction, "09_state_evolution.html#se-algorithm")


def as_family(trials, others=()):
    """Return the trials, of which the first alone asks for right answers: of all of them, and of others."""
    one, *rest = trials
    return [replace(one, relatives=(*rest, *others)), *(replace(other, seed=None) for other in rest)]


def _require_by_hand(cls, name):
    """Raise if a class is made of the package's denoisers."""
    # a class that stands for another one knows what that one is made of
    used = getattr(cls, "ready_made", None)
    used = ready_made(cls) if used is None else used
    require(
        not used,
        f"the file with {name} imports or inherits {', '.join(used)}: derive {name} from Denoiser alone, and write it "
        "by hand. Compare with the package's denoisers elsewhere",
    )


def load_submission(path):
    """Run the Python file at `path` and return it as a module.

    The file is read anew on every call. Its ``assert`` statements and docstrings count
    under ``python -O`` as well: a submission gets the same verdicts everywhere.

    Raises
    ------
    FileNotFoundError
        If there is none.

    Examples
    --------
    >>> load_submission("no/such/denoiser.py")
    Traceback (most recent call last):
        ...
    FileNotFoundError: there is no file no/such/denoiser.py: copy the starter there
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}: copy the starter there")
    module = ModuleType("submission")
    module.__file__ = str(path)
    # compiled here and not imported: no bytecode is kept, and the level is fixed. The
    # bytes say how they are encoded
    code = compile(path.read_bytes(), str(path), "exec", optimize=0)
    sys.modules[module.__name__] = module  # where dataclasses look for names
    exec(code, vars(module))
    return module


def require_check(report, name, gate=()):
    """Raise unless the check `name` of a report and at least one of `gate` passed.

    Raises
    ------
    AssertionError
        With what was found, what was promised, and what to read.

    Examples
    --------
    >>> from amptutorial.checks import check_denoiser
    >>> from amptutorial.denoisers import Ridge
    >>> require_check(check_denoiser(Ridge(1.0)), "shapes", gate=["optimality", "limits"])
    """
    results = {result.name: result for result in report.results}
    # a check that was not run waits for the one that failed
    result = results[name] if name in results or report.passed else report.failures[0]
    require(result.passed, result.text)
    opens = [key for key in gate if key in results]
    require(
        not opens or any(results[key].passed for key in opens),
        f"{name} passes, and counts as soon as one of these does: {', '.join(opens)}",
    )


def maker(module):
    """Return ``make(class_name, **params)`` for the classes of a submission."""

    def make(class_name, **params):
        if not hasattr(module, class_name):
            raise AttributeError(f"{module.__file__} has no class {class_name}: keep the name that the starter has")
        return getattr(module, class_name)(**params)

    return make
