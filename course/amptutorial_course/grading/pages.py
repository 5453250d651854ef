"""What a student reads: a page of HTML that loads nothing from elsewhere."""

from pathlib import Path

import jinja2
from markupsafe import Markup

PAGES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
)


def student_page(record, task):
    """Return the page of one student as a text: what failed comes first, in the order in which it was asked.

    Checks that failed for one reason, such as a method that is not written, share it.
    """
    groups, order = {}, {result.name: k for k, result in enumerate(record.results)}
    for mark in sorted(record.marks(task), key=lambda mark: (mark.result.passed, order.get(mark.result.name, 0))):
        result = mark.result
        groups.setdefault(result.name if result.passed else result.message, []).append(mark)
    page = PAGES.get_template("page.html")
    return page.render(record=record, task=task, groups=groups.values(), gap=Markup("_<wbr>"))
