"""What a student reads: a page of HTML that loads nothing from elsewhere."""

from pathlib import Path

import jinja2
from markupsafe import Markup

from .record import NOT_RUN


def points(value):
    """Return points as they are printed: at most two decimals.

    Examples
    --------
    >>> points(4.0), points(2.5)
    ('4', '2.5')
    """
    return f"{round(value, 2):g}"


def verdict(mark):
    """Return what came of a check in a word or two."""
    if mark.message == NOT_RUN:
        return NOT_RUN
    return "passed" if mark.passed else "failed"


PAGES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
)
PAGES.globals.update(points=points, verdict=verdict, gap=Markup("_<wbr>"))


def student_page(record, task):
    """Return the page of one student as a text: what failed comes first."""
    return PAGES.get_template("page.html").render(
        vars(record)
        | {
            "heading": f"Assignment {task.number}: {task.title}",
            "total": record.total,
            "marks": sorted(record.marks, key=lambda mark: mark.passed),
        }
    )
