"""Sphinx extension: every picture of a page has its size, so that what stands below it keeps its place."""

import re
from functools import cache
from pathlib import Path

from PIL import Image

UNSIZED = re.compile(r'<img\b(?![^>]*\bwidth=)([^>]*?\bsrc="[^"]*?_images/([^"/]+)"[^>]*?)(\s*/?>)')
PIXELS = {"": 1, "px": 1, "pt": 4 / 3}  # of a unit


@cache
def size_of(path):
    """Return the width and height of a picture in pixels of a page.

    Parameters
    ----------
    path : Path
        An SVG, whose root has them or a viewBox, or any picture that Pillow reads.
    """
    if path.suffix != ".svg":
        with Image.open(path) as picture:
            return picture.size
    root = re.search(r"<svg\b[^>]*>", path.read_text(encoding="utf-8"))[0]
    sides = [re.search(rf'\s{side}="([\d.]+)(px|pt|)"', root) for side in ("width", "height")]
    if all(sides):
        return tuple(round(float(side[1]) * PIXELS[side[2]]) for side in sides)
    return tuple(round(float(side)) for side in re.search(r'viewBox="([^"]+)"', root)[1].split()[2:])


def add_sizes(app, pagename, templatename, context, doctree):
    """Write the sizes of pictures that have none."""
    files = {name: Path(app.srcdir, source) for source, name in app.builder.images.items()}

    def add(match):
        source = files.get(match[2])
        if not source:
            return match[0]
        width, height = size_of(source)
        return f'<img{match[1]} width="{width}" height="{height}"{match[3]}'

    if "body" in context:
        context["body"] = UNSIZED.sub(add, context["body"])


def setup(app):
    """Work on the finished pages."""
    app.connect("html-page-context", add_sizes)
    return {"parallel_read_safe": True}
