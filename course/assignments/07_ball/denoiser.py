"""Assignment 7: rows in a ball and on a circle. Replace every `raise NotImplementedError` and hand in this file."""

from amptutorial import Denoiser

PREDICTION = None  # the outcome of the experiment at the end of the brief, a number, from state evolution


class Ball(Denoiser):
    """The minimiser of x F x^T / 2 - p x^T over the ball |x / sqrt(r)| <= radius, row by row.

    Parameters
    ----------
    radius : float
        Of the ball that holds every embedding u = x / sqrt(r).
    """

    def __init__(self, radius):
        self.radius = radius

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
        """Return the sum over the rows of g(x_i / sqrt(r_i)), a float: 0, or infinity if a row is outside."""
        raise NotImplementedError("write the penalty")


class Circle(Denoiser):
    """The posterior mean of x = sqrt(r) u given p = x F + N(0, F), for u uniform on a circle; d = 2.

    Parameters
    ----------
    radius : float
        Of the circle.
    """

    precision = "posterior"

    def __init__(self, radius):
        self.radius = radius

    def estimate(self, P, r, F):
        """Return the posterior means, shape (N, 2)."""
        raise NotImplementedError("write the estimate")

    def mean_jacobian(self, P, r, F):
        """Return the mean over the rows of d estimate_l / d P_k at [k, l], shape (2, 2)."""
        raise NotImplementedError("write the Jacobian")
