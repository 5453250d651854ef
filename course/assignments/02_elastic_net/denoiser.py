"""Assignment 2: the elastic net. Replace every `raise NotImplementedError` and hand in this file."""

from amptutorial import Denoiser

PREDICTION = None  # the outcome of the experiment at the end of the brief, a number, from state evolution


class ElasticNet(Denoiser):
    """The minimiser of x F x^T / 2 - p x^T + l1 |u|_1 + l2 |u|^2 / 2 with u = x / sqrt(r), row by row.

    Parameters
    ----------
    l1, l2 : float
        Both positive.
    """

    def __init__(self, l1, l2):
        self.l1, self.l2 = l1, l2

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
            With entries that are exactly zero where the minimiser has a zero.
        """
        raise NotImplementedError("write the estimate")

    def mean_jacobian(self, P, r, F):
        """Return the mean over the rows of d estimate_l / d P_k at [k, l], shape (d, d)."""
        raise NotImplementedError("write the Jacobian")

    def penalty(self, X, r):
        """Return the sum over the rows of l1 |u_i|_1 + l2 |u_i|^2 / 2, where u_i = x_i / sqrt(r_i), a float."""
        raise NotImplementedError("write the penalty")

    def convexity(self, r):
        """Return the largest c >= 0 such that every row's penalty minus c |x|^2 / 2 is convex in x, a float."""
        raise NotImplementedError("write the convexity")
