"""Counts in files: a shard holds its rows, what is damaged or missing is named."""

import json
import tracemalloc

import dask.array as da
import numpy as np
import pandas
import pytest
import scipy.sparse as sp

from amptutorial import FisherScore, drop_empty
from amptutorial.bias import bias_of_margins
from amptutorial.cluster.shards import MANIFEST, bytes_to_load, load_counts, open_shards, write_shards


@pytest.fixture(scope="module")
def counts():
    """Return counts (61, 40)."""
    return drop_empty(sp.csr_array(np.random.default_rng(5).poisson(1.5, (61, 40))))[0]


@pytest.fixture
def shards(counts, tmp_path):
    return write_shards(counts, tmp_path / "shards", rows=17)


def test_shards_hold_the_rows_and_their_sums(counts, tmp_path):
    for rows, form in ((1, counts), (17, counts.toarray()), (10_000, counts), (61, [counts])):
        shards = write_shards(form, tmp_path, rows=rows)
        blocks = [sp.load_npz(tmp_path / one["file"]) for one in shards.files]
        assert [list(block.shape) for block in blocks] == [one["shape"] for one in shards.files]
        assert max(len(block.indptr) - 1 for block in blocks) == min(rows, 61)
        assert (sp.vstack(blocks) != counts).nnz == 0
        assert np.array_equal(shards.rows, counts.sum(axis=1)) and np.array_equal(shards.columns, counts.sum(axis=0))


class Columns:
    """A table that iterates over its columns, as those of polars do."""

    def __init__(self, array):
        self.array = array

    def __iter__(self):
        return iter(self.array.T)

    def __array__(self, dtype=None, copy=None):
        return self.array


@pytest.mark.parametrize("form", [np.ndarray.tolist, list, pandas.DataFrame, Columns, sp.coo_array])
def test_what_is_a_table_is_taken_whole(form, tmp_path):
    Z = np.arange(1, 13).reshape(4, 3)
    shards = write_shards(form(Z), tmp_path, rows=3)
    assert [one["shape"] for one in shards.files] == [[3, 3], [1, 3]]
    assert np.array_equal(np.vstack([load_counts(tmp_path, one).toarray() for one in shards.files]), Z)


def test_an_array_of_dask_is_computed_block_by_block(tmp_path):
    Z = np.arange(1, 21).reshape(5, 4)
    shards = write_shards(da.from_array(Z, chunks=(2, 3)), tmp_path)
    assert [one["shape"] for one in shards.files] == [[2, 4], [2, 4], [1, 4]]
    assert np.array_equal(np.vstack([load_counts(tmp_path, one).toarray() for one in shards.files]), Z)


def test_a_block_of_another_width_or_without_counts_and_what_is_no_table_are_named(tmp_path):
    for Z, message in (
        ([np.ones((2, 2)), np.ones((2, 3))], "shard 1 of Z has 3 columns, those before it have 2"),
        ([np.ones((2, 2)), np.zeros((2, 2))], "shard 1 of Z is empty"),
        ([], "Z has no rows"),
        ([np.ones((0, 2)), []], "Z has no rows"),
        ({"wine": [1, 2]}, "^Z must hold real numbers"),  # what is no table is refused as a whole
        ([[1, 2], [3]], "^Z cannot be read as an array"),
        ([1, 2], "^Z must be a matrix"),
    ):
        with pytest.raises(ValueError, match=message):
            write_shards(Z, tmp_path)
    with pytest.raises(FileNotFoundError, match="has no manifest.json"):
        open_shards(tmp_path)


@pytest.mark.parametrize("nothing", [np.ones((0, 2)), sp.csr_array((0, 2)), pandas.DataFrame({1: [], 2: []}), []])
def test_blocks_without_rows_are_passed_over(nothing, tmp_path):
    """Such as a filter leaves: of an iterable, of a list, of an array of Dask whose blocks have unknown sizes."""
    Z = np.arange(1, 9).reshape(4, 2)
    for blocks in ([nothing, Z[:3], nothing, Z[3:]], iter([nothing, Z])):
        shards = write_shards(blocks, tmp_path)
        assert np.array_equal(np.vstack([load_counts(tmp_path, one).toarray() for one in shards.files]), Z)
    for columns in (1, 2):
        array = da.from_array(Z, chunks=(1, columns))
        assert np.array_equal(write_shards(array[da.from_array(Z[:, 0] > 3, chunks=1)], tmp_path).rows, [11, 15])


def test_rows_without_counts_may_be_in_a_shard_with_others(tmp_path):
    shards = write_shards(np.array([[1, 1], [0, 0]]), tmp_path)
    assert list(shards.rows) == [2, 0] and list(shards.columns) == [1, 1]


def test_a_shard_that_is_missing_is_named_before_a_run_and_in_it(shards):
    (shards.folder / "shard-00001.npz").unlink()
    with pytest.raises(FileNotFoundError, match="shard-00001.npz is missing"):
        open_shards(shards.folder)
    with pytest.raises(FileNotFoundError, match="shard-00001.npz is missing"):
        load_counts(shards.folder, shards.files[1])


def swap(manifest):
    first, last = manifest["shards"][0]["shape"], manifest["shards"][-1]["shape"]
    first[0], last[0] = last[0], first[0]


EDITS = [
    (lambda manifest: manifest["shards"][2].pop("pairs"), "manifest.json in .* is damaged"),
    (lambda manifest: manifest.update(margins=""), "margins.npz in .* is not as it was written"),
    (lambda manifest: manifest["shards"][1]["shape"].__setitem__(0, 0), "shard-00001.npz in .* has the shape"),
    (lambda manifest: manifest["shards"].pop(), "do not have 61 rows in all"),
    (swap, "shard-000.*.npz has the shape .*, the manifest has"),  # as its counts are loaded
]


@pytest.mark.parametrize(("edit", "message"), EDITS)
def test_a_manifest_that_cannot_be_is_refused(edit, message, shards):
    manifest = json.loads((shards.folder / MANIFEST).read_text())
    edit(manifest)
    (shards.folder / MANIFEST).write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match=message):
        for one in open_shards(shards.folder).files:
            load_counts(shards.folder, one)


def test_an_interrupted_writing_leaves_no_manifest(counts, shards):
    def blocks():
        yield counts[:5]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_shards(blocks(), shards.folder)
    with pytest.raises(FileNotFoundError, match="has no manifest.json"):
        open_shards(shards.folder)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_to_load_a_shard_takes_the_memory_that_is_asked_for(dtype, index, rng, tmp_path):
    Z = sp.random_array((300, 400), density=0.5, format="csr", rng=rng)
    Z = sp.csr_array((np.ceil(9 * Z.data).astype(dtype), Z.indices.astype(index), Z.indptr.astype(index)), Z.shape)
    (shard,) = write_shards(Z, tmp_path).files
    r_u, r_v = bias_of_margins(*(np.asarray(Z.sum(axis=k), float) for k in (1, 0)))
    tracemalloc.start()
    FisherScore(load_counts(tmp_path, shard), r_u, r_v)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    margins = 50 * sum(Z.shape) + 20_000  # of rows and columns, and of what Python itself takes
    wide = index == np.int64 and dtype == np.float64
    assert (0.95 if wide else 0.45) * bytes_to_load(shard) < peak < bytes_to_load(shard) + margins
