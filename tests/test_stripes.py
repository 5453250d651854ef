"""Stripes that come out of dots: the script of the pages draws tables of the model and runs AMP as the package does."""

import re

import numpy as np
import pytest
from draw_stripes import ASSETS, LAST, MOVING, ROWS, SEED, STRENGTH, ask
from PIL import Image
from playwright.sync_api import expect
from questions import needs_node
from test_browser import DESK, PHONE, address, browser, opened, site  # noqa: F401

from amptutorial import GaussianPosterior, biased_low_rank_amp

MEAN = 0.8  # counts of a cell
OPENING, SEEDS = {"rows": ROWS, "strength": STRENGTH}, range(1, 21)


def run(counts, start, strength, n_iter=16):
    """Return the run of the package on the score of a table whose frequencies are equal."""
    m = len(counts)
    mean = counts.mean()
    beliefs = GaussianPosterior(np.eye(2)), GaussianPosterior(strength * np.eye(2))
    score = (counts - mean) / np.sqrt(mean)
    return biased_low_rank_amp(score, np.ones(m), np.ones(m), beliefs, B0=start, n_iter=n_iter)


@needs_node
def test_the_script_runs_the_amp_of_the_package():
    tables = [{"rows": rows, "strength": strength, "seed": 3} for rows, strength in ((60, 4), (80, 1.5))]
    for settings, found in zip(tables, ask(tables), strict=True):
        m = settings["rows"]
        ours = run(np.reshape(found["counts"], (m, m)), np.array(found["start"]).T, settings["strength"])
        for theirs, iterate in zip(found["fits"], ours.iterates, strict=True):
            assert np.allclose(np.transpose(theirs["A"]), iterate.A, atol=1e-8)
            assert np.allclose(np.transpose(theirs["B"]), iterate.B, atol=1e-8)
        fit = ours.A @ ours.B.T / np.sqrt(m)
        truth = np.reshape(found["truth"], (m, m))
        assert np.allclose(found["fit"], fit.ravel(), atol=1e-8)
        assert found["error"] == pytest.approx(((fit - truth) ** 2).sum() / (truth**2).sum())


@needs_node
def test_tables_of_the_script_scatter_as_those_of_the_model():
    """Twenty tables of either kind: means within four of their errors, deviations within four of theirs, m = 60."""
    m, strength, number = 60, 3, 20
    tables = [{"rows": m, "strength": strength, "seed": k} for k in range(number)]
    theirs = np.array([found["error"] for found in ask(tables)])
    rng, ours = np.random.default_rng(0), []
    for _ in range(number):
        signal = rng.normal(size=(m, 2)) @ (np.sqrt(strength) * rng.normal(size=(2, m))) / np.sqrt(m)
        found = run(rng.poisson(MEAN * np.exp(signal / np.sqrt(MEAN))), rng.normal(size=(m, 2)), strength)
        ours.append(((found.A @ found.B.T / np.sqrt(m) - signal) ** 2).sum() / (signal**2).sum())
    spread = np.std(theirs, ddof=1), np.std(ours, ddof=1)
    assert abs(theirs.mean() - np.mean(ours)) < 4 * np.hypot(*spread) / np.sqrt(number)
    assert abs(np.log(spread[0] / spread[1])) < 4 / np.sqrt(number - 1)


def test_the_still_picture_is_that_with_which_the_pages_begin_and_scripts_are_small():
    text = (ASSETS / "stripes.js").read_text()
    values = re.findall(r"value: (\d+) }, anew", text)
    assert values == [str(STRENGTH), str(ROWS)] and f"seed = {SEED}," in text
    assert all(len((ASSETS / f"{name}.js").read_bytes()) <= 10_000 for name in ("stripes", "spectrum", "words"))
    for path in MOVING:
        with Image.open(path) as moving:
            assert moving.n_frames == LAST + 1
    assert sum(path.stat().st_size for path in MOVING) < 300_000


