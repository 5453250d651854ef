"""The grader against right, wrong and hostile submissions: what one of them does is no other's concern."""

import csv
import html.parser
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import sample_class
import yaml

from amptutorial.assignments import ASSIGNMENTS
from amptutorial.denoisers import Denoiser, Ridge
from amptutorial.grading import classroom, config, feedback, judge, protocol, remote
from amptutorial.grading.__main__ import main

ROOT = Path(__file__).parents[1]
GRADING = ROOT / "assignments" / "grading.yml"
STARTER = (ROOT / "assignments/01_ridge/denoiser.py").read_text(encoding="utf-8")
EXPERIMENT = ASSIGNMENTS[1].experiment
RIGHT = (
    f"PREDICTION = {EXPERIMENT.predict(Ridge(**EXPERIMENT.params))}\n"
    + """
import numpy as np

from amptutorial import Denoiser


class RidgeByHand(Denoiser):
    def __init__(self, strength):
        self.strength = strength

    def inverses(self, r, F):
        return np.linalg.inv(F + self.strength / r[:, None, None] * np.eye(len(F)))

    def estimate(self, P, r, F):
        return np.einsum("ik,ikl->il", P, self.inverses(r, F))

    def mean_jacobian(self, P, r, F):
        return self.inverses(r, F).mean(axis=0)

    def penalty(self, X, r):
        return self.strength / 2 * (X**2 / r[:, None]).sum()

    def convexity(self, r):
        return self.strength / r.max()
"""
)
WRONG = RIGHT.replace("mean(axis=0)", "sum(axis=0)")
LIMITS = {"seconds": 60, "seconds_per_call": 20, "megabytes": 512, "file_kilobytes": 64, "output_kilobytes": 64}

needs_solutions = pytest.mark.skipif(not (ROOT / "solutions").is_dir(), reason="the reference solutions are elsewhere")


@pytest.fixture(scope="module")
def rules():
    given = config.load_rules(GRADING, 1, seed=5)
    return config.Rules(1, given.seed, given.weights, given.essential, LIMITS)


@pytest.fixture
def impatient(monkeypatch, rules):
    """Return rules with short limits and no restarts: what is asked is how an attack ends."""
    monkeypatch.setattr(remote, "RESTARTS", 0)
    return config.Rules(1, rules.seed, rules.weights, rules.essential, LIMITS | {"seconds_per_call": 2})


def grade(text, rules):
    return judge.grade(text.encode(), rules)


def passed(found):
    return {check["name"] for check in found["checks"] if check["passed"]}


def messages(found):
    return "\n".join(check["message"] for check in found["checks"])


# -- the checks are the same from afar


def test_a_right_solution_gets_all_points_and_the_starter_none(rules):
    assert grade(RIGHT, rules)["total"] == 100
    found = grade(STARTER, rules)
    assert (found["total"], passed(found)) == (0, set())
    assert "NotImplementedError: write the estimate (denoiser.py, line" in messages(found)


def test_a_mistake_costs_the_points_of_its_checks(rules):
    found = grade(WRONG, rules)
    lost = {"jacobian", "state_evolution", "prediction"}
    assert passed(found) == set(rules.weights) - lost
    assert found["total"] == 100 - sum(rules.weights[name] for name in lost)
    assert "a mean over the rows, not a sum" in messages(found)


def test_without_an_essential_check_nothing_else_earns_points(rules):
    found = grade(RIGHT.replace('np.einsum("ik,ikl->il", P, self.inverses(r, F))', "0 * P"), rules)
    assert passed(found) and found["total"] == 0
    assert "optimality or limits" in found["status"]


PROBE = '''
import sys
import numpy as np
from amptutorial import Denoiser

class Probe(Denoiser):
    precision = "posterior"

    def __init__(self, scale=1.0, center=None):
        self.scale, self.center = scale, center

    def estimate(self, P, r, F):
        """The behaviour is chosen by P[0, 0]."""
        case = int(P[0, 0])
        if case == 1:
            P[0, 1], F[0, 0] = 7.0, 8.0
        if case == 2:
            return None
        if case == 3:
            return 1j * P
        if case == 4:
            return [[1.0, 2.0]]
        if case == 5:
            raise ValueError("<b>bold</b>")
        if case == 6:
            return P + self.center
        if case == 7:
            sys.exit(3)
        if case == 8:
            print("one line")
        if case == 11:
            import signal
            signal.raise_signal(40)
        if case == 10:
            for _ in r:
                pass
        if case == 9:
            return np.array([[P.dtype.itemsize, P.flags.f_contiguous]]) * 1.0
        return self.scale * P

    def convexity(self, r):
        return 0.5


class Plain:
    pass
'''


@pytest.fixture(scope="module")
def session():
    with remote.Session(PROBE.encode(), LIMITS) as session:
        yield session


@pytest.fixture(scope="module")
def probe(session):
    return remote.remote_class(session, "Probe")(session, {"scale": 2.0, "center": np.arange(2.0)})


def ask(probe, case, **changes):
    P = np.array([[float(case), 5.0]]).astype(changes.get("dtype", float), order="F")
    return probe.estimate(P, np.ones(1), np.eye(2))


