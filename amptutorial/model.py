"""The Poisson embedding model (Section 2 of the paper): rates, distribution, and samples of the counts Z."""

import numpy as np
import scipy.sparse as sp

from ._validation import check_integer, check_matrix, check_rng

PAIRS_AT_ONCE = 2**20  # sparse sampling holds two (PAIRS_AT_ONCE, d) arrays, whatever m and n


class PoissonEmbedding:
    """Counts Z_ij ~ Poisson(exp(u_i . v_j / sqrt(m) + s_i^u + s_j^v)) (`eq:z_ij`).

    The biases are shifted on construction so that lambda_0 = 1 and mean(exp(s_u)) = 1 (`eq:bias_norm`): what s_u loses,
    s_v gains, and no rate changes.

    Parameters
    ----------
    U : array (m, d)
    V : array (n, d)
    s_u : array (m,)
    s_v : array (n,)

    Attributes
    ----------
    m, n, d : int
    s_u, s_v : arrays (m,), (n,), normalised
    r_u, r_v : arrays exp(s_u), exp(s_v) (`eq:ruv_def`)
    A, B : arrays sqrt(r_u) U (m, d) and sqrt(r_v) V (n, d) (`eq:abyscaled`)

    Raises
    ------
    ValueError
        If the shapes do not fit or an entry is not finite.

    Examples
    --------
    >>> model = PoissonEmbedding(np.zeros((2, 1)), np.zeros((3, 1)), np.log([1.0, 3.0]), np.zeros(3))
    >>> model.r_u, model.r_v
    (array([0.5, 1.5]), array([2., 2., 2.]))
    >>> model.rates()[1]
    array([3., 3., 3.])
    """

    def __init__(self, U, V, s_u, s_v):
        self.U = check_matrix(U, "U")
        self.V = check_matrix(V, "V", shape=(None, self.U.shape[1]))
        if 0 in self.U.shape or 0 in self.V.shape:
            raise ValueError(f"U and V must not be empty, got shapes {self.U.shape} and {self.V.shape}")
        s_u, s_v = _check_bias(s_u, self.m, "s_u"), _check_bias(s_v, self.n, "s_v")
        shift = np.logaddexp.reduce(s_u) - np.log(self.m)
        self.s_u, self.s_v = s_u - shift, s_v + shift
        self.r_u, self.r_v = np.exp(self.s_u), np.exp(self.s_v)
        self.A = np.sqrt(self.r_u)[:, None] * self.U
        self.B = np.sqrt(self.r_v)[:, None] * self.V

    m = property(lambda self: self.U.shape[0], doc="Number of values of X_1 (rows of Z).")
    n = property(lambda self: self.V.shape[0], doc="Number of values of X_2 (columns of Z).")
    d = property(lambda self: self.U.shape[1], doc="Embedding dimension.")

    def __repr__(self):
        return f"PoissonEmbedding(m={self.m}, n={self.n}, d={self.d})"

    def log_rates(self):
        """Return log lambda_ij = u_i . v_j / sqrt(m) + s_i^u + s_j^v, shape (m, n)."""
        return self.U @ self.V.T / np.sqrt(self.m) + self.s_u[:, None] + self.s_v

    def rates(self):
        """Return the expected counts lambda_ij (`eq:z_ij`), shape (m, n).

        Raises
        ------
        OverflowError
            If a rate is too large for a float.
        """
        with np.errstate(over="ignore"):
            rates = np.exp(self.log_rates())
        if not np.isfinite(rates).all():
            raise OverflowError(
                f"the largest log rate is {self.log_rates().max():.0f}, its exponential is not a float: "
                "scale down U and V, or the biases"
            )
        return rates

    def joint_pmf(self):
        """Return P(X_1 = i, X_2 = j) (`eq:Pij`), shape (m, n), sum 1."""
        log_rates = self.log_rates()
        weights = np.exp(log_rates - log_rates.max())  # the constant C of eq:Pij cancels, and nothing overflows
        return weights / weights.sum()

    def sample(self, rng, *, sparse=False):
        """Draw the counts Z.

        Parameters
        ----------
        rng : numpy.random.Generator
        sparse : bool
            Draw by thinning, without forming an m x n array: time and memory grow with m + n and the number of counts.

        Returns
        -------
        array of int64, or csr_array of int64 if `sparse`, shape (m, n)

        Examples
        --------
        >>> model = PoissonEmbedding(np.zeros((2, 1)), np.zeros((3, 1)), np.zeros(2), np.zeros(3))
        >>> model.sample(np.random.default_rng(0)).shape
        (2, 3)
        """
        if sparse:
            return _sample_by_thinning(self, check_rng(rng))
        rates = self.rates()
        if rates.max() > 9e18:
            raise OverflowError(f"the largest rate is {rates.max():.1e}: counts that large do not fit an int64")
        return check_rng(rng).poisson(rates)


