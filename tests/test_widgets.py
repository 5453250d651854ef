"""Experiments: what a reader with a kernel sees, what the page keeps for one without; nothing is drawn twice."""

import base64
import io
import re
from pathlib import Path

import ipywidgets
import pytest
from matplotlib.figure import Figure
from PIL import Image

from amptutorial import widgets
from amptutorial.widgets import explore


@pytest.fixture
def drawn():
    return []


@pytest.fixture
def draw(drawn):
    def draw(figure, height=2, colour="red", seed=0):
        """Draw a line of some height & colour.

        More is said here.
        """
        assert isinstance(figure, Figure) and not figure.axes
        drawn.append((height, colour, seed))
        axes = figure.subplots()
        axes.axhline(height, color=colour)
        axes.set_ylim(0, 4)
        return f"At {height} < 4, {colour}, seed {seed}."

    return draw


def sliders(box):
    return {child.description: child for child in box.children if isinstance(child, ipywidgets.SelectionSlider)}


def stored_texts(stack):
    if isinstance(stack, ipywidgets.HTML):
        return re.findall(r"<figcaption>(.*?)</figcaption>", stack.value)
    return [text for child in stack.children for text in stored_texts(child)]


def live(box):
    """Return the picture that is redrawn."""
    texts = [child for child in box.children if isinstance(child, ipywidgets.HTML)]
    (picture,) = (text for text in texts if "amp-live" in text._dom_classes)
    return picture


def test_the_page_keeps_one_picture_for_each_combination(draw, drawn):
    box = explore(draw, stored={"height": [1, 2, 3], "colour": ["red", "blue"]}, live={"seed": (2, 1, 0)})
    expected = [(height, colour, 0) for height in (1, 2, 3) for colour in ("red", "blue")]
    assert drawn == expected
    (page,) = (child for child in box.children if isinstance(child, ipywidgets.Stack))
    assert stored_texts(page) == [f"At {height} &lt; 4, {colour}, seed {seed}." for height, colour, seed in expected]
    assert page.selected_index == 1 and all(inner.selected_index == 0 for inner in page.children)


def test_the_browser_itself_links_each_slider_to_what_it_turns_over(draw, monkeypatch):
    links = []
    monkeypatch.setattr(widgets, "jslink", lambda source, target: links.append((source, target)))
    box = widgets.explore(draw, stored={"height": [1, 2, 3], "colour": ["red", "blue"]})
    (page,) = (child for child in box.children if isinstance(child, ipywidgets.Stack))
    height, colour = sliders(box).values()
    wanted = [(height, page), *((colour, inner) for inner in page.children)]
    assert len(links) == len(wanted)
    for source, target in wanted:
        assert ((source, "index"), (target, "selected_index")) in links


def test_with_a_kernel_every_slider_redraws_and_nothing_is_drawn_twice(draw, drawn):
    box = explore(draw, stored={"height": [1, 2, 3]}, live={"colour": ["red", "blue"], "seed": range(3)})
    assert "At 2 &lt; 4, red, seed 0." in live(box).value
    start = len(drawn)
    sliders(box)["height"].value = 3
    assert "At 3 &lt; 4, red, seed 0." in live(box).value and len(drawn) == start
    sliders(box)["seed"].value = 2
    sliders(box)["colour"].value = "blue"
    assert "At 3 &lt; 4, blue, seed 2." in live(box).value and len(drawn) == start + 2
    sliders(box)["seed"].value = 0
    sliders(box)["seed"].value = 2
    assert len(drawn) == start + 3


def test_a_page_shows_what_a_kernel_hides_and_hides_what_a_kernel_shows(draw):
    box = explore(draw, stored={"height": [1, 2, 3]}, live={"seed": range(3)})
    height, seed, page, picture, note = box.children
    assert "amp-explore" in box._dom_classes
    for widget in (page, note):
        assert "amp-page" in widget._dom_classes and widget.layout.display == "none"
    for widget in (seed, picture):
        assert "amp-live" in widget._dom_classes and widget.layout.display is None
    assert not {"amp-page", "amp-live"} & set(height._dom_classes)


