"""The studies: chapters can be read in the time that they state, and the power of checks is found where it is known."""

import re
from types import SimpleNamespace

import nbformat
import numpy as np
import pytest
from execute_book import BOOK

from amptutorial.biases import refit_biases
from studies import judging, reseed
from studies.power import Chapter
from studies.readability import measure, open_text, sentences


@pytest.mark.parametrize("path", sorted(BOOK.glob("[0-9]*.ipynb")), ids=lambda path: path.stem)
def test_a_chapter_is_one_sitting_of_the_stated_minutes_and_opens_with_something_to_look_at(path):
    page = measure(path)
    assert page.words <= 2500 and page.lines <= 150
    assert page.median <= 7 and page.longest_of_most <= 14
    assert page.pixels < 560  # on the first screen
    assert len(page.long_sentences) <= 2, page.long_sentences
    assert page.questions <= 2
    said = sentences(page.prose)
    assert sum(sentence.startswith("So ") for sentence in said) <= len(said) / 10
    assert int(re.search(r"\*Time:\* about (\d+) minutes", page.prose)[1]) == page.minutes


def test_folds_and_formulas_do_not_count_and_included_code_does():
    text = "One two $x + y$ three.\n\n$$\nz = 1\n$$\n\n:::{dropdown} Proof\nHidden words.\n:::\n\n"
    text += "```{prf:lemma} Name\n:label: lem-x\n\nFour {ref}`ch-x` five?\n```\n"
    shown, included = open_text(text, BOOK)
    assert "Hidden" not in shown and "z = 1" not in shown and "Four" in shown and included == 0
    assert sentences(shown) == ["One two word three.", "Four word five?"]
    text = "```{literalinclude} ../amptutorial/model.py\n:pyobject: draw_embedding\n:lines: 1,3-5\n```\n"
    assert open_text(text, BOOK)[1] == 4


DRAWN = """
import nbformat
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


WIDTHS = [
    ("assert abs(1.05 * x - 1) < 0.1", 0.1 / 1.05),
    ("assert np.isclose(x, 1.0, rtol=0.03)", 0.03),
    ("assert within(1.1 * x, 1.0)", 0.2 / 1.1),
    ("gap = np.abs(np.array([x, 3.0]) - [1.1, 3.3])\nassert (gap < [0.2, 0.6]).all()", 0.2),
    ("gaps = []\nfor k in (4, 2):\n    gaps.append(k * x - k * 1.1)\n    assert np.abs(gaps).max() < 1", 1 / 4.4),
    ("for k in (1, 2, 4):\n    assert abs(k * x - k) < 0.8", 0.2),
]


@pytest.mark.parametrize("cell, e", WIDTHS)
def test_half_the_width_of_what_passes_is_found(cell, e):
    power = power_of("x = 1.0\n" + cell)
    assert power.kind == "close" and power.e == pytest.approx(e, rel=0.02)


def test_e_does_not_depend_on_where_chance_put_the_measurement():
    near, far = (power_of(f"x = {x}\nassert abs(x - 1) < 0.1") for x in (1.0, 1.09))
    assert near.e == pytest.approx(far.e, rel=0.1) and far.up == pytest.approx(0.01 / 1.09, rel=0.02)


def test_random_numbers_are_not_drawn_again():
    cell = "gap = rng.standard_normal(400) + 2 - 2.0\nassert abs(gap.mean()) < 4 * bar_of(gap)"
    assert power_of(cell).kind == "zero"


def test_a_gain_from_outside_is_that_of_the_likelihoods(rng):
    """Of the pairs that nothing has seen, zeros included: most of the truth, none of independence."""
    drawn = judging.table("users, strong", 99)
    outside, rank = judging.Outside(drawn.Z, 99), 3
    own = judging.fitted(outside.shown, rank, "counts", 99)[0]
    truth, independent = SimpleNamespace(), SimpleNamespace()
    M = drawn.M[np.ix_(outside.rows, outside.columns)]
    biases = refit_biases(outside.shown, M * np.sqrt(len(M)), np.eye(len(M[0])))
    truth.predict_rates = lambda: np.outer(*biases) * np.exp(M)
    independent.predict_rates = lambda: outside.independent
    gains = [outside.gain(model)[0] for model in (independent, own, truth)]
    assert gains[0] == 0 < gains[1] < gains[2]
    assert abs(own.heldout_gain_ - gains[1]) < 2 * np.hypot(own.heldout_error_, outside.gain(own)[1])


# Of corpora that take seconds to count; that of docstrings comes counted.
LARGE = {"reviews": [pytest.mark.slow, pytest.mark.reviews], "words in context": pytest.mark.slow}


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=LARGE.get(kind, ())) for kind in judging.KINDS])
def test_tables_of_every_kind_are_drawn_with_structure_and_without(kind):
    for structure in (True, False):
        drawn = judging.table(kind, 3, structure)
        observed = ~np.isnan(drawn.Z)
        assert np.nanmin(drawn.Z) == 0 and np.nansum(drawn.Z) > 5000
        assert observed.all() == (not kind.startswith("NaN"))
        assert drawn.M is None or drawn.M.any() == structure


@pytest.mark.slow
def test_reseed_draws_anew_notes_every_assertion_and_measures_moves_by_their_errors(tmp_path):
    cells = [
        "import numpy as np\nx = np.random.default_rng(0).normal()",
        "assert 1 > 2\nassert abs(x - 0.12573) < 1e-5",
    ]
    told = nbformat.v4.new_code_cell("print(f'{x:.2f} ± 0.10')")
    told.outputs = [nbformat.v4.new_output("stream", name="stdout", text="0.13 ± 0.10\n")]
    notebook = nbformat.v4.new_notebook(cells=[*map(nbformat.v4.new_code_cell, cells), told])
    nbformat.write(notebook, path := tmp_path / "one.ipynb")
    assert reseed.n_assertions(path) == 2
    x = np.random.default_rng([3, 0]).normal()
    failed, [(move, _)] = reseed.run(path, 3)
    assert failed == ["1 > 2", "abs(x - 0.12573) < 1e-05"]
    assert move == pytest.approx(abs(round(x, 2) - 0.13) / (0.1 * 2**0.5))
    notebook.cells[0].metadata.tags = ["one-draw"]
    nbformat.write(notebook, path)
    assert reseed.run(path, 3)[0] == ["1 > 2"]
    assert reseed.NUMBER.findall("-0.5 ± 0.1, 2e-05 ± 1e-05, 7 +- 2") == [("-0.5", "0.1"), ("7", "2")]
    assert reseed.moved(("0.50", "0.00"), ("0.52", "0.00")) == pytest.approx(0.02 / (0.005 * 2**0.5))
