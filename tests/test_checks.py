"""The conformance kit against wrong denoisers: each must fail the check that names its mistake, and right ones pass."""

import inspect
import re
import sys

import numpy as np
import pytest
from stated_beliefs import SquaredNorm, Squares, StandardNormal

from amptutorial.checks import (
    CHECKS,
    CheckReport,
    CheckResult,
    Problem,
    Trial,
    check_denoiser,
    draw_problem,
    run_checks,
)
from amptutorial.checks.beliefs import Penalty
from amptutorial.checks.trials import trial_of
from amptutorial.checks.verdict import require_rows
from amptutorial.denoisers import Denoiser, GaussianPosterior, Lasso, Ridge
from amptutorial.laws import GaussianRows


class NonNegative(Denoiser):
    """A right denoiser of another kind: u >= 0 and a ridge of 1, by coordinate descent, with the numerical Jacobian."""

    def estimate(self, P, r, F):
        X = np.zeros(P.shape)
        for _ in range(400):
            for k in range(P.shape[1]):
                rest = P[:, k] - X @ F[:, k] + X[:, k] * F[k, k]
                X[:, k] = np.maximum(rest, 0) / (F[k, k] + 1 / r)
        return X

    def penalty(self, X, r):
        return float((X**2 / r[:, None]).sum() / 2) if (X >= 0).all() else np.inf


@pytest.mark.parametrize("d", [1, 2, 10])
@pytest.mark.parametrize("strength", [0.1, 1.0, 10.0])
def test_a_ridge_of_any_strength_passes_in_any_dimension(strength, d):
    report = check_denoiser(Ridge(strength), d=d)
    assert report.passed, report


class Onsager(Ridge):
    """Gives AMP no Onsager term."""

    def denoise(self, P, r, F):
        return super().denoise(P, r, F)[0], 0 * F

    def estimate(self, P, r, F):
        return Ridge.denoise(self, P, r, F)[0]


def variant(**methods):
    """Return a Ridge with some methods replaced."""
    return type("Wrong", (Ridge,), methods)(1.0)


def estimate(P, r, F):
    return np.linalg.solve(F + np.eye(len(F)) / r[:, None, None], P[:, :, None])[:, :, 0]


def looped(P, r, F):
    return np.array([np.linalg.solve(F + np.eye(len(F)) / s, p) for p, s in zip(P, r, strict=True)])


def jacobian(P, r, F):
    return np.linalg.inv(F + np.eye(len(F)) / r[:, None, None]).mean(axis=0)


def remembering(self, P, r, F):
    self.calls = getattr(self, "calls", 0) + 1
    return estimate(P, r, F) + 1e-3 * self.calls


def in_place(self, P, r, F):
    P *= 1.5
    return estimate(P / 1.5, r, F)


class Cached(Ridge):
    """Keeps the inverses of the first call."""

    def estimate(self, P, r, F):
        if getattr(self, "kept", None) is None or len(self.kept) != len(r):
            self.kept = np.linalg.inv(F + self.strength / r[:, None, None] * np.eye(len(F)))
        return np.einsum("ik,ikl->il", P, self.kept)

    def denoise(self, P, r, F):
        return self.estimate(P, r, F), Ridge.denoise(self, P, r, F)[1]


class HardThreshold(Denoiser):
    """Keeps an entry of u or drops it: a jump."""

    precision = "posterior"

    def estimate(self, P, r, F):
        return P * (np.abs(P) > 1 / np.sqrt(r)[:, None]) / r[:, None] / F[0, 0]


class Stretched(Denoiser):
    """Steeper than the minimiser of any convex penalty, without a jump."""

    def estimate(self, P, r, F):
        return 2 * np.linalg.solve(F, P.T).T


class Peeking(Ridge):
    """Looks for the truth among the variables of its callers."""

    def denoise(self, P, r, F):
        frame = inspect.currentframe().f_back
        while frame is not None:
            rows = getattr(frame.f_locals.get("self"), "X", None)
            if np.shape(rows) == np.shape(P):
                return rows, 0 * F
            frame = frame.f_back
        return super().denoise(P, r, F)


