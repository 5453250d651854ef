"""A promise of a denoiser that can be tried."""

import ast
import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from textwrap import dedent
from typing import cast

from .trials import Trial, trial_of
from .verdict import setting_of

SITE = "https://amptutorial.github.io/amptutorial/book/"


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
        text = inspect.getdoc(self.run)
        if text is None:  # `python -OO` leaves it in the source alone
            tree = ast.parse(dedent(inspect.getsource(self.run)))
            text = ast.get_docstring(cast(ast.FunctionDef, tree.body[0]))
        return " ".join((text or "").split())

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
        try:
            self.measure(trial)
        except AssertionError as failure:
            text = f"{setting_of(failure, trial.title)}{failure}"
            raise AssertionError(
                f"{text}\nThe promise: {self.contract}\nRead: {self.read}"
            ) from None