def draw_embedding(m, n, d, *, rows_u, rows_v, bias_u, bias_v, rng):
    """Draw a random instance: rows and biases are independent draws from their laws (Section 4.1).

    Parameters
    ----------
    m, n, d : int
    rows_u, rows_v : row laws
        Objects with ``draw((N, d), rng)``, such as `amptutorial.laws.GaussianRows`.
    bias_u, bias_v : bias laws
        Objects with ``draw(N, rng)``, such as `amptutorial.laws.ShiftedExponential`.
    rng : numpy.random.Generator

    Returns
    -------
    PoissonEmbedding

    Examples
    --------
    >>> from amptutorial.laws import GaussianRows, ShiftedExponential
    >>> rows, bias = GaussianRows(0.1), ShiftedExponential(0.25, 5)
    >>> draw_embedding(20, 30, 2, rows_u=rows, rows_v=rows, bias_u=bias, bias_v=bias, rng=np.random.default_rng(0))
    PoissonEmbedding(m=20, n=30, d=2)
    """
    check_rng(rng)
    m, n, d = (check_integer(value, name, minimum=1) for value, name in ((m, "m"), (n, "n"), (d, "d")))
    return PoissonEmbedding(
        rows_u.draw((m, d), rng), rows_v.draw((n, d), rng), bias_u.draw(m, rng), bias_v.draw(n, rng)
    )


def _check_bias(s, size, name):
    s = np.asarray(s, dtype=np.float64)
    if s.shape != (size,):
        raise ValueError(f"{name} must have shape ({size},), got {s.shape}")
    if not np.isfinite(s).all():
        raise ValueError(f"{name} holds NaN or infinite values: a term that never occurs must be left out")
    return s


def thinning_bounds(model):
    """Return bounds c_u (m,), c_v (n,) with M_ij <= c_u[i] + c_v[j] for all i, j.

    By Cauchy-Schwarz and the inequality of the means, u.v <= (t |u|^2 + |v|^2 / t) / 2 for every t > 0: a bound that is
    a sum of a row term and a column term, so that exp(bound) keeps the product form from which pairs are easy to draw.
    """
    squares_u, squares_v = (model.U**2).sum(axis=1), (model.V**2).sum(axis=1)
    weight_u, weight_v = model.r_u @ squares_u / model.r_u.sum(), model.r_v @ squares_v / model.r_v.sum()
    t = np.sqrt(weight_v / weight_u) if weight_u > 0 and weight_v > 0 else 1.0
    scale = 2 * np.sqrt(model.m)
    return t * squares_u / scale, squares_v / (t * scale)


def _sample_by_thinning(model, rng):
    """Propose pairs from the dominating rates r_i r_j exp(c_i + c_j), keep each with probability exp(M - c_i - c_j).

    The proposals of a row are Poisson, their columns independent; what is kept is Poisson with rate r_i r_j exp(M_ij),
    independently over the pairs: the law of `eq:z_ij`, exactly.
    """
    c_u, c_v = thinning_bounds(model)
    log_v = model.s_v + c_v
    total_v = np.logaddexp.reduce(log_v)
    p_v = np.exp(log_v - total_v)
    proposals = rng.poisson(np.exp(model.s_u + c_u + total_v))
    chunks = np.concatenate([[0], np.cumsum(proposals)]) // PAIRS_AT_ONCE
    starts = np.unique(np.append(np.searchsorted(chunks[:-1], np.unique(chunks[:-1])), model.m))
    kept = [_thin(model, rng, a, proposals[a:b], p_v, c_u, c_v) for a, b in zip(starts[:-1], starts[1:], strict=True)]
    i, j = (np.concatenate(part) for part in zip(*kept, strict=True))
    Z = sp.coo_array((np.ones(len(i), dtype=np.int64), (i, j)), shape=(model.m, model.n)).tocsr()
    Z.sum_duplicates()
    return Z


def _thin(model, rng, first, proposals, p_v, c_u, c_v):
    """Return the kept pairs (i, j) of the rows from `first` on that have that many `proposals`."""
    i = np.repeat(np.arange(first, first + len(proposals), dtype=np.int32), proposals)
    j = rng.choice(model.n, size=len(i), p=p_v).astype(np.int32)
    M = np.einsum("kd,kd->k", model.U[i], model.V[j]) / np.sqrt(model.m)
    keep = np.log(1 - rng.random(len(i))) <= M - c_u[i] - c_v[j]
    return i[keep], j[keep]
