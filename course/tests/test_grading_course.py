"""A course: rosters, attempts, lateness, groups, marks by hand, seeds, and the files of platforms."""

import csv
import io
import json
import re
import zipfile
from dataclasses import replace
from datetime import UTC, date, datetime

import pytest
import yaml
from grading_samples import GRADING

from amptutorial.checks import CheckResult
from amptutorial_course.grading import classroom, config, roster
from amptutorial_course.grading.__main__ import main
from amptutorial_course.grading.config import PACKAGE
from amptutorial_course.grading.record import make_record
from amptutorial_course.grading.submissions import Submission

CANVAS = """Student,ID,SIS User ID,SIS Login ID,Section,Ridge (55),Lasso (56)
Points Possible,,,,,100,100
"Lovelace, Ada",12,S1,ada,A,,
"Ming, Li",34,S2,li,A,,
"Noether, Emmy",56,S3,emmy,B,,
"""
MOODLE = """Identifier,Full name,Email address,Status,Grade,Maximum grade,Grade can be changed,\
Last modified (submission),Last modified (grade),Feedback comments
Participant 12,Ada Lovelace,ada@example.org,Submitted,,100,Yes,"Thursday, 15 October 2026, 11:30 PM",-,
Participant 34,Li_Ming,li@example.org,No submission,5.00,100,Yes,-,"Friday, 16 October 2026, 9:00 AM",
"""


@pytest.fixture
def course(tmp_path, monkeypatch):
    """Return a function that grades a class: a submission says how many of its checks pass, and no process runs."""

    def judge(submissions, rules, folder, jobs, isolate):
        for each in submissions:
            passing = int(each.source) if isinstance(each.source, bytes) and each.source != b"lost" else 0
            results = [CheckResult(name, k < passing) for k, name in enumerate(rules.weights)]
            record = make_record(rules, "graded" if passing else str(each.source), results if passing else ())
            record = replace(record, student=each.student, attempt=each.attempt)
            key = "" if each.source == b"lost" else classroom._key(each, rules)
            record = replace(record, key=key, log={"seconds": 1.5})
            folder.joinpath(f"{each.student}.json").write_text(record.to_json())
            graded.append((each.student, each.attempt))
            yield record

    graded = []
    monkeypatch.setattr(classroom, "run_judges", judge)
    monkeypatch.delenv(config.SEED_VARIABLE, raising=False)

    def run(*arguments, folders=("submissions",), **rules):
        data = yaml.safe_load(GRADING.read_text()) | {"essential": []} | rules
        (tmp_path / "grading.yml").write_text(yaml.safe_dump(data, sort_keys=False))
        graded.clear()
        command = [*(str(tmp_path / name) for name in folders), "--config", str(tmp_path / "grading.yml")]
        code = main([*command, "--assignment", "1", "--out", str(tmp_path / "grades.csv"), *map(str, arguments)])
        return code, read(tmp_path / "grades.csv") if code == 0 else {}

    run.folder, run.graded = tmp_path, graded
    return run


def read(path, name="student"):
    with open(path, newline="", encoding="utf-8") as file:
        return {row[name]: row for row in csv.DictReader(file)}


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def hand_in(folder, **passing):
    for name, count in passing.items():
        place = folder / name
        place.mkdir(parents=True, exist_ok=True)
        (place / "denoiser.py").write_text(str(count))


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def totals(table):
    return {student: float(row["total"]) for student, row in table.items()}


def test_who_handed_in_nothing_has_a_row_and_a_stranger_is_named(course, capsys):
    hand_in(course.folder / "submissions", ada=15, stranger=1)
    people = put(course.folder / "roster.csv", "student,name\nada,Ada Lovelace\nli,Li Ming\n")
    code, table = course("--roster", people)
    assert code == 0 and totals(table) == {"ada": 100, "li": 0, "stranger": 3}
    assert table["li"]["status"] == "nothing was handed in"
    assert "not on the roster, and graded all the same: stranger" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("student\nbob\n", "the roster does not match: submissions are of ada, and the roster names bob"),
        ("colour\nred\n", "has no column that names the students: call one 'student'"),
        ("student,name\nada,A\nada,B\n", "line 3: ada has a line already"),
        ("student,name\nada,A\n,B\n", "line 3 names no student"),
        ("student\n", "names no student: add a line"),
        ("", "is empty: its first line must name the columns"),
    ],
)
def test_a_roster_that_does_not_fit_says_what_to_do(course, capsys, text, message):
    hand_in(course.folder / "submissions", ada=15)
    assert course("--roster", put(course.folder / "roster.csv", text))[0] == 1
    assert message in capsys.readouterr().err


