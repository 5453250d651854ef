"""Figures: what they are drawn with can be seen."""

import pytest
from contrast import luminance

from amptutorial.book.figures import COLOURS, METHOD_LOOKS, STYLE

PHONE, MARGINS = 390, 40  # pixels: width of the screen, and what the page keeps free at the sides


@pytest.mark.parametrize("colour", COLOURS)
def test_colours_stand_out_from_white(colour):
    assert 1.05 / (luminance(colour) + 0.05) >= 4.5


def test_letters_can_be_read_on_a_phone():
    """At least ten pixels high once the figure is scaled to the screen."""
    width = STYLE["figure.figsize"][0] * STYLE["figure.dpi"]
    pixels = STYLE["font.size"] / 72 * STYLE["figure.dpi"]
    assert pixels * (PHONE - MARGINS) / width >= 10


def test_methods_can_be_told_apart_by_colour_and_by_mark():
    for kind in zip(*METHOD_LOOKS.values(), strict=True):
        assert len(set(kind)) == len(METHOD_LOOKS)
