"""What students handed in: which file of each is the denoiser, and what comes with it.

A submission is ``NAME.py``, ``NAME.ipynb``, ``NAME.zip`` or a folder ``NAME``, in which
one file has the classes of the assignment; the other modules are its helpers. Nothing
is guessed: where two files could be meant, both are named and neither is graded. No
entry is dropped: what cannot be graded becomes a `Submission` that says why.
"""

import errno
import os
import re
import stat
import zipfile
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePosixPath

from .notebooks import notebook_source

# of one submission, counted while it is read: entries, folders in folders, bytes
MOST_FILES = 200
MOST_DEPTH = 8
MOST_BYTES = 20 * 2**20
# written by systems and editors, never by a student
LITTER = ("__MACOSX", "__pycache__", "Thumbs.db", "desktop.ini")
FORMS = "NAME.py, NAME.ipynb, NAME.zip or a folder NAME"


class Refused(Exception):
    """Why a submission cannot be graded, in words for its author."""


@dataclass(frozen=True)
class Submission:
    """What a student handed in.

    Attributes
    ----------
    student : str
        The name of the file or folder.
    source : bytes or str
        The bytes of denoiser.py, or a text that says why there are none.
    helpers : dict
        The modules beside it, bytes by their path.
    note : str
        Which file was taken, where that is not plain.
    """

    student: str
    source: bytes | str
    helpers: dict = field(default_factory=dict)
    note: str = ""


def collect_submissions(folder, classes, kilobytes):
    """Return the submissions in a folder, by student.

    Parameters
    ----------
    folder : Path
    classes : iterable of str
        The names of the classes of the assignment.
    kilobytes : float
        The largest denoiser that is accepted.

    Raises
    ------
    FileNotFoundError
        If the folder is missing or has no submission at all.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}: name the one with the submissions")
    entries = sorted(entry for entry in folder.iterdir() if not is_litter(entry.name))
    if not entries:
        raise FileNotFoundError(f"no submissions in {folder}: expected {FORMS}")
    names = Counter(map(student_of, entries))
    single = [read_submission(entry, classes, kilobytes) for entry in entries if names[student_of(entry)] == 1]
    twice = [
        Submission(name, f"{name} was handed in {count} times: keep one") for name, count in names.items() if count > 1
    ]
    return sorted([*single, *twice], key=lambda each: each.student)


def student_of(path):
    """Return the name under which an entry of the class's folder is graded."""
    return path.name if path.is_dir() else path.stem


def is_litter(name):
    """Say whether a file or folder was left there by a system or an editor.

    Examples
    --------
    >>> [is_litter(name) for name in ("._ada.py", "ada.py~", "__init__.py")]
    [True, True, False]
    """
    return name in LITTER or name.startswith((".", "~$")) or name.endswith("~")


def read_submission(path, classes, kilobytes):
    """Return the `Submission` in one file or folder.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    """
    if not os.path.lexists(path):
        raise FileNotFoundError(f"there is no file {path}: copy the starter there")
    try:
        files = read_files(path)
        return Submission(student_of(path), *pick_denoiser(files, classes, kilobytes))
    except Refused as refusal:
        return Submission(student_of(path), str(refusal))


def read_files(path):
    """Return the Python files and notebooks in a file, an archive or a folder.

    Returns
    -------
    dict
        Bytes by path, with "/" between its parts.

    Raises
    ------
    Refused
        If it holds a link, too much, or what cannot be read.
    """
    found = _Files()
    if path.is_dir() and not path.is_symlink():
        _read_folder(path, found)
    elif path.suffix.lower() == ".zip":
        with _open(path) as file:
            _read_archive(file, found)
    elif path.suffix.lower() in (".py", ".ipynb"):
        found.add(path.name, partial(_open, path))
    else:
        raise Refused(f"{path.name} was handed in: expected {FORMS}")
    return found.files


