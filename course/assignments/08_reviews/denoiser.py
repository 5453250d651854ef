"""Assignment 8: a denoiser of your own. Replace `raise NotImplementedError`, add what it needs, hand in this file."""

from amptutorial import Denoiser

PREDICTION = None  # the outcome of the experiment at the end of the brief, a number, from state evolution


class ReviewDenoiser(Denoiser):
    """The posterior mean of x = sqrt(r) u given p = x F + N(0, F), under a prior on u of your own.

    Say here which prior it is, which parameters it has, and how they are learned.

    The class is made without arguments, `ReviewDenoiser()`, and used in any dimension d: that of the rows it is given.
    Besides `estimate` you may write, each with the arguments (P, r, F):

    - `mean_jacobian`, the mean over the rows of d estimate_l / d P_k at [k, l], shape (d, d). The base class finds it
      by differences, at the price of 2 d calls of `estimate`.
    - `denoise`, which returns estimate and mean Jacobian together, where one computation gives both.
    - `refit`, which returns a *new* denoiser that has learned from these rows. Then write `frozen`, without arguments,
      too: it returns a copy that no longer learns.
    """

    precision = "posterior"  # AMP is to pass F = Q

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
