"""A folder to teach from: syllabus, assignments, a secret of its own, and what to upload."""

import re
import secrets
import zipfile
from pathlib import Path
from urllib.parse import urljoin

from amptutorial import __version__
from amptutorial.checks import SITE

from .assignments import ASSIGNMENTS, assignment
from .grading.gradescope import write_autograder
from .grading.rules import HANDOUTS, load_rules

TEMPLATES = Path(__file__).with_name("templates")
# The chapters that are read before each week; what comes after them is for projects.
CHAPTERS = (
    ("From documents to embeddings",),
    ("What counts can tell", "The Fisher score"),
    ("What the spectrum sees",),
    ("Denoisers",),
    ("Why the Onsager term",),
    ("Biased low-rank AMP",),
    ("State evolution",),
    ("The proofs",),
    ("The best possible error",),
    ("One word's error", "Real text"),
)
# In which weeks an assignment is set and handed in. Experiments need state evolution, the fifth assignment the best
# possible error; the eighth is a project on texts.
ASSIGNED = {1: (4, 7), 2: (6, 8), 5: (9, 10), 8: (10, 13)}
FEWEST, MOST = 7, 15
SECRET = "seed.txt"
RULES = f"""# How `python -m amptutorial_course.grading --config grading.yml` grades this class. Keep it from students,
# and above all the secret from which the hidden settings are drawn.
seed_file: {SECRET}
"""


def write_course(folder, weeks):
    """Write a folder for a course of so many weeks.

    Parameters
    ----------
    folder : Path
        A new or empty folder. It is for those who teach: it holds a new secret, from
        which the hidden settings are drawn.
    weeks : int
        From `FEWEST` to `MOST`; an assignment that is handed in later is left out.

    Returns
    -------
    list of Assignment
        The assignments that are set.

    Raises
    ------
    FileExistsError
        If `folder` holds something.
    ValueError
        For another number of weeks.
    """
    if not FEWEST <= weeks <= MOST:
        raise ValueError(
            f"--weeks {weeks}: a course has {FEWEST} to {MOST} weeks; state evolution comes in week {FEWEST}"
        )
    if folder.exists() and (folder.is_file() or any(folder.iterdir())):
        raise FileExistsError(f"{folder} is not empty: name a new folder for the course")
    rules = folder / "grading.yml"
    # whoever teaches may have named a secret there
    *_, others = re.split(r"^[# ]*seed_file:.*\n", (HANDOUTS / rules.name).read_text(encoding="utf-8"), flags=re.M)
    folder.mkdir(parents=True, exist_ok=True)
    secret = secrets.token_hex()
    (folder / SECRET).touch(mode=0o600)
    (folder / SECRET).write_text(f"{secret}\n")
    rules.write_text(RULES + others, encoding="utf-8")
    chosen = {number: days for number, days in ASSIGNED.items() if days[1] <= weeks}
    tasks = [assignment(number) for number in chosen]
    for task in ASSIGNMENTS.values():
        write_handout(folder / "students" / f"{task.folder}.zip", task)
    for task in tasks:
        write_autograder(folder / "gradescope" / f"{task.folder}.zip", load_rules(rules, task.number, secret))
        (folder / "submissions" / task.folder).mkdir(parents=True)
    values = {"weeks": weeks, "version": __version__, "first": tasks[0].folder}
    values |= {"plan": "\n".join(_plan(weeks, chosen)), "set": "\n".join(_table(tasks))}
    for source, target in (("course_syllabus.md", "syllabus.md"), ("course_readme.md", "README.md")):
        text = (TEMPLATES / source).read_text(encoding="utf-8").format(**values)
        (folder / target).write_text(text, encoding="utf-8")
    return tasks


def write_handout(path, task):
    """Write what students get of an assignment, as an archive with one folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{task.folder}/brief.ipynb", brief(task))
        archive.write(HANDOUTS / task.folder / "denoiser.py", f"{task.folder}/denoiser.py")


def brief(task):
    """Return the text of the notebook that students get: its links lead to the book where it is published."""
    text = (HANDOUTS / task.folder / "brief.ipynb").read_text(encoding="utf-8")
    page = urljoin(SITE, f"../course/assignments/{task.folder}/brief.html")
    return re.sub(r"\]\((\.[^)#]*)\.(?:ipynb|md)", lambda link: f"]({urljoin(page, link[1])}.html", text)


def _plan(weeks, chosen):
    """Return the rows of the syllabus."""
    for week in range(1, weeks + 1):
        chapters = "; ".join(CHAPTERS[week - 1]) if week <= len(CHAPTERS) else "projects"
        begun, ended = ([number for number, days in chosen.items() if days[k] == week] for k in range(2))
        out, back = (", ".join(f"{number}: {assignment(number).title}" for number in found) for found in (begun, ended))
        yield f"| {week} | ____ | {chapters} | {out} | {back} |"


def _table(tasks):
    """Return the rows of what is set, for those who upload it."""
    for task in tasks:
        name = task.folder
        yield f"| {task.number} | `students/{name}.zip` | `gradescope/{name}.zip` | `submissions/{name}` |"
