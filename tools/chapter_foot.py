"""Sphinx extension: at the foot of a chapter, how to cite it and where to ask about it."""

import re
from html import escape
from urllib.parse import urlencode

from amptutorial import __version__

CHAPTER = re.compile(r"book/(\d\d)_\w+$")
ENTRY = """@incollection{{amptutorial:{key},
  title     = {{{title}}},
  chapter   = {{{number}}},
  author    = {{{{{author}}}}},
  booktitle = {{{book}}},
  year      = {{{year}}},
  note      = {{Version {version}}},
  url       = {{{url}}}
}}"""


def foot(entry, question):
    """Return the foot as HTML: a fold with an entry for BibTeX, and a link to a place for questions.

    Examples
    --------
    >>> print(foot("@misc{a<b}", "https://example.org/new?a=b&c=d"))
    <div class="chapter-foot"><details class="sd-dropdown"><summary>Cite this chapter</summary>
    <pre>@misc{a&lt;b}</pre></details>
    <a href="https://example.org/new?a=b&amp;c=d">Ask about this chapter</a></div>
    """
    return (
        '<div class="chapter-foot"><details class="sd-dropdown"><summary>Cite this chapter</summary>\n'
        f'<pre>{escape(entry)}</pre></details>\n<a href="{escape(question)}">Ask about this chapter</a></div>'
    )


def add_foot(app, pagename, templatename, context, doctree):
    """Write the foot below the text of a chapter."""
    chapter = CHAPTER.match(pagename)
    if chapter and doctree is not None:
        config, number = app.config, int(chapter[1])
        title = app.env.titles[pagename].astext()
        entry = ENTRY.format(
            key=pagename.removeprefix("book/"),
            title=title,
            number=number,
            author=config.author,
            book=config.html_title,
            year=config.copyright,
            version=__version__,
            url=f"{config.html_baseurl.rstrip('/')}/{pagename}.html",
        )
        ask = urlencode({"category": "q-a", "title": f"Chapter {number}, {title}: "})
        question = f"{config.html_theme_options['repository_url']}/discussions/new?{ask}"
        context["body"] += foot(entry, question)


def setup(app):
    """Connect it."""
    app.connect("html-page-context", add_foot)
    return {"parallel_read_safe": True}
