"""Fetch the wheels of Pyodide that pages without network load, into .offline/wheels.

    python tools/fetch_wheels.py

They come from the folder that AMPTUTORIAL_WHEELS names, else from Pyodide's own place on jsDelivr, and each must have
the hash that the lock file of Pyodide states; npm has fetched that. Without them the cells of an offline copy do not
run: in continuous integration that is an error.
"""

import hashlib
import json
import os
import re
import shutil
import sys
from pathlib import Path
from urllib.request import urlopen

ROOT = Path(__file__).parents[1]
RUNTIME = ROOT / ".offline/node_modules/pyodide"
WHEELS = ROOT / ".offline/wheels"
VERSION = json.loads((ROOT / "tools/offline/package.json").read_text())["dependencies"]["pyodide"]
URL = f"https://cdn.jsdelivr.net/pyodide/v{VERSION}/full/"
LIBRARIES = ("numpy", "scipy", "matplotlib", "scikit-learn", "sympy")


def canonical(name):
    """Return the name of a package as the lock file writes it.

    Examples
    --------
    >>> canonical("Python_dateutil")
    'python-dateutil'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def wheels_of(names):
    """Return the hash of each wheel that these packages of Pyodide need, by the name of its file."""
    packages = json.loads((RUNTIME / "pyodide-lock.json").read_text())["packages"]
    needed, left = {}, [*names]
    while left:
        package = packages[canonical(left.pop())]
        if package["file_name"] not in needed:
            needed[package["file_name"]] = package["sha256"]
            left += package["depends"]
    return needed


def fetch(name, sha256):
    """Put one wheel into WHEELS, unless it is there.

    Raises
    ------
    OSError
        If it cannot be had, or has another hash.
    """
    target, given = WHEELS / name, os.environ.get("AMPTUTORIAL_WHEELS")
    if target.is_file():
        return
    data = Path(given, name).read_bytes() if given else urlopen(URL + name, timeout=20).read()
    if hashlib.sha256(data).hexdigest() != sha256:
        raise OSError(f"{name} does not have the hash that Pyodide {VERSION} states")
    WHEELS.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(".part")
    part.write_bytes(data)
    shutil.move(part, target)


def main():
    """Fetch all wheels, and return the exit status."""
    try:
        for name, sha256 in wheels_of(LIBRARIES).items():
            fetch(name, sha256)
    except OSError as error:
        print(f"No wheels of Pyodide ({error}): the cells of offline pages cannot run.", file=sys.stderr)
        print("Set AMPTUTORIAL_WHEELS to a folder that holds them.", file=sys.stderr)
        return int("CI" in os.environ)
    return 0


if __name__ == "__main__":
    sys.exit(main())
