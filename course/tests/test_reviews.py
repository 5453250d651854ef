"""What the assignment on reviews asks of a denoiser that learns, against denoisers that learn wrongly."""

from contextlib import nullcontext

import numpy as np
import pytest

from amptutorial.checks import Trial, draw_problem
from amptutorial.denoisers import GaussianPosterior
from amptutorial_course.assignments import reviews

START = GaussianPosterior(1.0, learn=True)


class Misjudged(GaussianPosterior):
    """Learns a Gaussian prior, and takes its covariance to be some times what it has learned."""

    def __init__(self, times, learned=START):
        super().__init__(times * np.asarray(learned.covariance))
        self.times, self.learned = times, learned

    def refit(self, P, r, F):
        return Misjudged(self.times, self.learned.refit(P, r, F))


@pytest.mark.parametrize(("times", "scale", "fails"), [(3, 0.3, 0), (4, 0.3, 1), (0.3, 3.0, 0), (0.1, 3.0, 1)])
def test_what_learns_rows_of_another_length_is_found(times, scale, fails):
    # short rows are estimated worse by a wide prior, long ones by a narrow prior: the errors of those that fail are 1.6
    # and 2.9 times, of those that pass 1.47 and 1.43 times that of the Gaussian
    problem = draw_problem(40, 3, rng=np.random.default_rng(0), rows=reviews.FewLongRows(5.0))
    trial = Trial(lambda: Misjudged(times), problem)
    with pytest.raises(AssertionError, match="raise the likelihood") if fails else nullcontext():
        reviews._require_learned_scale(trial, scale)
