"""What students handed in: which file of each is the denoiser, and what comes with it.

A submission is ``NAME.py``, ``NAME.ipynb``, ``NAME.zip`` or a folder ``NAME``, in which
one file has the classes of the assignment; the other modules are its helpers. Nothing
is guessed: where two files could be meant, both are named and neither is graded. No
entry is dropped: what cannot be graded becomes a `Submission` that says why.

For a class only names are looked at here (`find_submissions`). Whatever is in a file is
read by the process that grades it, under its limits.
"""

import json
import os
import re
import stat
import unicodedata
import zipfile
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from pathlib import PurePosixPath

from .notebooks import read_notebook

# of one submission, counted while it is read: entries, folders in folders, bytes
MOST_FILES = 200
MOST_DEPTH = 8
MOST_BYTES = 20 * 2**20
# written by systems and editors, never by a student
LITTER = (
    *("__macosx", "icon\r", "thumbs.db", "ehthumbs.db", "desktop.ini", "$recycle.bin", "__pycache__"),
    *(".*", "~$*", "*~", "#*#", "*.bak", "*.orig", "*.swp", "*.tmp"),
)
SUFFIXES = (".py", ".ipynb")
FORMS = "NAME.py, NAME.ipynb, NAME.zip or a folder NAME"


class Refused(Exception):
    """Why a submission cannot be graded, in words for its author."""


@dataclass(frozen=True)
class Submission:
    """What a student handed in.

    Attributes
    ----------
    source : bytes or str
        The bytes of denoiser.py, or a text that says why there are none.
    helpers : dict
        The modules beside it, bytes by their path.
    note : str
        Which file was taken, where there were several.
    """

    source: bytes | str
    helpers: dict = field(default_factory=dict)
    note: str = ""


def find_submissions(folder):
    """Return the files and folders of each student in a folder.

    Returns
    -------
    dict
        Lists of paths, by student; of more than one nothing is graded.

    Raises
    ------
    FileNotFoundError
        If the folder is missing or has no submission at all.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}: name the one with the submissions")
    found = {}
    for entry in sorted(folder.iterdir()):
        if not is_litter(entry.name):
            found.setdefault(student_of(entry), []).append(entry)
    if not found:
        raise FileNotFoundError(f"no submissions in {folder}: expected {FORMS}")
    return found


def student_of(path):
    """Return the name under which an entry of the class's folder is graded."""
    # as most write accents; an archive that a Mac has made has them apart
    return unicodedata.normalize("NFC", path.name if path.is_dir() else path.stem)


def is_litter(name):
    """Say whether a file or folder was left there by a system or an editor.

    Examples
    --------
    >>> [is_litter(name) for name in ("._ada.py", "ada.py~", "__init__.py")]
    [True, True, False]
    """
    return any(fnmatchcase(name.lower(), pattern) for pattern in LITTER)


def read_submission(paths, classes, kilobytes, starter=""):
    """Return the `Submission` in one file or folder, whatever is in it.

    Parameters
    ----------
    paths : list of Path
        One, or the submission is refused.
    classes : iterable of str
        The names of the classes of the assignment.
    kilobytes : float
        The largest denoiser that is accepted.
    starter : str
        What students were given to complete.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    """
    path, *more = paths
    if not os.path.lexists(path):
        raise FileNotFoundError(f"there is no file {path}: copy the starter there")
    if more:
        return Submission(f"{student_of(path)} was handed in more than once: keep one")
    try:
        return Submission(*pick_denoiser(read_files(path), classes, kilobytes, starter))
    except Refused as refusal:
        return Submission(str(refusal))
    # whatever a damaged or hostile archive makes its reader raise; the whole text of a
    # system's error has the path of whoever grades
    except Exception as error:  # noqa: BLE001
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return Submission(f"{path.name} cannot be read: {why}")


def read_files(path):
    """Return the Python files and notebooks in a file, an archive or a folder.

    Returns
    -------
    dict
        Bytes by path, with "/" between its parts.

    Raises
    ------
    Refused
        If it holds a link, too much, or nothing to be graded.
    """
    files, others, left, count = {}, [], MOST_BYTES, 0
    for name, opened in _entries(path):
        place = PurePosixPath(name.replace("\\", "/"))
        if place.is_absolute() or ".." in place.parts:
            raise Refused(f"{name} leaves its folder: pack the archive again")
        if any(map(is_litter, place.parts)):
            continue
        count += 1
        if count > MOST_FILES or len(place.parts) > MOST_DEPTH:
            raise Refused(f"more than {MOST_FILES} files, or folders more than {MOST_DEPTH} deep, were handed in")
        if opened is None:
            continue
        if place.suffix.lower() not in SUFFIXES:
            others.append(str(place))
            continue
        if str(place) in files:
            raise Refused(f"{place} is in the archive twice")
        with opened() as file:
            data = files[str(place)] = file.read(left + 1)
        left -= len(data)
        if left < 0:
            raise Refused(f"the files are larger than {MOST_BYTES / 2**20:g} MB")
    if not files:
        only = f", only {', '.join(others[:5])}" if others else ""
        raise Refused(f"no Python file and no notebook was handed in{only}")
    return files


