"""Counts in files: shards of their rows, for several processes or machines.

A folder holds the shards, the sums of the rows and columns, and a manifest with the
shape and the checksum of each. `amptutorial.cluster.amp` runs AMP on such a folder.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from .._files import write_atomically
from .._validation import check_counts, check_integer
from ..bias import margins
from ..score import blocks

MANIFEST, MARGINS = "manifest.json", "margins.npz"
PAIR_BYTES = 48  # of a shard while its score is formed: three copies, indices of int64


@dataclass(frozen=True)
class Shards:
    """A matrix of counts in files; see `open_shards`.

    Attributes
    ----------
    folder : Path
    files : list of dict
        For each shard its "file", "shape", "sha256", and the number of "pairs" of a row
        and a column that it stores.
    rows, columns : arrays (m,), (n,)
        Their sums.
    checksum : str
        Of the manifest, and so of all counts.
    """

    folder: Path
    files: list[dict]
    rows: np.ndarray
    columns: np.ndarray
    checksum: str

    shape = property(lambda self: (len(self.rows), len(self.columns)), doc="(m, n).")


def write_shards(Z, folder, *, rows=10_000):
    """Write counts as shards of their rows, in a folder that all workers see.

    The manifest is written last: a folder without one is not whole.

    Parameters
    ----------
    Z : array or sparse array (m, n), or an iterable of them
        All counts, such as an array, a list of rows, a DataFrame or a Corpus, or blocks
        of their rows, each of which becomes a shard if it has a row. A Dask array or
        DataFrame is computed block by block.
    folder : path
    rows : int
        How many rows a shard has at most, where `Z` holds all counts.

    Returns
    -------
    Shards

    Raises
    ------
    ValueError
        For invalid counts, or a block that has no counts or another width; it is
        named.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> shards = write_shards(np.array([[1, 2], [3, 6], [0, 1]]), folder, rows=2)
    >>> shards.shape, [shard["shape"] for shard in shards.files], shards.columns
    ((3, 2), [[2, 2], [1, 2]], array([4., 9.]))
    >>> write_shards(([[1] * k] for k in (2, 3)), folder)
    Traceback (most recent call last):
    ...
    ValueError: shard 1 of Z has 3 columns, those before it have 2
    """
    folder = Path(folder)
    rows = check_integer(rows, "rows", minimum=1)
    Z = _blocks_of_rows(Z, rows)
    (folder / MANIFEST).unlink(missing_ok=True)
    files, row_sums, column_sums = [], [], 0
    # a filter leaves blocks without rows
    for k, block in enumerate(block for block in Z if _has_rows(block)):
        block = sp.csr_array(check_counts(block, name=f"shard {k} of Z"))
        if files and block.shape[1] != files[0]["shape"][1]:
            raise ValueError(
                f"shard {k} of Z has {block.shape[1]} columns, those before it have "
                f"{files[0]['shape'][1]}"
            )
        sums = margins(block)
        if not sums[0].any():
            raise ValueError(f"shard {k} of Z is empty: leave it out")
        name = f"shard-{k:05d}.npz"
        checksum = write_arrays(folder / name, sp.save_npz, block, compressed=False)
        shape = {"shape": list(block.shape), "pairs": block.nnz}
        files.append({"file": name, **shape, "sha256": checksum})
        row_sums.append(sums[0])
        column_sums = column_sums + sums[1]
    if not files:
        raise ValueError("Z has no rows")
    sums = {"rows": np.concatenate(row_sums), "columns": column_sums}
    checksum = write_arrays(folder / MARGINS, np.savez, **sums)
    manifest = json.dumps({"margins": checksum, "shards": files}, indent=1)
    write_atomically(folder / MANIFEST, manifest)
    return open_shards(folder)


def _blocks_of_rows(Z, rows):
    """Return the blocks that become shards: Dask's, given ones, or those of a table."""
    if hasattr(Z, "__dask_graph__"):
        wide = {axis: -1 for axis in range(1, Z.ndim)}
        parts = Z.rechunk(wide) if hasattr(Z, "rechunk") else Z
        return (parts.partitions[k].compute() for k in range(parts.npartitions))
    if isinstance(Z, Iterable) and not _is_table(Z):
        return Z
    whole = check_counts(Z)
    return (whole[part] for part in blocks(whole.shape[0], rows))


