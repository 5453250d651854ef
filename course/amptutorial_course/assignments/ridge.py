"""Assignment 1: ridge by hand, with its Jacobian."""

from dataclasses import dataclass, field

from amptutorial.checks.beliefs import Penalty
from amptutorial.laws import DiscreteBias, GaussianRows, RowLaw

from ._core import Assignment, Experiment, Family, log_uniform
from ._limits import Limit, unpenalised, zero
from ._points import MINIMISER


@dataclass(frozen=True)
class SquaredNorm(Penalty):
    """g(u) = strength |u|^2 / 2 (`eq:regl2`)."""

    strength: float
    rows: RowLaw = field(default=GaussianRows(3.0))

    tolerance = 1e-8  # it is linear in p

    @property
    def convexity(self):
        """The curvature of the square."""
        return self.strength

    def value(self, U):
        """Return g of each row."""
        return self.strength / 2 * (U**2).sum(axis=1)

    def prox(self, U, steps):
        """Return what is left of `U`."""
        return U / (1 + steps * self.strength)


def limits(d, strength):
    """Yield what becomes of the estimate with hardly a penalty, and with nothing else."""
    yield Limit("With hardly a penalty it is p F^-1", {"strength": 1e-7}, unpenalised)
    yield Limit("With an infinite penalty the estimate is zero", {"strength": 1e9}, zero)


ASSIGNMENT = Assignment(
    1,
    "ridge",
    "ridge by hand",
    (Family("RidgeByHand", log_uniform(strength=((-0.7, 1.4), (-3, 4), (-9, 9))), SquaredNorm, limits),),
    Experiment("RidgeByHand", {"strength": 3.0}, GaussianRows(1.0), d=3, bias=DiscreteBias([0.3, 1.7])),
    points=MINIMISER,
)
