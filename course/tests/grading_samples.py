"""Submissions and messages that the tests of the grader use, right, wrong and hostile."""

import json
from pathlib import Path

import numpy as np
import pytest
import sample_class

from amptutorial_course.grading import judge, remote

ROOT = Path(__file__).parents[1]
GRADING = ROOT / "assignments" / "grading.yml"
SOLUTIONS = ROOT / "solutions"
if not (SOLUTIONS.is_dir() and GRADING.is_file()):
    pytest.skip("the solutions and the rules of the grader are elsewhere", allow_module_level=True)

LIMITS = {"seconds": 60, "seconds_per_call": 20, "megabytes": 512, "file_kilobytes": 64, "output_kilobytes": 64}

STARTER = (ROOT / "assignments/01_ridge/denoiser.py").read_text(encoding="utf-8")
RIGHT = (SOLUTIONS / "01_ridge/denoiser.py").read_text(encoding="utf-8")
WRONG = RIGHT.replace("mean(axis=0)", "sum(axis=0)")
HOSTILE = sample_class.hostile(RIGHT)

# answers in a way that P[0, 0] chooses
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
    "another interpreter": "'SECRET' * (interpreters.create() is not None)",
    "another shell": "tkinter.Tcl().eval('read [open ' + SECRET + ']')",
    "sqlite": "'SECRET' * bool(sqlite3.connect(FOLDER + '/base'))",
    "the grader": "'SECRET' * bool(importlib.import_module('amptutorial_course.grading.judge'))",
    "the assignments": "'SECRET' * bool(importlib.import_module('amptutorial_course.assignments'))",
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


interpreters = lazily("_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters")
tkinter = lazily("tkinter")


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


def described(*entry):
    return json.dumps({"x": {"__array__": entry}}).encode()


# Headers of messages whose body has 16 bytes, and what is said of them.
MALFORMED = {
    "no JSON": (b"{", "not a JSON header"),
    "no text": (b"\xff\xfe", "not a JSON header"),
    "no object": (b"[]", "the header is not a JSON object"),
    "deep": (b"[" * 100_000, "not a JSON header"),
    "unnamed bytes": (described("<f8", [1], "C", True), "does not name all bytes"),
    "no list": (json.dumps({"x": {"__array__": 3}}).encode(), "described by four values"),
    "too few": (described("<f8", [2], "C"), "described by four values"),
    "no shape": (described("<f8", 2, "C", True), "described by four values"),
    "objects": (described("|O", [2], "C", True), "not an array of numbers"),
    "records": (described("i4,f8", [1], "C", True), "not an array of numbers"),
    "a strange size": (described("<f7", [2], "C", True), "f7"),
    "negative": (described("<f8", [-1], "C", True), "small non-negative integers"),
    "a fraction": (described("<f8", [0.5], "C", True), "small non-negative integers"),
    "a truth": (described("<f8", [2, True], "C", True), "small non-negative integers"),
    "too long": (described("<f8", [3], "C", True), "beyond the end"),
    "too far": (json.dumps({"x": [{"__array__": ["<f8", [1], "C", True]}] * 3}).encode(), "beyond the end"),
    "overflow": (described("<f8", [2**26] * 4, "C", True), "small non-negative integers"),
    "a large product": (described("<f8", [2**20] * 4, "C", True), "beyond the end"),
    "many dimensions": (described("<f8", [2, *[1] * 40], "C", True), "small non-negative integers"),
}


def grade(text, rules, isolate="none"):
    return judge.grade_submission(text.encode(), rules, isolate)


def passed(record):
    return {mark.name for mark in record.marks if mark.passed}


def messages(record):
    return "\n".join(mark.message for mark in record.marks)


def start_probe(session, **params):
    return remote.remote_class(session, "Probe")(session, params)


def ask_probe(probe, case, **changes):
    """Return the estimate of a `PROBE`, which behaves as number `case` says."""
    P = np.array([[float(case), 5.0]]).astype(changes.get("dtype", float), order="F")
    return probe.estimate(P, np.ones(1), np.eye(2))
