"""The Poisson embedding model (Section 2 of the paper): rates, pmf and samples."""

import numpy as np
import scipy.sparse as sp
from scipy.special import softmax

from . import _validation as door
from .laws import GaussianRows, ShiftedExponential
from .score import blocks

# sparse sampling holds two (PROPOSALS_AT_ONCE, d) arrays, whatever m and n
PROPOSALS_AT_ONCE = 2**20
# rows and columns whose bound on M_ij exceeds this are drawn densely: thinning would
# propose exp(LONG) times too many pairs
LONG = 3.0


class PoissonEmbedding:
    """Counts Z_ij ~ Poisson(exp(u_i^T v_j / sqrt(m) + s_i^u + s_j^v)) (`eq:z_ij`).

    The biases are shifted on construction so that lambda_0 = 1 and mean(exp(s_u)) = 1
    (`eq:bias_norm`): what s_u loses, s_v gains, and no rate changes.

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
    OverflowError
        If a bias factor exp(s) is zero or infinite.

    Examples
    --------
    >>> U, V = np.zeros((2, 1)), np.zeros((3, 1))
    >>> model = PoissonEmbedding(U, V, np.log([1.0, 3.0]), np.zeros(3))
    >>> model.r_u, model.r_v
    (array([0.5, 1.5]), array([2., 2., 2.]))
    >>> model.rates()[1]
    array([3., 3., 3.])
    """

    def __init__(self, U, V, s_u, s_v):
        self.U = door.check_matrix(U, "U", empty=False).copy()
        self.V = door.check_matrix(V, "V", shape=(None, self.d), empty=False).copy()
        s_u = door.check_values(s_u, "s_u", shape=(self.m,))
        s_v = door.check_values(s_v, "s_v", shape=(self.n,))
        shift = np.logaddexp.reduce(s_u) - np.log(self.m)
        self.s_u, self.s_v = s_u - shift, s_v + shift
        self.r_u = door.check_factors(self.s_u, "s_u")
        self.r_v = door.check_factors(self.s_v, "s_v")
        self.A = np.sqrt(self.r_u)[:, None] * self.U
        self.B = np.sqrt(self.r_v)[:, None] * self.V

    m = property(lambda self: len(self.U), doc="Number of values of X_1 (rows).")
    n = property(lambda self: len(self.V), doc="Number of values of X_2 (columns).")
    d = property(lambda self: self.U.shape[1], doc="Embedding dimension.")

    def __repr__(self):
        return f"PoissonEmbedding(m={self.m}, n={self.n}, d={self.d})"

    def log_rates(self) -> np.ndarray:
        """Return log lambda_ij = u_i . v_j / sqrt(m) + s_i^u + s_j^v, shape (m, n)."""
        # in place: of a large table one copy is enough
        log_rates = (self.U @ self.V.T).astype(np.float64, copy=False)
        log_rates /= np.sqrt(self.m)
        log_rates += self.s_u[:, None]
        log_rates += self.s_v
        return log_rates

    def rates(self) -> np.ndarray:
        """Return the expected counts lambda_ij (`eq:z_ij`), shape (m, n).

        Raises
        ------
        OverflowError
            If a rate is too large for a float.
        """
        with np.errstate(over="ignore"):
            rates = self.log_rates()
            np.exp(rates, out=rates)
        if not np.isfinite(rates).all():
            raise OverflowError(
                f"the largest log rate is {self.log_rates().max():.0f}, its "
                "exponential is not a float: scale down U and V, or the biases"
            )
        return rates

    def joint_pmf(self) -> np.ndarray:
        """Return P(X_1 = i, X_2 = j) (`eq:Pij`), shape (m, n), sum 1."""
        return softmax(self.log_rates())  # the constant C of eq:Pij cancels

    def sample(self, rng: np.random.Generator, *, sparse: bool = False):
        """Draw the counts Z.

        Parameters
        ----------
        rng : numpy.random.Generator
        sparse : bool
            Draw by thinning, without forming an m x n array: time and memory grow with
            m + n and the number of counts.

        Returns
        -------
        array of int64, or csr_array of int64 if `sparse`, shape (m, n)

        Raises
        ------
        OverflowError
            If a rate is too large for a count.

        Examples
        --------
        >>> U, V = np.zeros((2, 1)), np.zeros((3, 1))
        >>> model = PoissonEmbedding(U, V, np.zeros(2), np.zeros(3))
        >>> model.sample(np.random.default_rng(0)).shape
        (2, 3)
        """
        if sparse:
            return _sample_by_thinning(self, door.check_rng(rng))
        return _poisson(self.rates(), door.check_rng(rng))


