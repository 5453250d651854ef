"""The power of checks, on cells whose power is known."""

import pytest

from studies.power import Chapter

DRAWN = """
import numpy as np

def bar_of(values):
    return np.std(values, ddof=1) / np.sqrt(len(values))

def within(x, y):
    return abs(x - y) < 0.2 * y

rng = np.random.default_rng(1)
runs = 2 + rng.standard_normal(400)
"""


def power_of(*cells):
    return Chapter().run([(str(place), cell) for place, cell in enumerate((DRAWN, *cells))])[-1]


@pytest.mark.parametrize(
    "cell, e",
    [
        ("assert abs(1.05 * x - 1) < 0.1", 0.1 / 1.05),
        ("assert np.isclose(x, 1.0, rtol=0.03)", 0.03),
        ("assert within(1.1 * x, 1.0)", 0.2 / 1.1),
        ("gap = np.abs(np.array([x, 3.0]) - [1.1, 3.3])\nassert (gap < [0.2, 0.6]).all()", 0.2),
        ("gaps = []\nfor k in (4, 2):\n    gaps.append(k * x - k * 1.1)\n    assert np.abs(gaps).max() < 1", 1 / 4.4),
        ("for k in (1, 2, 4):\n    assert abs(k * x - k) < 0.8", 0.2),
    ],
)
def test_half_the_width_of_what_passes_is_found(cell, e):
    power = power_of("x = 1.0\n" + cell)
    assert power.kind == "close" and power.e == pytest.approx(e, rel=0.02)


def test_e_does_not_depend_on_where_chance_put_the_measurement():
    near, far = (power_of(f"x = {x}\nassert abs(x - 1) < 0.1") for x in (1.0, 1.09))
    assert near.e == pytest.approx(far.e, rel=0.1) and far.up == pytest.approx(0.01 / 1.09, rel=0.02)


def test_random_numbers_are_not_drawn_again():
    cell = "gap = rng.standard_normal(400) + 2 - 2.0\nassert abs(gap.mean()) < 4 * bar_of(gap)"
    assert power_of(cell).kind == "zero"
