"""Sphinx extension: what search engines and other sites are told of each page, and which version it is of.

Descriptions stand in the metadata of chapters and in book/descriptions.yml; a page without one has its first paragraph
without mathematics. `book/root` has the files that are copied as they are: the first page, which leads on, what is
shown for a page that is missing, and what robots may read.
"""

import re
import shutil
import subprocess
from functools import cache
from html import escape
from pathlib import Path
from textwrap import shorten
from urllib.parse import urljoin

import yaml
from chapters import chapters
from docutils import nodes
from render_pages import source_of

from amptutorial import __version__

ROOT = Path(__file__).parents[1]
LENGTH = 200  # letters of a description that search engines show
DESCRIPTIONS = yaml.safe_load((ROOT / "book/descriptions.yml").read_text(encoding="utf-8"))
DESCRIPTIONS |= {each["name"]: each["description"] for each in chapters()}
# The first page is shared by its stripes, the others by the forecast.
PICTURES = {
    "book/intro": ("stripes.png", "Dots for counts; true associations, as stripes; those found by AMP."),
}
FORECAST = "social.png", "Predicted and measured errors against the strength of the signal."
# The theme asks for the storage of browsers, which some readers forbid: then a map stands in for it.
STORAGE = """<script>
  for (const name of ["localStorage", "sessionStorage"]) {
    try { window[name].setItem("tried", ""); } catch {
      const kept = new Map();
      const getItem = (key) => kept.get(key) ?? null;
      const value = { getItem, setItem: (key, text) => kept.set(key, text), removeItem: (key) => kept.delete(key) };
      Object.defineProperty(window, name, { value });
    }
  }
</script>"""


def describe(page):
    """Return the first paragraph that stands in the text itself and holds no formula, or nothing.

    Examples
    --------
    >>> formula = nodes.paragraph("", "", nodes.Text("Let "), nodes.math("", "x"))
    >>> describe(nodes.section("", formula, nodes.paragraph("", "Counts are small.")))
    'Counts are small.'
    """
    paragraphs = (each for each in page.findall(nodes.paragraph) if isinstance(each.parent, nodes.section))
    plain = (each.astext() for each in paragraphs if not any(each.findall(nodes.math)))
    return shorten(next(plain, ""), LENGTH, placeholder=" …")


def tags(name, title, description, root):
    """Return the elements of the page's head, as HTML."""
    picture, alt = PICTURES.get(name, FORECAST)
    said = {"og:title": title, "og:description": description, "og:url": urljoin(root, f"{name}.html")}
    said |= {"og:type": "website", "og:image": urljoin(root, f"_static/{picture}"), "og:image:alt": alt}
    lines = [f'<meta property="{name}" content="{escape(text)}" />' for name, text in said.items() if text]
    named = {"description": description, "twitter:card": "summary_large_image"}
    return lines + [f'<meta name="{name}" content="{escape(text)}" />' for name, text in named.items() if text]


def add_tags(app, name, template, context, page):
    """Describe a page of the book, and the search, which has no text of its own."""
    icon = context["pathto"]("_static/icon.png", resource=True)
    lines = [
        f'<link rel="icon" type="image/png" sizes="180x180" href="{icon}" />',
        f'<link rel="apple-touch-icon" href="{icon}" />',
        STORAGE,
    ]
    if page is not None:
        root = app.config.html_baseurl.rstrip("/") + "/"
        title = " – ".join(dict.fromkeys([app.env.titles[name].astext(), app.config.html_title]))
        description = DESCRIPTIONS.get(name.removeprefix("book/")) or describe(page)
        lines += tags(name, title, description, root)
    elif name in DESCRIPTIONS:
        lines.append(f'<meta name="description" content="{escape(DESCRIPTIONS[name])}" />')
    context["metatags"] = "\n".join([context.get("metatags", ""), *lines])


def start_at_release(app, name, template, context, page):
    """Let Binder and Colab open the tag of the version: of a branch, Binder would make an image after every change."""
    branch = app.config.html_theme_options["repository_branch"]
    for group in context.get("header_buttons", ()):
        if group.get("label") == "launch-buttons":
            for button in group["buttons"]:
                button["url"] = button["url"].replace(f"/{branch}", f"/v{__version__}", 1)


def edit_the_source(app, name, template, context, page):
    """Let "Suggest edit" lead from a page that is made to what it is made of."""
    buttons = (button for group in context.get("header_buttons", ()) for button in group.get("buttons", ()))
    for button in buttons:
        if button.get("label") == "source-edit-button":
            button["url"] = button["url"].replace(f"{name}.md", source_of(name))


def ahead(changelog):
    r"""Return whether the first version of a changelog comes after this one.

    Examples
    --------
    >>> ahead(f"## {__version__} (2027-01-05)"), ahead(f"## 99.0.0 (unreleased)\n## {__version__} (2027-01-05)")
    (False, True)
    """
    return re.search(r"^## (\S+)", changelog, re.MULTILINE)[1] != __version__


def add_version(app, config):
    """Say at the foot of every page which version it describes, and at its head if it is ahead of this version."""
    options = config.html_theme_options
    options["extra_footer"] += f" Version {__version__}."
    if ahead((ROOT / "CHANGELOG.md").read_text(encoding="utf-8")):
        stable = f'<a href="{config.html_baseurl.rstrip("/")}/stable/">of its own</a>'
        opened = f"version {__version__}, which Binder and Colab open and which has pages {stable}"
        options["announcement"] = f"This page is ahead of {opened}."


@cache
def changed():
    """Return on which day each file of the repository last changed; a copy without its history does not know."""
    if shutil.which("git") is None:
        return {}
    # in a container the copy may belong to another user, which git would not read
    command = ["git", "-c", f"safe.directory={ROOT}", "log", "--format=%x00%cs", "--name-only"]
    log = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    days = {}
    for commit in log.stdout.split("\0")[1:]:
        day, *files = commit.split("\n")
        for file in files:
            days.setdefault(file, day)  # the newest commit comes first
    return days


def row(app, name):
    """Return what the sitemap says of a page."""
    day = changed().get(app.env.doc2path(name, base=False)) or changed().get(source_of(name))
    known = f"<lastmod>{day}</lastmod>" if day else ""
    return f"<url><loc>{app.config.html_baseurl.rstrip('/')}/{name}.html</loc>{known}</url>\n"


def write_sitemap(app, error):
    """List the pages of the book for search engines."""
    if error is None and app.builder.name == "html":
        rows = "".join(row(app, name) for name in sorted(app.env.found_docs))
        text = f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{rows}</urlset>\n'
        Path(app.outdir, "sitemap.xml").write_text(f'<?xml version="1.0" encoding="UTF-8"?>\n{text}', encoding="utf-8")


def setup(app):
    """Connect them."""
    app.connect("config-inited", add_version)
    app.connect("html-page-context", add_tags)
    app.connect("html-page-context", start_at_release, priority=900)  # after the theme, which makes the buttons
    app.connect("html-page-context", edit_the_source, priority=900)
    app.connect("build-finished", write_sitemap)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
