"""The field of chapter 1 for the reader's own sentences: its script embeds them as the model says."""

import json
import re
from html import unescape

import fit_words
import numpy as np
import pytest
from draw_stripes import run
from questions import needs_node
from scipy.optimize import minimize
from scipy.special import logsumexp

from amptutorial.book.widgets import WordField

TEXTS = ["A plot: the AXES", "plot ticks", "zebra", "tree"]
WORDS = ["plot", "axe", "tick", "tree", "leaf", "plotting"]
PROGRAM = """
import {{ decode, embed, gains, judge, known, nearest }} from "./words.js";
const model = decode({model}), documents = {texts}.map(text => known(model, text));
console.log(JSON.stringify({{
    documents, gains: gains(model, documents), judged: [judge(model, documents), judge(model, [[0, 1, 2], [0, 1, 3]])],
    embedded: documents.map(each => embed(model, each, 30).z), near: nearest(model, model.vectors[3], [3]),
}}));
"""


@pytest.fixture
def model():
    rng = np.random.default_rng(0)
    return rng.normal(size=(6, 3)), np.array([0.5, 1.0, 1.5]), rng.dirichlet(np.ones(6))


def asked(rows, deviations, shares, texts=TEXTS):
    page = WordField(WORDS, rows, deviations, shares, "tree", "").page()
    model = unescape(re.search("data-model='(.*?)'", page)[1])
    return run(PROGRAM.format(model=model, texts=json.dumps(texts)), "words.js")


def posterior_mode(document, rows, deviations, shares):
    """Return the numbers of a document with one count of each of its words, in units of their deviations."""

    def loss(z):
        eta = rows @ (deviations * z)
        return len(document) * logsumexp(eta, b=shares) - eta[document].sum() + z @ z / 2

    return minimize(loss, np.zeros(3), tol=1e-12).x


@needs_node
def test_a_sentence_is_embedded_at_the_mode_of_its_posterior_and_gains_what_the_other_words_tell(model):
    found = asked(*model)
    rows, deviations, shares = model
    assert found["documents"] == [[0, 1], [0, 2], [], [3]]  # endings are lost, and unknown words
    for document, z in zip(found["documents"], found["embedded"], strict=True):
        assert np.allclose(z, posterior_mode(document, *model), atol=5e-3)  # the page keeps three digits of a number
    gains = []
    for word, other in ((0, 1), (1, 0), (0, 2), (2, 0)):
        eta = rows @ (deviations * posterior_mode([other], *model))
        gains.append(eta[word] - logsumexp(eta, b=shares))
    assert np.allclose(found["gains"], gains, atol=1e-2)
    cosines = rows @ rows[3] / np.linalg.norm(rows, axis=1)
    assert found["near"] == [WORDS[j] for j in np.argsort(-cosines) if j != 3]
    (few, _), (_, enough) = found["judged"]
    assert few.startswith("Too few") and re.match(r"Each of 6 words.* gain of -?\d\.\d\d ± \d", enough)
    times, gain = map(float, re.search(r"becomes (\S+) times as likely \(a gain of (\S+) ", enough).groups())
    assert times == pytest.approx(np.exp(gain), abs=0.02)


@pytest.mark.slow
def test_the_stored_fit_is_what_a_fit_gives():
    stored, fresh = np.load(fit_words.STORED), fit_words.fitted()
    for name, values in fresh.items():
        assert np.allclose(stored[name], values, rtol=2e-3, atol=2e-2), name
