"""Assignment 3: non-negative rows. Replace every `raise NotImplementedError` and hand in this file."""

from amptutorial import Denoiser

PREDICTION = None  # the outcome of the experiment at the end of the brief, a number, from state evolution


class NonNegativeRows(Denoiser):
    """The minimiser of x F x^T / 2 - p x^T + strength / 2 |x / sqrt(r)|^2 over x without negative entries, row by row.

    Parameters
    ----------
    strength : float
        lambda > 0.
    """

    def __init__(self, strength):
        self.strength = strength

    def estimate(self, P, r, F):
        """Return the estimated rows.

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
        """Return the sum over the rows of strength / 2 |x_i / sqrt(r_i)|^2, infinite if an entry of X is negative."""
        raise NotImplementedError("write the penalty")

    def convexity(self, r):
        """Return the largest c >= 0 such that every row's penalty minus c |x|^2 / 2 is convex in x, a float."""
        raise NotImplementedError("write the convexity")
