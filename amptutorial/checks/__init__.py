"""The conformance kit: `check_denoiser` asks whether a denoiser keeps its contract.

The checks are small and named. Each raises `AssertionError` with an example, says which
promise is broken and where the book explains it. None of them knows the denoiser's
formula: where a `Penalty` or a `Prior` is given, the answer is compared with that, and
otherwise the denoiser with itself. The same checks serve by hand (`check_denoiser`), in
pytest (each of `CHECKS` is a function of a denoiser) and in the grader (`run_checks`).
A course makes checks of its own with `check` and `require`.
"""

from .contract import SITE, Check, check
from .report import (
    CHECKS,
    CheckReport,
    CheckResult,
    check_denoiser,
    describe_error,
    run_checks,
)
from .trials import (
    Limit,
    Problem,
    Trial,
    count_lines,
    draw_problem,
    observe,
    ready_made,
)
from .verdict import require

__all__ = [
    "CHECKS",
    "SITE",
    "Check",
    "CheckReport",
    "CheckResult",
    "Limit",
    "Problem",
    "Trial",
    "check",
    "check_denoiser",
    "count_lines",
    "describe_error",
    "draw_problem",
    "observe",
    "ready_made",
    "require",
    "run_checks",
]
