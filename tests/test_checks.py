"""The conformance kit: who passes it, what its report says, and what it makes of answers that are none."""

import re
import sys

import numpy as np
import pytest
from stated_beliefs import (
    AbsoluteValue,
    HardThreshold,
    Right,
    Rotated,
    SquaredNorm,
    Squares,
    StandardNormal,
    estimate,
    estimating,
    jacobian,
    variant,
)

from amptutorial.checks import CHECKS, Check, CheckReport, CheckResult, Problem, check_denoiser
from amptutorial.checks.trials import trial_of
from amptutorial.checks.verdict import require_rows
from amptutorial.denoisers import Denoiser, GaussianPosterior, Lasso, Ridge


class Locked(Right):
    """Cannot be copied, and is asked itself."""

    def __init__(self):
        self.module = sys


class Certain(Denoiser):
    """Every row is zero, and so is the Jacobian, but for round-off."""

    def estimate(self, P, r, F):
        return 0 * P

    def mean_jacobian(self, P, r, F):
        return -1e-13 / np.linalg.norm(F, 2) * np.eye(len(F))


# u >= 0 and a ridge of 1 in one dimension, with the numerical Jacobian
NON_NEGATIVE = variant(
    estimate=lambda self, P, r, F: estimate(np.maximum(P, 0), r, F),
    mean_jacobian=Denoiser.mean_jacobian,
    penalty=lambda self, X, r: Right.penalty(self, X, r) if (X >= 0).all() else np.inf,
)
KINDS = Ridge, Lasso, GaussianPosterior
STATED = (Ridge(1.0), SquaredNorm()), (GaussianPosterior(1.0), StandardNormal())
PASSES = [
    *((kind(strength), {}) for kind in KINDS for strength in (1e-12, 1e-6, 1e6, 1e12)),
    *((kind(0.3), {"d": d}) for kind in KINDS for d in (1, 2, 5)),
    *((Lasso(1.0), {"n_rows": n_rows}) for n_rows in (2, 3)),
    *((Lasso(1.0), {"belief": AbsoluteValue(), "d": d}) for d in (1, 2)),
    # the kit study asks a thousand seeds
    *((one, {"belief": belief, "rng": np.random.default_rng(k)}) for one, belief in STATED for k in range(2)),
    *((Ridge(10.0), {"d": 10}), (Right(), {"belief": Squares()}), (Locked(), {}), (NON_NEGATIVE, {"d": 1})),
]


@pytest.mark.parametrize(("denoiser", "options"), PASSES)
def test_who_is_right_passes_every_check_that_applies(denoiser, options):
    """In any dimension, at every strength, with few rows, and with rows that AMP hardly finds."""
    report = check_denoiser(denoiser, **options)
    assert report.passed, report
    names = {result.name for result in report.results}
    is_mean, is_stated = denoiser.precision == "posterior", "belief" in options
    assert ("optimality" in names) == ("penalty" in names) == (not is_mean)
    assert ("one_prior" in names, "tweedie" in names) == (is_mean and not is_stated, is_mean and is_stated)


@pytest.mark.parametrize("name", ["jacobian", "right_answers"])
def test_round_off_in_a_jacobian_of_zero_is_no_mistake(name):
    CHECKS[name](Certain())


def by_itself(method, change):
    """Return a `Right` with `change` made to what one of its methods returns."""
    return variant(**{method: lambda self, *arguments: change(getattr(Right, method)(self, *arguments))})


ARRAYS = {
    "a list": list,
    "a tuple": tuple,
    "a matrix": np.matrix,
    "a MaskedArray": np.ma.masked_array,
    "None": lambda X: None,
    "an int": lambda X: 3,
    "an array of shape (3,)": lambda X: X[0],
    "dtype float32": np.float32,
    "dtype int64": lambda X: X.round().astype(int),
    "dtype object": lambda X: X.astype(object),
    "dtype complex128": lambda X: X + 0j,
}
NUMBERS = {
    "an array of shape (1,)": lambda value: np.array([value]),
    "an array of shape () and dtype object": lambda value: np.array(value, dtype=object),
    "a float32": np.float32,
    "None": lambda value: None,
    "a complex": complex,
    "nan": lambda value: np.nan,
    "a bool": bool,
    "a list": lambda value: [value, [value]],
}


@pytest.mark.parametrize(
    ("method", "told", "change"),
    [(method, told, change) for method in ("estimate", "mean_jacobian") for told, change in ARRAYS.items()]
    + [(method, told, change) for method in ("penalty", "convexity") for told, change in NUMBERS.items()]
    + [("denoise", "an array of shape (40, 3)", lambda pair: pair[0]), ("denoise", "None", lambda pair: None)]
    + [("denoise", "a list", lambda pair: (list(pair[0]), pair[1]))],
)
def test_an_answer_of_a_wrong_kind_fails_shapes_alone_which_says_what_to_return(method, told, change):
    (failure,) = check_denoiser(by_itself(method, change)).failures
    found, right = failure.message.split("; return ")
    assert failure.name == "shapes"
    assert found.startswith(method) and told in found
    assert right.startswith(("an array of", "a pair") if method not in ("penalty", "convexity") else "a float")


