"""What figures are drawn with can be seen; experiments, with a kernel and on a page without one."""

import base64
import io
import json
import re
from functools import partial
from xml.etree import ElementTree

import ipywidgets
import numpy as np
import pytest
from contrast import luminance
from matplotlib.figure import Figure
from PIL import Image

from amptutorial.book import widgets
from amptutorial.book.figures import COLOURS, METHOD_LOOKS, STYLE
from amptutorial.book.widgets import WordField

explore = partial(widgets.explore, size=(2, 1))  # inches: soon drawn


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


def parse(html):
    html = re.sub(r"<(img|input)([^>]*)>", r"<\1\2/>", html)
    return ElementTree.fromstring(f"<body>{html}</body>")


def bytes_of(figure):
    return base64.b64decode(figure.find("img").get("src").removeprefix("data:image/png;base64,"))


def sliders(experiment):
    return {child.description: child for child in experiment.widgets.children[:-1]}


def live(experiment):
    return experiment.widgets.children[-1].value


def test_a_page_keeps_a_picture_for_each_combination_and_without_a_script_shows_that_of_the_defaults(draw, drawn):
    experiment = explore(draw, stored={"height": [1, 2, 3], "colour": ["red", "blue"]}, live={"seed": (2, 1, 0)})
    page = parse(experiment.page())
    expected = [(height, colour, 0) for height in (1, 2, 3) for colour in ("red", "blue")]
    assert drawn == expected
    figures = page.findall(".//figure")
    sentences = [f"At {height} < 4, {colour}, seed {seed}." for height, colour, seed in expected]
    assert [figure.find("figcaption").text for figure in figures] == sentences
    assert len({bytes_of(figure) for figure in figures}) == len(figures)
    (seen,) = (figure for figure in figures if figure.get("hidden") is None)
    assert seen.find("figcaption").text == "At 2 < 4, red, seed 0."
    controls, pictures = page.find("div[@class='amp-explore']")
    assert controls.get("hidden") == "hidden" and not pictures.findall(".//input")


def test_with_a_kernel_every_slider_redraws_and_nothing_is_drawn_twice(draw, drawn):
    experiment = explore(draw, stored={"height": [1, 2, 3]}, live={"colour": ["red", "blue"], "seed": range(3)})
    experiment.page()
    assert "At 2 &lt; 4, red, seed 0." in live(experiment)
    start = len(drawn)
    sliders(experiment)["height"].value = 2
    assert "At 3 &lt; 4, red, seed 0." in live(experiment) and len(drawn) == start
    sliders(experiment)["seed"].value = 2
    sliders(experiment)["colour"].value = 1
    assert "At 3 &lt; 4, blue, seed 2." in live(experiment) and len(drawn) == start + 2
    sliders(experiment)["seed"].value = 0
    sliders(experiment)["seed"].value = 2
    assert len(drawn) == start + 3


def test_where_python_runs_a_stored_slider_has_finer_steps(draw, drawn, monkeypatch):
    """Also where a stored value is met up to round-off only, as 0.7 by fourteen steps of a twentieth."""

    def fine(figure, signal=0.7, seed=0):
        """Draw a signal."""
        drawn.append(signal)
        return f"Signal {signal:g}, seed {seed}."

    steps = np.linspace(0, 3, 61)
    experiment = explore(fine, stored={"signal": (0.3, 0.7, 1.2)}, live={"signal": steps, "seed": range(3)})
    stored = parse(experiment.page())
    assert drawn == [0.3, 0.7, 1.2] and 0.7 not in steps
    assert [label.get("max") for label in stored.iter("input")] == ["2"] and "signal has 61 steps" in experiment.page()
    shown = [figure.find("figcaption").text for figure in stored.iter("figure") if figure.get("hidden") is None]
    assert shown == ["Signal 0.7, seed 0."]
    sliders(experiment)["signal"].value = 60
    assert "Signal 3, seed 0." in live(experiment)
    monkeypatch.setattr(widgets, "IN_PAGE", True)
    signal, seed = parse(experiment._repr_mimebundle_()["text/html"]).iter("input")
    assert (signal.get("max"), signal.get("value"), seed.get("max")) == ("60", "14", "2")
    assert "Signal 0.05, seed 2." in experiment.figure([1, 2])


def test_in_the_page_all_sliders_ask_for_what_they_choose(draw, drawn, monkeypatch):
    monkeypatch.setattr(widgets, "IN_PAGE", True)
    experiments = [explore(draw, stored={"height": [1, 2, 3]}, live={"seed": range(3)}) for _ in range(2)]
    shown = [parse(experiment._repr_mimebundle_()["text/html"]) for experiment in experiments]
    names = {page.find("div").get("data-name") for page in shown}
    assert len(names) == 1  # a cell that runs again leaves no more behind
    assert drawn == [(2, "red", 0)] * 2  # the page waits for nothing that it does not show
    assert [label.text.strip() for label in shown[1].findall(".//label")] == ["height", "seed"]
    (figure,) = parse(eval(f"{names.pop()}.figure([0, 2])"))
    assert figure.find("figcaption").text == "At 1 < 4, red, seed 2."


