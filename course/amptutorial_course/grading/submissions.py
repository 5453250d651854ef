"""What students handed in: whose it is, and which of the files is denoiser.py.

Folders are read as they are, and as Canvas, Moodle and Gradescope hand them out. No
entry is dropped: what cannot be graded becomes a `Submission` that says why.
"""

import errno
import io
import os
import re
import stat
import zipfile
import zlib
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import PurePosixPath

import yaml

from .notebooks import notebook_source

METADATA = "submission_metadata.yml"
# written by systems and editors, never by a student
LITTER = frozenset(
    """
    .DS_Store __MACOSX Thumbs.db desktop.ini __pycache__ .ipynb_checkpoints
    .pytest_cache .git .idea .vscode
    """.split()
)
MOST_FILES = 500  # of one student
# a notebook carries its outputs, an archive all files
LARGE = {".ipynb": 20_000, ".zip": 20_000}

CANVAS = re.compile(
    r"(?P<name>[^_]+)_(?P<late>LATE_)?(?P<user>\d+)_\d+_(?P<file>.+)", re.DOTALL
)
MOODLE = re.compile(
    r"(?P<name>.+)_(?P<user>\d+)_assignsubmission_(?:file|onlinetext)_?(?P<file>.*)",
    re.DOTALL,
)
# Canvas makes denoiser-1.py of a second denoiser.py, a browser "denoiser (1).py"
AGAIN = re.compile(
    r"(?P<stem>.+?)(?:-(\d+)| \((\d+)\))?(?P<ending>\.[^.]*)?", re.DOTALL
)
A_CLASS = re.compile(rb"^class\s+\w+\s*\([^)]*Denoiser", re.MULTILINE)


@dataclass(frozen=True)
class Owner:
    """A student as a platform names them.

    Attributes
    ----------
    student : str
        Their name in the tables, unless a roster has another.
    keys : tuple of str
        What a roster may know them by.
    """

    student: str
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Submission:
    """What a student or a group handed in once.

    Attributes
    ----------
    student : str
        The name of its record and of its page.
    source : bytes or str
        The bytes of denoiser.py, or a text that says why there are none.
    helpers : dict
        The modules beside it, bytes by their path.
    note : str
        What the lecturer should know about where it comes from.
    owners : tuple of Owner
        Who handed it in.
    students : tuple of str
        Who gets its points.
    handed_in : datetime, optional
        With its time zone; None if nothing says when.
    attempt : int
        1 for the first.
    alias_of : str
        The name itself, where `student` is a pseudonym; seeds are derived from it.
    """

    student: str
    source: bytes | str
    helpers: dict = field(default_factory=dict)
    note: str = ""
    owners: tuple[Owner, ...] = ()
    students: tuple[str, ...] = ()
    handed_in: datetime | None = None
    attempt: int = 1
    alias_of: str = ""


def collect_submissions(folder, kilobytes):
    """Return the submissions in a folder, by student and attempt.

    Parameters
    ----------
    folder : Path
        With ``<student>/denoiser.py`` or ``<student>.py``, a notebook or an archive in
        the place of either, or as a platform hands it out.
    kilobytes : float
        The largest file that is accepted.

    Raises
    ------
    FileNotFoundError
        If the folder is missing or has no submission at all.
    """
    if not folder.is_dir():
        raise FileNotFoundError(
            f"there is no folder {folder}: name the one with the submissions"
        )
    entries = [entry for entry in folder.iterdir() if entry.name not in LITTER]
    entries.sort(key=lambda entry: _unnumbered(entry.name))
    metadata = _gradescope_metadata(folder)
    found, submissions = {}, []
    for entry in entries:
        if entry.name != METADATA:
            _sort_entry(entry, metadata.get(entry.name), kilobytes, found)
    if not found:
        raise FileNotFoundError(
            f"no submissions in {folder}: expected <student>/denoiser.py or "
            "<student>.py there, or the unpacked download of Canvas, Moodle or "
            "Gradescope"
        )
    for place in found.values():
        submissions += _submissions_of(place, kilobytes)
    return submissions


def single_submission(path, kilobytes):
    """Return the submission in one file or folder, as a class would hand it in.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    """
    if not os.path.lexists(path):
        raise FileNotFoundError(f"there is no file {path}: copy the starter there")
    place = _Place((Owner(path.stem, ()),), "")
    place.add(path, path.name, kilobytes)
    return _submissions_of(place, kilobytes)[-1]