def test_canvas_gets_its_gradebook_back(course, capsys):
    folder = course.folder / "submissions"
    put(folder / "lovelaceada_12_99_denoiser.py", "15")
    put(folder / "mingli_LATE_34_98_denoiser-1.py", "1")
    people = put(course.folder / "gradebook.csv", CANVAS)
    assert course("--roster", people, "--format", "canvas")[0] == 1
    assert "name the column of the assignment with --column, one of: Ridge (55), Lasso (56)" in capsys.readouterr().err
    code, table = course("--roster", people, "--format", "canvas", "--column", "Ridge (55)")
    assert code == 0 and "Canvas calls it late" in table["li"]["status"]
    found = rows_of(course.folder / "grades_canvas.csv")
    assert found == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Ridge (55)"],
        ["Lovelace, Ada", "12", "S1", "ada", "A", "100.0"],
        ["Ming, Li", "34", "S2", "li", "A", "3.0"],
        ["Noether, Emmy", "56", "S3", "emmy", "B", "0.0"],
    ]


def test_moodle_gets_its_worksheet_and_its_feedback_back(course, capsys):
    put(course.folder / "submissions/Ada Lovelace_12_assignsubmission_file_/denoiser.py", "15")
    assert course("--format", "moodle")[0] == 1
    assert "needs --roster with the grading worksheet of Moodle" in capsys.readouterr().err
    people = put(course.folder / "worksheet.csv", MOODLE.replace("Last modified (grade)", "Zuletzt bewertet"))
    assert course("--roster", people, "--format", "moodle")[0] == 1
    assert "missing here: Last modified (grade)" in capsys.readouterr().err
    people = put(course.folder / "worksheet.csv", MOODLE)
    lateness = {"deadlines": {1: "2026-10-15 23:00"}, "points_a_day": 10}
    assert course("--roster", people, "--format", "moodle", lateness=lateness)[0] == 0
    before, after = rows_of(people), rows_of(course.folder / "grades_moodle.csv")
    assert after[0] == before[0] and after[2][8] == before[2][8] == "Friday, 16 October 2026, 9:00 AM"
    assert after[1][8] == before[1][8] == "-"
    ada, li = read(course.folder / "grades_moodle.csv", "Identifier").values()
    assert (ada["Identifier"], ada["Grade"], ada["Feedback comments"]) == ("Participant 12", "90.0", "graded")
    assert (li["Identifier"], li["Grade"], li["Feedback comments"]) == (
        "Participant 34",
        "0.0",
        "nothing was handed in",
    )
    with zipfile.ZipFile(course.folder / "grades_moodle_feedback.zip") as archive:
        names = [f"{name}_assignsubmission_file_/feedback.html" for name in ("Ada Lovelace_12", "Li Ming_34")]
        assert archive.namelist() == names
        assert "late: 10 points subtracted" in archive.read(names[0]).decode()


def test_gradescope_gets_a_file_of_results_for_each(course):
    hand_in(course.folder / "submissions", ada=15)
    assert course("--format", "gradescope")[0] == 0
    found = json.loads((course.folder / "grades_files/gradescope/ada/results.json").read_text())
    assert found["score"] == sum(test["score"] for test in found["tests"]) == 100
    assert {test["visibility"] for test in found["tests"]} == {"after_published"} and found["execution_time"] == 1.5


def test_gradescope_gets_the_total_with_what_was_given_by_hand(course):
    hand_in(course.folder / "submissions", ada=15)
    marks = put(course.folder / "marks.csv", "student,derivations\nada,17.5\n")
    assert course("--format", "gradescope", "--marks", marks)[0] == 0
    found = json.loads((course.folder / "grades_files/gradescope/ada/results.json").read_text())
    assert found["score"] == 117.5 and sum(test["score"] for test in found["tests"]) == 100