def test_a_field_for_words_keeps_what_a_page_needs_to_embed_texts():
    rows = np.array([[1, 2], [2, 0], [1, 0]])
    field = WordField(np.array(["a<b", "c", "d"]), rows, np.ones(2), np.array([0.5, 0.3, 0.2]), "c", "say \"c'\nd")
    (box,) = parse(field.page())
    model = json.loads(box.get("data-model"))
    low, high = np.frombuffer(base64.b64decode(model["rows"]), np.uint8).reshape(2, 3, 2)
    whole = np.int16(256) * high.view(np.int8) + low
    assert np.allclose(whole * model["unit"], rows, atol=2e-3) and model["shares"] == [500_000, 300_000, 200_000]
    assert model["words"] == ["a<b", "c", "d"] and box.get("data-texts") == "say \"c'\nd"
    assert field._repr_mimebundle_()["text/plain"] == box.find("p").text == "c: d a<b"


def test_sliders_are_labelled_as_the_values_are_read():
    def draw(figure, true_rate=0.3, seed=0):
        """Draw nothing."""
        return ""

    experiment = explore(draw, stored={"true_rate": [0.1, 0.1 + 0.2, 0.3, 100.0, 1]}, live={"seed": [0]})
    slider = sliders(experiment)["true rate"]
    ((label, output),) = parse(experiment.page()).findall(".//div[@class='amp-slider']")
    native = label.find("input").attrib
    assert isinstance(slider, ipywidgets.SelectionSlider) and label.text.strip() == "true rate" and output.text == "0.3"
    assert {"max": "4", "value": "2", "aria-valuetext": "0.3", "type": "range"}.items() <= native.items()
    expected = ["0.1", "0.3", "0.3", "100", "1"]
    assert [label for label, _ in slider.options] == json.loads(native["data-labels"]) == expected


def test_a_picture_can_be_heard_is_sharp_and_small(draw):
    page = parse(explore(draw, stored={"height": [1, 2, 3]}, size=(4, 3)).page())
    figure = page.find(".//figure")
    shown = figure.find("img").attrib
    assert shown["alt"] == "Draw a line of some height & colour."
    assert (shown["width"], shown["height"]) == ("384", "288")
    picture = Image.open(io.BytesIO(bytes_of(figure)))
    assert picture.size == (768, 576) and picture.mode == "P" and len(bytes_of(figure)) < 12_000
    assert (0xFF, 0, 0) in {colour for _, colour in picture.convert("RGB").getcolors()}


def test_a_notebook_keeps_the_page_and_the_tests_get_the_words(draw):
    experiment = explore(draw, stored={"height": [1, 2], "colour": ["red", "blue"]}, live={"seed": range(3)})
    bundle = experiment._repr_mimebundle_()
    assert bundle["application/vnd.jupyter.widget-view+json"]["model_id"] == experiment.widgets.model_id
    assert bundle["text/html"] == experiment.page()
    first, *words = bundle["text/plain"].splitlines()
    assert first.startswith("Run this notebook")
    assert words == [f"At {height} < 4, {colour}, seed 0." for height in (1, 2) for colour in ("red", "blue")]


def test_where_drawing_fails_the_error_replaces_the_picture():
    def draw(figure, power=1, seed=0):
        """Draw nothing."""
        if seed:
            raise RuntimeError("no <seed>")
        return f"{power}"

    experiment = explore(draw, stored={"power": [1, 2]}, live={"seed": range(2)})
    seed = sliders(experiment)["seed"]
    with pytest.raises(RuntimeError, match="no <seed>"):
        seed.value = 1
    assert "no &lt;seed&gt;" in live(experiment) and "<img" not in live(experiment)
    seed.value = 0
    assert "<img" in live(experiment)


def test_what_an_experiment_lacks_is_said():
    def undocumented(figure, height=1):
        pass

    def without_default(figure, height):
        """Draw."""

    def with_default(figure, height=1):
        """Draw."""

    for function, stored, live, message in (
        (without_default, {}, {"height": [1]}, "stored is empty"),
        (undocumented, {"height": [1]}, {}, "no docstring"),
        (without_default, {"width": [1]}, {}, "no parameter 'width'"),
        (without_default, {"height": [1]}, {}, "give height of without_default a default"),
        (with_default, {"height": [2]}, {}, "give height of with_default a default"),
        (with_default, {"height": [1, 2]}, {"height": [1, 3]}, "live leaves out stored values of height: add 2"),
    ):
        with pytest.raises(ValueError, match=message):
            explore(function, stored=stored, live=live)


def test_colours_stand_out_from_white_and_letters_can_be_read_on_a_phone():
    """At least ten pixels high once the figure is scaled to a screen of 390 pixels, less 40 at the sides."""
    assert all(1.05 / (luminance(colour) + 0.05) >= 4.5 for colour in COLOURS)
    assert STYLE["font.size"] / 72 * (390 - 40) / STYLE["figure.figsize"][0] >= 10
    for kind in zip(*METHOD_LOOKS.values(), strict=True):  # methods are told apart by colour and by mark
        assert len(set(kind)) == len(METHOD_LOOKS)
