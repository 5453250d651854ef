"""Submissions that mean harm, by what has to hold. Each sees OUTSIDE, a folder with treasures, SOLUTIONS,
a PORT that somebody listens at, and a number SECONDS.

`FILES` do their harm while they are read, before any of their code runs. Most others do it when they are imported and
have no denoiser: they deserve nothing, and what counts is what they leave behind. Those with a denoiser are changes of
a right or of a worthless one.
"""

import json
import os
import zipfile

RIGHT = "a right solution"

START = """
import os, sys, subprocess, socket, signal, time, threading
OUTSIDE, SOLUTIONS, PORT, SECONDS = {outside!r}, {solutions!r}, {port}, {seconds!r}
"""
# At the import: what the container refuses.
REFUSED = {
    "reads a file": "print(open(OUTSIDE + '/secret.txt').read())",
    "reads by a link": "os.symlink(OUTSIDE + '/secret.txt', 'mine'); print(open('mine').read())",
    "reads by a hard link": "os.link(OUTSIDE + '/secret.txt', 'mine'); print(open('mine').read())",
    "reads by the root of a process": "print(open('/proc/self/root' + OUTSIDE + '/secret.txt').read())",
    "reads the other submissions": "print(open(OUTSIDE + '/submissions/neighbour/denoiser.py').read())",
    "imports from outside": "sys.path.insert(0, OUTSIDE); import treasure",
    "removes the table": "os.remove(OUTSIDE + '/grades.csv')",
    "removes a folder": "import shutil; shutil.rmtree(OUTSIDE)",
    "leaves shared memory by the library": """
from multiprocessing import shared_memory
shared_memory.SharedMemory('hostile_left', create=True, size=9)
os._exit(0)""",
    "leaves a semaphore": "import _multiprocessing as m; m.SemLock(1, 1, 1, '/hostile_left', False)",
    "leaves a named pipe": "os.mkfifo(OUTSIDE + '/pipe')",
    "becomes another program": "os.execv('/bin/sleep', ['sleep', str(SECONDS)])",
    "forks without end": "while True:\n    os.fork()",
    "uses the C library": "import ctypes; ctypes.CDLL(None).system(f'sleep {SECONDS} &'.encode())",
    "kills all": "os.kill(-1, signal.SIGKILL)",
    "stops the judge": "os.kill(os.getppid(), signal.SIGSTOP)",
    "kills by a descriptor": "signal.pidfd_send_signal(os.pidfd_open(os.getppid()), signal.SIGKILL)",
    "lifts its limits": "import resource; resource.setrlimit(resource.RLIMIT_AS, (-1, -1)); print('SECRET')",
    "reads the environment of the judge": "print('SECRET' * ('PATH=' in open(f'/proc/{os.getppid()}/environ').read()))",
    "reads the memory of the judge": "print('SECRET', open(f'/proc/{os.getppid()}/mem', 'rb').read(1))",
    "imports the grader": "import amptutorial_course.grading.judge; print('SECRET')",
    "imports the assignments": "import amptutorial_course.assignments; print('SECRET')",
}
# At the import, by native code and beside Python.
NATIVE = {
    "HiGHS overwrites the table": """
from scipy.optimize._highspy import _core
_core._Highs().writeOptions(OUTSIDE + '/grades.csv')""",
    "HiGHS writes a start of Python": """
from scipy.optimize._highspy import _core
solver = _core._Highs()
solver.setOptionValue('log_file', OUTSIDE + '/new.pth')
solver.writeOptions(OUTSIDE + '/new.pth')""",
    "reads by the root of process 1": "print(open('/proc/1/root' + OUTSIDE + '/secret.txt').read())",
    "changes the libraries": "import numpy; open(os.path.dirname(numpy.__file__) + '/hostile.pth', 'w').write('#')",
    "changes the worker": "import amptutorial_worker; open(amptutorial_worker.__file__, 'a').write('# hostile')",
    "reads the solutions": "print('SECRET', os.listdir(SOLUTIONS))",
    "leaves a file in shared memory": "open('/dev/shm/hostile_left', 'w').write('x' * 99)",
    "leaves a temporary file": "open('/tmp/hostile_left', 'w').write('x' * 99)",
    "fills the disk": "[open(f'/tmp/{k}', 'wb').write(bytes(2**17)) for k in range(10**5)]",
    "mounts": "import ctypes; ctypes.CDLL(None).mount(b'none', b'/usr', b'tmpfs', 0, 0) or print('SECRET')",
}
# At the import: what the process does to itself, to its output or to its messages.
ENDINGS = {
    "leaves at once": "os._exit(0)",
    "aborts": "os.abort()",
    "signals itself": "signal.raise_signal(signal.SIGKILL)",
    "ends by a wrong address": "import numpy; exec(CRASH)",
    "recurses in C": "import pickle; x = []\nfor _ in range(10**6): x = [x]\npickle.dumps(x); repr(x)",
    "takes all threads": "[threading.Thread(target=time.sleep, args=(SECONDS,)).start() for _ in range(10**5)]",
    "leaves a thread": "threading.Thread(target=time.sleep, args=(SECONDS,)).start()",
    "leaves at exit": "import atexit; atexit.register(time.sleep, SECONDS)",
    "closes everything": "os.closerange(0, 99)",
    "prints without end": "[print('x' * 10**6) for _ in range(300)]",
    "prints below Python": "[os.write(2, b'x' * 10**5) for _ in range(300)]",
    "raises markup": "raise ValueError('<script>alert(1)</script>=1+1\\n| a | \\ud800 \\x00 \\x1b[2J')",
    "raises what cannot be shown": """
class Silent(Exception):
    def __str__(self):
        raise SystemExit(0)
raise Silent""",
    "raises a megabyte": "raise ValueError('x' * 10**6)",
    "raises an odd syntax error": "raise SyntaxError('odd', (1, [], object, b''))",
    "has an odd prediction": "PREDICTION = 10**100_000",
    "has a hostile prediction": """
class Number(float):
    def __array__(self, *arguments, **named):
        os._exit(0)
PREDICTION = Number(0.5)""",
    "has a hostile class": """
class Meta(type):
    def __instancecheck__(cls, other):
        return True
    def __getattribute__(cls, name):
        os._exit(3)
class RidgeByHand(metaclass=Meta):
    pass""",
    **{
        f"sends {name}": f"[os.write(n, {frame}) for n in range(3, 9) if sockets(n)]"
        for name, frame in {
            "noise": "b'noise' * 99",
            "a made-up answer": 'framed(b\'{"prediction": 0.5, "overrides": 7, "object": []}\')',
            "an error that is none": 'framed(b\'{"error": [[]], "traceback": {}, "line": true}\')',
        }.items()
    },
}
TOOLS = """
import stat, struct
def sockets(number):
    try:
        return stat.S_ISSOCK(os.fstat(number).st_mode)
    except OSError:
        return False
def framed(header, body=b""):
    return struct.pack(">II", len(header), len(body)) + header + body
CRASH = '''
class Nowhere:
    __array_interface__ = {"data": (8, False), "shape": (1,), "typestr": "<u8", "version": 3}
numpy.asarray(Nowhere())[0]
'''
"""
# When asked: (method of a right solution, its new body, the checks that it may not pass).
ANSWERS = {
    "a large Jacobian": ("mean_jacobian", "return np.eye(1200)", {"jacobian", "jacobian_symmetric"}),
    "a large estimate": ("estimate", "return np.zeros((1200, 1200))", {"optimality", "limits", "shapes"}),
    "an estimate of other rows": ("estimate", "return np.zeros((len(P), 99))", {"optimality", "limits", "shapes"}),
    "an estimate that is not finite": ("estimate", "return np.full(P.shape, np.nan)", {"optimality", "limits"}),
    "objects": ("estimate", "return np.array([[self] * P.shape[1]] * len(P))", {"optimality", "limits", "shapes"}),
    "an array of its own kind": (
        "estimate",
        """
class Equal(np.ndarray):
    def __eq__(self, other):
        return True
    def __array_ufunc__(self, *arguments, **named):
        return True
return np.zeros(P.shape).view(Equal)""",
        {"optimality", "limits"},
    ),
    "an exchanged worker": (
        "estimate",
        """
import sys
frame = sys._getframe()
while frame is not None:
    for value in [*frame.f_globals.values(), *frame.f_locals.values()]:
        if type(value).__name__ == "Worker":
            type(value).call = lambda *arguments: {"result": True, "changed": {}}
    frame = frame.f_back
return 0 * P""",
        {"optimality", "limits"},
    ),
}


