"""The movie-review archive: where it lies, whether it is whole, and the reviews in it.

Nothing is ever unpacked: the archive is read as one stream, and a member is only a name
and some bytes.
"""

import gzip
import hashlib
import io
import os
import re
import tarfile
import zipfile
import zlib
from pathlib import Path

from .._extras import extra
from .._progress import progress

SIZE = 84_125_825  # bytes
URL = "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz"
_OFFICIAL, _LABELLED = "aclImdb_v1.tar.gz", "aclImdb_labelled.tar.gz"  # half of it
SHA256 = {
    _OFFICIAL: "c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe",
    _LABELLED: "be944c6863d0848463795f09d7370ad897cd7dbc929a8594639dc0333c82ded6",
}
_WANTED = (
    "a tar archive compressed by gzip, with members named"
    " aclImdb/{train,test}/{pos,neg}/<id>_<rating>.txt"
)
_REVIEW = re.compile(r"aclImdb/(?:train|test)/(pos|neg)/\d+_\d+\.txt")


def cache_folder():
    """Return the folder for downloads and counts: `AMPTUTORIAL_CACHE`, else pooch's."""
    if folder := os.environ.get("AMPTUTORIAL_CACHE"):
        return Path(folder).expanduser()
    with extra("texts"):
        import pooch
    return Path(pooch.os_cache("amptutorial"))


def find_archive(path=None):
    """Return the path of the archive, downloading it where need be.

    It is looked for and refused as `load_movie_reviews` says. A file or folder of the
    user's own is taken as it is; what the cache holds must have a known checksum.
    """
    if path is not None:
        return _supplied(path, "path")
    if os.environ.get("AMPTUTORIAL_DATA"):
        return _supplied(os.environ["AMPTUTORIAL_DATA"], "AMPTUTORIAL_DATA")
    cached = _in_folder(cache_folder())
    return _verified(cached) if cached else _download()


def sha256(path):
    """Return the SHA-256 of the file, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_reviews(path):
    """Return the texts of the labelled reviews by member name, sorted by name.

    A ValueError says that the archive is of another kind, is truncated or damaged, or
    holds no review.
    """
    _check_kind(path)
    try:
        reviews = dict(_stream(path))
    except (EOFError, OSError, tarfile.TarError, zlib.error) as error:
        other = ", or no tar archive" if isinstance(error, tarfile.TarError) else ""
        fault = f"is truncated or damaged{other} ({error})"
        fate = "The file is left where it is: replace it with a whole copy."
        raise ValueError(_refusal(path, fault, fate)) from error
    if not reviews:
        raise ValueError(f"{path} holds no review: wanted is {_WANTED}")
    return {name: reviews[name] for name in sorted(reviews)}


def sentiment(name):
    """Return 1 for the member name of a positive review, 0 for a negative one."""
    return int(_REVIEW.sub(r"\1", name) == "pos")


def _supplied(path, origin):
    path = Path(path).expanduser()
    found = _in_folder(path) if path.is_dir() else path
    if found is None:
        raise FileNotFoundError(
            f"{origin} is the folder {path}, which holds none of {', '.join(SHA256)}"
        )
    if not found.is_file():
        missing = "there is no such file or folder"
        raise FileNotFoundError(f"{origin} is {path}, but {missing}")
    return found


def _in_folder(folder):
    return next((folder / name for name in SHA256 if (folder / name).is_file()), None)


def _download():
    with extra("texts"):
        import pooch
    target = cache_folder() / _OFFICIAL
    given = URL, SHA256[_OFFICIAL], _OFFICIAL, target.parent
    bar = progress(desc="Downloading", total=SIZE, unit="B", unit_scale=True)
    try:
        return Path(pooch.retrieve(*given, progressbar=bar))
    # the network stack raises many errors; the reader's way out is the same
    except Exception as error:
        raise ConnectionError(
            "the movie reviews are not on this machine and could not be downloaded from"
            f" {URL} ({error}). Get the file elsewhere and supply it in one of three"
            f" ways: pass its path, load_movie_reviews('{_OFFICIAL}'); set the"
            " environment variable AMPTUTORIAL_DATA to the file or its folder; or save"
            f" it as {target}. load_docstrings() needs no download."
        ) from error


def _verified(path):
    """Return `path`, in our own folder, or set it aside if its checksum is unknown."""
    if sha256(path) in SHA256.values():
        return path
    aside = path.with_name(f"{path.name}.rejected")
    fate = f"It is kept aside as {aside}; call again to download."
    message = _refusal(path, "is truncated or altered", fate)
    path.replace(aside)
    raise ValueError(message)


def _refusal(path, fault, fate):
    known = " or ".join(f"{digest} ({name})" for name, digest in SHA256.items())
    return f"{path} {fault}: found sha256 {sha256(path)}, expected {known}. {fate}"


def _check_kind(path):
    """Refuse a file that does not begin as gzip does, and say what it is."""
    with open(path, "rb") as file:
        start = file.read(512)
    if start.startswith(b"\x1f\x8b") or not start:
        return
    kinds = {
        "a zip archive": zipfile.is_zipfile(path),
        "a tar archive that is not compressed by gzip": tarfile.is_tarfile(path),
        f"text that begins with {start[:40].decode(errors='replace')!r}": b"\0"
        not in start,
    }
    found = next((kind for kind, matches in kinds.items() if matches), "no archive")
    raise ValueError(
        f"{path} is {found}: wanted is {_WANTED}. Pass the file as it is at {URL}"
    )


def _stream(path):
    """Yield (member name, text) of each labelled review.

    Only a plain file with the name of a review is read: a link, a device, or a name
    that points elsewhere is passed over.
    """
    # gzip, unlike tarfile's own decompression of a stream, refuses a truncated file and
    # checks the sum at its end
    with gzip.open(path) as unzipped, io.BufferedReader(unzipped, 1 << 20) as stream:
        with tarfile.open(fileobj=stream, mode="r:") as archive:
            shown = {"desc": "Reading the archive", "unit": " files", "leave": False}
            for member in progress(archive, **shown):
                name = member.name.removeprefix("./")
                plain = member.isfile() and _REVIEW.fullmatch(name)
                if plain and (file := archive.extractfile(member)):
                    yield name, _text(file.read(), name, path)
        while stream.read(1 << 20):
            pass


def _text(data, name, path):
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is refused: its member {name!r} is not UTF-8 text ({error})"
        ) from error
