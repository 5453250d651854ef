"""Sphinx extension: pictures of experiments, which lie in the pages of a notebook, become files fetched when needed."""

import re
from base64 import b64decode
from hashlib import sha256
from pathlib import Path

# Whole pictures only: the source of the package, which is a page too, has the words without one.
EMBEDDED = re.compile(r'src="data:image/png;base64,([A-Za-z0-9+/]+={0,2})"')


def move_pictures(app, pagename, templatename, context, doctree):
    """Store each picture once, under the name of its content; a picture that is not shown is not fetched."""

    def move(match):
        png = b64decode(match[1])
        name = f"_images/{sha256(png).hexdigest()[:20]}.png"
        target = Path(app.outdir, name)
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(png)
        return f'src="{context["pathto"](name, resource=True)}" loading="lazy"'

    if "body" in context:
        context["body"] = EMBEDDED.sub(move, context["body"])


def setup(app):
    """Work on the finished pages."""
    app.connect("html-page-context", move_pictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
