"""Near-twins: texts that repeat at least half of what other texts say."""

from collections import defaultdict

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from .words import number_words

# words: texts that have nothing to do with each other share shorter runs ("one of the
# worst movies I have")
_RUN = 8


def distinct(texts, limit=None, tokenize=None):
    """Return the first `limit` texts left once near-twins are out.

    A text is a near-twin if at least half of its runs of eight words occur in the texts
    kept before it. A text of fewer words is one run.

    Returns
    -------
    numbered : NumberedTexts
        The words of the texts that are kept.
    kept : array of int
        Their positions.
    n_twins : int
        The number of near-twins met.

    Examples
    --------
    >>> numbered, kept, n_twins = distinct(["Red wine.", "RED wine!", "wine"])
    >>> numbered.numbers.tolist(), kept.tolist(), n_twins
    ([0, 1, 1], [0, 2], 1)
    """
    limit = len(texts) if limit is None else limit
    n_read = limit + limit // 16  # most texts have no twin
    while True:
        numbered = number_words(texts[:n_read], tokenize)
        kept = np.delete(np.arange(len(numbered.lengths)), _near_twins(numbered))
        if len(kept) >= limit or n_read >= len(texts):
            break
        n_read *= 2
    kept = kept[:limit]
    n_met = len(texts) if len(kept) < limit else kept.max(initial=-1) + 1
    return numbered.take(kept), kept, int(n_met) - len(kept)


def _near_twins(texts):
    """Return the positions of the near-twins among numbered texts."""
    runs, owners = _runs(texts)
    n_runs = np.bincount(owners, minlength=len(texts.lengths))
    again = _repeated(runs)
    shared = defaultdict(list)
    for owner, run in zip(owners[again].tolist(), runs[again].tolist(), strict=True):
        shared[owner].append(run)

    twins, seen = [], set()
    for owner, found in sorted(shared.items()):
        distinct_runs = set(found)
        size = n_runs[owner] - len(found) + len(distinct_runs)
        if 2 * len(distinct_runs & seen) >= size:
            twins.append(owner)
        else:
            seen |= distinct_runs
    return np.array(twins, dtype=np.int64)


def _runs(texts):
    """Return the hash of each run of eight words, and the text that it belongs to.

    A hash is a sum of random 64-bit numbers, one for each word, times odd factors, one
    for each place: two runs that differ have one hash with a probability near 2^-64.
    """
    rng = np.random.default_rng(0)
    codes = rng.integers(2**64, size=len(texts.vocabulary), dtype=np.uint64)
    factors = rng.integers(2**63, size=_RUN, dtype=np.uint64) * np.uint64(2) + 1
    owners, coded = texts.owners(), codes[texts.numbers]
    inside = owners[: 1 - _RUN] == owners[_RUN - 1 :]
    runs = sliding_window_view(np.pad(coded, (0, _RUN)), _RUN)[: len(inside)] @ factors
    # a shorter text is one run
    short = np.flatnonzero((texts.lengths > 0) & (texts.lengths < _RUN))
    ends = np.cumsum(texts.lengths)[short]
    places = zip(ends, texts.lengths[short], strict=True)
    whole = [coded[end - k : end] @ factors[:k] for end, k in places]
    hashes = np.concatenate([runs[inside], np.array(whole, dtype=np.uint64)])
    return hashes, np.concatenate([owners[: 1 - _RUN][inside], short])


def _repeated(hashes):
    """Return the positions of those that occur more than once."""
    ranked = np.sort(hashes)
    repeated = ranked[1:][ranked[1:] == ranked[:-1]]
    # few as a rule: to look each hash up among them takes less memory than to rank all
    first, end = (np.searchsorted(repeated, hashes, side) for side in ("left", "right"))
    return np.flatnonzero(first < end)