class Rotated(Denoiser):
    """Linear with a non-symmetric matrix and the transposed Jacobian."""

    precision = "posterior"
    G = np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 0.2], [0.3, 0.0, 1.0]])

    def estimate(self, P, r, F):
        return P @ self.G

    def mean_jacobian(self, P, r, F):
        return self.G.T


def overflowing(self, P, r, F):
    gains = np.exp(1 / r)
    return estimate(P, r, F) * (gains / gains)[:, None]


def single_precision(self, P, r, F):
    weights = np.exp(np.abs(P).sum(axis=1, keepdims=True).astype(np.float32))
    return estimate(P, r, F) * (weights / weights)


def vectorised(self, P, r, F):
    return estimate(P, r, F)


def jacobian_of_rows(self, P, r, F):
    return jacobian(P, r, F)


def writing_denoise(self, P, r, F):
    r *= 2
    return estimate(P, r / 2, F), jacobian(P, r / 2, F)


def writing_penalty(self, X, r):
    np.sqrt(r, out=r)
    return float(((X / r[:, None]) ** 2).sum() / 2)


PROBLEM = draw_problem(40, 3, rng=np.random.default_rng(0))
APART = {"estimate": vectorised, "mean_jacobian": jacobian_of_rows}  # both right, and denoise is another method


WRONG = {
    "hard_inputs": [
        variant(estimate=overflowing),
        variant(estimate=single_precision),
        variant(estimate=lambda self, P, r, F: estimate(P, r, F) * (P / P)),
    ],
    "penalty": [
        variant(penalty=lambda self, X, r: float((X**2).sum() / 2)),
        variant(penalty=lambda self, X, r: float((X**2 / r[:, None]).mean() / 2)),
    ],
    "speed": [
        variant(estimate=lambda self, P, r, F: looped(P, r, F)),
        variant(mean_jacobian=lambda self, P, r, F: np.mean([jacobian(P, r[[i]], F) for i in range(len(r))], axis=0)),
        variant(denoise=lambda self, P, r, F: (looped(P, r, F), jacobian(P, r, F)), **APART),
    ],
    "tweedie": [
        (GaussianPosterior(0.5), StandardNormal()),
        (GaussianPosterior(np.diag([1.0, 1.0, 2.0])), StandardNormal()),
        (GaussianPosterior(3.0), StandardNormal()),
    ],
    "state_evolution": [Onsager(1.0), Peeking(1.0)],
    "shapes": [
        variant(estimate=lambda self, P, r, F: estimate(P, r, F)[:, :1]),
        variant(estimate=lambda self, P, r, F: np.full(P.shape, np.nan)),
        variant(mean_jacobian=lambda self, P, r, F: np.diag(jacobian(P, r, F))),
        variant(estimate=lambda self, P, r, F: estimate(P, r, F).round().astype(int)),
        variant(denoise=vectorised, **APART),
        variant(denoise=lambda self, P, r, F: (jacobian(P, r, F), estimate(P, r, F)), **APART),
    ],
    "no_mutation": [
        variant(estimate=in_place),
        variant(denoise=writing_denoise, **APART),
        variant(penalty=writing_penalty),
    ],
    "deterministic": [
        variant(estimate=remembering),
        variant(denoise=lambda self, P, r, F: (1.01 * estimate(P, r, F), jacobian(P, r, F)), **APART),
        variant(estimate=lambda self, P, r, F: estimate(P, r, F) + np.random.default_rng().standard_normal(P.shape)),
    ],
    "right_answers": [
        Trial(lambda: Cached(1.0), PROBLEM),
        variant(mean_jacobian=lambda self, P, r, F: jacobian(P, np.minimum(r, 15), F)),
    ],
    "row_independence": [
        variant(estimate=lambda self, P, r, F: estimate(P, r, F) - estimate(P, r, F).mean(axis=0)),
        variant(estimate=lambda self, P, r, F: estimate(P, np.full(len(r), r.mean()), F)),
    ],
    "frequency_scaling": [
        variant(estimate=lambda self, P, r, F: estimate(P, 1 / r, F)),
        variant(estimate=lambda self, P, r, F: estimate(P, np.sqrt(r), F)),
        variant(estimate=lambda self, P, r, F: estimate(P, np.ones_like(r), F)),
    ],
    "jacobian": [
        variant(mean_jacobian=lambda self, P, r, F: len(P) * jacobian(P, r, F)),
        variant(mean_jacobian=lambda self, P, r, F: np.linalg.inv(F)),
        variant(mean_jacobian=lambda self, P, r, F: -jacobian(P, r, F)),
        variant(mean_jacobian=lambda self, P, r, F: np.zeros((P.shape[1],) * 2)),
        variant(denoise=lambda self, P, r, F: (estimate(P, r, F), 1.01 * jacobian(P, r, F)), **APART),
        Rotated(),
    ],
    "one_prior": [Rotated(), HardThreshold()],
    "optimality": [
        variant(estimate=lambda self, P, r, F: estimate(P, r / 2, F)),
        variant(estimate=lambda self, P, r, F: P),
        variant(estimate=lambda self, P, r, F: -estimate(P, r, F)),
        (Stretched(), SquaredNorm()),
    ],
}


