"""The kit at work: run the checks that apply, and report what was found."""

import html
import inspect
import re
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .trials import LIBRARIES, Trial, code_of, literal, trial_of
from .verdict import Malformed

SITE = "https://amptutorial.github.io/amptutorial/book/"
# on a page of the book tables in outputs have no padding of their own
CELL = "text-align:left;vertical-align:top;padding:0.2em 0.8em 0.2em 0"
COPIED = 5  # rows at most of a problem that is shown as code
UNASKED = r"raised (NotImplementedError|NotRun): (.*)"


@dataclass(frozen=True)
class Check:
    """A promise of a denoiser: a function that tries it, whose docstring says it.

    Attributes
    ----------
    run : callable (Trial) -> str or None
        It raises `AssertionError` with an example that breaks the promise, or returns
        None or a measurement worth reading. Its name is that of the check.
    page : str
        Page and anchor of the book that explain it.
    applies : callable (Trial) -> bool

    Examples
    --------
    >>> from amptutorial.denoisers import Ridge
    >>> def long_name(trial):
    ...     '''The class has a name of more than one letter.'''
    ...     if len(type(trial.denoiser).__name__) == 1:
    ...         raise AssertionError("its name is a letter")
    >>> check = Check(long_name, "05_denoisers.html#denoisers-own")
    >>> check.name, check.contract, check(Ridge(1.0))
    ('long_name', 'The class has a name of more than one letter.', None)
    """

    run: Callable[..., str | None]
    page: str
    applies: Callable[..., bool] = lambda trial: True

    @property
    def name(self):
        """What is promised, in a word."""
        return self.run.__name__

    @property
    def contract(self):
        """What is promised, in a sentence or two."""
        text = self.run.__doc__
        if text is None:  # `python -OO` leaves it in the source alone
            _, text, *_ = (*inspect.getsource(self.run).split('"""'), "")
        return " ".join(text.split())

    @property
    def read(self):
        """The address of the page."""
        return SITE + self.page

    def measure(self, trial):
        """Run the check; where warnings are errors, its verdict is the same."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.run(trial)

    def __call__(self, denoiser):
        """Run the check on a denoiser or a `Trial`.

        Raises
        ------
        AssertionError
            With what was found, what was promised, and what to read.
        """
        trial = denoiser if isinstance(denoiser, Trial) else trial_of(denoiser)
        for failure in run_checks("", [trial], [self]).failures:
            raise AssertionError(failure.text)


@dataclass(frozen=True)
class CheckResult:
    """What came of one check; `name`, `contract` and `read` are those of `Check`."""

    name: str
    passed: bool
    message: str = ""  # what was found
    contract: str = ""
    read: str = ""

    @property
    def text(self):
        """What was found, what was promised, and what to read."""
        return f"{self.message}\nThe promise: {self.contract}\nRead: {self.read}"

    def _told(self):
        """Return a verdict, and what was found.

        A starter raises NotImplementedError with what is to be written, and a grader
        NotRun when time is up: such checks wait.
        """
        waits = re.search(UNASKED, self.message)
        if self.passed or not waits:
            return "pass" if self.passed else "FAIL", self.message
        why = "not run" if waits[1] == "NotRun" else "not written yet"
        return "wait", f"{why}: {waits[2]}"


@dataclass(frozen=True)
class CheckReport:
    """All results of `check_denoiser`.

    It prints as a text, and is a table with links where a notebook shows it. Checks
    that wait for the same, or have found the same, share a line.
    """

    denoiser: str
    results: tuple[CheckResult, ...]

    @property
    def passed(self):
        """Whether every check passed."""
        return not self.failures

    @property
    def failures(self):
        """The results that did not pass."""
        return tuple(result for result in self.results if not result.passed)

    def _title(self):
        n, n_passed = len(self.results), len(self.results) - len(self.failures)
        return f"{self.denoiser}: {n_passed} of {n} checks passed"

    def _rows(self):
        """Return a verdict, names of checks, what was found, and one of the results."""
        rows: dict[tuple, list] = {}
        for one in self.results:
            # who passes has a line alone
            rows.setdefault((*one._told(), one.passed and one.name), []).append(one)
        every = [
            (verdict, ", ".join(one.name for one in row), found, row[0])
            for (verdict, found, _), row in rows.items()
        ]
        return sorted(every, key=lambda row: row[0] != "wait")

    def __str__(self):
        lines = [self._title()]
        for verdict, names, found, one in self._rows():
            lines.append(f"{verdict}  {names}{': ' * bool(found)}{found}")
            if verdict == "FAIL":
                lines.append(f"      the promise: {one.contract}")
                lines.append(f"      read: {one.read}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self):
        head, body = _row('th scope="col"', "check", "", "found", "read"), ""
        for verdict, names, found, one in self._rows():
            found, link = html.escape(found).replace("\n", "<br>"), ""
            chapter = re.search(r"/0?(\d+)_\w+\.html", one.read)
            if chapter and verdict != "wait":
                link = f'chapter <a href="{html.escape(one.read)}">{chapter[1]}</a>'
            if verdict == "FAIL":
                found = f"<em>{html.escape(one.contract)}</em><br>{found}"
                verdict = "<strong>FAIL</strong>"
            body += _row("td", names, verdict, found, link)
        table = f"<caption>{html.escape(self._title())}</caption><thead>{head}</thead>"
        return f'<table class="amp-report">{table}<tbody>{body}</tbody></table>'


def _row(tag, *cells):
    """Return a row of a table in HTML."""
    shown = (f'<{tag} style="{CELL}">{cell}</{tag[:2]}>' for cell in cells)
    return f"<tr>{''.join(shown)}</tr>"


def run_checks(title, trials, checks, told=lambda result: None):
    """Run `checks` on all `trials`.

    A check passes if it passes in every trial to which it applies.

    Parameters
    ----------
    title : str
        The first words of the report.
    trials : list of Trial
    checks : iterable of Check
    told : callable (CheckResult), optional
        Called with each result as soon as it is known.

    Returns
    -------
    CheckReport
        Without the checks that apply to no trial. Where an answer has a wrong type or
        shape, the check that says so is the last one.

    Examples
    --------
    >>> import numpy as np
    >>> from amptutorial.checks import CHECKS, Trial, draw_problem
    >>> from amptutorial.denoisers import Ridge
    >>> problem = draw_problem(40, 2, rng=np.random.default_rng(0))
    >>> trial = Trial(lambda: Ridge(1.0), problem)
    >>> print(run_checks("ridge", [trial], [CHECKS["shapes"], CHECKS["deterministic"]]))
    ridge: 2 of 2 checks passed
    pass  shapes
    pass  deterministic
    """
    results: list[CheckResult] = []
    for check in checks:
        notes, wrong = [], None
        for trial in trials:
            try:
                if check.applies(trial):
                    notes.append(check.measure(trial))
            # the report must survive any student's code
            except Exception as error:  # noqa: BLE001
                notes, wrong = [_explained(trial, error)], error
                break
        if notes:
            found = "; ".join(dict.fromkeys(filter(None, notes)))  # each once
            said = found, check.contract, check.read
            results.append(CheckResult(check.name, wrong is None, *said))
            told(results[-1])
        if isinstance(wrong, Malformed):
            break
    return CheckReport(title, tuple(results))


def _explained(trial, error):
    """Return what went wrong: an error, and how to see it again."""
    told, problem = describe_error(error, trial.title), getattr(error, "problem", None)
    method = re.search(r"\b(estimate|mean_jacobian|denoise)\b", str(error))
    if problem is None or len(problem.r) > COPIED or method is None:
        return told
    one = getattr(error, "trial", trial)
    code = as_code(one.call or code_of(one.make()), problem, method[1])
    return f"{told}\nTo ask it again:\n{code}"


def as_code(call, problem, method):
    """Return lines of Python that ask a denoiser a problem, to be copied.

    Examples
    --------
    >>> import numpy as np
    >>> from amptutorial.checks import Problem
    >>> one = Problem(np.ones((1, 1)), np.ones(1), np.eye(1))
    >>> print(as_code("Ridge(1.0)", one, "estimate"))
    P = np.array([[1.0]])
    r = np.array([1.0])
    F = np.array([[1.0]])
    print(Ridge(1.0).estimate(P, r, F))
    """
    named = zip("PrF", problem.copies(), strict=True)
    lines = [f"{name} = {literal(array)}" for name, array in named]
    return "\n".join([*lines, f"print({call}.{method}(P, r, F))"])


def describe_error(error, title=""):
    """Return what went wrong in a check, in words for the author of the denoiser.

    That is the message of the check, or the error of the denoiser with its line. The
    `title` of the trial, if there is one, comes first, or a note of the error that
    names the setting where there were several.

    Examples
    --------
    >>> describe_error(AssertionError("row 3 is wrong")), describe_error(KeyError("u"))
    ('row 3 is wrong', "raised KeyError: 'u'")
    >>> describe_error(AssertionError("row 3 is wrong"), "d = 1")
    'd = 1: row 3 is wrong'
    """
    titles = getattr(error, "__notes__", [title])
    where = "".join(f"{each}: " for each in titles if each)
    if isinstance(error, AssertionError):
        return f"{where}{error}"
    return f"{where}raised {type(error).__name__}: {error}{_line(error)}"


def _line(error):
    """Return the file and line that an error came from, or an empty text.

    It is the last line that belongs neither to an installed package nor to the book's.
    """
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        path, module = Path(frame.f_code.co_filename), frame.f_globals.get("__name__")
        ours = str(module).startswith("amptutorial") or str(path).startswith(LIBRARIES)
        if path.is_file() and not ours:
            return f" ({path.name}, line {line})"
    return ""