def test_a_remote_denoiser_answers_like_the_student_s_class(session, probe):
    assert probe.precision == "posterior" and repr(probe).startswith("Probe(scale=2.0, center=")
    assert type(probe).penalty is Denoiser.penalty and type(probe).convexity is not Denoiser.convexity
    assert probe.convexity(np.ones(3)) == 0.5
    np.testing.assert_array_equal(ask(probe, 0), [[0.0, 10.0]])
    np.testing.assert_allclose(probe.mean_jacobian(np.zeros((1, 2)), np.ones(1), np.eye(2)), 2 * np.eye(2), atol=1e-8)
    np.testing.assert_array_equal(ask(probe, 6), [[6.0, 6.0]])
    np.testing.assert_array_equal(ask(probe, 4), [[1.0, 2.0]])
    np.testing.assert_array_equal(ask(probe, 9, dtype="f4"), [[4.0, 1.0]])


LEARNS = """
import numpy as np

from amptutorial import Denoiser


class Learner(Denoiser):
    def __init__(self, mean=0.0):
        self.mean = mean

    def estimate(self, P, r, F):
        return P + self.mean

    def refit(self, P, r, F):
        return Learner(P.mean())

    def frozen(self):
        return Frozen(self.mean)


class Frozen(Learner):
    def refit(self, P, r, F):
        return self
"""


def test_a_denoiser_that_learns_does_so_at_the_other_side():
    with remote.Session(LEARNS.encode(), LIMITS) as session:
        learner = remote.remote_class(session, "Learner")(session, {})
        P, r, F = np.array([[1.0], [3.0]]), np.ones(2), np.eye(1)
        learned = learner.refit(P, r, F)
        assert (learned.estimate(P, r, F) == P + 2).all() and (learner.estimate(P, r, F) == P).all()
        assert (learned.frozen().refit(10 * P, r, F).estimate(P, r, F) == P + 2).all()
        assert (learned.refit(10 * P, r, F).estimate(P, r, F) == P + 20).all()
        session.stop()
        with pytest.raises(remote.NotRun, match="lost when the submission was restarted"):
            learned.estimate(P, r, F)
        assert (learner.estimate(P, r, F) == P).all()


def test_what_a_student_writes_into_arguments_is_seen(probe):
    P, F = np.array([[1.0, 5.0]]), np.eye(2)
    probe.estimate(P, np.ones(1), F)
    assert (P[0, 1], F[0, 0]) == (7.0, 8.0)


@pytest.mark.parametrize(
    ("case", "name", "text"),
    [
        (2, "TypeError", "the answer is NoneType"),
        (3, "TypeError", "complex128"),
        (5, "ValueError", r"<b>bold</b> \(denoiser.py, line 24\)"),
        (7, "SystemExit", "3"),
    ],
)
def test_errors_keep_their_name_and_line(probe, case, name, text):
    with pytest.raises(remote.StudentError, match=text) as failure:
        ask(probe, case)
    assert type(failure.value).__name__ == name


def test_prints_are_kept_and_disturb_nothing(session, probe):
    np.testing.assert_array_equal(ask(probe, 8), [[16.0, 10.0]])
    assert session.output().endswith("one line\n")


def test_lines_are_counted_at_the_other_side(probe):
    few, many = (
        remote.count_remote_lines(probe, "estimate", np.full((n, 2), 10.0), np.ones(n), np.eye(2))[0] for n in (10, 110)
    )
    assert many - few == 200


@pytest.mark.parametrize("name", ["Plain", "Missing"])
def test_a_class_must_exist_and_be_a_denoiser(session, name):
    with pytest.raises(remote.StudentError, match=f"no class {name} derived from"):
        remote.remote_class(session, name)


# -- the sandbox

