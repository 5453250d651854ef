"""What students and lecturer read about a class."""

import html.parser
import re
from dataclasses import replace

import pytest
from contrast import luminance

from amptutorial.checks import CHECKS, CheckResult
from amptutorial_course.grading import feedback
from amptutorial_course.grading.gradebook import Row
from amptutorial_course.grading.record import Mark, Record, make_record

NOT_ESSENTIAL = {"jacobian", "state_evolution", "prediction"}
ESSENTIAL = {"optimality", "limits"}


class Tags(html.parser.HTMLParser):
    """Collects the tags and the text of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


def graded_record(rules, failed):
    """Return the record of a submission in which the checks `failed`, each with a number of its own."""
    results = [
        CheckResult(name, name not in failed, f"it is {k}.5" * (name in failed), *promise(name))
        for k, name in enumerate(rules.weights)
    ]
    return make_record(rules, "graded", results)


def promise(name):
    return (CHECKS[name].contract, CHECKS[name].read) if name in CHECKS else ("", "")


def row(record):
    return Row(record.student, record.student, record)


@pytest.fixture
def records(rules):
    """Return seven records by student: two cannot be checked, three earn nothing, one has mistakes, one has none."""
    hostile = "<script>alert(1)</script>\ud800"
    traceback = f'  File "denoiser.py", line 1, in <module>\nValueError: =1+1|{hostile}'
    found = {
        "student_01": graded_record(rules, ()),
        "student_02": graded_record(rules, NOT_ESSENTIAL | ESSENTIAL | {"penalty"}),
        "student_03": graded_record(rules, NOT_ESSENTIAL),
        "student_04": graded_record(rules, NOT_ESSENTIAL | ESSENTIAL),
        "=student<b>": graded_record(rules, NOT_ESSENTIAL | ESSENTIAL),
        "student_05": make_record(rules, f"it cannot be imported: {hostile}", printed="````", traceback=traceback),
        "student_06": make_record(rules, "no file denoiser.py was handed in"),
    }
    return [replace(record, student=student) for student, record in found.items()]


@pytest.fixture
def pages(records, rules, tmp_path):
    """Return the folder of all pages of the class."""
    for record in records:
        feedback.write_feedback(tmp_path / "feedback", row(record), rules)
    feedback.write_summary(tmp_path, list(map(row, records)), rules)
    return tmp_path


def test_feedback_shows_everything_and_runs_nothing(pages):
    page, markdown = Tags((pages / "feedback/student_05.html").read_text()), pages / "feedback/student_05.md"
    assert not {"script", "b", "img"} & {tag for tag, _ in page.tags}
    assert page.text.count("<script>alert(1)</script>") == 2 and "line 1, in <module>" in page.text
    assert "<script>" not in re.sub(r"(`{3,})text.*?\1", "", markdown.read_text(), flags=re.DOTALL)
    assert "=student<b>" in Tags((pages / "feedback/=student<b>.html").read_text()).text
    assert "student\\<b\\>" in (pages / "feedback/=student<b>.md").read_text()


def test_feedback_names_each_check_its_promise_and_what_to_read(pages, rules):
    text, markdown = ((pages / f"feedback/student_03.{suffix}").read_text() for suffix in ("html", "md"))
    page = Tags(text)
    total = 100 - sum(rules.weights[name] for name in NOT_ESSENTIAL)
    position = list(rules.weights).index("jacobian")
    for shown in (page.text, markdown):
        assert "student_03" in shown.replace("\\", "") and f"{total:g} of 100 points" in shown
        assert all(name in shown for name in rules.weights)
        assert f"it is {position}.5" in shown
        assert "mean\\_jacobian\\[k, l\\] is the mean" in shown or "mean_jacobian[k, l] is the mean" in shown
    assert {attrs["href"] for tag, attrs in page.tags if tag == "a"} >= {
        "https://amptutorial.github.io/amptutorial/book/06_denoisers.html#def-denoisers-jacobian"
    }


def test_the_tables_of_markdown_have_a_line_for_each_check(pages, rules):
    rows = [line for line in (pages / "feedback/student_03.md").read_text().splitlines() if line.startswith("| `")]
    assert [row.split("`")[1] for row in rows] == list(rules.weights)
    assert {row.count("|") for row in rows} == {4}
    failed = [line for line in (pages / "summary.md").read_text().splitlines() if line.startswith("| `")]
    assert len(failed) == len(NOT_ESSENTIAL | ESSENTIAL | {"penalty"}) and {row.count("|") for row in failed} == {4}


def test_pages_are_accessible(pages):
    for path in (*(pages / "feedback").glob("*.html"), pages / "summary.html"):
        page = Tags(path.read_text())
        tags = [tag for tag, _ in page.tags]
        assert page.tags[0] == ("html", {"lang": "en-GB"}) and {"title", "h1"} <= set(tags)
        assert tags.count("caption") == tags.count("table") >= 1
        assert all("scope" in attrs for tag, attrs in page.tags if tag == "th")
        assert any(attrs.get("name") == "viewport" for tag, attrs in page.tags if tag == "meta")


def test_colours_have_contrast_in_both_themes():
    themes = [dict(re.findall(r"--(\w+): (#\w{6})", part)) for part in feedback.STYLE.split("@media")[:2]]
    assert themes[0].keys() == themes[1].keys()
    for theme in themes:
        for ink, paper in [("ink", "paper"), ("link", "paper"), ("good", "paper"), ("bad", "paper"), ("ink", "shade")]:
            dark, light = sorted([luminance(theme[ink]), luminance(theme[paper])])
            assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_the_summary_counts_failures_and_names_nobody(pages, records):
    shown = feedback.summarise_class(list(map(row, records)))
    assert shown["size"] == 7 and dict(shown["histogram"])["0 to under 10"] == 5
    assert sum(count for _, count in shown["histogram"]) == 7
    assert shown["checked"] == 5 and sum(count for _, count in shown["unchecked"]) == 2
    failures = {check["name"]: check["count"] for check in shown["failures"]}
    assert list(failures.values()) == sorted(failures.values(), reverse=True)
    assert failures == dict.fromkeys(NOT_ESSENTIAL, 4) | dict.fromkeys(ESSENTIAL, 3) | {"penalty": 1}
    for suffix in ("html", "md"):
        text = (pages / f"summary.{suffix}").read_text()
        assert "student_0" not in text and "7 submissions" in text


def test_the_same_mistake_with_other_numbers_is_the_same():
    def found(message):
        return Record("graded", (Mark("jacobian", 0.0, 4.0, False, message, "", ""),))

    records = [found(message) for message in ("is 0.25", "other", "is 1e-3")]
    (failure,) = feedback.summarise_class(list(map(row, records)))["failures"]
    assert (failure["count"], failure["times"], failure["message"]) == (3, 2, "is 0.25")