def report_of(wrong):
    """Return the report of a denoiser, of one with its belief, or of a trial."""
    if isinstance(wrong, Trial):
        return run_checks("new", [wrong], CHECKS.values())
    denoiser, belief = wrong if isinstance(wrong, tuple) else (wrong, None)
    return check_denoiser(denoiser, belief=belief)


@pytest.mark.parametrize(("name", "wrong"), [(name, wrong) for name, bank in WRONG.items() for wrong in bank])
def test_each_mistake_fails_the_check_that_names_it(name, wrong):
    report = report_of(wrong)
    assert not report.passed
    failures = {failure.name: failure for failure in report.failures}
    assert failures[name].message
    assert f"FAIL  {name}: " in str(report)
    assert failures[name].contract in str(report)
    assert failures[name].read in str(report)


def by_itself(method, change):
    """Return a Ridge whose methods are apart, with `change` made to what one of them returns."""

    def denoise(self, P, r, F):
        return estimate(P, r, F), jacobian(P, r, F)

    methods = APART | {"denoise": denoise}
    right = methods.get(method) or getattr(Ridge, method)
    return variant(**methods | {method: lambda self, *arguments: change(right(self, *arguments))})


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
    report = check_denoiser(type("Plain", (Denoiser,), {"estimate": vectorised, **zero})(), n_rows=5)
    assert {result.name: result.passed for result in report.results}["shapes"]


def test_what_failed_before_an_answer_of_a_wrong_kind_is_told_too():
    def few_rows_only(self, X, r):
        return np.nan if len(X) > 100 else Ridge(1.0).penalty(X, r)

    wrong = variant(denoise=writing_denoise, penalty=few_rows_only, **APART)
    first, *_, last = check_denoiser(wrong, belief=Squares()).failures
    assert (first.name, last.name) == ("no_mutation", "right_answers")
    assert "penalty returns nan" in last.message


@pytest.mark.parametrize("strength", [1e-12, 1e-6, 1e6, 1e12])
@pytest.mark.parametrize("kind", [Ridge, Lasso, GaussianPosterior])
def test_right_denoisers_pass_at_every_strength(kind, strength):
    assert check_denoiser(kind(strength)).passed


@pytest.mark.slow
def test_an_inherited_jacobian_costs_few_calls():
    calls = []

    def counted(self, P, r, F):
        calls.append(len(r))
        return estimate(P, r, F)

    plain = type("Plain", (Denoiser,), {"estimate": counted, "penalty": lambda self, *rows: Ridge(1.0).penalty(*rows)})
    report = check_denoiser(plain(), d=10)
    assert report.passed, str(report)
    assert len(calls) < 2000


