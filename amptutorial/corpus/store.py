"""Arrays kept on disk between runs, under a key made of everything they depend on."""

import hashlib
import io
import json
import warnings
from importlib.metadata import version

import numpy as np

from .._extras import extra
from .._files import write_atomically
from .archive import cache_folder
from .words import PIPELINE


def stored(choices, compute):
    """Return the arrays stored under `choices`; compute and store them if need be.

    `choices` are all that `compute` depends on, except for the versions of the code. A
    warning says that the stored file is damaged, or that the arrays cannot be stored.
    """
    with extra("texts"):
        versions = [PIPELINE, *map(version, ("numpy", "scikit-learn", "simplemma"))]
    key = hashlib.sha256(json.dumps([choices, versions]).encode()).hexdigest()[:16]
    file = cache_folder() / f"{key}.counts"
    if file.is_file():
        try:
            return load(file)
        except (OSError, ValueError) as error:
            why = f"{file} is damaged ({error}): the words are counted again"
            warnings.warn(why, stacklevel=4)
    arrays = compute()
    try:
        save(file, arrays)
    except OSError as error:
        why = f"the counts cannot be kept in {file.parent} for the next time ({error})"
        warnings.warn(why, stacklevel=4)
    return arrays


def load(file):
    """Return the arrays of a file that `save` wrote; ValueError if it is damaged."""
    with open(file, "rb") as source:
        digest, data = source.read(32), source.read()
    # zip's own sums leave the names of the arrays unprotected
    if hashlib.sha256(data).digest() != digest:
        raise ValueError("its checksum is wrong")
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        return dict(arrays)


def save(file, arrays):
    """Write arrays after their checksum."""
    data = io.BytesIO()
    np.savez_compressed(data, **arrays)
    digest = hashlib.sha256(data.getvalue()).digest()
    write_atomically(file, digest + data.getvalue())