class _Place:
    """All that is known about what one student or group handed in."""

    def __init__(self, owners, note, handed_in=None):
        self.owners, self.note, self.handed_in = owners, note, handed_in
        self.files, self.entries, self.refused = {}, 0, ""

    def add(self, path, name, kilobytes):
        self.entries += 1
        if path.is_dir() and path.is_symlink():
            self.refused = "the folder is a symbolic link: hand in a folder"
        elif path.is_dir():
            self._add_folder(path, kilobytes)
        else:
            self.files |= _read_entry(name, read_file(path, _limit(name, kilobytes)))

    def _add_folder(self, folder, kilobytes):
        for where, folders, names in os.walk(folder):
            folders[:] = sorted(each for each in folders if each not in LITTER)
            for each in (*names, *(f for f in folders if _is_link(where, f))):
                path = os.path.join(where, each)
                name = os.path.relpath(path, folder)
                if each in LITTER or each.endswith(".pyc"):
                    continue
                if len(self.files) >= MOST_FILES:
                    self.refused = f"more than {MOST_FILES} files were handed in"
                    return
                self.files |= _read_entry(
                    name, read_file(path, _limit(each, kilobytes))
                )


def _is_link(*parts):
    return os.path.islink(os.path.join(*parts))


def _sort_entry(entry, submitters, kilobytes, found):
    """Add an entry of the class's folder to the place of whoever handed it in."""
    canvas = None if entry.is_dir() else CANVAS.fullmatch(entry.name)
    moodle = MOODLE.fullmatch(entry.name)
    name, note, handed_in = entry.name, "", None
    if submitters is not None:
        owners, handed_in = submitters
        key = entry.name
    elif moodle or canvas:
        match = moodle or canvas
        full, user = match["name"], match["user"]
        owners = (Owner(f"{full}_{user}", (user, full)),)
        name = match["file"] or entry.name
        key = (full, user)
        if canvas and canvas["late"]:
            note = "Canvas calls it late"
    else:
        label = entry.name if entry.is_dir() else entry.stem
        owners, key = (Owner(label, (label, _unnumbered(label)[0])),), label
    place = found.setdefault(key, _Place(owners, note, handed_in))
    if submitters is None and not (moodle or canvas) and place.entries:
        place.refused = "handed in twice, as a folder and as a file: keep one"
    place.add(entry, "denoiser.py" if _is_own_python(entry, key) else name, kilobytes)


def _is_own_python(entry, key):
    """Say whether the file is <student>.py."""
    return key == entry.stem and entry.suffix.lower() == ".py" and not entry.is_dir()


def _gradescope_metadata(folder):
    """Return `(owners, time)` by the name of the folder in Gradescope's export."""
    path = folder / METADATA
    if not path.is_file():
        return {}
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        return {
            str(name): (
                tuple(map(_submitter, entry[":submitters"])),
                _moment(entry.get(":created_at")),
            )
            for name, entry in data.items()
        }
    except (yaml.YAMLError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} is not the file that Gradescope exports ({error!r}): unpack the "
            "export again, or remove the file and name the folders after the students"
        ) from None


def _submitter(entry):
    values = (entry.get(key) for key in (":email", ":sid", ":name"))
    keys = tuple(str(value) for value in values if value)
    return Owner(keys[0], keys)


def _moment(value):
    return None if value is None else datetime.fromisoformat(str(value)).astimezone()


def _unnumbered(name):
    """Return a file's name without the number of a resubmission, and that number.

    Examples
    --------
    >>> _unnumbered("denoiser-1.py"), _unnumbered("denoiser (2).py")
    (('denoiser.py', 1), ('denoiser.py', 2))
    """
    match = AGAIN.fullmatch(name)
    number = match[2] or match[3] or 0
    return match["stem"] + (match["ending"] or ""), int(number)


def _limit(name, kilobytes):
    return max(kilobytes, LARGE.get(PurePosixPath(name).suffix.lower(), 0))


