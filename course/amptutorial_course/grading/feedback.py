"""What students and lecturer read: pages as HTML and as Markdown.

Each student gets a page, and the lecturer one about the class.
"""

import re
import statistics
from collections import Counter

import jinja2
from markupsafe import Markup

from amptutorial._files import write_atomically
from ..assignments import assignment
from .classroom import file_name

STYLE = """
:root { color-scheme: light dark; --ink: #1b1b1b; --paper: #ffffff; --rule: #8a8a8a;
  --link: #0b4fb3; --good: #12602a; --bad: #9f1414; --shade: #f2f2f2; }
@media (prefers-color-scheme: dark) { :root { --ink: #ececec; --paper: #16181b;
  --rule: #808080; --link: #8fb8ff; --good: #86dc9c; --bad: #ff9d96;
  --shade: #24272b; } }
body { color: var(--ink); background: var(--paper);
  font: 1rem/1.5 system-ui, sans-serif;
  max-width: 56rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
a { color: var(--link); }
h1 { font-size: 1.5rem; }
table { border-collapse: collapse; width: 100%; }
caption { text-align: left; font-weight: bold; padding: .5rem 0; }
th, td { text-align: left; vertical-align: top; padding: .4rem .5rem;
  border-bottom: 1px solid var(--rule); }
th { overflow-wrap: normal; }
td.number { white-space: nowrap; }
.good { color: var(--good); }
.bad { color: var(--bad); font-weight: bold; }
@media (max-width: 36rem) {
  .stacked thead { display: none; }
  .stacked tr { border-bottom: 1px solid var(--rule); }
  .stacked tr, .stacked th, .stacked td { display: block; }
  .stacked th, .stacked td { border: 0; padding: .1rem 0; }
}
p { margin: .3rem 0; }
pre { white-space: pre-wrap; background: var(--shade); padding: .75rem; }
"""

PAGE = """<!DOCTYPE html>
<html lang="en-GB"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'">
<title>{% block title %}{% endblock %}</title><style>{{ style | safe }}</style></head>
<body>{% block body %}{% endblock %}</body></html>
"""

STUDENT_HTML = """{% extends "page" %}
{% block title %}{{ heading }}: {{ student }}{% endblock %}
{% block body %}
<h1>{{ heading }}</h1>
<p>{{ student }}: <strong>{{ points(total) }} of {{ points(most) }} points</strong>.</p>
{% if status != "graded" %}<p class="bad">{{ status }}</p>{% endif %}
{% for other in others %}<p>{{ other }}</p>
{% endfor %}<table class="stacked"><caption>What was checked</caption>
<thead><tr><th scope="col">check</th><th scope="col">points</th>
<th scope="col">found</th></tr></thead><tbody>
{% for mark in marks %}<tr>
<th scope="row">{{ mark.name.split("_") | join(gap) }}</th>
<td class="number">{{ points(mark.points) }} of {{ points(mark.most) }}</td>
<td><span class="{{ 'good' if mark.passed else 'bad' }}">{{ verdict(mark) }}</span>
{% if mark.contract %}<p><em>{{ mark.contract }}</em></p>{% endif %}
{% if mark.message %}<p>{{ mark.message }}</p>{% endif %}
{% if mark.read and not mark.passed %}
<p><a href="{{ mark.read }}">Read about {{ mark.name }}</a></p>
{% endif %}
</td></tr>
{% endfor %}</tbody></table>
{% if traceback %}<h2>Traceback</h2><pre>{{ traceback }}</pre>{% endif %}
{% if printed %}<h2>The end of what was printed</h2><pre>{{ printed }}</pre>{% endif %}
{% endblock %}
"""

