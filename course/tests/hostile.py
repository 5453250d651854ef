"""Submissions that mean harm, by what has to hold. Each sees OUTSIDE, a folder with treasures, SOLUTIONS,
a PORT that somebody listens at, and a number SECONDS. `hostile.yml` has their code.

`FILES` do their harm while they are read, before any of their code runs. Most others do it when they are imported and
have no denoiser: they deserve nothing, and what counts is what they leave behind. Those with a denoiser are changes of
a right or of a worthless one.
"""

import json
import subprocess
import zipfile
from pathlib import Path

import yaml

BANK = yaml.safe_load(Path(__file__).with_suffix(".yml").read_text(encoding="utf-8"))
RIGHT = "a right solution"

START = """
import os, sys, subprocess, socket, signal, time, threading
OUTSIDE, SOLUTIONS, PORT, SECONDS = {outside!r}, {solutions!r}, {port}, {seconds!r}
"""
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
    """Make a folder with more than a thousand in one another, which Python's own functions, that recurse, cannot."""
    subprocess.run(["mkdir", "-p", path / "/".join(["d"] * 1100)], check=True)


def write_files(folder, right):
    """Write `FILES`, and a folder that is too deep."""
    for name, (files, _) in FILES.items():
        with zipfile.ZipFile(folder / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for path, text in files.items():
                archive.writestr(path, right if text == RIGHT else text)
    make_deep(folder / "deep")
    return {name: told for name, (_, told) in FILES.items()} | {"deep": "more than 8 deep"}