def _has_rows(block):
    is_list = isinstance(block, Sequence)
    shape = (len(block),) if is_list else getattr(block, "shape", ())
    return shape[:1] != (0,)


def _is_table(Z):
    """Return whether `Z`, which is iterable, is all counts and not blocks of rows."""
    rows = isinstance(Z, Sequence) and len(Z) > 0
    rows = rows and np.ndim(next(filter(_has_rows, Z), Z[0])) < 2
    whole = sp.issparse(Z) or hasattr(Z, "__array__") or isinstance(Z, Mapping)
    return rows or whole


def write_arrays(path, save, *args, **kwargs):
    """Save arrays in a file at once, and return the checksum of the file."""
    file = BytesIO()
    save(file, *args, **kwargs)
    write_atomically(path, file.getvalue())
    return sha256(file.getvalue()).hexdigest()


def _read(path, checksum):
    """Return the file as it was written."""
    if not path.is_file():
        raise FileNotFoundError(f"{path.name} is missing in {path.parent}")
    data = path.read_bytes()
    if sha256(data).hexdigest() != checksum:
        raise ValueError(
            f"{path.name} in {path.parent} is not as it was written: write shards again"
        )
    return BytesIO(data)


def open_shards(folder):
    """Return the shards that `write_shards` wrote in a folder.

    Raises
    ------
    FileNotFoundError
        If the manifest, which is written last, or a shard is missing.
    ValueError
        If the manifest is damaged, or names a shard that is empty or has another width.
    """
    folder = Path(folder).resolve()
    if not (folder / MANIFEST).is_file():
        raise FileNotFoundError(
            f"{folder} has no {MANIFEST}: write_shards(Z, folder) writes it last"
        )
    text = (folder / MANIFEST).read_bytes()
    try:
        manifest = json.loads(text)
        files, checksum = manifest["shards"], manifest["margins"]
        shapes = {one["file"]: tuple(map(int, one["shape"])) for one in files}
        sum(map(bytes_to_load, files))
    except (ValueError, TypeError, LookupError) as error:
        raise ValueError(f"{MANIFEST} in {folder} is damaged: {error!r}") from error
    sums = np.load(_read(folder / MARGINS, checksum))
    rows, columns = sums["rows"], sums["columns"]
    for name, shape in shapes.items():
        if len(shape) != 2 or shape[0] < 1 or shape[1] != len(columns):
            raise ValueError(
                f"{name} in {folder} has the shape {shape}, expected at least one row "
                f"and {len(columns)} columns"
            )
        if not (folder / name).is_file():
            raise FileNotFoundError(f"{name} is missing in {folder}")
    if sum(shape[0] for shape in shapes.values()) != len(rows):
        raise ValueError(f"the shards in {folder} do not have {len(rows)} rows in all")
    return Shards(folder, files, rows, columns, sha256(text).hexdigest())


def bytes_to_load(shard):
    """Return how much memory the score of a shard takes at most while it is formed."""
    return PAIR_BYTES * int(shard["pairs"])


def load_counts(folder, shard):
    """Return the counts of a shard, an entry of `Shards.files`; a worker calls this."""
    Z = sp.load_npz(_read(Path(folder) / shard["file"], shard["sha256"]))
    if list(Z.shape) != list(shard["shape"]):
        raise ValueError(
            f"{shard['file']} has the shape {Z.shape}, the manifest has "
            f"{tuple(shard['shape'])}"
        )
    return Z