def read_file(path, kilobytes):
    """Return the bytes of a file, or why it is not read.

    Links are not followed, and nobody waits for the other end of a named pipe.
    """
    name = os.path.basename(path)
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        with open(os.open(path, flags), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return f"{name} is not a regular file"
            data = file.read(int(kilobytes * 1024) + 1)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return "the file is a symbolic link: hand in the file itself"
        return f"cannot be read: {error.strerror}"
    return _within(data, kilobytes)


def _within(data, kilobytes):
    if len(data) > kilobytes * 1024:
        return f"the file is larger than {kilobytes:g} kB"
    return data


def _read_entry(name, data):
    """Return the files in `data` by name: those of an archive, or the one file."""
    if PurePosixPath(name).suffix.lower() != ".zip" or isinstance(data, str):
        return {name: data}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = [each for each in archive.infolist() if _wanted(each)]
            if len(entries) > MOST_FILES:
                return {name: f"the archive has more than {MOST_FILES} files"}
            return {each.filename: _unpack(archive, each) for each in entries}
    except (zipfile.BadZipFile, ValueError, OSError) as error:
        return {name: f"the archive cannot be read: {error}"}


def _wanted(entry):
    path = PurePosixPath(entry.filename)
    return not (
        entry.is_dir() or LITTER.intersection(path.parts) or path.suffix == ".pyc"
    )


def _unpack(archive, entry):
    """Return the bytes of a file in an archive, or why it is not read."""
    if stat.S_ISLNK(entry.external_attr >> 16):
        return "the file is a symbolic link: hand in the file itself"
    if ".." in PurePosixPath(entry.filename).parts:
        return "the file leaves its folder: pack the archive again"
    # what is unpacked is large only for a notebook
    kilobytes = _limit(entry.filename, 1000)
    try:
        with archive.open(entry) as file:
            return _within(file.read(int(kilobytes * 1024) + 1), kilobytes)
    except (
        RuntimeError, NotImplementedError, EOFError, OSError, zlib.error,
        zipfile.BadZipFile,
    ) as error:  # fmt: skip
        return f"cannot be unpacked: {error}"


def _submissions_of(place, kilobytes):
    """Return the attempts of one student or group, the first one first."""
    student = " and ".join(owner.student for owner in place.owners)
    known = {
        "owners": place.owners,
        "students": tuple(owner.student for owner in place.owners),
        "handed_in": place.handed_in,
    }
    if place.refused:
        return [Submission(student, place.refused, **known)]
    found = []
    for attempt, files in enumerate(_attempts(place.files), 1):
        source, helpers, note = pick_denoiser(files, kilobytes)
        notes = "; ".join(filter(None, (note, place.note)))
        found.append(
            Submission(student, source, helpers, notes, **known, attempt=attempt)
        )
    return found


def _attempts(files):
    """Return the files of each attempt: denoiser-1.py comes after denoiser.py.

    The files beside it belong to all attempts.
    """
    numbered = {
        name: number
        for name in files
        for plain, number in [_unnumbered(PurePosixPath(name).name)]
        if plain.casefold() == "denoiser.py"
    }
    if not numbered:
        return [files]
    depth = min(len(PurePosixPath(name).parts) for name in numbered)
    top = {n: k for n, k in numbered.items() if len(PurePosixPath(n).parts) == depth}
    others = {name: data for name, data in files.items() if name not in numbered}
    return [
        {**others, str(PurePosixPath(name).with_name("denoiser.py")): files[name]}
        for name in sorted(top, key=lambda name: (top[name], name))
    ]


def pick_denoiser(files, kilobytes):
    """Return the bytes of denoiser.py or why there are none, its helpers, and a note.

    It is the file of that name, or else the Python file with a class derived from
    `Denoiser`, or else the notebook that has one, or else the only Python file.

    Parameters
    ----------
    files : dict
        Bytes by path, or a text that says why they could not be read.
    kilobytes : float

    Examples
    --------
    >>> pick_denoiser({"work/mine.py": b"x = 1", "work/a.txt": b""}, 1)
    (b'x = 1', {}, 'denoiser.py is work/mine.py')
    >>> pick_denoiser({"answer.pdf": b""}, 1)[0]
    'no file denoiser.py was handed in, but answer.pdf: hand in denoiser.py'
    """
    python = _ending(files, ".py")
    named = [n for n in python if PurePosixPath(n).name.casefold() == "denoiser.py"]
    classes = [name for name in python if _has_class(files[name])]
    notebooks = _ending(files, ".ipynb")
    for names in (named, classes, notebooks, python):
        if len(names) > 1:
            shown = ", ".join(names[:5])
            return f"which file is denoiser.py: {shown}? Hand in one", {}, ""
        if names:
            return _picked(names[0], files, python, kilobytes)
    if not files:
        return "no file denoiser.py was handed in", {}, ""
    reasons = [data for data in files.values() if isinstance(data, str)]
    if reasons:
        return reasons[0], {}, ""
    shown = ", ".join(sorted(files)[:5])
    reason = f"no file denoiser.py was handed in, but {shown}: hand in denoiser.py"
    return reason, {}, ""


def _ending(files, suffix):
    return sorted(n for n in files if PurePosixPath(n).suffix.lower() == suffix)


def _has_class(data):
    return isinstance(data, bytes) and A_CLASS.search(data) is not None


def _picked(name, files, python, kilobytes):
    source, folder = files[name], PurePosixPath(name).parent
    note = "" if name == "denoiser.py" else f"denoiser.py is {name}"
    if PurePosixPath(name).suffix.lower() == ".ipynb" and isinstance(source, bytes):
        source = notebook_source(source)
        note = f"taken from the notebook {name}"
    if isinstance(source, bytes):
        source = _checked_source(source, kilobytes)
    helpers = {
        str(PurePosixPath(each).relative_to(folder)): files[each]
        for each in python
        if each != name and PurePosixPath(each).is_relative_to(folder)
    }
    unread = [f"{each}: {data}" for each, data in helpers.items() if type(data) is str]
    if unread:
        note = "; ".join(filter(None, (note, f"left out {unread[0]}")))
        helpers = {n: data for n, data in helpers.items() if type(data) is bytes}
    if sum(map(len, helpers.values())) > kilobytes * 1024:
        source = f"the files beside denoiser.py are larger than {kilobytes:g} kB"
    return source, helpers if isinstance(source, bytes) else {}, note


def _checked_source(source, kilobytes):
    try:
        source.decode("utf-8")
    except UnicodeDecodeError:
        return "the file is not encoded in UTF-8: save it with that encoding"
    return _within(source, kilobytes)
