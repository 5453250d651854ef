"""Sphinx extension: a page loads one style sheet and one script, which hold what the book uses, and icons by the dozen.

The themes give every page a dozen style sheets and as many scripts, most of them before anything is drawn, two thousand
icons as a script and again as fonts, and MathJax where there is no formula.
"""

import logging
import posixpath
import re
from functools import cache
from hashlib import sha256
from io import BytesIO
from pathlib import Path

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont

logging.getLogger("fontTools").setLevel(logging.WARNING)  # it tells of every table that it prunes

TAG = re.compile(r'\s*(?:<link\b[^>]*\brel="(?:stylesheet|preload)"[^>]*>|<script\b[^>]*>.*?</script>)', re.DOTALL)
PLACE = re.compile(r'\b(?:href|src)="((?:\.\./)*)_static/([^"?]+)')
INDEX = re.compile(r'<script src="[./]*searchindex\.js"></script>')
URL = re.compile(r"""url\((["']?)(?!data:|https?:|#)([^)"']+)\1\)""")
IMPORT = re.compile(r"""@import (["'])([^"']+)\1;""")
ICON = re.compile(r'(?:\.fa-[\w-]+:before,?)+\{content:"[^"]*"\}')
WEBFONT = re.compile(r'url\([^)]*?([^/)]+)\.woff2\) format\("woff2"\),url\(([^)]+\.ttf)\) format\("truetype"\)')

UNUSED = (
    *("scripts/fontawesome.js", "sphinx-thebe.", "design-tabs.js", "togglebutton.", "let toggle", 'rel="preload"'),
    *("THEBE_JS_URL", "text/x-thebe-config", "kernelName"),
)
# The first of a bundle: others call these as soon as they are read, for the page itself has been read by then.
FIRST = ("menus.js", "doctools.js", "language_data.js", "searchtools.js")
AT_ONCE = "documentation_options.js"  # scripts in the page add to what it defines
TAGS = {".css": '<link rel="stylesheet" href="{}" />', ".js": '<script defer src="{}"></script>'}
MARK = "\0"


class Bundles:
    """The files of a site that its pages load together.

    Parameters
    ----------
    static : Path
        The folder of the files.
    icons : set of str
        The names of the icons in the pages.
    """

    def __init__(self, static, icons):
        self.static, self.icons = static, icons
        self.bundle = cache(self._bundle)

    def _bundle(self, names):
        """Store the files `names` as one, called after its content, and return its name."""
        kind = Path(names[0]).suffix
        places = dict(zip(FIRST, range(-len(FIRST), 0), strict=True))
        text = "\n".join(map(self.read, sorted(names, key=lambda name: places.get(name, 0))))
        if kind == ".css":
            text = WEBFONT.sub(lambda font: self.subset(*font.groups(), text), text)
        name = f"bundle.{sha256(text.encode()).hexdigest()[:12]}{kind}"
        (self.static / name).write_text(text, encoding="utf-8")
        return name

    def read(self, name):
        """Return a part of a bundle: addresses begin in the folder of all, and icons that no page has are left out."""
        text = (self.static / name).read_text(encoding="utf-8")
        if not name.endswith(".css"):
            return f";{text};"  # a part that is strict in its first line makes no other part strict

        def place(found):
            return posixpath.normpath(posixpath.join(posixpath.dirname(name), found[2]))

        text = URL.sub(lambda found: f"url({place(found)})", text)
        text = IMPORT.sub(lambda found: self.read(place(found)), text)
        return ICON.sub(
            lambda rule: rule[0] if self.icons.intersection(re.findall(r"fa-[\w-]+", rule[0])) else "", text
        )

    def subset(self, name, place, style):
        """Store a font with the icons that the `style` uses, and return its address."""
        used = {int(code, 16) for code in re.findall(r"\\([ef][0-9a-f]{3})", style)}
        used |= {ord(sign) for sign in style if 0xE000 <= ord(sign) < 0xF900}
        font = TTFont(self.static / place)
        subsetter = Subsetter(Options(layout_features=[]))
        subsetter.populate(unicodes=used)
        subsetter.subset(font)
        font.flavor = "woff"
        stored = BytesIO()
        font.save(stored)
        (self.static / f"{name}.woff").write_bytes(stored.getvalue())
        return f'url({name}.woff) format("woff")'

    def lighten(self, page):
        """Return a page that loads the bundles, where it loaded the first file of their kind.

        What stands in the page itself stays, except for what has no use in it; so do scripts with a type, the modules.
        """
        loaded = {".css": [], ".js": []}
        formulas = 'class="math' in page

        def replace(tag):
            place = PLACE.search(tag[0])
            mathematics = "mathjax" in tag[0].lower()
            if any(word in tag[0] for word in UNUSED) or mathematics and not formulas:
                return ""
            if not place or mathematics or 'type="module"' in tag[0]:
                return tag[0]
            if place[2] == AT_ONCE:
                return f"<script>{(self.static / AT_ONCE).read_text(encoding='utf-8')}</script>"
            names = loaded[Path(place[2]).suffix]
            if place[2] in names:
                return ""
            names.append(place[2])
            return f"{MARK}{place[1]}{Path(place[2]).suffix}{MARK}" if len(names) == 1 else ""

        def load(mark):
            root, kind = mark.groups()
            return TAGS[kind].format(f"{root}_static/{self.bundle(tuple(loaded[kind]))}")

        return re.sub(rf"{MARK}([./]*?)(\.css|\.js){MARK}", load, TAG.sub(replace, page))


def pages_of(site):
    """Return the paths of the pages of a site; in _static the themes have templates."""
    return [path for path in site.rglob("*.html") if "_static" not in path.parts]


def lighten_pages(app, exception):
    """Rewrite the pages of a site."""
    if exception or app.builder.name != "html":
        return
    folder = Path(app.outdir)
    pages = {path: path.read_text(encoding="utf-8") for path in pages_of(folder)}
    icons = {icon for page in pages.values() for icon in re.findall(r"\bfa-[\w-]+", page)}
    bundles = Bundles(folder / "_static", icons)
    for path, page in pages.items():
        lighter = bundles.lighten(page)
        # the page of results reads the index; any other, when somebody reaches for the search
        read = '<script defer src="searchindex.js"></script>' if path.name == "search.html" else ""
        path.write_text(INDEX.sub(read, lighter), encoding="utf-8")


def setup(app):
    """Work on the finished pages, after the theme, which writes its colours of code when all is built."""
    app.connect("build-finished", lighten_pages, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