# Each finds the word SECRET where it has no business, or proves that it could do harm, when it is not confined.
THEFTS = {
    "open": "open(SECRET).read()",
    "open bytes": "open(SECRET.encode()).read()",
    "dots": "open(os.path.join(os.path.dirname(np.__file__), *[os.pardir] * 30, SECRET[1:])).read()",
    "os.open": "os.read(os.open(SECRET, os.O_RDONLY), 99).decode()",
    "a folder": "os.read(os.open('secret.py', os.O_RDONLY, dir_fd=os.open(FOLDER, os.O_RDONLY)), 99).decode()",
    "a folder of one's own": "os.open(os.path.dirname(np.__file__), os.O_RDONLY) and 'SECRET'",
    "pathlib": "pathlib.Path(SECRET).read_text()",
    "io.open_code": "io.open_code(SECRET).read().decode()",
    "fromfile": "np.fromfile(SECRET, dtype=np.uint8).tobytes().decode()",
    "loadtxt": "str(np.loadtxt(SECRET, dtype=str))",
    "load": "str(np.load(SECRET.replace('.py', '.npy')))",
    "memmap": "bytes(np.memmap(SECRET, mode='r')).decode()",
    "import": "importlib.machinery.SourceFileLoader('secret', SECRET).load_module().WORD",
    "the path": "(sys.path.insert(0, FOLDER), importlib.import_module('secret').WORD)[1]",
    "runpy": "runpy.run_path(SECRET)['WORD']",
    "linecache": "linecache.getline(SECRET, 1)",
    "os.walk": "str([os.path.join(*each[:1], 'SECRET') for each in os.walk(FOLDER)])",
    "os.listdir": "'SECRET' * ('secret.py' in os.listdir(FOLDER))",
    "scandir": "'SECRET' * any(each.name == 'secret.py' for each in os.scandir(FOLDER))",
    "glob": "'SECRET' * bool(glob.glob(FOLDER + '/*.py'))",
    "subprocess": "subprocess.run(['cat', SECRET], capture_output=True, text=True).stdout",
    "os.popen": "os.popen('cat ' + SECRET).read()",
    "posix_spawn": "'SECRET' * bool(os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0))",
    "fork": "'SECRET' * bool(subprocess_of_fork())",
    "multiprocessing": "'SECRET' * bool(fork_exec())",
    "ctypes": "read_by_ctypes(SECRET)",
    "symlink": "(os.symlink(SECRET, 'link'), open('link').read())[1]",
    "hard link": "(os.link(SECRET, 'hard'), open('hard').read())[1]",
    "rename": "(os.rename(SECRET + '.copy', 'copy'), open('copy').read())[1]",
    "chdir": "(os.chdir(FOLDER), open('secret.py').read())[1]",
    "/proc": "open('/proc/self/root' + SECRET).read()",
    "/proc/self": "'SECRET' * bool(open('/proc/self/maps').read())",
    "write": "'SECRET' * open(SECRET + '.new', 'w').write('x')",
    "mkdir": "'SECRET' * (os.mkdir(FOLDER + '/new') is None)",
    "remove": "'SECRET' * (os.remove(SECRET + '.old') is None)",
    "socket": "'SECRET' * bool(socket.socket())",
    "kill": "'SECRET' * (os.kill(os.getppid(), 0) is None)",
    "pidfd": "'SECRET' * bool(os.pidfd_open(os.getppid()))",
    "limits": "'SECRET' * (resource.setrlimit(resource.RLIMIT_CORE, resource.getrlimit(resource.RLIMIT_CORE)) is None)",
    "garbage": "'SECRET' * bool(gc.get_objects())",
    "another interpreter": "'SECRET' * (_xxsubinterpreters.create() is not None)",
    "another shell": "tkinter.Tcl().eval('read [open ' + SECRET + ']')",
    "sqlite": "'SECRET' * bool(sqlite3.connect(FOLDER + '/base'))",
    "the grader": "'SECRET' * bool(importlib.import_module('amptutorial.grading.judge'))",
    "the assignments": "'SECRET' * bool(importlib.import_module('amptutorial.assignments'))",
    "patched helpers": "(patch(), open(SECRET).read())[1]",
    "a str of one's own": "open(Sly(SECRET)).read()",
    "a module by another name": "'SECRET' * bool(load_as('x.readline', importlib.util.find_spec('readline').origin))",
    "a module by another path": "'SECRET' * bool(load_as('readline', os.path.abspath('copy.so')))",
    "a name of one's own": "'SECRET' * bool(__import__(Sly('readline')))",
}

THIEF = """
import builtins, ctypes, gc, glob, importlib, importlib.machinery, importlib.util, io, linecache, os, pathlib, resource
import runpy, socket, sqlite3, subprocess, sys
import numpy as np
from amptutorial import Denoiser

FOLDER = {folder!r}
SECRET = FOLDER + "/secret.py"


def lazily(name):
    class Lazy:
        def __getattr__(self, attribute):
            return getattr(importlib.import_module(name), attribute)
    return Lazy()


_xxsubinterpreters, tkinter = lazily("_xxsubinterpreters"), lazily("tkinter")


class Sly(str):
    def startswith(self, *args):
        return True

    def split(self, *args):
        return []

    def __str__(self):
        return "denoiser.py"

    def __eq__(self, other):
        return True

    __hash__ = str.__hash__


def load_as(name, path):
    if path.endswith("copy.so"):
        with open(importlib.util.find_spec("readline").origin, "rb") as module, open(path, "wb") as copy:
            copy.write(module.read())
    loader = importlib.machinery.ExtensionFileLoader(name, path)
    return importlib.util.module_from_spec(importlib.util.spec_from_file_location(name, path, loader=loader))


def patch():
    status = os.stat("denoiser.py")
    os.path.realpath = os.path.normpath = os.path.abspath = lambda path: "denoiser.py"
    os.stat = os.lstat = lambda *args, **kwargs: status
    builtins.PermissionError = builtins.ImportError = Exception


def subprocess_of_fork():
    child = os.fork()
    if not child:
        os._exit(0)
    return os.waitpid(child, 0)


def fork_exec():
    from multiprocessing.util import spawnv_passfds
    return os.waitpid(spawnv_passfds(b"/bin/true", [b"true"], []), 0)


def read_by_ctypes(path):
    library = ctypes.CDLL(None)
    buffer = ctypes.create_string_buffer(99)
    library.read(library.open(path.encode(), 0), buffer, 98)
    return buffer.value.decode()


class Thief(Denoiser):
    def estimate(self, P, r, F):
        found = eval(THEFTS[int(P[0, 0])])
        return P + ("SECRET" in found)
"""


@pytest.fixture(scope="module")
def treasure(tmp_path_factory):
    """Return a folder as that of the solutions might be, with something in it that must not be read."""
    folder = tmp_path_factory.mktemp("solutions")
    (folder / "secret.py").write_text("WORD = 'SECRET'\n")
    (folder / "secret.py.copy").write_text("WORD = 'SECRET'\n")
    (folder / "secret.py.old").write_text("WORD = 'SECRET'\n")
    np.save(folder / "secret.npy", np.array("SECRET"))
    return folder


@pytest.fixture(scope="module")
def thief(treasure):
    source = THIEF.format(folder=str(treasure)) + f"\n\nTHEFTS = {list(THEFTS.values())!r}\n"
    with remote.Session(source.encode(), LIMITS) as session:
        yield remote.remote_class(session, "Thief")(session, {})


