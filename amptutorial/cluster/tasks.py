"""What runs on shards share: checks, tasks, sums in a tree, checkpoints."""

import pickle
import warnings
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from .. import __version__
from .._extras import extra, pip_install
from ..score import blocks
from .shards import bytes_to_load, write_arrays

CHECKPOINT = "checkpoint.npz"
FAN_IN = 8  # sums that one task adds up
SMALL = 2**16  # bytes that are sent with every task, not once to each worker


def check_client(client):
    """Refuse what is not a client of Dask."""
    with extra("dask"):
        from distributed import Client
    if not isinstance(client, Client):
        raise TypeError(f"client must be a distributed.Client, got {client!r}")


def check_cluster(client, module, files=()):
    """Refuse a cluster that cannot do the work, before it begins.

    The workers, and the scheduler, must be able to import the `module`, and the workers
    to load the largest of the `files`. Workers that join later are not checked.
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
                f"{where} cannot import {module} ({error}): run there, with the "
                f"version used here, {pip_install('dask')}"
            ) from error
    largest = max(files, key=bytes_to_load, default=None)
    need = bytes_to_load(largest) if largest else 0
    for where, worker in _workers_of(client).items():
        limit = worker["memory_limit"] or need  # none, or zero: no limit
        if largest and limit < need:
            raise MemoryError(
                f"{largest['file']} takes {need / 1e6:.3g} MB to load, and {where} may "
                f"use {limit / 1e6:.3g} MB: write smaller shards (fewer rows in each), "
                "or give workers more memory"
            )


def _workers_of(client):
    """Return what the scheduler knows of each worker, by its address.

    `Client.scheduler_info` may come from a cache that names no worker.
    """
    return client.sync(client.scheduler.identity, n_workers=-1)["workers"]


def pickled(denoisers):
    """Return denoisers as bytes, for a checkpoint."""
    try:
        return pickle.dumps(denoisers, protocol=4)
    except Exception as error:
        raise TypeError(
            f"denoiser {denoisers!r} cannot be pickled for a checkpoint: define its "
            f"class in a module, and keep data in it, no functions ({error})"
        ) from error


class Checkpoint:
    """What a run has reached, in a folder, or nowhere if `folder` is None.

    The run is given `parts`, an iterable of bytes: a checkpoint of another run, which
    may have `others`, such as "other counts", is refused.
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
        stored = {"fingerprint": self.fingerprint, "state": state}
        write_arrays(self.path, np.savez, **stored, version=__version__)

    def load(self):
        """Return the state stored last; None if there is none."""
        if self.path is None or not self.path.exists():
            return None
        data = BytesIO(self.path.read_bytes())
        try:
            stored = np.load(data)
            names = "fingerprint", "state", "version"
            fingerprint, state, version = (stored[name] for name in names)
        except (ValueError, LookupError, EOFError, BadZipFile) as error:
            raise ValueError(
                f"{self.path} is damaged ({error}): remove it, and the run begins anew"
            ) from error
        if not np.array_equal(fingerprint, self.fingerprint):
            raise ValueError(
                f"{self.path} is of {self.others}: give this run a folder of its own"
            )
        try:
            return pickle.loads(state)
        except (AttributeError, ImportError, TypeError) as error:  # of another shape
            raise ValueError(
                f"{self.path}, of version {version} of amptutorial, cannot be read by "
                f"{__version__} ({error}): go on with that version and the modules of "
                "the denoiser, or remove the file, and the run begins anew"
            ) from error


class Tasks:
    """The tasks of one run on a cluster."""

    def __init__(self, client):
        self.client = client
        client.wait_for_workers(1, timeout=60)  # the first, or one that comes back
        self.workers = sorted(_workers_of(client))

    def map(self, task, *arguments):
        """Return the futures of a task for each block, neighbours on the same worker.

        Each argument is a list with one entry for each block. A future holds them, and
        can be repeated. So few sums leave a worker, and what belongs to a block stays
        where the block is. If a worker is lost, others take its place.
        """
        futures, share = [], -(-len(arguments[0]) // len(self.workers))
        cuts = blocks(len(arguments[0]), share)
        for cut, worker in zip(cuts, self.workers, strict=False):
            where = {"workers": [worker], "allow_other_workers": True, "pure": False}
            with warnings.catch_warnings():
                # Dask asks for `scatter`, which is lost with a worker
                warnings.filterwarnings("ignore", "Sending large graph")
                some = (each[cut] for each in arguments)
                futures += self.client.map(task, *some, **where)
        return futures

    def share(self, value, number):
        """Return a list with a value for each of a `number` of tasks.

        Large ones are sent once: workers hand them on to each other.
        """
        buffers = []
        size = len(pickle.dumps(value, protocol=5, buffer_callback=buffers.append))
        if size + sum(each.raw().nbytes for each in buffers) > SMALL:
            (value,) = self.map(_given, [value])
        return [value] * number

    def summed(self, parts):
        """Return at most `FAN_IN` futures whose tuples `add` up to those of `parts`.

        Each worker adds up what it has before it sends it.
        """
        while len(parts) > min(FAN_IN, len(self.workers)):
            share = -(-len(parts) // len(self.workers))
            size = FAN_IN if share == 1 else min(FAN_IN, share)
            parts = self.map(add, [parts[k] for k in blocks(len(parts), size)])
        return parts

    def gather(self, futures):
        """Return the results of futures, in lists as they are."""
        return self.client.gather(futures)


def add(parts):
    """Return the sum of tuples, entry by entry."""
    return tuple(map(sum, zip(*parts, strict=True)))


def _given(value):
    return value