@pytest.mark.slow
@needs_node
def test_the_pages_begin_with_a_typical_table():
    """Its error is the median of twenty seeds, to two digits."""
    errors = {k: each["error"] for k, each in zip(SEEDS, ask([OPENING | {"seed": k} for k in SEEDS]), strict=True)}
    assert errors[SEED] == pytest.approx(np.median([*errors.values()]), abs=0.005)


@pytest.mark.slow
@needs_node
def test_where_the_sliders_end_amp_still_finds_the_stripes():
    """In the smallest table with the strongest signal: smaller ones have single associations that are not weak."""
    text = (ASSETS / "stripes.js").read_text()
    rows = int(re.search(r'"documents and words", { min: (\d+)', text)[1])
    strength = float(re.search(r'"strength of association", { min: [\d.]+, max: ([\d.]+)', text)[1])
    errors = [each["error"] for each in ask([{"rows": rows, "strength": strength, "seed": k} for k in SEEDS])]
    assert np.mean(errors) < 0.35 and max(errors) < 0.6


@pytest.mark.parametrize("size", [{"width": 1440, "height": 900}, PHONE])
def test_the_first_screen_has_the_picture_and_its_sliders_which_play_pause_and_answer_keys(opened, size):  # noqa: F811
    page = opened("book/intro.html", viewport=size)
    iteration = page.get_by_role("slider", name="iteration")
    caption = page.locator(".stripes figcaption")
    expect(iteration).not_to_have_value("16")  # it plays by itself, once
    expect(caption).to_contain_text("After 16 iterations")
    for part in page.locator(".stripes :is(canvas, input)").all():
        box = part.bounding_box()
        assert box["y"] + box["height"] <= size["height"]
    start = page.get_by_role("link", name="Start with chapter 1")
    under = caption.bounding_box()
    assert start.bounding_box()["y"] > under["y"] + under["height"]  # none stands between a question and its picture
    if size != PHONE:
        expect(start).to_be_in_viewport(ratio=1)
    colours = "canvas => new Set(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data).size"
    assert min(page.locator(".stripes canvas").evaluate_all(f"all => all.map({colours})")) >= 4
    iteration.press("Home")
    expect(caption).to_contain_text("After 0 iterations the error is 1.00")
    iteration.press("ArrowRight")
    expect(caption).to_contain_text("After 1 iteration the error is 0.9")
    page.get_by_role("button", name="Play").press("Enter")
    page.get_by_role("button", name="Pause").press("Enter")
    expect(page.get_by_role("button", name="Play")).to_be_focused()
    iteration.press("End")
    said = caption.inner_text()
    for _ in range(2):  # two tables may have one error, in two digits
        page.get_by_role("button", name="Other table", exact=True).press("Enter")
    expect(caption).not_to_have_text(said)
    page.get_by_role("slider", name="association").press("Home")
    iteration.press("End")
    expect(caption).to_have_text(re.compile(r"After 16 iterations the error is (1|0\.9)"))  # there is nothing to find


def test_who_wants_no_motion_gets_none_and_paper_gets_a_still_picture(opened):  # noqa: F811
    page = opened("book/intro.html", reduced_motion="reduce", viewport=DESK)
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    expect(page.get_by_role("slider", name="iteration")).to_have_value("16")
    still, canvas = page.locator(".stripes > img"), page.locator(".stripes canvas").first
    expect(still).to_be_hidden()
    page.emulate_media(media="print")
    expect(still).to_be_visible()
    expect(canvas).to_be_hidden()


def test_where_the_reader_bets_first_nothing_plays_before_the_button(opened):  # noqa: F811
    page = opened("book/07_biased_low_rank_amp.html", viewport=DESK)
    caption = page.locator(".stripes figcaption")
    expect(caption).to_contain_text("After 0 iterations the error is 1.00")
    page.get_by_role("button", name="Play").press("Enter")
    expect(caption).to_contain_text("After 16 iterations")