STUDENT_MD = """# {{ heading }}

{{ student | escaped }}: **{{ points(total) }} of {{ points(most) }} points**
{% for other in others %}
{{ other | escaped }}
{% endfor %}{% if status != "graded" %}
{{ status | fenced }}
{% endif %}
| check | points | |
|---|---|---|
{% for mark in marks -%}
| `{{ mark.name }}` | {{ points(mark.points) }} of {{ points(mark.most) }} | {{
  verdict(mark) }} |
{% endfor %}
{%- for mark in marks if mark.contract and not mark.passed %}
## {{ mark.name }}

{{ mark.contract | escaped }} [Read about it]({{ mark.read }})

{{ mark.message | fenced }}
{% endfor %}
{%- if traceback %}
## Traceback

{{ traceback | fenced }}
{% endif %}
{%- if printed %}
## The end of what was printed

{{ printed | fenced }}
{% endif %}"""

CLASS_HTML = """{% extends "page" %}
{% block title %}{{ heading }}: the class{% endblock %}
{% block body %}
<h1>{{ heading }}: the class</h1>
<p>{{ size }} submissions, mean {{ mean }}, median {{ median }} points.</p>
<table><caption>How many had how many points</caption>
<thead><tr><th scope="col">points</th><th scope="col">submissions</th><td></td></tr>
</thead><tbody>
{% for bin, count in histogram %}<tr><th scope="row">{{ bin }}</th>
<td class="number">{{ count }}</td><td aria-hidden="true">{{ bar(count) }}</td></tr>
{% endfor %}</tbody></table>
<table class="stacked"><caption>
Checks most often failed, among the {{ checked }} submissions that could be checked
</caption>
<thead><tr><th scope="col">check</th><th scope="col">failed</th>
<th scope="col">most common finding</th></tr></thead><tbody>
{% for check in failures %}<tr>
<th scope="row">{{ check.name.split("_") | join(gap) }}</th>
<td class="number">{{ check.count }}</td>
<td><p><em>{{ check.contract }}</em></p>
<p>{{ often(check) }} {{ check.message }}</p></td></tr>
{% endfor %}</tbody></table>
{% if unchecked %}<table><caption>Submissions that could not be checked</caption>
<thead><tr><th scope="col">reason</th><th scope="col">submissions</th></tr></thead>
<tbody>
{% for status, count in unchecked %}<tr><td>{{ status }}</td>
<td class="number">{{ count }}</td></tr>
{% endfor %}</tbody></table>{% endif %}
{% endblock %}
"""

CLASS_MD = """# {{ heading }}: the class

{{ size }} submissions, mean {{ mean }}, median {{ median }} points.

| points | submissions | |
|---|---|---|
{% for bin, count in histogram -%}
| {{ bin }} | {{ count }} | {{ bar(count) }} |
{% endfor %}
## Checks most often failed

Among the {{ checked }} submissions that could be checked:

| check | failed | most common finding |
|---|---|---|
{% for check in failures -%}
| `{{ check.name }}` | {{ check.count }} | {{ often(check) }} {{
  check.message | escaped }} |
{% endfor %}
{%- if unchecked %}
## Submissions that could not be checked

| reason | submissions |
|---|---|
{% for status, count in unchecked -%}
| {{ status | escaped }} | {{ count }} |
{% endfor %}
{%- endif %}"""


def escaped(text):
    r"""Return `text` as one line of Markdown that shows it and nothing else.

    Examples
    --------
    >>> escaped("a | b *c* <i>")
    'a \\| b \\*c\\* \\<i\\>'
    """
    return re.sub(r"([\\`*_{}\[\]<>()#|~&$!])", r"\\\1", " ".join(text.split()))


def fenced(text):
    """Return `text` as a block of code, fenced by more backticks than it contains.

    Examples
    --------
    >>> print(fenced("one"))
    ```text
    one
    ```
    """
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}text\n{text.rstrip()}\n{fence}"


def points(value):
    """Return points as they are printed: at most two decimals.

    Examples
    --------
    >>> points(4.0), points(2.5)
    ('4', '2.5')
    """
    return f"{round(value, 2):g}"