@pytest.mark.parametrize("name", THEFTS)
def test_a_submission_reaches_nothing_outside_its_folder(thief, name):
    number = list(THEFTS).index(name)
    try:
        answer = thief.estimate(np.full((1, 1), number), np.ones(1), np.eye(1))
    except remote.StudentError as error:
        assert type(error).__name__ in {"PermissionError", "ImportError", "ModuleNotFoundError"}, repr(error)
    else:
        assert answer == number, "the secret was found"
    assert thief._session.generation == 1


def test_the_same_thefts_succeed_where_nothing_is_confined(treasure, tmp_path):
    """The list above proves something only if its entries work elsewhere."""
    folder = shutil.copytree(treasure, tmp_path / "solutions")
    skipped = ("another shell", "patched helpers")  # Tcl may be missing; a patch would spoil what follows
    attempts = {name: text for name, text in THEFTS.items() if name not in skipped}
    script = f"""
import sys, json
sys.path.insert(0, {str(ROOT)!r})
exec(compile({THIEF.format(folder=str(folder))!r}, "thief", "exec"))
failed = {{}}
for name, text in {attempts!r}.items():
    try:
        if "SECRET" not in eval(text):
            failed[name] = "not found"
    except BaseException as error:
        failed[name] = repr(error)
    os.chdir({str(tmp_path)!r})
print(json.dumps(failed))
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {}


ALLOWED = """
import numpy as np
import os, pathlib, warnings
import scipy.optimize, scipy.special, scipy.stats
from collections import namedtuple
from dataclasses import dataclass
from amptutorial import Denoiser, biased_low_rank_amp

Pair = namedtuple("Pair", "a b", defaults=(1, 2))
with open("notes.txt", "w") as file:
    file.write("mine")
assert pathlib.Path("notes.txt").read_text() == "mine" and sorted(os.listdir()) == ["denoiser.py", "notes.txt"]
np.save("a.npy", np.ones(3))
assert np.load("a.npy").sum() == 3
with open(os.devnull, "w") as file:
    print("nothing", file=file)
assert scipy.optimize.brentq(lambda x: x - 0.5, 0, 1) == 0.5
warnings.warn("a warning is no mistake")
print("y" * 1_000_000)
assert np.random.default_rng().random() < 1
assert "HOME" in os.environ and not any("KEY" in name or "TOKEN" in name for name in os.environ)
PREDICTION = np.float32(0.25)
"""


def test_what_an_honest_denoiser_may_do(monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "for nobody's eyes")
    with remote.Session(ALLOWED.encode(), LIMITS) as session:
        session.start()
        assert session.prediction == 0.25
        assert session.output() == "y" * 2000


# -- hostile submissions

HOSTILE = sample_class.hostile(RIGHT)
OUTCOMES = {
    "a syntax error": "SyntaxError: .* line 1",
    "an exception at import": "RuntimeError: not finished",
    "an endless loop at import": "the import gave no answer within 2 s",
    "sys.exit at import": "SystemExit",
    "an endless loop in estimate": "estimate gave no answer within 2 s",
    "a print bomb in estimate": "estimate gave no answer within 2 s",
    "sys.exit in estimate": "SystemExit",
    "os._exit in estimate": r"estimate ended Python itself \(exit code 0\)",
    "a memory bomb in estimate": "MemoryError",
    "a huge answer in estimate": "MemoryError|too large",
    "a huge file in estimate": "File too large",
    "a deep recursion in estimate": "MemoryError|RecursionError|gave no answer|ended Python",
    "a subprocess in estimate": "PermissionError: not allowed while graded: subprocess",
    "an attack on the parent in estimate": "PermissionError: not allowed while graded: os.kill",
    "a look into the frames in estimate": "the objective is",
    "a patched NumPy in estimate": "",
    "tampered checks in estimate": "the objective is",
    "a theft of the solutions in estimate": "the objective is",
    "no denoiser": "no class RidgeByHand",
}


def test_every_hostile_submission_of_the_sample_is_tried():
    assert set(HOSTILE) == {*OUTCOMES, "a file of a megabyte"}


@pytest.mark.parametrize("name", OUTCOMES)
def test_a_hostile_submission_earns_nothing_and_is_told_why(name, impatient):
    found = grade(HOSTILE[name], impatient)
    assert found["total"] == 0
    assert not passed(found) & {"optimality", "limits"}
    assert re.search(OUTCOMES[name], f"{found['status']}\n{messages(found)}"), messages(found)


CHEATS = """

import numpy
for module in (numpy, numpy.testing):
    for name in ("allclose", "array_equal", "isclose", "isfinite", "all", "any"):
        if hasattr(module, name):
            setattr(module, name, lambda *args, **kwargs: True)
right = RidgeByHand.estimate


def estimate(self, P, r, F):
    result = right(self, P, r, F)
    P *= 2
    return result


