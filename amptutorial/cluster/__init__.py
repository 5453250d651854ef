"""Counts that one process does not hold: shards in files, and AMP on a Dask cluster.

Dask comes with the extra ``dask``.
"""