def test_the_time_of_a_group_is_the_last_one_and_that_of_the_last_attempt(course):
    hand_in(course.folder / "first", ada=15)
    hand_in(course.folder / "second", ada=2)
    lines = ["student,group,handed_in", "ada,red,2026-10-16 12:00", "li,red,2026-10-18 12:00", "emmy,,-"]
    people = put(course.folder / "roster.csv", "\n".join(lines))
    rule = {"deadlines": {1: "2026-10-15 23:59"}, "points_a_day": 1}
    rounds = {"folders": ("first", "second"), "lateness": rule}
    assert totals(course("--roster", people, **rounds)[1]) == {"ada": 3, "emmy": 0, "li": 3}
    # nothing says when the first attempt was handed in
    assert totals(course("--roster", people, attempts="best", **rounds)[1]) == {"ada": 100, "emmy": 0, "li": 100}


def test_attempts_are_counted_in_the_order_of_their_times():
    moments = [datetime(2026, 10, day, tzinfo=UTC) for day in (3, 1, 2)]
    attempts = [Submission("ada", str(moment.day).encode(), handed_in=moment) for moment in moments]
    found = roster.number_attempts(attempts)
    assert [(each.attempt, each.source) for each in found] == [(1, b"1"), (2, b"2"), (3, b"3")]


def test_a_name_that_two_share_names_neither(course, capsys):
    hand_in(course.folder / "submissions", **{"li ming": 15, "li_1": 1})
    people = put(course.folder / "roster.csv", "student,name\nli_1,Li Ming\nli_2,Li Ming\n")
    assert totals(course("--roster", people)[1]) == {"li ming": 100, "li_1": 3, "li_2": 0}
    assert "not on the roster, and graded all the same: li ming" in capsys.readouterr().err


def test_weights_that_are_not_a_hundred_are_refused(course, capsys):
    hand_in(course.folder / "submissions", ada=15)
    weights = yaml.safe_load(GRADING.read_text())["weights"]
    weights[1] = weights[1] | {"shapes": 3.5}
    assert course(weights=weights)[0] == 1
    assert "sum to 100.5, expected 100" in capsys.readouterr().err


def test_seeds_do_not_meet():
    """Of sixty bits each: among a thousand, two are the same with the probability 10^-12."""
    seeds = {config.derive_seed("secret", number) for number in range(1000)}
    assert len(seeds) == 1000 and max(seeds) > 2**58


def test_the_last_attempt_counts_or_the_best(course):
    hand_in(course.folder / "first", ada=15, li=1)
    hand_in(course.folder / "second", ada=2, emmy=2)
    rounds = ("first", "second")
    table = course(folders=rounds)[1]
    assert totals(table) == {"ada": 6, "emmy": 6, "li": 3} and table["ada"]["attempt"] == "2"
    assert ("ada", 1) not in course.graded
    table = course(folders=rounds, attempts="best")[1]
    assert totals(table) == {"ada": 100, "emmy": 6, "li": 3} and table["ada"]["attempt"] == "1"


def test_lateness_counts_days_with_grace_a_cap_and_extensions(course, capsys):
    hand_in(course.folder / "submissions", ada=15, emmy=15, few=1, grace=15, li=15, soon=15, two=15)
    times = {
        "ada": "18 09:00", "emmy": "18 09:00", "few": "30 00:00", "grace": "16 00:10", "li": "30 00:00",
        "soon": "14 00:00", "two": "17 00:10",
    }  # fmt: skip
    lines = [f"{name},2026-10-{time}" for name, time in times.items()]
    people = put(course.folder / "roster.csv", "\n".join(["student,handed_in", *lines]))
    rule = {
        "deadlines": {1: "2026-10-15 23:59", 2: "2026-11-15"}, "grace_minutes": 15,
        "points_a_day": 10, "most_points": 50, "extensions": {1: {"emmy": "2026-10-18 12:00"}},
    }  # fmt: skip
    code, table = course("--roster", people, lateness=rule)
    assert code == 0 and totals(table) == {
        "ada": 70, "emmy": 100, "few": 0, "grace": 100, "li": 50, "soon": 100, "two": 80,
    }  # fmt: skip
    assert table["li"]["late"] == "50.00"
    rule["extensions"] = {1: {"nobody": "2026-10-18"}}
    assert course("--roster", people, lateness=rule)[0] == 1
    assert "extensions name nobody, who is not in this class" in capsys.readouterr().err