@pytest.mark.parametrize(
    ("live", "more"),
    [
        ({}, "lets you"),
        ({"seed": [0]}, "adds a slider for seed, and lets you"),
        ({"seed": [0], "line_width": [1]}, "adds sliders for seed and line width, and lets you"),
    ],
)
def test_the_page_says_what_a_kernel_adds_and_where_there_is_one(live, more):
    def draw(figure, height=1, seed=0, line_width=1):
        """Draw nothing."""
        return ""

    note = explore(draw, stored={"height": [1, 2]}, live=live).children[-1].value
    assert "keeps 2 stored pictures" in note and f"</a> {more} change the drawing" in note
    anchor = re.search(r'href="howto\.html#([^"]+)"', note)[1]
    assert f"({anchor})=" in (Path(__file__).parents[1] / "book/howto.md").read_text()


def test_sliders_are_labelled_as_the_values_are_read():
    def draw(figure, true_rate=0.1):
        """Draw nothing."""
        return ""

    slider = explore(draw, stored={"true_rate": [0.1, 0.1 + 0.2, 100.0, 1]}).children[0]
    assert slider.description == "true rate"
    assert [label for label, _ in slider.options] == ["0.1", "0.3", "100", "1"]


def test_a_picture_can_be_heard_and_is_small(draw):
    box = explore(draw, stored={"height": [1, 2, 3]}, size=(4, 3))
    assert 'alt="Draw a line of some height &amp; colour."' in live(box).value
    png = base64.b64decode(re.search(r"base64,([^\"]*)", live(box).value)[1])
    picture = Image.open(io.BytesIO(png))
    assert picture.size == (440, 330) and picture.mode == "P" and len(png) < 10_000
    assert (0xFF, 0, 0) in {colour for _, colour in picture.convert("RGB").getcolors()}


def test_a_notebook_not_yet_run_and_the_tests_get_the_words(draw):
    box = explore(draw, stored={"height": [1, 2], "colour": ["red", "blue"]}, live={"seed": range(3)})
    bundle = box._repr_mimebundle_()
    assert bundle["application/vnd.jupyter.widget-view+json"]["model_id"] == box.model_id
    first, *words = bundle["text/plain"].splitlines()
    assert first.startswith("Run this notebook")
    assert words == [f"At {height} < 4, {colour}, seed 0." for height in (1, 2) for colour in ("red", "blue")]


def test_where_drawing_fails_the_error_replaces_the_picture():
    def draw(figure, power=1, seed=0):
        """Draw nothing."""
        if seed:
            raise RuntimeError("no <seed>")
        return f"{power}"

    box = explore(draw, stored={"power": [1, 2]}, live={"seed": range(2)})
    with pytest.raises(RuntimeError, match="no <seed>"):
        sliders(box)["seed"].value = 1
    assert "RuntimeError" in live(box).value and "no &lt;seed&gt;" in live(box).value and "<img" not in live(box).value
    sliders(box)["seed"].value = 0
    assert "<img" in live(box).value


def undocumented(figure, height=1):
    return ""


def without_default(figure, height):
    """Draw."""


def with_default(figure, height=1):
    """Draw."""
    return ""


@pytest.mark.parametrize(
    ("function", "stored", "live", "message"),
    [
        (without_default, {}, {"height": [1]}, "stored is empty"),
        (undocumented, {"height": [1]}, {}, "no docstring"),
        (without_default, {"width": [1]}, {}, "no parameter 'width'"),
        (without_default, {"height": [1]}, {}, "give height of without_default a default"),
        (with_default, {"height": [2]}, {}, "give height of with_default a default"),
        (with_default, {"height": [1]}, {"width": [1]}, "no parameter 'width'"),
        (with_default, {"height": [1]}, {"height": [1, 2]}, "height cannot be both stored and live"),
    ],
)
def test_what_an_experiment_lacks_is_said(function, stored, live, message):
    with pytest.raises(ValueError, match=message):
        explore(function, stored=stored, live=live)