def test_the_bank_covers_every_check():
    assert set(CHECKS) == set(WRONG)


@pytest.mark.parametrize(
    ("denoiser", "d"),
    [
        *((denoiser, d) for denoiser in (Ridge(2.0), Lasso(1.0), GaussianPosterior(0.3)) for d in (1, 2, 5)),
        pytest.param(NonNegative(), 2, marks=pytest.mark.slow),  # its Jacobian by differences takes ten seconds
    ],
    ids=repr,
)
def test_right_denoisers_pass_in_every_dimension(denoiser, d):
    report = check_denoiser(denoiser, d=d, rng=np.random.default_rng(d))
    assert report.passed, str(report)
    names = [result.name for result in report.results]
    assert ("optimality" in names) == ("penalty" in names) == (denoiser.precision == "argmin")
    assert ("one_prior" in names) == (denoiser.precision == "posterior")
    assert "tweedie" not in names  # nobody said which prior


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (Rotated(), "its transpose fits: [k, l] is d estimate_l / d P_k"),
        (WRONG["jacobian"][0], "the Jacobian is a mean over the rows, not a sum"),
        (WRONG["jacobian"][4], "denoise(P, r, F)[1]["),
    ],
    ids=["transposed", "sum", "of denoise"],
)
def test_a_common_mistake_in_the_jacobian_is_told_so(wrong, text):
    assert text in {failure.name: failure.message for failure in check_denoiser(wrong).failures}["jacobian"]


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


def test_checks_that_have_found_the_same_share_a_line():
    found = "d = 1: denoiser.py imports Ridge"
    results = [CheckResult("shapes", False, found), CheckResult("speed", True), CheckResult("limits", False, found)]
    report = CheckReport("a file", tuple(results))
    assert str(report).splitlines()[1] == f"FAIL  shapes, limits: {found}"
    assert report._repr_html_().count(found) == 1
    assert "pass  speed" in str(report) and "1 of 3 checks passed" in str(report)


def test_what_a_grader_did_not_run_is_said_once():
    told = "raised NotRun: the time is used up"
    results = tuple(CheckResult(name, False, told) for name in ("limits", "jacobian"))
    assert "wait  limits, jacobian: not run: the time is used up" in str(CheckReport("", results))


class Certain(Denoiser):
    """Every row is zero, and so is the Jacobian, but for round-off."""

    def estimate(self, P, r, F):
        return 0 * P

    def mean_jacobian(self, P, r, F):
        return -1e-13 / np.linalg.norm(F, 2) * np.eye(len(F))


@pytest.mark.parametrize("name", ["jacobian", "right_answers"])
def test_round_off_in_a_jacobian_of_zero_is_no_mistake(name):
    CHECKS[name](Certain())


def test_an_overflow_is_said_before_what_it_leads_to():
    def overflow(self, P, r, F):
        X = estimate(P, r, F)
        return np.where(np.abs(X) > 0.1 * np.sqrt(r)[:, None], np.nan, X)

    messages = [failure.message for failure in check_denoiser(variant(estimate=overflow)).failures]
    compared = [message for message in messages if "sqrt(r) estimate(sqrt(r) p, 1, r F)" in message.split("\n")[0]]
    assert compared and all("(an overflow? 0 / 0?), which is sqrt(r)" in message for message in compared)


def test_a_row_is_wrong_where_nothing_is_allowed_and_other_rows_are_exact():
    zeros, found = np.zeros((3, 1)), np.array([[0.0], [0.0], [1e-9]])
    problem = Problem(np.ones((3, 1)), np.ones(3), np.eye(1))
    require_rows("estimate", zeros, problem, zeros, np.zeros(3))
    with pytest.raises(
        AssertionError, match=r"row 2, p = \[1\], r = 1, F = \[\[1\]\]: estimate gives \[1e-09\], expected \[0\]"
    ):
        require_rows("estimate", found, problem, zeros, np.zeros(3))