@pytest.mark.parametrize("kind", [int, float, np.array, np.int64])
def test_a_number_of_any_exact_kind_is_one(kind):
    zero = {"convexity": lambda self, r: kind(0), "penalty": lambda self, X, r: kind(0)}
    report = check_denoiser(variant(**zero), n_rows=5)
    assert {result.name: result.passed for result in report.results}["shapes"]


def in_place(P, r, F):
    return estimate(np.multiply(P, 1.5, out=P) / 1.5, r, F)


def test_what_failed_before_an_answer_of_a_wrong_kind_is_told_too():
    def few_rows_only(self, X, r):
        return np.nan if len(X) > 100 else Ridge(1.0).penalty(X, r)

    wrong = variant(estimate=lambda self, *rows: in_place(*rows), penalty=few_rows_only)
    first, *_, last = check_denoiser(wrong, belief=Squares()).failures
    assert (first.name, last.name) == ("no_mutation", "right_answers")
    assert "penalty returns nan" in last.message


@pytest.mark.slow
def test_an_inherited_jacobian_costs_few_calls():
    calls = []

    def counted(self, P, r, F):
        calls.append(len(r))
        return estimate(P, r, F)

    report = check_denoiser(variant(estimate=counted, mean_jacobian=Denoiser.mean_jacobian), d=10)
    assert report.passed, report
    assert len(calls) < 2000


def overflowing(P, r, F):
    X = estimate(P, r, F)
    return np.where(np.abs(X) > 0.1 * np.sqrt(r)[:, None], np.nan, X)


def broken(P, r, F):
    raise KeyError("<u>")


SAID = [
    ("jacobian", Rotated(), "its transpose fits: [k, l] is d estimate_l / d P_k"),
    ("jacobian", by_itself("mean_jacobian", lambda J: 40 * J), "J / N fits: the Jacobian is a mean over the rows, not"),
    ("jacobian", by_itself("mean_jacobian", lambda J: -J), "its negative fits"),
    ("jacobian", by_itself("denoise", lambda pair: (pair[0], 1.01 * pair[1])), "denoise(P, r, F)[1]["),
    ("state_evolution", by_itself("mean_jacobian", lambda J: -J), "standard errors away from Q. The Onsager term"),
    ("penalty", variant(convexity=lambda self, r: 1.01 / r.max()), "is too large for 40 rows"),
    ("penalty", variant(penalty=Denoiser.penalty), "penalty is inherited"),
    ("optimality", by_itself("penalty", lambda value: 9 * value), ". Has penalty() every factor of the penalty that"),
    ("frequency_scaling", estimating(overflowing), "(an overflow? 0 / 0?), which is sqrt(r)"),
    ("shapes", estimating(broken), "raised KeyError: '<u>' (test_checks.py, line "),
]


@pytest.mark.parametrize(("name", "wrong", "text"), SAID)
def test_a_failure_says_what_is_wrong(name, wrong, text):
    report = check_denoiser(wrong, belief=Squares() if "is inherited" in text else None)
    assert text in {failure.name: failure.message for failure in report.failures}[name]
    assert "<u>" not in report._repr_html_()


class HalfWritten(Ridge):
    """The estimate is written, what AMP asks for is not."""

    def denoise(self, P, r, F):
        raise NotImplementedError("write the Jacobian")


def test_checks_that_wait_for_one_method_share_a_line():
    report = check_denoiser(HalfWritten(1.0))
    waiting = [line for line in str(report).splitlines() if line.startswith("wait")]
    unwritten = [result.name for result in report.failures if "write the Jacobian" in result.message]
    assert len(waiting) == 1 and len(unwritten) > 1
    assert waiting[0].startswith(f"wait  {', '.join(unwritten)}: not written yet: write the Jacobian (test_checks.py, ")
    assert report._repr_html_().count("write the Jacobian") == 1


def test_checks_that_say_the_same_share_a_line_unless_they_pass_and_those_that_wait_come_first():
    found, late = "d = 1: denoiser.py imports Ridge", "raised NotRun: the time is used up"
    said = {"shapes": found, "speed": "", "penalty": "", "limits": found, "jacobian": late, "tweedie": late}
    report = CheckReport("a file", tuple(CheckResult(name, not text, text) for name, text in said.items()))
    title, first, second, *_, last, end = str(report).splitlines()
    assert title == "a file: 2 of 6 checks passed"
    assert first == "wait  jacobian, tweedie: not run: the time is used up"
    assert second == f"FAIL  shapes, limits: {found}" and report._repr_html_().count(found) == 1
    assert (last, end) == ("pass  speed", "pass  penalty")