PAGES = jinja2.Environment(
    loader=jinja2.DictLoader(
        {
            "page": PAGE, "student.html": STUDENT_HTML, "student.md": STUDENT_MD,
            "summary.html": CLASS_HTML, "summary.md": CLASS_MD,
        }
    ),
    autoescape=lambda name: name is not None and not name.endswith(".md"),
    undefined=jinja2.StrictUndefined, keep_trailing_newline=True,
)  # fmt: skip
PAGES.globals.update(
    style=STYLE, points=points, bar="\u2588".__mul__, gap=Markup("_<wbr>"),
    verdict=lambda mark: "passed" if mark.passed else "failed",
    often=lambda check: f"{check['times']} of {check['count']}, for instance:",
)  # fmt: skip
PAGES.filters.update(escaped=escaped, fenced=fenced)


def _heading(rules):
    return f"Assignment {rules.number}: {assignment(rules.number).title}"


def write_feedback(folder, row, rules):
    """Write the page of one student, ``<student>.html`` and ``<student>.md``."""
    for suffix in ("html", "md"):
        text = student_page(row, rules, suffix)
        write_atomically(folder / f"{file_name(row.shown)}.{suffix}", text)


def remove_other_pages(folder, rows):
    """Remove the pages of whoever is not in `rows`, such as names without pseudonyms.

    A page is what lies there both as HTML and as Markdown.
    """
    kept = {file_name(row.shown) for row in rows}
    for path in folder.glob("*.html"):
        twin = path.with_suffix(".md")
        if path.stem not in kept and twin.is_file():
            path.unlink()
            twin.unlink()


def student_page(row, rules, suffix="html"):
    """Return the page of one student as a text."""
    shown = vars(row.record) | {
        "student": row.shown,
        "total": row.total,
        "most": 100 + sum(rules.by_hand[part] for part in row.marks),
        "status": row.status,
        "others": list(_others(row, rules)),
        "heading": _heading(rules),
    }
    return PAGES.get_template(f"student.{suffix}").render(shown)


def _others(row, rules):
    """Yield a line for every reason why the total is not the sum of the checks."""
    for part, value in row.marks.items():
        most = points(rules.by_hand[part])
        yield f"{part}, marked by hand: {points(value)} of {most}"
    if row.late:
        yield f"late: {points(row.late)} points subtracted"
    if row.record.attempt > 1:
        yield f"attempt {row.record.attempt} counts"


def write_summary(folder, rows, rules):
    """Write the page of the class, ``summary.html`` and ``summary.md``.

    It names no student, and there is none of a class without records.
    """
    if not rows:
        return
    shown = summarise_class(rows) | {"heading": _heading(rules)}
    for suffix in ("html", "md"):
        text = PAGES.get_template(f"summary.{suffix}").render(shown)
        write_atomically(folder / f"summary.{suffix}", text)


def summarise_class(rows):
    """Return what the page of the class shows, a dict."""
    records = [row.record for row in rows]
    totals = [record.total for record in records]
    bins = Counter(min(int(total // 10), 9) for total in totals)
    checked = [record for record in records if record.status.startswith("graded")]
    unchecked = Counter(record.status for record in records if record not in checked)
    return {
        "size": len(records),
        "mean": points(statistics.mean(totals)),
        "median": points(statistics.median(totals)),
        "histogram": [
            (f"{10 * k} to {'100' if k == 9 else f'under {10 * k + 10}'}", bins[k])
            for k in range(10)
        ],
        "checked": len(checked),
        "failures": sorted(_failures(checked), key=lambda check: -check["count"]),
        "unchecked": unchecked.most_common(),
    }


def _failures(records):
    """Yield, for every check that failed, how often it did and what was found most."""
    failed = {}
    for mark in (mark for record in records for mark in record.marks):
        if not mark.passed:
            failed.setdefault(mark.name, []).append(mark)
    for name, marks in failed.items():
        kinds = Counter(_kind(mark.message) for mark in marks)
        kind, times = kinds.most_common(1)[0]
        example = next(mark for mark in marks if _kind(mark.message) == kind)
        yield {
            "name": name,
            "count": len(marks),
            "times": times,
            "message": example.message,
            "contract": example.contract,
        }


def _kind(message):
    """Return the message without its numbers: with others it is the same mistake."""
    return re.sub(r"[\d.e+\- ]+", " ", message)
