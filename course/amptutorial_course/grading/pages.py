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
    """Return the page of one student as a text: what failed comes first."""
    return PAGES.get_template("page.html").render(
        record=record,
        task=task,
        marks=sorted(record.marks(task), key=lambda mark: mark.result.passed),
        gap=Markup("_<wbr>"),
    )
