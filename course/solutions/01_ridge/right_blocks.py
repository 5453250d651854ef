"""One sparse linear system for all rows, solved by SciPy; the Jacobian is that of the base class."""

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from amptutorial import Denoiser

PREDICTION = 0.216


class RidgeByHand(Denoiser):
    """Ridge, as one system of N d equations."""

    def __init__(self, strength):
        self.strength = strength

    def estimate(self, P, r, F):
        """Return the rows."""
        N, d = P.shape
        system = sp.kron(sp.eye(N), F) + sp.diags(np.repeat(self.strength / r, d))
        return splu(sp.csc_matrix(system)).solve(P.ravel()).reshape(N, d)

    def penalty(self, X, r):
        """Return the penalty."""
        return float(self.strength * np.vdot(X, X / r[:, None]) / 2)

    def convexity(self, r):
        """Return the smallest curvature."""
        return self.strength / max(r)
