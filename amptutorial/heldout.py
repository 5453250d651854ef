"""Judging an embedding by counts it has not seen."""

import numpy as np
import scipy.sparse as sp

from ._validation import check_counts, check_positive, check_rng
from .poisson import tilted_means

PAIRS_AT_ONCE = 2**16  # of which embeddings are gathered, whatever the number of counts


def split_counts(Z, fraction, rng):
    """Split the counts at random into two matrices that add up to `Z`; `fraction` of them is expected in the second.

    Every single count goes its own way (binomial thinning): for Poisson counts the two
    matrices are independent, with the rates of `Z` times 1 - fraction and fraction. A
    fractional rest goes to one of them whole, by the same coin.

    Parameters
    ----------
    Z : array or sparse array (m, n)
    fraction : float
        Between 0 and 1.
    rng : numpy.random.Generator

    Returns
    -------
    kept, held_out : csr_arrays (m, n)

    Raises
    ------
    ValueError
        For invalid counts, or a fraction that is not between 0 and 1.

    Examples
    --------
    >>> kept, held_out = split_counts(np.array([[3, 0], [1, 6]]), 0.5, np.random.default_rng(0))
    >>> (kept + held_out).toarray()
    array([[3., 0.],
           [1., 6.]])
    """
    Z = sp.csr_array(check_counts(Z), dtype=np.float64)
    check_rng(rng)
    if check_positive(fraction, "fraction") >= 1:
        raise ValueError(f"fraction must be between 0 and 1, got {fraction}")
    whole = np.floor(Z.data)
    taken = rng.binomial(whole.astype(np.int64), fraction) + (Z.data - whole) * (
        rng.random(len(whole)) < fraction
    )
    return tuple(_nonzero(counts, Z) for counts in (Z.data - taken, taken))


def _nonzero(values, Z):
    """Return a csr_array with the pattern of `Z` and these values, zeros left out."""
    X = sp.csr_array((values, Z.indices.copy(), Z.indptr.copy()), shape=Z.shape)
    X.eliminate_zeros()
    return X


def heldout_gain(kept, held_out, U, V, r_u, r_v):
    """Return by how many nats per count an embedding predicts held-out counts better than independence does.

    The difference of two Poisson log-likelihoods: of the rates r_u_i r_v_j exp(M_ij),
    and of the rates row_i col_j / Z_tot of the counts `kept`, both scaled to the number
    of held-out counts.

    Parameters
    ----------
    kept, held_out : arrays or sparse arrays (m, n)
        As from `split_counts`. Held-out counts in a row or column that has none in
        `kept` are left out: no model fitted to `kept` can say anything about them.
    U, V : arrays (m, d), (n, d)
        M = U V^T / sqrt(m).
    r_u, r_v : arrays (m,), (n,)
        Bias factors. Those of `amptutorial.poisson.refit_biases` make the rates add up
        to the counts `kept`; what the rates exceed them by counts against the
        embedding.

    Returns
    -------
    float
        Zero if M = 0; below zero for an embedding worse than none.

    Examples
    --------
    >>> from amptutorial.poisson import refit_biases
    >>> Z = np.array([[8, 1], [1, 8]])
    >>> signs = np.array([[1.0], [-1.0]])
    >>> round(heldout_gain(Z, Z, signs, signs, *refit_biases(Z, signs, signs)), 3)
    0.318
    """
    z, log_ratios = heldout_log_ratios(kept, held_out, U, V, r_u, r_v)
    some = np.flatnonzero(r_u)
    log_sums, _ = tilted_means(U[some], V / np.sqrt(len(U)), r_v)
    with np.errstate(over="ignore"):  # rates without bound: a gain of minus infinity
        excess = np.exp(log_sums + np.log(r_u[some]) - np.log(kept.sum())).sum() - 1
    return float(z @ log_ratios / max(z.sum(), 1) - excess)


def heldout_log_ratios(kept, held_out, U, V, r_u, r_v):
    """Return the held-out counts and log(rate / rate under independence) of their pairs: `heldout_gain`, pair by pair.

    Returns
    -------
    z, log_ratios : arrays (number of pairs,)

    Examples
    --------
    >>> zero = np.zeros((2, 1))
    >>> heldout_log_ratios(np.eye(2), np.eye(2), zero, zero, np.ones(2), np.ones(2) / 2)
    (array([1., 1.]), array([0., 0.]))
    """
    kept, held_out = check_counts(kept), sp.coo_array(check_counts(held_out))
    rows, columns = (np.asarray(kept.sum(axis=k), dtype=np.float64) for k in (1, 0))
    i, j = held_out.coords
    seen = (rows[i] > 0) & (columns[j] > 0) & (held_out.data > 0)
    i, j, z = i[seen], j[seen], held_out.data[seen]
    # of rows and columns that are not seen
    with np.errstate(divide="ignore", invalid="ignore"):
        bias_u, bias_v = np.log(r_u / rows * rows.sum()), np.log(r_v / columns)
    log_ratios = bias_u[i] + bias_v[j]
    for start in range(0, len(z), PAIRS_AT_ONCE):
        pairs = slice(start, start + PAIRS_AT_ONCE)
        log_ratios[pairs] += np.einsum("kd,kd->k", U[i[pairs]], V[j[pairs]]) / np.sqrt(
            len(U)
        )
    return z, log_ratios


def is_worse(z, log_ratios, best):
    """Return whether an embedding predicts held-out counts worse than the `best` one by more than two standard errors.

    Parameters
    ----------
    z, log_ratios : arrays
        As from `heldout_log_ratios`.
    best : array
        The log-ratios of the other embedding, on the same pairs.

    Examples
    --------
    >>> is_worse(np.ones(100), np.zeros(100), np.full(100, 0.1))
    True
    >>> is_worse(np.ones(2), np.zeros(2), np.array([-0.9, 1.0]))
    False
    """
    loss, total = best - log_ratios, max(z.sum(), 1)
    mean = z @ loss / total
    return bool(mean > 2 * np.sqrt(z @ (loss - mean) ** 2) / total)


def independence_entropy(kept, held_out):
    """Return the mean of - log(col_j / Z_tot) over the held-out counts, in nats: what `heldout_gain` can take from.

    Examples
    --------
    >>> Z = np.array([[1, 1], [2, 2]])
    >>> bool(np.isclose(independence_entropy(Z, Z), np.log(2)))
    True
    """
    columns = np.asarray(check_counts(kept).sum(axis=0), dtype=np.float64)
    weights = np.asarray(check_counts(held_out).sum(axis=0), dtype=np.float64)
    seen = (columns > 0) & (weights > 0)
    return float(
        -weights[seen]
        @ np.log(columns[seen] / columns.sum())
        / max(weights[seen].sum(), 1)
    )