def draw_embedding(m, n, d, *, rows_u, rows_v, bias_u, bias_v, rng) -> PoissonEmbedding:
    """Draw an instance: independent rows and biases from their laws (Section 4.1).

    Parameters
    ----------
    m, n, d : int
    rows_u, rows_v : RowLaw
        With ``draw((N, d), rng=rng)``, such as `amptutorial.laws.GaussianRows`.
    bias_u, bias_v : BiasLaw
        With ``draw(N, rng=rng)``, such as `amptutorial.laws.ShiftedExponential`.
    rng : numpy.random.Generator

    Returns
    -------
    PoissonEmbedding

    Examples
    --------
    >>> from amptutorial.laws import GaussianRows, ShiftedExponential
    >>> rows, bias = GaussianRows(0.1), ShiftedExponential(0.25, 5)
    >>> draw_embedding(20, 30, 2, rows_u=rows, rows_v=rows, bias_u=bias, bias_v=bias,
    ...                rng=np.random.default_rng(0))
    PoissonEmbedding(m=20, n=30, d=2)
    """
    door.check_rng(rng)
    for size, name in ((m, "m"), (n, "n"), (d, "d")):
        door.check_integer(size, name, minimum=1)
    door.check_methods("draw", rows_u=rows_u, rows_v=rows_v)
    door.check_methods("draw", bias_u=bias_u, bias_v=bias_v)
    U, V = rows_u.draw((m, d), rng=rng), rows_v.draw((n, d), rng=rng)
    return PoissonEmbedding(U, V, bias_u.draw(m, rng=rng), bias_v.draw(n, rng=rng))


def draw_example(
    m: int, d: int = 3, *, variance=1.0, rate=1.0, spread=0.25, rng
) -> PoissonEmbedding:
    """Draw the synthetic instance of the book: n = 3 m / 2 and Gaussian rows.

    Parameters
    ----------
    m, d : int
    variance : float
        Of each entry of U and V.
    rate : float
        The least expected count of a pair without an embedding.
    spread : float
        The mean of the biases s_u, and of s_v - log(rate), which are exponential.
    rng : numpy.random.Generator

    Returns
    -------
    PoissonEmbedding

    Examples
    --------
    >>> truth = draw_example(200, rng=np.random.default_rng(0))
    >>> truth, truth.sample(np.random.default_rng(1)).shape
    (PoissonEmbedding(m=200, n=300, d=3), (200, 300))
    """
    rows = GaussianRows(door.check_positive(variance, "variance"))
    level = np.log(door.check_positive(rate, "rate"))
    door.check_positive(spread, "spread")
    n = 3 * door.check_integer(m, "m", minimum=1) // 2
    bias_u, bias_v = (ShiftedExponential(spread, shift) for shift in (0.0, level))
    laws = {"rows_u": rows, "rows_v": rows, "bias_u": bias_u, "bias_v": bias_v}
    return draw_embedding(m, n, d, **laws, rng=rng)


def _thinning_bounds(U, V, root_m):
    """Return bounds c_u (m,), c_v (n,) with M_ij <= c_u[i] + c_v[j] for all i, j.

    By Cauchy-Schwarz and the inequality of the means, u.v <= (t |u|^2 + |v|^2 / t) / 2
    for every t > 0: a bound that is a sum of a row term and a column term, so that
    exp(bound) keeps the product form from which pairs are easy to draw.
    """
    squares_u, squares_v = (U**2).sum(axis=1), (V**2).sum(axis=1)
    # a few long rows must not spoil t for the rest
    typical_u, typical_v = np.sqrt([np.median(squares_u), np.median(squares_v)])
    t = typical_v / typical_u if typical_u > 0 and typical_v > 0 else 1.0
    return t * squares_u / (2 * root_m), squares_v / (2 * t * root_m)


