"""The points in tables that platforms export, and the page of a student."""

import csv
import html.parser
import io
import re

import pytest
from contrast import luminance
from test_grading_class import hand_in

from amptutorial.checks import CHECKS, CheckResult
from amptutorial_course.assignments import ASSIGNMENTS
from amptutorial_course.grading import __main__ as command_line
from amptutorial_course.grading.gradebook import fill_in
from amptutorial_course.grading.pages import student_page
from amptutorial_course.grading.record import Record

TASK = ASSIGNMENTS[1]
CANVAS = """Student,ID,SIS User ID,SIS Login ID,Section,Ridge (55),Lasso (56)
,,,,,Manual Posting,
    Points Possible,,,,,100,100
"Lovelace, Ada",12,S1,ada,A,,7
"Ming, Li",34,S2,li,A,,
"Noether, Emmy",56,S3,emmy,B,,
"""
MOODLE = """Identifier,Full name,Email address,Status,Grade,Last modified (grade)
Participant 12,Ada Lovelace,ada@example.org,Submitted,,-
Participant 34,Li Ming,li@example.org,No submission,5.00,"Friday, 16 October 2026, 9:00 AM"
"""


def rows(text):
    return list(csv.reader(io.StringIO(text)))


@pytest.mark.parametrize("names", [("ada", "li"), ("lovelaceada_12_99_denoiser", "mingli_LATE_34_98_denoiser-1")])
def test_canvas_gets_its_gradebook_back_with_one_column_filled_in(names):
    text, left_out = fill_in(CANVAS, "Ridge (55)", dict(zip(names, (100.0, 84.5), strict=True)))
    expected = rows(CANVAS)
    expected[3][5], expected[4][5] = "100", "84.5"
    assert left_out == [] and rows(text) == expected


def test_moodle_gets_its_worksheet_back():
    text, left_out = fill_in(MOODLE, "Grade", {"Ada Lovelace_12_assignsubmission_file_": 90.0})
    expected = rows(MOODLE)
    expected[1][4] = "90"
    assert left_out == [] and rows(text) == expected


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("first", ["", "\n", "\n\n", "sep={0}\n", "Course 7{0}{0}\n"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_delimiters_and_odd_first_lines_are_found_out(delimiter, first, end):
    lines = "student{0}email{0}points\nada{0}a@x\n\nli{0}l@x{0}\n"
    text = (first + lines).format(delimiter).replace("\n", end)
    filled, left_out = fill_in(text, "points", {"ada": 7.0})
    assert left_out == [] and filled == text.replace(f"a@x{end}", f"a@x{delimiter}7{end}")


def test_who_stands_in_no_line_or_in_several_is_named_and_left_out():
    text = "id,group,points\nada,red,\nli,red,\nli,blue,\n12,blue,\n"
    totals = {"ada": 1.0, "li": 2.0, "bob": 3.0, "12_a": 4.0, "12_b": 5.0}
    filled, left_out = fill_in(text, "points", totals)
    assert left_out == ["12_a", "12_b", "bob", "li"] and filled == text.replace("ada,red,", "ada,red,1")
    with pytest.raises(ValueError, match="no column is called 'grade': the table begins with 'id,group,points"):
        fill_in(text, "grade", totals)


def test_the_command_fills_in_what_it_has_graded(tmp_path, capsys, monkeypatch):
    hand_in(tmp_path / "submissions", ada="", bob="")
    export = tmp_path / "export.csv"
    export.write_text("name;points\nada;\nli;3\n", encoding="utf-8-sig")

    def judged(entries, rules, *more):
        results = tuple(CheckResult(name, True) for name in rules.task.points)
        for student in entries:
            yield Record("graded", results, student=student, key="some")

    monkeypatch.setattr(command_line.classroom, "grade_class", judged)
    monkeypatch.chdir(tmp_path)

    def told(more):
        arguments = "submissions --assignment 1 --out grades.csv --into export.csv --isolate none"
        assert command_line.main(f"{arguments} {more}".split()) == 1
        return capsys.readouterr().err

    assert "--into needs --column" in told("")
    assert "no column is called 'grade'" in told("--column grade") and not (tmp_path / "grades.csv").exists()
    assert "no line for them, or more than one: bob" in told("--column points")
    assert (tmp_path / "grades_export.csv").read_text() == "name;points\nada;100\nli;3\n"
    export.write_bytes(b"name;points\ncaf\xe9;\n")
    assert "is not encoded in UTF-8" in told("--column points")


class Tags(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


def page(failed=(), student="ada", **more):
    checks = [each for each in TASK._checks() if each.name in TASK.points]
    told = ((each.name, each.name not in failed, f"about {each.name}", each.contract, each.read) for each in checks)
    results = () if more else tuple(CheckResult(*each) for each in told)
    return Tags(student_page(Record(more.pop("status", "graded"), results, student=student, **more), TASK))


def test_the_page_names_each_check_its_promise_and_what_to_read_failures_first():
    found = page(failed=("jacobian", "prediction"))
    assert "75 of 100 points" in found.text and "about jacobian" in found.text
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