class _Files:
    """What has been read of one submission, within the limits."""

    def __init__(self):
        self.files, self.count, self.left = {}, 0, MOST_BYTES

    def admit(self, name):
        """Return the path of an entry to be read, or None for one that is not."""
        path = PurePosixPath(name.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts:
            raise Refused(f"{name} leaves its folder: pack the archive again")
        if any(map(is_litter, path.parts)):
            return None
        self.count += 1
        if self.count > MOST_FILES:
            raise Refused(f"more than {MOST_FILES} files were handed in")
        if len(path.parts) > MOST_DEPTH:
            raise Refused(f"folders lie in folders more than {MOST_DEPTH} deep")
        return str(path)

    def add(self, name, opened):
        """Read a file, if it is one of Python or a notebook."""
        path = self.admit(name)
        if path is None or PurePosixPath(path).suffix.lower() not in (".py", ".ipynb"):
            return
        if path in self.files:
            raise Refused(f"{path} is in the archive twice")
        with opened() as file:
            data = file.read(self.left + 1)
        self.left -= len(data)
        if self.left < 0:
            raise Refused(f"the files are larger than {MOST_BYTES / 2**20:g} MB")
        self.files[path] = data


def _read_folder(folder, found):
    waiting = [folder]
    while waiting:
        for path in sorted(waiting.pop().iterdir()):
            name = path.relative_to(folder).as_posix()
            if path.is_dir() and not path.is_symlink():
                if found.admit(name):
                    waiting.append(path)
            else:
                found.add(name, partial(_open, path))


def _open(path):
    """Return a regular file, opened; nobody waits for the other end of a named pipe."""
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        file = open(os.open(path, flags), "rb")
    except OSError as error:
        if error.errno == errno.ELOOP:
            why = "is a symbolic link: hand in the file itself"
        else:
            why = f"cannot be read: {error.strerror}"
        raise Refused(f"{path.name} {why}") from None
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise Refused(f"{path.name} is not a regular file")
    return file


def _read_archive(file, found):
    if os.fstat(file.fileno()).st_size > MOST_BYTES:
        raise Refused(f"the archive is larger than {MOST_BYTES / 2**20:g} MB")
    try:
        with zipfile.ZipFile(file) as archive:
            for entry in archive.infolist():
                if stat.S_ISLNK(entry.external_attr >> 16):
                    raise Refused(f"{entry.filename} is a symbolic link")
                # other methods unpack without a limit
                if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise Refused("the archive is packed in an unusual way")
                if not entry.is_dir():
                    found.add(entry.filename, partial(archive.open, entry))
    except Refused:
        raise
    # whatever a damaged or hostile archive makes its reader raise
    except Exception as error:  # noqa: BLE001
        raise Refused(f"the archive cannot be read: {error}") from None


def pick_denoiser(files, classes, kilobytes):
    """Return the bytes of denoiser.py, its helpers, and a note.

    It is the one file that has a class of the assignment, or is called denoiser.py, or
    else the only file.

    Parameters
    ----------
    files : dict
        Bytes by path.
    classes : iterable of str
    kilobytes : float

    Raises
    ------
    Refused
        If there is none, or more than one.

    Examples
    --------
    >>> text = b"class Ball(Denoiser): ..."
    >>> pick_denoiser({"a/mine.py": text, "a/help.py": b"k = 1"}, ["Ball"], 1)[1:]
    ({'help.py': b'k = 1'}, 'denoiser.py is a/mine.py')
    """
    named = re.compile(rf"^[ \t]*class[ \t]+({'|'.join(classes)})\b".encode(), re.M)
    sources = {name: _source(name, data, classes) for name, data in files.items()}
    found = [
        name
        for name, source in sources.items()
        if PurePosixPath(name).name.lower() == "denoiser.py" or (isinstance(source, bytes) and named.search(source))
    ]
    found = found or list(sources)
    if not found:
        raise Refused("no Python file and no notebook was handed in")
    if len(found) > 1:
        shown = ", ".join(sorted(found)[:5])
        raise Refused(f"which file is denoiser.py: {shown}? Hand in one of them")
    (name,) = found
    helpers = _helpers(name, files)
    size = max(len(sources[name]), sum(map(len, helpers.values())))
    if size > kilobytes * 1024:
        raise Refused(f"{name}, or what lies beside it, is larger than {kilobytes:g} kB")
    note = "" if name == "denoiser.py" else f"denoiser.py is {name}"
    return _decodable(name, sources[name]), helpers, note


def _source(name, data, classes):
    """Return the bytes of a file of Python, of a notebook those of its denoiser.

    A text says why a notebook has none; one that names no class is not looked into.
    """
    if not name.lower().endswith(".ipynb"):
        return data
    if not any(each.encode() in data for each in classes):
        return f"{name} has no class {' or '.join(classes)}"
    return notebook_source(data)


def _helpers(name, files):
    """Return the modules in the folder of a file, by their paths in it."""
    folder = PurePosixPath(name).parent
    return {
        str(PurePosixPath(each).relative_to(folder)): data
        for each, data in files.items()
        if each != name and PurePosixPath(each).is_relative_to(folder) and each.lower().endswith(".py")
    }


def _decodable(name, source):
    if isinstance(source, str):
        raise Refused(source)
    try:
        source.decode("utf-8")
    except UnicodeDecodeError:
        why = f"{name} is not encoded in UTF-8: save it with that encoding"
        raise Refused(why) from None
    return source
