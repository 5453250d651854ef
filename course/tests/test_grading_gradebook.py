"""The points in tables that platforms export, and the page of a student."""

import re

import pandas as pd
import pytest
from contrast import luminance
from platform_exports import EXPORTS, PAGE, TASK, joined, misplaced
from questions import Tags

from amptutorial.checks import CHECKS, CheckResult
from amptutorial_course.grading.pages import student_page
from amptutorial_course.grading.record import Record


@pytest.mark.parametrize("case", EXPORTS.values(), ids=EXPORTS)
def test_the_lines_of_the_page_put_points_where_they_belong(tmp_path, case):
    assert not misplaced(tmp_path, case)


def test_the_lines_of_the_page_stop_where_a_key_is_not_one_student_s(tmp_path):
    twice = "Full name,Grade\nLi Ming,\nLI  MING,\nAda,\n"
    downloads = ["li_34_1_denoiser", "li_34_2_helper"]
    cases = (twice, ["ada"], "Full name", "name"), ("ID,Grade\n34,\n", downloads, "ID", "id")
    for export, students, key, ours in cases:
        with pytest.raises(pd.errors.MergeError, match="(?s)not unique.*(li ming|34)"):
            joined(tmp_path, export, students, key, ours, "Grade")
    with pytest.raises(KeyError, match="Points"):
        joined(tmp_path, twice, ["ada"], "Full name", "name", "Points")


def test_the_page_names_the_columns_that_are_tried_here():
    rows = set(re.findall(r"^\|.*\| `([^`|]+)` \| `([^`|]+)` \|$", PAGE, re.MULTILINE))
    assert rows - {("key", "ours")} <= {tuple(case["line"][:2]) for case in EXPORTS.values()}
    assert len(rows) == 6


def page(failed=(), student="ada", **more):
    checks = [each for each in TASK._checks() if each.name in TASK.points]
    told = ((each.name, each.name not in failed, f"about {each.name}", each.contract, each.read) for each in checks)
    results = () if more else tuple(CheckResult(*each) for each in told)
    return Tags(student_page(Record(more.pop("status", "graded"), results, student=student, **more), TASK))


def test_the_page_names_each_check_its_promise_and_what_to_read_failures_first():
    found = page(failed=("jacobian", "prediction"))
    left = 100 - TASK.points["jacobian"] - TASK.points["prediction"]
    assert f"{left} of 100 points" in found.text and "about jacobian" in found.text
    assert found.text.index("about jacobian") < found.text.index("about shapes")
    assert all(name in found.text for name in TASK.points)
    assert {attrs["href"] for tag, attrs in found.tags if tag == "a"} == {CHECKS["jacobian"].read}


def test_the_page_shows_everything_and_runs_nothing():
    hostile = "<script>alert(1)</script>\ud800"
    found = page(student="=student<b>", status=f"not imported: {hostile}", printed="x", traceback=f"line 1 {hostile}")
    assert not {"script", "b", "img"} & {tag for tag, _ in found.tags}
    assert found.text.count("<script>alert(1)</script>") == 2 and "=student<b>" in found.text
    assert found.text.count("not run") == 1 and "failed" not in found.text


def test_the_page_says_once_what_several_checks_say_alike_what_is_not_final_and_nothing_of_the_grader_s_machine():
    results = [CheckResult(name, False, "write the estimate", "a promise") for name in TASK.points]
    found = Tags(student_page(Record("graded", tuple(results)), TASK))
    assert found.text.count("write the estimate") == 1 and "0 of 100" in found.text
    assert all(name in found.text for name in TASK.points)
    record = Record("the grader failed", fault="/home/teacher/x.py", timed_out=True, note="denoiser.py is mine.py")
    found = Tags(student_page(record, TASK)).text
    assert "time ran out" in found and "denoiser.py is mine.py" in found and "teacher" not in found


def test_on_the_page_code_has_a_box_of_its_own_and_failures_the_order_in_which_they_were_asked():
    said = "row 3 is wrong\nTo ask it again:\nprint(1)"
    results = [CheckResult(name, False, f"{name}: {said}", "a promise") for name in reversed(TASK.points)]
    text = student_page(Record("graded", tuple(results), student="ada"), TASK)
    boxes = re.findall(r"<pre tabindex=.0.>(.*?)</pre>", text, re.DOTALL)
    assert boxes == ["print(1)"] * len(TASK.points)
    assert re.findall(r"(\w+): row 3", text) == [*reversed(TASK.points)]


def test_the_page_is_accessible():
    found = page(failed=("jacobian",))
    tags = [tag for tag, _ in found.tags]
    assert found.tags[0] == ("html", {"lang": "en-GB"}) and {"title", "h1"} <= set(tags)
    assert tags.count("caption") == tags.count("table") == 1
    assert all("scope" in attrs for tag, attrs in found.tags if tag == "th")
    assert any(attrs.get("name") == "viewport" for tag, attrs in found.tags if tag == "meta")


def test_colours_have_contrast_in_both_themes():
    themes = [dict(re.findall(r"--(\w+): (#\w{6})", part)) for part in page().text.split("@media")[:2]]
    assert themes[0].keys() == themes[1].keys() and len(themes[0]) == 7
    for theme in themes:
        for ink, paper in [("ink", "paper"), ("link", "paper"), ("good", "paper"), ("bad", "paper"), ("ink", "shade")]:
            dark, light = sorted([luminance(theme[ink]), luminance(theme[paper])])
            assert (light + 0.05) / (dark + 0.05) >= 4.5