def test_a_deadline_without_an_hour_lasts_to_the_end_of_its_day(course):
    """And so does an extension; a submission without an hour is of the first moment of its day."""
    hand_in(course.folder / "submissions", ada=15, emmy=15, few=15, grace=15, li=15)
    times = {
        "ada": "2026-10-15 23:59:59", "emmy": "2026-10-16 00:00", "few": "2026-10-16", "grace": "2026-10-15",
        "li": "2026-10-18 12:00",
    }  # fmt: skip
    lines = [f"{name},{time}" for name, time in times.items()]
    people = put(course.folder / "roster.csv", "\n".join(["student,handed_in", *lines]))
    rule = {"deadlines": {1: date(2026, 10, 15)}, "points_a_day": 10, "extensions": {1: {"li": "2026-10-18"}}}
    code, table = course("--roster", people, lateness=rule)
    assert code == 0 and totals(table) == {"ada": 100, "emmy": 90, "few": 90, "grace": 100, "li": 100}


def test_a_group_shares_what_one_of_it_hands_in(course):
    hand_in(course.folder / "submissions", ada=15, emmy=1)
    people = put(course.folder / "roster.csv", "student,group\nada,red\nli,red\nemmy,\n")
    table = course("--roster", people)[1]
    assert totals(table) == {"ada": 100, "emmy": 3, "li": 100} and ("red", 1) in course.graded


def test_marks_by_hand_stand_beside_the_checks(course, capsys):
    hand_in(course.folder / "submissions", ada=15, li=1)
    by_hand = {"derivations": 20, "report": 10}
    marks = put(course.folder / "marks.csv", "student,derivations,report\nada,17.5,\n")
    table = course("--marks", marks, by_hand=by_hand)[1]
    assert totals(table) == {"ada": 117.5, "li": 3} and table["ada"]["derivations"] == "17.50"
    assert "117.5 of 130 points" in (course.folder / "grades_files/feedback/ada.html").read_text()
    for text, message in [
        ("student,derivations\nbob,1\n", "line 2: 'bob' is not in this class"),
        ("student,derivations\nada,21\n", "line 2, derivations is '21', expected points from 0 to 20"),
        ("student,derivations\nada,x\n", "expected points from 0 to 20"),
        ("student,essay\nada,1\n", "has the columns student, essay, expected student, derivations, report"),
    ]:
        assert course("--marks", put(course.folder / "marks.csv", text), by_hand=by_hand)[0] == 1
        assert message in capsys.readouterr().err


def test_where_the_grader_itself_failed_it_says_so_and_tries_again(course, capsys):
    hand_in(course.folder / "submissions", ada=15, li="lost")
    assert course()[0] == 1
    assert "the grader itself failed for li: 0 points for now" in capsys.readouterr().err
    assert totals(read(course.folder / "grades.csv")) == {"ada": 100, "li": 0}
    hand_in(course.folder / "submissions", li=15)
    assert totals(course()[1]) == {"ada": 100, "li": 100} and course.graded == [("li", 1)]


def test_other_weights_need_no_other_run(course):
    hand_in(course.folder / "submissions", ada=1, li=15)
    assert totals(course()[1]) == {"ada": 3, "li": 100} and len(course.graded) == 2
    weights = yaml.safe_load(GRADING.read_text())["weights"]
    weights[1] = weights[1] | {"shapes": 13, "optimality": 10}
    assert totals(course(weights=weights)[1]) == {"ada": 13, "li": 100} and course.graded == []
    table = course(weights=weights, essential=["optimality"])[1]
    assert totals(table) == {"ada": 0, "li": 100} and course.graded == []
    assert "without optimality nothing else earns points" in table["ada"]["status"]


def test_a_pseudonym_changes_no_seed(course):
    hand_in(course.folder / "submissions", ada=1, li=15)
    course()
    course("--anonymous")
    assert len(course.graded) == 2
    stored = list((course.folder / "grades_files").rglob("*.json"))
    assert len(stored) == 4 and len({json.loads(path.read_text())["key"] for path in stored}) == 2


def test_anonymous_tables_name_nobody(course):
    """The name has letters that no hash has: files hold hashes."""
    hand_in(course.folder / "submissions", emmy=15)
    table = course("--anonymous")[1]
    (name,) = table
    assert name.startswith("anonymous_") and read(course.folder / "grades_files/names.csv")[name]["name"] == "emmy"
    pages = [
        path for path in (course.folder / "grades_files").rglob("*") if path.is_file() and path.name != "names.csv"
    ]
    assert len(pages) > 4 and not any("emmy" in path.name or "emmy" in path.read_text() for path in pages)