RidgeByHand.estimate = estimate
"""


def test_a_patched_numpy_hides_no_mistake(rules):
    found = grade(RIGHT + CHEATS, rules)
    assert "no_mutation" not in passed(found)
    assert "estimate changes its argument: P" in messages(found)
    assert "jacobian" not in passed(grade(WRONG + CHEATS.split("right =")[0], rules))


def test_after_a_crash_the_other_checks_still_earn_points(rules):
    found = grade(RIGHT.replace("return self.strength / 2 *", "import os; os._exit(9); return"), rules)
    assert passed(found) == set(rules.weights) - {"penalty", "no_mutation", "state_evolution", "prediction"}
    assert "penalty ended Python itself (exit code 9)" in messages(found)


def test_too_many_crashes_end_the_session(monkeypatch):
    monkeypatch.setattr(remote, "RESTARTS", 1)
    with remote.Session(PROBE.replace("sys.exit(3)", "import os; os._exit(3)").encode(), LIMITS) as session:
        probe = remote.remote_class(session, "Probe")(session, {})
        for error in (remote.Crash, remote.Crash, remote.NotRun, remote.NotRun):
            with pytest.raises(error):
                ask(probe, 7)
        assert session.generation == 2


def test_the_time_for_a_submission_is_limited_as_a_whole():
    limits = LIMITS | {"seconds": 1.0, "seconds_per_call": 0.6}
    slow = PROBE.replace("sys.exit(3)", "import time; time.sleep(0.4); return P")
    with remote.Session(slow.encode(), limits) as session:
        probe = remote.remote_class(session, "Probe")(session, {})
        with pytest.raises(remote.TimeLimit):
            for _ in range(4):
                ask(probe, 7)
        with pytest.raises(remote.NotRun, match="1 s for one submission are used up"):
            ask(probe, 0)


def test_nothing_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(remote.tempfile, "tempdir", str(tmp_path))
    with remote.Session(PROBE.encode(), LIMITS) as session:
        session.start()
        process, folder = session.process, Path(session.folder.name)
        assert folder.parent == tmp_path and [path.name for path in folder.iterdir()] == ["denoiser.py"]
    assert process.poll() is not None and list(tmp_path.iterdir()) == []


def test_a_death_by_any_signal_is_a_crash(impatient):
    with remote.Session(PROBE.encode(), LIMITS) as session:
        with pytest.raises(remote.Crash, match="signal 40"):
            ask(remote.remote_class(session, "Probe")(session, {}), 11)


# -- the protocol


@pytest.mark.parametrize(
    "value",
    [
        np.zeros((0, 3)), np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array(2.5), np.array([True, False]), np.arange(3, dtype="u1"), np.ones(2, "f4"), np.arange(4.0)[::-2],
    ],
)  # fmt: skip
def test_arrays_survive_the_protocol(value):
    value.flags.writeable = False
    (back,) = protocol.unpack(*protocol.split(protocol.pack({"x": [value]})))["x"]
    np.testing.assert_array_equal(back, value)
    assert (back.dtype, back.flags.fnc, back.flags.writeable) == (value.dtype, value.flags.fnc, False)


def test_other_values_survive_the_protocol_or_are_refused():
    message = {"a": [1, 2.5, None, "text", True], "b": {"c": np.inf}}
    assert protocol.unpack(*protocol.split(protocol.pack(message | {"d": np.int64(3)}))) == message | {"d": 3}
    with pytest.raises(TypeError, match="complex cannot be sent"):
        protocol.pack({"x": 1j})
    with pytest.raises(ValueError, match="too large to be sent"):
        protocol.pack({"x": np.zeros(protocol.BODY_LIMIT // 8 + 1)})


def described(*entry):
    return json.dumps({"x": {"__array__": entry}}).encode()


MALFORMED = {
    "no JSON": b"{",
    "no text": b"\xff\xfe",
    "no object": b"[]",
    "deep": b"[" * 100_000,
    "no list": json.dumps({"x": {"__array__": 3}}).encode(),
    "too few": described("<f8", [1], "C", True),
    "objects": described("|O", [1], "C", True, 0),
    "records": described("i4,f8", [1], "C", True, 0),
    "a strange size": described("<f7", [1], "C", True, 0),
    "negative": described("<f8", [-1], "C", True, 0),
    "a fraction": described("<f8", [0.5], "C", True, 0),
    "a truth": described("<f8", [True], "C", True, 0),
    "too long": described("<f8", [3], "C", True, 0),
    "too far": described("<f8", [1], "C", True, 16),
    "overflow": described("<f8", [2**26] * 4, "C", True, 0),
    "many dimensions": described("<f8", [1] * 40, "C", True, 0),
}


@pytest.mark.parametrize("header", MALFORMED.values(), ids=MALFORMED)
def test_malformed_messages_are_the_author_s_failure(header):
    with pytest.raises(protocol.Malformed):
        protocol.unpack(header, bytes(16))


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (b"", EOFError),
        (b"\x00\x00", EOFError),
        (protocol.LENGTHS.pack(2**31, 0), protocol.Malformed),
        (protocol.LENGTHS.pack(2, 2**31), protocol.Malformed),
        (protocol.LENGTHS.pack(10, 0) + b"{}", EOFError),
    ],
)
def test_frames_that_end_early_or_are_too_large(data, error):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(data)
        theirs.shutdown(socket.SHUT_WR)
        with pytest.raises(error):
            protocol.receive(ours, time.monotonic() + 5)


def test_a_dribble_does_not_extend_the_deadline():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(protocol.LENGTHS.pack(10, 0))
        with pytest.raises(TimeoutError):
            protocol.receive(ours, time.monotonic() + 0.05)


def test_noise_on_the_socket_is_a_bad_answer(impatient):
    noisy = PROBE.replace(
        "sys.exit(3)", "import os, stat; [os.write(n, b'noise' * 9) for n in range(3, 20) if is_socket(n)]"
    )
    noisy += """

