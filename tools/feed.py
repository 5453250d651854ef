"""Sphinx extension: an Atom feed of the changelog, with an entry for each of its versions."""

import re
from datetime import date
from pathlib import Path
from urllib.parse import quote, urljoin
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from docutils import nodes
from page_head import changed

PAGE, SOURCE, FEED = "book/changelog", "CHANGELOG.md", "feed.xml"


def moment(heading):
    """Return when a version came out, which its heading says; of one that has not, when the changelog last changed.

    Examples
    --------
    >>> moment("0.2.0 (2027-01-05)")
    '2027-01-05T00:00:00Z'
    """
    released = re.search(r"\d{4}-\d\d-\d\d", heading)
    return f"{released[0] if released else changed().get(SOURCE, date.today().isoformat())}T00:00:00Z"


def atom(title, author, root, versions):
    """Return a feed as XML.

    Parameters
    ----------
    title, author : str
        Of the book.
    root : str
        The address of the site, which ends with a slash.
    versions : list of (str, str)
        The heading of each version, and what it brings, as HTML.
    """
    page = urljoin(root, f"{PAGE}.html")
    feed = Element("feed", xmlns="http://www.w3.org/2005/Atom")

    def add(parent, name, text=None, **attributes):
        element = SubElement(parent, name, attributes)
        element.text = text
        return element

    add(feed, "id", page)
    add(feed, "title", f"Changelog – {title}")
    add(feed, "updated", max(moment(heading) for heading, _ in versions))
    add(add(feed, "author"), "name", author)
    add(feed, "link", rel="self", href=urljoin(root, FEED))
    add(feed, "link", href=page)
    for heading, html in versions:
        entry = add(feed, "entry")
        add(entry, "id", f"{page}#{quote(heading)}")  # another one at the release: readers show it as new
        add(entry, "title", heading)
        add(entry, "updated", moment(heading))
        add(entry, "link", href=page)
        add(entry, "content", html, type="html")
    indent(feed)
    return tostring(feed, encoding="utf-8", xml_declaration=True)


def write_feed(app, error):
    """Write the feed of a site."""
    if error is None and app.builder.name == "html":
        page = next(app.env.get_doctree(PAGE).findall(nodes.section))
        sections = [part for part in page if isinstance(part, nodes.section)]
        render = app.builder.render_partial
        bodies = ("".join(render(part)["fragment"] for part in section[1:]) for section in sections)
        versions = list(zip((section[0].astext() for section in sections), bodies, strict=True))
        config = app.config
        feed = atom(config.html_title, config.author, config.html_baseurl.rstrip("/") + "/", versions)
        Path(app.outdir, FEED).write_bytes(feed)


def announce(app, name, template, context, page):
    """Tell the readers of feeds where it is."""
    place = context["pathto"](FEED, resource=True)
    link = f'<link rel="alternate" type="application/atom+xml" title="Changelog" href="{place}" />'
    context["metatags"] = f"{context.get('metatags', '')}\n{link}"


def setup(app):
    """Connect it."""
    app.connect("html-page-context", announce)
    app.connect("build-finished", write_feed)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
