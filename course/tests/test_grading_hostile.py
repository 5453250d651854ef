"""A class of hostile submissions: nobody gains a point, nobody loses one, and nothing is left behind."""

import contextlib
import os
import re
import socket
import subprocess
from pathlib import Path
from textwrap import indent

import hostile
import numpy as np
import pytest
import yaml
from grading_samples import LIMITS, LOST, RIGHT, SOLUTIONS, WRONG, isolated, passed
from test_grading_class import command, hand_in, read, wait_for

from amptutorial_course.assignments import ASSIGNMENTS
from amptutorial_course.grading.__main__ import main
from amptutorial_course.grading.record import Record

pytestmark = pytest.mark.slow
NEIGHBOURS = {"neighbour": RIGHT, "neighbour_2": WRONG}
# so unusual a number that it marks all processes of this class
SECONDS = 100 + os.getpid() / 1e7


def sources(outside, port=0):
    start = hostile.START.format(outside=str(outside), solutions=str(SOLUTIONS), port=port, seconds=SECONDS)
    bank = hostile.BANK
    attacks = {name: start + code for name, code in {**bank["refused"], **bank["native"]}.items()}
    attacks |= {name: start + hostile.TOOLS + code for name, code in bank["endings"].items()}
    return attacks | {name: RIGHT + changed(**change) for name, change in bank["answers"].items()}


def changed(method, body, fails):
    return f"\n\ndef changed(self, P, r, F):\n{indent(body, '    ')}\n\n\nRidgeByHand.{method} = changed\n"


def contents(folder):
    return {str(path.relative_to(folder)): path.is_file() and path.read_bytes() for path in folder.rglob("*")}


def processes():
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            lines.append(path.read_bytes())
    return [line for line in lines if repr(SECONDS).encode() in line]


@pytest.fixture(scope="module", params=[isolated("bwrap"), isolated("landlock")])
def graded(tmp_path_factory, request):
    """Return the folder of the class, graded, its sources, and the bait as it was before."""
    folder = tmp_path_factory.mktemp("hostile")
    outside = folder / "outside"
    hand_in(outside / "submissions", neighbour="# SECRET")
    (outside / "secret.txt").write_text("SECRET,1\n2,3\n")
    (outside / "treasure.py").write_text("print('SECRET')\n")
    (outside / "grades.csv").write_text("student,total\n")
    data = {"seed": 20240, "limits": LIMITS | {"seconds": SECONDS, "seconds_per_call": 2}}
    (folder / "grading.yml").write_text(yaml.safe_dump(data, sort_keys=False))
    with socket.create_server(("127.0.0.1", 0)) as server:
        texts = sources(outside, server.getsockname()[1])
        hand_in(folder / "submissions", **NEIGHBOURS, **texts)
        before = contents(outside)
        assert main(command(folder, "--isolate", request.param)) == 0
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()
    return folder, texts, before


@pytest.mark.parametrize("isolate", ["none", isolated("bwrap")])
def test_a_file_that_harms_its_reader_costs_its_author_only(tmp_path, isolate):
    (tmp_path / "grading.yml").write_text("seed: 20240\n")
    hand_in(tmp_path / "submissions", neighbour=RIGHT)
    told = hostile.write_files(tmp_path / "submissions", RIGHT)
    try:
        assert main(command(tmp_path, "--isolate", isolate)) == 0
    finally:
        subprocess.run(["rm", "-r", tmp_path / "submissions/deep"], check=True)  # Python's own functions recurse
    rows = read(tmp_path / "grades.csv")
    assert rows.pop("neighbour")["total"] == "100.00" and set(rows) == set(told)
    for name, row in rows.items():
        assert row["total"] == "0.00" and re.search(told[name], row["status"]), f"{name}: {row['status']}"
    assert str(tmp_path) not in "".join(page.read_text() for page in tmp_path.glob("grades_files/feedback/*"))


def records(folder):
    paths = (folder / "grades_files/results").glob("*.json")
    return {record.student: record for record in (Record.from_json(path.read_text()) for path in paths)}


def test_everybody_has_a_row_and_nobody_points_that_are_not_earned(graded):
    folder, texts, _ = graded
    rows = read(folder / "grades.csv")
    assert set(rows) == {*texts, *NEIGHBOURS}
    assert all(None not in row and None not in row.values() for row in rows.values())
    earned = 100 - sum(ASSIGNMENTS[1].points[name] for name in LOST)
    assert rows["neighbour"]["total"] == "100.00" and float(rows["neighbour_2"]["total"]) == earned
    gained = {name: float(rows[name]["total"]) for name in texts if float(rows[name]["total"])}
    assert set(gained) <= {"a large Jacobian"} and gained.get("a large Jacobian", 0) < 100


def test_answers_that_are_wrong_pass_no_check_that_they_could_break(graded):
    found = records(graded[0])
    for name, answer in hostile.BANK["answers"].items():
        assert not passed(found[name]) & set(answer["fails"]), name


def test_nothing_outside_was_read_or_changed_and_no_process_is_left(graded):
    folder, texts, before = graded
    assert contents(folder / "outside") == before
    for name, record in records(folder).items():
        assert name in NEIGHBOURS or "SECRET" not in record.printed, name
    assert not Path("/dev/shm/hostile_left").exists() and not Path("/tmp/hostile_left").exists()
    assert not Path(np.__file__).with_name("hostile.pth").exists()
    wait_for(lambda: not processes())


def test_the_attacks_are_really_tried_and_no_judge_failed(graded):
    """A submission that fails for another reason than a refusal proves nothing."""
    assert len(graded[1]) >= 60
    mistakes = re.compile("NameError|AttributeError|TypeError: |IndentationError")
    for name, record in records(graded[0]).items():
        assert not mistakes.search(record.traceback), f"{name}: {record.traceback}"
        assert not record.fault, f"{name}: {record.fault}"
