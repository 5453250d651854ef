"""Files that are written all at once."""

import os
from pathlib import Path
from uuid import uuid4


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
