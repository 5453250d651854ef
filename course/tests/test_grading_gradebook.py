"""The points in tables that platforms export, and the page of a student."""

import html.parser
import re
import unicodedata
from pathlib import Path

import pandas as pd
import pytest
from contrast import luminance

from amptutorial.checks import CHECKS, CheckResult
from amptutorial_course.assignments import ASSIGNMENTS
from amptutorial_course.grading.gradebook import class_table
from amptutorial_course.grading.pages import student_page
from amptutorial_course.grading.record import Record

TASK = ASSIGNMENTS[1]
PAGE = (Path(__file__).parents[2] / "book/instructors.md").read_text(encoding="utf-8")
JOIN = re.search(r"```python\n(export, key, ours, column = .*?)```", PAGE, re.DOTALL)[1]
CANVAS = """\ufeffStudent,ID,SIS User ID,SIS Login ID,Section,Ridge (55),Lasso (56)
,,,,,Manual Posting,
    Points Possible,,,,,100,100
"Lovelace, Ada",12,0034,ada,A,,7
"Ming, Li",34,0012,li,A,50,
"NA",56,,emmy,B,,
"""
MOODLE = """\ufeffIdentifier;Full name;Email address;Status;Grade;Last modified (grade)
Participant 12;Zoë Brontë;zoe@example.org;Submitted;;-
Participant 102;Li  Ming;li@example.org;No submission;5,00;"Friday; 16 October 2026; 9:00 AM"
Participant 103;José García;jose@example.org;Submitted;;-
"""
NUMBERS = "ID number,Full name,Grade\n101,Ada Lovelace,\n102,Bob King,\n103,Eve Long,\n"
GRADESCOPE = """First Name,Last Name,SID,Email,Sections,Ridge,Ridge - Max Points
Ada,Lovelace,007,Ada.Lovelace@Example.org,,,100.0
Li,Ming,7,li@example.org,,,100.0
Bob,King,,bob@example.org,,,100.0
Eve,Long,,eve@example.org,,,100.0
"""
NFD = unicodedata.normalize("NFD", "JOSÉ García_9_assignsubmission_file_")
EXPORTS = {  # the export; the values of the page's first line; who handed in; their points there; who is printed
    "Canvas": (CANVAS, "ID", "id", "Ridge (55)",
        ["lovelaceada_12_99_denoiser", "mingli_LATE_34_98_denoiser-1", "anna_5_77_denoiser"],
        {"12": 0, "34": 1}, {"anna_5_77_denoiser", "NA"}),
    "Canvas's other numbers": (CANVAS, "SIS User ID", "id", "Ridge (55)",
        ["0012", "0034"], {"0034": 1, "0012": 0}, set()),
    "Canvas's logins": (CANVAS, "SIS Login ID", "id", "Lasso (56)", ["ada", "LI", "12"],
        {"ada": 0, "li": 1}, {"12", "NA"}),
    "Canvas's names": (CANVAS, "Student", "name", "Ridge (55)", ["Ada Lovelace", "Li Ming", "na"],
        {"Lovelace, Ada": 0, "Ming, Li": 1, "NA": 2}, {"    Points Possible"}),
    "Moodle": (MOODLE, "Identifier", "id", "Grade",
        ["Zoë Brontë_12_assignsubmission_file_", "Li Ming_103_assignsubmission_file_", "x_1034_assignsubmission_file_"],
        {"Participant 12": 0, "Participant 103": 1}, {"x_1034_assignsubmission_file_", "Li  Ming"}),
    "Moodle's names": (MOODLE, "Full name", "name", "Grade", ["LI MING_12_assignsubmission_file", NFD, "Bob"],
        {"Li  Ming": 0, "José García": 1}, {"Bob", "Zoë Brontë"}),
    "numbers of two kinds": (NUMBERS, "Full name", "name", "Grade",
        ["Ada Lovelace_102_assignsubmission_file_", "Bob King_103_assignsubmission_file_",
         "Eve Long_101_assignsubmission_file_"],
        {"Ada Lovelace": 0, "Bob King": 1, "Eve Long": 2}, set()),
    "Gradescope": (GRADESCOPE, "SID", "id", "Ridge", ["007", "7", "bob@example.org"],
        {"007": 0, "7": 1}, {"bob@example.org"}),
    "Gradescope's addresses": (GRADESCOPE, "Email", "id", "Ridge", ["ada.lovelace@example.org", "eve@example.org"],
        {"Ada.Lovelace@Example.org": 0, "eve@example.org": 1}, {"li@example.org", "bob@example.org"}),
}  # fmt: skip


def joined(folder, monkeypatch, capsys, export, students, *values):
    """Run the lines of the page in a folder, and return the table that they write, and what they print."""
    names = list(TASK.points)
    records = [
        Record("graded", tuple(CheckResult(name, name not in names[:k]) for name in names), student=student)
        for k, student in enumerate(students)
    ]
    (folder / "export.csv").write_text(export, encoding="utf-8")
    (folder / "grades.csv").write_text(class_table(records, TASK), encoding="utf-8")
    monkeypatch.chdir(folder)
    _, _, rest = JOIN.partition("\n")
    exec(f"export, key, ours, column = {('export.csv', *values)}\n{rest}", {})
    table = pd.read_csv("upload.csv", dtype=str, keep_default_na=False)
    return table, [record.total(TASK) for record in records], capsys.readouterr().out


@pytest.mark.parametrize(
    ("export", "key", "ours", "column", "students", "places", "others"), EXPORTS.values(), ids=EXPORTS
)
def test_the_lines_of_the_page_put_points_where_they_belong(
    tmp_path, monkeypatch, capsys, export, key, ours, column, students, places, others
):
    table, totals, printed = joined(tmp_path, monkeypatch, capsys, export, students, key, ours, column)
    assert len(set(totals)) == len(students)
    assert {name: float(points) for name, points in zip(table[key], table[column], strict=True)} == {
        name: totals[k] for name, k in places.items()
    }
    assert all(name in printed for name in others)
    before = pd.read_csv(
        "export.csv", dtype=str, keep_default_na=False, sep=None, engine="python", encoding="utf-8-sig"
    )
    kept = before[before[key].isin(places)].drop(columns=column).sort_values(key, ignore_index=True)
    pd.testing.assert_frame_equal(table.drop(columns=column).sort_values(key, ignore_index=True), kept)
    assert list(table.columns) == list(before.columns)


def test_the_lines_of_the_page_stop_where_a_key_is_not_one_student_s(tmp_path, monkeypatch, capsys):
    twice = "Full name,Grade\nLi Ming,\nLI  MING,\nAda,\n"
    downloads = ["li_34_1_denoiser", "li_34_2_helper"]
    for export, students, key, ours in (
        (twice, ["ada"], "Full name", "name"),
        ("ID,Grade\n34,\n", downloads, "ID", "id"),
    ):
        with pytest.raises(pd.errors.MergeError, match="(?s)not unique.*(li ming|34)"):
            joined(tmp_path, monkeypatch, capsys, export, students, key, ours, "Grade")
    with pytest.raises(KeyError, match="Points"):
        joined(tmp_path, monkeypatch, capsys, NUMBERS, ["ada"], "Full name", "name", "Points")


def test_the_page_names_the_columns_that_are_tried_here():
    rows = set(re.findall(r"^\|.*\| `([^`|]+)` \| `([^`|]+)` \|$", PAGE, re.MULTILINE))
    assert rows - {("key", "ours")} <= {(key, ours) for _, key, ours, *_ in EXPORTS.values()}
    assert len(rows) == 6


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
