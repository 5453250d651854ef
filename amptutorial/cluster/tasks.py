"""What runs on shards share: checks, tasks, sums in a tree, checkpoints."""

import pickle
import warnings
from hashlib import sha256
from io import BytesIO
from operator import itemgetter
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from .._blocks import blocks
from .shards import bytes_to_load, write_arrays

CHECKPOINT = "checkpoint.npz"
FAN_IN = 8  # sums that one task adds up


def check_client(client):
    """Refuse what is not a client of Dask."""
    try:
        from distributed import Client
    except ImportError as error:
        raise ImportError(
            "runs on shards need Dask: pip install amptutorial[dask]"
        ) from error
    if not isinstance(client, Client):
        raise TypeError(f"client must be a distributed.Client, got {client!r}")


def check_cluster(client, module, files=()):
    """Refuse a cluster that cannot do the work, before it begins.

    Workers that join later are not checked.

    Raises
    ------
    ImportError
        Naming a worker, or the scheduler, that cannot import the `module`.
    MemoryError
        Naming the largest of the `files` of shards, if a worker may not use the memory
        to load it.
    """
    task = exec, f"import {module}", {}  # whose name needs no package
    found = client.run(*task, on_error="return")
    try:
        client.run_on_scheduler(*task)
    except ImportError as error:
        found["the scheduler"] = error
    for where, error in found.items():
        if error is not None:
            raise ImportError(
                f"{where} cannot import {module} ({error}): run pip install "
                "amptutorial[dask] there, with the version used here"
            ) from error
    largest = max(files, key=bytes_to_load, default=None)
    need = bytes_to_load(largest) if largest else 0
    for where, worker in client.scheduler_info(n_workers=-1)["workers"].items():
        limit = worker["memory_limit"] or need  # none, or zero: no limit
        if limit < need:
            raise MemoryError(
                f"{largest['file']} takes {need / 1e6:.3g} MB to load, and {where} may "
                f"use {limit / 1e6:.3g} MB: write smaller shards (fewer rows in each), "
                "or give workers more memory"
            )


def pickled(denoisers):
    """Return denoisers as bytes, for a checkpoint."""
    try:
        return pickle.dumps(denoisers, protocol=4)
    except Exception as error:
        raise TypeError(
            f"denoiser {denoisers!r} cannot be pickled, and so not be part of a "
            "checkpoint: define its class in a module, and keep data in it, no "
            f"functions ({error})"
        ) from error


class Checkpoint:
    """What a run has reached, in a folder, or nowhere if `folder` is None.

    Parameters
    ----------
    folder : path, optional
    parts : iterable of bytes
        What the run is given. A checkpoint of a run with other parts is refused.
    others : str
        What another run may have, such as "other counts".
    """

    def __init__(self, folder, parts, others):
        self.path = None if folder is None else Path(folder) / CHECKPOINT
        digests = b"".join(sha256(one).digest() for one in parts)
        self.fingerprint, self.others = np.frombuffer(digests, np.uint8), others

    def save(self, state):
        """Store `state`, by `pickle`, in the place of the one before."""
        if self.path is None:
            return
        state = np.frombuffer(pickle.dumps(state), np.uint8)
        write_arrays(self.path, np.savez, fingerprint=self.fingerprint, state=state)

    def load(self):
        """Return the state stored last, or None if there is none.

        Raises
        ------
        ValueError
            If the file is damaged, or of another run.
        """
        if self.path is None or not self.path.exists():
            return None
        data = BytesIO(self.path.read_bytes())
        try:
            stored = np.load(data)
            fingerprint, state = stored["fingerprint"], stored["state"]
        except (ValueError, LookupError, EOFError, BadZipFile) as error:
            raise ValueError(
                f"{self.path} is damaged ({error}): remove it, and the run begins anew"
            ) from error
        if not np.array_equal(fingerprint, self.fingerprint):
            raise ValueError(
                f"{self.path} is of {self.others}: give this run a folder of its own"
            )
        return pickle.loads(state)


class Tasks:
    """The tasks of one run on a cluster."""

    def __init__(self, client):
        self.client, self.workers = client, []

    def submit(self, task, *args, **where):
        """Return the future of a task, which holds its arguments and can be repeated.

        Dask would warn of large ones, and ask for `scatter`, which is lost with a
        worker.
        """
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")
            return self.client.submit(task, *args, pure=False, **where)

    def spread(self, task, arguments):
        """Return the futures of a task for each shard, always on the same workers.

        Neighbours are on one worker, so that few sums leave it, and what belongs to a
        shard stays where the shard is. If a worker is lost, others take its place.
        """
        if not self.workers:
            known = self.client.scheduler_info(n_workers=-1)["workers"]
            self.workers = sorted(known)
        arguments, k = list(arguments), len(self.workers)
        places = [i * k // len(arguments) for i in range(len(arguments))]
        return [
            self.submit(
                task, *each, workers=self.workers[i : i + 1], allow_other_workers=True
            )
            for each, i in zip(arguments, places, strict=True)
        ]

    def share(self, value):
        """Return the future of a value, which workers hand on to each other."""
        return self.submit(_given, value)

    def total(self, parts):
        """Return the sum over the shards, added up in a tree.

        Parts are tuples of what is added up, or None.
        """
        while len(parts) > 1:
            parts = self._added(parts, _add)
        return parts[0]

    def _added(self, parts, task):
        groups = blocks(len(parts), FAN_IN)
        return self.spread(task, ((parts[group],) for group in groups))

    def collect(self, found):
        """Return what tasks found for their rows, and the sum of what adds up.

        Each of them returns a pair: the rows, and a tuple of what adds up.
        """
        rows = self.spread(itemgetter(0), ((each,) for each in found))
        total = self.total(self._added(found, _add_seconds))
        total, *rows = self.client.gather([total, *rows])
        return rows, total


def _given(value):
    return value


def _add(parts):
    parts = [part for part in parts if part is not None]
    return tuple(map(sum, zip(*parts, strict=True))) if parts else None


def _add_seconds(pairs):
    return _add([second for _, second in pairs])
