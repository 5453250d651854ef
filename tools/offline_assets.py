"""Sphinx extension: where pages load MathJax and the widgets from; with OFFLINE=1, from beside them.

`make` fetches these into .offline: the packages, in exact versions, of tools/offline/package-lock.json.
"""

import os
import shutil
from pathlib import Path

PACKAGES = Path(__file__).parents[1] / ".offline/node_modules"

WIDGETS = "@jupyter-widgets/html-manager"

# What a page can ask for, out of much more: English for those who have formulas read to them, fonts of one format.
FILES = {
    "mathjax/es5": (
        "tex-mml-chtml.js",
        "a11y/*.js",
        "input/tex/extensions/*.js",
        "output/chtml/fonts/woff-v2/*.woff",
        *(f"sre/mathmaps/{name}.json" for name in ("base", "en", "nemeth")),
    ),
    "requirejs": ("require.js",),
    f"{WIDGETS}/dist": ("embed-amd.js", "*.woff2"),
}


def place_of_widgets(url):
    """Return the script that tells require.js where the widgets are: there they look for their fonts.

    Examples
    --------
    >>> place_of_widgets("'here'")
    {'': {'body': "var require = { paths: { '@jupyter-widgets/html-manager': 'here' } }"}}
    """
    return {"": {"body": f"var require = {{ paths: {{ '{WIDGETS}': {url} }} }}"}}


def load_from_other_hosts(app, config):
    """Keep the addresses that are set, and name the place of the widgets' fonts."""
    place = next(url for url in config.nb_ipywidgets_js if WIDGETS in url).split("/dist/")[0]
    config.nb_ipywidgets_js = place_of_widgets(f"'{place}'") | config.nb_ipywidgets_js


def load_local_copies(app, config):
    """Point the settings that name other hosts at the copies."""
    config.mathjax_path = "offline/mathjax/es5/tex-mml-chtml.js"
    config.nb_ipywidgets_js = {
        **place_of_widgets(f"document.documentElement.dataset.content_root + '_static/offline/{WIDGETS}'"),
        "offline/requirejs/require.js": {},
        f"offline/{WIDGETS}/dist/embed-amd.js": {},
    }


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
    else:
        app.connect("config-inited", load_from_other_hosts)
    return {"parallel_read_safe": True}