def notebook(code):
    return json.dumps({"cells": [{"cell_type": "code", "source": code}]})


# Archives, by what is in them, and what each is told.
CODE = "class RidgeByHand(Denoiser):\n    x = 1\n"
FILES = {
    "a bomb": ({f"{k}/n.ipynb": " " * 2**20 for k in range(30)}, "larger than 20 MB"),
    "deep in an archive": ({"a/" * 1100 + "denoiser.py": RIGHT}, "more than 8 deep"),
    "a pattern of quadratic time": ({"denoiser.py": "class A(\n" * 25_000}, "no class RidgeByHand|SyntaxError"),
    "the same without a line's end": ({"mine.py": "class A(" * 30_000, "b.py": "class A(" * 30_000}, "which file"),
    "a file in a file": ({"denoiser.py": RIGHT, "denoiser.py/x.py": ""}, "cannot be imported: IsADirectoryError"),
    "a helper in a helper": ({"denoiser.py": RIGHT, "a.py": "", "a.py/b.py": ""}, "imported: FileExistsError"),
    "a long name": ({"denoiser.py": RIGHT, "x" * 300 + ".py": ""}, "cannot be imported: OSError: .*name too long"),
    "long names": ({"denoiser.py": RIGHT} | {"x" * 60_000 + f"{k}.py": "" for k in range(3)}, "too long to be sent"),
    "a notebook of nothing": ({"n.ipynb": '{"RidgeByHand": [' + "{}," * 6 * 10**6 + "0]}"}, "cannot be read"),
    "much code": ({f"{k}.ipynb": notebook(CODE + "a = 1;" * 150_000) for k in range(20)}, "reading took more than"),
    "deep code": ({"n.ipynb": notebook(CODE + "y = " + "-" * 200_000 + "1")}, "cannot be imported: MemoryError"),
    "deep values": ({"n.ipynb": '{"RidgeByHand": ' + "[" * 10**5}, "the notebook cannot be read"),
}


def make_deep(path):
    """Make a folder with more than a thousand in one another, which Python's own functions cannot remove."""
    path.mkdir()
    start = os.getcwd()
    os.chdir(path)
    for _ in range(1100):
        os.mkdir("d")
        os.chdir("d")
    os.chdir(start)


def write_files(folder, right):
    """Write `FILES`, and a folder that is too deep."""
    for name, (files, _) in FILES.items():
        with zipfile.ZipFile(folder / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for path, text in files.items():
                archive.writestr(path, right if text == RIGHT else text)
    make_deep(folder / "deep")
    return {name: told for name, (_, told) in FILES.items()} | {"deep": "more than 8 deep"}
