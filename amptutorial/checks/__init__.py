"""The conformance kit: `check_denoiser` asks whether a denoiser keeps its contract.

The checks are small and named. Each raises `AssertionError` with an example, says which
promise is broken and where the book explains it. None of them knows the denoiser's
formula: where a `Penalty` or a `Prior` is given, the answer is compared with that, and
otherwise the denoiser with itself. The same checks serve by hand (`check_denoiser`), in
pytest (each of `CHECKS` is a function of a denoiser) and in the grader (`run_checks`).
A course makes checks of its own with `Check` and `require`.

To find why a denoiser was refused, begin with the name of the check. `promises` has the
table: each check is a function there, in `behaviour` (what every denoiser promises) or
in `right_answers` (problems by the dozen). What is right is computed in `oracle`, and
answers are compared with it in `verdict`.
"""

from .problems import Problem, draw_problem, observe
from .promises import CHECKS, check_denoiser
from .report import SITE, Check, CheckReport, CheckResult, describe_error, run_checks
from .trials import Trial, count_lines
from .verdict import require

__all__ = ["CHECKS", "SITE", "Check", "CheckReport", "CheckResult", "Problem", "Trial"]
__all__ += ["check_denoiser", "count_lines", "describe_error", "draw_problem"]
__all__ += ["observe", "require", "run_checks"]