def is_socket(number):
    import os, stat
    try:
        return stat.S_ISSOCK(os.fstat(number).st_mode)
    except OSError:
        return False
"""
    with remote.Session(noisy.encode(), LIMITS) as session:
        probe = remote.remote_class(session, "Probe")(session, {})
        with pytest.raises(remote.BadAnswer, match="estimate gave no proper answer"):
            ask(probe, 7)


# -- the settings and the rules


@pytest.mark.parametrize("task", ASSIGNMENTS.values(), ids=lambda task: task.folder)
def test_hidden_settings_depend_on_the_seed_and_are_not_the_public_ones(task):
    def shown(settings):
        return [setting.title for setting in settings]

    def rows(seed):
        return [trial.problem.P for trial in task.trials(None, seed=seed)]

    assert shown(task.hidden(1)) == shown(task.hidden(1))
    assert all(map(np.array_equal, rows(1), rows(1)))
    for one, other in ((1, 2), (1, None), (0, None)):
        assert not any(map(np.array_equal, rows(one), rows(other)))


@pytest.mark.parametrize("task", ASSIGNMENTS.values(), ids=lambda task: task.folder)
def test_the_rules_cover_every_assignment(task):
    rules = config.load_rules(GRADING, task.number)
    assert sum(rules.weights.values()) == 100 and rules.essential
    assert set(rules.weights) == set(task.check_names())


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda data: data["weights"][1].update(shapes=1), "sum to 98, expected 100"),
        (lambda data: data["weights"][1].update(elegance=1), "unknown elegance"),
        (lambda data: data["weights"][1].pop("shapes"), "missing shapes"),
        (lambda data: data["weights"][1].update(shapes=-1), "weight of shapes must be non-negative"),
        (lambda data: data["weights"].pop(1), "no weights for assignment 1: add them"),
        (lambda data: data["limits"].pop("seconds"), "missing seconds"),
        (lambda data: data["limits"].update(seconds=0), "limit seconds must be positive"),
        (lambda data: data.update(seed="secret"), "seed must be an integer"),
        (lambda data: data.pop("essential"), "missing essential"),
    ],
)
def test_rules_that_cannot_be_followed_are_refused(tmp_path, change, text):
    data = yaml.safe_load(GRADING.read_text())
    data["weights"] = {number: dict(weights) for number, weights in data["weights"].items()}
    change(data)
    path = tmp_path / "grading.yml"
    path.write_text(yaml.safe_dump(data, sort_keys=False))
    with pytest.raises((ValueError, TypeError), match=text):
        config.load_rules(path, 1)


def test_the_default_rules_are_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert config.default_path() == GRADING
    (tmp_path / "assignments").mkdir()
    (tmp_path / "assignments/grading.yml").touch()
    assert config.default_path() == tmp_path / "assignments/grading.yml"


# -- a class


def hand_in(folder, **texts):
    for student, text in texts.items():
        place = folder / student
        place.mkdir(parents=True, exist_ok=True)
        (place / "denoiser.py").write_text(text, encoding="utf-8")
    return folder


def test_what_cannot_be_read_is_no_reason_to_stop(tmp_path):
    hand_in(tmp_path, good=RIGHT, large="#" * 3000, twice="")
    (tmp_path / "alone.py").write_text("x = 1")
    (tmp_path / "twice.py").write_text("x = 1")
    for name in ("empty", "latin", "linked", "pipe", "folder/denoiser.py", ".hidden", "__pycache__"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "latin/denoiser.py").write_bytes("# café".encode("latin-1"))
    (tmp_path / "linked/denoiser.py").symlink_to(tmp_path / "good/denoiser.py")
    (tmp_path / "friend").symlink_to(tmp_path / "good")
    os.mkfifo(tmp_path / "pipe/denoiser.py")
    (tmp_path / "notes.txt").touch()
    found = {each.student: each.source for each in classroom.collect(tmp_path, 2)}
    assert found.pop("good") == RIGHT.encode() and found.pop("alone") == b"x = 1"
    assert {name: text.split(":")[0] for name, text in found.items()} == {
        "empty": "no file denoiser.py was handed in",
        "folder": "cannot be read",
        "friend": "the folder is a symbolic link",
        "large": "the file is larger than 2 kB",
        "latin": "the file is not encoded in UTF-8",
        "linked": "the file is a symbolic link",
        "pipe": "denoiser.py is no regular file",
        "twice": "handed in twice, as a folder and as a file",
    }


def test_a_folder_without_submissions_is_an_error(tmp_path, capsys):
    assert main([str(tmp_path), "--assignment", "1", "--out", str(tmp_path / "grades.csv")]) == 1
    assert "expected <student>/denoiser.py or <student>.py there" in capsys.readouterr().err
    assert main([str(tmp_path / "none"), "--assignment", "1", "--out", str(tmp_path / "grades.csv")]) == 1
    assert main([str(tmp_path), "--assignment", "99", "--out", str(tmp_path / "grades.csv")]) == 1
    assert "there is no assignment 99" in capsys.readouterr().err
    assert main([str(tmp_path), "--assignment", "1", "--out", str(tmp_path / "grades.csv"), "--jobs", "0"]) == 1
    assert "--jobs must be at least 1" in capsys.readouterr().err


def read(path):
    with open(path, newline="", encoding="utf-8") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """Return the folder of a class that was graded with the command line, a well-behaved one and then a mixed one."""
    folder = tmp_path_factory.mktemp("class")
    data = yaml.safe_load(GRADING.read_text()) | {"limits": LIMITS}
    (folder / "grading.yml").write_text(yaml.safe_dump(data, sort_keys=False))
    hand_in(folder / "submissions", student_01=RIGHT, student_03=WRONG)
    assert main(command(folder)) == 0
    (folder / "before.csv").write_bytes((folder / "grades.csv").read_bytes())
    attacks = ["os._exit in estimate", "a patched NumPy in estimate", "an attack on the parent in estimate"]
    names = ("student_02", "student_04", "=student<b>")
    hand_in(folder / "submissions", **{name: HOSTILE[attack] for name, attack in zip(names, attacks, strict=True)})
    hand_in(folder / "submissions", student_05="raise ValueError('=1+1|<script>alert(1)</script>\\ud800')\n")
    (folder / "submissions/student_06").mkdir()
    assert main(command(folder)) == 0
    return folder


def command(folder, *more):
    return [
        str(folder / "submissions"), "--assignment", "1", "--out", str(folder / "grades.csv"),
        "--config", str(folder / "grading.yml"), *more,
    ]  # fmt: skip


def test_points_of_the_others_do_not_depend_on_a_hostile_neighbour(graded, rules):
    alone, together = read(graded / "before.csv"), read(graded / "grades.csv")
    assert {name: together[name] for name in alone} == alone
    assert alone["student_01"]["total"] == "100.00"
    lost = ("jacobian", "state_evolution", "prediction")
    assert float(alone["student_03"]["total"]) == 100 - sum(rules.weights[name] for name in lost)
    assert {row["total"] for name, row in together.items() if name not in alone} == {"0.00"}


def test_the_csv_has_a_column_for_every_check_and_no_formula(graded, rules):
    table = read(graded / "grades.csv")
    assert list(table["student_01"]) == ["student", *rules.weights, "total", "status"]
    assert "'=student<b>" in table
    assert "no file denoiser.py" in table["student_06"]["status"]
    assert [classroom.cell(text)[0] for text in ("=1", "+1", "-1", "@a", "\t=1", "a")] == ["'"] * 5 + ["a"]
    text = (graded / "grades.csv").read_text()
    assert not any(cell.startswith(("=", "+", "-", "@")) for row in csv.reader(io.StringIO(text)) for cell in row)


@pytest.fixture
def judged(monkeypatch):
    """Return a list of the students whose submissions are really graded."""
    students, run = [], classroom.run_judges

    def watch(submissions, *args):
        students.extend(submission.student for submission in submissions)
        return run(submissions, *args)

    monkeypatch.setattr(classroom, "run_judges", watch)
    return students


def test_a_second_run_grades_only_what_has_changed(graded, judged):
    before = (graded / "grades.csv").read_bytes()
    assert main(command(graded)) == 0
    assert judged == [] and (graded / "grades.csv").read_bytes() == before
    source = graded / "submissions/student_05/denoiser.py"
    source.write_text(source.read_text() + "# again\n")
    (graded / "grades_files/results/student_06.json").write_text('{"half a rec')
    assert main(command(graded)) == 0
    assert judged == ["student_05", "student_06"] and (graded / "grades.csv").read_bytes() == before


def test_a_result_belongs_to_its_rules(rules):
    other = config.Rules(1, rules.seed + 1, rules.weights, rules.essential, rules.limits)
    keys = {rules.key(b"a"), rules.key(b"b"), other.key(b"a"), rules.key("b'a'")}
    assert len(keys) == 4 and rules.key(b"a") in keys


def test_a_judge_that_dies_costs_nobody_else(tmp_path, rules, monkeypatch):
    monkeypatch.setattr(classroom, "_judge", len)  # takes other arguments: the process ends at once
    submissions = [classroom.Submission(name, b"") for name in ("student_01", "student_02")]
    found = list(classroom.grade_class(submissions, rules, tmp_path))
    assert [each["status"] for each in found] == ["the judge ended with exit code 1: grade the submission again"] * 2
    assert list(tmp_path.iterdir()) == []


def test_a_fault_of_the_grader_is_reported_and_tried_again(tmp_path, rules, monkeypatch):
    monkeypatch.setattr(judge, "grade", lambda source, rules: 1 / 0)
    submission, path = classroom.Submission("student_01", b""), tmp_path / "student_01.json"
    classroom._judge(submission, rules, rules.key(b""), path)
    stored = json.loads(path.read_text())
    assert "the grader failed, not the submission" in stored["status"] and "ZeroDivisionError" in stored["traceback"]
    assert stored.get("key") != rules.key(b"")


def test_an_interrupted_run_leaves_valid_files_and_goes_on(tmp_path):
    data = yaml.safe_load(GRADING.read_text()) | {"limits": LIMITS | {"seconds_per_call": 60, "seconds": 60}}
    (tmp_path / "grading.yml").write_text(yaml.safe_dump(data, sort_keys=False))
    hand_in(tmp_path / "submissions", student_01="x = 1\n", student_02="while True:\n    pass\n", student_03=RIGHT)
    process = subprocess.Popen(
        [sys.executable, "-m", "amptutorial.grading", *command(tmp_path, "--jobs", "1")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | {"TMPDIR": str(tmp_path)},
    )  # fmt: skip
    first = tmp_path / "grades_files/results/student_01.json"
    while process.poll() is None and not (first.exists() and list(tmp_path.glob("submission_*/denoiser.py"))):
        time.sleep(0.1)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    errors = process.communicate(timeout=60)[1]
    assert process.returncode == 130 and "has 1 of 3 submissions" in errors
    assert set(read(tmp_path / "grades.csv")) == {"student_01"}
    assert list(tmp_path.glob("submission_*")) == []
    (tmp_path / "submissions/student_02/denoiser.py").unlink()
    assert main(command(tmp_path)) == 0
    assert set(read(tmp_path / "grades.csv")) == {"student_01", "student_02", "student_03"}


# -- what is read


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


def test_feedback_shows_everything_and_runs_nothing(graded):
    folder = graded / "grades_files/feedback"
    page = Tags((folder / "student_05.html").read_text())
    assert not {"script", "b", "img"} & {tag for tag, _ in page.tags}
    assert "<script>alert(1)</script>" in page.text and "line 1, in <module>" in page.text
    assert "<script>" not in re.sub(r"```text.*?```", "", (folder / "student_05.md").read_text(), flags=re.DOTALL)
    assert "=student<b>" in Tags((folder / "=student<b>.html").read_text()).text
    assert "student\\<b\\>" in (folder / "=student<b>.md").read_text()


def test_feedback_names_each_check_its_promise_and_what_to_read(graded, rules):
    text = (graded / "grades_files/feedback/student_03.html").read_text()
    page, markdown = Tags(text), (graded / "grades_files/feedback/student_03.md").read_text()
    total = read(graded / "grades.csv")["student_03"]["total"].removesuffix(".00")
    for shown in (page.text, markdown):
        assert "student_03" in shown.replace("\\", "") and f"{total} of 100 points" in shown
        assert all(name in shown for name in rules.weights)
        assert "a mean over the rows, not a sum" in shown
        assert "mean\\_jacobian\\[k, l\\] is the mean" in shown or "mean_jacobian[k, l] is the mean" in shown
    assert {attrs["href"] for tag, attrs in page.tags if tag == "a"} >= {
        "https://amptutorial.github.io/amptutorial/book/06_denoisers.html#def-denoisers-jacobian"
    }
    assert str(yaml.safe_load(GRADING.read_text())["seed"]) not in text + markdown


def test_pages_are_accessible(graded):
    for path in (*(graded / "grades_files/feedback").glob("*.html"), graded / "grades_files/summary.html"):
        page = Tags(path.read_text())
        tags = [tag for tag, _ in page.tags]
        assert page.tags[0] == ("html", {"lang": "en-GB"}) and {"title", "h1"} <= set(tags)
        assert tags.count("caption") == tags.count("table") >= 1
        assert all("scope" in attrs for tag, attrs in page.tags if tag == "th")
        assert any(attrs.get("name") == "viewport" for tag, attrs in page.tags if tag == "meta")


def test_colours_have_contrast_in_both_themes():
    def luminance(colour):
        channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return np.dot([0.2126, 0.7152, 0.0722], linear)

    themes = [dict(re.findall(r"--(\w+): (#\w{6})", part)) for part in feedback.STYLE.split("@media")[:2]]
    assert themes[0].keys() == themes[1].keys()
    for theme in themes:
        for ink, paper in [("ink", "paper"), ("link", "paper"), ("good", "paper"), ("bad", "paper"), ("ink", "shade")]:
            dark, light = sorted([luminance(theme[ink]), luminance(theme[paper])])
            assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_the_summary_counts_failures_and_names_nobody(graded):
    records = [json.loads(path.read_text()) for path in (graded / "grades_files/results").glob("*.json")]
    shown = feedback.summary(records)
    assert shown["size"] == 7 and sum(count for _, count in shown["histogram"]) == 7
    assert shown["checked"] == 5 and sum(count for _, count in shown["unchecked"]) == 2
    failures = {check["name"]: check["count"] for check in shown["failures"]}
    assert list(failures.values()) == sorted(failures.values(), reverse=True)
    assert failures["jacobian"] == 4 and failures["penalty"] < failures["optimality"] == 3
    for suffix in ("html", "md"):
        text = (graded / f"grades_files/summary.{suffix}").read_text()
        assert "student_0" not in text and "7 submissions" in text


def test_the_same_mistake_with_other_numbers_is_the_same():
    def found(*shown):
        return {"status": "graded", "total": 0.0, "checks": [
            {"name": "jacobian", "passed": False, "message": message, "contract": ""} for message in shown
        ]}  # fmt: skip

    (failure,) = feedback.summary([found("is 0.25"), found("other"), found("is 1e-3")])["failures"]
    assert (failure["count"], failure["times"], failure["message"]) == (3, 2, "is 0.25")


# -- the sample class


@needs_solutions
@pytest.mark.parametrize("number", ASSIGNMENTS)
def test_the_sample_class_is_right_wrong_and_hostile(number, tmp_path):
    handed_in = sample_class.write_class(tmp_path, number)
    assert len(handed_in) >= sample_class.SIZE
    assert len({*handed_in.values()}) == len(handed_in)
    assert sum(name.startswith("right") for name in handed_in.values()) >= 4
    assert len(classroom.collect(tmp_path, 64)) == len(handed_in)


def test_a_change_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="'a' occurs 2 times"):
        sample_class.changed("a a", [["a", "b"]])
