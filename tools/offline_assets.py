"""Sphinx extension: with OFFLINE=1, pages load MathJax from beside them.

`make` fetches these into .offline: the packages, in exact versions, of tools/offline/package-lock.json.
"""

import os
import shutil
from pathlib import Path

PACKAGES = Path(__file__).parents[1] / ".offline/node_modules"

# What a page can ask for, out of much more: English for those who have formulas read to them, fonts of one format.
FILES = {
    "mathjax/es5": (
        "tex-mml-chtml.js",
        "a11y/*.js",
        "input/tex/extensions/*.js",
        "output/chtml/fonts/woff-v2/*.woff",
        *(f"sre/mathmaps/{name}.json" for name in ("base", "en", "nemeth")),
    ),
}


def load_local_copies(app, config):
    """Point the setting that names another host at the copy."""
    config.mathjax_path = "offline/mathjax/es5/tex-mml-chtml.js"


def copy_files(app):
    """Copy the files into the site."""
    for folder, patterns in FILES.items():
        for pattern in patterns:
            for source in (PACKAGES / folder).glob(pattern):
                target = Path(app.outdir, "_static/offline", source.relative_to(PACKAGES))
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)


def setup(app):
    """Copy nothing unless asked: the published book stays small, and `make site` needs no npm."""
    if os.environ.get("OFFLINE") == "1":
        app.connect("config-inited", load_local_copies)
        app.connect("builder-inited", copy_files)
    return {"parallel_read_safe": True}