def test_pseudonyms_stand_in_an_order_of_their_own_and_pages_with_names_are_gone(course):
    names = [f"student_{letter}" for letter in "abcdefgh"]
    hand_in(course.folder / "submissions", **dict.fromkeys(names, 15))
    people = put(course.folder / "roster.csv", "student,group\nstudent_a,red\nstudent_b,red\n" + "\n".join(names[2:]))
    course("--roster", people)
    feedback = course.folder / "grades_files/feedback"
    mine = put(feedback / "mine.html", "a page of the lecturer's")
    table = course("--roster", people, "--anonymous")[1]
    assert list(table) == sorted(table)
    assert {path.stem for path in feedback.iterdir() if path != mine} == set(table) and mine.exists()
    resolved = {key: row["name"] for key, row in read(course.folder / "grades_files/names.csv").items()}
    assert sorted(resolved.values()) == ["red", *names] and [resolved[key] for key in table] != names
    assert read(course.folder / "grades_files/log.csv").keys() <= resolved.keys()


def test_the_secret_comes_from_the_environment_a_file_or_the_configuration(course, capsys, monkeypatch):
    hand_in(course.folder / "submissions", ada=15)

    def warns(**rules):
        assert course(**rules)[0] == 0
        return "is public, and students can try the hidden settings" in capsys.readouterr().err

    assert warns() and not warns(seed=7)
    put(course.folder / "secret.txt", "a long secret\n")
    assert not warns(seed_file="secret.txt")
    seeds = {config.load_rules(course.folder / "grading.yml", number).seed for number in (1, 2)}
    monkeypatch.setenv(config.SEED_VARIABLE, "another secret")
    seeds |= {config.load_rules(course.folder / "grading.yml", 1).seed}
    rules = config.load_rules(course.folder / "grading.yml", 1, seed=7)
    seeds |= {rules.for_student(name).seed for name in ("ada", "li")}
    assert len(seeds) == 5
    put(course.folder / "secret.txt", "\n")
    monkeypatch.delenv(config.SEED_VARIABLE)
    assert course(seed_file="secret.txt")[0] == 1 and "secret.txt is empty" in capsys.readouterr().err


def test_files_that_resemble_each_other_are_listed(course, capsys):
    one, other = ((PACKAGE / name).read_text() for name in ("metrics.py", "spectrum.py"))
    copy = re.sub(r"\bA_hat\b", "mine", f"# my own\n{one}")
    for name, text in {"ada": one, "copy": copy, "li": other}.items():
        put(course.folder / "submissions" / name / "denoiser.py", text)
    put(course.folder / "2025/emmy/denoiser.py", one)
    with pytest.raises(ValueError):  # the judge of these tests reads numbers
        course("--earlier", course.folder / "2025")
    lines = rows_of(course.folder / "grades_files/similarity.csv")
    assert lines[1:] == [["ada", "copy", "1.00"], ["ada", "2025/emmy", "1.00"], ["copy", "2025/emmy", "1.00"]]


def test_every_attempt_is_compared_and_nobody_with_oneself(course):
    one, other = ((PACKAGE / name).read_text() for name in ("metrics.py", "spectrum.py"))
    for place, text in {"first/ada": one, "first/li": one, "second/ada": one, "second/li": other}.items():
        put(course.folder / place / "denoiser.py", text)
    with pytest.raises(ValueError):
        course(folders=("first", "second"))
    assert rows_of(course.folder / "grades_files/similarity.csv")[1:] == [["ada", "li", "1.00"]]


def test_names_are_compared_as_people_write_them(tmp_path):
    people = roster.read_roster(put(tmp_path / "roster.csv", "student,name\nada,Ada Lovelace\nzoe,Zo\u00eb O'Neil\n"))
    keys = {person.student: person.keys for person in people}
    assert {"lovelaceada", "ada lovelace"} <= keys["ada"] and "oneilzo\u00eb" in keys["zoe"]
    assert roster.normalised("ZOE\u0308") == "zo\u00eb"


def test_what_is_written_is_a_table(course):
    hand_in(course.folder / "submissions", ada=15)
    assert course()[0] == 0
    log = read(course.folder / "grades_files/log.csv")
    assert log["ada"]["seconds"] == "1.5"
    assert io.StringIO((course.folder / "grades.csv").read_text()).readline().startswith("student,attempt,shapes")