def _sample_by_thinning(model, rng):
    """Draw pairs by thinning, and densely those where thinning would be wasteful."""
    c_u, c_v = _thinning_bounds(model.U, model.V, np.sqrt(model.m))
    rows, columns = _index(c_u <= LONG), _index(c_v <= LONG)
    if rows.size and columns.size:
        log_v = np.logaddexp.reduce(model.s_v[columns] + c_v[columns])
        # else more proposals than columns
        rows = rows[model.s_u[rows] + c_u[rows] + log_v <= np.log(len(columns))]
    other_rows = _index(~np.isin(np.arange(model.m), rows))
    parts = [
        *_draw_by_thinning(model, rng, rows, columns, c_u, c_v),
        *_draw_densely(model, rng, other_rows, np.arange(model.n, dtype=np.int32)),
        *_draw_densely(model, rng, rows, _index(c_v > LONG)),
    ]
    i, j, z = (np.concatenate([part[k] for part in parts]) for k in range(3))
    Z = sp.coo_array((z, (i, j)), shape=(model.m, model.n)).tocsr()
    Z.sum_duplicates()
    return Z


def _index(mask):
    """Return where `mask` holds, in 32 bits: the sample then has small indices."""
    return np.flatnonzero(mask).astype(np.int32)


def _draw_by_thinning(model, rng, rows, columns, c_u, c_v):
    """Draw pairs at the dominating rates and keep some; yields arrays (i, j, counts).

    Pairs are proposed at the rates r_i r_j exp(c_i + c_j), a Poisson number for each
    row and the columns independently, and kept with probability exp(M_ij - c_i - c_j).
    What is kept is Poisson with rate r_i r_j exp(M_ij), independently over the pairs:
    the law of `eq:z_ij`, exactly.
    """
    if not rows.size or not columns.size:
        return
    log_v = model.s_v[columns] + c_v[columns]
    total_v = np.logaddexp.reduce(log_v)
    p_v = np.exp(log_v - total_v)
    proposals = rng.poisson(np.exp(model.s_u[rows] + c_u[rows] + total_v))
    # np.repeat takes integers of the width of an index: 32 bits in WebAssembly
    proposals = proposals.astype(np.intp)
    chunk = np.cumsum(proposals, dtype=np.int64) // PROPOSALS_AT_ONCE
    for index in np.split(np.arange(len(rows)), np.flatnonzero(np.diff(chunk)) + 1):
        i = np.repeat(rows[index], proposals[index])
        j = columns[rng.choice(len(columns), size=len(i), p=p_v)]
        M = np.einsum("kd,kd->k", model.U[i], model.V[j]) / np.sqrt(model.m)
        keep = np.log(1 - rng.random(len(i))) <= M - c_u[i] - c_v[j]
        yield i[keep], j[keep], np.ones(keep.sum(), dtype=np.int64)


def _draw_densely(model, rng, rows, columns):
    """Draw all pairs of some rows and columns; yields blocks (i, j, counts)."""
    for index in blocks(len(rows), PROPOSALS_AT_ONCE // max(1, len(columns))):
        block = rows[index]
        M = model.U[block] @ model.V[columns].T / np.sqrt(model.m)
        with np.errstate(over="ignore"):
            rates = np.exp(M + model.s_u[block, None] + model.s_v[columns])
        Z = _poisson(rates, rng)
        i, j = Z.nonzero()
        yield block[i], columns[j], Z[i, j]


def _poisson(rates, rng):
    """Return Poisson counts, or say why there are none."""
    if not rates.max(initial=0) <= 9e18:
        raise OverflowError(
            f"no int64 holds rates of {rates.max():.1e}: scale down U, V or the biases"
        )
    return rng.poisson(rates)
