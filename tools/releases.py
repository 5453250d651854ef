"""Lay the pages of the releases beside those of main: each under its tag, those of the newest under `stable` too.

    python tools/releases.py

Each release keeps its pages in `site.tar.gz`; `gh` fetches them. Without a release nothing is done.
"""

import json
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

SITE = Path(__file__).parents[1] / "_build/html"
KEPT = 10  # releases, of some 100 MB each


def lay(archive, target):
    """Put the pages that an archive has under ``_build/html`` into a new folder.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "_build/html").mkdir(parents=True)
    >>> (folder / "_build/html/index.html").touch()
    >>> with tarfile.open(folder / "site.tar.gz", "w:gz") as file:
    ...     file.add(folder / "_build/html", "_build/html")
    >>> lay(folder / "site.tar.gz", folder / "site/v3.2.1")
    >>> [path.name for path in (folder / "site/v3.2.1").iterdir()]
    ['index.html']
    """
    with tempfile.TemporaryDirectory() as name, tarfile.open(archive) as file:
        file.extractall(name, filter="data")
        shutil.copytree(Path(name, "_build/html"), target)


def main():
    """Fetch the pages of the newest releases."""
    command = ["gh", "release", "list", "--exclude-drafts", "--exclude-pre-releases", "--limit", str(KEPT)]
    listed = subprocess.check_output([*command, "--json", "tagName,isLatest"], text=True)
    for release in json.loads(listed):
        with tempfile.TemporaryDirectory() as name:
            archive, tag = Path(name, "site.tar.gz"), release["tagName"]
            subprocess.run(["gh", "release", "download", tag, "--pattern", archive.name, "--dir", name], check=True)
            for place in [tag, "stable"] if release["isLatest"] else [tag]:
                lay(archive, SITE / place)


if __name__ == "__main__":
    main()