@pytest.mark.parametrize("method", ["estimate", "denoise"])
def test_what_is_not_finite_on_the_ladder_is_told_in_one_row(method):
    def overflows(self, P, r, F):
        X = estimate(P, r, F)
        X = np.where(r[:, None] > 30, np.nan, X)
        return X if method == "estimate" else (X, jacobian(P, r, F))

    wrong = Trial(lambda: variant(**APART | {method: overflows}), PROBLEM)
    with pytest.raises(AssertionError, match="row 0.* gives .*nan.*an overflow") as failure:
        CHECKS["right_answers"].measure(wrong)
    assert "1 row, F = " in failure.value.__notes__[0]


def test_an_exception_in_a_students_code_is_reported():
    def broken(self, P, r, F):
        raise KeyError("<u>")

    report = check_denoiser(variant(estimate=broken))
    assert "raised KeyError: '<u>'" in str(report) and "&lt;u&gt;" in report._repr_html_()


def test_what_is_no_denoiser_is_refused():
    with pytest.raises(TypeError, match="derive its class from amptutorial.Denoiser"):
        check_denoiser(Ridge)
    odd = variant()
    odd.precision = "map"
    with pytest.raises(ValueError, match='precision must be "argmin" or "posterior"'):
        check_denoiser(odd)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("denoiser", "belief"),
    [(Ridge(1.0), SquaredNorm()), (GaussianPosterior(1.0), StandardNormal())],
    ids=["ridge", "gaussian"],
)
@pytest.mark.parametrize("seed", range(5))
def test_right_denoisers_hold_the_belief_that_is_theirs(denoiser, belief, seed):
    report = check_denoiser(denoiser, belief=belief, rng=np.random.default_rng(seed))
    assert report.passed, str(report)
    names = {result.name for result in report.results}
    assert names >= ({"optimality", "penalty"} if denoiser.precision == "argmin" else {"tweedie"})


class AbsoluteValue(Penalty):
    """The belief of Lasso(1.0), with rows that AMP finds at large r only."""

    rows = GaussianRows(1.0)

    def value(self, U):
        return np.abs(U).sum(axis=1)


@pytest.mark.parametrize("n_rows", [2, 3])
def test_few_rows_are_enough(n_rows):
    report = check_denoiser(Lasso(1.0), n_rows=n_rows)
    assert report.passed, str(report)


@pytest.mark.parametrize("d", [1, 2])
def test_weak_rows_are_no_reason_to_fail_a_right_denoiser(d):
    report = check_denoiser(Lasso(1.0), belief=AbsoluteValue(), d=d)
    assert report.passed, str(report)


def test_a_write_into_p_is_shown_and_rings_no_check_of_another_promise():
    report = check_denoiser(variant(estimate=in_place))
    shown = [failure.name for failure in report.failures if "changes its argument P" in failure.message]
    assert shown == ["no_mutation"]
    # it loops, and has one strength
    assert {failure.name for failure in report.failures} <= {"no_mutation", "speed", "limits"}


def test_the_report_is_a_table_with_links_in_a_notebook():
    table = check_denoiser(variant(estimate=lambda self, P, r, F: P + (P < 0) * 1e-3))._repr_html_()
    assert table.count("<tr>") == 1 + len(check_denoiser(Ridge(1.0)).results)
    assert "<strong>FAIL</strong>" in table
    assert '<a href="https://amptutorial.github.io/amptutorial/book/05_denoisers.html#denoisers-rows">5</a>' in table
    assert "P &lt; 0" not in table


@pytest.mark.parametrize("name", ["shapes", "optimality", "jacobian"])
def test_the_checks_serve_as_parameters_of_pytest(name):
    CHECKS[name](Lasso(0.5))


def test_a_failure_in_pytest_says_what_was_promised_and_what_to_read():
    with pytest.raises(AssertionError, match=r"(?s)one prior.*The promise: .*\nRead: https://.*#denoisers-jacobian"):
        CHECKS["one_prior"](HardThreshold())


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