def test_a_row_is_wrong_where_nothing_is_allowed_and_other_rows_are_exact():
    zeros, found = np.zeros((3, 1)), np.array([[0.0], [0.0], [1e-9]])
    problem = Problem(np.ones((3, 1)), np.ones(3), np.eye(1))
    require_rows("estimate", zeros, problem, zeros, np.zeros(3))
    told = "row 2, p = [1], r = 1, F = [[1]]: estimate gives [1e-09], expected [0]"
    with pytest.raises(AssertionError, match=re.escape(told)):
        require_rows("estimate", found, problem, zeros, np.zeros(3))


@pytest.mark.parametrize("method", ["estimate", "denoise"])
def test_what_is_not_finite_on_the_ladder_is_told_in_one_row(method):
    def overflows(self, P, r, F):
        X = estimate(P, r, F)
        X = np.where(r[:, None] > 30, np.nan, X)
        return X if method == "estimate" else (X, jacobian(P, r, F))

    with pytest.raises(AssertionError, match="row 0.* gives .*nan.*an overflow") as failure:
        CHECKS["right_answers"].measure(trial_of(variant(**{method: overflows})))
    assert "1 row, F = " in failure.value.__notes__[0]


def test_what_is_no_denoiser_is_refused():
    with pytest.raises(TypeError, match="derive its class from amptutorial.Denoiser"):
        check_denoiser(Ridge)
    with pytest.raises(ValueError, match='precision must be "argmin" or "posterior"'):
        check_denoiser(variant(precision="map"))


def test_a_write_into_p_is_shown_and_rings_no_check_of_another_promise():
    (failure,) = check_denoiser(estimating(in_place)).failures
    assert failure.name == "no_mutation" and "changes its argument P" in failure.message


def test_the_report_is_a_table_with_links_in_a_notebook():
    table = check_denoiser(estimating(lambda P, r, F: P + (P < 0) * 1e-3))._repr_html_()
    assert table.count("<tr>") == 1 + len(check_denoiser(Ridge(1.0)).results)
    assert "<strong>FAIL</strong>" in table
    assert '<a href="https://amptutorial.github.io/amptutorial/book/05_denoisers.html#denoisers-rows">5</a>' in table
    assert "P &lt; 0" not in table


def test_a_failure_in_pytest_says_what_was_promised_and_what_to_read():
    with pytest.raises(AssertionError, match=r"(?s)one prior.*The promise: .*\nRead: https://.*#denoisers-jacobian"):
        CHECKS["one_prior"](HardThreshold())


def test_a_check_without_a_docstring_promises_nothing():
    assert Check(lambda trial: None, "05_denoisers.html").contract == ""


class Halved(GaussianPosterior):
    """Has a base class whose text names that class, and shows no digit of an array."""

    def denoise(self, P, r, F):
        X, J = super().denoise(P, r, F)
        return X / 2, J / 2

    def estimate(self, P, r, F):
        return self.denoise(P, r, F)[0]


class OwnWords(Ridge):
    """Takes what its base class does not, and keeps nothing of that name."""

    def __init__(self, weight):
        super().__init__(weight)

    def estimate(self, P, r, F):
        return super().denoise(P, r, F)[0] / r[:, None]


@pytest.mark.parametrize(
    ("wrong", "check"),
    [(Halved(np.diag([1.0, 1 / 3])), "right_answers"), (OwnWords(0.5), "frequency_scaling")],
    ids=["an array", "another name"],
)
def test_a_check_by_hand_tells_lines_that_ask_the_right_class_again(wrong, check, capsys):
    belief = StandardNormal() if isinstance(wrong, Halved) else None
    with pytest.raises(AssertionError) as raised:
        CHECKS[check](trial_of(wrong, belief=belief, d=2))
    told, _, code = str(raised.value).partition("\nTo ask it again:\n")
    (given,) = re.findall(r"gives (\[.*?\])", told)
    exec(code.partition("\nThe promise: ")[0], {"np": np, type(wrong).__name__: type(wrong)})
    shown = np.fromstring(capsys.readouterr().out.strip(" []\n"), sep=" ")
    np.testing.assert_allclose(shown, np.fromstring(given.strip("[]"), sep=" "), rtol=1e-3)
    assert check_denoiser(wrong, belief=belief, d=2).denoiser.startswith(f"{type(wrong).__name__}(")


def test_the_tracer_of_a_debugger_is_put_back():
    before = sys.gettrace()
    CHECKS["speed"](Ridge(1.0))
    assert sys.gettrace() is before
