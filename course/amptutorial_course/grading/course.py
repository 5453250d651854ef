"""A class as it is graded: submissions, roster, marks by hand, and what is written."""

from dataclasses import dataclass, replace

from amptutorial._files import write_atomically
from ..assignments import assignment
from . import classroom, config, exports, feedback, gradebook, roster, similarity
from .lateness import read_moment
from .submissions import collect_submissions

SIMILAR = "first", "second", "similarity"


@dataclass(frozen=True)
class Course:
    """What is graded, and by which rules.

    Attributes
    ----------
    rules : Rules
    submissions : list of Submission
        All attempts, and one for everybody on the roster who handed in nothing.
    people : list of Person
        The roster; empty without one.
    marks : dict
        Points given by hand.
    strangers : list of str
        Who handed in something and is not on the roster.
    anonymous : bool
    """

    rules: config.Rules
    submissions: list
    people: list
    marks: dict
    strangers: list
    anonymous: bool = False

    def shown(self, student):
        """Return the name of a student in tables and on pages."""
        return self.rules.pseudonym(student) if self.anonymous else student

    @property
    def to_grade(self):
        """The attempts that may count."""
        return gradebook.counting(self.submissions, self.rules)

    def rows(self, records):
        """Return a `Row` for every student, in the order of the names shown."""
        rows = gradebook.make_rows(
            self.submissions, records, self.rules, self.shown, self.marks
        )
        return sorted(rows, key=lambda row: row.shown)


def load_course(folders, rules, roster_path=None, marks_path=None, anonymous=False):
    """Return the `Course` in some folders, one for each round of attempts.

    Raises
    ------
    OSError, ValueError
        If a folder has no submission, or a table does not fit.
    """
    kilobytes = rules.limits["file_kilobytes"]
    found = [each for f in folders for each in collect_submissions(f, kilobytes)]
    people, strangers = [], []
    if roster_path:
        people = roster.read_roster(roster_path)
        found, strangers = roster.enrol(found, people)
        missing = roster.missing_submissions(found, people)
    found = roster.number_attempts(found)
    if roster_path:
        found = [*_timed(found, people), *missing]
    students = {student for each in found for student in each.students}
    unknown = sorted(set(rules.lateness.extensions) - students)
    if unknown:
        raise ValueError(
            f"extensions name {', '.join(unknown)}, who is not in this class: use the "
            "names of the table of grades"
        )
    course = Course(rules, found, people, {}, strangers, anonymous)
    if marks_path:
        names = students | set(map(course.shown, students))
        marks = gradebook.read_marks(marks_path, rules.by_hand, names)
        course = replace(course, marks=marks)
    if anonymous:
        hidden = [
            replace(s, student=course.shown(s.student), alias_of=s.student, note="")
            for s in found
        ]
        course = replace(course, submissions=hidden)
    return course


def _timed(submissions, people):
    """Return the submissions with the times of the roster where they have none.

    A roster knows the last attempt only.
    """
    times = {p.student: p.handed_in for p in people if p.handed_in.strip("- ")}
    last = {each.student: each.attempt for each in submissions}
    timed = []
    for each in submissions:
        given = [times[student] for student in each.students if student in times]
        if given and each.handed_in is None and each.attempt == last[each.student]:
            where = f"the time of {each.student} on the roster"
            moment = max(read_moment(text, where) for text in given)
            each = replace(each, handed_in=moment)
        timed.append(each)
    return timed


def write_course(course, records, out, folder):
    """Write the table, the log, the pages and the list of similar files."""
    rows = course.rows(records)
    write_atomically(out, gradebook.class_table(rows, course.rules))
    write_atomically(folder / "log.csv", gradebook.class_log(records))
    for row in rows:
        feedback.write_feedback(folder / "feedback", row, course.rules)
    feedback.remove_other_pages(folder / "feedback", rows)
    feedback.write_summary(folder, rows, course.rules)
    if course.anonymous:
        # a group has a pseudonym too, in the log and among the similar files
        names = {each.student: each.alias_of for each in course.submissions}
        names |= {row.shown: row.student for row in rows}
        lines = [("student", "name"), *sorted(names.items())]
        write_atomically(folder / "names.csv", gradebook.write_csv(lines))


def write_similar(course, earlier, path, folder):
    """Write which files resemble each other, and return how many pairs do.

    Parameters
    ----------
    course : Course
    earlier : list of Path
        Folders with submissions of other years.
    path : Path
        ``grading.yml``; starters and solutions are those of its repository, or else of
        the one that this package lies in.
    folder : Path
        For ``similarity.csv``.
    """
    task, limits = assignment(course.rules.number), course.rules.limits
    root = path.parent.parent
    if not (root / "assignments" / task.folder).is_dir():
        root = config.PACKAGE.parent
    starter = root / "assignments" / task.folder / "denoiser.py"
    solutions = root / "solutions" / task.folder
    others = {
        f"solutions/{file.stem}": file.read_bytes()
        for file in sorted(solutions.glob("*.py"))
    }
    for place in earlier:
        for each in collect_submissions(place, limits["file_kilobytes"]):
            if isinstance(each.source, bytes):
                again = f", attempt {each.attempt}" if each.attempt > 1 else ""
                others[f"{place.name}/{each.student}{again}"] = each.source
    # any attempt may be the one that was copied
    sources = {
        (each.student, each.attempt): each.source
        for each in course.submissions
        if isinstance(each.source, bytes)
    }
    given = starter.read_bytes() if starter.is_file() else b""
    pairs = {}
    for (one, _), second, share in similarity.similar_pairs(sources, others, given):
        other = second if second in others else second[0]
        # one's own attempts are alike; of several pairs the most alike comes first
        if one != other:
            pairs.setdefault((one, other), share)
    lines = [SIMILAR, *((a, b, f"{share:.2f}") for (a, b), share in pairs.items())]
    write_atomically(folder / "similarity.csv", gradebook.write_csv(lines))
    return len(pairs)


def write_exports(course, records, form, column, out, folder):
    """Write what a platform imports, and return the paths."""
    rows, stem = course.rows(records), out.with_suffix("")
    if form == "canvas":
        path = stem.with_name(f"{stem.name}_canvas.csv")
        write_atomically(path, exports.canvas_table(rows, course.people, column))
        return [path]
    if form == "moodle":
        table = stem.with_name(f"{stem.name}_moodle.csv")
        archive = stem.with_name(f"{stem.name}_moodle_feedback.zip")
        pages = {row.student: feedback.student_page(row, course.rules) for row in rows}
        write_atomically(table, exports.moodle_table(rows, course.people))
        write_atomically(archive, exports.moodle_feedback(pages, course.people))
        return [table, archive]
    if form == "gradescope":
        for row in rows:
            path = folder / "gradescope" / classroom.file_name(row.shown)
            write_atomically(path / "results.json", exports.gradescope_results(row))
        return [folder / "gradescope"]
    return []
