"""Submissions and messages that the tests of the grader use, right, wrong and hostile."""

import sys
from pathlib import Path

import numpy as np
import pytest
import sample_class
import yaml

from amptutorial_course.assignments import ASSIGNMENTS
from amptutorial_course.grading import isolation, judge
from amptutorial_course.grading.session import remote_class
from amptutorial_course.grading.submissions import Submission

ROOT = Path(__file__).parents[1]
GRADING = ROOT / "assignments" / "grading.yml"
SOLUTIONS = ROOT / "solutions"
if not SOLUTIONS.is_dir():
    pytest.skip("the solutions are elsewhere", allow_module_level=True)

LIMITS = {"seconds": 60, "seconds_per_call": 20, "megabytes": 512, "file_kilobytes": 64, "output_kilobytes": 64}
STARTER = (ROOT / "assignments/01_ridge/denoiser.py").read_text(encoding="utf-8")
RIGHT = (SOLUTIONS / "01_ridge/denoiser.py").read_text(encoding="utf-8")
WRONG = RIGHT.replace("mean(axis=0)", "sum(axis=0)")
LOST = ("jacobian", "right_jacobian")  # by `WRONG`
HOSTILE = sample_class.hostile(RIGHT)
# their code, as text
PROBE, LEARNS, CHEATS, FORGER = yaml.safe_load(Path(__file__).with_suffix(".yml").read_text(encoding="utf-8")).values()


def npy(descr, shape, order=False, data=bytes(16)):
    """Return an array as `numpy.save` writes it, whatever it claims to be."""
    head = f"{{'descr': {descr!r}, 'fortran_order': {order}, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + data


ONE = b'{"x": {"__array__": true}}'
# Headers and bodies of messages that are none.
MALFORMED = {
    "no JSON": (b"{", b""),
    "no text": (b"\xff\xfe", b""),
    "no object": (b"[]", b""),
    "deep": (b"[" * 100_000, b""),
    "unnamed bytes": (b"{}", b"more"),
    "no array": (ONE, b""),
    "one array twice": (b'{"x": [{"__array__": true}, {"__array__": true}]}', npy("<f8", (2,))),
    "objects": (ONE, npy("|O", (2,))),
    "a pickle": (ONE, b"\x80\x04K\x01."),
    "records": (ONE, npy([("a", "<f8")], (2,))),
    "complex": (ONE, npy("<c16", (1,))),
    "text": (ONE, npy("<U4", (1,))),
    "a strange size": (ONE, npy("<f7", (2,))),
    "negative": (ONE, npy("<f8", (-2,))),
    "too long": (ONE, npy("<f8", (3,))),
    "too much": (ONE, npy("<f8", (2**40, 2**40))),
    "much of nothing": (ONE, npy("<f8", (0, 2**40, 2**40), data=b"")),
    "many dimensions": (ONE, npy("<f8", (2, *[1] * 80))),
    "code": (ONE, npy("<f8", "(print('x'),)")),
    "deep inside": (ONE, npy("<f8", "(" * 5000)),
    "a long description": (ONE, npy("<f8", (2,), " " * 60_000 + "False")),
    "another version": (ONE, b"\x93NUMPY\x03\x00" + bytes(20)),
}


def isolated(kind, *marks):
    """Return a kind of isolation as the parameter of a test, which is left out where it does not work."""
    reason = getattr(isolation, f"{kind}_problem")() if sys.platform == "linux" else "not Linux"
    return pytest.param(kind, marks=[*marks, pytest.mark.skipif(bool(reason), reason=reason)])


def grade(text, rules, isolate="none", **more):
    return judge.grade_submission(Submission(text.encode(), **more), rules, isolate)


def total(record, number=1):
    return record.total(ASSIGNMENTS[number])


def passed(record):
    return {result.name for result in record.results if result.passed}


def messages(record):
    return "\n".join(result.message for result in record.results)


def start_probe(session, **params):
    return remote_class(session, "Probe")(session, params)


def ask_probe(probe, case, **changes):
    """Return the estimate of a `PROBE`, which behaves as number `case` says."""
    P = np.array([[float(case), 5.0]]).astype(changes.get("dtype", float), order="F")
    return probe.estimate(P, np.ones(1), np.eye(2))