def _entries(path):
    """Yield the names in a submission, each with a function that opens the file, or None."""
    if path.is_dir() and not path.is_symlink():
        yield from _entries_of_folder(path)
    elif path.suffix.lower() == ".zip":
        with _open(path) as file:
            yield from _entries_of_archive(file)
    elif path.suffix.lower() in SUFFIXES:
        yield path.name, partial(_open, path)
    else:
        raise Refused(f"{path.name} was handed in: expected {FORMS}")


def _entries_of_folder(folder):
    waiting = [folder]
    while waiting:
        for path in sorted(waiting.pop().iterdir()):
            is_folder = path.is_dir() and not path.is_symlink()
            # the limits are those of whoever asks for the next one
            yield path.relative_to(folder).as_posix(), None if is_folder else partial(_open, path)
            if is_folder and not is_litter(path.name):
                waiting.append(path)


def _entries_of_archive(file):
    if os.fstat(file.fileno()).st_size > MOST_BYTES:
        raise Refused(f"the archive is larger than {MOST_BYTES / 2**20:g} MB")
    with zipfile.ZipFile(file) as archive:
        for entry in archive.infolist():
            if stat.S_ISLNK(entry.external_attr >> 16):
                raise Refused(f"{entry.filename} is a symbolic link")
            # other methods unpack without a limit
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise Refused("the archive is packed in an unusual way")
            yield entry.filename, None if entry.is_dir() else partial(archive.open, entry)


def _open(path):
    """Return a regular file, opened; nobody waits for the other end of a named pipe."""
    if path.is_symlink():
        raise Refused(f"{path.name} is a symbolic link: hand in the file itself")
    file = open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise Refused(f"{path.name} is not a regular file")


def pick_denoiser(files, classes, kilobytes, starter=""):
    """Return the bytes of denoiser.py, its helpers, and a note.

    It is the one file that has a class of the assignment, or is called denoiser.py, or
    else the only file. A starter that nobody has changed is left aside where there is
    another, and so is whatever lies beside or below a denoiser.py with the class.

    Parameters
    ----------
    files : dict
        Bytes by path.
    classes : iterable of str
    kilobytes : float
    starter : str

    Raises
    ------
    Refused
        If there is more than one, or it cannot be read.

    Examples
    --------
    >>> text = b"class Ball(Denoiser): ..."
    >>> pick_denoiser({"a/mine.py": text, "a/help.py": b"k = 1"}, ["Ball"], 1)[1:]
    ({'help.py': b'k = 1'}, 'denoiser.py is a/mine.py')
    """
    pattern = re.compile(rf"^(?:\xef\xbb\xbf)?[ \t]*class[ \t]+({'|'.join(classes)})\b".encode(), re.M)
    read = {name: _read(name, data, classes) for name, data in sorted(files.items())}
    sources = {name: source for name, (source, _) in read.items()}
    has_class = {name for name, source in sources.items() if isinstance(source, bytes) and pattern.search(source)}
    named = [n for n in sources if n in has_class or PurePosixPath(n).name.lower() == "denoiser.py"] or list(sources)
    untouched = {n for n in named if _is_same(sources[n], starter)}
    found = [n for n in named if n not in untouched] or named
    depth = min(n.count("/") for n in found)
    top = [n for n in found if n.count("/") == depth and n.split("/")[-1] == "denoiser.py" and n in has_class]
    found = top if len(top) == 1 else found
    if len(found) > 1:
        raise Refused(f"which file is denoiser.py: {', '.join(found[:5])}? Hand in one of them")
    (name,) = found
    if isinstance(sources[name], str):
        raise Refused(f"{name}: {sources[name]}")
    folder = PurePosixPath(name).parent
    helpers = {
        str(PurePosixPath(each).relative_to(folder)): data
        for each, data in files.items()
        if each != name and PurePosixPath(each).is_relative_to(folder) and each.lower().endswith(".py")
    }
    helpers |= read[name][1]
    if max(len(sources[name]), sum(map(len, helpers.values()))) > kilobytes * 1024:
        raise Refused(f"{name}, or what lies beside it, is larger than {kilobytes:g} kB")
    try:
        sources[name].decode("utf-8")
    except UnicodeDecodeError:
        raise Refused(f"{name} is not encoded in UTF-8: save it with that encoding") from None
    notes = [f"denoiser.py is {name}"] if name != "denoiser.py" and len(files) > 1 else []
    same = {n: " is as it was handed out, and" if n in untouched else "" for n in named if n != name}
    notes += [f"{n}{said} was left aside" for n, said in same.items()]
    return sources[name], helpers, "; ".join(notes)


def _is_same(source, text):
    """Say whether a file has the words of a text, whatever its spaces and ends of line."""
    return isinstance(source, bytes) and source.removeprefix(b"\xef\xbb\xbf").split() == text.encode().split()


def _is_notebook(name, data):
    """Say whether a file is a notebook, which may have the name of a module."""
    return name.lower().endswith(".ipynb") or (data.lstrip()[:1] == b"{" and b'"cell_type"' in data)


def _read(name, data, classes):
    """Return the bytes of a file of Python, and of a notebook those of its denoiser; and the modules in a notebook.

    A notebook that names no class of the assignment is not looked into.
    """
    if not _is_notebook(name, data):
        return data, {}
    text = data.decode(json.detect_encoding(data), "replace")
    is_wanted = any(each in text for each in classes)
    return read_notebook(data, classes) if is_wanted else (f"the notebook has no class {' or '.join(classes)}", {})
