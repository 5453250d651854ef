"""How far the rows of the re-expanded iteration go: less after they turn back, up to a whole step where they go on."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from amptutorial.bias import estimate_bias
from amptutorial.denoisers import Ridge
from amptutorial.reexpansion import REACH, new_side, reexpanded_half_step
from amptutorial.table import Table


@pytest.fixture
def sides(rng):
    """Counts of 8 x 6 pairs, rows at the origin, and columns so short that no whole step is beyond the reach."""
    Z = sp.csr_array(rng.integers(1, 9, (8, 6)))
    r_u, r_v = estimate_bias(Z)
    columns = new_side(0.1 * rng.standard_normal((6, 2)), r_v, Ridge(1.0))
    return Table(Z), new_side(np.zeros((8, 2)), r_u, Ridge(1.0)), columns


@pytest.mark.parametrize(("length", "longer"), [(0.25, 0.375), (0.5, 0.75), (0.8, 1.0), (1.0, 1.0)])
def test_a_row_that_goes_on_takes_half_as_much_again_and_one_that_turns_back_half(sides, length, longer):
    Z, rows, columns = sides
    step = reexpanded_half_step(Z, rows, columns, 8).step
    assert (np.abs(step).max(axis=1) > 0).all()
    turning = np.arange(8) % 2 == 0
    back, on = (np.array([[np.cos(t), np.sin(t)], [-np.sin(t), np.cos(t)]]) for t in np.radians([95, 85]))
    before = replace(rows, step=np.where(turning[:, None], step @ back, step @ on), length=np.full(8, length))
    after = reexpanded_half_step(Z, before, columns, 8)
    assert (after.reach < REACH).all() and np.array_equal(after.step, step)
    assert np.allclose(after.length, np.where(turning, length / 2, longer), rtol=1e-15)
    assert np.allclose(after.X, after.length[:, None] * step, rtol=1e-15)
    # the Onsager term goes as far as the rows do on average
    whole, moved = reexpanded_half_step(Z, rows, columns, 8).Gamma, after.length.mean()
    assert np.allclose(after.Gamma, moved * whole, rtol=1e-12)
    after = reexpanded_half_step(Z, replace(before, Gamma=np.diag([5.0, 7.0])), columns, 8)
    assert np.allclose(after.Gamma, moved * whole + (1 - moved) * np.diag([5.0, 7.0]), rtol=1e-12)


def test_a_row_that_moves_for_the_first_time_takes_a_whole_step(sides):
    Z, rows, columns = sides
    after = reexpanded_half_step(Z, rows, columns, 8)
    assert (after.length == 1).all() and np.array_equal(after.X, after.step)
