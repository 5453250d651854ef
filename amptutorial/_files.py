"""Files that are written all at once."""

import os
from importlib import import_module
from pathlib import Path
from uuid import uuid4

COMPRESSING = {".gz": "gzip", ".bz2": "bz2", ".xz": "lzma"}  # modules, by the suffix
# what readers would unpack, or take for another format
REFUSED = (".zip", ".zst", ".tar", ".tgz", ".7z", ".lz4", ".lzma", ".z", ".br", ".rar")


def compressed(path, data):
    r"""Return the bytes `data` as a file of this name holds them, by its suffix.

    Raises
    ------
    ValueError
        For a suffix of an archive, or of another compression.

    Examples
    --------
    >>> compressed("words.txt", b"wine"), compressed("words.txt.gz", b"wine")[:2]
    (b'wine', b'\x1f\x8b')
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix in REFUSED or path.stem.lower().endswith(".tar"):
        how = f"take {', '.join(COMPRESSING)} to compress it, or another name"
        raise ValueError(f"{path.name} would not be what its name says: {how}")
    module = COMPRESSING.get(suffix)
    return import_module(module).compress(data) if module else data


def write_atomically(path, data):
    """Write `data` to `path` so that a reader meets the old file or the whole new one.

    Folders that are missing are made. An interrupted write leaves the old file, and
    nothing beside it.

    Parameters
    ----------
    path : path
    data : str or bytes
        A text is stored as UTF-8, with "?" for what UTF-8 cannot hold.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_atomically(folder / "new" / "notes.txt", "kept")
    >>> (folder / "new" / "notes.txt").read_text(), len(list(folder.rglob("*")))
    ('kept', 2)
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    # a name of its own: two processes may write the same file
    part = path.with_name(f".{uuid4().hex}.part")
    try:
        text = isinstance(data, str)
        part.write_bytes(data.encode("utf-8", "replace") if text else data)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
