"""The opening of chapter 4: its script finds the largest singular value from a secular equation, as NumPy does."""

import json
import re
from html import unescape
from pathlib import Path

import nbformat
import numpy as np
import pytest
from draw_stripes import ASSETS, run
from playwright.sync_api import expect
from questions import needs_node
from test_browser import DESK, PHONE, address, browser, opened, site  # noqa: F401

CHAPTER = "book/04_what_the_spectrum_sees"
PROGRAM = """
import {{ above, largest }} from "./spectrum.js";
const model = {model}, signals = {signals};
console.log(JSON.stringify({{
    tops: signals.map(signal => largest(model, signal)),
    counts: signals.map(signal => {numbers}.map(number => above(model, signal, number))),
}}));
"""


def asked(model, signals, numbers=()):
    given = {"model": model, "signals": signals, "numbers": numbers}
    return run(PROGRAM.format(**{name: json.dumps(value) for name, value in given.items()}), "spectrum.js")


@needs_node
@pytest.mark.parametrize("seed", range(4))
def test_the_script_counts_the_singular_values_of_a_sum(seed):
    rng = np.random.default_rng(seed)
    noise, x, y = (rng.normal(size=size) for size in ((12, 20), 12, 20))
    x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)
    left, values, right = np.linalg.svd(noise, full_matrices=False)
    model = {"values": values.tolist(), "left": (x @ left).tolist(), "right": (right @ y).tolist()}
    signals, numbers = [0.0, 0.5, 3.0, 9.0, 20.0], np.linspace(0.3, 22, 40).tolist()
    found = asked(model, signals, numbers)
    for signal, top, counts in zip(signals, found["tops"], found["counts"], strict=True):
        sums = np.linalg.svd(noise + signal * np.outer(x, y), compute_uv=False)
        assert top == pytest.approx(sums[0], rel=1e-9)
        assert counts == [(sums > number).sum() for number in numbers]


@needs_node
def test_the_page_shows_what_the_cell_computes():
    cells = nbformat.read(Path(ASSETS.parents[1], f"{CHAPTER}.ipynb"), 4).cells
    output = next(cell for cell in cells if "ScriptedExperiment" in cell.source).outputs[0].data
    model = json.loads(unescape(re.search("data-model='(.*?)'", output["text/html"])[1]))
    said = re.findall(r"the signal has (.*), and the largest singular value of the sum is (.*)\.", output["text/plain"])
    signals, tops = np.array(said, float).T
    assert len(signals) > 5
    assert np.allclose(asked(model, signals.tolist())["tops"], tops, atol=0.0051)


@pytest.mark.parametrize("size", [DESK, PHONE])
def test_the_picture_follows_keys_and_a_finger_and_paper_has_a_still_one(opened, size):  # noqa: F811
    page = opened(f"{CHAPTER}.html", viewport=size)
    slider, said = page.get_by_role("slider", name="signal"), page.locator(".amp-spectrum figcaption").last
    still, drawn = page.locator(".amp-spectrum figure:has(img)"), page.locator(".amp-spectrum svg")
    expect(said).to_contain_text("the signal has 0.30,")
    expect(said).to_contain_text("the largest singular value of the sum is 1.00, among the bars.")
    slider.press("End")
    expect(said).to_contain_text("the signal has 1.25")
    box = drawn.bounding_box()
    page.mouse.move(box["x"] + box["width"] * (56 + 360 * 0.7) / 640, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.up()
    expect(said).to_contain_text("the signal has 0.70,")
    expect(said).to_contain_text("the largest singular value of the sum is 1.07, outside the bars.")
    expect(still).to_be_hidden()
    page.emulate_media(media="print")
    expect(still).to_be_visible()
    expect(drawn).to_be_hidden()
