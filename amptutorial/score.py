"""The Fisher score of the counts, the matrix Y~ on which AMP works (`eq:abyscaled`)."""

from contextlib import contextmanager

import numpy as np
import scipy.sparse as sp
from scipy.linalg import get_blas_funcs
from scipy.sparse.linalg import LinearOperator
from threadpoolctl import ThreadpoolController

from ._validation import check_counts, check_rates
from .bias import fill_gaps

# Rows of a tall matrix that fit into a cache. There a product with a CSC array, which
# adds to another row each time, is the faster one; beyond it, waiting for memory
# decides, and a CSR array finishes one row after another.
CACHED = 2**15


BLAS = ThreadpoolController().select(user_api="blas")


@contextmanager
def one_thread():
    """Return a context, or decorator, in which BLAS keeps to one thread.

    Products with few columns are over before a second thread has begun.
    """
    with BLAS.limit(limits=1):
        yield


def blocks(n, size):
    """Yield slices of at most `size` rows, and of at least one, that cover `n` rows.

    `sklearn.utils.gen_batches` does the same, but importing scikit-learn takes longer
    than importing everything else that the algorithm needs.

    Examples
    --------
    >>> list(blocks(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    >>> list(blocks(2, 0))
    [slice(0, 1, None), slice(1, 2, None)]
    """
    size = max(1, size)
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


class FisherScore(LinearOperator):
    """Y~ = R_u^(-1/2) (Z - r_u r_v^T) R_v^(-1/2) (`eq:score_ij` to `eq:abyscaled`).

    Z_ij - r_i r_j is the derivative of log Poisson(Z_ij | exp(w) r_i r_j) at w = 0, and
    r_i r_j its variance, so Y~ is the score in units of its standard deviation: Y~ = A
    B^T / sqrt(m) + W with W_ij of mean 0 and variance 1.

    For sparse Z the operator is sparse plus rank one, D_u Z D_v - sqrt(r_u)
    sqrt(r_v)^T, and stays so: products take time proportional to the number of non-zero
    counts. It works wherever SciPy takes a `LinearOperator`, such as
    `scipy.sparse.linalg.svds`.

    Parameters
    ----------
    Z : array or sparse array (m, n)
        Counts. The score of a pair that was not observed, NaN, is zero.
    r_u, r_v : arrays (m,), (n,)
        Bias factors, estimated (`amptutorial.bias.estimate_bias`) or true.

    Raises
    ------
    ValueError
        For invalid counts, or bias factors of the wrong shape, zero, negative or not
        finite.
    FloatingPointError
        If an entry of Y~ is too large for a float.

    Examples
    --------
    >>> Y = FisherScore(np.array([[1, 3], [3, 9]]), np.ones(2), np.array([1.0, 9.0]))
    >>> Y.toarray()
    array([[ 0., -2.],
           [ 2.,  0.]])
    >>> Y @ np.ones((2, 1))
    array([[-2.],
           [ 2.]])
    """

    def __init__(self, Z, r_u, r_v):
        Z = check_counts(Z, gaps=True)
        r_u = check_rates(r_u, Z.shape[0], "r_u")
        r_v = check_rates(r_v, Z.shape[1], "r_v")
        dtype = Z.dtype if Z.dtype == np.float32 else np.dtype(np.float64)
        self._u, self._v = (np.sqrt(r).astype(dtype) for r in (r_u, r_v))
        Z = fill_gaps(Z, (r_u, r_v))
        # whether sqrt(r_u) sqrt(r_v)^T is still to be subtracted
        self._rank_one = sp.issparse(Z)
        if self._rank_one:
            # stored twice, for both products in the faster format
            fastest = "csc" if max(Z.shape) <= CACHED else "csr"
            per_u, per_v = sp.diags_array(1 / self._u), sp.diags_array(1 / self._v)
            scaled = (per_u @ Z.astype(dtype) @ per_v).tocsr()
            self._Y, self._Yt = scaled.asformat(fastest), scaled.T.asformat(fastest)
        else:
            self._Y = Z / self._u[:, None]
            self._Y /= self._v
            for rows in blocks(len(Z), 2**20 // Z.shape[1]):  # not a third array
                self._Y[rows] -= np.outer(self._u[rows], self._v)
            self._Yt = self._Y.T
        super().__init__(dtype, Z.shape)

    def _product(self, Y, left, right, X):
        """Return Y X, minus the rank-one part left right^T X where it is apart."""
        if not self._rank_one:
            return Y @ X
        with one_thread():
            return _minus_outer(Y @ X, left, right @ X)

    def _matmat(self, X):
        return self._product(self._Y, self._u, self._v, X)

    def _rmatmat(self, X):
        return self._product(self._Yt, self._v, self._u, X)

    def _transpose(self):
        """Return the transpose, which shares its arrays with this operator."""
        other = object.__new__(FisherScore)
        other._u, other._v, other._rank_one = self._v, self._u, self._rank_one
        other._Y, other._Yt = self._Yt, self._Y
        LinearOperator.__init__(other, self.dtype, self.shape[::-1])
        return other

    _adjoint = _transpose

    def squared_norm(self):
        """Return the squared Frobenius norm |Y~|^2, without forming an m x n array.

        Examples
        --------
        >>> import scipy.sparse
        >>> Z = scipy.sparse.csr_array([[1, 3], [3, 9]])
        >>> FisherScore(Z, np.ones(2), np.array([1.0, 9.0])).squared_norm()
        8.0
        """
        if self._rank_one:
            cross = self._u @ (self._Y @ self._v)
            square = self._Y.data @ self._Y.data - 2 * cross
            square += (self._u @ self._u) * (self._v @ self._v)
        else:
            square = np.vdot(self._Y, self._Y)
        return float(square)

    def toarray(self):
        """Return Y~ as a dense array (m, n)."""
        if self._rank_one:
            return self._Y.toarray() - np.outer(self._u, self._v)
        return self._Y.copy()


def _minus_outer(product, left, row):
    """Return product - outer(left, row), computed in place.

    One call of BLAS: with a temporary array, an iteration of AMP on sparse counts takes
    5 % longer.
    """
    if not product.size:  # BLAS refuses an empty matrix
        return product
    (ger,) = get_blas_funcs(("ger",), (product,))
    return ger(-1, row, left, a=product.T, overwrite_a=True).T
