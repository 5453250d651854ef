"""Assignment 4: the group lasso. Replace every `raise NotImplementedError` and hand in this file."""

from amptutorial import Denoiser

PREDICTION = None  # the outcome of the experiment at the end of the brief, a number, from state evolution


class GroupLasso(Denoiser):
    """The minimiser of x F x^T / 2 - p x^T + strength |x / sqrt(r)|, row by row.

    Parameters
    ----------
    strength : float
        lambda > 0.
    """

    def __init__(self, strength):
        self.strength = strength

    def estimate(self, P, r, F):
        """Return the estimated rows; those that are zero are exactly zero.

        Parameters
        ----------
        P : array (N, d)
            The noisy rows.
        r : array (N,)
            Their bias factors, in words their frequencies.
        F : array (d, d)
            The precision matrix, one for all rows.

        Returns
        -------
        array (N, d)
        """
        raise NotImplementedError("write the estimate")

    def mean_jacobian(self, P, r, F):
        """Return the mean over the rows of d estimate_l / d P_k at [k, l], shape (d, d)."""
        raise NotImplementedError("write the Jacobian")

    def penalty(self, X, r):
        """Return the sum over the rows of strength |x_i / sqrt(r_i)|, a float."""
        raise NotImplementedError("write the penalty")
