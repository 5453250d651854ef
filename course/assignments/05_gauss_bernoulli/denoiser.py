"""Assignment 5: sparse rows by their posterior mean. Replace each `raise NotImplementedError`; hand in this file."""

from amptutorial import Denoiser

PREDICTION = None  # the outcome of the experiment at the end of the brief, a number, from state evolution


class GaussBernoulli(Denoiser):
    """Posterior mean of x = sqrt(r) u, where each entry of u is N(0, variance) with probability `density`, else zero.

    Parameters
    ----------
    density : float
        Between 0 and 1, exclusive.
    variance : float
        Positive.
    """

    precision = "posterior"

    def __init__(self, density, variance):
        self.density = density
        self.variance = variance

    def estimate(self, P, r, F):
        """Return the posterior means E(x | p).

        Parameters
        ----------
        P : array (N, d)
            The noisy rows.
        r : array (N,)
            Their bias factors, in words their frequencies.
        F : array (d, d)
            The precision matrix, one for all rows, not diagonal.

        Returns
        -------
        array (N, d)
        """
        raise NotImplementedError("write the estimate")

    def mean_jacobian(self, P, r, F):
        """Return the mean over the rows of d estimate_l / d P_k at [k, l], shape (d, d)."""
        raise NotImplementedError("write the Jacobian")
